/* Special functions against mpmath, on the points of tests/golden/generate_special.py. With the path of a file of more
 * points as argument, the worst error of each function is printed as well. */
#include "eval/stats/special/special.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

#include <math.h>

static const char *given_path;

/* What a function is given: at most four numbers, drawn as in the generator. */
static double dyadic(struct lk_stream *s, int low, int high) {
    double mantissa = (double)((1 << 20) + lk_stream_bounded(s, 1 << 20));
    return ldexp(mantissa, low + (int)lk_stream_bounded(s, (uint64_t)(high - low + 1)) - 20);
}

static double thirty_bits(struct lk_stream *s) { return (double)(1 + lk_stream_bounded(s, (1 << 30) - 1)) / (1 << 30); }

static double probability(struct lk_stream *s) {
    return lk_stream_bounded(s, 2) ? dyadic(s, -990, -2) : thirty_bits(s);
}

static double whole(struct lk_stream *s) {
    static const uint64_t most[] = {20, 200, 5000};
    return (double)(1 + lk_stream_bounded(s, most[lk_stream_bounded(s, 3)]));
}

static double steps(struct lk_stream *s) { return ((double)lk_stream_bounded(s, 1 << 20) - (1 << 19)) / (1 << 14); }

static size_t normal_z(struct lk_stream *s, double *v) {
    if (lk_stream_bounded(s, 2)) {
        v[0] = ((double)lk_stream_bounded(s, 45 << 20) - (37 << 20)) / (1 << 20);
    } else {
        v[0] = dyadic(s, -30, 2);
        if (!lk_stream_bounded(s, 2)) v[0] = -v[0];
    }
    return 1;
}

static size_t one_probability(struct lk_stream *s, double *v) {
    v[0] = probability(s);
    return 1;
}

static size_t positive(struct lk_stream *s, double *v) {
    v[0] = dyadic(s, -30, 30);
    return 1;
}

static size_t gamma_x(struct lk_stream *s, double *v) {
    v[0] = dyadic(s, -4, 12);
    v[1] = v[0] + steps(s) * sqrt(v[0]);
    if (!(v[1] > 0 && lk_stream_bounded(s, 3))) v[1] = dyadic(s, -10, 9);
    return 2;
}

static size_t beta_x(struct lk_stream *s, double *v) {
    double a = v[0] = dyadic(s, -2, 10), b = v[1] = dyadic(s, -2, 10), n = a + b, least = ldexp(1, -30);
    double x = a / n + steps(s) * sqrt(a / n * (b / n) / n);
    if (!(least <= x && x <= 1 - least) || !lk_stream_bounded(s, 3)) x = thirty_bits(s);
    v[2] = floor(x * (1 << 30)) / (1 << 30);
    return 3;
}

static size_t beta_share(struct lk_stream *s, double *v) {
    v[0] = dyadic(s, -1, 7);
    v[1] = dyadic(s, -1, 7);
    v[2] = probability(s);
    return 3;
}

static size_t t_and_df(struct lk_stream *s, double *v) {
    v[0] = dyadic(s, -20, 6);
    v[1] = whole(s);
    return 2;
}

static size_t probability_and_df(struct lk_stream *s, double *v) {
    v[0] = probability(s);
    v[1] = whole(s);
    return 2;
}

static size_t f_and_dfs(struct lk_stream *s, double *v) {
    v[0] = dyadic(s, -10, 8);
    v[1] = whole(s);
    v[2] = whole(s);
    return 3;
}

static size_t probability_and_dfs(struct lk_stream *s, double *v) {
    v[0] = probability(s);
    v[1] = whole(s);
    v[2] = whole(s);
    return 3;
}

static size_t binomial(struct lk_stream *s, double *v) {
    uint64_t n = 1 + lk_stream_bounded(s, 1000);
    v[0] = (double)lk_stream_bounded(s, n + 1);
    v[1] = (double)n;
    v[2] = (double)(1 + lk_stream_bounded(s, 1023)) / 1024;
    return 3;
}

static double normal_cdf(const double *v) { return lk_normal_cdf(v[0]); }
static double normal_quantile(const double *v) { return lk_normal_quantile(v[0]); }
static double log_gamma(const double *v) { return lk_log_gamma(v[0]); }
static double gamma_q(const double *v) { return lk_gamma_q(v[0], v[1]); }
static double beta(const double *v) { return lk_beta(v[0], v[1], lk_share(v[2])); }
static double beta_inverse(const double *v) { return lk_beta_inverse(v[0], v[1], lk_share(v[2])).x; }
static double t_two_sided(const double *v) { return lk_t_two_sided(v[0], v[1]); }
static double t_quantile(const double *v) { return lk_t_quantile(v[0], v[1]); }
static double f_sf(const double *v) { return lk_f_sf(v[0], v[1], v[2]); }
static double f_quantile(const double *v) { return lk_f_quantile(v[0], v[1], v[2]); }
static double binomial_pmf(const double *v) { return lk_binomial_pmf((int64_t)v[0], (int64_t)v[1], v[2]); }
static double binomial_at_most(const double *v) { return lk_binomial_at_most((int64_t)v[0], (int64_t)v[1], v[2]); }

static const struct {
    const char *name;
    size_t (*draw)(struct lk_stream *stream, double *values);
    double (*call)(const double *values);
} functions[] = {
    {"normal_cdf", normal_z, normal_cdf},
    {"normal_quantile", one_probability, normal_quantile},
    {"log_gamma", positive, log_gamma},
    {"gamma_q", gamma_x, gamma_q},
    {"beta", beta_x, beta},
    {"beta_inverse", beta_share, beta_inverse},
    {"t_two_sided", t_and_df, t_two_sided},
    {"t_quantile", probability_and_df, t_quantile},
    {"f_sf", f_and_dfs, f_sf},
    {"f_quantile", probability_and_dfs, f_quantile},
    {"binomial_pmf", binomial, binomial_pmf},
    {"binomial_at_most", binomial, binomial_at_most},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

/* Relative error 1e-12, and 1e-9 for values under 1e-20. */
static void as_mpmath(void **state) {
    (void)state;
    struct stats_golden golden;
    if (given_path)
        stats_golden_open_path(&golden, given_path, N_FUNCTIONS);
    else
        stats_golden_open(&golden, "special", N_FUNCTIONS);
    uint64_t checksum = STATS_CHECKSUM_START;
    double worst[N_FUNCTIONS][2] = {{0}};
    int n_tail[N_FUNCTIONS] = {0}, n_skipped[N_FUNCTIONS] = {0};
    for (int point = 0; point < (int)golden.n_cases; point++)
        for (int f = 0; f < N_FUNCTIONS; f++) {
            double values[4], expected = stats_row(&golden, point)[f];
            struct lk_stream stream = stats_stream(functions[f].name, point);
            checksum = stats_checksum(checksum, values, functions[f].draw(&stream, values));
            double got = functions[f].call(values), error = expected == 0 ? fabs(got) : fabs(got / expected - 1);
            bool tail = fabs(expected) < 1e-20;
            n_tail[f] += tail;
            n_skipped[f] += isnan(expected);
            if (isnan(expected)) continue;
            if (given_path)
                worst[f][tail] = fmax(worst[f][tail], error);
            else
                stats_assert_close(functions[f].name, point, got, expected, tail ? 1e-9 : 1e-12, 0);
        }
    for (int f = 0; given_path && f < N_FUNCTIONS; f++)
        printf("%-22s %.1e, tail %.1e (%d points; %d beyond double)\n", functions[f].name, worst[f][0], worst[f][1],
               n_tail[f], n_skipped[f]);
    for (int f = 0; given_path && f < N_FUNCTIONS; f++) assert_true(worst[f][0] <= 1e-12 && worst[f][1] <= 1e-9);
    stats_golden_finish(&golden, checksum);
}

static void ends_and_domains(void **state) {
    (void)state;
    assert_true(lk_normal_quantile(0) == -INFINITY && lk_normal_quantile(1) == INFINITY &&
                lk_normal_quantile(0.5) == 0);
    assert_true(lk_gamma_q(2, 0) == 1 && lk_gamma_q(2, INFINITY) == 0);
    assert_true(lk_beta(2, 3, lk_share(0)) == 0 && lk_beta(2, 3, lk_share(1)) == 1);
    assert_true(lk_beta_inverse(2, 3, lk_share(0)).x == 0 && lk_beta_inverse(2, 3, lk_share(1)).y == 0);
    assert_true(lk_t_quantile(0.5, 3) == 0 && lk_t_quantile(0, 3) == -INFINITY && lk_t_two_sided(INFINITY, 3) == 0);
    assert_true(lk_f_sf(0, 2, 3) == 1 && lk_f_sf(INFINITY, 2, 3) == 0);
    assert_true(lk_f_quantile(0, 2, 3) == 0 && lk_f_quantile(1, 2, 3) == INFINITY);
    assert_true(lk_chi2_sf(0, 4) == 1);
    assert_true(lk_binomial_at_most(-1, 4, 0.5) == 0 && lk_binomial_at_most(4, 4, 0.5) == 1);
    assert_true(lk_binomial_at_least(0, 4, 0.5) == 1 && lk_binomial_at_least(5, 4, 0.5) == 0);
    assert_true(lk_binomial_pmf(0, 0, 0.5) == 1 && lk_binomial_pmf(4, 4, 1) == 1 && lk_binomial_pmf(3, 4, 0) == 0);
    const double outside[] = {
        lk_normal_quantile(-0.1),
        lk_normal_quantile(NAN),
        lk_gamma_q(0, 1),
        lk_gamma_q(2, -1),
        lk_gamma_q(1e300, 1e300),
        lk_beta(0, 1, lk_share(0.5)),
        lk_beta(1, 1, lk_share(NAN)),
        lk_beta_inverse(1, 1, lk_share(2)).x,
        lk_t_quantile(0.5, 0),
        lk_t_two_sided(NAN, 5),
        lk_f_sf(-1, 2, 2),
        lk_f_quantile(0.5, -1, 2),
        lk_chi2_sf(3, 0),
        lk_binomial_pmf(1, -1, 0.5),
        lk_binomial_at_most(1, 2, 1.5),
        lk_log_choose(3, 4),
    };
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        if (!isnan(outside[i])) fail_msg("value %zu: expected NaN, got %g", i, outside[i]);
}

/* What a tail lacks to 1 is the other one, and quantiles of the whole give the whole back. */
static void tails_complete_each_other(void **state) {
    (void)state;
    for (int i = 1; i < 200; i++) {
        double x = i * 0.11;
        stats_assert_close("normal", i, lk_normal_sf(x - 10) + lk_normal_cdf(x - 10), 1, 4e-16, 0);
        int64_t k = i / 4;
        stats_assert_close("binomial", i, lk_binomial_at_most(k, 60, 0.3) + lk_binomial_at_least(k + 1, 60, 0.3), 1,
                           4e-15, 0);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) given_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_mpmath),
        cmocka_unit_test(ends_and_domains),
        cmocka_unit_test(tails_complete_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
