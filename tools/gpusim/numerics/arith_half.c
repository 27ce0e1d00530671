/* f16, bf16 and their pairs: add, sub, mul, fma, abs, neg, min, max. An f16 result is computed in f32 (products are
 * exact, sums rounded to odd), a bf16 result in f64, and rounded to nearest once. */
#include "tools/gpusim/numerics/lanes.h"

INLINE uint32_t fma_f16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    if (flags & GPUSIM_NUM_FTZ) a = flush_f16(a), b = flush_f16(b), c = flush_f16(c);
    float p = f32_of(f32_from_f16(a)) * f32_of(f32_from_f16(b));
    float s = odd_sum_f32(p, f32_of(f32_from_f16(c)));
    return finish_f16(f16_from_f32(bits_f32(s), GPUSIM_NUM_RN), flags);
}
INLINE uint32_t add_f16(uint32_t a, uint32_t b, unsigned flags) { return fma_f16(a, 0x3c00, b, flags); }
INLINE uint32_t sub_f16(uint32_t a, uint32_t b, unsigned flags) { return fma_f16(a, 0x3c00, b ^ 0x8000, flags); }
INLINE uint32_t mul_f16(uint32_t a, uint32_t b, unsigned flags) { return fma_f16(a, b, (a ^ b) & 0x8000, flags); }

INLINE uint32_t fma_bf16(uint32_t a, uint32_t b, uint32_t c, unsigned flags) {
    double p = (double)f32_of(f32_from_bf16(a)) * f32_of(f32_from_bf16(b));
    double s = odd_sum_f64(p, f32_of(f32_from_bf16(c)));
    return finish_bf16(bf16_from_f32(odd_f32(s), GPUSIM_NUM_RN), flags);
}
INLINE uint32_t add_bf16(uint32_t a, uint32_t b, unsigned flags) { return fma_bf16(a, 0x3f80, b, flags); }
INLINE uint32_t sub_bf16(uint32_t a, uint32_t b, unsigned flags) { return fma_bf16(a, 0x3f80, b ^ 0x8000, flags); }
INLINE uint32_t mul_bf16(uint32_t a, uint32_t b, unsigned flags) { return fma_bf16(a, b, (a ^ b) & 0x8000, flags); }

/* infinity: 0x7c00 or 0x7f80, which tells the two formats apart. */
INLINE uint32_t min_max(uint32_t a, uint32_t b, uint32_t infinity, int want_max, unsigned flags) {
    if (flags & GPUSIM_NUM_FTZ) a = flush_f16(a), b = flush_f16(b);
    int32_t order_a = (int32_t)(a & 0x8000 ? ~a & 0x7fff : a | 0x8000);
    int32_t order_b = (int32_t)(b & 0x8000 ? ~b & 0x7fff : b | 0x8000);
    int nan_a = (a & 0x7fff) > infinity, nan_b = (b & 0x7fff) > infinity;
    int first = want_max ? order_a > order_b : order_a < order_b;
    uint32_t r = first ? a : b;
    r = nan_a ? b : r;
    r = nan_b ? a : r;
    int nan = flags & GPUSIM_NUM_NAN ? nan_a | nan_b : nan_a & nan_b;
    return nan ? 0x7fff : r;
}
INLINE uint32_t min_f16(uint32_t a, uint32_t b, unsigned flags) { return min_max(a, b, 0x7c00, 0, flags); }
INLINE uint32_t max_f16(uint32_t a, uint32_t b, unsigned flags) { return min_max(a, b, 0x7c00, 1, flags); }
INLINE uint32_t min_bf16(uint32_t a, uint32_t b, unsigned flags) { return min_max(a, b, 0x7f80, 0, flags); }
INLINE uint32_t max_bf16(uint32_t a, uint32_t b, unsigned flags) { return min_max(a, b, 0x7f80, 1, flags); }
INLINE uint32_t abs_f16(uint32_t a, unsigned flags) { return (flags & GPUSIM_NUM_FTZ ? flush_f16(a) : a) & 0x7fff; }
INLINE uint32_t neg_f16(uint32_t a, unsigned flags) { return (flags & GPUSIM_NUM_FTZ ? flush_f16(a) : a) ^ 0x8000; }
INLINE uint32_t abs_bf16(uint32_t a, unsigned flags) { return (void)flags, a & 0x7fff; }
INLINE uint32_t neg_bf16(uint32_t a, unsigned flags) { return (void)flags, a ^ 0x8000; }

#define LO(v) (v[l] & 0xffff)
#define HI(v) (v[l] >> 16)
#define ONE(NAME, FN, FLAGS)                                                                                           \
    LANES_32(NAME##_1, FN(LO(x), FLAGS))                                                                               \
    LANES_32(NAME##_2, FN(LO(x), FLAGS) | FN(HI(x), FLAGS) << 16)
#define TWO(NAME, FN, FLAGS)                                                                                           \
    LANES_32(NAME##_1, FN(LO(x), LO(y), FLAGS))                                                                        \
    LANES_32(NAME##_2, FN(LO(x), LO(y), FLAGS) | FN(HI(x), HI(y), FLAGS) << 16)
#define THREE(NAME, FN, FLAGS)                                                                                         \
    LANES_32(NAME##_1, FN(LO(x), LO(y), LO(z), FLAGS))                                                                 \
    LANES_32(NAME##_2, FN(LO(x), LO(y), LO(z), FLAGS) | FN(HI(x), HI(y), HI(z), FLAGS) << 16)

/* A row of the table: what is looked up, and the function for one number and for two in a word. */
#define ROW(OP, TYPE, FLAGS, NAME)                                                                                     \
    { GPUSIM_NUM_##OP, GPUSIM_NUM_##TYPE, FLAGS, NAME##_1, NAME##_2 }
struct row {
    enum gpusim_num_op op;
    enum gpusim_num_type type;
    unsigned flags;
    gpusim_num_fn *one, *two;
};

enum { FTZ = GPUSIM_NUM_FTZ, SAT = GPUSIM_NUM_SAT, RELU = GPUSIM_NUM_RELU, NAN_FLAG = GPUSIM_NUM_NAN };

#define ARITH_F16(DEFINE, NAME)                                                                                        \
    DEFINE(NAME##_h0, NAME##_f16, 0)                                                                                   \
    DEFINE(NAME##_h1, NAME##_f16, FTZ)                                                                                 \
    DEFINE(NAME##_h2, NAME##_f16, SAT)                                                                                 \
    DEFINE(NAME##_h3, NAME##_f16, FTZ | SAT)
#define ARITH_F16_ROWS(OP, NAME)                                                                                       \
    ROW(OP, F16, 0, NAME##_h0), ROW(OP, F16, FTZ, NAME##_h1), ROW(OP, F16, SAT, NAME##_h2),                            \
        ROW(OP, F16, FTZ | SAT, NAME##_h3)
#define SELECT(NAME)                                                                                                   \
    TWO(NAME##_h0, NAME##_f16, 0)                                                                                      \
    TWO(NAME##_h1, NAME##_f16, FTZ)                                                                                    \
    TWO(NAME##_h8, NAME##_f16, NAN_FLAG)                                                                               \
    TWO(NAME##_h9, NAME##_f16, FTZ | NAN_FLAG)                                                                         \
    TWO(NAME##_b0, NAME##_bf16, 0)                                                                                     \
    TWO(NAME##_b8, NAME##_bf16, NAN_FLAG)
#define SELECT_ROWS(OP, NAME)                                                                                          \
    ROW(OP, F16, 0, NAME##_h0), ROW(OP, F16, FTZ, NAME##_h1), ROW(OP, F16, NAN_FLAG, NAME##_h8),                       \
        ROW(OP, F16, FTZ | NAN_FLAG, NAME##_h9), ROW(OP, BF16, 0, NAME##_b0), ROW(OP, BF16, NAN_FLAG, NAME##_b8)

ARITH_F16(TWO, add)
ARITH_F16(TWO, sub)
ARITH_F16(TWO, mul)
ARITH_F16(THREE, fma)
THREE(fma_h4, fma_f16, RELU)
THREE(fma_h5, fma_f16, FTZ | RELU)
THREE(fma_b0, fma_bf16, 0)
THREE(fma_b4, fma_bf16, RELU)
TWO(add_b0, add_bf16, 0)
TWO(sub_b0, sub_bf16, 0)
TWO(mul_b0, mul_bf16, 0)
SELECT(min)
SELECT(max)
ONE(abs_h0, abs_f16, 0)
ONE(abs_h1, abs_f16, FTZ)
ONE(neg_h0, neg_f16, 0)
ONE(neg_h1, neg_f16, FTZ)
ONE(abs_b0, abs_bf16, 0)
ONE(neg_b0, neg_bf16, 0)

static const struct row rows[] = {
    ARITH_F16_ROWS(ADD, add),    ARITH_F16_ROWS(SUB, sub),
    ARITH_F16_ROWS(MUL, mul),    ARITH_F16_ROWS(FMA, fma),
    SELECT_ROWS(MIN, min),       SELECT_ROWS(MAX, max),
    ROW(FMA, F16, RELU, fma_h4), ROW(FMA, F16, FTZ | RELU, fma_h5),
    ROW(FMA, BF16, 0, fma_b0),   ROW(FMA, BF16, RELU, fma_b4),
    ROW(ADD, BF16, 0, add_b0),   ROW(SUB, BF16, 0, sub_b0),
    ROW(MUL, BF16, 0, mul_b0),   ROW(ABS, F16, 0, abs_h0),
    ROW(ABS, F16, FTZ, abs_h1),  ROW(NEG, F16, 0, neg_h0),
    ROW(NEG, F16, FTZ, neg_h1),  ROW(ABS, BF16, 0, abs_b0),
    ROW(NEG, BF16, 0, neg_b0),
};

gpusim_num_fn *ISA(num_arith_half)(enum gpusim_num_op op, enum gpusim_num_type type, enum gpusim_num_rounding rounding,
                                   unsigned flags) {
    int pair = type == GPUSIM_NUM_F16X2 || type == GPUSIM_NUM_BF16X2;
    if (type == GPUSIM_NUM_F16X2) type = GPUSIM_NUM_F16;
    if (type == GPUSIM_NUM_BF16X2) type = GPUSIM_NUM_BF16;
    if (rounding != GPUSIM_NUM_RN) return NULL;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].op == op && rows[i].type == type && rows[i].flags == flags) return pair ? rows[i].two : rows[i].one;
    return NULL;
}
