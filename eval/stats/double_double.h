/* Numbers of twice a double's digits, as the sum of two doubles (Dekker 1971; Joldes, Muller and Popescu 2017): 106
 * bits, relative error of each operation below 2^-100. For sums whose digits cancel. */
#pragma once

#include <math.h>
#include <stddef.h>

struct lk_dd {
    double hi, lo; /* |lo| <= ulp(hi) / 2 */
};

static inline struct lk_dd lk_dd_of(double x) { return (struct lk_dd){x, 0}; }

/* a + b, exactly. */
static inline struct lk_dd lk_dd_sum(double a, double b) {
    double sum = a + b, of_b = sum - a;
    return (struct lk_dd){sum, (a - (sum - of_b)) + (b - of_b)};
}

/* The same where |a| >= |b|. */
static inline struct lk_dd lk_dd_quick_sum(double a, double b) {
    double sum = a + b;
    return (struct lk_dd){sum, b - (sum - a)};
}

static inline struct lk_dd lk_dd_add(struct lk_dd a, struct lk_dd b) {
    struct lk_dd high = lk_dd_sum(a.hi, b.hi), low = lk_dd_sum(a.lo, b.lo);
    high = lk_dd_quick_sum(high.hi, high.lo + low.hi);
    return lk_dd_quick_sum(high.hi, high.lo + low.lo);
}

static inline struct lk_dd lk_dd_negative(struct lk_dd a) { return (struct lk_dd){-a.hi, -a.lo}; }
static inline struct lk_dd lk_dd_subtract(struct lk_dd a, struct lk_dd b) { return lk_dd_add(a, lk_dd_negative(b)); }

static inline struct lk_dd lk_dd_multiply(struct lk_dd a, struct lk_dd b) {
    double high = a.hi * b.hi, low = fma(a.hi, b.hi, -high) + (a.hi * b.lo + a.lo * b.hi);
    return lk_dd_quick_sum(high, low);
}

static inline struct lk_dd lk_dd_divide(struct lk_dd a, struct lk_dd b) {
    struct lk_dd quotient = lk_dd_of(a.hi / b.hi);
    for (int i = 0; i < 2; i++) {
        struct lk_dd rest = lk_dd_subtract(a, lk_dd_multiply(quotient, b));
        quotient = lk_dd_add(quotient, lk_dd_of(rest.hi / b.hi));
    }
    return quotient;
}

/* a b - c d with all its digits, however many cancel: the sixteen partial products are summed without rounding
 * (Shewchuk 1997). Exactly 0 only where it is. */
static inline struct lk_dd lk_dd_cross(struct lk_dd a, struct lk_dd b, struct lk_dd c, struct lk_dd d) {
    const double left[] = {a.hi, a.hi, a.lo, a.lo, -c.hi, -c.hi, -c.lo, -c.lo};
    const double right[] = {b.hi, b.lo, b.hi, b.lo, d.hi, d.lo, d.hi, d.lo};
    double parts[16];
    int n = 0;
    for (int i = 0; i < 16; i++) {
        double product = left[i / 2] * right[i / 2];
        double next = i % 2 ? fma(left[i / 2], right[i / 2], -product) : product;
        for (int k = 0; k < n; k++) {
            struct lk_dd sum = lk_dd_sum(next, parts[k]);
            next = sum.hi;
            parts[k] = sum.lo;
        }
        parts[n++] = next;
    }
    struct lk_dd sum = {0, 0};
    while (n) sum = lk_dd_add(sum, lk_dd_of(parts[--n]));
    return sum;
}

/* Of values that are not all 0: the power of two that brings the largest near 1, so that squares neither overflow nor
 * vanish, and the value next to the mean, from which the others' distances have all their digits. */
struct lk_origin {
    int exponent;
    double value; /* scaled */
};
/* values [n], NaN left out; the first of equally near ones. */
size_t lk_nearest_mean(const double *values, size_t n);
struct lk_origin lk_origin_of(const double *values, size_t n);
/* value / 2^exponent - origin, exactly but for what lies 2^-1000 below. */
static inline struct lk_dd lk_from_origin(const struct lk_origin *origin, double value) {
    return lk_dd_sum(ldexp(value, -origin->exponent), -origin->value);
}
