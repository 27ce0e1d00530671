/* A mosaic over part of a picture, so that nobody can be recognised. */
#pragma once

#include "engine/image.h"

/* Replaces the box by `across` blocks (1 or more) along its longer side, each in its mean colour; a box that reaches
 * beyond the picture is cut to it, an empty one changes nothing. */
void lk_image_mosaic(struct lk_image *image, int left, int top, int width, int height, int across);
