/* Findings of a study of one's own, from the store. */
#pragma once

#include "eval/document/page.h"
#include "eval/findings/crossed.h"
#include "eval/intake/audit.h"

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
