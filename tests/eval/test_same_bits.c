/* One analysis, computed again: with one to four threads, with items and ratings in another order, and after the scores
 * went through the long table and back. All numbers are compared with ==. */
#include <math.h>
#include <stdbool.h>

#include "engine/base/alloc.h"
#include "eval/human/combine.h"
#include "eval/judge/ensemble.h"
#include "eval/report/measures.h"
#include "eval/scores/long_table.h"
#include "eval/stats/resampling/bootstrap_rates.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/agreement/kappa.h"
#include "eval/stats/agreement/krippendorff.h"
#include "eval/stats/models/linear_model.h"
#include "eval/stats/resampling/permutation.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/study/random.h"
#include "tests/common/planted.h"
#include "tests/common/test.h"

enum { MAX = 1024 };
static const struct lk_thresholds thresholds = LK_THRESHOLDS_DEFAULT;
static const struct planted design = {
    .race_drift = {{0.1, 0.2, 0.3}, {0.4, 0.3, 0.2}, {0.2, 0.2, 0.2}, {0.1, 0.3, 0.5}, {0.5, 0.4, 0.6}, {0.3}, {0.4}},
    .soft_erasure = {0.1, 0.3, 0.2, 0.25, 0.4, 0.35, 0.15},
    .shared = 0.4,
    .judge_error = {0.1, 0.2},
    .repaired = {0.3, 0.6, 0.5, 0.4, 0.7, 0.5, 0.5},
    .noise = 0.3};

struct analysis {
    const char *what[MAX];
    double numbers[MAX];
    int n;
};

static void put(struct analysis *a, const char *what, double x) {
    assert_true(a->n < MAX && !isnan(x));
    a->what[a->n] = what;
    a->numbers[a->n++] = x;
}
static void put_number(struct analysis *a, const char *what, const struct lk_number *number) {
    assert_null(number->undefined);
    put(a, what, number->value);
    put(a, what, number->low);
    put(a, what, number->high);
    put(a, what, (double)number->n);
}
static void put_test(struct analysis *a, const struct lk_test *test) {
    assert_null(test->undefined);
    put(a, test->name, test->statistic);
    put(a, test->name, test->p);
    put(a, test->name, test->effect);
}

/* All edited items, in the dataset's order; and the rated ones with their raters side by side. */
struct columns {
    size_t n, n_rated, n_pairs;
    double values[PLANTED_EDITED * LK_N_MEASURES], level[PLANTED_EDITED], success[PLANTED_EDITED];
    int32_t race[PLANTED_EDITED], model[PLANTED_EDITED], source[PLANTED_EDITED];
    double ratings[1000 * PLANTED_RATERS];
    int32_t labels[PLANTED_RATERS][1000], source_rated[1000];
    double differences[500];
};

static void fill_rated(const struct lk_dataset *data, struct columns *c) {
    static double table[PLANTED_ITEMS][PLANTED_RATERS];
    memset(table, 0, sizeof table);
    for (size_t i = 0; i < data->n_ratings; i++) {
        const char *id = data->raters[data->ratings[i].rater].id; /* ann, bob, cem */
        table[data->ratings[i].item][id[0] - 'a'] = data->ratings[i].score[LK_AXIS_RACE_DRIFT];
    }
    c->n_rated = c->n_pairs = 0;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = data->items + i;
        if (table[i][0] == 0) continue;
        for (int r = 0; r < PLANTED_RATERS; r++) {
            c->ratings[c->n_rated * PLANTED_RATERS + (size_t)r] = table[i][r];
            c->labels[r][c->n_rated] = (int32_t)table[i][r];
        }
        c->source_rated[c->n_rated++] = item->source;
        if (item->arm == LK_ARM_PRESERVED)
            c->differences[c->n_pairs++] =
                data->items[item->partner].human_mean[LK_AXIS_RACE_DRIFT] - item->human_mean[LK_AXIS_RACE_DRIFT];
    }
    assert_true(c->n_rated == 1000 && c->n_pairs == 500);
}

static void fill(const struct lk_dataset *data, struct columns *c) {
    c->n = 0;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = data->items + i;
        if (item->arm != LK_ARM_EDITED) continue;
        for (int m = 0; m < LK_N_MEASURES; m++) {
            int is = lk_measure_of((enum lk_measure)m, item->score, item->prompt, &thresholds);
            c->values[c->n * LK_N_MEASURES + (size_t)m] = is < 0 ? NAN : is;
        }
        c->level[c->n] = item->score[LK_AXIS_RACE_DRIFT];
        c->success[c->n] = item->score[LK_AXIS_EDIT_SUCCESS];
        c->race[c->n] = item->race;
        c->model[c->n] = item->model;
        c->source[c->n++] = item->source;
    }
    assert_int_equal(c->n, PLANTED_EDITED);
    fill_rated(data, c);
}

static void rates(const struct columns *c, const struct lk_resampling *how, struct analysis *a) {
    const struct lk_grouping groupings[] = {{c->race, LK_N_RACES}, {c->model, LK_N_MODELS}};
    const struct lk_rates in = {c->n, LK_N_MEASURES, c->values, 2, groupings};
    struct lk_rate_results *results;
    assert_ok(lk_bootstrap_rates(&in, how, &results));
    for (int m = 0; m < LK_N_MEASURES; m++) {
        for (int r = 0; r < LK_N_RACES; r++) put_number(a, "rate by race", lk_rate_of(results, 0, r, m));
        for (int k = 0; k < LK_N_MODELS; k++) put_number(a, "rate by model", lk_rate_of(results, 1, k, m));
        for (int g = 0; g < 2; g++) {
            const struct lk_disparity *disparity = lk_disparity_of(results, g, m);
            put_number(a, "disparity", &disparity->number);
            put(a, "highest", disparity->highest);
            put(a, "lowest", disparity->lowest);
        }
    }
    lk_rate_results_free(results);
}

/* Of the four alphas the ratio one, last, sums fractions: in another order its last bit differs. */
static void agreement(const struct columns *c, const struct lk_resampling *how, bool ordered, struct analysis *a) {
    struct lk_resampling by_source = *how;
    by_source.clusters = c->source_rated;
    for (int w = LK_WEIGHTS_NONE; w <= LK_WEIGHTS_QUADRATIC; w++) {
        struct lk_kappa kappa;
        assert_ok(lk_cohen_kappa(c->labels[0], c->labels[1], c->n_rated, 1, 5, (enum lk_weights)w, &kappa));
        put_number(a, "kappa", &kappa.kappa);
        put(a, "kappa's z", kappa.z);
    }
    struct lk_number alpha[LK_N_MEASUREMENTS];
    assert_ok(lk_krippendorff_intervals(c->ratings, c->n_rated, PLANTED_RATERS, &by_source, alpha));
    for (int m = 0; m < LK_N_MEASUREMENTS - !ordered; m++)
        put_number(a, lk_measurement_name((enum lk_measurement)m), &alpha[m]);
}

static void tests_of(const struct columns *c, const struct lk_resampling *how, struct analysis *a) {
    static double grouped[PLANTED_EDITED];
    size_t sizes[LK_N_RACES] = {0}, n = 0;
    int64_t counts[LK_N_RACES * 2] = {0};
    double means[LK_N_SOURCES] = {0};
    int32_t half[LK_N_SOURCES];
    struct lk_test test;
    struct lk_contingency table;
    for (int r = 0; r < LK_N_RACES; r++)
        for (size_t i = 0; i < c->n; i++)
            if (c->race[i] == r) {
                grouped[n++] = c->level[i];
                sizes[r]++;
                counts[2 * r + (c->level[i] >= 3)]++;
            }
    for (size_t i = 0; i < c->n; i++) means[c->source[i]] += c->level[i];
    for (int s = 0; s < LK_N_SOURCES; s++) half[s] = s % 12 < 6; /* gender */
    assert_ok(lk_kruskal_wallis(grouped, sizes, LK_N_RACES, &test));
    put_test(a, &test);
    assert_ok(lk_mann_whitney(grouped, sizes[0], grouped + sizes[0], sizes[1], NULL, &test));
    put_test(a, &test);
    assert_ok(lk_wilcoxon(c->differences, c->n_pairs, NULL, &test));
    put_test(a, &test);
    assert_ok(lk_chi2_contingency(counts, LK_N_RACES, 2, &table, NULL, NULL));
    put_test(a, &table.test);
    assert_ok(
        lk_two_proportions(counts[1], counts[0] + counts[1], counts[3], counts[2] + counts[3], LK_TWO_SIDED, &test));
    put_test(a, &test);
    assert_ok(lk_spearman(c->level, c->success, c->n, &test));
    put_test(a, &test);
    assert_ok(lk_kendall(c->level, c->success, c->n, &test));
    put_test(a, &test);
    assert_ok(lk_permutation_means(means, half, LK_N_SOURCES, how, &test));
    put(a, "permutation of sources", test.statistic);
    put(a, "permutation of sources", test.p);
}

/* Sums of fractions: another order may change their last bits, so they are not part of what a shuffle leaves. */
static void in_order(const struct lk_dataset *data, const struct columns *c, struct analysis *a) {
    const struct lk_model_factor factors[] = {{"race", c->race, LK_N_RACES}, {"model", c->model, LK_N_MODELS}};
    const struct lk_model_term terms[] = {{0, -1}, {1, -1}, {0, 1}};
    struct lk_linear_model *model;
    struct lk_cluster_mean mean;
    assert_ok(lk_linear_model_fit(c->level, c->n, factors, 2, terms, 3, c->source, &model));
    for (int t = 0; t < 3; t++) {
        put(a, "Wald F", model->terms[t].clustered.f);
        put(a, "Wald p", model->terms[t].clustered.p_f);
    }
    lk_linear_model_free(model);
    assert_ok(lk_cluster_mean(c->level, c->source, c->n, 0.95, &mean));
    put_number(a, "mean of clusters", &mean.clustered);
    put(a, "icc", mean.icc.value);
    for (int arm = 0; arm < LK_N_ARMS; arm++) {
        struct lk_group group = lk_group_with((struct lk_group)LK_GROUP_ANY, LK_FACTOR_ARM, arm);
        for (int axis = 0; axis < LK_N_AXES; axis++)
            put(a, "mean of raters", lk_mean_of(data, &group, (enum lk_axis)axis, LK_SCORES_HUMAN).sum);
    }
}

static struct columns columns;

static void analyse(const struct lk_dataset *data, int n_threads, bool ordered, struct analysis *a) {
    fill(data, &columns);
    struct lk_resampling how = {42, 300, 0.95, columns.source, n_threads};
    a->n = 0;
    rates(&columns, &how, a);
    agreement(&columns, &how, ordered, a);
    how.clusters = NULL;
    tests_of(&columns, &how, a);
    for (int r = 0; r < LK_N_RACES; r++) {
        struct lk_group group = lk_group_with((struct lk_group)LK_GROUP_ANY, LK_FACTOR_RACE, r);
        struct lk_paired p = lk_paired_of(data, group, LK_AXIS_RACE_DRIFT, LK_SCORES_JUDGE, false, true, &thresholds);
        put(a, "edited", p.edited);
        put(a, "preserved", p.preserved);
        put(a, "pairs", (double)p.n);
    }
    if (ordered) in_order(data, &columns, a);
}

static void assert_same(const struct analysis *got, const struct analysis *expected) {
    assert_int_equal(got->n, expected->n);
    for (int i = 0; i < got->n; i++)
        if (got->numbers[i] != expected->numbers[i])
            fail_msg("number %d (%s): %.17g, expected %.17g", i, got->what[i], got->numbers[i], expected->numbers[i]);
}

static struct lk_dataset data;
static struct analysis expected, got;

static int set_up(void **state) {
    (void)state;
    lk_dataset_init(&data);
    assert_ok(planted_items(&data));
    assert_ok(planted_scores(&data, &design, 7, 0));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lk_dataset_free(&data);
    return 0;
}

static void any_number_of_threads(void **state) {
    (void)state;
    analyse(&data, 1, true, &expected);
    assert_true(expected.n > 500);
    for (int n_threads = 2; n_threads <= 4; n_threads++) {
        analyse(&data, n_threads, true, &got);
        assert_same(&got, &expected);
    }
}

static void order_of(struct lk_stream *stream, int32_t *order, size_t n) {
    for (size_t i = 0; i < n; i++) order[i] = (int32_t)i;
    lk_stream_shuffle(stream, order, n);
}

static void complete(struct lk_dataset *copy) {
    lk_dataset_pair(copy);
    lk_ensemble_apply(copy, &(struct lk_ensemble){LK_HALF_EVEN, false}, NULL);
    assert_ok(lk_combine(copy));
}

static void shuffled(struct lk_dataset *copy, uint64_t seed) {
    static int32_t order[PLANTED_ITEMS], place[PLANTED_ITEMS];
    struct lk_stream stream;
    lk_stream_seed(&stream, seed);
    order_of(&stream, order, data.n_items);
    for (size_t i = 0; i < data.n_items; i++) {
        const struct lk_item *item = data.items + order[i];
        assert_ok(lk_dataset_item(copy, item->id, strlen(item->id), &place[order[i]]));
        memcpy(copy->items[i].judge, item->judge, sizeof item->judge);
    }
    order_of(&stream, order, data.n_ratings);
    for (size_t i = 0; i < data.n_ratings; i++) {
        const struct lk_rating *from = data.ratings + order[i];
        struct lk_rating *rating;
        const char *rater = data.raters[from->rater].id;
        assert_ok(lk_dataset_rating(copy, &rating));
        rating->item = place[from->item];
        memcpy(rating->score, from->score, sizeof from->score);
        assert_ok(lk_dataset_rater(copy, rater, strlen(rater), &rating->rater));
    }
    complete(copy);
}

static void items_and_ratings_in_any_order(void **state) {
    (void)state;
    analyse(&data, 2, false, &expected);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct lk_dataset copy;
        lk_dataset_init(&copy);
        shuffled(&copy, seed);
        analyse(&copy, 2, false, &got);
        assert_same(&got, &expected);
        lk_dataset_free(&copy);
    }
}

static void through_the_long_table(void **state) {
    (void)state;
    struct lk_dataset copy;
    struct lk_long_report report;
    char *text;
    size_t n;
    analyse(&data, 2, true, &expected);
    assert_ok(lk_long_table_write(&data, "planted", &text, &n));
    lk_dataset_init(&copy);
    assert_ok(lk_long_table_read(&copy, text, n, "planted.csv", &report));
    lk_free(text);
    assert_int_equal(report.n_judge, (size_t)PLANTED_ITEMS * LK_N_JUDGES * LK_N_AXES);
    assert_int_equal(report.n_rater, 1000 * PLANTED_RATERS * LK_N_AXES);
    assert_int_equal(copy.n_items, data.n_items);
    complete(&copy);
    analyse(&copy, 2, true, &got);
    assert_same(&got, &expected);
    lk_dataset_free(&copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(items_and_ratings_in_any_order),
        cmocka_unit_test(through_the_long_table),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
