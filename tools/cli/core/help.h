/* Texts made from the table of options. All write to `out` and leave its error state to the caller. */
#pragma once

#include <stdio.h>

#include "tools/cli/core/options.h"

/* Usage, commands, five examples, exit codes. */
void cli_help(FILE *out);
/* Usage, examples, grouped options with defaults and units. */
void cli_help_command(FILE *out, enum cli_command command);
void cli_man(FILE *out);
/* LK_E_USAGE for a shell other than bash, zsh and fish. */
enum lk_code cli_completions(FILE *out, const char *shell);
