/* JPEG decoding, orientation, conversion and resizing. */
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "engine/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3 || data[0] != 0xff) return 0;
    int64_t live = lk_alloc_live();
    struct lk_image image, rgb = {0}, small = {0};
    if (!lk_image_decode(&image, data, size, "fuzz", 1, 1 << 18)) {
        if (lk_image_to_rgb(&rgb, &image)) abort();
        if (lk_image_resize(&small, &image, 7, 5, LK_RESAMPLE_LANCZOS)) abort();
    } else if (image.pixels || !*lk_error_text()) {
        abort();
    }
    struct lk_png_text *texts;
    if (!lk_picture_text_parse(data, size, "fuzz", &texts)) lk_png_text_free(texts);
    lk_image_free(&image);
    lk_image_free(&rgb);
    lk_image_free(&small);
    if (lk_alloc_live() != live) abort();
    return 0;
}
