/* Status codes and the error message of the calling thread.
 *
 *     enum lk_code rc = lk_thing(...);
 *     if (rc) return rc;                       // the message is already set
 *     ...
 *     if (n > max) return lk_fail(LK_E_CONFIG_VALUE, "%s: field \"%s\": expected at most %d, got %d", file, key, max,
 * n);
 *
 * A library function that can fail returns an lk_code. It never prints, exits or aborts. The message says what, where
 * (file, field), expected, got, and what to do next; it lives in thread-local storage until the next lk_fail. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Codes are stable and banded: code / 100 is the exit code of the program (lk_exit_code). */
enum lk_code {
    LK_OK = 0,

    LK_E_INTERNAL = 100, /* a bug of ours: a shape that a model asked for does not fit an op, ... */

    LK_E_USAGE = 200, /* a flag or argument */

    LK_E_INPUT = 300, /* bad input that has no code of its own */
    LK_E_NOT_FOUND = 301,
    LK_E_NOT_REGULAR = 302, /* a directory or device where a file was expected */
    LK_E_CHANGED = 303,     /* a file changed between two looks at it */
    LK_E_ESCAPES = 304,     /* a path leads outside its model folder */

    LK_E_ST_TRUNCATED = 310, /* safetensors: the file ends before what it declares */
    LK_E_ST_HEADER_SIZE = 311,
    LK_E_ST_HEADER_START = 312,
    LK_E_ST_JSON = 313,
    LK_E_ST_DUPLICATE = 314,
    LK_E_ST_FIELD = 315, /* a field missing, unknown or of the wrong type */
    LK_E_ST_DTYPE = 316,
    LK_E_ST_SHAPE = 317,
    LK_E_ST_OFFSETS = 318, /* reversed, past the end, or not the size that shape and dtype give */
    LK_E_ST_OVERLAP = 319,
    LK_E_ST_HOLE = 320,
    LK_E_ST_TRAILING = 321,

    LK_E_JSON = 340, /* not JSON, or not the JSON expected */
    LK_E_JSON_DUPLICATE = 341,
    LK_E_JSON_LIMIT = 342,

    LK_E_INDEX = 350,         /* model.safetensors.index.json */
    LK_E_SHARD = 351,         /* a shard missing or not holding what the index says */
    LK_E_BIND = 352,          /* tensors missing, unexpected or of the wrong shape or dtype */
    LK_E_CHECKSUM = 353,      /* verify: a digest differs */
    LK_E_REVISION = 354,      /* HF cache: repo or revision not there */
    LK_E_CONFIG_KEY = 355,    /* unknown or missing key */
    LK_E_CONFIG_TYPE = 356,   /* wrong JSON type */
    LK_E_CONFIG_VALUE = 357,  /* out of range, or a value this program does not implement */
    LK_E_MODEL_UNKNOWN = 358, /* no such model family */
    LK_E_TOKENIZER = 360,     /* tokenizer.json: unknown component or inconsistent content */
    LK_E_PROMPT = 361,        /* not UTF-8, NUL, too long */
    LK_E_IMAGE = 370,         /* not an image, damaged, unsupported kind */
    LK_E_IMAGE_SIZE = 371,    /* too large, too small, aspect ratio */
    LK_E_METADATA = 372,      /* a PNG without, or with damaged, metadata of ours */

    LK_E_NOMEM = 400, /* host memory */
    LK_E_FIT = 401,   /* does not fit the memory budget */

    LK_E_DEVICE = 500,

    LK_E_NONFINITE = 600, /* NaN or Inf met in a job */
    LK_E_PARTIAL = 601,   /* some jobs of several failed, and were named; the others are done */
    LK_E_CONFLICT = 602,  /* two records of the same job differ */

    LK_E_IO = 700,
    LK_E_DISK_FULL = 701,

    LK_E_INTERRUPTED = 800,
};

#define LK_ERROR_TEXT_MAX 4096

/* Leaves the function with the code of a call that failed. */
#define LK_TRY(call)                                                                                                   \
    do {                                                                                                               \
        enum lk_code rc_ = (call);                                                                                     \
        if (rc_) return rc_;                                                                                           \
    } while (0)

/* A copy of an error, to carry it from one thread to another. */
struct lk_error {
    enum lk_code code;
    char text[LK_ERROR_TEXT_MAX];
};

/* Sets the calling thread's message (replacing the old one) and returns code. */
enum lk_code lk_fail(enum lk_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before the calling thread's message and returns code: for callers who know the file or the job. */
enum lk_code lk_fail_prefix(enum lk_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like lk_fail for a failed system call: appends ": " and strerror(errno_value). ENOSPC and EDQUOT give LK_E_DISK_FULL,
 * ENOENT gives LK_E_NOT_FOUND, ENOMEM gives LK_E_NOMEM, all else LK_E_IO. */
enum lk_code lk_fail_errno(int errno_value, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The calling thread's last message, "" if none. */
const char *lk_error_text(void);

void lk_error_get(struct lk_error *out, enum lk_code code);
enum lk_code lk_error_set(const struct lk_error *error);

/* Process exit code of a status: its band; LK_E_INTERRUPTED gives 130. */
int lk_exit_code(enum lk_code code);
