/* Processes of this machine, for files and leases that name the one that made them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of this machine and the processes that can be seen here; a process number means something on one alone. */
uint32_t lk_host_number(void);
/* When it was started, in ticks since the machine was: its number may be another's later. -1: not known. */
int64_t lk_process_start(long pid);
/* It is not there for sure, or ended and nobody has asked how. */
bool lk_process_is_gone(long pid);
