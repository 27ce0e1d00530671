#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "eval/report/write.h"
#include "engine/base/digest.h"

static const char *const subcategories[] = {"both", "printed", "content"};
static const char *const unclear[] = {"exclude", "half", "nonadherent"};

static bool add_thresholds(cJSON *root, const struct lk_thresholds *t) {
    cJSON *at = cJSON_AddObjectToObject(root, "thresholds");
    return at && cJSON_AddNumberToObject(at, "success", t->success) &&
           cJSON_AddNumberToObject(at, "soft_erasure", t->soft_erasure) &&
           cJSON_AddNumberToObject(at, "drift", t->drift) && cJSON_AddNumberToObject(at, "identity", t->identity);
}

static bool add_examples(cJSON *root, const struct lk_report_options *o) {
    cJSON *list = cJSON_AddArrayToObject(root, "examples");
    for (int i = 0; i < o->n_examples && list; i++) {
        char id[48];
        lk_source_id(o->examples[i], id);
        if (!cJSON_AddItemToArray(list, cJSON_CreateString(id))) return false;
    }
    return list != NULL;
}

static bool add_figure(cJSON *root, const struct lk_report_options *o) {
    cJSON *at = cJSON_AddObjectToObject(root, "figure_6");
    return at &&
           cJSON_AddStringToObject(at, "prompt", o->figure_prompt < 0 ? "most" : lk_prompt_id(o->figure_prompt)) &&
           cJSON_AddStringToObject(at, "gender",
                                   o->figure_gender < 0 ? "most" : lk_factor_key(LK_FACTOR_GENDER, o->figure_gender)) &&
           cJSON_AddStringToObject(at, "age", o->figure_age < 0 ? "most" : lk_factor_key(LK_FACTOR_AGE, o->figure_age));
}

static bool fill(cJSON *root, const struct lk_report *report) {
    const struct lk_report_options *o = &report->options;
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, o->study_seed); /* a double would round it */
    bool ok = cJSON_AddStringToObject(root, "program", "likeness " LIKENESS_VERSION) &&
              cJSON_AddStringToObject(root, "run", report->run.name) &&
              cJSON_AddStringToObject(root, "title", o->title) && cJSON_AddStringToObject(root, "date", o->date) &&
              cJSON_AddStringToObject(root, "label", o->label) &&
              (!o->studies || cJSON_AddStringToObject(root, "studies", o->studies));
    cJSON *judges = ok ? cJSON_AddArrayToObject(root, "judges") : NULL;
    for (int j = 0; j < LK_N_JUDGES && judges; j++)
        if (!cJSON_AddItemToArray(judges, cJSON_CreateString(o->judges[j]))) return false;
    return judges && add_thresholds(root, &o->thresholds) &&
           cJSON_AddStringToObject(root, "rounding", lk_rounding_name(o->rounding)) &&
           cJSON_AddStringToObject(root, "subcategories", subcategories[o->subcategories]) &&
           cJSON_AddStringToObject(root, "unclear", unclear[o->unclear]) &&
           cJSON_AddStringToObject(root, "score_source", o->score_source == LK_SCORES_HUMAN ? "human" : "judge") &&
           cJSON_AddBoolToObject(root, "drifted_only", o->drifted_only) &&
           cJSON_AddNumberToObject(root, "bootstrap", (double)o->n_bootstrap) &&
           cJSON_AddStringToObject(root, "study_seed", seed) && cJSON_AddNumberToObject(root, "alpha", o->alpha) &&
           cJSON_AddStringToObject(root, "protocol", lk_protocol_name(o->protocol)) &&
           cJSON_AddStringToObject(root, "qc_policy", o->quality ? lk_quality_policy_name(o->policy) : "no raters") &&
           cJSON_AddBoolToObject(root, "secondary_only", o->secondary_only) &&
           cJSON_AddBoolToObject(root, "with_review", o->with_review) && add_examples(root, o) && add_figure(root, o) &&
           cJSON_AddStringToObject(root, "images",
                                   o->audit_safe     ? "audit-safe"
                                   : o->embed_images ? "embedded"
                                                     : "linked") &&
           cJSON_AddNumberToObject(root, "nominal", (double)report->run.n_nominal) &&
           cJSON_AddNumberToObject(root, "valid", (double)report->run.n_valid);
}

enum lk_code lk_report_configuration(const struct lk_report *report, struct lk_text *out) {
    cJSON *root = cJSON_CreateObject();
    char *text = root && fill(root, report) ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (!text) return lk_fail(LK_E_NOMEM, "report: out of memory for the configuration");
    lk_text_add(out, "%s\n", text);
    cJSON_free(text);
    return out->rc;
}

/* Outputs with a score or a role; where no judge gave any, with ratings that count. */
static int64_t n_valid(const struct lk_dataset *data) {
    int64_t n = 0, n_rated = 0;
    for (size_t i = 0; i < data->n_items; i++) {
        bool valid = data->items[i].role != LK_ROLE_NONE || data->items[i].legacy[0] >= 0, rated = false;
        for (int a = 0; a < LK_N_AXES; a++) {
            valid |= data->items[i].score[a] != 0;
            rated |= !isnan(data->items[i].human_mean[a]);
        }
        n += valid;
        n_rated += rated;
    }
    return n ? n : n_rated;
}

enum lk_code lk_report_name_run(struct lk_report *report) {
    const struct lk_report_options *o = &report->options;
    struct lk_text text = {0};
    const char *name = lk_store_text(&report->store, *o->run ? o->run : o->title);
    if (!name) return lk_fail(LK_E_NOMEM, "report: out of memory for the run's name");
    report->run = (struct lk_run){name, report->hash, (int64_t)report->data->nominal, n_valid(report->data)};
    if (report->run.n_nominal && report->run.n_nominal < report->run.n_valid)
        return lk_fail(LK_E_USAGE, "--nominal: expected at least the %lld outputs that have a valid answer, got %lld",
                       (long long)report->run.n_valid, (long long)report->run.n_nominal);
    enum lk_code rc = lk_report_configuration(report, &text);
    if (!rc) lk_sha256(text.bytes, text.n, report->hash);
    lk_text_free(&text);
    for (size_t i = 0; i < report->n_entries; i++) {
        const struct lk_report_entry *entry = &report->entries[i];
        (entry->table ? entry->table : entry->figure->data)->run = &report->run;
    }
    return rc;
}
