/* AutoencoderKLQwenImage: encode and decode. The value of the moment moves between three buffers of the largest size
 * met; what keeps its channel count is updated in place. */
#include "models/vae/autoencoder_kl_qwen_image.h"

#include <math.h>

/* Where the value of the moment lies, and the buffers it may lie in. */
struct walk {
    struct lk_device *dev;
    enum lk_dtype dtype;
    const char *side; /* "encode" or "decode", for traces; NULL: none */
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

static enum lk_code norm(struct lk_device *dev, const struct lk_tensor *gamma, const struct lk_tensor *x,
                         const struct lk_tensor *y, enum lk_act act) {
    return lk_l2_norm(dev, &(struct lk_l2_norm){.y = y, .x = x, .w = gamma, .act = act});
}

/* A convolution that changes the channel count: into the other slot. */
static enum lk_code conv_step(struct walk *w, const struct lk_layer *layer) {
    struct lk_tensor y = in_other_slot(w, w->x.shape[0], w->x.shape[1], layer->weight.shape[0]);
    LK_TRY(lk_vae_conv(w->dev, layer, &w->x, &y, NULL, NULL));
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
        LK_TRY(lk_vae_conv(w->dev, &r->conv_shortcut, &w->x, &y, NULL, NULL));
    }
    LK_TRY(norm(w->dev, &r->norm1, &w->x, &n, LK_ACT_SILU));
    LK_TRY(lk_vae_conv(w->dev, &r->conv1, &n, &h, NULL, NULL));
    LK_TRY(norm(w->dev, &r->norm2, &h, &h, LK_ACT_SILU));
    LK_TRY(lk_vae_conv(w->dev, &r->conv2, &h, &y, &y, NULL));
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
    LK_TRY(lk_vae_conv(dev, &half->mid_attention.to_qkv, &n, &qkv, NULL, NULL));
    struct lk_tensor rows = LK_VIEW(&qkv, pixels, 3 * c);
    for (int i = 0; i < 3; i++) {
        struct lk_tensor columns = lk_tensor_cols(&rows, i * c, c);
        parts[i] = LK_VIEW(&columns, pixels, 1, c);
    }
    struct lk_attention op = {.out = &out, .q = &parts[0], .k = &parts[1], .v = &parts[2]};
    op.scale = 1.0f / sqrtf((float)c);
    LK_TRY(lk_attention(dev, &op));
    LK_TRY(lk_vae_conv(dev, &half->mid_attention.proj, &n, &w->x, &w->x, NULL));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code mid(struct walk *w, const struct lk_qwen_vae_half *half) {
    LK_TRY(resnet(w, &half->mid[0]));
    LK_TRY(attention(w, half));
    LK_TRY(resnet(w, &half->mid[1]));
    return lk_trace(w->dev, &w->x, "vae.%s.mid", w->side);
}

static enum lk_code sample(struct walk *w, const struct lk_layer *layer, bool down) {
    int64_t height = down ? w->x.shape[0] / 2 : 2 * w->x.shape[0];
    int64_t width = down ? w->x.shape[1] / 2 : 2 * w->x.shape[1];
    struct lk_tensor y = in_other_slot(w, height, width, layer->weight.shape[0]);
    LK_TRY(lk_vae_sample(w->dev, layer, &w->x, &y, down, NULL));
    move_to(w, &y);
    return LK_OK;
}

static enum lk_code resnets(struct walk *w, const struct lk_qwen_vae_half *half, int level) {
    for (int j = 0; j < half->levels[level].n_resnets; j++) LK_TRY(resnet(w, &half->levels[level].resnets[j]));
    return LK_OK;
}

/* The end of a level: its sampler if it has one. */
static enum lk_code finish_level(struct walk *w, const struct lk_qwen_vae_half *half, int level, bool down) {
    if (half->levels[level].has_sampler) LK_TRY(sample(w, &half->levels[level].sampler, down));
    return w->side ? lk_trace(w->dev, &w->x, "vae.%s.level.%d", w->side, level) : LK_OK;
}

/* Levels [from, to). */
static enum lk_code levels(struct walk *w, const struct lk_qwen_vae_half *half, int from, int to, bool down) {
    for (int i = from; i < to; i++) {
        LK_TRY(resnets(w, half, i));
        LK_TRY(finish_level(w, half, i, down));
    }
    return LK_OK;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Elements of the largest value in levels [from, to), whose first one has so many pixels. */
static int64_t largest(const struct lk_qwen_vae_half *half, int from, int to, int64_t pixels, bool down) {
    int64_t most = 0;
    for (int i = from; i < to; i++) {
        const struct lk_tensor *first = &half->levels[i].resnets[0].conv1.weight;
        most = larger(most, pixels * larger(first->shape[0], first->shape[1]));
        pixels = down ? pixels / 4 : pixels * 4;
    }
    return most;
}

/* Elements of the largest value of the middle and of the quantisation convolutions. */
static int64_t largest_of_mid(const struct lk_qwen_vae *vae, const struct lk_qwen_vae_half *half, int64_t pixels) {
    return pixels * larger(2 * vae->config.z_dim, half->mid[0].norm1.shape[0]);
}

static enum lk_code start(struct walk *w, struct lk_device *dev, const char *side, const struct lk_tensor *x,
                          int64_t n_most) {
    *w = (struct walk){.dev = dev, .side = side, .dtype = x->dtype, .x = *x};
    size_t bytes = (size_t)n_most * lk_dtype_size(x->dtype);
    for (int i = 0; i < 2; i++) LK_TRY(lk_arena_alloc(&dev->arena, bytes, &w->slots[i]));
    return lk_arena_alloc(&dev->arena, bytes, &w->hidden);
}

/* Tiling. Outside the middle a pixel sees its neighbours through 3x3 convolutions only, and norms look at one pixel: a
 * band of rows that is computed with as many rows more on either side as the convolutions reach has the bits of the
 * whole. What is wrong at the band's edges, where zeros stand for neighbours, lies in those rows and is left out. */
struct band {
    int64_t first, n;    /* rows of the result */
    int64_t top, bottom; /* rows [top, bottom) of the input that they are made from */
};

/* The part of the encoder that is tiled: conv_in and the first levels. */
static int tiled_levels(const struct lk_qwen_vae *vae) { return vae->config.n_levels > 2 ? 2 : 1; }

static struct band encoder_band(const struct lk_qwen_vae *vae, int64_t height, int64_t first, int64_t n) {
    int64_t above = 0, below = 0, scale = (int64_t)1 << tiled_levels(vae);
    for (int i = tiled_levels(vae) - 1; i >= 0; i--) {
        int64_t reach = 2 * vae->encoder.levels[i].n_resnets;
        above = 2 * above + reach;
        below = 2 * below + 1 + reach; /* the sampler pads below only */
    }
    above = (above + 1 + scale - 1) / scale * scale;
    below = (below + 1 + scale - 1) / scale * scale;
    struct band b = {first, n, first * scale - above, (first + n) * scale + below};
    if (b.top < 0) b.top = 0;
    if (b.bottom > height) b.bottom = height;
    return b;
}

static enum lk_code encode_first_levels(struct walk *w, const struct lk_qwen_vae *vae) {
    LK_TRY(conv_step(w, &vae->encoder.conv_in));
    return levels(w, &vae->encoder, 0, tiled_levels(vae), true);
}

/* x [H / scale, W / scale, C] is what the first levels make of the pixels. */
static enum lk_code encode_bands(struct lk_device *dev, const struct lk_qwen_vae *vae, const struct lk_tensor *pixels,
                                 const struct lk_tensor *x, int64_t tile_rows) {
    int64_t scale = (int64_t)1 << tiled_levels(vae), step = larger(tile_rows / scale, 1), n_rows = x->shape[0];
    for (int64_t first = 0; first < n_rows; first += step) {
        size_t mark = lk_arena_mark(&dev->arena);
        struct band b = encoder_band(vae, pixels->shape[0], first, first + step > n_rows ? n_rows - first : step);
        struct lk_tensor seen = lk_tensor_rows(pixels, b.top, b.bottom - b.top), to = lk_tensor_rows(x, b.first, b.n);
        struct walk part;
        LK_TRY(start(&part, dev, NULL, &seen,
                     largest(&vae->encoder, 0, tiled_levels(vae), seen.shape[0] * seen.shape[1], true)));
        LK_TRY(encode_first_levels(&part, vae));
        struct lk_tensor from = lk_tensor_rows(&part.x, b.first - b.top / scale, b.n);
        LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &to, .x = &from}));
        lk_arena_release(&dev->arena, mark);
    }
    return LK_OK;
}

/* Everything before the middle; w gets its slots. */
static enum lk_code encode_levels(struct walk *w, struct lk_device *dev, const struct lk_qwen_vae *vae,
                                  const struct lk_tensor *pixels, int64_t tile_rows) {
    const struct lk_qwen_vae_half *half = &vae->encoder;
    int n = tiled_levels(vae), last = vae->config.n_levels - 1;
    int64_t height = pixels->shape[0], width = pixels->shape[1];
    int64_t most = larger(largest_of_mid(vae, half, (height >> last) * (width >> last)),
                          largest(half, n, last + 1, (height >> n) * (width >> n), true));
    if (!tile_rows) {
        LK_TRY(start(w, dev, "encode", pixels, larger(most, largest(half, 0, n, height * width, true))));
        LK_TRY(encode_first_levels(w, vae));
    } else {
        LK_TRY(start(w, dev, "encode", pixels, most));
        w->x = LK_TENSOR(w->slots[0], w->dtype, height >> n, width >> n, half->levels[n - 1].sampler.weight.shape[0]);
        LK_TRY(encode_bands(dev, vae, pixels, &w->x, tile_rows));
    }
    return levels(w, half, n, last + 1, true);
}

enum lk_code lk_qwen_vae_encode(struct lk_device *dev, const struct lk_qwen_vae *vae, const struct lk_tensor *pixels,
                                const struct lk_tensor *mean, int64_t tile_rows) {
    const struct lk_qwen_vae_half *half = &vae->encoder;
    size_t mark = lk_arena_mark(&dev->arena);
    struct walk w;
    LK_TRY(encode_levels(&w, dev, vae, pixels, tile_rows));
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

/* The part of the decoder that is tiled: from the sampler that ends this level. */
static int tiled_from(const struct lk_qwen_vae *vae) { return vae->config.n_levels > 2 ? vae->config.n_levels - 3 : 0; }

static struct band decoder_band(const struct lk_qwen_vae *vae, int64_t height, int64_t first, int64_t n) {
    int64_t reach = 1; /* conv_out */
    for (int i = vae->config.n_levels - 1; i > tiled_from(vae); i--)
        reach = (reach + 2 * vae->decoder.levels[i].n_resnets + 1 + 1) / 2; /* and the sampler in front of the level */
    struct band b = {first, n, first - reach, first + n + reach};
    if (b.top < 0) b.top = 0;
    if (b.bottom > height) b.bottom = height;
    return b;
}

static enum lk_code decode_last_levels(struct walk *w, const struct lk_qwen_vae *vae) {
    const struct lk_qwen_vae_half *half = &vae->decoder;
    LK_TRY(finish_level(w, half, tiled_from(vae), false));
    LK_TRY(levels(w, half, tiled_from(vae) + 1, vae->config.n_levels, false));
    return norm(w->dev, &half->norm_out, &w->x, &w->x, LK_ACT_SILU);
}

static enum lk_code decode_band(struct lk_device *dev, const struct lk_qwen_vae *vae, const struct lk_tensor *x,
                                const struct band *b, const struct lk_tensor *decoded) {
    size_t mark = lk_arena_mark(&dev->arena);
    int from = tiled_from(vae) + 1, n_levels = vae->config.n_levels;
    int64_t scale = (int64_t)1 << (n_levels - from), n_rows = b->n * scale;
    struct lk_tensor seen = lk_tensor_rows(x, b->top, b->bottom - b->top);
    struct lk_tensor to = lk_tensor_rows(decoded, b->first * scale, n_rows);
    struct walk part;
    LK_TRY(start(&part, dev, NULL, &seen,
                 largest(&vae->decoder, from, n_levels, 4 * seen.shape[0] * seen.shape[1], false)));
    LK_TRY(decode_last_levels(&part, vae));
    /* One row more on either side for the last convolution, but for the picture's own edges. */
    int64_t first = (b->first - b->top) * scale;
    int above = b->first > 0, below = b->first + b->n < x->shape[0];
    struct lk_tensor rows = lk_tensor_rows(&part.x, first - above, n_rows + above + below);
    const struct lk_layer *last = &vae->decoder.conv_out;
    struct lk_conv2d op = {.y = &to, .x = &rows, .w = &last->weight, .bias = &last->bias, .stride = 1, .upsample = 1};
    op.pad_left = op.pad_right = 1;
    op.pad_top = !above;
    op.pad_bottom = !below;
    LK_TRY(lk_conv2d(dev, &op));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen_vae_decode(struct lk_device *dev, const struct lk_qwen_vae *vae, const struct lk_tensor *latents,
                                const struct lk_tensor *decoded, int64_t tile_rows) {
    const struct lk_qwen_vae_half *half = &vae->decoder;
    size_t mark = lk_arena_mark(&dev->arena);
    int n = tiled_from(vae) + 1;
    int64_t pixels = latents->shape[0] * latents->shape[1], scale = (int64_t)1 << (vae->config.n_levels - n);
    int64_t step = tile_rows ? larger(tile_rows / scale, 1) : 0;
    struct walk w;
    LK_TRY(start(
        &w, dev, "decode", latents,
        larger(largest_of_mid(vae, half, pixels), largest(half, 0, step ? n : vae->config.n_levels, pixels, false))));
    LK_TRY(conv_step(&w, &vae->post_quant_conv));
    LK_TRY(conv_step(&w, &half->conv_in));
    LK_TRY(mid(&w, half));
    LK_TRY(levels(&w, half, 0, n - 1, false));
    LK_TRY(resnets(&w, half, n - 1));
    if (!step) {
        LK_TRY(decode_last_levels(&w, vae));
        LK_TRY(lk_vae_conv(dev, &half->conv_out, &w.x, decoded, NULL, NULL));
    }
    for (int64_t first = 0; step && first < w.x.shape[0]; first += step) {
        int64_t rest = w.x.shape[0] - first;
        struct band b = decoder_band(vae, w.x.shape[0], first, rest < step ? rest : step);
        LK_TRY(decode_band(dev, vae, &w.x, &b, decoded));
    }
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
