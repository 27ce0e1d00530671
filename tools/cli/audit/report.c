#include <stdio.h>

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

enum lk_code cli_report(const struct cli_arguments *a) {
    struct cli_report_input input;
    struct lk_report *report = NULL;
    struct cli_report_arguments arguments = a->report;
    struct cli_report_runs runs;
    if (a->positional) return cli_report_compare(a);
    arguments.allow = a->study.allow;
    enum lk_code rc = cli_report_runs_read(&runs, &arguments);
    if (rc) {
        cli_report_runs_free(&runs);
        return rc;
    }
    rc = cli_report_input(&input, &arguments);
    cli_report_runs_set(&runs, &input.options);
    if (!rc && a->manifest) rc = cli_report_manifest(&input, a->manifest);
    if (!rc && a->review.file) rc = cli_review_read(&input.data, a->review.file);
    input.options.with_review = a->review.file != NULL;
    if (!rc) rc = lk_report_build(&report, &input.data, &input.options);
    if (!rc) rc = lk_report_write(report, a->output);
    if (!rc || rc == LK_E_PARTIAL) print_summary(&input);
    if (!rc && input.n_refused)
        rc = lk_fail(LK_E_PARTIAL, "report: %zu answers were refused; the report in %s is of the others",
                     input.n_refused, a->output);
    lk_report_free(report);
    cli_report_input_free(&input);
    cli_report_runs_free(&runs);
    return rc;
}
