/* A form that a language model fills in: fixed text with holes for strings and choices. The fixed text costs no choice,
 * and what comes out always has the form, whatever the model: a string is valid JSON inside its quotes, a choice is one
 * of its words. Before each choice stands what the model itself thought of the words. */
#pragma once

#include "models/text/generate.h"
#include "models/tokenizer/tokenizer.h"

#define LK_FORM_MAX_WORDS   8
#define LK_FORM_MAX_PIECES  48
#define LK_FORM_MAX_CHOICES 16

/* The bytes that every token writes; special tokens write none. */
struct lk_token_bytes {
    const char **bytes; /* [n], not terminated */
    uint32_t *lengths;
    int32_t n;
    char *text; /* behind them */
};
/* LK_E_NOMEM. */
enum lk_code lk_token_bytes_make(struct lk_token_bytes *out, const struct lk_tokenizer *tokenizer);
void lk_token_bytes_free(struct lk_token_bytes *t);
/* LK_E_TOKENIZER unless the ten ASCII digits are tokens and no other token has one: then a score is one token. ids gets
 * those of 1 to 5. */
enum lk_code lk_token_digits(const struct lk_token_bytes *t, int32_t ids[5]);

enum lk_form_kind { LK_FORM_TEXT, LK_FORM_STRING, LK_FORM_CHOICE };

struct lk_form_piece {
    enum lk_form_kind kind;
    const char *text; /* of a choice: its words, with | between; none the beginning of another */
};
struct lk_form {
    struct lk_form_piece pieces[LK_FORM_MAX_PIECES]; /* the first and those after a hole are text, the one after a
                                                        string begins with its quote */
    int n;
    int64_t max_string_tokens; /* then the string is closed */
};

/* What was thought of a choice. */
struct lk_form_choice {
    size_t at;                             /* byte of the reply where the word begins */
    int n_words, chosen;                   /* index of the word */
    double probability[LK_FORM_MAX_WORDS]; /* softmax over the words' first tokens, from the logits themselves */
    double mass;                           /* what they have together of all tokens */
};

/* One form being filled in; or, without a form, free text whose digits 1 to 5 are looked at. */
struct lk_form_writer {
    const struct lk_tokenizer *tokenizer;
    const struct lk_token_bytes *tokens;
    const struct lk_form *form; /* NULL: free text */
    int32_t digits[5];          /* of free text */
    int at;                     /* the hole that is being filled in */
    size_t n_bytes;             /* written */
    int64_t n_string_tokens;
    int escape, remaining; /* of the string: after a backslash; bytes that a character still needs */
    unsigned char low, high;
    int32_t words[LK_FORM_MAX_WORDS]; /* first tokens of the choice's words */
    int n_words;
    int32_t *forced; /* lk_malloc'ed */
    int64_t max_forced;
    struct lk_form_choice choices[LK_FORM_MAX_CHOICES]; /* of free text: the last ones */
    int n_choices;
};

/* The text before the first hole: ids to be put behind the prompt (lk_malloc). */
enum lk_code lk_form_begin(struct lk_form_writer *w, int32_t **ids, size_t *n);
/* Steers the reply, after lk_form_begin; w outlives it. */
struct lk_guide lk_form_guide(struct lk_form_writer *w);
void lk_form_writer_free(struct lk_form_writer *w);
