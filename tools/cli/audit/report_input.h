/* The dataset of a report from the files that the command line names. */
#pragma once

#include "eval/design/study.h"
#include "eval/intake/audit.h"
#include "eval/report/report.h"
#include "tools/cli/audit/known.h"
#include "tools/cli/core/options.h"

struct cli_report_input {
    struct lk_dataset data;
    struct lk_report_options options;
    struct lk_ratings_import ratings;
    struct lk_quality_report quality;
    struct lk_source_manifest manifest;
    struct lk_feature_prompts features;
    struct lk_text doubts; /* of the judges: options.doubts */
    struct cli_made made;  /* the pictures that the runs have */
    size_t n_refused;      /* answers of judges and raters that were not understood */
};

/* Reads, combines, and says on stderr what was counted and what was refused. study: of the runs, whose outputs alone
 * are known when it is not the portrait study; NULL: none. Free in any case. */
enum lk_code cli_report_input(struct cli_report_input *input, const struct cli_report_arguments *arguments,
                              const struct lk_study *study);
/* Then where the pictures are that a page shows: those that --images names, or those of the runs. */
enum lk_code cli_report_images(struct cli_report_input *input, const struct cli_report_arguments *arguments);
/* The manifest of the sources, after the above. */
enum lk_code cli_report_manifest(struct cli_report_input *input, const char *path);
/* A new store of the study, what its runs made, and the scores. */
enum lk_code cli_report_store(struct lk_audit *audit, const struct cli_report_arguments *arguments,
                              const struct lk_study *study, const struct cli_report_input *input);
void cli_report_input_free(struct cli_report_input *input);
