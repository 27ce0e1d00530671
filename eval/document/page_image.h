/* A mosaic over part of a picture, so that nobody can be recognised. */
#pragma once

#include "engine/image/image.h"

/* Blocks along a picture in which the face is not known: portraits fill about half of it. */
enum { LK_MOSAIC_WHOLE = 16 };

/* Replaces the box by `across` blocks (1 or more) along its longer side, each in its mean colour; a box that reaches
 * beyond the picture is cut to it, an empty one changes nothing. */
void lk_image_mosaic(struct lk_image *image, int left, int top, int width, int height, int across);

/* A file's picture upright, as RGB, with a longest side of `side` at most; size gets its own width and height. */
enum lk_code lk_image_read_small(struct lk_image *out, const char *file, int side, int size[2]);
/* Mosaic over faces [n, 4]: left, top, width, height in pixels of the picture of that size; over the whole picture
 * where no face is known, or what is called one does not lie in it. */
void lk_image_hide(struct lk_image *small, const int size[2], const int *faces, size_t n);
