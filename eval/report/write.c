/* The report as files: tables in four formats, the configuration, and last the page. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/atomic_file.h"
#include "eval/report/build.h"
#include "eval/report/compare.h"
#include "eval/document/table_print.h"
#include "eval/report/write.h"

static const struct {
    const char *id, *title, *text;
} sections[LK_N_SECTIONS] = {
    [LK_SECTION_SUMMARY] = {"section-summary", "Summary", ""},
    [LK_SECTION_EDITS] = {"section-edits", "Edits by model",
                          "Whether edits were made (success), ignored (soft erasure), or changed the person (drift)."},
    [LK_SECTION_DISPARITY] = {"section-disparity", "Disparities between groups",
                              "The same rates by race and other attributes of the source. A disparity is the highest "
                              "group's rate minus the lowest."},
    [LK_SECTION_MITIGATION] = {"section-mitigation", "Mitigation: prompts that name the person's features",
                               "Pairs of edits that differ only in the prompt: as it is, and with the features to "
                               "preserve."},
    [LK_SECTION_ROLES] = {"section-roles", "Roles given to two people",
                          "Two sources, one occupation: whom the model gave the role, beside the stereotype."},
    [LK_SECTION_HUMAN] = {"section-human", "Raters", "Who rated, how well they agree, and who was left out."},
    [LK_SECTION_TESTS] = {"section-tests", "Hypothesis tests",
                          "Tests of the differences above, with effect sizes. Outputs share sources: tests that "
                          "take them as independent say so."},
    [LK_SECTION_ROBUSTNESS] = {"section-robustness", "Robustness",
                               "How far results depend on conventions, and published values beside these."},
    [LK_SECTION_EXAMPLES] = {"section-examples", "Examples", "Outputs that show a measure most."},
    [LK_SECTION_DESIGN] = {"section-design", "Design", "Factors, prompts and counts that the study asks for."},
};

static void summary(struct lk_page *page, const struct lk_report *report) {
    const struct lk_dataset *data = report->data;
    const struct lk_report_options *o = &report->options;
    int judges = 0;
    for (int j = 0; j < LK_N_JUDGES; j++) {
        int64_t n = 0;
        for (size_t i = 0; i < data->n_items; i++) {
            bool valid = data->items[i].judge_role[j] != LK_ROLE_NONE;
            for (int a = 0; a < LK_N_AXES; a++) valid |= data->items[i].judge[j][a] != 0;
            n += valid;
        }
        char outputs[LK_NUMBER_MAX];
        lk_print_count(outputs, n);
        judges += n > 0;
        if (n)
            lk_page_paragraph(page, "%s judge%s%s: %s outputs.", j ? "Secondary" : "Primary", *o->judges[j] ? ", " : "",
                              o->judges[j], outputs);
    }
    if (data->n_raters) {
        char ratings[LK_NUMBER_MAX];
        lk_print_count(ratings, (int64_t)data->n_ratings);
        lk_page_paragraph(page, "Raters: %zu, of whom quality control excludes %zu; %s ratings.", data->n_raters,
                          o->quality ? o->quality->n_excluded : (size_t)0, ratings);
    }
    lk_page_paragraph(page, "Thresholds: success from %d, soft erasure up to %d, drift from %d. Intervals are at %g%%.",
                      o->thresholds.success, o->thresholds.soft_erasure, o->thresholds.drift, 100 * (1 - o->alpha));
    if (judges == LK_N_JUDGES)
        lk_page_paragraph(page, "Two judges' scores are averaged (%s).", lk_rounding_name(o->rounding));
}

static void figures(struct lk_page *page, const struct lk_report *report, enum lk_section at) {
    for (size_t i = 0; i < report->n_entries; i++)
        if (report->entries[i].section == at && report->entries[i].figure)
            lk_page_figure(page, report->entries[i].figure);
}

/* "4 figures, 12 tables" */
static void fold(struct lk_page *page, int n_figures, int n_tables) {
    char label[96], shown[48] = "";
    if (n_figures)
        snprintf(shown, sizeof shown, "%d figure%s%s", n_figures, n_figures > 1 ? "s" : "", n_tables ? ", " : "");
    snprintf(label, sizeof label, n_tables ? "%s%d table%s" : "%s", shown, n_tables, n_tables > 1 ? "s" : "");
    lk_page_fold(page, label);
}

/* What this run was not given, of all that tables are made from: "no judges' scores, no feature prompts". */
static void print_missing(const struct lk_report *report, char out[320]) {
    const struct lk_dataset *data = report->data;
    bool judged = lk_scores_any(data, LK_SCORES_JUDGE), twice = false, pairs = false, roles = false, compared = false;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        for (int a = 0; a < LK_N_AXES; a++) twice |= item->judge[0][a] && item->judge[1][a];
        pairs |= item->partner >= 0;
        roles |= item->prompt >= LK_N_EDIT_PROMPTS;
    }
    for (size_t r = 0; r < data->n_ratings; r++) compared |= data->ratings[r].preference >= 0;
    const struct {
        bool missing;
        const char *what;
    } parts[] = {{!judged, "no judges' scores"},
                 {judged && !twice, "no scores of a second judge"},
                 {!lk_scores_any(data, LK_SCORES_HUMAN),
                  data->n_raters ? "no two raters' answers that count" : "no raters' answers"},
                 {data->n_raters && !compared, "no raters' choices between two pictures"},
                 {!pairs, "no pairs with and without the feature prompt"},
                 {!roles, "no pictures of two people"},
                 {!report->options.features, "no feature prompts"},
                 {!report->options.manifest, "no list of chosen sources"}};
    int n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].missing) n += snprintf(out + n, 320 - (size_t)n, "%s%s", n ? ", " : "", parts[i].what);
    if (!n) snprintf(out, 320, "no output that they are about");
}

/* Tables without data are named in one place, with the reason. */
static enum lk_code left_out(struct lk_page *page, const struct lk_report *report) {
    char missing[320];
    int n = 0;
    for (size_t i = 0; i < report->n_entries; i++) n += report->entries[i].table && report->entries[i].table->no_data;
    if (!n) return LK_OK;
    print_missing(report, missing);
    struct lk_text which = {0};
    for (size_t i = 0; i < report->n_entries; i++) {
        const struct lk_table *table = report->entries[i].table;
        if (table && table->no_data) lk_text_add(&which, "%s%s", which.n ? "; " : "", table->caption);
    }
    lk_page_section(page, "section-left-out", "Left out");
    lk_page_paragraph(page, "%d table%s not shown for want of data: this run has %s.", n, n > 1 ? "s are" : " is",
                      missing);
    lk_page_fold(page, "Which");
    lk_page_paragraph(page, "%s.", which.rc ? "" : which.bytes);
    enum lk_code rc = which.rc;
    lk_text_free(&which);
    return rc;
}

/* The summary's figure is seen at once, all else is folded; tables without data are not shown. */
static void section(struct lk_page *page, const struct lk_report *report, enum lk_section at) {
    bool is_summary = at == LK_SECTION_SUMMARY;
    int n_figures = 0, n_tables = 0;
    for (size_t i = 0; i < report->n_entries; i++) {
        if (report->entries[i].section != at) continue;
        n_figures += report->entries[i].figure != NULL;
        n_tables += report->entries[i].table && !report->entries[i].table->no_data;
    }
    if (!is_summary && !n_figures && !n_tables) return;
    lk_page_section(page, sections[at].id, sections[at].title);
    if (is_summary) {
        lk_page_leads(page, report->options.doubts);
        for (int i = 0; i < report->n_lead; i++) lk_page_lead(page, report->lead[i]);
        figures(page, report, at);
    } else {
        lk_page_paragraph(page, "%s", sections[at].text);
    }
    if (is_summary) {
        lk_page_fold(page, "Every comparison, sentences for a text, and what was scored");
    } else {
        fold(page, n_figures, n_tables);
        figures(page, report, at);
    }
    for (size_t i = 0; i < report->n_entries; i++)
        if (report->entries[i].section == at && report->entries[i].table && !report->entries[i].table->no_data)
            lk_page_table(page, report->entries[i].table);
    if (is_summary) summary(page, report);
}

enum lk_page_images lk_report_shows(const struct lk_report_options *o) {
    return o->audit_safe ? LK_PAGE_AUDIT_SAFE : o->embed_images ? LK_PAGE_EMBEDDED : LK_PAGE_LINKED;
}

static enum lk_code write_page(const struct lk_report *report, const char *folder, char unfit[PATH_MAX]) {
    const struct lk_report_options *o = &report->options;
    struct lk_page *page;
    char path[LK_DOCUMENT_PATH_MAX + 300];
    LK_TRY(lk_page_new(&page, &(struct lk_page_options){
                                  .title = o->title,
                                  .run = report->run.name,
                                  .config_hash = report->run.configuration,
                                  .date = o->date && *o->date ? o->date : NULL,
                                  .n_nominal = report->run.n_nominal,
                                  .n_valid = report->run.n_valid,
                                  .csv_folder = "tables",
                                  .images = lk_report_shows(o),
                              }));
    if (*o->label) lk_page_remark(page, "%s", o->label);
    if (*o->attribution) lk_page_remark(page, "%s", o->attribution);
    for (int s = 0; s < LK_N_SECTIONS; s++) section(page, report, (enum lk_section)s);
    enum lk_code rc = lk_report_pictures(report, folder, page);
    if (!rc) rc = left_out(page, report);
    snprintf(path, sizeof path, "%s/report.html", folder);
    if (!rc) rc = lk_page_write(page, path);
    if (!rc && lk_page_unfit(page)) snprintf(unfit, PATH_MAX, "%s", lk_page_unfit(page));
    lk_page_free(page);
    return rc;
}

/* FOLDER/NAME.json below the report's data; takes the table, and writes none without rows. */
static enum lk_code data_file(const struct lk_report *report, const char *report_folder, const char *folder,
                              const char *name, struct lk_table *table) {
    char path[LK_DOCUMENT_PATH_MAX + 64];
    struct lk_text text = {0};
    snprintf(path, sizeof path, "%s/data/%s", report_folder, folder);
    table->run = &report->run;
    enum lk_code rc = lk_table_finish(table);
    if (!rc && table->n_rows) rc = lk_document_folder(path);
    if (!rc && table->n_rows) {
        lk_table_json(table, &text);
        rc = lk_document_file(path, name, ".json", &text);
    }
    lk_table_free(table);
    return rc;
}

/* Judges' scores: all, those of experiment 1, and by experiment and model. */
static enum lk_code data_of_judges(const struct lk_report *report, const char *folder) {
    struct lk_table *table;
    LK_TRY(lk_report_items(report->data, &report->run, 0, -1, &table));
    LK_TRY(data_file(report, folder, "results/vlm_evaluation", "all_experiments", table));
    LK_TRY(lk_report_items(report->data, &report->run, 1, -1, &table));
    LK_TRY(data_file(report, folder, "results/evaluations/exp1", "exp1_all_models", table));
    for (int experiment = 1; experiment <= 3; experiment++)
        for (int model = 0; model < LK_N_MODELS; model++) {
            char path[64];
            snprintf(path, sizeof path, "results/exp%d/vlm_evaluation", experiment);
            LK_TRY(lk_report_items(report->data, &report->run, experiment, model, &table));
            LK_TRY(data_file(report, folder, path, lk_factor_key(LK_FACTOR_MODEL, model), table));
        }
    return LK_OK;
}

/* Ratings under the raters' numbers, never their ids; and the outputs of experiment 1 that raters saw. */
static enum lk_code data_of_raters(const struct lk_report *report, const char *folder) {
    const struct lk_dataset *data = report->data;
    struct lk_table *ratings, *sample;
    LK_TRY(lk_table_new(&ratings, "ratings", "Ratings", "item_id|>rater"));
    for (int a = 0; a < LK_N_AXES; a++) lk_table_column(ratings, lk_factor_key(LK_FACTOR_AXIS, a), LK_ALIGN_RIGHT);
    for (size_t r = 0; r < data->n_ratings; r++) {
        const struct lk_rating *rating = &data->ratings[r];
        if (rating->item < 0 || rating->is_gold || data->raters[rating->rater].excluded) continue;
        lk_table_row(ratings);
        lk_table_text(ratings, "%s", data->items[rating->item].id);
        lk_table_count(ratings, rating->rater + 1);
        for (int a = 0; a < LK_N_AXES; a++)
            if (rating->score[a])
                lk_table_count(ratings, rating->score[a]);
            else
                lk_table_none(ratings, NULL);
    }
    LK_TRY(data_file(report, folder, "results/human_evaluation", "ratings", ratings));
    LK_TRY(lk_table_new(&sample, "sample", "Outputs that raters saw", "item_id|race|gender|age_group|model"));
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!item->n_ratings || lk_report_experiment(item) != 1) continue;
        lk_table_row(sample);
        lk_table_text(sample, "%s", item->id);
        lk_table_text(sample, "%s", lk_factor_key(LK_FACTOR_RACE, item->race));
        lk_table_text(sample, "%s", lk_factor_key(LK_FACTOR_GENDER, item->gender));
        lk_table_text(sample, "%s", lk_factor_key(LK_FACTOR_AGE_GROUP, lk_age_group(item->age)));
        lk_table_text(sample, "%s", lk_factor_key(LK_FACTOR_MODEL, item->model));
    }
    return data_file(report, folder, "survey", "exp1_amt_sample", sample);
}

/* What the study's protocols name, where they name it. */
static enum lk_code write_data(const struct lk_report *report, const char *folder) {
    char path[LK_DOCUMENT_PATH_MAX + 64];
    struct lk_text text = {0};
    LK_TRY(data_of_judges(report, folder));
    LK_TRY(data_of_raters(report, folder));
    snprintf(path, sizeof path, "%s/data/analysis", folder);
    LK_TRY(lk_document_folder(path));
    lk_table_json(lk_report_table(report, "vlm_human_agreement"), &text);
    return lk_document_file(path, "vlm_human_agreement", ".json", &text);
}

static enum lk_code write_all(const struct lk_report *report, const char *folder, char unfit[PATH_MAX]) {
    char tables[LK_DOCUMENT_PATH_MAX + 8];
    snprintf(tables, sizeof tables, "%s/tables", folder);
    if (strlen(tables) >= LK_DOCUMENT_PATH_MAX)
        return lk_fail(LK_E_USAGE, "report: %.80s...: the path is too long", folder);
    LK_TRY(lk_document_folder(tables));
    for (size_t i = 0; i < report->n_entries; i++) {
        const struct lk_report_entry *entry = &report->entries[i];
        LK_TRY(entry->table ? lk_document_table_files(entry->table, tables)
                            : lk_document_figure_files(entry->figure, tables, report->options.png));
    }
    struct lk_text configuration = {0};
    configuration.rc = lk_report_configuration(report, &configuration);
    LK_TRY(lk_document_file(folder, "configuration", ".json", &configuration));
    LK_TRY(lk_report_items_write(report->data, &report->run, folder));
    if (report->options.data_folder) LK_TRY(write_data(report, folder));
    return write_page(report, folder, unfit);
}

enum lk_code lk_report_write(const struct lk_report *report, const char *folder) {
    char unfit[PATH_MAX] = "";
    LK_TRY(lk_document_folder(folder));
    lk_atomic_batch_begin();
    LK_TRY(lk_atomic_batch_end(write_all(report, folder, unfit)));
    if (!*unfit) return LK_OK;
    return lk_fail(LK_E_PARTIAL,
                   "%s: does not fit into memory; the report in %s is without it, and without any other picture that "
                   "is said there not to fit",
                   unfit, folder);
}
