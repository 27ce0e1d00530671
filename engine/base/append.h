/* A file that only grows, a line at a time: what people decided. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

/* n bytes of whole lines at the end of a file, which is made when it is missing: all of them or none, on the disk when
 * it returns. A last line that a crash cut off is ended first, so that it stays one bad line. LK_E_NOT_REGULAR,
 * LK_E_DISK_FULL, LK_E_IO and the like. */
enum lk_code lk_append_lines(const char *path, const char *lines, size_t n);

/* A file that one process alone may add to until it unlocks it or ends; made when it is missing. LK_E_IO when another
 * has it. `lockless`: the file system has no locks. All zero: none is held. */
struct lk_append_lock {
    const char *path; /* borrowed */
    int fd;
    bool made, lockless;
};
enum lk_code lk_append_lock(struct lk_append_lock *lock, const char *path);
/* A file that the lock made and nothing was written to goes. */
void lk_append_unlock(struct lk_append_lock *lock);

/* How many of a text's bytes are whole lines. */
size_t lk_whole_lines(const char *text, size_t n);
/* Takes away the half of a line that a crash has left at the end of a file: its bytes from n_whole of n on. */
enum lk_code lk_cut_half_line(const char *path, size_t n_whole, size_t n);
