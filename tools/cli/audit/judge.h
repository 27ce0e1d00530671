/* What `judge` does beside looking at pixels. */
#pragma once

#include "tools/cli/core/options.h"

enum lk_code cli_judge_run(const struct cli_arguments *arguments);    /* by a model in this process */
enum lk_code cli_judge_prompt(const struct cli_arguments *arguments); /* what to ask about an item, or about all */
enum lk_code cli_judge_import(const struct cli_arguments *arguments); /* its answers, read strictly and written plainly
                                                                       */
enum lk_code cli_judge_agreement(const struct cli_arguments *arguments); /* of two judges */
