#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/design/internal.h"
#include "models/common/mask.h"
#include "models/face/yunet.h"

/* Adapters of a model's entry: read, hashed, written and checked. A file that cannot be used is no error here but a
 * problem of the jobs, which `study check` and `study run` name. */

static enum lk_code out_of_memory(const struct lk_study *s) {
    return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
}

static const struct lk_study_adapter *find_hashed(const struct lk_study *s, const struct lk_study_adapter *a) {
    for (int m = 0; m < s->n_models; m++)
        for (int i = 0; i < s->models[m].n_adapters; i++)
            if (!strcmp(s->models[m].adapters[i].file, a->file) && s->models[m].adapters[i].found[0])
                return &s->models[m].adapters[i];
    return NULL;
}

/* Its digest, of which there is one for all models that have the file; or why there is none. */
static enum lk_code hash(struct lk_study *s, struct lk_study_adapter *a, const char *asked) {
    const struct lk_study_adapter *same = find_hashed(s, a);
    struct lk_loras *one = NULL;
    enum lk_code rc = LK_OK;
    if (same)
        memcpy(a->found, same->found, sizeof a->found);
    else if (!(rc = lk_loras_open_whole(&one, &asked, 1, true)))
        memcpy(a->found, one->list[0].sha256, sizeof a->found);
    lk_loras_close(one);
    if (rc == LK_E_NOMEM) return rc;
    if (!rc && *a->sha256 && strcmp(a->sha256, a->found))
        rc = lk_fail(LK_E_CHANGED, "%s: expected the adapter with SHA-256 %s, got %s", a->file, a->sha256, a->found);
    else if (!rc)
        memcpy(a->sha256, a->found, sizeof a->sha256);
    if (rc && !(a->problem = lk_store_text(&s->store, lk_error_text()))) return out_of_memory(s);
    return LK_OK;
}

static bool is_digest(const char *text) { return text && strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64; }

/* An object {"file", "scale", "sha256"}, or FILE[=SCALE] as on the command line. */
static enum lk_code read_one(struct lk_study *s, struct lk_study_model *m, const char *field, const cJSON *from) {
    static const char expected[] = "an adapter as {\"file\": \"style.safetensors\", \"scale\": 1}";
    const cJSON *item, *scale = NULL;
    const char *file = cJSON_GetStringValue(from), *sha256 = NULL;
    size_t length = 0;
    if (m->n_adapters == LK_MAX_LORAS) return lk_study_bad(s, field, "expected at most %d adapters", LK_MAX_LORAS);
    struct lk_study_adapter *a = &m->adapters[m->n_adapters];
    *a = (struct lk_study_adapter){.scale = 1};
    if (file && lk_lora_split(file, &length, &a->scale)) return lk_study_bad(s, field, "%s", lk_error_text());
    const cJSON *object = cJSON_IsObject(from) ? from : NULL;
    cJSON_ArrayForEach(item, object) {
        if (!strcmp(item->string, "file"))
            file = cJSON_GetStringValue(item), length = file ? strlen(file) : 0;
        else if (!strcmp(item->string, "scale"))
            scale = item;
        else if (!strcmp(item->string, "sha256"))
            sha256 = cJSON_GetStringValue(item);
        else
            return lk_study_bad(s, field, "expected file, scale and sha256 of an adapter, got \"%.60s\"", item->string);
        if (!strcmp(item->string, "sha256") && !is_digest(sha256))
            return lk_study_bad(s, field, "sha256: expected 64 digits of a SHA-256, 0-9 and a-f, got another value");
    }
    if (!file || !length) return lk_study_bad(s, field, "expected %s, got something else", expected);
    if (scale) a->scale = scale->valuedouble;
    if ((scale && !cJSON_IsNumber(scale)) || a->scale == 0 || !(a->scale >= LK_LORA_MIN && a->scale <= LK_LORA_MAX))
        return lk_study_bad(s, field, "scale: expected a number from %g to %g, not 0", LK_LORA_MIN, LK_LORA_MAX);
    const char *written = lk_store_copy(&s->store, file, length);
    if (!written || !(a->file = lk_study_found(s, written))) return out_of_memory(s);
    if (sha256) memcpy(a->sha256, sha256, sizeof a->sha256);
    char *asked = lk_format("%s=%.17g", a->file, a->scale);
    const char *kept = asked ? lk_store_text(&s->store, asked) : NULL;
    lk_free(asked);
    if (!kept) return out_of_memory(s);
    LK_TRY(hash(s, a, kept));
    m->job.run.loras[m->n_adapters++] = kept;
    m->job.run.n_loras = m->n_adapters;
    return LK_OK;
}

enum lk_code lk_study_read_adapters(struct lk_study *s, struct lk_study_model *m, const char *field, const char *text,
                                    size_t n) {
    cJSON *list = cJSON_ParseWithLength(text, n);
    const cJSON *item;
    enum lk_code rc = LK_OK;
    if (!(lk_family_bit_of(m->family) & (LK_FOR_EDITING | LK_FOR_BOTH_SD)))
        rc = lk_study_bad(s, field, "%s takes no adapters; leave it out", m->label);
    else if (!cJSON_IsArray(list) || !cJSON_GetArraySize(list))
        rc = lk_study_bad(s, field,
                          "expected a list of adapters, each as {\"file\": \"style.safetensors\", \"scale\": "
                          "1}, got something else");
    if (!rc) {
        cJSON_ArrayForEach(item, list) if (!rc) rc = read_one(s, m, field, item);
    }
    cJSON_Delete(list);
    return rc;
}

void lk_study_write_adapters(const struct lk_study_model *m, bool places, struct lk_text *out) {
    for (int i = 0; i < m->n_adapters; i++) {
        const struct lk_study_adapter *a = &m->adapters[i];
        lk_text_add(out, i ? ", {" : ", \"lora\": [{");
        if (places) {
            lk_text_add(out, "\"file\": ");
            lk_text_json(out, a->file);
            lk_text_add(out, ", ");
        }
        if (*a->sha256) lk_text_add(out, "\"sha256\": \"%s\", ", a->sha256);
        lk_text_add(out, "\"scale\": %.17g}%s", a->scale, i + 1 == m->n_adapters ? "]" : "");
    }
}

enum lk_code lk_study_open_configs(const struct lk_study_model *m, struct lk_pipeline **out) {
    const struct lk_pipeline_options options = {
        .compute = LK_BF16, .loras = m->job.run.loras, .n_loras = m->n_adapters, .configs = true};
    return lk_pipeline_open_with(out, m->path, &options);
}

const char *lk_study_adapter_problem(const struct lk_study_model *m) {
    for (int i = 0; i < m->n_adapters; i++)
        if (m->adapters[i].problem) return m->adapters[i].problem;
    return NULL;
}

enum lk_code lk_study_check_adapters(const struct lk_study *s) {
    bool used[LK_STUDY_MAX_MODELS] = {false};
    for (size_t i = 0; i < s->n_jobs; i++) used[s->jobs[i].model] = true;
    for (int m = 0; m < s->n_models; m++) {
        const struct lk_study_model *model = &s->models[m];
        const char *problem = lk_study_adapter_problem(model);
        struct lk_pipeline *pipeline = NULL;
        char field[100];
        if (!used[m] || !model->n_adapters) continue;
        snprintf(field, sizeof field, "models.%s.lora", model->key);
        if (problem) return lk_study_bad(s, field, "%s", problem);
        const enum lk_code rc = lk_study_open_configs(model, &pipeline);
        lk_pipeline_close(pipeline);
        if (rc == LK_E_BIND || rc == LK_E_NOMEM) return lk_fail_prefix(rc, "%s: field \"%s\"", s->file, field);
    }
    return LK_OK;
}

int lk_study_adapters(const struct lk_study *s, int model, const struct lk_study_adapter **out) {
    *out = s->models[model].adapters;
    return s->models[model].n_adapters;
}

/* Its file's own name: of a repository's file what follows the colon. */
static const char *base_name(const char *file) {
    const char *slash = strrchr(file, '/'), *colon = strrchr(slash ? slash : file, ':');
    return colon ? colon + 1 : slash ? slash + 1 : file;
}

enum lk_code lk_study_treatment(const struct lk_study *s, int model, struct lk_text *out) {
    const struct lk_study_model *m = &s->models[model];
    const struct lk_request *r = &m->job.request;
    const int n = r->num_inference_steps;
    if (m->hosted.given) {
        lk_text_add(out, "asked of a service");
        return out->rc;
    }
    lk_text_add(out, "%d step%s", n, n == 1 ? "" : "s");
    if (r->preset) lk_text_add(out, ", preset %s", r->preset);
    if (r->input_sigmas && !r->preset) lk_text_add(out, ", sigmas %s", r->input_sigmas);
    if (r->flow_shift) lk_text_add(out, ", flow shift %s", r->flow_shift);
    if (r->scheduler && !r->preset) lk_text_add(out, ", %s", *r->scheduler == '{' ? "another scheduler" : r->scheduler);
    if (r->accel) lk_text_add(out, ", accel %s", r->accel);
    if (m->rewriter.prompts)
        lk_text_add(out, ", prompts rewritten by %s in style %s%s", m->rewriter.name,
                    m->rewriter.style ? m->rewriter.style : "?", m->rewriter.temperature > 0 ? ", drawn" : "");
    if (m->mask) lk_text_add(out, ", mask %s", base_name(m->mask));
    if (m->drawn.recipe.what)
        lk_text_add(out, ", mask that %s %s%s", m->drawn.recipe.how.keep ? "keeps" : "edits only",
                    m->drawn.faces ? "the " : "", m->drawn.recipe.what);
    if (m->drawn.recipe.what && m->drawn.recipe.how.grow > 0)
        lk_text_add(out, " grown by %g", m->drawn.recipe.how.grow);
    if (r->mask_feather) lk_text_add(out, ", feather %d", r->mask_feather);
    if (r->strength > 0) lk_text_add(out, ", strength %g", r->strength);
    for (int i = 0; i < m->n_adapters; i++)
        lk_text_add(out, ", adapter %s (SHA-256 %.10s) at %g", base_name(m->adapters[i].file), m->adapters[i].sha256,
                    m->adapters[i].scale);
    return out->rc;
}

/* Masks of a model's entry: a file for each source, "masks/{source}.png", or how one is drawn for each. */

static const char placeholder[] = "{source}";

#define DRAWN(field) offsetof(struct lk_study_drawn, field)
const struct setting lk_drawn_settings[] = {
    {"keep", TEXT, NULL, NULL, 0, 0, 0,
     "what an edit may not touch: face, or a box X,Y,WIDTH,HEIGHT in pixels; as 'likeness mask' draws it"},
    {"edit", TEXT, NULL, NULL, 0, 0, 0, "the opposite, instead of keep: what an edit may change alone"},
    {"faces", FILE_NAME, NULL, NULL, 0, 0, DRAWN(faces), "weights of the face detector YuNet; needed for a face"},
    {"grow", NUMBER, NULL, "0.25", 0, 10, 0, "how far a box is grown on each side, by its width and height"},
    {"shape", CHOICE, "ellipse|box", "ellipse", 0, 0, 0, "of what is kept or edited"},
    {"several", CHOICE, "refuse|all|largest", "refuse", 0, 0, 0, "of a source with more than one face"},
    {"feather", INT, NULL, "0", 0, 512, 0, "mask_feather of edits"},
    {"paste", FLAG, "true|false", "true", 0, 0, 0, "false: mask_paste off of edits"},
    {0}};

/* A member's text; *ok false where it is another thing, or is no choice. */
static const char *text_of(struct lk_study *s, const cJSON *object, const char *key, const char *choices,
                           const char *otherwise, bool *ok) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    const char *text = item ? cJSON_GetStringValue(item) : otherwise, *choice;
    if (item && (!text || !*text)) *ok = false;
    if (text && *ok && choices && lk_read_choice(key, text, choices, &choice)) *ok = false;
    return text && *ok ? lk_store_text(&s->store, text) : NULL;
}

/* Its digest is part of what the jobs are; one that cannot be read is a problem of theirs. */
static enum lk_code hash_net(struct lk_study *s, struct lk_study_drawn *d) {
    struct lk_yunet *net;
    const bool face = !strcmp(d->recipe.what, "face");
    enum lk_code rc = LK_OK;
    if (!face && d->faces) d->faces = NULL; /* nothing is looked for */
    if (face && !d->faces) rc = lk_fail(LK_E_CONFIG_VALUE, "faces: missing: the weights of YuNet, which finds faces");
    if (face && !rc && !(rc = lk_yunet_open(&net, d->faces))) lk_yunet_close(net);
    if (face && !rc) rc = lk_digest_file(LK_DIGEST_SHA256, d->faces, d->net_sha256);
    if (rc == LK_E_NOMEM) return rc;
    if (rc && !(d->problem = lk_store_text(&s->store, lk_error_text())))
        return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    return LK_OK;
}

/* As text: with the net's place, or with its digest. */
static void write_drawn(const struct lk_study_drawn *d, bool places, struct lk_text *out) {
    lk_text_add(out, "{\"%s\": ", d->recipe.how.keep ? "keep" : "edit");
    lk_text_json(out, d->recipe.what);
    if (d->faces) lk_text_add(out, places ? ", \"faces\": " : ", \"net_sha256\": ");
    if (d->faces) lk_text_json(out, places ? d->faces : d->net_sha256);
    lk_text_add(out, ", \"grow\": %.17g, \"shape\": \"%s\", \"several\": \"%s\"}", d->recipe.how.grow,
                d->recipe.how.ellipse ? "ellipse" : "box", d->recipe.several);
}

static enum lk_code read_drawn(struct lk_study *s, struct lk_study_model *m, const char *field, const cJSON *object) {
    struct lk_study_drawn *d = &m->drawn;
    const cJSON *item, *grow = cJSON_GetObjectItemCaseSensitive(object, "grow"),
                       *feather = cJSON_GetObjectItemCaseSensitive(object, "feather"),
                       *paste = cJSON_GetObjectItemCaseSensitive(object, "paste");
    bool ok = true;
    cJSON_ArrayForEach(item, object) {
        int i = 0;
        while (lk_drawn_settings[i].key && strcmp(lk_drawn_settings[i].key, item->string)) i++;
        if (!lk_drawn_settings[i].key)
            return lk_study_bad(s, field,
                                "expected keep or edit, faces, grow, shape, several, feather and paste, got \"%.60s\"",
                                item->string);
    }
    const char *keep = text_of(s, object, "keep", NULL, NULL, &ok), *edit = text_of(s, object, "edit", NULL, NULL, &ok),
               *shape = text_of(s, object, "shape", "ellipse|box", "ellipse", &ok);
    d->recipe.several = text_of(s, object, "several", "refuse|all|largest", "refuse", &ok);
    d->faces = text_of(s, object, "faces", NULL, NULL, &ok);
    if (!ok || !keep == !edit)
        return lk_study_bad(s, field,
                            "expected {\"keep\": \"face\", \"faces\": \"yunet.safetensors\"}, or edit instead of "
                            "keep, with shape (ellipse, box) and several (refuse, all, largest), got something else");
    d->recipe.what = keep ? keep : edit;
    d->recipe.how = (struct lk_face_mask){keep != NULL, shape && !strcmp(shape, "ellipse"), 0.25};
    if (grow) d->recipe.how.grow = grow->valuedouble;
    if (grow && (!cJSON_IsNumber(grow) || !(d->recipe.how.grow >= 0 && d->recipe.how.grow <= 10)))
        return lk_study_bad(s, field, "grow: expected a number from 0 to 10");
    if (feather && (!cJSON_IsNumber(feather) || !(feather->valuedouble >= 0 && feather->valuedouble <= 512) ||
                    feather->valuedouble != feather->valueint))
        return lk_study_bad(s, field, "feather: expected a whole number from 0 to 512");
    if (paste && !cJSON_IsBool(paste)) return lk_study_bad(s, field, "paste: expected true or false");
    if (feather && feather->valueint && paste && cJSON_IsFalse(paste))
        return lk_study_bad(s, field, "feather: nothing is mixed with \"paste\": false; leave one of them out");
    char pixels[16];
    snprintf(pixels, sizeof pixels, "%d", feather ? feather->valueint : 0);
    if (feather) LK_TRY(lk_parameter_parse(lk_parameter_named("mask_feather"), &m->job, field, pixels));
    if (paste && cJSON_IsFalse(paste))
        LK_TRY(lk_parameter_parse(lk_parameter_named("mask_paste"), &m->job, field, "off"));
    if (d->faces && !(d->faces = lk_study_resolve(s, d->faces))) return LK_E_NOMEM;
    LK_TRY(hash_net(s, d));
    struct lk_text text = {0};
    write_drawn(d, false, &text);
    d->text = text.rc ? NULL : lk_store_text(&s->store, text.bytes);
    lk_text_free(&text);
    return d->text ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
}

enum lk_code lk_study_read_drawn(struct lk_study *s, struct lk_study_model *m, const char *field, const char *text,
                                 size_t n) {
    cJSON *object = cJSON_ParseWithLength(text, n);
    const enum lk_code rc =
        object ? read_drawn(s, m, field, object) : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    cJSON_Delete(object);
    return rc;
}

/* The pattern with the source's id in its place; kept by the study. */
static const char *name_of(struct lk_study *s, const char *pattern, const char *id) {
    const char *at = strstr(pattern, placeholder);
    char *name =
        at ? lk_format("%.*s%s%s", (int)(at - pattern), pattern, id, at + sizeof placeholder - 1) : lk_strdup(pattern);
    const char *kept = name ? lk_store_text(&s->store, name) : NULL;
    lk_free(name);
    if (!kept) lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    return kept;
}

/* A mask that cannot be read is a problem of its source's jobs, as a source is. */
static enum lk_code find_masks(struct lk_study *s, struct lk_study_model *m) {
    const size_t bytes = (size_t)s->n_sources * sizeof *m->masks;
    if (!(m->masks = lk_store_alloc(&s->store, bytes + 1))) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    memset(m->masks, 0, bytes);
    for (int i = 0; i < s->n_sources; i++) {
        struct lk_study_mask *mask = &m->masks[i];
        if (!s->sources[i].id) continue;
        if (!(mask->file = name_of(s, m->mask, s->sources[i].id))) return LK_E_NOMEM;
        const enum lk_code rc = lk_digest_file(LK_DIGEST_SHA256, mask->file, mask->sha256);
        if (rc == LK_E_NOMEM) return rc;
        if (rc) mask->sha256[0] = 0;
    }
    return LK_OK;
}

enum lk_code lk_study_find_masks(struct lk_study *s) {
    for (int m = 0; m < s->n_models; m++)
        if (s->models[m].mask) LK_TRY(find_masks(s, &s->models[m]));
    return LK_OK;
}

void lk_study_write_mask(const struct lk_study *s, const struct lk_study_model *m, bool places, struct lk_text *out) {
    struct lk_text all = {0};
    char sha256[65] = "";
    if (m->drawn.recipe.what) {
        lk_text_add(out, ", \"mask\": ");
        write_drawn(&m->drawn, places, out);
    }
    if (!m->mask) return;
    for (int i = 0; i < s->n_sources; i++) lk_text_add(&all, "%s\n", m->masks[i].sha256);
    lk_sha256(all.bytes ? all.bytes : "", all.n, sha256);
    lk_text_add(out, ", \"mask\": ");
    lk_text_json(out, places ? m->mask : sha256); /* it does not matter where they lie */
    if (all.rc) out->rc = all.rc;
    lk_text_free(&all);
}

void lk_study_set_mask(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out) {
    const struct lk_study_model *m = &s->models[key->model];
    const bool drawn = m->drawn.recipe.what != NULL;
    if ((!m->mask && !drawn) || out->problem) return;
    if (key->source[0] < 0) {
        out->problem = "its model has a mask, and a picture from text alone has no source to keep";
        return;
    }
    if (drawn) {
        out->drawn = &m->drawn;
        out->problem = m->drawn.problem;
        out->job.request.mask = s->sources[key->source[0]].id;
        return;
    }
    out->mask = &m->masks[key->source[0]];
    out->job.request.mask = out->mask->file;
    if (!*out->mask->sha256) out->problem = "its mask's file cannot be read";
}

/* Whether the mask that a job is going to draw can be drawn. */
static enum lk_code check_drawn(const struct lk_study *s, const struct lk_study_model *m, int source,
                                const struct lk_image *image) {
    const struct lk_study_source *of = &s->sources[source];
    struct lk_yunet *net = NULL;
    struct lk_image mask;
    char *text;
    if (m->drawn.problem) return LK_OK; /* told with the model */
    if (m->drawn.faces) LK_TRY(lk_yunet_open(&net, m->drawn.faces));
    const enum lk_code rc =
        lk_face_mask_make(&mask, &text, &m->drawn.recipe, image, of->file, of->sha256, net, m->drawn.net_sha256);
    if (net) lk_yunet_close(net);
    lk_image_free(&mask);
    lk_free(text);
    return rc;
}

enum lk_code lk_study_check_mask(const struct lk_study *s, const struct lk_study_model *m, int source,
                                 const struct lk_image *image) {
    struct lk_image mask;
    if (m->drawn.recipe.what) return check_drawn(s, m, source, image);
    if (!m->mask) return LK_OK;
    LK_TRY(lk_mask_read(m->masks[source].file, image, &mask, &(int64_t){0}));
    lk_image_free(&mask);
    return LK_OK;
}
