/* survey pay: whom the platform is to pay, from its own list of submissions. */
#include <stdio.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/survey/pay.h"
#include "tools/cli/audit/pairs.h"
#include "tools/cli/survey/http.h"

enum { MAX_LIST_BYTES = 1 << 26 };

/* What is not simply paid, line by line, and the sums. */
static void print(const struct lk_pay *pay) {
    static const char *const words[] = {"settled already", "approve", "reject", "by hand"};
    char money[32];
    for (size_t i = 0; i < pay->n; i++) {
        const struct lk_pay_row *row = &pay->rows[i];
        if (!*row->reason) continue;
        printf("line %zu: ", row->line);
        lk_log_text(stdout, row->id, false);
        printf(": %s: ", words[row->verdict]);
        lk_log_text(stdout, row->reason, false);
        putchar('\n');
    }
    for (int i = LK_PAY_APPROVE; i < LK_PAY_N_VERDICTS; i++) printf("%s %zu\n", words[i], pay->n_of[i]);
    printf("%s %zu\n", words[LK_PAY_SETTLED], pay->n_of[LK_PAY_SETTLED]);
    printf("bonus %zu, %s\n", pay->n_bonus, survey_money(pay->bonus, money));
}

static enum lk_code write_lists(const struct lk_pay *pay, const char *path) {
    struct survey_folder folder;
    const char *name;
    enum lk_code rc = LK_OK;
    LK_TRY(survey_folder_begin(&folder, path));
    for (int i = 0; !rc; i++) {
        struct lk_text text = {0};
        rc = lk_pay_file(pay, i, &name, &text);
        if (!rc && name) rc = survey_folder_write(&folder, name, &text);
        lk_text_free(&text);
        if (!name) break;
    }
    return survey_folder_end(&folder, rc);
}

enum lk_code survey_pay(const struct cli_arguments *a, const struct lk_survey_study *study, struct lk_survey *survey) {
    const char *path = a->survey.platform, *policy = a->report.qc_policy;
    struct lk_quality_options options;
    struct lk_pay pay;
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, MAX_LIST_BYTES, &text, &n));
    lk_quality_defaults(study->protocol, &options);
    if (policy) options.policy = (enum lk_quality_policy)lk_quality_policy_parse(policy);
    enum lk_code rc = lk_pay_read(&pay, survey, options.policy, text, n, path);
    if (!rc) print(&pay);
    if (!rc) cli_print_unread(path, &pay.unread);
    if (!rc && pay.n_unlisted)
        lk_log(LK_LOG_WARNING, "%s: %zu submissions of the survey are of nobody on this list", path, pay.n_unlisted);
    if (!rc && a->output) rc = write_lists(&pay, a->output);
    lk_pay_free(&pay);
    lk_free(text);
    return rc;
}
