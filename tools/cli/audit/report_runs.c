#include "tools/cli/audit/audit.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/design/study.h"
#include "eval/scores/json_lines.h"

/* Fields of the manifest that outputs of one experiment and model must share to stand in one number of a table. */
static const char *const shared[] = {"steps",     "guidance_scale", "true_cfg_scale", "seed",
                                     "precision", "quantization",   "program_version"};
enum { N_SHARED = sizeof shared / sizeof *shared, MAX_GROUPS = LK_STUDY_MAX_EXPERIMENTS * LK_STUDY_MAX_MODELS };

/* The first output of an experiment and model. */
struct group {
    cJSON *record;
    const char *file;
    size_t line;
    bool noted[N_SHARED];
};

struct reading {
    struct group groups[MAX_GROUPS];
    const struct lk_study *study;
    const char *allowed, *file;
    size_t n_different;
    int64_t n;
};

static const char *text_of(const cJSON *record, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, key));
    return text ? text : "";
}

bool cli_report_allows(const char *allowed, const char *key) {
    size_t n = strlen(key);
    for (const char *at = allowed; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, key, n) && (!at[n] || at[n] == ',')) return true;
    return false;
}

/* Says once for each group and field. */
static void compare(struct reading *r, struct group *g, const cJSON *record, size_t line) {
    for (int k = 0; k < N_SHARED; k++) {
        const cJSON *a = cJSON_GetObjectItemCaseSensitive(g->record, shared[k]),
                    *b = cJSON_GetObjectItemCaseSensitive(record, shared[k]);
        const bool varies = !strcmp(shared[k], "seed") && lk_study_has_seeds(r->study);
        if (varies || g->noted[k] || cli_report_allows(r->allowed, shared[k]) || cJSON_Compare(a, b, true) ||
            (!a && !b))
            continue;
        char *texts[2] = {cJSON_PrintUnformatted(a), cJSON_PrintUnformatted(b)};
        g->noted[k] = true;
        r->n_different++;
        lk_log(LK_LOG_ERROR, "%s: %s is %.80s in %s, line %zu (%.100s), and %.80s in %s, line %zu (%.100s)",
               text_of(record, "experiment"), shared[k], texts[0] ? texts[0] : "nothing", g->file, g->line,
               text_of(g->record, "item_id"), texts[1] ? texts[1] : "nothing", r->file, line,
               text_of(record, "item_id"));
        for (int i = 0; i < 2; i++) cJSON_free(texts[i]);
    }
}

static enum lk_code add_record(struct reading *r, const struct lk_json_record *line) {
    cJSON *record = cJSON_ParseWithLength(line->text, line->n);
    const int n_models = lk_study_n_models(r->study), n_experiments = lk_study_n_experiments(r->study);
    int experiment = 0, model = 0;
    while (model < n_models && strcmp(lk_study_model_key(r->study, model), text_of(record, "model"))) model++;
    while (experiment < n_experiments &&
           strcmp(lk_study_experiment_key(r->study, experiment), text_of(record, "experiment")))
        experiment++;
    if (!record || model == n_models || experiment == n_experiments) {
        cJSON_Delete(record);
        return lk_fail(LK_E_INPUT, "%s: line %zu: expected an output of the study with its experiment and model",
                       r->file, line->line);
    }
    struct group *g = &r->groups[experiment * LK_STUDY_MAX_MODELS + model];
    bool counts = lk_study_experiment_kind(r->study, experiment) != LK_EXP_T2I;
    r->n += counts;
    if (counts && !g->record) {
        *g = (struct group){.record = record, .file = r->file, .line = line->line};
        return LK_OK;
    }
    if (counts) compare(r, g, record, line->line);
    cJSON_Delete(record);
    return LK_OK;
}

static enum lk_code read_manifest(struct reading *r, const char *path) {
    struct lk_json_lines lines;
    struct lk_json_record record;
    char *text;
    size_t n;
    bool more = true;
    LK_TRY(lk_read_file(path, CLI_MANIFEST_MAX_BYTES, &text, &n));
    r->file = path;
    lk_json_lines_open(&lines, text, n, path);
    enum lk_code rc;
    while (!(rc = lk_json_lines_next(&lines, &record, &more)) && more)
        if ((rc = add_record(r, &record))) break;
    lk_free(text);
    return rc;
}

static enum lk_code read_manifests(struct cli_report_runs *runs, const struct cli_report_arguments *a) {
    struct reading r = {.study = runs->first, .allowed = a->allow};
    char *paths[CLI_MAX_LIST] = {NULL};
    enum lk_code rc = LK_OK;
    for (int i = 0; i < a->runs.n && !rc; i++) {
        paths[i] = lk_format("%s/manifest.jsonl", a->runs.values[i]);
        rc = paths[i] ? read_manifest(&r, paths[i]) : lk_fail(LK_E_NOMEM, "report: out of memory");
    }
    for (int i = 0; i < MAX_GROUPS; i++) cJSON_Delete(r.groups[i].record);
    for (int i = 0; i < a->runs.n; i++) lk_free(paths[i]);
    runs->n_nominal = r.n;
    if (rc || !r.n_different) return rc;
    return lk_fail(LK_E_INPUT,
                   "report: the outputs were made in different ways, %zu named above: one table cannot be of all; "
                   "--allow KEY accepts one",
                   r.n_different);
}

static enum lk_code compare_studies(const struct cli_report_runs *runs, const struct lk_study *other,
                                    const struct cli_report_arguments *a, const char *folder) {
    struct lk_text text = {0};
    size_t n = 0;
    enum lk_code rc = lk_study_compare(runs->first, other, a->allow, &text, &n);
    char *rest = NULL;
    for (char *line = n ? strtok_r(text.bytes, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        lk_log(LK_LOG_ERROR, "%s", line);
    lk_text_free(&text);
    if (rc || !n) return rc;
    return lk_fail(LK_E_INPUT,
                   "report: the runs %s and %s differ in %zu settings, named above; --allow KEY accepts one",
                   a->runs.values[0], folder, n);
}

static enum lk_code add_study(struct cli_report_runs *runs, const struct cli_report_arguments *a, const char *folder) {
    struct lk_study *study;
    enum lk_code rc = cli_run_study(&study, folder, NULL);
    if (rc) return rc;
    lk_text_add(&runs->hashes, "%s%s", runs->hashes.n ? "," : "", lk_study_hash(study));
    if (!runs->first) {
        runs->first = study;
        return runs->hashes.rc;
    }
    rc = compare_studies(runs, study, a, folder);
    lk_study_close(study);
    return rc ? rc : runs->hashes.rc;
}

/* A default gives way to the study; what is neither is the user's own and must be allowed. */
static enum lk_code settle(const struct cli_report_arguments *a, const char *key, const char *option, const char *given,
                           const char *otherwise, const char *study, bool *take) {
    *take = strcmp(given, study) != 0;
    if (!*take || !strcmp(given, otherwise)) return LK_OK;
    *take = false;
    if (cli_report_allows(a->allow, key)) return LK_OK;
    return lk_fail(LK_E_INPUT, "report: --%s: the study says %s, got %s; --allow %s accepts it", option, study, given,
                   key);
}

static enum lk_code settle_analysis(const struct lk_study *study, struct cli_report_arguments *a) {
    const struct {
        const char *key, *option, *otherwise, *none, **value;
    } words[] = {{"rounding", "rounding", "half_even", "", &a->rounding},
                 {"subcategory", "subcategory", "both", "", &a->subcategory},
                 {"human", "protocol", "protocol", "protocol", &a->protocol},
                 {"unclear", "unclear", "exclude", "", &a->unclear},
                 {"qc_policy", "qc-policy", "protocol", "protocol", &a->qc_policy}};
    const struct {
        const char *key, *option, *otherwise;
        int64_t *value;
    } numbers[] = {{"bootstrap", "bootstrap", "1000", &a->bootstrap},
                   {"threshold.success", "threshold-success", "4", &a->success},
                   {"threshold.soft_erasure", "threshold-soft-erasure", "2", &a->soft_erasure},
                   {"threshold.drift", "threshold-drift", "3", &a->drift},
                   {"threshold.identity_erasure", "threshold-identity", "4", &a->identity}};
    bool take;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *says = lk_study_setting(study, words[i].key), *now = *words[i].value ? *words[i].value : "protocol";
        LK_TRY(settle(a, words[i].key, words[i].option, now, words[i].otherwise, says, &take));
        if (words[i].value == &a->protocol) continue; /* the ratings say it before the study does */
        if (take) *words[i].value = strcmp(says, words[i].none) ? says : NULL;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const char *says = lk_study_setting(study, numbers[i].key);
        char now[32];
        snprintf(now, sizeof now, "%lld", (long long)*numbers[i].value);
        LK_TRY(settle(a, numbers[i].key, numbers[i].option, now, numbers[i].otherwise, says, &take));
        if (take) *numbers[i].value = atoll(says);
    }
    const double says = strtod(lk_study_setting(study, "alpha"), NULL);
    bool differs = a->alpha < says || a->alpha > says;
    if (differs && a->alpha > 0.0499999 && a->alpha < 0.0500001)
        a->alpha = says;
    else if (differs && !cli_report_allows(a->allow, "alpha"))
        return lk_fail(LK_E_INPUT, "report: --alpha: the study says %g, got %g; --allow alpha accepts it", says,
                       a->alpha);
    return LK_OK;
}

enum lk_code cli_report_runs_read(struct cli_report_runs *runs, struct cli_report_arguments *a) {
    *runs = (struct cli_report_runs){0};
    for (int i = 0; i < a->runs.n; i++) LK_TRY(add_study(runs, a, a->runs.values[i]));
    if (!runs->first) return LK_OK;
    LK_TRY(read_manifests(runs, a));
    if (!a->nominal) a->nominal = runs->n_nominal;
    return settle_analysis(runs->first, a);
}

void cli_report_runs_set(const struct cli_report_runs *runs, struct lk_report_options *o) {
    if (runs->first) o->studies = runs->hashes.bytes;
    if (runs->first) o->attribution = lk_study_attribution(runs->first);
}

void cli_report_runs_free(struct cli_report_runs *runs) {
    lk_study_close(runs->first);
    lk_text_free(&runs->hashes);
}
