/* Reading files that come from outside. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

#include "engine/base/status.h"

/* Opens a regular file for reading (LK_E_NOT_REGULAR otherwise). Not blocking, or a FIFO would hang until somebody
 * writes to it. Where nothing has that name, a name that differs only in Unicode's form (NFC, NFD) is taken. */
enum lk_code lk_open_regular(const char *path, int *out_fd, struct stat *st);

/* A path that a file names: absolute, or beside the file. lk_free; NULL: memory is out, and said. */
char *lk_path_beside(const char *file, const char *written);

/* A whole file in memory, NUL-terminated beyond its length; for small files (configs). max_bytes: LK_E_INPUT beyond it.
 */
enum lk_code lk_read_file(const char *path, size_t max_bytes, char **out, size_t *out_bytes);
