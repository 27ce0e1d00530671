/* Whom a platform is to pay: campaigns whose every participant is planted, good or bad in one way, against the lists.
 */
#include "engine/base/alloc.h"
#include "eval/survey/survey.h"
#include "eval/survey/store.h"
#include "tests/common/survey.h"
#include "tests/common/test.h"

enum { SECOND = 1000, N_CHECKS = 10 };
static const int64_t start = 1768608000000; /* 2026-01-17 */

#define GOLD(id)                                                                                                       \
    "{\"id\":\"" id "\",\"prompt\":\"x\",\"source\":\"s.png\",\"edited\":\"e.png\",\"expected\":{\"race_drift\":5}}"
#define CHECKS                                                                                                         \
    "\"tasks\":1,\"places\":30,\"min_seconds\":0,\"gold_per_task\":5,\"checks_per_task\":5,\"gold\":[" GOLD(           \
        "g1") "," GOLD("g2") "," GOLD("g3") "," GOLD("g4") "," GOLD("g5") "],"

struct person {
    const char *id;
    int n_wrong;   /* attention checks; -1: enters and answers nothing */
    bool straight; /* the first option everywhere else */
    char code[48];
};

/* Answers that nobody would take for a pattern, or one that is. */
static int option_of(const struct person *person, int position, int question) {
    static const int options[] = {3, 0, 4, 1, 3, 2, 0, 4, 2, 2, 1, 4, 0};
    return person->straight ? 0 : options[(position * 5 + question) % 13];
}

static void answer(struct test_survey *t, const struct lk_survey_visitor *who, const struct person *person,
                   const struct lk_survey_item *item, int position, bool wrong, int64_t now) {
    struct lk_survey_questions questions;
    struct lk_survey_given given[LK_SURVEY_MAX_QUESTIONS];
    char expected[LK_SURVEY_MAX_QUESTIONS][16];
    enum lk_survey_verdict verdict;
    int64_t lease;
    assert_ok(lk_survey_questions_of(t->study, item, &questions));
    for (int i = 0; i < questions.n; i++) {
        const struct lk_survey_question *q = &questions.list[i];
        const char *right = lk_survey_expected(item, q, 0, expected[i]);
        const int option = option_of(person, position, i) % q->n_options;
        const char *other = q->options[right && !strcmp(right, q->options[0].value)].value;
        given[i] = (struct lk_survey_given){q->key, !right ? q->options[option].value : wrong ? other : right};
    }
    assert_ok(lk_survey_show(t->survey, who, position, now - (int64_t)questions.n * 40 * SECOND, &lease));
    assert_ok(lk_survey_answer(t->survey, who, lease, position, given, (size_t)questions.n, now, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    lk_survey_questions_free(&questions);
}

static void take_part(struct test_survey *t, struct person *person) {
    const struct lk_survey_item *items[100];
    struct lk_survey_visitor who;
    enum lk_survey_verdict verdict;
    char token[65];
    int n_checks = 0;
    int64_t now = start;
    test_survey_person(t, person->id, person->n_wrong < 0 ? -1 : 0, start, token, &who);
    if (person->n_wrong < 0) return;
    assert_ok(lk_survey_task_items(t->study, who.worker, who.task, items));
    for (int i = 0; i < (int)lk_survey_task_length(t->study, 0); i++) {
        now += 400 * SECOND;
        const bool wrong = items[i]->kind && n_checks++ < person->n_wrong;
        answer(t, &who, person, items[i], i, wrong, now);
    }
    assert_ok(lk_survey_submit(t->survey, &who, now, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    assert_ok(lk_survey_visitor(t->survey, token, now, &who));
    assert_ok(lk_survey_code(t->survey, &who, person->code));
}

static void expect_file(const struct lk_pay *pay, const char *name, const char *expected) {
    const char *found;
    for (int i = 0;; i++) {
        struct lk_text text = {0};
        assert_ok(lk_pay_file(pay, i, &found, &text));
        if (!found) fail_msg("no file %s", name);
        if (!strcmp(found, name)) {
            assert_string_equal(text.bytes ? text.bytes : "", expected);
            lk_text_free(&text);
            return;
        }
        lk_text_free(&text);
    }
}

enum { GOOD, NINE, EIGHT, LOW, STRAIGHT, NO_CODE, UNKNOWN, LENT, PAID, TWICE, MIXED, UNLISTED, N_PEOPLE };
static const struct person everybody[N_PEOPLE] = {[GOOD] = {.id = "good"},
                                                  [NINE] = {.id = "nine", .n_wrong = 1},
                                                  [EIGHT] = {.id = "eight", .n_wrong = 2},
                                                  [LOW] = {.id = "low", .n_wrong = 3},
                                                  [STRAIGHT] = {.id = "straight", .straight = true},
                                                  [NO_CODE] = {.id = "nocode"},
                                                  [UNKNOWN] = {.id = "unknown"},
                                                  [LENT] = {.id = "lent", .n_wrong = -1},
                                                  [PAID] = {.id = "paid"},
                                                  [TWICE] = {.id = "twice"},
                                                  [MIXED] = {.id = "MIXed"},
                                                  [UNLISTED] = {.id = "unlisted"}};

static void fill(struct test_survey *t, struct person *people, const char *name, const char *more) {
    memcpy(people, everybody, sizeof everybody);
    test_survey_open(t, name, 12, more);
    for (int i = 0; i < N_PEOPLE; i++) take_part(t, &people[i]);
}

static void read_list(struct lk_pay *pay, const struct test_survey *t, enum lk_quality_policy policy,
                      struct lk_text *list) {
    assert_ok(list->rc);
    assert_ok(lk_pay_read(pay, t->survey, policy, list->bytes, list->n, "list.csv"));
    lk_text_free(list);
}

static void add(struct lk_text *list, const struct person *person, const char *id, const char *status,
                const char *code) {
    lk_text_add(list, "s-%s,%s,%s,31,%s\n", id, id, status, code ? code : person->code);
}

static void prolific_list(struct lk_text *list, const struct person *people) {
    *list = (struct lk_text){0};
    lk_text_add(list, "Submission id,Participant id,Status,Time taken,Completion code\n");
    for (int i = GOOD; i <= STRAIGHT; i++) add(list, &people[i], people[i].id, "AWAITING REVIEW", NULL);
    add(list, NULL, "nocode", "AWAITING REVIEW", "NOCODE");                         /* 7 */
    add(list, NULL, "unknown", "AWAITING REVIEW", "AAAAAAAAAA");                    /* 8 */
    add(list, &people[GOOD], "lent", "AWAITING REVIEW", NULL);                      /* 9 */
    add(list, &people[GOOD], "stranger", "AWAITING REVIEW", NULL);                  /* 10 */
    add(list, &people[GOOD], "GOOD", "AWAITING REVIEW", NULL);                      /* 11 */
    add(list, &people[PAID], "paid", "APPROVED", NULL);                             /* 12 */
    add(list, &people[TWICE], "twice", "AWAITING REVIEW", NULL);                    /* 13 */
    add(list, &people[TWICE], "twice", "APPROVED", "NOCODE");                       /* 14 */
    add(list, &people[MIXED], "mixED@email.prolific.com", "AWAITING REVIEW", NULL); /* 15 */
    add(list, &people[GOOD], "gone", "RETURNED", NULL);                             /* 16 */
    add(list, &people[GOOD], "late", "TIMED-OUT", "");                              /* 17 */
    add(list, &people[GOOD], "odd", "WAT", NULL);                                   /* 18 */
    add(list, &people[GOOD], "5.60E+23", "AWAITING REVIEW", NULL);                  /* 19 */
    add(list, &people[GOOD], "=1+1", "AWAITING REVIEW", "");                        /* 20 */
}

static const char by_hand[] =
    "line,participant id,submission id,reason\n"
    "7,\"nocode\",\"s-nocode\",\"no completion code; the survey has a submission of this participant\"\n"
    "8,\"unknown\",\"s-unknown\",\"no submission has this completion code; the survey has a submission of this "
    "participant\"\n"
    "9,\"lent\",\"s-lent\",\"the completion code is another participant's; this participant has not submitted in the "
    "survey\"\n"
    "10,\"stranger\",\"s-stranger\",\"the completion code is another participant's; nobody of this id took part in the "
    "survey\"\n"
    "11,\"GOOD\",\"s-GOOD\",\"a second submission of this participant: see line 2\"\n"
    "12,\"paid\",\"s-paid\",\"approved before this list: a bonus of $1.00 is due unless it was paid\"\n"
    "13,\"twice\",\"s-twice\",\"a second submission of this participant: see line 14\"\n"
    "18,\"odd\",\"s-odd\",\"Status: unknown status \"\"WAT\"\"\"\n"
    "19,\"5.60E+23\",\"s-5.60E+23\",\"rater id: \"\"5.60E+23\"\" is damaged: a spreadsheet took it for a number and "
    "rounded "
    "it; export again and do not save it from the spreadsheet\"\n"
    "20,\"'=1+1\",\"s-=1+1\",\"no completion code; nobody of this id took part in the survey\"\n";

static void a_campaign_on_prolific(void **state) {
    struct test_survey t;
    struct person people[N_PEOPLE];
    struct lk_text list;
    struct lk_pay pay;
    (void)state;
    fill(&t, people, "pay-prolific", "\"protocol\":\"001\"," CHECKS);
    prolific_list(&list, people);
    read_list(&pay, &t, LK_POLICY_ANY, &list);
    assert_false(pay.is_mturk);
    expect_file(&pay, "approve.csv", "good\nnine\neight\nmixED@email.prolific.com\n");
    expect_file(&pay, "bonus.csv", "good,1.00\nmixED@email.prolific.com,1.00\n"); /* more than 90 % */
    expect_file(&pay, "reject.csv",
                "participant id,submission id,reason\n"
                "\"low\",\"s-low\",\"attention checks: 7 of 10 right, expected at least 80 %\"\n"
                "\"straight\",\"s-straight\",\"the same answer to 60 of 60 questions, expected at most 80 %\"\n");
    expect_file(&pay, "by_hand.csv", by_hand);
    assert_int_equal(pay.n_of[LK_PAY_SETTLED], 3);
    assert_int_equal(pay.n_of[LK_PAY_APPROVE], 4);
    assert_int_equal(pay.n_of[LK_PAY_REJECT], 2);
    assert_int_equal(pay.n_of[LK_PAY_BY_HAND], 10);
    assert_int_equal(pay.n_bonus, 2);
    assert_true(pay.bonus == 2.00);
    assert_int_equal(pay.n_unlisted, 1);
    assert_int_equal(pay.unread.n, 1); /* "Time taken" */
    const char *const ids[] = {"mixED", "mixed", "stranger"};
    for (int i = 0; i < 3; i++) assert_false(test_survey_store_has(&t, ids[i]));
    lk_pay_free(&pay);
    /* Nobody is rejected; who fails the checks has no bonus all the same. */
    prolific_list(&list, people);
    read_list(&pay, &t, LK_POLICY_NONE, &list);
    expect_file(&pay, "approve.csv", "good\nnine\neight\nlow\nstraight\nmixED@email.prolific.com\n");
    expect_file(&pay, "bonus.csv", "good,1.00\nstraight,1.00\nmixED@email.prolific.com,1.00\n");
    expect_file(&pay, "reject.csv", "participant id,submission id,reason\n");
    expect_file(&pay, "by_hand.csv", by_hand);
    lk_pay_free(&pay);
    test_survey_close(&t);
}

static void a_campaign_on_mturk(void **state) {
    struct test_survey t;
    struct person people[N_PEOPLE];
    struct lk_text list = {0};
    struct lk_pay pay;
    (void)state;
    fill(&t, people, "pay-mturk", "\"protocol\":\"000\"," CHECKS);
    lk_text_add(&list,
                "\"HITId\",\"AssignmentId\",\"WorkerId\",\"AssignmentStatus\",\"Answer.surveycode\",\"Approve\"\n");
    for (int i = GOOD; i <= STRAIGHT; i++)
        lk_text_add(&list, "H,3A%d,%s,Submitted,%s,\n", i, people[i].id, people[i].code);
    lk_text_add(&list, "H,3B,NINE,Submitted,%s,\n", people[NINE].code);
    lk_text_add(&list, "H,3C,paid,Approved,%s,x\n", people[PAID].code);
    lk_text_add(&list, "H,3D,mixed,Rejected,%s,\n", people[MIXED].code);
    lk_text_add(&list, "H,3E,unlisted,Submitted,,\n");
    read_list(&pay, &t, LK_POLICY_TWO_FLAGS, &list);
    assert_true(pay.is_mturk);
    expect_file(
        &pay, "review.csv",
        "AssignmentId,Approve,Reject\n\"3A0\",\"x\",\n\"3A1\",\"x\",\n\"3A2\",\"x\",\n"
        "\"3A3\",,\"attention checks: 7 of 10 right, expected at least 80 %\"\n"
        "\"3A4\",,\"near-zero variance; all answers identical; the same answer to 36 of 36 questions, expected at "
        "most 80 %\"\n");
    expect_file(&pay, "bonus.csv", /* at least 90 % */
                "WorkerId,AssignmentId,BonusAmount,Reason\n"
                "\"good\",\"3A0\",0.25,\"Bonus for careful answers to the attention checks\"\n"
                "\"nine\",\"3A1\",0.25,\"Bonus for careful answers to the attention checks\"\n");
    expect_file(&pay, "by_hand.csv",
                "line,WorkerId,AssignmentId,reason\n"
                "7,\"NINE\",\"3B\",\"a second submission of this participant: see line 3\"\n"
                "8,\"paid\",\"3C\",\"approved before this list: a bonus of $0.25 is due unless it was paid\"\n"
                "10,\"unlisted\",\"3E\",\"no completion code; the survey has a submission of this participant\"\n");
    assert_int_equal(pay.n_unlisted, 3); /* nocode, unknown, twice */
    lk_pay_free(&pay);
    test_survey_close(&t);
}

/* One code for all: who has it is nobody's proof of work. */
static void one_code_for_all(void **state) {
    struct test_survey t;
    struct person done = {.id = "done"}, begun = {.id = "begun", .n_wrong = -1};
    struct lk_text list = {0};
    struct lk_pay pay;
    (void)state;
    test_survey_open(&t, "pay-fixed", 6, "\"protocol\":\"003\",\"tasks\":1,\"code\":\"C1ABCDEF\",");
    take_part(&t, &done);
    take_part(&t, &begun);
    lk_text_add(&list, "participant id,completion code\ndone,C1ABCDEF\nbegun,C1ABCDEF\nabc,C1ABCDEF\n");
    read_list(&pay, &t, LK_POLICY_COMPLETION, &list);
    expect_file(&pay, "approve.csv", "done\n");
    expect_file(&pay, "bonus.csv", "");
    expect_file(&pay, "by_hand.csv",
                "line,participant id,submission id,reason\n"
                "3,\"begun\",,\"this participant has not submitted in the survey\"\n"
                "4,\"abc\",,\"nobody of this id took part in the survey\"\n");
    lk_pay_free(&pay);
    test_survey_close(&t);
}

/* Answers about outputs whose ids say nothing are looked at too. */
static void a_study_of_ones_own(void **state) {
    struct test_survey t;
    struct person good = {.id = "good"}, straight = {.id = "straight", .straight = true};
    struct lk_survey_counts counts;
    struct lk_text study = {0}, list = {0};
    struct lk_pay pay;
    (void)state;
    test_survey_open(&t, "pay-own", 6, "\"tasks\":1,");
    lk_survey_close(t.survey);
    lk_survey_study_free(t.study);
    lk_text_add(&study, "{\"study\":\"own\",\"item_ids\":\"plain\",\"tasks\":1,\"items\":[");
    for (int i = 0; i < 6; i++)
        lk_text_add(
            &study,
            "%s{\"id\":\"cook_%d\",\"prompt\":\"x\",\"source\":\"s.png\",\"edited\":\"e.png\",\"preserved\":\"p.png\"}",
            i ? "," : "", i);
    lk_text_add(&study, "]}");
    test_write(t.file, study.bytes, study.n);
    assert_ok(lk_text_free(&study));
    assert_ok(lk_survey_study_read(&t.study, t.file));
    strcat(t.store, "-own");
    assert_ok(lk_survey_open(&t.survey, t.study, t.store, true));
    take_part(&t, &good);
    take_part(&t, &straight);
    lk_text_add(&list, "participant id,completion code\ngood,%s\nstraight,%s\n", good.code, straight.code);
    read_list(&pay, &t, LK_POLICY_ANY, &list);
    expect_file(&pay, "approve.csv", "good\n");
    expect_file(&pay, "reject.csv",
                "participant id,submission id,reason\n"
                "\"straight\",,\"the same answer to 60 of 60 questions, expected at most 80 %\"\n");
    lk_pay_free(&pay);
    assert_ok(lk_survey_count(t.survey, start, &counts));
    assert_int_equal(counts.n_hit[LK_Q9_STRAIGHT], 1);
    test_survey_close(&t);
}

static void what_is_no_list(void **state) {
    static const struct {
        const char *text, *part;
    } cases[] = {{"Participant id,Status\nabc,APPROVED\n", "list.csv: line 2: expected a column \"Completion code\""},
                 {"Name,Completion code\nabc,C1\n", "expected a column \"Participant id\""},
                 {"{\"a\":1},", "list.csv: line 1, and every other: record"},
                 {"Participant id,Completion code\n", "expected a submission in each line, got none"},
                 {"", "expected a submission in each line, got none"}};
    struct test_survey t;
    struct lk_pay pay;
    (void)state;
    test_survey_open(&t, "pay-none", 6, "\"tasks\":1,");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_fails(lk_pay_read(&pay, t.survey, LK_POLICY_ANY, cases[i].text, strlen(cases[i].text), "list.csv"),
                     LK_E_INPUT, cases[i].part);
        lk_pay_free(&pay);
    }
    test_survey_close(&t);
}

/* Whichever allocation fails, no list is made of a part of the rows, and nothing stays. */
static void memory_runs_out(void **state) {
    struct test_survey t;
    struct person done = {.id = "done"}, low = {.id = "low", .n_wrong = 9};
    struct lk_text list = {0};
    struct lk_pay pay;
    size_t n_listed;
    enum lk_code rc = LK_E_NOMEM;
    int64_t n_failed = 0;
    (void)state;
    test_survey_open(&t, "pay-memory", 12, "\"protocol\":\"001\"," CHECKS);
    take_part(&t, &done);
    take_part(&t, &low);
    lk_text_add(&list, "participant id,status,completion code\ndone,submitted,%s\nlow,submitted,%s\nabc,submitted,\n",
                done.code, low.code);
    for (int64_t n = 1; rc; n += 1 + n / 60) {
        const int64_t live = lk_alloc_live();
        lk_alloc_fail_at(n);
        rc = lk_pay_read(&pay, t.survey, LK_POLICY_ANY, list.bytes, list.n, "list.csv");
        lk_alloc_fail_at(0);
        if (rc) assert_int_equal(rc, LK_E_NOMEM);
        n_failed += rc != LK_OK;
        if (!rc) assert_int_equal(pay.n_of[LK_PAY_APPROVE] + pay.n_of[LK_PAY_REJECT] + pay.n_of[LK_PAY_BY_HAND], 3);
        lk_pay_free(&pay);
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(n_failed > 200);
    rc = LK_E_NOMEM;
    for (int64_t n = 1; rc; n += 1 + n / 60) {
        lk_alloc_fail_at(n);
        rc = lk_survey_block(t.survey, list.bytes, list.n, "list.csv", &n_listed);
        lk_alloc_fail_at(0);
        if (rc) assert_int_equal(rc, LK_E_NOMEM);
    }
    assert_int_equal(n_listed, 3);
    lk_text_free(&list);
    test_survey_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_campaign_on_prolific), cmocka_unit_test(a_campaign_on_mturk),
        cmocka_unit_test(one_code_for_all),       cmocka_unit_test(a_study_of_ones_own),
        cmocka_unit_test(what_is_no_list),        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
