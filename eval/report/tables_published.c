/* Published values beside this run's, where the paper prints them. They are not expected to agree: the paper's were
 * made with other judges and another run. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "eval/data/data.h"
#include "eval/report/build.h"

static double number_of(const cJSON *object, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

static int level_of(enum lk_factor factor, const cJSON *object, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(value) ? lk_factor_parse(factor, value->valuestring, strlen(value->valuestring)) : -1;
}

#define COLUMNS "Group|Measure|>Published by the authors|>This run|>Difference"

/* A published percentage beside a rate; returns the rate's n. */
static int64_t rate_row(struct lk_report *report, struct lk_table *table, const char *label,
                        const struct lk_group *group, enum lk_measure measure, double published_percent) {
    struct lk_rate rate = lk_measure_rate(report->data, group, measure, &report->options.thresholds);
    lk_table_row(table);
    lk_table_text(table, "%s", label);
    lk_table_text(table, "%s", lk_measure_name(measure));
    lk_table_text(table, "%.1f%%", published_percent);
    lk_table_percent(table, rate.k, rate.n);
    if (rate.k) lk_report_link(report, table, group, measure, LK_SCORES_JUDGE);
    if (rate.n)
        lk_table_points(table, lk_rate_value(rate) - published_percent / 100);
    else
        lk_table_none(table, "no output with a valid score");
    return rate.n;
}

static enum lk_code published_12(struct lk_report *report, const cJSON *tables) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "published_12", "Published results by model (table 12) beside this run's", COLUMNS));
    const cJSON *row;
    int64_t n = 0;
    cJSON_ArrayForEach(
        row, cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(tables, "table_12"), "values")) {
        struct lk_group group = LK_GROUP_ANY;
        group.model = level_of(LK_FACTOR_MODEL, row, "model");
        const char *label = lk_factor_display(LK_FACTOR_MODEL, group.model);
        n += rate_row(report, table, label, &group, LK_MEASURE_SUCCESS, number_of(row, "edit_success_pct"));
        rate_row(report, table, label, &group, LK_MEASURE_SOFT_ERASURE, number_of(row, "soft_erasure_pct"));
        rate_row(report, table, label, &group, LK_MEASURE_RACE_DRIFT, number_of(row, "race_change_pct"));
    }
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

static enum lk_code published_13(struct lk_report *report, const cJSON *tables) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "published_13", "Published race change by race and model (table 13) beside this run's",
                        COLUMNS));
    const cJSON *row;
    int64_t n = 0;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(tables, "table_13"),
                                                             "values")) for (int model = 0; model < LK_N_MODELS;
                                                                             model++) {
        struct lk_group group = LK_GROUP_ANY;
        char label[96];
        group.race = level_of(LK_FACTOR_RACE, row, "race");
        group.model = model;
        snprintf(label, sizeof label, "%s, %s", lk_factor_display(LK_FACTOR_RACE, group.race),
                 lk_factor_short(LK_FACTOR_MODEL, model));
        n += rate_row(report, table, label, &group, LK_MEASURE_RACE_DRIFT,
                      number_of(row, lk_factor_key(LK_FACTOR_MODEL, model)));
    }
    lk_table_note(table,
                  "No set of scores satisfies the published tables 12 and 13 together for Step1X-Edit and Qwen-Edit: "
                  "with 240 outputs a race, the mean over races must be the overall rate.");
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

static enum lk_code published_14(struct lk_report *report, const cJSON *tables) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "published_14", "Published change by the feature prompt (table 14) beside this run's",
                        COLUMNS));
    const enum lk_axis axes[] = {LK_AXIS_RACE_DRIFT, LK_AXIS_GENDER_DRIFT, LK_AXIS_SKIN_TONE};
    const char *const keys[] = {"d_race", "d_gender", "d_skin"};
    const struct lk_report_options *o = &report->options;
    const cJSON *row;
    int64_t n = 0;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(tables, "table_14"),
                                                             "values")) for (int a = 0; a < 3; a++) {
        struct lk_group group = LK_GROUP_ANY;
        group.race = level_of(LK_FACTOR_RACE, row, "race");
        struct lk_paired p =
            lk_paired_of(report->data, group, axes[a], o->score_source, false, o->drifted_only, &o->thresholds);
        double published = number_of(row, keys[a]), ours = p.n ? (p.preserved - p.edited) / (double)p.n : 0;
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, group.race));
        lk_table_text(table, "Δ %s", lk_factor_display(LK_FACTOR_AXIS, axes[a]));
        lk_table_signed(table, published, 2);
        if (p.n) {
            lk_table_signed(table, ours, 2);
            lk_table_signed(table, ours - published, 2);
        } else {
            lk_table_none(table, "no pair with both scores");
            lk_table_none(table, "no pair with both scores");
        }
        n += p.n;
    }
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

enum lk_code lk_report_tables_published(struct lk_report *report) {
    struct lk_data_file file;
    cJSON *json = lk_data_find("paper_tables", &file) ? cJSON_ParseWithLength(file.text, file.n_bytes) : NULL;
    if (!json) return lk_fail(LK_E_NOMEM, "report: out of memory");
    const cJSON *tables = cJSON_GetObjectItemCaseSensitive(json, "tables");
    enum lk_code rc = published_12(report, tables);
    if (!rc) rc = published_13(report, tables);
    if (!rc) rc = published_14(report, tables);
    cJSON_Delete(json);
    return rc;
}
