/* Masks for edits (models/common/mask.h) that keep faces, or edit nothing else. */
#pragma once

#include "engine/image/image.h"

struct lk_face_mask {
    bool keep;    /* boxes are black, which is kept, on white; else white on black */
    bool ellipse; /* inside of the box, touching it */
    double grow;  /* how far a box is grown on each side, by its width and height; 0 to 10 */
};

struct lk_yunet;
/* What stands in a mask: on the command line, and in a study file. */
struct lk_face_mask_recipe {
    struct lk_face_mask how;
    const char *what;    /* "face": those that the net finds, or a box "X,Y,WIDTH,HEIGHT" */
    const char *several; /* of faces: "refuse", "all" or "largest" */
};

/* The mask of a picture, whose name stands in messages; text: how it was made, as JSON (lk_free). net: NULL is refused
 * where faces are meant. LK_E_INPUT: no face, several; as lk_face_mask_draw. */
enum lk_code lk_face_mask_make(struct lk_image *out, char **text, const struct lk_face_mask_recipe *recipe,
                               const struct lk_image *source, const char *name, const char *source_sha256,
                               const struct lk_yunet *net, const char *net_sha256);

/* boxes [n]: x, y, width, height in pixels. A pixel belongs to one if its centre lies in it. LK_E_INPUT for a box that
 * is none, and where less than a hundredth of the picture is left to edit, or nothing to keep. */
enum lk_code lk_face_mask_draw(struct lk_image *out, int width, int height, const double (*boxes)[4], int n,
                               const struct lk_face_mask *how);
