/* The interval of the largest difference between groups: it holds its estimate always, and the truth as often as it
 * says. Data sets and seeds are fixed, so that a run cannot fail by chance; with LIKENESS_TEST_FULL there are 2,000 of
 * each design and 10,000 of any shape. */
#include <math.h>

#include "eval/report/measures.h"
#include "eval/stats/resampling/bootstrap_rates.h"
#include "eval/stats/resampling/resample.h"
#include "eval/stats/special/special.h"
#include "eval/study/prompts.h"
#include "tests/common/planted.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

enum { OF_RACE = LK_N_SOURCES / LK_N_RACES, N_DESIGNS = 3 };

static struct lk_dataset data;
static double drift[PLANTED_EDITED];
static int32_t race[PLANTED_EDITED], model[PLANTED_EDITED], source[PLANTED_EDITED];

static int set_up(void **state) {
    (void)state;
    lk_dataset_init(&data);
    assert_ok(planted_items(&data));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lk_dataset_free(&data);
    return 0;
}

/* No race differs, one does, each does. Two outputs of a source correlate by 0.16. */
static const double by_race[N_DESIGNS][LK_N_RACES] = {{0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25},
                                                      {0.2, 0.2, 0.2, 0.2, 0.4, 0.2, 0.2},
                                                      {0.05, 0.30, 0.20, 0.25, 0.45, 0.35, 0.15}};

static struct planted design_of(int d) {
    struct planted design = {.shared = 0.4, .judge_error = {0.1, 0.2}};
    for (int r = 0; r < LK_N_RACES; r++)
        for (int m = 0; m < LK_N_MODELS; m++) design.race_drift[r][m] = by_race[d][r];
    return design;
}

static size_t columns(int sources_of_race) {
    const struct lk_thresholds thresholds = LK_THRESHOLDS_DEFAULT;
    size_t n = 0;
    for (size_t i = 0; i < PLANTED_EDITED; i++) {
        const struct lk_item *item = data.items + i;
        if (item->source % OF_RACE >= sources_of_race) continue;
        drift[n] = lk_measure_of(LK_MEASURE_RACE_DRIFT, item->score, item->prompt, &thresholds);
        race[n] = item->race;
        model[n] = item->model;
        source[n++] = item->source;
    }
    return n;
}

static double truth_of(const struct planted *design) {
    double low = 1, high = 0;
    for (int r = 0; r < LK_N_RACES; r++) {
        double rate = planted_drift_rate(design, design->race_drift[r][0]);
        low = fmin(low, rate);
        high = fmax(high, rate);
    }
    return high - low;
}

struct held {
    int by_source, by_model;
};

static void look(int d, int sources_of_race, int n, struct held *held) {
    struct planted design = design_of(d);
    double truth = truth_of(&design);
    *held = (struct held){0};
    for (int b = 0; b < n; b++) {
        assert_ok(planted_scores(&data, &design, 21, (uint64_t)b));
        const struct lk_grouping groupings[] = {{race, LK_N_RACES}, {model, LK_N_MODELS}};
        const struct lk_rates rates = {columns(sources_of_race), 1, drift, 2, groupings};
        struct lk_resampling how = {(uint64_t)b, test_is_full() ? 500 : 300, 0.95, source, 1};
        struct lk_rate_results *results;
        assert_ok(lk_bootstrap_rates(&rates, &how, &results));
        const struct lk_number *number = &lk_disparity_of(results, 0, 0)->number;
        assert_true(number->low <= number->value && number->value <= number->high);
        held->by_source += number->low <= truth && truth <= number->high;
        held->by_model += lk_disparity_of(results, 1, 0)->number.low <= 0;
        lk_rate_results_free(results);
    }
}

/* Observed in 2,000 data sets each (no race differs, one does, each does), of 12 sources a race: 0.967, 0.942, 0.957;
 * of 3: 0.966, 0.9575, 0.9495; of models, which are equal: 0.9535 to 0.9595. */
static void the_truth_is_held_as_often_as_said(void **state) {
    (void)state;
    static const char *const names[N_DESIGNS] = {"no race differs", "one race differs", "each race differs"};
    int n = test_is_full() ? 2000 : 40;
    for (int few = 0; few < 2; few++)
        for (int d = 0; d < N_DESIGNS; d++) {
            struct held held;
            look(d, few ? 3 : OF_RACE, n, &held);
            printf("%2d sources a race, %-18s %.4f of races; of models, equal: %.4f\n", few ? 3 : OF_RACE, names[d],
                   (double)held.by_source / n, (double)held.by_model / n);
            const int counts[] = {held.by_source, held.by_model};
            for (int i = 0; i < 2; i++) {
                assert_true(counts[i] >= 0.94 * n - 3 * sqrt(0.05 * n));
                assert_true(counts[i] <= 0.97 * n + 3 * sqrt(0.03 * n));
            }
        }
}

/* Groups, units, clusters, values and missing ones of any number. */
static void every_interval_holds_its_estimate(void **state) {
    (void)state;
    enum { N_MAX = 200, GROUPS_MAX = 9 };
    double values[N_MAX];
    int32_t group[N_MAX], cluster[N_MAX];
    uint64_t random = 77;
    int n_defined = 0, n_sets = test_is_full() ? 10000 : 500;
    for (int set = 0; set < n_sets; set++) {
        int n = 1 + (int)(test_random(&random) % N_MAX), n_groups = 1 + (int)(test_random(&random) % GROUPS_MAX);
        int n_clusters = 1 + (int)(test_random(&random) % 40), kind = (int)(test_random(&random) % 4);
        double p = test_uniform(&random);
        for (int i = 0; i < n; i++) {
            cluster[i] = (int32_t)(test_random(&random) % (uint64_t)n_clusters);
            group[i] = (kind & 1 ? cluster[i] : (int32_t)(test_random(&random) % 100)) % n_groups;
            values[i] = kind < 2 ? test_uniform(&random) < p * p : exp(3 * test_normal(&random));
            if (test_uniform(&random) < 0.05) values[i] = NAN;
        }
        const struct lk_grouping by = {group, n_groups};
        const struct lk_rates rates = {(size_t)n, 1, values, 1, &by};
        struct lk_resampling how = {(uint64_t)set, 150, 0.95, set % 2 ? cluster : NULL, 1};
        struct lk_rate_results *results;
        assert_ok(lk_bootstrap_rates(&rates, &how, &results));
        const struct lk_number *number = &lk_disparity_of(results, 0, 0)->number;
        n_defined += number->low < number->high;
        if (number->low || number->high)
            assert_true(0 <= number->low && number->low <= number->value && number->value <= number->high);
        lk_rate_results_free(results);
    }
    printf("%d of %d have an interval\n", n_defined, n_sets);
    assert_true(n_defined > n_sets / 2);
}

/* The mean of one group as a callback over the drawn units sees it. */
struct group_mean {
    const double *values;
    const int32_t *group;
    int wanted;
};

static void mean_of_group(const int32_t *drawn, size_t n, const void *context, void *scratch, double *out) {
    (void)scratch;
    const struct group_mean *mean = context;
    double sum = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        if (mean->group[drawn[i]] != mean->wanted) continue;
        sum += mean->values[drawn[i]];
        count++;
    }
    *out = count > 0 ? sum / count : NAN;
}

enum { B_MAX = 1000, GROUPS_MAX = 8 };

/* The values nearest to mean [n] within a range of r: the edge of least squares lies where no neighbour is better. */
static void draw_in(const double *mean, int n, double r, double *out) {
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < n; i++) {
        low = fmin(low, mean[i]);
        high = fmax(high, mean[i]);
    }
    for (double step = (high - low) / 4, edge = low, best; step > 1e-13 * (high - low); step /= 2) {
        best = INFINITY;
        double from = edge - 4 * step, to = edge + 4 * step;
        for (double at = from; at <= to; at += step) {
            double squares = 0;
            for (int i = 0; i < n; i++) squares += pow(mean[i] - fmin(fmax(mean[i], at), at + r), 2);
            if (squares < best) edge = at;
            best = fmin(best, squares);
        }
        for (int i = 0; i < n; i++) out[i] = fmin(fmax(mean[i], edge), edge + r);
    }
}

/* The definition of range_interval.h in plain loops over the groups' own resamples. Returns how far the lower end is on
 * the way of its levels, 1 at their end. */
static double check_range(const double *values, const int32_t *of, int n_groups, size_t n,
                          const struct lk_resampling *how, double df_all, double df_pair, const struct lk_number *got) {
    static double means[GROUPS_MAX][B_MAX];
    double mean[GROUPS_MAX], drawn_in[GROUPS_MAX], high = 0, range = 0, error = 0, alpha = 1 - how->confidence;
    double wider[2] = {1, 1}, tail[2] = {alpha / 2, 0.7 * alpha / (n_groups * (n_groups - 1))};
    double z = -lk_normal_quantile(0.3 * alpha);
    int b_n = how->n_replicates;
    if (how->clusters) {
        size_t n_drawn;
        assert_ok(lk_resampling_units(n, how, &n_drawn));
        double own = sqrt((double)n_drawn / ((double)n_drawn - 1));
        for (int i = 0; i < 2; i++) wider[i] = own * lk_t_quantile(tail[i], df_all) / lk_normal_quantile(tail[i]);
        z = -own * lk_t_quantile(0.3 * alpha, df_pair);
    }
    for (int g = 0; g < n_groups; g++) {
        struct group_mean wanted = {values, of, g};
        struct lk_number number;
        assert_ok(lk_bootstrap(n, how, mean_of_group, &wanted, 0, 1, means[g]));
        assert_ok(lk_bootstrap_number(n, how, mean_of_group, &wanted, 0, LK_INTERVAL_PERCENTILE, &number));
        mean[g] = number.value;
    }
    for (int i = 0; i < n_groups; i++)
        for (int j = 0; j < n_groups; j++) {
            double sum = 0, squares = 0;
            int count = 0; /* a resample may have nothing of a group */
            for (int b = 0; b < b_n; b++) count += !isnan(means[i][b] - means[j][b]);
            for (int b = 0; b < b_n; b++)
                if (!isnan(means[i][b] - means[j][b])) sum += (means[i][b] - means[j][b]) / count;
            for (int b = 0; b < b_n; b++)
                if (!isnan(means[i][b] - means[j][b])) squares += pow(means[i][b] - means[j][b] - sum, 2);
            error = fmax(error, sqrt(squares / (count - 1)));
            high = fmax(high, mean[i] - mean[j] + z * sqrt(squares / (count - 1)));
            range = fmax(range, mean[i] - mean[j]);
        }
    stats_assert_close("range high", n_groups, got->high, high, 1e-9, 1e-12);
    assert_true(got->low <= got->value && got->value <= got->high);
    for (int side = -1; side <= 1; side += 2) { /* just outside the low end contradicted, just inside not */
        double r = got->low + side * 1e-6 * range, as_wide = 0, far = fmin(1, r / (z * error / 2));
        if (r < 0) continue;
        draw_in(mean, n_groups, r, drawn_in);
        for (int b = 0; b < b_n; b++) {
            double low = INFINITY, most = -INFINITY;
            for (int g = 0; g < n_groups; g++) {
                double x = drawn_in[g] + (wider[0] + far * (wider[1] - wider[0])) * (means[g][b] - mean[g]);
                if (x < low) low = x;
                if (x > most) most = x;
            }
            as_wide += most - low >= range;
        }
        assert_int_equal(as_wide / b_n >= alpha * (1 - 0.3 * far), side > 0);
    }
    return got->low / (z * error / 2);
}

/* Five groups of clustered values, one of which sticks out more or less: the bounds of all pairs at once. */
static void ranges_of_several_groups(void **state) {
    (void)state;
    enum { N = 600 };
    static const double by[2] = {75, 100};
    double values[N], shifted[N];
    int32_t group[N], cluster[N];
    struct lk_stream s = stats_stream("ranges", 0);
    stats_values(&s, values, N, STATS_FINE);
    for (int i = 0; i < N; i++) {
        cluster[i] = i / 10;
        group[i] = i / 10 % 5;
    }
    for (int shift = 0; shift < 2; shift++)
        for (int clustered = 0; clustered < 2; clustered++) {
            for (int i = 0; i < N; i++) shifted[i] = values[i] + (group[i] == 3 ? by[shift] : 0);
            const struct lk_grouping groups = {group, 5};
            const struct lk_rates rates = {N, 1, shifted, 1, &groups};
            struct lk_resampling how = {5, 500, 0.95, clustered ? cluster : NULL, 2};
            struct lk_rate_results *results;
            assert_ok(lk_bootstrap_rates(&rates, &how, &results));
            double way = check_range(shifted, group, 5, N, &how, 55, lk_expanded_df(12, 12),
                                     &lk_disparity_of(results, 0, 0)->number);
            if (shift == 0) assert_true(0.1 < way && way < 0.9);
            lk_rate_results_free(results);
        }
}

/* Groups that share clusters have more degrees of freedom; a group may be missing from a resample. */
static void ranges_of_two_groups(void **state) {
    (void)state;
    enum { OF = 4, N = 12 * OF };
    double values[N];
    int32_t group[N], cluster[N], mixed[N];
    struct lk_stream s = stats_stream("expanded", 0);
    stats_values(&s, values, N, STATS_FINE);
    for (int i = 0; i < N; i++) {
        cluster[i] = i / OF;
        group[i] = i / OF < 3 ? 0 : i / OF < 8 ? 1 : -1;
        mixed[i] = i % 2;
    }
    const struct lk_grouping groupings[] = {{group, 2}, {mixed, 2}};
    const struct lk_rates rates = {N, 1, values, 2, groupings};
    struct lk_resampling how = {3, 400, 0.95, cluster, 1};
    struct lk_rate_results *results;
    assert_ok(lk_bootstrap_rates(&rates, &how, &results));
    for (int m = 0; m < 2; m++)
        check_range(values, m ? mixed : group, 2, N, &how, m ? 11 : 6, m ? 11 : lk_expanded_df(3, 5),
                    &lk_disparity_of(results, m, 0)->number);
    lk_rate_results_free(results);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_truth_is_held_as_often_as_said),
        cmocka_unit_test(every_interval_holds_its_estimate),
        cmocka_unit_test(ranges_of_several_groups),
        cmocka_unit_test(ranges_of_two_groups),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
