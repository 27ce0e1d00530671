/* AutoencoderKL: encode and decode. A value moves between two buffers ("slots") of the largest size met; what keeps its
 * channel count is updated in place. Each convolution before a group norm leaves the sums of what it writes. */
#include "models/vae/autoencoder_kl.h"

#include <math.h>

#define NORM_EPS 1e-6f

/* Where the value of the moment lies, and the two buffers it may lie in. */
struct walk {
    struct lk_device *dev;
    const struct lk_vae_config *config;
    enum lk_dtype dtype;
    void *slots[2];
    int slot;
    struct lk_tensor x; /* [H, W, C] in slots[slot] */
    void *sums;         /* of what the last convolution before a norm wrote (lk_group_sums) */
};

static struct lk_tensor in_other_slot(const struct walk *w, int64_t height, int64_t width, int64_t channels) {
    return LK_TENSOR(w->slots[!w->slot], w->dtype, height, width, channels);
}

static void move_to(struct walk *w, const struct lk_tensor *y) {
    w->x = *y;
    w->slot = !w->slot;
}

static struct lk_tensor sums_of(const struct walk *w, const struct lk_tensor *picture) {
    return lk_group_sums(w->sums, w->config->norm_num_groups, picture->shape[0] * picture->shape[1]);
}

/* y = conv(x) + residual (or NULL), which a norm reads next. */
static enum lk_code conv_to_norm(const struct walk *w, const struct lk_layer *layer, const struct lk_tensor *x,
                                 const struct lk_tensor *y, const struct lk_tensor *residual) {
    const struct lk_tensor sums = sums_of(w, y);
    return lk_vae_conv(w->dev, layer, x, y, residual, &sums);
}

/* x was written by conv_to_norm or sample, and is the last that was. */
static enum lk_code norm(const struct walk *w, const struct lk_layer *layer, const struct lk_tensor *x,
                         const struct lk_tensor *y, enum lk_act act) {
    const struct lk_tensor sums = sums_of(w, x);
    struct lk_group_norm op = {.y = y, .x = x, .w = &layer->weight, .b = &layer->bias, .eps = NORM_EPS, .act = act};
    op.sums = &sums;
    op.n_groups = (int)w->config->norm_num_groups;
    return lk_group_norm(w->dev, &op);
}

/* A convolution that changes the channel count: into the other slot. */
static enum lk_code conv_step(struct walk *w, const struct lk_layer *layer, bool to_norm) {
    struct lk_tensor y = in_other_slot(w, w->x.shape[0], w->x.shape[1], layer->weight.shape[0]);
    const struct lk_tensor sums = sums_of(w, &y);
    LK_TRY(lk_vae_conv(w->dev, layer, &w->x, &y, NULL, to_norm ? &sums : NULL));
    move_to(w, &y);
    return LK_OK;
}

/* x + conv2(silu(norm2(conv1(silu(norm1(x)))))). With a shortcut the first norm may overwrite x, since the shortcut's
 * value is already in the other slot; without one the result overwrites x. */
static enum lk_code resnet(struct walk *w, const struct lk_vae_resnet *r) {
    struct lk_arena *arena = &w->dev->arena;
    size_t mark = lk_arena_mark(arena);
    int64_t height = w->x.shape[0], width = w->x.shape[1];
    int64_t c_in = w->x.shape[2], c_out = r->conv1.weight.shape[0];
    struct lk_tensor y = w->x, n = w->x, h;
    if (c_in != c_out) {
        y = in_other_slot(w, height, width, c_out);
        LK_TRY(lk_vae_conv(w->dev, &r->conv_shortcut, &w->x, &y, NULL, NULL));
    } else {
        LK_TRY(LK_NEW(arena, &n, w->dtype, height, width, c_in));
    }
    LK_TRY(LK_NEW(arena, &h, w->dtype, height, width, c_out));
    LK_TRY(norm(w, &r->norm1, &w->x, &n, LK_ACT_SILU));
    LK_TRY(conv_to_norm(w, &r->conv1, &n, &h, NULL));
    LK_TRY(norm(w, &r->norm2, &h, &h, LK_ACT_SILU));
    LK_TRY(conv_to_norm(w, &r->conv2, &h, &y, &y));
    if (c_in != c_out) move_to(w, &y);
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* q, k and v: their input is a transposed view in the reference, for which torch adds the bias to the rounded product.
 */
static enum lk_code project(struct lk_device *dev, const struct lk_layer *layer, const struct lk_tensor *x,
                            const struct lk_tensor *y) {
    struct lk_linear op = {.y = y, .x = x, .w = &layer->weight, .bias = &layer->bias, .round_before_bias = true};
    return lk_linear(dev, &op);
}

/* One head as wide as the channels, over all pixels. to_out is a convolution, since a norm reads it. */
static enum lk_code attention(struct walk *w, const struct lk_vae_attention *a) {
    struct lk_device *dev = w->dev;
    size_t mark = lk_arena_mark(&dev->arena);
    int64_t pixels = w->x.shape[0] * w->x.shape[1], c = w->x.shape[2];
    struct lk_tensor n, q, k, v;
    LK_TRY(LK_NEW(&dev->arena, &n, w->dtype, w->x.shape[0], w->x.shape[1], c));
    LK_TRY(LK_NEW(&dev->arena, &q, w->dtype, pixels, 1, c));
    LK_TRY(LK_NEW(&dev->arena, &k, w->dtype, pixels, 1, c));
    LK_TRY(LK_NEW(&dev->arena, &v, w->dtype, pixels, 1, c));
    LK_TRY(norm(w, &a->group_norm, &w->x, &n, LK_ACT_NONE));
    struct lk_tensor n2 = LK_VIEW(&n, pixels, c), q2 = LK_VIEW(&q, pixels, c), k2 = LK_VIEW(&k, pixels, c);
    struct lk_tensor v2 = LK_VIEW(&v, pixels, c), out = LK_VIEW(&n, pixels, 1, c);
    LK_TRY(project(dev, &a->to_q, &n2, &q2));
    LK_TRY(project(dev, &a->to_k, &n2, &k2));
    LK_TRY(project(dev, &a->to_v, &n2, &v2));
    struct lk_attention op = {.out = &out, .q = &q, .k = &k, .v = &v, .scale = 1.0f / sqrtf((float)c)};
    LK_TRY(lk_attention(dev, &op));
    const struct lk_layer to_out = {.weight = LK_VIEW(&a->to_out.weight, c, c, 1, 1), .bias = a->to_out.bias};
    LK_TRY(conv_to_norm(w, &to_out, &n, &w->x, &w->x));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code mid(struct walk *w, const struct lk_vae_half *half) {
    LK_TRY(resnet(w, &half->mid[0]));
    if (w->config->mid_block_add_attention) LK_TRY(attention(w, &half->mid_attention));
    return resnet(w, &half->mid[1]);
}

static enum lk_code sample(struct walk *w, const struct lk_layer *layer, bool down) {
    int64_t height = down ? w->x.shape[0] / 2 : 2 * w->x.shape[0];
    int64_t width = down ? w->x.shape[1] / 2 : 2 * w->x.shape[1];
    struct lk_tensor y = in_other_slot(w, height, width, w->x.shape[2]), sums = sums_of(w, &y);
    LK_TRY(lk_vae_sample(w->dev, layer, &w->x, &y, down, &sums));
    move_to(w, &y);
    return LK_OK;
}

static enum lk_code levels(struct walk *w, const struct lk_vae_half *half, bool down) {
    for (int i = 0; i < w->config->n_levels; i++) {
        for (int j = 0; j < half->levels[i].n_resnets; j++) LK_TRY(resnet(w, &half->levels[i].resnets[j]));
        if (half->levels[i].has_sampler) LK_TRY(sample(w, &half->levels[i].sampler, down));
    }
    return LK_OK;
}

/* Two slots that hold every value between conv_in and conv_out, for pixels [height, width], and their sums. */
static enum lk_code start(struct walk *w, struct lk_device *dev, const struct lk_vae *vae, enum lk_dtype dtype,
                          int64_t height, int64_t width) {
    const struct lk_vae_config *c = &vae->config;
    *w = (struct walk){.dev = dev, .config = c, .dtype = dtype};
    int64_t most = 0;
    for (int i = 0; i < c->n_levels; i++) {
        /* The decoder meets a level's pixels first with the channels of the level below. */
        int64_t channels = c->block_out_channels[i];
        if (i + 1 < c->n_levels && c->block_out_channels[i + 1] > channels) channels = c->block_out_channels[i + 1];
        if (i + 1 == c->n_levels && 2 * c->latent_channels > channels) channels = 2 * c->latent_channels;
        int64_t n = (height >> i) * (width >> i) * channels;
        if (n > most) most = n;
    }
    for (int i = 0; i < 2; i++) LK_TRY(lk_arena_alloc(&dev->arena, (size_t)most * lk_dtype_size(dtype), &w->slots[i]));
    const struct lk_tensor sums = lk_group_sums(NULL, c->norm_num_groups, height * width);
    return lk_arena_alloc(&dev->arena, lk_tensor_bytes(&sums), &w->sums);
}

/* `out` [H/f, W/f, C or 2 C] gets the first channels of the moments: mean, then log-variance. */
static enum lk_code encode(struct lk_device *dev, const struct lk_vae *vae, const struct lk_tensor *pixels,
                           const struct lk_tensor *out) {
    const struct lk_vae_half *half = &vae->encoder;
    size_t mark = lk_arena_mark(&dev->arena);
    struct walk w;
    LK_TRY(start(&w, dev, vae, pixels->dtype, pixels->shape[0], pixels->shape[1]));
    w.x = *pixels;
    LK_TRY(conv_step(&w, &half->conv_in, true));
    LK_TRY(levels(&w, half, true));
    LK_TRY(mid(&w, half));
    LK_TRY(norm(&w, &half->conv_norm_out, &w.x, &w.x, LK_ACT_SILU));
    LK_TRY(conv_step(&w, &half->conv_out, false));
    if (vae->config.use_quant_conv) LK_TRY(conv_step(&w, &vae->quant_conv, false));
    int64_t n = w.x.shape[0] * w.x.shape[1], c = out->shape[2];
    struct lk_tensor moments = LK_VIEW(&w.x, n, w.x.shape[2]), wanted = lk_tensor_cols(&moments, 0, c);
    struct lk_tensor rows = LK_VIEW(out, n, c);
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &rows, .x = &wanted}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_vae_encode_moments(struct lk_device *dev, const struct lk_vae *vae, const struct lk_tensor *pixels,
                                   const struct lk_tensor *moments) {
    return encode(dev, vae, pixels, moments);
}

/* The mode of the posterior is its mean. */
enum lk_code lk_vae_encode(struct lk_device *dev, const struct lk_vae *vae, const struct lk_tensor *pixels,
                           const struct lk_tensor *mean) {
    return encode(dev, vae, pixels, mean);
}

enum lk_code lk_vae_decode(struct lk_device *dev, const struct lk_vae *vae, const struct lk_tensor *latents,
                           const struct lk_tensor *decoded) {
    const struct lk_vae_half *half = &vae->decoder;
    size_t mark = lk_arena_mark(&dev->arena);
    struct walk w;
    LK_TRY(start(&w, dev, vae, latents->dtype, decoded->shape[0], decoded->shape[1]));
    w.x = *latents;
    if (vae->config.use_post_quant_conv) LK_TRY(conv_step(&w, &vae->post_quant_conv, false));
    LK_TRY(conv_step(&w, &half->conv_in, true));
    LK_TRY(mid(&w, half));
    LK_TRY(levels(&w, half, false));
    LK_TRY(norm(&w, &half->conv_norm_out, &w.x, &w.x, LK_ACT_SILU));
    LK_TRY(lk_vae_conv(dev, &half->conv_out, &w.x, decoded, NULL, NULL));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
