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
#include "tests/common/survey.h"
#include "tests/common/test.h"
#include "tools/cli/survey/http.h"

static const int64_t start = 1768608000000;

struct site {
    struct test_survey t;
    struct survey_server server;
    struct survey_listener *listener;
    int port;
    int64_t now;
};

static int64_t clock_of(void *context) { return *(int64_t *)context; }

static void site_serve(struct site *s) {
    s->server = (struct survey_server){
        .respond = survey_respond, .survey = s->t.survey, .study = s->t.study, .now = clock_of, .clock = &s->now};
    assert_ok(survey_listen(&s->listener, &s->server, "127.0.0.1", 0));
    s->port = survey_port(s->listener);
}

static void site_open(struct site *s, const char *name, int n_items, const char *more) {
    memset(s, 0, sizeof *s);
    s->now = start;
    test_survey_open(&s->t, name, n_items, more);
    site_serve(s);
}

static void site_close(struct site *s) {
    survey_stop(s->listener);
    test_survey_close(&s->t);
}

struct visitor {
    const struct site *site;
    char cookie[65], form[65];
};

/* headers: further lines, each with its end. body NULL: a GET. */
static char *ask(const struct visitor *v, const char *path, const char *headers, const char *body) {
    char *request =
        lk_format("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n%s%s%s%s", body ? "POST" : "GET", path,
                  v->site->port, *v->cookie ? "Cookie: survey=" : "", v->cookie, *v->cookie ? "\r\n" : "", headers);
    char *whole = body ? lk_format("%sContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
                                   request, strlen(body), body)
                       : lk_format("%s\r\n", request);
    assert_non_null(whole);
    char *reply = test_http(v->site->port, whole, strlen(whole));
    lk_free(request);
    lk_free(whole);
    return reply;
}

static int status_of(const char *reply) { return strncmp(reply, "HTTP/1.1 ", 9) ? 0 : atoi(reply + 9); }

static void expect(const struct visitor *v, const char *path, const char *headers, const char *body, int status,
                   const char *part) {
    char *reply = ask(v, path, headers, body);
    if (status_of(reply) != status || !strstr(reply, part))
        fail_msg("%s: expected %d and \"%s\", got %.1500s", path, status, part, reply);
    free(reply);
}

/* A page as every page must be: nothing from elsewhere, the headers that hold a browser to it. */
static void expect_page(const struct visitor *v, const char *path) {
    char *reply = ask(v, path, "", NULL), *body = strstr(reply, "\r\n\r\n");
    assert_int_equal(status_of(reply), 200);
    assert_non_null(body);
    assert_null(strstr(body, "http:"));
    assert_null(strstr(body, "https:"));
    assert_null(strstr(body, "\"//"));
    assert_null(strstr(body, " style="));
    assert_null(strstr(body, " onclick"));
    assert_null(strstr(body, "<script>"));
    assert_non_null(strstr(reply, "Content-Security-Policy: default-src 'none'"));
    assert_non_null(strstr(reply, "X-Content-Type-Options: nosniff"));
    assert_non_null(strstr(reply, "Referrer-Policy: same-origin")); /* or forms come with "Origin: null" */
    static const char *const links[] = {" href=\"", " src=\"", " action=\""};
    for (int i = 0; i < 3; i++)
        for (const char *at = body; (at = strstr(at, links[i]));) {
            at += strlen(links[i]);
            assert_true(at[0] == '/' && at[1] != '/');
        }
    free(reply);
}

static void take(const char *from, const char *mark, size_t n, char *out) {
    const char *at = strstr(from, mark);
    if (!at) fail_msg("no %s in %.800s", mark, from);
    snprintf(out, n, "%s", at + strlen(mark));
    out[strcspn(out, "\";&")] = '\0';
}

static void enter(struct visitor *v, const struct site *site, const char *query) {
    char path[200];
    *v = (struct visitor){.site = site};
    snprintf(path, sizeof path, "/?%s", query);
    char *reply = ask(v, path, "", NULL);
    assert_int_equal(status_of(reply), 200);
    assert_non_null(strstr(reply, "; HttpOnly; SameSite=Strict; Path=/"));
    take(reply, "Set-Cookie: survey=", sizeof v->cookie, v->cookie);
    free(reply);
    reply = ask(v, "/guide", "", NULL);
    if (!strstr(reply, "303 ")) take(reply, "name=\"form\" value=\"", sizeof v->form, v->form);
    free(reply);
}

static void post(const struct visitor *v, const char *path, const char *fields, int status, const char *part) {
    char body[2000];
    snprintf(body, sizeof body, "form=%s&%s", v->form, fields);
    expect(v, path, "Accept: application/json\r\n", body, status, part);
}

static void consent(const struct visitor *v) {
    char sha256[65], body[200];
    post(v, "/guide", "check.answer=4&seen=yes", 303, "Location: /consent");
    char *reply = ask(v, "/consent", "", NULL);
    take(reply, "name=\"text\" value=\"", sizeof sha256, sha256);
    free(reply);
    snprintf(body, sizeof body, "text=%s&adult=yes", sha256);
    post(v, "/consent", body, 200, "Both boxes");
    snprintf(body, sizeof body, "text=%s&adult=yes&agree=yes", sha256);
    post(v, "/consent", body, 303, "Location: /tasks");
}

/* Answers of item 1.. by the option that stands third on each scale. */
static void answer(struct site *s, const struct visitor *v, int task, int item, int status) {
    char path[40], lease[40], body[800];
    snprintf(path, sizeof path, "/task/%d?item=%d", task, item);
    char *reply = ask(v, path, "", NULL);
    take(reply, "name=\"lease\" value=\"", sizeof lease, lease);
    free(reply);
    int n = snprintf(body, sizeof body, "lease=%s&item=%d", lease, item);
    for (int i = 0; i < 10; i++)
        n += snprintf(body + n, sizeof body - (size_t)n, "&%c.%s=3", 'a' + i / 5,
                      (const char *[]){"edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift"}[i % 5]);
    *strchr(path, '?') = '\0';
    s->now += 60000;
    post(v, path, body, status, "");
}

static void from_entry_to_code(void **state) {
    struct site s;
    struct visitor v;
    (void)state;
    site_open(&s, "http-walk", 6, "\"tasks\":2,\"code\":\"C1ABCDEF\",");
    v = (struct visitor){.site = &s};
    expect_page(&v, "/");
    char *script = ask(&v, "/script.js", "", NULL); /* where elements.item is a method, not the field of that name */
    assert_non_null(strstr(script, "URLSearchParams"));
    assert_null(strstr(script, ".elements"));
    free(script);
    expect(&v, "/tasks", "", NULL, 303, "Location: /\r\n");
    enter(&v, &s, "PROLIFIC_PID=abc&STUDY_ID=s&SESSION_ID=t");
    expect_page(&v, "/guide");
    static const char *const behind[] = {"/tasks", "/task/1", "/done", "/consent"};
    for (int i = 0; i < 4; i++) expect(&v, behind[i], "", NULL, 303, "Location: /guide");
    post(&v, "/tasks", "task=1", 303, "Location: /guide");
    post(&v, "/guide", "", 303, "Location: /consent");
    expect_page(&v, "/consent");
    expect(&v, "/task/1", "", NULL, 303, "Location: /consent");
    enter(&v, &s, "workerId=second");
    consent(&v);
    expect_page(&v, "/tasks");
    post(&v, "/tasks", "task=2", 303, "Location: /task/2");
    post(&v, "/tasks", "task=1", 409, "no longer free");
    expect_page(&v, "/task/2");
    expect(&v, "/task/1", "", NULL, 303, "Location: /tasks");
    expect(&v, "/picture/1/s", "", NULL, 200, "s.png");
    post(&v, "/submit", "", 409, "not complete");
    answer(&s, &v, 2, 1, 200);
    answer(&s, &v, 2, 2, 200);
    expect(&v, "/task/2", "", NULL, 200, "2/3 <progress");
    post(&v, "/submit", "", 409, "not complete");
    expect(&v, "/done", "", NULL, 303, "Location: /tasks");
    answer(&s, &v, 2, 3, 200);
    expect_page(&v, "/task/2");
    post(&v, "/submit", "", 303, "Location: /done");
    expect_page(&v, "/done");
    expect(&v, "/done", "", NULL, 200, "C1ABCDEF");
    expect(&v, "/task/2", "", NULL, 303, "Location: /done");
    enter(&v, &s, "workerId=second"); /* who returns sees the completion page */
    expect(&v, "/tasks", "", NULL, 303, "Location: /done");
    site_close(&s);
}

static void answers_too_early_or_elsewhere(void **state) {
    struct site s;
    struct visitor v;
    (void)state;
    site_open(&s, "http-early", 6, "\"tasks\":1,\"protocol\":\"001\",\"checks_per_task\":0,");
    enter(&v, &s, "PROLIFIC_PID=abc");
    post(&v, "/guide", "check.answer=2", 200, "not the option asked for");
    consent(&v);
    post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    expect(&v, "/task/1", "", NULL, 200, "Any comments about this image pair?");
    s.now += 1000;
    post(&v, "/task/1", "item=1&lease=1&edit_success=4", 425, "too early");
    s.now += 4000;
    post(&v, "/task/1", "item=1&lease=1&edit_success=4", 200, "Saved");
    post(&v, "/task/1", "item=1&lease=1&comment=%3Cb%3E%26", 200, "Saved");
    post(&v, "/task/1", "item=1&lease=2&edit_success=4", 409, "another window");
    post(&v, "/task/1", "item=1&lease=1&edit_success=7", 400, "");
    post(&v, "/task/1", "item=99&lease=1&edit_success=4", 400, "");
    site_close(&s);
}

static void requests_that_mean_harm(void **state) {
    struct site s;
    struct visitor v, nobody;
    char *big = calloc(1, 20001), headers[200];
    (void)state;
    site_open(&s, "http-harm", 6, "\"tasks\":2,");
    enter(&v, &s, "PROLIFIC_PID=abc");
    consent(&v);
    post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    /* forms of elsewhere */
    expect(&v, "/submit", "", "x=1", 403, "");
    expect(&v, "/submit", "", "form=0000", 403, "");
    snprintf(headers, sizeof headers, "form=%s", v.form);
    expect(&v, "/submit", "Origin: http://evil.example\r\n", headers, 421, "");
    expect(&v, "/submit", "Origin: null\r\n", headers, 421, "");
    char own[80];
    snprintf(own, sizeof own, "Origin: http://127.0.0.1:%d\r\n", s.port);
    expect(&v, "/submit", own, headers, 409, ""); /* as a browser sends it */
    expect(&v, "/submit", "Content-Type: text/plain\r\n", headers, 400, "");
    /* a session that somebody else made up is none, and entering never keeps it */
    nobody = v;
    nobody.cookie[3] = nobody.cookie[3] == '0' ? '1' : '0';
    expect(&nobody, "/task/1", "", NULL, 303, "Location: /\r\n");
    expect(&nobody, "/picture/1/s", "", NULL, 303, "Location: /\r\n");
    char *reply = ask(&nobody, "/?PROLIFIC_PID=abd", "", NULL);
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
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) expect(&v, paths[i], "", NULL, 404, "");
    expect(&v, "/admin", "", NULL, 401, "");
    expect(&v, "/admin", "Authorization: Bearer 0000\r\n", NULL, 401, "");
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", lk_survey_admin_token(s.t.survey));
    expect(&v, "/admin", headers, NULL, 200, "Alert: fewer than 5");
    /* ids that want to be headers, pages or statements */
    nobody = (struct visitor){.site = &s};
    expect(&nobody, "/?PROLIFIC_PID=a%0d%0aX-Evil:%201", "", NULL, 200, "no usable");
    expect(&nobody, "/?PROLIFIC_PID=%3Cscript%3Ealert(1)%3C/script%3E", "", NULL, 200, "no usable");
    expect(&nobody, "/?PROLIFIC_PID=a'%20OR%201=1", "", NULL, 200, "no usable");
    expect(&nobody, "/?PROLIFIC_PID=%00", "", NULL, 400, "");
    expect(&nobody, "/?PROLIFIC_PID=%ff%fe", "", NULL, 400, "");
    expect(&nobody, "/?PROLIFIC_PID=%4", "", NULL, 400, "");
    /* too large */
    memset(big, 'a', 20000);
    expect(&v, "/submit", "", big, 413, "");
    big[0] = '/';
    big[3000] = '\0';
    expect(&nobody, big, "", NULL, 414, "");
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
    if (status_of(reply) != status) fail_msg("%s: expected %d, got %.200s", request, status, reply);
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
    s.now = start;
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
    enter(&v, &s, "PROLIFIC_PID=abc");
    consent(&v);
    post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    expect(&v, "/task/1", "", NULL, 200, "");
    static const char *const keys[] = {"a.edit_success", "a.skin_tone",    "a.race_drift", "a.gender_drift",
                                       "a.age_drift",    "b.edit_success", "b.skin_tone"};
    for (int i = 0; i < 7; i++) {
        char body[80];
        snprintf(body, sizeof body, "item=1&lease=1&%s=%d", keys[i], i % 5 + 1);
        post(&v, "/task/1", body, 200, "Saved");
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
    test_survey_close(&s.t);
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
    enter(&v, &s, "PROLIFIC_PID=abc");
    consent(&v);
    post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    expect(&v, "/task/1", "", NULL, 200, "");
    disk_is_broken = true;
    post(&v, "/task/1", "item=1&lease=1&a.race_drift=2", 500, "");
    disk_is_broken = false;
    assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
    assert_ok(lk_survey_answers(s.t.survey, &who, &answers, &n, &first_open));
    assert_int_equal(n, 0);
    post(&v, "/task/1", "item=1&lease=1&a.race_drift=2", 200, "Saved");
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
        char *reply = ask(&c->v, "/task/1", "Accept: application/json\r\n", body);
        c->n_saved += status_of(reply) == 200;
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
        enter(&crowd[i].v, &s, query);
        consent(&crowd[i].v);
        post(&crowd[i].v, "/tasks", "task=1", 303, "Location: /task/1");
        expect(&crowd[i].v, "/task/1", "", NULL, 200, "");
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
