/* Inside of the store. Private to eval/intake. */
#pragma once

#include "eval/document/page.h"
#include "eval/findings/crossed.h"
#include "eval/intake/audit.h"
#include "eval/study/sql.h"

/* Findings of a study of one's own, from the store. */
struct lk_audit_findings; /* with all that its claims name */

/* Of the edits without a request to keep the person, by the judges; the raters' are a convention beside each judge's
 * alone and the rounded mean of both. LK_E_NOMEM. */
enum lk_code lk_audit_findings(struct lk_audit *audit, const struct lk_study *study,
                               const struct lk_claims_options *options, struct lk_audit_findings **out);
void lk_audit_findings_free(struct lk_audit_findings *findings);

/* What was refused, [n_models, n_sources, n_prompts], NaN where nothing was answered, and its claims, those of every
 * model and level among them. False: no model was asked over the network. */
bool lk_audit_refusals(const struct lk_audit_findings *findings, const struct lk_outcomes **outcomes,
                       const struct lk_claims **claims);

/* The sentences of the first screen, with how they were made in a fold. */
void lk_audit_findings_page(const struct lk_audit_findings *findings, struct lk_page *page);
/* All claims, found or not. */
enum lk_code lk_audit_findings_table(const struct lk_audit_findings *findings, struct lk_table **out);

/* Refusals by group in numbers that no query gives: what is found, measured and tested with sources as samples. */

/* Each level of an attribute of the sources against the others, model by model, and the largest minus the smallest
 * rate; what counts alone would give stands beside. */
enum lk_code lk_refusal_differences(struct lk_audit *audit, const struct lk_audit_findings *findings,
                                    const struct lk_study *study, int attribute, double alpha, struct lk_table **out);
/* Attributes and prompts as factors of a linear model of being refused, of each model and, where there are several, of
 * all with the model as a factor: CR2 by source. */
enum lk_code lk_refusal_factors(const struct lk_audit_findings *findings, struct lk_table **out);

struct lk_audit {
    struct lk_sql sql;
    double alpha;         /* of intervals that aggregates give */
    uint64_t seed;        /* of what they resample: the study's */
    bool any_rewrite;     /* a prompt was rewritten */
    int64_t max_steps;    /* instructions of SQLite that one query may take */
    sqlite3_stmt *insert; /* of a score, while scores are added */
    int64_t n_steps;      /* that the query at hand has taken */
};

struct lk_audit_row {
    sqlite3_stmt *statement;
};

/* The functions that queries may call. */
enum lk_code lk_audit_functions(struct lk_audit *audit);
enum lk_code lk_audit_resampled(struct lk_audit *audit);

/* Rewritten prompts: their tables; of a job, if its prompt was rewritten. */
extern const char lk_audit_rewrite_schema[];
enum lk_code lk_audit_add_rewrite(struct lk_audit *audit, const struct lk_study *study, const struct lk_study_job *job);
