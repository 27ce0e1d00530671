#include "eval/survey/survey.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/status.h"
#include "eval/human/ratings.h"
#include "eval/study/packing.h"
#include "eval/survey/store.h"

/* What a platform takes: of Prolific ids to approve, one a line, and lines id,amount for bonuses, without a head line;
 * of Mechanical Turk its own columns Approve and Reject, and what send-bonus asks for. */

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

/* What is known of a row beside what is told. */
struct submission {
    enum lk_submission state;
    const char *code; /* NULL: none was entered */
    char worker[65];
    bool read, known; /* read: the record is understood; known: the participant has entered the survey */
};

struct payer {
    struct lk_pay *pay;
    struct lk_survey *survey;
    const struct lk_cost_plan *plan; /* of the protocol: its bonus */
    struct lk_quality_options options;
    struct lk_ratings_import import;
    struct lk_dataset data;
    struct lk_quality_report quality;
    struct submission *submissions; /* of each row */
    size_t capacity;
    struct lk_names paid; /* workers */
    size_t *paid_line;    /* of each */
    size_t paid_capacity;
};

static const char *copy(struct lk_pay *pay, const struct lk_field *field) {
    return lk_store_copy(&pay->texts, field ? field->text : "", field ? field->n : 0);
}

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "out of memory for payments"); }

static const struct lk_field *submission_of(const struct lk_fields *fields) {
    static const char *const names[] = {"AssignmentId", "submission id", "session id", NULL};
    return lk_fields_find_any(fields, names);
}

/* A list without a column of ids or codes is none of submissions. */
static enum lk_code check_columns(const struct lk_records *records) {
    bool ids, codes;
    lk_participant_id(&records->fields, &ids);
    lk_participant_code(&records->fields, &codes);
    if (ids && codes) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: line %zu: expected a column %s, got none; export the submissions from the platform",
                   records->name, records->line,
                   ids ? "\"Completion code\" (Prolific) or \"Answer.surveycode\" (Mechanical Turk)"
                       : "\"Participant id\" (Prolific) or \"WorkerId\" (Mechanical Turk)");
}

/* The record as a row. LK_E_INPUT: it is not understood. */
static enum lk_code read_record(struct payer *p, const struct lk_records *records, struct lk_pay_row *row,
                                struct submission *of) {
    bool asked;
    char typed[LK_RATER_ID_MAX + 1];
    const struct lk_field *id = lk_participant_id(&records->fields, &asked),
                          *code = lk_participant_code(&records->fields, &asked);
    row->id = copy(p->pay, id);
    row->submission = copy(p->pay, submission_of(&records->fields));
    of->code = code ? copy(p->pay, code) : NULL;
    if (!row->id || !row->submission || (code && !of->code)) return out_of_memory();
    if (!id) return lk_fail(LK_E_INPUT, "no participant id");
    LK_TRY(lk_participant_submission(records, &of->state));
    LK_TRY(lk_rater_id(id->text, id->n, typed));
    enum lk_code rc = lk_survey_worker(p->survey, id->text, id->n, of->worker, &of->known);
    return rc == LK_E_INPUT ? LK_OK : rc; /* nobody can have entered with it */
}

static enum lk_code take_record(struct payer *p, const struct lk_records *records, bool bad) {
    struct lk_pay *pay = p->pay;
    LK_TRY(lk_grow(&pay->rows, &pay->capacity, pay->n + 1, sizeof *pay->rows));
    LK_TRY(lk_grow(&p->submissions, &p->capacity, pay->n + 1, sizeof *p->submissions));
    struct lk_pay_row *row = &pay->rows[pay->n];
    struct submission *of = &p->submissions[pay->n++];
    *row = (struct lk_pay_row){.line = records->line, .id = "", .submission = "", .reason = ""};
    *of = (struct submission){.state = LK_SUBMISSION_UNSAID};
    enum lk_code rc = bad ? LK_E_INPUT : read_record(p, records, row, of);
    of->read = !rc;
    if (rc != LK_E_INPUT) return rc;
    row->reason = lk_store_text(&pay->texts, lk_error_text());
    return row->reason ? LK_OK : out_of_memory();
}

/* A file of which nothing is understood is none of submissions. */
static enum lk_code check_any(const struct payer *p, const char *name) {
    const struct lk_pay *pay = p->pay;
    if (!pay->n) return lk_fail(LK_E_INPUT, "%s: expected a submission in each line, got none", name);
    for (size_t i = 0; i < pay->n; i++)
        if (p->submissions[i].read) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: line %zu, and every other: %s", name, pay->rows[0].line, pay->rows[0].reason);
}

static enum lk_code read_list(struct payer *p, const char *text, size_t n, const char *name) {
    struct lk_records records;
    LK_TRY(lk_records_open(&records, text, n, name));
    enum lk_code rc = LK_OK;
    p->pay->is_mturk = records.is_csv && lk_csv_column(&records.csv, "AssignmentId") >= 0;
    for (bool more = true, bad; !rc && more;) {
        rc = lk_records_next(&records, &more, &bad);
        if (!rc && more && !bad) rc = check_columns(&records);
        if (!rc && more) rc = take_record(p, &records, bad);
    }
    if (!rc) rc = check_any(p, name);
    if (!rc) rc = lk_records_unread(&records, &p->pay->unread);
    lk_records_close(&records);
    return rc;
}

/* What the store shows of everybody's answers. */
static enum lk_code read_answers(struct payer *p, enum lk_quality_policy policy) {
    enum lk_protocol protocol = p->survey->study->protocol;
    p->plan = lk_cost_plan(lk_protocol_name(protocol));
    lk_quality_defaults(protocol, &p->options);
    p->options.policy = policy;
    LK_TRY(lk_survey_ratings(p->survey, &p->import));
    if (p->import.rejects.n) /* nobody is paid or rejected on a part of the answers */
        return lk_fail(LK_E_INPUT, "the survey's answers are not understood: %.200s", p->import.rejects.list[0].reason);
    return lk_quality_check(&p->data, &p->options, &p->quality);
}

static void add_rule(struct lk_text *out, enum lk_quality_rule rule, const struct lk_rater_quality *q,
                     const struct lk_quality_options *o) {
    if (out->n) lk_text_add(out, "; ");
    if (rule == LK_Q1_GOLD)
        lk_text_add(out, "attention checks: %d of %d right, expected at least %d %%", q->n_gold_right, q->n_gold,
                    o->gold_percent);
    else if (rule == LK_Q8_SPEEDER)
        lk_text_add(out, "median time of a question: %.1f s, expected at least %.0f s", q->median_ms / 1000,
                    o->speeder_ms / 1000.0);
    else if (rule == LK_Q9_STRAIGHT)
        lk_text_add(out, "the same answer to %d of %d questions, expected at most %d %%", q->n_most_common,
                    q->n_answers, o->straight_percent);
    else
        lk_text_add(out, "%s", lk_quality_rule_text(rule));
}

static bool earns_bonus(const struct payer *p, const struct lk_rater_quality *q) {
    const int right = 100 * q->n_gold_right, least = p->plan ? p->plan->bonus_percent * q->n_gold : 0;
    return p->plan && p->plan->bonus > 0 && q->n_gold && (p->plan->bonus_above ? right > least : right >= least);
}

static enum lk_code set(struct lk_pay *pay, struct lk_pay_row *row, enum lk_pay_verdict verdict, const char *reason) {
    row->verdict = verdict;
    row->reason = lk_store_text(&pay->texts, reason);
    return row->reason ? LK_OK : out_of_memory();
}

/* Of a participant with a valid code, by the answers. */
static enum lk_code judge(struct payer *p, struct lk_pay_row *row, const struct submission *of) {
    int32_t at;
    LK_TRY(lk_dataset_rater(&p->data, of->worker, strlen(of->worker), &at));
    if ((size_t)at >= p->quality.n_raters)
        return set(p->pay, row, LK_PAY_BY_HAND, "the survey has no answers of this participant");
    const struct lk_rater_quality *q = &p->quality.raters[at];
    const uint32_t rules = lk_quality_excluding(q->rules, p->options.policy);
    const bool paid = of->state == LK_SUBMISSION_APPROVED;
    char due[120];
    snprintf(due, sizeof due, "approved before this list: a bonus of $%.2f is due unless it was paid",
             p->plan ? p->plan->bonus : 0);
    if (paid) return earns_bonus(p, q) && !rules ? set(p->pay, row, LK_PAY_BY_HAND, due) : LK_OK;
    if (!rules) {
        row->verdict = LK_PAY_APPROVE;
        row->bonus = earns_bonus(p, q) ? p->plan->bonus : 0;
        return LK_OK;
    }
    struct lk_text reason = {0};
    for (int rule = 0; rule < LK_N_QUALITY_RULES; rule++)
        if (rules >> rule & 1) add_rule(&reason, rule, q, &p->options);
    enum lk_code rc = reason.rc ? reason.rc : set(p->pay, row, LK_PAY_REJECT, reason.bytes);
    lk_text_free(&reason);
    return rc;
}

/* *line: where the participant was approved before, 0 nowhere; afterwards here. Who may do several tasks has a code for
 * each, unless one is everybody's. */
static enum lk_code mark_paid(struct payer *p, const struct submission *of, size_t here, size_t *line) {
    int32_t at;
    size_t n = p->paid.n;
    *line = 0;
    const bool each = p->survey->study->tasks_per_worker > 1 && !p->survey->study->code && of->code;
    char *key = lk_format("%s%s%s", of->worker, each ? "|" : "", each ? of->code : "");
    enum lk_code rc = key ? lk_names_number(&p->paid, key, strlen(key), &at) : out_of_memory();
    lk_free(key);
    if (rc) return rc;
    LK_TRY(lk_grow(&p->paid_line, &p->paid_capacity, p->paid.n, sizeof *p->paid_line));
    if ((size_t)at < n)
        *line = p->paid_line[at];
    else
        p->paid_line[at] = here;
    return LK_OK;
}

/* What people who decide want to know beside what is wrong with the code. */
static enum lk_code standing(struct payer *p, const struct submission *of, enum lk_survey_code_verdict verdict,
                             const char **out) {
    int32_t at;
    *out = "";
    if (verdict == LK_SURVEY_CODE_STRANGER || verdict == LK_SURVEY_CODE_UNFINISHED) return LK_OK;
    *out = "; nobody of this id took part in the survey";
    if (!of->known) return LK_OK;
    LK_TRY(lk_dataset_rater(&p->data, of->worker, strlen(of->worker), &at));
    *out = (size_t)at < p->quality.n_raters && p->data.raters[at].submitted
               ? "; the survey has a submission of this participant"
               : "; this participant has not submitted in the survey";
    return LK_OK;
}

static enum lk_code decide(struct payer *p, struct lk_pay_row *row, const struct submission *of) {
    static const char *const words[] = {
        "", "no submission has this completion code", "the completion code is another participant's",
        "nobody of this id took part in the survey", "this participant has not submitted in the survey"};
    enum lk_survey_code_verdict verdict = LK_SURVEY_CODE_UNKNOWN;
    const bool paid = of->state == LK_SUBMISSION_APPROVED;
    const char *more;
    char text[160];
    size_t line = 0;
    if (!of->read) row->verdict = LK_PAY_BY_HAND;
    if (!of->read || of->state == LK_SUBMISSION_GONE) return LK_OK;
    if (of->code) LK_TRY(lk_survey_code_check(p->survey, row->id, of->code, &verdict));
    if (of->known && (paid || verdict == LK_SURVEY_CODE_VALID)) LK_TRY(mark_paid(p, of, row->line, &line));
    if (verdict == LK_SURVEY_CODE_VALID && !line) return judge(p, row, of);
    if (paid) return LK_OK;
    LK_TRY(standing(p, of, verdict, &more));
    snprintf(text, sizeof text, "%s%s", of->code ? words[verdict] : "no completion code", more);
    if (line) snprintf(text, sizeof text, "a second submission of this participant: see line %zu", line);
    return set(p->pay, row, LK_PAY_BY_HAND, text);
}

/* What the platform has approved counts before what it is to approve. */
static enum lk_code decide_all(struct payer *p) {
    struct lk_pay *pay = p->pay;
    for (int waiting = 0; waiting < 2; waiting++)
        for (size_t i = 0; i < pay->n; i++)
            if ((p->submissions[i].state != LK_SUBMISSION_APPROVED) == waiting)
                LK_TRY(decide(p, &pay->rows[i], &p->submissions[i]));
    for (size_t i = 0; i < pay->n; i++) {
        const struct lk_pay_row *row = &pay->rows[i];
        pay->n_of[row->verdict]++;
        pay->n_bonus += row->bonus > 0;
        pay->bonus += row->bonus;
    }
    return LK_OK;
}

static enum lk_code count_unlisted(struct payer *p) {
    struct lk_names listed = {0};
    int32_t at;
    sqlite3_stmt *q = NULL;
    enum lk_code rc = LK_OK;
    for (size_t i = 0; !rc && i < p->pay->n; i++)
        if (p->submissions[i].known) rc = lk_names_number(&listed, p->submissions[i].worker, 64, &at);
    pthread_mutex_lock(&p->survey->sql.lock);
    if (!rc)
        rc = lk_sql_open(&p->survey->sql, &q,
                         "SELECT p.worker FROM read_claims c JOIN read_participants p ON p.id=c.participant WHERE "
                         "c.state='submitted' AND NOT p.pilot",
                         "");
    for (bool row = true; !rc && row;) {
        rc = lk_sql_step(&p->survey->sql, q, &row);
        if (!rc && row) p->pay->n_unlisted += lk_names_find(&listed, lk_sql_text(q, 0), 64) < 0;
    }
    sqlite3_finalize(q);
    pthread_mutex_unlock(&p->survey->sql.lock);
    lk_names_free(&listed);
    return rc;
}

enum lk_code lk_pay_read(struct lk_pay *pay, struct lk_survey *survey, enum lk_quality_policy policy, const char *text,
                         size_t n, const char *name) {
    struct payer p = {.pay = pay, .survey = survey};
    *pay = (struct lk_pay){.n = 0};
    lk_dataset_init(&p.data);
    p.import.data = &p.data;
    enum lk_code rc = read_list(&p, text, n, name);
    if (!rc) rc = read_answers(&p, policy);
    if (!rc) rc = decide_all(&p);
    if (!rc) rc = count_unlisted(&p);
    lk_quality_report_free(&p.quality);
    lk_ratings_import_free(&p.import);
    lk_dataset_free(&p.data);
    lk_names_free(&p.paid);
    lk_free(p.paid_line);
    lk_free(p.submissions);
    return rc;
}

void lk_pay_free(struct lk_pay *pay) {
    lk_names_free(&pay->unread);
    lk_store_free(&pay->texts);
    lk_free(pay->rows);
    *pay = (struct lk_pay){.n = 0};
}
