/* A JSON config read strictly: every key must be asked for or declared known, types must match, duplicates are refused.
 *
 *     struct lk_config *c;
 *     if ((rc = lk_config_open(&c, path))) return rc;
 *     lk_config_int(c, "num_layers", &n, 1, 1000);               // required
 *     lk_config_bool_or(c, "guidance_embeds", &g, true);         // optional with default
 *     lk_config_expect_string(c, "act_fn", "silu");              // known, only this value is implemented
 *     lk_config_ignore(c, "_diffusers_version");
 *     return lk_config_close(c);                                 // first problem, with file and field; unknown keys
 * listed
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct lk_config;

/* All functions below take NULL for a config and then do nothing, so that an object which is missing (the problem is
 * recorded already) needs no branch. Integers are exact: 2^53 and beyond is refused where it is asked for; 2.0 counts
 * as the integer 2. cJSON, which holds the values, allocates with lk_malloc from the program's start. */

/* A file (at most 1 MiB) or a text; `name` is for messages. The top level must be an object. */
enum lk_code lk_config_open(struct lk_config **out, const char *path);
enum lk_code lk_config_parse(struct lk_config **out, const char *text, size_t length, const char *name);

/* The object under key (borrowed; closed with its parent, unknown keys in it reported too). NULL result when absent and
 * not required; a problem is recorded when required or of the wrong type. */
struct lk_config *lk_config_object(struct lk_config *config, const char *key, bool required);
bool lk_config_has(const struct lk_config *config, const char *key); /* present and not null; does not mark the key as
                                                                        known */
bool lk_config_is_object(const struct lk_config *config, const char *key); /* nor does this */

/* Required values with inclusive ranges. On a problem *out stays as it was and the problem is recorded. JSON null
 * counts as absent for the _or forms. */
void lk_config_int(struct lk_config *config, const char *key, int64_t *out, int64_t min, int64_t max);
void lk_config_int_or(struct lk_config *config, const char *key, int64_t *out, int64_t otherwise, int64_t min,
                      int64_t max);
void lk_config_number(struct lk_config *config, const char *key, double *out, double min, double max);
void lk_config_number_or(struct lk_config *config, const char *key, double *out, double otherwise, double min,
                         double max);
void lk_config_bool(struct lk_config *config, const char *key, bool *out);
void lk_config_bool_or(struct lk_config *config, const char *key, bool *out, bool otherwise);
/* *out borrowed until close; NULL when absent in the _or form's otherwise = NULL. */
void lk_config_string(struct lk_config *config, const char *key, const char **out);
void lk_config_string_or(struct lk_config *config, const char *key, const char **out, const char *otherwise);
/* An array of integers into out[max_n]; *n gets the count. */
void lk_config_ints(struct lk_config *config, const char *key, int64_t *out, size_t max_n, size_t *n);
/* The same for finite numbers, and for true and false. */
void lk_config_numbers(struct lk_config *config, const char *key, double *out, size_t max_n, size_t *n);
void lk_config_bools(struct lk_config *config, const char *key, bool *out, size_t max_n, size_t *n);
/* The same, or one integer instead of an array of one. */
void lk_config_int_or_ints(struct lk_config *config, const char *key, int64_t *out, size_t max_n, size_t *n);
/* Array of strings, borrowed pointers. */
void lk_config_strings(struct lk_config *config, const char *key, const char **out, size_t max_n, size_t *n);
/* Element i of an array of such arrays. */
void lk_config_string_list(struct lk_config *config, const char *key, size_t i, const char **out, size_t max_n,
                           size_t *n);

/* Present with another value is LK_E_CONFIG_VALUE ("expected ..., got ...: this program implements only ..."); absent
 * is fine. */
void lk_config_expect_string(struct lk_config *config, const char *key, const char *value);
/* The same for one of several; `values` ends in NULL. */
void lk_config_expect_one_of(struct lk_config *config, const char *key, const char *const *values);
void lk_config_expect_bool(struct lk_config *config, const char *key, bool value);
void lk_config_expect_int(struct lk_config *config, const char *key, int64_t value);
void lk_config_expect_null(struct lk_config *config, const char *key);
/* Known and without meaning for inference, whatever its value. */
void lk_config_ignore(struct lk_config *config, const char *key);

/* Records a problem of the caller's: "FILE: field "key": ...". */
void lk_config_problem(struct lk_config *config, const char *key, enum lk_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Frees the config and gives the first problem recorded, else LK_E_CONFIG_KEY when keys were neither asked for nor
 * declared known (all of them listed), else LK_OK. */
enum lk_code lk_config_close(struct lk_config *config);
/* Frees without a check, for error paths. NULL is allowed. */
void lk_config_discard(struct lk_config *config);
