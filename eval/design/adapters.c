/* Adapters of a model's entry: read, hashed, written and checked. A file that cannot be used is no error here but a
 * problem of the jobs, which `study check` and `study run` name. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/design/internal.h"

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
static const char *name_of(const char *file) {
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
    if (m->mask) lk_text_add(out, ", mask %s", name_of(m->mask));
    if (m->drawn.recipe.what)
        lk_text_add(out, ", mask that %s %s%s", m->drawn.recipe.how.keep ? "keeps" : "edits only",
                    m->drawn.faces ? "the " : "", m->drawn.recipe.what);
    if (m->drawn.recipe.what && m->drawn.recipe.how.grow > 0)
        lk_text_add(out, " grown by %g", m->drawn.recipe.how.grow);
    if (r->mask_feather) lk_text_add(out, ", feather %d", r->mask_feather);
    if (r->strength > 0) lk_text_add(out, ", strength %g", r->strength);
    for (int i = 0; i < m->n_adapters; i++)
        lk_text_add(out, ", adapter %s (SHA-256 %.10s) at %g", name_of(m->adapters[i].file), m->adapters[i].sha256,
                    m->adapters[i].scale);
    return out->rc;
}
