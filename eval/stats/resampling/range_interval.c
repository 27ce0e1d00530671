#include "eval/stats/resampling/range_interval.h"

#include <math.h>

#include "eval/stats/special/special.h"

#define ABOVE 0.3
enum { HALVINGS = 30 };

static double value_of(const struct lk_resampled_groups *g, int i) { return g->values[(size_t)i * g->stride]; }

/* The standard deviation of the resampled difference of groups i and j; 0 for one that is mere rounding. */
static double pair_error(const struct lk_resampled_groups *g, int i, int j) {
    const double *a = g->replicates + (size_t)i * g->row_stride, *b = g->replicates + (size_t)j * g->row_stride;
    double difference = value_of(g, i) - value_of(g, j), sum = 0, squares = 0, n = 0;
    for (size_t r = 0; r < g->n_replicates; r++) {
        double shift = a[r] - b[r] - difference;
        if (isnan(shift)) continue;
        sum += shift;
        squares += shift * shift;
        n++;
    }
    double error = n > 1 ? sqrt(fmax(squares - sum * sum / n, 0) / (n - 1)) : 0;
    return isfinite(error) && error > 1e-12 * fabs(difference) ? error : 0;
}

/* What makes a test of r: the share of resamples that is to reach the range, and how many times wider than the normal
 * distribution's their deviations are. Given at r = 0 and for r >= far; between them straight lines. */
struct levels {
    double far, share[2], wider[2];
};

static double expanded(const struct lk_range_options *how, double tail, double df) {
    if (how->n_drawn == 0) return 1;
    return sqrt(how->n_drawn / (how->n_drawn - 1)) * lk_t_quantile(tail, df) / lk_normal_quantile(tail);
}

static double level_at(const struct levels *levels, double r, const double ends[2]) {
    double way = fmin(1, r / levels->far);
    return ends[0] + way * (ends[1] - ends[0]);
}

static double within(double x, double from, double to) { return x < from ? from : x > to ? to : x; }

/* The lower edge of the range of r that least squares lay over the groups' values. */
static double nearest_edge(const struct lk_resampled_groups *g, double r, double low, double high) {
    for (int step = 0; step < HALVINGS; step++) {
        double edge = (low + high) / 2, pull = 0;
        for (int i = 0; i < g->n_groups; i++) {
            double value = value_of(g, i);
            if (!isnan(value)) pull += value - within(value, edge, edge + r);
        }
        *(pull > 0 ? &low : &high) = edge;
    }
    return (low + high) / 2;
}

/* The share of resamples whose range is at least that of the estimates, were the true one r. */
static double share_as_wide(const struct lk_resampled_groups *g, double r, double lowest, double range, double wider,
                            double *scratch) {
    double *low = scratch, *high = scratch + g->n_replicates, edge = nearest_edge(g, r, lowest, lowest + range - r);
    size_t n = 0;
    for (size_t b = 0; b < g->n_replicates; b++) {
        low[b] = INFINITY;
        high[b] = -INFINITY;
    }
    for (int i = 0; i < g->n_groups; i++) {
        const double *replicates = g->replicates + (size_t)i * g->row_stride;
        double value = value_of(g, i), drawn_in = within(value, edge, edge + r);
        if (isnan(value)) continue;
        for (size_t b = 0; b < g->n_replicates; b++) {
            double x = drawn_in + wider * (replicates[b] - value);
            if (x < low[b]) low[b] = x;
            if (x > high[b]) high[b] = x;
        }
    }
    for (size_t b = 0; b < g->n_replicates; b++) n += high[b] - low[b] >= range * (1 - 1e-12);
    return (double)n / (double)g->n_replicates;
}

static bool contradicted(const struct lk_resampled_groups *g, const struct levels *levels, double r, double lowest,
                         double range, double *scratch) {
    double wider = level_at(levels, r, levels->wider);
    return share_as_wide(g, r, lowest, range, wider, scratch) < level_at(levels, r, levels->share);
}

static double lower_end(const struct lk_resampled_groups *g, const struct levels *levels, double lowest, double range,
                        double *scratch) {
    double low = 0, high = range;
    if (!contradicted(g, levels, 0, lowest, range, scratch)) return 0;
    for (int step = 0; step < HALVINGS; step++) {
        double r = (low + high) / 2;
        *(contradicted(g, levels, r, lowest, range, scratch) ? &low : &high) = r;
    }
    return low;
}

void lk_range_interval(const struct lk_resampled_groups *groups, const struct lk_range_options *how, double *scratch,
                       struct lk_number *number) {
    const double above = how->above > 0 ? how->above : ABOVE;
    double alpha = 1 - how->confidence, lower = (1 - above) * alpha, tail = above * alpha;
    double z = groups->pair_errors ? 0 : -lk_normal_quantile(tail) * expanded(how, tail, how->df_pair);
    double high = number->value, lowest = INFINITY, largest_reach = 0;
    int n_valid = 0;
    for (int i = 0; i < groups->n_groups; i++) {
        if (isnan(value_of(groups, i))) continue;
        n_valid++;
        lowest = fmin(lowest, value_of(groups, i));
        for (int j = 0; j < i; j++) {
            if (isnan(value_of(groups, j))) continue;
            const size_t pair = (size_t)(i * groups->n_groups + j);
            double reach = groups->pair_errors ? -lk_t_quantile(tail, groups->pair_df[pair]) * groups->pair_errors[pair]
                                               : z * pair_error(groups, i, j);
            largest_reach = fmax(largest_reach, reach);
            high = fmax(high, fabs(value_of(groups, i) - value_of(groups, j)) + reach);
        }
    }
    number->low = number->high = 0;
    if (largest_reach == 0) return;
    double of_all = expanded(how, lower / (n_valid * (n_valid - 1)), how->df_all);
    const struct levels levels = {largest_reach / 2, {alpha, lower}, {expanded(how, alpha / 2, how->df_all), of_all}};
    number->low = lower_end(groups, &levels, lowest, number->value, scratch);
    number->high = fmax(fmin(high, how->limit), number->value);
}
