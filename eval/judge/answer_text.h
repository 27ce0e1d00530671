/* Where the answer is in what a judge wrote: behind its thoughts, perhaps in a code fence or among other words and
 * objects. Which object counts is decided here alone; what an object means, by who reads it. */
#pragma once

#include <stddef.h>

#include "engine/base/status.h"

/* Moves *text and *n behind the last thought that is closed (<think>...</think> and the marks of other models).
 * LK_E_INPUT: a thought that is not closed, or nothing follows. */
enum lk_code lk_answer_behind_thoughts(const char **text, size_t *n);

/* A JSON object of which raw line ends in strings and commas before a closing bracket were mended. */
struct lk_answer_object {
    char *json; /* lk_malloc'ed, NUL-terminated */
    size_t n;
    int n_mended;
};
/* LK_E_NOMEM. */
enum lk_code lk_answer_mend(const char *object, size_t n, struct lk_answer_object *out);

/* What an object says, in `meaning`. LK_E_NOT_FOUND: it is no answer, and is passed over; LK_E_INPUT: it is one that is
 * not valid; both with the reason. Other codes end the search. */
enum { LK_ANSWER_MEANING = 72 };
typedef enum lk_code (*lk_answer_reader)(void *context, const char *object, size_t n, char meaning[LK_ANSWER_MEANING]);

/* The object that is the answer, behind all thoughts. Of several that answer the last counts when a word before it says
 * so ("final", "corrected"); otherwise all must mean the same. LK_E_INPUT with the reason when there is none, or when
 * an object is not closed. Free out->json in any case. */
enum lk_code lk_answer_find(const char *text, size_t n, lk_answer_reader read, void *context,
                            struct lk_answer_object *out);
