/* TIFF and BMP decoding, orientation and conversion. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 8 || (memcmp(data, "II*", 4) && memcmp(data, "MM\0*", 4) && memcmp(data, "BM", 2))) return 0;
    int64_t live = lk_alloc_live();
    struct lk_image image, rgb = {0};
    if (!lk_image_decode(&image, data, size, "fuzz", 1, 1 << 18)) {
        if (lk_image_to_rgb(&rgb, &image)) abort();
    } else if (image.pixels || !*lk_error_text()) {
        abort();
    }
    lk_image_free(&image);
    lk_image_free(&rgb);
    if (lk_alloc_live() != live) abort();
    return 0;
}
