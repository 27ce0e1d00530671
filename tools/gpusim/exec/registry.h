/* Handlers by name, e.g. "add.s32", for the instruction set this CPU has. */
#pragma once

#include "exec/op.h"

/* Looks for "KEY.TYPE" with the type as written, then as bits (b32 for s32, u32, f32); type NULL: "KEY". NULL: no such
 * handler. */
gpusim_handler *gpusim_find_handler(const char *key, const char *type);
