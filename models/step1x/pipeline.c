/* Step1X-Edit: one edit, prompt and source to an image. */
#include "engine/base/alloc.h"
#include "engine/image/resize_torch.h"
#include "models/common/cache.h"
#include "models/common/mask.h"
#include "models/schedule.h"
#include "models/step1x/run.h"
#include "models/step1x/sizes.h"

#define LIMIT_POWER 0.4f
/* Guidance is limited above this timestep of 1000, which is at every step of usual schedules. */
#define LIMIT_TIMESTEP 0.93

/* An edit has its source's size: another one asked for is refused. */
static enum lk_code check_sides(const struct lk_request *q, const struct lk_image *source) {
    if ((q->width && q->width != source->width) || (q->height && q->height != source->height))
        return lk_fail(LK_E_USAGE,
                       "width, height: Step1X-Edit gives an edit its source's size, %dx%d, got %dx%d; leave them out",
                       source->width, source->height, q->width, q->height);
    return LK_OK;
}

/* Sizes of pictures and latents, before anything is computed. */
static enum lk_code measure(struct lk_step1x_run *r) {
    const struct lk_request *q = r->walk.request;
    int multiple;
    r->factor = lk_vae_scale_factor(&r->m->vae.config);
    multiple = 2 * r->factor;
    if (q->size_level < multiple || q->size_level > 8192)
        return lk_fail(LK_E_USAGE, "size_level: expected %d to 8192, got %d", multiple, q->size_level);
    if (r->source) {
        LK_TRY(check_sides(q, r->source));
        r->out_width = r->source->width;
        r->out_height = r->source->height;
        LK_TRY(lk_step1x_size(q->size_level, multiple, r->out_width, r->out_height, &r->width, &r->height));
        r->walk.sizes[0].width = r->width;
        r->walk.sizes[0].height = r->height;
    } else {
        r->out_width = q->width ? q->width : q->size_level;
        r->out_height = q->height ? q->height : q->size_level;
        r->width = r->out_width / multiple * multiple;
        r->height = r->out_height / multiple * multiple;
    }
    if (!r->width || !r->height)
        return lk_fail(LK_E_USAGE, "output size: expected at least %d pixels a side, got %dx%d", multiple, r->out_width,
                       r->out_height);
    r->n_noise = (int64_t)(r->width / multiple) * (r->height / multiple);
    r->walk.columns = r->width / multiple;
    r->n_img = r->source ? 2 * r->n_noise : r->n_noise;
    r->seen_width = r->source ? r->width : q->size_level;
    r->seen_height = r->source ? r->height : q->size_level;
    return lk_step1x_vision_rows(r->m, r->source, r->seen_width, r->seen_height, NULL, &r->picture);
}

/* The source as the VAE sees it, in the compute dtype; not the picture that the vision tower gets, which is resized
 * otherwise. */
static enum lk_code upload_pixels(struct lk_step1x_run *r, const struct lk_tensor *pixels) {
    size_t mark = lk_arena_mark(&r->walk.dev->arena);
    struct lk_tensor staging;
    LK_TRY(LK_NEW(&r->walk.dev->arena, &staging, LK_F32, r->height, r->width, 3));
    if (!lk_walk_planning(&r->walk)) {
        struct lk_image rgb = {0};
        float *values = lk_malloc(lk_tensor_bytes(&staging));
        enum lk_code rc = values ? LK_OK : lk_fail(LK_E_NOMEM, "source image: out of memory");
        if (!rc) rc = lk_image_to_rgb(&rgb, r->source);
        if (!rc) rc = lk_image_resize_torch_bilinear_f32(values, &rgb, r->width, r->height);
        if (!rc) rc = lk_upload(r->walk.dev, &staging, values);
        lk_image_free(&rgb);
        lk_free(values);
        if (rc) return rc;
    }
    LK_TRY(lk_copy(r->walk.dev, &(struct lk_copy){.y = pixels, .x = &staging}));
    lk_arena_release(&r->walk.dev->arena, mark);
    return LK_OK;
}

/* (z - shift) * scaling, or z / scaling + shift. */
static enum lk_code scale_latents(const struct lk_step1x_run *r, const struct lk_tensor *latents, bool normalize) {
    struct lk_tensor rows = LK_VIEW(latents, latents->shape[0] * latents->shape[1], latents->shape[2]);
    struct lk_channel_affine op = {.y = &rows, .x = &rows, .mean = &r->m->vae.shift, .std = &r->m->vae.scaling};
    op.normalize = normalize;
    op.inverse_std = true;
    return lk_channel_affine(r->walk.dev, &op);
}

static enum lk_code new_latents(const struct lk_step1x_run *r, struct lk_tensor *latents, int64_t multiple) {
    return LK_NEW(&r->walk.dev->arena, latents, r->walk.dtype, r->height / r->factor, r->width / r->factor,
                  multiple * r->m->vae.config.latent_channels);
}

/* Mean and logarithm of the variance of the source's latents. */
static enum lk_code encode_moments(void *run, int i, const char *key) {
    struct lk_step1x_run *r = run;
    struct lk_device *dev = r->walk.dev;
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor pixels, moments;
    LK_TRY(new_latents(r, &moments, 2));
    LK_TRY(LK_NEW(&dev->arena, &pixels, r->walk.dtype, r->height, r->width, 3));
    LK_TRY(upload_pixels(r, &pixels));
    LK_TRY(lk_trace(dev, &pixels, "reference.0.pixels"));
    LK_TRY(lk_vae_encode_moments(dev, &r->m->vae, &pixels, &moments));
    LK_TRY(lk_trace(dev, &moments, "reference.0.moments"));
    LK_TRY(lk_walk_check_finite(&r->walk, &moments, "VAE encode", -1));
    LK_TRY(lk_walk_keep(&r->walk, key, &moments, &r->walk.references[i]));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

/* A sample of the source's posterior, packed, in the last rows of x. */
static enum lk_code place_source(struct lk_step1x_run *r) {
    struct lk_device *dev = r->walk.dev;
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor moments, noise, z, tokens = lk_tensor_rows(&r->x, r->n_noise, r->n_img - r->n_noise);
    if (!r->source) return LK_OK;
    LK_TRY(new_latents(r, &moments, 2));
    LK_TRY(new_latents(r, &noise, 1));
    LK_TRY(new_latents(r, &z, 1));
    LK_TRY(lk_walk_give_back(&r->walk, r->walk.references[0], &moments));
    LK_TRY(lk_walk_noise(&r->walk, &noise, false));
    LK_TRY(lk_trace(dev, &noise, "posterior_noise.0"));
    LK_TRY(lk_posterior_sample(dev, &(struct lk_posterior_sample){.z = &z, .moments = &moments, .noise = &noise}));
    LK_TRY(scale_latents(r, &z, true));
    LK_TRY(lk_pack_latents(dev, &(struct lk_pack_latents){.tokens = &tokens, .latents = &z}));
    LK_TRY(lk_walk_check_finite(&r->walk, &tokens, "VAE encode", -1));
    lk_arena_release(&dev->arena, mark);
    return lk_trace(dev, &tokens, "reference.0.latents");
}

/* Drawn as the VAE's latents, after the posterior's noise. */
static enum lk_code make_noise(struct lk_step1x_run *r) {
    size_t mark = lk_arena_mark(&r->walk.dev->arena);
    struct lk_tensor noise, *tokens = &r->walk.latents;
    LK_TRY(new_latents(r, &noise, 1));
    LK_TRY(lk_walk_noise(&r->walk, &noise, true));
    LK_TRY(lk_pack_latents(r->walk.dev, &(struct lk_pack_latents){.tokens = tokens, .latents = &noise}));
    lk_arena_release(&r->walk.dev->arena, mark);
    return lk_trace(r->walk.dev, tokens, "noise");
}

/* What lives through the steps. */
static enum lk_code allocate(struct lk_step1x_run *r) {
    const struct lk_step1x_transformer_config *c = &r->m->transformer.config;
    struct lk_arena *arena = &r->walk.dev->arena;
    enum lk_dtype dtype = r->walk.dtype;
    LK_TRY(LK_NEW(arena, &r->x, dtype, r->n_img, c->in_channels));
    LK_TRY(LK_NEW(arena, &r->walk.velocity, dtype, r->n_noise, c->out_channels));
    LK_TRY(LK_NEW(arena, &r->uncond_velocity, dtype, r->n_noise, c->out_channels));
    for (int i = 0; i < r->n_branches; i++) {
        struct lk_step1x_branch *b = &r->branches[i];
        LK_TRY(LK_NEW(arena, &b->conditioning.hidden, dtype, b->n_txt, r->m->text_config.hidden_size));
        LK_TRY(LK_NEW(arena, &b->conditioning.embeds, dtype, b->n_txt, r->m->text_config.hidden_size));
        LK_TRY(LK_NEW(arena, &b->conditioning.cos, LK_F32, b->n_txt + r->n_img, c->attention_head_dim / 2));
        LK_TRY(LK_NEW(arena, &b->conditioning.sin, LK_F32, b->n_txt + r->n_img, c->attention_head_dim / 2));
        b->conditioning.quoted = b->any_quoted ? b->quoted + LK_STEP1X_PREFIX_TOKENS : NULL;
    }
    r->walk.latents = lk_tensor_rows(&r->x, 0, r->n_noise);
    return LK_OK;
}

static enum lk_code look_ahead(struct lk_step1x_run *r) {
    for (int i = 0; i < r->n_branches; i++) {
        struct lk_step1x_conditioning *c = &r->branches[i].conditioning;
        LK_TRY(lk_step1x_look_ahead(r->walk.dev, &r->m->transformer, &c->hidden, r->walk.timesteps,
                                    lk_walk_calls(&r->walk), r->branches[i].name, &c->ahead));
    }
    return LK_OK;
}

static enum lk_code prepare_mask(struct lk_step1x_run *r) {
    if (!r->walk.request->mask) return LK_OK;
    const struct lk_tensor rows = lk_tensor_rows(&r->x, r->n_noise, r->n_img - r->n_noise);
    const struct lk_mask_window window = {r->width, r->height, 0, 0, r->width, r->height};
    return lk_mask_prepare(&r->walk, &rows, &window, r->width, r->height, r->factor, 2 * r->factor);
}

static enum lk_code prepare(void *const *runs, int k) {
    struct lk_step1x_run *r = runs[k];
    struct lk_flow_match_config scheduler;
    LK_TRY(allocate(r));
    LK_TRY(lk_step1x_place_prompts(r));
    LK_TRY(place_source(r));
    LK_TRY(lk_step1x_make_rope(r));
    LK_TRY(lk_request_scheduler(r->walk.request, &r->m->scheduler, &scheduler));
    LK_TRY(lk_walk_schedule(&r->walk, &scheduler, lk_flow_match_mu(&scheduler, r->n_noise)));
    LK_TRY(look_ahead(r));
    if (r->region.on) LK_TRY(lk_step1x_region_prepare(r));
    const struct lk_step1x_transformer_config *c = &r->m->transformer.config;
    for (int b = 0; b < r->n_branches; b++)
        LK_TRY(lk_cache_prepare(&r->walk, b, r->n_branches,
                                &(struct lk_cache_sizes){r->branches[b].conditioning.hidden.shape[0],
                                                         r->n_img,
                                                         r->n_noise,
                                                         c->dim,
                                                         {c->num_layers, c->num_single_layers}}));
    LK_TRY(make_noise(r));
    return prepare_mask(r);
}

static struct lk_step1x_pass pass(const struct lk_step1x_run *r, int branch, int i) {
    const struct lk_step1x_branch *b = &r->branches[branch];
    return (struct lk_step1x_pass){.x = &r->x,
                                   .conditioning = &b->conditioning,
                                   .timestep_1000 = r->walk.timesteps[i],
                                   .step = i,
                                   .branch = b->name,
                                   .slice_rows = lk_walk_slice_rows(&r->walk),
                                   .velocity = branch ? &r->uncond_velocity : &r->walk.velocity,
                                   .cache = lk_walk_cache(&r->walk, branch)};
}

/* Of both predictions one, in place of the first. */
static enum lk_code guide(const struct lk_step1x_run *r, int i) {
    const struct lk_tensor *cond = &r->walk.velocity, *uncond = &r->uncond_velocity;
    for (int k = 0; k < r->n_branches; k++)
        LK_TRY(lk_trace(r->walk.dev, k ? uncond : cond, "step.%d.%s.velocity", i, r->branches[k].name));
    if (r->n_branches < 2) return LK_OK;
    struct lk_guidance op = {.y = cond, .cond = cond, .uncond = uncond, .kind = LK_GUIDANCE_LIMIT};
    op.scale = (float)r->walk.request->true_cfg_scale;
    /* A power of 0 limits nothing. */
    op.power = (double)r->walk.timesteps[i] > LIMIT_TIMESTEP ? LIMIT_POWER : 0.0f;
    return lk_guidance(r->walk.dev, &op);
}

/* What the passes of edited tokens cost where these are all. */
static enum lk_code plan_region(struct lk_step1x_run *r) {
    struct lk_cost before = r->walk.dev->cost;
    int n_whole, n_part, longest = lk_step1x_longest(r) == &r->branches[1];
    lk_step1x_region_count(r, &n_whole, &n_part);
    lk_step1x_region_all(r);
    struct lk_step1x_pass in = pass(r, longest, 0);
    LK_TRY(lk_step1x_transformer_forward(r->walk.dev, &r->m->transformer, &in, 1));
    lk_walk_note(&r->walk, "region", NULL, n_part * r->n_branches, &before);
    r->walk.dev->cost = before;
    return LK_OK;
}

/* The velocities of step i: of both prompts where there are two, combined. */
static enum lk_code predict(void *const *runs, int n, int i) {
    const struct lk_step1x_run *first = runs[0];
    struct lk_device *dev = first->walk.dev;
    struct lk_step1x_pass in[LK_MAX_PASSES] = {0};
    int n_passes = 0;
    for (int k = 0; k < n; k++) {
        struct lk_step1x_run *r = runs[k];
        if (r->region.on) LK_TRY(lk_step1x_region_begin(r, i));
        for (int j = 0; j < r->n_branches && !r->region.idle; j++) in[n_passes++] = pass(r, j, i);
    }
    if (n_passes) LK_TRY(lk_step1x_transformer_forward(dev, &first->m->transformer, in, n_passes));
    for (int k = 0; k < n; k++) {
        struct lk_step1x_run *r = runs[k];
        if (!r->region.idle) LK_TRY(guide(r, i));
        if (r->region.on) LK_TRY(lk_step1x_region_end(r, i));
    }
    return first->region.on && lk_walk_planning(&first->walk) ? plan_region(runs[0]) : LK_OK;
}

/* The decoded picture in the source's size, by Pillow's bicubic, as the reference gives it back. */
static enum lk_code finish_image(struct lk_step1x_run *r, const struct lk_tensor *bytes) {
    struct lk_device *dev = r->walk.dev;
    struct lk_tensor final;
    LK_TRY(LK_NEW(&dev->arena, &final, LK_U8, r->out_height, r->out_width, 3)); /* for the trace */
    if (lk_walk_planning(&r->walk)) return LK_OK;
    struct lk_image *image = &r->walk.result->image;
    LK_TRY(lk_walk_download(&r->walk, bytes));
    if (image->width != r->out_width || image->height != r->out_height) {
        struct lk_image resized = {0};
        LK_TRY(lk_image_resize(&resized, image, r->out_width, r->out_height, LK_RESAMPLE_BICUBIC));
        lk_image_free(image);
        *image = resized;
    }
    if (!dev->trace) return LK_OK;
    LK_TRY(lk_upload(dev, &final, image->pixels));
    return lk_trace(dev, &final, "image");
}

static enum lk_code decode(void *run) {
    struct lk_step1x_run *r = run;
    const struct lk_vae *vae = &r->m->vae;
    struct lk_device *dev = r->walk.dev;
    struct lk_cost before;
    LK_TRY(lk_walk_begin(&r->walk, "vae_decode", &before));
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor latents, decoded, bytes, tokens;
    LK_TRY(LK_NEW(&dev->arena, &tokens, r->walk.dtype, r->n_noise, r->m->transformer.config.in_channels));
    LK_TRY(lk_walk_give_back(&r->walk, r->walk.final, &tokens));
    LK_TRY(LK_NEW(&dev->arena, &decoded, r->walk.dtype, r->height, r->width, 3));
    LK_TRY(LK_NEW(&dev->arena, &bytes, LK_U8, r->height, r->width, 3));
    LK_TRY(new_latents(r, &latents, 1));
    LK_TRY(lk_pack_latents(dev, &(struct lk_pack_latents){.tokens = &tokens, .latents = &latents, .inverse = true}));
    LK_TRY(scale_latents(r, &latents, false));
    LK_TRY(lk_trace(dev, &latents, "vae.decode.input"));
    LK_TRY(lk_vae_decode(dev, vae, &latents, &decoded));
    LK_TRY(lk_walk_decoded(&r->walk, &decoded, &bytes, "image.unresized"));
    LK_TRY(finish_image(r, &bytes));
    lk_arena_release(&dev->arena, mark);
    lk_walk_note(&r->walk, "vae_decode", &vae->totals, 1, &before);
    return LK_OK;
}

static enum lk_code begin(void *run, struct lk_pipeline *pipeline) {
    struct lk_step1x_run *r = run;
    const struct lk_request *q = r->walk.request;
    if (q->n_images > 1)
        return lk_fail(LK_E_USAGE, "reference images: Step1X-Edit edits one image, got %d", q->n_images);
    r->m = pipeline->model;
    r->walk.checkpoints = r->m->checkpoints;
    r->walk.vae = &r->m->vae.totals;
    r->source = q->n_images ? q->images : NULL;
    LK_TRY(measure(r));
    LK_TRY(lk_step1x_prepare_prompts(r, q->prompt || !r->walk.result ? q->prompt : ""));
    return lk_step1x_region_check(r);
}

static void end(void *run) {
    struct lk_step1x_run *r = run;
    for (int i = 0; i < 2; i++) {
        lk_free(r->branches[i].ids);
        lk_free(r->branches[i].quoted);
    }
    lk_free(r->region.order);
}

static void describe(const void *run, struct lk_plan *out) {
    const struct lk_step1x_run *r = run;
    out->width = r->out_width;
    out->height = r->out_height;
    out->multiple = 1;
    out->n_tokens = lk_step1x_longest(r)->n_txt + r->n_img;
}

static int forwards(const void *run) { return ((const struct lk_step1x_run *)run)->n_branches; }

static int whole_steps(const void *run) {
    const struct lk_step1x_run *r = run;
    int n_whole = lk_walk_calls(&r->walk), n_part;
    if (r->region.on) lk_step1x_region_count(r, &n_whole, &n_part);
    return n_whole;
}

const struct lk_stages lk_step1x_stages = {
    .run_bytes = sizeof(struct lk_step1x_run),
    .begin = begin,
    .see = lk_step1x_see,
    .encode = lk_step1x_encode_prompts,
    .encode_reference = encode_moments,
    .prepare = prepare,
    .predict = predict,
    .forwards = forwards,
    .whole_steps = whole_steps,
    .decode = decode,
    .describe = describe,
    .end = end,
};

enum lk_code lk_step1x_edit_once(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                                 const struct lk_step1x_edit *edit, struct lk_result *result) {
    struct lk_request once = *request;
    struct lk_queued *job = lk_calloc(1, sizeof *job);
    if (!job) return lk_fail(LK_E_NOMEM, "edit: out of memory");
    once.images = edit->source;
    once.n_images = edit->source != NULL;
    once.prompt = edit->prompt;
    job->request = &once;
    job->rng = edit->rng;
    enum lk_code rc = lk_stages_run(&lk_step1x_stages, pipeline, dev,
                                    &(struct lk_queue){.jobs = &job, .n_jobs = 1, .jobs_per_visit = 1});
    if (!rc) rc = lk_error_set(&job->error);
    *result = job->result;
    lk_free(job);
    return rc;
}
