/* The survey against a running server on 127.0.0.1: pages, gates, answers, and requests that mean harm. The clock is
 * ours. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/survey/store.h"
#include "tests/common/site.h"
#include "tests/common/test.h"

/* Answers of item 1.. by the option that stands third on each scale. */
static void answer(struct site *s, const struct visitor *v, int task, int item, int status) {
    char path[40], lease[40], body[800];
    snprintf(path, sizeof path, "/task/%d?item=%d", task, item);
    char *reply = site_ask(v, path, "", NULL);
    site_take(reply, "name=\"lease\" value=\"", sizeof lease, lease);
    free(reply);
    int n = snprintf(body, sizeof body, "lease=%s&item=%d", lease, item);
    for (int i = 0; i < 10; i++)
        n += snprintf(body + n, sizeof body - (size_t)n, "&%c.%s=3", 'a' + i / 5,
                      (const char *[]){"edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift"}[i % 5]);
    *strchr(path, '?') = '\0';
    s->now += 60000;
    site_post(v, path, body, status, "");
}

static void from_entry_to_code(void **state) {
    struct site s;
    struct visitor v;
    (void)state;
    site_open(&s, "http-walk", 6, "\"tasks\":2,\"code\":\"C1ABCDEF\",");
    v = (struct visitor){.site = &s};
    site_expect_page(&v, "/");
    char *script = site_ask(&v, "/script.js", "", NULL); /* where elements.item is a method, not the field of that name
                                                          */
    assert_non_null(strstr(script, "URLSearchParams"));
    assert_null(strstr(script, ".elements"));
    free(script);
    site_expect(&v, "/tasks", "", NULL, 303, "Location: /\r\n");
    site_enter(&v, &s, "PROLIFIC_PID=abc&STUDY_ID=s&SESSION_ID=t");
    site_expect_page(&v, "/guide");
    static const char *const behind[] = {"/tasks", "/task/1", "/done", "/consent"};
    for (int i = 0; i < 4; i++) site_expect(&v, behind[i], "", NULL, 303, "Location: /guide");
    site_post(&v, "/tasks", "task=1", 303, "Location: /guide");
    site_post(&v, "/guide", "", 303, "Location: /consent");
    site_expect_page(&v, "/consent");
    site_expect(&v, "/task/1", "", NULL, 303, "Location: /consent");
    site_enter(&v, &s, "workerId=second");
    site_consent(&v);
    site_expect_page(&v, "/tasks");
    site_post(&v, "/tasks", "task=2", 303, "Location: /task/2");
    site_post(&v, "/tasks", "task=1", 409, "You have a task already");
    site_expect_page(&v, "/task/2");
    site_expect(&v, "/task/1", "", NULL, 303, "Location: /tasks");
    site_expect(&v, "/picture/1/s", "", NULL, 200, "s.png");
    site_post(&v, "/submit", "", 409, "not complete");
    answer(&s, &v, 2, 1, 200);
    answer(&s, &v, 2, 2, 200);
    site_expect(&v, "/task/2", "", NULL, 200, "2/3 <progress");
    site_post(&v, "/submit", "", 409, "not complete");
    site_expect(&v, "/done", "", NULL, 303, "Location: /tasks");
    answer(&s, &v, 2, 3, 200);
    site_expect_page(&v, "/task/2");
    site_post(&v, "/submit", "", 303, "Location: /done");
    site_expect_page(&v, "/done");
    site_expect(&v, "/done", "", NULL, 200, "C1ABCDEF");
    site_expect(&v, "/task/2", "", NULL, 303, "Location: /done");
    site_enter(&v, &s, "workerId=second"); /* who returns sees the completion page */
    site_expect(&v, "/tasks", "", NULL, 303, "Location: /done");
    site_close(&s);
}

static void answers_too_early_or_elsewhere(void **state) {
    struct site s;
    struct visitor v;
    (void)state;
    site_open(&s, "http-early", 6, "\"tasks\":1,\"protocol\":\"001\",\"checks_per_task\":0,");
    site_enter(&v, &s, "PROLIFIC_PID=abc");
    site_post(&v, "/guide", "check.answer=2", 200, "not the option asked for");
    site_consent(&v);
    site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    site_expect(&v, "/task/1", "", NULL, 200, "Any comments about this image pair?");
    s.now += 1000;
    site_post(&v, "/task/1", "item=1&lease=1&edit_success=4", 425, "too early");
    s.now += 4000;
    site_post(&v, "/task/1", "item=1&lease=1&edit_success=4", 200, "Saved");
    site_post(&v, "/task/1", "item=1&lease=1&comment=%3Cb%3E%26", 200, "Saved");
    site_post(&v, "/task/1", "item=1&lease=2&edit_success=4", 409, "another window");
    site_post(&v, "/task/1", "item=1&lease=1&edit_success=7", 400, "");
    site_post(&v, "/task/1", "item=99&lease=1&edit_success=4", 400, "");
    site_close(&s);
}

static void requests_that_mean_harm(void **state) {
    struct site s;
    struct visitor v, nobody;
    char *big = calloc(1, 20001), headers[200];
    (void)state;
    site_open(&s, "http-harm", 6, "\"tasks\":2,");
    site_enter(&v, &s, "PROLIFIC_PID=abc");
    site_consent(&v);
    site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    /* forms of elsewhere */
    site_expect(&v, "/submit", "", "x=1", 403, "");
    site_expect(&v, "/submit", "", "form=0000", 403, "");
    snprintf(headers, sizeof headers, "form=%s", v.form);
    site_expect(&v, "/submit", "Origin: http://evil.example\r\n", headers, 421, "");
    site_expect(&v, "/submit", "Origin: null\r\n", headers, 421, "");
    char own[80];
    snprintf(own, sizeof own, "Origin: http://127.0.0.1:%d\r\n", s.port);
    site_expect(&v, "/submit", own, headers, 409, ""); /* as a browser sends it */
    site_expect(&v, "/submit", "Content-Type: text/plain\r\n", headers, 400, "");
    /* a session that somebody else made up is none, and entering never keeps it */
    nobody = v;
    nobody.cookie[3] = nobody.cookie[3] == '0' ? '1' : '0';
    site_expect(&nobody, "/task/1", "", NULL, 303, "Location: /\r\n");
    site_expect(&nobody, "/picture/1/s", "", NULL, 303, "Location: /\r\n");
    char *reply = site_ask(&nobody, "/enter", "", "PROLIFIC_PID=abd");
    assert_null(strstr(reply, nobody.cookie));
    free(reply);
    /* other people's places and files */
    static const char *const paths[] = {"/picture/../../etc/passwd",
                                        "/picture/1/..",
                                        "/picture/1/s/../../x",
                                        "/picture/%2e%2e/s",
                                        "/picture/99/s",
                                        "/picture/-1/s",
                                        "/picture/1/x",
                                        "/example/1/s",
                                        "/secrets.json",
                                        "/answers.db",
                                        "/.git/config",
                                        "//etc/passwd"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) site_expect(&v, paths[i], "", NULL, 404, "");
    site_expect(&v, "/admin", "", NULL, 401, "");
    site_expect(&v, "/admin", "Authorization: Bearer 0000\r\n", NULL, 401, "");
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", lk_survey_admin_token(s.t.survey));
    site_expect(&v, "/admin", headers, NULL, 200, "Alert: fewer than 5");
    /* ids that want to be headers, pages or statements */
    nobody = (struct visitor){.site = &s};
    site_expect(&nobody, "/?PROLIFIC_PID=a%0d%0aX-Evil:%201", "", NULL, 200, "no usable");
    site_expect(&nobody, "/?PROLIFIC_PID=%3Cscript%3Ealert(1)%3C/script%3E", "", NULL, 200, "no usable");
    site_expect(&nobody, "/?PROLIFIC_PID=a'%20OR%201=1", "", NULL, 200, "no usable");
    site_expect(&nobody, "/?PROLIFIC_PID=%00", "", NULL, 400, "");
    site_expect(&nobody, "/?PROLIFIC_PID=%ff%fe", "", NULL, 400, "");
    site_expect(&nobody, "/?PROLIFIC_PID=%4", "", NULL, 400, "");
    /* too large */
    memset(big, 'a', 20000);
    site_expect(&v, "/submit", "", big, 413, "");
    big[0] = '/';
    big[3000] = '\0';
    site_expect(&nobody, big, "", NULL, 414, "");
    free(big);
    site_close(&s);
}

static void raw(const struct site *s, int status, const char *format, ...) {
    char request[600];
    va_list values;
    va_start(values, format);
    vsnprintf(request, sizeof request, format, values);
    va_end(values);
    char *reply = test_http(s->port, request, strlen(request));
    if (site_status_of(reply) != status) fail_msg("%s: expected %d, got %.200s", request, status, reply);
    assert_null(strstr(reply, "Set-Cookie"));
    free(reply);
}

/* What a proxy might read as other requests than the server does. */
static void shapes_of_smuggling(void **state) {
    struct site s;
    (void)state;
    site_open(&s, "http-shapes", 6, "\"tasks\":2,");
    int p = s.port;
    raw(&s, 400, "GET /?PROLIFIC_PID=a HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nHost: evil\r\nConnection: close\r\n\r\n", p);
    raw(&s, 421, "GET /?PROLIFIC_PID=a HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    raw(&s, 400,
        "POST /submit HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 4\r\nContent-Length: 4\r\nConnection: "
        "close\r\n\r\na=bc",
        p);
    raw(&s, 400,
        "POST /submit HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: chunked\r\nConnection: "
        "close\r\n\r\n4\r\na=bc\r\n0\r\n\r\n",
        p);
    raw(&s, 400,
        "POST /submit HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: chunked\r\nContent-Length: "
        "4\r\nConnection: close\r\n\r\n0\r\n\r\n",
        p);
    raw(&s, 411, "POST /submit HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", p);
    raw(&s, 405, "DELETE / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", p);
    raw(&s, 400, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    site_close(&s);
}

/* The server is killed after seven answers; a new one has them all. */
static void killed_after_seven_answers(void **state) {
    struct site s;
    struct visitor v;
    int ports[2];
    (void)state;
    memset(&s, 0, sizeof s);
    s.now = SITE_START;
    test_survey_open(&s.t, "http-kill", 6, "\"tasks\":1,");
    lk_survey_close(s.t.survey); /* a connection must not be carried into another process */
    s.t.survey = NULL;
    assert_int_equal(pipe(ports), 0);
    pid_t child = fork();
    if (!child) {
        if (lk_survey_open(&s.t.survey, s.t.study, s.t.store, true)) _exit(1);
        site_serve(&s);
        if (write(ports[1], &s.port, sizeof s.port) < 0) _exit(1);
        for (;;) pause();
    }
    close(ports[1]);
    assert_int_equal(read(ports[0], &s.port, sizeof s.port), (ssize_t)sizeof s.port);
    close(ports[0]);
    site_enter(&v, &s, "PROLIFIC_PID=abc");
    site_consent(&v);
    site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    site_expect(&v, "/task/1", "", NULL, 200, "");
    static const char *const keys[] = {"a.edit_success", "a.skin_tone",    "a.race_drift", "a.gender_drift",
                                       "a.age_drift",    "b.edit_success", "b.skin_tone"};
    for (int i = 0; i < 7; i++) {
        char body[80];
        snprintf(body, sizeof body, "item=1&lease=1&%s=%d", keys[i], i % 5 + 1);
        site_post(&v, "/task/1", body, 200, "Saved");
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_ok(lk_survey_open(&s.t.survey, s.t.study, s.t.store, false));
    struct lk_survey_visitor who;
    struct lk_survey_answer *answers;
    size_t n, first_open;
    assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
    assert_ok(lk_survey_answers(s.t.survey, &who, &answers, &n, &first_open));
    assert_int_equal(n, 7);
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < 7; k++)
            if (!strcmp(answers[i].key, keys[k])) assert_int_equal(answers[i].value[0], '1' + k % 5);
    lk_free(answers);
    site_serve(&s); /* and whoever reloads the page sees them */
    char *page = site_ask(&v, "/task/1", "", NULL);
    n = 0;
    for (const char *at = page; (at = strstr(at, " checked=\"checked\">")); at++) n++;
    assert_int_equal(n, 7 + 1); /* and the switch of the keys */
    free(page);
    site_close(&s);
}

/* The disk syncs nothing for a while: no answer is acknowledged that is not durable. SQLite calls these in libc's
 * place.
 */
static bool disk_is_broken;

int fsync(int file) {
    errno = EIO;
    return disk_is_broken ? -1 : (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    errno = EIO;
    return disk_is_broken ? -1 : (int)syscall(SYS_fdatasync, file);
}

static void not_durable_not_acknowledged(void **state) {
    struct site s;
    struct visitor v;
    struct lk_survey_visitor who;
    struct lk_survey_answer *answers;
    size_t n, first_open;
    (void)state;
    site_open(&s, "http-broken", 6, "\"tasks\":1,");
    site_enter(&v, &s, "PROLIFIC_PID=abc");
    site_consent(&v);
    site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    site_expect(&v, "/task/1", "", NULL, 200, "");
    sqlite3_exec(s.t.survey->sql.db, "PRAGMA synchronous=FULL", NULL, NULL, NULL); /* as lk_survey_open has it */
    disk_is_broken = true;
    site_post(&v, "/task/1", "item=1&lease=1&a.race_drift=2", 500, "");
    disk_is_broken = false;
    assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
    assert_ok(lk_survey_answers(s.t.survey, &who, &answers, &n, &first_open));
    assert_int_equal(n, 0);
    site_post(&v, "/task/1", "item=1&lease=1&a.race_drift=2", 200, "Saved");
    assert_ok(lk_survey_answers(s.t.survey, &who, &answers, &n, &first_open));
    assert_int_equal(n, 1);
    lk_free(answers);
    site_close(&s);
}

struct crowd {
    struct visitor v;
    pthread_t thread;
    int n_saved;
};

static void *answer_five(void *context) {
    struct crowd *c = context;
    static const char *const keys[] = {"edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift"};
    for (int i = 0; i < 5; i++) {
        char body[200];
        snprintf(body, sizeof body, "form=%s&item=1&lease=1&a.%s=%d", c->v.form, keys[i], i + 1);
        char *reply = site_ask(&c->v, "/task/1", "Accept: application/json\r\n", body);
        c->n_saved += site_status_of(reply) == 200;
        free(reply);
    }
    return NULL;
}

static void a_crowd_answers_at_once(void **state) {
    enum { N = 16 };
    struct site s;
    struct crowd crowd[N];
    struct lk_survey_visitor who;
    struct lk_survey_answer *answers;
    size_t n, first_open;
    (void)state;
    site_open(&s, "http-crowd", 6, "\"tasks\":1,\"places\":16,");
    for (int i = 0; i < N; i++) {
        char query[40];
        snprintf(query, sizeof query, "PROLIFIC_PID=p%d", i);
        site_enter(&crowd[i].v, &s, query);
        site_consent(&crowd[i].v);
        site_post(&crowd[i].v, "/tasks", "task=1", 303, "Location: /task/1");
        site_expect(&crowd[i].v, "/task/1", "", NULL, 200, "");
        crowd[i].n_saved = 0;
    }
    for (int i = 0; i < N; i++) assert_int_equal(pthread_create(&crowd[i].thread, NULL, answer_five, &crowd[i]), 0);
    for (int i = 0; i < N; i++) pthread_join(crowd[i].thread, NULL);
    for (int i = 0; i < N; i++) {
        assert_int_equal(crowd[i].n_saved, 5);
        assert_ok(lk_survey_visitor(s.t.survey, crowd[i].v.cookie, s.now, &who));
        assert_ok(lk_survey_answers(s.t.survey, &who, &answers, &n, &first_open));
        assert_int_equal(n, 5);
        lk_free(answers);
    }
    site_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_after_seven_answers),
        cmocka_unit_test(from_entry_to_code),
        cmocka_unit_test(not_durable_not_acknowledged),
        cmocka_unit_test(a_crowd_answers_at_once),
        cmocka_unit_test(answers_too_early_or_elsewhere),
        cmocka_unit_test(requests_that_mean_harm),
        cmocka_unit_test(shapes_of_smuggling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
