/* FLUX.2-dev: configurations, weights and tokenizer of a model folder. */
#include <stdio.h>
#include <string.h>

#include "engine/alloc.h"
#include "models/flux2/flux2.h"
#include "weights/verify.h"

enum { TEXT_ENCODER, TRANSFORMER, VAE };

static enum lk_code scheduler_config_read(struct lk_flow_match_config *out, struct lk_config *json) {
    static const char *const must_be_off[] = {"invert_sigmas", "stochastic_sampling", "use_beta_sigmas",
                                              "use_exponential_sigmas", "use_karras_sigmas"};
    struct lk_flow_match_config c = {0};
    int64_t train = 1000, base = 256, most = 4096;
    const char *type = "exponential";
    lk_config_expect_string(json, "_class_name", "FlowMatchEulerDiscreteScheduler");
    lk_config_ignore(json, "_diffusers_version");
    for (size_t i = 0; i < sizeof must_be_off / sizeof *must_be_off; i++)
        lk_config_expect_bool(json, must_be_off[i], false);
    lk_config_int_or(json, "num_train_timesteps", &train, 1000, 1, 1000000);
    lk_config_bool_or(json, "use_dynamic_shifting", &c.use_dynamic_shifting, false);
    lk_config_number_or(json, "shift", &c.shift, 1.0, 1e-6, 1e6);
    lk_config_number_or(json, "shift_terminal", &c.shift_terminal, 0, 0, 1);
    lk_config_string_or(json, "time_shift_type", &type, "exponential");
    lk_config_int_or(json, "base_image_seq_len", &base, 256, 1, 1 << 24);
    lk_config_int_or(json, "max_image_seq_len", &most, 4096, 1, 1 << 24);
    lk_config_number_or(json, "base_shift", &c.base_shift, 0.5, -100, 100);
    lk_config_number_or(json, "max_shift", &c.max_shift, 1.15, -100, 100);
    c.exponential = type && !strcmp(type, "exponential");
    if (type && !c.exponential && strcmp(type, "linear"))
        lk_config_problem(json, "time_shift_type", LK_E_CONFIG_VALUE,
                          "expected \"exponential\" or \"linear\", got \"%s\"", type);
    c.num_train_timesteps = (int)train;
    c.base_image_seq_len = (int)base;
    c.max_image_seq_len = (int)most;
    *out = c;
    return lk_config_close(json);
}

/* model_index.json names the classes of the components: others than the known ones are refused. */
static enum lk_code check_model_index(const char *folder) {
    static const char *const components[][2] = {{"scheduler", "FlowMatchEulerDiscreteScheduler"},
                                                {"text_encoder", "Mistral3ForConditionalGeneration"},
                                                {"transformer", "Flux2Transformer2DModel"},
                                                {"vae", "AutoencoderKLFlux2"}};
    struct lk_config *json;
    char *path;
    LK_TRY(lk_model_path(folder, "model_index.json", &path));
    enum lk_code rc = lk_config_open(&json, path);
    lk_free(path);
    if (rc) return rc;
    lk_config_expect_string(json, "_class_name", "Flux2Pipeline");
    lk_config_ignore(json, "_diffusers_version");
    lk_config_ignore(json, "_name_or_path");
    lk_config_ignore(json, "tokenizer"); /* any class: tokenizer.json decides */
    for (size_t i = 0; i < sizeof components / sizeof *components; i++) {
        const char *names[2];
        size_t n = 0;
        lk_config_strings(json, components[i][0], names, 2, &n);
        if (n != 2 || strcmp(names[1], components[i][1]))
            lk_config_problem(json, components[i][0], LK_E_CONFIG_VALUE, "expected class %s, got %s", components[i][1],
                              n == 2 ? names[1] : "none");
    }
    return lk_config_close(json);
}

/* A component's config: folder/relative, or the released text when there is no folder. */
static enum lk_code config_of(const char *folder, const char *relative, const char *released, struct lk_config **out) {
    if (!folder) return lk_config_parse(out, released, strlen(released), relative);
    char *path;
    LK_TRY(lk_model_path(folder, relative, &path));
    enum lk_code rc = lk_config_open(out, path);
    lk_free(path);
    return rc;
}

static enum lk_code read_configs(struct lk_flux2 *m, const char *folder,
                                 struct lk_flux2_transformer_config *transformer, struct lk_vae_config *vae) {
    struct lk_config *json;
    if (folder) LK_TRY(check_model_index(folder));
    LK_TRY(config_of(folder, "scheduler/scheduler_config.json", lk_flux2_released_scheduler, &json));
    LK_TRY(scheduler_config_read(&m->scheduler, json));
    LK_TRY(config_of(folder, "text_encoder/config.json", lk_flux2_released_text_encoder, &json));
    LK_TRY(lk_mistral_config_read(&m->text_config, json));
    LK_TRY(config_of(folder, "transformer/config.json", lk_flux2_released_transformer, &json));
    LK_TRY(lk_flux2_transformer_config_read(transformer, json));
    LK_TRY(config_of(folder, "vae/config.json", lk_flux2_released_vae, &json));
    LK_TRY(lk_vae_config_read(vae, json));
    if (transformer->in_channels != 4 * vae->latent_channels)
        return lk_fail(
            LK_E_CONFIG_VALUE, "%s: transformer in_channels: expected 4 x the VAE's latent_channels = %lld, got %lld",
            folder ? folder : "flux2-dev", 4 * (long long)vae->latent_channels, (long long)transformer->in_channels);
    return LK_OK;
}

static enum lk_code open_component(struct lk_checkpoint *out, const char *folder, const char *component,
                                   const char *stem) {
    char *path;
    LK_TRY(lk_model_path(folder, component, &path));
    enum lk_code rc = lk_checkpoint_open(out, path, stem);
    lk_free(path);
    return rc;
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
    LK_TRY(open_component(&m->checkpoints[TEXT_ENCODER], folder, "text_encoder", "model"));
    LK_TRY(open_component(&m->checkpoints[TRANSFORMER], folder, "transformer", "diffusion_pytorch_model"));
    LK_TRY(open_component(&m->checkpoints[VAE], folder, "vae", "diffusion_pytorch_model"));
    return LK_OK;
}

enum lk_code lk_flux2_weights_identity(const struct lk_pipeline *pipeline, char out[65]) {
    const struct lk_flux2 *m = pipeline->model;
    char all[3 * 65 + 1] = "";
    for (int i = 0; i < 3; i++) {
        char one[65];
        LK_TRY(lk_checkpoint_identity(&m->checkpoints[i], one));
        strcat(strcat(all, one), "\n");
    }
    lk_sha256(all, strlen(all), out);
    return LK_OK;
}

static enum lk_code open_model(struct lk_flux2 *m, struct lk_pipeline *pipeline, bool with_weights) {
    struct lk_flux2_transformer_config transformer;
    struct lk_vae_config vae;
    LK_TRY(read_configs(m, pipeline->folder, &transformer, &vae));
    if (with_weights) LK_TRY(open_files(m, pipeline));
    LK_TRY(lk_flux2_transformer_bind(&m->transformer, &transformer, with_weights ? &m->checkpoints[TRANSFORMER] : NULL,
                                     pipeline->compute));
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

enum lk_code lk_flux2_bind_text(struct lk_pipeline *pipeline, const struct lk_request *request) {
    struct lk_flux2 *m = pipeline->model;
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
            "text_encoder_out_layers: %d layers of width %lld give %lld channels, the transformer takes %lld",
            request->n_text_encoder_out_layers, (long long)m->text_config.hidden_size, (long long)width,
            (long long)m->transformer.config.joint_attention_dim);
    if (m->text.layers && m->text.n_layers == n_layers) return LK_OK;
    lk_mistral_free(&m->text);
    return lk_mistral_bind(&m->text, &m->text_config, n_layers,
                           pipeline->has_weights ? &m->checkpoints[TEXT_ENCODER] : NULL, pipeline->compute);
}
