/* Small helpers on path names. All results are lk_malloc'ed, NULL when memory is out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/status.h"

/* printf into memory of its own. */
char *lk_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The path without symbolic links. LK_E_NOT_FOUND when it does not exist, LK_E_INPUT for a loop of links. `shown` is
 * the name for messages. */
enum lk_code lk_real_path(const char *path, const char *shown, char **out);

/* Where the HF cache repository lies that `real` (a path without links) is a snapshot of: the length of the prefix
 * ".../models--ORG--NAME", 0 when it is none. */
size_t lk_hf_repository(const char *real);
