/* Whom a platform is to pay: its list of submissions against what the survey's store holds.
 *
 *     struct lk_pay pay;
 *     LK_TRY(lk_pay_read(&pay, survey, LK_POLICY_ANY, text, n, "prolific.csv"));
 *     for (int i = 0; lk_pay_file(&pay, i, &name, &out) == LK_OK && name; i++) ...       // what to upload
 *     lk_pay_free(&pay);
 *
 * The store knows hashes of ids alone. The ids are the list's own: each is hashed and looked up, and kept nowhere. A
 * valid completion code approves; only answers that break the policy's rules reject; whatever else is amiss (no code,
 * an unknown one, another's, a second submission) is for people to decide, with the reason. */
#pragma once

#include "engine/base/names.h"
#include "eval/survey/survey.h"

enum lk_pay_verdict {
    LK_PAY_SETTLED, /* approved before, given back, ran out or rejected: nothing to do */
    LK_PAY_APPROVE,
    LK_PAY_REJECT,
    LK_PAY_BY_HAND,
    LK_PAY_N_VERDICTS,
};
struct lk_pay_row {
    size_t line;                 /* of the list */
    const char *id, *submission; /* as the list has them; submission: of Mechanical Turk the assignment; "" without */
    enum lk_pay_verdict verdict;
    const char *reason; /* of what is rejected or for people to decide; "" without */
    double bonus;       /* dollars, with an approval alone */
};
struct lk_pay {
    bool is_mturk; /* else Prolific */
    struct lk_pay_row *rows;
    size_t n, capacity, n_of[LK_PAY_N_VERDICTS];
    size_t n_bonus, n_unlisted; /* unlisted: the survey's submissions by nobody on the list */
    double bonus;               /* of all */
    struct lk_names unread;     /* columns that nobody reads */
    struct lk_store texts;
};

/* Whose answers are rejected under the policy has no bonus; else what the protocol pays for attention checks.
 * LK_E_INPUT for a list without a column of ids or codes. lk_pay_free after a failure too. */
enum lk_code lk_pay_read(struct lk_pay *pay, struct lk_survey *survey, enum lk_quality_policy policy, const char *text,
                         size_t n, const char *name);
/* File i of what the platform takes and people read: *name NULL behind the last. Adds its text to out. */
enum lk_code lk_pay_file(const struct lk_pay *pay, int i, const char **name, struct lk_text *out);
void lk_pay_free(struct lk_pay *pay);
