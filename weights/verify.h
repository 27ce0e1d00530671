/* Integrity of files: SHA-256 against the HF cache blob name (an LFS blob is named by its SHA-256) or a manifest in
 * sha256sum's format. */
#pragma once

#include <stdint.h>

#include "engine/base/status.h"

enum lk_verify_result {
    LK_VERIFY_OK,
    LK_VERIFY_DIFFERS,
    LK_VERIFY_NO_DIGEST,
    LK_VERIFY_UNREADABLE,
    LK_VERIFY_SHARED /* whole, but the blob of another weight file too: a link points to the wrong one */
};

struct lk_verify_file {
    char *path; /* relative to the model folder */
    uint64_t bytes;
    char expected[65], got[65]; /* "" when unknown */
    enum lk_verify_result result;
};

struct lk_verify_report {
    struct lk_verify_file *files; /* sorted by path */
    size_t n_files, capacity;
    size_t n_bad; /* differs, unreadable, shared, or a weight file without a digest */
};

/* Hashes every file of the folder that has a known digest, n_threads files at a time. manifest_path NULL: digests from
 * HF blob names (64 hex digits; a git-sha1 blob name of a small file is checked as git blob SHA-1). LK_OK also when
 * files differ: look at the report. LK_E_CHECKSUM when no file has a known digest (say how to make a manifest). */
enum lk_code lk_verify(struct lk_verify_report *out, const char *folder, const char *manifest_path, int n_threads);
void lk_verify_free(struct lk_verify_report *report);
