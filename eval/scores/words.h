/* What every reader of people's tables agrees on: which cells are missing, and when two names are the same. No reader
 * has a list or a comparison of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The text without the white space around it (blanks, tabs, line ends, no-break spaces). */
const char *lk_trim(const char *text, size_t *n);
/* Nothing but white space, or what pandas, R, SQL and spreadsheets write for nothing: NA, N/A, n/a, #N/A, <NA>, NaN,
 * nan, null, NULL, None, -, and the like; letter case counts but in NA and NaN ("none" is an answer). */
bool lk_is_missing(const char *text, size_t n);
/* Whether two names of columns or words of answers are the same but for letter case, blanks, underscores, hyphens and
 * brackets: "Ethnicity (simplified)" is "ethnicity_simplified". */
bool lk_same_name(const char *a, const char *b);
bool lk_same_name_n(const char *a, size_t n_a, const char *b, size_t n_b);
/* The place of a word in a list that ends with NULL, by lk_same_name; -1 when it is none. */
int lk_word_of(const char *const *words, const char *text, size_t n);
/* An id that a spreadsheet took for a number and rounded, as 5.60E+23: which it was cannot be known. */
bool lk_is_damaged_id(const char *text, size_t n);
