/* The approximations within the errors that the PTX ISA states and with the results it lists for special operands;
 * comparisons and testp; ldmatrix and movmatrix as in its figures. Every instruction set must give the same bits. */
#include "exact.h"

#define T(X) GPUSIM_NUM_##X
enum { BATCHES = 200000 / 32, JITTERED = BATCHES / 10, N_SEEDS = 20, FTZ = GPUSIM_NUM_FTZ };

static float f32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static double f16_value(uint32_t x) {
    int e;
    uint64_t m = format_mantissa(x, f16_format, &e);
    double v = format_is_infinite(x, f16_format) ? INFINITY : ldexp((double)m, e);
    return x & 0x8000 ? -v : v;
}

/* All instruction sets' results of one batch, equal; returns the one. */
static void run_32(enum gpusim_num_op op, enum gpusim_num_type type, unsigned flags, uint32_t *d, const uint32_t *a,
                   const uint32_t *b) {
    for (int i = 0, first = 1; i < N_ISAS; i++) {
        uint32_t other[32];
        if (!gpusim_num_use(isas[i])) continue;
        gpusim_num_fn *fn = gpusim_num_arith(op, type, GPUSIM_NUM_RN, flags);
        assert_non_null(fn);
        fn(first ? d : other, a, b, NULL, ~0u);
        for (int l = 0; l < 32 && !first; l++)
            if (other[l] != d[l])
                fail_msg("op %d of %x %x: %x by %s, %x portable", (int)op, a[l], b ? b[l] : 0, other[l], isas[i], d[l]);
        first = 0;
    }
}

static long double ulp_of(long double x) {
    int e;
    frexpl(x, &e);
    return ldexpl(1, e - 24 < -149 ? -149 : e - 24);
}

/* Error in units of what is allowed at this operand; < 0: no bound there. */
static long double error_of(enum gpusim_num_op op, float x, float y, float got) {
    long double v = x, want;
    switch (op) {
    case T(EX2_APPROX):
        want = exp2l(v);
        if (want >= 0x1.ffffffp127L) return isinf(got) ? 0 : 2;
        return fabsl(got - want) / (2 * ulp_of(want));
    case T(LG2_APPROX):
        want = log2l(v);
        return fabsl(got - want) / (x > 0.5 && x < 2 ? 0x1p-22L : 0x1p-22L * fabsl(want));
    case T(SIN_APPROX):
    case T(COS_APPROX):
        if (fabsl(v) > 314.159) return fabsf(got) <= 1 ? 0 : 2;
        want = op == T(SIN_APPROX) ? sinl(v) : cosl(v);
        return fabsl(got - want) / (fabsl(v) < 6.2831 ? 0x1.6ap-21L : 0x1.3ap-15L);
    case T(TANH_APPROX):
        want = tanhl(v);
        return want == 0 ? got != 0 : fabsl(got - want) / (0x1p-11L * fabsl(want));
    case T(RCP_APPROX):
        want = 1 / v;
        break;
    case T(SQRT_APPROX):
        want = sqrtl(v);
        break;
    case T(RSQRT_APPROX):
        want = 1 / sqrtl(v);
        return fabsl(got - want) / (0x1.1p-23L * want);
    default:
        want = v / (long double)y;
        break;
    }
    if (fabsl(want) >= 0x1.ffffffp127L) return isinf(got) ? 0 : 2;
    return fabsl(got - want) / (op == T(RCP_APPROX) || op == T(SQRT_APPROX) ? ulp_of(want) : 2 * ulp_of(want));
}

/* Returns a digest of the results. */
static uint64_t check_op(enum gpusim_num_op op, uint64_t *seed, int n_batches) {
    long double worst = 0;
    uint64_t digest = 0;
    for (int batch = 0; batch < n_batches; batch++) {
        uint32_t a[32], b[32], d[32], flushed[32];
        for (int l = 0; l < 32; l++) {
            a[l] = (uint32_t)random_number(f32_format, seed), b[l] = (uint32_t)random_number(f32_format, seed);
            if (op == T(LG2_APPROX) || op == T(SQRT_APPROX) || op == T(RSQRT_APPROX)) a[l] &= 0x7fffffff;
            if (batch % 4 == 1) a[l] = bits_of((float)((double)(int64_t)random64(seed) * 0x1p-63 * 160));
            if (batch % 4 == 2) a[l] = bits_of((float)((double)(int64_t)random64(seed) * 0x1p-63 * 6.2831));
            if (batch % 4 == 3 && op == T(LG2_APPROX)) a[l] = 0x3f000000 + (uint32_t)(random64(seed) % 0x1000000);
        }
        run_32(op, T(F32), 0, d, a, b);
        if (op != T(TANH_APPROX)) run_32(op, T(F32), GPUSIM_NUM_FTZ, flushed, a, b);
        for (int l = 0; l < 32; l++) {
            float x = f32(a[l]), y = f32(b[l]);
            digest = digest * 31 + d[l];
            int binary = op == T(DIV_APPROX) || op == T(DIV_FULL);
            int finite = isfinite(x) && x != 0 && (!binary || (isfinite(y) && y != 0));
            int domain = x > 0 || (op != T(LG2_APPROX) && op != T(SQRT_APPROX) && op != T(RSQRT_APPROX));
            if (op == T(DIV_APPROX) && (fabsf(y) > 0x1p126f || fabsf(y) < 0x1p-126f)) continue;
            if (!finite || !domain) continue;
            long double error = error_of(op, x, y, f32(d[l]));
            worst = error > worst ? error : worst;
            if (!(error <= 1))
                fail_msg("op %d of %a %a: %a, error %Lg of what is allowed", (int)op, (double)x, (double)y,
                         (double)f32(d[l]), error);
            int subnormal_in = !(a[l] & 0x7f800000) || (binary && !(b[l] & 0x7f800000));
            if (op == T(TANH_APPROX) || subnormal_in) continue;
            uint32_t want = d[l] & 0x7f800000 ? d[l] : d[l] & 0x80000000;
            if (flushed[l] != want) fail_msg("op %d .ftz of %a: %x, expected %x", (int)op, (double)x, flushed[l], want);
        }
    }
    if (n_batches == BATCHES) print_message("op %d: at most %.3Lf of the error allowed\n", (int)op, worst);
    return digest;
}

static void test_errors(void **state) {
    (void)state;
    uint64_t seed = 11;
    for (int op = T(DIV_APPROX); op <= T(TANH_APPROX); op++) check_op((enum gpusim_num_op)op, &seed, BATCHES);
}

struct special {
    enum gpusim_num_op op;
    unsigned flags;
    uint32_t a, b, d;
};
#define INF   0x7f800000u
#define MINF  0xff800000u
#define NAN_  0x7fffffffu
#define MZERO 0x80000000u
#define ONE   0x3f800000u
#define MONE  0xbf800000u
#define SUB   0x00012345u
#define MSUB  0x80012345u
static const struct special specials[] = {
    {T(EX2_APPROX), 0, MINF, 0, 0},
    {T(EX2_APPROX), 0, MZERO, 0, ONE},
    {T(EX2_APPROX), 0, 0, 0, ONE},
    {T(EX2_APPROX), 0, INF, 0, INF},
    {T(EX2_APPROX), 0, 0x7fc00001, 0, NAN_},
    {T(EX2_APPROX), 0, 0xc3150000, 0, 1},
    {T(EX2_APPROX), FTZ, 0xc3150000, 0, 0},
    {T(EX2_APPROX), FTZ, MSUB, 0, ONE},
    {T(LG2_APPROX), 0, MINF, 0, NAN_},
    {T(LG2_APPROX), 0, MONE, 0, NAN_},
    {T(LG2_APPROX), 0, MZERO, 0, MINF},
    {T(LG2_APPROX), 0, 0, 0, MINF},
    {T(LG2_APPROX), 0, INF, 0, INF},
    {T(LG2_APPROX), 0, 0xffc00000, 0, NAN_},
    {T(LG2_APPROX), FTZ, SUB, 0, MINF},
    {T(LG2_APPROX), 0, ONE, 0, 0},
    {T(LG2_APPROX), 0, 1, 0, 0xc3150000},
    {T(SIN_APPROX), 0, MINF, 0, NAN_},
    {T(SIN_APPROX), 0, MZERO, 0, MZERO},
    {T(SIN_APPROX), 0, 0, 0, 0},
    {T(SIN_APPROX), 0, INF, 0, NAN_},
    {T(SIN_APPROX), 0, NAN_, 0, NAN_},
    {T(SIN_APPROX), FTZ, MSUB, 0, MZERO},
    {T(COS_APPROX), 0, MINF, 0, NAN_},
    {T(COS_APPROX), 0, MZERO, 0, ONE},
    {T(COS_APPROX), 0, 0, 0, ONE},
    {T(COS_APPROX), 0, INF, 0, NAN_},
    {T(COS_APPROX), 0, NAN_, 0, NAN_},
    {T(TANH_APPROX), 0, MINF, 0, MONE},
    {T(TANH_APPROX), 0, MZERO, 0, MZERO},
    {T(TANH_APPROX), 0, 0, 0, 0},
    {T(TANH_APPROX), 0, INF, 0, ONE},
    {T(TANH_APPROX), 0, NAN_, 0, NAN_},
    {T(TANH_APPROX), 0, MSUB, 0, MSUB},
    {T(RCP_APPROX), 0, MINF, 0, MZERO},
    {T(RCP_APPROX), 0, MZERO, 0, MINF},
    {T(RCP_APPROX), 0, 0, 0, INF},
    {T(RCP_APPROX), 0, INF, 0, 0},
    {T(RCP_APPROX), 0, NAN_, 0, NAN_},
    {T(RCP_APPROX), FTZ, MSUB, 0, MINF},
    {T(SQRT_APPROX), 0, MINF, 0, NAN_},
    {T(SQRT_APPROX), 0, MONE, 0, NAN_},
    {T(SQRT_APPROX), 0, MZERO, 0, MZERO},
    {T(SQRT_APPROX), 0, INF, 0, INF},
    {T(SQRT_APPROX), FTZ, MSUB, 0, MZERO},
    {T(SQRT_APPROX), FTZ, SUB, 0, 0},
    {T(RSQRT_APPROX), 0, MINF, 0, NAN_},
    {T(RSQRT_APPROX), 0, MONE, 0, NAN_},
    {T(RSQRT_APPROX), 0, MZERO, 0, MINF},
    {T(RSQRT_APPROX), 0, 0, 0, INF},
    {T(RSQRT_APPROX), 0, INF, 0, 0},
    {T(RSQRT_APPROX), FTZ, MSUB, 0, MINF},
    {T(DIV_APPROX), 0, ONE, 0x7f000000, 0},
    {T(DIV_APPROX), 0, INF, 0x7f000000, NAN_},
    {T(DIV_APPROX), 0, MONE, 0x7f000000, MZERO},
    {T(DIV_APPROX), 0, ONE, 0x7e800000, 0x00800000},
    {T(DIV_APPROX), 0, ONE, INF, 0},
    {T(DIV_FULL), 0, ONE, 0x7f000000, 0x00400000},
    {T(DIV_FULL), FTZ, ONE, 0x7f000000, 0},
    {T(DIV_APPROX), 0, 0, 0, NAN_},
    {T(DIV_APPROX), 0, ONE, 0, INF},
};

static void test_specials(void **state) {
    (void)state;
    for (unsigned i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        const struct special *s = &specials[i];
        uint32_t a[32], b[32], d[32];
        for (int l = 0; l < 32; l++) a[l] = s->a, b[l] = s->b;
        run_32(s->op, T(F32), s->flags, d, a, b);
        if (d[0] != s->d || d[31] != s->d)
            fail_msg("op %d flags %u of %x %x: got %x, expected %x", (int)s->op, s->flags, s->a, s->b, d[0], s->d);
    }
}

/* Other bits for each seed, all within the errors, and the same results for special operands. */
static void test_jitter(void **state) {
    uint64_t digests[N_SEEDS + 1];
    for (int op = T(DIV_APPROX); op <= T(COS_APPROX); op++)
        for (int i = 0; i <= N_SEEDS; i++) {
            uint64_t seed = 12;
            gpusim_num_jitter((uint64_t)i);
            digests[i] = check_op((enum gpusim_num_op)op, &seed, JITTERED);
            for (int k = 0; k < i; k++) assert_true(digests[k] != digests[i]);
        }
    test_specials(state);
    gpusim_num_jitter(0);
}

/* Every f16: relative error of ex2 2^-9.9, absolute error of tanh 2^-10.987. */
static void test_f16(void **state) {
    (void)state;
    for (uint32_t n = 0; n < 65536; n += 32) {
        uint32_t a[32], e[32], t[32], pair[32], e2[32], t2[32];
        for (uint32_t l = 0; l < 32; l++) a[l] = n + l, pair[l] = (n + l) | (0xffff - n - l) << 16;
        run_32(T(EX2_APPROX), T(F16), 0, e, a, NULL), run_32(T(TANH_APPROX), T(F16), 0, t, a, NULL);
        run_32(T(EX2_APPROX), T(F16X2), 0, e2, pair, NULL), run_32(T(TANH_APPROX), T(F16X2), 0, t2, pair, NULL);
        for (int l = 0; l < 32; l++) {
            assert_int_equal(e2[l] & 0xffff, e[l]);
            assert_int_equal(t2[l] & 0xffff, t[l]);
            if (format_is_nan(a[l], f16_format)) {
                assert_int_equal(e[l], 0x7fff);
                assert_int_equal(t[l], 0x7fff);
                continue;
            }
            double x = f16_value(a[l]), want = exp2(x);
            if (want >= 65520)
                assert_int_equal(e[l], 0x7c00);
            else /* subnormal results have an absolute error */
                assert_true(fabs(f16_value(e[l]) - want) <= fmax(want * 0x1.12p-10, 0x1p-25));
            assert_true(fabs(f16_value(t[l]) - tanh(x)) <= 0x1.02p-11);
            assert_int_equal(t[l] & 0x8000, a[l] & 0x8000);
        }
    }
    assert_null(gpusim_num_arith(T(SIN_APPROX), T(F16), GPUSIM_NUM_RN, 0));
    assert_null(gpusim_num_arith(T(EX2_APPROX), T(BF16), GPUSIM_NUM_RN, 0));
}

static uint64_t bits64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}
static double f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

static void test_f64(void **state) {
    (void)state;
    static const uint64_t in[] = {0, 1ull << 63,     0x7ffull << 52,        0xfffull << 52,
                                  5, 5 | 1ull << 63, 0x7ff0000100000000ull, 0x7fe5555500000000ull};
    static const uint64_t rcp[] = {0x7ffull << 52, 0xfffull << 52,        0, 1ull << 63, 0x7ffull << 52,
                                   0xfffull << 52, 0x7fffffff00000000ull, 0};
    uint64_t seed = 5;
    for (int i = 0; i < N_ISAS; i++) {
        if (!gpusim_num_use(isas[i])) continue;
        gpusim_num_fn *r = gpusim_num_arith(T(RCP_APPROX), T(F64), GPUSIM_NUM_RN, FTZ);
        gpusim_num_fn *s = gpusim_num_arith(T(RSQRT_APPROX), T(F64), GPUSIM_NUM_RN, FTZ);
        gpusim_num_fn *q = gpusim_num_arith(T(RSQRT_APPROX), T(F64), GPUSIM_NUM_RN, 0);
        uint64_t a[32], d[32], e[32], g[32];
        for (int l = 0; l < 32; l++) a[l] = in[l % 8];
        r(d, a, NULL, NULL, ~0u);
        for (int l = 0; l < 32; l++) assert_true(d[l] == rcp[l % 8]);
        for (int n = 0; n < BATCHES; n++) {
            for (int l = 0; l < 32; l++)
                a[l] = ((uint64_t)(1023 - 300 + (int)(random64(&seed) % 600)) << 52) | random64(&seed) >> 12;
            r(d, a, NULL, NULL, ~0u), s(e, a, NULL, NULL, ~0u), q(g, a, NULL, NULL, ~0u);
            for (int l = 0; l < 32; l++) {
                double x = f64(a[l] & 0xffffffff00000000ull);
                assert_true(fabs(f64(d[l]) * x - 1) < 0x1p-20 && !(d[l] & 0xffffffff));
                assert_true(fabs(f64(e[l]) * sqrt(x) - 1) < 0x1p-20 && !(e[l] & 0xffffffff));
                assert_true(g[l] == bits64(1 / sqrt(f64(a[l]))));
            }
        }
    }
}

static int holds(enum gpusim_num_comparison c, double x, double y) {
    int nan = isnan(x) || isnan(y);
    switch (c) {
    case T(EQ):
        return x == y;
    case T(NE):
        return !nan && x != y;
    case T(LT):
        return x < y;
    case T(LE):
        return x <= y;
    case T(GT):
        return x > y;
    case T(GE):
        return x >= y;
    case T(EQU):
        return nan || x == y;
    case T(NEU):
        return x != y;
    case T(LTU):
        return !(x >= y);
    case T(LEU):
        return !(x > y);
    case T(GTU):
        return !(x <= y);
    case T(GEU):
        return !(x < y);
    case T(BOTH_NUMBERS):
        return !nan;
    default:
        return nan;
    }
}

static double value(uint64_t x, struct format f, int ftz) {
    int e;
    uint64_t m = format_mantissa(x, f, &e);
    double v = format_is_nan(x, f) ? NAN : format_is_infinite(x, f) ? INFINITY : ldexp((double)m, e);
    if (ftz && !(x & format_infinity(f))) v = 0;
    return x & format_sign(f) ? -v : v;
}

static void test_compare(void **state) {
    (void)state;
    static const struct {
        enum gpusim_num_type type;
        struct format f;
        unsigned flags;
        int shift;
    } kinds[] = {{T(F32), {8, 23}, 0, 0},      {T(F32), {8, 23}, FTZ, 0}, {T(F64), {11, 52}, 0, 0},
                 {T(F16), {5, 10}, 0, 0},      {T(F16), {5, 10}, FTZ, 0}, {T(F16X2), {5, 10}, 0, 16},
                 {T(F16X2), {5, 10}, FTZ, 16}, {T(BF16), {8, 7}, 0, 0},   {T(BF16X2), {8, 7}, 0, 16}};
    uint64_t seed = 9;
    for (int i = 0; i < N_ISAS; i++)
        for (unsigned k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            for (int c = 0; c < GPUSIM_NUM_N_COMPARISONS && gpusim_num_use(isas[i]); c++) {
                gpusim_num_compare_fn *fn =
                    gpusim_num_compare((enum gpusim_num_comparison)c, kinds[k].type, kinds[k].flags);
                assert_non_null(fn);
                for (int n = 0; n < 3200; n++) {
                    union {
                        uint32_t w32[32];
                        uint64_t w64[32];
                    } a, b;
                    uint32_t want = 0;
                    for (int l = 0; l < 32; l++) {
                        uint64_t x = random_number(kinds[k].f, &seed),
                                 y = random64(&seed) % 4 ? random_number(kinds[k].f, &seed) : x;
                        want |=
                            (uint32_t)holds((enum gpusim_num_comparison)c, value(x, kinds[k].f, kinds[k].flags != 0),
                                            value(y, kinds[k].f, kinds[k].flags != 0))
                            << l;
                        uint32_t other = (uint32_t)random64(&seed), keep = kinds[k].shift                  ? 0xffff
                                                                           : kinds[k].f.mantissa_bits < 23 ? 0xffff0000
                                                                                                           : 0;
                        if (kinds[k].type == T(F64))
                            a.w64[l] = x, b.w64[l] = y;
                        else
                            a.w32[l] = (uint32_t)x << kinds[k].shift | (other & keep),
                            b.w32[l] = (uint32_t)y << kinds[k].shift | (~other & keep);
                    }
                    assert_int_equal(fn(&a, &b), want);
                }
            }
    assert_null(gpusim_num_compare(T(EQ), T(F64), FTZ));
    assert_null(gpusim_num_compare(T(EQ), T(S32), 0));
}

static void test_testp(void **state) {
    (void)state;
    uint64_t seed = 10;
    for (int wide = 0; wide < 2; wide++)
        for (int t = 0; t < GPUSIM_NUM_N_TESTS; t++) {
            gpusim_num_compare_fn *fn = gpusim_num_testp((enum gpusim_num_test)t, wide ? T(F64) : T(F32));
            struct format f = wide ? f64_format : f32_format;
            for (int n = 0; n < 3200; n++) {
                union {
                    uint32_t w32[32];
                    uint64_t w64[32];
                } a;
                uint32_t want = 0;
                for (int l = 0; l < 32; l++) {
                    uint64_t x = random_number(f, &seed);
                    int class = fpclassify(wide ? f64(x) : 0), narrow = fpclassify(wide ? 0 : f32((uint32_t)x));
                    int c = wide ? class : narrow;
                    int yes[] = {c != FP_NAN && c != FP_INFINITE, c == FP_INFINITE, c != FP_NAN, c == FP_NAN,
                                 c == FP_NORMAL || c == FP_ZERO,  c == FP_SUBNORMAL};
                    want |= (uint32_t)yes[t] << l;
                    if (wide)
                        a.w64[l] = x;
                    else
                        a.w32[l] = (uint32_t)x;
                }
                assert_int_equal(fn(&a, NULL), want);
            }
        }
    assert_null(gpusim_num_testp(T(FINITE), T(F16)));
}

/* The PTX ISA's figure: row i of a matrix is with threads 4 i to 4 i + 3, two elements each; .trans exchanges row and
 * column. Element (i, j) of matrix r has the value 1000 r + 10 i + j. */
static void test_ldmatrix(void **state) {
    (void)state;
    static const int first_elements[32] = {0,  2,  4,  6,  10, 12, 14, 16, 20, 22, 24, 26, 30, 32, 34, 36,
                                           40, 42, 44, 46, 50, 52, 54, 56, 60, 62, 64, 66, 70, 72, 74, 76};
    uint16_t rows[32][8];
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++) rows[8 * r + i][j] = (uint16_t)(1000 * r + 10 * i + j);
    for (int n = 1; n <= 4; n *= 2)
        for (int trans = 0; trans < 2; trans++) {
            uint32_t regs[4][32], *d[4] = {regs[0], regs[1], regs[2], regs[3]};
            gpusim_num_ldmatrix(d, (const uint8_t(*)[16])rows, n, trans);
            for (int r = 0; r < n; r++)
                for (int l = 0; l < 32; l++)
                    for (int h = 0; h < 2; h++) {
                        int e = first_elements[l] + h;
                        int want = 1000 * r + (trans ? e % 10 * 10 + e / 10 : e);
                        assert_int_equal(regs[r][l] >> 16 * h & 0xffff, want);
                        struct gpusim_num_matrix_source s = gpusim_num_ldmatrix_source(l, r, h, trans);
                        assert_int_equal(rows[s.lane][s.offset / 2], want);
                    }
        }
    uint32_t a[32], b[32];
    for (int l = 0; l < 32; l++) a[l] = (uint32_t)first_elements[l] | (uint32_t)(first_elements[l] + 1) << 16;
    gpusim_num_movmatrix(b, a);
    for (int l = 0; l < 32; l++) assert_int_equal(b[l] & 0xffff, first_elements[l] % 10 * 10 + first_elements[l] / 10);
    gpusim_num_movmatrix(a, b);
    for (int l = 0; l < 32; l++) assert_int_equal(a[l] >> 16, first_elements[l] + 1);
}

static void test_use(void **state) {
    (void)state;
    assert_false(gpusim_num_use("sse9"));
    assert_true(gpusim_num_use("portable"));
    assert_string_equal(gpusim_num_in_use(), "portable");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors), cmocka_unit_test(test_jitter),   cmocka_unit_test(test_specials),
        cmocka_unit_test(test_f16),    cmocka_unit_test(test_f64),      cmocka_unit_test(test_compare),
        cmocka_unit_test(test_testp),  cmocka_unit_test(test_ldmatrix), cmocka_unit_test(test_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
