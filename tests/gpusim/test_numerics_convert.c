/* cvt between all types against exact arithmetic; exhaustive from 16-bit floats. */
#include "exact.h"

#define T(X) GPUSIM_NUM_##X
enum { BATCHES = 100000 / 32 };

struct type {
    enum gpusim_num_type type;
    struct format format; /* floats */
    int bits, is_signed;  /* integers: is_signed 0 or 1; floats: -1 */
};
static const struct type types[] = {
    {T(F16), {5, 10}, 16, -1}, {T(BF16), {8, 7}, 16, -1}, {T(F32), {8, 23}, 32, -1}, {T(F64), {11, 52}, 64, -1},
    {T(S8), {0, 0}, 8, 1},     {T(U8), {0, 0}, 8, 0},     {T(S16), {0, 0}, 16, 1},   {T(U16), {0, 0}, 16, 0},
    {T(S32), {0, 0}, 32, 1},   {T(U32), {0, 0}, 32, 0},   {T(S64), {0, 0}, 64, 1},   {T(U64), {0, 0}, 64, 0},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

static uint64_t low_bits(uint64_t x, int n) { return n == 64 ? x : x & ((1ull << n) - 1); }
static uint64_t flushed(uint64_t x, struct format f) { return x & format_infinity(f) ? x : x & format_sign(f); }
/* As a lane holds it: integers extended to the lane. */
static uint64_t in_lane(uint64_t x, const struct type *t) {
    x = low_bits(x, t->bits);
    if (t->is_signed == 1 && t->bits < 32 && x >> (t->bits - 1)) x |= ~0ull << t->bits;
    return t->bits == 64 ? x : x & 0xffffffff;
}

static uint64_t clamped(const struct type *to, int negative, u128 size, int huge) {
    u128 most = ((u128)1 << (to->bits - to->is_signed)) - 1;
    if (negative && !to->is_signed) return 0;
    if (huge || size > most + (u128)(negative ? 1 : 0)) size = most + (u128)(negative ? 1 : 0);
    return in_lane(negative ? 0 - (uint64_t)size : (uint64_t)size, to);
}

static uint64_t finished(uint64_t r, const struct type *to, unsigned flags) {
    struct format f = to->format;
    uint64_t one = (uint64_t)format_bias(f) << f.mantissa_bits;
    if (flags & GPUSIM_NUM_FTZ && to->type == T(F32)) r = flushed(r, f);
    if (flags & GPUSIM_NUM_SAT && (r & format_sign(f) || format_is_nan(r, f))) return 0;
    if (flags & GPUSIM_NUM_SAT && r > one) return one;
    if (flags & GPUSIM_NUM_RELU && r & format_sign(f) && !format_is_nan(r, f)) return 0;
    return r;
}

static uint64_t nan_for(uint64_t x, const struct type *to, const struct type *from) {
    if (to->bits == 16) return 0x7fff;
    if (to->bits == 32) return 0x7fffffff;
    if (from->bits == 64) return x | 1ull << 51;
    if (from->type == T(F32)) return (x >> 31) << 63 | 0x7ffull << 52 | (x & 0x7fffff) << 29 | 1ull << 51;
    return 0x7fffffffe0000000ull; /* from f16 and bf16: the f32 NaN 0x7fffffff */
}

static uint64_t from_float(uint64_t x, const struct type *to, const struct type *from,
                           enum gpusim_num_rounding rounding, unsigned flags) {
    struct format f = from->format;
    int integral = rounding >= GPUSIM_NUM_RNI;
    if (from->type == T(F32) && flags & GPUSIM_NUM_FTZ) x = flushed(x, f);
    if (format_is_nan(x, f)) {
        if (to->is_signed < 0) return finished(nan_for(x, to, from), to, flags);
        return from->bits < 64 && to->bits < 64 ? 0 : in_lane(1ull << (to->bits - 1), to);
    }
    int negative = (x & format_sign(f)) != 0;
    if (format_is_infinite(x, f)) {
        if (to->is_signed >= 0) return clamped(to, negative, 0, 1);
        return finished(format_infinity(to->format) | (negative ? format_sign(to->format) : 0), to, flags);
    }
    struct exact v = exact_number(x, f);
    if (integral && exact_top(&v) < EXACT_ONE + 80)
        v = exact_of(negative, exact_rounded_at(&v, EXACT_ONE, rounding), 0);
    if (to->is_signed < 0) return finished(exact_round(&v, to->format, rounding), to, flags);
    int huge = exact_top(&v) >= EXACT_ONE + 80;
    return clamped(to, negative, huge ? 0 : exact_rounded_at(&v, EXACT_ONE, GPUSIM_NUM_RZ), huge);
}

static uint64_t from_integer(uint64_t x, const struct type *to, const struct type *from,
                             enum gpusim_num_rounding rounding, unsigned flags) {
    x = low_bits(x, from->bits);
    int negative = from->is_signed && x >> (from->bits - 1);
    uint64_t size = negative ? low_bits(0 - x, from->bits) : x;
    if (to->is_signed < 0) {
        struct exact v = exact_of(negative, size, 0);
        return finished(exact_round(&v, to->format, rounding), to, flags);
    }
    return flags & GPUSIM_NUM_SAT ? clamped(to, negative, size, 0) : in_lane(negative ? 0 - size : size, to);
}

static uint64_t expected(uint64_t x, const struct type *to, const struct type *from, enum gpusim_num_rounding rounding,
                         unsigned flags) {
    return from->is_signed < 0 ? from_float(x, to, from, rounding, flags) : from_integer(x, to, from, rounding, flags);
}

static uint64_t random_source(const struct type *t, uint64_t *state) {
    uint64_t r = random64(state), x = random64(state);
    if (t->is_signed >= 0) return r & 3 ? x >> (r >> 8) % 64 : 0 - (x >> (r >> 8) % 64);
    if (r % 4) return random_number(t->format, state);
    /* numbers of the size of integers, halves among them */
    uint64_t bias = (uint64_t)format_bias(t->format);
    uint64_t exponent = (bias + (r >> 8) % 67 - 2) % (2 * bias + 1);
    uint64_t fraction = (1ull << t->format.mantissa_bits) - 1;
    fraction &= r >> 32 & 1 ? fraction : ~(fraction >> (r >> 40) % 24);
    return (x & format_sign(t->format)) | exponent << t->format.mantissa_bits | (x & fraction);
}

union lanes {
    uint32_t w32[32];
    uint64_t w64[32];
};

/* sources: NULL for random ones. */
static int check(const struct type *to, const struct type *from, enum gpusim_num_rounding rounding, unsigned flags,
                 int exhaustive) {
    gpusim_num_fn *fns[N_ISAS] = {NULL};
    uint64_t state = 7;
    for (int i = 0; i < N_ISAS; i++)
        if (gpusim_num_use(isas[i])) fns[i] = gpusim_num_convert(to->type, from->type, rounding, flags);
    if (!fns[0]) return 0;
    /* The rare ones share one function: fewer numbers do. */
    int batches = exhaustive ? 65536 / 32 : fns[0] == fns[2] || fns[0] == fns[1] ? BATCHES / 10 : BATCHES;
    for (int batch = 0; batch < batches; batch++) {
        union lanes x, got;
        uint64_t v[32], want[32];
        for (int l = 0; l < 32; l++) {
            v[l] = exhaustive ? (uint64_t)(batch * 32 + l) : random_source(from, &state);
            if (from->bits == 64)
                x.w64[l] = v[l];
            else
                x.w32[l] = (uint32_t)v[l]; /* what is above the type's bits does not count */
            v[l] = low_bits(v[l], from->bits);
            want[l] = expected(v[l], to, from, rounding, flags);
        }
        for (int i = 0; i < N_ISAS; i++) {
            if (!fns[i] || (i && fns[i] == fns[0])) continue;
            uint32_t mask = batch % 4 ? ~0u : (uint32_t)random64(&state);
            memset(&got, 0x5a, sizeof got);
            fns[i](&got, &x, NULL, NULL, mask);
            for (int l = 0; l < 32; l++) {
                uint64_t g = to->bits == 64 ? got.w64[l] : got.w32[l];
                uint64_t w = mask >> l & 1 ? want[l] : to->bits == 64 ? 0x5a5a5a5a5a5a5a5aull : 0x5a5a5a5a;
                if (g != w)
                    fail_msg("%s to %d from %d rounding %d flags %u of %llx: got %llx, expected %llx", isas[i],
                             (int)to->type, (int)from->type, (int)rounding, flags, (unsigned long long)v[l],
                             (unsigned long long)g, (unsigned long long)w);
            }
        }
    }
    return 1;
}

static void test_all(void **state) {
    (void)state;
    int n = 0;
    for (int to = 0; to < N_TYPES; to++)
        for (int from = 0; from < N_TYPES; from++)
            for (int r = 0; r < 9; r++)
                for (unsigned flags = 0; flags < 8; flags++)
                    n += check(&types[to], &types[from], (enum gpusim_num_rounding)r, flags, 0);
    /* 32 float -> integer pairs, 4 roundings, 4 flags; 32 integer -> float and 16 float -> float, bf16 without .sat;
     * 4 to itself rounded to integers; 64 between integers; 4 with .relu */
    assert_int_equal(n, 32 * 16 + 8 * 4 * (4 * 3 + 2) + 4 * 4 * (4 * 3 + 2) + 4 * (4 * 3 + 2) + 64 * 2 + 4);
}

static void test_exhaustive(void **state) {
    (void)state;
    for (int from = 0; from < 2; from++)
        for (int to = 0; to < N_TYPES; to++)
            for (int r = 0; r < 9; r++) check(&types[to], &types[from], (enum gpusim_num_rounding)r, 0, 1);
}

static gpusim_num_fn *must_convert(enum gpusim_num_type to, enum gpusim_num_rounding rounding, unsigned flags) {
    gpusim_num_fn *fn = gpusim_num_convert(to, T(F32), rounding, flags);
    assert_non_null(fn);
    return fn;
}

/* All bf16 numbers with what decides rounding below them; pairs from two registers, a high. */
static void test_pairs(void **state) {
    (void)state;
    static const uint32_t below[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1000, 0x0fff};
    for (int i = 0; i < N_ISAS; i++) {
        if (!gpusim_num_use(isas[i])) continue;
        for (int r = 0; r < 2; r++)
            for (unsigned flags = 0; flags <= GPUSIM_NUM_RELU; flags += GPUSIM_NUM_RELU) {
                enum gpusim_num_rounding rounding = (enum gpusim_num_rounding)r;
                gpusim_num_fn *bf16 = must_convert(T(BF16X2), rounding, flags),
                              *f16 = must_convert(T(F16X2), rounding, flags);
                for (uint32_t n = 0; n < 65536 * 8; n += 32) {
                    uint32_t a[32], b[32], d[32], e[32];
                    for (uint32_t l = 0; l < 32; l++)
                        a[l] = (n + l) / 8 << 16 | below[l % 8], b[l] = (n + l) * 0x9e3779b9u;
                    bf16(d, a, b, NULL, ~0u), f16(e, a, b, NULL, ~0u);
                    for (int l = 0; l < 32; l++) {
                        uint32_t x = (uint32_t)(expected(a[l], &types[1], &types[2], rounding, flags) << 16 |
                                                expected(b[l], &types[1], &types[2], rounding, flags));
                        uint32_t y = (uint32_t)(expected(a[l], &types[0], &types[2], rounding, flags) << 16 |
                                                expected(b[l], &types[0], &types[2], rounding, flags));
                        if (d[l] != x || e[l] != y)
                            fail_msg("%s %x %x: %x %x, expected %x %x", isas[i], a[l], b[l], d[l], e[l], x, y);
                    }
                    if (i != 2 && n % 4096 == 0) n += 32 * 15; /* the widest takes all */
                }
            }
    }
}

static void test_tf32(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < N_ISAS; i++) {
        if (!gpusim_num_use(isas[i])) continue;
        gpusim_num_fn *fn = must_convert(T(TF32), GPUSIM_NUM_RNA, 0);
        for (int n = 0; n < BATCHES; n++) {
            uint32_t a[32], d[32];
            for (int l = 0; l < 32; l++) {
                a[l] = (uint32_t)random_number(f32_format, &seed);
                if (n % 2) a[l] = (a[l] & ~0x1fffu) | (0x0fff + (uint32_t)(random64(&seed) % 3)); /* around ties */
            }
            fn(d, a, NULL, NULL, ~0u);
            for (int l = 0; l < 32; l++) {
                uint32_t want = 0x7fffffff;
                if (!format_is_nan(a[l], f32_format)) {
                    struct exact v = exact_number(a[l], f32_format);
                    want = format_is_infinite(a[l], f32_format)
                               ? a[l]
                               : (uint32_t)exact_round(&v, tf32_format, GPUSIM_NUM_RNA) << 13;
                }
                if (d[l] != want) fail_msg("%s %x: %x, expected %x", isas[i], a[l], d[l], want);
            }
        }
    }
    assert_null(gpusim_num_convert(T(TF32), T(F32), GPUSIM_NUM_RN, 0));
    assert_null(gpusim_num_convert(T(F32), T(TF32), GPUSIM_NUM_RN, 0));
    assert_null(gpusim_num_convert(T(F32), T(S32), (enum gpusim_num_rounding)9, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_exhaustive),
                                       cmocka_unit_test(test_pairs), cmocka_unit_test(test_tf32)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
