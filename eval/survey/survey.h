/* The survey's state: who takes part, who holds which place, what was answered. Knows no HTTP and reads no clock: `now`
 * is milliseconds since 1970.
 *
 *     struct lk_survey *survey;
 *     LK_TRY(lk_survey_open(&survey, study, "study.survey", true));
 *     LK_TRY(lk_survey_enter(survey, "5f3a...", false, now, token));       // the visitor keeps the token
 *     LK_TRY(lk_survey_visitor(survey, token, &who));
 *     ...
 *
 * What changes the state is durable when the call returns LK_OK with the verdict LK_SURVEY_DONE, between
 * lk_survey_together and lk_survey_done when the latter does; a call that did not finish has changed nothing. Calls may
 * come from several threads. */
#pragma once

#include "engine/base/names.h"
#include "engine/base/text.h"
#include "eval/survey/study.h"

enum lk_survey_verdict {
    LK_SURVEY_DONE,
    LK_SURVEY_CONFLICT, /* not in this state: place taken, task incomplete, another window, already submitted */
    LK_SURVEY_EARLY,    /* answered faster than the study allows */
    LK_SURVEY_INVALID,  /* no such task, item, question or option */
};

struct lk_survey;
struct lk_survey_visitor {
    int64_t id, claim; /* claim: 0 without one */
    char worker[65];   /* salted hash */
    bool guided, consented;
    bool submitted;     /* all that one participant may do; the claim is the last */
    int n_submitted;    /* tasks */
    int last_submitted; /* place */
    int task, place;    /* of the claim: 0.., -1 without one; place: task + n_tasks * seat */
    int lost_task;      /* whose place was given back as nothing was answered, and none was taken since; -1: none */
    int64_t lease;      /* the window that may write */
};

/* folder: holds answers.db and, readable by the owner only, secrets.json (salt, key, admin token), which is made when
 * it is not there. LK_E_NOT_FOUND without `create` when there is no store; LK_E_CHANGED when it belongs to another
 * study. */
enum lk_code lk_survey_open(struct lk_survey **out, const struct lk_survey_study *study, const char *folder,
                            bool create);
void lk_survey_close(struct lk_survey *survey);
/* One thread's calls between these two become durable together, at the price of one. When lk_survey_done fails, none of
 * them has changed anything. */
enum lk_code lk_survey_together(struct lk_survey *survey);
enum lk_code lk_survey_done(struct lk_survey *survey);
const char *lk_survey_admin_token(const struct lk_survey *survey);
/* What strangers may do only so often in an hour, all of them together: send 100 wrong admin tokens, and enter as as
 * many new participants as the study says. Counts `more` of it; false when that is too many. */
enum lk_survey_limit { LK_SURVEY_WRONG_TOKENS, LK_SURVEY_ENTRIES, LK_SURVEY_N_LIMITS };
bool lk_survey_within(struct lk_survey *s, enum lk_survey_limit what, int more, int64_t now);
bool lk_survey_id_is_valid(const char *external_id); /* 1 to 64 of A-Z a-z 0-9 - _ */

/* The salted hash under which the store has, or would have, this id as typed: white space, letter case and the host of
 * Prolific's e-mail form do not count (lk_rater_id). *known: its owner has entered. LK_E_INPUT: no participant can have
 * it. */
enum lk_code lk_survey_worker(struct lk_survey *s, const char *typed, size_t n, char worker[65], bool *known);
/* Nobody on the list enters from now on: a table with a column of ids, as platforms export it, or an id a line; in
 * place of an id its hash in this store will do. Ids are hashed and not kept. *n_listed: how many. LK_E_INPUT with the
 * line of what is neither. */
enum lk_code lk_survey_block(struct lk_survey *s, const char *text, size_t n, const char *name, size_t *n_listed);
/* Whether the list holds who comes with this id: counted the first time. */
enum lk_code lk_survey_refuses(struct lk_survey *s, const char *external_id, int64_t now, bool *refuses);
/* What stands as "sig" in the link of a participant whose study signs its links: 32 hex digits of the id under the
 * store's key. */
void lk_survey_link(const struct lk_survey *s, const char *external_id, char out[33]);
/* The latest time that the store knows, 0 for none: a clock that is behind it would go backwards. */
enum lk_code lk_survey_latest(struct lk_survey *s, int64_t *out);
/* Answers that people gave in the store of this folder; of simulated participants none count. 0 where no store is. */
enum lk_code lk_survey_answered(const char *folder, int64_t *n);
/* Of those who consented, how many there are, and of these how many are simulated. */
enum lk_code lk_survey_simulated(struct lk_survey *s, int64_t *n_participants, int64_t *n_simulated);
/* A new session for the platform's id, which is stored as a salted hash only. token: 64 hex digits, also not stored;
 * it ends after 30 days, or when five newer ones are there. LK_E_INPUT: too many new participants in this hour. */
enum lk_code lk_survey_enter(struct lk_survey *s, const char *external_id, bool is_pilot, int64_t now, char token[65]);
/* Ends the session of the token; the participant's answers and places stay. */
enum lk_code lk_survey_leave(struct lk_survey *s, const char *token);
/* Deletes all that is kept of the participant; a place that was taken is free again. LK_E_NOT_FOUND. */
enum lk_code lk_survey_forget(struct lk_survey *s, const char *external_id);
/* LK_E_NOT_FOUND when the token opens nothing. */
enum lk_code lk_survey_visitor(struct lk_survey *s, const char *token, int64_t now, struct lk_survey_visitor *out);
/* What a form of this session must carry: 64 hex digits. */
void lk_survey_form_token(const struct lk_survey *s, const char *token, char out[65]);
bool lk_survey_same(const char *a, const char *b); /* in constant time for equal lengths */

enum lk_code lk_survey_guided(struct lk_survey *s, const struct lk_survey_visitor *who, bool check_right, int64_t now);
/* How many of the practice items the visitor has answered; and the answer to item `number`, from 1, as they come: one
 * that is answered already changes nothing. */
enum lk_code lk_survey_practised(struct lk_survey *s, const struct lk_survey_visitor *who, int *n);
enum lk_code lk_survey_practise(struct lk_survey *s, const struct lk_survey_visitor *who, int number, bool right,
                                int64_t now);
enum lk_code lk_survey_consent(struct lk_survey *s, const struct lk_survey_visitor *who, const char *sha256,
                               int64_t now);

struct lk_survey_place {
    int n_taken, n_submitted; /* of the study's places */
    bool mine;
};
/* places [n_tasks], the claims that ran out first given back. */
enum lk_code lk_survey_places(struct lk_survey *s, const struct lk_survey_visitor *who, int64_t now,
                              struct lk_survey_place *places);
/* A place in task 0..: CONFLICT when it is full or the visitor has, or had to the end, another. */
enum lk_code lk_survey_claim(struct lk_survey *s, const struct lk_survey_visitor *who, int task, int64_t now,
                             enum lk_survey_verdict *verdict);

struct lk_survey_answer {
    int position;
    char key[40], value[24];
};
/* The last answers of the visitor's task, by position; *first_open: the first position that lacks one, the length when
 * none does. lk_free. */
enum lk_code lk_survey_answers(struct lk_survey *s, const struct lk_survey_visitor *who, struct lk_survey_answer **out,
                               size_t *n, size_t *first_open);
/* An item is shown in a window of its own lease, which takes writing away from every other. */
enum lk_code lk_survey_show(struct lk_survey *s, const struct lk_survey_visitor *who, int position, int64_t now,
                            int64_t *lease);
/* All of them or none. key "comment" takes a text. */
struct lk_survey_given {
    const char *key, *value;
};
enum lk_code lk_survey_answer(struct lk_survey *s, const struct lk_survey_visitor *who, int64_t lease, int position,
                              const struct lk_survey_given *given, size_t n, int64_t now,
                              enum lk_survey_verdict *verdict);
/* CONFLICT below 100 %. */
enum lk_code lk_survey_submit(struct lk_survey *s, const struct lk_survey_visitor *who, int64_t now,
                              enum lk_survey_verdict *verdict);

/* The code of the task that a participant has submitted last. */
enum lk_code lk_survey_code(struct lk_survey *s, const struct lk_survey_visitor *who, char out[48]);
/* Whether a submission of this study has the code. */
enum lk_code lk_survey_code_valid(struct lk_survey *s, const char *code, bool *valid);
/* The same of the code that one participant entered. A platform's list names who entered what: a code that is passed on
 * is somebody else's. */
enum lk_survey_code_verdict {
    LK_SURVEY_CODE_VALID,
    LK_SURVEY_CODE_UNKNOWN,    /* no submission has it */
    LK_SURVEY_CODE_SHARED,     /* another participant's */
    LK_SURVEY_CODE_STRANGER,   /* nobody of this id has entered */
    LK_SURVEY_CODE_UNFINISHED, /* who has this id has not submitted */
};
enum lk_code lk_survey_code_check(struct lk_survey *s, const char *external_id, const char *code,
                                  enum lk_survey_code_verdict *verdict);

/* JSON lines as `ratings` and `report` read them: answers of claims that stand (or, abandoned, of those that ran out),
 * and who took part. */
enum lk_code lk_survey_export_answers(struct lk_survey *s, bool abandoned, bool comments, struct lk_text *out);
enum lk_code lk_survey_export_participants(struct lk_survey *s, struct lk_text *out);
/* The same lines as CSV, which `ratings` and `report` read too. */
enum lk_code lk_survey_csv(const struct lk_text *lines, struct lk_text *out);

struct lk_survey_day {
    char date[11];
    int n_submitted, n_answers;
};
/* A rater whose answers break a rule. */
struct lk_survey_outlier {
    char worker[65];
    uint32_t rules;   /* bit per enum lk_quality_rule, without those that only say that the task is not finished */
    double median_ms; /* per question, NaN without times */
    int n_checks, n_checks_right;
    bool excluded; /* as if all ended now */
};
enum { LK_SURVEY_MAX_OUTLIERS = 50 };
struct lk_survey_counts {
    int n_participants, n_refused, n_consented, n_open, n_submitted, n_abandoned, n_last_day, n_comments, n_errors;
    int n_checks, n_checks_right;                        /* attention checks answered */
    bool few_hits, many_failures, errors;                /* alerts */
    int n_raters, n_excluded, n_hit[LK_N_QUALITY_RULES]; /* by the protocol's rules, as if all ended now */
    double median_minutes, estimate[2]; /* from taking a task to submitting it; as participants are told, at least and
                                           at most; NaN without */
    int n_timed;                        /* tasks of the median, by people */
    char told[32];                      /* the estimate in words: "25 to 30" */
    bool time_off;                      /* an alert: 5 or more took a fifth less, or more, than that */
    struct lk_survey_day days[31];
    int n_days, n_outliers; /* n_outliers: of them the first ones are told */
    struct lk_survey_outlier outliers[LK_SURVEY_MAX_OUTLIERS];
};
enum lk_code lk_survey_count(struct lk_survey *s, int64_t now, struct lk_survey_counts *out);
/* kind "error": a technical problem that a participant reported. */
enum lk_code lk_survey_event(struct lk_survey *s, const struct lk_survey_visitor *who, const char *kind, int64_t now);

/* n simulated participants who answer everything; outputs of the edited arm drift where the source is not White.
 * LK_E_INPUT: people have answered. */
enum lk_code lk_survey_pilot(struct lk_survey *s, int n, int64_t now);

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
