/* Tests on the numbers of a column by the groups of another. */
#include <string.h>

#include "eval/stats/models/silhouette.h"
#include "eval/stats/tests/multiple.h"
#include "eval/stats/quantile.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/stats/summary.h"
#include "tools/cli/stats/stats.h"

static enum lk_code grouped(struct stats *s, const char **of) {
    return stats_join(s, of, "%s by %s", s->value.name, s->by.name);
}

/* Two groups and no other. */
static enum lk_code two_groups(const struct stats *s, const struct stats_levels *levels) {
    if (levels->n == 2) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: %s: expected two groups in \"%.64s\", got %d%s", s->file, s->test, s->by.name,
                   levels->n, !strcmp(s->test, "mann-whitney") ? "; kruskal takes any number" : "");
}

static enum lk_code versus(struct stats *s, const struct stats_levels *levels, int a, int b, const char **of) {
    return stats_join(s, of, "%s, %s = %.100s against %.100s", s->value.name, s->by.name, levels->names[a],
                      levels->names[b]);
}

/* Groups whose values are all missing do not exist for a test. */
static size_t drop_empty(struct stats_groups *g) {
    size_t n = 0;
    for (int i = 0; i < g->levels.n; i++) {
        if (!g->n[i]) continue;
        g->levels.names[n] = g->levels.names[i];
        g->n[n++] = g->n[i];
    }
    g->levels.n = (int)n;
    return n;
}

static enum lk_code kruskal(struct stats *s) {
    struct stats_groups g;
    LK_TRY(stats_groups(s, &g));
    size_t n_groups = drop_empty(&g);
    struct lk_test test;
    LK_TRY(lk_kruskal_wallis(g.values, g.n, n_groups, &test));
    const char *of;
    LK_TRY(grouped(s, &of));
    stats_print_test(s, of, &test);
    stats_field(&s->out, "n_groups", "groups", stats_count(n_groups));
    return LK_OK;
}

enum lk_adjustment stats_adjustment(const struct stats *s) {
    const char *name = s->o->method;
    if (name && !strcmp(name, "bonferroni")) return LK_ADJUST_BONFERRONI;
    if (name && !strcmp(name, "bh")) return LK_ADJUST_BENJAMINI_HOCHBERG;
    if (name && !strcmp(name, "by")) return LK_ADJUST_BENJAMINI_YEKUTIELI;
    return LK_ADJUST_HOLM;
}

static enum lk_code dunn(struct stats *s) {
    struct stats_groups g;
    LK_TRY(stats_groups(s, &g));
    size_t n_groups = drop_empty(&g);
    if (n_groups > 1000) return lk_fail(LK_E_INPUT, "%s: dunn: at most 1,000 groups, got %zu", s->file, n_groups);
    size_t n_pairs = n_groups ? n_groups * (n_groups - 1) / 2 : 0;
    struct lk_test *tests = stats_alloc(s, n_pairs, sizeof *tests);
    double *p = tests ? stats_alloc(s, n_pairs, sizeof *p) : NULL;
    struct stats_cell *cells = p ? stats_alloc(s, n_pairs, 6 * sizeof *cells) : NULL;
    if (!cells) return LK_E_NOMEM;
    LK_TRY(lk_dunn(g.values, g.n, n_groups, tests));
    bool defined = n_pairs && !tests[0].undefined;
    for (size_t i = 0; i < n_pairs; i++) p[i] = tests[i].p;
    if (defined) LK_TRY(lk_adjust_p(p, n_pairs, stats_adjustment(s), p));
    struct stats_cell *cell = cells;
    for (size_t a = 0, i = 0; defined && a < n_groups; a++)
        for (size_t b = a + 1; b < n_groups; b++, i++) {
            *cell++ = stats_text(g.levels.names[a]);
            *cell++ = stats_text(g.levels.names[b]);
            *cell++ = stats_number(tests[i].statistic);
            *cell++ = stats_number(tests[i].p);
            *cell++ = stats_number(p[i]);
            *cell++ = stats_count(tests[i].n);
        }
    const char *of;
    LK_TRY(grouped(s, &of));
    stats_open(&s->out, s->test, "Dunn's comparisons", of);
    stats_field(&s->out, "n", "n", stats_count(g.total));
    stats_print_missing(s);
    stats_field(&s->out, "adjustment", "adjusted by", stats_text(lk_adjustment_name(stats_adjustment(s))));
    const char *why = n_pairs ? tests[0].undefined : "fewer than two groups";
    stats_field(&s->out, "undefined", "undefined", stats_text(why));
    const char *const keys[] = {"first", "second", "z", "p", "adjusted", "n"};
    if (defined || s->out.json) stats_print_table(&s->out, "pairs", keys, 6, cells, defined ? n_pairs : 0);
    return LK_OK;
}

static enum lk_code mann_whitney(struct stats *s) {
    struct stats_groups g;
    LK_TRY(stats_groups(s, &g));
    LK_TRY(two_groups(s, &g.levels));
    struct lk_mann_whitney_options options = {.alternative = stats_alternative(s),
                                              .method = s->o->exact ? LK_P_EXACT : LK_P_AUTO,
                                              .no_continuity = s->o->no_correction};
    struct lk_test test;
    LK_TRY(lk_mann_whitney(g.values, g.n[0], g.values + g.n[0], g.n[1], &options, &test));
    LK_TRY(stats_check_exact(s, &test));
    const char *of;
    LK_TRY(versus(s, &g.levels, 0, 1, &of));
    stats_print_test(s, of, &test);
    stats_field(&s->out, "n_first", "n of the first", stats_count(g.n[0]));
    stats_field(&s->out, "n_second", "n of the second", stats_count(g.n[1]));
    return LK_OK;
}

enum { DESCRIBE_COLUMNS = 9 };

static enum lk_code describe_row(const char *name, double *values, size_t n, struct stats_cell *cells) {
    struct lk_summary summary;
    LK_TRY(lk_summarise(values, n, &summary));
    *cells++ = stats_text(name);
    *cells++ = stats_count(summary.n);
    struct stats_cell none = stats_none();
    *cells++ = summary.undefined ? none : stats_number(summary.mean);
    *cells++ = summary.undefined ? none : stats_number(summary.sd);
    *cells++ = summary.undefined ? none : stats_number(summary.minimum);
    for (int q = 1; q < 4; q++) *cells++ = n ? stats_number(lk_quantile(values, n, q / 4.0)) : none;
    *cells = summary.undefined ? none : stats_number(summary.maximum);
    return LK_OK;
}

static enum lk_code describe(struct stats *s) {
    struct stats_groups g = {0};
    if (s->by.name) {
        LK_TRY(stats_groups(s, &g));
    } else {
        LK_TRY(stats_numbers(s, &s->value, &g.values));
        for (size_t i = 0; i < s->n_rows; i++)
            if (!isnan(g.values[i])) g.values[g.total++] = g.values[i];
        s->missing = s->n_rows - g.total;
    }
    size_t n_rows = 1 + (size_t)g.levels.n;
    struct stats_cell *cells = stats_alloc(s, n_rows, DESCRIBE_COLUMNS * sizeof *cells);
    if (!cells) return LK_E_NOMEM;
    for (size_t i = 0, at = 0; i + 1 < n_rows; at += g.n[i++])
        LK_TRY(describe_row(g.levels.names[i], g.values + at, g.n[i], cells + i * DESCRIBE_COLUMNS));
    LK_TRY(describe_row("all", g.values, g.total, cells + (n_rows - 1) * DESCRIBE_COLUMNS));
    static const char *const keys[] = {"group", "n", "mean", "sd", "min", "q25", "median", "q75", "max"};
    const char *of = s->value.name;
    if (s->by.name) LK_TRY(grouped(s, &of));
    stats_open(&s->out, s->test, "Summary", of);
    stats_print_missing(s);
    stats_print_table(&s->out, "groups", keys, DESCRIBE_COLUMNS, cells, n_rows);
    return LK_OK;
}

enum lk_code stats_features(struct stats *s, struct stats_features *out) {
    const size_t width = (size_t)s->n_columns;
    *out = (struct stats_features){0};
    LK_TRY(stats_levels(s, &s->by, 1, &out->levels));
    const double **columns = stats_alloc(s, width, sizeof *columns);
    out->features = columns ? stats_alloc(s, s->n_rows * width, sizeof *out->features) : NULL;
    out->groups = out->features ? stats_alloc(s, s->n_rows, sizeof *out->groups) : NULL;
    out->lines = out->groups ? stats_alloc(s, s->n_rows, sizeof *out->lines) : NULL;
    if (!out->lines) return LK_E_NOMEM;
    for (size_t c = 0; c < width; c++) {
        double *values;
        LK_TRY(stats_numbers(s, &s->columns[c], &values));
        columns[c] = values;
    }
    for (size_t row = 0; row < s->n_rows; row++) {
        bool whole = out->levels.codes[row] >= 0;
        for (size_t c = 0; c < width; c++) {
            out->features[out->n * width + c] = columns[c][row];
            whole &= !isnan(columns[c][row]);
        }
        out->groups[out->n] = out->levels.codes[row];
        out->lines[out->n] = s->lines[row];
        out->n += whole;
    }
    s->missing = s->n_rows - out->n;
    return LK_OK;
}

/* How well groups separate in the space of the columns. */
static enum lk_code silhouette(struct stats *s) {
    struct stats_features f;
    struct lk_number all;
    LK_TRY(stats_features(s, &f));
    struct lk_number *means = stats_alloc(s, (size_t)f.levels.n, sizeof *means);
    struct stats_cell *cells = means ? stats_alloc(s, (size_t)f.levels.n, 3 * sizeof *cells) : NULL;
    if (!cells) return LK_E_NOMEM;
    LK_TRY(lk_silhouette(f.features, f.n, s->n_columns, f.groups, f.levels.n, &all, means));
    for (int g = 0; g < f.levels.n; g++) {
        size_t members = 0;
        for (size_t i = 0; i < f.n; i++) members += f.groups[i] == g;
        cells[3 * g] = stats_text(f.levels.names[g]);
        cells[3 * g + 1] = stats_count(members);
        cells[3 * g + 2] = means[g].undefined ? stats_none() : stats_number(means[g].value);
    }
    const char *of;
    LK_TRY(stats_join(s, &of, "%d columns by %s", s->n_columns, s->by.name));
    stats_open(&s->out, s->test, "Silhouette", of);
    stats_field(&s->out, "mean", "mean", all.undefined ? stats_none() : stats_number(all.value));
    stats_field(&s->out, "n", "n", stats_count(f.n));
    stats_print_missing(s);
    stats_field(&s->out, "undefined", "undefined", stats_text(all.undefined));
    static const char *const keys[] = {"group", "n", "mean"};
    stats_print_table(&s->out, "groups", keys, 3, cells, (size_t)f.levels.n);
    return LK_OK;
}

const struct stats_test stats_group_tests[] = {
    {"kruskal", "Kruskal-Wallis test of groups", kruskal, GROUPED, 0},
    {"mann-whitney", "Mann-Whitney U test of two groups", mann_whitney, GROUPED, ALTERNATIVE | CORRECTIONS | EXACT},
    {"dunn", "Dunn's test of all pairs of groups", dunn, GROUPED, METHOD},
    {"describe", "n, mean, deviation and quantiles", describe, VALUE, BY},
    {"silhouette", "how well groups separate", silhouette, BY | COLUMNS, 0},
    {0},
};
