/* Means and linear models of observations in clusters against statsmodels, and against R's clubSandwich. */
#include <math.h>
#include <stdbool.h>

#include "eval/stats/models/cholesky.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/models/linear_model.h"
#include "eval/stats/models/symmetric_eigen.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

enum { MAX = 128 };
static const enum stats_kind kinds[] = {STATS_SCORES, STATS_MEANS, STATS_BINARY, STATS_FINE};

static void close_to(const char *what, int number, double got, double expected) {
    if (!isnan(expected)) stats_assert_close(what, number, got, expected, 1e-10, 1e-11);
}

static void p_close_to(const char *what, int number, double got, double expected) {
    if (!isnan(expected)) stats_assert_close(what, number, got, expected, 1e-8, 1e-300);
}

static void means_against_statsmodels(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "cluster_mean", 9);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("cluster_mean", c);
        const double *expected = golden.values + 9 * c;
        double y[MAX], flat[MAX];
        int32_t clusters[MAX];
        size_t n = 1 + lk_stream_bounded(&s, 40);
        uint64_t n_clusters = 1 + lk_stream_bounded(&s, 12);
        stats_values(&s, y, n, kinds[c % 4]);
        for (size_t i = 0; i < n; i++) flat[i] = clusters[i] = (int32_t)lk_stream_bounded(&s, n_clusters);
        for (size_t i = 0; i < n && c % 3 == 0; i++) y[i] += 2.0 * clusters[i];
        checksum = stats_checksum(stats_checksum(checksum, y, n), flat, n);
        y[n] = NAN; /* left out */
        clusters[n] = 99;
        struct lk_cluster_mean mean;
        assert_ok(lk_cluster_mean(y, clusters, n + 1, 0.95, &mean));
        close_to("se", c, mean.independent_error, expected[0]);
        close_to("low", c, mean.independent.low, expected[1]);
        close_to("high", c, mean.independent.high, expected[2]);
        close_to("cluster se", c, mean.clustered_error, expected[3]);
        close_to("cluster low", c, mean.clustered.low, expected[4]);
        close_to("cluster high", c, mean.clustered.high, expected[5]);
        close_to("design effect", c, mean.design_effect.value, expected[6]);
        assert_int_equal(mean.design_effect.undefined != NULL, isnan(expected[6]));
        close_to("icc", c, mean.icc.value, expected[7]);
        close_to("kish", c, mean.kish.value, expected[8]);
    }
    assert_true(checksum == golden.inputs);
    stats_golden_close(&golden);
}

struct observations {
    size_t n;
    double y[MAX];
    int32_t clusters[MAX], a[MAX], b[MAX];
    int levels[2];
};

/* lone: in every fifth case the last level of a belongs to one cluster. */
static void make(struct observations *o, const char *statistic, int number, bool lone, uint64_t *checksum) {
    struct lk_stream s = stats_stream(statistic, number);
    double flat[3 * MAX];
    bool small = number % 12 == 5;
    o->n = (small ? 1 : 30) + lk_stream_bounded(&s, 90);
    uint64_t n_clusters = (small ? 1 : 10) + lk_stream_bounded(&s, 24);
    o->levels[0] = (small ? 1 : 2) + (int)lk_stream_bounded(&s, 3);
    o->levels[1] = (small ? 1 : 2) + (int)lk_stream_bounded(&s, 2);
    for (size_t i = 0; i < o->n; i++) o->clusters[i] = (int32_t)lk_stream_bounded(&s, n_clusters);
    for (size_t i = 0; i < o->n; i++) o->a[i] = (int32_t)lk_stream_bounded(&s, (uint64_t)o->levels[0]);
    for (size_t i = 0; i < o->n; i++) o->b[i] = (int32_t)lk_stream_bounded(&s, (uint64_t)o->levels[1]);
    for (size_t i = 0; i < o->n && number % 4 == 0; i++) o->a[i] = o->clusters[i] % o->levels[0];
    for (size_t i = 0; i < o->n && lone && number % 5 == 3; i++)
        o->a[i] =
            o->clusters[i] == o->clusters[0] ? o->levels[0] - 1 : o->a[i] % (o->levels[0] > 1 ? o->levels[0] - 1 : 1);
    stats_values(&s, o->y, o->n, kinds[number % 4]);
    for (size_t i = 0; i < o->n; i++) {
        o->y[i] += 2.0 * o->b[i];
        flat[i] = o->clusters[i];
        flat[o->n + i] = o->a[i];
        flat[2 * o->n + i] = o->b[i];
    }
    *checksum = stats_checksum(stats_checksum(*checksum, o->y, o->n), flat, 3 * o->n);
}

static int check_model(const struct lk_linear_model *model, int c, const double *expected) {
    double sums[3] = {0};
    int compared = 0;
    for (int k = 0; k < model->n_columns; k++) {
        sums[0] += (k + 1) * model->columns[k].coefficient;
        sums[1] += (k + 1) * model->columns[k].independent_error;
        sums[2] += (k + 1) * model->columns[k].clustered_error;
    }
    close_to("coefficients", c, sums[0], expected[0]);
    close_to("errors", c, sums[1], expected[1]);
    close_to("cluster errors", c, sums[2], expected[2]);
    for (int t = 0; t < model->n_terms; t++) {
        const double *of_term = expected + 3 + 5 * t;
        const struct lk_wald *independent = &model->terms[t].independent, *clustered = &model->terms[t].clustered;
        close_to("F", c, independent->f, of_term[0]);
        p_close_to("p", c, independent->p_f, of_term[1]);
        close_to("cluster F", c, clustered->f, of_term[2]);
        p_close_to("cluster p", c, clustered->p_f, of_term[3]);
        p_close_to("cluster p of chi2", c, clustered->p_chi2, of_term[4]);
        compared += !isnan(of_term[2]);
    }
    return compared;
}

static void models_against_statsmodels(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "linear_model", 18);
    uint64_t checksum = STATS_CHECKSUM_START;
    const struct lk_model_term terms[] = {{0, -1}, {1, -1}, {0, 1}};
    int compared = 0, n_defined = 0;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        static struct observations o;
        make(&o, "linear_model", c, false, &checksum);
        const struct lk_model_factor factors[] = {{"a", o.a, o.levels[0]}, {"b", o.b, o.levels[1]}};
        struct lk_linear_model *model;
        assert_ok(lk_linear_model_fit(o.y, o.n, factors, 2, terms, 2 + c % 2, o.clusters, &model));
        if (!isnan(golden.values[18 * c])) {
            assert_null(model->undefined);
            compared += check_model(model, c, golden.values + 18 * c);
            n_defined++;
        }
        lk_linear_model_free(model);
    }
    assert_true(n_defined > 200 && compared > 450);
    assert_true(checksum == golden.inputs);
    stats_golden_close(&golden);
}

/* Error, df and upper end of the mean and of every coefficient, as sums with weights 1, 2, ...; p of the last one. */
static void check_contrasts(const struct lk_linear_model *model, const struct lk_cluster_mean *mean, int c,
                            const double *expected) {
    double sums[3] = {mean->cr2_error, mean->cr2_df, mean->cr2.high}, one[LK_MODEL_COLUMNS_MAX] = {0};
    struct lk_contrast contrast;
    for (int k = 0; k < model->n_columns; k++) {
        one[k] = 1;
        assert_ok(lk_linear_model_contrast(model, one, 0.95, &contrast));
        one[k] = 0;
        sums[0] += (k + 2) * contrast.error;
        sums[1] += (k + 2) * contrast.df;
        sums[2] += (k + 2) * contrast.high;
        assert_true(isnan(expected[0]) || !contrast.undefined);
    }
    close_to("errors", c, sums[0], expected[0]);
    close_to("df", c, sums[1], expected[1]);
    close_to("highs", c, sums[2], expected[2]);
    p_close_to("p", c, contrast.p, expected[3]);
}

/* The mean is the model without factors. */
static void check_mean(const struct observations *o, const struct lk_cluster_mean *mean, int c) {
    struct lk_linear_model *model;
    struct lk_contrast contrast;
    assert_ok(lk_linear_model_fit(o->y, o->n, NULL, 0, NULL, 0, o->clusters, &model));
    assert_ok(lk_linear_model_contrast(model, (const double[]){1}, 0.95, &contrast));
    stats_assert_value("error of the mean", c, mean->cr2_error, contrast.error);
    stats_assert_value("df of the mean", c, mean->cr2_df, contrast.df);
    stats_assert_value("low of the mean", c, mean->cr2.low, contrast.low);
    lk_linear_model_free(model);
}

static int check_hotelling(const struct lk_linear_model *model, int c, const double *expected) {
    struct lk_wald wald;
    int compared = 0;
    for (int t = 0; t < model->n_terms; t++) {
        assert_ok(lk_linear_model_term(model, t, &wald));
        if (isnan(expected[t == 0 ? 0 : 2 + t])) continue;
        assert_null(wald.undefined);
        if (t < 2) close_to("F", c, wald.f, expected[3 * t]);
        if (t == 0) close_to("df", c, wald.df2, expected[1]);
        if (t != 1) p_close_to("p", c, wald.p_f, expected[2 + t]);
        compared++;
    }
    return compared;
}

static void bias_reduced_against_club_sandwich(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "cr2", 9);
    uint64_t checksum = STATS_CHECKSUM_START;
    const struct lk_model_term terms[] = {{0, -1}, {1, -1}, {0, 1}};
    int compared = 0, n_defined = 0;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        static struct observations o;
        make(&o, "cr2", c, true, &checksum);
        const struct lk_model_factor factors[] = {{"a", o.a, o.levels[0]}, {"b", o.b, o.levels[1]}};
        struct lk_linear_model *model;
        struct lk_cluster_mean mean;
        const double *expected = stats_row(&golden, c);
        assert_ok(lk_linear_model_fit(o.y, o.n, factors, 2, terms, 2 + c % 2, o.clusters, &model));
        assert_ok(lk_cluster_mean(o.y, o.clusters, o.n, 0.95, &mean));
        if (!model->undefined && model->cr2 && model->residual_variance > 0) {
            check_contrasts(model, &mean, c, expected);
            check_mean(&o, &mean, c);
            compared += check_hotelling(model, c, expected + 4);
            n_defined += !isnan(expected[0]);
        }
        lk_linear_model_free(model);
    }
    printf("%d cases, %d tests of terms\n", n_defined, compared);
    assert_true(n_defined >= 200 && compared > 450);
    stats_golden_finish(&golden, checksum);
}

static void degenerate(void **state) {
    (void)state;
    struct lk_cluster_mean mean;
    struct lk_linear_model *model;
    const double y[] = {1, 2, 4, 3, 5, 6}, infinite[] = {INFINITY}, none[] = {NAN};
    const int32_t one[] = {7, 7, 7, 7, 7, 7}, clusters[] = {1, 1, 2, 2, 3, 3}, a[] = {0, 0, 1, 1, 2, 2};
    const int32_t unknown[] = {-1, -1, -1, -1, -1, -1};
    assert_ok(lk_cluster_mean(none, one, 1, 0.95, &mean));
    assert_non_null(mean.clustered.undefined);
    assert_ok(lk_cluster_mean(y, one, 6, 0.95, &mean));
    assert_true(mean.clustered.value == 3.5 && mean.clustered.low == 0 && mean.design_effect.undefined);
    assert_ok(lk_cluster_mean(y, one, 1, 0.95, &mean));
    assert_true(mean.independent.value == 1 && mean.independent.high == 0);
    assert_fails(lk_cluster_mean(infinite, one, 1, 0.95, &mean), LK_E_INPUT, "finite");
    assert_fails(lk_cluster_mean(y, one, 6, 1, &mean), LK_E_INPUT, "confidence");
    const struct lk_model_factor factors[] = {{"a", a, 3}, {"same", a, 3}, {"unknown", unknown, 3}};
    const struct lk_model_term terms[] = {{0, -1}, {1, -1}}, bad[] = {{0, 3}};
    assert_ok(lk_linear_model_fit(y, 6, factors, 2, terms, 2, clusters, &model));
    assert_string_equal(model->undefined, "the columns are collinear");
    lk_linear_model_free(model);
    assert_ok(lk_linear_model_fit(y, 6, factors, 3, terms, 1, clusters, &model));
    assert_true(model->undefined && model->n == 0 && model->left_out == 6);
    lk_linear_model_free(model);
    assert_ok(lk_linear_model_fit(y, 6, factors, 1, terms, 1, one, &model));
    assert_true(!model->undefined && model->terms[0].clustered.undefined && !model->terms[0].independent.undefined);
    lk_linear_model_free(model);
    /* a factor that is constant within three clusters: its two columns exhaust the scores */
    assert_ok(lk_linear_model_fit(y, 6, factors, 1, terms, 1, clusters, &model));
    assert_non_null(model->terms[0].clustered.undefined);
    lk_linear_model_free(model);
    assert_fails(lk_linear_model_fit(y, 6, factors, 2, bad, 1, one, &model), LK_E_INPUT, "term 0");
    const struct lk_model_factor narrow[] = {{"a", a, 2}};
    assert_fails(lk_linear_model_fit(y, 6, narrow, 1, terms, 1, one, &model), LK_E_INPUT, "factor a, observation 4");
    assert_fails(lk_linear_model_fit(infinite, 1, factors, 1, terms, 1, one, &model), LK_E_INPUT, "finite");
    lk_linear_model_free(NULL);
    double singular[] = {1, 1, 1, 1}, regular[] = {4, 0, 2, 5}, inverse[4];
    assert_false(lk_cholesky(singular, 2));
    assert_true(lk_cholesky(regular, 2));
    lk_cholesky_inverse(regular, 2, inverse);
    close_to("inverse", 0, inverse[0], 5.0 / 16);
    close_to("inverse", 1, inverse[1], -2.0 / 16);
}

/* Where clusters tell too little apart, or nothing varies, a test says why; eigenvalues of small matrices by hand. */
static void degenerate_bias_reduced(void **state) {
    (void)state;
    const double y[] = {1, 2, 4, 3, 5, 6, 2, 2}, exact[] = {1, 2, 1, 2, 1, 2, 1, 2};
    const int32_t one[8] = {0}, pairs[] = {0, 0, 1, 1, 2, 2, 3, 3}, a[] = {0, 1, 0, 1, 0, 1, 0, 1};
    const struct lk_model_factor within[] = {{"a", a, 2}}, between[] = {{"pairs", pairs, 4}};
    const struct lk_model_term term[] = {{0, -1}};
    const double first[] = {1, 0, 0, 0};
    struct lk_linear_model *model;
    struct lk_wald wald;
    struct lk_contrast contrast;
    assert_ok(lk_linear_model_fit(y, 8, within, 1, term, 1, one, &model));
    assert_ok(lk_linear_model_term(model, 0, &wald));
    assert_string_equal(wald.undefined, "fewer than two clusters");
    assert_ok(lk_linear_model_contrast(model, first, 0.95, &contrast));
    assert_true(contrast.undefined && contrast.value == model->columns[0].coefficient);
    lk_linear_model_free(model);
    assert_ok(lk_linear_model_fit(exact, 8, within, 1, term, 1, pairs, &model));
    assert_ok(lk_linear_model_term(model, 0, &wald));
    assert_string_equal(wald.undefined, "the model fits exactly");
    lk_linear_model_free(model);
    /* every cluster has a column of its own: nothing is left of any */
    assert_ok(lk_linear_model_fit(y, 8, between, 1, term, 1, pairs, &model));
    assert_ok(lk_linear_model_term(model, 0, &wald));
    assert_non_null(wald.undefined);
    assert_ok(lk_linear_model_contrast(model, first, 0.95, &contrast));
    assert_string_equal(contrast.undefined, "no variance between clusters");
    assert_ok(lk_linear_model_wald(model, (const double[16]){0}, 4, &wald));
    assert_string_equal(wald.undefined, "more columns than clusters tell apart");
    assert_fails(lk_linear_model_term(model, 1, &wald), LK_E_INPUT, "expected 0 to 0, got 1");
    assert_fails(lk_linear_model_wald(model, first, 0, &wald), LK_E_INPUT, "expected 1 or more");
    assert_fails(lk_linear_model_contrast(model, first, 1, &contrast), LK_E_INPUT, "confidence");
    lk_linear_model_free(model);
    const struct lk_model_factor twice[] = {{"a", a, 2}, {"again", a, 2}};
    assert_ok(lk_linear_model_fit(y, 8, twice, 2, (const struct lk_model_term[]){{0, -1}, {1, -1}}, 2, pairs, &model));
    assert_ok(lk_linear_model_term(model, 0, &wald));
    assert_string_equal(wald.undefined, "the columns are collinear");
    lk_linear_model_free(model);
    double flat[] = {2, 1, 0, 1, 2, 0, 0, 0, 0}, values[3], vectors[9], scratch[6], sum = 0;
    assert_true(lk_symmetric_eigen(flat, 3, values, vectors, scratch));
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(values[i]) < 1e-15 || fabs(values[i] - 1) < 1e-15 || fabs(values[i] - 3) < 1e-15);
        assert_true(fabs(2 * vectors[3 * i] + vectors[3 * i + 1] - values[i] * vectors[3 * i]) < 1e-14);
        sum += values[i];
    }
    assert_true(fabs(sum - 4) < 1e-14);
}

static enum lk_code all_calls(void) {
    const double y[] = {1, 2, 4, 3, 5, 6};
    const int32_t clusters[] = {1, 1, 2, 2, 3, 3}, a[] = {0, 1, 1, 0, 1, 0};
    const struct lk_model_factor factors[] = {{"a", a, 2}};
    const struct lk_model_term terms[] = {{0, -1}};
    struct lk_cluster_mean mean;
    struct lk_linear_model *model;
    LK_TRY(lk_cluster_mean(y, clusters, 6, 0.95, &mean));
    struct lk_wald wald;
    struct lk_contrast contrast;
    LK_TRY(lk_linear_model_fit(y, 6, factors, 1, terms, 1, clusters, &model));
    enum lk_code rc = lk_linear_model_term(model, 0, &wald);
    if (!rc) rc = lk_linear_model_contrast(model, (const double[]){1, 1}, 0.95, &contrast);
    lk_linear_model_free(model);
    return rc;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    test_every_allocation(all_calls, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_against_statsmodels),
        cmocka_unit_test(models_against_statsmodels),
        cmocka_unit_test(bias_reduced_against_club_sandwich),
        cmocka_unit_test(degenerate),
        cmocka_unit_test(degenerate_bias_reduced),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
