/* What ratings.c and participants.c share. */
#pragma once

#include "eval/human/ratings.h"

/* Lists the record under the thread's error message. LK_E_NOMEM. */
enum lk_code lk_ratings_reject(struct lk_ratings_import *import, size_t line, const char *item);
