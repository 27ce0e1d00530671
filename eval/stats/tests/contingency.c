#include "eval/stats/tests/count_tests.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>

#include "engine/base/alloc.h"

static const double small_expected = 5;

struct margins {
    double *rows, *columns; /* one block */
    double all;
    size_t n_rows, n_columns; /* not empty */
};

static enum lk_code sum_margins(const int64_t *counts, size_t n_rows, size_t n_columns, struct margins *m) {
    *m = (struct margins){.rows = lk_calloc(n_rows + n_columns, sizeof *m->rows)};
    if (!m->rows) return lk_fail(LK_E_NOMEM, "chi2_contingency: out of memory for %zu x %zu", n_rows, n_columns);
    m->columns = m->rows + n_rows;
    for (size_t i = 0; i < n_rows; i++)
        for (size_t j = 0; j < n_columns; j++) {
            double count = (double)counts[i * n_columns + j];
            m->rows[i] += count;
            m->columns[j] += count;
            m->all += count;
        }
    for (size_t i = 0; i < n_rows; i++) m->n_rows += m->rows[i] > 0;
    for (size_t j = 0; j < n_columns; j++) m->n_columns += m->columns[j] > 0;
    return LK_OK;
}

/* The sum over the cells that are left, each observed count moved towards the expected one by at most `correction`. */
static double chi2(const int64_t *counts, size_t n_rows, size_t n_columns, const struct margins *m, double correction,
                   struct lk_contingency *out) {
    double sum = 0;
    out->n_small = 0;
    out->least_expected = INFINITY;
    for (size_t i = 0; i < n_rows; i++)
        for (size_t j = 0; j < n_columns; j++) {
            double expected = m->rows[i] * m->columns[j] / m->all;
            if (expected == 0) continue;
            double gap = fabs((double)counts[i * n_columns + j] - expected);
            gap -= fmin(correction, gap);
            sum += gap * gap / expected;
            out->n_small += expected < small_expected;
            out->least_expected = fmin(out->least_expected, expected);
        }
    return sum;
}

static enum lk_code check_counts(const char *what, const int64_t *counts, size_t n) {
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (counts[i] < 0 || counts[i] > ((int64_t)1 << 53) - sum)
            return lk_fail(LK_E_INPUT, "%s: count %zu: expected 0 or more, and at most 2^53 in all, got %lld", what, i,
                           (long long)counts[i]);
        sum += counts[i];
    }
    return LK_OK;
}

static void finish(struct lk_test *test, double statistic, double v) {
    test->statistic = statistic;
    test->p = lk_chi2_sf(statistic, test->df);
    test->effect = v;
    test->effect_name = "Cramer's V";
}

enum lk_code lk_chi2_contingency(const int64_t *counts, size_t n_rows, size_t n_columns, struct lk_contingency *out,
                                 bool *row_empty, bool *column_empty) {
    *out = (struct lk_contingency){.test.name = "chi-square"};
    LK_TRY(check_counts("chi2_contingency", counts, n_rows * n_columns));
    struct margins m;
    LK_TRY(sum_margins(counts, n_rows, n_columns, &m));
    for (size_t i = 0; row_empty && i < n_rows; i++) row_empty[i] = m.rows[i] == 0;
    for (size_t j = 0; column_empty && j < n_columns; j++) column_empty[j] = m.columns[j] == 0;
    out->n_rows = m.n_rows;
    out->n_columns = m.n_columns;
    out->test.n = (size_t)m.all;
    if (m.n_rows < 2 || m.n_columns < 2) {
        lk_undefined(&out->test,
                     m.n_rows < 2 ? "fewer than two rows have counts" : "fewer than two columns have counts");
        out->uncorrected = out->test;
    } else {
        size_t least = m.n_rows < m.n_columns ? m.n_rows : m.n_columns;
        out->test.df = (double)((m.n_rows - 1) * (m.n_columns - 1));
        out->test.method = "asymptotic";
        out->uncorrected = out->test;
        double plain = chi2(counts, n_rows, n_columns, &m, 0, out), corrected = plain;
        double v = sqrt(plain / (m.all * (double)(least - 1)));
        finish(&out->uncorrected, plain, v);
        if (out->test.df == 1) {
            corrected = chi2(counts, n_rows, n_columns, &m, 0.5, out);
            out->test.method = "asymptotic, Yates' correction";
        }
        finish(&out->test, corrected, v);
    }
    lk_free(m.rows);
    return LK_OK;
}

static enum lk_code check_shares(const int64_t *counts, const double *shares, size_t k) {
    for (size_t i = 0; i < k; i++) {
        if (!(shares[i] >= 0) || isinf(shares[i]))
            return lk_fail(LK_E_INPUT, "chi2_fit: share %zu: expected 0 or more, got %g", i, shares[i]);
        if (shares[i] == 0 && counts[i])
            return lk_fail(LK_E_INPUT, "chi2_fit: count %zu: expected 0 where the share is 0, got %lld", i,
                           (long long)counts[i]);
    }
    return LK_OK;
}

enum lk_code lk_chi2_fit(const int64_t *counts, const double *shares, size_t k, struct lk_test *test, size_t *n_small) {
    *test = (struct lk_test){.name = "chi-square", .method = "asymptotic"};
    if (n_small) *n_small = 0;
    LK_TRY(check_counts("chi2_fit", counts, k));
    if (shares) LK_TRY(check_shares(counts, shares, k));
    double all = 0, sum = 0, used = 0;
    for (size_t i = 0; i < k; i++) {
        all += (double)counts[i];
        sum += shares ? shares[i] : 1;
        used += shares ? shares[i] > 0 : 1;
    }
    test->n = (size_t)all;
    if (!(all > 0)) return lk_undefined(test, "nothing was counted");
    if (used < 2) return lk_undefined(test, "fewer than two categories");
    if (isinf(sum)) return lk_fail(LK_E_INPUT, "chi2_fit: shares: expected a finite sum");
    for (size_t i = 0; i < k; i++) {
        double expected = (shares ? shares[i] : 1) / sum * all, gap = (double)counts[i] - expected;
        if (expected == 0) continue;
        test->statistic += gap * gap / expected;
        if (n_small) *n_small += expected < small_expected;
    }
    test->df = used - 1;
    test->p = lk_chi2_sf(test->statistic, test->df);
    test->effect = sqrt(test->statistic / all);
    test->effect_name = "Cohen's w";
    return LK_OK;
}
