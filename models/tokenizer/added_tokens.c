#include "models/tokenizer/added_tokens.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "models/tokenizer/unicode.h"

enum lk_code lk_added_trie_init(struct added_trie *trie, size_t n_bytes) {
    enum lk_code rc = lk_pair_map_init(&trie->edges, n_bytes);
    if (rc) return rc;
    trie->token_at = lk_malloc((n_bytes + 1) * sizeof *trie->token_at);
    if (!trie->token_at) return lk_fail(LK_E_NOMEM, "tokenizer: no memory for added tokens");
    trie->token_at[0] = -1;
    trie->n_nodes = 1;
    return LK_OK;
}

void lk_added_trie_free(struct added_trie *trie) {
    lk_pair_map_free(&trie->edges);
    lk_free(trie->token_at);
    *trie = (struct added_trie){0};
}

bool lk_added_trie_add(struct added_trie *trie, const char *content, size_t length, int32_t token) {
    uint32_t node = 0;
    trie->begins[(unsigned char)content[0]] = true;
    for (size_t i = 0; i < length; i++) {
        uint64_t *child = lk_pair_map_put(&trie->edges, node, (unsigned char)content[i]);
        if (*child == UINT64_MAX) {
            *child = trie->n_nodes;
            trie->token_at[trie->n_nodes++] = -1;
        }
        node = (uint32_t)*child;
    }
    if (trie->token_at[node] >= 0) return false;
    trie->token_at[node] = token;
    trie->n_tokens++;
    return true;
}

int32_t lk_added_trie_match(const struct added_trie *trie, const char *text, size_t length, size_t *n_bytes) {
    int32_t token = -1;
    uint32_t node = 0;
    if (!trie->n_tokens || !length || !trie->begins[(unsigned char)text[0]]) return -1;
    for (size_t i = 0; i < length; i++) {
        const uint64_t *child = pair_map_find(&trie->edges, node, (unsigned char)text[i]);
        if (!child) break;
        node = (uint32_t)*child;
        if (trie->token_at[node] >= 0) {
            token = trie->token_at[node];
            *n_bytes = i + 1;
        }
    }
    return token;
}

void lk_added_tokens_free(struct added_tokens *added) {
    lk_token_table_free(&added->contents);
    lk_added_trie_free(&added->as_given);
    lk_added_trie_free(&added->normalized);
    lk_pattern_free(&added->word);
    lk_free(added->tokens);
    *added = (struct added_tokens){0};
}

struct added_iterator lk_added_begin(const struct added_tokens *added, const struct added_trie *trie,
                                     struct pattern_matcher *matcher, const char *text, size_t length) {
    return (struct added_iterator){
        .added = added, .trie = trie, .matcher = matcher, .text = text, .length = length, .done = !length};
}

/* Start of the character that ends at `at`. */
static size_t character_before(const char *text, size_t at) {
    do at--;
    while ((text[at] & 0xc0) == 0x80);
    return at;
}

/* Whether the character at `at` is one of a word. */
static enum lk_code is_word(const struct added_iterator *it, size_t at, bool *word) {
    uint32_t c;
    char stand_in[4];
    lk_utf8_decode(it->text + at, it->length - at, &c);
    size_t n = lk_utf8_encode(lk_unicode_stand_in(c), stand_in), start, end;
    struct pattern_iterator matches = lk_pattern_begin(&it->added->word, it->matcher, stand_in, n);
    return lk_pattern_next(&matches, word, &start, &end);
}

static enum lk_code stands_alone(const struct added_iterator *it, size_t start, size_t end, bool *alone) {
    bool before = false, after = false;
    enum lk_code rc = LK_OK;
    if (start) rc = is_word(it, character_before(it->text, start), &before);
    if (!rc && end < it->length) rc = is_word(it, end, &after);
    *alone = !before && !after;
    return rc;
}

/* Not past where the token before ended. */
static size_t strip_left(const struct added_iterator *it, size_t at) {
    while (at > it->behind) {
        size_t before = character_before(it->text, at);
        uint32_t c;
        lk_utf8_decode(it->text + before, it->length - before, &c);
        if (!lk_unicode_white_space(c)) break;
        at = before;
    }
    return at > it->behind ? at : it->behind;
}

static size_t strip_right(struct added_iterator *it, size_t at) {
    if (at >= it->space_start && at <= it->space_end) return it->space_end;
    it->space_start = at;
    while (at < it->length) {
        uint32_t c;
        size_t n = lk_utf8_decode(it->text + at, it->length - at, &c);
        if (!lk_unicode_white_space(c)) break;
        at += n;
    }
    return it->space_end = at;
}

/* The next match that counts. The search goes on behind a match as found, whether or not it counts and however far
 * stripping widened it: so does the reference's. */
static enum lk_code next_match(struct added_iterator *it, int32_t *token, size_t *start, size_t *end) {
    for (size_t at = it->search_at; at < it->length;) {
        size_t n;
        int32_t found = lk_added_trie_match(it->trie, it->text + at, it->length - at, &n);
        if (found < 0) {
            at++;
            continue;
        }
        bool counts = true;
        *start = at;
        it->search_at = at = *end = at + n;
        if (it->added->tokens[found].single_word) {
            enum lk_code rc = stands_alone(it, *start, *end, &counts);
            if (rc) return rc;
        }
        if (!counts) continue;
        *token = found;
        return LK_OK;
    }
    it->search_at = it->length;
    *token = -1;
    return LK_OK;
}

enum lk_code lk_added_next(struct added_iterator *it, bool *found, struct added_span *span) {
    *found = true;
    while (!it->done && !it->has_pending) {
        int32_t token = -1;
        size_t start = 0, end = 0, text_start = it->behind;
        enum lk_code rc = it->trie->n_tokens ? next_match(it, &token, &start, &end) : LK_OK;
        if (rc) return rc;
        if (token < 0) {
            it->done = true;
            start = it->length;
        } else {
            const struct added_token *t = &it->added->tokens[token];
            if (t->lstrip) start = strip_left(it, start);
            if (t->rstrip) end = strip_right(it, end);
            /* White space that the token before took along leaves nothing of a token that is only that. */
            it->has_pending = start < end;
            it->pending = (struct added_span){start, end, token};
            it->behind = end;
        }
        if (text_start < start) {
            *span = (struct added_span){text_start, start, -1};
            return LK_OK;
        }
    }
    *found = it->has_pending;
    it->has_pending = false;
    *span = it->pending;
    return LK_OK;
}
