/* A command that serves, in a process of its own. */
#pragma once

#include <sys/types.h>

#include "tests/common/test.h"

/* The program's own command; line: the first one that it prints. What it leaves behind is searched for at its end,
 * where a sanitizer can. */
pid_t served_start(const char *const *argv, char line[200]);
/* Waits: its code, or minus the signal. */
int served_end(pid_t pid);
