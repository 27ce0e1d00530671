/* PNG decoding, orientation, conversion and resizing. Bit 0 of the first byte of an input: set its chunks' CRCs right
 * first; bit 1: follow the orientation. */
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "tests/fuzz/png_crc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size || !lk_png_has_signature(data + 1, size - 1)) return 0;
    int64_t live = lk_alloc_live();
    uint8_t *bytes = malloc(size);
    if (!bytes) return 0;
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 1) repair_crcs(bytes, size - 1);
    struct lk_image image, rgb = {0}, small = {0};
    if (!lk_image_decode(&image, bytes, size - 1, "fuzz", data[0] & 2, 1 << 18)) {
        if (lk_image_to_rgb(&rgb, &image)) abort();
        if (lk_image_resize(&small, &image, 7, 5, LK_RESAMPLE_LANCZOS)) abort();
    } else if (image.pixels || !*lk_error_text()) {
        abort();
    }
    lk_image_free(&image);
    lk_image_free(&rgb);
    lk_image_free(&small);
    free(bytes);
    if (lk_alloc_live() != live) abort();
    return 0;
}
