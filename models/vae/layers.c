#include "models/vae/layers.h"

enum lk_code lk_vae_conv(struct lk_device *dev, const struct lk_layer *layer, const struct lk_tensor *x,
                         const struct lk_tensor *y, const struct lk_tensor *residual,
                         const struct lk_tensor *group_sums) {
    int pad = (int)layer->weight.shape[layer->weight.n_dims - 1] / 2;
    struct lk_conv2d op = {
        .y = y, .x = x, .w = &layer->weight, .bias = &layer->bias, .residual = residual, .group_sums = group_sums};
    op.stride = op.upsample = 1;
    op.pad_top = op.pad_left = op.pad_bottom = op.pad_right = pad;
    return lk_conv2d(dev, &op);
}

enum lk_code lk_vae_sample(struct lk_device *dev, const struct lk_layer *layer, const struct lk_tensor *x,
                           const struct lk_tensor *y, bool down, const struct lk_tensor *group_sums) {
    struct lk_conv2d op = {.y = y, .x = x, .w = &layer->weight, .bias = &layer->bias, .group_sums = group_sums};
    op.stride = down ? 2 : 1;
    op.upsample = down ? 1 : 2;
    op.pad_top = op.pad_left = down ? 0 : 1;
    op.pad_bottom = op.pad_right = 1;
    return lk_conv2d(dev, &op);
}
