/* FLUX.2-dev: configurations, weights and tokenizer of a model folder. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/common/files.h"
#include "models/embeds.h"
#include "models/flux2/flux2.h"

enum { TEXT_ENCODER, TRANSFORMER, VAE };

static const char *const classes[] = {"Flux2Pipeline", NULL};
static const struct lk_component components[] = {{"scheduler", "FlowMatchEulerDiscreteScheduler"},
                                                 {"text_encoder", "Mistral3ForConditionalGeneration"},
                                                 {"transformer", "Flux2Transformer2DModel"},
                                                 {"vae", "AutoencoderKLFlux2"},
                                                 {"tokenizer", NULL},
                                                 {NULL, NULL}};

static enum lk_code read_configs(struct lk_flux2 *m, const struct lk_pipeline *pipeline,
                                 struct lk_flux2_transformer_config *transformer, struct lk_vae_config *vae) {
    const char *folder = pipeline->folder;
    struct lk_config *json;
    if (folder) LK_TRY(lk_model_index_check(folder, classes, components));
    LK_TRY(lk_component_config(&json, folder, "scheduler/scheduler_config.json", lk_flux2_released_scheduler));
    LK_TRY(lk_scheduler_config_read(&m->scheduler, json));
    LK_TRY(lk_text_encoder_config(pipeline, lk_flux2_released_text_encoder, &json));
    LK_TRY(lk_mistral_config_read(&m->text_config, json));
    LK_TRY(lk_component_config(&json, folder, "transformer/config.json", lk_flux2_released_transformer));
    LK_TRY(lk_flux2_transformer_config_read(transformer, json));
    LK_TRY(lk_component_config(&json, folder, "vae/config.json", lk_flux2_released_vae));
    LK_TRY(lk_vae_config_read(vae, json, "AutoencoderKLFlux2"));
    if (transformer->in_channels != 4 * vae->latent_channels)
        return lk_fail(
            LK_E_CONFIG_VALUE, "%s: transformer in_channels: expected 4 x the VAE's latent_channels = %lld, got %lld",
            folder ? folder : "flux2-dev", 4 * (long long)vae->latent_channels, (long long)transformer->in_channels);
    return LK_OK;
}

static enum lk_code open_files(struct lk_flux2 *m, struct lk_pipeline *pipeline) {
    const char *folder = pipeline->folder;
    char *path;
    LK_TRY(lk_model_path(folder, "tokenizer/tokenizer.json", &path));
    enum lk_code rc = lk_tokenizer_open(&m->tokenizer, path);
    if (!rc && (m->pad_id = lk_tokenizer_id(m->tokenizer, "<pad>")) < 0)
        rc = lk_fail(LK_E_TOKENIZER, "%s: no token \"<pad>\": prompts of this model are padded with it", path);
    lk_free(path);
    if (rc) return rc;
    /* Of its layers the last ones and the head are not used: whoever left their shards out may edit. */
    LK_TRY(lk_text_encoder_open(pipeline, true, &m->checkpoints[TEXT_ENCODER]));
    LK_TRY(lk_transformer_open(&m->checkpoints[TRANSFORMER], folder, pipeline->transformer));
    if (pipeline->transformer) LK_TRY(lk_flux2_rename(&m->checkpoints[TRANSFORMER]));
    LK_TRY(lk_component_open(&m->checkpoints[VAE], folder, "vae", "diffusion_pytorch_model"));
    return LK_OK;
}

unsigned lk_flux2_quantized(const struct lk_pipeline *pipeline) {
    const struct lk_flux2 *m = pipeline->model;
    return m->transformer.totals.quantized | m->text.totals.quantized;
}

const struct lk_checkpoint *lk_flux2_checkpoints(const struct lk_pipeline *pipeline) {
    return ((const struct lk_flux2 *)pipeline->model)->checkpoints;
}

static enum lk_code open_model(struct lk_flux2 *m, struct lk_pipeline *pipeline, bool with_weights) {
    struct lk_flux2_transformer_config transformer;
    struct lk_vae_config vae;
    LK_TRY(read_configs(m, pipeline, &transformer, &vae));
    if (with_weights) LK_TRY(open_files(m, pipeline));
    LK_TRY(lk_flux2_transformer_bind(&m->transformer, &transformer, with_weights ? &m->checkpoints[TRANSFORMER] : NULL,
                                     pipeline->compute, pipeline->quantize, pipeline->loras));
    return lk_vae_bind(&m->vae, &vae, with_weights ? &m->checkpoints[VAE] : NULL, pipeline->compute);
}

enum lk_code lk_flux2_open(struct lk_pipeline *pipeline, bool with_weights) {
    struct lk_flux2 *m = lk_calloc(1, sizeof *m);
    if (!m) return lk_fail(LK_E_NOMEM, "FLUX.2: out of memory");
    pipeline->model = m;
    enum lk_code rc = open_model(m, pipeline, with_weights);
    if (rc) lk_flux2_close(pipeline);
    return rc;
}

void lk_flux2_close(struct lk_pipeline *pipeline) {
    struct lk_flux2 *m = pipeline->model;
    lk_mistral_free(&m->text);
    lk_flux2_transformer_free(&m->transformer);
    lk_vae_free(&m->vae);
    for (int i = 0; i < 3; i++) lk_checkpoint_close(&m->checkpoints[i]);
    lk_tokenizer_free(m->tokenizer);
    lk_free(m);
    pipeline->model = NULL;
}

enum lk_code lk_flux2_bind_text(struct lk_pipeline *pipeline, const struct lk_request *request, bool or_more) {
    struct lk_flux2 *m = pipeline->model;
    if (request->n_text_encoder_out_layers < 1 || request->n_text_encoder_out_layers > LK_MAX_OUT_LAYERS)
        return lk_fail(LK_E_USAGE, "text_encoder_out_layers: expected 1 to %d layers, got %d", LK_MAX_OUT_LAYERS,
                       request->n_text_encoder_out_layers);
    int64_t n_layers = 0, width = request->n_text_encoder_out_layers * m->text_config.hidden_size;
    for (int i = 0; i < request->n_text_encoder_out_layers; i++) {
        if (request->text_encoder_out_layers[i] < 0)
            return lk_fail(LK_E_USAGE, "text_encoder_out_layers: expected 0 or more, got %d",
                           request->text_encoder_out_layers[i]);
        if (request->text_encoder_out_layers[i] > n_layers) n_layers = request->text_encoder_out_layers[i];
    }
    if (width != m->transformer.config.joint_attention_dim)
        return lk_fail(
            LK_E_USAGE,
            "%s/transformer/config.json: joint_attention_dim: expected %lld for text_encoder_out_layers: %d layers of "
            "width %lld, got %lld",
            lk_pipeline_folder(pipeline) ? lk_pipeline_folder(pipeline) : "the model", (long long)width,
            request->n_text_encoder_out_layers, (long long)m->text_config.hidden_size,
            (long long)m->transformer.config.joint_attention_dim);
    if (m->text.layers && (m->text.n_layers == n_layers || (or_more && m->text.n_layers > n_layers))) return LK_OK;
    struct lk_mistral bound; /* in the old one's place only when it is there: other jobs may want that */
    LK_TRY(lk_mistral_bind(&bound, &m->text_config, n_layers,
                           pipeline->has_weights && !pipeline->text_identity[0] ? &m->checkpoints[TEXT_ENCODER] : NULL,
                           pipeline->compute));
    lk_mistral_free(&m->text);
    m->text = bound;
    return LK_OK;
}
