/* No output takes the place of an input. */
#pragma once

#include "engine/base/text.h"
#include "tools/cli/core/options.h"

/* Before any work: --output against every file that the options and positional arguments name, by device and inode, so
 * that links do not hide one; of a folder, the files that a report would write into it. LK_E_USAGE. */
enum lk_code cli_outputs_check(const struct cli_arguments *arguments);
/* A name that is none, "-", or is too long for its folder. */
enum lk_code cli_output_name_check(const char *path);
/* The sentences of the summary that a report in the folder begins with, to stdout. */
enum lk_code cli_findings_print(const char *folder);
/* Before long work: LK_E_USAGE for an --output that is there, and not empty, without --overwrite. */
enum lk_code cli_output_free(const struct cli_arguments *arguments);
/* The text to --output, or to stdout without one. A file with another content is LK_E_USAGE without --overwrite. */
enum lk_code cli_output_write(const struct cli_arguments *arguments, const struct lk_text *text);
