#include "eval/stats/models/prediction_powered.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/special/special.h"

enum { MANY = 200 };            /* rated items from which on lambda is taken from all of them */
static const double WEAK = 0.2; /* a correlation below which the judge is not used */

/* Scores of people and of the judge are worked with from one of theirs, and in one unit, a power of two, in which
 * squares neither overflow nor vanish. */
struct unit {
    int exponent;
    double people, judge;
};

static double scaled(double value, double origin, const struct unit *u) { return ldexp(value, -u->exponent) - origin; }

/* rated NULL: all n. */
static struct unit unit_of(const double *y, const unsigned char *rated, const double *judged, size_t n,
                           const double *other, size_t n_other) {
    double largest = 0;
    size_t first = n;
    struct unit u = {0};
    for (size_t i = n; i-- > 0;) {
        if (!rated || rated[i]) first = i, largest = fmax(largest, fabs(y[i]));
        largest = fmax(largest, fabs(judged[i]));
    }
    for (size_t i = 0; i < n_other; i++) largest = fmax(largest, fabs(other[i]));
    frexp(largest, &u.exponent);
    if (first < n) u.people = scaled(y[first], 0, &u), u.judge = scaled(judged[first], 0, &u);
    return u;
}

static void give_back(const struct unit *u, struct lk_prediction_powered *out) {
    double *people[] = {&out->estimate.value,   &out->estimate.low,   &out->estimate.high,
                        &out->rated_only.value, &out->rated_only.low, &out->rated_only.high};
    for (size_t i = 0; i < sizeof people / sizeof *people; i++) *people[i] = ldexp(*people[i] + u->people, u->exponent);
    out->judged_only = ldexp(out->judged_only + u->judge, u->exponent);
    out->error.standard_error = ldexp(out->error.standard_error, u->exponent);
    out->error_rated.standard_error = ldexp(out->error_rated.standard_error, u->exponent);
}

static enum lk_code check(const double *values, const unsigned char *used, size_t n, const char *of) {
    for (size_t i = 0; i < n; i++)
        if ((!used || used[i]) && !isfinite(values[i]))
            return lk_fail(LK_E_INPUT, "prediction-powered mean: %s %zu: expected a number, got %g", of, i, values[i]);
    return LK_OK;
}

static void interval(struct lk_number *number, double value, double variance, double confidence) {
    double reach = lk_normal_quantile(0.5 + confidence / 2) * sqrt(variance);
    number->value = value, number->low = value - reach, number->high = value + reach;
}

static void undefined(struct lk_prediction_powered *out, const char *why) {
    out->estimate.undefined = out->rated_only.undefined = why;
}

/* Means of so many pairs, and sums of squares and products around them (Welford). */
struct moments {
    double n, y, f, yy, yf, ff;
};

static void add(struct moments *m, double y, double f) {
    double from_y = y - m->y, from_f = f - m->f;
    m->n++;
    m->y += from_y / m->n, m->f += from_f / m->n;
    m->yy += from_y * (y - m->y), m->yf += from_y * (f - m->f), m->ff += from_f * (f - m->f);
}

static double correlation_of(const struct moments *m) {
    return m->yy > 0 && m->ff > 0 ? m->yf / sqrt(m->yy * m->ff) : 0;
}

static double slope_of(const struct moments *m) { return m->ff > 0 ? m->yf / m->ff : 0; }

enum lk_code lk_prediction_powered_mean(const double *y, const double *judged, size_t n, const double *other,
                                        size_t n_other, double lambda, double confidence,
                                        struct lk_prediction_powered *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check(y, NULL, n, "rating"));
    LK_TRY(check(judged, NULL, n, "score of a rated item"));
    LK_TRY(check(other, NULL, n_other, "score"));
    out->estimate.n = out->rated_only.n = n;
    if (n < 2 || !n_other) {
        undefined(out, n < 2 ? "fewer than two items are rated" : "every judged item is rated");
        return LK_OK;
    }
    struct moments rated = {0}, others = {0}, all = {0};
    const struct unit u = unit_of(y, NULL, judged, n, other, n_other);
    for (size_t i = 0; i < n; i++) {
        add(&rated, scaled(y[i], u.people, &u), scaled(judged[i], u.judge, &u));
        add(&all, 0, scaled(judged[i], u.judge, &u));
    }
    for (size_t i = 0; i < n_other; i++) {
        add(&others, 0, scaled(other[i], u.judge, &u));
        add(&all, 0, scaled(other[i], u.judge, &u));
    }
    if (lambda < 0) {
        double spread = (1 + rated.n / others.n) * all.ff / (all.n - 1);
        lambda = spread > 0 ? fmin(1, fmax(0, rated.yf / rated.n / spread)) : 0;
    }
    double rest = fmax(0, rated.yy - 2 * lambda * rated.yf + lambda * lambda * rated.ff) / rated.n;
    double alone = rated.yy / rated.n / rated.n;
    double variance = rest / rated.n + lambda * lambda * others.ff / others.n / others.n;
    interval(&out->estimate, lambda * others.f + rated.y - lambda * rated.f, variance, confidence);
    interval(&out->rated_only, rated.y, alone, confidence);
    out->judged_only = all.f, out->lambda = lambda;
    out->error.standard_error = sqrt(variance), out->error_rated.standard_error = sqrt(alone);
    out->error.df = out->error_rated.df = INFINITY;
    out->correlation = correlation_of(&rated);
    out->effective_n = variance > 0 ? rated.n * alone / variance : 0;
    give_back(&u, out);
    return LK_OK;
}

/* One stratum, with those that were put to it. */
struct stratum {
    int place; /* where this one's items count */
    struct moments judged, rated, half[2];
    struct moments corrected; /* ratings less what the judge explains */
};

struct draw {
    const double *judged, *y;
    const unsigned char *rated;
    const int32_t *number;
    size_t n;
    int n_strata;
    struct stratum *strata;
    struct unit unit;
};

static double judge_of(const struct draw *d, size_t i) { return scaled(d->judged[i], d->unit.judge, &d->unit); }
static double rating_of(const struct draw *d, size_t i) { return scaled(d->y[i], d->unit.people, &d->unit); }

static struct stratum *stratum_of(const struct draw *d, size_t i) {
    return &d->strata[d->strata[d->number ? d->number[i] : 0].place];
}

/* Strata are closed in their order as soon as they have two ratings; what is left over joins the last. Gives how many
 * were put to another one, and counts nothing else. */
static int merge(struct draw *d) {
    int kept = 0, merged = 0;
    double open = 0;
    for (size_t i = 0; i < d->n; i++) d->strata[d->number ? d->number[i] : 0].rated.n += d->rated[i] != 0;
    for (int h = 0; h < d->n_strata; h++) {
        open += d->strata[h].rated.n;
        d->strata[h].rated.n = 0;
        d->strata[h].place = kept;
        if (open >= 2) kept++, open = 0;
    }
    for (int h = 0; h < d->n_strata; h++) {
        if (d->strata[h].place == kept && kept) d->strata[h].place--;
        merged += h && d->strata[h].place == d->strata[h - 1].place;
    }
    return merged;
}

/* Within strata, of all rated items or of one half. */
static void pool(const struct draw *d, int half, struct moments *out) {
    *out = (struct moments){0};
    for (int h = 0; h < d->n_strata; h++) {
        const struct moments *m = half < 0 ? &d->strata[h].rated : &d->strata[h].half[half];
        out->n += m->n, out->yy += m->yy, out->yf += m->yf, out->ff += m->ff;
    }
}

/* lambda of the items of either half. */
static void choose(const struct draw *d, int n_places, const struct moments *all, double lambda[2]) {
    double df = all->n - n_places - 2, r = correlation_of(all);
    lambda[0] = lambda[1] = slope_of(all);
    if (df < 1 || tanh(atanh(r) - lk_normal_quantile(0.975) / sqrt(df)) < WEAK) lambda[0] = lambda[1] = 0;
    if (lambda[0] == 0 || all->n >= MANY) return;
    for (int half = 0; half < 2; half++) {
        struct moments others;
        pool(d, !half, &others);
        lambda[half] = slope_of(&others);
    }
}

/* The mean over the strata's items, by their sizes; the variance of a draw without replacement, and what degrees of
 * freedom a variance of so many small ones has (Satterthwaite; Cochran 5.16). */
static void weighted(const struct draw *d, bool corrected, double confidence, struct lk_number *number,
                     struct lk_prediction_error *error) {
    double value = 0, variance = 0, squares = 0;
    for (int h = 0; h < d->n_strata; h++) {
        const struct stratum *s = &d->strata[h];
        const struct moments *m = corrected ? &s->corrected : &s->rated;
        if (m->n < 2) continue; /* nothing was left in it */
        double share = s->judged.n / (double)d->n;
        double part = share * share * (1 - m->n / s->judged.n) * m->yy / (m->n - 1) / m->n;
        value += share * m->y;
        variance += part;
        squares += part * part / (m->n - 1);
    }
    *error = (struct lk_prediction_error){sqrt(variance), squares > 0 ? variance * variance / squares : 0};
    double reach = error->df > 0 ? lk_t_quantile(0.5 + confidence / 2, error->df) * error->standard_error : 0;
    number->value = value, number->low = value - reach, number->high = value + reach;
}

static void estimate(struct draw *d, double confidence, struct lk_prediction_powered *out) {
    struct moments all, judged = {0};
    double lambda[2];
    out->merged_strata = merge(d);
    for (size_t i = 0; i < d->n; i++) {
        struct stratum *s = stratum_of(d, i);
        add(&judged, 0, judge_of(d, i));
        add(&s->judged, 0, judge_of(d, i));
        if (!d->rated[i]) continue;
        add(&s->half[(size_t)s->rated.n % 2], rating_of(d, i), judge_of(d, i));
        add(&s->rated, rating_of(d, i), judge_of(d, i));
    }
    pool(d, -1, &all);
    out->estimate.n = out->rated_only.n = (size_t)all.n;
    if (all.n < 2) {
        undefined(out, "fewer than two items are rated");
        return;
    }
    choose(d, d->n_strata - out->merged_strata, &all, lambda);
    for (size_t i = 0; i < d->n; i++) {
        struct stratum *s = stratum_of(d, i);
        if (!d->rated[i]) continue;
        bool census = s->rated.n == s->judged.n; /* nothing is left to predict */
        double of_item = census ? 0 : lambda[(size_t)s->corrected.n % 2];
        add(&s->corrected, rating_of(d, i) - of_item * (judge_of(d, i) - s->judged.f), 0);
        out->lambda += of_item / all.n;
    }
    weighted(d, true, confidence, &out->estimate, &out->error);
    weighted(d, false, confidence, &out->rated_only, &out->error_rated);
    double ratio = out->error.df > 0 ? out->error_rated.standard_error / out->error.standard_error : 0;
    out->judged_only = judged.f, out->correlation = correlation_of(&all);
    out->effective_n = all.n * ratio * ratio;
    give_back(&d->unit, out);
}

enum lk_code lk_difference_estimate(const double *judged, const double *y, const unsigned char *rated,
                                    const int32_t *stratum, size_t n, int n_strata, double confidence,
                                    struct lk_prediction_powered *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check(judged, NULL, n, "score"));
    LK_TRY(check(y, rated, n, "rating"));
    for (size_t i = 0; stratum && i < n; i++)
        if (stratum[i] < 0 || stratum[i] >= n_strata)
            return lk_fail(LK_E_INPUT, "prediction-powered mean: stratum of item %zu: expected 0 to %d, got %d", i,
                           n_strata - 1, (int)stratum[i]);
    struct draw d = {.judged = judged, .y = y, .rated = rated, .number = stratum, .n = n};
    d.n_strata = stratum ? n_strata : 1;
    d.unit = unit_of(y, rated, judged, n, NULL, 0);
    d.strata = lk_calloc((size_t)d.n_strata + 1, sizeof *d.strata);
    if (!d.strata) return lk_fail(LK_E_NOMEM, "prediction-powered mean: no memory for %d strata", d.n_strata);
    estimate(&d, confidence, out);
    lk_free(d.strata);
    return LK_OK;
}
