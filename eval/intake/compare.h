/* Two reports of studies of one's own set beside each other, output by output: what a service refuses later, a model
 * after its adapter. */
#pragma once

#include "eval/design/study.h"
#include "eval/intake/audit.h"

/* Every outcome of every output into a file. */
enum lk_code lk_audit_outcomes_csv(struct lk_audit *audit, const struct lk_study *study, const char *path);

struct lk_any_compare {
    const char *texts[2]; /* of such files */
    size_t n[2];
    const char *files[2], *names[2]; /* for messages; for people */
    const char *title, *date;        /* date "" for none */
    double alpha;
};
/* FOLDER/report.html, findings.txt, tables/. Pairs of outputs have model, source, prompt, arm and seed in common.
 * LK_E_INPUT: a file is not what a report writes, or nothing is in both. */
enum lk_code lk_any_compare(const struct lk_any_compare *how, const char *folder);
