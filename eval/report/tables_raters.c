/* Every rule of quality control, rater by rater. */
#include <math.h>
#include <stdio.h>

#include "eval/report/build.h"

static void share_cell(struct lk_table *table, int64_t k, int64_t n, const char *why) {
    if (n)
        lk_table_percent(table, k, n);
    else
        lk_table_none(table, why);
}

static void number_cell(struct lk_table *table, double value, const char *why) {
    if (isnan(value))
        lk_table_none(table, why);
    else
        lk_table_fixed(table, value, 2);
}

static void rules_cell(struct lk_table *table, uint32_t rules) {
    char text[LK_N_QUALITY_RULES * 5 + 1] = "";
    size_t n = 0;
    for (int r = 0; r < LK_N_QUALITY_RULES; r++)
        if (rules >> r & 1)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "", lk_quality_rule_name(r));
    lk_table_text(table, "%s", text);
}

static void rater_row(const struct lk_report *report, struct lk_table *table, size_t at) {
    const struct lk_rater_quality *q = &report->options.quality->raters[at];
    const struct lk_rater *rater = &report->data->raters[at];
    lk_table_row(table);
    if (report->options.audit_safe)
        lk_table_text(table, "rater %zu", at + 1);
    else
        lk_table_text(table, "%s", rater->id);
    share_cell(table, q->n_gold_right, q->n_gold, "no attention check");
    number_cell(table, q->least_duration_part, "no times");
    number_cell(table, q->variance, "no answer on five levels");
    share_cell(table, q->n_most_common, q->n_answers, "no answer on five levels");
    share_cell(table, q->n_up > q->n_down ? q->n_up : q->n_down, q->n_steps, "fewer than two answers");
    share_cell(table, q->n_fast, q->n_timed, "no times");
    number_cell(table, q->median_ms / 1000, "no times");
    share_cell(table, rater->n_skipped, rater->n_questions, "no question");
    rules_cell(table, q->rules);
    lk_table_text(table, "%s", q->excluded ? "yes" : "no");
}

enum lk_code lk_report_tables_raters(struct lk_report *report) {
    static const char *const columns[] = {"Rater", "Checks right", "Duration", "Variance",  "Same level", "Diagonal",
                                          "Fast",  "Median s",     "Skipped",  "Rules hit", "Excluded"};
    const struct lk_quality_report *quality = report->options.quality;
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_qc_raters", "Quality control, rater by rater"));
    for (int i = 0; i < 11; i++) lk_table_column(table, columns[i], i && i < 9 ? LK_ALIGN_RIGHT : LK_ALIGN_LEFT);
    for (size_t r = 0; quality && r < quality->n_raters; r++) rater_row(report, table, r);
    lk_table_note(table, "Checks right: Q1. Duration: the shortest task's time over its estimate, Q3. Variance of the "
                         "answers on five levels, attention checks left out: Q4. Same level: share of the most "
                         "frequent answer, Q5, Q9. Diagonal: share of steps by one in the same direction, Q6. Fast: "
                         "Q7. Median time per question: Q8. Skipped: Q10.");
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}
