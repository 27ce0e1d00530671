#include "models/common/layers.h"

#include <stdio.h>

void lk_bind_layers(struct lk_bind *b, const struct lk_layer_entry *table, size_t n, bool bias, const char *blocks,
                    int i) {
    char prefix[96] = "";
    if (*blocks) snprintf(prefix, sizeof prefix, "%s.%d.", blocks, i);
    for (size_t j = 0; j < n; j++) {
        const struct lk_layer_entry *e = &table[j];
        lk_bind_tensor(b, &e->layer->weight, e->cols ? 2 : 1, (int64_t[]){e->rows, e->cols}, "%s%s.weight", prefix,
                       e->name);
        if (bias) lk_bind_tensor(b, &e->layer->bias, 1, &e->rows, "%s%s.bias", prefix, e->name);
        if (!e->cols) continue;
        char module[256];
        snprintf(module, sizeof module, "%s%s", prefix, e->name);
        lk_bind_adapter(b, module, e->rows, e->cols, &e->layer->down, &e->layer->up);
    }
}

struct lk_layer lk_layer_rows(const struct lk_layer *w, int64_t first, int64_t n) {
    struct lk_layer rows = {.weight = lk_tensor_rows(&w->weight, first, n), .down = w->down};
    if (w->bias.n_dims) rows.bias = lk_tensor_rows(&w->bias, first, n);
    if (w->up.n_dims) rows.up = lk_tensor_rows(&w->up, first, n);
    return rows;
}

/* The rest of `op` is set: with an adapter x goes through its first matrix before. */
static enum lk_code linear(struct lk_device *dev, struct lk_linear op, const struct lk_layer *w) {
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor low;
    op.w = &w->weight;
    op.bias = w->bias.n_dims ? &w->bias : NULL;
    if (w->up.n_dims) {
        LK_TRY(LK_NEW(&dev->arena, &low, op.x->dtype, op.x->shape[0], w->down.shape[0]));
        LK_TRY(lk_linear(dev, &(struct lk_linear){.y = &low, .x = op.x, .w = &w->down}));
        op.low = &low;
        op.up = &w->up;
    }
    LK_TRY(lk_linear(dev, &op));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_project(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *x,
                        const struct lk_layer *w, enum lk_act act) {
    return linear(dev, (struct lk_linear){.y = y, .x = x, .act = act}, w);
}

enum lk_code lk_project_onto(struct lk_device *dev, const struct lk_tensor *residual, const struct lk_tensor *x,
                             const struct lk_layer *w, const struct lk_tensor *gate) {
    return linear(dev, (struct lk_linear){.y = residual, .x = x, .gate = gate, .residual = residual}, w);
}

enum lk_code lk_embed(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *x,
                      const struct lk_embedder *w) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor h;
    LK_TRY(LK_NEW(&dev->arena, &h, x->dtype, y->shape[0], y->shape[1]));
    LK_TRY(lk_project(dev, &h, x, &w->linear_1, LK_ACT_SILU));
    LK_TRY(lk_project(dev, y, &h, &w->linear_2, LK_ACT_NONE));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
