/* A file that appears whole or not at all: written beside its place under a temporary name, synced, renamed over the
 * old one, and the folder synced.
 *
 *     struct lk_atomic_file *file;
 *     if ((rc = lk_atomic_open(&file, path))) return rc;
 *     if ((rc = lk_atomic_write(file, bytes, n))) { lk_atomic_discard(file); return rc; }
 *     return lk_atomic_commit(file);
 *
 * A program that is killed between open and commit leaves a file ".lk-HOST-PID-N.tmp" in the folder and the old file as
 * it was. The next one that writes into the folder on the same host removes it. */
#pragma once

#include <stddef.h>

#include "engine/base/status.h"

struct lk_atomic_file;

/* Opens a temporary file in path's folder. An existing `path` must be a regular file (LK_E_NOT_REGULAR otherwise); a
 * symbolic link is replaced, not followed. LK_E_NOT_FOUND when there is no such folder, LK_E_IO, LK_E_NOMEM. */
enum lk_code lk_atomic_open(struct lk_atomic_file **out, const char *path);

/* A whole folder in the same way: what lk_atomic_folder names is filled by the caller, then committed or discarded with
 * all that is in it. LK_E_USAGE when there is something at `path`. */
enum lk_code lk_atomic_open_folder(struct lk_atomic_file **out, const char *path);
const char *lk_atomic_folder(const struct lk_atomic_file *file);

/* Appends (buffered). LK_E_DISK_FULL, LK_E_IO; the caller then discards. */
enum lk_code lk_atomic_write(struct lk_atomic_file *file, const void *bytes, size_t n_bytes);

/* Puts the file in its place. Frees `file` in any case; on failure the temporary file is gone and `path` is as it was,
 * unless the message says that only the folder could not be synced. */
enum lk_code lk_atomic_commit(struct lk_atomic_file *file);

/* Removes the temporary file and frees. NULL is allowed. The error message of the thread stays. */
void lk_atomic_discard(struct lk_atomic_file *file);

/* From begin to end, files that this thread commits are only written beside their places; end (LK_OK) syncs their file
 * system once and puts them all in place: at one moment, by a folder with all of them that changes places with theirs,
 * where theirs holds no other files and nobody's working folder is known to lie in it; else one after the other. end
 * (another code) removes them, and returns that code: what was there before stays as it was. Batches do not nest. */
void lk_atomic_batch_begin(void);
enum lk_code lk_atomic_batch_end(enum lk_code rc);

/* All of it in one call. */
enum lk_code lk_atomic_write_file(const char *path, const void *bytes, size_t n_bytes);
