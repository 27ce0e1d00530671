/* review list: what the judges do not agree about. */
#pragma once

#include "tools/cli/core/options.h"

enum lk_code cli_review_list(const struct cli_arguments *arguments);
