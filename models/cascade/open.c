/* Stable Cascade: configurations, weights and the tokenizer of its two repositories. The model's folder is the
 * decoder's; the prior's lies beside it. A folder as diffusers' combined pipeline saves it has both, the prior's
 * components with "prior_" before their names: so they are called in recipes, wherever they lie. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "models/cascade/cascade.h"
#include "models/cascade/released.h"
#include "models/common/files.h"
#include "weights/config_identity.h"

#define PRIOR   "prior_"
#define VARIANT "bf16" /* of files that are tried where there is none without one */

enum { COMBINED, DECODER, PRIOR_ALONE };
static const char *const classes[] = {"StableCascadeCombinedPipeline", "StableCascadeDecoderPipeline",
                                      "StableCascadePriorPipeline", NULL};

/* Where the prior's components are: folder/PREFIXcomponent. */
struct prior {
    char *folder;
    const char *prefix;
};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "Stable Cascade: out of memory"); }

static bool is_folder(const char *path) {
    struct stat st;
    return path && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Whether there is folder/relative. */
static enum lk_code has(const char *folder, const char *relative, bool *found) {
    char *path = NULL;
    const enum lk_code rc = lk_model_path(folder, relative, &path);
    lk_free(path);
    *found = !rc;
    return rc == LK_E_NOT_FOUND ? LK_OK : rc;
}

enum lk_code lk_cascade_enter(char **folder) {
    bool whole;
    LK_TRY(has(*folder, "model_index.json", &whole));
    if (whole) return LK_OK;
    char *inner = lk_format("%s/stable-cascade", *folder);
    if (!inner) return out_of_memory();
    const bool both = is_folder(inner);
    lk_free(both ? *folder : inner);
    if (both) *folder = inner;
    return LK_OK;
}

/* The prior's repository: NAME-prior beside the folder NAME, or, of a snapshot in the cache, the repository
 * ORG/NAME-prior there. */
static enum lk_code find_prior(const char *folder, char **out) {
    char real[PATH_MAX], *snapshots, *name;
    if (!realpath(folder, real)) return lk_fail(LK_E_NOT_FOUND, "%s: no such folder", folder);
    *out = lk_format("%s-prior", real);
    if (!*out) return out_of_memory();
    if (is_folder(*out)) return LK_OK;
    if ((snapshots = strstr(real, "/snapshots/"))) *snapshots = 0;
    name = strrchr(real, '/');
    char *org = name && snapshots && !strncmp(name, "/models--", 9) ? name + 9 : NULL,
         *rest = org ? strstr(org, "--") : NULL;
    if (!rest)
        return lk_fail(LK_E_NOT_FOUND,
                       "%s holds Stable Cascade's decoder: its prior was looked for in %s; put it there", folder, *out);
    lk_free(*out);
    *out = NULL;
    *rest = 0;
    char *repository = lk_format("%s/%s-prior", org, rest + 2);
    enum lk_code rc = repository ? lk_model_find(repository, out) : out_of_memory();
    lk_free(repository);
    return rc ? lk_fail_prefix(rc, "Stable Cascade's prior") : LK_OK;
}

static void expect_class(struct lk_config *json, const char *prefix, const char *component, const char *class_name) {
    const char *names[2];
    char name[64];
    size_t n = 0;
    snprintf(name, sizeof name, "%s%s", prefix, component);
    lk_config_strings(json, name, names, 2, &n);
    if (n != 2 || strcmp(names[1], class_name))
        lk_config_problem(json, name, LK_E_CONFIG_VALUE, "expected class %s, got %s", class_name,
                          n == 2 ? names[1] : "none");
}

/* One model_index.json: its class, components with their classes, and the two numbers that sizes go by. */
static enum lk_code read_index(const char *folder, int kind) {
    static const struct {
        const char *name, *class_name;
        bool of_prior, of_decoder;
    } components[] = {{"text_encoder", "CLIPTextModelWithProjection", true, true},
                      {"scheduler", "DDPMWuerstchenScheduler", true, true},
                      {"prior", "StableCascadeUNet", true, false},
                      {"decoder", "StableCascadeUNet", false, true},
                      {"vqgan", "PaellaVQModel", false, true}};
    static const char *const inert[] = {"_diffusers_version",  "_name_or_path",          "tokenizer",
                                        "image_encoder",       "feature_extractor",      PRIOR "tokenizer",
                                        PRIOR "image_encoder", PRIOR "feature_extractor"};
    const char *prefix = kind == COMBINED ? PRIOR : "";
    struct lk_config *json;
    char *path;
    double number;
    LK_TRY(lk_model_path(folder, "model_index.json", &path));
    enum lk_code rc = lk_config_open(&json, path);
    lk_free(path);
    if (rc) return rc;
    lk_config_expect_string(json, "_class_name", classes[kind]);
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(json, inert[i]);
    lk_config_number_or(json, "resolution_multiple", &number, 42.67, 42.67, 42.67);
    lk_config_number_or(json, "latent_dim_scale", &number, 10.67, 10.67, 10.67);
    for (size_t i = 0; i < sizeof components / sizeof *components; i++) {
        if (kind != PRIOR_ALONE && components[i].of_decoder)
            expect_class(json, "", components[i].name, components[i].class_name);
        if (kind != DECODER && components[i].of_prior)
            expect_class(json, prefix, components[i].name, components[i].class_name);
    }
    return lk_config_close(json);
}

/* Checks what the folder says that it is, and finds the prior. */
static enum lk_code read_indices(const char *folder, struct prior *prior) {
    char *path;
    struct lk_config *json;
    const char *class_name = NULL;
    int kind = 0;
    LK_TRY(lk_model_path(folder, "model_index.json", &path));
    enum lk_code rc = lk_config_open(&json, path);
    lk_free(path);
    if (rc) return rc;
    lk_config_string(json, "_class_name", &class_name);
    while (classes[kind] && class_name && strcmp(classes[kind], class_name)) kind++;
    lk_config_discard(json);
    if (kind == PRIOR_ALONE)
        return lk_fail(LK_E_USAGE,
                       "%s holds Stable Cascade's prior alone; give the decoder's repository, beside which it lies",
                       folder);
    LK_TRY(read_index(folder, kind));
    if (kind == COMBINED) {
        *prior = (struct prior){lk_strdup(folder), PRIOR};
        return prior->folder ? LK_OK : out_of_memory();
    }
    prior->prefix = "";
    LK_TRY(find_prior(folder, &prior->folder));
    LK_TRY(lk_config_identity_also(prior->folder, PRIOR));
    return read_index(prior->folder, PRIOR_ALONE);
}

/* The folders of both networks: the smaller ones where the larger ones are not there. */
struct names {
    char prior[40], decoder[40], prior_text[40], prior_tokenizer[40], prior_scheduler[40];
    bool lite;
};

/* NAME, or NAME_lite where the folder has that alone. */
static enum lk_code name_unet(char *out, size_t size, const char *folder, const char *name, bool *lite) {
    bool plain = false;
    char relative[64];
    *lite = false;
    snprintf(relative, sizeof relative, "%s/config.json", name);
    LK_TRY(has(folder, relative, &plain));
    snprintf(relative, sizeof relative, "%s_lite/config.json", name);
    if (!plain) LK_TRY(has(folder, relative, lite));
    snprintf(out, size, "%s%s", name, *lite ? "_lite" : "");
    return LK_OK;
}

static enum lk_code name_components(struct names *out, const struct prior *prior, const char *folder) {
    bool lite;
    char name[32];
    const char *p = prior->prefix;
    snprintf(out->prior_text, sizeof out->prior_text, "%stext_encoder", p);
    snprintf(out->prior_tokenizer, sizeof out->prior_tokenizer, "%stokenizer", p);
    snprintf(out->prior_scheduler, sizeof out->prior_scheduler, "%sscheduler", p);
    snprintf(name, sizeof name, "%sprior", p);
    LK_TRY(name_unet(out->prior, sizeof out->prior, prior->folder, name, &out->lite));
    return name_unet(out->decoder, sizeof out->decoder, folder, "decoder", &lite);
}

static enum lk_code open_config(struct lk_config **out, const char *folder, const char *component, const char *file,
                                const char *released) {
    char *relative = lk_format("%s/%s", component, file);
    const enum lk_code rc = relative ? lk_component_config(out, folder, relative, released) : out_of_memory();
    lk_free(relative);
    return rc;
}

static enum lk_code read_scheduler(const char *folder, const char *component) {
    struct lk_config *json;
    double number;
    if (!folder) return LK_OK;
    LK_TRY(open_config(&json, folder, component, "scheduler_config.json", NULL));
    lk_config_expect_string(json, "_class_name", "DDPMWuerstchenScheduler");
    lk_config_ignore(json, "_diffusers_version");
    lk_config_number_or(json, "scaler", &number, 1, 1, 1);
    lk_config_number_or(json, "s", &number, 0.008, 0.008, 0.008);
    return lk_config_close(json);
}

struct configs {
    struct lk_clip_text_config text;
    struct lk_cascade_config prior, decoder;
    struct lk_paella_config vqgan;
};

/* What each network takes is what those before it give. */
static enum lk_code check_widths(const struct configs *c, const char *folder, const char *prior_folder,
                                 const struct names *names) {
    const char *prior = names->prior, *decoder = names->decoder, *text = "the text encoder";
    const struct {
        const char *component, *key;
        int64_t expected, got;
        const char *as;
    } widths[] = {
        {prior, "clip_text_in_channels", c->text.hidden_size, c->prior.text_dim, text},
        {prior, "clip_text_pooled_in_channels", c->text.projection_dim, c->prior.pooled_dim, text},
        {prior, "in_channels", c->prior.out_channels, c->prior.in_channels, "out_channels"},
        {prior, "patch_size", 1, c->prior.patch_size, "a prior"},
        {decoder, "clip_text_in_channels", 0, c->decoder.text_dim, "a decoder"},
        {decoder, "clip_text_pooled_in_channels", c->text.projection_dim, c->decoder.pooled_dim, text},
        {decoder, "effnet_in_channels", c->prior.out_channels, c->decoder.effnet_dim, "the prior"},
        {decoder, "in_channels", c->decoder.out_channels, c->decoder.in_channels, "out_channels"},
        {"vqgan", "latent_channels", c->decoder.out_channels, c->vqgan.latent_channels, "the decoder"},
        {prior, "switch_level: whether it is there", true, c->prior.keeps_size, "a prior"},
        {decoder, "switch_level: whether it is there", false, c->decoder.keeps_size, "a decoder"},
    };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        const char *in = widths[i].component == prior ? prior_folder : folder;
        if (widths[i].expected != widths[i].got)
            return lk_fail(LK_E_CONFIG_VALUE, "%s/%s/config.json: %s: expected %lld as %s has, got %lld", in,
                           widths[i].component, widths[i].key, (long long)widths[i].expected, widths[i].as,
                           (long long)widths[i].got);
    }
    if (c->text.projection_dim > c->text.hidden_size)
        return lk_fail(LK_E_CONFIG_VALUE,
                       "%s/%s/config.json: projection_dim: expected at most hidden_size, %lld, got %lld", prior_folder,
                       names->prior_text, (long long)c->text.hidden_size, (long long)c->text.projection_dim);
    return LK_OK;
}

static enum lk_code read_configs(struct configs *c, const char *folder, const struct prior *prior,
                                 const struct names *names) {
    const struct lk_cascade_released *released = &lk_cascade_released;
    struct lk_config *json;
    LK_TRY(read_scheduler(prior->folder, names->prior_scheduler));
    LK_TRY(read_scheduler(folder, "scheduler"));
    LK_TRY(open_config(&json, prior->folder, names->prior_text, "config.json", lk_clip_text_big_g));
    LK_TRY(lk_clip_text_config_read(&c->text, json, true));
    LK_TRY(open_config(&json, prior->folder, names->prior, "config.json",
                       names->lite ? released->prior_lite : released->prior));
    LK_TRY(lk_cascade_config_read(&c->prior, json));
    LK_TRY(open_config(&json, folder, names->decoder, "config.json",
                       names->lite ? released->decoder_lite : released->decoder));
    LK_TRY(lk_cascade_config_read(&c->decoder, json));
    LK_TRY(open_config(&json, folder, "vqgan", "config.json", released->vqgan));
    LK_TRY(lk_paella_config_read(&c->vqgan, json));
    return folder ? check_widths(c, folder, prior->folder, names) : LK_OK;
}

/* The decoder's repository may have the text encoder again: it must be the prior's, which both diffusions are told by.
 * It is known by the weights of its projection, where both have them in one dtype. */
static enum lk_code check_text(const struct lk_cascade *m, const char *folder, struct lk_file_variant variant) {
    static const char name[] = "text_projection.weight";
    struct lk_checkpoint again;
    enum lk_code rc = lk_component_open_variant(&again, folder, "text_encoder", "model", variant);
    if (rc) return rc == LK_E_NOT_FOUND ? LK_OK : rc;
    const struct lk_st_tensor *one = lk_checkpoint_find(&m->checkpoints[LK_CASCADE_TEXT], name),
                              *other = lk_checkpoint_find(&again, name);
    if (one && other && one->tensor.dtype == other->tensor.dtype &&
        (lk_tensor_bytes(&one->tensor) != lk_tensor_bytes(&other->tensor) ||
         memcmp(one->tensor.data, other->tensor.data, lk_tensor_bytes(&one->tensor)) != 0))
        rc = lk_fail(LK_E_BIND, "%s: another text encoder than the prior's in %s: this program has one for both",
                     lk_checkpoint_place(&again), lk_checkpoint_place(&m->checkpoints[LK_CASCADE_TEXT]));
    lk_checkpoint_close(&again);
    return rc;
}

static enum lk_code open_files(struct lk_cascade *m, const struct lk_pipeline *p, const struct prior *prior,
                               const struct names *names) {
    static const char unet[] = "diffusion_pytorch_model";
    const struct lk_file_variant variant = {p->variant ? p->variant : VARIANT, p->variant != NULL};
    struct lk_checkpoint *cp = m->checkpoints;
    LK_TRY(lk_tokenizer_open_clip(&m->tokenizer, prior->folder, names->prior_tokenizer, &m->clip_ids));
    LK_TRY(lk_component_open_variant(&cp[LK_CASCADE_TEXT], prior->folder, names->prior_text, "model", variant));
    LK_TRY(check_text(m, p->folder, variant));
    LK_TRY(lk_component_open_variant(&cp[LK_CASCADE_PRIOR], prior->folder, names->prior, unet, variant));
    LK_TRY(lk_component_open_variant(&cp[LK_CASCADE_DECODER], p->folder, names->decoder, unet, variant));
    return lk_component_open_variant(&cp[LK_CASCADE_VQGAN], p->folder, "vqgan", unet,
                                     (struct lk_file_variant){variant.name, false});
}

static enum lk_code open_model(struct lk_cascade *m, struct lk_pipeline *pipeline, struct prior *prior,
                               bool with_weights) {
    struct configs c = {0};
    struct names names = {.lite = !strcmp(pipeline->name, "cascade-lite")};
    const enum lk_dtype compute = pipeline->compute;
    if (pipeline->quantize)
        return lk_fail(LK_E_USAGE, "--quantize: the networks of %s are not packed; leave it out", pipeline->name);
    if (pipeline->transformer)
        return lk_fail(LK_E_USAGE, "--transformer: %s has two UNets; give a folder with their weights", pipeline->name);
    if (pipeline->folder) {
        LK_TRY(read_indices(pipeline->folder, prior));
        LK_TRY(name_components(&names, prior, pipeline->folder));
        pipeline->name = pipeline->family->names[names.lite];
    }
    LK_TRY(read_configs(&c, pipeline->folder, prior, &names));
    if (with_weights) LK_TRY(open_files(m, pipeline, prior, &names));
    const struct lk_checkpoint *from = with_weights ? m->checkpoints : NULL;
    LK_TRY(lk_clip_text_bind(&m->text, &c.text, from ? &from[LK_CASCADE_TEXT] : NULL, "text_encoder", LK_F32));
    if (with_weights && lk_tokenizer_vocab_size(m->tokenizer) > c.text.vocab_size)
        return lk_fail(LK_E_TOKENIZER, "%s/%s: expected at most %lld ids, as the text encoder has, got %d",
                       prior->folder, names.prior_tokenizer, (long long)c.text.vocab_size,
                       (int)lk_tokenizer_vocab_size(m->tokenizer));
    LK_TRY(lk_cascade_unet_bind(&m->prior, &c.prior, from ? &from[LK_CASCADE_PRIOR] : NULL, compute));
    LK_TRY(lk_cascade_unet_bind(&m->decoder, &c.decoder, from ? &from[LK_CASCADE_DECODER] : NULL, compute));
    return lk_paella_bind(&m->vqgan, &c.vqgan, from ? &from[LK_CASCADE_VQGAN] : NULL, compute);
}

enum lk_code lk_cascade_open(struct lk_pipeline *pipeline, bool with_weights) {
    struct prior prior = {0};
    struct lk_cascade *m = lk_calloc(1, sizeof *m);
    if (!m) return out_of_memory();
    pipeline->model = m;
    const enum lk_code rc = open_model(m, pipeline, &prior, with_weights);
    lk_free(prior.folder);
    if (rc) lk_cascade_close(pipeline);
    return rc;
}

void lk_cascade_close(struct lk_pipeline *pipeline) {
    struct lk_cascade *m = pipeline->model;
    lk_clip_text_free(&m->text);
    lk_tokenizer_free(m->tokenizer);
    lk_cascade_unet_free(&m->prior);
    lk_cascade_unet_free(&m->decoder);
    lk_paella_free(&m->vqgan);
    for (int i = 0; i < LK_CASCADE_CHECKPOINTS; i++) lk_checkpoint_close(&m->checkpoints[i]);
    lk_free(m);
    pipeline->model = NULL;
}
