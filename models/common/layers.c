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
    }
}

static const struct lk_tensor *bias_of(const struct lk_layer *w) { return w->bias.n_dims ? &w->bias : NULL; }

enum lk_code lk_project(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *x,
                        const struct lk_layer *w, enum lk_act act) {
    return lk_linear(dev, &(struct lk_linear){.y = y, .x = x, .w = &w->weight, .bias = bias_of(w), .act = act});
}

enum lk_code lk_project_onto(struct lk_device *dev, const struct lk_tensor *residual, const struct lk_tensor *x,
                             const struct lk_layer *w, const struct lk_tensor *gate) {
    struct lk_linear op = {.y = residual, .x = x, .w = &w->weight, .bias = bias_of(w)};
    op.gate = gate;
    op.residual = residual;
    return lk_linear(dev, &op);
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
