/* Actions of `study`: each has the study open. */
#pragma once

#include "eval/design/study.h"
#include "tools/cli/core/options.h"

enum lk_code study_run(const struct cli_arguments *a, struct lk_study *study);
enum lk_code study_jobs(const struct cli_arguments *arguments, struct lk_study *study);
/* study: NULL when no file was given. */
enum lk_code study_prompts(const struct cli_arguments *arguments, struct lk_study *study);
enum lk_code study_plan(const struct cli_arguments *arguments, struct lk_study *study);
