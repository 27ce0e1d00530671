#include "models/cascade/paella.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"

#define EPS               1e-6f
#define TAPS              9
#define NAME(buffer, ...) (snprintf(buffer, sizeof buffer, __VA_ARGS__), buffer)

enum lk_code lk_paella_config_read(struct lk_paella_config *out, struct lk_config *json) {
    struct lk_paella_config c = {0};
    int64_t blocks = 12;
    lk_config_expect_string(json, "_class_name", "PaellaVQModel");
    lk_config_ignore(json, "_diffusers_version");
    lk_config_ignore(json, "num_vq_embeddings"); /* decoding does not quantise */
    lk_config_expect_int(json, "in_channels", 3);
    lk_config_expect_int(json, "up_down_scale_factor", 2);
    lk_config_expect_int(json, "levels", 2);
    lk_config_int_or(json, "out_channels", &c.out_channels, 3, 3, 3);
    lk_config_int_or(json, "bottleneck_blocks", &blocks, 12, 1, LK_PAELLA_MAX_BLOCKS);
    lk_config_int_or(json, "embed_dim", &c.embed_dim, 384, 2, 1 << 14);
    lk_config_int_or(json, "latent_channels", &c.latent_channels, 4, 1, 1 << 10);
    lk_config_number_or(json, "scale_factor", &c.scale_factor, 0.3764, 1e-6, 1e6);
    c.n_bottleneck = (int)blocks;
    if (c.embed_dim % 2)
        lk_config_problem(json, "embed_dim", LK_E_CONFIG_VALUE, "expected an even number, got %lld",
                          (long long)c.embed_dim);
    *out = c;
    return lk_config_close(json);
}

static int64_t width_of(const struct lk_paella *m, int i) {
    return i < m->config.n_bottleneck ? m->config.embed_dim : m->config.embed_dim / 2;
}

static void bind_conv(struct lk_bind *b, struct lk_layer *layer, const char *name, const int64_t shape[4],
                      int64_t biases) {
    lk_bind_tensor(b, &layer->weight, 4, shape, "%s.weight", name);
    lk_bind_tensor(b, &layer->bias, 1, &biases, "%s.bias", name);
}

static void bind_all(struct lk_paella *m, struct lk_bind *b) {
    const struct lk_paella_config *c = &m->config;
    const int64_t wide = c->embed_dim, narrow = wide / 2;
    char name[96];
    bind_conv(b, &m->in, "up_blocks.0.0", (int64_t[]){wide, c->latent_channels, 1, 1}, wide);
    for (int i = 0; i <= c->n_bottleneck; i++) {
        struct lk_paella_block *k = &m->blocks[i];
        const int at = i + 1 + (i == c->n_bottleneck);
        const int64_t n = width_of(m, i);
        LK_BIND(b, &k->gammas, LK_SHAPE(LK_PAELLA_SCALARS), "up_blocks.%d.gammas", at);
        bind_conv(b, &k->depthwise, NAME(name, "up_blocks.%d.depthwise.1", at), (int64_t[]){n, 1, 3, 3}, n);
        const struct lk_layer_entry linear[] = {{&k->expand, "channelwise.0", 4 * n, n},
                                                {&k->contract, "channelwise.2", n, 4 * n}};
        LK_BIND_LAYERS(b, linear, true, "up_blocks", at);
    }
    bind_conv(b, &m->up, NAME(name, "up_blocks.%d", c->n_bottleneck + 1), (int64_t[]){wide, narrow, 4, 4}, narrow);
    bind_conv(b, &m->out, "out_block.0", (int64_t[]){4 * c->out_channels, narrow, 1, 1}, 4 * c->out_channels);
    lk_bind_ignore(b, "in_block.");
    lk_bind_ignore(b, "down_blocks.");
    lk_bind_ignore(b, "vquantizer.");
}

static float get(const struct lk_tensor *t, int64_t i) {
    return t->dtype == LK_BF16 ? lk_bf16_to_f32(((const uint16_t *)t->data)[i]) : ((const float *)t->data)[i];
}
static void set(const struct lk_tensor *t, int64_t i, float value) {
    if (t->dtype == LK_BF16)
        ((uint16_t *)t->data)[i] = lk_f32_to_bf16(value);
    else
        ((float *)t->data)[i] = value;
}

/* The kernel of tap -1, 0 or 1 that output phase 0 or 1 of a transposed convolution 4 x 4, stride 2, reads; -1: none.
 */
static int kernel_of(int phase, int tap) {
    static const int kernels[2][3] = {{3, 1, -1}, {-1, 2, 0}};
    return kernels[phase][tap];
}

/* [c_in, c_out, 4, 4] to [(c_out, dy, dx), c_in, 3, 3], whose outputs are a pixel's 2 x 2. */
static void make_convolution(const struct lk_layer *from, const struct lk_layer *to) {
    const int64_t c_in = from->weight.shape[0], c_out = from->weight.shape[1];
    for (int64_t o = 0; o < 4 * c_out; o++) {
        set(&to->bias, o, get(&from->bias, o / 4));
        for (int64_t c = 0; c < c_in; c++)
            for (int tap = 0; tap < TAPS; tap++) {
                const int ky = kernel_of((int)(o % 4 / 2), tap / 3), kx = kernel_of((int)(o % 2), tap % 3);
                const int64_t at = ((c * c_out + o / 4) * 4 + ky) * 4 + kx;
                set(&to->weight, (o * c_in + c) * TAPS + tap, ky < 0 || kx < 0 ? 0 : get(&from->weight, at));
            }
    }
}

/* A tensor of what the checkpoint does not have as it is needed: from `at`, which goes on, or nowhere. */
static struct lk_tensor make(unsigned char **at, enum lk_dtype dtype, int n_dims, const int64_t *shape) {
    struct lk_tensor t = lk_tensor_make(NULL, dtype, n_dims, shape);
    t.data = *at ? *at : lk_bind_nowhere(lk_tensor_bytes(&t));
    if (*at) *at += (lk_tensor_bytes(&t) + LK_ARENA_ALIGN - 1) / LK_ARENA_ALIGN * LK_ARENA_ALIGN;
    return t;
}
#define MAKE(at, dtype, ...)                                                                                           \
    make(at, dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static enum lk_code make_all(struct lk_paella *m, bool with_weights, enum lk_dtype compute) {
    const int64_t wide = m->config.embed_dim, narrow = wide / 2;
    const size_t values =
        (size_t)((m->config.n_bottleneck + 1) * (LK_PAELLA_SCALARS + 1) * wide + 4 * narrow * (wide * TAPS + 1));
    if (with_weights) m->made = lk_malloc(4 * values + (size_t)(m->config.n_bottleneck + 3) * LK_ARENA_ALIGN);
    if (with_weights && !m->made) return lk_fail(LK_E_NOMEM, "vqgan: out of memory");
    unsigned char *at = m->made;
    for (int i = 0; i <= m->config.n_bottleneck; i++) {
        struct lk_paella_block *k = &m->blocks[i];
        const int64_t n = width_of(m, i);
        k->each = MAKE(&at, compute, LK_PAELLA_SCALARS + 1, n);
        for (int64_t j = 0; j < (LK_PAELLA_SCALARS + 1) * n && at; j++)
            set(&k->each, j, j / n < LK_PAELLA_SCALARS ? get(&k->gammas, j / n) : 0);
    }
    struct lk_layer up = {.weight = MAKE(&at, m->up.weight.dtype, 4 * narrow, wide, 3, 3)};
    up.bias = MAKE(&at, m->up.bias.dtype, 4 * narrow);
    if (at) make_convolution(&m->up, &up);
    m->up = up;
    return LK_OK;
}

enum lk_code lk_paella_bind(struct lk_paella *m, const struct lk_paella_config *config,
                            const struct lk_checkpoint *checkpoint, enum lk_dtype compute) {
    struct lk_bind *b;
    *m = (struct lk_paella){.config = *config};
    LK_TRY(lk_bind_begin(&b, checkpoint, "vqgan", compute));
    bind_all(m, b);
    enum lk_code rc = lk_bind_finish(b, &m->owned, &m->totals);
    if (!rc) rc = make_all(m, checkpoint != NULL, compute);
    if (rc) lk_paella_free(m);
    return rc;
}

void lk_paella_free(struct lk_paella *m) {
    lk_free(m->owned);
    lk_free(m->made);
    m->owned = m->made = NULL;
}

static struct lk_tensor scalar(const struct lk_paella_block *k, int i) {
    const struct lk_tensor row = lk_tensor_rows(&k->each, i, 1);
    return LK_VIEW(&row, row.shape[1]);
}

/* y = LN(x) (1 + gamma i) + gamma i + 1. */
static enum lk_code norm(struct lk_device *dev, const struct lk_paella_block *k, int i, const struct lk_tensor *x,
                         const struct lk_tensor *y) {
    const struct lk_tensor scale = scalar(k, i), shift = scalar(k, i + 1);
    return lk_layer_norm(dev, &(struct lk_layer_norm){.y = y, .x = x, .scale = &scale, .shift = &shift, .eps = EPS});
}

/* x [h, w, c] in place. */
static enum lk_code mix(struct lk_device *dev, const struct lk_paella_block *k, const struct lk_tensor *x) {
    const int64_t h = x->shape[0], w = x->shape[1], c = x->shape[2];
    const struct lk_tensor rows = LK_VIEW(x, h * w, c), factor = scalar(k, 2), nothing = scalar(k, LK_PAELLA_SCALARS);
    const struct lk_tensor gate = scalar(k, 5);
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor normed, filtered, hidden;
    LK_TRY(LK_NEW(&dev->arena, &normed, x->dtype, h * w, c));
    LK_TRY(LK_NEW(&dev->arena, &filtered, x->dtype, h * w, c));
    LK_TRY(norm(dev, k, 0, &rows, &normed));
    const struct lk_tensor from = LK_VIEW(&normed, h, w, c), to = LK_VIEW(&filtered, h, w, c);
    struct lk_depthwise conv = {.y = &to, .x = &from, .w = &k->depthwise.weight, .bias = &k->depthwise.bias};
    conv.replicate = true;
    LK_TRY(lk_depthwise(dev, &conv));
    LK_TRY(lk_channel_affine(
        dev, &(struct lk_channel_affine){.y = &filtered, .x = &filtered, .mean = &nothing, .std = &factor}));
    LK_TRY(lk_add(dev, &(struct lk_add){&rows, &rows, &filtered}));
    LK_TRY(norm(dev, k, 3, &rows, &normed));
    LK_TRY(LK_NEW(&dev->arena, &hidden, x->dtype, h * w, 4 * c));
    LK_TRY(lk_project(dev, &hidden, &normed, &k->expand, LK_ACT_GELU_ERF));
    LK_TRY(lk_project_onto(dev, &rows, &hidden, &k->contract, &gate));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code project(struct lk_device *dev, const struct lk_layer *layer, const struct lk_tensor *x,
                            const struct lk_tensor *y) {
    const int64_t n = layer->weight.shape[0];
    const struct lk_tensor w = LK_VIEW(&layer->weight, n, lk_tensor_numel(&layer->weight) / n);
    return lk_linear(dev, &(struct lk_linear){.y = y, .x = x, .w = &w, .bias = &layer->bias});
}

enum lk_code lk_paella_decode(struct lk_device *dev, const struct lk_paella *m, const struct lk_tensor *latents,
                              const struct lk_tensor *picture) {
    const int64_t h = latents->shape[0], w = latents->shape[1], wide = m->config.embed_dim, narrow = wide / 2;
    const enum lk_dtype dtype = latents->dtype;
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor large, small, phases, patches;
    LK_TRY(LK_NEW(&dev->arena, &large, dtype, 2 * h, 2 * w, narrow));
    const size_t inner = lk_arena_mark(&dev->arena);
    LK_TRY(LK_NEW(&dev->arena, &small, dtype, h, w, wide));
    const struct lk_tensor from = LK_VIEW(latents, h * w, latents->shape[2]), rows = LK_VIEW(&small, h * w, wide);
    LK_TRY(project(dev, &m->in, &from, &rows));
    for (int i = 0; i < m->config.n_bottleneck; i++) LK_TRY(mix(dev, &m->blocks[i], &small));
    LK_TRY(LK_NEW(&dev->arena, &phases, dtype, h, w, 4 * narrow));
    struct lk_conv2d conv = {.y = &phases, .x = &small, .w = &m->up.weight, .bias = &m->up.bias, .stride = 1};
    conv.upsample = conv.pad_top = conv.pad_left = conv.pad_bottom = conv.pad_right = 1;
    LK_TRY(lk_conv2d(dev, &conv));
    const struct lk_tensor tokens = LK_VIEW(&phases, h * w, 4 * narrow);
    LK_TRY(lk_pack_latents(dev, &(struct lk_pack_latents){&tokens, &large, true}));
    lk_arena_release(&dev->arena, inner);
    LK_TRY(mix(dev, &m->blocks[m->config.n_bottleneck], &large));
    LK_TRY(LK_NEW(&dev->arena, &patches, dtype, 4 * h * w, 4 * m->config.out_channels));
    const struct lk_tensor pixels = LK_VIEW(&large, 4 * h * w, narrow);
    LK_TRY(project(dev, &m->out, &pixels, &patches));
    LK_TRY(lk_pack_latents(dev, &(struct lk_pack_latents){&patches, picture, true}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
