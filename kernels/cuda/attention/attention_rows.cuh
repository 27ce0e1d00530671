/* Rows of an attention (arguments.h): what they see and where they lie. */
#pragma once

#include "kernels/cuda/arguments.h"

/* Keys that a row sees: the first so many. */
__device__ __forceinline__ int keys_of_row(const lk_cuda_attention &a, int row) {
    return min(a.n_keys, a.past + row / a.group + 1);
}
/* Where a row starts in q or out. */
__device__ __forceinline__ int64_t place_of_row(const lk_cuda_attention &a, int64_t ld, int kv_head, int row) {
    return row / a.group * ld + (int64_t)(kv_head * a.group + row % a.group) * a.head_dim;
}
