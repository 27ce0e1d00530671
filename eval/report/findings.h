/* What was found: every outcome compared over every factor, with tests that keep their level although outputs share
 * sources, corrected for their number.
 *
 * A difference between the levels of a factor is the largest minus the smallest rate, in the interval of
 * range_interval.h by source. Its test permutes: of a factor of the sources (race, gender, age) the sources' rates, of
 * one that varies within sources (model, category) a source's own. Lighter against darker skin, and a mitigation,
 * are mean changes against 0, with errors clustered by source (CR2, Satterthwaite's degrees of freedom). All p are one
 * family, corrected by Holm. */
#pragma once

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
    double p, adjusted;
    size_t n_sources;
    bool found; /* adjusted p at most alpha */
};

enum { LK_N_FINDINGS = LK_N_FINDING_FACTORS * LK_N_OUTCOMES + 2 };
struct lk_findings {
    enum lk_score_source source;
    struct lk_finding list[LK_N_FINDINGS]; /* outcome by outcome, then skin tone, then mitigation */
    int n_tested, n_found;
    size_t n_sources;
    double alpha;
};

/* Of the judges' ensemble, or of the raters' majority. LK_E_NOMEM. */
enum lk_code lk_findings_of(const struct lk_dataset *data, const struct lk_report_options *options,
                            enum lk_score_source source, struct lk_findings *out);

/* Three to six sentences, the first of which says whether anything was found; returns their number. */
enum { LK_FINDING_SENTENCES = 6, LK_SENTENCE_BYTES = 512 };
int lk_findings_sentences(const struct lk_findings *findings, char out[LK_FINDING_SENTENCES][LK_SENTENCE_BYTES]);
/* "Race change by race", "Lighter against darker skin", ... */
void lk_finding_name(const struct lk_finding *finding, char out[96]);
