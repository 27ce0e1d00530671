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

static void found_sentence(const struct lk_finding *finding, char out[LK_SENTENCE_BYTES]) {
    char effect[96], p[LK_NUMBER_MAX + 4], first[LK_NUMBER_MAX], second[LK_NUMBER_MAX];
    print_effect(effect, finding);
    print_p(p, finding->adjusted);
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

static void take(char out[LK_SENTENCE_BYTES], struct lk_text *text) {
    snprintf(out, LK_SENTENCE_BYTES, "%s", text->rc || !text->bytes ? "" : text->bytes);
    text->n = 0;
}

/* What nothing was found by, or what cannot be asked, in one sentence each. */
static int say_families(const struct lk_findings *findings, char out[LK_FINDING_SENTENCES][LK_SENTENCE_BYTES], int n,
                        struct lk_text *text) {
    for (int f = 0; f < findings->claims.n_families && n < LK_FINDING_SENTENCES - 1; f++) {
        lk_claims_family_sentence(&findings->claims, &findings->claims.families[f], text);
        if (text->n) take(out[n++], text);
    }
    return n;
}

int lk_findings_sentences(const struct lk_findings *findings, char out[LK_FINDING_SENTENCES][LK_SENTENCE_BYTES]) {
    enum { CLAIMS = 5 }; /* that stand in sentences */
    const struct lk_claims *claims = &findings->claims;
    const char *among =
        findings->prompts_are_all ? "people like these and these prompts" : "people and prompts like these";
    const char *whose = findings->source == LK_SCORES_HUMAN ? "raters' answers" : "judges' scores";
    struct lk_text text = {0};
    int n = 0;
    size_t n_found = claims->n_found, n_said = 0;
    bool any = false;
    for (int i = 0; i < LK_N_FINDINGS; i++) any |= !findings->list[i].effect.undefined;
    if (!any) return 0;
    for (int i = LK_N_FINDINGS - 2; i < LK_N_FINDINGS; i++) n_found += findings->list[i].found;
    bool rare = claims->n_families > 0;
    for (int f = 0; f < claims->n_families; f++) rare &= !strncmp(claims->families[f].refused, "too rare", 8);
    if (!findings->n_tested && rare)
        snprintf(out[n++], LK_SENTENCE_BYTES,
                 "Nothing found: in the %s each outcome is too rare, or too common, to differ between groups.", whose);
    else if (!findings->n_tested)
        snprintf(out[n++], LK_SENTENCE_BYTES, "The study is too small to say of %s that the %s differ.", among, whose);
    else if (n_found)
        snprintf(out[n++], LK_SENTENCE_BYTES, "Found: %zu difference%s in the %s, for %s.", n_found,
                 n_found == 1 ? "" : "s", whose, among);
    else
        snprintf(out[n++], LK_SENTENCE_BYTES, "Nothing found: no difference in the %s stands, for %s.", whose, among);
    for (size_t i = 0; i < claims->n && n_said < CLAIMS; i++) {
        const struct lk_claim *c = &claims->list[i];
        if (!c->found && !*c->lost) continue;
        n_said += c->found;
        lk_claim_sentence(&findings->outcomes, c, &text);
        take(out[n++], &text);
        if (n == CLAIMS + 2) break;
    }
    for (int i = LK_N_FINDINGS - 2; i < LK_N_FINDINGS; i++)
        if (findings->list[i].found) found_sentence(&findings->list[i], out[n++]);
    if (claims->n_found > n_said)
        snprintf(out[n++], LK_SENTENCE_BYTES, "%zu more stand in the table below.", claims->n_found - n_said);
    n = say_families(findings, out, n, &text);
    if (!claims->n_families)
        snprintf(out[n++], LK_SENTENCE_BYTES,
                 "Groups, prompts and models are not compared: fewer than half of their outputs have a score.");
    lk_text_free(&text);
    snprintf(out[n++], LK_SENTENCE_BYTES,
             "%s are not independent. Each factor may be wrong with probability %.2g; the interval beside a name is at "
             "%.4g%%.",
             findings->prompts_are_all ? "Sources are a sample: outputs of one source"
                                       : "Sources and prompts are both samples: outputs of one source or prompt",
             claims->family_alpha, 100 * (1 - claims->family_alpha));
    return n;
}

static enum lk_code add_table(struct lk_report *report, enum lk_section section, const char *id,
                              const struct lk_findings *findings) {
    struct lk_table *table;
    char name[96];
    LK_TRY(lk_table_new(&table, id, "What was compared, and what was found",
                        "Comparison|>Effect|Highest|Lowest|>Adjusted p|Found"));
    for (int i = 0; i < LK_N_FINDINGS; i++) {
        const struct lk_finding *finding = &findings->list[i];
        if (finding->effect.undefined) continue;
        bool levels = finding->kind == LK_FINDING_DIFFERENCE && finding->effect.value > 0;
        lk_finding_name(finding, name);
        lk_table_row(table);
        lk_table_text(table, "%s", name);
        lk_table_points(table, finding->effect.value);
        if (!finding->effect.no_interval) lk_table_interval(table, finding->effect.low, finding->effect.high);
        for (int end = 0; end < 2; end++) {
            int level = end ? finding->lowest : finding->highest;
            lk_table_text(table, "%s",
                          !levels     ? ""
                          : level < 0 ? "several"
                                      : lk_factor_display(finding->factor, level));
        }
        if (finding->tested)
            lk_table_p(table, finding->adjusted);
        else
            lk_table_none(table, "too rare, or too few people or prompts, to be asked");
        lk_table_text(table, "%s", finding->found ? "yes" : "no");
        if (finding->found) lk_table_bold(table);
    }
    lk_table_note(
        table,
        "Baseline arm, %s. Effect: largest minus smallest rate (0 below: no two levels are told apart), of race, "
        "gender, age and category of the mean of models, with an interval in which sources and prompts are %s; "
        "of models by source; of skin lighter minus darker, of the feature prompt with minus without, by source "
        "(CR2). p: the least of all models and levels, adjusted within the factor by "
        "relabelling sources or prompts (the largest studentised difference), of models by Holm; found at %.2g. "
        "Skin tone and feature prompt: Student's t (CR2), Holm.",
        findings->source == LK_SCORES_HUMAN ? "the raters' majority" : "the judges' ensemble",
        findings->prompts_are_all ? "a sample and all there are" : "both samples", findings->claims.family_alpha);
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
                                    "its interval; filled where it is found.",
                     .note = "Intervals as in the table below. Filled: found; hollow: not."},
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

/* The sentences, the figure and the table of one source of scores. Of raters beside judges the first sentence; theirs
 * stands with the raters. */
static enum lk_code summarise(struct lk_report *report, const struct lk_findings *findings, bool beside, bool *any) {
    char sentences[LK_FINDING_SENTENCES][LK_SENTENCE_BYTES];
    const bool human = findings->source == LK_SCORES_HUMAN;
    const enum lk_section section = beside ? LK_SECTION_HUMAN : LK_SECTION_SUMMARY;
    const int n = lk_findings_sentences(findings, sentences);
    if (!n) return LK_OK;
    *any = true;
    for (int i = 0; i < (beside ? 1 : n); i++) LK_TRY(keep(report, sentences[i]));
    LK_TRY(add_figure(report, section, human ? "f_findings_raters" : "f_findings", findings));
    return add_table(report, section, human ? "findings_raters" : "findings", findings);
}

enum lk_code lk_report_summary(struct lk_report *report) {
    bool any = false;
    for (int source = LK_SCORES_JUDGE; source <= LK_SCORES_HUMAN; source++) {
        struct lk_findings findings;
        enum lk_code rc = lk_findings_of(report->data, &report->options, (enum lk_score_source)source, &findings);
        if (!rc) rc = summarise(report, &findings, any, &any);
        lk_findings_free(&findings);
        if (rc) return rc;
    }
    if (any) return LK_OK;
    const struct lk_quality_report *quality = report->options.quality;
    if (quality && quality->n_excluded && quality->n_excluded == quality->n_raters)
        return keep(report, "Nothing was compared: no output has a score, and quality control leaves out all raters.");
    return keep(report, "Nothing was compared: no output has a score.");
}
