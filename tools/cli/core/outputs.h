/* No output takes the place of an input. */
#pragma once

#include "tools/cli/core/options.h"

/* Before any work: --output against every file that the options and positional arguments name, by device and inode, so
 * that links do not hide one; of a folder, the files that a report would write into it. LK_E_USAGE. */
enum lk_code cli_outputs_check(const struct cli_arguments *arguments);
