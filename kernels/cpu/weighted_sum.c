#include "kernels/cpu/rows/rows.h"

static void weighted_sum_chunk(const void *arguments, const int64_t *first, int64_t n) {
    const struct lk_weighted_sum *op = arguments;
    const struct lk_rows *rows = lk_cpu_rows();
    float sum[LK_CHUNK], term[LK_CHUNK];
    rows->scale(n, lk_cpu_view(op->x[0], first[1], n, sum), op->scale[0], sum);
    for (int i = 1; i < LK_SUM_TERMS && op->x[i]; i++) {
        rows->scale(n, lk_cpu_view(op->x[i], first[1 + i], n, term), op->scale[i], term);
        rows->add(n, sum, term, sum);
    }
    if (op->y->dtype == LK_BF16)
        lk_cpu_put(op->y, first[0], n, sum);
    else
        memcpy((float *)op->y->data + first[0], sum, (size_t)n * sizeof *sum);
}

enum lk_code lk_cpu_weighted_sum(struct lk_device *dev, const struct lk_weighted_sum *op, void *scratch) {
    const struct lk_tensor *tensors[1 + LK_SUM_TERMS] = {op->y};
    int n = 1;
    (void)scratch;
    while (n <= LK_SUM_TERMS && op->x[n - 1]) {
        tensors[n] = op->x[n - 1];
        n++;
    }
    lk_cpu_chunks(dev, tensors, n, op, weighted_sum_chunk);
    return LK_OK;
}
