#include "tests/common/tiles.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "engine/base/isa.h"

#define N_TILES  8
#define MAX_ROWS 16
#define ROW      64 /* bytes */

/* What LDTILECFG reads: palette 1 has eight tiles of at most 16 rows of 64 bytes. */
struct config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

struct tile {
    _Alignas(64) uint8_t row[MAX_ROWS][ROW];
};

static _Thread_local struct config config; /* palette 0: no tiles */
static _Thread_local struct tile tiles[N_TILES];
static atomic_int_fast64_t products;
static bool emulating;
static void (*of_cmocka)(int); /* for instructions that are not emulated */

/* A VEX-coded instruction of three bytes' prefix. */
struct instruction {
    const uint8_t *at;
    unsigned prefix; /* 0: none, 1: 66, 2: F3, 3: F2 */
    unsigned opcode, reg, rm, vvvv;
    bool memory;
    uintptr_t base; /* of memory; with a stride for tiles */
    int64_t stride;
    size_t length;
};

static uint64_t general(const ucontext_t *u, unsigned number) {
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return (uint64_t)u->uc_mcontext.gregs[order[number]];
}

static int64_t displacement(const uint8_t *at, size_t n) {
    int32_t wide = 0;
    if (n == 1) return (int8_t)*at;
    if (n == 4) memcpy(&wide, at, 4);
    return wide;
}

/* The operand in memory: base + displacement, and index << scale beside it, which tiles take as their stride. */
static void decode_memory(struct instruction *in, const ucontext_t *u, unsigned mod, unsigned rex_x, unsigned rex_b) {
    const uint8_t *next = in->at + 5;
    size_t n = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    unsigned base = in->rm;
    bool based = true;
    if (base == 4) {
        const unsigned sib = *next++, index = (sib >> 3 & 7) | rex_x << 3;
        base = sib & 7;
        if (index != 4) in->stride = (int64_t)(general(u, index) << (sib >> 6));
        if (base == 5 && mod == 0) based = false, n = 4;
    } else if (base == 5 && mod == 0) { /* from the next instruction on */
        n = 4;
        based = false;
        in->base = (uintptr_t)(next + 4);
    }
    if (based) in->base = general(u, base | rex_b << 3);
    in->base += (uintptr_t)displacement(next, n);
    in->length = (size_t)(next + n - in->at);
}

static bool decode(struct instruction *in, const ucontext_t *u) {
    const uint8_t *at = in->at = (const uint8_t *)u->uc_mcontext.gregs[REG_RIP];
    if (at[0] != 0xc4 || (at[1] & 0x1f) != 2 || at[2] & 0x84) return false; /* VEX.128.0F38.W0 */
    const unsigned mod = at[4] >> 6;
    in->prefix = at[2] & 3;
    in->vvvv = ~(at[2] >> 3) & 15;
    in->opcode = at[3];
    in->reg = at[4] >> 3 & 7;
    in->rm = at[4] & 7;
    in->memory = mod != 3;
    in->length = 5;
    if (in->memory) decode_memory(in, u, mod, !(at[1] >> 6 & 1), !(at[1] >> 5 & 1));
    return true;
}

/* Two chains of FMA, of the even and of the odd elements of K; their sum is added to C. Subnormal numbers are zero,
 * whatever the program has set (TDPBF16PS of the manual). */
__attribute__((target("avx512f,avx512bw"))) static void product(unsigned c, unsigned a, unsigned b) {
    const unsigned mxcsr = _mm_getcsr();
    const __mmask16 columns = (__mmask16)((1u << config.row_bytes[c] / 4) - 1);
    _mm_setcsr(0x9fc0); /* no exceptions, nearest, FTZ, DAZ */
    for (int m = 0; m < config.rows[c]; m++) {
        __m512 even = _mm512_setzero_ps(), odd = even;
        for (int k = 0; k < config.row_bytes[a] / 4; k++) {
            uint32_t pair;
            memcpy(&pair, tiles[a].row[m] + 4 * k, sizeof pair);
            const __m512i x = _mm512_set1_epi32((int)pair), w = _mm512_load_si512(tiles[b].row[k]);
            const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
            even = _mm512_fmadd_ps((__m512)_mm512_slli_epi32(x, 16), (__m512)_mm512_slli_epi32(w, 16), even);
            odd = _mm512_fmadd_ps((__m512)_mm512_and_si512(x, upper), (__m512)_mm512_and_si512(w, upper), odd);
        }
        const __m512 sum = _mm512_add_ps(_mm512_load_ps(tiles[c].row[m]), _mm512_add_ps(even, odd));
        _mm512_store_ps(tiles[c].row[m], _mm512_maskz_mov_ps(columns, sum));
    }
    _mm_setcsr(mxcsr);
}

static void load(unsigned t, const struct instruction *in) {
    memset(&tiles[t], 0, sizeof tiles[t]);
    for (int r = 0; r < config.rows[t]; r++)
        memcpy(tiles[t].row[r], (const char *)in->base + r * in->stride, config.row_bytes[t]);
}

static void store(unsigned t, const struct instruction *in) {
    for (int r = 0; r < config.rows[t]; r++)
        memcpy((char *)in->base + r * in->stride, tiles[t].row[r], config.row_bytes[t]);
}

/* False: none of those that the kernels use, or one that no tile is configured for. */
static bool execute(const struct instruction *in) {
    enum { NONE, P66, PF3, PF2 };
    if (in->opcode == 0x49 && in->prefix == NONE && in->memory) { /* LDTILECFG */
        memcpy(&config, (const void *)in->base, sizeof config);
        memset(tiles, 0, sizeof tiles);
        return config.palette == 1;
    }
    if (in->opcode == 0x49 && in->prefix == NONE) { /* TILERELEASE */
        memset(&config, 0, sizeof config);
        return true;
    }
    if (config.palette != 1 || !config.rows[in->reg]) return false;
    if (in->opcode == 0x49 && in->prefix == PF2 && !in->memory) { /* TILEZERO */
        memset(&tiles[in->reg], 0, sizeof tiles[in->reg]);
    } else if (in->opcode == 0x4b && (in->prefix == PF2 || in->prefix == P66) && in->memory) { /* TILELOADD, T1 */
        load(in->reg, in);
    } else if (in->opcode == 0x4b && in->prefix == PF3 && in->memory) { /* TILESTORED */
        store(in->reg, in);
    } else if (in->opcode == 0x5c && in->prefix == PF3 && !in->memory && in->vvvv < N_TILES) { /* TDPBF16PS */
        product(in->reg, in->rm, in->vvvv);
        atomic_fetch_add_explicit(&products, 1, memory_order_relaxed);
    } else {
        return false;
    }
    return true;
}

/* All tile instructions that follow each other, since a signal costs more than most of them. */
static void refused(int number, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    struct instruction in = {0};
    bool some = false;
    (void)info;
    for (; decode(&in, u) && execute(&in); in = (struct instruction){0}) {
        u->uc_mcontext.gregs[REG_RIP] += (greg_t)in.length;
        some = true;
    }
    if (some) return; /* the next one, if it is refused too, is met again */
    if (of_cmocka && of_cmocka != SIG_DFL)
        of_cmocka(number);
    else
        sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

/* cmocka calls this before and after each test. It is not to have SIGILL. */
void (*signal(int number, void (*handler)(int)))(int) {
    struct sigaction old = {0}, now = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (number == SIGILL && emulating) {
        old.sa_handler = of_cmocka;
        of_cmocka = handler;
    } else if (sigaction(number, &now, &old)) {
        return SIG_ERR;
    }
    return old.sa_handler;
}

bool test_tiles_begin(void) {
    const enum lk_isa before = lk_cpu_isa(), most = lk_cpu_isa_set(LK_ISA_AMX);
    const char *asked = getenv("LIKENESS_CPU_ISA");
    lk_cpu_isa_set(before);
    if (most < LK_ISA_AVX512_BF16) return false;
    if (most == LK_ISA_AMX) return true;
    struct sigaction action = {.sa_sigaction = refused, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    emulating = true;
    lk_cpu_isa_pretend(LK_ISA_AMX);
    if (asked && !strcmp(asked, "amx")) lk_cpu_isa_set(LK_ISA_AMX);
    return true;
}

int64_t test_tiles_multiplied(void) { return emulating ? products : -1; }
#else
bool test_tiles_begin(void) { return false; }
int64_t test_tiles_multiplied(void) { return -1; }
#endif
