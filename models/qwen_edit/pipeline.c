/* Qwen-Image and Qwen-Image-Edit: prompt and references to an image. */
#include "engine/base/alloc.h"
#include "models/common/cache.h"
#include "models/common/mask.h"
#include "models/qwen_edit/run.h"
#include "models/schedule.h"

static int64_t tile_rows(const struct lk_qwen_edit_run *r) {
    return r->walk.request->vae_tiling || r->walk.sparing ? r->walk.request->vae_tile_rows : 0;
}

/* Sizes of everything, before anything is computed. */
static enum lk_code measure(struct lk_qwen_edit_run *r) {
    const struct lk_request *q = r->walk.request;
    r->factor = lk_qwen_vae_scale_factor(&r->m->vae.config);
    int multiple = 2 * r->factor;
    LK_TRY(lk_qwen_edit_picture_size(r->m, q, &r->width, &r->height));
    r->grids[0] = (struct lk_qwen_grid){r->height / multiple, r->width / multiple};
    r->n_noise = (int64_t)r->grids[0].height * r->grids[0].width;
    r->walk.columns = (int)r->grids[0].width;
    r->n_img = r->n_noise;
    for (int i = 0; i < q->n_images; i++) {
        struct lk_qwen_edit_reference *s = &r->references[i];
        enum lk_code rc = lk_qwen_edit_reference_size(r->m, q, i, s);
        if (rc) return lk_fail_prefix(rc, "image %d", i + 1);
        r->walk.sizes[i].width = s->width;
        r->walk.sizes[i].height = s->height;
        r->grids[i + 1] = (struct lk_qwen_grid){s->height / multiple, s->width / multiple};
        r->n_img += (int64_t)r->grids[i + 1].height * r->grids[i + 1].width;
    }
    return LK_OK;
}

/* Between the VAE's latents [h, w, C] and those that the transformer sees: (z - mean) / std, or z / (1 / std) + mean.
 */
static enum lk_code scale_latents(const struct lk_qwen_edit_run *r, const struct lk_tensor *latents, bool normalize) {
    const struct lk_qwen_vae *vae = &r->m->vae;
    struct lk_tensor rows = LK_VIEW(latents, latents->shape[0] * latents->shape[1], latents->shape[2]);
    struct lk_channel_affine op = {.y = &rows, .x = &rows, .mean = &vae->latents_mean, .normalize = normalize};
    op.std = normalize ? &vae->latents_std : &vae->latents_inverse_std;
    op.inverse_std = !normalize;
    return lk_channel_affine(r->walk.dev, &op);
}

static enum lk_code new_latents(const struct lk_qwen_edit_run *r, struct lk_tensor *latents, int width, int height) {
    return LK_NEW(&r->walk.dev->arena, latents, r->walk.dtype, height / r->factor, width / r->factor,
                  r->m->vae.config.z_dim);
}

static struct lk_tensor reference_rows(const struct lk_qwen_edit_run *r, int i) {
    int64_t first = r->n_noise;
    for (int j = 0; j < i; j++) first += (int64_t)r->grids[j + 1].height * r->grids[j + 1].width;
    return lk_tensor_rows(&r->x, first, (int64_t)r->grids[i + 1].height * r->grids[i + 1].width);
}

/* Reference i: pixels -> latents -> 2x2 packed tokens. */
static enum lk_code encode_reference(void *run, int i, const char *key) {
    struct lk_qwen_edit_run *r = run;
    const struct lk_qwen_edit_reference *s = &r->references[i];
    const struct lk_qwen_grid *grid = &r->grids[i + 1];
    struct lk_device *dev = r->walk.dev;
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor tokens, pixels, latents;
    struct lk_image rgb = {0};
    LK_TRY(LK_NEW(&dev->arena, &tokens, r->walk.dtype, (int64_t)grid->height * grid->width,
                  r->m->transformer.config.in_channels));
    LK_TRY(new_latents(r, &latents, s->width, s->height));
    LK_TRY(LK_NEW(&dev->arena, &pixels, r->walk.dtype, s->height, s->width, 3));
    if (!lk_walk_planning(&r->walk)) LK_TRY(lk_qwen_edit_vae_image(&r->walk.request->images[i], s, &rgb));
    LK_TRY(lk_walk_pixels(&r->walk, &rgb, &pixels));
    LK_TRY(lk_trace(dev, &pixels, "reference.%d.pixels", i));
    LK_TRY(lk_qwen_vae_encode(dev, &r->m->vae, &pixels, &latents, tile_rows(r)));
    LK_TRY(lk_trace(dev, &latents, "reference.%d.mean", i));
    LK_TRY(scale_latents(r, &latents, true));
    LK_TRY(lk_pack_latents(dev, &(struct lk_pack_latents){.tokens = &tokens, .latents = &latents}));
    LK_TRY(lk_walk_check_finite(&r->walk, &tokens, "VAE encode", -1));
    LK_TRY(lk_walk_keep(&r->walk, key, &tokens, &r->walk.references[i]));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code place_references(struct lk_qwen_edit_run *r) {
    for (int i = 0; i < r->walk.request->n_images; i++) {
        struct lk_tensor rows = reference_rows(r, i);
        LK_TRY(lk_walk_give_back(&r->walk, r->walk.references[i], &rows));
        LK_TRY(lk_trace(r->walk.dev, &rows, "reference.%d.latents", i));
    }
    return LK_OK;
}

static enum lk_code make_noise(struct lk_qwen_edit_run *r) {
    struct lk_arena *arena = &r->walk.dev->arena;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor latents, *tokens = &r->walk.latents;
    LK_TRY(new_latents(r, &latents, r->width, r->height));
    LK_TRY(lk_walk_noise(&r->walk, &latents, true));
    LK_TRY(lk_pack_latents(r->walk.dev, &(struct lk_pack_latents){.tokens = tokens, .latents = &latents}));
    lk_arena_release(arena, mark);
    return lk_trace(r->walk.dev, tokens, "noise");
}

/* What lives through the steps. */
static enum lk_code allocate(struct lk_qwen_edit_run *r) {
    const struct lk_qwen_transformer_config *c = &r->m->transformer.config;
    struct lk_arena *arena = &r->walk.dev->arena;
    LK_TRY(LK_NEW(arena, &r->x, r->walk.dtype, r->n_img, c->in_channels));
    for (int i = 0; i < r->n_branches; i++) {
        struct lk_qwen_edit_branch *b = &r->branches[i];
        LK_TRY(LK_NEW(arena, &b->velocity, r->walk.dtype, r->n_noise, 4 * c->out_channels));
        LK_TRY(LK_NEW(arena, &b->conditioning.context, r->walk.dtype, b->n_txt, c->dim));
        LK_TRY(LK_NEW(arena, &b->conditioning.cos, LK_F32, b->n_txt + r->n_img, c->attention_head_dim / 2));
        LK_TRY(LK_NEW(arena, &b->conditioning.sin, LK_F32, b->n_txt + r->n_img, c->attention_head_dim / 2));
    }
    r->walk.latents = lk_tensor_rows(&r->x, 0, r->n_noise);
    r->walk.velocity = r->branches[0].velocity;
    return LK_OK;
}

/* Branches, and jobs of a visit with equal schedules, share what is made ahead. */
static enum lk_code look_ahead(void *const *runs, int k) {
    struct lk_qwen_edit_run *r = runs[k];
    struct lk_ahead *ahead = &r->branches[0].conditioning.ahead;
    int j = 0;
    while (j < k && !lk_walk_same_schedule(&r->walk, runs[j])) j++;
    if (j < k)
        *ahead = ((const struct lk_qwen_edit_run *)runs[j])->branches[0].conditioning.ahead;
    else
        LK_TRY(lk_qwen_look_ahead(r->walk.dev, &r->m->transformer, r->walk.dtype, r->walk.timesteps,
                                  lk_walk_calls(&r->walk), ahead));
    r->branches[1].conditioning.ahead = *ahead;
    return LK_OK;
}

static enum lk_code prepare_mask(struct lk_qwen_edit_run *r) {
    const struct lk_qwen_edit_reference *s = &r->references[0];
    if (!r->walk.request->mask) return LK_OK;
    const struct lk_tensor rows = reference_rows(r, 0);
    const struct lk_mask_window window = {s->width, s->height, 0, 0, s->width, s->height};
    return lk_mask_prepare(&r->walk, &rows, &window, r->width, r->height, r->factor, 2 * r->factor);
}

static enum lk_code prepare(void *const *runs, int k) {
    struct lk_qwen_edit_run *r = runs[k];
    struct lk_flow_match_config scheduler;
    LK_TRY(lk_request_scheduler(r->walk.request, &r->m->scheduler, &scheduler));
    LK_TRY(lk_walk_schedule(&r->walk, &scheduler, lk_flow_match_mu(&scheduler, r->n_noise)));
    LK_TRY(look_ahead(runs, k));
    LK_TRY(allocate(r));
    LK_TRY(lk_qwen_edit_make_rope(r));
    LK_TRY(lk_qwen_edit_embed_contexts(r));
    LK_TRY(place_references(r));
    LK_TRY(make_noise(r));
    const struct lk_qwen_transformer_config *c = &r->m->transformer.config;
    for (int b = 0; b < r->n_branches; b++)
        LK_TRY(lk_cache_prepare(
            &r->walk, b, r->n_branches,
            &(struct lk_cache_sizes){
                r->branches[b].conditioning.context.shape[0], r->n_img, r->n_noise, c->dim, {c->num_layers}}));
    return prepare_mask(r);
}

/* Of both predictions the first branch's, in place. */
static enum lk_code guide(const struct lk_qwen_edit_run *r, int i) {
    struct lk_device *dev = r->walk.dev;
    const struct lk_tensor *cond = &r->branches[0].velocity, *uncond = &r->branches[1].velocity;
    for (int j = 0; j < r->n_branches; j++)
        LK_TRY(lk_trace(dev, &r->branches[j].velocity, "step.%d.%s.velocity", i, r->branches[j].name));
    if (r->n_branches < 2) return LK_OK;
    struct lk_guidance op = {.y = cond, .cond = cond, .uncond = uncond, .kind = LK_GUIDANCE_RESCALE};
    op.scale = (float)r->walk.request->true_cfg_scale;
    return lk_guidance(dev, &op);
}

static struct lk_qwen_pass pass(const struct lk_qwen_edit_run *r, const struct lk_qwen_edit_branch *b, int i) {
    return (struct lk_qwen_pass){&r->x,
                                 &b->conditioning,
                                 i,
                                 b->name,
                                 &b->velocity,
                                 lk_walk_slice_rows(&r->walk),
                                 lk_walk_cache(&r->walk, (int)(b - r->branches))};
}

/* The velocities of step i in the first branches'. */
static enum lk_code predict(void *const *runs, int n, int i) {
    const struct lk_qwen_edit_run *first = runs[0];
    struct lk_device *dev = first->walk.dev;
    struct lk_qwen_pass in[LK_MAX_PASSES] = {0};
    int n_passes = 0;
    for (int k = 0; k < n; k++) {
        const struct lk_qwen_edit_run *r = runs[k];
        for (int j = 0; j < r->n_branches; j++) in[n_passes++] = pass(r, &r->branches[j], i);
    }
    LK_TRY(lk_qwen_transformer_forward(dev, &first->m->transformer, in, n_passes));
    for (int k = 0; k < n; k++) LK_TRY(guide(runs[k], i));
    return LK_OK;
}

static enum lk_code decode(void *run) {
    struct lk_qwen_edit_run *r = run;
    struct lk_device *dev = r->walk.dev;
    struct lk_cost before;
    LK_TRY(lk_walk_begin(&r->walk, "vae_decode", &before));
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor latents, decoded, bytes, tokens;
    LK_TRY(LK_NEW(&dev->arena, &tokens, r->walk.dtype, r->n_noise, r->m->transformer.config.in_channels));
    LK_TRY(lk_walk_give_back(&r->walk, r->walk.final, &tokens));
    LK_TRY(LK_NEW(&dev->arena, &decoded, r->walk.dtype, r->height, r->width, 3));
    LK_TRY(LK_NEW(&dev->arena, &bytes, LK_U8, r->height, r->width, 3));
    LK_TRY(new_latents(r, &latents, r->width, r->height));
    LK_TRY(lk_pack_latents(dev, &(struct lk_pack_latents){.tokens = &tokens, .latents = &latents, .inverse = true}));
    LK_TRY(scale_latents(r, &latents, false));
    LK_TRY(lk_trace(dev, &latents, "vae.decode.input"));
    LK_TRY(lk_qwen_vae_decode(dev, &r->m->vae, &latents, &decoded, tile_rows(r)));
    LK_TRY(lk_walk_decoded(&r->walk, &decoded, &bytes, "image"));
    LK_TRY(lk_walk_download(&r->walk, &bytes));
    lk_arena_release(&dev->arena, mark);
    lk_walk_note(&r->walk, "vae_decode", &r->m->vae.totals, 1, &before);
    return LK_OK;
}

static enum lk_code check_request(const struct lk_pipeline *pipeline, const struct lk_request *q) {
    const struct lk_qwen_edit *m = pipeline->model;
    if (m->kind == LK_QWEN_IMAGE && q->n_images)
        return lk_fail(LK_E_USAGE, "reference images: %s makes images from text alone, got %d; use qwen-edit-2511",
                       pipeline->name, q->n_images);
    if (m->kind != LK_QWEN_IMAGE && !q->n_images)
        return lk_fail(LK_E_USAGE, "reference images: %s edits images, got none; give one, or use qwen-image",
                       pipeline->name);
    if (m->kind == LK_QWEN_EDIT && q->n_images > 1)
        return lk_fail(LK_E_USAGE, "reference images: %s edits one image, got %d", pipeline->name, q->n_images);
    if (q->max_sequence_length > LK_QWEN_EDIT_MAX_LENGTH)
        return lk_fail(LK_E_USAGE, "max_sequence_length: expected at most %d, got %d", LK_QWEN_EDIT_MAX_LENGTH,
                       q->max_sequence_length);
    return LK_OK;
}

static enum lk_code begin(void *run, struct lk_pipeline *pipeline) {
    struct lk_qwen_edit_run *r = run;
    r->m = pipeline->model;
    r->walk.checkpoints = r->m->checkpoints;
    r->walk.vae = &r->m->vae.totals;
    r->request = *r->walk.request;
    if (r->walk.result && !r->request.prompt) r->request.prompt = "";
    r->walk.request = &r->request;
    LK_TRY(check_request(pipeline, &r->request));
    LK_TRY(measure(r));
    return lk_qwen_edit_prepare_prompts(r);
}

static void end(void *run) {
    struct lk_qwen_edit_run *r = run;
    for (int i = 0; i < 2; i++) lk_free(r->branches[i].ids);
}

static void describe(const void *run, struct lk_plan *out) {
    const struct lk_qwen_edit_run *r = run;
    out->width = r->width;
    out->height = r->height;
    out->multiple = 2 * r->factor;
    out->n_tokens = lk_qwen_edit_longest(r)->n_txt + r->n_img;
}

static int forwards(const void *run) { return ((const struct lk_qwen_edit_run *)run)->n_branches; }

const struct lk_stages lk_qwen_edit_stages = {
    .run_bytes = sizeof(struct lk_qwen_edit_run),
    .begin = begin,
    .see = lk_qwen_edit_see,
    .encode = lk_qwen_edit_encode_prompts,
    .encode_reference = encode_reference,
    .prepare = prepare,
    .predict = predict,
    .forwards = forwards,
    .decode = decode,
    .describe = describe,
    .end = end,
};

void lk_qwen_edit_defaults(struct lk_request *request) {
    request->num_inference_steps = 40;
    request->vae_tile_rows = 256;
    request->true_cfg_scale = 4.0;
    request->negative_prompt = " ";
    request->guidance_scale = 1.0; /* not read: no released model has guidance_embeds */
    request->max_sequence_length = 512;
    request->seed = 0;
}
