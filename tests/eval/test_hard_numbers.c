/* Statistics of badly scaled data against references of 60 digits and more (tests/golden/generate_stats_hard.py). */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/stats/agreement/fleiss.h"
#include "eval/stats/agreement/gwet.h"
#include "eval/stats/agreement/icc.h"
#include "eval/stats/agreement/krippendorff.h"
#include "eval/stats/double_double.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/models/linear_model.h"
#include "eval/stats/models/prediction_powered.h"
#include "eval/stats/models/silhouette.h"
#include "eval/stats/proportion.h"
#include "eval/stats/special/special.h"
#include "eval/stats/summary.h"
#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/tests/multiple.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/stats/tests/sample_size.h"
#include "tests/common/test.h"

enum { MOST = 160 };

/* The line's numbers, up to "=". */
static char *take(char *at, double *out, int *n) {
    *n = 0;
    for (;;) {
        char *end;
        double value = strtod(at, &end);
        if (end == at) return at;
        assert_true(*n < MOST);
        out[(*n)++] = value;
        at = end;
    }
}

/* Relative, of what is no smaller than a p that anybody reports. */
static void near(const char *line, double got, double expected, double bound) {
    if (fabs(expected) < 1e-300 ? fabs(got) < 1e-299 : fabs(got - expected) <= bound * fabs(expected)) return;
    fail_msg("%.400s\nexpected %.17g, got %.17g", line, expected, got);
}

/* p; expected NULL: a reason instead. */
static void p_of(const char *line, const struct lk_test *test, const double *expected) {
    if (!expected != !!test->undefined) fail_msg("%.400s\n%s", line, test->undefined ? test->undefined : "defined");
    if (expected) near(line, test->p, *expected, 1e-9);
}

/* p and the statistic. */
static void result(const char *line, const struct lk_test *test, const double *expected) {
    p_of(line, test, expected);
    if (expected && fabs(expected[1]) > 1e-12) near(line, test->statistic, expected[1], 1e-9);
}

static void pearson(const char *line, const double *v, const double *expected) {
    const size_t n = (size_t)v[0];
    struct lk_test test;
    assert_ok(lk_pearson(v + 1, v + 1 + n, n, 0.95, &test, NULL));
    result(line, &test, expected);
}

static void icc(const char *line, const double *v, const double *expected) {
    struct lk_icc out[LK_N_ICC];
    assert_ok(lk_icc(v + 2, (size_t)v[0], (int)v[1], out));
    assert_null(out[LK_ICC3].f_undefined);
    near(line, out[LK_ICC3].p, expected[0], 1e-9);
}

static void kappa(const char *line, const double *v, const double *expected) {
    int64_t table[MOST];
    struct lk_kappa out;
    for (int i = 0; i < (int)(v[0] * v[0]); i++) table[i] = (int64_t)v[2 + i];
    assert_ok(lk_cohen_kappa_table(table, (int)v[0], (enum lk_weights)v[1], &out));
    if (!expected != !!out.kappa.undefined) fail_msg("%.400s\n%s", line, "undefined or not");
    if (!expected) return;
    near(line, out.p, expected[0], 1e-9);
    if (fabs(expected[1]) > 1e-100) near(line, out.kappa.value, expected[1], 1e-12);
    assert_true(out.kappa.low >= -1 && out.kappa.high <= 1);
}

static void cluster(const char *line, const double *v, const double *expected) {
    const size_t n = (size_t)v[0];
    int32_t groups[MOST];
    struct lk_cluster_mean out;
    for (size_t i = 0; i < n; i++) groups[i] = (int32_t)v[1 + i];
    assert_ok(lk_cluster_mean(v + 1 + n, groups, n, 0.95, &out));
    near(line, out.clustered_error, expected[0], 1e-9);
    if (fabs(expected[1]) > 1e-250) near(line, out.independent.value, expected[1], 1e-9);
}

static void spearman(const char *line, const double *v, const double *expected) {
    const size_t n = (size_t)v[0];
    struct lk_test test;
    assert_ok(lk_spearman(v + 1, v + 1 + n, n, &test));
    result(line, &test, expected);
}

static void kendall(const char *line, const double *v, const double *expected) {
    const size_t n = (size_t)v[0];
    struct lk_test test;
    assert_ok(lk_kendall(v + 1, v + 1 + n, n, &test));
    result(line, &test, expected);
}

static void kruskal(const char *line, const double *v, const double *expected) {
    const size_t n_groups = (size_t)v[0];
    size_t n[MOST];
    struct lk_test test;
    for (size_t g = 0; g < n_groups; g++) n[g] = (size_t)v[1 + g];
    assert_ok(lk_kruskal_wallis(v + 1 + n_groups, n, n_groups, &test));
    result(line, &test, expected);
}

static void friedman(const char *line, const double *v, const double *expected) {
    struct lk_test test;
    assert_ok(lk_friedman(v + 2, (size_t)v[0], (size_t)v[1], &test));
    result(line, &test, expected);
}

static void mann_whitney(const char *line, const double *v, const double *expected) {
    const size_t nx = (size_t)v[0];
    struct lk_test test;
    assert_ok(lk_mann_whitney(v + 2, nx, v + 2 + nx, (size_t)v[1], NULL, &test));
    result(line, &test, expected);
}

static void wilcoxon(const char *line, const double *v, const double *expected) {
    const struct lk_wilcoxon_options options = {.keep_digits = true};
    struct lk_test test;
    assert_ok(lk_wilcoxon(v + 1, (size_t)v[0], &options, &test));
    result(line, &test, expected);
}

static void contingency(const char *line, const double *v, const double *expected) {
    const size_t rows = (size_t)v[0], columns = (size_t)v[1];
    int64_t counts[MOST];
    struct lk_contingency out;
    for (size_t i = 0; i < rows * columns; i++) counts[i] = (int64_t)v[2 + i];
    assert_ok(lk_chi2_contingency(counts, rows, columns, &out, NULL, NULL));
    result(line, &out.uncorrected, expected);
    result(line, &out.test, expected ? expected + 2 : NULL);
}

static void fit(const char *line, const double *v, const double *expected) {
    const size_t k = (size_t)v[0];
    int64_t counts[MOST];
    struct lk_test test;
    for (size_t i = 0; i < k; i++) counts[i] = (int64_t)v[1 + i];
    assert_ok(lk_chi2_fit(counts, v + 1 + k, k, &test, NULL));
    result(line, &test, expected);
}

static void fisher(const char *line, const double *v, const double *expected) {
    const int64_t table[4] = {(int64_t)v[0], (int64_t)v[1], (int64_t)v[2], (int64_t)v[3]};
    struct lk_test test;
    assert_ok(lk_fisher_exact(table, LK_TWO_SIDED, &test));
    p_of(line, &test, expected);
}

static void mcnemar(const char *line, const double *v, const double *expected) {
    static const enum lk_mcnemar_method methods[] = {LK_MCNEMAR_EXACT, LK_MCNEMAR_CONTINUITY, LK_MCNEMAR_ASYMPTOTIC};
    for (int i = 0; i < 3; i++) {
        struct lk_test test;
        assert_ok(lk_mcnemar((int64_t)v[0], (int64_t)v[1], methods[i], &test));
        p_of(line, &test, expected ? expected + i : NULL);
    }
}

static void proportions(const char *line, const double *v, const double *expected) {
    struct lk_test test;
    assert_ok(lk_two_proportions((int64_t)v[0], (int64_t)v[1], (int64_t)v[2], (int64_t)v[3], LK_TWO_SIDED, &test));
    result(line, &test, expected);
}

static void binomial(const char *line, const double *v, const double *expected) {
    struct lk_test test;
    assert_ok(lk_binomial_test((int64_t)v[0], (int64_t)v[1], v[2], LK_TWO_SIDED, &test));
    p_of(line, &test, expected);
}

static void dunn(const char *line, const double *v, const double *expected) {
    const size_t n_groups = (size_t)v[0];
    size_t n[MOST] = {0};
    struct lk_test tests[MOST];
    for (size_t g = 0; g < n_groups; g++) n[g] = (size_t)v[1 + g];
    assert_ok(lk_dunn(v + 1 + n_groups, n, n_groups, tests));
    for (size_t i = 0; i < n_groups * (n_groups - 1) / 2; i++)
        result(line, &tests[i], expected ? expected + 2 * i : NULL);
}

/* Of coefficients: how far from 1, or from their own size; NULL: a reason instead. */
static void coefficient(const char *line, const struct lk_number *got, const double *expected) {
    if (!expected != !!got->undefined) fail_msg("%.400s\n%s", line, got->undefined ? got->undefined : "defined");
    if (!expected || fabs(got->value - *expected) <= 1e-12 * fmax(1, fabs(*expected))) return;
    fail_msg("%.400s\nexpected %.17g, got %.17g", line, *expected, got->value);
}

static const int32_t *whole_numbers(const double *v, size_t n) {
    static int32_t out[MOST];
    for (size_t i = 0; i < n; i++) out[i] = (int32_t)v[i];
    return out;
}

static void fleiss(const char *line, const double *v, const double *expected) {
    struct lk_fleiss out;
    assert_ok(lk_fleiss_kappa(whole_numbers(v + 2, (size_t)(v[0] * v[1])), (size_t)v[0], (int)v[1], 0, &out));
    coefficient(line, &out.kappa, expected);
}

static void gwet(const char *line, const double *v, const double *expected) {
    struct lk_gwet out;
    assert_ok(
        lk_gwet_ac(whole_numbers(v + 3, (size_t)(v[0] * v[1])), (size_t)v[0], (int)v[1], (enum lk_weights)v[2], &out));
    coefficient(line, &out.ac, expected ? expected + 1 : NULL);
    if (expected) near(line, out.p, expected[0], 1e-9);
}

static void alpha(const char *line, const double *v, const double *expected) {
    struct lk_number out;
    assert_ok(lk_krippendorff_alpha(v + 3, (size_t)v[1], (int)v[2], (enum lk_measurement)v[0], &out));
    coefficient(line, &out, expected);
}

static void icc_forms(const char *line, const double *v, const double *expected) {
    struct lk_icc out[LK_N_ICC];
    assert_ok(lk_icc(v + 2, (size_t)v[0], (int)v[1], out));
    for (int i = 0; i < LK_N_ICC; i++) {
        coefficient(line, &out[i].value, &expected[2 * i]);
        near(line, out[i].p, expected[2 * i + 1], 1e-9);
    }
}

static void summary(const char *line, const double *v, const double *expected) {
    struct lk_summary out;
    if (!expected) {
        assert_fails(lk_summarise(v + 1, (size_t)v[0], &out), LK_E_INPUT, "beyond");
        return;
    }
    assert_ok(lk_summarise(v + 1, (size_t)v[0], &out));
    near(line, out.sd, expected[1], 1e-9);
    if (fabs(out.mean - expected[0]) > 1e-15 * fmax(fabs(out.minimum), fabs(out.maximum)))
        fail_msg("%.400s\nexpected %.17g, got %.17g", line, expected[0], out.mean);
}

static void cluster_cr2(const char *line, const double *v, const double *expected) {
    const size_t n = (size_t)v[0];
    struct lk_cluster_mean out;
    assert_ok(lk_cluster_mean(v + 1 + n, whole_numbers(v + 1, n), n, 0.95, &out));
    near(line, out.cr2_error, expected[0], 1e-9);
    near(line, out.cr2_df, expected[1], 1e-9);
    if (expected[2] < 1 - 1e-6)
        near(line, lk_t_two_sided(out.cr2.value / out.cr2_error, out.cr2_df), expected[2], 1e-9);
}

static void adjust(const char *line, const double *v, const double *expected) {
    const size_t n = (size_t)v[0];
    for (int method = LK_ADJUST_BONFERRONI; method <= LK_ADJUST_BENJAMINI_YEKUTIELI; method++) {
        double adjusted[MOST];
        assert_ok(lk_adjust_p(v + 1, n, (enum lk_adjustment)method, adjusted));
        for (size_t i = 0; i < n; i++) near(line, adjusted[i], expected[(size_t)method * n + i], 1e-12);
    }
}

static void silhouette(const char *line, const double *v, const double *expected) {
    const size_t n = (size_t)v[0];
    struct lk_number out;
    assert_ok(lk_silhouette(v + 3 + n, n, (int)v[1], whole_numbers(v + 3, n), (int)v[2], &out, NULL));
    coefficient(line, &out, expected);
}

static void cosine(const char *line, const double *v, const double *expected) {
    const size_t n = (size_t)v[0];
    struct lk_number out;
    assert_ok(lk_cosine_similarity(v + 1, v + 1 + n, n, &out));
    coefficient(line, &out, expected);
}

static void prediction(const char *line, const double *v, const double *expected) {
    const size_t n = (size_t)v[0], n_other = (size_t)v[1];
    struct lk_prediction_powered out;
    assert_ok(lk_prediction_powered_mean(v + 2, v + 2 + n, n, v + 2 + 2 * n, n_other, -1, 0.95, &out));
    assert_true(!expected == !!out.estimate.undefined);
    if (!expected) return;
    near(line, out.estimate.value, expected[0], 1e-9);
    near(line, out.error.standard_error, expected[1], 1e-9);
    assert_true(fabs(out.lambda - expected[2]) < 1e-9);
}

static void rate(const char *line, const double *v, const double *expected) {
    struct lk_number wilson, exact;
    assert_ok(lk_proportion((int64_t)v[0], (int64_t)v[1], LK_WILSON, v[2], &wilson));
    assert_ok(lk_proportion((int64_t)v[0], (int64_t)v[1], LK_CLOPPER_PEARSON, v[2], &exact));
    const double got[] = {wilson.low, wilson.high, exact.low, exact.high};
    for (int i = 0; i < 4; i++) near(line, got[i], expected[i], 1e-9);
}

static void difference(const char *line, const double *v, const double *expected) {
    struct lk_number out;
    assert_ok(lk_proportion_difference((int64_t)v[0], (int64_t)v[1], (int64_t)v[2], (int64_t)v[3], 0.95, &out));
    const double got[] = {out.value, out.low, out.high};
    for (int i = 0; i < 3; i++)
        if (fabs(got[i] - expected[i]) > 1e-14)
            fail_msg("%.400s\nexpected %.17g, got %.17g", line, expected[i], got[i]);
}

static void sample_size(const char *line, const double *v, const double *expected) {
    struct lk_number out[4];
    assert_ok(lk_sample_size_proportions(v[0], v[1], v[2], v[3], LK_Z_EXACT, &out[0]));
    assert_ok(lk_power_proportions(v[0], v[1], v[2], v[4], &out[1]));
    assert_ok(lk_sample_size_h(v[5], v[3], v[6], v[2], &out[2]));
    assert_ok(lk_power_h(v[5], v[4], v[6], v[2], &out[3]));
    for (int i = 0; i < 4; i++) near(line, out[i].value, expected[i], 1e-9);
}

/* Least squares: n observations, their clusters, the levels of two factors, values. */
static void linear(const char *line, const double *v, const double *expected) {
    const size_t n = (size_t)v[0];
    int32_t numbers[3][MOST];
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < n; i++) numbers[k][i] = (int32_t)v[1 + (size_t)k * n + i];
    const struct lk_model_factor factors[] = {{"a", numbers[1], 2}, {"b", numbers[2], 3}};
    static const struct lk_model_term terms[] = {{0, -1}, {1, -1}};
    struct lk_linear_model *model;
    assert_ok(lk_linear_model_fit(v + 1 + 3 * n, n, factors, 2, terms, 2, numbers[0], &model));
    assert_null(model->undefined);
    for (int t = 0; t < 2; t++)
        for (int clustered = 0; clustered < 2; clustered++) {
            const struct lk_wald *wald = clustered ? &model->terms[t].clustered : &model->terms[t].independent;
            if (!expected != !!wald->undefined)
                fail_msg("%.400s\nterm %d: %s", line, t, wald->undefined ? wald->undefined : "defined");
            if (expected) near(line, wald->p_f, expected[2 * t + clustered], 1e-9);
        }
    if (expected) {
        struct lk_contrast contrast;
        assert_ok(lk_linear_model_contrast(model, (const double[]){0, 1, 0, 0}, 0.95, &contrast));
        if (contrast.undefined) fail_msg("%.400s\n%s", line, contrast.undefined);
        near(line, contrast.p, expected[4], 1e-9);
    }
    lk_linear_model_free(model);
}

/* Every line of the file is checked, and every statistic of the table has one. */
static void against_many_digits(void **state) {
    (void)state;
    static const struct {
        const char *name;
        void (*check)(const char *, const double *, const double *);
    } statistics[] = {{"pearson ", pearson},
                      {"icc ", icc},
                      {"kappa ", kappa},
                      {"cluster ", cluster},
                      {"spearman ", spearman},
                      {"kendall ", kendall},
                      {"kruskal ", kruskal},
                      {"friedman ", friedman},
                      {"mann_whitney ", mann_whitney},
                      {"wilcoxon ", wilcoxon},
                      {"contingency ", contingency},
                      {"fit ", fit},
                      {"fisher ", fisher},
                      {"mcnemar ", mcnemar},
                      {"proportions ", proportions},
                      {"binomial ", binomial},
                      {"dunn ", dunn},
                      {"fleiss ", fleiss},
                      {"gwet ", gwet},
                      {"alpha ", alpha},
                      {"icc_forms ", icc_forms},
                      {"summary ", summary},
                      {"cluster_cr2 ", cluster_cr2},
                      {"adjust ", adjust},
                      {"silhouette ", silhouette},
                      {"cosine ", cosine},
                      {"prediction ", prediction},
                      {"rate ", rate},
                      {"difference ", difference},
                      {"sample_size ", sample_size},
                      {"linear ", linear}};
    enum { N = sizeof statistics / sizeof *statistics };
    size_t n_bytes, n_lines[N] = {0};
    char *text = test_read("golden/data/stats/hard.txt", &n_bytes), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        double values[MOST], expected[MOST];
        int n_values, n_expected;
        size_t k = 0;
        while (k < N && strncmp(line, statistics[k].name, strlen(statistics[k].name)) != 0) k++;
        if (k == N) fail_msg("%.100s: no such statistic", line);
        char *at = take(line + strlen(statistics[k].name), values, &n_values);
        take(strchr(at, '=') + 1, expected, &n_expected);
        statistics[k].check(line, values, n_expected ? expected : NULL);
        n_lines[k]++;
    }
    for (size_t k = 0; k < N; k++) assert_true(n_lines[k] >= 20);
    free(text);
}

/* The sixteen products of a cross product are summed without rounding. */
static void cross_products_are_exact(void **state) {
    (void)state;
    const struct lk_dd a = lk_dd_sum(0x1p100, 0x1.8p-60), b = lk_dd_sum(0x1p-40, 0x1p-140), zero = {0, 0};
    struct lk_dd same = lk_dd_cross(a, b, b, a), tiny = lk_dd_cross(a, b, lk_dd_of(0x1p100), b);
    assert_true(same.hi == 0 && same.lo == 0);
    assert_true(tiny.hi == 0x1.8p-100 && tiny.lo == 0x1.8p-200);
    assert_true(lk_dd_cross(a, b, zero, zero).hi == 0x1p60);
    struct lk_dd third = lk_dd_divide(lk_dd_of(1), lk_dd_of(3));
    struct lk_dd left = lk_dd_subtract(lk_dd_multiply(third, lk_dd_of(3)), lk_dd_of(1));
    assert_true(fabs(left.hi) < 0x1p-103);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_many_digits),
        cmocka_unit_test(cross_products_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
