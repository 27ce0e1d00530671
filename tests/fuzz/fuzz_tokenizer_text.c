/* Text from anywhere, on a tokenizer with NFC, added tokens of every kind and ByteLevel's own pattern: ids that are in
 * range, or a refusal. The first byte chooses the tokenizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/tokenizer/bpe.h"
#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/unicode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FLAGS(single_word, strip, normalized)                                                                          \
    "\"single_word\":" single_word ",\"lstrip\":" strip ",\"rstrip\":" strip ",\"normalized\":" normalized             \
    ",\"special\":false}"

/* The vocabulary: 256 bytes and the first merges of "ab", " a", "abc". */
static struct lk_tokenizer *make(const char *pre_tokenizer) {
    static char json[16384];
    size_t n = (size_t)snprintf(
        json, sizeof json,
        "{\"added_tokens\":["
        "{\"id\":259,\"content\":\"<s>\"," FLAGS(
            "false", "false",
            "false") ","
                     "{\"id\":260,\"content\":\"abab\"," FLAGS(
                         "true", "true",
                         "false") ","
                                  "{\"id\":261,\"content\":\"e\u0301\"," FLAGS(
                                      "false", "true",
                                      "true") ","
                                              "{\"id\":262,\"content\":\" \"," FLAGS(
                                                  "false", "true",
                                                  "true") "],"
                                                          "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":%s,"
                                                          "\"model\":{\"type\":\"BPE\",\"vocab\":{",
        pre_tokenizer);
    for (unsigned byte = 0; byte < 256; byte++) {
        char c[5] = {0};
        uint32_t code = lk_byte_alphabet((unsigned char)byte);
        lk_utf8_encode(code, c);
        n += (size_t)sprintf(json + n, code == '"' || code == '\\' ? "\"\\%s\":%u," : "\"%s\":%u,", c, byte);
    }
    n += (size_t)sprintf(json + n, "\"ab\":256,\"\u0120a\":257,\"abc\":258},"
                                   "\"merges\":[[\"a\",\"b\"],[\"\u0120\",\"a\"],[\"ab\",\"c\"]]}}");
    struct lk_tokenizer *tokenizer;
    if (lk_tokenizer_parse(&tokenizer, json, n, "fuzz")) abort();
    return tokenizer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct lk_tokenizer *tokenizers[2];
    if (!tokenizers[0]) {
        tokenizers[0] = make("{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true}");
        tokenizers[1] = make("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
                             "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}|"
                             " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"
                             "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
                             "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]}");
    }
    if (!size) return 0;
    const struct lk_tokenizer *tokenizer = tokenizers[data[0] & 1];
    int64_t live = lk_alloc_live();
    int32_t *ids;
    size_t n_ids;
    enum lk_code rc = lk_tokenizer_encode(tokenizer, (const char *)data + 1, size - 1, &ids, &n_ids);
    if (rc && rc != LK_E_PROMPT) abort();
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || ids[i] >= lk_tokenizer_vocab_size(tokenizer)) abort();
    }
    lk_free(ids);
    if (lk_alloc_live() != live) abort();
    return 0;
}
