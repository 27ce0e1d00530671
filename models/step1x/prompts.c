/* Step1X-Edit: prompts with the source's picture to the transformer's conditioning. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/rope_table.h"
#include "models/step1x/run.h"

#define ROPE_THETA      10000.0
#define V1P1_MAX_TOKENS 640
#define V1P1_PREFIX     217

static const char default_negative_prompt_without_source[] =
    "worst quality, wrong limbs, unreasonable limbs, normal quality, low quality, low res, blurry, text, watermark, "
    "logo, banner, extra digits, cropped, jpeg artifacts, signature, username, error, sketch ,duplicate, ugly, "
    "monochrome, horror, geometry, mutation, disgusting";

static enum lk_code trace_ids(const struct lk_step1x_run *r, const struct lk_step1x_branch *b) {
    char name[64];
    if (!r->walk.dev->trace || lk_walk_planning(&r->walk)) return LK_OK;
    int32_t *quoted = lk_malloc((size_t)b->n_txt * sizeof *quoted);
    if (!quoted) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    for (int64_t i = 0; i < b->n_txt; i++) quoted[i] = b->quoted[LK_STEP1X_PREFIX_TOKENS + i];
    snprintf(name, sizeof name, "%s.quoted", b->name);
    enum lk_code rc = lk_walk_trace_host(&r->walk, name, quoted, LK_I32, b->n_txt);
    lk_free(quoted);
    snprintf(name, sizeof name, "%s.text_encoder.ids", b->name);
    return rc ? rc : lk_walk_trace_host(&r->walk, name, b->ids, LK_I32, b->n);
}

/* Tokens with id 0 ("!") are taken for padding in positions, and only there. */
static struct lk_vlm_prompt chat(const struct lk_step1x_run *r, const struct lk_step1x_branch *b) {
    return (struct lk_vlm_prompt){
        .name = b->name, .ids = b->ids, .n = b->n, .images = &r->picture, .n_images = 1, .uncounted_id = 0};
}

static struct lk_bind_totals language_totals(const struct lk_qwen25_vl *m) {
    return (struct lk_bind_totals){.parameters = m->totals.parameters - m->vision_totals.parameters,
                                   .weight_bytes = m->totals.weight_bytes - m->vision_totals.weight_bytes,
                                   .n_tensors = m->totals.n_tensors - m->vision_totals.n_tensors};
}

/* What the vision tower sees; empty when planning without pixels. */
static void features_key(const struct lk_step1x_run *r, char key[65]) {
    key[0] = 0;
    if (r->source && !r->source->pixels) return;
    lk_key_begin(key, r->source ? "Step1X-Edit features" : "Step1X-Edit black picture");
    if (r->source) lk_key_add_image(key, r->source);
    lk_key_add_int(key, r->seen_width);
    lk_key_add_int(key, r->seen_height);
}

static enum lk_code see_picture(const struct lk_step1x_run *r, const struct lk_tensor *features) {
    struct lk_vlm_image picture = r->picture;
    float *rows = NULL;
    if (!lk_walk_planning(&r->walk))
        LK_TRY(lk_step1x_vision_rows(r->m, r->source, r->seen_width, r->seen_height, &rows, &picture));
    enum lk_code rc = lk_qwen25_vl_vision(r->walk.dev, &r->m->text, &picture, 0, features);
    lk_free(rows);
    return rc ? rc : lk_walk_check_finite(&r->walk, features, "vision tower", -1);
}

/* The key of a branch's prompt with these features, and what a file has of it. */
static enum lk_code find_prompt(const struct lk_step1x_run *r, const struct lk_step1x_branch *b, const char *kind,
                                const char *features, char key[65], struct lk_kept **out) {
    key[0] = 0;
    if (b->ids && *features) {
        lk_key_begin(key, kind);
        lk_key_add(key, features, 64);
        lk_key_add_int(key, b->n_txt);
        for (int64_t i = 0; i < b->n; i++) lk_key_add_int(key, b->ids[i]);
    }
    return lk_walk_find_prompt(&r->walk, key, b->prompt, b->n_txt, r->m->text_config.hidden_size, out);
}

/* Whether all is there that is made of the prompts: of a file, or kept. Of what is kept some may be gone. */
static bool is_encoded(const struct lk_step1x_run *r) {
    for (int i = 0; i < r->n_branches; i++)
        if (!r->branches[i].hidden || !r->branches[i].embeds) return false;
    return true;
}

enum lk_code lk_step1x_see(void *run) {
    struct lk_step1x_run *r = run;
    const struct lk_qwen25_vl *text = &r->m->text;
    struct lk_arena *arena = &r->walk.dev->arena;
    size_t mark = lk_arena_mark(arena);
    struct lk_cost before;
    struct lk_tensor features;
    char key[65];
    features_key(r, key);
    for (int i = 0; i < r->n_branches; i++) {
        struct lk_step1x_branch *b = &r->branches[i];
        LK_TRY(find_prompt(r, b, "Step1X-Edit prompt", key, b->hidden_key, &b->hidden));
        LK_TRY(find_prompt(r, b, "Step1X-Edit tokens", key, b->embeds_key, &b->embeds));
    }
    if (is_encoded(r)) return LK_OK;
    r->features = lk_kept_find(*r->walk.kept, key);
    if (r->features) return LK_OK;
    LK_TRY(lk_walk_begin(&r->walk, "vision", &before));
    LK_TRY(LK_NEW(arena, &features, r->walk.dtype, lk_qwen25_vl_image_tokens(&text->config, &r->picture),
                  text->config.vision.out_hidden_size));
    LK_TRY(see_picture(r, &features));
    LK_TRY(lk_walk_keep(&r->walk, key, &features, &r->features));
    lk_walk_note(&r->walk, "vision", &text->vision_totals, 1, &before);
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* Branch i's prompt, unless an equal one was encoded before. */
static enum lk_code encode_branch(struct lk_step1x_run *r, int i, const struct lk_tensor *features) {
    struct lk_step1x_branch *b = &r->branches[i];
    struct lk_device *dev = r->walk.dev;
    int64_t width = r->m->text_config.hidden_size;
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_cost others = dev->cost;
    struct lk_vlm_prompt prompt = chat(r, b);
    struct lk_tensor hidden, embeds;
    b->hidden = lk_kept_find(*r->walk.kept, b->hidden_key);
    b->embeds = lk_kept_find(*r->walk.kept, b->embeds_key);
    if (b->hidden && b->embeds) return LK_OK;
    prompt.features = features;
    if (lk_walk_planning(&r->walk)) prompt.ids = NULL;
    LK_TRY(LK_NEW(&dev->arena, &hidden, r->walk.dtype, b->n, width));
    LK_TRY(LK_NEW(&dev->arena, &embeds, r->walk.dtype, b->n, width));
    LK_TRY(trace_ids(r, b));
    LK_TRY(lk_qwen25_vl_hidden_states(dev, &r->m->text, &prompt, &hidden, &embeds));
    struct lk_tensor seen = lk_tensor_rows(&hidden, LK_STEP1X_PREFIX_TOKENS, b->n_txt);
    struct lk_tensor tokens = lk_tensor_rows(&embeds, LK_STEP1X_PREFIX_TOKENS, b->n_txt);
    LK_TRY(lk_walk_check_finite(&r->walk, &seen, "text encoder", -1));
    LK_TRY(lk_walk_keep(&r->walk, b->hidden_key, &seen, &b->hidden));
    LK_TRY(lk_walk_keep(&r->walk, b->embeds_key, &tokens, &b->embeds));
    b->hidden->prompt = b->embeds->prompt = true;
    lk_step1x_count_longest(r, i, &others);
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_step1x_encode_prompts(void *run) {
    struct lk_step1x_run *r = run;
    struct lk_bind_totals language = language_totals(&r->m->text);
    struct lk_arena *arena = &r->walk.dev->arena;
    size_t mark = lk_arena_mark(arena);
    struct lk_cost before;
    struct lk_tensor features;
    if (is_encoded(r)) return LK_OK;
    const struct lk_tensor *t = &r->features->tensor;
    LK_TRY(lk_walk_begin(&r->walk, "text_encoder", &before));
    LK_TRY(LK_NEW(arena, &features, t->dtype, t->shape[0], t->shape[1]));
    LK_TRY(lk_walk_give_back(&r->walk, r->features, &features));
    for (int i = 0; i < r->n_branches; i++) LK_TRY(encode_branch(r, i, &features));
    lk_walk_note(&r->walk, "text_encoder", &language, r->n_branches, &before);
    lk_arena_release(arena, mark);
    return LK_OK;
}

enum lk_code lk_step1x_place_prompts(struct lk_step1x_run *r) {
    struct lk_device *dev = r->walk.dev;
    for (int i = 0; i < r->n_branches; i++) {
        const struct lk_step1x_branch *b = &r->branches[i];
        LK_TRY(lk_walk_give_back(&r->walk, b->hidden, &b->conditioning.hidden));
        LK_TRY(lk_walk_give_back(&r->walk, b->embeds, &b->conditioning.embeds));
        LK_TRY(lk_trace(dev, &b->conditioning.hidden, "%s.prompt_embeds", b->name));
        LK_TRY(lk_trace(dev, &b->conditioning.embeds, "%s.token_embeds", b->name));
    }
    return LK_OK;
}

static enum lk_code trace_positions(const struct lk_step1x_run *r, const struct lk_step1x_branch *b,
                                    const float *positions) {
    struct lk_device *dev = r->walk.dev;
    struct lk_tensor t;
    if (!dev->trace) return LK_OK;
    size_t mark = lk_arena_mark(&dev->arena);
    LK_TRY(LK_NEW(&dev->arena, &t, LK_F32, b->n_txt, LK_STEP1X_AXES));
    LK_TRY(lk_upload(dev, &t, positions));
    LK_TRY(lk_trace(dev, &t, "%s.text_positions", b->name));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

/* Position ids of text, noise (0, y, x) and reference (1, y, x). */
static enum lk_code fill_ids(const struct lk_step1x_run *r, const struct lk_step1x_branch *b,
                             float (*ids)[LK_STEP1X_AXES]) {
    struct lk_vlm_prompt prompt = chat(r, b);
    int32_t next, (*positions)[3] = lk_malloc((size_t)b->n * sizeof *positions);
    if (!positions) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    enum lk_code rc = lk_qwen25_vl_positions(&r->m->text_config, &prompt, positions, &next);
    if (!rc)
        lk_step1x_text_positions(r->m, b->ids + LK_STEP1X_PREFIX_TOKENS, positions + LK_STEP1X_PREFIX_TOKENS, b->n_txt,
                                 &r->picture, r->seen_width, r->seen_height, ids);
    lk_free(positions);
    if (rc) return rc;
    int64_t columns = r->width / (2 * r->factor);
    for (int64_t i = 0; i < r->n_img; i++) {
        int64_t j = i % r->n_noise;
        memcpy(ids[b->n_txt + i], (float[]){(float)(i / r->n_noise), (float)(j / columns), (float)(j % columns)},
               sizeof *ids);
    }
    return trace_positions(r, b, ids[0]);
}

static enum lk_code make_branch_rope(const struct lk_step1x_run *r, const struct lk_step1x_branch *b) {
    const struct lk_step1x_transformer_config *c = &r->m->transformer.config;
    int64_t n = b->conditioning.cos.shape[0], half = c->attention_head_dim / 2;
    if (lk_walk_planning(&r->walk)) return LK_OK;
    float *table = lk_malloc(2 * (size_t)(n * half) * sizeof *table);
    float(*ids)[LK_STEP1X_AXES] = lk_malloc((size_t)n * sizeof *ids);
    enum lk_code rc = table && ids ? LK_OK : lk_fail(LK_E_NOMEM, "rope table: out of memory");
    if (!rc) rc = fill_ids(r, b, ids);
    if (!rc) {
        lk_rope_table(ids[0], n, c->axes_dims_rope, LK_STEP1X_AXES, ROPE_THETA, table, table + n * half);
        rc = lk_upload(r->walk.dev, &b->conditioning.cos, table);
    }
    if (!rc) rc = lk_upload(r->walk.dev, &b->conditioning.sin, table + n * half);
    lk_free(table);
    lk_free(ids);
    return rc;
}

enum lk_code lk_step1x_make_rope(const struct lk_step1x_run *r) {
    for (int i = 0; i < r->n_branches; i++) LK_TRY(make_branch_rope(r, &r->branches[i]));
    return LK_OK;
}

static void set_length(struct lk_step1x_branch *b, int64_t n, int most) {
    b->n = n;
    b->n_txt = n - LK_STEP1X_PREFIX_TOKENS;
    if (b->n_txt > most) b->n_txt = most;
    for (int64_t i = 0; b->quoted && i < b->n_txt; i++)
        b->any_quoted = b->any_quoted || b->quoted[LK_STEP1X_PREFIX_TOKENS + i];
}

static enum lk_code tokenize(struct lk_step1x_run *r, struct lk_step1x_branch *b) {
    int64_t n, n_image = lk_qwen25_vl_image_tokens(&r->m->text_config, &r->picture);
    LK_TRY(lk_step1x_tokenize(r->m->tokenizer, b->prompt, n_image, &b->ids, &b->quoted, &n));
    for (int64_t i = 0; i < n; i++)
        if (b->ids[i] < 0 || b->ids[i] >= r->m->text_config.vocab_size)
            return lk_fail(LK_E_TOKENIZER,
                           "prompt: token id %d is outside the text encoder's vocabulary of %lld: tokenizer and text "
                           "encoder do not belong together",
                           b->ids[i], (long long)r->m->text_config.vocab_size);
    if (n <= LK_STEP1X_PREFIX_TOKENS)
        return lk_fail(LK_E_TOKENIZER,
                       "prompt: expected more than %d tokens with the model's prefix, got %lld: the "
                       "tokenizer is another model's",
                       LK_STEP1X_PREFIX_TOKENS, (long long)n);
    set_length(b, n, r->walk.request->max_sequence_length);
    return lk_walk_cut(&r->walk, n - LK_STEP1X_PREFIX_TOKENS - b->n_txt);
}

enum lk_code lk_step1x_prepare_prompts(struct lk_step1x_run *r, const char *prompt) {
    const struct lk_request *q = r->walk.request;
    const char *negative = q->negative_prompt ? q->negative_prompt
                           : r->source        ? ""
                                              : default_negative_prompt_without_source;
    int64_t n_image = lk_qwen25_vl_image_tokens(&r->m->text_config, &r->picture);
    r->branches[0] = (struct lk_step1x_branch){.name = "cond", .prompt = prompt};
    r->branches[1] = (struct lk_step1x_branch){.name = "uncond", .prompt = negative};
    r->n_branches = q->true_cfg_scale > 1 ? 2 : 1;
    for (int i = 0; i < r->n_branches; i++) {
        struct lk_step1x_branch *b = &r->branches[i];
        if (r->m->v1p1) {
            b->n_txt = V1P1_MAX_TOKENS;
            b->n = V1P1_PREFIX + V1P1_MAX_TOKENS;
        } else if (r->m->tokenizer && b->prompt) {
            LK_TRY(tokenize(r, b));
        } else {
            set_length(b, LK_STEP1X_PREFIX_TOKENS + LK_STEP1X_PLANNED_TOKENS + n_image, q->max_sequence_length);
        }
    }
    return LK_OK;
}
