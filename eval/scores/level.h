/* A score as files write it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* 1..5 when the number (JSON syntax: 4, 4.0, 40e-1) is exactly one of them; 0 otherwise. Decided on the digits, so that
 * no rounding and no locale makes a level of another number. */
int lk_level_of_number(const char *text, size_t n);
/* The same for a string, which must be the digit alone: "4". */
int lk_level_of_string(const char *text, size_t n);
/* Years between the ages of two pictures as the level of a change: at most -far 1, at least far 5, up to near either
 * way
 * 3. Age change has 5 and 15, age accuracy, from the age that was asked for, 10 and 20. */
int lk_level_of_years(double years, double near, double far);
/* An unsigned decimal integer up to max, -1 otherwise; "12.0" is one too, as spreadsheets and pandas write it. */
long lk_count_of_text(const char *text, size_t n, long max);
/* A decimal number: a sign, digits before or after a point, an exponent (-1.5, .9, 1., 1e3), nothing before or behind
 * it; the nearest double. False when it is none or not finite. */
bool lk_decimal_of_text(const char *text, size_t n, double *out);
