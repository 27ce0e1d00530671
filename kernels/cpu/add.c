#include "kernels/cpu/rows/rows.h"

static void add_chunk(const void *arguments, const int64_t *first, int64_t n) {
    const struct lk_add *op = arguments;
    float a[LK_CHUNK], b[LK_CHUNK];
    float *y = lk_cpu_target(op->y, first[0], a);
    lk_cpu_rows()->add(n, lk_cpu_view(op->a, first[1], n, a), lk_cpu_view(op->b, first[2], n, b), y);
    lk_cpu_put(op->y, first[0], n, y);
}

enum lk_code lk_cpu_add(struct lk_device *dev, const struct lk_add *op, void *scratch) {
    (void)scratch;
    lk_cpu_chunks(dev, (const struct lk_tensor *[]){op->y, op->a, op->b}, 3, op, add_chunk);
    return LK_OK;
}
