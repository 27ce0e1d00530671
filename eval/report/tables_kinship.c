/* Judges and editors of one family: who is related to whom, and whether it shows in the scores. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "eval/report/agreement.h"
#include "eval/report/build.h"
#include "eval/stats/tests/multiple.h"

static bool has_scores(const struct lk_dataset *data, int judge) {
    for (size_t i = 0; i < data->n_items; i++)
        if (data->items[i].judge[judge][0] || data->items[i].judge_role[judge] != LK_ROLE_NONE) return true;
    return false;
}

/* The editors whose prompts a judge's family encodes; NULL: none that is known. */
static const char *relatives(const char *judge) {
    static const char *const families[][2] = {{"qwen", "Qwen-Image-Edit and Step1X-Edit"}, {"mistral", "FLUX.2-dev"}};
    for (size_t i = 0; judge && i < sizeof families / sizeof *families; i++)
        for (const char *at = judge; *at; at++)
            if (!strncasecmp(at, families[i][0], strlen(families[i][0]))) return families[i][1];
    return NULL;
}

void lk_report_note_kin(const struct lk_report *report, struct lk_table *table) {
    char text[LK_N_JUDGES][256];
    int n = 0;
    for (int j = 0; j < LK_N_JUDGES; j++) {
        const char *judge = report->options.judges[j], *editors = relatives(judge);
        if (!editors || !has_scores(report->data, j)) continue;
        snprintf(text[n++], sizeof *text, "%.100s is of the family that encodes the prompts of %s", judge, editors);
    }
    if (!n || table->no_data || table->rc) return;
    lk_table_note(table, "%s%sJudges related to editors: %s%s%s.", table->note ? table->note : "",
                  table->note ? " " : "", text[0], n > 1 ? "; " : "", n > 1 ? text[1] : "");
}

static void kin_row(struct lk_table *table, enum lk_axis axis, enum lk_kin kin, bool with_step1x,
                    const struct lk_kinship *k, double adjusted) {
    static const char *const who[] = {"primary − secondary", "primary − raters", "secondary − raters"};
    lk_table_row(table);
    lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_AXIS, axis));
    lk_table_text(table, "%s", who[kin]);
    lk_table_text(table, with_step1x ? "Qwen and Step1X, less FLUX.2" : "Qwen, less the other two");
    lk_table_count(table, (int64_t)k->difference.n);
    lk_report_number(table, &k->difference, 2);
    if (isnan(k->p)) {
        for (int c = 0; c < 2; c++) lk_table_none(table, "the difference is the same for all sources");
        return;
    }
    lk_table_p(table, k->p);
    lk_table_p(table, adjusted);
}

/* Both contrasts of every axis, between the judges and against raters, and their p adjusted together. */
enum lk_code lk_report_tables_kinship(struct lk_report *report) {
    enum { N = 2 * LK_N_AXES * LK_N_KIN };
    struct lk_kinship kin[N];
    double p[N];
    size_t n_p = 0;
    bool any = false;
    struct lk_table *table;
    for (int i = 0; i < N; i++) {
        LK_TRY(lk_judges_kinship(report->data, i / 2 % LK_N_AXES, i / (2 * LK_N_AXES), i % 2, 1 - report->options.alpha,
                                 &kin[i]));
        if (!isnan(kin[i].p)) p[n_p++] = kin[i].p;
    }
    LK_TRY(lk_adjust_p(p, n_p, LK_ADJUST_BENJAMINI_HOCHBERG, p));
    LK_TRY(lk_table_new(&table, "t_kinship", "Whether a judge favours its own family's editor",
                        "Axis|Scores|Editors|>Sources|>Difference|>p|>p adjusted"));
    for (int i = 0, at = 0; i < N; i++) {
        any |= kin[i].difference.n > 0;
        if (i >= 2 * LK_N_AXES && !kin[i].difference.n) continue; /* no raters */
        kin_row(table, i / 2 % LK_N_AXES, i / (2 * LK_N_AXES), i % 2, &kin[i], isnan(kin[i].p) ? NAN : p[at++]);
    }
    lk_table_note(table,
                  "One score less the other, averaged by editor and source; baseline arm. Whoever is stricter with all "
                  "editors alike cancels out. No judge is neutral: Qwen2.5-VL encodes the prompts of Qwen-Image-Edit "
                  "and Step1X-Edit, Mistral-Small those of FLUX.2.%s Student's t over sources, %g%%; adjusted: "
                  "Benjamini-Hochberg over this table. A difference between judges may have a real reason, which one "
                  "of them sees: then it is none against the raters.",
                  relatives(report->options.judges[0]) || relatives(report->options.judges[1])
                      ? ""
                      : " This run's judges are named as neither.",
                  100 * (1 - report->options.alpha));
    table->no_data = !any;
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}
