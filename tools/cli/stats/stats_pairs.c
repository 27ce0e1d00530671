/* Tests on two columns, row by row. */
#include <string.h>

#include "eval/stats/agreement/agreement_labels.h"
#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/agreement/gwet.h"
#include "eval/stats/models/prediction_powered.h"
#include "eval/stats/tests/rank_tests.h"
#include "tools/cli/stats/stats.h"

/* Rows in which both columns have a number. */
struct pairs {
    double *x, *y;
    size_t n;
};

static enum lk_code number_pairs(struct stats *s, struct pairs *out) {
    LK_TRY(stats_numbers(s, &s->x, &out->x));
    LK_TRY(stats_numbers(s, &s->y, &out->y));
    out->n = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        if (isnan(out->x[i]) || isnan(out->y[i])) continue;
        out->x[out->n] = out->x[i];
        out->y[out->n++] = out->y[i];
    }
    s->missing = s->n_rows - out->n;
    return LK_OK;
}

static enum lk_code both(struct stats *s, const char *word, const char **of) {
    return stats_join(s, of, "%s %s %s", s->x.name, word, s->y.name);
}

/* Both columns' labels [2, n_rows], the levels of either. */
static enum lk_code label_pairs(struct stats *s, struct stats_levels *out) {
    const struct stats_column columns[] = {s->x, s->y};
    return stats_levels(s, columns, 2, out);
}

static bool whole_numbers(const struct stats_levels *levels) {
    if (!levels->numeric) return false;
    for (int i = 0; i < levels->n; i++)
        if (levels->values[i] != floor(levels->values[i]) || fabs(levels->values[i]) > 1e9) return false;
    return levels->n && levels->values[levels->n - 1] - levels->values[0] < 1024;
}

static enum lk_weights weights_of(const struct stats *s) {
    const char *name = s->o->weights;
    if (name && !strcmp(name, "linear")) return LK_WEIGHTS_LINEAR;
    return name && !strcmp(name, "quadratic") ? LK_WEIGHTS_QUADRATIC : LK_WEIGHTS_NONE;
}

static void print_kappa(struct stats *s, const char *of, enum lk_weights weights, bool ordered,
                        const struct lk_kappa *k, const struct lk_gwet *g) {
    static const char *const titles[] = {"Cohen's kappa", "Cohen's kappa, linear weights",
                                         "Cohen's kappa, quadratic weights"};
    struct stats_out *out = &s->out;
    const char *undefined = k->kappa.undefined;
    stats_open(out, s->test, titles[weights], of);
    stats_print_interval(s, "kappa", "kappa", &k->kappa);
    struct stats_cell none = stats_none();
    stats_field(out, "standard_error", "standard error", undefined ? none : stats_number(k->standard_error));
    stats_field(out, "z", "z", undefined ? none : stats_number(k->z));
    stats_field(out, "p", "p", undefined ? none : stats_number(k->p));
    stats_field(out, "exact_agreement", "same label", k->kappa.n ? stats_number(k->exact) : none);
    stats_field(out, "within_one", "at most one level apart",
                ordered && k->kappa.n ? stats_number(k->within_one) : none);
    stats_field(out, "label_study", "agreement, study's words",
                undefined ? none : stats_text(lk_agreement_label(LK_SCALE_STUDY, k->kappa.value)));
    stats_field(out, "label_landis_koch", "agreement, Landis-Koch",
                undefined ? none : stats_text(lk_agreement_label(LK_SCALE_LANDIS_KOCH, k->kappa.value)));
    bool ac = !g->ac.undefined;
    stats_field(out, "gwet_ac", "Gwet's AC, same weights", ac ? stats_number(g->ac.value) : none);
    const bool interval = ac && !g->ac.no_interval;
    stats_field(out, "gwet_low", "  from", interval ? stats_number(g->ac.low) : none);
    stats_field(out, "gwet_high", "  to", interval ? stats_number(g->ac.high) : none);
    stats_field(out, "prevalence", "commonest label's share", ac ? stats_number(g->prevalence) : none);
    stats_field(out, "n", "n", stats_count(k->kappa.n));
    stats_print_missing(s);
    stats_field(out, "method", "method", stats_text("asymptotic, 95 % interval"));
}

/* Of pairs of labels [2, n_rows], from first to last, those that are whole. */
static enum lk_code gwet(struct stats *s, const int32_t *labels, int32_t first, int32_t last, enum lk_weights weights,
                         struct lk_gwet *out) {
    size_t n = s->n_rows, k = (size_t)(last - first) + 1;
    *out = (struct lk_gwet){.ac.undefined = "too many cells"};
    if (n * k > 100000000) return LK_OK;
    int32_t *counts = stats_alloc(s, n * k, sizeof *counts);
    if (!counts) return LK_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        if (labels[i] < first || labels[n + i] < first) continue;
        counts[i * k + (size_t)(labels[i] - first)]++;
        counts[i * k + (size_t)(labels[n + i] - first)]++;
    }
    return lk_gwet_ac(counts, n, (int)k, weights, out);
}

static enum lk_code kappa(struct stats *s) {
    struct stats_levels levels;
    LK_TRY(label_pairs(s, &levels));
    enum lk_weights weights = weights_of(s);
    bool ordered = whole_numbers(&levels);
    if (weights != LK_WEIGHTS_NONE && !ordered && levels.n)
        return stats_misused(s, "--weights: labels that are not whole numbers (at most 1,024 levels) have no distance");
    int32_t first = ordered ? (int32_t)levels.values[0] : 0;
    int32_t last = ordered ? (int32_t)levels.values[levels.n - 1] : levels.n ? levels.n - 1 : 0;
    int32_t *labels = stats_alloc(s, 2 * s->n_rows, sizeof *labels);
    if (!labels) return LK_E_NOMEM;
    for (size_t i = 0; i < 2 * s->n_rows; i++) {
        int32_t code = levels.codes[i];
        labels[i] = code < 0 ? first - 1 : ordered ? (int32_t)levels.values[code] : code;
    }
    struct lk_kappa kappa;
    LK_TRY(lk_cohen_kappa(labels, labels + s->n_rows, s->n_rows, first, last, weights, &kappa));
    s->missing = s->n_rows - kappa.kappa.n;
    struct lk_gwet ac;
    LK_TRY(gwet(s, labels, first, last, weights, &ac));
    const char *of;
    LK_TRY(both(s, "and", &of));
    print_kappa(s, of, weights, ordered, &kappa, &ac);
    return stats_print_labels(s, "labels", "labels", &levels);
}

/* x: a judge's scores; y: people's ratings, empty where nobody rated. */
static enum lk_code ppi(struct stats *s) {
    double *judged, *y;
    struct stats_levels strata = {0};
    LK_TRY(stats_numbers(s, &s->x, &judged));
    LK_TRY(stats_numbers(s, &s->y, &y));
    if (s->by.name) LK_TRY(stats_levels(s, &s->by, 1, &strata));
    size_t n = 0, n_rated = 0, n_other = 0;
    unsigned char *rated = stats_alloc(s, s->n_rows, 1);
    double *parts = stats_alloc(s, 3 * s->n_rows, sizeof *parts);
    if (!rated || !parts) return LK_E_NOMEM;
    double *f = parts + s->n_rows, *other = f + s->n_rows;
    for (size_t i = 0; i < s->n_rows; i++) {
        if (isnan(judged[i]) || (s->by.name && strata.codes[i] < 0)) continue;
        if (s->by.name) strata.codes[n] = strata.codes[i];
        rated[n] = !isnan(y[i]);
        judged[n] = judged[i], y[n] = y[i];
        if (rated[n])
            parts[n_rated] = y[i], f[n_rated++] = judged[i];
        else
            other[n_other++] = judged[i];
        n++;
    }
    s->missing = s->n_rows - n;
    struct lk_prediction_powered p;
    if (s->by.name)
        LK_TRY(lk_difference_estimate(judged, y, rated, strata.codes, n, strata.n, stats_confidence(s), &p));
    else
        LK_TRY(lk_prediction_powered_mean(parts, f, n_rated, other, n_other, -1, stats_confidence(s), &p));
    const char *of;
    LK_TRY(stats_join(s, &of, "%s, with %s of all", s->y.name, s->x.name));
    stats_open(&s->out, s->test, "Prediction-powered mean", of);
    stats_print_interval(s, "mean", "mean", &p.estimate);
    if (!p.estimate.undefined) {
        stats_field(&s->out, "rated_only", "ratings alone", stats_number(p.rated_only.value));
        stats_field(&s->out, "rated_low", "  from", stats_number(p.rated_only.low));
        stats_field(&s->out, "rated_high", "  to", stats_number(p.rated_only.high));
        stats_field(&s->out, "judged_only", "judge alone", stats_number(p.judged_only));
        stats_field(&s->out, "lambda", "lambda", stats_number(p.lambda));
        stats_field(&s->out, "correlation", "correlation of both", stats_number(p.correlation));
        stats_field(&s->out, "effective_n", "ratings alone, as good", stats_number(p.effective_n));
    }
    stats_field(&s->out, "n", "rated", stats_count(p.estimate.n));
    stats_field(&s->out, "n_judged", "judged", stats_count(n));
    stats_print_missing(s);
    stats_field(&s->out, "merged", p.merged_strata ? "strata put to another" : NULL,
                stats_count((size_t)p.merged_strata));
    stats_field(
        &s->out, "method", "method",
        stats_text(s->by.name ? "difference estimator over strata, of these items" : "PPI++, of any such items"));
    return LK_OK;
}

static enum lk_code correlation(struct stats *s) {
    struct pairs pairs;
    LK_TRY(number_pairs(s, &pairs));
    struct lk_test test;
    struct lk_number interval = {.undefined = "none"};
    if (!strcmp(s->test, "pearson"))
        LK_TRY(lk_pearson(pairs.x, pairs.y, pairs.n, stats_confidence(s), &test, &interval));
    else if (!strcmp(s->test, "spearman"))
        LK_TRY(lk_spearman(pairs.x, pairs.y, pairs.n, &test));
    else
        LK_TRY(lk_kendall(pairs.x, pairs.y, pairs.n, &test));
    const char *of;
    LK_TRY(both(s, "and", &of));
    stats_print_test(s, of, &test);
    if (!strcmp(s->test, "pearson") && (interval.low != 0 || interval.high != 0)) {
        stats_field(&s->out, "low", "interval from", stats_number(interval.low));
        stats_field(&s->out, "high", "interval to", stats_number(interval.high));
        stats_field(&s->out, "confidence", "confidence", stats_number(stats_confidence(s)));
    }
    return LK_OK;
}

static enum lk_code wilcoxon(struct stats *s) {
    struct pairs pairs;
    LK_TRY(number_pairs(s, &pairs));
    for (size_t i = 0; i < pairs.n; i++) pairs.x[i] -= pairs.y[i];
    const char *zero = s->o->zero_method;
    struct lk_wilcoxon_options options = {.alternative = stats_alternative(s),
                                          .method = s->o->exact ? LK_P_EXACT : LK_P_AUTO,
                                          .continuity = s->o->correction,
                                          .keep_digits = true};
    if (zero && !strcmp(zero, "pratt")) options.zero_method = LK_ZERO_PRATT;
    if (zero && !strcmp(zero, "zsplit")) options.zero_method = LK_ZERO_ZSPLIT;
    struct lk_test test;
    LK_TRY(lk_wilcoxon(pairs.x, pairs.n, &options, &test));
    LK_TRY(stats_check_exact(s, &test));
    const char *of;
    LK_TRY(both(s, "against", &of));
    stats_print_test(s, of, &test);
    stats_field(&s->out, "zero_method", "differences of 0", stats_text(zero ? zero : "wilcox"));
    return LK_OK;
}

/* Counts of x's labels by y's. */
struct table {
    struct stats_levels x, y;
    int64_t *counts; /* [x.n, y.n] */
    int64_t total;
};

static enum lk_code cross(struct stats *s, struct table *out) {
    LK_TRY(stats_levels(s, &s->x, 1, &out->x));
    LK_TRY(stats_levels(s, &s->y, 1, &out->y));
    if ((int64_t)out->x.n * out->y.n > 1000000)
        return lk_fail(LK_E_INPUT, "%s: %d by %d labels are more than 1e6 cells", s->file, out->x.n, out->y.n);
    out->counts = stats_alloc(s, (size_t)out->x.n * (size_t)out->y.n, sizeof *out->counts);
    if (!out->counts) return LK_E_NOMEM;
    out->total = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        if (out->x.codes[i] < 0 || out->y.codes[i] < 0) continue;
        out->counts[(size_t)out->x.codes[i] * (size_t)out->y.n + (size_t)out->y.codes[i]]++;
        out->total++;
    }
    s->missing = s->n_rows - (size_t)out->total;
    return LK_OK;
}

/* One column against equal shares. */
static enum lk_code chi2_fit(struct stats *s) {
    struct stats_levels levels;
    LK_TRY(stats_levels(s, &s->x, 1, &levels));
    int64_t *counts = stats_alloc(s, (size_t)levels.n, sizeof *counts);
    if (!counts) return LK_E_NOMEM;
    for (size_t i = 0; i < s->n_rows; i++) {
        if (levels.codes[i] >= 0) counts[levels.codes[i]]++;
        s->missing += levels.codes[i] < 0;
    }
    struct lk_test test;
    size_t n_small = 0;
    LK_TRY(lk_chi2_fit(counts, NULL, (size_t)levels.n, &test, &n_small));
    const char *of;
    LK_TRY(stats_join(s, &of, "%s against equal shares of %d labels", s->x.name, levels.n));
    stats_print_test(s, of, &test);
    stats_field(&s->out, "n_small", "expected counts under 5", stats_count(n_small));
    return stats_print_labels(s, "labels", "labels", &levels);
}

static enum lk_code chi2(struct stats *s) {
    if (!s->y.name) return chi2_fit(s);
    struct table table;
    LK_TRY(cross(s, &table));
    struct lk_contingency c;
    LK_TRY(lk_chi2_contingency(table.counts, (size_t)table.x.n, (size_t)table.y.n, &c, NULL, NULL));
    const char *of;
    LK_TRY(both(s, "by", &of));
    stats_print_test(s, of, s->o->no_correction ? &c.uncorrected : &c.test);
    stats_field(&s->out, "n_rows", "rows", stats_count(c.n_rows));
    stats_field(&s->out, "n_columns", "columns", stats_count(c.n_columns));
    stats_field(&s->out, "n_small", "expected counts under 5", stats_count(c.n_small));
    LK_TRY(stats_print_labels(s, "row_labels", "labels of rows", &table.x));
    return stats_print_labels(s, "column_labels", "labels of columns", &table.y);
}

static enum lk_code fisher(struct stats *s) {
    struct table t;
    LK_TRY(cross(s, &t));
    if (t.x.n != 2 || t.y.n != 2)
        return lk_fail(LK_E_INPUT,
                       "%s: fisher: expected two labels in each column, got %d in \"%.64s\" and %d in "
                       "\"%.64s\"; chi2 takes any number",
                       s->file, t.x.n, s->x.name, t.y.n, s->y.name);
    struct lk_test test;
    LK_TRY(lk_fisher_exact(t.counts, stats_alternative(s), &test));
    const char *of;
    LK_TRY(stats_join(s, &of, "odds of %s = %s, %s = %s to %s", s->y.name, t.y.names[0], s->x.name, t.x.names[0],
                      t.x.names[1]));
    stats_print_test(s, of, &test);
    return LK_OK;
}

static enum lk_code mcnemar(struct stats *s) {
    struct stats_levels levels;
    LK_TRY(label_pairs(s, &levels));
    if (levels.n > 2)
        return lk_fail(LK_E_INPUT,
                       "%s: mcnemar: expected two labels in \"%.64s\" and \"%.64s\", got %d (\"%.32s\", "
                       "\"%.32s\", \"%.32s\"...)",
                       s->file, s->x.name, s->y.name, levels.n, levels.names[0], levels.names[1], levels.names[2]);
    int64_t counts[2][2] = {{0, 0}, {0, 0}};
    for (size_t i = 0; i < s->n_rows; i++) {
        int32_t a = levels.codes[i], b = levels.codes[s->n_rows + i];
        if (a < 0 || b < 0)
            s->missing++;
        else
            counts[a][b]++;
    }
    enum lk_mcnemar_method method = s->o->correction      ? LK_MCNEMAR_CONTINUITY
                                    : s->o->no_correction ? LK_MCNEMAR_ASYMPTOTIC
                                                          : LK_MCNEMAR_EXACT;
    struct lk_test test;
    LK_TRY(lk_mcnemar(counts[0][1], counts[1][0], method, &test));
    const char *of;
    LK_TRY(both(s, "to", &of));
    stats_print_test(s, of, &test);
    if (levels.n == 2) {
        const char *there, *back;
        LK_TRY(stats_join(s, &there, "%.64s to %.64s", levels.names[0], levels.names[1]));
        LK_TRY(stats_join(s, &back, "%.64s to %.64s", levels.names[1], levels.names[0]));
        const char *const keys[] = {"change", "pairs"};
        const struct stats_cell cells[] = {stats_text(there), stats_count((size_t)counts[0][1]), stats_text(back),
                                           stats_count((size_t)counts[1][0])};
        stats_print_table(&s->out, "changes", keys, 2, cells, 2);
    }
    return LK_OK;
}

const struct stats_test stats_pair_tests[] = {
    {"kappa", "Cohen's kappa of two raters", kappa, PAIR, WEIGHTS},
    {"ppi", "a mean by people's ratings and a judge's of everything: prediction-powered inference", ppi, PAIR,
     BY | ALPHA},
    {"spearman", "Spearman's rank correlation", correlation, PAIR, 0},
    {"pearson", "Pearson's correlation", correlation, PAIR, ALPHA},
    {"kendall", "Kendall's tau-b", correlation, PAIR, 0},
    {"wilcoxon", "Wilcoxon's signed-rank test of pairs", wilcoxon, PAIR,
     ALTERNATIVE | ZERO_METHOD | CORRECTIONS | EXACT},
    {"chi2", "chi-square test of one column's labels, or of two columns", chi2, X_COLUMN, Y_COLUMN | CORRECTIONS},
    {"fisher", "Fisher's exact test of a 2 x 2 table", fisher, PAIR, ALTERNATIVE | EXACT},
    {"mcnemar", "McNemar's test of pairs", mcnemar, PAIR, CORRECTIONS | EXACT},
    {0},
};
