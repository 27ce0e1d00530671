/* add, sub, mul, fma, div, rcp, sqrt, min, max, abs, neg, copysign of all float types, roundings and flags against
 * exact arithmetic. */
#include "exact.h"

enum { N = 100000, BATCHES = N / 32 };
enum { NAN_RESULT = 1, INFINITE, FINITE };

/* The result before rounding. */
struct outcome {
    int kind;
    struct exact value; /* INFINITE: its sign only */
    int zero_signs;     /* of an exact zero: bit 0 the first term's sign, bit 1 the second's */
};

static int is_zero(uint64_t x, struct format f) { return !(x & (format_sign(f) - 1)); }
static int sign_of(uint64_t x, struct format f) { return (x & format_sign(f)) != 0; }

static void outcome_fma(struct outcome *o, uint64_t a, uint64_t b, uint64_t c, struct format f) {
    int sign_p = sign_of(a, f) ^ sign_of(b, f), sign_c = sign_of(c, f), ea, eb;
    int infinite_p = format_is_infinite(a, f) || format_is_infinite(b, f), infinite_c = format_is_infinite(c, f);
    o->kind = FINITE;
    o->zero_signs = sign_p | sign_c << 1;
    if (format_is_nan(a, f) || format_is_nan(b, f) || format_is_nan(c, f) ||
        (infinite_p && (is_zero(a, f) || is_zero(b, f))) || (infinite_p && infinite_c && sign_p != sign_c)) {
        o->kind = NAN_RESULT;
    } else if (infinite_p || infinite_c) {
        o->kind = INFINITE;
        o->value.negative = infinite_p ? sign_p : sign_c;
    } else {
        u128 m = (u128)format_mantissa(a, f, &ea) * format_mantissa(b, f, &eb);
        struct exact p = exact_of(sign_p, m, ea + eb), q = exact_number(c, f);
        o->value = exact_sum(&p, &q);
    }
}

static void outcome_div(struct outcome *o, uint64_t a, uint64_t b, struct format f) {
    int sign = sign_of(a, f) ^ sign_of(b, f), ea, eb;
    o->kind = FINITE;
    o->zero_signs = sign | sign << 1;
    o->value.negative = sign;
    if (format_is_nan(a, f) || format_is_nan(b, f) || (format_is_infinite(a, f) && format_is_infinite(b, f)) ||
        (is_zero(a, f) && is_zero(b, f))) {
        o->kind = NAN_RESULT;
    } else if (format_is_infinite(a, f) || is_zero(b, f)) {
        o->kind = INFINITE;
    } else if (format_is_infinite(b, f) || is_zero(a, f)) {
        o->value = exact_of(sign, 0, 0);
    } else {
        uint64_t m = format_mantissa(a, f, &ea), n = format_mantissa(b, f, &eb);
        int up = 60 + __builtin_clzll(m) - 11; /* at least 56 bits of quotient */
        u128 wide = (u128)m << up;
        o->value = exact_of(sign, wide / n, ea - eb - up);
        /* The rest is not zero but below everything that rounding looks at by itself. */
        if (wide % n) o->value.words[0] |= 1;
    }
}

/* The root by bisection over numbers of the format's bits and some more: largest r with r * r <= a. */
static void outcome_sqrt(struct outcome *o, uint64_t a, struct format f) {
    int e, negative = sign_of(a, f);
    o->kind = FINITE;
    o->zero_signs = negative * 3;
    if (format_is_nan(a, f) || (negative && !is_zero(a, f))) {
        o->kind = NAN_RESULT;
    } else if (format_is_infinite(a, f)) {
        o->kind = INFINITE;
        o->value.negative = 0;
    } else {
        uint64_t m = format_mantissa(a, f, &e), r = 0;
        int up = m ? __builtin_clzll(m) + 54 : 0;
        up += (e - up) & 1;
        u128 wide = (u128)m << up;
        for (int bit = 60; bit >= 0; bit--) {
            uint64_t next = r | 1ull << bit;
            if ((u128)next * next <= wide) r = next;
        }
        o->value = exact_of(negative, r, (e - up) / 2);
        if ((u128)r * r != wide) o->value.words[0] |= 1;
    }
}

static uint64_t flushed(uint64_t x, struct format f) { return x & format_infinity(f) ? x : x & format_sign(f); }

struct type {
    enum gpusim_num_type type;
    struct format format;
    int bits, pair;
};
static const struct type types[] = {
    {GPUSIM_NUM_F16, {5, 10}, 16, 0},   {GPUSIM_NUM_F16X2, {5, 10}, 16, 1}, {GPUSIM_NUM_BF16, {8, 7}, 16, 0},
    {GPUSIM_NUM_BF16X2, {8, 7}, 16, 1}, {GPUSIM_NUM_F32, {8, 23}, 32, 0},   {GPUSIM_NUM_F64, {11, 52}, 64, 0},
};

static uint64_t nan_of(const struct type *t, const uint64_t *x, int n) {
    if (t->bits == 16) return 0x7fff;
    if (t->bits == 32) return 0x7fffffff;
    for (int i = 0; i < n; i++)
        if (format_is_nan(x[i], t->format)) return x[i] | 1ull << 51;
    return 0xfff8000000000000ull;
}

static int n_operands(enum gpusim_num_op op) {
    if (op == GPUSIM_NUM_FMA) return 3;
    return op == GPUSIM_NUM_RCP || op == GPUSIM_NUM_SQRT || op == GPUSIM_NUM_ABS || op == GPUSIM_NUM_NEG ? 1 : 2;
}

static uint64_t finished(uint64_t r, const struct type *t, unsigned flags) {
    struct format f = t->format;
    uint64_t one = (uint64_t)format_bias(f) << f.mantissa_bits;
    if (flags & GPUSIM_NUM_FTZ) r = flushed(r, f);
    if (flags & GPUSIM_NUM_SAT && (sign_of(r, f) || format_is_nan(r, f))) return 0;
    if (flags & GPUSIM_NUM_SAT && r > one) return one;
    if (flags & GPUSIM_NUM_RELU && sign_of(r, f) && !format_is_nan(r, f)) return 0;
    return r;
}

static uint64_t rounded(const struct outcome *o, const struct type *t, enum gpusim_num_rounding rounding,
                        const uint64_t *x, int n) {
    struct format f = t->format;
    if (o->kind == NAN_RESULT) return nan_of(t, x, n);
    if (o->kind == INFINITE) return format_infinity(f) | (o->value.negative ? format_sign(f) : 0);
    if (exact_is_zero(&o->value)) {
        int negative = rounding == GPUSIM_NUM_RM ? o->zero_signs != 0 : o->zero_signs == 3;
        return negative ? format_sign(f) : 0;
    }
    return exact_round(&o->value, f, rounding);
}

static void outcome_of(struct outcome *o, enum gpusim_num_op op, const uint64_t *x, struct format f) {
    uint64_t one = (uint64_t)format_bias(f) << f.mantissa_bits, sign = format_sign(f);
    switch (op) {
    case GPUSIM_NUM_ADD:
        outcome_fma(o, x[0], one, x[1], f);
        break;
    case GPUSIM_NUM_SUB:
        outcome_fma(o, x[0], one, x[1] ^ sign, f);
        break;
    case GPUSIM_NUM_MUL:
        outcome_fma(o, x[0], x[1], (x[0] ^ x[1]) & sign, f);
        break;
    case GPUSIM_NUM_FMA:
        outcome_fma(o, x[0], x[1], x[2], f);
        break;
    case GPUSIM_NUM_DIV:
        outcome_div(o, x[0], x[1], f);
        break;
    case GPUSIM_NUM_RCP:
        outcome_div(o, one, x[0], f);
        break;
    default:
        outcome_sqrt(o, x[0], f);
        break;
    }
}

/* Lanes of up to 64 bits. */
union lanes {
    uint32_t w32[32];
    uint64_t w64[32];
};
static uint64_t lane(const union lanes *v, const struct type *t, int i) {
    if (t->bits == 64) return v->w64[i];
    if (t->bits == 32) return v->w32[i];
    return t->pair ? v->w32[i / 2] >> 16 * (i % 2) & 0xffff : v->w32[i];
}
static void set_lane(union lanes *v, const struct type *t, int i, uint64_t x) {
    if (t->bits == 64)
        v->w64[i] = x;
    else if (t->pair)
        v->w32[i / 2] = i % 2 ? (v->w32[i / 2] & 0xffff) | (uint32_t)x << 16 : (uint32_t)x;
    else
        v->w32[i] = (uint32_t)x;
}

/* Runs fn with a random mask, d one of the operands or apart; lanes outside the mask must stay. */
static void run(gpusim_num_fn *fn, union lanes *d, const union lanes *x, int n, const struct type *t, uint64_t *state) {
    uint64_t r = random64(state);
    uint32_t mask = r & 1 ? ~0u : (uint32_t)(r >> 32);
    union lanes full, copy[3];
    fn(full.w32, &x[0], n > 1 ? &x[1] : NULL, n > 2 ? &x[2] : NULL, ~0u);
    memcpy(copy, x, (size_t)n * sizeof *x);
    int alias = (int)(r >> 8 & 255) % n;
    fn(copy[alias].w32, &copy[0], n > 1 ? &copy[1] : NULL, n > 2 ? &copy[2] : NULL, mask);
    for (int l = 0; l < 32; l++) {
        const union lanes *want = mask >> l & 1 ? &full : &x[alias];
        if (t->bits == 64 ? copy[alias].w64[l] != want->w64[l] : copy[alias].w32[l] != want->w32[l])
            fail_msg("masked lane %d", l);
    }
    *d = full;
}

static void check_op(enum gpusim_num_op op, const struct type *t, unsigned flags) {
    gpusim_num_fn *fns[N_ISAS][4] = {{NULL}};
    int n = n_operands(op), n_lanes = t->pair ? 64 : 32, any = 0;
    uint64_t state = op * 100 + t->type * 10 + flags;
    for (int i = 0; i < N_ISAS; i++)
        for (int r = 0; r < 4; r++)
            if (gpusim_num_use(isas[i]))
                fns[i][r] = gpusim_num_arith(op, t->type, (enum gpusim_num_rounding)r, flags), any |= fns[i][r] != NULL;
    if (!any) return;
    for (int batch = 0; batch < BATCHES / (t->pair + 1); batch++) {
        union lanes x[3], got;
        struct outcome o[64];
        uint64_t operands[64][3];
        for (int l = 0; l < n_lanes; l++) {
            for (int i = 0; i < n; i++) operands[l][i] = random_number(t->format, &state);
            if (random64(&state) % 8 == 0)
                operands[l][1] = operands[l][0] ^ (random64(&state) & format_sign(t->format)),
                operands[l][2] = operands[l][1];
            for (int i = 0; i < n; i++) {
                set_lane(&x[i], t, l, operands[l][i]);
                if (flags & GPUSIM_NUM_FTZ) operands[l][i] = flushed(operands[l][i], t->format);
            }
            outcome_of(&o[l], op, operands[l], t->format);
        }
        for (int r = 0; r < 4; r++) {
            uint64_t want[64];
            if (!fns[0][r]) continue;
            for (int l = 0; l < n_lanes; l++)
                want[l] = finished(rounded(&o[l], t, (enum gpusim_num_rounding)r, operands[l], n), t, flags);
            for (int i = 0; i < N_ISAS; i++) {
                if (!fns[i][r]) continue;
                run(fns[i][r], &got, x, n, t, &state);
                for (int l = 0; l < n_lanes; l++)
                    if (lane(&got, t, l) != want[l])
                        fail_msg("%s op %d type %d rounding %d flags %u of %llx %llx %llx: got %llx, expected %llx",
                                 isas[i], (int)op, (int)t->type, r, flags, (unsigned long long)operands[l][0],
                                 n > 1 ? (unsigned long long)operands[l][1] : 0,
                                 n > 2 ? (unsigned long long)operands[l][2] : 0, (unsigned long long)lane(&got, t, l),
                                 (unsigned long long)want[l]);
            }
        }
    }
}

static void test_rounded(void **state) {
    (void)state;
    for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int op = GPUSIM_NUM_ADD; op <= GPUSIM_NUM_SQRT; op++)
            for (unsigned flags = 0; flags < 8; flags++) check_op((enum gpusim_num_op)op, &types[i], flags);
}

/* What sm_80 has, counted: a combination that went missing would not be tested above. */
static void test_offered(void **state) {
    (void)state;
    static const int expected[][7] = {{4, 4, 4, 6, 0, 0, 0}, {4, 4, 4, 6, 0, 0, 0},     {1, 1, 1, 2, 0, 0, 0},
                                      {1, 1, 1, 2, 0, 0, 0}, {16, 16, 16, 16, 8, 8, 8}, {4, 4, 4, 4, 4, 4, 4}};
    for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int op = GPUSIM_NUM_ADD; op <= GPUSIM_NUM_SQRT; op++) {
            int n = 0;
            for (int r = 0; r < 9; r++)
                for (unsigned flags = 0; flags < 16; flags++)
                    n += gpusim_num_arith((enum gpusim_num_op)op, types[i].type, (enum gpusim_num_rounding)r, flags) !=
                         NULL;
            if (n != expected[i][op]) fail_msg("type %u op %d: %d", i, op, n);
        }
    assert_null(gpusim_num_arith(GPUSIM_NUM_ADD, GPUSIM_NUM_S32, GPUSIM_NUM_RN, 0));
    assert_null(gpusim_num_arith(GPUSIM_NUM_N_OPS, GPUSIM_NUM_F32, GPUSIM_NUM_RN, 0));
    assert_null(gpusim_num_arith(GPUSIM_NUM_TANH_APPROX, GPUSIM_NUM_F32, GPUSIM_NUM_RN, GPUSIM_NUM_FTZ));
}

static double number(uint64_t x, struct format f) {
    int e;
    uint64_t m = format_mantissa(x, f, &e);
    double v = format_is_infinite(x, f) ? INFINITY : ldexp((double)m, e);
    return sign_of(x, f) ? -v : v;
}

/* The PTX ISA's pseudocode of min and max, with +0 above -0. */
static uint64_t selected(enum gpusim_num_op op, const uint64_t *x, const struct type *t, unsigned flags) {
    struct format f = t->format;
    uint64_t a = x[0], b = x[1];
    int nan_a = format_is_nan(a, f), nan_b = format_is_nan(b, f);
    if ((nan_a && nan_b) || ((flags & GPUSIM_NUM_NAN) && (nan_a || nan_b))) return nan_of(t, x, 2);
    if (nan_a) return b;
    if (nan_b) return a;
    double p = number(a, f), q = number(b, f);
    int a_above = p > q || (p == q && !sign_of(a, f));
    return (op == GPUSIM_NUM_MAX) == a_above ? a : b;
}

static void check_selecting(enum gpusim_num_op op, const struct type *t, unsigned flags, int *n_checked) {
    uint64_t state = op;
    for (int i = 0; i < N_ISAS; i++) {
        if (!gpusim_num_use(isas[i])) continue;
        gpusim_num_fn *fn = gpusim_num_arith(op, t->type, GPUSIM_NUM_RN, flags);
        if (!fn) return;
        *n_checked += i == 0;
        for (int batch = 0; batch < BATCHES; batch++) {
            union lanes x[2], got;
            uint64_t v[64][2];
            int n = n_operands(op), n_lanes = t->pair ? 64 : 32;
            for (int l = 0; l < n_lanes; l++)
                for (int k = 0; k < 2; k++) {
                    v[l][k] = random_number(t->format, &state);
                    set_lane(&x[k], t, l, v[l][k]);
                    if (flags & GPUSIM_NUM_FTZ) v[l][k] = flushed(v[l][k], t->format);
                }
            run(fn, &got, x, n, t, &state);
            for (int l = 0; l < n_lanes; l++) {
                uint64_t sign = format_sign(t->format), want;
                if (op == GPUSIM_NUM_ABS)
                    want = v[l][0] & ~sign;
                else if (op == GPUSIM_NUM_NEG)
                    want = v[l][0] ^ sign;
                else if (op == GPUSIM_NUM_COPYSIGN)
                    want = (v[l][0] & sign) | (v[l][1] & ~sign);
                else
                    want = selected(op, v[l], t, flags);
                if (lane(&got, t, l) != want)
                    fail_msg("%s op %d type %d flags %u of %llx %llx: got %llx, expected %llx", isas[i], (int)op,
                             (int)t->type, flags, (unsigned long long)v[l][0], (unsigned long long)v[l][1],
                             (unsigned long long)lane(&got, t, l), (unsigned long long)want);
            }
        }
    }
}

static void test_selecting(void **state) {
    (void)state;
    int n = 0;
    for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int op = GPUSIM_NUM_ABS; op <= GPUSIM_NUM_COPYSIGN; op++)
            for (unsigned flags = 0; flags < 16; flags++) check_selecting((enum gpusim_num_op)op, &types[i], flags, &n);
    assert_int_equal(n, 2 * 12 + 2 * 6 + 13 + 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounded), cmocka_unit_test(test_offered),
                                       cmocka_unit_test(test_selecting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
