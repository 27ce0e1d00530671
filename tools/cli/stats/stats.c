#include "tools/cli/stats/stats.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/cli.h"

/* The options of stats, each with its bit. Two are report's too and hold its defaults: those two pass where a test does
 * not look at them. */
static const int64_t DEFAULT_SEED = 42;
static const double DEFAULT_ALPHA = 0.05;

#define STATS_OPTIONS(X)                                                                                               \
    X(VALUE, "value", o->value)                                                                                        \
    X(BY, "by", o->by)                                                                                                 \
    X(X_COLUMN, "x", o->x)                                                                                             \
    X(Y_COLUMN, "y", o->y)                                                                                             \
    X(ITEM, "item", o->item)                                                                                           \
    X(RATER, "rater", o->rater)                                                                                        \
    X(CLUSTER, "cluster", o->cluster)                                                                                  \
    X(COLUMNS, "columns", o->columns)                                                                                  \
    X(WEIGHTS, "weights", o->weights)                                                                                  \
    X(LEVEL, "level", o->level)                                                                                        \
    X(ALTERNATIVE, "alternative", o->alternative)                                                                      \
    X(ZERO_METHOD, "zero-method", o->zero_method)                                                                      \
    X(METHOD, "method", o->method)                                                                                     \
    X(INTERVAL, "interval", o->interval)                                                                               \
    X(EXACT, "exact", o->exact)                                                                                        \
    X(CORRECTION, "correction", o->correction)                                                                         \
    X(NO_CORRECTION, "no-correction", o->no_correction)                                                                \
    X(RESAMPLES, "resamples", o->resamples > 0)                                                                        \
    X(STUDY_SEED, "study-seed", a->report.study_seed != DEFAULT_SEED)                                                  \
    X(NULL_RATE, "null", o->null >= 0)                                                                                 \
    X(P1, "p1", o->p1 >= 0)                                                                                            \
    X(P2, "p2", o->p2 >= 0)                                                                                            \
    X(ALPHA, "alpha", a->report.alpha != DEFAULT_ALPHA)                                                                \
    X(POWER, "power", o->power > 0)

#define PLACE(bit, name, given) AT_##bit,
enum { STATS_OPTIONS(PLACE) N_OPTIONS };
#define BIT(bit, name, given) bit = 1 << AT_##bit,
enum { STATS_OPTIONS(BIT) };
#define NAME(bit, name, given) name,
static const char *const option_names[] = {STATS_OPTIONS(NAME)};

static unsigned given(const struct cli_arguments *a) {
    const struct cli_stats_options *o = &a->stats;
#define GIVEN(bit, name, given) | (given ? (unsigned)bit : 0u)
    return 0 STATS_OPTIONS(GIVEN);
}

enum {
    PAIR = X_COLUMN | Y_COLUMN,
    GROUPED = VALUE | BY,
    CORRECTIONS = CORRECTION | NO_CORRECTION,
    RESAMPLED = RESAMPLES | STUDY_SEED | ALPHA,
};

/* Of `wide` tests, --columns stands in for all that they need. */
static const struct test {
    const char *name;
    enum lk_code (*run)(struct stats *);
    unsigned needs, takes;
    bool wide, no_file;
} tests[] = {
    {"kappa", stats_kappa, PAIR, WEIGHTS, false, false},
    {"fleiss", stats_fleiss, ITEM | VALUE, 0, true, false},
    {"alpha", stats_alpha, ITEM | RATER | VALUE, LEVEL | RESAMPLED, true, false},
    {"icc", stats_icc, ITEM | RATER | VALUE, 0, true, false},
    {"spearman", stats_correlation, PAIR, 0, false, false},
    {"pearson", stats_correlation, PAIR, ALPHA, false, false},
    {"kendall", stats_correlation, PAIR, 0, false, false},
    {"kruskal", stats_kruskal, GROUPED, 0, false, false},
    {"mann-whitney", stats_mann_whitney, GROUPED, ALTERNATIVE | CORRECTIONS | EXACT, false, false},
    {"wilcoxon", stats_wilcoxon, PAIR, ALTERNATIVE | ZERO_METHOD | CORRECTIONS | EXACT, false, false},
    {"chi2", stats_chi2, X_COLUMN, Y_COLUMN | CORRECTIONS, false, false},
    {"fisher", stats_fisher, PAIR, ALTERNATIVE | EXACT, false, false},
    {"mcnemar", stats_mcnemar, PAIR, CORRECTIONS | EXACT, false, false},
    {"friedman", stats_friedman, ITEM | GROUPED, 0, true, false},
    {"dunn", stats_dunn, GROUPED, METHOD, false, false},
    {"proportions", stats_proportions, VALUE, BY | ALTERNATIVE | ALPHA | NULL_RATE, false, false},
    {"describe", stats_describe, VALUE, BY, false, false},
    {"adjust", stats_adjust, VALUE, ITEM | METHOD, false, false},
    {"bootstrap", stats_bootstrap, VALUE, BY | CLUSTER | INTERVAL | RESAMPLED, false, false},
    {"sample-size", stats_sample_size, P1 | P2, ALPHA | POWER, false, true},
};
enum { N_TESTS = sizeof tests / sizeof *tests };

/* NULL with the message set. */
static const struct test *find(const char *name) {
    const char *names[N_TESTS];
    for (int i = 0; i < N_TESTS; i++) {
        names[i] = tests[i].name;
        if (!strcmp(name, names[i])) return &tests[i];
    }
    const char *near = cli_suggest(name, names, N_TESTS);
    if (near)
        lk_fail(LK_E_USAGE, "stats: %.64s: no such test; did you mean '%s'?", name, near);
    else
        lk_fail(LK_E_USAGE, "stats: %.64s: no such test; 'likeness help stats' lists them", name);
    return NULL;
}

static int lowest(unsigned bits) {
    int i = 0;
    while (!(bits >> i & 1)) i++;
    return i;
}

/* An option that a test would not look at is refused: nobody should think that it was heeded. */
static enum lk_code check(const struct test *test, const struct cli_arguments *a) {
    unsigned has = given(a);
    bool wide = test->wide && (has & COLUMNS);
    unsigned needs = wide ? (unsigned)COLUMNS : test->needs;
    unsigned takes = needs | test->takes | (test->wide ? (unsigned)COLUMNS : 0);
    if (has & ~takes) {
        const char *name = option_names[lowest(has & ~takes)];
        return lk_fail(LK_E_USAGE, "--%s: not an option of 'stats %s'%s", name, test->name,
                       wide && (test->needs & has & ~takes) ? " with --columns" : "");
    }
    if (needs & ~has)
        return lk_fail(LK_E_USAGE, "--%s: missing; 'stats %s' needs it%s", option_names[lowest(needs & ~has)],
                       test->name, test->wide ? " unless --columns names the raters' columns" : "");
    if ((has & CORRECTIONS) == CORRECTIONS)
        return lk_fail(LK_E_USAGE, "--correction and --no-correction exclude each other");
    if (!test->no_file && !a->more[0])
        return lk_fail(LK_E_USAGE, "stats %s: expected a CSV file; usage: likeness stats %s FILE.csv [options]",
                       test->name, test->name);
    if (test->no_file && a->more[0])
        return lk_fail(LK_E_USAGE, "stats %s: takes no file, got \"%.64s\"", test->name, a->more[0]);
    return LK_OK;
}

enum lk_code cli_stats(const struct cli_arguments *arguments) {
    const struct test *test = find(arguments->positional);
    if (!test) return LK_E_USAGE;
    LK_TRY(check(test, arguments));
    struct stats s = {.o = &arguments->stats,
                      .n_threads = arguments->job.run.threads,
                      .seed = (uint64_t)arguments->report.study_seed,
                      .alpha = arguments->report.alpha,
                      .test = test->name,
                      .file = arguments->more[0],
                      .out.json = arguments->json};
    enum lk_code rc = test->no_file ? LK_OK : stats_read(&s);
    if (!rc) rc = test->run(&s);
    rc = stats_close(&s.out, rc);
    stats_free(&s);
    return rc;
}

enum lk_alternative stats_alternative(const struct stats *s) {
    const char *name = s->o->alternative;
    if (name && !strcmp(name, "less")) return LK_LESS;
    return name && !strcmp(name, "greater") ? LK_GREATER : LK_TWO_SIDED;
}

enum lk_code stats_check_exact(const struct stats *s, const struct lk_test *test) {
    if (!s->o->exact || test->undefined || !strcmp(test->method, "exact")) return LK_OK;
    return lk_fail(
        LK_E_INPUT,
        "%s: %s: --exact: the exact distribution is known without ties and zeros only, and for at most 1,000 "
        "values; leave --exact out",
        s->file, s->test);
}

double stats_confidence(const struct stats *s) { return 1 - s->alpha; }

struct lk_resampling stats_resampling(const struct stats *s) {
    struct lk_resampling how = LK_RESAMPLING;
    how.seed = s->seed;
    if (s->o->resamples > 0) how.n_replicates = (int)s->o->resamples;
    how.confidence = stats_confidence(s);
    how.n_threads = s->n_threads;
    return how;
}

void stats_print_missing(struct stats *s) {
    stats_field(&s->out, "missing", s->missing ? "missing, left out" : NULL, stats_count(s->missing));
}

void stats_print_test(struct stats *s, const char *of, const struct lk_test *test) {
    struct stats_out *out = &s->out;
    struct stats_cell none = stats_none();
    bool is = !test->undefined;
    stats_open(out, s->test, test->name, of);
    stats_field(out, "undefined", "undefined", stats_text(test->undefined));
    stats_field(out, "statistic", "statistic", is ? stats_number(test->statistic) : none);
    stats_field(out, "df", "df", is && test->df > 0 ? stats_number(test->df) : none);
    stats_field(out, "p", "p", is ? stats_number(test->p) : none);
    stats_field(out, "effect", is && test->effect_name ? test->effect_name : NULL,
                is && test->effect_name ? stats_number(test->effect) : none);
    stats_field(out, "effect_name", NULL, is ? stats_text(test->effect_name) : none);
    stats_field(out, "n", "n", stats_count(test->n));
    stats_print_missing(s);
    stats_field(out, "method", "method", is ? stats_text(test->method) : none);
    if (s->o->alternative) stats_field(out, "alternative", "alternative", stats_text(s->o->alternative));
}

void stats_print_interval(struct stats *s, const char *key, const char *label, const struct lk_number *number) {
    bool is = !number->undefined, has = is && (number->low != 0 || number->high != 0);
    char name[64];
    stats_field(&s->out, key, label, is ? stats_number(number->value) : stats_none());
    snprintf(name, sizeof name, "%s_low", key);
    stats_field(&s->out, name, "  from", has ? stats_number(number->low) : stats_none());
    snprintf(name, sizeof name, "%s_high", key);
    stats_field(&s->out, name, "  to", has ? stats_number(number->high) : stats_none());
    snprintf(name, sizeof name, "%s_undefined", key);
    stats_field(&s->out, name, "undefined", stats_text(number->undefined));
}
