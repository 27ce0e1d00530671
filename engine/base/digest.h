/* Digests of bytes and of whole files, as lower-case hex and NUL. */
#pragma once

#include <stddef.h>

#include "engine/base/status.h"

void lk_sha256(const void *bytes, size_t n_bytes, char out[65]);

enum lk_digest { LK_DIGEST_SHA256, LK_DIGEST_GIT_BLOB }; /* git: SHA-1 of "blob SIZE\0" and the contents */
enum lk_code lk_digest_file(enum lk_digest kind, const char *path, char out[65]);
