#include <stdio.h>
#include <string.h>

#include "eval/judge/prompt.h"
#include "tools/cli/audit/judge.h"
#include "tools/cli/audit/report_input.h"
#include "tools/cli/audit/review.h"

/* What the two sides are when the second is a check of the first. */
static const char *meaning(enum lk_judge_check check) {
    return check == LK_CHECK_ORDER ? "the edited picture first. Every score should stay"
           : check == LK_CHECK_ROLES
               ? "each picture under the other's label, skin tone and age mirrored back. They "
                 "should fit, race and gender stay; edit success and V-03's age have no meaning"
               : "again, with other seeds. Exact is how stable the judge is: two judges who agree "
                 "as often may differ by chance alone";
}

/* The report's tables about the two judges, as Markdown or JSON. */
static enum lk_code print_tables(const struct lk_report *report, bool json, enum lk_judge_check check) {
    static const char *const of_two[] = {"t_judge", "judge_drift", "review_decisions"};
    static const char *const of_one[] = {"t_judge", "judge_drift", "t_judge_groups"};
    bool first = true;
    if (check && !json) printf("Secondary is the primary judge, asked %s.\n\n", meaning(check));
    for (size_t i = 0; i < 3; i++) {
        const struct lk_table *table = lk_report_table(report, (check ? of_one : of_two)[i]);
        struct lk_text text = {0};
        if (!table) continue;
        (json ? lk_table_json : lk_table_markdown)(table, &text);
        enum lk_code rc = text.rc;
        if (!rc) printf("%s%s", first ? "" : "\n", text.bytes);
        lk_text_free(&text);
        LK_TRY(rc);
        first = false;
    }
    return LK_OK;
}

enum lk_code cli_judge_agreement(const struct cli_arguments *a) {
    struct cli_report_input input;
    struct lk_report *report = NULL;
    const enum lk_judge_check check = (enum lk_judge_check)lk_judge_check_parse(a->report.check);
    if (!a->report.scores && !(a->report.primary && a->report.secondary))
        return lk_fail(LK_E_USAGE, "judge agreement: expected --primary and --secondary, or --scores");
    if (check && !(a->report.primary && a->report.secondary))
        return lk_fail(LK_E_USAGE, "--check: expected --primary, a judge's run, and --secondary, the check of it");
    enum lk_code rc = cli_report_input(&input, &a->report, NULL);
    if (!rc && check && strcmp(input.options.judges[0], input.options.judges[1]))
        rc = lk_fail(LK_E_INPUT, "--check %s: expected two runs of one judge, got %s and %s", a->report.check,
                     input.options.judges[0], input.options.judges[1]);
    input.options.n_bootstrap = 10; /* no table printed here has a resampled interval */
    if (!rc && a->review.file) rc = cli_review_read(&input.data, a->review.file);
    if (!rc) rc = lk_report_build(&report, &input.data, &input.options);
    if (!rc) rc = print_tables(report, a->json, check);
    lk_report_free(report);
    cli_report_input_free(&input);
    return rc;
}
