/* A mosaic over part of a picture, so that nobody can be recognised. */
#pragma once

#include "engine/image/image.h"

/* Blocks along a picture in which the face is not known: portraits fill about half of it. */
enum { LK_MOSAIC_WHOLE = 16 };

/* Replaces the box by `across` blocks (1 or more) along its longer side, each in its mean colour; a box that reaches
 * beyond the picture is cut to it, an empty one changes nothing. */
void lk_image_mosaic(struct lk_image *image, int left, int top, int width, int height, int across);
