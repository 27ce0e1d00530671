/* Arithmetic as PTX has it for sm_80, 32 lanes at a time. Pure functions: no state but the choice of instruction set
 * and the seed of approximations, no dependence on the rest of gpusim, the same bits on every host.
 *
 *     gpusim_num_fn *add = gpusim_num_arith(GPUSIM_NUM_ADD, GPUSIM_NUM_F32, GPUSIM_NUM_RZ, GPUSIM_NUM_FTZ);
 *     add(d, a, b, NULL, mask);
 *
 * A decoder looks a function up once per instruction; NULL means that PTX has no such combination. A lane of a type of
 * up to 32 bits is a uint32_t (16-bit floats in the low half, the high half written as 0; .f16x2 and .bf16x2 use
 * both), of a 64-bit type a uint64_t. Integers narrower than 32 bits are read from the low bits and written extended
 * by their sign or by zeros. d may be the same array as a, b or c, but not overlap otherwise; lanes outside `mask`
 * keep what d had. The host must be in its default floating-point mode (round to nearest, no flushing). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GPUSIM_NUM_LANES = 32 };

enum gpusim_num_type {
    GPUSIM_NUM_F16,
    GPUSIM_NUM_F16X2,
    GPUSIM_NUM_BF16,
    GPUSIM_NUM_BF16X2,
    GPUSIM_NUM_TF32,
    GPUSIM_NUM_F32,
    GPUSIM_NUM_F64,
    GPUSIM_NUM_S8,
    GPUSIM_NUM_U8,
    GPUSIM_NUM_S16,
    GPUSIM_NUM_U16,
    GPUSIM_NUM_S32,
    GPUSIM_NUM_U32,
    GPUSIM_NUM_S64,
    GPUSIM_NUM_U64,
    GPUSIM_NUM_N_TYPES,
};

enum gpusim_num_rounding {
    GPUSIM_NUM_RN, /* nearest, ties to even; also where an instruction has no rounding */
    GPUSIM_NUM_RZ,
    GPUSIM_NUM_RM,
    GPUSIM_NUM_RP,
    GPUSIM_NUM_RNA, /* nearest, ties away from zero: cvt.rna.tf32 only */
    GPUSIM_NUM_RNI, /* to an integral value */
    GPUSIM_NUM_RZI,
    GPUSIM_NUM_RMI,
    GPUSIM_NUM_RPI,
};

enum { /* flags */
       GPUSIM_NUM_FTZ = 1,
       GPUSIM_NUM_SAT = 2,
       GPUSIM_NUM_RELU = 4,
       GPUSIM_NUM_NAN = 8, /* min.NaN, max.NaN */
};

enum gpusim_num_op {
    GPUSIM_NUM_ADD,
    GPUSIM_NUM_SUB,
    GPUSIM_NUM_MUL,
    GPUSIM_NUM_FMA, /* also mad.f32 and mad.f64 */
    GPUSIM_NUM_DIV,
    GPUSIM_NUM_RCP,
    GPUSIM_NUM_SQRT,
    GPUSIM_NUM_ABS,
    GPUSIM_NUM_NEG,
    GPUSIM_NUM_MIN,
    GPUSIM_NUM_MAX,
    GPUSIM_NUM_COPYSIGN, /* the sign of a, the rest of b */
    GPUSIM_NUM_DIV_APPROX,
    GPUSIM_NUM_DIV_FULL,
    GPUSIM_NUM_RCP_APPROX,
    GPUSIM_NUM_SQRT_APPROX,
    GPUSIM_NUM_RSQRT_APPROX,
    GPUSIM_NUM_EX2_APPROX,
    GPUSIM_NUM_LG2_APPROX,
    GPUSIM_NUM_SIN_APPROX,
    GPUSIM_NUM_COS_APPROX,
    GPUSIM_NUM_TANH_APPROX,
    GPUSIM_NUM_N_OPS,
};

typedef void gpusim_num_fn(void *d, const void *a, const void *b, const void *c, uint32_t mask);

/* d = op(a, b, c); types F16, F16X2, BF16, BF16X2, F32, F64. b and c may be NULL where an op has fewer operands. */
gpusim_num_fn *gpusim_num_arith(enum gpusim_num_op op, enum gpusim_num_type type, enum gpusim_num_rounding rounding,
                                unsigned flags);

/* cvt: d of type `to`, a of type `from`. To F16X2 or BF16X2 from F32: a gives the high half, b the low half.
 * From an integer or to a narrower float, RN RZ RM RP; to an integer, or to the same float type, RNI RZI RMI RPI;
 * otherwise (exact conversions, integer to integer, same float type unrounded) RN. */
gpusim_num_fn *gpusim_num_convert(enum gpusim_num_type to, enum gpusim_num_type from, enum gpusim_num_rounding rounding,
                                  unsigned flags);

enum gpusim_num_comparison {
    GPUSIM_NUM_EQ, /* ordered: false when an operand is NaN */
    GPUSIM_NUM_NE,
    GPUSIM_NUM_LT,
    GPUSIM_NUM_LE,
    GPUSIM_NUM_GT,
    GPUSIM_NUM_GE,
    GPUSIM_NUM_EQU, /* unordered: true when an operand is NaN */
    GPUSIM_NUM_NEU,
    GPUSIM_NUM_LTU,
    GPUSIM_NUM_LEU,
    GPUSIM_NUM_GTU,
    GPUSIM_NUM_GEU,
    GPUSIM_NUM_BOTH_NUMBERS, /* .num */
    GPUSIM_NUM_ANY_NAN,      /* .nan */
    GPUSIM_NUM_N_COMPARISONS,
};

/* Which lanes the comparison holds for, as bits. */
typedef uint32_t gpusim_num_compare_fn(const void *a, const void *b);

/* Types F16, BF16, F32, F64; F16X2 and BF16X2 compare the high halves (F16 and BF16 the low ones). */
gpusim_num_compare_fn *gpusim_num_compare(enum gpusim_num_comparison comparison, enum gpusim_num_type type,
                                          unsigned flags);

enum gpusim_num_test {
    GPUSIM_NUM_FINITE,
    GPUSIM_NUM_INFINITE,
    GPUSIM_NUM_NUMBER,
    GPUSIM_NUM_NOTANUMBER,
    GPUSIM_NUM_NORMAL,
    GPUSIM_NUM_SUBNORMAL, /* zero is normal, as the PTX ISA has it */
    GPUSIM_NUM_N_TESTS,
};

/* testp; types F32, F64. The function's b is not used. */
gpusim_num_compare_fn *gpusim_num_testp(enum gpusim_num_test test, enum gpusim_num_type type);

/* mma.sync D = A B + C. Fragments are as the PTX ISA lays them out; d, a, b, c point to one array of 32 lanes per
 * register (uint32_t, for F64 uint64_t). d may name the same arrays as c. All 32 lanes take part. */
typedef void gpusim_num_mma_fn(void *const *d, const void *const *a, const void *const *b, const void *const *c);

struct gpusim_num_mma {
    int m, n, k;
    enum gpusim_num_type d, a, b, c; /* element types: F16, BF16, TF32, F32, F64, S8, U8, S32 */
    bool a_column, b_row;            /* m8n8k4 with F16 only: .col, .row; all others are .row.col */
    bool satfinite;                  /* integers: clamp instead of wrap */
    bool fast; /* products summed in f32 in the order of k, nearest: not the bits of an A100, about 3 times as fast */
};

/* NULL: no such instruction. Without `fast`, results to F32 and F16 are an Ampere's to the bit, by the rule that
 * microsoft/MMA-Sim found (mma_dot.c states it). */
gpusim_num_mma_fn *gpusim_num_mma(const struct gpusim_num_mma *mma);
/* Registers that each operand takes; only for what gpusim_num_mma knows. */
struct gpusim_num_mma_registers {
    int d, a, b, c;
};
struct gpusim_num_mma_registers gpusim_num_mma_registers(const struct gpusim_num_mma *mma);

/* ldmatrix.m8n8.b16 with n = 1, 2, 4 matrices of 8 rows of 16 bytes: lane i < 8 n gives the address of row i % 8 of
 * matrix i / 8. Half h (0: low, 1: high 16 bits) of lane l's register r is the 16 bits at `offset` bytes from the
 * address that lane `lane` gives. */
struct gpusim_num_matrix_source {
    int lane, offset;
};
struct gpusim_num_matrix_source gpusim_num_ldmatrix_source(int l, int r, int h, bool trans);
/* The same for all lanes: rows [8 n][16 bytes] as read, d [n] registers. */
void gpusim_num_ldmatrix(uint32_t *const *d, const uint8_t (*rows)[16], int n, bool trans);
/* movmatrix.m8n8.trans.b16 */
void gpusim_num_movmatrix(uint32_t *d, const uint32_t *a);

/* Which instructions the functions may use. They are chosen by the CPU at the first look-up; `name` is "portable",
 * "avx2" or "avx512". Returns false (and changes nothing) when this CPU or build lacks it. The bits do not depend on
 * it. Functions looked up before keep running as they were. */
bool gpusim_num_use(const char *name);
const char *gpusim_num_in_use(void);

/* With a seed other than 0, .approx functions of f32 that are looked up from now on give other bits within the errors
 * that the PTX ISA states. */
void gpusim_num_jitter(uint64_t seed);
