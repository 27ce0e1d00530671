/* What was found: every outcome compared over every factor, with tests that keep their level although outputs share
 * sources and prompts.
 *
 * What differs, and where, is said by eval/findings/crossed.h: a model, an outcome, a group of people or a kind of
 * prompts against the others, for people and prompts like the study's. Beside it stands for each factor and outcome the
 * largest minus the smallest rate: of groups and kinds of prompts for people and prompts like these (lk_crossed_range),
 * of models in the interval of range_interval.h by source. Lighter against darker skin, and a
 * mitigation, are mean changes against 0, with errors clustered by source (CR2, Satterthwaite's degrees of freedom);
 * they are one family more, corrected by Holm. */
#pragma once

#include "eval/findings/crossed.h"
#include "eval/report/report.h"
#include "eval/stats/stats.h"

enum { LK_N_FINDING_FACTORS = 5, LK_N_OUTCOMES = 5 };
extern const enum lk_factor lk_finding_factors[LK_N_FINDING_FACTORS]; /* race, gender, age group, model, category */
extern const enum lk_measure lk_outcomes[LK_N_OUTCOMES]; /* soft erasure, race, gender change, lightening, age */

enum lk_finding_kind { LK_FINDING_DIFFERENCE, LK_FINDING_SKIN_TONE, LK_FINDING_MITIGATION };

struct lk_finding {
    enum lk_finding_kind kind;
    enum lk_factor factor;   /* of a difference */
    enum lk_measure outcome; /* of a difference, and of the mitigation */
    struct lk_number effect; /* of fractions; undefined when there is nothing to compare */
    int highest, lowest;     /* levels of a difference; -1 where several are equal */
    double high, low;        /* their rates; of the others the two rates that are compared */
    bool tested;
    double p, adjusted; /* where it was tested; of a difference both are the least adjusted p of its models and levels
                         */
    size_t n_sources;
    bool found; /* adjusted p at most the family's alpha */
};

enum { LK_N_FINDINGS = LK_N_FINDING_FACTORS * LK_N_OUTCOMES + 2 };
struct lk_findings {
    enum lk_score_source source;
    struct lk_finding list[LK_N_FINDINGS]; /* outcome by outcome, then skin tone, then mitigation */
    int n_tested, n_found;
    size_t n_sources;
    double alpha;
    bool prompts_are_all;        /* as the options said */
    struct lk_outcomes outcomes; /* of the baseline arm */
    struct lk_claims claims;
    double *y;       /* of outcomes */
    int32_t *levels; /* the same */
};

/* Of the judges (the mean of their indicators), or of the raters' majority; what a convention undoes (a judge alone,
 * how two scores are rounded, the threshold of drift) stands with the claim. LK_E_NOMEM. Free with lk_findings_free,
 * also after an error. */
enum lk_code lk_findings_of(const struct lk_dataset *data, const struct lk_report_options *options,
                            enum lk_score_source source, struct lk_findings *out);

void lk_findings_free(struct lk_findings *findings);

/* Sentences, the first of which says whether anything was found; returns their number. */
enum { LK_FINDING_SENTENCES = 14, LK_SENTENCE_BYTES = 512 };
int lk_findings_sentences(const struct lk_findings *findings, char out[LK_FINDING_SENTENCES][LK_SENTENCE_BYTES]);
/* "Race change by race", "Lighter against darker skin", ... */
void lk_finding_name(const struct lk_finding *finding, char out[96]);
