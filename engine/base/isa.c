#include "engine/base/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const names[] = {"portable", "avx2", "avx512", "avx512_bf16", "amx"};

#if defined(__x86_64__)
#include <cpuid.h>

/* Linux hands out AMX tile state on request only. */
static int tile_state_granted(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static int has_avx512_bf16(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}

static int has_amx_bf16(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) || !(d >> 24 & 1)) return 0; /* AMX-BF16, AMX-TILE */
    return tile_state_granted();
}

static enum lk_isa detect(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return LK_ISA_PORTABLE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return LK_ISA_AVX2;
    if (!has_avx512_bf16()) return LK_ISA_AVX512;
    return has_amx_bf16() ? LK_ISA_AMX : LK_ISA_AVX512_BF16;
}

/* Intel's processors with AVX512_BF16 do half as many products a clock with its dot products as with f32 FMA (virtual
 * machines often hide their AMX). */
static int prefers_fma(enum lk_isa isa) {
    unsigned a, b, c, d;
    return isa == LK_ISA_AVX512_BF16 && __get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx;
}
#else
static enum lk_isa detect(void) { return LK_ISA_PORTABLE; }
static int prefers_fma(enum lk_isa isa) {
    (void)isa;
    return 0;
}
#endif

static atomic_int machine = -1, in_force = -1;

enum lk_isa lk_cpu_isa_set(enum lk_isa isa) {
    if (atomic_load(&machine) < 0) atomic_store(&machine, (int)detect());
    int most = atomic_load(&machine);
    atomic_store(&in_force, (int)isa < most ? (int)isa : most);
    return (enum lk_isa)atomic_load(&in_force);
}

/* What the user asks for; -1: no level has this name. */
static int asked(const char *text) {
    if (!text || !*text) return LK_ISA_AMX;
    for (int i = 0; i <= LK_ISA_AMX; i++)
        if (!strcmp(text, names[i])) return i;
    return -1;
}

enum lk_code lk_cpu_isa_check(void) {
    const char *text = getenv("LIKENESS_CPU_ISA");
    if (asked(text) >= 0) return LK_OK;
    return lk_fail(LK_E_USAGE,
                   "LIKENESS_CPU_ISA: expected portable, avx2, avx512, avx512_bf16 or amx, got \"%s\"; unset it to use "
                   "all that the machine has",
                   text);
}

void lk_cpu_isa_pretend(enum lk_isa most) {
    lk_cpu_isa();
    atomic_store(&machine, (int)most);
}

enum lk_isa lk_cpu_isa(void) {
    int isa = atomic_load(&in_force);
    if (isa >= 0) return (enum lk_isa)isa;
    const char *text = getenv("LIKENESS_CPU_ISA");
    isa = asked(text);
    const enum lk_isa set = lk_cpu_isa_set(isa < 0 ? LK_ISA_AMX : (enum lk_isa)isa);
    return (!text || !*text) && prefers_fma(set) ? lk_cpu_isa_set(LK_ISA_AVX512) : set;
}

const char *lk_cpu_isa_name(enum lk_isa isa) { return names[isa]; }
