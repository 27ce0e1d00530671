#include <stdio.h>
#include <string.h>

#include "eval/judge/prompt.h"
#include "eval/intake/report.h"
#include "tools/cli/audit/judge.h"
#include "tools/cli/audit/known.h"
#include "tools/cli/audit/report_input.h"
#include "tools/cli/audit/review.h"
#include "tools/cli/core/print.h"

/* What the two sides are when the second is a check of the first. */
static void print_meaning(enum lk_judge_check check) {
    const char *how = check == LK_CHECK_ORDER ? "the edited picture first. Every score should stay"
                      : check == LK_CHECK_ROLES
                          ? "each picture under the other's label, skin tone and age mirrored back. They "
                            "should fit, race and gender stay; edit success and V-03's age have no meaning"
                          : "again, with other seeds. Exact is how stable the judge is: two judges who agree "
                            "as often may differ by chance alone";
    printf("Secondary is the primary judge, asked %s.\n\n", how);
}

/* The report's tables about the two judges, as Markdown or JSON. */
static enum lk_code print_tables(const struct lk_report *report, bool json, enum lk_judge_check check) {
    static const char *const of_two[] = {"t_judge", "judge_drift", "review_decisions"};
    static const char *const of_one[] = {"t_judge", "judge_drift", "t_judge_groups"};
    bool first = true;
    if (check && !json) print_meaning(check);
    for (size_t i = 0; i < 3; i++) {
        const struct lk_table *table = lk_report_table(report, (check ? of_one : of_two)[i]);
        if (!table) continue;
        if (!first) putchar('\n');
        LK_TRY(cli_print_table(table, json));
        first = false;
    }
    return LK_OK;
}

static enum lk_code print_portraits(const struct cli_arguments *a, struct cli_report_input *input,
                                    enum lk_judge_check check) {
    struct lk_report *report = NULL;
    input->options.n_bootstrap = 10; /* no table printed here has a resampled interval */
    enum lk_code rc = lk_report_build(&report, &input->data, &input->options);
    if (!rc) rc = print_tables(report, a->json, check);
    lk_report_free(report);
    return rc;
}

/* Of a study of one's own: tables of its report. */
static enum lk_code print_any(const struct cli_arguments *a, const struct lk_study *study,
                              const struct cli_report_input *input) {
    static const char *const names[] = {"judge_agreement", "judges", "review_decisions"};
    struct lk_audit *audit;
    LK_TRY(lk_audit_open(&audit, NULL));
    enum lk_code rc = cli_report_store(audit, &a->report, study, input);
    for (int i = 0; i < (a->review.file ? 3 : 2) && !rc; i++) {
        struct lk_table *table;
        if ((rc = lk_any_table(audit, names[i], &table))) break;
        if (i) putchar('\n');
        rc = cli_print_table(table, a->json);
        lk_table_free(table);
    }
    lk_audit_close(audit);
    return rc;
}

enum lk_code cli_judge_agreement(const struct cli_arguments *a) {
    struct cli_report_input input = {0};
    struct lk_study *study;
    const enum lk_judge_check check = (enum lk_judge_check)lk_judge_check_parse(a->report.check);
    if (!a->report.scores && !a->report.runs.n && !(a->report.primary && a->report.secondary))
        return lk_fail(LK_E_USAGE, "judge agreement: expected --from, --primary and --secondary, or --scores");
    if (check && !(a->report.primary && a->report.secondary))
        return lk_fail(LK_E_USAGE, "--check: expected --primary, a judge's run, and --secondary, the check of it");
    enum lk_code rc = cli_known_study(&study, &a->report);
    const bool own = study && !lk_study_is_documented(study);
    if (!rc) rc = cli_report_input(&input, &a->report, study);
    if (!rc && check && strcmp(input.options.judges[0], input.options.judges[1]))
        rc = lk_fail(LK_E_INPUT, "--check %s: expected two runs of one judge, got %s and %s", a->report.check,
                     input.options.judges[0], input.options.judges[1]);
    if (!rc && a->review.file) rc = cli_review_read(&input.data, a->review.file);
    if (!rc && check && own && !a->json) print_meaning(check);
    if (!rc) rc = own ? print_any(a, study, &input) : print_portraits(a, &input, check);
    cli_report_input_free(&input);
    lk_study_close(study);
    return rc;
}
