/* FLUX.2-dev: prompt and references to an image. One walk over the stages serves planning and running: on the plan
 * device nothing is computed, pixels and token ids are not looked at, and one step stands for all. */
#include <stdio.h>
#include <string.h>

#include "engine/alloc.h"
#include "engine/bf16.h"
#include "engine/rng.h"
#include "engine/rope_table.h"
#include "models/flux2/flux2.h"
#include "weights/mapped_file.h"
#include "weights/verify.h"

#define DEFAULT_LATENT_SIDE 128

struct run {
    struct lk_pipeline *pipeline;
    struct lk_flux2 *m;
    struct lk_device *dev;
    const struct lk_request *request;
    enum lk_dtype dtype;
    int32_t *ids; /* the prompt's, n_real of them; NULL when planning */
    int64_t n_pad, n_real;
    struct lk_flux2_reference_size references[LK_MAX_REFERENCES];
    int64_t reference_tokens[LK_MAX_REFERENCES], first_token[LK_MAX_REFERENCES];
    int width, height, multiple; /* of the output; pixels a token's side */
    int64_t n_noise, n_img;
    float *sigmas, *timesteps; /* [LK_MAX_STEPS + 1] */
    struct lk_tensor x, velocity;
    struct lk_flux2_conditioning conditioning;
    struct lk_plan *plan; /* stages are noted here */
    struct lk_result *result;
};

static bool planning(const struct run *r) { return r->dev->kind == LK_DEVICE_PLAN; }

/* Sizes of everything, before anything is computed. */
static enum lk_code measure(struct run *r) {
    const struct lk_request *q = r->request;
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
    r->n_img = r->n_noise;
    for (int i = 0; i < q->n_images; i++) {
        r->first_token[i] = r->n_img;
        r->n_img += r->reference_tokens[i];
    }
    return LK_OK;
}

/* What lives from the first stage to the last. */
static enum lk_code allocate(struct run *r) {
    const struct lk_flux2_transformer_config *c = &r->m->transformer.config;
    struct lk_arena *arena = &r->dev->arena;
    int64_t n_txt = r->n_pad + r->n_real;
    LK_TRY(LK_NEW(arena, &r->x, r->dtype, r->n_img, c->in_channels));
    LK_TRY(LK_NEW(arena, &r->velocity, r->dtype, r->n_noise, c->out_channels));
    LK_TRY(LK_NEW(arena, &r->conditioning.context, r->dtype, n_txt, c->dim));
    LK_TRY(LK_NEW(arena, &r->conditioning.cos, LK_F32, n_txt + r->n_img, c->attention_head_dim / 2));
    return LK_NEW(arena, &r->conditioning.sin, LK_F32, n_txt + r->n_img, c->attention_head_dim / 2);
}

static void note_stage(struct run *r, const char *name, const struct lk_bind_totals *totals, int calls,
                       const struct lk_cost *before) {
    if (!r->plan) return;
    struct lk_plan_stage *s = &r->plan->stages[r->plan->n_stages++];
    *s = (struct lk_plan_stage){.name = name, .parameters = totals->parameters, .weight_bytes = totals->weight_bytes};
    s->flops = r->dev->cost.flops - before->flops;
    s->bytes = r->dev->cost.bytes - before->bytes;
    s->peak_bytes = r->dev->arena.peak;
    s->calls = calls;
    if (r->dev->arena.peak > r->plan->arena_bytes) r->plan->arena_bytes = r->dev->arena.peak;
}

/* A stage begins: peak memory is measured afresh, the caller is told. */
static enum lk_code begin_stage(struct run *r, const char *name, struct lk_cost *before) {
    *before = r->dev->cost;
    if (r->result && r->dev->arena.peak > r->result->peak_bytes) r->result->peak_bytes = r->dev->arena.peak;
    r->dev->arena.peak = r->dev->arena.used;
    if (planning(r) || !r->request->progress) return LK_OK;
    return r->request->progress(r->request->progress_context, name, 0, r->request->num_inference_steps);
}

static enum lk_code check_finite(const struct run *r, const struct lk_tensor *t, const char *stage, int step) {
    int64_t n = 0;
    LK_TRY(lk_nonfinite(r->dev, &(struct lk_nonfinite){.x = t, .count = &n}));
    LK_TRY(lk_mapped_check(NULL));
    if (!n) return LK_OK;
    char at[32] = "";
    if (step >= 0) snprintf(at, sizeof at, ", step %d", step + 1);
    return lk_fail(
        LK_E_NONFINITE,
        "%s%s: %lld values are NaN or Inf; the weights or the dtype are at fault: run `verify`, try --dtype f32", stage,
        at, (long long)n);
}

/* Shows host values to the trace. */
static enum lk_code trace_host(const struct run *r, const char *name, const void *values, enum lk_dtype dtype,
                               int64_t n) {
    if (!r->dev->trace) return LK_OK;
    size_t mark = lk_arena_mark(&r->dev->arena);
    struct lk_tensor t;
    LK_TRY(LK_NEW(&r->dev->arena, &t, dtype, n));
    LK_TRY(lk_upload(r->dev, &t, values));
    LK_TRY(lk_trace(r->dev, &t, "%s", name));
    lk_arena_release(&r->dev->arena, mark);
    return LK_OK;
}

/* Left padding: the pad id once (all pad rows are alike), then the prompt's ids. */
static enum lk_code upload_ids(const struct run *r, const struct lk_tensor *ids) {
    if (planning(r)) return LK_OK;
    int64_t n = r->n_pad + r->n_real;
    int32_t *padded = lk_malloc((size_t)n * sizeof *padded);
    if (!padded) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    for (int64_t i = 0; i < r->n_pad; i++) padded[i] = r->m->pad_id;
    memcpy(padded + r->n_pad, r->ids, (size_t)r->n_real * sizeof *padded);
    enum lk_code rc = trace_host(r, "text_encoder.ids", padded, LK_I32, n);
    if (!rc) rc = lk_upload(r->dev, ids, padded + (r->n_pad ? r->n_pad - 1 : 0));
    lk_free(padded);
    return rc;
}

static enum lk_code encode_text(struct run *r) {
    struct lk_cost before;
    struct lk_arena *arena = &r->dev->arena;
    LK_TRY(begin_stage(r, "text_encoder", &before));
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor ids, embeds;
    LK_TRY(LK_NEW(arena, &embeds, r->dtype, r->n_pad + r->n_real, r->m->transformer.config.joint_attention_dim));
    LK_TRY(LK_NEW(arena, &ids, LK_I32, r->n_real + (r->n_pad > 0)));
    LK_TRY(upload_ids(r, &ids));
    LK_TRY(lk_mistral_hidden_states(r->dev, &r->m->text, &ids, r->n_pad, r->request->text_encoder_out_layers,
                                    r->request->n_text_encoder_out_layers, &embeds));
    LK_TRY(check_finite(r, &embeds, "text encoder", -1));
    LK_TRY(lk_trace(r->dev, &embeds, "prompt_embeds"));
    note_stage(r, "text_encoder", &r->m->text.totals, 1, &before);
    LK_TRY(lk_flux2_embed_context(r->dev, &r->m->transformer, &embeds, &r->conditioning.context));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* The image as u8 on the device, in [-1, 1] in `pixels`. */
static enum lk_code upload_pixels(struct run *r, int i, const struct lk_tensor *pixels) {
    size_t mark = lk_arena_mark(&r->dev->arena);
    struct lk_tensor bytes;
    LK_TRY(LK_NEW(&r->dev->arena, &bytes, LK_U8, pixels->shape[0], pixels->shape[1], 3));
    if (!planning(r)) {
        struct lk_image rgb;
        LK_TRY(lk_flux2_prepare_reference(&r->request->images[i], &r->references[i], &rgb));
        enum lk_code rc = lk_upload(r->dev, &bytes, rgb.pixels);
        lk_image_free(&rgb);
        if (rc) return rc;
    }
    LK_TRY(lk_pixels(r->dev, &(struct lk_pixels){.y = pixels, .x = &bytes}));
    lk_arena_release(&r->dev->arena, mark);
    return LK_OK;
}

/* Reference i: pixels -> latents -> 2x2 packed, normalised tokens in its rows of x. */
static enum lk_code encode_reference(struct run *r, int i) {
    const struct lk_flux2_reference_size *s = &r->references[i];
    const struct lk_vae *vae = &r->m->vae;
    struct lk_arena *arena = &r->dev->arena;
    int factor = r->multiple / 2;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor pixels, mean, tokens = lk_tensor_rows(&r->x, r->first_token[i], r->reference_tokens[i]);
    LK_TRY(LK_NEW(arena, &mean, r->dtype, s->height / factor, s->width / factor, vae->config.latent_channels));
    LK_TRY(LK_NEW(arena, &pixels, r->dtype, s->height, s->width, 3));
    LK_TRY(upload_pixels(r, i, &pixels));
    LK_TRY(lk_trace(r->dev, &pixels, "reference.%d.pixels", i));
    LK_TRY(lk_vae_encode(r->dev, vae, &pixels, &mean));
    LK_TRY(lk_trace(r->dev, &mean, "reference.%d.mean", i));
    LK_TRY(lk_pack_latents(r->dev, &(struct lk_pack_latents){.tokens = &tokens, .latents = &mean}));
    struct lk_channel_affine normalize = {
        .y = &tokens, .x = &tokens, .mean = &vae->bn_mean, .std = &vae->bn_std, .normalize = true};
    LK_TRY(lk_channel_affine(r->dev, &normalize));
    LK_TRY(check_finite(r, &tokens, "VAE encode", -1));
    lk_arena_release(arena, mark);
    return lk_trace(r->dev, &tokens, "reference.%d.latents", i);
}

static enum lk_code encode_references(struct run *r) {
    struct lk_cost before;
    if (!r->request->n_images) return LK_OK;
    LK_TRY(begin_stage(r, "vae_encode", &before));
    for (int i = 0; i < r->request->n_images; i++) LK_TRY(encode_reference(r, i));
    note_stage(r, "vae_encode", &r->m->vae.totals, 1, &before);
    return LK_OK;
}

/* Fills `drawn`, [C, h, w] in the compute dtype: the caller's latents, or the generator's normals in the order torch
 * draws them. */
static void draw_noise(const struct run *r, void *drawn, size_t n) {
    struct lk_rng rng;
    lk_rng_seed(&rng, r->request->seed);
    if (r->request->latents && r->dtype == LK_BF16) {
        for (size_t i = 0; i < n; i++) ((uint16_t *)drawn)[i] = lk_f32_to_bf16(r->request->latents[i]);
    } else if (r->request->latents) {
        memcpy(drawn, r->request->latents, n * sizeof(float));
    } else if (r->dtype == LK_BF16) {
        lk_rng_normal_bf16(&rng, drawn, n);
    } else {
        lk_rng_normal_f32(&rng, drawn, n);
    }
}

/* Draws the noise, channel-major, and uploads it token-major into the first rows of x. */
static enum lk_code make_noise(struct run *r) {
    struct lk_tensor rows = lk_tensor_rows(&r->x, 0, r->n_noise);
    int64_t channels = r->x.shape[1], n = r->n_noise;
    size_t size = lk_dtype_size(r->dtype), bytes = (size_t)(n * channels) * size;
    if (planning(r)) return LK_OK;
    unsigned char *drawn = lk_malloc(2 * bytes);
    if (!drawn) return lk_fail(LK_E_NOMEM, "noise: out of memory for %zu bytes", 2 * bytes);
    unsigned char *packed = drawn + bytes;
    draw_noise(r, drawn, (size_t)(n * channels));
    lk_sha256(drawn, bytes, r->result->noise_sha256);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < n; i++)
            memcpy(packed + (size_t)(i * channels + c) * size, drawn + (size_t)(c * n + i) * size, size);
    enum lk_code rc = lk_upload(r->dev, &rows, packed);
    lk_free(drawn);
    return rc ? rc : lk_trace(r->dev, &rows, "noise");
}

/* Position ids (t, y, x, l): text (0, 0, 0, l), noise (0, y, x, 0), reference i (10 + 10 i, y, x, 0). */
static void fill_ids(const struct run *r, int32_t (*ids)[LK_FLUX2_AXES]) {
    int64_t n_txt = r->n_pad + r->n_real, k = 0;
    for (; k < n_txt; k++) memcpy(ids[k], (int32_t[]){0, 0, 0, (int32_t)k}, sizeof *ids);
    for (int i = -1; i < r->request->n_images; i++) {
        int width = (i < 0 ? r->width : r->references[i].width) / r->multiple;
        int64_t n = i < 0 ? r->n_noise : r->reference_tokens[i];
        for (int64_t j = 0; j < n; j++, k++)
            memcpy(ids[k], (int32_t[]){10 * (i + 1), (int32_t)(j / width), (int32_t)(j % width), 0}, sizeof *ids);
    }
}

static enum lk_code make_rope(const struct run *r) {
    const struct lk_flux2_transformer_config *c = &r->m->transformer.config;
    int64_t n = r->conditioning.cos.shape[0], half = c->attention_head_dim / 2;
    if (planning(r)) return LK_OK;
    float *table = lk_malloc(2 * (size_t)(n * half) * sizeof *table);
    int32_t(*ids)[LK_FLUX2_AXES] = lk_malloc((size_t)n * sizeof *ids);
    enum lk_code rc = table && ids ? LK_OK : lk_fail(LK_E_NOMEM, "rope table: out of memory");
    if (!rc) {
        fill_ids(r, ids);
        lk_rope_table(ids[0], n, c->axes_dims_rope, LK_FLUX2_AXES, c->rope_theta, table, table + n * half);
        rc = lk_upload(r->dev, &r->conditioning.cos, table);
    }
    if (!rc) rc = lk_upload(r->dev, &r->conditioning.sin, table + n * half);
    lk_free(table);
    lk_free(ids);
    return rc;
}

static enum lk_code make_schedule(struct run *r) {
    int n = r->request->num_inference_steps;
    LK_TRY(lk_flow_match_sigmas(&r->m->scheduler, n, lk_flux2_mu(r->n_noise, n), r->sigmas, r->timesteps));
    LK_TRY(trace_host(r, "sigmas", r->sigmas, LK_F32, n + 1));
    return trace_host(r, "timesteps", r->timesteps, LK_F32, n);
}

static enum lk_code denoise(struct run *r) {
    struct lk_cost before;
    int n_steps = r->request->num_inference_steps;
    struct lk_tensor latents = lk_tensor_rows(&r->x, 0, r->n_noise);
    LK_TRY(begin_stage(r, "transformer", &before));
    for (int i = 0; i < (planning(r) ? 1 : n_steps); i++) {
        LK_TRY(lk_flux2_transformer_forward(r->dev, &r->m->transformer, &r->x, &r->conditioning, r->timesteps[i],
                                            (float)r->request->guidance_scale, i, &r->velocity));
        LK_TRY(lk_trace(r->dev, &r->velocity, "step.%d.velocity", i));
        struct lk_euler_step step = {.x = &latents, .v = &r->velocity, .dt = r->sigmas[i + 1] - r->sigmas[i]};
        LK_TRY(lk_euler_step(r->dev, &step));
        LK_TRY(lk_trace(r->dev, &latents, "step.%d.latents", i));
        LK_TRY(check_finite(r, &latents, "transformer", i));
        if (!planning(r) && r->request->progress)
            LK_TRY(r->request->progress(r->request->progress_context, "transformer", i + 1, n_steps));
    }
    note_stage(r, "transformer", &r->m->transformer.totals, n_steps, &before);
    return LK_OK;
}

static enum lk_code decode(struct run *r) {
    const struct lk_vae *vae = &r->m->vae;
    struct lk_arena *arena = &r->dev->arena;
    struct lk_cost before;
    int factor = r->multiple / 2;
    LK_TRY(begin_stage(r, "vae_decode", &before));
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor latents, decoded, bytes, tokens = lk_tensor_rows(&r->x, 0, r->n_noise);
    LK_TRY(LK_NEW(arena, &decoded, r->dtype, r->height, r->width, 3));
    LK_TRY(LK_NEW(arena, &bytes, LK_U8, r->height, r->width, 3));
    LK_TRY(LK_NEW(arena, &latents, r->dtype, r->height / factor, r->width / factor, vae->config.latent_channels));
    LK_TRY(lk_channel_affine(
        r->dev, &(struct lk_channel_affine){.y = &tokens, .x = &tokens, .mean = &vae->bn_mean, .std = &vae->bn_std}));
    LK_TRY(lk_pack_latents(r->dev, &(struct lk_pack_latents){.tokens = &tokens, .latents = &latents, .inverse = true}));
    LK_TRY(lk_trace(r->dev, &latents, "vae.decode.input"));
    LK_TRY(lk_vae_decode(r->dev, vae, &latents, &decoded));
    LK_TRY(check_finite(r, &decoded, "VAE decode", -1));
    LK_TRY(lk_trace(r->dev, &decoded, "decoded"));
    LK_TRY(lk_pixels(r->dev, &(struct lk_pixels){.y = &bytes, .x = &decoded}));
    LK_TRY(lk_trace(r->dev, &bytes, "image"));
    if (r->result) {
        LK_TRY(lk_image_new(&r->result->image, r->width, r->height, 3));
        LK_TRY(lk_download(r->dev, r->result->image.pixels, &bytes));
    }
    lk_arena_release(arena, mark);
    note_stage(r, "vae_decode", &vae->totals, 1, &before);
    return LK_OK;
}

static enum lk_code walk(struct run *r) {
    LK_TRY(allocate(r));
    LK_TRY(encode_text(r));
    LK_TRY(encode_references(r));
    LK_TRY(make_noise(r));
    LK_TRY(make_rope(r));
    LK_TRY(make_schedule(r));
    LK_TRY(denoise(r));
    return decode(r);
}

/* Walks on a device that counts for `target`. */
static enum lk_code plan_walk(const struct run *real, const struct lk_device *target, struct lk_plan *plan) {
    struct run r = *real;
    struct lk_device *dev;
    LK_TRY(lk_device_plan_create(target, &dev));
    r.dev = dev;
    r.plan = plan;
    r.result = NULL;
    enum lk_code rc = walk(&r);
    lk_device_free(dev);
    return rc;
}

static enum lk_code prepare_run(struct run *r, struct lk_pipeline *pipeline, const struct lk_request *request,
                                float schedule[2][LK_MAX_STEPS + 1]) {
    *r = (struct run){.pipeline = pipeline, .m = pipeline->model, .request = request, .dtype = pipeline->compute};
    r->sigmas = schedule[0];
    r->timesteps = schedule[1];
    LK_TRY(measure(r));
    return lk_flux2_bind_text(pipeline, request);
}

enum lk_code lk_flux2_plan(struct lk_pipeline *pipeline, const struct lk_device *target,
                           const struct lk_request *request, struct lk_plan *out) {
    float schedule[2][LK_MAX_STEPS + 1];
    struct run r;
    LK_TRY(prepare_run(&r, pipeline, request, schedule));
    r.n_real = request->max_sequence_length;
    out->width = r.width;
    out->height = r.height;
    out->n_references = request->n_images;
    out->n_steps = request->num_inference_steps;
    out->n_tokens = r.n_real + r.n_img;
    return plan_walk(&r, target, out);
}

static void record(const struct run *r) {
    struct lk_result *out = r->result;
    out->width = r->width;
    out->height = r->height;
    out->n_steps = r->request->num_inference_steps;
    memcpy(out->sigmas, r->sigmas, (size_t)(out->n_steps + 1) * sizeof *out->sigmas);
    out->n_references = r->request->n_images;
    for (int i = 0; i < out->n_references; i++) {
        const struct lk_flux2_reference_size *s = &r->references[i];
        out->references[i].source_width = r->request->images[i].width;
        out->references[i].source_height = r->request->images[i].height;
        out->references[i].width = s->width;
        out->references[i].height = s->height;
        out->references[i].crop_left = s->left;
        out->references[i].crop_top = s->top;
    }
    if (r->dev->arena.peak > out->peak_bytes) out->peak_bytes = r->dev->arena.peak;
}

/* Plans with the prompt's real length, allocates what the plan says, walks. */
static enum lk_code plan_and_walk(struct run *r) {
    struct lk_plan plan = {0};
    LK_TRY(plan_walk(r, r->dev, &plan));
    LK_TRY(lk_device_prepare(r->dev, plan.arena_bytes));
    enum lk_code rc = walk(r);
    for (int i = 0; !rc && i < 3; i++) rc = lk_checkpoint_check(&r->m->checkpoints[i]);
    if (!rc) record(r);
    lk_arena_release(&r->dev->arena, 0);
    return rc;
}

enum lk_code lk_flux2_edit(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                           struct lk_result *result) {
    float schedule[2][LK_MAX_STEPS + 1];
    struct run r;
    int n_ids;
    LK_TRY(prepare_run(&r, pipeline, request, schedule));
    r.dev = dev;
    r.result = result;
    LK_TRY(
        lk_flux2_tokenize(r.m, request->prompt ? request->prompt : "", request->max_sequence_length, &r.ids, &n_ids));
    r.n_real = n_ids;
    r.n_pad = request->max_sequence_length - n_ids;
    enum lk_code rc = plan_and_walk(&r);
    lk_free(r.ids);
    return rc;
}

static void defaults(struct lk_request *request) {
    static const int out_layers[] = {10, 20, 30};
    request->num_inference_steps = 50;
    request->guidance_scale = 4.0;
    request->max_sequence_length = 512;
    request->seed = 42;
    request->n_text_encoder_out_layers = 3;
    memcpy(request->text_encoder_out_layers, out_layers, sizeof out_layers);
}

const struct lk_family lk_family_flux2 = {
    .name = "flux2-dev",
    .pipeline_class = "Flux2Pipeline",
    .open = lk_flux2_open,
    .close = lk_flux2_close,
    .weights_identity = lk_flux2_weights_identity,
    .defaults = defaults,
    .plan = lk_flux2_plan,
    .edit = lk_flux2_edit,
};
