#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/sd/unet.h"

#define TAPS 9

struct binder {
    struct lk_bind *bind;
    struct lk_unet *u;
    const struct lk_unet_config *c;
    int64_t n_blocks; /* given out so far */
};

#define NAME(buffer, ...) (snprintf(buffer, sizeof buffer, __VA_ARGS__), buffer)

static void bind_conv(struct binder *b, struct lk_layer *layer, const char *name, int64_t c_out, int64_t c_in,
                      int64_t kernel) {
    lk_bind_tensor(b->bind, &layer->weight, 4, (int64_t[]){c_out, c_in, kernel, kernel}, "%s.weight", name);
    lk_bind_tensor(b->bind, &layer->bias, 1, &c_out, "%s.bias", name);
}

static void bind_linear(struct binder *b, struct lk_layer *layer, const char *name, int64_t rows, int64_t cols,
                        bool bias) {
    const struct lk_layer_entry entry = {layer, name, rows, cols};
    lk_bind_layers(b->bind, &entry, 1, bias, "", 0);
}

static void bind_norm(struct binder *b, struct lk_layer *layer, const char *name, int64_t n) {
    bind_linear(b, layer, name, n, 0, true);
}

static void bind_resnet(struct binder *b, struct lk_unet_resnet *r, const char *name, int64_t c_in, int64_t c) {
    char full[160];
    bind_norm(b, &r->norm1, NAME(full, "%s.norm1", name), c_in);
    bind_conv(b, &r->conv1, NAME(full, "%s.conv1", name), c, c_in, 3);
    bind_linear(b, &r->time_emb_proj, NAME(full, "%s.time_emb_proj", name), c, 4 * b->c->block_out_channels[0], true);
    bind_norm(b, &r->norm2, NAME(full, "%s.norm2", name), c);
    bind_conv(b, &r->conv2, NAME(full, "%s.conv2", name), c, c, 3);
    if (c_in != c) bind_conv(b, &r->conv_shortcut, NAME(full, "%s.conv_shortcut", name), c, c_in, 1);
    r->first_time = b->u->time_columns;
    b->u->time_columns += c;
}

static void bind_attention(struct binder *b, struct lk_unet_attention *a, const char *name, int64_t c, int64_t from) {
    char full[256];
    bind_linear(b, &a->to_q, NAME(full, "%s.to_q", name), c, c, false);
    bind_linear(b, &a->to_k, NAME(full, "%s.to_k", name), c, from, false);
    bind_linear(b, &a->to_v, NAME(full, "%s.to_v", name), c, from, false);
    bind_linear(b, &a->to_out, NAME(full, "%s.to_out.0", name), c, c, true);
}

static void bind_block(struct binder *b, struct lk_unet_block *k, const char *name, int64_t c) {
    char full[192];
    bind_norm(b, &k->norm1, NAME(full, "%s.norm1", name), c);
    bind_norm(b, &k->norm2, NAME(full, "%s.norm2", name), c);
    bind_norm(b, &k->norm3, NAME(full, "%s.norm3", name), c);
    bind_attention(b, &k->attn1, NAME(full, "%s.attn1", name), c, c);
    bind_attention(b, &k->attn2, NAME(full, "%s.attn2", name), c, b->c->cross_attention_dim);
    bind_linear(b, &k->ff_in, NAME(full, "%s.ff.net.0.proj", name), 8 * c, c, true);
    bind_linear(b, &k->ff_out, NAME(full, "%s.ff.net.2", name), c, 4 * c, true);
    k->first_key = b->u->key_columns;
    b->u->key_columns += 2 * c;
}

static void bind_projection(struct binder *b, struct lk_layer *layer, const char *name, int64_t c) {
    if (b->c->use_linear_projection)
        bind_linear(b, layer, name, c, c, true);
    else
        bind_conv(b, layer, name, c, c, 1);
}

static void bind_transformer(struct binder *b, struct lk_unet_transformer *t, const char *name, int level) {
    const int64_t c = b->c->block_out_channels[level];
    char full[160];
    t->n_blocks = b->c->depth[level];
    t->n_heads = b->c->n_heads[level];
    t->blocks = b->u->blocks + b->n_blocks;
    b->n_blocks += t->n_blocks;
    bind_norm(b, &t->norm, NAME(full, "%s.norm", name), c);
    bind_projection(b, &t->proj_in, NAME(full, "%s.proj_in", name), c);
    for (int64_t k = 0; k < t->n_blocks; k++)
        bind_block(b, &t->blocks[k], NAME(full, "%s.transformer_blocks.%d", name, (int)k), c);
    bind_projection(b, &t->proj_out, NAME(full, "%s.proj_out", name), c);
}

static void bind_down(struct binder *b, int i) {
    struct lk_unet_level *l = &b->u->down[i];
    const int64_t c = b->c->block_out_channels[i];
    char name[96];
    l->n_resnets = (int)b->c->layers_per_block;
    for (int j = 0; j < l->n_resnets; j++) {
        const int64_t c_in = j ? c : b->c->block_out_channels[i ? i - 1 : 0];
        bind_resnet(b, &l->resnets[j], NAME(name, "down_blocks.%d.resnets.%d", i, j), c_in, c);
        if (b->c->attends_down[i])
            bind_transformer(b, &l->transformers[j], NAME(name, "down_blocks.%d.attentions.%d", i, j), i);
    }
    l->has_sampler = i + 1 < b->c->n_levels;
    if (l->has_sampler) bind_conv(b, &l->sampler, NAME(name, "down_blocks.%d.downsamplers.0.conv", i), c, c, 3);
}

/* Channels of the skip that resnet j of level i of the way up takes: the way down's, last first. */
static int64_t skip_channels(const struct lk_unet_config *c, int i, int64_t j) {
    const int level = c->n_levels - 1 - i;
    return c->block_out_channels[j < c->layers_per_block || level == 0 ? level : level - 1];
}

static void bind_up(struct binder *b, int i) {
    struct lk_unet_level *l = &b->u->up[i];
    const int level = b->c->n_levels - 1 - i;
    const int64_t c = b->c->block_out_channels[level];
    int64_t before = i ? b->c->block_out_channels[level + 1] : c;
    char name[96];
    l->n_resnets = (int)b->c->layers_per_block + 1;
    for (int j = 0; j < l->n_resnets; j++) {
        bind_resnet(b, &l->resnets[j], NAME(name, "up_blocks.%d.resnets.%d", i, j), before + skip_channels(b->c, i, j),
                    c);
        if (b->c->attends_up[i])
            bind_transformer(b, &l->transformers[j], NAME(name, "up_blocks.%d.attentions.%d", i, j), level);
        before = c;
    }
    l->has_sampler = i + 1 < b->c->n_levels;
    if (l->has_sampler) bind_conv(b, &l->sampler, NAME(name, "up_blocks.%d.upsamplers.0.conv", i), c, c, 3);
}

static void bind_all(struct binder *b) {
    const struct lk_unet_config *c = b->c;
    const int last = c->n_levels - 1;
    const int64_t narrow = c->block_out_channels[0], wide = c->block_out_channels[last], temb = 4 * narrow;
    struct lk_unet *u = b->u;
    bind_conv(b, &u->conv_in, "conv_in", narrow, c->in_channels, 3);
    bind_linear(b, &u->time_embedding.linear_1, "time_embedding.linear_1", temb, narrow, true);
    bind_linear(b, &u->time_embedding.linear_2, "time_embedding.linear_2", temb, temb, true);
    if (c->addition_time_embed_dim) {
        const int64_t added = c->pooled_dim + LK_UNET_SIZE_IDS * c->addition_time_embed_dim;
        bind_linear(b, &u->add_embedding.linear_1, "add_embedding.linear_1", temb, added, true);
        bind_linear(b, &u->add_embedding.linear_2, "add_embedding.linear_2", temb, temb, true);
    }
    for (int i = 0; i <= last; i++) bind_down(b, i);
    bind_resnet(b, &u->mid[0], "mid_block.resnets.0", wide, wide);
    bind_transformer(b, &u->mid_transformer, "mid_block.attentions.0", last);
    bind_resnet(b, &u->mid[1], "mid_block.resnets.1", wide, wide);
    for (int i = 0; i <= last; i++) bind_up(b, i);
    bind_norm(b, &u->conv_norm_out, "conv_norm_out", narrow);
    bind_conv(b, &u->conv_out, "conv_out", c->out_channels, narrow, 3);
}

/* Every 3x3 convolution whose channels the op takes last. */
typedef enum lk_code filters_fn(struct lk_unet *u, struct lk_tensor *w, void *context);

static enum lk_code each_filters(struct lk_unet *u, filters_fn *body, void *context) {
    struct lk_unet_level *ways[] = {u->down, u->up};
    struct lk_layer *layers[2 * LK_UNET_MAX_LEVELS * (2 * LK_UNET_MAX_RESNETS + 1) + 5];
    int n = 0;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < u->config.n_levels; i++) {
            for (int j = 0; j < ways[k][i].n_resnets; j++) {
                layers[n++] = &ways[k][i].resnets[j].conv1;
                layers[n++] = &ways[k][i].resnets[j].conv2;
            }
            if (ways[k][i].has_sampler) layers[n++] = &ways[k][i].sampler;
        }
    for (int j = 0; j < 2; j++) {
        layers[n++] = &u->mid[j].conv1;
        layers[n++] = &u->mid[j].conv2;
    }
    layers[n++] = &u->conv_out;
    for (int i = 0; i < n; i++)
        if (layers[i]->weight.shape[1] % 8 == 0) LK_TRY(body(u, &layers[i]->weight, context));
    return LK_OK;
}

/* [n, channels, 3, 3] to [n, 3, 3, channels] at `to`, which may not overlap. */
#define REORDER(type, from, to)                                                                                        \
    for (int64_t i = 0; i < w->shape[0]; i++)                                                                          \
        for (int64_t tap = 0; tap < TAPS; tap++)                                                                       \
            for (int64_t c = 0; c < channels; c++)                                                                     \
    ((type *)(to))[(i * TAPS + tap) * channels + c] = ((const type *)(from))[(i * channels + c) * TAPS + tap]
static void reorder(const struct lk_tensor *w, void *to) {
    const int64_t channels = w->shape[1];
    if (w->dtype == LK_BF16)
        REORDER(uint16_t, w->data, to);
    else
        REORDER(float, w->data, to);
}

static bool is_mapped(const struct lk_checkpoint *cp, const struct lk_tensor *t) {
    for (size_t i = 0; i < cp->n_tensors; i++)
        if (cp->tensors[i].tensor->tensor.data == t->data) return true;
    return false;
}

struct reordering {
    const struct lk_checkpoint *checkpoint;
    unsigned char *block; /* of what is read in place and cannot be written; NULL: only counted */
    size_t bytes, used, largest;
};

static enum lk_code count_filters(struct lk_unet *u, struct lk_tensor *w, void *context) {
    struct reordering *r = context;
    const size_t bytes = lk_tensor_bytes(w);
    (void)u;
    if (is_mapped(r->checkpoint, w))
        r->bytes += (bytes + LK_ARENA_ALIGN - 1) / LK_ARENA_ALIGN * LK_ARENA_ALIGN;
    else if (bytes > r->largest)
        r->largest = bytes;
    return LK_OK;
}

static void put_taps_first(struct lk_tensor *w) {
    *w = LK_TENSOR(w->data, w->dtype, w->shape[0], w->shape[2], w->shape[3], w->shape[1]);
}

static enum lk_code reorder_filters(struct lk_unet *u, struct lk_tensor *w, void *context) {
    struct reordering *r = context;
    const size_t bytes = lk_tensor_bytes(w);
    (void)u;
    if (r->checkpoint && is_mapped(r->checkpoint, w)) {
        reorder(w, r->block + r->used);
        w->data = r->block + r->used;
        r->used += (bytes + LK_ARENA_ALIGN - 1) / LK_ARENA_ALIGN * LK_ARENA_ALIGN;
    } else if (r->checkpoint) {
        reorder(w, r->block + r->bytes);
        memcpy(w->data, r->block + r->bytes, bytes);
    }
    put_taps_first(w);
    return LK_OK;
}

/* Filters in the order in which convolutions read them, once. */
static enum lk_code take_taps_first(struct lk_unet *u, const struct lk_checkpoint *checkpoint) {
    struct reordering r = {.checkpoint = checkpoint};
    if (checkpoint) {
        LK_TRY(each_filters(u, count_filters, &r));
        u->filters = r.block = lk_malloc(r.bytes + r.largest + 1);
        if (!r.block) return lk_fail(LK_E_NOMEM, "unet: out of memory for %zu bytes of filters", r.bytes + r.largest);
    }
    LK_TRY(each_filters(u, reorder_filters, &r));
    return checkpoint ? lk_checkpoint_check(checkpoint) : LK_OK;
}

enum lk_code lk_unet_bind(struct lk_unet *u, const struct lk_unet_config *config,
                          const struct lk_checkpoint *checkpoint, enum lk_dtype compute,
                          const struct lk_unet_adapters *adapters) {
    int64_t n_blocks = config->depth[config->n_levels - 1];
    for (int i = 0; i < config->n_levels; i++) {
        const int64_t up = config->attends_up[config->n_levels - 1 - i] ? config->layers_per_block + 1 : 0;
        n_blocks += config->depth[i] * (up + (config->attends_down[i] ? config->layers_per_block : 0));
    }
    *u = (struct lk_unet){.config = *config, .blocks = lk_calloc((size_t)n_blocks, sizeof *u->blocks)};
    if (!u->blocks) return lk_fail(LK_E_NOMEM, "unet: out of memory");
    struct binder b = {.u = u, .c = &u->config};
    enum lk_code rc = lk_bind_begin(&b.bind, checkpoint, "unet", compute);
    if (!rc) {
        lk_bind_loras(b.bind, adapters->loras, adapters->names, adapters->n_names);
        bind_all(&b);
        rc = lk_bind_finish(b.bind, &u->owned, &u->totals);
    }
    if (!rc) rc = take_taps_first(u, checkpoint);
    if (rc) lk_unet_free(u);
    return rc;
}

void lk_unet_free(struct lk_unet *u) {
    lk_free(u->blocks);
    lk_free(u->owned);
    lk_free(u->filters);
    u->blocks = NULL;
    u->owned = u->filters = NULL;
}
