/* Step1X-Edit: configurations, weights and tokenizer of a model folder. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/common/files.h"
#include "models/embeds.h"
#include "models/step1x/step1x.h"

enum { TEXT_ENCODER, TRANSFORMER, VAE };

/* Of the picture that the vision tower sees. */
#define MIN_PIXELS      (256 * 28 * 28)
#define MAX_PIXELS      (400 * 28 * 28)
#define V1P1_MAX_PIXELS (324 * 28 * 28)

#define CLASS           "Step1XEditPipeline" /* of v1p1, and of v1p2 as it was released */
#define CLASS_V1P2      "Step1XEditPipelineV1P2"

static const char *const classes[] = {CLASS, CLASS_V1P2, NULL};
static const struct lk_component components[] = {{"scheduler", "FlowMatchEulerDiscreteScheduler"},
                                                 {"text_encoder", "Qwen2_5_VLForConditionalGeneration"},
                                                 {"transformer", "Step1XEditTransformer2DModel"},
                                                 {"vae", "AutoencoderKL"},
                                                 {"processor", "Qwen2_5_VLProcessor"},
                                                 {NULL, NULL}};

/* Sizes on which two components must agree. */
struct seam {
    const char *what;
    int64_t expected, got;
};

static enum lk_code check_seams(const struct lk_step1x *m, const char *folder,
                                const struct lk_step1x_transformer_config *t, const struct lk_vae_config *vae) {
    const struct lk_qwen25_vl_vision_config *v = &m->text_config.vision;
    const struct seam seams[] = {
        {"transformer in_channels: expected 4 x the VAE's latent_channels", 4 * vae->latent_channels, t->in_channels},
        {"transformer out_channels: expected in_channels", t->in_channels, t->out_channels},
        {"transformer connector_in_channels: expected the text encoder's hidden_size", m->text_config.hidden_size,
         t->connector_in_channels},
        {"vision_config out_hidden_size: expected hidden_size", m->text_config.hidden_size, v->out_hidden_size},
        {"processor patch_size: expected the vision tower's", v->patch_size, m->processor.patch_size},
        {"processor merge_size: expected the vision tower's", v->spatial_merge_size, m->processor.merge_size},
        {"processor temporal_patch_size: expected the vision tower's", v->temporal_patch_size,
         m->processor.temporal_patch_size},
        /* The original halves the grid of patches to place the picture's tokens, whatever merge_size says. */
        {"vision_config spatial_merge_size: expected", 2, v->spatial_merge_size},
    };
    for (size_t i = 0; i < sizeof seams / sizeof *seams; i++)
        if (seams[i].expected != seams[i].got)
            return lk_fail(LK_E_CONFIG_VALUE, "%s: %s = %lld, got %lld", folder ? folder : "step1x", seams[i].what,
                           (long long)seams[i].expected, (long long)seams[i].got);
    return LK_OK;
}

static enum lk_code read_configs(struct lk_step1x *m, const struct lk_pipeline *pipeline,
                                 struct lk_step1x_transformer_config *transformer, struct lk_vae_config *vae) {
    const char *folder = pipeline->folder;
    bool v1p1 = pipeline->name && !strcmp(pipeline->name, "step1x-v1p1");
    struct lk_config *json;
    if (folder) LK_TRY(lk_model_index_check(folder, classes, components));
    LK_TRY(lk_component_config(&json, folder, "scheduler/scheduler_config.json", lk_step1x_released_scheduler));
    LK_TRY(lk_scheduler_config_read(&m->scheduler, json));
    LK_TRY(lk_text_encoder_config(pipeline, lk_step1x_released_text_encoder, &json));
    LK_TRY(lk_qwen25_vl_config_read(&m->text_config, json));
    LK_TRY(lk_component_config(&json, folder, "transformer/config.json",
                               v1p1 ? lk_step1x_released_transformer_v1p1 : lk_step1x_released_transformer_v1p2));
    LK_TRY(lk_step1x_transformer_config_read(transformer, json));
    LK_TRY(lk_component_config(&json, folder, "vae/config.json", lk_step1x_released_vae));
    LK_TRY(lk_vae_config_read(vae, json, "AutoencoderKL"));
    enum lk_code rc =
        lk_component_config(&json, folder, "processor/preprocessor_config.json", lk_step1x_released_processor);
    if (rc == LK_E_NOT_FOUND) /* where transformers 5 puts it */
        rc = lk_component_config(&json, folder, "processor/processor_config.json", lk_step1x_released_processor);
    if (rc) return rc;
    LK_TRY(lk_qwen2_vl_processor_read(&m->processor, json));
    return check_seams(m, folder, transformer, vae);
}

static enum lk_code open_files(struct lk_step1x *m, struct lk_pipeline *pipeline) {
    const char *folder = pipeline->folder;
    char *path;
    LK_TRY(lk_model_path(folder, "processor/tokenizer.json", &path));
    enum lk_code rc = lk_tokenizer_open(&m->tokenizer, path);
    int32_t image = rc ? -1 : lk_tokenizer_id(m->tokenizer, "<|image_pad|>");
    if (!rc && image != m->text_config.image_token_id)
        rc = lk_fail(LK_E_TOKENIZER, "%s: token <|image_pad|>: expected the text encoder's image_token_id %d, got %d",
                     path, m->text_config.image_token_id, image);
    lk_free(path);
    if (rc) return rc;
    LK_TRY(lk_text_encoder_open(pipeline, false, &m->checkpoints[TEXT_ENCODER]));
    LK_TRY(lk_transformer_open(&m->checkpoints[TRANSFORMER], folder, pipeline->transformer));
    return lk_component_open(&m->checkpoints[VAE], folder, "vae", "diffusion_pytorch_model");
}

unsigned lk_step1x_quantized(const struct lk_pipeline *pipeline) {
    const struct lk_step1x *m = pipeline->model;
    return m->transformer.totals.quantized | m->text.totals.quantized;
}

const struct lk_checkpoint *lk_step1x_checkpoints(const struct lk_pipeline *pipeline) {
    return ((const struct lk_step1x *)pipeline->model)->checkpoints;
}

/* A mapping of quoted tokens, or the class that names v1p2's steps, makes a v1p2. */
static enum lk_code tell_version(struct lk_step1x *m, struct lk_pipeline *pipeline) {
    const char *class_name = CLASS;
    struct lk_config *json;
    char *path;
    m->v1p1 = !m->transformer.config.enable_text_token_mapping;
    if (m->v1p1 && pipeline->folder) {
        LK_TRY(lk_model_path(pipeline->folder, "model_index.json", &path));
        enum lk_code rc = lk_config_open(&json, path);
        lk_free(path);
        if (rc) return rc;
        lk_config_string_or(json, "_class_name", &class_name, CLASS);
        m->v1p1 = strcmp(class_name, CLASS_V1P2) != 0;
        lk_config_discard(json);
    }
    pipeline->name = pipeline->family->names[m->v1p1];
    /* Whatever the processor's file says, as the reference does. */
    m->processor.min_pixels = MIN_PIXELS;
    m->processor.max_pixels = m->v1p1 ? V1P1_MAX_PIXELS : MAX_PIXELS;
    return LK_OK;
}

/* Where the config does not speak of a mapping, the weights' headers may show one even if they are not to be read. */
static void look_for_mapping(const char *folder, struct lk_step1x_transformer_config *transformer) {
    struct lk_checkpoint checkpoint;
    if (transformer->has_enable_text_token_mapping || !folder) return;
    if (lk_component_open(&checkpoint, folder, "transformer", "diffusion_pytorch_model")) return;
    transformer->enable_text_token_mapping = lk_checkpoint_find(&checkpoint, "text_token_mapping.weight") != NULL;
    lk_checkpoint_close(&checkpoint);
}

static enum lk_code open_model(struct lk_step1x *m, struct lk_pipeline *pipeline, bool with_weights) {
    struct lk_step1x_transformer_config transformer;
    struct lk_vae_config vae;
    LK_TRY(read_configs(m, pipeline, &transformer, &vae));
    if (with_weights)
        LK_TRY(open_files(m, pipeline));
    else
        look_for_mapping(pipeline->folder, &transformer);
    LK_TRY(lk_step1x_transformer_bind(&m->transformer, &transformer, with_weights ? &m->checkpoints[TRANSFORMER] : NULL,
                                      pipeline->compute, pipeline->quantize, pipeline->loras));
    LK_TRY(tell_version(m, pipeline));
    const bool encodes = with_weights && !pipeline->text_identity[0];
    LK_TRY(lk_qwen25_vl_bind(&m->text, &m->text_config, false, encodes ? &m->checkpoints[TEXT_ENCODER] : NULL,
                             pipeline->compute));
    return lk_vae_bind(&m->vae, &vae, with_weights ? &m->checkpoints[VAE] : NULL, pipeline->compute);
}

enum lk_code lk_step1x_open(struct lk_pipeline *pipeline, bool with_weights) {
    struct lk_step1x *m = lk_calloc(1, sizeof *m);
    if (!m) return lk_fail(LK_E_NOMEM, "Step1X-Edit: out of memory");
    pipeline->model = m;
    enum lk_code rc = open_model(m, pipeline, with_weights);
    if (rc) lk_step1x_close(pipeline);
    return rc;
}

void lk_step1x_close(struct lk_pipeline *pipeline) {
    struct lk_step1x *m = pipeline->model;
    lk_qwen25_vl_free(&m->text);
    lk_step1x_transformer_free(&m->transformer);
    lk_vae_free(&m->vae);
    for (int i = 0; i < 3; i++) lk_checkpoint_close(&m->checkpoints[i]);
    lk_tokenizer_free(m->tokenizer);
    lk_free(m);
    pipeline->model = NULL;
}
