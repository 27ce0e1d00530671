/* FLUX.2-dev: prompt and references to an image. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/rope_table.h"
#include "models/common/cache.h"
#include "models/common/mask.h"
#include "models/common/queue.h"
#include "models/flux2/flux2.h"
#include "models/parameters.h"
#include "models/schedule.h"

#define DEFAULT_LATENT_SIDE 128

struct run {
    struct lk_walk walk;
    struct lk_flux2 *m;
    int32_t *ids; /* the prompt's, n_real of them; NULL when planning */
    int64_t n_pad, n_real;
    struct lk_flux2_reference_size references[LK_MAX_REFERENCES];
    int64_t reference_tokens[LK_MAX_REFERENCES], first_token[LK_MAX_REFERENCES];
    int width, height, multiple; /* of the output; pixels a token's side */
    int64_t n_noise, n_img;
    struct lk_kept *prompt_embeds;
    struct lk_tensor x; /* [n_img, in_channels]: noise, then the references */
    struct lk_flux2_conditioning conditioning;
};

/* Sizes of everything, before anything is computed. */
static enum lk_code measure(struct run *r) {
    const struct lk_request *q = r->walk.request;
    int factor = lk_vae_scale_factor(&r->m->vae.config);
    r->multiple = 2 * factor;
    r->width = q->width;
    r->height = q->height;
    for (int i = 0; i < q->n_images; i++) {
        struct lk_flux2_reference_size *s = &r->references[i];
        enum lk_code rc = lk_flux2_reference_size(q->images[i].width, q->images[i].height, r->multiple, s);
        if (rc) return lk_fail_prefix(rc, "image %d", i + 1);
        if (!r->width) r->width = s->width;
        if (!r->height) r->height = s->height;
        r->walk.sizes[i].width = s->width;
        r->walk.sizes[i].height = s->height;
        r->walk.sizes[i].crop_left = s->left;
        r->walk.sizes[i].crop_top = s->top;
        r->reference_tokens[i] = (int64_t)(s->width / r->multiple) * (s->height / r->multiple);
    }
    if (!r->width) r->width = DEFAULT_LATENT_SIDE * factor;
    if (!r->height) r->height = DEFAULT_LATENT_SIDE * factor;
    r->width = r->width / r->multiple * r->multiple;
    r->height = r->height / r->multiple * r->multiple;
    if (!r->width || !r->height)
        return lk_fail(LK_E_USAGE, "output size: expected at least %d pixels a side, got %dx%d", r->multiple, q->width,
                       q->height);
    r->n_noise = (int64_t)(r->width / r->multiple) * (r->height / r->multiple);
    r->walk.columns = r->width / r->multiple;
    r->n_img = r->n_noise;
    for (int i = 0; i < q->n_images; i++) {
        r->first_token[i] = r->n_img;
        r->n_img += r->reference_tokens[i];
    }
    return LK_OK;
}

/* Left padding, then the prompt's ids: [n_pad + n_real] (lk_malloc'ed), NULL when planning. */
static enum lk_code pad_ids(const struct run *r, int32_t **out) {
    int64_t n = r->n_pad + r->n_real;
    *out = NULL;
    if (lk_walk_planning(&r->walk)) return LK_OK;
    int32_t *padded = *out = lk_malloc((size_t)n * sizeof *padded);
    if (!padded) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    for (int64_t i = 0; i < r->n_pad; i++) padded[i] = r->m->pad_id;
    memcpy(padded + r->n_pad, r->ids, (size_t)r->n_real * sizeof *padded);
    return lk_walk_trace_host(&r->walk, "text_encoder.ids", padded, LK_I32, n);
}

/* All pad rows are alike: one stands for them. */
static enum lk_code encode_ids(const struct run *r, const struct lk_tensor *embeds) {
    const struct lk_request *q = r->walk.request;
    int64_t one_pad = r->n_pad > 0;
    int32_t *padded;
    enum lk_code rc = pad_ids(r, &padded);
    if (!rc)
        rc = lk_mistral_hidden_states(r->walk.dev, &r->m->text, padded ? padded + r->n_pad - one_pad : NULL,
                                      r->n_real + one_pad, r->n_pad, q->text_encoder_out_layers,
                                      q->n_text_encoder_out_layers, embeds);
    lk_free(padded);
    return rc;
}

/* All that decides the embeddings of a prompt; empty when planning without one. */
static void prompt_key(const struct run *r, char key[65]) {
    const struct lk_request *q = r->walk.request;
    key[0] = 0;
    if (!r->ids) return;
    lk_key_begin(key, "FLUX.2 prompt");
    lk_key_add_int(key, r->n_pad);
    for (int i = 0; i < q->n_text_encoder_out_layers; i++) lk_key_add_int(key, q->text_encoder_out_layers[i]);
    for (int64_t i = 0; i < r->n_real; i++) lk_key_add_int(key, r->ids[i]);
}

static enum lk_code encode_text(void *run) {
    struct run *r = run;
    struct lk_cost before;
    struct lk_arena *arena = &r->walk.dev->arena;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor embeds;
    char key[65];
    int64_t n = r->n_pad + r->n_real, width = r->m->transformer.config.joint_attention_dim;
    prompt_key(r, key);
    LK_TRY(lk_walk_find_prompt(&r->walk, key, r->walk.request->prompt, n, width, &r->prompt_embeds));
    if (r->prompt_embeds) return LK_OK;
    LK_TRY(lk_walk_begin(&r->walk, "text_encoder", &before));
    LK_TRY(LK_NEW(arena, &embeds, r->walk.dtype, n, width));
    LK_TRY(encode_ids(r, &embeds));
    LK_TRY(lk_walk_check_finite(&r->walk, &embeds, "text encoder", -1));
    LK_TRY(lk_walk_keep(&r->walk, key, &embeds, &r->prompt_embeds));
    r->prompt_embeds->prompt = true;
    r->prompt_embeds->n_pad = r->n_pad;
    lk_walk_note(&r->walk, "text_encoder", &r->m->text.totals, 1, &before);
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* The context: what the transformer makes of the prompt before the first step. */
static enum lk_code embed_context(struct run *r) {
    size_t mark = lk_arena_mark(&r->walk.dev->arena);
    struct lk_tensor embeds;
    LK_TRY(LK_NEW(&r->walk.dev->arena, &embeds, r->walk.dtype, r->n_pad + r->n_real,
                  r->m->transformer.config.joint_attention_dim));
    LK_TRY(lk_walk_give_back(&r->walk, r->prompt_embeds, &embeds));
    LK_TRY(lk_trace(r->walk.dev, &embeds, "prompt_embeds"));
    LK_TRY(lk_flux2_embed_context(r->walk.dev, &r->m->transformer, &embeds, &r->conditioning.context));
    lk_arena_release(&r->walk.dev->arena, mark);
    return LK_OK;
}

/* Reference i: pixels -> latents -> 2x2 packed, normalised tokens. */
static enum lk_code encode_reference(void *run, int i, const char *key) {
    struct run *r = run;
    const struct lk_flux2_reference_size *s = &r->references[i];
    const struct lk_vae *vae = &r->m->vae;
    struct lk_arena *arena = &r->walk.dev->arena;
    int factor = r->multiple / 2;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor tokens, pixels, mean;
    struct lk_image rgb = {0};
    LK_TRY(LK_NEW(arena, &tokens, r->walk.dtype, r->reference_tokens[i], r->m->transformer.config.in_channels));
    LK_TRY(LK_NEW(arena, &mean, r->walk.dtype, s->height / factor, s->width / factor, vae->config.latent_channels));
    LK_TRY(LK_NEW(arena, &pixels, r->walk.dtype, s->height, s->width, 3));
    if (!lk_walk_planning(&r->walk)) LK_TRY(lk_flux2_prepare_reference(&r->walk.request->images[i], s, &rgb));
    LK_TRY(lk_walk_pixels(&r->walk, &rgb, &pixels));
    LK_TRY(lk_trace(r->walk.dev, &pixels, "reference.%d.pixels", i));
    LK_TRY(lk_vae_encode(r->walk.dev, vae, &pixels, &mean));
    LK_TRY(lk_trace(r->walk.dev, &mean, "reference.%d.mean", i));
    LK_TRY(lk_pack_latents(r->walk.dev, &(struct lk_pack_latents){.tokens = &tokens, .latents = &mean}));
    struct lk_channel_affine normalize = {
        .y = &tokens, .x = &tokens, .mean = &vae->bn_mean, .std = &vae->bn_std, .normalize = true};
    LK_TRY(lk_channel_affine(r->walk.dev, &normalize));
    LK_TRY(lk_walk_check_finite(&r->walk, &tokens, "VAE encode", -1));
    LK_TRY(lk_walk_keep(&r->walk, key, &tokens, &r->walk.references[i]));
    lk_arena_release(arena, mark);
    return LK_OK;
}

static enum lk_code place_references(struct run *r) {
    for (int i = 0; i < r->walk.request->n_images; i++) {
        struct lk_tensor rows = lk_tensor_rows(&r->x, r->first_token[i], r->reference_tokens[i]);
        LK_TRY(lk_walk_give_back(&r->walk, r->walk.references[i], &rows));
        LK_TRY(lk_trace(r->walk.dev, &rows, "reference.%d.latents", i));
    }
    return LK_OK;
}

static enum lk_code make_noise(struct run *r) {
    LK_TRY(lk_walk_noise(&r->walk, &r->walk.latents, true));
    return lk_trace(r->walk.dev, &r->walk.latents, "noise");
}

/* Position ids (t, y, x, l): text (0, 0, 0, l), noise (0, y, x, 0), reference i (10 + 10 i, y, x, 0). */
static void fill_ids(const struct run *r, float (*ids)[LK_FLUX2_AXES]) {
    int64_t n_txt = r->n_pad + r->n_real, k = 0;
    for (; k < n_txt; k++) memcpy(ids[k], (float[]){0, 0, 0, (float)k}, sizeof *ids);
    for (int i = -1; i < r->walk.request->n_images; i++) {
        int width = (i < 0 ? r->width : r->references[i].width) / r->multiple;
        int64_t n = i < 0 ? r->n_noise : r->reference_tokens[i];
        for (int64_t j = 0; j < n; j++, k++)
            memcpy(ids[k], (float[]){(float)(10 * (i + 1)), (float)(j / width), (float)(j % width), 0}, sizeof *ids);
    }
}

static enum lk_code make_rope(const struct run *r) {
    const struct lk_flux2_transformer_config *c = &r->m->transformer.config;
    int64_t n = r->conditioning.cos.shape[0], half = c->attention_head_dim / 2;
    if (lk_walk_planning(&r->walk)) return LK_OK;
    float *table = lk_malloc(2 * (size_t)(n * half) * sizeof *table);
    float(*ids)[LK_FLUX2_AXES] = lk_malloc((size_t)n * sizeof *ids);
    enum lk_code rc = table && ids ? LK_OK : lk_fail(LK_E_NOMEM, "rope table: out of memory");
    if (!rc) {
        fill_ids(r, ids);
        lk_rope_table(ids[0], n, c->axes_dims_rope, LK_FLUX2_AXES, c->rope_theta, table, table + n * half);
        rc = lk_upload(r->walk.dev, &r->conditioning.cos, table);
    }
    if (!rc) rc = lk_upload(r->walk.dev, &r->conditioning.sin, table + n * half);
    lk_free(table);
    lk_free(ids);
    return rc;
}

/* What lives through the steps. */
static enum lk_code allocate(struct run *r) {
    const struct lk_flux2_transformer_config *c = &r->m->transformer.config;
    struct lk_arena *arena = &r->walk.dev->arena;
    int64_t n_txt = r->n_pad + r->n_real;
    LK_TRY(LK_NEW(arena, &r->x, r->walk.dtype, r->n_img, c->in_channels));
    LK_TRY(LK_NEW(arena, &r->walk.velocity, r->walk.dtype, r->n_noise, c->out_channels));
    LK_TRY(LK_NEW(arena, &r->conditioning.context, r->walk.dtype, n_txt, c->dim));
    LK_TRY(LK_NEW(arena, &r->conditioning.cos, LK_F32, n_txt + r->n_img, c->attention_head_dim / 2));
    r->walk.latents = lk_tensor_rows(&r->x, 0, r->n_noise);
    return LK_NEW(arena, &r->conditioning.sin, LK_F32, n_txt + r->n_img, c->attention_head_dim / 2);
}

/* Jobs of a visit with equal schedules share what is made ahead. */
static enum lk_code look_ahead(void *const *runs, int k) {
    struct run *r = runs[k];
    const struct lk_request *q = r->walk.request;
    for (int j = 0; j < k; j++) {
        const struct run *other = runs[j];
        const struct lk_request *o = other->walk.request;
        if (!lk_walk_same_schedule(&r->walk, &other->walk) || o->guidance_scale != q->guidance_scale) continue;
        r->conditioning.ahead = other->conditioning.ahead;
        return LK_OK;
    }
    return lk_flux2_look_ahead(r->walk.dev, &r->m->transformer, r->walk.dtype, r->walk.timesteps,
                               lk_walk_calls(&r->walk), (float)q->guidance_scale, &r->conditioning.ahead);
}

/* A token is kept or edited whole. */
static enum lk_code prepare_mask(struct run *r) {
    const struct lk_flux2_reference_size *s = &r->references[0];
    if (!r->walk.request->mask) return LK_OK;
    const struct lk_tensor rows = lk_tensor_rows(&r->x, r->first_token[0], r->reference_tokens[0]);
    const struct lk_mask_window window = {s->resized_width, s->resized_height, s->left, s->top, s->width, s->height};
    return lk_mask_prepare(&r->walk, &rows, &window, r->width, r->height, r->multiple, r->multiple);
}

static enum lk_code prepare(void *const *runs, int k) {
    struct run *r = runs[k];
    double mu = lk_flux2_mu(r->n_noise, r->walk.request->num_inference_steps);
    struct lk_flow_match_config scheduler;
    LK_TRY(lk_request_scheduler(r->walk.request, &r->m->scheduler, &scheduler));
    LK_TRY(lk_walk_schedule(&r->walk, &scheduler, mu));
    LK_TRY(look_ahead(runs, k));
    LK_TRY(allocate(r));
    LK_TRY(embed_context(r));
    LK_TRY(place_references(r));
    LK_TRY(make_noise(r));
    LK_TRY(prepare_mask(r));
    const struct lk_flux2_transformer_config *c = &r->m->transformer.config;
    LK_TRY(lk_cache_prepare(
        &r->walk, 0, 1,
        &(struct lk_cache_sizes){
            r->conditioning.context.shape[0], r->n_img, r->n_noise, c->dim, {c->num_layers, c->num_single_layers}}));
    return make_rope(r);
}

static enum lk_code predict(void *const *runs, int n, int i) {
    const struct run *first = runs[0];
    struct lk_flux2_pass in[LK_MAX_PASSES] = {0};
    for (int k = 0; k < n; k++) {
        const struct run *r = runs[k];
        in[k] = (struct lk_flux2_pass){
            &r->x, &r->conditioning, i, &r->walk.velocity, lk_walk_slice_rows(&r->walk), lk_walk_cache(&r->walk, 0)};
    }
    return lk_flux2_transformer_forward(first->walk.dev, &first->m->transformer, in, n);
}

static enum lk_code decode(void *run) {
    struct run *r = run;
    const struct lk_vae *vae = &r->m->vae;
    struct lk_arena *arena = &r->walk.dev->arena;
    struct lk_cost before;
    int factor = r->multiple / 2;
    LK_TRY(lk_walk_begin(&r->walk, "vae_decode", &before));
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor latents, decoded, bytes, tokens;
    LK_TRY(LK_NEW(arena, &tokens, r->walk.dtype, r->n_noise, r->m->transformer.config.in_channels));
    LK_TRY(lk_walk_give_back(&r->walk, r->walk.final, &tokens));
    LK_TRY(LK_NEW(arena, &decoded, r->walk.dtype, r->height, r->width, 3));
    LK_TRY(LK_NEW(arena, &bytes, LK_U8, r->height, r->width, 3));
    LK_TRY(LK_NEW(arena, &latents, r->walk.dtype, r->height / factor, r->width / factor, vae->config.latent_channels));
    LK_TRY(lk_channel_affine(r->walk.dev, &(struct lk_channel_affine){
                                              .y = &tokens, .x = &tokens, .mean = &vae->bn_mean, .std = &vae->bn_std}));
    LK_TRY(lk_pack_latents(r->walk.dev,
                           &(struct lk_pack_latents){.tokens = &tokens, .latents = &latents, .inverse = true}));
    LK_TRY(lk_trace(r->walk.dev, &latents, "vae.decode.input"));
    LK_TRY(lk_vae_decode(r->walk.dev, vae, &latents, &decoded));
    LK_TRY(lk_walk_decoded(&r->walk, &decoded, &bytes, "image"));
    LK_TRY(lk_walk_download(&r->walk, &bytes));
    lk_arena_release(arena, mark);
    lk_walk_note(&r->walk, "vae_decode", &vae->totals, 1, &before);
    return LK_OK;
}

double lk_flux2_mu(int64_t n_noise_tokens, int n_steps) {
    double length = (double)n_noise_tokens;
    double mu_200 = 0.00016927 * length + 0.45666666;
    if (n_noise_tokens > 4300) return mu_200;
    double mu_10 = 8.73809524e-05 * length + 1.89833333;
    double slope = (mu_200 - mu_10) / 190.0;
    double offset = mu_200 - 200.0 * slope;
    return slope * n_steps + offset;
}

static enum lk_code begin(void *run, struct lk_pipeline *pipeline) {
    struct run *r = run;
    const struct lk_request *q = r->walk.request;
    int n_ids = q->max_sequence_length;
    r->m = pipeline->model;
    r->walk.checkpoints = r->m->checkpoints;
    r->walk.vae = &r->m->vae.totals;
    LK_TRY(measure(r));
    LK_TRY(lk_flux2_bind_text(pipeline, q, r->walk.result != NULL));
    if (r->walk.result) {
        int64_t n_cut;
        LK_TRY(lk_flux2_tokenize(r->m, q->prompt ? q->prompt : "", q->max_sequence_length, &r->ids, &n_ids, &n_cut));
        LK_TRY(lk_walk_cut(&r->walk, n_cut));
    }
    r->n_real = n_ids;
    r->n_pad = q->max_sequence_length - n_ids;
    return LK_OK;
}

static void describe(const void *run, struct lk_plan *out) {
    const struct run *r = run;
    out->width = r->width;
    out->height = r->height;
    out->multiple = r->multiple;
    out->n_tokens = r->n_real + r->n_img;
}

static void end(void *run) { lk_free(((struct run *)run)->ids); }

static int forwards(const void *run) {
    (void)run;
    return 1;
}

static const struct lk_stages stages = {
    .run_bytes = sizeof(struct run),
    .begin = begin,
    .encode = encode_text,
    .encode_reference = encode_reference,
    .prepare = prepare,
    .predict = predict,
    .forwards = forwards,
    .decode = decode,
    .describe = describe,
    .end = end,
};

static void defaults(struct lk_request *request) {
    static const int out_layers[] = {10, 20, 30};
    request->num_inference_steps = 50;
    request->guidance_scale = 4.0;
    request->max_sequence_length = 512;
    request->seed = 42;
    request->n_text_encoder_out_layers = 3;
    memcpy(request->text_encoder_out_layers, out_layers, sizeof out_layers);
}

static const struct lk_tokenizer *tokenizer(const struct lk_pipeline *pipeline, int64_t *n_unseen) {
    *n_unseen = 0;
    return ((const struct lk_flux2 *)pipeline->model)->tokenizer;
}

const struct lk_family lk_family_flux2 = {
    .title = "FLUX.2",
    .bit = LK_FOR_FLUX2,
    .names = {"flux2-dev"},
    .repositories = {"black-forest-labs/FLUX.2-dev"},
    .pipeline_classes = {"Flux2Pipeline"},
    .open = lk_flux2_open,
    .close = lk_flux2_close,
    .kept = lk_flux2_kept,
    .quantized = lk_flux2_quantized,
    .checkpoints = lk_flux2_checkpoints,
    .tokenizer = tokenizer,
    .defaults = defaults,
    .stages = &stages,
};
