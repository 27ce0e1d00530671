/* What a platform takes: of Prolific ids to approve, one a line, and lines id,amount for bonuses, without a head line;
 * of Mechanical Turk its own columns Approve and Reject, and what send-bonus asks for. */

#include "engine/base/status.h"
#include "eval/survey/pay.h"
#include "eval/survey/store.h"

/* Approved ids are letters, digits, - and _ or an e-mail's: they stand as they are, for the platform to find them. */
static void prolific_approve(struct lk_text *out, const struct lk_pay_row *row) {
    if (row->verdict == LK_PAY_APPROVE) lk_text_add(out, "%s\n", row->id);
}

static void prolific_bonus(struct lk_text *out, const struct lk_pay_row *row) {
    if (row->bonus > 0) lk_text_add(out, "%s,%.2f\n", row->id, row->bonus);
}

static void add_cells(struct lk_text *out, const char *const *cells) {
    for (int i = 0; cells[i]; i++) {
        if (i) lk_text_add(out, ",");
        if (*cells[i]) lk_survey_csv_text(out, cells[i]);
    }
    lk_text_add(out, "\n");
}

/* Prolific has no list of rejections: each is entered with its reason. */
static void prolific_reject(struct lk_text *out, const struct lk_pay_row *row) {
    if (row->verdict == LK_PAY_REJECT) add_cells(out, (const char *[]){row->id, row->submission, row->reason, NULL});
}

static void mturk_review(struct lk_text *out, const struct lk_pay_row *row) {
    const bool approve = row->verdict == LK_PAY_APPROVE;
    if (approve || row->verdict == LK_PAY_REJECT)
        add_cells(out, (const char *[]){row->submission, approve ? "x" : "", row->reason, NULL});
}

static void mturk_bonus(struct lk_text *out, const struct lk_pay_row *row) {
    if (!(row->bonus > 0)) return;
    lk_survey_csv_text(out, row->id);
    lk_text_add(out, ",");
    lk_survey_csv_text(out, row->submission);
    lk_text_add(out, ",%.2f,\"Bonus for careful answers to the attention checks\"\n", row->bonus);
}

static void by_hand(struct lk_text *out, const struct lk_pay_row *row) {
    if (row->verdict != LK_PAY_BY_HAND) return;
    lk_text_add(out, "%zu,", row->line);
    add_cells(out, (const char *[]){row->id, row->submission, row->reason, NULL});
}

static const struct file {
    const char *name, *head;
    void (*add)(struct lk_text *out, const struct lk_pay_row *row);
} files[2][5] = {{{"approve.csv", "", prolific_approve},
                  {"reject.csv", "participant id,submission id,reason\n", prolific_reject},
                  {"bonus.csv", "", prolific_bonus},
                  {"by_hand.csv", "line,participant id,submission id,reason\n", by_hand}},
                 {{"review.csv", "AssignmentId,Approve,Reject\n", mturk_review},
                  {"bonus.csv", "WorkerId,AssignmentId,BonusAmount,Reason\n", mturk_bonus},
                  {"by_hand.csv", "line,WorkerId,AssignmentId,reason\n", by_hand}}};

enum lk_code lk_pay_file(const struct lk_pay *pay, int i, const char **name, struct lk_text *out) {
    const struct file *file = &files[pay->is_mturk][i];
    *name = file->name;
    if (!*name) return LK_OK;
    lk_text_add(out, "%s", file->head);
    for (size_t k = 0; k < pay->n; k++) file->add(out, &pay->rows[k]);
    return out->rc;
}
