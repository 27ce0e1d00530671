/* Tokens that are matched in the text before it is split: special tokens and others that were added to the vocabulary.
 * Leftmost match first, the longest of those that begin there. */
#pragma once

#include <stdbool.h>

#include "models/tokenizer/hash.h"
#include "models/tokenizer/pattern.h"

#define ADDED_TOKEN_MAX_BYTES 256

struct added_token {
    int32_t id;
    bool single_word; /* no word character may touch it */
    bool lstrip;      /* takes the white space before it along */
    bool rstrip;      /* takes the white space after it along */
    bool normalized;  /* matched in normalised text, else in the text as given */
    bool special;     /* controls the model; no part of a text */
};

/* A trie over bytes. */
struct added_trie {
    struct pair_map edges; /* (node, byte) to node */
    int32_t *token_at;     /* per node: index of the token that ends there, -1 if none */
    uint32_t n_nodes, n_tokens;
    bool begins[256];
};

struct added_tokens {
    struct token_table contents; /* as in the file; numbers are indices into tokens */
    struct added_token *tokens;
    uint32_t n;
    struct added_trie as_given, normalized;
    struct pattern word; /* one word character; only compiled when a token needs it */
};

/* A part of the text: token >= 0 (an index) or text between tokens. */
struct added_span {
    size_t start, end;
    int32_t token;
};

/* Iterates over the spans of a text; none is empty. */
struct added_iterator {
    const struct added_tokens *added;
    const struct added_trie *trie;
    struct pattern_matcher *matcher;
    const char *text;
    size_t length, search_at, behind;
    size_t space_start, space_end; /* the last run of white space that was stripped on the right */
    struct added_span pending;
    bool has_pending, done;
};

/* Sizes for tokens of together at most n_bytes. */
enum lk_code lk_added_trie_init(struct added_trie *trie, size_t n_bytes);
void lk_added_trie_free(struct added_trie *trie);
/* False when the trie has this content already. */
bool lk_added_trie_add(struct added_trie *trie, const char *content, size_t length, int32_t token);

/* The longest token that the text begins with, and its length; -1 if none. */
int32_t lk_added_trie_match(const struct added_trie *trie, const char *text, size_t length, size_t *n_bytes);

void lk_added_tokens_free(struct added_tokens *added);

struct added_iterator lk_added_begin(const struct added_tokens *added, const struct added_trie *trie,
                                     struct pattern_matcher *matcher, const char *text, size_t length);
enum lk_code lk_added_next(struct added_iterator *it, bool *found, struct added_span *span);
