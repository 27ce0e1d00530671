/* Patterns of the pre-tokenizer: PCRE2 where the reference has Oniguruma. Only the part of the syntax that means the
 * same in both is accepted; characters whose category differs are matched through lk_unicode_stand_in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct pattern {
    void *code;    /* pcre2_code, anchored */
    void *counted; /* the same, calling back before each item of the pattern */
    bool literal;
};

/* What one thread needs for matching. */
struct pattern_matcher {
    void *data, *stack;      /* pcre2_match_data, pcre2_jit_stack */
    void *context, *counted; /* pcre2_match_context for each code of a pattern */
    int64_t steps_left;
    size_t last_position;
};

/* Matches of one pattern in one text from left to right, as the reference iterates: none overlap, and an empty one does
 * not follow where the last one ended. */
struct pattern_iterator {
    const struct pattern *pattern;
    struct pattern_matcher *matcher;
    const char *text;
    size_t length, at, last_end;
    bool any;
};

/* `where` is for messages: "FILE: pre_tokenizer.pattern". LK_E_TOKENIZER for syntax that is not accepted. */
enum lk_code lk_pattern_compile(struct pattern *pattern, const char *text, size_t length, bool literal,
                                const char *where);
/* One character of a word, as the reference's single_word has it. */
enum lk_code lk_pattern_compile_word(struct pattern *pattern);
void lk_pattern_free(struct pattern *pattern);

/* `length` of the text to come sets how many steps all its matches together may take, so that no pattern can hang. */
enum lk_code lk_pattern_matcher_init(struct pattern_matcher *matcher, size_t length);
void lk_pattern_matcher_free(struct pattern_matcher *matcher);

struct pattern_iterator lk_pattern_begin(const struct pattern *pattern, struct pattern_matcher *matcher,
                                         const char *text, size_t length);
/* *found false after the last match. LK_E_PROMPT when the text takes more steps than allowed, LK_E_NOMEM. */
enum lk_code lk_pattern_next(struct pattern_iterator *it, bool *found, size_t *start, size_t *end);

/* NULL if the expression stays within what is accepted, else what is not, with the byte offset in *at. */
const char *lk_pattern_refusal(const char *regex, size_t length, size_t *at);
