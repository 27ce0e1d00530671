#include <stdio.h>

#include "eval/intake/audit.h"

#include "tools/cli/cli.h"
#include "tools/cli/audit/report_input.h"
#include "tools/cli/audit/report_runs.h"
#include "tools/cli/audit/review.h"

static void print_rate(struct lk_rate rate) {
    if (!rate.n) {
        printf("  %14s", "-");
        return;
    }
    long long tenths = (long long)lk_percent_tenths(rate.k, rate.n);
    char text[64];
    snprintf(text, sizeof text, "%lld/%lld %lld.%lld%%", (long long)rate.k, (long long)rate.n, tenths / 10,
             tenths % 10);
    printf("  %14s", text);
}

/* Rates of the baseline arm by model; of the raters' majority where no judge scored. */
static void print_summary(const struct cli_report_input *in) {
    static const enum lk_measure shown[] = {LK_MEASURE_SUCCESS, LK_MEASURE_SOFT_ERASURE, LK_MEASURE_RACE_DRIFT,
                                            LK_MEASURE_GENDER_DRIFT};
    bool human = !lk_scores_any(&in->data, LK_SCORES_JUDGE) && lk_scores_any(&in->data, LK_SCORES_HUMAN);
    printf("%-24s", human ? "By the raters' majority" : "");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) printf("  %14s", lk_measure_name(shown[i]));
    putchar('\n');
    for (int m = 0; m < LK_N_MODELS; m++) {
        struct lk_group group = LK_GROUP_ANY;
        group.model = m;
        printf("%-24s", lk_factor_display(LK_FACTOR_MODEL, m));
        for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
            print_rate(lk_measure_rate_by(&in->data, &group, shown[i], human ? LK_SCORES_HUMAN : LK_SCORES_JUDGE,
                                          &in->options.thresholds));
        putchar('\n');
    }
}

static enum lk_code print_query(struct lk_audit *audit, const char *sql, bool json) {
    struct lk_table *table;
    LK_TRY(lk_audit_query(audit, sql, &table));
    const enum lk_code rc = cli_print_table(table, json);
    lk_table_free(table);
    return rc;
}

/* Of any study: the store, then a query, or the report that is made of queries. */
static enum lk_code report_any(const struct cli_arguments *a, const struct lk_study *study,
                               const struct cli_report_input *in) {
    struct lk_audit *audit;
    LK_TRY(lk_audit_open(&audit, a->report.save));
    enum lk_code rc = cli_report_store(audit, &a->report, study, in);
    if (!rc && a->report.query) rc = print_query(audit, a->report.query, a->json);
    if (!rc && a->output && !lk_study_is_documented(study))
        if (!(rc = lk_any_report_write(audit, study, &in->options, a->output))) rc = cli_findings_print(a->output);
    lk_audit_close(audit);
    return rc;
}

/* The portrait study's own report. */
static enum lk_code report_portraits(const struct cli_arguments *a, struct cli_report_input *in) {
    struct lk_report *report = NULL;
    enum lk_code rc = lk_report_build(&report, &in->data, &in->options);
    if (!rc) rc = lk_report_write(report, a->output);
    const enum lk_code told = !rc || rc == LK_E_PARTIAL ? cli_findings_print(a->output) : rc;
    if (!told) print_summary(in);
    if (told) rc = told;
    lk_report_free(report);
    return rc;
}

/* What is of the portrait study's page alone is refused where it would do nothing. */
static enum lk_code check_own(const struct cli_arguments *a) {
    const struct cli_report_arguments *r = &a->report;
    const struct {
        const char *option;
        bool given;
    } portraits[] = {{"sources", r->sources},
                     {"figure-prompt", r->figure_prompt},
                     {"figure-gender", r->figure_gender},
                     {"figure-age", r->figure_age},
                     {"feature-prompts", r->feature_prompts},
                     {"manifest", a->manifest},
                     {"legacy", r->legacy.n},
                     {"images", r->images},
                     {"pictures", r->pictures.n},
                     {"embed-images", r->embed_images},
                     {"audit-safe", r->audit_safe},
                     {"png", r->png},
                     {"data-folder", r->data_folder},
                     {"drifted-only", r->drifted_only}};
    for (size_t i = 0; i < sizeof portraits / sizeof *portraits; i++)
        if (portraits[i].given)
            return lk_fail(LK_E_USAGE,
                           "--%s: is of the portrait study's report, and this study has its own; leave it "
                           "out",
                           portraits[i].option);
    return LK_OK;
}

static enum lk_code report(const struct cli_arguments *a, const struct lk_study *study, struct cli_report_input *in) {
    const bool own = study && !lk_study_is_documented(study), store = a->report.query || a->report.save;
    if (store && !study)
        return lk_fail(LK_E_USAGE, "--query, --save: expected --from RUN, whose study says what is asked for");
    if (!own && a->output) LK_TRY(cli_report_images(in, &a->report));
    if (a->manifest) LK_TRY(cli_report_manifest(in, a->manifest));
    if (a->review.file) LK_TRY(cli_review_read(&in->data, a->review.file));
    in->options.with_review = a->review.file != NULL;
    if (own || store) LK_TRY(report_any(a, study, in));
    if (a->output && !own) LK_TRY(report_portraits(a, in));
    if (!in->n_refused) return LK_OK;
    if (own && !lk_scores_any(&in->data, LK_SCORES_JUDGE) && !lk_scores_any(&in->data, LK_SCORES_HUMAN))
        return lk_fail(
            LK_E_INPUT,
            "report: all %zu answers were refused, as said above: nothing is judged; 'judge run --mode forced' "
            "makes a model fill in a form",
            in->n_refused);
    return lk_fail(LK_E_PARTIAL, "report: %zu answers were refused; %s%s is of the others", in->n_refused,
                   a->output ? "the report in " : "what is printed", a->output ? a->output : "");
}

enum lk_code cli_report(const struct cli_arguments *a) {
    struct cli_report_input input = {0};
    struct cli_report_arguments arguments = a->report;
    struct cli_report_runs runs;
    if (!a->output && !a->report.query && !a->report.save)
        return lk_fail(LK_E_USAGE, "--output: missing; usage: likeness report --output DIR [options]");
    arguments.allow = a->study.allow;
    enum lk_code rc = cli_report_runs_read(&runs, &arguments);
    if (!rc && runs.first && !lk_study_is_documented(runs.first)) rc = check_own(a);
    if (!rc) rc = cli_report_input(&input, &arguments, runs.first);
    cli_report_runs_set(&runs, &input.options);
    if (!rc) rc = report(a, runs.first, &input);
    cli_report_input_free(&input);
    cli_report_runs_free(&runs);
    return rc;
}
