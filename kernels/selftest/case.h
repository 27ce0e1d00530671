/* One case of the selftest: its random stream and its tensors. */
#pragma once

#include "kernels/selftest/selftest.h"

#define SELFTEST_GUARD        64 /* bytes of sentinel before and after a tensor */
#define SELFTEST_MOST_TENSORS 8

/* A tensor as three blocks of [guard, elements with gaps, guard]. */
struct lk_selftest_tensor {
    struct lk_tensor cpu;    /* in `computed` */
    unsigned char *initial;  /* what both devices begin with */
    unsigned char *computed; /* after the cpu device's turn */
    unsigned char *got;      /* after the other's */
    unsigned char *part;     /* after some rows alone */
    unsigned char *device;   /* address of the block in the other's arena */
    size_t bytes, offset;    /* of a block; of the elements in it */
    bool output, rows;       /* written; has the rows that the op works on */
    bool own;                /* written in a format of the device's own: not compared */
};

struct selftest_case {
    uint64_t random;
    bool large;
    bool rows_may_differ;
    bool exact;  /* no bit may differ from the cpu device's */
    bool nearly; /* one in a hundred values may: sums in double, whose order is free */
    enum lk_dtype dtype;
    enum lk_code failed; /* out of memory while tensors were made */
    int n_tensors;
    struct lk_selftest_tensor tensors[SELFTEST_MOST_TENSORS];
    struct lk_selftest_result *result;
};

enum selftest_fill {
    FILL_NONE, /* for outputs */
    FILL_NORMAL,
    FILL_SMALL, /* deviation 0.05 */
    FILL_WIDE,  /* deviation 8, mean 3 */
};

/* Random: an integer in [least, most], a standard normal, a coin. */
int64_t lk_selftest_int(struct selftest_case *c, int64_t least, int64_t most);
double lk_selftest_normal(struct selftest_case *c);
static inline bool selftest_maybe(struct selftest_case *c) { return lk_selftest_int(c, 0, 1); }
/* The dtype of a weight: bf16, or with f32 activations either. */
enum lk_dtype lk_selftest_weight_dtype(struct selftest_case *c);
/* `large` when shapes may be large, else `small`. */
static inline int64_t selftest_most(const struct selftest_case *c, int64_t small, int64_t large) {
    return c->large ? large : small;
}

/* A tensor with random contents, at any multiple of its elements' size, with gaps between its rows if `window`. Lives
 * as long as the case. */
const struct lk_tensor *lk_selftest_tensor(struct selftest_case *c, enum lk_dtype dtype, bool window,
                                           enum selftest_fill fill, int n_dims, const int64_t *shape);
#define TENSOR(c, dtype, window, fill, ...)                                                                            \
    lk_selftest_tensor(c, dtype, window, fill, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),              \
                       (int64_t[]){__VA_ARGS__})
/* The op writes t. */
const struct lk_tensor *lk_selftest_output(struct selftest_case *c, const struct lk_tensor *t);
/* The op may write t in a format of the device's own. */
const struct lk_tensor *lk_selftest_own(struct selftest_case *c, const struct lk_tensor *t);
/* A row of the op's output depends on this row of t, and on other tensors whole. */
const struct lk_tensor *lk_selftest_rows(struct selftest_case *c, const struct lk_tensor *t);
/* Sets element i, gaps not counted, on both devices. */
void lk_selftest_set(struct selftest_case *c, const struct lk_tensor *t, int64_t i, double value);

/* Element i of t with its elements at data. */
double lk_selftest_get(const struct lk_tensor *t, const void *data, int64_t i);

struct lk_selftest_tensor *lk_selftest_find(struct selftest_case *c, const struct lk_tensor *t);
void lk_selftest_case_free(struct selftest_case *c);

/* Fills in the arguments of a case, with tensors that live as long as it. */
#define SELFTEST_OP(name, last) void lk_selftest_##name(struct selftest_case *c, struct lk_##name *op);
LK_OPS(SELFTEST_OP)
#undef SELFTEST_OP
