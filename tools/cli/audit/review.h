/* Reviewers' decisions from the command line. */
#pragma once

#include "eval/judge/review.h"
#include "tools/cli/core/options.h"

/* The decisions of a file put beside the dataset's scores; says on stderr what was counted and what was refused. */
enum lk_code cli_review_read(struct lk_dataset *data, const char *path);

/* review list: what the judges do not agree about. */
enum lk_code cli_review_list(const struct cli_arguments *arguments);
