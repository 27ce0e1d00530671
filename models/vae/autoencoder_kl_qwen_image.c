/* AutoencoderKLQwenImage: encode and decode. The value of the moment moves between three buffers of the largest size
 * met; what keeps its channel count is updated in place. */
#include "models/vae/autoencoder_kl_qwen_image.h"

#include <math.h>

/* Where the value of the moment lies, and the buffers it may lie in. */
struct walk {
    struct lk_device *dev;
    enum lk_dtype dtype;
    const char *side; /* "encode" or "decode", for traces */
    void *slots[2], *hidden;
    int slot;
    struct lk_tensor x; /* [H, W, C] in slots[slot], at first the caller's */
};

static struct lk_tensor in_other_slot(const struct walk *w, int64_t height, int64_t width, int64_t channels) {
    return LK_TENSOR(w->slots[!w->slot], w->dtype, height, width, channels);
}

static void move_to(struct walk *w, const struct lk_tensor *y) {
    w->x = *y;
    w->slot = !w->slot;
}

/* Size kept: zeros around, as many as half the kernel is wide. */
static enum lk_code conv(struct lk_device *dev, const struct lk_qwen_vae_layer *layer, const struct lk_tensor *x,
                         const struct lk_tensor *y, const struct lk_tensor *residual) {
    int pad = (int)layer->weight.shape[layer->weight.n_dims - 1] / 2;
    struct lk_conv2d op = {.y = y, .x = x, .w = &layer->weight, .bias = &layer->bias, .residual = residual};
    op.stride = op.upsample = 1;
    op.pad_top = op.pad_left = op.pad_bottom = op.pad_right = pad;
    return lk_conv2d(dev, &op);
}

static enum lk_code norm(struct lk_device *dev, const struct lk_tensor *gamma, const struct lk_tensor *x,
                         const struct lk_tensor *y, enum lk_act act) {
    return lk_l2_norm(dev, &(struct lk_l2_norm){.y = y, .x = x, .w = gamma, .act = act});
}

/* A convolution that changes the channel count: into the other slot. */
static enum lk_code conv_step(struct walk *w, const struct lk_qwen_vae_layer *layer) {
    struct lk_tensor y = in_other_slot(w, w->x.shape[0], w->x.shape[1], layer->weight.shape[0]);
    LK_TRY(conv(w->dev, layer, &w->x, &y, NULL));
    move_to(w, &y);
    return LK_OK;
}

/* x + conv2(silu(norm2(conv1(silu(norm1(x)))))). With a shortcut, its value goes to the other slot and the first norm
 * may overwrite x; without one the norm goes to the other slot and the result overwrites x. */
static enum lk_code resnet(struct walk *w, const struct lk_qwen_vae_resnet *r) {
    int64_t height = w->x.shape[0], width = w->x.shape[1];
    int64_t c_in = w->x.shape[2], c_out = r->conv1.weight.shape[0];
    struct lk_tensor h = LK_TENSOR(w->hidden, w->dtype, height, width, c_out), y = w->x, n = w->x;
    struct lk_tensor other = in_other_slot(w, height, width, c_out);
    if (c_in == c_out) {
        n = other;
    } else {
        y = other;
        LK_TRY(conv(w->dev, &r->conv_shortcut, &w->x, &y, NULL));
    }
    LK_TRY(norm(w->dev, &r->norm1, &w->x, &n, LK_ACT_SILU));
    LK_TRY(conv(w->dev, &r->conv1, &n, &h, NULL));
    LK_TRY(norm(w->dev, &r->norm2, &h, &h, LK_ACT_SILU));
    LK_TRY(conv(w->dev, &r->conv2, &h, &y, &y));
    if (c_in != c_out) move_to(w, &y);
    return LK_OK;
}

/* One head as wide as the channels, over all pixels. */
static enum lk_code attention(struct walk *w, const struct lk_qwen_vae_half *half) {
    struct lk_device *dev = w->dev;
    size_t mark = lk_arena_mark(&dev->arena);
    int64_t height = w->x.shape[0], width = w->x.shape[1], c = w->x.shape[2], pixels = height * width;
    struct lk_tensor n = in_other_slot(w, height, width, c), qkv, out = LK_VIEW(&n, pixels, 1, c), parts[3];
    LK_TRY(LK_NEW(&dev->arena, &qkv, w->dtype, height, width, 3 * c));
    LK_TRY(norm(dev, &half->mid_attention.norm, &w->x, &n, LK_ACT_NONE));
    LK_TRY(conv(dev, &half->mid_attention.to_qkv, &n, &qkv, NULL));
    struct lk_tensor rows = LK_VIEW(&qkv, pixels, 3 * c);
    for (int i = 0; i < 3; i++) {
        struct lk_tensor columns = lk_tensor_cols(&rows, i * c, c);
        parts[i] = LK_VIEW(&columns, pixels, 1, c);
    }
    struct lk_attention op = {.out = &out, .q = &parts[0], .k = &parts[1], .v = &parts[2]};
    op.scale = 1.0f / sqrtf((float)c);
    LK_TRY(lk_attention(dev, &op));
    LK_TRY(conv(dev, &half->mid_attention.proj, &n, &w->x, &w->x));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code mid(struct walk *w, const struct lk_qwen_vae_half *half) {
    LK_TRY(resnet(w, &half->mid[0]));
    LK_TRY(attention(w, half));
    LK_TRY(resnet(w, &half->mid[1]));
    return lk_trace(w->dev, &w->x, "vae.%s.mid", w->side);
}

/* Halves the resolution (stride 2, padding on the right and the bottom only) or doubles it (nearest neighbour, then
 * 3x3). */
static enum lk_code sample(struct walk *w, const struct lk_qwen_vae_layer *layer, bool down) {
    int64_t height = down ? w->x.shape[0] / 2 : 2 * w->x.shape[0];
    int64_t width = down ? w->x.shape[1] / 2 : 2 * w->x.shape[1];
    struct lk_tensor y = in_other_slot(w, height, width, layer->weight.shape[0]);
    struct lk_conv2d op = {.y = &y, .x = &w->x, .w = &layer->weight, .bias = &layer->bias};
    op.stride = down ? 2 : 1;
    op.upsample = down ? 1 : 2;
    op.pad_top = op.pad_left = down ? 0 : 1;
    op.pad_bottom = op.pad_right = 1;
    LK_TRY(lk_conv2d(w->dev, &op));
    move_to(w, &y);
    return LK_OK;
}

static enum lk_code levels(struct walk *w, const struct lk_qwen_vae_half *half, int n_levels, bool down) {
    for (int i = 0; i < n_levels; i++) {
        for (int j = 0; j < half->levels[i].n_resnets; j++) LK_TRY(resnet(w, &half->levels[i].resnets[j]));
        if (half->levels[i].has_sampler) LK_TRY(sample(w, &half->levels[i].sampler, down));
        LK_TRY(lk_trace(w->dev, &w->x, "vae.%s.level.%d", w->side, i));
    }
    return LK_OK;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Elements of the largest value between the first convolution and the last, for pixels [height, width]. */
static int64_t largest(const struct lk_qwen_vae *vae, const struct lk_qwen_vae_half *half, int64_t height,
                       int64_t width, bool down) {
    int last = vae->config.n_levels - 1;
    /* At the smallest resolution: what the quantisation convolutions and the middle hold. */
    int64_t most = larger(2 * vae->config.z_dim, half->mid[0].norm1.shape[0]) * (height >> last) * (width >> last);
    for (int i = 0; i <= last; i++) {
        int shrunk = down ? i : last - i;
        int64_t pixels = (height >> shrunk) * (width >> shrunk);
        const struct lk_tensor *first = &half->levels[i].resnets[0].conv1.weight;
        most = larger(most, pixels * larger(first->shape[0], first->shape[1]));
    }
    return most;
}

static enum lk_code start(struct walk *w, struct lk_device *dev, const char *side, const struct lk_tensor *x,
                          int64_t n_most) {
    *w = (struct walk){.dev = dev, .side = side, .dtype = x->dtype, .x = *x};
    size_t bytes = (size_t)n_most * lk_dtype_size(x->dtype);
    for (int i = 0; i < 2; i++) LK_TRY(lk_arena_alloc(&dev->arena, bytes, &w->slots[i]));
    return lk_arena_alloc(&dev->arena, bytes, &w->hidden);
}

enum lk_code lk_qwen_vae_encode(struct lk_device *dev, const struct lk_qwen_vae *vae, const struct lk_tensor *pixels,
                                const struct lk_tensor *mean) {
    const struct lk_qwen_vae_half *half = &vae->encoder;
    size_t mark = lk_arena_mark(&dev->arena);
    struct walk w;
    LK_TRY(start(&w, dev, "encode", pixels, largest(vae, half, pixels->shape[0], pixels->shape[1], true)));
    LK_TRY(conv_step(&w, &half->conv_in));
    LK_TRY(levels(&w, half, vae->config.n_levels, true));
    LK_TRY(mid(&w, half));
    LK_TRY(norm(dev, &half->norm_out, &w.x, &w.x, LK_ACT_SILU));
    LK_TRY(conv_step(&w, &half->conv_out));
    LK_TRY(conv_step(&w, &vae->quant_conv));
    /* Channels are mean, then log-variance: the mode of the posterior is its mean. */
    int64_t n = w.x.shape[0] * w.x.shape[1], c = vae->config.z_dim;
    struct lk_tensor moments = LK_VIEW(&w.x, n, 2 * c), means = lk_tensor_cols(&moments, 0, c);
    struct lk_tensor out = LK_VIEW(mean, n, c);
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &out, .x = &means}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen_vae_decode(struct lk_device *dev, const struct lk_qwen_vae *vae, const struct lk_tensor *latents,
                                const struct lk_tensor *decoded) {
    const struct lk_qwen_vae_half *half = &vae->decoder;
    size_t mark = lk_arena_mark(&dev->arena);
    struct walk w;
    LK_TRY(start(&w, dev, "decode", latents, largest(vae, half, decoded->shape[0], decoded->shape[1], false)));
    LK_TRY(conv_step(&w, &vae->post_quant_conv));
    LK_TRY(conv_step(&w, &half->conv_in));
    LK_TRY(mid(&w, half));
    LK_TRY(levels(&w, half, vae->config.n_levels, false));
    LK_TRY(norm(dev, &half->norm_out, &w.x, &w.x, LK_ACT_SILU));
    LK_TRY(conv(dev, &half->conv_out, &w.x, decoded, NULL));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
