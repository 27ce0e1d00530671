/* Stands in for the tiles of AMX on machines without them: each tile instruction is refused by the processor, and the
 * handler of the signal does what Intel's manual says it does. So the kernels that use tiles run, and are tested, on
 * every machine that has the rest of what they need (AVX512_BF16). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* From now on the level amx can be set, and LIKENESS_CPU_ISA=amx asks for it; the level in force stays what it is
 * otherwise. Nothing happens where the machine has tiles, nor where it lacks AVX512_BF16. True if the level can be set.
 */
bool test_tiles_begin(void);

/* Products of two tiles since the start, of all threads. -1 where nobody counts: the machine has tiles of its own, or
 * none can run. */
int64_t test_tiles_multiplied(void);
