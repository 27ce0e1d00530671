/* SIGBUS on a mapped file: when the file was cut or the disk fails, the kernel kills whoever reads the mapping. The
 * guard puts zero pages there instead and counts; faults outside guarded mappings go to the handler that was installed
 * before. */
#pragma once

#include <stddef.h>

#include "engine/base/status.h"

#define LK_FAULT_GUARD_MAX 1024 /* mappings at a time */

/* `name` is for messages and must live until the mapping is removed. */
enum lk_code lk_fault_guard_add(void *start, size_t bytes, const char *name);
void lk_fault_guard_remove(void *start);
/* Faults met since the program started. */
int lk_fault_guard_faults(void);
/* The name of the first mapping that one was met in, "" before. */
const char *lk_fault_guard_name(void);
