/* What the op tests share: tensors in guarded memory, random contents, an error measure against float64, and a runner
 * that repeats a case at every instruction level, in both dtypes and with 1 to 16 threads.
 *
 * A case draws everything from one random stream, calls the op, adds every element to an error with the oracle's value,
 * and hands the output to oracle_record. The runner repeats the case with other thread counts: the bits must not
 * change. */
#pragma once

#include <math.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/ops.h"
#include "engine/base/isa.h"
#include "tests/common/test.h"

#define ORACLE_GUARD 64 /* bytes of sentinel before and after each tensor */
#define ORACLE_MOST  24 /* tensors in a case */

struct oracle {
    struct lk_device *dev;
    uint64_t random;
    uint64_t hash; /* of all recorded outputs */
    enum lk_dtype dtype;
    int n_tensors;
    struct {
        unsigned char *block;
        struct lk_tensor t;
        size_t bytes; /* with gaps, without guards */
    } tensors[ORACLE_MOST];
};

struct oracle_error {
    double squares, norm;
    int64_t n;
};

enum oracle_fill {
    FILL_NORMAL,
    FILL_OFFSET,  /* mean 50, deviation 1 */
    FILL_EXTREME, /* magnitudes from 1e-30 to 1e15 */
    FILL_SMALL,   /* deviation 1e-3 */
    FILL_NONE,    /* for outputs */
};

int64_t oracle_int(struct oracle *o, int64_t least, int64_t most);

/* A tensor of random values whose rows lie up to 40 elements apart when `window`. Freed with the case. */
struct lk_tensor *oracle_tensor(struct oracle *o, enum lk_dtype dtype, bool window, enum oracle_fill fill, int n_dims,
                                const int64_t *shape);
#define TENSOR(o, dtype, window, fill, ...)                                                                            \
    oracle_tensor(o, dtype, window, fill, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                   \
                  (int64_t[]){__VA_ARGS__})
/* A second tensor with the same contents and distance of rows. */
struct lk_tensor *oracle_clone(struct oracle *o, const struct lk_tensor *t);

/* Element i, gaps not counted, as double; and the other way round, rounded to the dtype. */
double oracle_get(const struct lk_tensor *t, int64_t i);
void oracle_set(const struct lk_tensor *t, int64_t i, double value);
/* r(.) of engine/ops.h on a double: to float, then to bf16 when the dtype is. */
double oracle_round(enum lk_dtype dtype, double value);

static inline double oracle_square(double x) { return x * x; }

/* act(x) in double. */
double oracle_act(enum lk_act act, double x);

void oracle_error_add(struct oracle_error *e, double got, double want);
/* Normalised mean square error at most 1e-10 (f32) or 1e-5 (bf16). */
void oracle_error_check(const struct oracle_error *e, enum lk_dtype dtype);
/* For steps that are emulated one by one: the very value (-0 equals 0; NaN equals NaN). */
void oracle_exact(double got, double want);
/* All elements equal as bits. */
void oracle_same(const struct lk_tensor *a, const struct lk_tensor *b);
/* Adds the elements of an output to the case's hash. */
void oracle_record(struct oracle *o, const struct lk_tensor *y);

typedef void oracle_case_fn(struct oracle *o);
/* At least n_cases at each instruction level, half of them bf16; two of forty with 1 to 16 threads. Guards and gaps
 * between rows are checked after each. */
void oracle_run(oracle_case_fn *body, int n_cases);
