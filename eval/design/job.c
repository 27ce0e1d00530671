/* One job of a study with its texts: names, the final prompt, the parameters, the id. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/design/internal.h"

/* Parameters that decide what is made, and not on which machine. */
static bool decides(const struct lk_parameter *p, const struct lk_job *job, bool prompt) {
    if (!strcmp(p->key, "prompt")) return prompt;
    if (p->kind == LK_PARAMETER_FILE) return lk_job_given(job, p);
    return p->record != LK_RECORD_NEVER && !p->machine;
}

enum lk_code lk_study_write_parameters(const struct lk_job *job, unsigned families, bool prompt, struct lk_text *out) {
    const struct lk_job nothing = {0};
    cJSON *object = cJSON_CreateObject();
    bool ok = object != NULL;
    for (size_t i = 0; i < lk_n_parameters && ok; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        if (!strcmp(p->group, "Concepts") && !job->request.n_concepts) continue;
        bool text = p->kind == LK_PARAMETER_TEXT || p->kind == LK_PARAMETER_FILE || p->kind == LK_PARAMETER_CHOICE;
        if (!(p->families & families) || !decides(p, job, prompt)) continue;
        const bool number = p->kind == LK_PARAMETER_INT || p->kind == LK_PARAMETER_NUMBER;
        const bool absent = text || (number && p->min > 0); /* sizes and the like are the model's choice then */
        if (absent && lk_parameter_equal(p, job, &nothing)) continue;
        ok = lk_parameter_write(p, job, object);
    }
    char *text = ok ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (!text) return lk_fail(LK_E_NOMEM, "study: out of memory for the parameters of a job");
    lk_text_bytes(out, text, strlen(text));
    cJSON_free(text);
    return out->rc;
}

static void lower(char *text) {
    for (; *text; text++)
        if (*text >= 'A' && *text <= 'Z') *text = (char)(*text - 'A' + 'a');
}

/* flux_20s_male_white_O-01, qwen_pair_latino_20s_W-07: everything before the prompt in lower case. */
static void portrait_name(const char *model, const struct job_key *key, char out[LK_STUDY_NAME_BYTES]) {
    int race, gender, age;
    lk_source_factors(key->source[0], &race, &gender, &age);
    const char *race_key = lk_factor_key(LK_FACTOR_RACE, race), *age_key = lk_factor_key(LK_FACTOR_AGE, age);
    if (key->source[1] >= 0)
        snprintf(out, LK_STUDY_NAME_BYTES, "%s_pair_%s_%s", model, race_key, age_key);
    else
        snprintf(out, LK_STUDY_NAME_BYTES, "%s_%s_%s_%s", model, age_key, lk_factor_key(LK_FACTOR_GENDER, gender),
                 race_key);
    lower(out);
}

const struct lk_study_seeds *lk_study_seeds_of(const struct lk_study *s, int experiment, int model) {
    const struct lk_study_seeds *own = &s->models[model].range;
    return own->given ? own : &s->experiments[experiment].range;
}

/* The portrait study's names; else flux_S017_K-03, with _s2 where seeds are a factor. */
static void base_name(const struct lk_study *s, const struct job_key *key, const struct lk_study_prompt *prompt,
                      char out[LK_STUDY_NAME_BYTES]) {
    char before[LK_STUDY_NAME_BYTES], seed[32] = "";
    if (s->portrait)
        portrait_name(s->models[key->model].key, key, before);
    else
        snprintf(before, sizeof before, "%s_%s", s->models[key->model].key, s->sources[key->source[0]].id);
    if (key->seed >= 0)
        snprintf(seed, sizeof seed, "_s%lld",
                 (long long)(lk_study_seeds_of(s, key->experiment, key->model)->first + key->seed));
    snprintf(out, LK_STUDY_NAME_BYTES, "%.150s_%.40s%s%s", before, prompt->id, seed, key->swapped ? "_swapped" : "");
}

static void name_documented(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out) {
    char before[LK_STUDY_NAME_BYTES];
    if (!s->portrait || out->prompt->number < 0) return;
    portrait_name(lk_factor_key(LK_FACTOR_MODEL, 0), key, before);
    snprintf(out->documented, sizeof out->documented, "%.150s_%s", before, lk_prompt_id(out->prompt->number));
}

static void name_job(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out) {
    char base[LK_STUDY_NAME_BYTES];
    const struct lk_study_experiment *x = &s->experiments[key->experiment];
    const bool paired = x->kind == LK_EXP2;
    if (x->kind == LK_EXP_T2I)
        lk_study_name_t2i(s, key, base);
    else
        base_name(s, key, out->prompt, base);
    snprintf(out->name, sizeof out->name, "%.200s%s%s", base, paired ? "." : "",
             paired ? lk_factor_key(LK_FACTOR_ARM, key->arm) : "");
    snprintf(out->output, sizeof out->output, "%s/%s/%s/%s.png", x->key, out->model_key, out->prompt->category,
             out->name);
    if (paired && key->pair >= 0)
        snprintf(out->pair, sizeof out->pair, "P%03d", (int)key->pair + 1);
    else
        snprintf(out->pair, sizeof out->pair, "%s", base);
    if (paired && key->arm == LK_ARM_PRESERVED)
        snprintf(out->baseline, sizeof out->baseline, "%.200s%s", base, strcmp(x->baseline, "make") ? "" : ".edited");
}

/* p without its final full stop, and the clause of the older study. */
static char *generic_prompt(const char *prompt) {
    size_t n = strlen(prompt);
    if (n && prompt[n - 1] == '.') n--;
    return lk_format("%.*s while preserving the person's identity.", (int)n, prompt);
}

/* The identity prompt with a final full stop, a space, the edit prompt untouched. */
char *lk_study_prepend(const char *identity, const char *prompt) {
    static const char blanks[] = " \t\r\n";
    identity += strspn(identity, blanks);
    size_t n = strlen(identity);
    while (n && strchr(blanks, identity[n - 1])) n--;
    return lk_format("%.*s%s %s", (int)n, identity, n && identity[n - 1] == '.' ? "" : ".", prompt);
}

enum lk_code lk_study_make_prompt(struct lk_study *s, struct job_key *key) {
    const struct lk_study_experiment *x = &s->experiments[key->experiment];
    const char *identity = x->features.of ? x->features.of[key->source[0]].identity : NULL,
               *edit = s->prompts[key->prompt].text;
    bool generic = !strcmp(x->preserve_with, "generic");
    if (!generic && !identity) return LK_OK;
    char *text = generic ? generic_prompt(edit) : lk_study_prepend(identity, edit);
    key->final_prompt = text ? lk_store_copy(&s->store, text, strlen(text)) : NULL;
    lk_free(text);
    return key->final_prompt ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
}

static void set_prompt(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out) {
    out->final_prompt = key->final_prompt ? key->final_prompt : out->prompt->text;
    if (key->arm != LK_ARM_PRESERVED) return;
    const struct lk_study_experiment *x = &s->experiments[key->experiment];
    const struct lk_feature none = {0}, *feature = x->features.of ? &x->features.of[key->source[0]] : &none;
    const bool generic = !strcmp(x->preserve_with, "generic");
    out->feature_prompt = generic ? "while preserving the person's identity" : feature->identity;
    out->final_prompt = key->final_prompt;
    if (!out->final_prompt)
        out->problem = feature->none ? "no feature prompt could be extracted from its source"
                                     : "there is no feature prompt of its source";
}

static void set_sources(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out) {
    for (int i = 0; i < 2 && key->source[i] >= 0; i++) {
        const struct lk_study_source *source = &s->sources[key->source[i]];
        out->sources[out->n_sources] = key->source[i];
        out->source_files[out->n_sources++] = source->file;
        if (!source->id)
            out->problem = "the study has no source of this cell";
        else if (!source->sha256[0])
            out->problem = "its source's file cannot be read ('likeness study check' says why)";
    }
}

/* What stands once in the text behind its key; false: it does not. */
static bool find_gap(const char *text, const char *key, const char *value, size_t *at) {
    char member[100];
    snprintf(member, sizeof member, "\"%s\":%s", key, value);
    const char *found = strstr(text, member);
    if (!found || strstr(found + 1, member)) return false;
    *at = (size_t)(found - text) + strlen(key) + 3;
    return true;
}

static enum lk_code keep(struct lk_study *s, struct lk_study_model *m) {
    static const char prompt[] = "what the model is told, to be put in", seed[] = "8070450532247928831";
    struct lk_written_parameters *w = &m->parameters;
    struct lk_job job = m->job;
    struct lk_text text = {0};
    size_t at[2];
    job.request.prompt = prompt;
    job.request.seed = strtoull(seed, NULL, 10);
    enum lk_code rc = lk_study_write_parameters(&job, lk_family_bit_of(m->family), true, &text);
    char *quoted = lk_format("\"%s\"", prompt);
    if (!rc && !quoted) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    if (!rc && find_gap(text.bytes, "prompt", quoted, &at[0]) && find_gap(text.bytes, "seed", seed, &at[1])) {
        const bool seed_first = at[1] < at[0];
        const size_t length[2] = {strlen(quoted), strlen(seed)};
        *w = (struct lk_written_parameters){.text = lk_store_text(&s->store, text.bytes),
                                            .n = text.n,
                                            .gap = {at[seed_first], at[!seed_first]},
                                            .length = {length[seed_first], length[!seed_first]},
                                            .seed_first = seed_first};
        if (!w->text) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    }
    lk_free(quoted);
    lk_text_free(&text);
    return rc;
}

enum lk_code lk_study_keep_parameters(struct lk_study *s) {
    for (int m = 0; m < s->n_models; m++)
        if (!s->models[m].hosted.given && !s->models[m].mask) LK_TRY(keep(s, &s->models[m]));
    return LK_OK;
}

static enum lk_code add_parameters(const struct lk_study *s, const struct lk_study_job *job, struct lk_text *out) {
    const struct lk_written_parameters *w = &s->models[job->model].parameters;
    if (!w->text || job->kind == LK_EXP_T2I) /* whose guidance differs too */
        return lk_study_write_parameters(&job->job, lk_family_bit_of(job->family), true, out);
    cJSON *text = cJSON_CreateString(job->job.request.prompt);
    char *prompt = text ? cJSON_PrintUnformatted(text) : NULL;
    cJSON_Delete(text);
    if (!prompt) return lk_fail(LK_E_NOMEM, "study: out of memory for the parameters of a job");
    for (int part = 0, from = 0; part < 3; part++) {
        const int to = part < 2 ? (int)w->gap[part] : (int)w->n;
        lk_text_bytes(out, w->text + from, (size_t)(to - from));
        if (part == 2) break;
        if ((part == 0) == w->seed_first)
            lk_text_add(out, "%llu", (unsigned long long)job->job.request.seed);
        else
            lk_text_bytes(out, prompt, strlen(prompt));
        from = to + (int)w->length[part];
    }
    cJSON_free(prompt);
    return out->rc;
}

/* SHA-256 of all that the study says of the pixels, one line each; where the model's folder is says nothing. */
static enum lk_code set_id(const struct lk_study *s, struct lk_study_job *out) {
    struct lk_text text = {0};
    lk_text_add(&text, "job 2\n%s\n%s\n", out->family, out->weights_identity ? out->weights_identity : "");
    if (out->hosted) {
        lk_study_write_hosted(out->hosted, false, &text);
        lk_text_add(&text, "\n%llu\n", (unsigned long long)out->job.request.seed);
        lk_text_json(&text, out->final_prompt);
    }
    if (out->normalize) lk_text_add(&text, "embeddings %s of %s\n", out->normalize, s->base_prompts);
    for (int i = 0; i < out->n_adapters; i++)
        lk_text_add(&text, "adapter %s %.17g\n", out->adapters[i].sha256, out->adapters[i].scale);
    if (out->mask) lk_text_add(&text, "mask %s\n", out->mask->sha256);
    if (out->drawn) lk_text_add(&text, "mask drawn %s\n", out->drawn->text);
    if (out->rewrite) lk_text_add(&text, "rewrite %s %s\n", out->rewriter->sha256, out->rewrite->weights);
    enum lk_code rc = out->hosted ? LK_OK : add_parameters(s, out, &text);
    for (int i = 0; i < out->n_sources; i++) lk_text_add(&text, "\n%s", s->sources[out->sources[i]].sha256);
    if (!rc) rc = text.rc;
    if (!rc) lk_sha256(text.bytes, text.n, out->id);
    lk_text_free(&text);
    return rc;
}

enum lk_code lk_study_job(const struct lk_study *s, size_t i, struct lk_study_job *out) {
    const struct job_key *key = &s->jobs[i];
    const struct lk_study_model *model = &s->models[key->model];
    const struct lk_study_experiment *x = &s->experiments[key->experiment];
    *out = (struct lk_study_job){.kind = x->kind,
                                 .experiment = x->key,
                                 .arm = (enum lk_arm)key->arm,
                                 .model = key->model,
                                 .model_path = model->path,
                                 .model_key = model->key,
                                 .family = model->family,
                                 .weights_identity = model->weights_identity,
                                 .adapters = model->adapters,
                                 .n_adapters = model->n_adapters,
                                 .hosted = lk_study_model_hosted(s, key->model),
                                 .prompt = &s->prompts[key->prompt],
                                 .job = model->job};
    out->job.owned = 0;
    set_prompt(s, key, out);
    set_sources(s, key, out);
    if (!out->problem) out->problem = lk_study_adapter_problem(model);
    lk_study_set_mask(s, key, out);
    if (key->seed >= 0)
        out->job.request.seed = (uint64_t)(lk_study_seeds_of(s, key->experiment, key->model)->first + key->seed);
    if (x->kind == LK_EXP_T2I) lk_study_set_t2i(s, key, out);
    name_job(s, key, out);
    if (x->kind != LK_EXP_T2I) name_documented(s, key, out);
    LK_TRY(lk_study_set_rewrite(s, key, out));
    if (out->final_prompt) lk_parameter_parse(lk_parameter_named("prompt"), &out->job, "", out->final_prompt);
    return out->problem ? LK_OK : set_id(s, out);
}
