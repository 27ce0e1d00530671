/* YuNet, a face detector of 75,000 weights: boxes, scores and five points of the faces in a picture. Wu, Peng and Yu
 * 2023, "YuNet: a tiny millisecond-level face detector". Computed in f32 on the host: a picture takes milliseconds.
 *
 *     struct lk_yunet *net;
 *     LK_TRY(lk_yunet_open(&net, "yunet.safetensors"));
 *     rc = lk_yunet_detect(net, &image, &(struct lk_yunet_search){.min_score = 0.6, .max_overlap = 0.3}, &faces, &n);
 *     ... faces[0] is the surest ...
 *     lk_free(faces);
 *     lk_yunet_close(net); */
#pragma once

#include "engine/image/image.h"

struct lk_yunet;

/* One safetensors file with the names of the original's state ("backbone.model0.conv1.weight"), f32; batch norms may be
 * there or folded into the convolutions before them. Channels are the file's. LK_E_BIND names the tensor that is
 * missing, unknown or does not fit; codes of the reader; LK_E_NOMEM. */
enum lk_code lk_yunet_open(struct lk_yunet **out, const char *path);
void lk_yunet_close(struct lk_yunet *net);

enum { LK_FACE_POINTS = 5 };
/* Of the picture's pixels; parts may lie outside. Points: right eye, left eye, tip of the nose, right and left corner
 * of the mouth, of the person's own sides. */
struct lk_face {
    float x, y, width, height, score;
    float points[LK_FACE_POINTS][2];
};

struct lk_yunet_search {
    double min_score;   /* 0 to 1: faces below are none */
    double max_overlap; /* intersection over union with a surer face above which one is the same; 1: all are kept */
    int max_side;       /* larger pictures are reduced, as the net knows faces of 10 to 300 pixels; 0: 640 */
};
/* Surest first; of equal ones the upper left one. *faces: lk_free. LK_E_IMAGE_SIZE, LK_E_NOMEM. */
enum lk_code lk_yunet_detect(const struct lk_yunet *net, const struct lk_image *image,
                             const struct lk_yunet_search *search, struct lk_face **faces, size_t *n);
