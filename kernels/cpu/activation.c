#include "kernels/cpu/rows/rows.h"

static void activation_chunk(const void *arguments, const int64_t *first, int64_t n) {
    const struct lk_activation *op = arguments;
    float buffer[LK_CHUNK];
    float *y = lk_cpu_target(op->y, first[0], buffer);
    lk_cpu_rows()->act(op->act, n, lk_cpu_view(op->x, first[1], n, buffer), y);
    lk_cpu_put(op->y, first[0], n, y);
}

enum lk_code lk_cpu_activation(struct lk_device *dev, const struct lk_activation *op, void *scratch) {
    (void)scratch;
    lk_cpu_chunks(dev, (const struct lk_tensor *[]){op->y, op->x}, 2, op, activation_chunk);
    return LK_OK;
}
