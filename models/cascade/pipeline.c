/* Stable Cascade: a prompt to a picture by two diffusions in a row and one generator of noise. Steps are computed on
 * the host: a stage's latents are few. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/cascade/cascade.h"
#include "models/cascade/sampler.h"
#include "models/common/queue.h"
#include "models/parameters.h"

enum { POSITIVE, NEGATIVE, BRANCHES }; /* without guidance there is the first alone */
enum { STAGE_C, STAGE_B, STAGES };
static const char *const branch_names[] = {"positive", "negative"};

/* One of the two diffusions. */
struct diffusion {
    const struct lk_cascade_unet *unet;
    int64_t h, w, channels; /* of its latents */
    int n_steps;
    double guidance;
    float times[LK_MAX_STEPS + 1];
    struct lk_tensor clip[BRANCHES], effnet[BRANCHES], prediction, noise;
};

struct run {
    struct lk_walk walk;
    struct lk_cascade *m;
    int width, height;
    struct diffusion stages[STAGES];
    int now; /* which of them */
    int32_t ids[BRANCHES][LK_CLIP_IDS];
    int n_real[BRANCHES]; /* ids before the padding */
    struct lk_kept *embeds[BRANCHES];
    float *host[3]; /* each as many values as either stage's latents have, or a row of text; NULL when planning */
};

static int n_branches(const struct diffusion *d) { return d->guidance > 1 ? BRANCHES : 1; }

/* The negative prompt is told to either stage that has guidance. */
static bool is_told(const struct run *r, int b) {
    return b < n_branches(&r->stages[STAGE_C]) || b < n_branches(&r->stages[STAGE_B]);
}

static enum lk_code measure(struct run *r) {
    const struct lk_request *q = r->walk.request;
    r->width = q->width ? q->width : 1024;
    r->height = q->height ? q->height : 1024;
    if (r->width % LK_CASCADE_GRAIN || r->height % LK_CASCADE_GRAIN)
        return lk_fail(LK_E_USAGE, "output size: expected sides that are multiples of %d, got %dx%d", LK_CASCADE_GRAIN,
                       r->width, r->height);
    r->stages[STAGE_C] = (struct diffusion){.unet = &r->m->prior, .h = r->height / LK_CASCADE_GRAIN * 3};
    r->stages[STAGE_C].w = r->width / LK_CASCADE_GRAIN * 3;
    r->stages[STAGE_C].n_steps = q->num_inference_steps;
    r->stages[STAGE_C].guidance = q->guidance_scale;
    r->stages[STAGE_B] = (struct diffusion){.unet = &r->m->decoder, .h = r->height / 4, .w = r->width / 4};
    r->stages[STAGE_B].n_steps = q->decoder_steps;
    r->stages[STAGE_B].guidance = q->decoder_guidance;
    for (int i = 0; i < STAGES; i++) {
        struct diffusion *d = &r->stages[i];
        d->channels = d->unet->config.in_channels;
        LK_TRY(lk_cascade_times(i == STAGE_C ? "num_inference_steps" : "decoder_steps", d->n_steps,
                                r->walk.dtype == LK_BF16, d->times));
    }
    return LK_OK;
}

static enum lk_code tokenize(struct run *r) {
    const char *prompts[] = {r->walk.request->prompt, r->walk.request->negative_prompt};
    for (int b = 0; b < BRANCHES; b++) {
        int n_cut;
        if (!is_told(r, b)) continue;
        const enum lk_code rc = lk_tokenizer_encode_clip(r->m->tokenizer, &r->m->clip_ids, prompts[b] ? prompts[b] : "",
                                                         r->ids[b], &r->n_real[b], &n_cut);
        if (rc) return b == NEGATIVE ? lk_fail_prefix(rc, "negative_prompt") : rc;
        LK_TRY(lk_walk_cut(&r->walk, n_cut));
    }
    return LK_OK;
}

static enum lk_code begin(void *run, struct lk_pipeline *pipeline) {
    struct run *r = run;
    r->m = pipeline->model;
    r->walk.checkpoints = r->m->checkpoints;
    r->walk.n_checkpoints = LK_CASCADE_CHECKPOINTS;
    r->walk.vae = &r->m->vqgan.totals;
    if (r->walk.request->n_images)
        return lk_fail(LK_E_USAGE, "%s makes pictures from text alone: give no image", pipeline->name);
    LK_TRY(measure(r));
    if (!r->walk.result) return LK_OK;
    int64_t n = r->m->text.config.hidden_size;
    for (const struct diffusion *d = r->stages; d < r->stages + STAGES; d++)
        if (d->h * d->w * d->channels > n) n = d->h * d->w * d->channels;
    float *host = lk_malloc(3 * (size_t)n * sizeof *host);
    if (!host) return lk_fail(LK_E_NOMEM, "latents: out of memory");
    for (int i = 0; i < 3; i++) r->host[i] = host + i * n;
    return tokenize(r);
}

/* All that decides the embeddings of a branch; empty when planning. */
static void embeds_key(const struct run *r, int b, char key[65]) {
    key[0] = 0;
    if (!r->walk.result) return;
    lk_key_begin(key, "Stable Cascade prompt");
    lk_key_add_int(key, r->n_real[b]);
    for (int k = 0; k < LK_CLIP_IDS; k++) lk_key_add_int(key, r->ids[b][k]);
}

static enum lk_code download(const struct run *r, const struct lk_tensor *t, float *out) {
    if (lk_walk_planning(&r->walk)) return LK_OK;
    LK_TRY(lk_download(r->walk.dev, out, t));
    if (t->dtype == LK_BF16)
        for (int64_t i = lk_tensor_numel(t); i-- > 0;) out[i] = lk_bf16_to_f32(((const uint16_t *)out)[i]);
    return LK_OK;
}

/* Overwrites the values. */
static enum lk_code upload(const struct run *r, const struct lk_tensor *t, float *values) {
    if (lk_walk_planning(&r->walk)) return LK_OK;
    if (t->dtype == LK_BF16)
        for (int64_t i = 0; i < lk_tensor_numel(t); i++) ((uint16_t *)values)[i] = lk_f32_to_bf16(values[i]);
    return lk_upload(r->walk.dev, t, values);
}

static enum lk_code upload_zeros(const struct run *r, const struct lk_tensor *t) {
    if (lk_walk_planning(&r->walk)) return LK_OK;
    memset(r->host[0], 0, lk_tensor_bytes(t));
    return lk_upload(r->walk.dev, t, r->host[0]);
}

/* embeds [78, H]: the last layer's 77 rows before the final norm, and the pooled text in the beginning of one more. */
static enum lk_code encode_ids(const struct run *r, int b, const struct lk_tensor *embeds) {
    const struct lk_clip_text *text = &r->m->text;
    struct lk_device *dev = r->walk.dev;
    const size_t mark = lk_arena_mark(&dev->arena);
    const struct lk_tensor words = lk_tensor_rows(embeds, 0, LK_CLIP_IDS),
                           last = lk_tensor_rows(embeds, LK_CLIP_IDS, 1),
                           pooled = lk_tensor_cols(&last, 0, text->config.projection_dim);
    struct lk_tensor hidden, end;
    LK_TRY(LK_NEW(&dev->arena, &hidden, LK_F32, LK_CLIP_IDS, text->config.hidden_size));
    LK_TRY(LK_NEW(&dev->arena, &end, LK_F32, 1, text->config.projection_dim));
    struct lk_clip_text_pass pass = {.name = b == POSITIVE ? "text_encoder" : "negative", .n = LK_CLIP_IDS};
    pass.ids = r->walk.result ? r->ids[b] : NULL;
    pass.n_real = r->n_real[b];
    pass.layer = text->config.num_hidden_layers;
    pass.hidden = &hidden;
    pass.pooled = &end;
    LK_TRY(lk_clip_text_encode(dev, text, &pass));
    LK_TRY(upload_zeros(r, &last));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &words, .x = &hidden}));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &pooled, .x = &end}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code encode_branch(struct run *r, int b) {
    struct lk_arena *arena = &r->walk.dev->arena;
    const struct lk_request *q = r->walk.request;
    const int64_t rows = LK_CLIP_IDS + 1, width = r->m->text.config.hidden_size;
    const size_t mark = lk_arena_mark(arena);
    struct lk_cost before;
    struct lk_tensor embeds;
    char key[65];
    embeds_key(r, b, key);
    LK_TRY(
        lk_walk_find_prompt(&r->walk, key, b == POSITIVE ? q->prompt : q->negative_prompt, rows, width, &r->embeds[b]));
    if (r->embeds[b]) return LK_OK;
    LK_TRY(lk_walk_begin(&r->walk, "text_encoder", &before));
    LK_TRY(LK_NEW(arena, &embeds, r->walk.dtype, rows, width));
    if (b == POSITIVE && !lk_walk_planning(&r->walk))
        LK_TRY(lk_walk_trace_host(&r->walk, "text_encoder.ids", r->ids[b], LK_I32, LK_CLIP_IDS));
    LK_TRY(encode_ids(r, b, &embeds));
    LK_TRY(lk_walk_check_finite(&r->walk, &embeds, "text encoder", -1));
    LK_TRY(lk_walk_keep(&r->walk, key, &embeds, &r->embeds[b]));
    r->embeds[b]->prompt = true;
    r->embeds[b]->n_pad = rows; /* for embed_norm: which rows are words it cannot say, and refuses */
    lk_walk_note(&r->walk, "text_encoder", &r->m->text.totals, 1, &before);
    lk_arena_release(arena, mark);
    return LK_OK;
}

static enum lk_code encode(void *run) {
    struct run *r = run;
    for (int b = 0; b < BRANCHES; b++)
        if (is_told(r, b)) LK_TRY(encode_branch(r, b));
    return LK_OK;
}

/* What the network is told of each prompt. */
static enum lk_code condition(const struct run *r, struct diffusion *d, int b) {
    const struct lk_cascade_config *c = &d->unet->config;
    struct lk_arena *arena = &r->walk.dev->arena;
    const int64_t n = c->text_dim ? LK_CLIP_IDS : 0;
    struct lk_tensor embeds;
    LK_TRY(LK_NEW(arena, &d->clip[b], r->walk.dtype, lk_cascade_clip_rows(d->unet, n), c->conditioning_dim));
    const size_t mark = lk_arena_mark(arena);
    LK_TRY(LK_NEW(arena, &embeds, r->walk.dtype, LK_CLIP_IDS + 1, r->m->text.config.hidden_size));
    LK_TRY(lk_walk_give_back(&r->walk, r->embeds[b], &embeds));
    const struct lk_tensor words = lk_tensor_rows(&embeds, 0, LK_CLIP_IDS),
                           last = lk_tensor_rows(&embeds, LK_CLIP_IDS, 1),
                           pooled = lk_tensor_cols(&last, 0, c->pooled_dim);
    if (n) LK_TRY(lk_trace(r->walk.dev, &words, "%s.prompt_embeds", branch_names[b]));
    if (n) LK_TRY(lk_trace(r->walk.dev, &pooled, "%s.pooled", branch_names[b]));
    LK_TRY(lk_cascade_condition(r->walk.dev, d->unet, n ? &words : NULL, &pooled, &d->clip[b]));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* Stage B is told stage C's latents, enlarged; its second branch zeros. */
static enum lk_code enlarge(const struct run *r, struct diffusion *d) {
    const struct diffusion *c = &r->stages[STAGE_C];
    const int64_t patch = d->unet->config.patch_size;
    const struct lk_cascade_sizes z = {c->h, c->w, d->h / patch, d->w / patch, c->channels};
    const bool planning = lk_walk_planning(&r->walk);
    float *large = planning ? NULL : lk_malloc((size_t)(z.to_h * z.to_w * z.channels) * sizeof *large);
    enum lk_code rc = large || planning ? LK_OK : lk_fail(LK_E_NOMEM, "Stable Cascade: out of memory");
    for (int b = 0; b < n_branches(d) && !rc; b++) {
        rc = LK_NEW(&r->walk.dev->arena, &d->effnet[b], r->walk.dtype, z.to_h * z.to_w, z.channels);
        if (rc || planning) continue;
        memset(large, 0, (size_t)(z.to_h * z.to_w * z.channels) * sizeof *large);
        if (b == POSITIVE) {
            const struct lk_tensor *prior = &r->walk.final->tensor;
            for (int64_t i = 0; i < lk_tensor_numel(prior); i++)
                r->host[0][i] = prior->dtype == LK_BF16 ? lk_bf16_to_f32(((const uint16_t *)prior->data)[i])
                                                        : ((const float *)prior->data)[i];
            lk_cascade_enlarge(r->host[0], &z, large);
        }
        rc = upload(r, &d->effnet[b], large);
    }
    lk_free(large);
    return rc;
}

static enum lk_code prepare(struct run *r, int stage) {
    struct lk_walk *w = &r->walk;
    struct diffusion *d = &r->stages[stage];
    struct lk_tensor *const rows[] = {&w->latents, &w->velocity, &d->prediction, &d->noise};
    r->now = stage;
    w->n_calls = d->n_steps;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i] != &d->prediction || n_branches(d) > 1)
            LK_TRY(LK_NEW(&w->dev->arena, rows[i], w->dtype, d->h * d->w, d->channels));
    for (int b = 0; b < n_branches(d); b++) LK_TRY(condition(r, d, b));
    if (stage == STAGE_B) LK_TRY(enlarge(r, d));
    LK_TRY(lk_walk_noise(w, &w->latents, stage == STAGE_C));
    return lk_trace(w->dev, &w->latents, "%snoise", stage == STAGE_C ? "" : "decoder.");
}

static enum lk_code prepare_prior(void *const *runs, int k) {
    struct run *r = runs[k];
    struct lk_walk *w = &r->walk;
    const struct diffusion *d = &r->stages[STAGE_C];
    const size_t bytes = (size_t)(d->n_steps + 1) * sizeof *w->sigmas;
    memcpy(w->sigmas, d->times, bytes);
    memcpy(w->timesteps, d->times, bytes - sizeof *w->sigmas);
    if (w->result) w->result->n_steps = d->n_steps;
    if (w->result) memcpy(w->result->sigmas, w->sigmas, bytes);
    return prepare(r, STAGE_C);
}

static enum lk_code prepare_decoder(void *const *runs, int k) { return prepare(runs[k], STAGE_B); }

static enum lk_code predict_branch(const struct run *r, const struct diffusion *d, int b, int i,
                                   const struct lk_tensor *rows) {
    const struct lk_tensor x = LK_VIEW(&r->walk.latents, d->h, d->w, d->channels),
                           y = LK_VIEW(rows, d->h, d->w, d->channels);
    struct lk_cascade_pass pass = {.x = &x, .time = d->times[i], .clip = &d->clip[b], .y = &y};
    pass.effnet = d->unet->config.effnet_dim ? &d->effnet[b] : NULL;
    return lk_cascade_forward(r->walk.dev, d->unet, &pass);
}

static enum lk_code predict(void *const *runs, int n, int i) {
    for (int k = 0; k < n; k++) {
        struct run *r = runs[k];
        const struct diffusion *d = &r->stages[r->now];
        const struct lk_tensor *guided = &r->walk.velocity;
        LK_TRY(predict_branch(r, d, POSITIVE, i, guided));
        if (n_branches(d) < 2) continue;
        LK_TRY(predict_branch(r, d, NEGATIVE, i, &d->prediction));
        if (lk_walk_planning(&r->walk)) continue;
        LK_TRY(download(r, guided, r->host[0]));
        LK_TRY(download(r, &d->prediction, r->host[1]));
        lk_cascade_guide(r->host[0], r->host[1], (float)d->guidance, guided->dtype == LK_BF16, lk_tensor_numel(guided),
                         r->host[0]);
        LK_TRY(upload(r, guided, r->host[0]));
    }
    return LK_OK;
}

static enum lk_code advance(void *run, int i) {
    struct run *r = run;
    struct lk_walk *w = &r->walk;
    const struct diffusion *d = &r->stages[r->now];
    struct lk_cascade_step step = {r->host[0], r->host[1], r->host[2], .time = d->times[i], .next = d->times[i + 1]};
    step.n = lk_tensor_numel(&w->latents);
    step.bf16 = w->dtype == LK_BF16;
    LK_TRY(lk_walk_noise(w, &d->noise, false)); /* after the last step too: the next stage's is drawn behind it */
    if (lk_walk_planning(w)) return LK_OK;
    LK_TRY(download(r, &w->latents, r->host[0]));
    LK_TRY(download(r, &w->velocity, r->host[1]));
    LK_TRY(download(r, &d->noise, r->host[2]));
    lk_cascade_advance(&step);
    return upload(r, &w->latents, r->host[0]);
}

/* Values in [0, 1], which is not the range that lk_pixels takes. */
static enum lk_code take_picture(const struct run *r, const struct lk_tensor *decoded) {
    struct lk_image *image = &r->walk.result->image;
    const int64_t n = lk_tensor_numel(decoded);
    LK_TRY(lk_image_new(image, r->width, r->height, 3));
    float *values = lk_malloc((size_t)n * sizeof *values);
    if (!values) return lk_fail(LK_E_NOMEM, "picture: out of memory");
    const enum lk_code rc = download(r, decoded, values);
    for (int64_t i = 0; i < n && !rc; i++)
        image->pixels[i] = (uint8_t)nearbyintf(255 * fminf(fmaxf(values[i], 0), 1)); /* half to even */
    lk_free(values);
    return rc;
}

static enum lk_code decode(void *run) {
    struct run *r = run;
    const struct diffusion *b = &r->stages[STAGE_B];
    const struct lk_paella *vqgan = &r->m->vqgan;
    struct lk_arena *arena = &r->walk.dev->arena;
    struct lk_tensor latents, decoded;
    struct lk_cost before;
    LK_TRY(lk_walk_begin(&r->walk, "vae_decode", &before));
    const size_t mark = lk_arena_mark(arena);
    LK_TRY(LK_NEW(arena, &latents, r->walk.dtype, b->h, b->w, b->channels));
    LK_TRY(LK_NEW(arena, &decoded, r->walk.dtype, r->height, r->width, 3));
    LK_TRY(lk_walk_give_back(&r->walk, r->walk.final, &latents));
    LK_TRY(download(r, &latents, r->host[0]));
    for (int64_t i = 0; i < lk_tensor_numel(&latents) && !lk_walk_planning(&r->walk); i++)
        r->host[0][i] *= (float)vqgan->config.scale_factor;
    LK_TRY(upload(r, &latents, r->host[0]));
    LK_TRY(lk_paella_decode(r->walk.dev, vqgan, &latents, &decoded));
    LK_TRY(lk_walk_check_finite(&r->walk, &decoded, "VAE decode", -1));
    LK_TRY(lk_trace(r->walk.dev, &decoded, "decoded"));
    if (!lk_walk_planning(&r->walk)) LK_TRY(take_picture(r, &decoded));
    lk_arena_release(arena, mark);
    lk_walk_note(&r->walk, "vae_decode", &vqgan->totals, 1, &before);
    return LK_OK;
}

static void describe(const void *run, struct lk_plan *out) {
    const struct run *r = run;
    out->width = r->width;
    out->height = r->height;
    out->multiple = LK_CASCADE_GRAIN;
    out->n_tokens = r->stages[STAGE_C].h * r->stages[STAGE_C].w;
}

static void end(void *run) { lk_free(((struct run *)run)->host[0]); }
static int forwards_of_prior(const void *run) { return n_branches(&((const struct run *)run)->stages[STAGE_C]); }
static int forwards_of_decoder(const void *run) { return n_branches(&((const struct run *)run)->stages[STAGE_B]); }

static const struct lk_stages decoder = {
    .prepare = prepare_decoder, .predict = predict, .advance = advance, .forwards = forwards_of_decoder};

const struct lk_stages lk_cascade_stages = {
    .run_bytes = sizeof(struct run),
    .begin = begin,
    .encode = encode,
    .prepare = prepare_prior,
    .predict = predict,
    .advance = advance,
    .forwards = forwards_of_prior,
    .second = &decoder,
    .decode = decode,
    .describe = describe,
    .end = end,
};
