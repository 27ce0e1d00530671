#include "models/tokenizer/tokenizer.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "models/tokenizer/normalizer.h"
#include "models/tokenizer/tokenizer_file.h"
#include "models/tokenizer/unicode.h"
#include "weights/config_identity.h"
#include "weights/mapped_file.h"

#define MAX_TEXT_BYTES (16u << 20)
#define MAX_FILE_BYTES (256u << 20)

enum lk_code lk_tokenizer_parse(struct lk_tokenizer **out, const char *json, size_t length, const char *name) {
    *out = NULL;
    if (length > MAX_FILE_BYTES) {
        return lk_fail(LK_E_JSON_LIMIT, "%s: expected at most %u bytes, got %zu", name, MAX_FILE_BYTES, length);
    }
    struct lk_tokenizer *tokenizer = lk_calloc(1, sizeof *tokenizer);
    if (!tokenizer) return lk_fail(LK_E_NOMEM, "%s: no memory for a tokenizer", name);
    enum lk_code rc = lk_tokenizer_file_parse(tokenizer, json, length, name);
    if (rc) {
        lk_tokenizer_free(tokenizer);
    } else {
        *out = tokenizer;
    }
    return rc;
}

enum lk_code lk_tokenizer_open(struct lk_tokenizer **out, const char *path) {
    char *json;
    size_t length;
    *out = NULL;
    enum lk_code rc = lk_read_file(path, MAX_FILE_BYTES, &json, &length);
    if (rc) return rc;
    rc = lk_tokenizer_parse(out, json, length, path);
    lk_free(json);
    return rc ? rc : lk_tokenizer_add_identity(out, path);
}

void lk_tokenizer_free(struct lk_tokenizer *tokenizer) {
    if (!tokenizer) return;
    lk_token_table_free(&tokenizer->bpe.vocab);
    lk_pair_map_free(&tokenizer->bpe.merges);
    lk_added_tokens_free(&tokenizer->added);
    lk_pre_tokenizer_free(&tokenizer->pre_tokenizer);
    lk_free(tokenizer);
}

static enum lk_code check_text(const char *text, size_t length) {
    if (length > MAX_TEXT_BYTES) {
        return lk_fail(LK_E_PROMPT, "prompt: expected at most %u bytes, got %zu; shorten it", MAX_TEXT_BYTES, length);
    }
    const char *nul = length ? memchr(text, 0, length) : NULL;
    if (nul) {
        return lk_fail(LK_E_PROMPT, "prompt: byte %zu: expected text, got NUL; remove it", (size_t)(nul - text));
    }
    size_t valid = lk_utf8_valid_prefix(text, length);
    if (valid < length) {
        return lk_fail(LK_E_PROMPT, "prompt: byte %zu: expected UTF-8, got 0x%02x; convert the text to UTF-8", valid,
                       (unsigned char)text[valid]);
    }
    return LK_OK;
}

typedef enum lk_code text_fn(const struct lk_tokenizer *, struct encoding *, struct nfc_scratch *, const char *,
                             size_t);

/* Ids of the added tokens that the trie finds, with `between` called on the text between them. */
static enum lk_code each_span(const struct lk_tokenizer *tokenizer, const struct added_trie *trie, struct encoding *e,
                              struct nfc_scratch *scratch, const char *text, size_t length, text_fn *between) {
    struct added_iterator it = lk_added_begin(&tokenizer->added, trie, &e->matcher, text, length);
    struct added_span span;
    bool found;
    enum lk_code rc;
    while (!(rc = lk_added_next(&it, &found, &span)) && found) {
        rc = span.token >= 0 ? lk_id_list_add(&e->out, tokenizer->added.tokens[span.token].id)
                             : between(tokenizer, e, scratch, text + span.start, span.end - span.start);
        if (rc) return rc;
    }
    return rc;
}

static enum lk_code encode_pieces(const struct lk_tokenizer *tokenizer, struct encoding *e, struct nfc_scratch *scratch,
                                  const char *text, size_t length) {
    (void)tokenizer;
    (void)scratch;
    return lk_pre_tokenizer_encode(e, text, length);
}

static enum lk_code encode_normalized(const struct lk_tokenizer *tokenizer, struct encoding *e,
                                      struct nfc_scratch *scratch, const char *text, size_t length) {
    LK_TRY(lk_normalize(&tokenizer->normalizer, scratch, text, length, &text, &length));
    return each_span(tokenizer, &tokenizer->added.normalized, e, scratch, text, length, encode_pieces);
}

enum lk_code lk_tokenizer_encode(const struct lk_tokenizer *tokenizer, const char *text, size_t length, int32_t **ids,
                                 size_t *n_ids) {
    *ids = NULL;
    *n_ids = 0;
    enum lk_code rc = check_text(text, length);
    if (rc) return rc;
    struct encoding e = {.pre_tokenizer = &tokenizer->pre_tokenizer, .bpe = &tokenizer->bpe};
    struct nfc_scratch scratch = {0};
    rc = lk_pattern_matcher_init(&e.matcher, length);
    if (!rc) rc = lk_grow(&e.out.ids, &e.out.capacity, length / 4 + 16, sizeof *e.out.ids);
    if (!rc) {
        rc = each_span(tokenizer, &tokenizer->added.as_given, &e, &scratch, text, length, encode_normalized);
    }
    if (rc) {
        lk_free(e.out.ids);
    } else {
        *ids = e.out.ids;
        *n_ids = e.out.n;
    }
    lk_pattern_matcher_free(&e.matcher);
    lk_bpe_scratch_free(&e.scratch);
    lk_nfc_scratch_free(&scratch);
    lk_free(e.stand_in);
    lk_free(e.prefixed);
    return rc;
}

size_t lk_tokenizer_added_at(const struct lk_tokenizer *tokenizer, const char *text, size_t length) {
    size_t given = 0, normalized = 0;
    lk_added_trie_match(&tokenizer->added.as_given, text, length, &given);
    lk_added_trie_match(&tokenizer->added.normalized, text, length, &normalized);
    return given > normalized ? given : normalized;
}

int32_t lk_tokenizer_id(const struct lk_tokenizer *tokenizer, const char *token) {
    size_t length = strlen(token);
    int32_t i = lk_token_table_find(&tokenizer->added.contents, token, length);
    return i >= 0 ? tokenizer->added.tokens[i].id : lk_token_table_find(&tokenizer->bpe.vocab, token, length);
}

int32_t lk_tokenizer_vocab_size(const struct lk_tokenizer *tokenizer) { return tokenizer->vocab_size; }
