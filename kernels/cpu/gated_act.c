#include "kernels/cpu/rows/rows.h"

static void gated_act_chunk(const void *arguments, const int64_t *first, int64_t n) {
    const struct lk_gated_act *op = arguments;
    const struct lk_rows *rows = lk_cpu_rows();
    float gate[LK_CHUNK], value[LK_CHUNK];
    const int64_t second = first[1] + op->y->shape[1];
    rows->act(op->act, n, lk_cpu_view(op->x, op->gate_last ? second : first[1], n, gate), gate);
    if (op->x->dtype == LK_BF16) rows->round(n, gate);
    float *y = lk_cpu_target(op->y, first[0], value);
    rows->mul(n, gate, lk_cpu_view(op->x, op->gate_last ? first[1] : second, n, value), y);
    lk_cpu_put(op->y, first[0], n, y);
}

enum lk_code lk_cpu_gated_act(struct lk_device *dev, const struct lk_gated_act *op, void *scratch) {
    (void)scratch;
    lk_cpu_chunks(dev, (const struct lk_tensor *[]){op->y, op->x}, 2, op, gated_act_chunk);
    return LK_OK;
}
