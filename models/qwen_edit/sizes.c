#include "models/qwen_edit/sizes.h"

#include <math.h>

#define MULTIPLE 32
#define SIDE_MAX 65535

enum lk_code lk_qwen_edit_dimensions(int64_t area, int width, int height, int *out_width, int *out_height) {
    if (width < 1 || height < 1 || area < 1)
        return lk_fail(LK_E_IMAGE_SIZE, "image: expected sides of at least 1 pixel and an area to scale to, got %dx%d",
                       width, height);
    double ratio = (double)width / height, w = sqrt((double)area * ratio), h = w / ratio;
    w = rint(w / MULTIPLE) * MULTIPLE; /* halves to even, as Python's round() */
    h = rint(h / MULTIPLE) * MULTIPLE;
    if (!(w >= MULTIPLE && h >= MULTIPLE && w <= SIDE_MAX && h <= SIDE_MAX))
        return lk_fail(LK_E_IMAGE_SIZE,
                       "image: %dx%d scaled to an area of %lld pixels would be %.0fx%.0f; crop it to a less extreme "
                       "aspect ratio",
                       width, height, (long long)area, w, h);
    *out_width = (int)w;
    *out_height = (int)h;
    return LK_OK;
}

enum lk_code lk_qwen_edit_output_size(int64_t area, int last_width, int last_height, int requested_width,
                                      int requested_height, int multiple, int *out_width, int *out_height) {
    int width = requested_width, height = requested_height;
    if (width < 0 || height < 0 || width > SIDE_MAX || height > SIDE_MAX)
        return lk_fail(LK_E_IMAGE_SIZE, "output: expected sides of 1 to %d pixels, got %dx%d", SIDE_MAX, width, height);
    if (!width || !height) {
        int w, h;
        LK_TRY(lk_qwen_edit_dimensions(area, last_width, last_height, &w, &h));
        if (!width) width = w;
        if (!height) height = h;
    }
    if (width < multiple || height < multiple)
        return lk_fail(LK_E_IMAGE_SIZE, "output: expected at least %d pixels a side, got %dx%d", multiple, width,
                       height);
    *out_width = width / multiple * multiple;
    *out_height = height / multiple * multiple;
    return LK_OK;
}
