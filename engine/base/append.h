/* A file that only grows, a line at a time: what people decided. */
#pragma once

#include <stddef.h>

#include "engine/base/status.h"

/* n bytes of whole lines at the end of a file, which is made when it is missing: all of them or none, on the disk when
 * it returns. A last line that a crash cut off is ended first, so that it stays one bad line. LK_E_NOT_REGULAR,
 * LK_E_DISK_FULL, LK_E_IO and the like. */
enum lk_code lk_append_lines(const char *path, const char *lines, size_t n);
