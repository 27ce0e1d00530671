/* Text chunks of a PNG, and making chunks of what was read. Bit 0 of the first byte of an input: set its chunks' CRCs
 * right first. */
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "tests/fuzz/png_crc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    int64_t live = lk_alloc_live();
    uint8_t *bytes = malloc(size);
    if (!bytes) return 0;
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 1) repair_crcs(bytes, size - 1);
    struct lk_png_text *texts;
    if (!lk_png_text_parse(bytes, size - 1, "fuzz", &texts)) {
        for (const struct lk_png_text *t = texts; t->key; t++) {
            struct lk_png_text_chunk chunk;
            if (!lk_png_text_encode(t, "fuzz", &chunk)) lk_free(chunk.data);
        }
        lk_png_text_free(texts);
    } else if (texts || !*lk_error_text()) {
        abort();
    }
    free(bytes);
    if (lk_alloc_live() != live) abort();
    return 0;
}
