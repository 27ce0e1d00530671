/* The runs that a report is of: one configuration for all, and one recipe for each model. */
#pragma once

#include "eval/report/report.h"
#include "tools/cli/core/options.h"

#define CLI_MANIFEST_MAX_BYTES ((size_t)4 << 30) /* four million outputs */

/* Whether KEY is in the list of --allow: keys with commas between, or NULL. */
bool cli_report_allows(const char *allowed, const char *key);

struct cli_report_runs {
    struct lk_study *first; /* NULL: no folder was named */
    struct lk_text hashes;  /* of the configurations, with commas between */
    int64_t n_nominal;      /* outputs that the runs ask for, those of text to image apart */
};
/* Reads study.json and manifest.jsonl of each folder in a->runs. Runs that differ in a setting, and outputs of one
 * experiment and model that differ in how they were made, are refused, all differences named, unless a->allow has the
 * key. What the study says of the analysis is put in the place of a's defaults; another value there is refused in the
 * same way. Free in any case. */
enum lk_code cli_report_runs_read(struct cli_report_runs *runs, struct cli_report_arguments *a);
/* What has no option of its own. */
void cli_report_runs_set(const struct cli_report_runs *runs, struct lk_report_options *options);
void cli_report_runs_free(struct cli_report_runs *runs);
