/* Rates of groups near 0 and 1, their differences, what could have been seen, raters. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/crossed.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

enum { FEW = 5 }; /* sources that must have an outcome, and lack it, before a group's own variance is believed */

/* What a group is besides its rate. */
struct group {
    double n_outputs, n_sources;
    bool few;
};

static double within(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static void wilson(double p, double n, double t, double *low, double *high) {
    const double below = 1 + t * t / n, center = (p + t * t / (2 * n)) / below;
    const double half = t / below * sqrt(p * (1 - p) / n + t * t / (4 * n * n));
    *low = fmax(center - half, 0);
    *high = fmin(center + half, 1);
}

/* Sources of the weights; those with the outcome, and those that lack it in some output. */
static struct group count(const struct lk_crossed_table *table, const double *w, const int64_t *n_outputs) {
    struct group g = {0};
    int n_with = 0, n_without = 0;
    for (int s = 0; s < table->n_sources; s++) {
        double mean = 0;
        if (w[s] == 0) continue;
        for (int p = 0; p < table->n_prompts; p++) mean += table->z[(size_t)s * (size_t)table->n_prompts + (size_t)p];
        mean /= table->n_prompts;
        n_with += mean > 1e-12;
        n_without += mean < 1 - 1e-12;
        g.n_outputs += (double)n_outputs[s];
        g.n_sources++;
    }
    g.few = (n_with < n_without ? n_with : n_without) < fmin(FEW, g.n_sources);
    return g;
}

static void interval(struct lk_crossed_rate *r, const struct group *g, double deff, double confidence) {
    const double p = r->rate, spread = p * (1 - p);
    const bool end = spread <= 0;
    double own = end || r->contrast.variance <= 0 ? g->n_sources : spread / r->contrast.variance;
    own = within(own, 1, g->n_outputs);
    r->few = g->few;
    r->effective_n = !g->few ? own : end ? g->n_outputs / deff : fmin(own, g->n_outputs / deff);
    const double df = fmax(end ? g->n_sources - 1 : r->contrast.df, 1);
    wilson(p, r->effective_n, lk_t_quantile((1 + confidence) / 2, df), &r->low, &r->high);
}

/* The design effect of all groups together. */
static double design_effect(const struct lk_crossed_rate *rates, const struct group *groups, int n) {
    double p = 0, variance = 0, outputs = 0, sources = 0;
    int used = 0;
    for (int g = 0; g < n; g++) {
        if (!groups[g].n_sources) continue;
        used++;
        p += rates[g].rate;
        variance += rates[g].contrast.variance;
        outputs += groups[g].n_outputs;
        sources += groups[g].n_sources;
    }
    if (!used) return 1;
    p /= used, variance /= used, outputs /= used, sources /= used;
    return p > 0 && p < 1 ? fmax(1, variance * outputs / (p * (1 - p))) : outputs / sources;
}

/* 1 / n_level over the others' levels, each level counting alike. */
static void weights_of_others(int n, const struct lk_levels *factor, int level, double *w) {
    double contrast[LK_CROSSED_LEVELS];
    lk_level_contrast(n, factor, level, -1, contrast);
    for (int s = 0; s < n; s++) {
        int alike = 0;
        for (int t = 0; t < n; t++) alike += factor->of[t] == factor->of[s];
        w[s] = factor->of[s] == level ? 0 : -contrast[factor->of[s]] / alike;
    }
}

enum lk_code lk_crossed_rates(const struct lk_crossed_table *table, const struct lk_levels *factor,
                              const struct lk_residual_maker *prompts, const int64_t *n_outputs, double confidence,
                              struct lk_crossed_rate *rates, struct lk_crossed_rate *others) {
    const size_t n = (size_t)table->n_sources + (size_t)table->n_prompts;
    struct lk_residual_maker people = {0};
    if (factor->count > LK_CROSSED_LEVELS)
        return lk_fail(LK_E_INPUT, "crossed: expected at most %d levels, got %d", LK_CROSSED_LEVELS, factor->count);
    struct group *groups = lk_calloc(2 * (size_t)factor->count, sizeof *groups);
    double *w = lk_malloc((n + 1) * sizeof *w), *v = w ? w + table->n_sources : NULL;
    enum lk_code rc = groups && w ? lk_residual_maker(table->n_sources, factor, 1, &people)
                                  : lk_fail(LK_E_NOMEM, "crossed: no memory for %d groups", factor->count);
    for (int p = 0; p < table->n_prompts && !rc; p++) v[p] = 1.0 / table->n_prompts;
    for (int g = 0; g < (others ? 2 : 1) * factor->count && !rc; g++) {
        const bool rest = g >= factor->count;
        struct lk_crossed_rate *r = rest ? &others[g - factor->count] : &rates[g];
        *r = (struct lk_crossed_rate){0};
        if (rest)
            weights_of_others(table->n_sources, factor, g - factor->count, w);
        else
            lk_mean_weights(table->n_sources, factor->of, g, w);
        groups[g] = count(table, w, n_outputs);
        if (groups[g].n_sources) rc = lk_crossed_contrast(table, w, v, &people, prompts, &r->contrast);
        r->rate = within(r->contrast.estimate, 0, 1);
        if (r->rate < 1e-12) r->rate = 0; /* sums of rounded weights */
        if (r->rate > 1 - 1e-12) r->rate = 1;
        r->undefined = groups[g].n_sources ? r->contrast.undefined : "no source has this level";
    }
    const double deff = rc ? 1 : design_effect(rates, groups, factor->count);
    for (int g = 0; g < (others ? 2 : 1) * factor->count && !rc; g++) {
        struct lk_crossed_rate *r = g >= factor->count ? &others[g - factor->count] : &rates[g];
        if (!r->undefined) interval(r, &groups[g], deff, confidence);
    }
    lk_residual_maker_free(&people);
    lk_free(groups);
    lk_free(w);
    return rc;
}

void lk_crossed_mover(const struct lk_crossed_rate *a, const struct lk_crossed_rate *b, double *low, double *high) {
    *low = a->rate - b->rate - lk_length(a->rate - a->low, b->high - b->rate);
    *high = a->rate - b->rate + lk_length(a->high - a->rate, b->rate - b->low);
}

static double density(double p) {
    const double z = lk_normal_quantile(p);
    return exp(-0.5 * z * z);
}

double lk_crossed_detectable(const struct lk_crossed *r, double raised, double rate, double alpha, double power) {
    const double df = fmax(r->df, 1), v = r->variance, shared = v > 0 ? fmin(r->cell / v, 1) : 0;
    const double q = lk_t_quantile(1 - alpha / 2, df) + lk_t_quantile(power, df);
    double d = q * sqrt(v);
    for (int i = 0; i < 60 && rate > 0 && rate < 1; i++) {
        const double x = fmin(rate + d, 0.95), ratio = density(x) / density(rate);
        const double rho = shared * x * (1 - x) / (rate * (1 - rate)) + (1 - shared) * ratio * ratio;
        d = 0.5 * d + 0.5 * q * sqrt(v * (raised * rho + 1 - raised));
    }
    return d;
}

enum lk_code lk_rater_part(const double *answers, const int32_t *pairs, const int32_t *raters, size_t n, int n_pairs,
                           int n_raters, double *variance, double *df) {
    double *sum = lk_calloc((size_t)n_pairs * 2 + (size_t)n_raters * 2 + 1, sizeof *sum);
    if (!sum) return lk_fail(LK_E_NOMEM, "crossed: no memory for %d raters", n_raters);
    double *answered = sum + n_pairs, *of_rater = answered + n_pairs, *rated = of_rater + n_raters;
    double kept = 0, twice = 0, squares = 0, between = 0;
    for (size_t i = 0; i < n; i++) sum[pairs[i]] += answers[i], answered[pairs[i]]++;
    for (int p = 0; p < n_pairs; p++)
        if (answered[p] > 1) kept += answered[p], twice++;
    for (size_t i = 0; i < n; i++) {
        const double k = answered[pairs[i]], e = answers[i] - sum[pairs[i]] / k;
        if (k < 2) continue;
        of_rater[raters[i]] += e / kept;
        rated[raters[i]]++;
        squares += e * e;
    }
    *df = -1;
    for (int r = 0; r < n_raters; r++) between += of_rater[r] * of_rater[r], *df += rated[r] > 0;
    lk_free(sum);
    *variance = 0;
    if (!twice) return LK_OK;
    const double k = kept / twice, more = k / (k - 1);
    *variance = fmax(between * more * more - squares / (kept * kept) * more, 0);
    return LK_OK;
}
