/* A file mapped read-only. A file that shrinks or cannot be read while mapped would kill the program with SIGBUS: the
 * guard turns that into zeros and a flag that lk_mapped_check reports as an error. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct lk_mapped_file {
    char *path;
    const unsigned char *data;
    uint64_t bytes;
    /* identity when opened, to notice a replaced file */
    uint64_t device, inode;
    int64_t mtime_ns;
};

/* Regular files only (LK_E_NOT_REGULAR otherwise); an empty file gives data NULL, bytes 0. */
enum lk_code lk_mapped_open(struct lk_mapped_file **out, const char *path);
void lk_mapped_close(struct lk_mapped_file *file);

/* LK_E_IO when a read of any mapped file failed since the program started, or LK_E_CHANGED when this file's size, inode
 * or time of modification is no longer what it was. Called after weights were used. file may be NULL: only the first
 * check. */
enum lk_code lk_mapped_check(const struct lk_mapped_file *file);
