/* tokenizer.json from anywhere: an answer, no leak; what parses also encodes. In the corpus "@BYTES" stands for the 256
 * entries that every byte-level vocabulary needs, so that files stay small. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/tokenizer/bpe.h"
#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/unicode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t put_bytes(char *out) {
    char *at = out;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t c = lk_byte_alphabet((unsigned char)byte);
        *at++ = '"';
        if (c == '"' || c == '\\') *at++ = '\\';
        at += lk_utf8_encode(c, at);
        *at++ = '"';
        *at++ = ':';
        if (byte >= 100) *at++ = (char)('0' + byte / 100);
        if (byte >= 10) *at++ = (char)('0' + byte / 10 % 10);
        *at++ = (char)('0' + byte % 10);
        *at++ = ',';
    }
    return (size_t)(at - out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char text[] = "<s>[INST]Don't  make it 1234 \u00e9e\u0301\u4e2d\u6587 ab abc\t\n x[/INST]";
    static const char mark[] = "@BYTES";
    const uint8_t *at = size ? memmem(data, size, mark, sizeof mark - 1) : NULL;
    char *json = malloc(size + 4096);
    if (!json) abort();
    size_t n = at ? (size_t)(at - data) : size;
    if (size) memcpy(json, data, n);
    if (at) {
        size_t rest = size - n - (sizeof mark - 1);
        n += put_bytes(json + n);
        memcpy(json + n, at + sizeof mark - 1, rest);
        n += rest;
    }
    struct lk_tokenizer *tokenizer;
    int32_t *ids;
    size_t n_ids;
    int64_t live = lk_alloc_live();
    if (!lk_tokenizer_parse(&tokenizer, json, n, "fuzz")) {
        if (!lk_tokenizer_encode(tokenizer, text, sizeof text - 1, &ids, &n_ids)) {
            for (size_t i = 0; i < n_ids; i++) {
                if (ids[i] < 0 || ids[i] >= lk_tokenizer_vocab_size(tokenizer)) abort();
            }
            lk_free(ids);
        }
        lk_tokenizer_free(tokenizer);
    }
    if (lk_alloc_live() != live) abort();
    free(json);
    return 0;
}
