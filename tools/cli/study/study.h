/* Actions of `study`: each has the study open. */
#pragma once

#include "eval/design/study.h"
#include "tools/cli/core/options.h"

enum lk_code study_run(const struct cli_arguments *a, struct lk_study *study);
