/* Qwen-Image-Edit: prompts and pictures to the transformer's conditioning. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/qwen_edit/run.h"

#define PLANNED_IDS 64 /* that a prompt is taken to have when a run is planned without a tokenizer: one sentence */

static enum lk_code prepare_branch(struct lk_qwen_edit_run *r, struct lk_qwen_edit_branch *b, int64_t planned) {
    const struct lk_request *q = r->walk.request;
    if (r->m->tokenizer && b->prompt)
        LK_TRY(lk_qwen_edit_tokenize(r->m, b->prompt, r->references, q->n_images, &b->ids, &b->n));
    else
        b->n = lk_qwen_edit_planned_ids(r->m->kind, r->references, q->n_images, planned);
    b->n_txt = b->n - lk_qwen_edit_drop(r->m->kind);
    if (r->m->kind == LK_QWEN_IMAGE && b->n_txt > q->max_sequence_length) {
        LK_TRY(lk_walk_cut(&r->walk, b->n_txt - q->max_sequence_length));
        b->n_txt = q->max_sequence_length;
    }
    int32_t first;
    return lk_qwen_rope_check(b->n_txt, r->grids, 1 + q->n_images, &first); /* before anything is encoded */
}

enum lk_code lk_qwen_edit_prepare_prompts(struct lk_qwen_edit_run *r) {
    const struct lk_request *q = r->walk.request;
    r->branches[0] = (struct lk_qwen_edit_branch){.name = "cond", .prompt = q->prompt};
    r->branches[1] = (struct lk_qwen_edit_branch){.name = "uncond", .prompt = q->negative_prompt};
    r->n_branches = q->true_cfg_scale > 1 && q->negative_prompt ? 2 : 1;
    LK_TRY(prepare_branch(r, &r->branches[0], PLANNED_IDS));
    if (r->n_branches < 2) return LK_OK;
    return prepare_branch(r, &r->branches[1], strlen(q->negative_prompt) > 1 ? PLANNED_IDS : 1);
}

static enum lk_code make_branch_rope(const struct lk_qwen_edit_run *r, const struct lk_qwen_edit_branch *b) {
    const struct lk_qwen_transformer_config *c = &r->m->transformer.config;
    size_t n = (size_t)lk_tensor_numel(&b->conditioning.cos);
    float *table = lk_malloc(2 * n * sizeof *table);
    if (!table) return lk_fail(LK_E_NOMEM, "rope table: out of memory");
    enum lk_code rc = lk_qwen_rope(c, b->n_txt, r->grids, 1 + r->walk.request->n_images, table, table + n);
    if (!rc) rc = lk_upload(r->walk.dev, &b->conditioning.cos, table);
    if (!rc) rc = lk_upload(r->walk.dev, &b->conditioning.sin, table + n);
    lk_free(table);
    return rc;
}

enum lk_code lk_qwen_edit_make_rope(const struct lk_qwen_edit_run *r) {
    for (int i = 0; i < r->n_branches && !lk_walk_planning(&r->walk); i++) LK_TRY(make_branch_rope(r, &r->branches[i]));
    return LK_OK;
}

/* Features of reference i into its rows. */
static enum lk_code see_image(const struct lk_qwen_edit_run *r, int i, const struct lk_tensor *features) {
    const struct lk_qwen_edit_reference *reference = &r->references[i];
    struct lk_vlm_image image = reference->grid;
    float *rows = NULL;
    if (!lk_walk_planning(&r->walk))
        LK_TRY(lk_qwen_edit_condition_rows(r->m, &r->walk.request->images[i], reference, &rows));
    image.rows = rows;
    enum lk_code rc = lk_qwen25_vl_vision(r->walk.dev, &r->m->text, &image, i, features);
    lk_free(rows);
    return rc;
}

/* What the vision tower sees of all references; empty when planning without pixels. */
static void features_key(const struct lk_qwen_edit_run *r, char key[65]) {
    const struct lk_request *q = r->walk.request;
    key[0] = 0;
    for (int i = 0; i < q->n_images; i++)
        if (!q->images[i].pixels) return;
    lk_key_begin(key, "Qwen2.5-VL features");
    for (int i = 0; i < q->n_images; i++) {
        lk_key_add_image(key, &q->images[i]);
        lk_key_add_int(key, r->references[i].condition_width);
        lk_key_add_int(key, r->references[i].condition_height);
    }
}

/* Keys of the branches' prompts with these features, and what a file has of them: all or nothing. */
static enum lk_code find_prompts(struct lk_qwen_edit_run *r, const char *features) {
    for (int i = 0; i < r->n_branches; i++) {
        struct lk_qwen_edit_branch *b = &r->branches[i];
        b->key[0] = 0;
        if (b->ids && (*features || !r->walk.request->n_images)) {
            lk_key_begin(b->key, "Qwen-Image prompt");
            lk_key_add(b->key, features, strlen(features));
            lk_key_add_int(b->key, b->n_txt);
            for (int64_t k = 0; k < b->n; k++) lk_key_add_int(b->key, b->ids[k]);
        }
        LK_TRY(lk_walk_find_prompt(&r->walk, b->key, b->prompt, b->n_txt, r->m->text.config.hidden_size, &b->embeds));
    }
    return LK_OK;
}

/* Whether all prompts' embeddings are there: of a file, or kept. Of what is kept some may be gone. */
static bool is_encoded(const struct lk_qwen_edit_run *r) {
    for (int i = 0; i < r->n_branches; i++)
        if (!r->branches[i].embeds) return false;
    return true;
}

enum lk_code lk_qwen_edit_see(void *run) {
    struct lk_qwen_edit_run *r = run;
    struct lk_arena *arena = &r->walk.dev->arena;
    int n_images = r->walk.request->n_images;
    int64_t n = 0, first = 0;
    size_t mark = lk_arena_mark(arena);
    struct lk_cost before;
    struct lk_tensor features;
    char key[65] = "";
    if (n_images) features_key(r, key);
    LK_TRY(find_prompts(r, key));
    if (is_encoded(r) || !n_images) return LK_OK;
    for (int i = 0; i < n_images; i++) n += r->references[i].n_tokens;
    r->features = lk_kept_find(*r->walk.kept, key);
    if (r->features) return LK_OK;
    LK_TRY(lk_walk_begin(&r->walk, "vision", &before));
    LK_TRY(LK_NEW(arena, &features, r->walk.dtype, n, r->m->text.config.vision.out_hidden_size));
    for (int i = 0; i < n_images; i++) {
        struct lk_tensor own = lk_tensor_rows(&features, first, r->references[i].n_tokens);
        LK_TRY(see_image(r, i, &own));
        first += r->references[i].n_tokens;
    }
    LK_TRY(lk_walk_check_finite(&r->walk, &features, "vision tower", -1));
    LK_TRY(lk_walk_keep(&r->walk, key, &features, &r->features));
    lk_walk_note(&r->walk, "vision", &r->m->text.vision_totals, 1, &before);
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* The state of every token into hidden [n, hidden]. */
static enum lk_code encode_prompt(const struct lk_qwen_edit_run *r, const struct lk_qwen_edit_branch *b,
                                  const struct lk_tensor *features, const struct lk_tensor *hidden) {
    struct lk_vlm_image images[LK_MAX_REFERENCES];
    char name[64];
    for (int i = 0; i < r->walk.request->n_images; i++) images[i] = r->references[i].grid;
    struct lk_vlm_prompt prompt = {.name = b->name, .ids = b->ids, .n = b->n, .images = images};
    prompt.n_images = r->walk.request->n_images;
    prompt.features = features;
    prompt.uncounted_id = -1;
    if (lk_walk_planning(&r->walk)) {
        prompt.ids = NULL;
    } else {
        snprintf(name, sizeof name, "%s.text_encoder.ids", b->name);
        LK_TRY(lk_walk_trace_host(&r->walk, name, b->ids, LK_I32, b->n));
    }
    LK_TRY(lk_qwen25_vl_hidden_states(r->walk.dev, &r->m->text, &prompt, hidden, NULL));
    return lk_walk_check_finite(&r->walk, hidden, "text encoder", -1);
}

/* Without the vision tower, which is a stage of its own. The output head is part of the model and so of its parameters,
 * but an edit does not read it. */
static struct lk_bind_totals language_totals(const struct lk_qwen25_vl *m) {
    const struct lk_qwen25_vl_config *c = &m->config;
    uint64_t head = c->tie_word_embeddings ? 0 : (uint64_t)(c->vocab_size * c->hidden_size);
    return (struct lk_bind_totals){.parameters = m->totals.parameters - m->vision_totals.parameters + head,
                                   .weight_bytes = m->totals.weight_bytes - m->vision_totals.weight_bytes,
                                   .n_tensors = m->totals.n_tensors - m->vision_totals.n_tensors};
}

/* Branch i's prompt, unless an equal one was encoded before. */
static enum lk_code encode_branch(struct lk_qwen_edit_run *r, int i, const struct lk_tensor *features) {
    struct lk_qwen_edit_branch *b = &r->branches[i];
    struct lk_device *dev = r->walk.dev;
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_cost others = dev->cost;
    struct lk_tensor hidden;
    b->embeds = lk_kept_find(*r->walk.kept, b->key);
    if (b->embeds) return LK_OK;
    LK_TRY(LK_NEW(&dev->arena, &hidden, r->walk.dtype, b->n, r->m->text.config.hidden_size));
    LK_TRY(encode_prompt(r, b, features, &hidden));
    struct lk_tensor seen = lk_tensor_rows(&hidden, lk_qwen_edit_drop(r->m->kind), b->n_txt);
    LK_TRY(lk_walk_keep(&r->walk, b->key, &seen, &b->embeds));
    b->embeds->prompt = true;
    lk_qwen_edit_count_longest(r, i, &others);
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen_edit_encode_prompts(void *run) {
    struct lk_qwen_edit_run *r = run;
    struct lk_bind_totals language = language_totals(&r->m->text);
    struct lk_device *dev = r->walk.dev;
    struct lk_tensor features;
    struct lk_cost before;
    size_t mark = lk_arena_mark(&dev->arena);
    if (is_encoded(r)) return LK_OK;
    LK_TRY(lk_walk_begin(&r->walk, "text_encoder", &before));
    if (r->features) {
        const struct lk_tensor *t = &r->features->tensor;
        LK_TRY(LK_NEW(&dev->arena, &features, t->dtype, t->shape[0], t->shape[1]));
        LK_TRY(lk_walk_give_back(&r->walk, r->features, &features));
    }
    for (int i = 0; i < r->n_branches; i++) LK_TRY(encode_branch(r, i, r->features ? &features : NULL));
    lk_walk_note(&r->walk, "text_encoder", &language, r->n_branches, &before);
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen_edit_embed_contexts(struct lk_qwen_edit_run *r) {
    struct lk_device *dev = r->walk.dev;
    size_t mark = lk_arena_mark(&dev->arena);
    for (int i = 0; i < r->n_branches; i++) {
        const struct lk_qwen_edit_branch *b = &r->branches[i];
        struct lk_tensor embeds;
        LK_TRY(LK_NEW(&dev->arena, &embeds, r->walk.dtype, b->n_txt, r->m->text.config.hidden_size));
        LK_TRY(lk_walk_give_back(&r->walk, b->embeds, &embeds));
        LK_TRY(lk_trace(dev, &embeds, "%s.prompt_embeds", b->name));
        LK_TRY(lk_qwen_embed_context(dev, &r->m->transformer, &embeds, &b->conditioning.context));
        lk_arena_release(&dev->arena, mark);
    }
    return LK_OK;
}
