#include "kernels/cpu/rows/rows.h"
#include "engine/base/isa.h"

const struct lk_rows *lk_cpu_rows(void) {
#if defined(__x86_64__)
    switch (lk_cpu_isa()) {
    case LK_ISA_PORTABLE:
        return &lk_rows_portable;
    case LK_ISA_AVX2:
        return &lk_rows_avx2;
    case LK_ISA_AVX512:
    case LK_ISA_AVX512_BF16:
    case LK_ISA_AMX:
        return &lk_rows_avx512;
    }
#endif
    return &lk_rows_portable;
}

double lk_cpu_lanes_total(const double lanes[LK_LANES]) {
    double tree[LK_LANES];
    memcpy(tree, lanes, sizeof tree);
    for (int n = LK_LANES / 2; n; n /= 2)
        for (int i = 0; i < n; i++) tree[i] += tree[i + n];
    return tree[0];
}

double lk_cpu_sum_squares(const struct lk_tensor *x, int64_t first, int64_t n, double mean) {
    double lanes[LK_LANES] = {0};
    float buffer[LK_CHUNK];
    for (int64_t i = 0; i < n; i += LK_CHUNK) {
        int64_t m = n - i < LK_CHUNK ? n - i : LK_CHUNK;
        lk_cpu_rows()->sum_squares(m, lk_cpu_view(x, first + i, m, buffer), mean, lanes);
    }
    return lk_cpu_lanes_total(lanes);
}

void lk_cpu_load(const struct lk_tensor *t, int64_t first, int64_t n, float *out) {
    if (t->dtype == LK_BF16)
        lk_cpu_rows()->from_bf16(n, (const uint16_t *)t->data + first, out);
    else
        memcpy(out, (const float *)t->data + first, (size_t)n * sizeof *out);
}

void lk_cpu_store(const struct lk_tensor *t, int64_t first, int64_t n, const float *in) {
    if (t->dtype == LK_BF16)
        lk_cpu_rows()->to_bf16(n, in, (uint16_t *)t->data + first);
    else
        memcpy((float *)t->data + first, in, (size_t)n * sizeof *in);
}

const float *lk_cpu_view(const struct lk_tensor *t, int64_t first, int64_t n, float *buffer) {
    if (t->dtype == LK_F32) return (const float *)t->data + first;
    lk_cpu_load(t, first, n, buffer);
    return buffer;
}

float *lk_cpu_target(const struct lk_tensor *t, int64_t first, float *buffer) {
    return t->dtype == LK_F32 ? (float *)t->data + first : buffer;
}

void lk_cpu_put(const struct lk_tensor *t, int64_t first, int64_t n, const float *target) {
    if (t->dtype == LK_BF16) lk_cpu_store(t, first, n, target);
}

/* Dense tensors of one shape are one long row. */
static bool is_flat(const struct lk_tensor *const *tensors, int n_tensors) {
    for (int i = 0; i < n_tensors; i++)
        if (!lk_tensor_is_dense(tensors[i]) || lk_tensor_row_numel(tensors[i]) != lk_tensor_row_numel(tensors[0]))
            return false;
    return true;
}

void lk_cpu_chunks(struct lk_device *dev, const struct lk_tensor *const *tensors, int n_tensors, const void *op,
                   lk_chunk_fn *body) {
    int64_t rows = tensors[0]->shape[0], width = lk_tensor_row_numel(tensors[0]), ld[LK_CHUNK_TENSORS] = {0};
    if (is_flat(tensors, n_tensors)) {
        width *= rows;
        rows = 1;
    }
    for (int i = 0; i < n_tensors && rows > 1; i++) ld[i] = tensors[i]->ld;
    int64_t per_row = (width + LK_CHUNK - 1) / LK_CHUNK, n_chunks = rows * per_row;
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) if (n_chunks > 16)
    for (int64_t i = 0; i < n_chunks; i++) {
        int64_t row = i / per_row, column = i % per_row * LK_CHUNK, first[LK_CHUNK_TENSORS];
        for (int t = 0; t < n_tensors; t++) first[t] = row * ld[t] + column;
        body(op, first, width - column < LK_CHUNK ? width - column : LK_CHUNK);
    }
}
