/* Small helpers on path names. Texts that come out are lk_malloc'ed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "engine/base/status.h"

/* The path without symbolic links. LK_E_NOT_FOUND when it does not exist, LK_E_INPUT for a loop of links. `shown` is
 * the name for messages. */
enum lk_code lk_real_path(const char *path, const char *shown, char **out);

/* Where the HF cache repository lies that `real` (a path without links) is a snapshot of: the length of the prefix
 * ".../models--ORG--NAME", 0 when it is none. */
size_t lk_hf_repository(const char *real);

/* As a shell would: a leading ~ or ~USER, $NAME and ${NAME} become what they stand for; what is not known stays as it
 * is written. NULL: out of memory. */
char *lk_expand_path(const char *path);

/* A name that stays below its folder by itself: not empty, not absolute, no "..". Links are another matter. */
bool lk_stays_below(const char *relative);
