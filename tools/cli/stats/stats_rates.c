/* Rates, means and their intervals; and what needs no table. */
#include <string.h>

#include "eval/stats/resampling/bootstrap.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/tests/multiple.h"
#include "eval/stats/proportion.h"
#include "eval/stats/tests/sample_size.h"
#include "tools/cli/stats/stats.h"

enum { RATE_COLUMNS = 8 };

static void rate_row(const char *name, int64_t k, size_t n, const struct lk_number *wilson,
                     const struct lk_number *exact, struct stats_cell *cells) {
    const double numbers[] = {wilson->value, wilson->low, wilson->high, exact->low, exact->high};
    *cells++ = stats_text(name);
    *cells++ = stats_count((size_t)k);
    *cells++ = stats_count(n);
    for (int i = 0; i < 5; i++) *cells++ = wilson->undefined ? stats_none() : stats_number(numbers[i]);
}

/* Values other than 0 and 1 have no rate. */
static enum lk_code check_binary(const struct stats *s) {
    for (size_t i = 0; i < s->n_rows; i++) {
        const char *cell = s->value.cells[i];
        if (!stats_is_missing(cell) && strcmp(cell, "0") && strcmp(cell, "1"))
            return stats_fail(s, &s->value, i, "expected 0 or 1, or an empty cell or NA, got \"%.64s\"", cell);
    }
    return LK_OK;
}

/* The test and the difference that two groups have, before their rates. */
static enum lk_code compare_rates(struct stats *s, const struct stats_groups *g, const int64_t *k) {
    struct lk_test test;
    struct lk_number difference;
    int64_t n[2] = {(int64_t)g->n[0], (int64_t)g->n[1]};
    LK_TRY(lk_two_proportions(k[0], n[0], k[1], n[1], stats_alternative(s), &test));
    LK_TRY(lk_proportion_difference(k[0], n[0], k[1], n[1], stats_confidence(s), &difference));
    const char *of;
    LK_TRY(stats_join(s, &of, "%s, %s = %.100s against %.100s", s->value.name, s->by.name, g->levels.names[0],
                      g->levels.names[1]));
    stats_print_test(s, of, &test);
    stats_print_interval(s, "difference", "difference (Newcombe)", &difference);
    return LK_OK;
}

static enum lk_code one_rate(struct stats *s, int64_t k, size_t n) {
    struct lk_test test;
    double p = s->o->null >= 0 ? s->o->null : 0.5;
    LK_TRY(lk_binomial_test(k, (int64_t)n, p, stats_alternative(s), &test));
    const char *of;
    LK_TRY(stats_join(s, &of, "%s against %.6g", s->value.name, p));
    stats_print_test(s, of, &test);
    return LK_OK;
}

static enum lk_code proportions(struct stats *s) {
    LK_TRY(check_binary(s));
    if (!s->by.name) s->by = (struct stats_column){"", 0, s->value.cells};
    bool grouped = s->by.name[0];
    if (grouped && s->o->null >= 0) return stats_misused(s, "--null: not with --by, which compares the groups");
    struct stats_groups g;
    LK_TRY(stats_groups(s, &g));
    if (!grouped) { /* all that there is, as one group */
        g.n[0] = g.total;
        g.levels = (struct stats_levels){.names = g.levels.names, .n = 1};
        g.levels.names[0] = "all";
    }
    size_t n_groups = (size_t)g.levels.n;
    int64_t *k = stats_alloc(s, n_groups, sizeof *k);
    struct stats_cell *cells = k ? stats_alloc(s, n_groups, RATE_COLUMNS * sizeof *cells) : NULL;
    if (!cells) return LK_E_NOMEM;
    for (size_t i = 0, at = 0; i < n_groups; at += g.n[i++]) {
        for (size_t j = 0; j < g.n[i]; j++) k[i] += g.values[at + j] == 1;
        struct lk_number wilson, exact;
        LK_TRY(lk_proportion(k[i], (int64_t)g.n[i], LK_WILSON, stats_confidence(s), &wilson));
        LK_TRY(lk_proportion(k[i], (int64_t)g.n[i], LK_CLOPPER_PEARSON, stats_confidence(s), &exact));
        rate_row(g.levels.names[i], k[i], g.n[i], &wilson, &exact, cells + i * RATE_COLUMNS);
    }
    if (!grouped) {
        LK_TRY(one_rate(s, k[0], g.n[0]));
    } else if (n_groups == 2) {
        LK_TRY(compare_rates(s, &g, k));
    } else {
        const char *of;
        LK_TRY(stats_join(s, &of, "%s by %s", s->value.name, s->by.name));
        stats_open(&s->out, s->test, "Rates", of);
        stats_field(&s->out, "n", "n", stats_count(g.total));
        stats_print_missing(s);
    }
    stats_field(&s->out, "confidence", "confidence", stats_number(stats_confidence(s)));
    static const char *const keys[] = {"group",      "k",           "n",         "rate",
                                       "wilson_low", "wilson_high", "exact_low", "exact_high"};
    stats_print_table(&s->out, "groups", keys, RATE_COLUMNS, cells, n_groups);
    return LK_OK;
}

/* Groups 0 and 1 of each used row, in the order of the levels. */
static enum lk_code two_labels(struct stats *s, int32_t **out, const char **of) {
    struct stats_levels levels;
    LK_TRY(stats_levels(s, &s->by, 1, &levels));
    if (levels.n != 2)
        return lk_fail(LK_E_INPUT, "%s: bootstrap: expected two groups in \"%.64s\", got %d", s->file, s->by.name,
                       levels.n);
    *out = levels.codes;
    return stats_join(s, of, "mean %s, %s = %.100s minus %.100s", s->value.name, s->by.name, levels.names[1],
                      levels.names[0]);
}

/* Drops rows in which one of the columns is missing: they are neither drawn nor counted. */
static size_t complete_rows(struct stats *s, double *values, int32_t *groups, int32_t *clusters) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        if (isnan(values[i]) || (groups && groups[i] < 0) || (clusters && clusters[i] < 0)) continue;
        values[n] = values[i];
        if (groups) groups[n] = groups[i];
        if (clusters) clusters[n] = clusters[i];
        n++;
    }
    s->missing = s->n_rows - n;
    return n;
}

static void print_bootstrap(struct stats *s, const char *of, const struct lk_resampling *how, size_t n_units,
                            enum lk_interval_kind kind, const struct lk_number *number) {
    stats_open(&s->out, s->test, s->by.name ? "Bootstrap of a difference of means" : "Bootstrap of a mean", of);
    stats_print_interval(s, "value", s->by.name ? "difference" : "mean", number);
    stats_field(&s->out, "n", "n", stats_count(number->n));
    stats_print_missing(s);
    stats_field(&s->out, "n_resampled", how->clusters ? "clusters resampled" : NULL, stats_count(n_units));
    stats_field(&s->out, "resamples", "resamples", stats_count((size_t)how->n_replicates));
    stats_field(&s->out, "study_seed", "study seed", stats_count((size_t)how->seed));
    stats_field(&s->out, "confidence", "confidence", stats_number(how->confidence));
    static const char *const methods[] = {"percentile", "BCa", "expanded percentile"};
    stats_field(&s->out, "method", "method", stats_text(methods[kind]));
}

/* Of few clusters percentiles are too short. */
static enum lk_interval_kind interval_kind(const struct stats *s) {
    if (!s->o->interval) return s->cluster.name ? LK_INTERVAL_EXPANDED : LK_INTERVAL_PERCENTILE;
    if (!strcmp(s->o->interval, "bca")) return LK_INTERVAL_BCA;
    return strcmp(s->o->interval, "expanded") ? LK_INTERVAL_PERCENTILE : LK_INTERVAL_EXPANDED;
}

static enum lk_code bootstrap(struct stats *s) {
    double *values;
    int32_t *groups = NULL;
    struct stats_levels clusters = {0};
    const char *of = s->value.name;
    LK_TRY(stats_numbers(s, &s->value, &values));
    if (s->by.name) LK_TRY(two_labels(s, &groups, &of));
    if (s->cluster.name) LK_TRY(stats_levels(s, &s->cluster, 1, &clusters));
    size_t n = complete_rows(s, values, groups, clusters.codes), n_units = 0;
    struct lk_resampling how = stats_resampling(s);
    how.clusters = clusters.codes;
    enum lk_interval_kind kind = interval_kind(s);
    struct lk_number number = {.undefined = "no values"};
    if (n) LK_TRY(lk_resampling_units(n, &how, &n_units));
    if (n && groups) LK_TRY(lk_bootstrap_difference(values, groups, n, &how, kind, &number));
    if (n && !groups) LK_TRY(lk_bootstrap_mean(values, n, &how, kind, &number));
    struct lk_cluster_mean mean = {.cr2.undefined = "no clusters"};
    if (n && clusters.codes && !groups) LK_TRY(lk_cluster_mean(values, clusters.codes, n, how.confidence, &mean));
    print_bootstrap(s, of, &how, n_units, kind, &number);
    if (n && clusters.codes && !groups && !mean.cr2.undefined) {
        stats_print_interval(s, "clustered", "clustered errors, CR2", &mean.cr2);
        if (mean.n_clusters > 1) stats_field(&s->out, "clustered_df", "  df", stats_number(mean.cr2_df));
        stats_print_interval(s, "clustered_cr1", "clustered errors, CR1", &mean.clustered);
        if (!mean.design_effect.undefined)
            stats_field(&s->out, "design_effect", "design effect", stats_number(mean.design_effect.value));
    }
    return LK_OK;
}

static enum lk_code adjust(struct stats *s) {
    double *p;
    LK_TRY(stats_numbers(s, &s->value, &p));
    double *adjusted = stats_alloc(s, s->n_rows, sizeof *adjusted);
    size_t *rows = adjusted ? stats_alloc(s, s->n_rows, sizeof *rows) : NULL;
    struct stats_cell *cells = rows ? stats_alloc(s, s->n_rows, 3 * sizeof *cells) : NULL;
    if (!cells) return LK_E_NOMEM;
    size_t n = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        if (isnan(p[i])) continue;
        if (p[i] < 0 || p[i] > 1)
            return stats_fail(s, &s->value, i, "expected a p from 0 to 1, got \"%.64s\"", s->value.cells[i]);
        rows[n] = i;
        p[n++] = p[i];
    }
    s->missing = s->n_rows - n;
    if (n) LK_TRY(lk_adjust_p(p, n, stats_adjustment(s), adjusted));
    for (size_t i = 0; i < n; i++) {
        const char *name = s->item.name ? s->item.cells[rows[i]] : NULL;
        if (!name) LK_TRY(stats_join(s, &name, "line %zu", s->lines[rows[i]]));
        cells[3 * i] = stats_text(name);
        cells[3 * i + 1] = stats_number(p[i]);
        cells[3 * i + 2] = stats_number(adjusted[i]);
    }
    static const char *const keys[] = {"of", "p", "adjusted"};
    stats_open(&s->out, s->test, "Adjusted p", s->value.name);
    stats_field(&s->out, "n", "tests in the family", stats_count(n));
    stats_print_missing(s);
    stats_field(&s->out, "method", "method", stats_text(lk_adjustment_name(stats_adjustment(s))));
    if (n || s->out.json) stats_print_table(&s->out, "tests", keys, 3, cells, n);
    return LK_OK;
}

static enum lk_code sample_size(struct stats *s) {
    const struct cli_stats_options *o = s->o;
    double alpha = s->alpha, power = o->power > 0 ? o->power : 0.80;
    struct lk_number n, rounded, by_h;
    LK_TRY(lk_sample_size_proportions(o->p1, o->p2, alpha, power, LK_Z_EXACT, &n));
    LK_TRY(lk_sample_size_proportions(o->p1, o->p2, alpha, power, LK_Z_ROUNDED, &rounded));
    double h = lk_cohen_h(o->p1, o->p2);
    stats_open(&s->out, s->test, "Sample size of each of two groups", NULL);
    stats_field(&s->out, "p1", "rate of the first", stats_number(o->p1));
    stats_field(&s->out, "p2", "rate of the second", stats_number(o->p2));
    stats_field(&s->out, "alpha", "alpha, two-sided", stats_number(alpha));
    stats_field(&s->out, "power", "power", stats_number(power));
    stats_field(&s->out, "undefined", "undefined", stats_text(n.undefined));
    struct stats_cell none = stats_none();
    stats_field(&s->out, "n", "n", n.undefined ? none : stats_count(n.n));
    stats_field(&s->out, "n_exact", "before rounding up", n.undefined ? none : stats_number(n.value));
    stats_field(&s->out, "n_rounded_z", "with z to two decimals", n.undefined ? none : stats_count(rounded.n));
    stats_field(&s->out, "h", "Cohen's h", stats_number(h));
    if (!n.undefined && power >= alpha) {
        LK_TRY(lk_sample_size_h(h, power, 1, alpha, &by_h));
        stats_field(&s->out, "n_h", "n by Cohen's h", by_h.undefined ? none : stats_number(by_h.value));
    }
    return LK_OK;
}

const struct stats_test stats_rate_tests[] = {
    {"proportions", "rates with Wilson's interval, and tests of them", proportions, VALUE,
     BY | ALTERNATIVE | ALPHA | NULL_RATE},
    {"adjust", "p values adjusted for how many there are", adjust, VALUE, ITEM | METHOD},
    {"bootstrap", "a mean with a resampled interval", bootstrap, VALUE, BY | CLUSTER | INTERVAL | RESAMPLED},
    {"sample-size", "how many a group are needed to tell two rates apart", sample_size, P1 | P2,
     ALPHA | POWER | NO_FILE},
    {0},
};
