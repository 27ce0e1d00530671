/* What a running server promises of places, completeness, codes, sides and privacy, and how often strangers may try. */
#include <pthread.h>

#include "engine/base/alloc.h"
#include "eval/human/ratings.h"
#include "eval/study/factors.h"
#include "eval/survey/store.h"
#include "tests/common/site.h"
#include "tests/common/test.h"

enum { MINUTE = 60000, HOUR = 60 * MINUTE };

struct claimant {
    struct visitor v;
    int task, status;
};

static void *claim(void *context) {
    struct claimant *c = context;
    char body[120];
    snprintf(body, sizeof body, "form=%s&task=%d", c->v.form, c->task);
    char *reply = site_ask(&c->v, "/tasks", "", body);
    c->status = site_status_of(reply);
    free(reply);
    return NULL;
}

/* How many of them get a place; the others are told that there is none. */
static int claim_at_once(struct claimant *all, int n) {
    pthread_t threads[50];
    int n_places = 0;
    for (int i = 0; i < n; i++) assert_int_equal(pthread_create(&threads[i], NULL, claim, &all[i]), 0);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++) {
        if (all[i].status != 303) assert_int_equal(all[i].status, 409);
        n_places += all[i].status == 303;
    }
    return n_places;
}

static void someone(struct visitor *v, const struct site *s, const char *id) {
    char query[80];
    snprintf(query, sizeof query, "PROLIFIC_PID=%s", id);
    site_enter(v, s, query);
    site_consent(v);
}

static void places(void **state) {
    struct site s;
    struct claimant all[50] = {0};
    struct visitor late;
    char id[8];
    (void)state;
    site_open(&s, "rules-places", 20, "\"tasks\":10,");
    someone(&all[0].v, &s, "one");
    for (int i = 0; i < 50; i++) all[i] = (struct claimant){all[0].v, i % 10 + 1, 0};
    assert_int_equal(claim_at_once(all, 50), 1);
    s.now += 3 * HOUR; /* that place is free again, whichever it was */
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "p%d", i);
        someone(&all[i].v, &s, id);
        all[i].task = 5;
    }
    assert_int_equal(claim_at_once(all, 10), 3);
    someone(&late, &s, "late");
    s.now += 120 * MINUTE;
    site_post(&late, "/tasks", "task=5", 409, "taken by somebody else");
    s.now += 1;
    site_post(&late, "/tasks", "task=5", 303, "Location: /task/5");
    site_post(&late, "/tasks", "task=11", 409, "");
    site_close(&s);
}

static void no_code_before_all_is_answered(void **state) {
    struct site s;
    struct visitor v;
    struct lk_survey_visitor who;
    char code[80];
    bool valid;
    (void)state;
    site_open(&s, "rules-complete", 50, "\"tasks\":1,");
    someone(&v, &s, "abc");
    site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
    for (int i = 0; i < 49; i++) assert_int_equal(test_survey_answer_all(&s.t, &who, i, 2, s.now), LK_SURVEY_DONE);
    site_expect(&v, "/task/1", "", NULL, 200, "49/50 <progress");
    site_post(&v, "/submit", "", 409, "not complete");
    site_expect(&v, "/done", "", NULL, 303, "Location: /tasks");
    assert_int_equal(test_survey_answer_all(&s.t, &who, 49, 2, s.now), LK_SURVEY_DONE);
    site_post(&v, "/submit", "", 303, "Location: /done");
    char *reply = site_ask(&v, "/done", "", NULL);
    site_take(reply, "class=\"code\">", sizeof code, code);
    code[strcspn(code, "<")] = '\0';
    free(reply);
    assert_int_equal(strlen(code), 10);
    assert_ok(lk_survey_code_valid(s.t.survey, code, &valid));
    assert_true(valid);
    for (int i = 0; i < 10; i++) {
        char other[80];
        memcpy(other, code, sizeof other);
        other[i] = other[i] == 'Q' ? 'R' : 'Q';
        assert_ok(lk_survey_code_valid(s.t.survey, other, &valid));
        assert_false(valid);
    }
    site_close(&s);
}

static void nothing_tells_who(void **state) {
    struct site s;
    struct visitor v;
    (void)state;
    site_open(&s, "rules-privacy", 6, "\"tasks\":1,\"protocol\":\"001\",\"checks_per_task\":0,\"min_seconds\":0,");
    someone(&v, &s, "5f3aCLEARid77");
    site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    site_expect(&v, "/task/1", "", NULL, 200, "");
    site_post(&v, "/task/1", "item=1&lease=1&edit_success=4&comment=seen%20here", 200, "Saved");
    site_post(&v, "/problem", "", 200, "");
    assert_true(test_survey_store_has(&s.t, "seen here"));
    assert_false(test_survey_store_has(&s.t, "CLEARid"));
    assert_false(test_survey_store_has(&s.t, "127.0.0.1"));
    assert_false(test_survey_store_has(&s.t, v.cookie));
    assert_false(test_survey_store_has(&s.t, v.form));
    site_close(&s);
}

/* Who asks for it is forgotten: no trace in the store, a free place, a stranger when they come again. */
static void forgotten(void **state) {
    struct site s;
    struct visitor v[2], again;
    struct lk_survey_visitor who[2];
    struct lk_text text = {0};
    (void)state;
    site_open(&s, "rules-forget", 6, "\"tasks\":1,\"places\":2,\"protocol\":\"001\",\"min_seconds\":0,");
    for (int i = 0; i < 2; i++) {
        someone(&v[i], &s, i ? "stays" : "goes");
        site_post(&v[i], "/tasks", "task=1", 303, "Location: /task/1");
        site_expect(&v[i], "/task/1", "", NULL, 200, "");
        site_post(&v[i], "/task/1",
                  i ? "item=1&lease=1&edit_success=4&comment=kept" : "item=1&lease=1&edit_success=2&comment=dropped",
                  200, "");
        site_post(&v[i], "/problem", "", 200, "");
        assert_ok(lk_survey_visitor(s.t.survey, v[i].cookie, s.now, &who[i]));
    }
    assert_fails(lk_survey_forget(s.t.survey, "gone"), LK_E_NOT_FOUND, "nobody");
    assert_ok(lk_survey_forget(s.t.survey, "goes"));
    site_expect(&v[0], "/task/1", "", NULL, 303, "Location: /\r\n");
    site_expect(&v[1], "/task/1", "", NULL, 200, "");
    assert_false(test_survey_store_has(&s.t, who[0].worker));
    assert_false(test_survey_store_has(&s.t, "dropped"));
    assert_true(test_survey_store_has(&s.t, who[1].worker));
    assert_ok(lk_survey_export_answers(s.t.survey, false, true, &text));
    assert_ok(lk_survey_export_participants(s.t.survey, &text));
    assert_null(strstr(text.bytes, who[0].worker));
    assert_non_null(strstr(text.bytes, "\"comment\":\"kept\""));
    lk_text_free(&text);
    someone(&again, &s, "goes");
    site_post(&again, "/tasks", "task=1", 303, "Location: /task/1");
    site_close(&s);
}

/* Who is listed, by id or hash, in a list or a platform's table, gets a page that says so and nothing else; the state
 * of the survey counts them, each once. */
static void who_is_listed_does_not_enter(void **state) {
    struct site s;
    struct visitor v, in;
    char hash[65], list[300], headers[120];
    const struct {
        const char *text;
        size_t n_listed;
    } lists[] = {{"Pilot1\r\n\n  pilot2 \nPILOT1\n", 2},
                 {"Status,Participant id\nAPPROVED,pilot3@email.prolific.com\nRETURNED,pilot2\n", 3},
                 {list, 4}};
    size_t n;
    (void)state;
    site_open(&s, "rules-blocked", 6, "\"tasks\":1,");
    assert_ok(lk_survey_hash(s.t.survey, "pilot4", 6, hash));
    snprintf(list, sizeof list, "%s\n", hash);
    for (int i = 0; i < 3; i++) {
        assert_ok(lk_survey_block(s.t.survey, lists[i].text, strlen(lists[i].text), "block.txt", &n));
        assert_int_equal(n, lists[i].n_listed);
    }
    v = (struct visitor){.site = &s};
    static const char *const bodies[] = {"PROLIFIC_PID=pilot1", "workerId=PILOT1", "workerId=pilot2", "workerId=pilot3",
                                         "workerId=pilot4"};
    for (int i = 0; i < 5; i++) {
        char *reply = site_ask(&v, "/enter", "", bodies[i]);
        assert_int_equal(site_status_of(reply), 403);
        assert_non_null(strstr(reply, "took part in an earlier study"));
        assert_null(strstr(reply, "Set-Cookie"));
        assert_null(strstr(reply, "<a ")); /* there is nowhere to go on to */
        free(reply);
    }
    site_enter(&in, &s, "PROLIFIC_PID=pilot5");
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", lk_survey_admin_token(s.t.survey));
    site_expect(&v, "/admin", headers, NULL, 200, "<th>Participants</th><td>1</td>");
    site_expect(&v, "/admin", headers, NULL, 200, "<th>Refused, on the list of --block</th><td>4</td>");
    for (int i = 0; i < 2; i++) assert_false(test_survey_store_has(&s.t, i ? "pilot1" : hash));
    site_close(&s);
}

static void lists_that_are_none(void **state) {
    static const struct {
        const char *text, *part;
    } cases[] = {{"", "block.txt: expected an id in each line, got none"},
                 {"abc\nd e\n", "block.txt: line 2: expected a participant's id"},
                 {"5.60E+23\n", "block.txt: line 1: expected a participant's id"},
                 {"workerId,age\nabc,3\n,4\n", "block.txt: line 3: expected a participant's id"}};
    struct test_survey t;
    size_t n;
    (void)state;
    test_survey_open(&t, "rules-lists", 6, "\"tasks\":1,");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(lk_survey_block(t.survey, cases[i].text, strlen(cases[i].text), "block.txt", &n), LK_E_INPUT,
                     cases[i].part);
    test_survey_close(&t);
}

/* Over 500 pairs of one rater 40 to 60 % show the edited picture as A, the same again, and an answer "A" is exported as
 * the arm that was shown there. */
static void sides(void **state) {
    struct site s;
    struct visitor v;
    struct lk_survey_visitor who;
    struct lk_text text = {0};
    struct lk_dataset data;
    bool edited[500];
    int n_edited = 0, n_lines = 0, n_preferred = 0;
    char path[40];
    (void)state;
    site_open(&s, "rules-sides", 500, "\"tasks\":1,\"protocol\":\"000\",\"experiment\":2,\"gold_per_task\":0,");
    someone(&v, &s, "abc");
    site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
    for (int i = 0; i < 500; i++) {
        snprintf(path, sizeof path, "/picture/%d/a", i + 1);
        char *reply = site_ask(&v, path, "", NULL); /* pictures of the test hold their name */
        edited[i] = strstr(reply, "\r\n\r\ne.png") != NULL;
        n_edited += edited[i];
        free(reply);
        site_expect(&v, path, "", NULL, 200, edited[i] ? "e.png" : "p.png");
        *strrchr(path, 'a') = 'b';
        if (i < 20) site_expect(&v, path, "", NULL, 200, edited[i] ? "p.png" : "e.png");
        assert_int_equal(test_survey_answer_all(&s.t, &who, i, 0, s.now + i), LK_SURVEY_DONE);
    }
    assert_in_range(n_edited, 200, 300);
    assert_ok(lk_survey_export_answers(s.t.survey, false, false, &text));
    lk_dataset_init(&data);
    struct lk_ratings_import import = {.data = &data};
    assert_ok(lk_ratings_read(&import, text.bytes, text.n, "export"));
    assert_int_equal(import.n_invalid, 0);
    assert_int_equal(data.n_ratings, 500);
    for (char *line = text.bytes, *next; *line; line = next, n_lines++) {
        char position[40];
        next = strchr(line, '\n') + 1;
        next[-1] = '\0';
        snprintf(position, sizeof position, "\"position\":%d,", n_lines + 1);
        assert_non_null(strstr(line, position));
        const char *arm = edited[n_lines] ? "edited" : "preserved";
        char expected[60];
        snprintf(expected, sizeof expected, "\"preference\":\"%s\"", arm);
        assert_non_null(strstr(line, expected));
        snprintf(expected, sizeof expected, "\"left_arm\":\"%s\"", arm);
        assert_non_null(strstr(line, expected));
    }
    for (size_t i = 0; i < data.n_ratings; i++) n_preferred += data.ratings[i].preference == LK_ARM_EDITED;
    assert_int_equal(n_preferred, n_edited);
    lk_ratings_import_free(&import);
    lk_dataset_free(&data);
    lk_text_free(&text);
    site_close(&s);
}

/* The admin token is typed once; the cookie that it gives opens the page until it is logged out, and nothing else does.
 */
static void an_admin_logs_in(void **state) {
    struct site s;
    struct visitor nobody = {.site = &s}, admin = {.site = &s}, thief;
    char body[120], form[65];
    (void)state;
    site_open(&s, "rules-admin", 6, "\"tasks\":1,");
    const char *token = lk_survey_admin_token(s.t.survey);
    site_expect(&nobody, "/admin", "", NULL, 401, "type=\"password\"");
    snprintf(body, sizeof body, "/admin?token=%s", token);
    site_expect(&nobody, body, "", NULL, 401, "type=\"password\""); /* never in an address */
    site_expect(&nobody, "/admin", "", "token=0", 401, "That is not the admin token.");
    site_expect(&nobody, "/admin", "Origin: http://evil.example\r\n", "token=0", 421, "");
    memset(admin.cookie, 'a', 64); /* a cookie that somebody else chose */
    snprintf(body, sizeof body, "token=%s", token);
    char *reply = site_ask(&admin, "/admin", "", body), cookie[40];
    assert_int_equal(site_status_of(reply), 303);
    assert_non_null(strstr(reply, "HttpOnly; SameSite=Strict"));
    assert_null(strstr(reply, token));
    snprintf(cookie, sizeof cookie, "Set-Cookie: survey-%d=", s.port);
    thief = admin;
    memcpy(admin.cookie, strstr(reply, cookie) + strlen(cookie), 64);
    free(reply);
    assert_string_not_equal(admin.cookie, thief.cookie);
    site_expect(&thief, "/admin", "", NULL, 401, "");
    reply = site_ask(&admin, "/admin", "", NULL);
    assert_int_equal(site_status_of(reply), 200);
    assert_non_null(strstr(reply, "Cache-Control: no-store"));
    site_take(reply, "name=\"form\" value=\"", sizeof form, form);
    free(reply);
    site_expect(&admin, "/admin", "", "form=0", 403, ""); /* a form of elsewhere logs nobody out */
    site_expect(&admin, "/admin", "", NULL, 200, "Log out");
    snprintf(body, sizeof body, "form=%s", form);
    site_expect(&admin, "/admin", "", body, 303, "Location: /admin");
    site_expect(&admin, "/admin", "", NULL, 401, "type=\"password\"");
    site_close(&s);
}

/* New ids, wrong admin tokens, changes of an answer and reports of problems are counted. */
static void only_so_often(void **state) {
    struct site s;
    struct visitor v[3], nobody = {.site = &s};
    char token[120], path[40];
    (void)state;
    site_open(&s, "rules-often", 6, "\"tasks\":1,\"entries_per_hour\":3,");
    for (int i = 0; i < 3; i++) someone(&v[i], &s, (const char *[]){"p1", "p2", "p3"}[i]);
    char *reply = site_post_entry(&s, "PROLIFIC_PID=p4");
    assert_int_equal(site_status_of(reply), 429);
    assert_null(strstr(reply, "Set-Cookie"));
    free(reply);
    site_enter(&v[0], &s, "PROLIFIC_PID=p1"); /* who is known comes in */
    snprintf(token, sizeof token, "Authorization: Bearer %s\r\n", lk_survey_admin_token(s.t.survey));
    site_expect(&nobody, "/admin", token, NULL, 200, "<td>3</td>");
    for (int i = 0; i < 100; i++) site_expect(&nobody, "/admin", "Authorization: Bearer 0\r\n", NULL, 401, "");
    site_expect(&nobody, "/admin", "Authorization: Bearer 0\r\n", NULL, 429, "");
    site_expect(&nobody, "/admin", token, NULL, 200, "<td>3</td>"); /* nobody locks the right one out */
    site_expect(&v[0], "/tasks", "", NULL, 200, "");
    s.now += HOUR;
    site_expect(&nobody, "/admin", token, NULL, 200, "<td>3</td>");
    someone(&v[1], &s, "p4");
    site_post(&v[1], "/tasks", "task=1", 303, "Location: /task/1");
    site_expect(&v[1], "/task/1", "", NULL, 200, "");
    for (int i = 0; i < 101; i++) {
        snprintf(path, sizeof path, "item=1&lease=1&a.race_drift=%d", i % 2 + 1);
        site_post(&v[1], "/task/1", path, i < 100 ? 200 : 400, "");
    }
    site_post(&v[1], "/task/1", "item=1&lease=1&a.race_drift=2", 200, "Saved"); /* what it is already */
    for (int i = 0; i < 3; i++) site_post(&v[1], "/problem", "", 200, "");
    site_expect(&nobody, "/admin", token, NULL, 200, "Problems reported</th><td>1</td>");
    s.now += 30 * 24 * INT64_C(1) * HOUR; /* sessions end */
    site_expect(&v[1], "/tasks", "", NULL, 200, "");
    s.now += 1;
    site_expect(&v[1], "/tasks", "", NULL, 303, "Location: /\r\n");
    site_close(&s);
}

static char *ask_as(const struct site *s, const char *path, const char *headers) {
    char request[600];
    int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: study.example\r\nConnection: close\r\n%s\r\n",
                     path, headers);
    return test_http(s->port, request, (size_t)n);
}

/* With a public name the browser is held to TLS, and the cookie is one that no other host can have set. */
static void behind_a_proxy(void **state) {
    struct site s;
    char cookie[65], header[200];
    (void)state;
    site_open(&s, "rules-public", 6, "\"tasks\":1,\"host\":\"study.example\",");
    static const char entry[] = "POST /enter HTTP/1.1\r\nHost: STUDY.example\r\nConnection: close\r\nContent-Length: "
                                "16\r\n\r\nPROLIFIC_PID=abc";
    char *reply = test_http(s.port, entry, sizeof entry - 1);
    assert_non_null(strstr(reply, "Strict-Transport-Security: max-age=31536000"));
    assert_non_null(strstr(reply, "; HttpOnly; SameSite=Strict; Path=/; Secure\r\n"));
    assert_null(strstr(reply, "Server:"));
    site_take(reply, "Set-Cookie: __Host-survey=", sizeof cookie, cookie);
    free(reply);
    static const char *const names[] = {"__Host-survey", "survey", "x__Host-survey"};
    for (int i = 0; i < 3; i++) {
        snprintf(header, sizeof header, "Cookie: %s=%s\r\n", names[i], cookie);
        reply = ask_as(&s, "/guide", header);
        assert_int_equal(site_status_of(reply), i ? 303 : 200);
        free(reply);
    }
    reply = ask_as(&s, "/favicon.ico", "");
    assert_int_equal(site_status_of(reply), 204);
    free(reply);
    char *big = calloc(1, 40000);
    memset(big, 'a', 39000);
    memcpy(big, "GET / HTTP/1.1\r\nX: ", 19);
    reply = test_http(s.port, big, 39000); /* a header that does not end */
    assert_int_equal(site_status_of(reply), 431);
    free(reply);
    free(big);
    site_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places),
        cmocka_unit_test(no_code_before_all_is_answered),
        cmocka_unit_test(nothing_tells_who),
        cmocka_unit_test(forgotten),
        cmocka_unit_test(who_is_listed_does_not_enter),
        cmocka_unit_test(lists_that_are_none),
        cmocka_unit_test(sides),
        cmocka_unit_test(only_so_often),
        cmocka_unit_test(an_admin_logs_in),
        cmocka_unit_test(behind_a_proxy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
