#include <stdio.h>

#include "tools/cli/audit/judge.h"
#include "tools/cli/audit/report_input.h"
#include "tools/cli/audit/review.h"

/* The report's tables about the two judges, as Markdown or JSON. */
static enum lk_code print_tables(const struct lk_report *report, bool json) {
    static const char *const ids[] = {"t_judge", "judge_drift", "review_decisions"};
    bool first = true;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct lk_table *table = lk_report_table(report, ids[i]);
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
    if (a->more[0]) return lk_fail(LK_E_USAGE, "judge agreement: takes no \"%.40s\"", a->more[0]);
    if (!a->report.scores && !(a->report.primary && a->report.secondary))
        return lk_fail(LK_E_USAGE, "judge agreement: expected --primary and --secondary, or --scores");
    enum lk_code rc = cli_report_input(&input, &a->report);
    input.options.n_bootstrap = 10; /* no table printed here has a resampled interval */
    if (!rc && a->review.file) rc = cli_review_read(&input.data, a->review.file);
    if (!rc) rc = lk_report_build(&report, &input.data, &input.options);
    if (!rc) rc = print_tables(report, a->json);
    lk_report_free(report);
    cli_report_input_free(&input);
    return rc;
}
