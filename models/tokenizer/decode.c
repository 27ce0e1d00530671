/* Ids back to bytes: what the ByteLevel decoder of Hugging Face tokenizers gives before it makes the bytes text. */
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/base/alloc.h"
#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/tokenizer_file.h"

/* The byte that a character of the byte alphabet stands for, -1 for other characters. */
static int byte_of(uint32_t c) {
    if (c < 0x100) return lk_byte_alphabet((unsigned char)c) == c ? (int)c : -1;
    for (int byte = 0; byte < 0x100 && c < 0x100 + 68; byte++)
        if (lk_byte_alphabet((unsigned char)byte) == c) return byte;
    return -1;
}

/* The token's bytes to out (as long as the token at most). A token with a character outside the alphabet stands for
 * itself. */
static size_t token_bytes(const char *token, size_t length, char *out) {
    size_t n = 0;
    for (size_t at = 0; at < length;) {
        uint32_t c;
        size_t step = lk_utf8_decode(token + at, length - at, &c);
        int byte = step ? byte_of(c) : -1;
        if (byte < 0) {
            memcpy(out, token, length);
            return length;
        }
        out[n++] = (char)byte;
        at += step;
    }
    return n;
}

/* The added token with this id, NULL if there is none. */
static const struct added_token *added_token_of(const struct lk_tokenizer *tokenizer, int32_t id) {
    const struct added_tokens *added = &tokenizer->added;
    for (uint32_t i = 0; i < added->n; i++)
        if (added->tokens[i].id == id) return &added->tokens[i];
    return NULL;
}

bool lk_tokenizer_is_special(const struct lk_tokenizer *tokenizer, int32_t id) {
    const struct added_token *token = added_token_of(tokenizer, id);
    return token && token->special;
}

static enum lk_code text_of(const struct lk_tokenizer *tokenizer, int32_t id, const char **text, size_t *length) {
    const struct added_token *token = added_token_of(tokenizer, id);
    const struct token_table *table = token ? &tokenizer->added.contents : &tokenizer->bpe.vocab;
    int64_t number = token ? token - tokenizer->added.tokens : id;
    if (number < 0 || number >= table->n || !table->tokens[number].length)
        return lk_fail(LK_E_INPUT, "token id %d: the tokenizer has ids of 0 to %d", id, tokenizer->vocab_size - 1);
    *text = table->text + table->tokens[number].at;
    *length = table->tokens[number].length;
    return LK_OK;
}

enum lk_code lk_tokenizer_decode(const struct lk_tokenizer *tokenizer, const int32_t *ids, size_t n_ids,
                                 bool skip_special, char **bytes, size_t *n_bytes) {
    char *out = NULL;
    size_t n = 0, capacity = 0;
    enum lk_code rc = LK_OK;
    *bytes = NULL;
    *n_bytes = 0;
    for (size_t i = 0; i < n_ids && !rc; i++) {
        const char *text = NULL;
        size_t length = 0;
        rc = text_of(tokenizer, ids[i], &text, &length);
        if (rc || (skip_special && lk_tokenizer_is_special(tokenizer, ids[i]))) continue;
        const size_t suffix = strlen(BPE_END_OF_WORD);
        const bool ends = tokenizer->bpe.end_of_word && !added_token_of(tokenizer, ids[i]) && length > suffix &&
                          !memcmp(text + length - suffix, BPE_END_OF_WORD, suffix);
        rc = lk_grow(&out, &capacity, n + length, 1);
        if (!rc) n += token_bytes(text, ends ? length - suffix : length, out + n);
        if (!rc && ends) out[n++] = ' ';
    }
    if (!rc) rc = lk_grow(&out, &capacity, n + 1, 1);
    if (rc) {
        lk_free(out);
        return rc;
    }
    out[n] = 0;
    *bytes = out;
    *n_bytes = n;
    return LK_OK;
}
