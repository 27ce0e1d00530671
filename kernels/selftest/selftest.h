/* Every op of a device against the cpu device, on random shapes. For `likeness selftest` and tests/cuda.
 *
 *     for (int op = 0; op < lk_selftest_n_ops; op++) {
 *         struct lk_selftest_result result;
 *         if ((rc = lk_selftest_op(dev, cpu, op, &(struct lk_selftest_options){.n_cases = 200}, &result))) return rc;
 *         printf("%s %d of %d failed\n", lk_selftest_ops[op], result.n_failed, result.n_cases);
 *     }
 *
 * A case is a call with tensors of random shape, contents, alignment and distance of rows, half of them in bf16. It
 * passes when the normalised mean square error against the cpu device is at most 1e-5 (bf16) or 1e-10 (f32), and no bit
 * differs where the op leaves no freedom, nor more than a few values where it leaves the order of sums in double (such
 * a bar sees a rounding left out, which the error cannot); when nothing else than the output was written; and, for ops
 * that work on rows, when some of the rows computed alone have the same bits. */
#pragma once

#include "engine/ops.h"

struct lk_selftest_options {
    int n_cases;
    bool large; /* shapes that fill a GPU; otherwise such as a simulator runs in milliseconds */
    uint64_t seed;
    bool libraries; /* compute (kernels/cuda/runtime/rivals.h): they take more scratch, and their bits go by the number
                       of rows, so that rows alone are not compared */
};

struct lk_selftest_result {
    int n_cases, n_failed;
    double worst_f32, worst_bf16;  /* normalised mean square errors */
    int64_t n_values, n_different; /* of all outputs; whose bits are not those of the cpu device */
    char message[512];             /* of the first failure, "" if none */
};

extern const char *const lk_selftest_ops[];
extern const int lk_selftest_n_ops;

/* Cases 0 .. n_cases - 1 of an op; both devices are prepared here. A failing case is counted, not returned; a code is
 * given back when a device fails or memory is out. */
enum lk_code lk_selftest_op(struct lk_device *dev, struct lk_device *cpu, int op,
                            const struct lk_selftest_options *options, struct lk_selftest_result *out);
