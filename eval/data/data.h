/* The study's data files, byte for byte, as part of the program (eval/data/NAME.json and eval/report/NAME.css, NAME.js,
 * taken in by the build). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct lk_data_file {
    const char *name; /* "rubric" */
    const char *text; /* JSON, NUL-terminated beyond n_bytes */
    size_t n_bytes;
};

/* False when there is no file of that name. */
bool lk_data_find(const char *name, struct lk_data_file *out);
