#include "kernels/cpu/rows/rows.h"

static void copy_chunk(const void *arguments, const int64_t *first, int64_t n) {
    const struct lk_copy *op = arguments;
    float buffer[LK_CHUNK];
    if (op->x->dtype == op->y->dtype) {
        size_t size = lk_dtype_size(op->x->dtype);
        memcpy((char *)op->y->data + (size_t)first[0] * size, (const char *)op->x->data + (size_t)first[1] * size,
               (size_t)n * size);
    } else if (op->y->dtype == LK_F32) {
        lk_cpu_load(op->x, first[1], n, (float *)op->y->data + first[0]);
    } else {
        lk_cpu_store(op->y, first[0], n, lk_cpu_view(op->x, first[1], n, buffer));
    }
}

enum lk_code lk_cpu_copy(struct lk_device *dev, const struct lk_copy *op, void *scratch) {
    (void)scratch;
    lk_cpu_chunks(dev, (const struct lk_tensor *[]){op->y, op->x}, 2, op, copy_chunk);
    return LK_OK;
}
