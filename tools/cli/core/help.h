/* Texts made from the table of options. All write to `out` and leave its error state to the caller. */
#pragma once

#include <stdio.h>

#include "engine/base/text.h"
#include "tools/cli/core/options.h"

/* Usage, commands, five examples, exit codes. */
void cli_help(FILE *out);
/* Usage, examples, grouped options with defaults and units; of a command with verbs and verb NULL, its verbs. */
void cli_help_command(FILE *out, enum cli_command command, const struct cli_verb *verb);
/* "study run", as messages and the help name it. */
const char *cli_full_name(enum cli_command command, const struct cli_verb *verb, char name[64]);
/* "run STUDY.json -o DIR [options]": what follows the command's name; of a command with verbs and verb NULL, "VERB". */
void cli_usage(enum cli_command command, const struct cli_verb *verb, struct lk_text *out);
/* LK_E_USAGE for a shell other than bash, zsh and fish. */
enum lk_code cli_completions(FILE *out, const char *shell);
