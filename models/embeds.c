#include "models/embeds.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "models/common/files.h"
#include "weights/checkpoint.h"
#include "weights/config.h"
#include "weights/config_identity.h"
#include "weights/lora/lora.h"
#include "weights/mapped_file.h"

enum { MAX_CONFIG_BYTES = 1 << 20 };

static void digest(const struct lk_tensor *t, char out[65]) { lk_sha256(t->data, lk_tensor_bytes(t), out); }

static enum lk_code text_identity(const struct lk_pipeline *pipeline, char out[65]) {
    const struct lk_checkpoint *all = pipeline->family->checkpoints(pipeline);
    const int n_more = lk_family_n_checkpoints(pipeline->family) - 3;
    char more[65];
    if (pipeline->text_identity[0]) {
        memcpy(out, pipeline->text_identity, sizeof pipeline->text_identity);
        return LK_OK;
    }
    LK_TRY(lk_checkpoint_identity(&all[0], out));
    if (n_more) {
        LK_TRY(lk_components_identity(all + 3, n_more, "", lk_checkpoint_identity, more));
        lk_key_add(out, more, sizeof more - 1);
    }
    for (int i = 0; pipeline->loras && i < pipeline->loras->n; i++) {
        const struct lk_lora *l = &pipeline->loras->list[i];
        if (!lk_lora_has_text(l)) continue;
        lk_key_add(out, l->sha256, sizeof l->sha256 - 1);
        lk_key_add(out, &l->scale, sizeof l->scale);
    }
    return LK_OK;
}
static enum lk_code vae_identity(const struct lk_pipeline *pipeline, char out[65]) {
    return lk_checkpoint_identity(&pipeline->family->checkpoints(pipeline)[2], out);
}

static const char config_name[] = "text_encoder/config.json";

/* The text encoder's config, for folders without one: of models with one text encoder. */
static enum lk_code add_config(const struct lk_pipeline *pipeline, struct lk_text *metadata) {
    char *path, *text;
    size_t n;
    if (pipeline->family->text_to_image || !pipeline->folder) return LK_OK;
    LK_TRY(lk_model_path(pipeline->folder, config_name, &path));
    enum lk_code rc = lk_read_file(path, MAX_CONFIG_BYTES, &text, &n);
    lk_free(path);
    if (rc) return rc;
    lk_text_add(metadata, ",\"text_encoder_config\":");
    lk_text_json(metadata, text);
    lk_free(text);
    return metadata->rc;
}

/* Of a file its text encoder's identity and config (lk_malloc'ed), which NULL leaves out. */
static enum lk_code read_encoder(const char *path, char identity[65], char **config) {
    struct lk_safetensors st;
    struct lk_config *c = NULL;
    const char *format = NULL, *of = NULL, *text = NULL, *slash = strrchr(path, '/');
    LK_TRY(lk_safetensors_open(&st, path));
    const char *metadata = st.metadata_json, *name = slash ? slash + 1 : path; /* it is no config of the model */
    enum lk_code rc = metadata ? lk_config_parse(&c, metadata, strlen(metadata), name) : LK_OK;
    if (!rc && c) {
        lk_config_string_or(c, "likeness", &format, NULL);
        lk_config_string_or(c, "text_encoder", &of, NULL);
        lk_config_string_or(c, "text_encoder_config", &text, NULL);
    }
    if (!rc && (!format || strcmp(format, LK_EMBEDS_FORMAT) || !of || strlen(of) != 64))
        rc = lk_fail(LK_E_METADATA, "%s: no file of `embed`: its metadata do not say what it holds", path);
    if (!rc && config && !text)
        rc = lk_fail(LK_E_METADATA,
                     "%s: does not hold the text encoder's config, as an earlier version wrote it; make it again with "
                     "`embed`",
                     path);
    if (!rc) memcpy(identity, of, 65);
    if (!rc && config && !(*config = lk_strdup(text))) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    lk_config_discard(c);
    lk_safetensors_close(&st);
    return rc;
}

enum lk_code lk_text_encoder_config(const struct lk_pipeline *pipeline, const char *released, struct lk_config **out) {
    char identity[65], *text = NULL;
    enum lk_code rc = lk_component_config(out, pipeline->folder, config_name, released);
    if (rc == LK_E_NOT_FOUND && !pipeline->prompt_embeds)
        return lk_fail(rc, "%s; a folder without it edits by a file of `embed` alone: --prompt-embeds",
                       lk_error_text());
    if (rc != LK_E_NOT_FOUND) return rc;
    LK_TRY(read_encoder(pipeline->prompt_embeds, identity, &text));
    char *name = lk_format("%s/%s", pipeline->folder, config_name); /* as what the folder would hold */
    rc = name ? lk_config_parse(out, text, strlen(text), name)
              : lk_fail(LK_E_NOMEM, "%s: out of memory", pipeline->folder);
    lk_free(name);
    lk_free(text);
    return rc;
}

enum lk_code lk_text_encoder_open(struct lk_pipeline *pipeline, bool in_part, struct lk_checkpoint *out) {
    const enum lk_code rc =
        (in_part ? lk_component_open_present : lk_component_open)(out, pipeline->folder, "text_encoder", "model");
    if (rc != LK_E_NOT_FOUND || !pipeline->prompt_embeds) return rc;
    *out = (struct lk_checkpoint){0};
    return read_encoder(pipeline->prompt_embeds, pipeline->text_identity, NULL);
}

static bool is_stored(const struct lk_kept *k) { return (k->prompt || k->reference) && k->key[0]; }

enum lk_code lk_embeds_write(const char *path, const struct lk_pipeline *pipeline, const struct lk_kept *kept,
                             const char *architecture, const char *rewrites) {
    struct lk_text metadata = {0};
    char identity[65], sha256[65];
    size_t n = 0, most = 0, n_references = 0;
    for (const struct lk_kept *k = kept; k; k = k->next) {
        most += is_stored(k);
        n_references += is_stored(k) && k->reference;
    }
    struct lk_st_named *named = lk_calloc(most + 1, sizeof *named);
    enum lk_code rc = named ? text_identity(pipeline, identity) : lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    if (!rc)
        lk_text_add(&metadata,
                    "{\"likeness\":\"" LK_EMBEDS_FORMAT "\",\"text_encoder\":\"%s\",\"dtype\":\"%s\",\"isa\":\"%s\"",
                    identity, lk_dtype_name(pipeline->compute), architecture);
    if (!rc && n_references) rc = vae_identity(pipeline, identity);
    if (!rc && n_references) lk_text_add(&metadata, ",\"vae\":\"%s\"", identity);
    if (!rc) rc = add_config(pipeline, &metadata);
    lk_text_add(&metadata, ",\"configs\":");
    lk_text_json(&metadata, pipeline->configs);
    if (rewrites) {
        lk_text_add(&metadata, ",\"rewrites\":");
        lk_text_json(&metadata, rewrites);
    }
    for (const struct lk_kept *k = kept; k && !rc; k = k->next) {
        if (!is_stored(k)) continue;
        named[n++] = (struct lk_st_named){k->key, k->tensor};
        digest(&k->tensor, sha256);
        lk_text_add(&metadata, ",\"%s\":\"%s\"", k->key, sha256);
        const int64_t n_pad = k->reference ? k->tensor.shape[0] : k->n_pad; /* none of a picture's rows is a word's */
        if (n_pad) lk_text_add(&metadata, ",\"%s.padding\":\"%lld\"", k->key, (long long)n_pad);
        if (k->n_behind[0])
            lk_text_add(&metadata, ",\"%s.behind\":\"%lld,%lld,%lld\"", k->key, (long long)k->n_behind[0],
                        (long long)k->n_behind[1], (long long)k->split);
    }
    lk_text_add(&metadata, "}");
    if (!rc) rc = metadata.rc;
    if (!rc) rc = lk_safetensors_write(path, named, n, metadata.bytes);
    lk_text_free(&metadata);
    lk_free(named);
    return rc;
}

/* A tensor whose bytes are those that were written. */
static enum lk_code take(const char *path, const struct lk_st_tensor *t, const char *sha256, enum lk_dtype dtype,
                         struct lk_kept **kept) {
    struct lk_kept *entry;
    char key[65], got[65];
    if (strlen(t->name) != 64 || t->tensor.n_dims < 2 || t->tensor.dtype != dtype)
        return lk_fail(LK_E_METADATA, "%s: tensor \"%.80s\": expected [rows, ...] of %s under a SHA-256", path, t->name,
                       lk_dtype_name(dtype));
    digest(&t->tensor, got);
    if (strcmp(sha256, got))
        return lk_fail(LK_E_INPUT, "%s: tensor \"%s\": expected bytes with the SHA-256 %s, got %s; copy the file again",
                       path, t->name, sha256, got);
    memcpy(key, t->name, 65);
    lk_key_add(key, path, strlen(path));
    LK_TRY(lk_kept_add(kept, key, &t->tensor, true, &entry));
    memcpy(entry->tensor.data, t->tensor.data, lk_tensor_bytes(&t->tensor));
    return LK_OK;
}

/* Which configs decide the prompts, and with images those. */
static bool of_prompts(const char *file) {
    static const char *const others[] = {
        "model_index.json", "scheduler/", "transformer/", "unet/",       "vae/",
        "decoder",          "vqgan/",     "prior_model",  "prior_prior", "prior_scheduler/"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strncmp(file, others[i], strlen(others[i]))) return false;
    return true;
}
static bool of_images(const char *file) { return of_prompts(file) || !strncmp(file, "vae/", 4); }

/* What the file was made with against what the edit has. */
static enum lk_code check_maker(struct lk_config *c, const char *path, const struct lk_pipeline *pipeline,
                                char architecture[32]) {
    const char *text_encoder = NULL, *dtype = NULL, *isa = NULL, *configs, *config, *rewrites,
               *compute = lk_dtype_name(pipeline->compute);
    char identity[65];
    lk_config_expect_string(c, "likeness", LK_EMBEDS_FORMAT);
    lk_config_string(c, "text_encoder", &text_encoder);
    lk_config_string(c, "dtype", &dtype);
    lk_config_string(c, "isa", &isa);
    if (lk_config_has(c, "rewrites")) lk_config_string(c, "rewrites", &rewrites); /* lk_embeds_rewrite */
    lk_config_string_or(c, "configs", &configs, NULL); /* versions before 0.2 did not record them */
    lk_config_string_or(c, "text_encoder_config", &config, NULL);
    if (!text_encoder || !dtype || !isa) return LK_OK; /* said when the config is closed */
    LK_TRY(text_identity(pipeline, identity));
    if (strcmp(text_encoder, identity))
        return lk_fail(LK_E_INPUT,
                       "%s: made with the text encoder %.64s, this model has %s; make it with `embed` and "
                       "this model",
                       path, text_encoder, identity);
    if (strcmp(dtype, compute))
        return lk_fail(LK_E_INPUT, "%s: made with --dtype %.16s, the edit is in %s; make it with --dtype %s", path,
                       dtype, compute, compute);
    if (configs)
        LK_TRY(lk_config_identity_check(path, pipeline->folder, configs, pipeline->configs,
                                        lk_config_has(c, "vae") ? of_images : of_prompts));
    snprintf(architecture, 32, "%s", isa);
    if (!lk_config_has(c, "vae")) return LK_OK;
    const char *vae = NULL;
    lk_config_string(c, "vae", &vae);
    LK_TRY(vae_identity(pipeline, identity));
    if (vae && strcmp(vae, identity))
        return lk_fail(LK_E_INPUT,
                       "%s: made with the VAE %.64s, this model has %s; make it with `embed` and this model", path, vae,
                       identity);
    return LK_OK;
}

static enum lk_code read_entries(const struct lk_safetensors *st, struct lk_config *c, const char *path,
                                 const struct lk_pipeline *pipeline, struct lk_kept **kept, char architecture[32]) {
    LK_TRY(check_maker(c, path, pipeline, architecture));
    for (size_t i = 0; i < st->n_tensors; i++) {
        const char *sha256 = NULL, *padding;
        char name[80];
        lk_config_string(c, st->tensors[i].name, &sha256);
        snprintf(name, sizeof name, "%.64s.padding", st->tensors[i].name);
        if (lk_config_has(c, name)) lk_config_string(c, name, &padding);
        snprintf(name, sizeof name, "%.64s.behind", st->tensors[i].name);
        if (lk_config_has(c, name)) lk_config_string(c, name, &padding);
        if (sha256) LK_TRY(take(path, &st->tensors[i], sha256, pipeline->compute, kept));
    }
    return lk_mapped_check(st->file);
}

enum lk_code lk_embeds_read(const char *path, const struct lk_pipeline *pipeline, struct lk_kept **kept,
                            char architecture[32]) {
    struct lk_safetensors st;
    struct lk_config *c = NULL;
    LK_TRY(lk_safetensors_open(&st, path));
    const char *metadata = st.metadata_json;
    enum lk_code rc = metadata ? lk_config_parse(&c, metadata, strlen(metadata), path) : LK_OK;
    if (!metadata || (!rc && !lk_config_has(c, "likeness")))
        rc = lk_fail(LK_E_METADATA, "%s: no file of `embed`: its metadata do not say what it holds", path);
    if (!rc) rc = read_entries(&st, c, path, pipeline, kept, architecture);
    if (rc)
        lk_config_discard(c);
    else
        rc = lk_config_close(c);
    lk_safetensors_close(&st);
    return rc;
}

enum lk_code lk_embeds_rewrite(const char *path, const char *prompt, char **record) {
    struct lk_safetensors st;
    const cJSON *item;
    *record = NULL;
    LK_TRY(lk_safetensors_open(&st, path));
    cJSON *metadata = st.metadata_json ? cJSON_Parse(st.metadata_json) : NULL;
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "rewrites"));
    cJSON *list = text ? cJSON_Parse(text) : NULL;
    enum lk_code rc = !text || cJSON_IsArray(list)
                          ? LK_OK
                          : lk_fail(LK_E_METADATA, "%s: field \"rewrites\": expected a list, got something else", path);
    cJSON_ArrayForEach(item, list) {
        const char *made = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "prompt"));
        if (rc || *record || !made || strcmp(made, prompt) != 0) continue;
        char *printed = cJSON_PrintUnformatted(item);
        *record = printed ? lk_strdup(printed) : NULL;
        cJSON_free(printed);
        if (!*record) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    }
    cJSON_Delete(list);
    cJSON_Delete(metadata);
    lk_safetensors_close(&st);
    return rc;
}
