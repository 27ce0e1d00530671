/* Step1XEditTransformer2DModel: the forward pass. */
#include "models/step1x/transformer.h"
#include "models/common/cache.h"

#include <string.h>

#include "engine/flow_match.h"
#include "models/pipeline.h"

#define NORM_EPS 1e-6f

/* Modulation made ahead, in units of D: of double blocks, single blocks, the tail. */
#define TXT(i)       (12 * (int64_t)(i))
#define IMG(i)       (12 * (int64_t)(i) + 6)
#define SINGLE(t, i) (12 * (t)->config.num_layers + 3 * (int64_t)(i))
#define NORM_OUT(t)  SINGLE(t, (t)->config.num_single_layers)

/* refined += text_token_mapping(embeds) in the rows of quoted tokens, run by run. */
static enum lk_code map_quoted(const struct lk_mmdit *p, const struct lk_step1x_transformer *t,
                               const struct lk_step1x_conditioning *c, const struct lk_tensor *refined) {
    const bool *quoted = c->quoted;
    if (!quoted || !t->config.enable_text_token_mapping) return LK_OK;
    for (int64_t i = 0, end; i < p->n_txt; i = end + 1) {
        for (end = i; end < p->n_txt && quoted[end];) end++;
        if (end == i) continue;
        struct lk_tensor rows = lk_tensor_rows(refined, i, end - i);
        struct lk_tensor embeds = lk_tensor_rows(&c->embeds, i, end - i);
        LK_TRY(lk_project_onto(p->dev, &rows, &embeds, &t->text_token_mapping, NULL));
    }
    return LK_OK;
}

/* temb [n_steps, D] = time_embed(sinusoids) + vec_embed(pooled), silu of it in place. */
static enum lk_code make_temb(struct lk_device *dev, const struct lk_step1x_transformer *t,
                              const struct lk_tensor *pooled, const float *timesteps_1000, bool shown,
                              const struct lk_tensor *temb) {
    int n_steps = (int)temb->shape[0];
    float fed[LK_MAX_STEPS];
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor vec;
    LK_TRY(LK_NEW(&dev->arena, &vec, temb->dtype, 1, temb->shape[1]));
    for (int i = 0; i < n_steps; i++) fed[i] = lk_timestep_as_fed(temb->dtype, timesteps_1000[i]);
    LK_TRY(lk_embed_scalars(dev, &t->time_embed, fed, 1.0f, temb));
    LK_TRY(lk_embed(dev, &vec, pooled, &t->vec_embed));
    for (int i = 0; i < n_steps; i++) {
        struct lk_tensor time = lk_tensor_rows(temb, i, 1);
        LK_TRY(lk_add(dev, &(struct lk_add){.y = &time, .a = &time, .b = &vec}));
    }
    lk_arena_release(&dev->arena, mark);
    return lk_ahead_silu(dev, temb, shown ? n_steps : 0);
}

enum lk_code lk_step1x_look_ahead(struct lk_device *dev, const struct lk_step1x_transformer *t,
                                  const struct lk_tensor *hidden, const float *timesteps_1000, int n_steps,
                                  const char *branch, struct lk_ahead *out) {
    const struct lk_step1x_transformer_config *c = &t->config;
    LK_TRY(lk_ahead_new(dev, hidden->dtype, NORM_OUT(t) + 2, n_steps, c->dim, out));
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor pooled, temb;
    LK_TRY(LK_NEW(&dev->arena, &pooled, hidden->dtype, 1, LK_STEP1X_POOLED_DIM));
    LK_TRY(LK_NEW(&dev->arena, &temb, hidden->dtype, n_steps, c->dim));
    LK_TRY(lk_step1x_pool(dev, t, hidden, &pooled));
    LK_TRY(lk_trace(dev, &pooled, "step.0.%s.pooled", branch));
    LK_TRY(make_temb(dev, t, &pooled, timesteps_1000, !strcmp(branch, "cond"), &temb));
    for (int i = 0; i < c->num_layers; i++) {
        LK_TRY(lk_ahead_layer(dev, out, &temb, &t->double_blocks[i].txt.mod, TXT(i)));
        LK_TRY(lk_ahead_layer(dev, out, &temb, &t->double_blocks[i].img.mod, IMG(i)));
    }
    for (int i = 0; i < c->num_single_layers; i++)
        LK_TRY(lk_ahead_layer(dev, out, &temb, &t->single_blocks[i].norm, SINGLE(t, i)));
    LK_TRY(lk_ahead_layer(dev, out, &temb, &t->norm_out, NORM_OUT(t)));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

/* The text rows of z, which the connector makes of the prompt and the timestep. */
static enum lk_code embed_text(const struct lk_mmdit *p, const struct lk_step1x_transformer *t,
                               const struct lk_step1x_conditioning *c, float timestep_1000) {
    struct lk_arena *arena = &p->dev->arena;
    float host[LK_STEP1X_TIMESTEP_DIM];
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor sinusoids, refined, z_txt = lk_mmdit_txt(p, &p->z);
    LK_TRY(LK_NEW(arena, &sinusoids, p->dtype, 1, LK_STEP1X_TIMESTEP_DIM));
    LK_TRY(LK_NEW(arena, &refined, p->dtype, p->n_txt, t->config.connector_hidden_size));
    lk_timestep_embedding(lk_timestep_as_fed(p->dtype, timestep_1000), LK_STEP1X_TIMESTEP_DIM, host);
    LK_TRY(lk_upload_rounded(p->dev, &sinusoids, host));
    LK_TRY(lk_step1x_connect(p->dev, t, &c->hidden, &sinusoids, &refined));
    LK_TRY(LK_MMDIT_TRACE(p, &refined, "%s", "connector"));
    LK_TRY(map_quoted(p, t, c, &refined));
    LK_TRY(lk_project(p->dev, &z_txt, &refined, &t->context_embedder, LK_ACT_NONE));
    LK_TRY(LK_MMDIT_TRACE(p, &z_txt, "%s", "txt_in"));
    lk_arena_release(arena, mark);
    return LK_OK;
}

static enum lk_code gelu_in(const struct lk_mmdit *p, const struct lk_tensor *y, const struct lk_tensor *x,
                            const struct lk_layer *w) {
    return lk_project(p->dev, y, x, w, LK_ACT_GELU_TANH);
}

static enum lk_code double_block(struct lk_mmdit *passes, int n, int i, const struct lk_mmdit_block *w) {
    LK_EACH_PASS(p, passes, n) {
        lk_mmdit_modulation(p, TXT(i), 2, p->txt);
        lk_mmdit_modulation(p, IMG(i), 2, p->img);
    }
    LK_TRY(lk_mmdit_joint_attention(passes, n, i, w));
    LK_TRY(lk_mmdit_feed_forward(passes, n, true, &w->txt, gelu_in));
    LK_TRY(lk_mmdit_feed_forward(passes, n, false, &w->img, gelu_in));
    LK_EACH_PASS(p, passes, n) {
        struct lk_tensor z_txt = lk_mmdit_txt(p, &p->z), z_img = lk_mmdit_img(p, &p->z);
        LK_TRY(LK_MMDIT_TRACE(p, &z_txt, "double.%d.txt", i));
        LK_TRY(LK_MMDIT_TRACE(p, &z_img, "double.%d.img", i));
    }
    return LK_OK;
}

/* Queries (j 0), keys or values of the slice, from u. */
static enum lk_code project_single(const struct lk_mmdit *p, const struct lk_step1x_single_block *w, int j) {
    const struct lk_layer *const layers[] = {&w->to_q, &w->to_k, &w->to_v};
    const struct lk_tensor *const norms[] = {&w->norm_q, &w->norm_k, NULL};
    if (p->at.n <= 0) return LK_OK;
    struct lk_tensor u = lk_mmdit_own(p, &p->u, p->at);
    struct lk_tensor y = j ? lk_tensor_rows(&p->qkv[j], p->at.first, p->at.n) : lk_mmdit_own(p, &p->qkv[0], p->at);
    return lk_mmdit_project(p, &y, &u, p->at.first, layers[j], norms[j]);
}

static enum lk_code mlp_single(const struct lk_mmdit *p, const struct lk_step1x_single_block *w) {
    int64_t d = p->dim, mlp = w->proj_mlp.weight.shape[0];
    if (p->at.n <= 0) return LK_OK;
    struct lk_tensor rows = lk_mmdit_own(p, &p->u, p->at), wide = lk_tensor_rows(&p->wide, 0, p->at.n);
    struct lk_tensor activated = lk_tensor_cols(&wide, d, mlp);
    return lk_project(p->dev, &activated, &rows, &w->proj_mlp, LK_ACT_GELU_TANH);
}

/* Attention and MLP in parallel from one norm; their outputs stand side by side as the input of one projection. */
static enum lk_code single_block(struct lk_mmdit *passes, int n, const struct lk_step1x_transformer *t, int i) {
    const struct lk_step1x_single_block *w = &t->single_blocks[i];
    struct lk_arena *arena = &passes->dev->arena;
    size_t mark = lk_arena_mark(arena);
    LK_TRY(lk_mmdit_new_block(passes, n));
    LK_EACH_PASS(p, passes, n) {
        LK_TRY(LK_NEW(arena, &p->wide, p->dtype, lk_mmdit_slice_rows(p, p->n_out), w->proj_out.weight.shape[1]));
        lk_mmdit_modulation(p, SINGLE(t, i), 1, p->img);
    }
    for (int64_t s = 0; lk_mmdit_slices(passes, n, s, LK_ROWS_ALL); s++) {
        LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_modulate_rows(p, p->at, &p->img[0]));
        for (int j = 1; j < 3; j++) LK_EACH_PASS(p, passes, n) LK_TRY(project_single(p, w, j));
    }
    for (int64_t s = 0; lk_mmdit_slices(passes, n, s, LK_ROWS_OUT); s++) {
        LK_EACH_PASS(p, passes, n) if (lk_mmdit_sliced(p)) LK_TRY(lk_mmdit_modulate_rows(p, p->at, &p->img[0]));
        LK_EACH_PASS(p, passes, n) LK_TRY(mlp_single(p, w));
        LK_EACH_PASS(p, passes, n) LK_TRY(project_single(p, w, 0));
        LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_attend_wide(p, i));
        LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_project_wide(p, &w->proj_out));
    }
    lk_arena_release(arena, mark);
    LK_EACH_PASS(p, passes, n) LK_TRY(LK_MMDIT_TRACE(p, &p->z, "single.%d", i));
    return LK_OK;
}

static enum lk_code begin_pass(struct lk_mmdit *p, struct lk_device *dev, const struct lk_step1x_transformer *t,
                               const struct lk_step1x_pass *in) {
    const struct lk_step1x_transformer_config *c = &t->config;
    int64_t n_txt = in->conditioning->hidden.shape[0], n_img = in->x->shape[0];
    *p = (struct lk_mmdit){.dev = dev, .dtype = in->x->dtype, .n_txt = n_txt, .n_img = n_img, .n = n_txt + n_img};
    p->dim = c->dim, p->n_heads = c->num_attention_heads, p->head_dim = c->attention_head_dim, p->eps = NORM_EPS;
    p->cos = &in->conditioning->cos, p->sin = &in->conditioning->sin;
    p->ahead = &in->conditioning->ahead, p->step = in->step, p->branch = in->branch;
    p->slice_rows = in->slice_rows;
    p->velocity = in->velocity;
    lk_mmdit_begin(p);
    p->kv = in->conditioning->kv.n_dims ? &in->conditioning->kv : NULL;
    LK_TRY(LK_NEW(&dev->arena, &p->z, p->dtype, p->n, p->dim));
    struct lk_tensor z_img = lk_mmdit_img(p, &p->z);
    LK_TRY(embed_text(p, t, in->conditioning, in->timestep_1000));
    LK_TRY(lk_project(dev, &z_img, in->x, &t->x_embedder, LK_ACT_NONE));
    LK_TRY(LK_MMDIT_TRACE(p, &z_img, "%s", "img_in"));
    lk_mmdit_modulation(p, IMG(0), 2, p->img);
    return lk_cache_begin(p, in->cache, &p->img[0]);
}

enum lk_code lk_step1x_transformer_forward(struct lk_device *dev, const struct lk_step1x_transformer *t,
                                           const struct lk_step1x_pass *in, int n) {
    struct lk_mmdit passes[LK_MAX_PASSES];
    size_t mark = lk_arena_mark(&dev->arena);
    for (int k = 0; k < n; k++) LK_TRY(begin_pass(&passes[k], dev, t, &in[k]));
    const int64_t n_double = t->config.num_layers, n_single = t->config.num_single_layers;
    int n_active = n; /* passes that no gate holds back */
    for (int i = 0; i <= n_double; i++) {
        LK_TRY(lk_mmdit_gate(passes, n, 0, i, n_double, false, &n_active));
        if (n_active && i < n_double) LK_TRY(double_block(passes, n_active, i, &t->double_blocks[i]));
    }
    for (int i = 0; i <= n_single; i++) {
        LK_TRY(lk_mmdit_gate(passes, n, 1, i, n_single, true, &n_active));
        if (!n_active || i == n_single) continue;
        LK_EACH_PASS(p, passes, n_active) lk_mmdit_rows_out(p, i + 1 == n_single, p->velocity->shape[0]);
        LK_TRY(single_block(passes, n_active, t, i));
    }
    LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_tail(p, NORM_OUT(t), &t->proj_out, p->velocity));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
