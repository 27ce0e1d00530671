#include "kernels/cpu/gemm/linear_store.h"

void lk_linear_store_avx2(const void *context, int64_t m, int64_t n_m, int64_t n, int64_t n_n, const float *c,
                          int64_t ldc) {
    store_linear(context, m, n_m, n, n_n, c, ldc);
}
