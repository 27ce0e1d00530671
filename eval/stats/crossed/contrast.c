/* The one estimator: w'Zv, the parts of its variance, their sum, t. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/crossed.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#define NO_VARIANCE 1e-20

/* Bell and McCaffrey's degrees of freedom of sum weight^2 q e^2, working errors alike and independent; 0 without any.
 * Below is sum c_i c_j m_ij^2 with m = I - q'q. scratch [n]. */
static double bm_df(const double *weight, const struct lk_residual_maker *maker, double *scratch) {
    const size_t n = (size_t)maker->n, rank = (size_t)maker->rank;
    double above = 0, below = 0;
    for (size_t i = 0; i < n; i++) {
        const double c = scratch[i] = weight[i] * weight[i] * maker->inflation[i];
        above += c * maker->left[i];
        below += c * c * (2 * maker->left[i] - 1);
    }
    for (size_t a = 0; a < rank; a++)
        for (size_t b = 0; b <= a; b++) {
            const double *x = maker->q + a * n, *y = maker->q + b * n;
            double sum = 0;
            for (size_t i = 0; i < n; i++) sum += scratch[i] * x[i] * y[i];
            below += (a == b ? 1 : 2) * sum * sum;
        }
    return below > 0 ? above * above / below : 0;
}

static double square_over(double variance, double df) { return df > 0 ? variance * variance / df : 0; }

void lk_crossed_combine(struct lk_crossed *r) {
    if (r->source < NO_VARIANCE) r->source = 0;
    if (r->prompt < NO_VARIANCE) r->prompt = 0;
    if (r->cell < NO_VARIANCE) r->cell = 0;
    if (r->cell >= fmin(r->source, r->prompt)) {
        r->variance = fmax(r->source, r->prompt);
        r->df = r->source >= r->prompt ? r->source_df : r->prompt_df;
        return;
    }
    r->variance = r->source + r->prompt - r->cell;
    double below =
        square_over(r->source, r->source_df) + square_over(r->prompt, r->prompt_df) + square_over(r->cell, r->cell_df);
    r->df = below > 0 ? r->variance * r->variance / below : 0;
}

/* Why the weights have no variance: a row that has one is alone in its level. */
static const char *alone(const double *weight, const struct lk_residual_maker *maker, const char *why) {
    for (int i = 0; i < maker->n; i++)
        if (weight[i] != 0 && maker->inflation[i] == 0) return why;
    return NULL;
}

/* The three parts; scratch [n_sources n_prompts + n_prompts + n_sources]. */
static void parts_of(const struct lk_crossed_table *table, const double *w, const double *v,
                     const struct lk_residual_maker *people, const struct lk_residual_maker *prompts, double *scratch,
                     struct lk_crossed *out) {
    const size_t n_s = (size_t)table->n_sources, n_p = (size_t)table->n_prompts;
    double *left = scratch, *by_prompt = left + n_s * n_p, *by_source = by_prompt + n_p;
    memset(by_prompt, 0, n_p * sizeof *by_prompt);
    for (size_t s = 0; s < n_s; s++) {
        const double *z = table->z + s * n_p;
        by_source[s] = 0;
        for (size_t p = 0; p < n_p; p++) {
            by_source[s] += z[p] * v[p];
            by_prompt[p] += z[p] * w[s];
        }
        out->estimate += w[s] * by_source[s];
    }
    memcpy(left, table->z, n_s * n_p * sizeof *left);
    lk_residuals(people, left, table->n_prompts);
    lk_residuals(people, by_source, 1);
    lk_residuals(prompts, by_prompt, 1);
    for (size_t s = 0; s < n_s; s++) {
        const double weight = w[s] * w[s] * people->inflation[s];
        double cells = 0, *row = left + s * n_p;
        if (weight == 0) continue;
        lk_residuals(prompts, row, 1);
        for (size_t p = 0; p < n_p; p++) cells += v[p] * v[p] * prompts->inflation[p] * row[p] * row[p];
        out->source += weight * by_source[s] * by_source[s];
        out->cell += weight * cells;
    }
    for (size_t p = 0; p < n_p; p++) out->prompt += v[p] * v[p] * prompts->inflation[p] * by_prompt[p] * by_prompt[p];
}

static void test_of(struct lk_crossed *r) {
    if (r->variance > 0) {
        r->p = lk_t_two_sided(r->estimate / sqrt(r->variance), fmax(r->df, 1));
        return;
    }
    bool equal = fabs(r->estimate) <= 1e-12;
    r->no_interval = equal ? "all equal" : "no variation between sources or prompts";
    if (equal)
        r->p = 1;
    else
        r->no_test = r->no_interval;
}

static enum lk_code undefined(struct lk_crossed *out, const char *why) {
    *out = (struct lk_crossed){
        .estimate = isfinite(out->estimate) ? out->estimate : 0, .undefined = why, .no_test = why, .no_interval = why};
    return LK_OK;
}

enum lk_code lk_crossed_contrast(const struct lk_crossed_table *table, const double *w, const double *v,
                                 const struct lk_residual_maker *people, const struct lk_residual_maker *prompts,
                                 struct lk_crossed *out) {
    *out = (struct lk_crossed){0};
    size_t n_s = (size_t)table->n_sources, n_p = (size_t)table->n_prompts;
    if (people->n != table->n_sources || prompts->n != table->n_prompts)
        return lk_fail(LK_E_INTERNAL, "crossed: projections of %d x %d rows for a table of %d x %d", people->n,
                       prompts->n, table->n_sources, table->n_prompts);
    LK_TRY(lk_check_finite("crossed: table", table->z, n_s * n_p));
    LK_TRY(lk_check_finite("crossed: source weights", w, n_s));
    LK_TRY(lk_check_finite("crossed: prompt weights", v, n_p));
    double *scratch = lk_malloc((n_s * n_p + n_s + n_p) * sizeof *scratch);
    if (!scratch) return lk_fail(LK_E_NOMEM, "crossed: no memory for a table of %zu x %zu", n_s, n_p);
    parts_of(table, w, v, people, prompts, scratch, out);
    out->source_df = bm_df(w, people, scratch);
    out->prompt_df = bm_df(v, prompts, scratch);
    out->cell_df = out->source_df * out->prompt_df;
    lk_free(scratch);
    const char *why = alone(w, people, "a level has one source");
    if (table->prompts_are_all)
        out->prompt = out->cell = 0;
    else if (!why)
        why = alone(v, prompts, n_p == 1 ? "one prompt" : "a kind has one prompt");
    if (why) return undefined(out, why);
    lk_crossed_combine(out);
    if (table->share_seen > 0) out->variance /= table->share_seen;
    if (!isfinite(out->variance) || !isfinite(out->df) || !isfinite(out->estimate))
        return undefined(out, "the values are too large");
    test_of(out);
    return LK_OK;
}

bool lk_crossed_interval(const struct lk_crossed *r, double confidence, double *low, double *high) {
    double half = r->no_interval ? 0 : lk_t_quantile((1 + confidence) / 2, fmax(r->df, 1)) * sqrt(r->variance);
    *low = r->estimate - half;
    *high = r->estimate + half;
    return !r->no_interval;
}

struct lk_crossed_shares lk_crossed_shares(const struct lk_crossed *r) {
    double v = r->source + r->prompt - r->cell;
    if (r->cell >= fmin(r->source, r->prompt)) v = fmax(r->source, r->prompt);
    if (!(v > 0)) return (struct lk_crossed_shares){0};
    return (struct lk_crossed_shares){fmax(r->source - r->cell, 0) / v, fmax(r->prompt - r->cell, 0) / v, r->cell / v};
}
