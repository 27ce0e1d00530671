#include "kernels/cpu/rows/rows.h"

static void euler_step_chunk(const void *arguments, const int64_t *first, int64_t n) {
    const struct lk_euler_step *op = arguments;
    const struct lk_rows *rows = lk_cpu_rows();
    float step[LK_CHUNK], x[LK_CHUNK];
    rows->scale(n, lk_cpu_view(op->v, first[1], n, step), lk_cpu_round(op->x->dtype, op->dt), step);
    if (op->x->dtype == LK_BF16) rows->round(n, step);
    float *y = lk_cpu_target(op->x, first[0], x);
    rows->add(n, lk_cpu_view(op->x, first[0], n, x), step, y);
    lk_cpu_put(op->x, first[0], n, y);
}

enum lk_code lk_cpu_euler_step(struct lk_device *dev, const struct lk_euler_step *op, void *scratch) {
    (void)scratch;
    lk_cpu_chunks(dev, (const struct lk_tensor *[]){op->x, op->v}, 2, op, euler_step_chunk);
    return LK_OK;
}
