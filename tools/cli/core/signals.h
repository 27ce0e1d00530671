/* Stopping an edit: INT, TERM, USR1 and HUP ask for a stop after the current step; a second one ends the program at
 * once. */
#pragma once

#include "engine/base/status.h"

void cli_signals_install(void);
/* LK_OK, or LK_E_INTERRUPTED when a stop was asked for. */
enum lk_code cli_signals_check(void);
/* The name of the signal that asked for it, NULL if none did. */
const char *cli_signals_name(void);
/* Whatever ends this process and those that it starts leaves no core file: an environment with a key would be in it. */
void cli_leave_no_core(void);
/* lk_exit_code, but 143 for an interruption by another signal than INT. */
int cli_exit_code(enum lk_code code);
