/* Which instructions the CPU kernels use. Found once at run time: the most that the machine has, but for bf16 dot
 * products where they are slower than FMA. LIKENESS_CPU_ISA=portable|avx2|avx512|avx512_bf16|amx asks for a level (more
 * than the machine has is ignored with a lower one), so that every path can be tested on one machine. */
#pragma once

#include "engine/base/status.h"

enum lk_isa {
    LK_ISA_PORTABLE,
    LK_ISA_AVX2,        /* AVX2 + FMA + F16C */
    LK_ISA_AVX512,      /* F, BW, VL, DQ */
    LK_ISA_AVX512_BF16, /* and AVX512_BF16 */
    LK_ISA_AMX,         /* and AMX-TILE + AMX-BF16, and the kernel granted tile state */
};

enum lk_isa lk_cpu_isa(void);
/* LK_E_USAGE when LIKENESS_CPU_ISA names no level. */
enum lk_code lk_cpu_isa_check(void);
const char *lk_cpu_isa_name(enum lk_isa isa);
/* For tests: changes the level from now on; a level the machine lacks is lowered. Returns the level in force. */
enum lk_isa lk_cpu_isa_set(enum lk_isa isa);
/* For tests that make up for missing instructions: levels up to `most` can be set from now on. */
void lk_cpu_isa_pretend(enum lk_isa most);
