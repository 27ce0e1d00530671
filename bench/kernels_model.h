/* The calls that bench/kernels_model.c looks at: ops at the sizes of the real models. */
#pragma once

#include "engine/ops.h"

struct model_case {
    const char *op, *what;
    enum lk_code (*run)(struct lk_device *dev, const int64_t *sizes);
    int64_t sizes[6]; /* what they are is said beside `run` */
};

extern const struct model_case model_cases[];
extern const size_t n_model_cases;

/* Called with every tensor of a case before its op. */
extern void (*model_on_tensor)(uint64_t address, uint64_t bytes);
