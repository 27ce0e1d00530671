#include "tools/cli/stats/stats.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/cli.h"

static const int64_t DEFAULT_SEED = 42;
static const double DEFAULT_ALPHA = 0.05;

#define NAME(bit, name, given) name,
static const char *const option_names[] = {STATS_OPTIONS(NAME)};

static unsigned given(const struct cli_arguments *a) {
    const struct cli_stats_options *o = &a->stats;
#define GIVEN(bit, name, given) | (given ? (unsigned)bit : 0u)
    return 0 STATS_OPTIONS(GIVEN);
}

static const struct stats_test *const tables[] = {stats_pair_tests, stats_group_tests, stats_rater_tests,
                                                  stats_rate_tests};

static const struct stats_test *find(const char *name) {
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct stats_test *test = tables[i]; test->name; test++)
            if (!strcmp(name, test->name)) return test;
    return NULL;
}

/* "x! y! weights json" */
static void list_options(const struct stats_test *test, char *out, size_t size) {
    const bool either = test->takes & COLUMNS;
    size_t n = 0;
    for (int i = 0; i < N_OPTIONS; i++) {
        const bool needed = test->needs >> i & 1;
        if (n < size && (needed || test->takes >> i & 1))
            n += (size_t)snprintf(out + n, size - n, "%s%s ", option_names[i], needed && !either ? "!" : "");
    }
    if (n < size) snprintf(out + n, size - n, "%sjson", test->takes & RESAMPLES ? "threads " : "");
}

const struct cli_verb *cli_stats_verbs(void) {
    enum { MAX_TESTS = 31 };
    static struct cli_verb verbs[MAX_TESTS + 1];
    static char options[MAX_TESTS][200];
    for (size_t i = 0, n = 0; i < sizeof tables / sizeof *tables && !verbs[MAX_TESTS - 1].name; i++)
        for (const struct stats_test *test = tables[i]; test->name && n < MAX_TESTS; test++, n++) {
            list_options(test, options[n], sizeof options[n]);
            verbs[n] = (struct cli_verb){.name = test->name,
                                         .summary = test->summary,
                                         .operands = test->takes & NO_FILE ? NULL : "FILE.csv",
                                         .options = options[n],
                                         .run = cli_stats};
        }
    return verbs;
}

static int lowest(unsigned bits) {
    int i = 0;
    while (!(bits >> i & 1)) i++;
    return i;
}

/* An option that a test would not look at is refused: nobody should think that it was heeded. */
static enum lk_code check(const struct stats_test *test, const struct cli_arguments *a) {
    unsigned has = given(a);
    bool wide = test->takes & has & COLUMNS;
    unsigned needs = wide ? (unsigned)COLUMNS : test->needs;
    unsigned takes = needs | test->takes;
    if (has & ~takes) {
        const char *name = option_names[lowest(has & ~takes)];
        return lk_fail(LK_E_USAGE, "--%s: not an option of 'stats %s'%s", name, test->name,
                       wide && (test->needs & has & ~takes) ? " with --columns" : "");
    }
    if (needs & ~has)
        return lk_fail(LK_E_USAGE, "--%s: missing; 'stats %s' needs it%s", option_names[lowest(needs & ~has)],
                       test->name, test->takes & COLUMNS ? " unless --columns names the raters' columns" : "");
    if ((has & CORRECTIONS) == CORRECTIONS)
        return lk_fail(LK_E_USAGE, "--correction and --no-correction exclude each other");
    return LK_OK;
}

enum lk_code cli_stats(const struct cli_arguments *arguments) {
    const struct stats_test *test = find(arguments->verb->name);
    LK_TRY(check(test, arguments));
    struct stats s = {.o = &arguments->stats,
                      .n_threads = arguments->job.run.threads,
                      .seed = (uint64_t)arguments->report.study_seed,
                      .alpha = arguments->report.alpha,
                      .test = test->name,
                      .file = arguments->more[0],
                      .out.json = arguments->json};
    enum lk_code rc = test->takes & NO_FILE ? LK_OK : stats_read(&s);
    if (!rc) rc = test->run(&s);
    rc = stats_close(&s.out, rc);
    if (!rc && s.n_refused)
        rc = lk_fail(s.n_rows ? LK_E_PARTIAL : LK_E_INPUT,
                     "%s: %zu of %zu records were refused; the statistic is of the others", s.file, s.n_refused,
                     s.n_refused + s.n_rows);
    if (rc && s.file && strncmp(lk_error_text(), s.file, strlen(s.file)))
        rc = lk_fail_prefix(rc, "%s: %s", s.file, s.test);
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
    bool is = !number->undefined, has = is && !number->no_interval && (number->low != 0 || number->high != 0);
    char name[64];
    stats_field(&s->out, key, label, is ? stats_number(number->value) : stats_none());
    snprintf(name, sizeof name, "%s_low", key);
    stats_field(&s->out, name, "  from", has ? stats_number(number->low) : stats_none());
    snprintf(name, sizeof name, "%s_high", key);
    stats_field(&s->out, name, "  to", has ? stats_number(number->high) : stats_none());
    snprintf(name, sizeof name, "%s_undefined", key);
    stats_field(&s->out, name, is ? "no interval" : "undefined",
                stats_text(is ? number->no_interval : number->undefined));
}
