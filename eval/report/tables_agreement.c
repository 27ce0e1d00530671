/* Do the raters agree with each other, and the judges with them; and which arm the raters prefer. */
#include <stdio.h>

#include "engine/base/alloc.h"
#include "eval/report/agreement.h"
#include "eval/report/build.h"
#include "eval/stats/agreement/agreement_labels.h"

#define LOW_ALPHA 0.6 /* Krippendorff's α below which a question's answers are flagged */

static void labels_cell(struct lk_table *table, const struct lk_number *number) {
    if (number->undefined)
        lk_table_none(table, number->undefined);
    else
        lk_table_text(table, "%s / %s", lk_agreement_label(LK_SCALE_STUDY, number->value),
                      lk_agreement_label(LK_SCALE_LANDIS_KOCH, number->value));
}

/* Nothing when no item has two answers to the question. */
static enum lk_code reliability_row(struct lk_report *report, struct lk_table *table, int question, bool classes,
                                    bool *any) {
    static const char *const questions[] = {"Assigned role", "Preferred arm"};
    const struct lk_report_options *o = &report->options;
    const struct lk_resampling how = {o->study_seed, (int)o->n_bootstrap, 1 - o->alpha, NULL, 0};
    static const char only_nominal[] = "the classes have no order";
    bool nominal = classes || question >= LK_N_AXES;
    struct lk_reliability r;
    LK_TRY(lk_reliability(report->data, question, classes, o->n_bootstrap > 0 ? &how : NULL, &r));
    if (!r.n) return LK_OK;
    *any = true;
    lk_table_row(table);
    if (question >= LK_N_AXES)
        lk_table_text(table, "%s", questions[question - LK_N_AXES]);
    else
        lk_table_text(table, classes ? "%s, in classes" : "%s", lk_factor_display(LK_FACTOR_AXIS, question));
    lk_table_count(table, (int64_t)r.n);
    lk_report_number(table, &r.fleiss.kappa, 2);
    if (r.fleiss.left_out)
        lk_table_remark(table, "items left out of κ, which have another number of answers than %d: %zu",
                        r.fleiss.n_raters, r.fleiss.left_out);
    lk_report_number(table, &r.alpha[LK_NOMINAL], 2);
    const struct lk_number *ordered[] = {&r.alpha[LK_ORDINAL], &r.alpha[LK_INTERVAL], &r.icc1, &r.icc1k};
    for (int i = 0; i < 4; i++)
        if (nominal)
            lk_table_none(table, only_nominal);
        else
            lk_report_number(table, ordered[i], 2);
    labels_cell(table, &r.fleiss.kappa);
    const struct lk_number *alpha = &r.alpha[nominal ? LK_NOMINAL : LK_INTERVAL];
    labels_cell(table, alpha);
    if (!alpha->undefined && alpha->value < LOW_ALPHA)
        lk_table_remark(table, "α below 0.6: the raters do not agree enough to rely on their mean or majority");
    return LK_OK;
}

static enum lk_code reliability_rows(struct lk_report *report, struct lk_table *table, bool *any) {
    for (int axis = 0; axis < LK_N_AXES; axis++)
        for (int classes = 0; classes < 2; classes++) LK_TRY(reliability_row(report, table, axis, classes, any));
    LK_TRY(reliability_row(report, table, LK_QUESTION_ROLE, true, any));
    return reliability_row(report, table, LK_QUESTION_PREFERENCE, true, any);
}

static enum lk_code table_reliability(struct lk_report *report) {
    struct lk_table *table;
    bool any = false;
    LK_TRY(lk_table_new(&table, "t_rel", "Reliability of the raters by axis",
                        "Axis|>n|>Fleiss κ|>α nominal|>α ordinal|"
                        ">α interval|>ICC(1,1)|>ICC(1,k)|Label of κ|Label of α"));
    enum lk_code rc = reliability_rows(report, table, &any);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table,
                  "n: items with two answers or more, both arms. Intervals of α: %lld resamples of the items; of the "
                  "one-way ICC: from F. Labels: "
                  "the study's scale / Landis and Koch's (1977), of the unrounded value; that of α is of the interval "
                  "α, or of the nominal one for classes. Targets that the protocols name: κ at least 0.6, α above 0.7.",
                  (long long)report->options.n_bootstrap);
    table->no_data = !any;
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

static enum lk_code agreement_row(struct lk_report *report, struct lk_table *table, const struct lk_group *group,
                                  enum lk_axis axis, int64_t *n) {
    struct lk_judge_human a;
    LK_TRY(lk_judge_human(report->data, group, axis, &a));
    *n += a.n + (int64_t)a.classes.kappa.n;
    lk_table_row(table);
    lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_AXIS, axis));
    lk_table_count(table, a.n);
    lk_report_number(table, &a.levels.kappa, 2);
    lk_report_number(table, &a.classes.kappa, 2);
    if (a.spearman.undefined) {
        lk_table_none(table, a.spearman.undefined);
        lk_table_none(table, a.spearman.undefined);
    } else {
        lk_table_fixed(table, a.spearman.statistic, 2);
        lk_table_p(table, a.spearman.p);
    }
    if (!a.n) {
        for (int c = 0; c < 3; c++) lk_table_none(table, "no item with both scores");
        return LK_OK;
    }
    double count = (double)a.n;
    lk_table_fixed(table, a.judge_sum / count, 2);
    lk_table_fixed(table, a.human_sum / count, 2);
    lk_table_signed(table, (a.judge_sum - a.human_sum) / count, 2);
    return LK_OK;
}

static enum lk_code agreement_rows(struct lk_report *report, struct lk_table *table, int64_t *n) {
    static const enum lk_factor factors[] = {LK_FACTOR_MODEL, LK_FACTOR_CATEGORY};
    struct lk_group all = LK_GROUP_ANY;
    all.arm = -1;
    lk_table_heading(table, "Overall");
    for (int axis = 0; axis < LK_N_AXES; axis++) LK_TRY(agreement_row(report, table, &all, axis, n));
    for (int f = 0; f < 2; f++)
        for (int level = 0; level < lk_factor_levels(factors[f]); level++) {
            struct lk_group group = lk_group_with(all, factors[f], level);
            lk_table_heading(table, lk_factor_display(factors[f], level));
            for (int axis = 0; axis < LK_N_AXES; axis++) LK_TRY(agreement_row(report, table, &group, axis, n));
        }
    return LK_OK;
}

static enum lk_code table_agreement(struct lk_report *report) {
    struct lk_table *table;
    int64_t n = 0;
    LK_TRY(lk_table_new(&table, "vlm_human_agreement", "Judges against raters by axis, model and category",
                        "Axis|>n|>κ quadratic|>κ of classes|>Spearman ρ|>p|>VLM mean|>Human mean|>VLM − human"));
    enum lk_code rc = agreement_rows(report, table, &n);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table,
                  "Both arms; n: outputs with a score of the judges and a mean of raters. Quadratic κ: against the "
                  "raters' majority, or the median without one. κ of classes: against the majority's class; outputs "
                  "without one are left out. ρ: against the raters' mean.");
    table->no_data = !n;
    lk_report_note_kin(report, table);
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

/* A row of a group, when it has answers; returns how many. */
typedef int64_t (*row_fn)(struct lk_report *report, struct lk_table *table, const char *label,
                          const struct lk_group *group);

/* What the judge answered to an older question, or which arm it prefers (question 3). */
struct answered {
    const struct lk_group *group;
    int question, answer;
};

static bool has_answered(const struct lk_report *report, const struct lk_item *item, const void *context) {
    (void)report;
    const struct answered *a = context;
    if (a->question < 3 && item->legacy[0] < 0) return false;
    return (a->question < 3 ? item->legacy[a->question] : item->legacy_preference) == a->answer &&
           lk_group_has(a->group, item);
}

static void link_answer(struct lk_report *report, struct lk_table *table, const char *label, const char *answer,
                        const struct answered *answered) {
    char title[160];
    snprintf(title, sizeof title, "%s: %s", label, answer);
    lk_report_link_picked(report, table, has_answered, answered, title, "older-%d-%d-%.100s", answered->question,
                          answered->answer, label);
}

/* Outputs of a group that a rater who is kept preferred with the feature prompt (bit 0), or liked alike (bit 1). */
struct chosen {
    const struct lk_item *items;
    uint8_t *bits; /* [n_items] */
    int bit;
};

static bool was_chosen(const struct lk_report *report, const struct lk_item *item, const void *context) {
    (void)report;
    const struct chosen *chosen = context;
    return chosen->bits[item - chosen->items] >> chosen->bit & 1;
}

static enum lk_code choose(const struct lk_dataset *data, const struct lk_group *group, struct chosen *out) {
    *out = (struct chosen){.items = data->items, .bits = lk_calloc(data->n_items + 1, 1)};
    if (!out->bits) return lk_fail(LK_E_NOMEM, "report: no memory for the raters' preferences");
    for (size_t r = 0; r < data->n_ratings; r++) {
        const struct lk_rating *rating = &data->ratings[r];
        if (rating->item < 0 || rating->preference < 0 || rating->is_gold || data->raters[rating->rater].excluded ||
            !lk_group_has(group, &data->items[rating->item]))
            continue;
        out->bits[rating->item] |= (rating->preference == LK_ARM_PRESERVED) | (rating->preference >= LK_N_ARMS) << 1;
    }
    return LK_OK;
}

static void link_chosen(struct lk_report *report, struct lk_table *table, const char *label,
                        const struct lk_group *group, int bit) {
    struct chosen chosen;
    char title[160];
    enum lk_code rc = choose(report->data, group, &chosen);
    chosen.bit = bit;
    snprintf(title, sizeof title, "%s: a rater prefers %s", label, bit ? "neither" : "ours");
    if (!rc)
        lk_report_link_picked(report, table, was_chosen, &chosen, title, "preferred-%d-%.100s", bit, label);
    else if (!table->rc)
        table->rc = rc;
    lk_free(chosen.bits);
}

static int64_t preference_row(struct lk_report *report, struct lk_table *table, const char *label,
                              const struct lk_group *group, enum lk_score_source source) {
    struct lk_preference p = lk_preference_of(report->data, group, source);
    int64_t answers = p.preserved.n + p.n_ties;
    lk_table_row(table);
    lk_table_text(table, "%s", label);
    lk_table_count(table, answers);
    if (p.preserved.n) {
        lk_table_percent(table, p.preserved.k, p.preserved.n);
        lk_report_interval(report, table, p.preserved);
        if (source == LK_SCORES_JUDGE)
            link_answer(report, table, label, "the judge prefers ours", &(struct answered){group, 3, LK_ARM_PRESERVED});
        else
            link_chosen(report, table, label, group, 0);
    } else
        lk_table_none(table, "no answer prefers an arm");
    lk_table_count(table, p.n_ties);
    if (source == LK_SCORES_JUDGE)
        link_answer(report, table, label, "the judge prefers neither", &(struct answered){group, 3, LK_N_ARMS});
    else
        link_chosen(report, table, label, group, 1);
    lk_table_percent(table, p.n_ties, answers);
    return answers;
}

static int64_t raters_prefer(struct lk_report *report, struct lk_table *table, const char *label,
                             const struct lk_group *group) {
    return preference_row(report, table, label, group, LK_SCORES_HUMAN);
}

static int64_t judge_prefers(struct lk_report *report, struct lk_table *table, const char *label,
                             const struct lk_group *group) {
    return preference_row(report, table, label, group, LK_SCORES_JUDGE);
}

/* Shares of the older questions' answers. */
static int64_t legacy_row(struct lk_report *report, struct lk_table *table, const char *label,
                          const struct lk_group *group) {
    static const char *const names[] = {"applied", "partly applied", "not applied", "gender changed", "race changed"};
    static const int questions[] = {0, 0, 0, 1, 2}, answers[] = {2, 1, 0, 1, 1};
    int64_t counts[3][3] = {{0}}, n = 0;
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (item->legacy[0] < 0 || !lk_group_has(group, item)) continue;
        n++;
        for (int q = 0; q < 3; q++) counts[q][item->legacy[q]]++;
    }
    lk_table_row(table);
    lk_table_text(table, "%s", label);
    lk_table_count(table, n);
    for (int c = 0; c < 5; c++) {
        int64_t k = counts[questions[c]][answers[c]];
        lk_table_percent(table, k, n);
        if (n) lk_report_interval(report, table, (struct lk_rate){k, n});
        link_answer(report, table, label, names[c], &(struct answered){group, questions[c], answers[c]});
    }
    return n;
}

/* All, then every level of model, category and race. */
static int64_t rows_by_factor(struct lk_report *report, struct lk_table *table, int arm, row_fn row) {
    static const enum lk_factor factors[] = {LK_FACTOR_MODEL, LK_FACTOR_CATEGORY, LK_FACTOR_RACE};
    struct lk_group all = LK_GROUP_ANY;
    all.arm = (int8_t)arm;
    int64_t n = row(report, table, "All", &all);
    for (int f = 0; f < 3; f++) {
        char heading[64];
        snprintf(heading, sizeof heading, "By %s", lk_factor_name(factors[f]));
        lk_table_heading(table, heading);
        for (int level = 0; level < lk_factor_levels(factors[f]); level++) {
            struct lk_group group = lk_group_with(all, factors[f], level);
            row(report, table, lk_factor_display(factors[f], level), &group);
        }
    }
    return n;
}

static enum lk_code table_preference(struct lk_report *report, enum lk_score_source source) {
    bool human = source == LK_SCORES_HUMAN;
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, human ? "preference" : "preference_judge",
                        human ? "Which arm the raters prefer" : "Which arm the judge prefers",
                        "Group|>Answers|>Prefer Ours|>Ties|>Ties, share"));
    table->no_data = !rows_by_factor(report, table, -1, human ? raters_prefer : judge_prefers);
    lk_table_note(table,
                  "Share of the answers without a tie that prefer the output with the feature prompt. Ties: %s. "
                  "Intervals: Wilson, %g%%, answers taken as independent.",
                  human ? "same, both, neither, cannot determine, no preference"
                        : "the same, and answers that changed with the order of the pictures",
                  100 * (1 - report->options.alpha));
    return lk_report_add(report, human ? LK_SECTION_HUMAN : LK_SECTION_MITIGATION, table);
}

static enum lk_code table_legacy(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "legacy", "The older study's questions, as the judge answers them",
                        "Group|>N|>Applied|>Partly|>Not applied|>Gender changed|>Race changed"));
    table->no_data = !rows_by_factor(report, table, LK_ARM_EDITED, legacy_row);
    lk_table_note(table,
                  "Baseline arm. Classes, not levels: they enter no mean and no other table. Intervals: Wilson, "
                  "%g%%. " LK_REPEATED_SOURCES,
                  100 * (1 - report->options.alpha));
    return lk_report_add(report, LK_SECTION_EDITS, table);
}

enum lk_code lk_report_tables_agreement(struct lk_report *report) {
    LK_TRY(table_reliability(report));
    LK_TRY(table_agreement(report));
    LK_TRY(table_preference(report, LK_SCORES_HUMAN));
    bool edits = false, pairs = false;
    for (size_t i = 0; i < report->data->n_items; i++) {
        edits |= report->data->items[i].legacy[0] >= 0;
        pairs |= report->data->items[i].legacy_preference >= 0;
    }
    if (edits) LK_TRY(table_legacy(report));
    return pairs ? table_preference(report, LK_SCORES_JUDGE) : LK_OK;
}
