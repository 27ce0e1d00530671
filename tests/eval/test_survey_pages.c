/* What participants and the study's team see on the pages of a running server, and connections that take their time. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "tests/common/site.h"
#include "tests/common/test.h"

#define TUTORIAL                                                                                                       \
    "\"tutorial\":[{\"id\":\"t1\",\"prompt\":\"Give <red> hair & "                                                     \
    "\\\"more\\\"\",\"source\":\"s.png\",\"edited\":\"e.png\","                                                        \
    "\"preserved\":\"p.png\",\"expected\":{\"edited\":{\"race_drift\":5}},\"feedback\":\"Another person.\"},"          \
    "{\"id\":\"t2\",\"prompt\":\"Age\",\"source\":\"s.png\",\"edited\":\"e.png\",\"preserved\":\"p.png\","             \
    "\"expected\":{\"edited\":{\"race_drift\":5}},\"feedback\":\"Another person.\"}],"

static int count(const char *text, const char *part) {
    int n = 0;
    while ((text = strstr(text, part))) text += strlen(part), n++;
    return n;
}

/* Both pictures' five questions, all with 3 but the one about race in the first: what the page then tells. */
static void practise(const struct visitor *v, int item, int race, const char *told) {
    static const char *const axes[] = {"edit_success", "skin_tone", "gender_drift", "age_drift"};
    struct lk_text form = {0};
    lk_text_add(&form, "item=%d&a.race_drift=%d&b.race_drift=3", item, race);
    for (int i = 0; i < 8; i++) lk_text_add(&form, "&%c.%s=3", "ab"[i / 4], axes[i % 4]);
    site_post(v, "/practice", form.bytes, 200, told);
    lk_text_free(&form);
}

static void practice_with_feedback(void **state) {
    struct site s;
    struct visitor v;
    (void)state;
    site_open(&s, "pages-guide", 6, "\"tasks\":2," TUTORIAL);
    site_enter(&v, &s, "PROLIFIC_PID=abc");
    static const char *const shown[] = {"/example/1/s", "/example/1/a", "/example/1/b", "action=\"/practice\"",
                                        "Give &lt;red&gt; hair &amp; &quot;more&quot;"};
    for (int i = 0; i < 5; i++) site_expect(&v, "/guide", "", NULL, 200, shown[i]);
    site_expect(&v, "/example/1/a", "", NULL, 200, "e.png");
    site_expect(&v, "/practice", "", NULL, 200, "<span class=\"of\">Image A: </span>Did the person");
    site_expect(&v, "/practice", "", NULL, 200, "0/2 <progress");
    /* No way round it, and nothing is told before all is answered. */
    site_post(&v, "/guide", "", 303, "Location: /practice");
    site_post(&v, "/practice", "item=1&a.race_drift=1", 200, "answer every question");
    site_expect(&v, "/practice", "", NULL, 200, "0/2 <progress");
    char *reply = site_ask(&v, "/practice", "", NULL);
    assert_null(strstr(reply, "Not quite."));
    assert_null(strstr(reply, "Another person."));
    free(reply);
    practise(&v, 1, 1, "Not quite. Expected: 5");
    site_post(&v, "/practice", "item=1&a.race_drift=1", 303, "Location: /practice"); /* once */
    site_expect(&v, "/practice", "", NULL, 200, "1/2 <progress");
    site_expect(&v, "/practice", "", NULL, 200, "/example/2/b");
    site_post(&v, "/guide", "", 303, "Location: /practice");
    practise(&v, 2, 4, "Yes. Expected: 5");
    site_expect(&v, "/practice", "", NULL, 303, "Location: /guide");
    site_expect(&v, "/guide", "", NULL, 200, "You have answered the practice items.");
    site_post(&v, "/guide", "", 303, "Location: /consent");
    site_close(&s);
}

static void a_task_turns_green(void **state) {
    struct site s;
    struct visitor v, later;
    struct lk_survey_visitor who;
    enum lk_survey_verdict verdict;
    char token[65];
    (void)state;
    site_open(&s, "pages-board", 6, "\"tasks\":3,\"places\":1,");
    site_enter(&v, &s, "PROLIFIC_PID=later");
    site_consent(&v);
    char *reply = site_ask(&v, "/tasks", "", NULL);
    assert_int_equal(count(reply, "class=\"free\""), 3);
    assert_int_equal(count(reply, "disabled"), 0);
    free(reply);
    test_survey_person(&s.t, "p1", 1, s.now, token, &who);
    reply = site_ask(&v, "/tasks", "", NULL);
    assert_int_equal(count(reply, "Full (0/1"), 1);
    assert_int_equal(count(reply, "disabled=\"disabled\""), 1);
    free(reply);
    for (int i = 0; i < 2; i++) assert_int_equal(test_survey_answer_all(&s.t, &who, i, 2, s.now), LK_SURVEY_DONE);
    assert_ok(lk_survey_submit(s.t.survey, &who, s.now, &verdict));
    assert_int_equal(verdict, LK_SURVEY_DONE);
    reply = site_ask(&v, "/tasks", "", NULL);
    assert_int_equal(count(reply, "class=\"done\""), 1);
    assert_int_equal(count(reply, "Completed (1/1"), 1);
    assert_int_equal(count(reply, "disabled=\"disabled\""), 1);
    free(reply);
    site_enter(&later, &s, "PROLIFIC_PID=p1"); /* by a new session, as from another computer */
    site_expect(&later, "/tasks", "", NULL, 303, "Location: /done");
    site_close(&s);
}

static void the_progress_of_a_task(void **state) {
    struct site s;
    struct visitor v;
    struct lk_survey_visitor who;
    (void)state;
    site_open(&s, "pages-progress", 50, "\"tasks\":1,");
    site_enter(&v, &s, "PROLIFIC_PID=abc");
    site_consent(&v);
    site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
    for (int i = 0; i < 38; i++) assert_int_equal(test_survey_answer_all(&s.t, &who, i, 2, s.now), LK_SURVEY_DONE);
    char *reply = site_ask(&v, "/task/1", "", NULL);
    assert_non_null(strstr(reply, "38/50 <progress max=\"50\" value=\"38\">"));
    assert_non_null(strstr(reply, "name=\"item\" value=\"39\"")); /* where it was left */
    assert_int_equal(count(reply, "<fieldset"), 10);
    assert_int_equal(count(reply, "<img "), 3);
    assert_int_equal(count(reply, "<legend>"), 10); /* every group of options is named, every option labelled */
    assert_int_equal(count(reply, "<label><input type=\"radio\""), 50);
    assert_int_equal(count(reply, "alt=\""), 3);
    assert_non_null(strstr(reply, "rel=\"prefetch\" href=\"/picture/40/a\""));
    free(reply);
    site_close(&s);
}

/* What a page asks the browser to fetch for the next one is there. */
static void fetch_prefetched(const struct visitor *v, const char *page) {
    static const char mark[] = "rel=\"prefetch\" href=\"";
    while ((page = strstr(page, mark))) {
        char path[40];
        site_take(page, mark, sizeof path, path);
        site_expect(v, path, "", NULL, 200, "image/png");
        page += strlen(mark);
    }
}

/* Three instructed checks in a task and one before it; a wrong answer is counted. */
static void checks_are_asked_and_counted(void **state) {
    struct site s;
    struct visitor v;
    struct lk_survey_visitor who;
    char path[40], headers[120];
    int n_checks = 0;
    (void)state;
    site_open(&s, "pages-checks", 6, "\"tasks\":1,\"protocol\":\"001\",\"min_seconds\":0,");
    site_enter(&v, &s, "PROLIFIC_PID=abc");
    site_expect(&v, "/guide", "", NULL, 200, "please select option 4 for this question");
    site_consent(&v);
    site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
    for (int i = 0; i < 9; i++) {
        snprintf(path, sizeof path, "/task/1?item=%d", i + 1);
        char *reply = site_ask(&v, path, "", NULL);
        fetch_prefetched(&v, reply);
        bool check = strstr(reply, "please select option") != NULL;
        assert_true(!check || i > 0); /* never first */
        n_checks += check;
        free(reply);
        assert_int_equal(test_survey_answer_all(&s.t, &who, i, 1, s.now), LK_SURVEY_DONE); /* always option 2 */
    }
    assert_int_equal(n_checks, 3);
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", lk_survey_admin_token(s.t.survey));
    site_expect(&v, "/admin", headers, NULL, 200, "<td>1 of 3</td>"); /* 3, 2 and 4 were asked for */
    site_expect(&v, "/admin", headers, NULL, 200, "<td>Q1</td><td>accuracy on gold items</td><td>1</td>");
    site_expect(&v, "/admin", headers, NULL, 200, "<td>Q12</td>");
    site_expect(&v, "/admin", headers, NULL, 200, "Alert: more than 30% of attention checks failed");
    /* Who breaks a rule is told, and what was answered can be taken away, by the token's bearer alone. */
    snprintf(path, sizeof path, "<td>%.12s</td><td>1 of 3</td>", who.worker);
    site_expect(&v, "/admin", headers, NULL, 200, path);
    site_expect(&v, "/admin", headers, NULL, 200, "<td>Q1 Q4 Q5 Q8 Q9</td><td>yes</td>");
    site_expect(&v, "/admin", headers, NULL, 200, "<a href=\"/admin/evaluations.csv\" download>");
    static const char *const files[][2] = {{"/admin/evaluations.csv", "text/csv"},
                                           {"/admin/evaluations.csv", "workerId,imageId"},
                                           {"/admin/evaluations.jsonl", "\"isAttentionCheck\":true"},
                                           {"/admin/participants.jsonl", "\"submitted\":false"}};
    for (int i = 0; i < 4; i++) {
        site_expect(&v, files[i][0], headers, NULL, 200, files[i][1]);
        site_expect(&v, files[i][0], "", NULL, 401, "type=\"password\"");
    }
    site_expect(&v, "/admin/answers.db", headers, NULL, 404, "");
    site_close(&s);
}

/* A window that is too small: a warning over everything in protocol 001, a notice in the others. */
static void the_technical_gate(void **state) {
    static const char *const fields[] = {"\"tasks\":1,\"protocol\":\"001\",", "\"tasks\":1,"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct site s;
        struct visitor v;
        site_open(&s, "pages-gate", 6, fields[i]);
        site_enter(&v, &s, "PROLIFIC_PID=abc");
        char *reply = site_ask(&v, "/guide", "", NULL);
        assert_non_null(strstr(reply, "<aside class=\"gate\">This study needs a desktop or laptop"));
        assert_int_equal(strstr(reply, " wall\">") != NULL, i == 0);
        free(reply);
        site_expect(&v, "/style.css", "", NULL, 200,
                    "@media (max-width: 1279px), (max-height: 719px) { .gate { display: block;");
        site_expect(&v, "/style.css", "", NULL, 200, ".wall .gate { position: fixed; inset: 0;");
        site_close(&s);
    }
}

/* Four tasks in a day and 35 % of the checks failed: both alerts; a fifth task and the first is gone. */
static void alerts(void **state) {
    struct site s;
    struct visitor nobody = {.site = &s};
    char headers[120], token[65], id[8];
    enum lk_survey_verdict verdict;
    (void)state;
    site_open(&s, "pages-alerts", 6,
              "\"tasks\":1,\"places\":9,\"protocol\":\"001\",\"checks_per_task\":5,\"min_seconds\":0,");
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", lk_survey_admin_token(s.t.survey));
    for (int p = 0; p < 5; p++) {
        struct lk_survey_visitor who;
        const struct lk_survey_item *items[11];
        snprintf(id, sizeof id, "p%d", p);
        test_survey_person(&s.t, id, 0, s.now, token, &who);
        assert_ok(lk_survey_task_items(s.t.study, who.worker, 0, items));
        for (int i = 0, n_seen = 0; i < 11; i++) { /* of 20 checks of the first four, 7 wrong */
            bool check = items[i]->kind == LK_SURVEY_CHECK, wrong = check && n_seen < (p == 0 ? 1 : 2);
            int right = check ? items[i]->choice[0] - '1' : 2;
            n_seen += check;
            assert_int_equal(test_survey_answer_all(&s.t, &who, i, wrong ? (right + 1) % 5 : right, s.now),
                             LK_SURVEY_DONE);
        }
        assert_ok(lk_survey_submit(s.t.survey, &who, s.now, &verdict));
        assert_int_equal(verdict, LK_SURVEY_DONE);
        if (p < 3) continue;
        char *page = site_ask(&nobody, "/admin", headers, NULL);
        assert_int_equal(strstr(page, "Alert: fewer than 5 tasks in 24 hours") != NULL, p == 3);
        assert_non_null(strstr(page, p == 3 ? "<td>13 of 20</td>" : "<td>16 of 25</td>"));
        assert_non_null(strstr(page, "Alert: more than 30% of attention checks failed"));
        assert_non_null(strstr(page, p == 3 ? "<tr><td>2026-01-17</td><td>140</td><td>4</td></tr>"
                                            : "<tr><td>2026-01-17</td><td>"));
        free(page);
    }
    s.now += 25 * 3600 * INT64_C(1000);
    site_expect(&nobody, "/admin", headers, NULL, 200, "Alert: fewer than 5");
    site_close(&s);
}

/* A debriefing before the code, and a comment that is kept, in protocol 001 alone. */
static void debriefing_and_comments(void **state) {
    static const char *const protocols[] = {"001", "003", "000", "004"};
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct site s;
        struct visitor v;
        struct lk_survey_visitor who;
        struct lk_text text = {0};
        char more[160];
        snprintf(more, sizeof more,
                 "\"protocol\":\"%s\",\"tasks\":1,\"min_seconds\":0,\"gold_per_task\":0,\"checks_per_task\":0,",
                 protocols[k]);
        site_open(&s, "pages-debrief", 2, more);
        site_enter(&v, &s, "workerId=abc");
        site_consent(&v);
        site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
        assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
        for (int i = 0; i < 2; i++) assert_int_equal(test_survey_answer_all(&s.t, &who, i, 1, s.now), LK_SURVEY_DONE);
        site_post(&v, "/task/1", "item=2&lease=2&comment=both%20%22look%22%20alike", k ? 400 : 200, "");
        assert_ok(lk_survey_export_answers(s.t.survey, false, true, &text));
        assert_int_equal(strstr(text.bytes, "\"comment\":\"both \\\"look\\\" alike\"") != NULL, !k);
        lk_text_free(&text);
        site_post(&v, "/submit", "", 303, "Location: /done");
        char *reply = site_ask(&v, "/done", "", NULL);
        assert_non_null(strstr(reply, "class=\"code\""));
        assert_int_equal(strstr(reply, "<h2>About this study</h2>\n<p>This study measures the bias of AI") != NULL, !k);
        free(reply);
        site_close(&s);
    }
}

/* The oldest protocol prints its whole consent: every line of the file, lists within it too. */
static void consent_as_printed(void **state) {
    struct test_survey t;
    char *text, sha256[65];
    static const char *const lines[] = {"Study Title: Evaluating AI Image Editing Quality\n",
                                        "Payment: $1.50-2.00 per HIT\n", "You are 18+ years old\n",
                                        "You understand your rights\n", "Approval number: X7\n"};
    (void)state;
    test_survey_open(&t, "pages-consent", 6,
                     "\"tasks\":1,\"protocol\":\"000\",\"gold_per_task\":0,\"approval\":\"X7\",");
    assert_ok(lk_survey_consent_text(t.study, &text, sha256));
    for (int i = 0; i < 5; i++)
        if (!strstr(text, lines[i])) fail_msg("the consent lacks \"%s\"", lines[i]);
    lk_free(text);
    test_survey_close(&t);
    struct site s;
    struct visitor v;
    test_survey_open(&t, "pages-consent", 6, "\"tasks\":1,\"protocol\":\"001\",");
    assert_ok(lk_survey_consent_text(t.study, &text, sha256));
    static const char *const points[] = {"Purpose: ", "18 years", "various races, genders and ages", "anonymised"};
    for (int i = 0; i < 4; i++) assert_non_null(strstr(text, points[i]));
    lk_free(text);
    test_survey_close(&t);
    /* It comes before the guide. */
    site_open(&s, "pages-consent", 6, "\"tasks\":1,\"protocol\":\"000\",\"gold_per_task\":0,");
    site_enter(&v, &s, "PROLIFIC_PID=abc");
    site_expect(&v, "/guide", "", NULL, 303, "Location: /consent");
    site_consent(&v);
    site_expect(&v, "/tasks", "", NULL, 200, "");
    site_close(&s);
}

static void a_preview_lets_nobody_in(void **state) {
    struct site s;
    struct visitor v = {.site = &s};
    (void)state;
    site_open(&s, "pages-preview", 6, "\"tasks\":1,");
    s.server.preview = true;
    char *reply = site_ask(&v, "/?PROLIFIC_PID=abc", "", NULL);
    assert_int_equal(site_status_of(reply), 200);
    assert_null(strstr(reply, "Set-Cookie"));
    assert_non_null(strstr(reply, "only this preview"));
    free(reply);
    site_close(&s);
}

/* The token of one's own form is worth nothing in another's session, and neither is a session handed over in a link. */
static void sessions_are_ones_own(void **state) {
    struct site s;
    struct visitor one, two;
    char path[200];
    (void)state;
    site_open(&s, "pages-own", 6, "\"tasks\":1,");
    site_enter(&one, &s, "PROLIFIC_PID=one");
    site_consent(&one);
    site_enter(&two, &s, "PROLIFIC_PID=two");
    site_consent(&two);
    struct visitor mixed = one;
    memcpy(mixed.form, two.form, sizeof mixed.form);
    site_post(&mixed, "/tasks", "task=1", 403, "");
    struct visitor nobody = {.site = &s};
    snprintf(path, sizeof path, "/tasks?survey=%s", one.cookie);
    site_expect(&nobody, path, "", NULL, 303, "Location: /\r\n");
    /* Entering again is a new session, whatever cookie came with it. */
    snprintf(path, sizeof path, "Set-Cookie: survey-%d=", s.port);
    char *reply = site_ask(&one, "/enter", "", "PROLIFIC_PID=two"), fresh[65];
    site_take(reply, path, sizeof fresh, fresh);
    assert_string_not_equal(fresh, one.cookie);
    assert_string_not_equal(fresh, two.cookie);
    free(reply);
    site_close(&s);
}

/* A connection that has sent this much of a request. */
static int begun(const struct site *s, const char *request) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    struct timeval limit = {.tv_sec = 10}; /* an idle connection is kept for longer */
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(to, (struct sockaddr *)&where, sizeof where), 0);
    assert_int_equal(send(to, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    return to;
}

/* A body or a header that comes in drops: after 20 s of the server's clock it is not waited for. */
static void slow_requests_are_given_up(void **state) {
    struct site s;
    struct visitor v;
    char request[400], reply[200];
    (void)state;
    site_open(&s, "pages-slow", 6, "\"tasks\":1,");
    site_enter(&v, &s, "PROLIFIC_PID=abc");
    snprintf(request, sizeof request,
             "POST /guide HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nCookie: survey-%d=%s\r\nContent-Length: 100\r\n\r\na",
             s.port, s.port, v.cookie);
    int body = begun(&s, request), header = begun(&s, "GET / HTTP/1.1\r\nX: ");
    site_expect(&v, "/guide", "", NULL, 200, ""); /* the others are served, and the first pieces have arrived */
    usleep(100000);
    s.now += 19000;
    send(body, "b", 1, MSG_NOSIGNAL);
    send(header, "b", 1, MSG_NOSIGNAL);
    usleep(100000);
    s.now += 2000;
    send(body, "b", 1, MSG_NOSIGNAL);
    assert_int_equal(recv(body, reply, sizeof reply, 0), 0);
    assert_int_equal(recv(header, reply, sizeof reply, 0), 0);
    close(body);
    close(header);
    site_expect(&v, "/guide", "", NULL, 200, "");
    site_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(practice_with_feedback),     cmocka_unit_test(a_task_turns_green),
        cmocka_unit_test(the_progress_of_a_task),     cmocka_unit_test(checks_are_asked_and_counted),
        cmocka_unit_test(the_technical_gate),         cmocka_unit_test(alerts),
        cmocka_unit_test(debriefing_and_comments),    cmocka_unit_test(consent_as_printed),
        cmocka_unit_test(a_preview_lets_nobody_in),   cmocka_unit_test(sessions_are_ones_own),
        cmocka_unit_test(slow_requests_are_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
