/* The survey's state: places, answers, submission, codes, sides, privacy and exports, with a clock of our own. */
#include <cjson/cJSON.h>
#include <pthread.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/data/data.h"
#include "eval/survey/store.h"
#include "tests/common/survey.h"
#include "tests/common/test.h"

enum { MINUTE = 60000 };
static const int64_t start = 1768608000000; /* 2026-01-17 */

struct racer {
    struct lk_survey *survey;
    struct lk_survey_visitor who;
    int task;
    enum lk_survey_verdict verdict;
};

static void *race(void *context) {
    struct racer *r = context;
    if (lk_survey_claim(r->survey, &r->who, r->task, start, &r->verdict)) r->verdict = LK_SURVEY_INVALID;
    return NULL;
}

static int race_all(struct racer *racers, int n) {
    pthread_t threads[50];
    int n_done = 0;
    for (int i = 0; i < n; i++) assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        assert_int_not_equal(racers[i].verdict, LK_SURVEY_INVALID);
        n_done += racers[i].verdict == LK_SURVEY_DONE;
    }
    return n_done;
}

static void one_id_gets_one_place(void **state) {
    struct test_survey t;
    struct racer racers[50];
    struct lk_survey_visitor who;
    char token[65];
    (void)state;
    test_survey_open(&t, "survey-one", 20, "\"tasks\":10,");
    test_survey_person(&t, "p1", -1, start, token, &who);
    for (int i = 0; i < 50; i++) racers[i] = (struct racer){t.survey, who, i % 10, 0};
    assert_int_equal(race_all(racers, 50), 1);
    test_survey_close(&t);
}

static void a_task_has_three_places(void **state) {
    struct test_survey t;
    struct racer racers[10];
    struct lk_survey_visitor who;
    char token[65], id[16];
    enum lk_survey_verdict verdict;
    (void)state;
    test_survey_open(&t, "survey-three", 20, "\"tasks\":10,");
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "p%d", i);
        test_survey_person(&t, id, -1, start, token, &racers[i].who);
        racers[i].survey = t.survey;
        racers[i].task = 4;
    }
    assert_int_equal(race_all(racers, 10), 3);
    /* Idle for more than 120 minutes: the places are free again, exactly three of them. */
    test_survey_person(&t, "late", -1, start, token, &who);
    assert_ok(lk_survey_claim(t.survey, &who, 4, start + 120 * MINUTE, &verdict));
    assert_int_equal(verdict, LK_SURVEY_CONFLICT);
    assert_ok(lk_survey_claim(t.survey, &who, 4, start + 120 * MINUTE + 1, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    assert_ok(lk_survey_claim(t.survey, &who, 1000, start, &verdict));
    assert_int_equal(verdict, LK_SURVEY_INVALID);
    test_survey_close(&t);
}

static void no_place_without_consent(void **state) {
    struct test_survey t;
    struct lk_survey_visitor who;
    char token[65];
    enum lk_survey_verdict verdict;
    (void)state;
    test_survey_open(&t, "survey-consent", 4, "\"tasks\":2,");
    assert_ok(lk_survey_enter(t.survey, "p1", false, start, token));
    assert_ok(lk_survey_visitor(t.survey, token, start, &who));
    assert_ok(lk_survey_claim(t.survey, &who, 0, start, &verdict));
    assert_int_equal(verdict, LK_SURVEY_CONFLICT);
    assert_fails(lk_survey_consent(t.survey, &who, "0000", start), LK_E_INPUT, "consent text");
    token[5] = token[5] == 'a' ? 'b' : 'a';
    assert_fails(lk_survey_visitor(t.survey, token, start, &who), LK_E_NOT_FOUND, "session");
    assert_fails(lk_survey_enter(t.survey, "a'; DROP TABLE claims", false, start, token), LK_E_INPUT, "id");
    test_survey_close(&t);
}

static void complete_only(void **state) {
    struct test_survey t;
    struct lk_survey_visitor who;
    struct lk_survey_answer *answers;
    struct lk_survey_visitor second = {.submitted = true};
    char token[65], code[48], of_second[48];
    enum lk_survey_verdict verdict;
    size_t n, first_open;
    enum lk_survey_code_verdict of_id;
    bool valid;
    (void)state;
    test_survey_open(&t, "survey-complete", 50, "\"tasks\":1,");
    test_survey_person(&t, "p1", 0, start, token, &who);
    for (int i = 0; i < 49; i++)
        assert_int_equal(test_survey_answer_all(&t, &who, i, i % 5, start + i * MINUTE), LK_SURVEY_DONE);
    assert_ok(lk_survey_answers(t.survey, &who, &answers, &n, &first_open));
    assert_int_equal(n, 490);
    assert_int_equal(first_open, 49);
    lk_free(answers);
    assert_ok(lk_survey_submit(t.survey, &who, start + 50 * MINUTE, &verdict));
    assert_int_equal(verdict, LK_SURVEY_CONFLICT);
    assert_fails(lk_survey_code(t.survey, &who, code), LK_E_INPUT, "submitted");
    assert_int_equal(test_survey_answer_all(&t, &who, 49, 0, start + 50 * MINUTE), LK_SURVEY_DONE);
    assert_ok(lk_survey_submit(t.survey, &who, start + 51 * MINUTE, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    assert_ok(lk_survey_visitor(t.survey, token, start + 500 * MINUTE, &who)); /* for good, not for 120 minutes */
    assert_true(who.submitted);
    assert_int_equal(test_survey_answer_all(&t, &who, 3, 0, start + 52 * MINUTE), LK_SURVEY_CONFLICT);
    assert_ok(lk_survey_submit(t.survey, &who, start + 52 * MINUTE, &verdict));
    assert_int_equal(verdict, LK_SURVEY_CONFLICT);
    assert_ok(lk_survey_code(t.survey, &who, code));
    assert_int_equal(strlen(code), 10);
    assert_ok(lk_survey_code_valid(t.survey, code, &valid));
    assert_true(valid);
    snprintf(second.worker, sizeof second.worker, "%064d", 7);
    assert_ok(lk_survey_code(t.survey, &second, of_second));
    assert_string_not_equal(of_second, code);
    for (int i = 0; i < 10; i++) { /* every letter counts */
        char other[48];
        memcpy(other, code, sizeof other);
        other[i] = other[i] == 'A' ? 'B' : 'A';
        assert_ok(lk_survey_code_valid(t.survey, other, &valid));
        assert_false(valid);
        assert_ok(lk_survey_code_check(t.survey, "p1", other, &of_id));
        assert_int_equal(of_id, LK_SURVEY_CODE_UNKNOWN);
    }
    assert_ok(lk_survey_code_check(t.survey, "p1", code, &of_id));
    assert_int_equal(of_id, LK_SURVEY_CODE_VALID);
    for (int entered = 0; entered < 2; entered++) {
        if (entered) assert_ok(lk_survey_enter(t.survey, "p2", false, start, token));
        assert_ok(lk_survey_code_check(t.survey, "p2", code, &of_id)); /* passed on */
        assert_int_equal(of_id, LK_SURVEY_CODE_SHARED);
    }
    test_survey_close(&t);
}

static void answers_are_checked(void **state) {
    struct test_survey t;
    struct lk_survey_visitor who;
    struct lk_survey_answer *answers;
    char token[65];
    enum lk_survey_verdict verdict;
    int64_t lease, newer;
    size_t n, first_open;
    (void)state;
    test_survey_open(&t, "survey-checked", 6, "\"tasks\":2,");
    test_survey_person(&t, "p1", 1, start, token, &who);
    assert_ok(lk_survey_show(t.survey, &who, 0, start, &lease));
    static const struct {
        int position;
        struct lk_survey_given given;
        enum lk_survey_verdict verdict;
    } cases[] = {{0, {"a.race_drift", "3"}, LK_SURVEY_DONE},     {0, {"a.race_drift", "6"}, LK_SURVEY_INVALID},
                 {0, {"a.race_drift", ""}, LK_SURVEY_INVALID},   {0, {"race_drift", "3"}, LK_SURVEY_INVALID},
                 {0, {"c.race_drift", "3"}, LK_SURVEY_INVALID},  {3, {"a.race_drift", "3"}, LK_SURVEY_INVALID},
                 {-1, {"a.race_drift", "3"}, LK_SURVEY_INVALID}, {0, {"comment", "hello"}, LK_SURVEY_INVALID},
                 {0, {"b.race_drift", "2"}, LK_SURVEY_DONE},     {0, {"b.race_drift", "2"}, LK_SURVEY_DONE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(lk_survey_answer(t.survey, &who, lease, cases[i].position, &cases[i].given, 1, start, &verdict));
        assert_int_equal(verdict, cases[i].verdict);
    }
    int64_t n_rows; /* a repeated request wrote nothing */
    assert_ok(lk_sql_number(&t.survey->sql, &n_rows, -1, "SELECT count(*) FROM answers", ""));
    assert_int_equal(n_rows, 2);
    /* Another window takes writing over. */
    assert_ok(lk_survey_show(t.survey, &who, 0, start, &newer));
    assert_ok(lk_survey_answer(t.survey, &who, lease, 0, &cases[0].given, 1, start, &verdict));
    assert_int_equal(verdict, LK_SURVEY_CONFLICT);
    assert_ok(
        lk_survey_answer(t.survey, &who, newer, 0, &(struct lk_survey_given){"a.race_drift", "5"}, 1, start, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    assert_ok(lk_survey_answers(t.survey, &who, &answers, &n, &first_open));
    assert_int_equal(n, 2);
    assert_string_equal(answers[0].value, "5");
    assert_int_equal(first_open, 0);
    lk_free(answers);
    test_survey_close(&t);
}

/* What is done together is there together; a call that fails takes back itself alone. */
static void together(void **state) {
    struct test_survey t;
    struct lk_survey_visitor who;
    char token[65];
    int64_t n_rows;
    (void)state;
    test_survey_open(&t, "survey-together", 6, "\"tasks\":2,");
    test_survey_person(&t, "p1", 1, start, token, &who);
    assert_ok(lk_survey_together(t.survey));
    assert_int_equal(test_survey_answer_all(&t, &who, 0, 1, start), LK_SURVEY_DONE);
    assert_ok(lk_sql_begin(&t.survey->sql));
    assert_ok(lk_sql_run(&t.survey->sql, "DELETE FROM answers", ""));
    assert_fails(lk_sql_end(&t.survey->sql, lk_fail(LK_E_NOMEM, "a part fails")), LK_E_NOMEM, "part");
    assert_int_equal(test_survey_answer_all(&t, &who, 1, 1, start), LK_SURVEY_DONE);
    assert_ok(lk_survey_done(t.survey));
    assert_ok(lk_sql_number(&t.survey->sql, &n_rows, -1, "SELECT count(*) FROM answers", ""));
    assert_int_equal(n_rows, 20);
    test_survey_close(&t);
}

static void not_too_fast(void **state) {
    struct test_survey t;
    struct lk_survey_visitor who;
    char token[65];
    enum lk_survey_verdict verdict;
    int64_t lease;
    const struct lk_survey_given edit = {"edit_success", "3"}, skin = {"skin_tone", "3"};
    (void)state;
    test_survey_open(&t, "survey-fast", 6, "\"tasks\":1,\"protocol\":\"001\",\"checks_per_task\":0,");
    test_survey_person(&t, "p1", 0, start, token, &who);
    assert_ok(lk_survey_show(t.survey, &who, 0, start, &lease));
    assert_ok(lk_survey_answer(t.survey, &who, lease, 0, &edit, 1, start + 1000, &verdict));
    assert_int_equal(verdict, LK_SURVEY_EARLY);
    assert_ok(lk_survey_answer(t.survey, &who, lease, 0, &edit, 1, start + 4999, &verdict));
    assert_int_equal(verdict, LK_SURVEY_EARLY);
    assert_ok(lk_survey_answer(t.survey, &who, lease, 0, &edit, 1, start + 5000, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    assert_ok(lk_survey_answer(t.survey, &who, lease, 0, &skin, 1, start + 9000, &verdict));
    assert_int_equal(verdict, LK_SURVEY_EARLY);
    assert_ok(lk_survey_answer(t.survey, &who, lease, 0, &skin, 1, start + 10000, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    test_survey_close(&t);
}

static void abandoned_answers_are_kept_apart(void **state) {
    struct test_survey t;
    struct lk_survey_visitor who;
    char token[65];
    struct lk_text stands = {0}, abandoned = {0};
    (void)state;
    test_survey_open(&t, "survey-abandoned", 6, "\"tasks\":2,");
    test_survey_person(&t, "p1", 0, start, token, &who);
    assert_int_equal(test_survey_answer_all(&t, &who, 0, 1, start), LK_SURVEY_DONE);
    assert_int_equal(test_survey_answer_all(&t, &who, 1, 1, start + 121 * MINUTE), LK_SURVEY_CONFLICT);
    assert_ok(lk_survey_export_answers(t.survey, false, false, &stands));
    assert_ok(lk_survey_export_answers(t.survey, true, false, &abandoned));
    assert_int_equal(stands.n, 0);
    assert_non_null(strstr(abandoned.bytes, "\"arm\":\"preserved\""));
    lk_text_free(&abandoned);
    lk_text_free(&stands);
    test_survey_close(&t);
}

static void no_clear_id_is_stored(void **state) {
    struct test_survey t;
    struct lk_survey_visitor who;
    char token[65];
    (void)state;
    test_survey_open(&t, "survey-privacy", 6, "\"tasks\":2,");
    test_survey_person(&t, "5f3aCLEARid77", 0, start, token, &who);
    assert_int_equal(test_survey_answer_all(&t, &who, 0, 1, start), LK_SURVEY_DONE);
    char unsalted[65];
    lk_sha256("5f3aclearid77", 13, unsalted);
    assert_true(test_survey_store_has(&t, who.worker)); /* the search finds what is there */
    assert_false(test_survey_store_has(&t, unsalted));
    assert_false(test_survey_store_has(&t, "5f3aCLEARid77"));
    assert_false(test_survey_store_has(&t, "5f3aclearid77"));
    assert_false(test_survey_store_has(&t, token));
    assert_false(test_survey_store_has(&t, "127.0.0.1"));
    struct lk_text out = {0};
    for (int i = 0; i < 2; i++) assert_ok(lk_survey_export_answers(t.survey, i, true, &out));
    assert_ok(lk_survey_export_participants(t.survey, &out));
    assert_non_null(strstr(out.bytes, who.worker));
    const char *const never[] = {"5f3aCLEARid77", unsalted, token};
    for (int i = 0; i < 3; i++) assert_null(strstr(out.bytes, never[i]));
    lk_text_free(&out);
    test_survey_close(&t);
}

/* Letter case and the host of Prolific's e-mail form make nobody a second person, in stores of older versions neither,
 * whose hashes are of ids exactly as typed. */
static void one_person_has_one_id(void **state) {
    static const char *const forms[] = {"A1B2C3", "a1b2c3", " A1b2C3\t", "a1b2c3@email.prolific.com"};
    struct test_survey t;
    struct lk_survey_visitor who, again;
    char token[65], worker[65], salted[80], older[65];
    int64_t n;
    bool known;
    (void)state;
    test_survey_open(&t, "survey-ids", 4, "\"tasks\":2,");
    test_survey_person(&t, "A1B2C3", -1, start, token, &who);
    for (int version = 0; version < 2; version++) {
        for (int i = 0; i < (version ? 1 : 4); i++) {
            assert_ok(lk_survey_worker(t.survey, forms[i], strlen(forms[i]), worker, &known));
            assert_true(known);
            assert_string_equal(worker, version ? older : who.worker);
        }
        assert_ok(lk_survey_enter(t.survey, forms[!version], false, start, token));
        assert_ok(lk_survey_visitor(t.survey, token, start, &again));
        assert_int_equal(again.id, who.id);
        snprintf(salted, sizeof salted, "%s%s", t.survey->salt, forms[0]);
        lk_sha256(salted, strlen(salted), older);
        assert_ok(lk_sql_run(&t.survey->sql, "UPDATE participants SET worker=?1", "t", older));
    }
    assert_ok(lk_sql_number(&t.survey->sql, &n, 0, "SELECT count(*) FROM participants", ""));
    assert_int_equal(n, 1);
    assert_ok(lk_survey_worker(t.survey, "A1B2C4", 6, worker, &known));
    assert_false(known);
    assert_fails(lk_survey_worker(t.survey, "a b", 3, worker, &known), LK_E_INPUT, "id");
    assert_fails(lk_survey_worker(t.survey, "5.60E+23", 8, worker, &known), LK_E_INPUT, "damaged");
    test_survey_close(&t);
}

/* Every text that a question or option of the file has is asked, in its order, for all instruments and versions. */
static void check_instrument(const char *name, const char *more, const char *instrument, const char *experiment,
                             const char *option, char version) {
    struct test_survey t;
    struct lk_survey_questions asked;
    struct lk_data_file file;
    const cJSON *one;
    int n = 0;
    test_survey_open(&t, name, 4, more);
    assert_ok(lk_survey_questions_of(t.study, &t.study->items[0], &asked));
    assert_true(lk_data_find("questionnaires", &file));
    cJSON *root = cJSON_ParseWithLength(file.text, file.n_bytes);
    const cJSON *from = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "instruments"), instrument);
    if (experiment) from = cJSON_GetObjectItem(from, experiment);
    if (option) from = cJSON_GetObjectItem(from, option);
    for (int arm = 0; arm < (t.study->both_arms ? 2 : 1); arm++)
        cJSON_ArrayForEach(one, cJSON_GetObjectItem(from, "items")) {
            const cJSON *own = cJSON_GetObjectItem(one, "version"), *printed;
            if (cJSON_IsString(own) && own->valuestring[0] != version) continue;
            assert_true(n < asked.n);
            const struct lk_survey_question *q = &asked.list[n++];
            const char *text = cJSON_GetObjectItem(one, "question")->valuestring;
            const char *role = strstr(text, "[HIGH-STATUS ROLE]"), *doctor = strstr(text, "doctor role");
            if (role || doctor) /* up to the occupation in its place */
                assert_int_equal(strncmp(q->text, text, (size_t)((role ? role : doctor) - text)), 0);
            else if (!strncmp(q->text, text, strlen(text)))
                assert_true(!q->text[strlen(text)] || strstr(q->text, "Target age"));
            else
                fail_msg("%s: asked \"%s\", the file has \"%s\"", name, q->text, text);
            int k = 0;
            cJSON_ArrayForEach(printed, cJSON_GetObjectItem(one, "options")) {
                assert_string_equal(q->options[k++].text, cJSON_GetObjectItem(printed, "printed")->valuestring);
            }
        }
    assert_int_equal(n, asked.n);
    cJSON_Delete(root);
    if (!strcmp(instrument, "supplement_003")) { /* its levels are the judges' */
        bool printed_skin = t.study->printed_skin;
        assert_string_equal(asked.list[0].options[4].text, "Fully successful—edit perfectly applied");
        assert_string_equal(asked.list[1].key, printed_skin ? "a.skin_change_magnitude" : "a.skin_tone");
        assert_string_equal(asked.list[1].options[0].text, printed_skin ? "No" : "Much darker (≥2 shades)");
        assert_string_equal(asked.list[1].options[4].text,
                            printed_skin ? "Yes, significantly" : "Much lighter (≥2 shades)");
    }
    lk_survey_questions_free(&asked);
    test_survey_close(&t);
}

static void questions_are_the_files(void **state) {
    (void)state;
#define ARMS "\"tasks\":1,\"gold_per_task\":0,\"show_arm_labels\":true,"
    check_instrument("q003", ARMS, "supplement_003", NULL, NULL, 0);
    check_instrument("q003p", ARMS "\"skin_scale\":\"printed\",", "supplement_003", NULL, NULL, 0);
    check_instrument("q001-1", ARMS "\"protocol\":\"001\",", "questionnaire_001", "exp1", NULL, 0);
    check_instrument("q001-2a", ARMS "\"protocol\":\"001\",\"experiment\":2,", "questionnaire_001", "exp2", "option_A",
                     0);
    check_instrument("q001-2b", ARMS "\"protocol\":\"001\",\"experiment\":2,\"exp2_option\":\"B\",",
                     "questionnaire_001", "exp1", NULL, 0);
    check_instrument("q001-3b", ARMS "\"protocol\":\"001\",\"experiment\":3,", "questionnaire_001", "exp3", NULL, 'B');
    check_instrument("q001-3a", ARMS "\"protocol\":\"001\",\"experiment\":3,\"q3_version\":\"A\",", "questionnaire_001",
                     "exp3", NULL, 'A');
    check_instrument("q000-1", ARMS "\"protocol\":\"000\",", "protocol_000", "exp1", NULL, 0);
    check_instrument("q000-2", ARMS "\"protocol\":\"000\",\"experiment\":2,", "protocol_000", "exp2", NULL, 0);
    check_instrument("q000-3", ARMS "\"protocol\":\"000\",\"experiment\":3,", "protocol_000", "exp3", NULL, 0);
    check_instrument("q004-1", ARMS "\"protocol\":\"004\",", "strategy_004", "exp1", NULL, 0);
    check_instrument("q004-2", ARMS "\"protocol\":\"004\",\"experiment\":2,", "strategy_004", "exp2", NULL, 0);
    check_instrument("q004-3", ARMS "\"protocol\":\"004\",\"experiment\":3,", "strategy_004", "exp3", NULL, 0);
}

/* Without the arms' labels a side does not tell its arm. */
static void arms_are_not_named(void **state) {
    struct test_survey t;
    struct lk_survey_questions asked;
    (void)state;
    test_survey_open(&t, "survey-blind", 4, "\"tasks\":1,\"protocol\":\"000\",\"experiment\":2,\"gold_per_task\":0,");
    assert_ok(lk_survey_questions_of(t.study, &t.study->items[0], &asked));
    assert_string_equal(asked.list[0].options[0].text, "Image A");
    assert_string_equal(asked.list[0].options[1].text, "Image B");
    assert_string_equal(asked.list[0].options[2].text, "Same (no noticeable difference)");
    lk_survey_questions_free(&asked);
    test_survey_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_id_gets_one_place),
        cmocka_unit_test(a_task_has_three_places),
        cmocka_unit_test(no_place_without_consent),
        cmocka_unit_test(complete_only),
        cmocka_unit_test(answers_are_checked),
        cmocka_unit_test(together),
        cmocka_unit_test(not_too_fast),
        cmocka_unit_test(abandoned_answers_are_kept_apart),
        cmocka_unit_test(no_clear_id_is_stored),
        cmocka_unit_test(one_person_has_one_id),
        cmocka_unit_test(questions_are_the_files),
        cmocka_unit_test(arms_are_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
