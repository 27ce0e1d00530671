/* Single files: all weights of a model under the names of its authors' code (LDM), as they were first published. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/sd/sd.h"
#include "weights/quant/rename.h"

/* What every part's names begin with. */
static const char *const prefixes[2][LK_SD_CHECKPOINTS] = {
    {"cond_stage_model.transformer.", "model.diffusion_model.", "first_stage_model.", NULL},
    {"conditioner.embedders.0.transformer.", "model.diffusion_model.", "first_stage_model.",
     "conditioner.embedders.1.model."}};

/* Known and not read: other weights of the same model, tables that the scheduler's config gives, and what of a text
 * encoder pictures go through. */
static const char *const ignored[] = {"model_ema.",
                                      "alphas_cumprod",
                                      "betas",
                                      "sqrt_",
                                      "log_one_minus_",
                                      "posterior_",
                                      "denoiser.sigmas",
                                      "cond_stage_model.logit_scale",
                                      "conditioner.embedders.1.model.logit_scale",
                                      "conditioner.embedders.1.model.attn_mask",
                                      "conditioner.embedders.1.model.visual.",
                                      NULL};
/* Empty tensors that say how the model was trained. */
static const char *const markers[] = {"v_pred", "ztsnr", NULL};

static bool has(const struct lk_checkpoint *cp, const char *name) { return lk_checkpoint_find(cp, name) != NULL; }

static bool begins_with_one(const char *name, const char *const *list) {
    for (; *list; list++)
        if (!strncmp(name, *list, strlen(*list))) return true;
    return false;
}

static enum lk_code refuse(const char *path, const char *what) {
    return lk_fail(LK_E_MODEL_UNKNOWN, "%s: %s: expected a single file of Stable Diffusion 1.5 or SDXL base", path,
                   what);
}

/* In the order in which diffusers tells them apart. */
static enum lk_code find_kind(const struct lk_checkpoint *cp, const char *path, bool *xl) {
#define UNET "model.diffusion_model."
    const struct lk_st_tensor *conv_in = lk_checkpoint_find(cp, UNET "input_blocks.0.0.weight"), *keys;
    if (!conv_in || conv_in->tensor.n_dims != 4)
        return refuse(path, has(cp, "down_blocks.0.resnets.0.conv1.weight") ? "a UNet alone, in diffusers' names"
                                                                            : "no Stable Diffusion");
    if (conv_in->tensor.shape[1] == 9) return refuse(path, "a model for inpainting");
    if (conv_in->tensor.shape[1] == 8) return refuse(path, "InstructPix2Pix");
    if (has(cp, "edm_mean")) return refuse(path, "Playground");
    if (has(cp, "edm_vpred.sigma_min")) return refuse(path, "a model of EDM's noise levels");
    *xl = has(cp, "conditioner.embedders.1.model.transformer.resblocks.9.mlp.c_proj.bias") ||
          has(cp, "conditioner.embedders.1.model.transformer.resblocks.1.mlp.c_proj.bias");
    if (*xl) return LK_OK;
    if (has(cp, "conditioner.embedders.0.model.transformer.resblocks.9.mlp.c_proj.bias"))
        return refuse(path, "SDXL's refiner");
    keys = lk_checkpoint_find(cp, UNET "input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight");
    if (keys && keys->tensor.n_dims == 2 && keys->tensor.shape[1] == 1024) return refuse(path, "Stable Diffusion 2");
    return LK_OK;
}

enum lk_code lk_sd_single_file_family(const char *path, const struct lk_family **out) {
    struct lk_checkpoint cp;
    bool xl = false;
    LK_TRY(lk_checkpoint_open_file(&cp, path));
    enum lk_code rc = find_kind(&cp, path, &xl);
    lk_checkpoint_close(&cp);
    *out = xl ? &lk_family_sdxl : &lk_family_sd;
    return rc;
}

static void add(struct lk_sd_names *r, const char *from, const char *to) {
    if (!r->rc) r->rc = lk_grow(&r->list, &r->capacity, r->n + 1, sizeof *r->list);
    if (r->rc) return;
    char *texts[] = {lk_strdup(from), lk_strdup(to)};
    r->list[r->n++] = (struct lk_rename){texts[0], texts[1], 0, 1, 1, false};
    if (!texts[0] || !texts[1]) r->rc = lk_fail(LK_E_NOMEM, "single file: out of memory");
}

void lk_sd_names_free(struct lk_sd_names *r) {
    for (size_t i = 0; i < r->n; i++) {
        lk_free((void *)(uintptr_t)r->list[i].from);
        lk_free((void *)(uintptr_t)r->list[i].to);
    }
    lk_free(r->list);
}

#define NAME(buffer, ...) (snprintf(buffer, sizeof buffer, __VA_ARGS__), buffer)

/* The modules of a block, each under the name that it has in the other's. */
static void add_modules(struct lk_sd_names *r, const char *from, const char *to, const char *const (*modules)[2],
                        size_t n) {
    char a[160], b[160];
    for (size_t i = 0; i < n; i++) add(r, NAME(a, "%s.%s", from, modules[i][0]), NAME(b, "%s.%s", to, modules[i][1]));
}

static void add_unet_resnet(struct lk_sd_names *r, const char *from, const char *to) {
    static const char *const modules[][2] = {{"in_layers.0", "norm1"},          {"in_layers.2", "conv1"},
                                             {"emb_layers.1", "time_emb_proj"}, {"out_layers.0", "norm2"},
                                             {"out_layers.3", "conv2"},         {"skip_connection", "conv_shortcut"}};
    add_modules(r, from, to, modules, sizeof modules / sizeof *modules);
}

static void unet_rules(struct lk_sd_names *r, const struct lk_unet_config *c) {
    const int per_level = (int)c->layers_per_block + 1;
    char from[96], to[96];
    add(r, "time_embed.0", "time_embedding.linear_1");
    add(r, "time_embed.2", "time_embedding.linear_2");
    add(r, "label_emb.0.0", "add_embedding.linear_1");
    add(r, "label_emb.0.2", "add_embedding.linear_2");
    add(r, "input_blocks.0.0", "conv_in");
    add(r, "out.0", "conv_norm_out");
    add(r, "out.2", "conv_out");
    for (int i = 0; i < c->n_levels; i++) {
        for (int j = 0; j + 1 < per_level; j++) {
            const int k = 1 + per_level * i + j;
            add_unet_resnet(r, NAME(from, "input_blocks.%d.0", k), NAME(to, "down_blocks.%d.resnets.%d", i, j));
            if (c->attends_down[i])
                add(r, NAME(from, "input_blocks.%d.1", k), NAME(to, "down_blocks.%d.attentions.%d", i, j));
        }
        for (int j = 0; j < per_level; j++) {
            const int k = per_level * i + j;
            add_unet_resnet(r, NAME(from, "output_blocks.%d.0", k), NAME(to, "up_blocks.%d.resnets.%d", i, j));
            if (c->attends_up[i])
                add(r, NAME(from, "output_blocks.%d.1", k), NAME(to, "up_blocks.%d.attentions.%d", i, j));
        }
        if (i + 1 == c->n_levels) break;
        add(r, NAME(from, "input_blocks.%d.0.op", per_level * (i + 1)),
            NAME(to, "down_blocks.%d.downsamplers.0.conv", i));
        add(r, NAME(from, "output_blocks.%d.%d.conv", per_level * i + per_level - 1, c->attends_up[i] ? 2 : 1),
            NAME(to, "up_blocks.%d.upsamplers.0.conv", i));
    }
    add_unet_resnet(r, "middle_block.0", "mid_block.resnets.0");
    add(r, "middle_block.1", "mid_block.attentions.0");
    add_unet_resnet(r, "middle_block.2", "mid_block.resnets.1");
}

enum lk_code lk_sd_unet_names(struct lk_sd_names *out, const struct lk_unet_config *c) {
    *out = (struct lk_sd_names){0};
    unet_rules(out, c);
    return out->rc;
}

static void add_vae_resnet(struct lk_sd_names *r, const char *from, const char *to) {
    static const char *const modules[][2] = {{"norm1", "norm1"},
                                             {"conv1", "conv1"},
                                             {"norm2", "norm2"},
                                             {"conv2", "conv2"},
                                             {"nin_shortcut", "conv_shortcut"}};
    add_modules(r, from, to, modules, sizeof modules / sizeof *modules);
}

/* The way up counts its levels from the other end. */
static void vae_rules(struct lk_sd_names *r, const struct lk_vae_config *c) {
    static const char *const attention[][2] = {
        {"norm", "group_norm"}, {"q", "to_q"}, {"k", "to_k"}, {"v", "to_v"}, {"proj_out", "to_out.0"}};
    char from[96], to[96];
    for (int up = 0; up < 2; up++) {
        const char *side = up ? "decoder" : "encoder", *way = up ? "up" : "down";
        for (int i = 0; i < c->n_levels; i++) {
            const int level = up ? c->n_levels - 1 - i : i;
            for (int j = 0; j < c->layers_per_block + up; j++)
                add_vae_resnet(r, NAME(from, "%s.%s.%d.block.%d", side, way, level, j),
                               NAME(to, "%s.%s_blocks.%d.resnets.%d", side, way, i, j));
            add(r, NAME(from, "%s.%s.%d.%ssample.conv", side, way, level, way),
                NAME(to, "%s.%s_blocks.%d.%ssamplers.0.conv", side, way, i, way));
        }
        for (int j = 0; j < 2; j++)
            add_vae_resnet(r, NAME(from, "%s.mid.block_%d", side, j + 1), NAME(to, "%s.mid_block.resnets.%d", side, j));
        add_modules(r, NAME(from, "%s.mid.attn_1", side), NAME(to, "%s.mid_block.attentions.0", side), attention,
                    sizeof attention / sizeof *attention);
        add(r, NAME(from, "%s.norm_out", side), NAME(to, "%s.conv_norm_out", side));
    }
}

/* OpenCLIP's tower: queries, keys and values are one matrix, the projection multiplies from the other side. */
static const struct lk_rename open_clip[] = {
#define BLOCK(from, to, part, n)                                                                                       \
    { "transformer.resblocks.%d." from, "text_model.encoder.layers.%d." to, part, 1, n, false }
    {"token_embedding", "text_model.embeddings.token_embedding", 0, 1, 1, false},
    {"positional_embedding", "text_model.embeddings.position_embedding.weight", 0, 1, 1, false},
    {"ln_final", "text_model.final_layer_norm", 0, 1, 1, false},
    {"text_projection", "text_projection.weight", 0, 1, 1, false},
    BLOCK("ln_1", "layer_norm1", 0, 1),
    BLOCK("ln_2", "layer_norm2", 0, 1),
    BLOCK("mlp.c_fc", "mlp.fc1", 0, 1),
    BLOCK("mlp.c_proj", "mlp.fc2", 0, 1),
    BLOCK("attn.out_proj", "self_attn.out_proj", 0, 1),
    BLOCK("attn.in_proj_weight", "self_attn.q_proj.weight", 0, 3),
    BLOCK("attn.in_proj_weight", "self_attn.k_proj.weight", 1, 3),
    BLOCK("attn.in_proj_weight", "self_attn.v_proj.weight", 2, 3),
    BLOCK("attn.in_proj_bias", "self_attn.q_proj.bias", 0, 3),
    BLOCK("attn.in_proj_bias", "self_attn.k_proj.bias", 1, 3),
    BLOCK("attn.in_proj_bias", "self_attn.v_proj.bias", 2, 3),
#undef BLOCK
};

/* The one part of the file, under diffusers' names. */
static enum lk_code open_part(struct lk_checkpoint *cp, const char *path, const char *prefix,
                              const struct lk_rename *rules, size_t n_rules) {
    LK_TRY(lk_checkpoint_open_file(cp, path));
    lk_checkpoint_keep(cp, prefix, ignored);
    if (!cp->n_tensors) return lk_fail(LK_E_BIND, "%s: no tensor begins with \"%s\"", path, prefix);
    return lk_checkpoint_rename(cp, prefix, rules, n_rules);
}

static enum lk_code check_names(const struct lk_checkpoint *cp, const char *path, const char *const *parts) {
    for (size_t i = 0; i < cp->n_tensors; i++) {
        const char *name = cp->tensors[i].tensor->name;
        const bool known = begins_with_one(name, ignored) || begins_with_one(name, parts) ||
                           !strcmp(name, markers[0]) || !strcmp(name, markers[1]);
        if (!known) return lk_fail(LK_E_BIND, "%s: unexpected tensor \"%.200s\"", path, name);
    }
    return LK_OK;
}

/* modelspec.prediction_type in the file's metadata. */
static enum lk_code read_metadata(const struct lk_checkpoint *cp, const char *path, bool *v) {
    const char *text = cp->shards[0].metadata_json, *type = NULL;
    struct lk_config *json;
    if (!text) return LK_OK;
    LK_TRY(lk_config_parse(&json, text, strlen(text), path));
    lk_config_string_or(json, "modelspec.prediction_type", &type, NULL);
    *v = *v || (type && *type == 'v');
    const bool known = !type || *type == 'v' || !strcmp(type, "epsilon") || !strcmp(type, "eps");
    enum lk_code rc =
        known
            ? LK_OK
            : lk_fail(LK_E_METADATA, "%s: modelspec.prediction_type: expected epsilon or v, got \"%.40s\"", path, type);
    lk_config_discard(json);
    return rc;
}

static enum lk_code read_training(struct lk_sd *m, const char *path) {
    const char *parts[LK_SD_CHECKPOINTS + 1] = {0};
    struct lk_checkpoint cp;
    for (int i = 0; i < LK_SD_CHECKPOINTS; i++) parts[i] = prefixes[m->xl][i];
    LK_TRY(lk_checkpoint_open_file(&cp, path));
    enum lk_code rc = check_names(&cp, path, parts);
    if (!rc) {
        m->scheduler.v_prediction = m->scheduler.v_prediction || has(&cp, markers[0]);
        m->scheduler.zero_snr = m->scheduler.zero_snr || has(&cp, markers[1]);
        rc = read_metadata(&cp, path, &m->scheduler.v_prediction);
    }
    lk_checkpoint_close(&cp);
    return rc;
}

/* Convolutions of one pixel are matrices to who binds them. */
static void flatten_attention(struct lk_checkpoint *vae) {
    for (size_t i = 0; i < vae->n_renamed; i++) {
        struct lk_tensor *t = &vae->renamed[i].tensor;
        if (strstr(vae->renamed[i].name, "mid_block.attentions.0.to_") && t->n_dims == 4 && t->shape[2] == 1 &&
            t->shape[3] == 1)
            *t = LK_VIEW(t, t->shape[0], t->shape[1]);
    }
}

enum lk_code lk_sd_open_single_file(struct lk_sd *m, const char *path, const struct lk_unet_config *unet,
                                    const struct lk_vae_config *vae) {
    const char *const *prefix = prefixes[m->xl];
    struct lk_sd_names unet_names = {0}, vae_names = {0};
    unet_rules(&unet_names, unet);
    vae_rules(&vae_names, vae);
    enum lk_code rc = unet_names.rc ? unet_names.rc : vae_names.rc;
    if (!rc) rc = read_training(m, path);
    if (!rc) rc = open_part(&m->checkpoints[LK_SD_TEXT], path, prefix[LK_SD_TEXT], NULL, 0);
    if (!rc) rc = open_part(&m->checkpoints[LK_SD_UNET], path, prefix[LK_SD_UNET], unet_names.list, unet_names.n);
    if (!rc) rc = open_part(&m->checkpoints[LK_SD_VAE], path, prefix[LK_SD_VAE], vae_names.list, vae_names.n);
    if (!rc) flatten_attention(&m->checkpoints[LK_SD_VAE]);
    if (!rc && m->xl)
        rc = open_part(&m->checkpoints[LK_SD_TEXT_2], path, prefix[LK_SD_TEXT_2], open_clip,
                       sizeof open_clip / sizeof *open_clip);
    if (!rc && m->xl) rc = lk_checkpoint_transpose(&m->checkpoints[LK_SD_TEXT_2], "text_projection.weight");
    lk_sd_names_free(&unet_names);
    lk_sd_names_free(&vae_names);
    return rc;
}
