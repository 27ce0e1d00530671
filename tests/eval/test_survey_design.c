/* How work is cut for raters: who sees which gold item, which items several people share, several tasks for one
 * person, places that are given back. A thousand raters are simulated. */
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/survey/survey.h"
#include "eval/survey/store.h"
#include "tests/common/site.h"
#include "tests/common/test.h"

enum { MINUTE = 60000, N_GOLD = 50 };

/* "tasks":N,"places":P and so on, with a list of gold items. */
static char *with_gold(const char *more, int n) {
    struct lk_text text = {0};
    lk_text_add(&text, "%s\"gold\":[", more);
    for (int i = 0; i < n; i++)
        lk_text_add(&text,
                    "%s{\"id\":\"g%d\",\"prompt\":\"x\",\"source\":\"s.png\",\"edited\":\"e.png\",\"preserved\":"
                    "\"p.png\",\"expected\":{\"edit_success\":1}}",
                    i ? "," : "", i);
    lk_text_add(&text, "],");
    assert_ok(text.rc);
    return text.bytes;
}

static void count_gold(const struct lk_survey_study *study, const char *worker, int place, int *used) {
    const struct lk_survey_item *items[1200];
    assert_ok(lk_survey_task_items(study, worker, place, items));
    for (size_t i = 0; i < lk_survey_task_length(study, place); i++)
        if (items[i]->kind == LK_SURVEY_GOLD) used[items[i] - study->gold]++;
}

static int spread(const int *used, int n) {
    int least = used[0], most = used[0];
    for (int i = 1; i < n; i++) {
        least = used[i] < least ? used[i] : least;
        most = used[i] > most ? used[i] : most;
    }
    return most - least;
}

/* 100 tasks for 10 people each, 4 of 50 gold items a task: after each set of tasks, and of tasks and raters, every gold
 * item was used as often as any other or once more. The sets of experiments 2 and 3 too. */
static void gold_items_are_used_equally(void **state) {
    static const int n_gold[] = {50, 30, 5}, n_each[] = {4, 4, 2}, n_tasks[] = {100, 10, 3};
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct test_survey t;
        char more[160];
        int used[N_GOLD] = {0}, different[N_GOLD];
        snprintf(more, sizeof more, "\"protocol\":\"000\",\"tasks\":%d,\"places\":10,\"gold_per_task\":%d,", n_tasks[k],
                 n_each[k]);
        char *fields = with_gold(more, n_gold[k]);
        test_survey_open(&t, "design-gold", 500, fields);
        for (int place = 0; place < n_tasks[k] * 10; place++) {
            char worker[65];
            int before[N_GOLD];
            memcpy(before, used, sizeof before);
            snprintf(worker, sizeof worker, "%064d", place);
            count_gold(t.study, worker, place, used);
            for (int i = 0; i < n_gold[k]; i++) different[i] = used[i] - before[i];
            assert_in_range(spread(different, n_gold[k]), 0, 1); /* no gold item twice in a task */
            assert_in_range(spread(used, n_gold[k]), 0, 1);
        }
        int sum = 0;
        for (int i = 0; i < n_gold[k]; i++) sum += used[i];
        assert_int_equal(sum, n_tasks[k] * 10 * n_each[k]);
        test_survey_close(&t);
        lk_free(fields);
    }
}

/* Of a thousand raters half see the edited picture on the left: of all that they see, and of each item. */
static void sides_are_halves(void **state) {
    struct test_survey t;
    int n_left = 0, of_item[50] = {0};
    (void)state;
    test_survey_open(&t, "design-sides", 50, "\"tasks\":1,");
    for (int r = 0; r < 1000; r++) {
        char worker[65];
        snprintf(worker, sizeof worker, "%064d", r);
        for (int i = 0; i < 50; i++) {
            int left;
            assert_ok(lk_survey_left_arm(t.study, worker, &t.study->items[i], &left));
            n_left += !left;
            of_item[i] += !left;
        }
    }
    assert_in_range(n_left, 23500, 26500); /* 50 +- 3 % of 50,000; seen: 24,950 */
    for (int i = 0; i < 50; i++) assert_in_range(of_item[i], 440, 560);
    test_survey_close(&t);
}

/* 20 % of 500 items in three tasks, the others in one; nobody sees one twice; tasks are as long as any other, or by
 * one item longer, and have as many shared items. */
static void a_share_is_rated_by_three(void **state) {
    struct test_survey t;
    int n_in[500] = {0}, n_shared[12] = {0}, length[12], n_three = 0;
    (void)state;
    test_survey_open(&t, "design-shared", 500, "\"tasks\":12,\"shared_percent\":20,");
    assert_int_equal(t.study->places, 1);
    assert_int_equal(t.study->n_packed, 700);
    for (int task = 0; task < 12; task++) {
        const struct lk_survey_item *items[100];
        bool seen[500] = {false};
        length[task] = (int)lk_survey_task_length(t.study, task);
        assert_ok(lk_survey_task_items(t.study, "someone", task, items));
        for (int i = 0; i < length[task]; i++) {
            const size_t at = (size_t)(items[i] - t.study->items);
            assert_false(seen[at]);
            seen[at] = true;
            n_in[at]++;
        }
    }
    for (int task = 0; task < 12; task++) {
        const struct lk_survey_item *items[100];
        assert_ok(lk_survey_task_items(t.study, "someone", task, items));
        for (int i = 0; i < length[task]; i++) n_shared[task] += n_in[items[i] - t.study->items] == 3;
    }
    for (int i = 0; i < 500; i++) {
        assert_true(n_in[i] == 1 || n_in[i] == 3);
        n_three += n_in[i] == 3;
    }
    assert_int_equal(n_three, 100);
    assert_in_range(spread(length, 12), 0, 1);
    assert_in_range(spread(n_shared, 12), 0, 1);
    test_survey_close(&t);
}

/* Three tasks of one item each and all three shared: the only way is all in all. */
static void designs_that_cannot_be(void **state) {
    static const char *const wrong[][2] = {
        {"\"tasks\":2,\"shared_percent\":20,", "field \"tasks\": expected at least 3"},
        {"\"tasks\":3,\"shared_percent\":20,\"tasks_per_worker\":2,", "field \"tasks_per_worker\": expected 1"},
        {"\"tasks\":3,\"shared_percent\":101,", "field \"shared_percent\": expected a whole number from 0 to 100"},
        {"\"tasks\":3,\"minutes\":0,", "field \"minutes\": expected a number above 0"}};
    struct test_survey t;
    (void)state;
    test_survey_open(&t, "design-small", 3, "\"tasks\":3,\"shared_percent\":100,");
    for (int task = 0; task < 3; task++) assert_int_equal(lk_survey_task_length(t.study, task), 3);
    test_survey_close(&t);
    for (int i = 0; i < 4; i++) {
        struct lk_survey_study *study;
        struct lk_text text = {0};
        const char *path = test_path("design-wrong.json"), *name = "design-wrong.json"; /* as its own pictures */
        lk_text_add(&text, "{\"study\":\"x\",\"item_ids\":\"plain\",%s\"items\":[", wrong[i][0]);
        for (int k = 0; k < 3; k++)
            lk_text_add(&text,
                        "%s{\"id\":\"%c\",\"prompt\":\"p\",\"source\":\"%s\",\"edited\":\"%s\",\"preserved\":\"%s\"}",
                        k ? "," : "", "abc"[k], name, name, name);
        lk_text_add(&text, "]}");
        test_write(path, text.bytes, text.n);
        lk_text_free(&text);
        assert_int_equal(lk_survey_study_read(&study, path), LK_E_INPUT);
        if (!strstr(lk_error_text(), wrong[i][1])) fail_msg("%s", lk_error_text());
    }
}

/* Places that are given back are taken again, and what was submitted has used every gold item equally. */
static void places_that_are_given_back(void **state) {
    struct site s;
    struct visitor v;
    int used[N_GOLD] = {0}, n = 0;
    char *fields =
        with_gold("\"protocol\":\"000\",\"tasks\":5,\"places\":3,\"gold_per_task\":4,\"claim_minutes\":20,", 10);
    (void)state;
    site_open(&s, "design-places", 40, fields);
    site_enter(&v, &s, "PROLIFIC_PID=lost");
    site_consent(&v);
    site_post(&v, "/tasks", "task=2", 303, "Location: /task/2");
    site_post(&v, "/tasks", "task=1", 409, "You have a task already");
    s.now += 21 * MINUTE;
    site_expect(&v, "/tasks", "", NULL, 200, "Task 2: your place was given back, because nothing was answered");
    site_expect(&v, "/tasks", "", NULL, 200, "(20 min)");
    for (int p = 0; p < 40 && n < 15; p++) {
        struct lk_survey_visitor who;
        enum lk_survey_verdict verdict;
        char id[16], token[65];
        snprintf(id, sizeof id, "p%d", p);
        s.now += 1000;
        test_survey_person(&s.t, id, -1, s.now, token, &who);
        verdict = LK_SURVEY_CONFLICT;
        for (int task = 0; task < 5 && verdict; task++)
            assert_ok(lk_survey_claim(s.t.survey, &who, (p + task) % 5, s.now, &verdict));
        assert_int_equal(verdict, LK_SURVEY_DONE);
        assert_ok(lk_survey_visitor(s.t.survey, token, s.now, &who));
        if (p % 3 == 2) { /* walks away */
            s.now += 21 * MINUTE;
            continue;
        }
        for (int i = 0; i < (int)lk_survey_task_length(s.t.study, who.place); i++)
            assert_int_equal(test_survey_answer_all(&s.t, &who, i, 0, s.now), LK_SURVEY_DONE);
        assert_ok(lk_survey_submit(s.t.survey, &who, s.now, &verdict));
        assert_int_equal(verdict, LK_SURVEY_DONE);
        count_gold(s.t.study, who.worker, who.place, used);
        n++;
    }
    assert_int_equal(n, 15);
    assert_int_equal(spread(used, 10), 0); /* 15 x 4 / 10 */
    site_post(&v, "/tasks", "task=2", 409, "taken by somebody else");
    site_close(&s);
    lk_free(fields);
}

/* A pilot: ten people, two tasks each, with a code for each; nobody does one twice or a third. Times are told. */
static void two_tasks_for_each(void **state) {
    struct site s;
    char codes[2][48], headers[120];
    struct visitor nobody = {.site = &s};
    struct lk_text list = {0};
    struct lk_pay pay;
    lk_text_add(&list, "Submission id,Participant id,Status,Completion code\n");
    (void)state;
    site_open(&s, "design-pilot", 6, "\"tasks\":3,\"places\":10,\"tasks_per_worker\":2,\"minutes\":10,\"pay\":2.5,");
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", lk_survey_admin_token(s.t.survey));
    for (int p = 0; p < 10; p++) {
        struct visitor v;
        char id[40];
        snprintf(id, sizeof id, "PROLIFIC_PID=w%d", p);
        site_enter(&v, &s, id);
        site_consent(&v);
        for (int k = 0; k < 2; k++) {
            struct lk_survey_visitor who;
            char fields[16], where[32];
            snprintf(fields, sizeof fields, "task=%d", k + 1);
            snprintf(where, sizeof where, "Location: /task/%d", k + 1);
            if (k) site_post(&v, "/tasks", "task=1", 409, "");
            site_post(&v, "/tasks", fields, 303, where);
            assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
            s.now += 13 * MINUTE;
            for (int i = 0; i < 2; i++)
                assert_int_equal(test_survey_answer_all(&s.t, &who, i, 0, s.now), LK_SURVEY_DONE);
            site_post(&v, "/submit", "", 303, "Location: /done");
            char *done = site_ask(&v, "/done", "", NULL);
            site_take(done, "class=\"code\">", sizeof codes[k], codes[k]);
            codes[k][10] = '\0';
            assert_int_equal(strstr(done, "another task") != NULL, k == 0);
            lk_text_add(&list, "s%d-%d,w%d,AWAITING REVIEW,%s\n", p, k, p, codes[k]);
            free(done);
        }
        assert_string_not_equal(codes[0], codes[1]);
        site_post(&v, "/tasks", "task=3", 303, "Location: /done");
        for (int k = 0; k < 2; k++) {
            enum lk_survey_code_verdict verdict;
            assert_ok(lk_survey_code_check(s.t.survey, id + strlen("PROLIFIC_PID="), codes[k], &verdict));
            assert_int_equal(verdict, LK_SURVEY_CODE_VALID);
        }
    }
    assert_ok(lk_pay_read(&pay, s.t.survey, LK_POLICY_NONE, list.bytes, list.n, "list.csv"));
    assert_int_equal(pay.n_of[LK_PAY_APPROVE], 20); /* each of the two tasks */
    lk_pay_free(&pay);
    lk_text_free(&list);
    site_expect(&nobody, "/admin", headers, NULL, 200,
                "A task took 13.0 minutes (median of 20); participants are told 10.");
    site_expect(&nobody, "/admin", headers, NULL, 200, "Alert: tasks take over 20% less or more time");
    site_close(&s);
    /* A fifth more is not over it. */
    site_open(&s, "design-time", 6, "\"tasks\":1,\"places\":9,\"minutes\":10,");
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", lk_survey_admin_token(s.t.survey));
    for (int p = 0; p < 5; p++) {
        struct lk_survey_visitor who;
        enum lk_survey_verdict verdict;
        char id[8], token[65];
        snprintf(id, sizeof id, "p%d", p);
        test_survey_person(&s.t, id, 0, s.now, token, &who);
        s.now += 12 * MINUTE;
        for (int i = 0; i < 6; i++) assert_int_equal(test_survey_answer_all(&s.t, &who, i, 0, s.now), LK_SURVEY_DONE);
        assert_ok(lk_survey_submit(s.t.survey, &who, s.now, &verdict));
    }
    char *page = site_ask(&nobody, "/admin", headers, NULL);
    assert_non_null(strstr(page, "A task took 12.0 minutes"));
    assert_null(strstr(page, "over 20%"));
    free(page);
    site_close(&s);
}

/* What a participant is promised stands in the consent: the study's own numbers, or the protocol's. */
static void consent_names_time_and_pay(void **state) {
    static const struct {
        const char *more, *has[2], *lacks;
    } all[] = {{"\"tasks\":1,", {"Time: about 25-30 minutes", "here: $3.00\n"}, "Payment: $"},
               {"\"tasks\":1,\"protocol\":\"001\",", {"Time: about 20 minutes", "here: $4.00\n"}, "-"},
               {"\"tasks\":1,\"minutes\":7.5,\"pay\":2,", {"Time: about 7.5 minutes", "here: $2.00\n"}, "25"},
               {"\"tasks\":1,\"protocol\":\"000\",\"gold_per_task\":0,",
                {"Time: 10-13 minutes\n", "Payment: $1.50-2.00 per HIT\n"},
                "about"},
               {"\"tasks\":1,\"protocol\":\"000\",\"gold_per_task\":0,\"minutes\":12,\"pay\":1.8,",
                {"Time: about 12 minutes", "here: $1.80\n"},
                "10-13"}};
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct test_survey t;
        char *text, sha256[65];
        test_survey_open(&t, "design-consent", 2, all[i].more);
        assert_ok(lk_survey_consent_text(t.study, &text, sha256));
        for (int k = 0; k < 2; k++)
            if (!strstr(text, all[i].has[k])) fail_msg("no \"%s\" in: %s", all[i].has[k], text);
        if (i != 1) assert_null(strstr(text, all[i].lacks));
        lk_free(text);
        test_survey_close(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gold_items_are_used_equally), cmocka_unit_test(sides_are_halves),
        cmocka_unit_test(a_share_is_rated_by_three),   cmocka_unit_test(designs_that_cannot_be),
        cmocka_unit_test(places_that_are_given_back),  cmocka_unit_test(two_tasks_for_each),
        cmocka_unit_test(consent_names_time_and_pay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
