/* Masks for edits (models/common/mask.h) that keep faces, or edit nothing else. */
#pragma once

#include "engine/image/image.h"

struct lk_face_mask {
    bool keep;    /* boxes are black, which is kept, on white; else white on black */
    bool ellipse; /* inside of the box, touching it */
    double grow;  /* how far a box is grown on each side, by its width and height; 0 to 10 */
};

/* boxes [n]: x, y, width, height in pixels. A pixel belongs to one if its centre lies in it. LK_E_INPUT for a box that
 * is none, and where less than a hundredth of the picture is left to edit, or nothing to keep. */
enum lk_code lk_face_mask_draw(struct lk_image *out, int width, int height, const double (*boxes)[4], int n,
                               const struct lk_face_mask *how);
