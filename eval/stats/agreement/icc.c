#include "eval/stats/agreement/icc.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/special/special.h"
#include "eval/stats/double_double.h"

/* Mean squares of the two-way table: between targets, within targets, between raters, residual. */
struct table {
    double n, k, targets, within, raters, residual;
};

static bool complete(const double *target, int k) {
    for (int r = 0; r < k; r++)
        if (isnan(target[r])) return false;
    return true;
}

static double square(struct lk_dd x) { return x.hi * x.hi; }

/* rater_means [k]. All is in distances from one of the ratings, of twice a double's digits, so that neither a common
 * offset nor raters that differ by a constant cost any: what comes out are ratios. */
static void mean_squares(const double *ratings, size_t n_targets, int k, struct lk_dd *rater_means, struct table *t) {
    const struct lk_origin origin = lk_origin_of(ratings, n_targets * (size_t)k);
    struct lk_dd grand = {0};
    double targets = 0, raters = 0, residual = 0, total = 0, n = 0;
    memset(rater_means, 0, (size_t)k * sizeof *rater_means);
    for (size_t i = 0; i < n_targets; i++) {
        const double *row = ratings + i * (size_t)k;
        if (!complete(row, k)) continue;
        n++;
        for (int r = 0; r < k; r++) rater_means[r] = lk_dd_add(rater_means[r], lk_from_origin(&origin, row[r]));
    }
    for (int r = 0; r < k && n > 0; r++) {
        rater_means[r] = lk_dd_divide(rater_means[r], lk_dd_of(n));
        grand = lk_dd_add(grand, rater_means[r]);
    }
    grand = lk_dd_divide(grand, lk_dd_of(k));
    for (size_t i = 0; i < n_targets; i++) {
        const double *row = ratings + i * (size_t)k;
        struct lk_dd mean = {0};
        if (!complete(row, k)) continue;
        for (int r = 0; r < k; r++) mean = lk_dd_add(mean, lk_from_origin(&origin, row[r]));
        mean = lk_dd_divide(mean, lk_dd_of(k));
        targets += k * square(lk_dd_subtract(mean, grand));
        for (int r = 0; r < k; r++) {
            struct lk_dd off = lk_dd_subtract(lk_from_origin(&origin, row[r]), mean);
            total += square(lk_from_origin(&origin, row[r]));
            residual += square(lk_dd_subtract(off, lk_dd_subtract(rater_means[r], grand)));
        }
    }
    for (int r = 0; r < k; r++) raters += n * square(lk_dd_subtract(rater_means[r], grand));
    *t = (struct table){.n = n, .k = k};
    if (n < 2 || k < 2) return;
    double dust = 1e-58 * total; /* what rounding leaves of a sum that is 0 */
    if (targets <= dust) targets = 0;
    if (raters <= dust) raters = 0;
    if (residual <= dust) residual = 0;
    t->targets = targets / (n - 1);
    t->raters = raters / (k - 1);
    t->residual = residual / ((n - 1) * (k - 1));
    t->within = (raters + residual) / (n * (k - 1));
}

static void set(struct lk_icc *icc, double value) { icc->value.value = value; }

static void set_f(struct lk_icc *icc, double f, double df1, double df2) {
    icc->f = f;
    icc->df1 = df1;
    icc->df2 = df2;
    icc->p = lk_f_sf(f, df1, df2);
}

static void set_interval(struct lk_icc *icc, double low, double high) {
    icc->value.low = low;
    icc->value.high = high;
}

/* Forms 1 and 3, whose intervals come straight from F; single and average. */
static void f_intervals(const struct table *t, struct lk_icc *single, struct lk_icc *average) {
    double low = single->f / lk_f_quantile(0.975, single->df1, single->df2);
    double high = single->f * lk_f_quantile(0.975, single->df2, single->df1);
    set_interval(single, (low - 1) / (low + t->k - 1), (high - 1) / (high + t->k - 1));
    set_interval(average, 1 - 1 / low, 1 - 1 / high);
}

/* Form 2: Satterthwaite's degrees of freedom. */
static void agreement_intervals(const struct table *t, struct lk_icc *single, struct lk_icc *average) {
    double n = t->n, k = t->k, icc = single->value.value, fj = t->raters / t->residual;
    double rest = n * (1 + (k - 1) * icc) - k * icc, scaled = k * icc * fj;
    double v = single->df2 * (scaled + rest) * (scaled + rest) / ((n - 1) * scaled * scaled + rest * rest);
    if (single->df2 * (scaled + rest) * (scaled + rest) == 0) v = NAN;
    double upper = lk_f_quantile(0.975, n - 1, v), lower = lk_f_quantile(0.975, v, n - 1);
    double spread = k * t->raters + (k * n - k - n) * t->residual;
    double low = n * (t->targets - upper * t->residual) / (upper * spread + n * t->targets);
    double high = n * (lower * t->targets - t->residual) / (spread + n * lower * t->targets);
    if (!isfinite(low) || !isfinite(high)) {
        single->no_interval = average->no_interval = "the interval's degrees of freedom do not exist";
        return;
    }
    set_interval(single, low, high);
    /* The mean's end falls without bound as the denominator goes to 0, and would come back from above behind it. */
    if (1 + low * (k - 1) > 0)
        set_interval(average, low * k / (1 + low * (k - 1)), high * k / (1 + high * (k - 1)));
    else
        average->no_interval = "the low end is not defined: the raters' means differ less than chance would have it";
}

static void measure(const struct table *t, struct lk_icc *out) {
    double n = t->n, k = t->k, b = t->targets, w = t->within, j = t->raters, e = t->residual;
    set(&out[LK_ICC1], (b - w) / (b + (k - 1) * w));
    set(&out[LK_ICC2], (b - e) / (b + (k - 1) * e + k * (j - e) / n));
    set(&out[LK_ICC3], (b - e) / (b + (k - 1) * e));
    set(&out[LK_ICC1K], (b - w) / b);
    set(&out[LK_ICC2K], (b - e) / (b + (j - e) / n));
    set(&out[LK_ICC3K], (b - e) / b);
    const char *none = "the raters never differ";
    for (int i = 0; i < LK_N_ICC; i++) {
        bool one_way = i == LK_ICC1 || i == LK_ICC1K;
        double within = one_way ? w : e;
        if (!isfinite(out[i].value.value)) {
            out[i].value.value = 0;
            out[i].value.undefined = "the targets' means do not differ";
        } else if (i == LK_ICC2K && n * b + j - e < 0) {
            out[i].value.value = 0;
            out[i].value.undefined = "the raters' means differ less than chance would have it";
        }
        if (within > 0)
            set_f(&out[i], b / within, n - 1, one_way ? n * (k - 1) : (n - 1) * (k - 1));
        else
            out[i].f_undefined = none;
        if (b == 0) out[i].f_undefined = "the targets' means do not differ";
    }
    if (!out[LK_ICC1].f_undefined) f_intervals(t, &out[LK_ICC1], &out[LK_ICC1K]);
    if (!out[LK_ICC3].f_undefined) f_intervals(t, &out[LK_ICC3], &out[LK_ICC3K]);
    if (!out[LK_ICC2].f_undefined) agreement_intervals(t, &out[LK_ICC2], &out[LK_ICC2K]);
}

enum lk_code lk_icc(const double *ratings, size_t n_targets, int n_raters, struct lk_icc *out) {
    static const char *const names[] = {"ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)", "ICC(3,k)"};
    memset(out, 0, LK_N_ICC * sizeof *out);
    if (n_raters < 1) return lk_fail(LK_E_INPUT, "icc: raters: expected 1 or more, got %d", n_raters);
    for (size_t i = 0; i < n_targets * (size_t)n_raters; i++)
        if (isinf(ratings[i]))
            return lk_fail(LK_E_INPUT, "icc: target %zu: expected finite ratings", i / (size_t)n_raters);
    struct lk_dd *rater_means = lk_malloc((size_t)n_raters * sizeof *rater_means);
    if (!rater_means) return lk_fail(LK_E_NOMEM, "icc: no memory for %d raters", n_raters);
    struct table t;
    mean_squares(ratings, n_targets, n_raters, rater_means, &t);
    lk_free(rater_means);
    const char *undefined = t.k < 2                    ? "fewer than two raters"
                            : t.n < 2                  ? "fewer than two targets that all raters rated"
                            : t.targets + t.within > 0 ? NULL
                                                       : "all ratings are equal";
    for (int i = 0; i < LK_N_ICC; i++) {
        out[i].name = names[i];
        out[i].value.n = (size_t)t.n;
        out[i].value.undefined = out[i].f_undefined = undefined;
    }
    if (!undefined) measure(&t, out);
    return LK_OK;
}
