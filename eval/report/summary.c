/* The first screen: what was found, in sentences, a figure and a table. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/document/table_print.h"
#include "eval/report/build.h"

static const char *factor_name(enum lk_factor factor) {
    return factor == LK_FACTOR_AGE_GROUP  ? "age group"
           : factor == LK_FACTOR_CATEGORY ? "prompt category"
                                          : lk_factor_name(factor);
}

void lk_finding_name(const struct lk_finding *finding, char out[96]) {
    const char *outcome = lk_measure_name(finding->outcome);
    if (finding->kind == LK_FINDING_SKIN_TONE)
        snprintf(out, 96, "Lighter against darker skin");
    else if (finding->kind == LK_FINDING_MITIGATION)
        snprintf(out, 96, "%s with the feature prompt", outcome);
    else
        snprintf(out, 96, "%s by %s", outcome, factor_name(finding->factor));
}

/* "17.2 pp [12.0, 22.1]" */
static void print_effect(char out[96], const struct lk_finding *finding) {
    char value[LK_NUMBER_MAX], low[LK_NUMBER_MAX], high[LK_NUMBER_MAX];
    bool sign = finding->kind != LK_FINDING_DIFFERENCE;
    lk_print_fixed(value, 100 * finding->effect.value, 1, sign);
    lk_print_fixed(low, 100 * finding->effect.low, 1, sign);
    lk_print_fixed(high, 100 * finding->effect.high, 1, sign);
    if (finding->effect.low < finding->effect.high)
        snprintf(out, 96, "%.20s pp [%.20s, %.20s]", value, low, high);
    else
        snprintf(out, 96, "%.20s pp", value);
}

/* "= 0.023", "< 0.001" */
static void print_p(char out[LK_NUMBER_MAX + 4], double p) {
    char text[LK_NUMBER_MAX];
    lk_print_p(text, p);
    snprintf(out, LK_NUMBER_MAX + 4, "%s%s", text[0] == '<' ? "" : "= ", text);
}

static void level_text(char out[96], enum lk_factor factor, int level, double rate, const char *several) {
    char text[LK_NUMBER_MAX];
    lk_print_fixed(text, 100 * rate, 1, false);
    if (level < 0)
        snprintf(out, 96, "%.60s (%.20s%%)", several, text);
    else
        snprintf(out, 96, "%.60s (%.20s%%)", lk_factor_display(factor, level), text);
}

static void found_sentence(const struct lk_finding *finding, char out[LK_SENTENCE_BYTES]) {
    char name[96], effect[96], high[96], low[96], p[LK_NUMBER_MAX + 4];
    lk_finding_name(finding, name);
    print_effect(effect, finding);
    print_p(p, finding->adjusted);
    if (finding->kind == LK_FINDING_DIFFERENCE) {
        level_text(high, finding->factor, finding->highest, finding->high, "several alike");
        level_text(low, finding->factor, finding->lowest, finding->low, "several alike");
        snprintf(out, LK_SENTENCE_BYTES, "%s differs: highest %s, lowest %s, %s apart, adjusted p %.20s.", name, high,
                 low, effect, p);
        return;
    }
    char first[LK_NUMBER_MAX], second[LK_NUMBER_MAX];
    lk_print_fixed(first, 100 * finding->high, 1, false);
    lk_print_fixed(second, 100 * finding->low, 1, false);
    if (finding->kind == LK_FINDING_SKIN_TONE)
        snprintf(out, LK_SENTENCE_BYTES,
                 "Skin is lighter than the source's in %.20s%% of outputs and darker in %.20s%%: %s, adjusted p %.20s.",
                 first, second, effect, p);
    else
        snprintf(out, LK_SENTENCE_BYTES,
                 "With the feature prompt %s occurs in %.20s%% of pairs instead of %.20s%%: %s, adjusted p %.20s.",
                 "race change", second, first, effect, p);
}

/* Found before not found, then by p, then by size. */
static bool before(const struct lk_finding *a, const struct lk_finding *b) {
    if (a->effect.undefined || b->effect.undefined) return !a->effect.undefined;
    if (a->adjusted != b->adjusted) return a->adjusted < b->adjusted;
    return fabs(a->effect.value) > fabs(b->effect.value);
}

/* The one that stands out most of those not yet taken. */
static const struct lk_finding *next(const struct lk_findings *findings, bool taken[LK_N_FINDINGS]) {
    int best = -1;
    for (int i = 0; i < LK_N_FINDINGS; i++)
        if (!taken[i] && !findings->list[i].effect.undefined &&
            (best < 0 || before(&findings->list[i], &findings->list[best])))
            best = i;
    if (best < 0) return NULL;
    taken[best] = true;
    return &findings->list[best];
}

static const char *whose(const struct lk_findings *findings) {
    return findings->source == LK_SCORES_HUMAN ? "raters' answers" : "judges' scores";
}

int lk_findings_sentences(const struct lk_findings *findings, char out[LK_FINDING_SENTENCES][LK_SENTENCE_BYTES]) {
    bool taken[LK_N_FINDINGS] = {false};
    int n = 0;
    char name[96], effect[96], p[LK_NUMBER_MAX + 4];
    if (!findings->n_tested) return 0;
    double percent = 100 * findings->alpha;
    if (!findings->n_found) {
        snprintf(
            out[n++], LK_SENTENCE_BYTES,
            "Nothing found: none of %d comparisons of the %s stands after correction for their number (Holm, %g%%).",
            findings->n_tested, whose(findings), percent);
        const struct lk_finding *largest = next(findings, taken);
        lk_finding_name(largest, name);
        name[0] = (char)tolower((unsigned char)name[0]);
        print_effect(effect, largest);
        print_p(p, largest->adjusted);
        snprintf(out[n++], LK_SENTENCE_BYTES,
                 "What comes nearest is %s: %s, adjusted p %.20s, no more than chance gives among so many.", name,
                 effect, p);
    } else {
        snprintf(out[n++], LK_SENTENCE_BYTES,
                 "Found: %d of %d comparisons of the %s stand after correction for their number (Holm, %g%%).",
                 findings->n_found, findings->n_tested, whose(findings), percent);
        for (int i = 0; i < findings->n_found && n < LK_FINDING_SENTENCES - 1; i++)
            found_sentence(next(findings, taken), out[n++]);
        if (findings->n_found > n - 1) n--; /* the last line says how many more there are */
        int left = findings->n_found - (n - 1);
        if (left > 0)
            snprintf(out[n++], LK_SENTENCE_BYTES, "%d more stand in the figure and the table below it.", left);
    }
    snprintf(out[n++], LK_SENTENCE_BYTES,
             "Intervals (%g%%) and tests count %zu sources, not outputs: outputs of one source are not independent.",
             100 - percent, findings->n_sources);
    return n;
}

static enum lk_code add_table(struct lk_report *report, enum lk_section section, const char *id,
                              const struct lk_findings *findings) {
    struct lk_table *table;
    char name[96];
    LK_TRY(lk_table_new(&table, id, "What was compared, and what was found",
                        "Comparison|>Effect|Highest|Lowest|>p by source|>Holm|Found"));
    for (int i = 0; i < LK_N_FINDINGS; i++) {
        const struct lk_finding *finding = &findings->list[i];
        if (finding->effect.undefined) continue;
        bool levels = finding->kind == LK_FINDING_DIFFERENCE && finding->effect.value > 0;
        lk_finding_name(finding, name);
        lk_table_row(table);
        lk_table_text(table, "%s", name);
        lk_table_points(table, finding->effect.value);
        lk_table_interval(table, finding->effect.low, finding->effect.high);
        for (int end = 0; end < 2; end++) {
            int level = end ? finding->lowest : finding->highest;
            lk_table_text(table, "%s",
                          !levels     ? ""
                          : level < 0 ? "several"
                                      : lk_factor_display(finding->factor, level));
        }
        lk_table_p(table, finding->p);
        lk_table_p(table, finding->adjusted);
        lk_table_text(table, "%s", finding->found ? "yes" : "no");
        if (finding->found) lk_table_bold(table);
    }
    lk_table_note(table,
                  "Baseline arm, %s. Effect: largest minus smallest rate, with its interval by source "
                  "(0 below: no two levels are told apart); of skin lighter minus darker, of the feature prompt with "
                  "minus without, by source "
                  "(CR2). Tests: permutation of the sources, within them of model and category; Student's t (CR2) of "
                  "the last two. Holm: p corrected for all rows.",
                  findings->source == LK_SCORES_HUMAN ? "the raters' majority" : "the judges' ensemble");
    return lk_report_add(report, section, table);
}

static enum lk_code add_figure(struct lk_report *report, enum lk_section section, const char *id,
                               const struct lk_findings *findings) {
    static const char *const rows[LK_N_FINDING_FACTORS] = {"Race", "Gender", "Age group", "Model", "Category"};
    const char *panels[LK_N_OUTCOMES];
    struct lk_figure_value values[LK_N_OUTCOMES * LK_N_FINDING_FACTORS];
    bool strong[LK_N_OUTCOMES * LK_N_FINDING_FACTORS], any = false;
    for (int m = 0; m < LK_N_OUTCOMES; m++) {
        panels[m] = lk_measure_name(lk_outcomes[m]);
        for (int f = 0; f < LK_N_FINDING_FACTORS; f++) {
            int i = m * LK_N_FINDING_FACTORS + f;
            const struct lk_number *effect = &findings->list[i].effect;
            values[i] = effect->undefined ? (struct lk_figure_value){.none = true}
                                          : (struct lk_figure_value){effect->value, effect->low, effect->high, 0, 0, 0};
            strong[i] = findings->list[i].found;
            any |= !effect->undefined;
        }
    }
    if (!any) return LK_OK;
    struct lk_figure figure;
    LK_TRY(lk_figure_panels(
        &(struct lk_figure_panels){
            .head = {.id = id,
                     .title = "Largest difference between groups, by outcome and factor",
                     .description = "A panel per outcome, a row per factor: the largest minus the smallest rate with "
                                    "its interval; filled where it stands after correction.",
                     .note = "Intervals by source. Filled: stands after Holm's correction; hollow: does not."},
            .unit = LK_UNIT_POINTS,
            .value_name = "Difference",
            .row_name = "Factor",
            .panels = panels,
            .n_panels = LK_N_OUTCOMES,
            .rows = rows,
            .n_rows = LK_N_FINDING_FACTORS,
            .values = values,
            .strong = strong},
        &figure));
    return lk_report_add_figure(report, section, &figure);
}

static enum lk_code keep(struct lk_report *report, const char *text) {
    const char *copy = lk_store_text(&report->store, text);
    if (!copy) return lk_fail(LK_E_NOMEM, "report: no memory for the summary");
    report->lead[report->n_lead++] = copy;
    return LK_OK;
}

enum lk_code lk_report_summary(struct lk_report *report) {
    bool any = false;
    for (int source = LK_SCORES_JUDGE; source <= LK_SCORES_HUMAN; source++) {
        struct lk_findings findings;
        char sentences[LK_FINDING_SENTENCES][LK_SENTENCE_BYTES];
        LK_TRY(lk_findings_of(report->data, &report->options, (enum lk_score_source)source, &findings));
        int n = lk_findings_sentences(&findings, sentences);
        if (!n) continue;
        /* of raters beside judges the first sentence; theirs stands with the raters */
        for (int i = 0; i < (any ? 1 : n); i++) LK_TRY(keep(report, sentences[i]));
        enum lk_section section = any ? LK_SECTION_HUMAN : LK_SECTION_SUMMARY;
        bool human = source == LK_SCORES_HUMAN;
        LK_TRY(add_figure(report, section, human ? "f_findings_raters" : "f_findings", &findings));
        LK_TRY(add_table(report, section, human ? "findings_raters" : "findings", &findings));
        any = true;
    }
    if (any) return LK_OK;
    const struct lk_quality_report *quality = report->options.quality;
    if (quality && quality->n_excluded && quality->n_excluded == quality->n_raters)
        return keep(report, "Nothing was compared: no output has a score, and quality control leaves out all raters.");
    return keep(report, "Nothing was compared: no output has a score.");
}
