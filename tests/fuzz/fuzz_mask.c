/* A mask's file, the cells that it lets change, and the paste. Bits of the first byte: 0 set the chunks' CRCs right
 * first, 1 another size than the source's, 2 and 3 the feather, 4 cells by samples, 5 a token of four cells, 6 the
 * bytes are no file but a mask's sides and pixels. */
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "models/common/mask.h"
#include "tests/fuzz/png_crc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CELL = 8, CHANNELS = 4, MOST = 96 };

/* The picture's window is the source in whole cells. */
static void use(const struct lk_image *mask, const struct lk_image *source, uint8_t how) {
    const int cell = mask->width < 2 * CELL || mask->height < 2 * CELL ? 1 : CELL, tokens = how & 32 ? 2 * cell : cell;
    const int width = mask->width / tokens * tokens, height = mask->height / tokens * tokens;
    const size_t n = (size_t)mask->width * (size_t)mask->height;
    const struct lk_mask_window window = {mask->width, mask->height, 0, 0, width, height};
    struct lk_image made = {0};
    uint8_t *alpha = malloc(n);
    float *keep = calloc((size_t)(width / tokens) * (size_t)(height / tokens) * CHANNELS + 1, sizeof *keep);
    if (!alpha || !keep) abort();
    for (size_t i = 0; i < n; i++)
        if (mask->pixels[i] != 0 && mask->pixels[i] != 255) abort();
    if (width && height) {
        if (lk_mask_cells(mask, &window, cell, tokens, how & 16, CHANNELS, keep)) abort();
        for (int i = 0; i < width / tokens * (height / tokens) * CHANNELS; i++)
            if (!(keep[i] >= 0 && keep[i] <= 1)) abort();
        if (lk_image_new(&made, width, height, 3)) abort();
        memset(made.pixels, 200, (size_t)width * (size_t)height * 3);
        if (lk_mask_paste(&made, source, mask, &window, (how >> 2 & 3) * 5, alpha)) abort();
        for (size_t i = 0; i < n; i++)
            if (!mask->pixels[i] && (alpha[i] || memcmp(made.pixels + 3 * i, source->pixels + 3 * i, 3))) abort();
    }
    if (!(lk_mask_seam(source, mask) >= 0)) abort();
    lk_image_free(&made);
    free(keep);
    free(alpha);
}

/* Few mutations of a file are a mask: this one is. Free with lk_free. */
static uint8_t *file_of(const uint8_t *data, size_t size, size_t *n) {
    struct lk_image mask;
    void *file;
    if (lk_image_new(&mask, data[0] % MOST + 1, data[1] % MOST + 1, 1)) abort();
    for (size_t i = 0; i < (size_t)mask.width * (size_t)mask.height; i++) mask.pixels[i] = data[2 + i % (size - 2)];
    if (lk_png_encode("fuzz", &mask, &file, n)) abort();
    lk_image_free(&mask);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 26) return 0;
    const int64_t live = lk_alloc_live();
    size_t n = size - 1;
    uint8_t *bytes = data[0] & 64 ? file_of(data + 1, n, &n) : lk_malloc(n);
    struct lk_image source = {0}, mask = {0};
    int64_t n_soft;
    if (!bytes) return 0;
    if (!(data[0] & 64)) memcpy(bytes, data + 1, n);
    if (data[0] & 1 && lk_png_has_signature(bytes, n)) repair_crcs(bytes, n);
    int width = bytes[18] << 8 | bytes[19], height = bytes[22] << 8 | bytes[23]; /* as the file says */
    if (width < 1 || width > MOST) width = 64;
    if (height < 1 || height > MOST) height = 64;
    if (lk_image_new(&source, data[0] & 2 ? height : width, data[0] & 2 ? width + 1 : height, 3)) abort();
    for (size_t i = 0; i < (size_t)source.width * (size_t)source.height * 3; i++) source.pixels[i] = (uint8_t)i;
    if (!lk_mask_decode("fuzz", bytes, n, &source, &mask, &n_soft))
        use(&mask, &source, data[0]);
    else if (mask.pixels || !*lk_error_text())
        abort();
    lk_image_free(&mask);
    lk_image_free(&source);
    lk_free(bytes);
    if (lk_alloc_live() != live) abort();
    return 0;
}
