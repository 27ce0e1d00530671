/* Qwen-Image and Qwen-Image-Edit: configurations, weights and tokenizer of a model folder. */
#include <string.h>

#include "engine/base/alloc.h"
#include "models/common/files.h"
#include "models/embeds.h"
#include "models/qwen_edit/qwen_edit.h"
#include "models/parameters.h"

enum { TEXT_ENCODER, TRANSFORMER, VAE };

static const char *const classes[] = {
    [LK_QWEN_EDIT_PLUS] = "QwenImageEditPlusPipeline",
    [LK_QWEN_EDIT] = "QwenImageEditPipeline",
    [LK_QWEN_IMAGE] = "QwenImagePipeline",
};

static const char name_2511[] = "qwen-edit-2511", name_2509[] = "qwen-edit-2509", name_edit[] = "qwen-edit",
                  name_image[] = "qwen-image";

static enum lk_code read_kind(enum lk_qwen_edit_kind *out, const struct lk_pipeline *pipeline) {
    const char *found = NULL;
    struct lk_config *json;
    if (!pipeline->folder) {
        *out = !strcmp(pipeline->name, name_edit)    ? LK_QWEN_EDIT
               : !strcmp(pipeline->name, name_image) ? LK_QWEN_IMAGE
                                                     : LK_QWEN_EDIT_PLUS;
        return LK_OK;
    }
    LK_TRY(lk_component_config(&json, pipeline->folder, "model_index.json", NULL));
    lk_config_string(json, "_class_name", &found);
    for (enum lk_qwen_edit_kind kind = LK_QWEN_EDIT_PLUS; found && kind <= LK_QWEN_IMAGE; kind++)
        if (!strcmp(found, classes[kind])) *out = kind;
    lk_config_discard(json);
    return LK_OK;
}

static enum lk_code check_index(enum lk_qwen_edit_kind kind, const char *folder) {
    const char *const wanted[] = {classes[kind], NULL};
    const struct lk_component components[] = {{"scheduler", "FlowMatchEulerDiscreteScheduler"},
                                              {"text_encoder", "Qwen2_5_VLForConditionalGeneration"},
                                              {"transformer", "QwenImageTransformer2DModel"},
                                              {"vae", "AutoencoderKLQwenImage"},
                                              {"tokenizer", NULL},
                                              {kind == LK_QWEN_IMAGE ? NULL : "processor", NULL},
                                              {NULL, NULL}};
    return lk_model_index_check(folder, wanted, components);
}

/* folder/first, or folder/second when that is not there. */
static enum lk_code find_either(const char *folder, const char *first, const char *second, const char **relative,
                                char **path) {
    *relative = first;
    enum lk_code rc = lk_model_path(folder, first, path);
    if (rc != LK_E_NOT_FOUND) return rc;
    *relative = second;
    return lk_model_path(folder, second, path);
}

/* transformers 5 writes processor_config.json, versions before it preprocessor_config.json. */
static enum lk_code read_processor(struct lk_qwen_edit *m, const char *folder) {
    const char *relative = "processor/preprocessor_config.json";
    struct lk_config *json;
    if (folder) {
        char *path;
        LK_TRY(find_either(folder, "processor/processor_config.json", relative, &relative, &path));
        lk_free(path);
    }
    LK_TRY(lk_component_config(&json, folder, relative, lk_qwen_edit_released_processor));
    return lk_qwen2_vl_processor_read(&m->processor, json);
}

struct configs {
    struct lk_qwen25_vl_config text;
    struct lk_qwen_transformer_config transformer;
    struct lk_qwen_vae_config vae;
};

/* What the components must agree on. */
static enum lk_code check_configs(const struct lk_qwen_edit *m, const struct configs *c, const char *model) {
    const struct lk_qwen25_vl_vision_config *v = &c->text.vision;
    const struct lk_qwen2_vl_processor *p = &m->processor;
    if (c->transformer.in_channels != 4 * c->vae.z_dim)
        return lk_fail(LK_E_CONFIG_VALUE, "%s: transformer in_channels: expected 4 x the VAE's z_dim = %lld, got %lld",
                       model, 4 * (long long)c->vae.z_dim, (long long)c->transformer.in_channels);
    if (c->transformer.joint_attention_dim != c->text.hidden_size)
        return lk_fail(LK_E_CONFIG_VALUE,
                       "%s: transformer joint_attention_dim: expected the text encoder's hidden_size = %lld, got %lld",
                       model, (long long)c->text.hidden_size, (long long)c->transformer.joint_attention_dim);
    if (m->kind != LK_QWEN_IMAGE && (p->patch_size != v->patch_size || p->merge_size != v->spatial_merge_size ||
                                     p->temporal_patch_size != v->temporal_patch_size))
        return lk_fail(LK_E_CONFIG_VALUE,
                       "%s: processor: patches of %d pixels, %d frames, merged by %d; the vision tower expects %lld, "
                       "%lld and %lld",
                       model, p->patch_size, p->temporal_patch_size, p->merge_size, (long long)v->patch_size,
                       (long long)v->temporal_patch_size, (long long)v->spatial_merge_size);
    if (m->scheduler.use_dynamic_shifting && m->scheduler.max_image_seq_len == m->scheduler.base_image_seq_len)
        return lk_fail(LK_E_CONFIG_VALUE, "%s: scheduler: expected max_image_seq_len other than base_image_seq_len",
                       model);
    return LK_OK;
}

static enum lk_code read_configs(struct lk_qwen_edit *m, const struct lk_pipeline *pipeline, struct configs *c) {
    const char *folder = pipeline->folder;
    const char *transformer =
        !strcmp(pipeline->name, name_2511) ? lk_qwen_edit_released_transformer_2511 : lk_qwen_edit_released_transformer;
    struct lk_config *json;
    if (folder) LK_TRY(check_index(m->kind, folder));
    LK_TRY(lk_component_config(&json, folder, "scheduler/scheduler_config.json", lk_qwen_edit_released_scheduler));
    LK_TRY(lk_scheduler_config_read(&m->scheduler, json));
    LK_TRY(lk_text_encoder_config(pipeline, lk_qwen_edit_released_text_encoder, &json));
    LK_TRY(lk_qwen25_vl_config_read(&c->text, json));
    LK_TRY(lk_component_config(&json, folder, "transformer/config.json", transformer));
    LK_TRY(lk_qwen_transformer_config_read(&c->transformer, json));
    LK_TRY(lk_component_config(&json, folder, "vae/config.json", lk_qwen_edit_released_vae));
    LK_TRY(lk_qwen_vae_config_read(&c->vae, json));
    if (m->kind != LK_QWEN_IMAGE) LK_TRY(read_processor(m, folder));
    return check_configs(m, c, folder ? folder : pipeline->name);
}

/* The edit pipelines read their processor's tokenizer; released folders without one hold vocab.json and merges.txt. */
static enum lk_code open_tokenizer(struct lk_qwen_edit *m, const struct lk_qwen25_vl_config *text, const char *folder) {
    const char *first = m->kind == LK_QWEN_IMAGE ? "tokenizer/tokenizer.json" : "processor/tokenizer.json", *relative;
    char *path;
    enum lk_code rc = find_either(folder, first, "tokenizer/tokenizer.json", &relative, &path);
    if (rc == LK_E_NOT_FOUND)
        return lk_fail(rc,
                       "%s: no tokenizer.json in processor/ or tokenizer/; copy processor/tokenizer.json of "
                       "Qwen/Qwen-Image-Edit-2511 or tokenizer.json of Qwen/Qwen2.5-VL-7B-Instruct to tokenizer/: "
                       "vocab.json and merges.txt hold the same, but are not read",
                       folder);
    if (rc) return rc;
    rc = lk_tokenizer_open(&m->tokenizer, path);
    if (!rc && m->kind != LK_QWEN_IMAGE && lk_tokenizer_id(m->tokenizer, "<|image_pad|>") != text->image_token_id)
        rc = lk_fail(LK_E_TOKENIZER,
                     "%s: \"<|image_pad|>\": expected id %d, as the text encoder's config has it, got %d", path,
                     text->image_token_id, lk_tokenizer_id(m->tokenizer, "<|image_pad|>"));
    lk_free(path);
    return rc;
}

static enum lk_code open_files(struct lk_qwen_edit *m, const struct lk_qwen25_vl_config *text,
                               struct lk_pipeline *pipeline) {
    const char *folder = pipeline->folder;
    LK_TRY(open_tokenizer(m, text, folder));
    LK_TRY(lk_text_encoder_open(pipeline, false, &m->checkpoints[TEXT_ENCODER]));
    LK_TRY(lk_transformer_open(&m->checkpoints[TRANSFORMER], folder, pipeline->transformer));
    return lk_component_open(&m->checkpoints[VAE], folder, "vae", "diffusion_pytorch_model");
}

unsigned lk_qwen_edit_quantized(const struct lk_pipeline *pipeline) {
    const struct lk_qwen_edit *m = pipeline->model;
    return m->transformer.totals.quantized | m->text.totals.quantized;
}

const struct lk_checkpoint *lk_qwen_edit_checkpoints(const struct lk_pipeline *pipeline) {
    return ((const struct lk_qwen_edit *)pipeline->model)->checkpoints;
}

static enum lk_code open_model(struct lk_qwen_edit *m, struct lk_pipeline *pipeline, bool with_weights) {
    struct configs c;
    const struct lk_checkpoint *const none[3] = {NULL, NULL, NULL};
    const struct lk_checkpoint *const opened[3] = {&m->checkpoints[0], &m->checkpoints[1], &m->checkpoints[2]};
    const struct lk_checkpoint *const *files = with_weights ? opened : none;
    LK_TRY(read_kind(&m->kind, pipeline));
    LK_TRY(read_configs(m, pipeline, &c));
    if (with_weights) LK_TRY(open_files(m, &c.text, pipeline));
    LK_TRY(lk_qwen25_vl_bind(&m->text, &c.text, false, pipeline->text_identity[0] ? NULL : files[TEXT_ENCODER],
                             pipeline->compute));
    LK_TRY(lk_qwen_transformer_bind(&m->transformer, &c.transformer, files[TRANSFORMER], pipeline->compute,
                                    pipeline->quantize, pipeline->loras));
    LK_TRY(lk_qwen_vae_bind(&m->vae, &c.vae, files[VAE], pipeline->compute));
    pipeline->name = m->kind == LK_QWEN_IMAGE            ? name_image
                     : m->kind == LK_QWEN_EDIT           ? name_edit
                     : m->transformer.config.zero_cond_t ? name_2511
                                                         : name_2509;
    return LK_OK;
}

enum lk_code lk_qwen_edit_open(struct lk_pipeline *pipeline, bool with_weights) {
    struct lk_qwen_edit *m = lk_calloc(1, sizeof *m);
    if (!m) return lk_fail(LK_E_NOMEM, "Qwen-Image: out of memory");
    pipeline->model = m;
    enum lk_code rc = open_model(m, pipeline, with_weights);
    if (rc) lk_qwen_edit_close(pipeline);
    return rc;
}

void lk_qwen_edit_close(struct lk_pipeline *pipeline) {
    struct lk_qwen_edit *m = pipeline->model;
    lk_qwen25_vl_free(&m->text);
    lk_qwen_transformer_free(&m->transformer);
    lk_qwen_vae_free(&m->vae);
    for (int i = 0; i < 3; i++) lk_checkpoint_close(&m->checkpoints[i]);
    lk_tokenizer_free(m->tokenizer);
    lk_free(m);
    pipeline->model = NULL;
}

static const struct lk_tokenizer *tokenizer(const struct lk_pipeline *pipeline, int64_t *n_unseen) {
    const struct lk_qwen_edit *m = pipeline->model;
    *n_unseen = lk_qwen_edit_drop(m->kind);
    return m->tokenizer;
}

const struct lk_family lk_family_qwen_edit = {
    .title = "Qwen-Image",
    .bit = LK_FOR_QWEN,
    .names = {name_2511, name_2509, name_edit, name_image},
    .steps = {0, 0, 50, 50},
    .repositories = {"Qwen/Qwen-Image-Edit-2511", "Qwen/Qwen-Image-Edit-2509", "Qwen/Qwen-Image-Edit",
                     "Qwen/Qwen-Image"},
    .pipeline_classes = {"QwenImageEditPlusPipeline", "QwenImageEditPipeline", "QwenImagePipeline"},
    .open = lk_qwen_edit_open,
    .close = lk_qwen_edit_close,
    .kept = lk_qwen_kept,
    .quantized = lk_qwen_edit_quantized,
    .checkpoints = lk_qwen_edit_checkpoints,
    .tokenizer = tokenizer,
    .defaults = lk_qwen_edit_defaults,
    .stages = &lk_qwen_edit_stages,
};
