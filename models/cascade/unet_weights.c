#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/cascade/unet.h"

struct binder {
    struct lk_bind *bind;
    struct lk_cascade_unet *u;
    const struct lk_cascade_config *c;
    int n_blocks; /* given out so far */
};

#define NAME(buffer, ...) (snprintf(buffer, sizeof buffer, __VA_ARGS__), buffer)

static void bind_linear(struct binder *b, struct lk_layer *layer, const char *name, int64_t rows, int64_t cols) {
    const struct lk_layer_entry entry = {layer, name, rows, cols};
    lk_bind_layers(b->bind, &entry, 1, true, "", 0);
}

/* biases: of a transposed convolution the second dimension's. */
static void bind_conv(struct binder *b, struct lk_layer *layer, const char *name, const int64_t shape[4],
                      int64_t biases) {
    lk_bind_tensor(b->bind, &layer->weight, 4, shape, "%s.weight", name);
    lk_bind_tensor(b->bind, &layer->bias, 1, &biases, "%s.bias", name);
}

static void bind_1x1(struct binder *b, struct lk_layer *layer, const char *name, int64_t rows, int64_t cols) {
    bind_conv(b, layer, name, (int64_t[]){rows, cols, 1, 1}, rows);
}

static void bind_res(struct binder *b, struct lk_cascade_block *k, const char *name, int64_t c) {
    char full[128];
    const int64_t c_in = k->takes_skip ? 2 * c : c;
    bind_conv(b, &k->depthwise, NAME(full, "%s.depthwise", name), (int64_t[]){c, 1, 3, 3}, c);
    bind_linear(b, &k->expand, NAME(full, "%s.channelwise.0", name), 4 * c, c_in);
    LK_BIND(b->bind, &k->gamma, LK_SHAPE(1, 1, 1, 4 * c), "%s.channelwise.2.gamma", name);
    LK_BIND(b->bind, &k->beta, LK_SHAPE(1, 1, 1, 4 * c), "%s.channelwise.2.beta", name);
    bind_linear(b, &k->contract, NAME(full, "%s.channelwise.4", name), c, 4 * c);
}

static void bind_timestep(struct binder *b, struct lk_cascade_block *k, const char *name, int64_t c) {
    static const char *const mappers[] = {"mapper", "mapper_sca", "mapper_crp"};
    char full[128];
    for (int i = 0; i <= b->c->n_conds; i++)
        bind_linear(b, &k->mappers[i], NAME(full, "%s.%s", name, mappers[i]), 2 * c, LK_CASCADE_TIME);
}

static void bind_attention(struct binder *b, struct lk_cascade_block *k, const char *name, int64_t c) {
    char full[128];
    bind_linear(b, &k->kv_mapper, NAME(full, "%s.kv_mapper.1", name), c, b->c->conditioning_dim);
    bind_linear(b, &k->to_q, NAME(full, "%s.attention.to_q", name), c, c);
    bind_linear(b, &k->to_k, NAME(full, "%s.attention.to_k", name), c, c);
    bind_linear(b, &k->to_v, NAME(full, "%s.attention.to_v", name), c, c);
    bind_linear(b, &k->to_out, NAME(full, "%s.attention.to_out.0", name), c, c);
}

static void bind_level(struct binder *b, struct lk_cascade_level *l, const char *way, int at, int level, bool skips) {
    static void (*const binders[])(struct binder *, struct lk_cascade_block *, const char *,
                                   int64_t) = {bind_res, bind_timestep, bind_attention};
    const bool up = !strcmp(way, "up");
    const int n_types = b->c->n_heads[level] ? 3 : 2;
    const int n_layers = (int)(up ? b->c->up_layers[at] : b->c->down_layers[at]);
    char name[64];
    l->n_blocks = n_layers * n_types;
    l->blocks = b->u->blocks + b->n_blocks;
    b->n_blocks += l->n_blocks;
    for (int i = 0; i < l->n_blocks; i++) {
        struct lk_cascade_block *k = &l->blocks[i];
        k->kind = (enum lk_cascade_kind)(i % n_types);
        k->takes_skip = skips && i == 0;
        binders[k->kind](b, k, NAME(name, "%s_blocks.%d.%d", way, at, i), b->c->channels[level]);
    }
}

static void bind_scalers(struct binder *b, int i) {
    const struct lk_cascade_config *c = b->c;
    const int level = c->n_levels - 1 - i;
    char name[64];
    if (i && c->keeps_size)
        bind_1x1(b, &b->u->down[i].scaler, NAME(name, "down_downscalers.%d.1.blocks.0", i), c->channels[i],
                 c->channels[i - 1]);
    else if (i)
        bind_conv(b, &b->u->down[i].scaler, NAME(name, "down_downscalers.%d.1", i),
                  (int64_t[]){c->channels[i], c->channels[i - 1], 2, 2}, c->channels[i]);
    if (level && c->keeps_size)
        bind_1x1(b, &b->u->up[i].scaler, NAME(name, "up_upscalers.%d.1.blocks.1", i), c->channels[level - 1],
                 c->channels[level]);
    else if (level)
        bind_conv(b, &b->u->up[i].scaler, NAME(name, "up_upscalers.%d.1", i),
                  (int64_t[]){c->channels[level], c->channels[level - 1], 2, 2}, c->channels[level - 1]);
    for (int k = 0; k + 1 < c->up_repeats[i]; k++)
        bind_1x1(b, &b->u->up[i].repeat_mappers[k], NAME(name, "up_repeat_mappers.%d.%d", i, k), c->channels[level],
                 c->channels[level]);
}

static void bind_all(struct binder *b) {
    struct lk_cascade_unet *u = b->u;
    const struct lk_cascade_config *c = b->c;
    const int64_t patch = c->patch_size * c->patch_size, first = c->channels[0];
    bind_linear(b, &u->pooled_mapper, "clip_txt_pooled_mapper", LK_CASCADE_CLIP_SEQ * c->conditioning_dim,
                c->pooled_dim);
    if (c->text_dim) {
        bind_linear(b, &u->text_mapper, "clip_txt_mapper", c->conditioning_dim, c->text_dim);
        bind_linear(b, &u->image_mapper, "clip_img_mapper", LK_CASCADE_CLIP_SEQ * c->conditioning_dim, c->image_dim);
    }
    if (c->effnet_dim) {
        bind_1x1(b, &u->effnet[0], "effnet_mapper.0", 4 * first, c->effnet_dim);
        bind_1x1(b, &u->effnet[1], "effnet_mapper.2", first, 4 * first);
    }
    if (c->pixels_dim) {
        bind_1x1(b, &u->pixels[0], "pixels_mapper.0", 4 * first, c->pixels_dim);
        bind_1x1(b, &u->pixels[1], "pixels_mapper.2", first, 4 * first);
    }
    bind_1x1(b, &u->embedding, "embedding.1", first, c->in_channels * patch);
    for (int i = 0; i < c->n_levels; i++) {
        bind_level(b, &u->down[i], "down", i, i, false);
        bind_level(b, &u->up[i], "up", i, c->n_levels - 1 - i, i > 0);
        bind_scalers(b, i);
    }
    bind_1x1(b, &u->clf, "clf.1", c->out_channels * patch, first);
}

/* [c_in, 4 c_out] to [4 c_out, c_in]. */
static void transpose(const struct lk_tensor *w, int64_t rows, int64_t cols, unsigned char *to) {
    const size_t bytes = w->dtype == LK_F32 ? 4 : 2;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            memcpy(to + (size_t)(c * rows + r) * bytes, (const unsigned char *)w->data + (size_t)(r * cols + c) * bytes,
                   bytes);
}

/* A transposed convolution 2 x 2 as a linear layer [(c_out, dy, dx), c_in], with its bias four times. at: room for it,
 * whose end is returned; NULL when planning. */
static unsigned char *make_upscaler(struct lk_layer *s, unsigned char *at) {
    const int64_t c_in = s->weight.shape[0], c_out = s->weight.shape[1];
    const size_t weight = lk_tensor_bytes(&s->weight), one = lk_tensor_bytes(&s->bias) / (size_t)c_out;
    if (at) {
        transpose(&s->weight, c_in, 4 * c_out, at);
        for (int64_t k = 0; k < 4 * c_out; k++)
            memcpy(at + weight + (size_t)k * one, (const unsigned char *)s->bias.data + (size_t)(k / 4) * one, one);
    }
    void *data = at ? at : lk_bind_nowhere(weight), *bias = at ? at + weight : lk_bind_nowhere(4 * one * (size_t)c_out);
    s->weight = LK_TENSOR(data, s->weight.dtype, 4 * c_out, c_in);
    s->bias = LK_TENSOR(bias, s->bias.dtype, 4 * c_out);
    return at ? at + weight + 4 * one * (size_t)c_out : NULL;
}

static enum lk_code make_upscalers(struct lk_cascade_unet *u, const struct lk_checkpoint *checkpoint) {
    const int n = u->config.keeps_size ? 0 : u->config.n_levels - 1;
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += lk_tensor_bytes(&u->up[i].scaler.weight) + 4 * lk_tensor_bytes(&u->up[i].scaler.bias);
    if (checkpoint) u->transposed = lk_malloc(bytes);
    if (checkpoint && !u->transposed) return lk_fail(LK_E_NOMEM, "decoder: out of memory for its upscalers");
    unsigned char *at = u->transposed;
    for (int i = 0; i < n; i++) at = make_upscaler(&u->up[i].scaler, at);
    return LK_OK;
}

enum lk_code lk_cascade_unet_bind(struct lk_cascade_unet *u, const struct lk_cascade_config *config,
                                  const struct lk_checkpoint *checkpoint, enum lk_dtype compute) {
    size_t n_blocks = 0;
    for (int i = 0; i < config->n_levels; i++) n_blocks += 3 * (size_t)(config->down_layers[i] + config->up_layers[i]);
    *u = (struct lk_cascade_unet){.config = *config, .blocks = lk_calloc(n_blocks, sizeof *u->blocks)};
    if (!u->blocks) return lk_fail(LK_E_NOMEM, "Stable Cascade: out of memory");
    struct binder b = {.u = u, .c = &u->config};
    enum lk_code rc = lk_bind_begin(&b.bind, checkpoint, config->text_dim ? "prior" : "decoder", compute);
    if (!rc) {
        bind_all(&b);
        rc = lk_bind_finish(b.bind, &u->owned, &u->totals);
    }
    if (!rc) rc = make_upscalers(u, checkpoint);
    if (rc) lk_cascade_unet_free(u);
    return rc;
}

void lk_cascade_unet_free(struct lk_cascade_unet *u) {
    lk_free(u->blocks);
    lk_free(u->owned);
    lk_free(u->transposed);
    u->blocks = NULL;
    u->owned = u->transposed = NULL;
}
