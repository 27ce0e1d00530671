/* The study's data files, byte for byte, as part of the program (eval/data/NAME.json, eval/intake/tables/NAME.sql, and
 * style sheets and scripts, taken in by the build). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/text.h"

struct lk_data_file {
    const char *name; /* "rubric" */
    const char *text; /* JSON, NUL-terminated beyond n_bytes */
    size_t n_bytes;
};

/* False when there is no file of that name. */
bool lk_data_find(const char *name, struct lk_data_file *out);
/* That the study's five files are whole, byte for byte: LK_E_CHANGED names the one that is not. out, unless NULL: a
 * line each of what they hold. */
enum lk_code lk_data_check(struct lk_text *out);
