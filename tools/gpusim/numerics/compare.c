/* Comparisons and testp: which lanes, as bits. */
#include "tools/gpusim/numerics/lanes.h"

/* A comparison is a choice among four outcomes: less, equal, greater, unordered. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

static const uint8_t outcomes[GPUSIM_NUM_N_COMPARISONS] = {
    [GPUSIM_NUM_EQ] = EQUAL,
    [GPUSIM_NUM_NE] = LESS | GREATER,
    [GPUSIM_NUM_LT] = LESS,
    [GPUSIM_NUM_LE] = LESS | EQUAL,
    [GPUSIM_NUM_GT] = GREATER,
    [GPUSIM_NUM_GE] = GREATER | EQUAL,
    [GPUSIM_NUM_EQU] = EQUAL | UNORDERED,
    [GPUSIM_NUM_NEU] = LESS | GREATER | UNORDERED,
    [GPUSIM_NUM_LTU] = LESS | UNORDERED,
    [GPUSIM_NUM_LEU] = LESS | EQUAL | UNORDERED,
    [GPUSIM_NUM_GTU] = GREATER | UNORDERED,
    [GPUSIM_NUM_GEU] = GREATER | EQUAL | UNORDERED,
    [GPUSIM_NUM_BOTH_NUMBERS] = LESS | EQUAL | GREATER,
    [GPUSIM_NUM_ANY_NAN] = UNORDERED,
};

INLINE uint32_t outcome_f32(float a, float b) {
    return (a < b) * LESS | (a == b) * EQUAL | (a > b) * GREATER | ((a != a) | (b != b)) * UNORDERED;
}
INLINE uint32_t outcome_f64(double a, double b) {
    return (a < b) * LESS | (a == b) * EQUAL | (a > b) * GREATER | ((a != a) | (b != b)) * UNORDERED;
}

INLINE uint32_t gathered(const uint32_t *yes) {
    uint32_t bits = 0;
    for (int l = 0; l < 32; l++) bits |= (uint32_t)(yes[l] != 0) << l;
    return bits;
}

#define COMPARE(NAME, WANTED, WORD, OUTCOME, A, B)                                                                     \
    static uint32_t NAME(const void *a, const void *b) {                                                               \
        const WORD *x = a, *y = b;                                                                                     \
        uint32_t yes[32];                                                                                              \
        for (int l = 0; l < 32; l++) yes[l] = OUTCOME(A, B) & (WANTED);                                                \
        return gathered(yes);                                                                                          \
    }
#define F32(V)    f32_of(V[l])
#define FTZ32(V)  f32_of(flush_f32(V[l]))
#define F16(V)    f32_of(f32_from_f16(V[l] & 0xffff))
#define FTZ16(V)  f32_of(f32_from_f16(flush_f16(V[l] & 0xffff)))
#define F16H(V)   f32_of(f32_from_f16(V[l] >> 16))
#define FTZ16H(V) f32_of(f32_from_f16(flush_f16(V[l] >> 16)))
#define BF16(V)   f32_of(f32_from_bf16(V[l] & 0xffff))
#define BF16H(V)  f32_of(f32_from_bf16(V[l] >> 16))
#define F64(V)    f64_of(V[l])

enum kind {
    KIND_F32,
    KIND_FTZ32,
    KIND_F16,
    KIND_FTZ16,
    KIND_F16H,
    KIND_FTZ16H,
    KIND_BF16,
    KIND_BF16H,
    KIND_F64,
    N_KINDS
};

#define KINDS(WANTED)                                                                                                  \
    COMPARE(f32_##WANTED, WANTED, uint32_t, outcome_f32, F32(x), F32(y))                                               \
    COMPARE(ftz32_##WANTED, WANTED, uint32_t, outcome_f32, FTZ32(x), FTZ32(y))                                         \
    COMPARE(f16_##WANTED, WANTED, uint32_t, outcome_f32, F16(x), F16(y))                                               \
    COMPARE(ftz16_##WANTED, WANTED, uint32_t, outcome_f32, FTZ16(x), FTZ16(y))                                         \
    COMPARE(f16h_##WANTED, WANTED, uint32_t, outcome_f32, F16H(x), F16H(y))                                            \
    COMPARE(ftz16h_##WANTED, WANTED, uint32_t, outcome_f32, FTZ16H(x), FTZ16H(y))                                      \
    COMPARE(bf16_##WANTED, WANTED, uint32_t, outcome_f32, BF16(x), BF16(y))                                            \
    COMPARE(bf16h_##WANTED, WANTED, uint32_t, outcome_f32, BF16H(x), BF16H(y))                                         \
    COMPARE(f64_##WANTED, WANTED, uint64_t, outcome_f64, F64(x), F64(y))
#define KIND_NAMES(WANTED)                                                                                             \
    [WANTED] = {f32_##WANTED,    ftz32_##WANTED, f16_##WANTED,   ftz16_##WANTED, f16h_##WANTED,                        \
                ftz16h_##WANTED, bf16_##WANTED,  bf16h_##WANTED, f64_##WANTED}

KINDS(1)
KINDS(2)
KINDS(3)
KINDS(4)
KINDS(5)
KINDS(6)
KINDS(7)
KINDS(8)
KINDS(9)
KINDS(10)
KINDS(11)
KINDS(12)
KINDS(13)
KINDS(14)

gpusim_num_compare_fn *ISA(num_compare)(enum gpusim_num_comparison comparison, enum gpusim_num_type type,
                                        unsigned flags) {
    static gpusim_num_compare_fn *const all[16][N_KINDS] = {
        KIND_NAMES(1), KIND_NAMES(2), KIND_NAMES(3),  KIND_NAMES(4),  KIND_NAMES(5),  KIND_NAMES(6),  KIND_NAMES(7),
        KIND_NAMES(8), KIND_NAMES(9), KIND_NAMES(10), KIND_NAMES(11), KIND_NAMES(12), KIND_NAMES(13), KIND_NAMES(14),
    };
    int ftz = flags == GPUSIM_NUM_FTZ;
    if (flags && !ftz) return NULL;
    gpusim_num_compare_fn *const *row = all[outcomes[comparison]];
    switch (type) {
    case GPUSIM_NUM_F32:
        return row[ftz ? KIND_FTZ32 : KIND_F32];
    case GPUSIM_NUM_F16:
        return row[ftz ? KIND_FTZ16 : KIND_F16];
    case GPUSIM_NUM_F16X2:
        return row[ftz ? KIND_FTZ16H : KIND_F16H];
    case GPUSIM_NUM_BF16:
        return ftz ? NULL : row[KIND_BF16];
    case GPUSIM_NUM_BF16X2:
        return ftz ? NULL : row[KIND_BF16H];
    case GPUSIM_NUM_F64:
        return ftz ? NULL : row[KIND_F64];
    default:
        return NULL;
    }
}

#define TEST(NAME, WORD, CONDITION)                                                                                    \
    static uint32_t NAME(const void *a, const void *b) {                                                               \
        const WORD *x = a;                                                                                             \
        uint32_t yes[32];                                                                                              \
        (void)b;                                                                                                       \
        for (int l = 0; l < 32; l++) {                                                                                 \
            WORD m = x[l] & ~((WORD)1 << (8 * sizeof m - 1));                                                          \
            yes[l] = CONDITION;                                                                                        \
        }                                                                                                              \
        return gathered(yes);                                                                                          \
    }
#define TESTS(NAME, WORD, INFINITE, SMALLEST)                                                                          \
    TEST(NAME##_finite, WORD, m < (INFINITE))                                                                          \
    TEST(NAME##_infinite, WORD, m == (INFINITE))                                                                       \
    TEST(NAME##_number, WORD, m <= (INFINITE))                                                                         \
    TEST(NAME##_notanumber, WORD, m > (INFINITE))                                                                      \
    TEST(NAME##_normal, WORD, m == 0 || (m >= (SMALLEST) && m < (INFINITE)))                                           \
    TEST(NAME##_subnormal, WORD, m != 0 && m < (SMALLEST))                                                             \
    static gpusim_num_compare_fn *const NAME##_tests[] = {NAME##_finite,     NAME##_infinite, NAME##_number,           \
                                                          NAME##_notanumber, NAME##_normal,   NAME##_subnormal};
TESTS(f32, uint32_t, 0x7f800000, 0x00800000)
TESTS(f64, uint64_t, 0x7ffull << 52, 1ull << 52)

gpusim_num_compare_fn *ISA(num_testp)(enum gpusim_num_test test, enum gpusim_num_type type) {
    if (type == GPUSIM_NUM_F32) return f32_tests[test];
    return type == GPUSIM_NUM_F64 ? f64_tests[test] : NULL;
}
