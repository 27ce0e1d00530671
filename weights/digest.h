/* Digests of whole files. */
#pragma once

#include "engine/base/status.h"

enum lk_digest { LK_DIGEST_SHA256, LK_DIGEST_GIT_BLOB }; /* git: SHA-1 of "blob SIZE\0" and the contents */

/* Lower-case hex and NUL into out. */
enum lk_code lk_digest_file(enum lk_digest kind, const char *path, char out[65]);
