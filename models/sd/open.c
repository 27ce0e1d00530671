/* Stable Diffusion: configurations, weights and tokenizers of a model folder. */
#include <string.h>

#include "engine/base/alloc.h"
#include "models/common/files.h"
#include "models/sd/sd.h"
#include "weights/quant/rename.h"

/* model_index.json: known components with their classes, and whether they may be null. */
static enum lk_code read_index(struct lk_sd *m, const char *folder) {
    static const char *const inert[] = {
        "_diffusers_version", "_name_or_path",  "scheduler",         "tokenizer",
        "tokenizer_2",        "safety_checker", "feature_extractor", "requires_safety_checker",
        "image_encoder",      "add_watermarker"};
    const struct {
        const char *name, *class_name;
        bool xl;
    } components[] = {{"text_encoder", "CLIPTextModel", false},
                      {"text_encoder_2", "CLIPTextModelWithProjection", true},
                      {"unet", "UNet2DConditionModel", false},
                      {"vae", "AutoencoderKL", false}};
    struct lk_config *json;
    char *path;
    LK_TRY(lk_model_path(folder, "model_index.json", &path));
    enum lk_code rc = lk_config_open(&json, path);
    lk_free(path);
    if (rc) return rc;
    lk_config_expect_string(json, "_class_name", m->xl ? "StableDiffusionXLPipeline" : "StableDiffusionPipeline");
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(json, inert[i]);
    for (size_t i = 0; i < sizeof components / sizeof *components; i++) {
        const char *names[2];
        size_t n = 0;
        if (components[i].xl && !m->xl) continue;
        lk_config_strings(json, components[i].name, names, 2, &n);
        if (n != 2 || strcmp(names[1], components[i].class_name))
            lk_config_problem(json, components[i].name, LK_E_CONFIG_VALUE, "expected class %s, got %s",
                              components[i].class_name, n == 2 ? names[1] : "none");
    }
    m->force_zeros = false;
    if (m->xl) lk_config_bool_or(json, "force_zeros_for_empty_prompt", &m->force_zeros, true);
    return lk_config_close(json);
}

static enum lk_code check_widths(const struct lk_sd *m, const struct lk_clip_text_config text[2],
                                 const struct lk_unet_config *unet, const struct lk_vae_config *vae, const char *name) {
    const int64_t width = text[0].hidden_size + (m->xl ? text[1].hidden_size : 0);
    if (unet->cross_attention_dim != width)
        return lk_fail(LK_E_CONFIG_VALUE,
                       "%s/unet/config.json: cross_attention_dim: expected %lld as the text encoders%s"
                       " have, got %lld",
                       name, (long long)width, m->xl ? " together" : "", (long long)unet->cross_attention_dim);
    if (!m->xl != !unet->addition_time_embed_dim)
        return lk_fail(LK_E_CONFIG_VALUE, "%s/unet/config.json: addition_embed_type: expected %s", name,
                       m->xl ? "\"text_time\"" : "null");
    if (m->xl && (unet->pooled_dim != text[1].projection_dim || unet->pooled_dim > width))
        return lk_fail(LK_E_CONFIG_VALUE,
                       "%s/unet/config.json: projection_class_embeddings_input_dim: expected text_encoder_2's "
                       "projection_dim + 6 addition_time_embed_dim = %lld, got %lld",
                       name, (long long)(text[1].projection_dim + LK_UNET_SIZE_IDS * unet->addition_time_embed_dim),
                       (long long)(unet->pooled_dim + LK_UNET_SIZE_IDS * unet->addition_time_embed_dim));
    if (vae->latent_channels != unet->in_channels)
        return lk_fail(LK_E_CONFIG_VALUE, "%s/vae/config.json: latent_channels: expected %lld, got %lld", name,
                       (long long)unet->in_channels, (long long)vae->latent_channels);
    return LK_OK;
}

static enum lk_code read_configs(struct lk_sd *m, const struct lk_pipeline *pipeline,
                                 struct lk_clip_text_config text[2], struct lk_unet_config *unet,
                                 struct lk_vae_config *vae) {
    const struct lk_sd_released *released = &lk_sd_released[m->xl];
    const char *folder = pipeline->folder;
    struct lk_config *json;
    char *index = NULL;
    /* A single file has the released configs, unless it lies in a folder that has some. */
    if (pipeline->single_file && lk_model_path(folder, "model_index.json", &index) == LK_E_NOT_FOUND) folder = NULL;
    lk_free(index);
    if (folder) LK_TRY(read_index(m, folder));
    if (!folder) m->force_zeros = m->xl;
    LK_TRY(lk_component_config(&json, folder, "scheduler/scheduler_config.json", released->scheduler));
    LK_TRY(lk_sampler_config_read(&m->scheduler, json));
    LK_TRY(lk_component_config(&json, folder, "text_encoder/config.json", released->text_encoder));
    LK_TRY(lk_clip_text_config_read(&text[0], json, false));
    if (m->xl) {
        LK_TRY(lk_component_config(&json, folder, "text_encoder_2/config.json", released->text_encoder_2));
        LK_TRY(lk_clip_text_config_read(&text[1], json, true));
    }
    LK_TRY(lk_component_config(&json, folder, "unet/config.json", released->unet));
    LK_TRY(lk_unet_config_read(unet, json));
    LK_TRY(lk_component_config(&json, folder, "vae/config.json", released->vae));
    LK_TRY(lk_vae_config_read(vae, json, "AutoencoderKL"));
    return check_widths(m, text, unet, vae, folder ? folder : pipeline->name);
}

/* The first names of the attention in the middle of a VAE. */
static enum lk_code rename_vae(struct lk_checkpoint *vae) {
    static const struct lk_rename rules[] = {
#define SIDE(side)                                                                                                     \
    {side ".mid_block.attentions.0.query", side ".mid_block.attentions.0.to_q", 0, 1, 1, false},                       \
        {side ".mid_block.attentions.0.key", side ".mid_block.attentions.0.to_k", 0, 1, 1, false},                     \
        {side ".mid_block.attentions.0.value", side ".mid_block.attentions.0.to_v", 0, 1, 1, false},                   \
        {side ".mid_block.attentions.0.proj_attn", side ".mid_block.attentions.0.to_out.0", 0, 1, 1, false}
        SIDE("encoder"), SIDE("decoder")
#undef SIDE
    };
    if (!lk_checkpoint_find(vae, "decoder.mid_block.attentions.0.query.weight")) return LK_OK;
    return lk_checkpoint_rename(vae, "", rules, sizeof rules / sizeof *rules);
}

static enum lk_code open_tokenizers(struct lk_sd *m, const struct lk_pipeline *pipeline) {
    static const char *const names[] = {"tokenizer", "tokenizer_2"};
    for (int i = 0; i < m->n_text; i++) {
        enum lk_code rc = lk_tokenizer_open_clip(&m->tokenizers[i], pipeline->folder, names[i], &m->clip_ids[i]);
        if (rc == LK_E_NOT_FOUND && pipeline->single_file)
            return lk_fail_prefix(rc, "%s has no tokenizer: put the folder %s of a repository of this model beside it",
                                  pipeline->single_file, names[i]);
        if (rc) return rc;
    }
    return LK_OK;
}

static enum lk_code open_files(struct lk_sd *m, const struct lk_pipeline *p) {
    static const char *const names[] = {"text_encoder", "unet", "vae", "text_encoder_2"};
    const struct lk_file_variant variant = {p->variant ? p->variant : "fp16", p->variant != NULL};
    for (int i = 0; i < (m->xl ? LK_SD_CHECKPOINTS : LK_SD_TEXT_2); i++)
        LK_TRY(lk_component_open_variant(&m->checkpoints[i], p->folder, names[i],
                                         strncmp(names[i], "text", 4) ? "diffusion_pytorch_model" : "model", variant));
    return rename_vae(&m->checkpoints[LK_SD_VAE]);
}

static enum lk_code check_vocabulary(const struct lk_sd *m, const char *folder) {
    for (int i = 0; i < m->n_text; i++)
        if (lk_tokenizer_vocab_size(m->tokenizers[i]) > m->text[i].config.vocab_size)
            return lk_fail(LK_E_TOKENIZER, "%s/tokenizer%s: expected at most %lld ids, as the text encoder has, got %d",
                           folder, i ? "_2" : "", (long long)m->text[i].config.vocab_size,
                           (int)lk_tokenizer_vocab_size(m->tokenizers[i]));
    return LK_OK;
}

/* Adapters name its modules as it does itself or as its authors' code does. */
static enum lk_code bind_unet(struct lk_sd *m, const struct lk_unet_config *config, const struct lk_checkpoint *from,
                              const struct lk_pipeline *pipeline) {
    struct lk_sd_names names = {0};
    enum lk_code rc = pipeline->loras ? lk_loras_check_components(pipeline->loras, m->n_text) : LK_OK;
    if (!rc && pipeline->loras) rc = lk_sd_unet_names(&names, config);
    if (!rc)
        rc = lk_unet_bind(&m->unet, config, from, pipeline->compute,
                          &(struct lk_unet_adapters){pipeline->loras, names.list, names.n});
    lk_sd_names_free(&names);
    return rc;
}

static enum lk_code open_model(struct lk_sd *m, struct lk_pipeline *pipeline, bool with_weights) {
    static const char *const names[] = {"text_encoder", "text_encoder_2"};
    struct lk_clip_text_config text[2] = {0};
    struct lk_unet_config unet;
    struct lk_vae_config vae;
    const enum lk_dtype compute = pipeline->compute;
    if (pipeline->quantize)
        return lk_fail(LK_E_USAGE,
                       "--quantize: the UNet of %s is mostly convolutions, which are never packed; leave it "
                       "out",
                       pipeline->name);
    if (pipeline->transformer)
        return lk_fail(LK_E_USAGE, "--transformer: %s has a UNet; give a folder with its weights", pipeline->name);
    LK_TRY(read_configs(m, pipeline, text, &unet, &vae));
    if (with_weights) LK_TRY(open_tokenizers(m, pipeline));
    if (with_weights)
        LK_TRY(pipeline->single_file ? lk_sd_open_single_file(m, pipeline->single_file, &unet, &vae)
                                     : open_files(m, pipeline));
    const struct lk_checkpoint *from = with_weights ? m->checkpoints : NULL;
    for (int i = 0; i < m->n_text; i++)
        LK_TRY(lk_clip_text_bind_with(&m->text[i], &text[i], from ? &from[i ? LK_SD_TEXT_2 : LK_SD_TEXT] : NULL,
                                      names[i], LK_F32, pipeline->loras));
    if (with_weights) LK_TRY(check_vocabulary(m, pipeline->folder));
    LK_TRY(bind_unet(m, &unet, from ? &from[LK_SD_UNET] : NULL, pipeline));
    return lk_vae_bind(&m->vae, &vae, from ? &from[LK_SD_VAE] : NULL, compute);
}

enum lk_code lk_sd_open(struct lk_pipeline *pipeline, bool with_weights) {
    struct lk_sd *m = lk_calloc(1, sizeof *m);
    if (!m) return lk_fail(LK_E_NOMEM, "Stable Diffusion: out of memory");
    m->xl = pipeline->family == &lk_family_sdxl;
    m->n_text = m->xl ? 2 : 1;
    pipeline->model = m;
    enum lk_code rc = open_model(m, pipeline, with_weights);
    if (rc) lk_sd_close(pipeline);
    return rc;
}

void lk_sd_close(struct lk_pipeline *pipeline) {
    struct lk_sd *m = pipeline->model;
    for (int i = 0; i < 2; i++) {
        lk_clip_text_free(&m->text[i]);
        lk_tokenizer_free(m->tokenizers[i]);
    }
    lk_unet_free(&m->unet);
    lk_vae_free(&m->vae);
    for (int i = 0; i < LK_SD_CHECKPOINTS; i++) lk_checkpoint_close(&m->checkpoints[i]);
    lk_free(m);
    pipeline->model = NULL;
}
