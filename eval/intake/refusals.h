/* Refusals by group in numbers that no query gives: what is found, measured and tested with sources as samples. */
#pragma once

#include "eval/intake/findings.h"

/* Each level of an attribute of the sources against the others, model by model, and the largest minus the smallest
 * rate; what counts alone would give stands beside. */
enum lk_code lk_refusal_differences(struct lk_audit *audit, const struct lk_audit_findings *findings,
                                    const struct lk_study *study, int attribute, double alpha, struct lk_table **out);
/* Attributes and prompts as factors of a linear model of being refused, of each model and, where there are several, of
 * all with the model as a factor: CR2 by source. */
enum lk_code lk_refusal_factors(const struct lk_audit_findings *findings, struct lk_table **out);
