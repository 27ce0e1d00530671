/* Stable Diffusion: a prompt to an image. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/common/queue.h"
#include "models/parameters.h"
#include "models/sd/sd.h"

/* Negative before positive, then concepts, as the reference stacks them. Without guidance there is the positive one
 * alone. */
enum { NEGATIVE, POSITIVE, CONCEPTS, BRANCHES = CONCEPTS + LK_SEGA_MAX_CONCEPTS };
static const char *const branch_names[] = {"negative",  "positive",  "concept.0", "concept.1", "concept.2",
                                           "concept.3", "concept.4", "concept.5", "concept.6", "concept.7"};

struct run {
    struct lk_walk walk;
    struct lk_sd *m;
    const char *variant; /* "sd-1.5" */
    bool guided, planning_only;
    int width, height, multiple; /* pixels of the output; of which its sides are multiples */
    int64_t h, w;                /* of the latents */
    int64_t layer[BRANCHES];     /* whose state conditions, counted from the last: clip_skip */
    bool zeros[BRANCHES];        /* told nothing but zeros */
    int32_t ids[BRANCHES][2][LK_SD_IDS];
    struct lk_kept *embeds[BRANCHES];
    int n_branches;
    struct lk_sega sega;
    struct lk_sampler sampler;
    struct lk_tensor input, prediction; /* [h, w, 4]; the negative branch's */
    struct lk_tensor times[BRANCHES], keys[BRANCHES];
    struct lk_tensor kept[LK_SAMPLER_KEPT], noise;
    float size_ids[LK_UNET_SIZE_IDS];
    float *host; /* as many values as the latents have, of every branch with concepts; NULL when planning */
};

static int64_t embeds_rows(const struct run *r) { return LK_SD_IDS + (r->m->xl ? 1 : 0); }

/* Sizes of everything, before anything is computed. */
static enum lk_code measure(struct run *r) {
    const struct lk_request *q = r->walk.request;
    const struct lk_unet_config *c = &r->m->unet.config;
    const int factor = lk_vae_scale_factor(&r->m->vae.config);
    r->multiple = factor << (c->n_levels - 1);
    r->width = q->width ? q->width : (int)c->sample_size * factor;
    r->height = q->height ? q->height : (int)c->sample_size * factor;
    if (r->width % r->multiple || r->height % r->multiple)
        return lk_fail(LK_E_USAGE, "output size: expected sides that are multiples of %d, got %dx%d", r->multiple,
                       r->width, r->height);
    r->w = r->width / factor;
    r->h = r->height / factor;
    return LK_OK;
}

static enum lk_code tokenize(struct run *r) {
    const struct lk_request *q = r->walk.request;
    const char *first[BRANCHES] = {q->negative_prompt, q->prompt},
               *second[BRANCHES] = {q->negative_prompt_2, q->prompt_2};
    for (int c = 0; c < r->sega.n; c++) first[CONCEPTS + c] = r->sega.concepts[c].text;
    for (int b = r->guided ? NEGATIVE : POSITIVE; b < r->n_branches; b++)
        for (int i = 0; i < r->m->n_text; i++) {
            const char *prompt = i && second[b] ? second[b] : first[b];
            int n_real, n_cut;
            enum lk_code rc = lk_tokenizer_encode_clip(r->m->tokenizers[i], &r->m->clip_ids[i], prompt ? prompt : "",
                                                       r->ids[b][i], &n_real, &n_cut);
            if (rc)
                return b == NEGATIVE   ? lk_fail_prefix(rc, "negative_prompt")
                       : b >= CONCEPTS ? lk_fail_prefix(rc, "concept")
                                       : rc;
            LK_TRY(lk_walk_cut(&r->walk, n_cut));
        }
    return LK_OK;
}

/* What the model is told of sizes: original height and width, crop top and left, target height and width. */
static enum lk_code size_ids(struct run *r) {
    const struct lk_request *q = r->walk.request;
    const struct {
        const char *key;
        const int *values;
        int n, otherwise[2];
    } given[] = {{"original_size", q->original_size, q->n_original_size, {r->height, r->width}},
                 {"crops_coords_top_left", q->crops_coords_top_left, q->n_crops_coords_top_left, {0, 0}},
                 {"target_size", q->target_size, q->n_target_size, {r->height, r->width}}};
    for (int i = 0; i < 3; i++) {
        if (given[i].n && given[i].n != 2)
            return lk_fail(LK_E_USAGE, "%s: expected 2 numbers, got %d", given[i].key, given[i].n);
        for (int k = 0; k < 2; k++)
            r->size_ids[2 * i + k] = (float)(given[i].n ? given[i].values[k] : given[i].otherwise[k]);
    }
    return LK_OK;
}

static enum lk_code begin_concepts(struct run *r) {
    const struct lk_request *q = r->walk.request;
    const struct lk_sega_shape shape = {r->sampler.n_calls, r->h * r->w, r->m->unet.config.in_channels};
    r->n_branches = CONCEPTS + q->n_concepts;
    if (!q->n_concepts) return LK_OK;
    if (!r->guided)
        return lk_fail(LK_E_USAGE,
                       "concept: without guidance concepts do nothing: expected a guidance_scale above 1, got %g",
                       q->guidance_scale);
    if (q->guidance_rescale > 0)
        return lk_fail(LK_E_USAGE, "concept: guidance_rescale is not defined with concepts; leave one out");
    r->sega.guidance_scale = q->guidance_scale;
    r->sega.momentum_scale = q->concept_momentum_scale;
    r->sega.momentum_beta = q->concept_momentum_beta;
    r->sega.bf16 = r->walk.dtype == LK_BF16;
    return lk_sega_begin(&r->sega, q->concepts, q->n_concepts, &shape);
}

static enum lk_code begin(void *run, struct lk_pipeline *pipeline) {
    struct run *r = run;
    const struct lk_request *q = r->walk.request;
    struct lk_sampler_config config;
    r->m = pipeline->model;
    r->variant = pipeline->name;
    r->walk.checkpoints = r->m->checkpoints;
    r->walk.n_checkpoints = LK_SD_CHECKPOINTS;
    r->walk.vae = &r->m->vae.totals;
    if (q->n_images) return lk_fail(LK_E_USAGE, "%s makes pictures from text alone: give no image", pipeline->name);
    LK_TRY(measure(r));
    config = r->m->scheduler;
    if (q->scheduler) LK_TRY(lk_sampler_choose(&config, q->scheduler));
    if (q->eta > 0 && config.kind != LK_SAMPLER_DDIM)
        return lk_fail(LK_E_USAGE, "eta: %s has none; it goes with --scheduler ddim", lk_sampler_name(&config));
    LK_TRY(lk_sampler_begin(&r->sampler, &config, q->num_inference_steps, q->eta));
    if (q->image_index && lk_sampler_draws(&r->sampler))
        return lk_fail(LK_E_USAGE,
                       "image_index: %s draws noise in every step for the whole batch; take another sampler",
                       lk_sampler_name(&config));
    LK_TRY(size_ids(r));
    r->walk.n_calls = r->sampler.n_calls;
    r->guided = q->guidance_scale > 1;
    LK_TRY(begin_concepts(r));
    for (int b = 0; b < r->n_branches; b++) {
        const int skip = b == POSITIVE ? q->clip_skip : 0;
        r->layer[b] = skip + (r->m->xl ? 1 : 0);
        for (int i = 0; i < r->m->n_text; i++)
            if (r->layer[b] >= r->m->text[i].config.num_hidden_layers)
                return lk_fail(LK_E_USAGE, "clip_skip: the text encoder has %lld layers, got %d",
                               (long long)r->m->text[i].config.num_hidden_layers, skip);
    }
    r->zeros[NEGATIVE] = r->m->force_zeros && !q->negative_prompt && !q->negative_prompt_2;
    if (!r->walk.result) return LK_OK;
    r->host = lk_malloc((size_t)(r->h * r->w * r->m->unet.config.in_channels * r->n_branches) * sizeof *r->host);
    return r->host ? tokenize(r) : lk_fail(LK_E_NOMEM, "latents: out of memory");
}

/* All that decides the embeddings of a branch; empty when planning. */
static void embeds_key(const struct run *r, int b, char key[65]) {
    key[0] = 0;
    if (!r->walk.result) return;
    lk_key_begin(key, "Stable Diffusion prompt");
    lk_key_add_int(key, r->layer[b]);
    for (int i = 0; i < r->m->n_text; i++)
        for (int k = 0; k < LK_SD_IDS; k++) lk_key_add_int(key, r->ids[b][i][k]);
}

/* The last row, SDXL's: the pooled text, then zeros. */
static enum lk_code clear(struct lk_device *dev, const struct lk_tensor *t) {
    if (dev->kind == LK_DEVICE_PLAN) return LK_OK;
    void *zeros = lk_calloc(1, lk_tensor_bytes(t));
    if (!zeros) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    enum lk_code rc = lk_upload(dev, t, zeros);
    lk_free(zeros);
    return rc;
}

/* Columns of `words` [77, D] from text encoder i, the end's projected state to `pooled` [1, P] or NULL. */
static enum lk_code encode_by(const struct run *r, int b, int i, const struct lk_tensor *words,
                              const struct lk_tensor *pooled) {
    static const char *const names[] = {"text_encoder", "text_encoder_2"}, *const ids_names[] = {"text_encoder.ids",
                                                                                                 "text_encoder_2.ids"};
    const struct lk_clip_text *text = &r->m->text[i];
    const int32_t *ids = r->walk.result ? r->ids[b][i] : NULL;
    struct lk_device *dev = r->walk.dev;
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor hidden, end;
    LK_TRY(LK_NEW(&dev->arena, &hidden, LK_F32, LK_SD_IDS, text->config.hidden_size));
    if (pooled) LK_TRY(LK_NEW(&dev->arena, &end, LK_F32, 1, text->config.projection_dim));
    struct lk_clip_text_pass pass = {.name = b == POSITIVE ? names[i] : branch_names[b], .ids = ids, .n = LK_SD_IDS};
    pass.layer = text->config.num_hidden_layers - r->layer[b];
    pass.final_norm = !r->m->xl;
    pass.hidden = &hidden;
    pass.pooled = pooled ? &end : NULL;
    if (b == POSITIVE && !lk_walk_planning(&r->walk))
        LK_TRY(lk_walk_trace_host(&r->walk, ids_names[i], ids, LK_I32, LK_SD_IDS));
    LK_TRY(lk_clip_text_encode(dev, text, &pass));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = words, .x = &hidden}));
    if (pooled) LK_TRY(lk_copy(dev, &(struct lk_copy){.y = pooled, .x = &end}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

/* embeds [77 (+ 1), D] of branch b. */
static enum lk_code encode_ids(const struct run *r, int b, const struct lk_tensor *embeds) {
    const struct lk_tensor words = lk_tensor_rows(embeds, 0, LK_SD_IDS);
    struct lk_tensor last, pooled;
    int64_t column = 0;
    if (r->m->xl) {
        last = lk_tensor_rows(embeds, LK_SD_IDS, 1);
        LK_TRY(clear(r->walk.dev, &last));
        pooled = lk_tensor_cols(&last, 0, r->m->unet.config.pooled_dim);
    }
    for (int i = 0; i < r->m->n_text; i++) {
        const int64_t width = r->m->text[i].config.hidden_size;
        const struct lk_tensor columns = lk_tensor_cols(&words, column, width);
        LK_TRY(encode_by(r, b, i, &columns, i ? &pooled : NULL));
        column += width;
    }
    return LK_OK;
}

/* For embed_norm: what stands between the beginning and all behind the first end, of the prompt alone. */
static void note_words(const struct run *r, int b, struct lk_kept *embeds) {
    embeds->n_pad = b == POSITIVE ? 1 : embeds_rows(r);
    if (b != POSITIVE || !r->walk.result) return;
    for (int i = 0; i < r->m->n_text; i++) {
        int64_t end = 1;
        while (end < LK_SD_IDS - 1 && r->ids[b][i][end] != r->m->clip_ids[i].eos) end++;
        embeds->n_behind[i] = embeds_rows(r) - end - 1;
    }
    embeds->split = r->m->xl ? r->m->text[0].config.hidden_size : 0;
}

static enum lk_code encode_branch(struct run *r, int b, const struct lk_bind_totals *totals) {
    struct lk_arena *arena = &r->walk.dev->arena;
    const int64_t width = r->m->unet.config.cross_attention_dim;
    const char *prompt = b == POSITIVE   ? r->walk.request->prompt
                         : b == NEGATIVE ? r->walk.request->negative_prompt
                                         : r->sega.concepts[b - CONCEPTS].text;
    const size_t mark = lk_arena_mark(arena);
    struct lk_cost before;
    struct lk_tensor embeds;
    char key[65];
    embeds_key(r, b, key);
    LK_TRY(lk_walk_find_prompt(&r->walk, key, prompt, embeds_rows(r), width, &r->embeds[b]));
    if (r->embeds[b]) return LK_OK;
    LK_TRY(lk_walk_begin(&r->walk, "text_encoder", &before));
    LK_TRY(LK_NEW(arena, &embeds, r->walk.dtype, embeds_rows(r), width));
    LK_TRY(encode_ids(r, b, &embeds));
    LK_TRY(lk_walk_check_finite(&r->walk, &embeds, "text encoder", -1));
    LK_TRY(lk_walk_keep(&r->walk, key, &embeds, &r->embeds[b]));
    r->embeds[b]->prompt = true;
    note_words(r, b, r->embeds[b]);
    lk_walk_note(&r->walk, "text_encoder", totals, 1, &before);
    lk_arena_release(arena, mark);
    return LK_OK;
}

static enum lk_code encode(void *run) {
    struct run *r = run;
    struct lk_bind_totals totals = r->m->text[0].totals;
    if (r->m->xl) totals.parameters += r->m->text[1].totals.parameters;
    for (int b = r->guided ? NEGATIVE : POSITIVE; b < r->n_branches; b++)
        if (!r->zeros[b]) LK_TRY(encode_branch(r, b, &totals));
    return LK_OK;
}

/* What the UNet is told of a branch: keys of its cross-attentions, and what its resnets add at each time. */
static enum lk_code condition(struct run *r, int b) {
    struct lk_device *dev = r->walk.dev;
    struct lk_arena *arena = &dev->arena;
    const struct lk_unet *u = &r->m->unet;
    const bool own_times = b == POSITIVE || r->m->xl; /* SD 1.5's are the same for both */
    LK_TRY(LK_NEW(arena, &r->keys[b], r->walk.dtype, LK_SD_IDS, u->key_columns));
    if (own_times) LK_TRY(LK_NEW(arena, &r->times[b], r->walk.dtype, r->sampler.n_calls, u->time_columns));
    const size_t mark = lk_arena_mark(arena);
    struct lk_tensor embeds;
    LK_TRY(LK_NEW(arena, &embeds, r->walk.dtype, embeds_rows(r), u->config.cross_attention_dim));
    LK_TRY(r->zeros[b] ? clear(dev, &embeds) : lk_walk_give_back(&r->walk, r->embeds[b], &embeds));
    const struct lk_tensor words = lk_tensor_rows(&embeds, 0, LK_SD_IDS);
    LK_TRY(lk_trace(dev, &words, "%s.prompt_embeds", branch_names[b]));
    LK_TRY(lk_unet_keys(dev, u, &words, &r->keys[b]));
    if (own_times) {
        struct lk_unet_times in = {.timesteps = r->sampler.timesteps, .n_times = r->sampler.n_calls};
        struct lk_tensor last, pooled;
        if (r->m->xl) {
            last = lk_tensor_rows(&embeds, LK_SD_IDS, 1);
            pooled = lk_tensor_cols(&last, 0, u->config.pooled_dim);
            LK_TRY(lk_trace(dev, &pooled, "%s.pooled", branch_names[b]));
            in.pooled = &pooled;
            in.ids = r->size_ids;
        }
        in.branch = b == NEGATIVE ? "negative." : b == POSITIVE ? "" : "concept.";
        in.times = &r->times[b];
        LK_TRY(lk_unet_look_ahead(dev, u, &in));
    }
    lk_arena_release(arena, mark);
    return LK_OK;
}

static enum lk_code schedule(struct run *r) {
    struct lk_walk *w = &r->walk;
    const int n = r->sampler.n_calls;
    memcpy(w->sigmas, r->sampler.sigmas, (size_t)(n + 1) * sizeof *w->sigmas);
    memcpy(w->timesteps, r->sampler.timesteps, (size_t)n * sizeof *w->timesteps);
    if (w->result) {
        w->result->n_steps = n;
        memcpy(w->result->sigmas, w->sigmas, (size_t)(n + 1) * sizeof *w->sigmas);
    }
    LK_TRY(lk_walk_trace_host(w, "sampler.levels", w->sigmas, LK_F32, n + 1));
    return lk_walk_trace_host(w, "sampler.timesteps", w->timesteps, LK_F32, n);
}

static enum lk_code make_noise(struct run *r) {
    struct lk_walk *w = &r->walk;
    struct lk_weighted_sum scale = {
        .y = &w->latents, .x = {&w->latents}, .scale = {(float)r->sampler.init_noise_sigma}};
    for (int k = 0; k < w->request->image_index && !w->request->latents && !lk_walk_planning(w); k++) {
        if (w->dtype == LK_BF16)
            lk_rng_normal_bf16(w->rng, (uint16_t *)r->host, (size_t)lk_tensor_numel(&w->latents));
        else
            lk_rng_normal_f32(w->rng, r->host, (size_t)lk_tensor_numel(&w->latents));
    }
    LK_TRY(lk_walk_noise(w, &w->latents, true));
    LK_TRY(lk_trace(w->dev, &w->latents, "noise"));
    return lk_weighted_sum(w->dev, &scale);
}

static enum lk_code prepare(void *const *runs, int k) {
    struct run *r = runs[k];
    struct lk_arena *arena = &r->walk.dev->arena;
    const int64_t c = r->m->unet.config.in_channels, n = r->h * r->w;
    LK_TRY(schedule(r));
    LK_TRY(LK_NEW(arena, &r->walk.latents, r->walk.dtype, n, c));
    LK_TRY(LK_NEW(arena, &r->walk.velocity, r->walk.dtype, n, c));
    LK_TRY(LK_NEW(arena, &r->input, r->walk.dtype, r->h, r->w, c));
    if (r->guided) LK_TRY(LK_NEW(arena, &r->prediction, r->walk.dtype, n, c));
    for (int i = 0; i < lk_sampler_n_kept(&r->sampler); i++) LK_TRY(LK_NEW(arena, &r->kept[i], r->walk.dtype, n, c));
    if (lk_sampler_draws(&r->sampler)) LK_TRY(LK_NEW(arena, &r->noise, r->walk.dtype, n, c));
    for (int b = POSITIVE; b >= (r->guided ? NEGATIVE : POSITIVE); b--) LK_TRY(condition(r, b));
    for (int b = CONCEPTS; b < r->n_branches; b++) LK_TRY(condition(r, b));
    return make_noise(r);
}

static enum lk_code predict_branch(const struct run *r, int b, int i, const struct lk_tensor *rows) {
    struct lk_device *dev = r->walk.dev;
    const struct lk_tensor y = LK_VIEW(rows, r->h, r->w, rows->shape[1]);
    const struct lk_tensor time = lk_tensor_rows(&r->times[r->m->xl ? b : POSITIVE], i, 1);
    char name[64];
    snprintf(name, sizeof name, "step.%d.%s", i, branch_names[b]);
    struct lk_unet_pass pass = {.x = &r->input, .time = &time, .keys = &r->keys[b], .y = &y};
    pass.name = i ? NULL : name;
    pass.attention = name;
    LK_TRY(lk_unet_forward(dev, &r->m->unet, &pass));
    return lk_trace(dev, rows, "%s.velocity", name);
}

static enum lk_code download_f32(const struct run *r, float *out, const struct lk_tensor *t) {
    LK_TRY(lk_download(r->walk.dev, out, t));
    if (t->dtype == LK_BF16)
        for (int64_t i = lk_tensor_numel(t); i-- > 0;) out[i] = lk_bf16_to_f32(((const uint16_t *)out)[i]);
    return LK_OK;
}

/* Standard deviation of all values, unbiased. */
static enum lk_code deviation(const struct run *r, const struct lk_tensor *t, double *out) {
    const int64_t n = lk_tensor_numel(t);
    double sum = 0, squares = 0;
    *out = 1;
    if (lk_walk_planning(&r->walk)) return LK_OK;
    LK_TRY(download_f32(r, r->host, t));
    for (int64_t i = 0; i < n; i++) sum += (double)r->host[i];
    for (int64_t i = 0; i < n; i++) squares += ((double)r->host[i] - sum / n) * ((double)r->host[i] - sum / n);
    *out = sqrt(squares / (double)(n - 1));
    return LK_OK;
}

/* The guided prediction from where guidance left it to where the next step looks for it, with its share of the unguided
 * one's deviation (Lin et al. 2023, section 3.4). */
static enum lk_code rescale(const struct run *r) {
    const struct lk_walk *w = &r->walk;
    const double share = w->request->guidance_rescale;
    double factor = 1, unguided, guided;
    if (share > 0) {
        LK_TRY(deviation(r, &w->velocity, &unguided));
        LK_TRY(deviation(r, &r->prediction, &guided));
        factor = share * unguided / guided + (1 - share);
    }
    const struct lk_weighted_sum op = {.y = &w->velocity, .x = {&r->prediction}, .scale = {(float)factor}};
    return lk_weighted_sum(w->dev, &op);
}

/* All branches of call i, the positive one's prediction being there, and the guided prediction in its place. */
static enum lk_code predict_concepts(struct run *r, int i) {
    const struct lk_tensor *guided = &r->walk.velocity;
    const size_t n = (size_t)lk_tensor_numel(guided);
    const bool planning = lk_walk_planning(&r->walk);
    if (!planning) LK_TRY(download_f32(r, r->host + POSITIVE * n, guided));
    for (int b = NEGATIVE; b < r->n_branches; b++) {
        if (b == POSITIVE) continue;
        LK_TRY(predict_branch(r, b, i, &r->prediction));
        if (!planning) LK_TRY(download_f32(r, r->host + (size_t)b * n, &r->prediction));
    }
    if (planning) return LK_OK;
    lk_sega_step(&r->sega, i, r->host, NULL);
    if (guided->dtype == LK_BF16)
        for (size_t j = 0; j < n; j++) ((uint16_t *)r->host)[j] = lk_f32_to_bf16(r->host[j]);
    return lk_upload(r->walk.dev, guided, r->host);
}

static enum lk_code predict(void *const *runs, int n, int i) {
    for (int k = 0; k < n; k++) {
        struct run *r = runs[k];
        const struct lk_walk *w = &r->walk;
        const struct lk_tensor input = LK_VIEW(&r->input, r->h * r->w, w->latents.shape[1]);
        LK_TRY(lk_sampler_scale(w->dev, &r->sampler, i, &w->latents, &input));
        LK_TRY(predict_branch(r, POSITIVE, i, &w->velocity));
        if (!r->guided) continue;
        if (r->sega.n) {
            LK_TRY(predict_concepts(r, i));
            continue;
        }
        LK_TRY(predict_branch(r, NEGATIVE, i, &r->prediction));
        struct lk_guidance op = {.y = &r->prediction, .cond = &w->velocity, .uncond = &r->prediction};
        op.kind = LK_GUIDANCE_LIMIT;
        op.scale = (float)w->request->guidance_scale;
        LK_TRY(lk_guidance(w->dev, &op));
        LK_TRY(rescale(r));
    }
    return LK_OK;
}

static enum lk_code advance(void *run, int i) {
    struct run *r = run;
    const bool draws = lk_sampler_draws(&r->sampler);
    if (draws) LK_TRY(lk_walk_noise(&r->walk, &r->noise, false));
    const struct lk_sampler_step step = {
        .x = &r->walk.latents, .prediction = &r->walk.velocity, .noise = draws ? &r->noise : NULL, .kept = r->kept};
    return lk_sampler_advance(r->walk.dev, &r->sampler, i, &step);
}

static enum lk_code decode(void *run) {
    struct run *r = run;
    const struct lk_vae *vae = &r->m->vae;
    struct lk_arena *arena = &r->walk.dev->arena;
    struct lk_cost before;
    LK_TRY(lk_walk_begin(&r->walk, "vae_decode", &before));
    const size_t mark = lk_arena_mark(arena);
    struct lk_tensor latents, decoded, bytes;
    LK_TRY(LK_NEW(arena, &latents, r->walk.dtype, r->h, r->w, vae->config.latent_channels));
    LK_TRY(LK_NEW(arena, &decoded, r->walk.dtype, r->height, r->width, 3));
    LK_TRY(LK_NEW(arena, &bytes, LK_U8, r->height, r->width, 3));
    struct lk_tensor rows = LK_VIEW(&latents, r->h * r->w, vae->config.latent_channels);
    LK_TRY(lk_walk_give_back(&r->walk, r->walk.final, &rows));
    struct lk_channel_affine scale = {.y = &rows, .x = &rows, .mean = &vae->shift, .std = &vae->scaling};
    scale.inverse_std = true;
    LK_TRY(lk_channel_affine(r->walk.dev, &scale));
    LK_TRY(lk_trace(r->walk.dev, &latents, "vae.decode.input"));
    LK_TRY(lk_vae_decode(r->walk.dev, vae, &latents, &decoded));
    LK_TRY(lk_walk_decoded(&r->walk, &decoded, &bytes, "image"));
    LK_TRY(lk_walk_download(&r->walk, &bytes));
    lk_arena_release(arena, mark);
    lk_walk_note(&r->walk, "vae_decode", &vae->totals, 1, &before);
    return LK_OK;
}

static void describe(const void *run, struct lk_plan *out) {
    const struct run *r = run;
    out->width = r->width;
    out->height = r->height;
    out->multiple = r->multiple;
    out->n_tokens = r->h * r->w;
}

static void end(void *run) {
    struct run *r = run;
    lk_free(r->host);
    lk_sega_free(&r->sega);
}

static int forwards(const void *run) {
    const struct run *r = run;
    return r->guided ? r->n_branches : 1;
}

const struct lk_stages lk_sd_stages = {
    .run_bytes = sizeof(struct run),
    .begin = begin,
    .encode = encode,
    .prepare = prepare,
    .predict = predict,
    .advance = advance,
    .forwards = forwards,
    .decode = decode,
    .describe = describe,
    .end = end,
};
