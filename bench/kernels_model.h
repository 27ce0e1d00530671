/* The calls that bench/kernels_model.c and bench/bench_ops.c look at: ops at the sizes of the real models. */
#pragma once

#include "engine/ops.h"

struct model_case {
    const char *op, *what;
    enum lk_code (*run)(struct lk_device *dev, const int64_t *sizes);
    int64_t sizes[6]; /* what they are is said beside `run` */
};

extern const struct model_case model_cases[];
extern const size_t n_model_cases;

/* The same calls at sizes that a simulated GPU runs in moments. */
extern const struct model_case tiny_cases[];
extern const size_t n_tiny_cases;

/* Whether all tensors get values; otherwise only those whose values kernels branch on. */
extern bool model_fill_all;

/* Called with every tensor of a case before its op. */
extern void (*model_on_tensor)(uint64_t address, uint64_t bytes);
