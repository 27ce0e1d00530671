#include <string.h>

#include "engine/quantized.h"
#include "kernels/cuda/gemm/gemm.h"

enum lk_code lk_cuda_dequantize(struct lk_device *dev, const struct lk_tensor *w, void *out) {
    static const char *const kernels[LK_DTYPE_COUNT] = {
        [LK_F8_E4M3] = "dequantize_f8_e4m3", [LK_F8_E5M2] = "dequantize_f8_e5m2", [LK_NF4] = "dequantize_nf4",
        [LK_Q8] = "dequantize_q8",           [LK_Q8_0] = "dequantize_q8_0",       [LK_Q4_0] = "dequantize_q4_0",
        [LK_Q4_K] = "dequantize_q4_k",       [LK_Q5_K] = "dequantize_q5_k",       [LK_Q6_K] = "dequantize_q6_k"};
    struct lk_cuda_dequantize args = {.out = out,
                                      .data = w->data,
                                      .scales = w->scales.data,
                                      .n = lk_tensor_numel(w),
                                      .block = w->scales.block,
                                      .scales_bf16 = w->scales.dtype == LK_BF16,
                                      .vector = (uintptr_t)w->data % 8 == 0};
    memcpy(args.levels, lk_nf4_levels, sizeof args.levels);
    const int64_t blocks = lk_cuda_div_up(args.n, LK_CUDA_DEQUANTIZE_RUN * LK_CUDA_DEQUANTIZE_THREADS);
    if (blocks > INT32_MAX) return lk_fail(LK_E_INTERNAL, "cuda: a weight of %lld elements", (long long)args.n);
    const struct lk_cuda_grid grid = {.grid = {(unsigned)blocks}, .block = {LK_CUDA_DEQUANTIZE_THREADS}};
    return lk_cuda_launch(dev, "dequantize", kernels[w->dtype], &grid, &args);
}
