/* Statistics of badly scaled data against references of 60 digits and more (tests/golden/generate_stats_hard.py). */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/stats/agreement/icc.h"
#include "eval/stats/agreement/kappa.h"
#include "eval/stats/double_double.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/tests/rank_tests.h"
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
                      {"binomial ", binomial}};
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
