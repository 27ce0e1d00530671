/* Who the raters are and what they rated: tables 10 and 11 as the study prints them, and the judges' rates beside those
 * of the raters' majority. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/report/agreement.h"
#include "eval/report/build.h"
#include "eval/document/table_print.h"
#include "eval/stats/summary.h"

static bool is_kept(const struct lk_report *report, const struct lk_participant *participant) {
    return participant->rater >= 0 && (size_t)participant->rater < report->data->n_raters &&
           !report->data->raters[participant->rater].excluded;
}

/* A text and how many participants have it. */
struct answer_count {
    const char *text;
    int64_t n;
};

static int by_text(const void *a, const void *b) {
    return strcmp(((const struct answer_count *)a)->text, ((const struct answer_count *)b)->text);
}

/* The most frequent first, equals by the alphabet, "Missing" (the empty text) last. */
static int by_count(const void *a, const void *b) {
    const struct answer_count *x = a, *y = b;
    if (!*x->text != !*y->text) return *x->text ? -1 : 1;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return strcmp(x->text, y->text);
}

static void add_share(struct lk_text *out, const char *label, int64_t k, int64_t n) {
    int64_t tenths = lk_percent_tenths(k, n);
    lk_text_add(out, "%s%s %lld (%lld.%lld%%)", out->n ? ", " : "", label, (long long)k, (long long)tenths / 10,
                (long long)tenths % 10);
}

/* "White 17 (56.7%), Black 8 (26.7%), Missing 5 (16.7%)" of n counts of 1; n > 0. */
static void add_distribution(struct lk_text *out, struct answer_count *list, size_t n) {
    size_t n_texts = 0;
    qsort(list, n, sizeof *list, by_text);
    for (size_t i = 0; i < n; i++)
        if (n_texts && !strcmp(list[n_texts - 1].text, list[i].text))
            list[n_texts - 1].n++;
        else
            list[n_texts++] = list[i];
    qsort(list, n_texts, sizeof *list, by_count);
    for (size_t i = 0; i < n_texts; i++)
        add_share(out, *list[i].text ? list[i].text : "Missing", list[i].n, (int64_t)n);
}

/* "34.6 ± 12.0 (range 21–69)", and how many gave none. */
static enum lk_code age_row(struct lk_report *report, struct lk_table *table, int64_t n) {
    double *ages = lk_malloc((size_t)n * sizeof *ages);
    struct lk_summary summary;
    size_t known = 0;
    if (!ages) return lk_fail(LK_E_NOMEM, "report: out of memory for the participants");
    for (size_t i = 0; i < report->options.n_participants; i++) {
        const struct lk_participant *p = &report->options.participants[i];
        if (is_kept(report, p) && p->age >= 0) ages[known++] = p->age;
    }
    enum lk_code rc = lk_summarise(ages, known, &summary);
    lk_free(ages);
    if (rc) return rc;
    struct lk_text text = {0};
    char mean[LK_NUMBER_MAX], sd[LK_NUMBER_MAX] = LK_EN_DASH;
    if (known) {
        lk_print_fixed(mean, summary.mean, 1, false);
        if (known > 1) lk_print_fixed(sd, summary.sd, 1, false);
        lk_text_add(&text, "%s ± %s (range %.0f–%.0f)", mean, sd, summary.minimum, summary.maximum);
    }
    if ((int64_t)known < n) add_share(&text, "Missing", n - (int64_t)known, n);
    rc = text.rc;
    lk_table_row(table);
    lk_table_text(table, "Age (years)");
    if (!rc) lk_table_text(table, "%s", text.bytes);
    lk_text_free(&text);
    return rc;
}

static enum lk_code demographic_rows(struct lk_report *report, struct lk_table *table, int64_t n) {
    static const char *const names[] = {"Sex", "Ethnicity (simplified)", "Student status", "Language",
                                        "Country of residence"};
    LK_TRY(age_row(report, table, n));
    struct answer_count *list = lk_malloc((size_t)n * sizeof *list);
    if (!list) return lk_fail(LK_E_NOMEM, "report: out of memory for the participants");
    enum lk_code rc = LK_OK;
    for (int row = 0; row < 5 && !rc; row++) {
        struct lk_text text = {0};
        size_t filled = 0;
        for (size_t i = 0; i < report->options.n_participants; i++) {
            const struct lk_participant *p = &report->options.participants[i];
            const char *const values[] = {p->sex, p->ethnicity, p->student, p->language, p->country};
            if (is_kept(report, p)) list[filled++] = (struct answer_count){values[row] ? values[row] : "", 1};
        }
        add_distribution(&text, list, filled);
        rc = text.rc;
        lk_table_row(table);
        lk_table_text(table, "%s", names[row]);
        if (!rc) lk_table_text(table, "%s", text.bytes);
        lk_text_free(&text);
    }
    lk_free(list);
    return rc;
}

static enum lk_code table_10(struct lk_report *report) {
    struct lk_table *table;
    int64_t n = 0;
    for (size_t i = 0; i < report->options.n_participants; i++) n += is_kept(report, &report->options.participants[i]);
    LK_TRY(lk_table_new(&table, "table_10", "Demographics of the participants who count", "Demographic|Distribution"));
    if (n) {
        lk_table_row(table);
        lk_table_text(table, "Participants (approved)");
        lk_table_count(table, n);
        enum lk_code rc = demographic_rows(report, table, n);
        if (rc) {
            lk_table_free(table);
            return rc;
        }
    }
    lk_table_note(table, "From the platform's export, without excluded raters. Shares are of all these participants; "
                         "Missing: not in the export. Mean ± standard deviation (n - 1).");
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

enum { BLOCK_LEVELS = 7 };

/* One half of Table 11: the levels of a factor in the published order. */
struct block {
    enum lk_factor factor;
    int n;
    int levels[BLOCK_LEVELS];
};

static bool is_rated(const struct lk_report *report, const struct lk_item *item, const void *context) {
    (void)report;
    return item->n_ratings && lk_group_has(context, item);
}

static void block_cells(struct lk_report *report, struct lk_table *table, const struct block *block,
                        const int64_t *counts, int row, int64_t total) {
    if (row >= block->n) {
        for (int c = 0; c < 3; c++) lk_table_text(table, "%s", "");
        return;
    }
    int level = block->levels[row];
    lk_table_text(table, "%s", lk_factor_short(block->factor, level));
    lk_table_count(table, counts[level]);
    struct lk_group group = lk_group_with((struct lk_group)LK_GROUP_ANY, block->factor, level);
    char title[96];
    group.arm = -1;
    snprintf(title, sizeof title, "%s: rated outputs", lk_factor_display(block->factor, level));
    lk_report_link_picked(report, table, is_rated, &group, title, "rated-%s-%s", lk_factor_name(block->factor),
                          lk_factor_key(block->factor, level));
    lk_table_fixed(table, total ? 100.0 * (double)counts[level] / (double)total : 0, 1);
}

static int level_of(const struct lk_item *item, enum lk_factor factor) {
    if (factor == LK_FACTOR_RACE) return item->race;
    if (factor == LK_FACTOR_AGE) return item->age;
    return factor == LK_FACTOR_GENDER ? item->gender : item->model;
}

static enum lk_code table_11(struct lk_report *report) {
    /* The published order: races and genders by the alphabet. */
    static const struct block halves[2][2] = {
        {{LK_FACTOR_RACE, 7, {1, 2, 4, 6, 5, 3, 0}}, {LK_FACTOR_AGE, 6, {0, 1, 2, 3, 4, 5}}},
        {{LK_FACTOR_GENDER, 2, {1, 0}}, {LK_FACTOR_MODEL, 3, {0, 1, 2}}},
    };
    int64_t counts[2][2][BLOCK_LEVELS] = {{{0}}}, total = 0;
    struct lk_group all = LK_GROUP_ANY;
    all.arm = -1;
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (!item->n_ratings || !lk_group_has(&all, item)) continue;
        total++;
        for (int b = 0; b < 4; b++) {
            int level = level_of(item, halves[b / 2][b % 2].factor);
            if (level >= 0) counts[b / 2][b % 2][level]++;
        }
    }
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_11", "Demographic and model distribution of the rated outputs",
                        "Race|>N|>%|Age|>N|>%"));
    for (int half = 0; half < 2; half++) {
        const struct block *left = &halves[half][0], *right = &halves[half][1];
        if (half) {
            static const char *const names[] = {"Gender", "", "", "Model", "", ""};
            lk_table_row(table);
            for (int c = 0; c < 6; c++) lk_table_text(table, "%s", names[c]);
            lk_table_subheading(table);
        }
        for (int row = 0; row < left->n || row < right->n; row++) {
            lk_table_row(table);
            block_cells(report, table, left, counts[half][0], row, total);
            block_cells(report, table, right, counts[half][1], row, total);
        }
    }
    lk_table_note(table, "Outputs of experiments 1 and 2 with an answer of a rater who counts, both arms.");
    table->no_data = !total;
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

/* Each measure by the judges and by the raters' majority. */
static enum lk_code table_rates_of_both(struct lk_report *report) {
    static const struct {
        enum lk_measure measure;
        const char *name;
    } rows[] = {{LK_MEASURE_LIGHTENING, "Skin Lightening"},
                {LK_MEASURE_RACE_DRIFT, "Race Drift"},
                {LK_MEASURE_GENDER_DRIFT, "Gender Drift"},
                {LK_MEASURE_IDENTITY_ERASURE, "Identity Erasure"}};
    const struct lk_thresholds *thresholds = &report->options.thresholds;
    struct lk_group all = LK_GROUP_ANY;
    struct lk_measure_agreement agreement[4];
    int64_t judged = 0, rated = 0;
    for (int i = 0; i < 4; i++) {
        LK_TRY(lk_measure_agreement(report->data, &all, rows[i].measure, thresholds, &agreement[i]));
        if (agreement[i].judge.n > judged) judged = agreement[i].judge.n;
        if (agreement[i].human.n > rated) rated = agreement[i].human.n;
    }
    struct lk_table *table;
    char count[LK_NUMBER_MAX], column[LK_NUMBER_MAX + 16];
    LK_TRY(lk_table_new(&table, "t_000_15_4",
                        judged ? "Rates by the judges and by the raters' majority" : "Rates by the raters' majority",
                        "Metric"));
    for (int human = !judged; human < 2; human++) {
        lk_print_count(count, human ? rated : judged);
        snprintf(column, sizeof column, human ? "Human (N=%s)" : "VLM (N=%s)", count);
        lk_table_column(table, column, LK_ALIGN_RIGHT);
    }
    if (judged) lk_table_column(table, "Agreement (κ)", LK_ALIGN_RIGHT);
    for (int i = 0; i < 4; i++) {
        const struct lk_measure_agreement *a = &agreement[i];
        lk_table_row(table);
        if (rows[i].measure == LK_MEASURE_RACE_DRIFT || rows[i].measure == LK_MEASURE_GENDER_DRIFT)
            lk_table_text(table, "%s (≥%d)", rows[i].name, thresholds->drift);
        else
            lk_table_text(table, "%s", rows[i].name);
        if (judged) lk_table_percent(table, a->judge.k, a->judge.n);
        if (a->judge.n) lk_report_interval(report, table, a->judge);
        if (a->judge.k) lk_report_link(report, table, &all, rows[i].measure, LK_SCORES_JUDGE);
        lk_table_percent(table, a->human.k, a->human.n);
        if (a->human.n) lk_report_interval(report, table, a->human);
        if (a->human.k) lk_report_link(report, table, &all, rows[i].measure, LK_SCORES_HUMAN);
        if (judged) lk_report_number(table, &a->kappa.kappa, 2);
    }
    lk_table_note(table,
                  "Outputs of the baseline arm; N is the largest of a metric.%s Raters: the majority's level, or the "
                  "median without one. Intervals of rates: Wilson, %g%%.",
                  judged ? " κ: unweighted, of yes and no, over outputs with both." : "",
                  100 * (1 - report->options.alpha));
    table->no_data = !rated;
    if (judged) lk_report_note_kin(report, table);
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

enum lk_code lk_report_tables_human(struct lk_report *report) {
    LK_TRY(table_10(report));
    LK_TRY(table_11(report));
    return table_rates_of_both(report);
}
