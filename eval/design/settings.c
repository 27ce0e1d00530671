/* The study file's settings: each described once, in the tables below. Reading, refusals, defaults and the resolved
 * copy go by them; a model's parameters by the table in models/parameters.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/digest.h"
#include "eval/design/settings.h"

#define STUDY(field) offsetof(struct lk_study, field)
const struct setting lk_study_settings[] = {
    {"schema", INT, NULL, NULL, 1, 1, STUDY(schema)},
    {"study", TEXT, NULL, NULL, 0, 0, STUDY(name)},
    {"study_seed", INT, NULL, "42", 0, 0x1p53, STUDY(study_seed)},
    {"prompt_scheme", CHOICE, "ov|legacy", "ov", 0, 0, STUDY(prompt_scheme)},
    {"sources", FILE_NAME, NULL, NULL, 0, 0, STUDY(sources_file)},
    {"prompts", FILE_NAME, NULL, NULL, 0, 0, STUDY(prompts_file)},
    {"models", OBJECT, NULL, NULL, 0, 0, 0},
    {"experiments", OBJECT, NULL, NULL, 0, 0, 0},
    {"analysis", OBJECT, NULL, NULL, 0, 0, 0},
    {0},
};

#define EXP(field) offsetof(struct lk_study_experiment, field)
static const struct setting exp1_settings[] = {
    {"preset", CHOICE, "full|legacy|custom", "full", 0, 0, EXP(preset)},
    {"models", LIST, NULL, NULL, 0, 0, EXP(models)},
    {"sources", LIST, NULL, NULL, 0, 0, EXP(sources)},
    {"prompts", LIST, NULL, NULL, 0, 0, EXP(prompts)},
    {0},
};
static const struct setting exp2_settings[] = {
    {"preset", CHOICE, "pairs500|grid336|drift|list", "pairs500", 0, 0, EXP(preset)},
    {"preserve_with", CHOICE, "feature|generic", "feature", 0, 0, EXP(preserve_with)},
    {"feature_prompts", FILE_NAME, NULL, NULL, 0, 0, EXP(feature_prompts)},
    {"baseline", CHOICE, "reuse|make", "reuse", 0, 0, EXP(baseline)},
    {"models", LIST, NULL, NULL, 0, 0, EXP(models)},
    {"prompts", LIST, NULL, NULL, 0, 0, EXP(prompts)},
    {"list", FILE_NAME, NULL, NULL, 0, 0, EXP(list)},
    {"scores", FILE_NAME, NULL, NULL, 0, 0, EXP(scores)},
    {0},
};
static const struct setting exp3_settings[] = {
    {"preset", CHOICE, "composite|composite1|separate", "composite", 0, 0, EXP(preset)},
    {"order", CHOICE, "male_first|both", "male_first", 0, 0, EXP(order)},
    {"models", LIST, NULL, NULL, 0, 0, EXP(models)},
    {0},
};
static const struct setting t2i_settings[] = {
    {"table", FILE_NAME, NULL, NULL, 0, 0, EXP(table)},
    {"models", LIST, NULL, NULL, 0, 0, EXP(models)},
    {"arms", LIST, NULL, NULL, 0, 0, EXP(arms)},
    {"cue", INT, NULL, "1", 1, 2, EXP(cue)},
    {"seeds", TEXT, NULL, "0:9", 0, 0, EXP(seeds)},
    {"cfg", LIST, NULL, NULL, 0, 0, EXP(cfg)},
    {"normalize", CHOICE, "none|center|zscore", NULL, 0, 0, EXP(normalize)},
    {0},
};
const struct setting *const lk_experiment_settings[LK_N_EXPERIMENTS] = {exp1_settings, exp2_settings, exp3_settings,
                                                                        t2i_settings};

/* What the analysis goes by. The text is the value; numbers keep their digits. */
#define WORD(key, otherwise, others)                                                                                   \
    { key, CHOICE, otherwise others, otherwise, 0, 0, 0 }
#define VALUE(key, kind, otherwise, ...)                                                                               \
    { key, kind, NULL, otherwise, __VA_ARGS__, 0 }
const struct setting lk_analysis_settings[] = {
    WORD("subcategory", "both", "|printed|content"),
    VALUE("judge.primary", TEXT, "in-process", 0, 0),
    VALUE("judge.secondary", TEXT, "in-process", 0, 0),
    WORD("judge_prompt", "v1", "|printed|legacy"),
    VALUE("temperature", NUMBER, "0.1", 0, 2),
    WORD("rounding", "half_even", "|half_up|half_down"),
    VALUE("threshold.drift", INT, "3", 2, 5),
    VALUE("threshold.soft_erasure", INT, "2", 1, 4),
    VALUE("threshold.success", INT, "4", 2, 5),
    VALUE("threshold.identity_erasure", INT, "4", 2, 5),
    WORD("human", "003", "|001|000|004"),
    WORD("sample", "pairs500", "|strata126|strata42|all"),
    WORD("sampler", "stream", "|pandas"),
    WORD("packing_rule", "packed", "|seed|ceil"),
    WORD("combine", "mean", "|majority"),
    WORD("qc_policy", "protocol", "|any|two_flags|none"),
    WORD("skin_scale", "bipolar", "|printed"),
    WORD("exp2_option", "A", "|B"),
    WORD("q3_version", "B", "|A"),
    VALUE("bootstrap", INT, "1000", 10, 1000000),
    VALUE("alpha", NUMBER, "0.05", 0.0001, 0.5),
    WORD("z", "exact", "|rounded"),
    WORD("unclear", "exclude", "|half|nonadherent"),
    {0},
};
_Static_assert(sizeof lk_analysis_settings / sizeof *lk_analysis_settings - 1 < LK_N_ANALYSIS, "room for each");

enum lk_code lk_study_bad(const struct lk_study *s, const char *field, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return lk_fail(LK_E_CONFIG_VALUE, "%s: field \"%s\": %s", s->file, field, text);
}

const char *lk_study_setting(const struct lk_study *s, const char *key) {
    int i = 0;
    while (strcmp(lk_analysis_settings[i].key, key)) i++;
    return s->analysis[i];
}

static void write_value(struct lk_text *out, const struct setting *s, const void *base) {
    const void *at = (const char *)base + s->offset;
    const struct lk_study_list *list = at;
    if (s->kind == INT)
        lk_text_add(out, "%lld", (long long)*(const int64_t *)at);
    else if (s->kind == LIST && list->n) {
        lk_text_add(out, "[");
        for (size_t i = 0; i < list->n; i++) {
            lk_text_add(out, "%s", i ? ", " : "");
            lk_text_json(out, list->values[i]);
        }
        lk_text_add(out, "]");
    } else if (s->kind != LIST && *(const char *const *)at)
        lk_text_json(out, *(const char *const *)at);
    else
        lk_text_add(out, "null");
}

static void write_settings(struct lk_text *out, const struct setting *settings, const void *base, bool places,
                           const char *indent) {
    bool first = true;
    for (; settings->key; settings++) {
        if (settings->kind == OBJECT || (settings->kind == FILE_NAME && !places)) continue;
        lk_text_add(out, "%s\n%s\"%s\": ", first ? "" : ",", indent, settings->key);
        write_value(out, settings, base);
        first = false;
    }
}

void lk_study_write_analysis(const struct lk_study *s, struct lk_text *out) {
    for (int i = 0; lk_analysis_settings[i].key; i++) {
        bool number = lk_analysis_settings[i].kind == INT || lk_analysis_settings[i].kind == NUMBER;
        const char *value = s ? s->analysis[i] : lk_analysis_settings[i].otherwise;
        lk_text_add(out, "%s\n    \"%s\": ", i ? "," : "", lk_analysis_settings[i].key);
        if (number)
            lk_text_add(out, "%s", value);
        else
            lk_text_json(out, value);
    }
}

/* As members of the model's object. */
static enum lk_code write_parameters(const struct lk_job *job, int model, struct lk_text *out) {
    struct lk_text object = {0};
    enum lk_code rc = lk_study_write_parameters(job, lk_family_bit_of(lk_study_family(model)), false, &object);
    if (!rc && object.n > 2) {
        lk_text_add(out, ", ");
        lk_text_bytes(out, object.bytes + 1, object.n - 2);
    }
    lk_text_free(&object);
    return rc;
}

static void write_member(struct lk_text *out, const char *key, const char *value) {
    lk_text_add(out, "\"%s\": ", key);
    lk_text_json(out, value);
    lk_text_add(out, ", ");
}

/* A digest of what stands in the files that the resolved copy names: prompts, and which jobs there are. */
static enum lk_code write_jobs(const struct lk_study *s, struct lk_text *out) {
    struct lk_text all = {0};
    char sha256[65];
    for (size_t i = 0; i < s->n_prompts; i++)
        lk_text_add(&all, "%s\n%s\n%s\n", s->prompts[i].id, s->prompts[i].category, s->prompts[i].text);
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_key *k = &s->jobs[i];
        lk_text_add(&all, "%d %d %d %d %d %d %d %d %d %d %d\n", k->experiment, k->model, k->arm, k->swapped,
                    k->source[0], k->source[1], k->prompt, k->pair, k->seed, k->cfg, k->mitigation);
    }
    if (!all.rc) lk_sha256(all.bytes ? all.bytes : "", all.n, sha256);
    enum lk_code rc = all.rc;
    lk_text_free(&all);
    if (rc) return rc;
    lk_text_add(out, "\"jobs\": {\"n\": %zu, \"sha256\": \"%s\"}", s->n_jobs, sha256);
    return out->rc;
}

/* Texts that stand in the resolved copy decide what is made; which machine makes it does not. Nor does it matter where
 * files are: `places` says whether the resolved copy is meant, which names them. */
static enum lk_code write_all(const struct lk_study *s, bool places, struct lk_text *out) {
    lk_text_add(out, "{");
    write_settings(out, lk_study_settings, s, places, "  ");
    lk_text_add(out, ",\n  \"models\": {");
    for (int m = 0, n = 0; m < LK_N_MODELS; m++) {
        const struct lk_study_model *model = &s->models[m];
        if (!model->given) continue;
        lk_text_add(out, "%s\n    \"%s\": {", n++ ? "," : "", lk_factor_key(LK_FACTOR_MODEL, m));
        if (places) write_member(out, "path", model->written);
        if (model->weights_identity) write_member(out, "weights_identity", model->weights_identity);
        lk_text_add(out, "\"allow_steps\": %s", model->allow_steps ? "true" : "false");
        LK_TRY(write_parameters(&model->job, m, out));
        lk_text_add(out, "}");
    }
    lk_text_add(out, "\n  },\n  \"experiments\": {");
    for (int e = 0, n = 0; e < LK_N_EXPERIMENTS; e++) {
        if (!s->experiments[e].given) continue;
        lk_text_add(out, "%s\n    \"%s\": {", n++ ? "," : "", lk_experiment_key(e));
        write_settings(out, lk_experiment_settings[e], &s->experiments[e], places, "      ");
        lk_text_add(out, "\n    }");
    }
    lk_text_add(out, "\n  },\n  \"analysis\": {");
    lk_study_write_analysis(s, out);
    lk_text_add(out, "\n  },\n  \"source_files\": [");
    for (int i = 0, n = 0; i < LK_N_SOURCES; i++) {
        if (!s->sources[i].id) continue;
        lk_text_add(out, "%s\n    {\"id\": \"%s\", \"sha256\": \"%s\"", n++ ? "," : "", s->sources[i].id,
                    s->sources[i].sha256);
        if (places) lk_text_add(out, ", \"file\": ");
        if (places) lk_text_json(out, s->sources[i].written);
        lk_text_add(out, "}");
    }
    lk_text_add(out, "\n  ],\n  ");
    if (places)
        lk_text_add(out, "\"jobs\": %zu", s->n_jobs);
    else
        LK_TRY(write_jobs(s, out));
    lk_text_add(out, "\n}\n");
    return out->rc;
}

enum lk_code lk_study_settings_write(struct lk_study *s) {
    LK_TRY(write_all(s, false, &s->asked));
    lk_sha256(s->asked.bytes, s->asked.n, s->hash);
    return write_all(s, true, &s->resolved);
}
