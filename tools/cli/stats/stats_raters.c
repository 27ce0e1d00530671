/* Tests on tables of items by raters (or blocks by treatments), which come long or wide. */
#include <string.h>

#include "eval/stats/agreement/fleiss.h"
#include "eval/stats/agreement/icc.h"
#include "eval/stats/agreement/krippendorff.h"
#include "eval/stats/tests/rank_tests.h"
#include "tools/cli/stats/stats.h"

static enum lk_code rated(struct stats *s, int n_raters, const char *raters, const char **of) {
    if (s->n_columns) return stats_join(s, of, "%d columns", n_raters);
    return stats_join(s, of, "%s, %d %s", s->value.name, n_raters, raters);
}

/* Without --rater, all that counts is how often each label was given. */
static enum lk_code fleiss_counts(struct stats *s, int32_t **counts, size_t *n_items, struct stats_levels *out) {
    struct stats_levels items = {0};
    int n_columns = s->n_columns ? s->n_columns : 1;
    LK_TRY(stats_levels(s, s->n_columns ? s->columns : &s->value, n_columns, out));
    const struct stats_levels labels = *out;
    if (!s->n_columns) LK_TRY(stats_levels(s, &s->item, 1, &items));
    *n_items = s->n_columns ? s->n_rows : (size_t)items.n;
    if (!labels.n) return lk_fail(LK_E_INPUT, "%s: fleiss: expected labels, got none: every cell is empty", s->file);
    if (*n_items * (size_t)labels.n > 100000000)
        return lk_fail(LK_E_INPUT, "%s: %zu items by %d labels are more than 1e8 cells", s->file, *n_items, labels.n);
    *counts = stats_alloc(s, *n_items * (size_t)labels.n, sizeof **counts);
    if (!*counts) return LK_E_NOMEM;
    for (size_t i = 0; i < s->n_rows * (size_t)n_columns; i++) {
        size_t row = i % s->n_rows;
        bool used = labels.codes[i] >= 0 && (s->n_columns || items.codes[row] >= 0);
        s->missing += !used;
        if (!used) continue;
        size_t item = s->n_columns ? row : (size_t)items.codes[row];
        ++(*counts)[item * (size_t)labels.n + (size_t)labels.codes[i]];
    }
    return LK_OK;
}

static enum lk_code fleiss(struct stats *s) {
    int32_t *counts = NULL;
    size_t n_items = 0;
    struct stats_levels labels;
    LK_TRY(fleiss_counts(s, &counts, &n_items, &labels));
    struct lk_fleiss f;
    LK_TRY(lk_fleiss_kappa(counts, n_items, labels.n, 0, &f));
    const char *of;
    LK_TRY(rated(s, f.n_raters, "ratings of an item", &of));
    stats_open(&s->out, s->test, "Fleiss' kappa", of);
    stats_print_interval(s, "kappa", "kappa", &f.kappa);
    struct stats_cell none = stats_none();
    stats_field(&s->out, "observed", "observed agreement", f.kappa.n ? stats_number(f.observed) : none);
    stats_field(&s->out, "expected", "expected by chance", f.kappa.n ? stats_number(f.expected) : none);
    stats_field(&s->out, "n", "n", stats_count(f.kappa.n));
    stats_field(&s->out, "left_out", f.left_out ? "other number of ratings" : NULL, stats_count(f.left_out));
    stats_print_missing(s);
    stats_field(&s->out, "n_labels", "labels", stats_count((size_t)labels.n));
    return stats_print_labels(s, "labels", "they are", &labels);
}

static enum lk_code alpha(struct stats *s) {
    enum lk_measurement level = LK_ORDINAL;
    for (int l = 0; s->o->level && l < LK_N_MEASUREMENTS; l++)
        if (!strcmp(s->o->level, lk_measurement_name((enum lk_measurement)l))) level = (enum lk_measurement)l;
    struct stats_matrix m;
    struct stats_levels labels;
    LK_TRY(stats_matrix(s, &s->rater, level == LK_NOMINAL, &m, &labels));
    struct lk_number alpha, all[LK_N_MEASUREMENTS];
    LK_TRY(lk_krippendorff_alpha(m.values, m.n_units, m.n_raters, level, &alpha));
    struct lk_resampling how = stats_resampling(s);
    bool resampled = s->o->resamples > 0 && !alpha.undefined;
    if (resampled) {
        LK_TRY(lk_krippendorff_intervals(m.values, m.n_units, m.n_raters, &how, all));
        alpha = all[level];
    }
    const char *of;
    LK_TRY(rated(s, m.n_raters, "raters", &of));
    stats_open(&s->out, s->test, "Krippendorff's alpha", of);
    stats_print_interval(s, "alpha", "alpha", &alpha);
    stats_field(&s->out, "level", "level", stats_text(lk_measurement_name(level)));
    stats_field(&s->out, "n", "n", stats_count(alpha.n));
    stats_print_missing(s);
    stats_field(&s->out, "resamples", resampled ? "resamples" : NULL,
                resampled ? stats_count((size_t)how.n_replicates) : stats_none());
    return level == LK_NOMINAL ? stats_print_labels(s, "labels", "labels", &labels) : LK_OK;
}

enum { ICC_COLUMNS = 8 };

static enum lk_code icc(struct stats *s) {
    struct stats_matrix m;
    LK_TRY(stats_matrix(s, &s->rater, false, &m, NULL));
    struct lk_icc icc[LK_N_ICC];
    LK_TRY(lk_icc(m.values, m.n_units, m.n_raters, icc));
    struct stats_cell cells[LK_N_ICC * ICC_COLUMNS];
    for (int i = 0; i < LK_N_ICC; i++) {
        const struct lk_icc *v = &icc[i];
        bool f = !v->value.undefined && !v->f_undefined;
        const double numbers[] = {v->value.low, v->value.high, v->f, v->df1, v->df2, v->p};
        struct stats_cell *row = cells + i * ICC_COLUMNS;
        row[0] = stats_text(v->name);
        row[1] = v->value.undefined ? stats_none() : stats_number(v->value.value);
        for (int c = 0; c < 6; c++)
            row[2 + c] = f && (c > 1 || !v->no_interval) ? stats_number(numbers[c]) : stats_none();
    }
    const char *of;
    LK_TRY(rated(s, m.n_raters, "raters", &of));
    stats_open(&s->out, s->test, "Intraclass correlation", of);
    stats_field(&s->out, "n", "n", stats_count(icc[0].value.n));
    stats_print_missing(s);
    stats_field(&s->out, "undefined", "undefined", stats_text(icc[0].value.undefined));
    stats_field(&s->out, "f_undefined", "no F and interval", stats_text(icc[0].f_undefined));
    stats_field(&s->out, "interval_undefined", "no interval of ICC(2,k)", stats_text(icc[LK_ICC2K].no_interval));
    static const char *const keys[] = {"form", "icc", "low", "high", "f", "df1", "df2", "p"};
    if (!icc[0].value.undefined || s->out.json) stats_print_table(&s->out, "forms", keys, ICC_COLUMNS, cells, LK_N_ICC);
    return LK_OK;
}

static enum lk_code friedman(struct stats *s) {
    struct stats_matrix m;
    LK_TRY(stats_matrix(s, &s->by, false, &m, NULL));
    size_t k = (size_t)m.n_raters, n = 0;
    for (size_t i = 0; i < m.n_units; i++) {
        bool whole = true;
        for (size_t j = 0; j < k; j++) whole &= !isnan(m.values[i * k + j]);
        if (whole) memmove(m.values + n++ * k, m.values + i * k, k * sizeof *m.values);
    }
    struct lk_test test;
    LK_TRY(lk_friedman(m.values, n, k, &test));
    const char *of;
    LK_TRY(rated(s, m.n_raters, "treatments", &of));
    stats_print_test(s, of, &test);
    stats_field(&s->out, "left_out", m.n_units > n ? "incomplete blocks" : NULL, stats_count(m.n_units - n));
    return LK_OK;
}

const struct stats_test stats_rater_tests[] = {
    {"fleiss", "Fleiss' kappa of several raters", fleiss, ITEM | VALUE, COLUMNS},
    {"alpha", "Krippendorff's alpha", alpha, ITEM | RATER | VALUE, LEVEL | RESAMPLED | COLUMNS},
    {"icc", "intraclass correlations", icc, ITEM | RATER | VALUE, COLUMNS},
    {"friedman", "Friedman's test of treatments over blocks", friedman, ITEM | GROUPED, COLUMNS},
    {0},
};
