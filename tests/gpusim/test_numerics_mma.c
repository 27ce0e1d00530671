/* mma.sync: fragment layouts written down from the PTX ISA's figures, and the arithmetic against microsoft/MMA-Sim's
 * rule for Ampere in a slow scalar form (f64, which holds every step exactly). */
#include "numerics_common.h"

/* Where an element of a fragment is: row and column (k for A and B) of register element i of a lane. i counts elements,
 * as a0, a1, ... in the PTX ISA. */
struct place {
    int row, column;
};
typedef struct place layout(int lane, int i);

/* m16n8k16, 16-bit: rows groupID for a0 a1 a4 a5, + 8 otherwise; columns (lane % 4) * 2 + (i & 1), + 8 from a4 on. */
static struct place a_16x16(int lane, int i) {
    return (struct place){lane / 4 + (i < 2 || (i >= 4 && i < 6) ? 0 : 8), lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
static struct place b_16x8(int lane, int i) {
    return (struct place){lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane / 4};
}
static struct place c_16x8(int lane, int i) {
    return (struct place){lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
}
/* m16n8k8, 16-bit */
static struct place a_16x8(int lane, int i) {
    return (struct place){lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
}
static struct place b_8x8(int lane, int i) { return (struct place){lane % 4 * 2 + i, lane / 4}; }
/* m16n8k4 and m16n8k8, tf32 */
static struct place a_16x4_tf32(int lane, int i) { return (struct place){lane / 4 + (i == 0 ? 0 : 8), lane % 4}; }
static struct place b_4x8_tf32(int lane, int i) { return (void)i, (struct place){lane % 4, lane / 4}; }
static struct place a_16x8_tf32(int lane, int i) {
    return (struct place){lane / 4 + (i == 0 || i == 2 ? 0 : 8), lane % 4 + (i < 2 ? 0 : 4)};
}
static struct place b_8x8_tf32(int lane, int i) { return (struct place){lane % 4 + (i == 0 ? 0 : 4), lane / 4}; }
/* m8n8k4, f64 */
static struct place a_8x4_f64(int lane, int i) { return (void)i, (struct place){lane / 4, lane % 4}; }
static struct place b_4x8_f64(int lane, int i) { return (void)i, (struct place){lane % 4, lane / 4}; }
static struct place c_8x8(int lane, int i) { return (struct place){lane / 4, lane % 4 * 2 + i}; }
/* 8-bit integers: m8n8k16, m16n8k16, m16n8k32 */
static struct place a_8x16_int(int lane, int i) { return (struct place){lane / 4, lane % 4 * 4 + i}; }
static struct place b_16x8_int(int lane, int i) { return (struct place){lane % 4 * 4 + i, lane / 4}; }
static struct place a_16x16_int(int lane, int i) {
    return (struct place){lane / 4 + (i < 4 ? 0 : 8), lane % 4 * 4 + (i & 3)};
}
static struct place a_16x32_int(int lane, int i) {
    return (struct place){lane / 4 + (i < 4 || (i >= 8 && i < 12) ? 0 : 8), lane % 4 * 4 + (i & 3) + (i < 8 ? 0 : 16)};
}
static struct place b_32x8_int(int lane, int i) {
    return (struct place){lane % 4 * 4 + (i & 3) + (i < 4 ? 0 : 16), lane / 4};
}

struct shape {
    struct gpusim_num_mma mma;
    layout *a, *b, *c;
    int chunk; /* products added at once */
};
#define T(X) GPUSIM_NUM_##X
static const struct shape shapes[] = {
    {{16, 8, 16, T(F32), T(BF16), T(BF16), T(F32), 0, 0, 0, 0}, a_16x16, b_16x8, c_16x8, 8},
    {{16, 8, 16, T(F32), T(F16), T(F16), T(F32), 0, 0, 0, 0}, a_16x16, b_16x8, c_16x8, 8},
    {{16, 8, 16, T(F16), T(F16), T(F16), T(F16), 0, 0, 0, 0}, a_16x16, b_16x8, c_16x8, 8},
    {{16, 8, 8, T(F32), T(BF16), T(BF16), T(F32), 0, 0, 0, 0}, a_16x8, b_8x8, c_16x8, 8},
    {{16, 8, 8, T(F32), T(F16), T(F16), T(F32), 0, 0, 0, 0}, a_16x8, b_8x8, c_16x8, 8},
    {{16, 8, 8, T(F16), T(F16), T(F16), T(F16), 0, 0, 0, 0}, a_16x8, b_8x8, c_16x8, 8},
    {{16, 8, 8, T(F32), T(TF32), T(TF32), T(F32), 0, 0, 0, 0}, a_16x8_tf32, b_8x8_tf32, c_16x8, 4},
    {{16, 8, 4, T(F32), T(TF32), T(TF32), T(F32), 0, 0, 0, 0}, a_16x4_tf32, b_4x8_tf32, c_16x8, 4},
    {{8, 8, 4, T(F64), T(F64), T(F64), T(F64), 0, 0, 0, 0}, a_8x4_f64, b_4x8_f64, c_8x8, 0},
    {{8, 8, 16, T(S32), T(S8), T(S8), T(S32), 0, 0, 0, 0}, a_8x16_int, b_16x8_int, c_8x8, 0},
    {{16, 8, 16, T(S32), T(U8), T(S8), T(S32), 0, 0, 0, 0}, a_16x16_int, b_16x8_int, c_16x8, 0},
    {{16, 8, 32, T(S32), T(S8), T(U8), T(S32), 0, 0, 0, 0}, a_16x32_int, b_32x8_int, c_16x8, 0},
    {{16, 8, 32, T(S32), T(U8), T(U8), T(S32), 0, 0, 1, 0}, a_16x32_int, b_32x8_int, c_16x8, 0},
    {{16, 8, 32, T(S32), T(S8), T(S8), T(S32), 0, 0, 1, 0}, a_16x32_int, b_32x8_int, c_16x8, 0},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static int bits_of(enum gpusim_num_type type) {
    switch (type) {
    case T(F16):
    case T(BF16):
        return 16;
    case T(S8):
    case T(U8):
        return 8;
    case T(F64):
        return 64;
    default:
        return 32;
    }
}
static struct format format_of(enum gpusim_num_type type) {
    switch (type) {
    case T(F16):
        return f16_format;
    case T(BF16):
        return bf16_format;
    case T(F64):
        return f64_format;
    default:
        return f32_format;
    }
}

/* Registers of one operand: up to 8 of 32 lanes of up to 64 bits. */
struct fragment {
    uint64_t words[8][32]; /* as uint32_t[32] for all types but f64 */
    void *regs[8];
};
static void fragment_init(struct fragment *f) {
    memset(f, 0, sizeof *f);
    for (int r = 0; r < 8; r++) f->regs[r] = f->words[r];
}
static void put(struct fragment *f, enum gpusim_num_type type, int lane, int i, uint64_t value) {
    int bits = bits_of(type), per = bits == 64 ? 1 : 32 / bits;
    if (bits == 64) {
        f->words[i][lane] = value;
        return;
    }
    uint32_t *word = (uint32_t *)f->words[i / per] + lane;
    *word |= (uint32_t)value << bits * (i % per);
}
static uint64_t get(const struct fragment *f, enum gpusim_num_type type, int lane, int i) {
    int bits = bits_of(type), per = bits == 64 ? 1 : 32 / bits;
    if (bits == 64) return f->words[i][lane];
    uint32_t word = ((const uint32_t *)f->words[i / per])[lane] >> bits * (i % per);
    return bits == 32 ? word : word & ((1u << bits) - 1);
}

/* The value and the exponent that the rule aligns by. */
static double value_of(uint64_t x, enum gpusim_num_type type, int *exponent) {
    struct format f = format_of(type);
    if (type == T(TF32)) x &= ~0x1fffull; /* stays in f32's format */
    double sign = x & format_sign(f) ? -1 : 1;
    if (format_is_nan(x, f)) return NAN;
    if (format_is_infinite(x, f)) return sign * INFINITY;
    int e;
    uint64_t m = format_mantissa(x, f, &e);
    *exponent = m ? e + f.mantissa_bits : -126;
    return sign * ldexp((double)m, e);
}

static uint64_t rounded_f32(double s) {
    if (s == 0) return 0;
    int e;
    frexp(s, &e);
    e = e - 1 < -126 ? -126 : e - 1;
    double kept = trunc(ldexp(s, 23 - e));
    if (kept == 0) return 0;
    double value = ldexp(kept, e - 23);
    float r = fabs(value) >= 0x1p128 ? (value > 0 ? INFINITY : -INFINITY) : (float)value;
    uint32_t bits;
    memcpy(&bits, &r, 4);
    return bits;
}
static uint64_t rounded_f16(double s) {
    int e;
    frexp(s, &e);
    e = e - 1 < -14 ? -14 : e - 1;
    double kept = rint(ldexp(s, 10 - e));
    if (s == 0 || kept == 0) return 0;
    uint64_t sign = s < 0 ? 0x8000 : 0, size = (uint64_t)fabs(kept); /* at most 2048 */
    if (size == 2048) size = 1024, e++;
    if (e > 15) return sign | 0x7c00;
    return sign | (size < 1024 ? size : size + ((uint64_t)(e + 14) << 10));
}

/* c_type: the accumulator's; the sums between chunks have D's. */
static uint64_t dot_from(uint64_t c, enum gpusim_num_type c_type, const uint64_t *a, const uint64_t *b,
                         const struct shape *shape) {
    enum gpusim_num_type out = shape->mma.d, in = shape->mma.a;
    for (int k0 = 0; k0 < shape->mma.k; k0 += shape->chunk) {
        double sig[17], plain = 0;
        int exps[17], most, n = 0;
        double cv = value_of(c, k0 ? out : c_type, &exps[n]);
        if (!k0 && c_type != out && cv != 0 && !isnan(cv) && !isinf(cv))
            exps[n] = ilogb(cv); /* C is made D's type first */
        plain = cv;
        sig[n] = cv, n++;
        for (int k = k0; k < k0 + shape->chunk; k++, n++) {
            int ea = 0, eb = 0;
            double x = value_of(a[k], in, &ea), y = value_of(b[k], in, &eb);
            sig[n] = x * y, exps[n] = ea + eb;
            plain += sig[n];
        }
        if (isnan(plain)) return out == T(F16) ? 0x7fff : 0x7fffffff;
        if (isinf(plain)) {
            c = (plain < 0 ? format_sign(format_of(out)) : 0) | format_infinity(format_of(out));
            continue;
        }
        most = exps[0];
        for (int i = 1; i < n; i++) most = exps[i] > most ? exps[i] : most;
        double sum = 0;
        for (int i = 0; i < n; i++) sum += trunc(ldexp(sig[i], 24 - most));
        sum = ldexp(sum, most - 24);
        c = out == T(F16) ? rounded_f16(sum) : rounded_f32(sum);
    }
    return c;
}

static uint64_t reference(uint64_t c, const uint64_t *a, const uint64_t *b, const struct shape *shape) {
    const struct gpusim_num_mma *mma = &shape->mma;
    if (mma->d == T(F64)) {
        double s, x, y;
        memcpy(&s, &c, 8);
        for (int k = 0; k < 4; k++) memcpy(&x, &a[k], 8), memcpy(&y, &b[k], 8), s = fma(x, y, s);
        memcpy(&c, &s, 8);
        return c;
    }
    if (mma->d != T(S32)) return dot_from(c, mma->c, a, b, shape);
    int64_t s = (int32_t)c;
    for (int k = 0; k < mma->k; k++)
        s += (mma->a == T(S8) ? (int8_t)a[k] : (int64_t)a[k]) * (mma->b == T(S8) ? (int8_t)b[k] : (int64_t)b[k]);
    if (mma->satfinite) s = s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s;
    return (uint32_t)s;
}

/* Kinds of data, each a way in which tensor cores could go wrong. */
enum data { EVERYDAY, WIDE, ANY, SMALL, LARGE, SPARSE, CANCELLING, ZERO_A, N_DATA };
static uint64_t element(enum gpusim_num_type type, enum data data, uint64_t *state) {
    if (type == T(S32)) {
        uint64_t r = random64(state);
        return (uint32_t)(r & 3 ? r >> 8 : r & 4 ? 0x7fffffff - (r >> 40) : 0x80000000 + (r >> 40));
    }
    if (bits_of(type) == 8) return random64(state) & 255;
    struct format f = format_of(type);
    uint64_t r = random64(state), x = r & (2 * format_sign(f) - 1), one = (uint64_t)format_bias(f);
    uint64_t mantissa = x & ((1ull << f.mantissa_bits) - 1), sign = x & format_sign(f);
    uint64_t range = random64(state);
    switch (data) {
    case EVERYDAY:
        return sign | mantissa | (one - 1 - range % 4) << f.mantissa_bits;
    case WIDE:
        return sign | mantissa | (one - 8 + range % 16) << f.mantissa_bits;
    case SMALL:
        return sign | mantissa | range % 5 << f.mantissa_bits;
    case LARGE:
        return sign | mantissa | (2 * one - range % 5) << f.mantissa_bits;
    case SPARSE:
        return range % 3 ? sign : sign | mantissa | one << f.mantissa_bits;
    case ZERO_A:
        return x & ~(1ull << f.mantissa_bits); /* B and C: anything finite */
    case CANCELLING:
        return sign | (mantissa & 3) | one << f.mantissa_bits;
    default:
        return range % 20 ? x : random_number(f, state);
    }
}

static int same(uint64_t x, uint64_t y, enum gpusim_num_type type) {
    return x == y || (type == T(F64) && format_is_nan(x, f64_format) && format_is_nan(y, f64_format));
}

static void check(const struct shape *shape, gpusim_num_mma_fn *fn, enum data data, uint64_t *state, const char *isa) {
    const struct gpusim_num_mma *mma = &shape->mma;
    static uint64_t a[16][32], b[8][32], c[16][8];
    struct fragment fa, fb, fc, fd;
    fragment_init(&fa), fragment_init(&fb), fragment_init(&fc), fragment_init(&fd);
    for (int i = 0; i < mma->m; i++)
        for (int k = 0; k < mma->k; k++) a[i][k] = data == ZERO_A ? 0 : element(mma->a, data, state);
    for (int j = 0; j < 8; j++)
        for (int k = 0; k < mma->k; k++) b[j][k] = element(mma->b, data, state);
    for (int i = 0; i < mma->m; i++)
        for (int j = 0; j < 8; j++) c[i][j] = data == SPARSE ? 0 : element(mma->c, data, state);
    for (int l = 0; l < 32; l++) {
        for (int i = 0; i < mma->m * mma->k / 32; i++) {
            struct place p = shape->a(l, i);
            put(&fa, mma->a, l, i, a[p.row][p.column]);
        }
        for (int i = 0; i < mma->k * 8 / 32; i++) {
            struct place p = shape->b(l, i);
            put(&fb, mma->b, l, i, b[p.column][p.row]);
        }
        for (int i = 0; i < mma->m * 8 / 32; i++) {
            struct place p = shape->c(l, i);
            put(&fc, mma->c, l, i, c[p.row][p.column]);
        }
    }
    fn(fd.regs, (const void *const *)fa.regs, (const void *const *)fb.regs, (const void *const *)fc.regs);
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < mma->m * 8 / 32; i++) {
            struct place p = shape->c(l, i);
            uint64_t got = get(&fd, mma->d, l, i), want = reference(c[p.row][p.column], a[p.row], b[p.column], shape);
            if (!same(got, want, mma->d))
                fail_msg("%s m%dn%dk%d types %d %d, data %d, row %d column %d: got %llx, expected %llx", isa, mma->m,
                         mma->n, mma->k, (int)mma->a, (int)mma->d, (int)data, p.row, p.column, (unsigned long long)got,
                         (unsigned long long)want);
        }
    /* d may be c */
    fn(fc.regs, (const void *const *)fa.regs, (const void *const *)fb.regs, (const void *const *)fc.regs);
    assert_memory_equal(fc.words, fd.words, sizeof fc.words);
}

static void test_shapes(void **state) {
    (void)state;
    for (int i = 0; i < N_ISAS; i++) {
        if (!gpusim_num_use(isas[i])) continue;
        for (int s = 0; s < N_SHAPES; s++) {
            uint64_t seed = 1;
            gpusim_num_mma_fn *fn = gpusim_num_mma(&shapes[s].mma);
            assert_non_null(fn);
            for (int data = 0; data < N_DATA; data++)
                for (int n = 0; n < 150; n++) check(&shapes[s], fn, (enum data)data, &seed, isas[i]);
        }
    }
}

/* m8n8k4 of f16: four products by lanes 0-3 and 16-19, 4-7 and 20-23, ... Places as the PTX ISA has them. */
static struct place quad_a(int lane, int i, int column_major) {
    int high = lane < 16 ? 0 : 4;
    return column_major ? (struct place){i % 4 + high, lane % 4} : (struct place){lane % 4 + high, i};
}
static struct place quad_b(int lane, int i, int row_major) {
    int high = lane < 16 ? 0 : 4;
    return row_major ? (struct place){lane % 4, i + high} : (struct place){i, lane % 4 + high};
}
static struct place quad_c(int lane, int i, enum gpusim_num_type type) {
    int high = lane < 16 ? 0 : 4;
    if (type == T(F16)) return (struct place){lane % 4 + high, i};
    return (struct place){(lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)};
}

static void check_quads(const struct shape *shape, enum data data, uint64_t *state) {
    const struct gpusim_num_mma *mma = &shape->mma;
    static uint64_t a[4][8][4], b[4][8][4], c[4][8][8];
    struct fragment fa, fb, fc, fd;
    fragment_init(&fa), fragment_init(&fb), fragment_init(&fc), fragment_init(&fd);
    for (int q = 0; q < 4; q++)
        for (int i = 0; i < 8; i++) {
            for (int k = 0; k < 4; k++)
                a[q][i][k] = element(T(F16), data, state), b[q][i][k] = element(T(F16), data, state);
            for (int k = 0; k < 8; k++) c[q][i][k] = element(mma->c, data, state);
        }
    for (int l = 0; l < 32; l++) {
        int q = l / 4 % 4;
        for (int i = 0; i < 4; i++) {
            struct place p = quad_a(l, i, mma->a_column), r = quad_b(l, i, mma->b_row);
            put(&fa, T(F16), l, i, a[q][p.row][p.column]);
            put(&fb, T(F16), l, i, b[q][r.column][r.row]);
        }
        for (int i = 0; i < 8; i++) {
            struct place p = quad_c(l, i, mma->c);
            put(&fc, mma->c, l, i, c[q][p.row][p.column]);
        }
    }
    gpusim_num_mma_fn *fn = gpusim_num_mma(mma);
    assert_non_null(fn);
    fn(fd.regs, (const void *const *)fa.regs, (const void *const *)fb.regs, (const void *const *)fc.regs);
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 8; i++) {
            struct place p = quad_c(l, i, mma->d);
            int q = l / 4 % 4;
            assert_int_equal(get(&fd, mma->d, l, i),
                             dot_from(c[q][p.row][p.column], mma->c, a[q][p.row], b[q][p.column], shape));
        }
}

static void test_quads(void **state) {
    (void)state;
    uint64_t seed = 2;
    for (int way = 0; way < 12; way++) {
        struct shape shape = {
            {8, 8, 4, T(F32), T(F16), T(F16), T(F32), way & 1, way >> 1 & 1, 0, 0}, NULL, NULL, NULL, 4};
        if (way >= 4) shape.mma.c = T(F16);
        if (way >= 8) shape.mma.d = T(F16);
        for (int data = 0; data < N_DATA; data++)
            for (int n = 0; n < 10; n++) check_quads(&shape, (enum data)data, &seed);
    }
}

/* The fast mode: f32 sums in the order of k, the same on every instruction set. */
static void test_fast(void **state) {
    (void)state;
    uint64_t seed = 4;
    for (int s = 0; s < 8; s++)
        for (int n = 0; n < 300; n++) {
            struct fragment fa, fb, fc, fd;
            struct gpusim_num_mma mma = shapes[s].mma;
            float a[16][16], b[8][16], c[16][8];
            int e;
            mma.fast = true;
            fragment_init(&fa), fragment_init(&fb), fragment_init(&fc);
            for (int l = 0; l < 32; l++) {
                for (int i = 0; i < 16 * mma.k / 32; i++) {
                    struct place p = shapes[s].a(l, i);
                    uint64_t x = element(mma.a, EVERYDAY, &seed);
                    put(&fa, mma.a, l, i, x), a[p.row][p.column] = (float)value_of(x, mma.a, &e);
                }
                for (int i = 0; i < mma.k * 8 / 32; i++) {
                    struct place p = shapes[s].b(l, i);
                    uint64_t x = element(mma.b, EVERYDAY, &seed);
                    put(&fb, mma.b, l, i, x), b[p.column][p.row] = (float)value_of(x, mma.b, &e);
                }
                for (int i = 0; i < 4; i++) {
                    struct place p = shapes[s].c(l, i);
                    uint64_t x = element(mma.c, EVERYDAY, &seed);
                    put(&fc, mma.c, l, i, x), c[p.row][p.column] = (float)value_of(x, mma.c, &e);
                }
            }
            for (int isa = 0; isa < N_ISAS; isa++) {
                if (!gpusim_num_use(isas[isa])) continue;
                fragment_init(&fd);
                gpusim_num_mma (&mma)(fd.regs, (const void *const *)fa.regs, (const void *const *)fb.regs,
                                      (const void *const *)fc.regs);
                for (int l = 0; l < 32; l++)
                    for (int i = 0; i < 4; i++) {
                        struct place p = shapes[s].c(l, i);
                        float sum = c[p.row][p.column];
                        for (int k = 0; k < mma.k; k++) sum += a[p.row][k] * b[p.column][k];
                        float got = (float)value_of(get(&fd, mma.d, l, i), mma.d, &e);
                        if (mma.d == T(F16) ? fabsf(got - sum) > fmaxf(fabsf(sum) * 0x1p-11f, 0x1p-25f) : got != sum)
                            fail_msg("%s shape %d: %a, expected %a", isas[isa], s, (double)got, (double)sum);
                    }
            }
        }
}

static void test_offered(void **state) {
    (void)state;
    for (int s = 0; s < N_SHAPES; s++) {
        struct gpusim_num_mma mma = shapes[s].mma;
        struct gpusim_num_mma_registers r = gpusim_num_mma_registers(&mma);
        int in_a = bits_of(mma.a) == 64 ? 64 : 32;
        assert_int_equal(r.a, mma.m * mma.k * bits_of(mma.a) / 32 / in_a);
        assert_int_equal(r.b, 8 * mma.k * bits_of(mma.b) / 32 / in_a);
        assert_int_equal(r.d, mma.m * 8 * bits_of(mma.d) / 32 / (bits_of(mma.d) == 64 ? 64 : 32));
        mma.a_column = true;
        assert_null(gpusim_num_mma(&mma));
        mma = shapes[s].mma, mma.k = 64;
        assert_null(gpusim_num_mma(&mma));
        mma = shapes[s].mma, mma.b = T(U32);
        assert_null(gpusim_num_mma(&mma));
    }
    struct gpusim_num_mma quads = {8, 8, 4, T(F32), T(F16), T(F16), T(F16), 0, 0, 0, 0};
    struct gpusim_num_mma_registers r = gpusim_num_mma_registers(&quads);
    assert_true(r.d == 8 && r.a == 2 && r.b == 2 && r.c == 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_quads),
                                       cmocka_unit_test(test_fast), cmocka_unit_test(test_offered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
