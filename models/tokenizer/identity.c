#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/tokenizer_file.h"
#include "weights/config_identity.h"

/* Texts by id, each with its length before it. */
static enum lk_code add_vocabulary(const struct token_table *t, struct lk_text *lines) {
    char *all = lk_malloc(t->text_bytes + t->n * sizeof t->tokens->length), *at = all, sha256[65];
    if (!all) return lk_fail(LK_E_NOMEM, "tokenizer: out of memory for its identity");
    for (uint32_t id = 0; id < t->n; id++) {
        const struct token_text *text = &t->tokens[id];
        memcpy(at, &text->length, sizeof text->length);
        memcpy(at + sizeof text->length, t->text + text->at, text->length);
        at += sizeof text->length + text->length;
    }
    lk_sha256(all, (size_t)(at - all), sha256);
    lk_free(all);
    lk_text_add(lines, "vocab %s\n", sha256);
    return lines->rc;
}

/* Pairs by rank, of which there are as many as half the slots at most. */
static enum lk_code add_merges(const struct pair_map *merges, struct lk_text *lines) {
    const size_t n_slots = merges->slots ? merges->mask + 1 : 0;
    char sha256[65];
    size_t n = 0;
    uint64_t *pairs = lk_calloc(n_slots / 2 + 1, sizeof *pairs);
    if (!pairs) return lk_fail(LK_E_NOMEM, "tokenizer: out of memory for its identity");
    for (size_t i = 0; i < n_slots; i++) {
        const size_t rank = (size_t)(merges->slots[i].value >> 32);
        if (merges->slots[i].key == UINT64_MAX) continue;
        pairs[rank] = merges->slots[i].key;
        if (rank >= n) n = rank + 1;
    }
    lk_sha256(pairs, n * sizeof *pairs, sha256);
    lk_free(pairs);
    lk_text_add(lines, "merges %s\n", sha256);
    return lines->rc;
}

static void add_added_tokens(const struct added_tokens *added, struct lk_text *lines) {
    for (uint32_t i = 0; i < added->n; i++) {
        const struct added_token *t = &added->tokens[i];
        const struct token_text *content = &added->contents.tokens[i];
        char sha256[65];
        lk_sha256(added->contents.text + content->at, content->length, sha256);
        lk_text_add(lines, "added_tokens.%d %s%s%s%s%s %s\n", t->id, t->single_word ? "w" : "", t->lstrip ? "l" : "",
                    t->rstrip ? "r" : "", t->normalized ? "n" : "", t->special ? "s" : "", sha256);
    }
}

enum lk_code lk_tokenizer_identity(const struct lk_tokenizer *tokenizer, struct lk_text *lines) {
    const struct pre_tokenizer *pre = &tokenizer->pre_tokenizer;
    LK_TRY(add_vocabulary(&tokenizer->bpe.vocab, lines));
    LK_TRY(add_merges(&tokenizer->bpe.merges, lines));
    lk_text_add(lines, "ignore_merges %d\nnfc %d\nadd_prefix_space %d\nuse_regex %d\n", tokenizer->bpe.ignore_merges,
                tokenizer->normalizer.nfc, pre->add_prefix_space, pre->use_regex);
    if (tokenizer->bpe.end_of_word || tokenizer->normalizer.one_space || tokenizer->normalizer.lowercase)
        lk_text_add(lines, "end_of_word %d\none_space %d\nlowercase %d\n", tokenizer->bpe.end_of_word,
                    tokenizer->normalizer.one_space, tokenizer->normalizer.lowercase);
    for (int i = 0; i < pre->n_splits; i++) {
        const struct split *s = &pre->splits[i];
        lk_text_add(lines, "splits.%d %d %d %d %s\n", i, (int)s->behavior, s->invert, s->pattern.literal, s->sha256);
    }
    add_added_tokens(&tokenizer->added, lines);
    return lines->rc;
}

enum lk_code lk_tokenizer_add_identity(struct lk_tokenizer **tokenizer, const char *path) {
    struct lk_text lines = {0};
    if (!lk_config_identity_wants(path)) return LK_OK;
    enum lk_code rc = lk_tokenizer_identity(*tokenizer, &lines);
    if (!rc) lk_config_identity_add(path, lines.bytes);
    lk_text_free(&lines);
    if (rc) {
        lk_tokenizer_free(*tokenizer);
        *tokenizer = NULL;
    }
    return rc;
}
