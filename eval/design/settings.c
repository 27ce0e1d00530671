/* The study file's settings: each described once, in the tables below. Reading, refusals, defaults and the resolved
 * copy go by them; a model's parameters by the table in models/parameters.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/digest.h"
#include "eval/design/settings.h"

#define STUDY(field) offsetof(struct lk_study, field)
const struct setting lk_study_settings[] = {
    {"schema", INT, NULL, NULL, 1, 2, STUDY(schema)},
    {"study", TEXT, NULL, NULL, 0, 0, STUDY(name)},
    {"study_seed", INT, NULL, "42", 0, 0x1p53, STUDY(study_seed)},
    {"prompt_scheme", CHOICE, "ov|legacy", "ov", 0, 0, STUDY(prompt_scheme)},
    {"item_ids", CHOICE, "portrait|plain", NULL, 0, 0, STUDY(item_ids)},
    {"attributes", TABLE, NULL, NULL, 0, 0, STUDY(attributes_given)},
    {"sources", TABLE, NULL, NULL, 0, 0, STUDY(sources_file)},
    {"prompts", TABLE, NULL, NULL, 0, 0, STUDY(prompts_file)},
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
    {"seeds", TEXT, NULL, NULL, 0, 0, EXP(seeds)},
    {0},
};
static const struct setting exp2_settings[] = {
    {"preset", CHOICE, "pairs500|grid336|grid|drift|list", NULL, 0, 0, EXP(preset)},
    {"preserve_with", CHOICE, "feature|generic", "feature", 0, 0, EXP(preserve_with)},
    {"feature_prompts", FILE_NAME, NULL, NULL, 0, 0, EXP(feature_prompts)},
    {"baseline", CHOICE, "reuse|make", "reuse", 0, 0, EXP(baseline)},
    {"models", LIST, NULL, NULL, 0, 0, EXP(models)},
    {"sources", LIST, NULL, NULL, 0, 0, EXP(sources)},
    {"prompts", LIST, NULL, NULL, 0, 0, EXP(prompts)},
    {"seeds", TEXT, NULL, NULL, 0, 0, EXP(seeds)},
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

/* `places`: the resolved copy, which names files. */
static bool is_passed(const struct setting *s, const void *base, bool places) {
    if (s->kind == OBJECT || s->kind == TABLE) return true;
    if (!places && (s->kind == FILE_NAME || !strcmp(s->key, "schema"))) return true;
    return (s->kind == TEXT || s->kind == CHOICE) && !*(const char *const *)((const char *)base + s->offset);
}

static void write_settings(struct lk_text *out, const struct setting *settings, const void *base, bool places,
                           const char *indent) {
    bool first = true;
    for (; settings->key; settings++) {
        if (is_passed(settings, base, places)) continue;
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
static enum lk_code write_parameters(const struct lk_study_model *model, struct lk_text *out) {
    struct lk_text object = {0};
    enum lk_code rc = lk_study_write_parameters(&model->job, lk_family_bit_of(model->family), false, &object);
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

static enum lk_code write_models(const struct lk_study *s, bool places, struct lk_text *out) {
    lk_text_add(out, ",\n  \"models\": {");
    for (int m = 0; m < s->n_models; m++) {
        const struct lk_study_model *model = &s->models[m];
        lk_text_add(out, "%s\n    \"%s\": {", m ? "," : "", model->key);
        if (places) {
            write_member(out, "path", model->path);
            write_member(out, "label", model->label);
            write_member(out, "family", model->family);
        }
        if (model->seeds) write_member(out, "seeds", model->seeds);
        if (model->weights_identity) write_member(out, "weights_identity", model->weights_identity);
        lk_text_add(out, "\"allow_steps\": %s", model->allow_steps ? "true" : "false");
        LK_TRY(write_parameters(model, out));
        lk_text_add(out, "}");
    }
    lk_text_add(out, "\n  }");
    return out->rc;
}

static void write_source(const struct lk_study *s, const struct lk_study_source *source, bool places,
                         struct lk_text *out) {
    lk_text_add(out, "{\"id\": \"%s\", \"sha256\": \"%s\"", source->id, source->sha256);
    if (places) {
        lk_text_add(out, ", \"file\": ");
        lk_text_json(out, source->file);
    }
    for (int a = 0; a < s->n_attributes && (places || !s->portrait); a++)
        lk_text_add(out, ", \"%s\": \"%s\"", s->attributes[a].name, s->attributes[a].keys[source->level[a]]);
    lk_text_add(out, "}");
}

static void write_prompts(const struct lk_study *s, struct lk_text *out) {
    size_t n;
    const struct lk_study_prompt *own = lk_study_own_prompts(s, &n);
    lk_text_add(out, ",\n  \"prompts\": [");
    for (size_t i = 0; i < n; i++) {
        lk_text_add(out, "%s\n    {", i ? "," : "");
        write_member(out, "id", own[i].id);
        write_member(out, "category", own[i].category);
        write_member(out, "subcategory", own[i].subcategory_printed);
        write_member(out, "subcategory_by_content", own[i].subcategory_content);
        write_member(out, "target", own[i].target);
        write_member(out, "text", own[i].text);
        out->n -= 2;
        lk_text_add(out, "}");
    }
    lk_text_add(out, "\n  ]");
}

/* Texts that stand in the resolved copy decide what is made; which machine makes it does not. Nor does it matter where
 * files are: `places` says whether the resolved copy is meant, which names them and holds the tables themselves. */
static enum lk_code write_all(const struct lk_study *s, bool places, struct lk_text *out) {
    lk_text_add(out, "{");
    write_settings(out, lk_study_settings, s, places, "  ");
    if (!s->portrait) {
        lk_text_add(out, ",\n  \"attributes\": ");
        lk_study_write_attributes(s, out);
    }
    LK_TRY(write_models(s, places, out));
    lk_text_add(out, ",\n  \"experiments\": {");
    for (int e = 0; e < s->n_experiments; e++) {
        const struct lk_study_experiment *x = &s->experiments[e];
        lk_text_add(out, "%s\n    \"%s\": {", e ? "," : "", x->key);
        if (strcmp(x->key, lk_experiment_key(x->kind)))
            lk_text_add(out, "\n      \"kind\": \"%s\",", lk_experiment_kind(x->kind));
        write_settings(out, lk_experiment_settings[x->kind], x, places, "      ");
        lk_text_add(out, "\n    }");
    }
    lk_text_add(out, "\n  },\n  \"analysis\": {");
    lk_study_write_analysis(s, out);
    lk_text_add(out, "\n  }");
    if (places) write_prompts(s, out);
    lk_text_add(out, ",\n  \"%s\": [", places ? "sources" : "source_files");
    for (int i = 0, n = 0; i < s->n_sources; i++) {
        if (!s->sources[i].id) continue;
        lk_text_add(out, "%s\n    ", n++ ? "," : "");
        write_source(s, &s->sources[i], places, out);
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
    s->schema = 2; /* of the resolved copy */
    return write_all(s, true, &s->resolved);
}
