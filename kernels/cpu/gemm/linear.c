#include "kernels/cpu/cpu.h"
#include "engine/base/isa.h"
#include "kernels/cpu/gemm/linear_store.h"
#include "kernels/cpu/quantized.h"

void lk_linear_store_portable(const void *context, int64_t m, int64_t n_m, int64_t n, int64_t n_n, const float *c,
                              int64_t ldc) {
    store_linear(context, m, n_m, n, n_n, c, ldc);
}

lk_gemm_store_fn *lk_linear_store(void) {
#if defined(__x86_64__)
    enum lk_isa isa = lk_cpu_isa();
    if (isa >= LK_ISA_AVX512) return lk_linear_store_avx512;
    if (isa >= LK_ISA_AVX2) return lk_linear_store_avx2;
#endif
    return lk_linear_store_portable;
}

/* A quantised weight is turned into bf16 where the product packs its panels. */
static void row_of_quantized(const void *context, int64_t row, int64_t k, int64_t n, void *out) {
    const struct lk_tensor *w = context;
    lk_cpu_dequantize()(w, row * w->shape[1] + k, n, out);
}

static struct lk_gemm product(const struct lk_linear *op) {
    struct lk_gemm g = {.m = op->x->shape[0],
                        .n = op->w->shape[0],
                        .k = op->x->shape[1],
                        .a = {.dtype = op->x->dtype, .data = op->x->data, .ld = op->x->ld},
                        .b = {.dtype = op->w->dtype, .data = op->w->data, .ld = op->w->ld},
                        .store = lk_linear_store(),
                        .store_context = op};
    if (op->low) {
        g.more_k = op->low->shape[1];
        g.more_a = (struct lk_gemm_operand){.dtype = op->low->dtype, .data = op->low->data, .ld = op->low->ld};
        g.more_b = (struct lk_gemm_operand){.dtype = op->up->dtype, .data = op->up->data, .ld = op->up->ld};
    }
    if (lk_tensor_is_quantized(op->w))
        g.b = (struct lk_gemm_operand){.dtype = LK_BF16,
                                       .data = op->w->data,
                                       .row = row_of_quantized,
                                       .row_bytes =
                                           g.k / lk_dtype_block(op->w->dtype) * (int64_t)lk_dtype_size(op->w->dtype),
                                       .context = op->w};
    return g;
}

size_t lk_cpu_linear_scratch(const struct lk_device *dev, const struct lk_linear *op) {
    struct lk_gemm g = product(op);
    return lk_gemm_scratch(&g, dev->n_threads);
}

enum lk_code lk_cpu_linear(struct lk_device *dev, const struct lk_linear *op, void *scratch) {
    struct lk_gemm g = product(op);
    lk_gemm_run(&g, dev->n_threads, scratch);
    return LK_OK;
}
