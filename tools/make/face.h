/* A portrait drawn by code: a picture of nobody, for the demo and the tests. */
#pragma once

#include "engine/image/image.h"

#define MAKE_FACE_SKINS 6
#define MAKE_FACE_HAIRS 4

struct make_face {
    int width, height;
    int skin;        /* 0 .. MAKE_FACE_SKINS - 1, light to dark */
    int hair;        /* 0 .. MAKE_FACE_HAIRS - 1: black, brown, blond, red */
    double grey;     /* of the hair, 0 to 1 */
    bool short_hair; /* above the neck */
};

/* RGB. The same arguments give the same pixels. */
enum lk_code make_face_draw(struct lk_image *out, const struct make_face *face);
