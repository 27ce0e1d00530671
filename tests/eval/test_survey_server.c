/* A survey's server against what a day with raters brings: places given back while a page is open, connections that
 * end half-way, links that are only looked at, names, addresses and cookies. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/survey/store.h"
#include "tests/common/site.h"
#include "tests/common/test.h"

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void in_task(struct site *s, struct visitor *v, const char *id) {
    char query[80];
    snprintf(query, sizeof query, "PROLIFIC_PID=%s", id);
    site_enter(v, s, query);
    site_consent(v);
    site_post(v, "/tasks", "task=1", 303, "Location: /task/1");
    site_expect(v, "/task/1", "", NULL, 200, "");
}

/* Whoever comes back too late is told at the first save, by the page and by its script; nothing is written, and the
 * place can be taken again. */
static void a_place_given_back_is_told_at_the_next_save(void **state) {
    static const char *const forms[] = {"/task/1", "/submit"};
    struct site s;
    struct visitor v;
    int64_t n;
    (void)state;
    site_open(&s, "server-expired", 6, "\"tasks\":2,\"claim_minutes\":20,");
    in_task(&s, &v, "late");
    s.now += 20 * 60000 + 1;
    for (int script = 0; script < 2; script++)
        for (int i = 0; i < 2; i++) {
            char body[200];
            snprintf(body, sizeof body, "form=%s&item=1&lease=1&a.race_drift=2", v.form);
            site_expect(&v, forms[i], script ? "Accept: application/json\r\n" : "", body, 409,
                        "<p class=\"note\">Your place was given back");
        }
    assert_ok(lk_sql_number(&s.t.survey->sql, &n, -1, "SELECT count(*) FROM answers", ""));
    assert_int_equal(n, 0);
    site_expect(&v, "/task/1", "", NULL, 303, "Location: /tasks");
    site_post(&v, "/tasks", "task=2", 303, "Location: /task/2");
    site_post(&v, "/task/1", "item=1&lease=1&a.race_drift=2", 409, "another window"); /* the page of the old task */
    site_expect(&v, "/task/2", "", NULL, 200, "");
    site_post(&v, "/task/2", "item=1&lease=1&a.race_drift=2", 200, "Saved");
    site_close(&s);
}

/* GET and HEAD of a link change nothing; its form enters. */
static void a_link_alone_enters_nobody(void **state) {
    static const char *const methods[] = {"GET", "HEAD"};
    struct site s;
    struct visitor v;
    int64_t n;
    (void)state;
    site_open(&s, "server-link", 6, "\"tasks\":1,");
    for (int i = 0; i < 2; i++) {
        char *request = lk_format("%s /?PROLIFIC_PID=abc HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n",
                                  methods[i], s.port);
        char *reply = test_http(s.port, request, strlen(request));
        assert_int_equal(site_status_of(reply), 200);
        assert_null(strstr(reply, "Set-Cookie"));
        free(reply);
        lk_free(request);
    }
    assert_ok(lk_sql_number(&s.t.survey->sql, &n, -1, "SELECT count(*) FROM participants", ""));
    assert_int_equal(n, 0);
    v = (struct visitor){.site = &s};
    site_expect(&v, "/enter", "", NULL, 303, "Location: /\r\n"); /* not by GET */
    site_expect(&v, "/enter", "", "PROLIFIC_PID=", 200, "no usable");
    site_expect(&v, "/enter", "Origin: http://evil.example\r\n", "PROLIFIC_PID=abc", 421, "");
    site_expect(&v, "/?workerId=abc&assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE", "", NULL, 200,
                "Compare each edited picture");
    char *preview = site_ask(&v, "/?workerId=abc&assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE", "", NULL);
    assert_null(strstr(preview, "<form"));
    free(preview);
    site_expect(&v, "/enter", "", "workerId=abc", 303, "Location: /guide");
    assert_ok(lk_sql_number(&s.t.survey->sql, &n, -1, "SELECT count(*) FROM participants", ""));
    assert_int_equal(n, 1);
    site_close(&s);
}

/* Only who has the signature of the id comes in, by link and by form. */
static void signed_links(void **state) {
    struct site s;
    struct visitor v;
    char link[33], query[120];
    (void)state;
    site_open(&s, "server-signed", 6, "\"tasks\":1,\"signed_links\":true,");
    lk_survey_link(s.t.survey, "abc", link);
    assert_int_equal(strspn(link, "0123456789abcdef"), 32);
    v = (struct visitor){.site = &s};
    static const char *const wrong[] = {"PROLIFIC_PID=abc", "PROLIFIC_PID=abc&sig=", "PROLIFIC_PID=abc&sig=%s0",
                                        "PROLIFIC_PID=abd&sig=%s", "PROLIFIC_PID=abc&sig=%.31s"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char form[140], path[160];
        const char *mark = strchr(wrong[i], '%');
        snprintf(form, sizeof form, "%.*s%.*s%s", mark ? (int)(mark - wrong[i]) : 99, wrong[i],
                 mark && mark[1] == '.' ? 31
                 : mark                 ? 32
                                        : 0,
                 link, mark && mark[1] == 's' && mark[2] ? mark + 2 : "");
        snprintf(path, sizeof path, "/?%s", form);
        site_expect(&v, path, "", NULL, 200, "no usable");
        char *reply = site_post_entry(&s, form);
        assert_int_equal(site_status_of(reply), 200);
        assert_null(strstr(reply, "Set-Cookie"));
        free(reply);
    }
    snprintf(query, sizeof query, "PROLIFIC_PID=abc&sig=%s", link);
    site_enter(&v, &s, query);
    site_expect(&v, "/guide", "", NULL, 200, "");
    site_close(&s);
}

/* A request without a socket: what the server would see of another machine. */
static int enter_from(const struct site *s, uint32_t address, int number) {
    struct survey_server server = s->server;
    struct survey_reply reply;
    char uri[] = "/enter", body[60], host[80];
    snprintf(body, sizeof body, "PROLIFIC_PID=a%x-%d", address, number);
    snprintf(host, sizeof host, "%s", server.host);
    struct survey_request r = {.method = "POST", .uri = uri, .body = body, .host = host, .address = address};
    assert_ok(survey_respond(&server, &r, &reply));
    lk_text_free(&reply.body);
    return reply.status;
}

static void addresses_enter_only_so_often(void **state) {
    struct site s;
    (void)state;
    site_open(&s, "server-addresses", 6, "\"tasks\":1,");
    for (int i = 0; i < SURVEY_ENTRIES_OF_ADDRESS + 5; i++) {
        assert_int_equal(enter_from(&s, 0x0a000001, i), i < SURVEY_ENTRIES_OF_ADDRESS ? 303 : 429);
        assert_int_equal(enter_from(&s, 0, i), 303); /* a proxy's */
    }
    assert_int_equal(enter_from(&s, 0x0a000002, 0), 303);
    s.now += 3600 * 1000;
    assert_int_equal(enter_from(&s, 0x0a000001, 999), 303);
    site_close(&s);
}

static int status_for(const struct survey_server *server, const char *host, const char *origin) {
    struct survey_request r = {.host = host, .origin = origin};
    return survey_is_ours(server, &r);
}

static void names_of_a_server(void **state) {
    static const struct {
        const char *host, *asked, *origin;
        bool local, ours;
    } cases[] = {
        {"127.0.0.1:8080", "127.0.0.1:8080", NULL, true, true},
        {"127.0.0.1:8080", "localhost:8080", NULL, true, true},
        {"127.0.0.1:8080", "LOCALHOST:8080", "http://localhost:8080", true, true},
        {"127.0.0.1:8080", "localhost:8081", NULL, true, false},
        {"127.0.0.1:8080", "localhost", NULL, true, false},
        {"127.0.0.1:8080", "127.0.0.1", NULL, true, false},
        {"127.0.0.1:8080", "127.0.0.1:8080", "http://evil.example", true, false},
        {"127.0.0.1:8080", "127.0.0.1:8080", "null", true, false},
        {"127.0.0.1:8080", "127.0.0.1:80800", NULL, true, false},
        {"127.0.0.1:8080", "evil.example", NULL, true, false},
        {"127.0.0.1:80", "127.0.0.1", "http://127.0.0.1", true, true},
        {"127.0.0.1:80", "localhost", NULL, true, true},
        {"10.0.0.1:8080", "localhost:8080", NULL, false, false},
        {"10.0.0.1:80", "10.0.0.1", "http://10.0.0.1", false, true},
        {"study.example.org", "study.example.org", "https://study.example.org", false, true},
        {"study.example.org", "STUDY.Example.org", NULL, false, true},
        {"study.example.org", "study.example.org:8080", NULL, false, false},
        {"study.example.org", "study.example.org.evil.example", NULL, false, false},
        {"study.example.org", "study.example", NULL, false, false},
        {"study.example.org", "localhost", NULL, false, false},
        {"study.example.org", "", NULL, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct survey_server server = {.local = cases[i].local};
        snprintf(server.host, sizeof server.host, "%s", cases[i].host);
        if (status_for(&server, cases[i].asked, cases[i].origin) != cases[i].ours)
            fail_msg("%s asked as %s from %s", cases[i].host, cases[i].asked, cases[i].origin ? cases[i].origin : "");
    }
}

static void addresses_to_bind(void **state) {
    static const char *const refused[] = {"0.0.0.0", "localhost", "::", "example.org", "256.0.0.1", ""};
    struct site s;
    struct survey_listener *listener;
    (void)state;
    site_open(&s, "server-bind", 6, "\"tasks\":1,");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct survey_server server = s.server;
        assert_fails(survey_listen(&listener, &server, refused[i], 0), LK_E_USAGE, "--bind");
    }
    struct survey_server second = s.server; /* another port: other cookies */
    assert_ok(survey_listen(&listener, &second, "127.0.0.2", 0));
    assert_string_not_equal(survey_cookie_name(&second), survey_cookie_name(&s.server));
    assert_int_equal(strncmp(survey_cookie_name(&second), "survey-", 7), 0);
    survey_stop(listener);
    site_close(&s);
    site_open(&s, "server-bind-named", 6, "\"tasks\":1,\"host\":\"study.example\",");
    struct survey_server named = s.server;
    assert_ok(survey_listen(&listener, &named, "0.0.0.0", 0));
    assert_string_equal(survey_cookie_name(&named), "__Host-survey");
    survey_stop(listener);
    site_close(&s);
}

static int dial(int port) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
    return fd;
}

/* More connections than there are places, each left in its own way: the next visitor is served within a second. */
static void dropped_connections_keep_no_place(void **state) {
    enum { AT_ONCE = 1200 };
    static const char *const begun[] = {"", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n",
                                        "POST /enter HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nPROLIFIC"};
    struct site s;
    struct visitor v;
    struct rlimit files = {4096, 4096};
    int rounds = getenv("LIKENESS_TEST_FULL") ? 9 : 4, open[AT_ONCE];
    double worst = 0;
    (void)state;
    if (setrlimit(RLIMIT_NOFILE, &files)) skip();
    site_open(&s, "server-dropped", 6, "\"tasks\":1,");
    v = (struct visitor){.site = &s};
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            const char *text = begun[round % 4]; /* all alike: each way alone could fill the places */
            open[i] = dial(s.port);
            send(open[i], text, strlen(text), MSG_NOSIGNAL);
            shutdown(open[i], SHUT_WR); /* they read on, but say no more */
        }
        double began = seconds();
        site_expect(&v, "/", "", NULL, 200, "");
        if (seconds() - began > worst) worst = seconds() - began;
        for (int i = 0; i < AT_ONCE; i++) close(open[i]);
    }
    print_message("%d dropped connections: the next visitor after %.2f s at worst\n", rounds * AT_ONCE, worst);
    assert_true(worst <= 1);
    site_close(&s);
}

/* Whoever says all of a request and then no more still gets the answer. */
static void a_whole_request_is_answered_to_who_hangs_up(void **state) {
    struct site s;
    char request[120], reply[400] = "";
    (void)state;
    site_open(&s, "server-hang-up", 6, "\"tasks\":1,");
    int fd = dial(s.port);
    int n =
        snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", s.port);
    assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
    assert_true(recv(fd, reply, 15, MSG_WAITALL) == 15);
    assert_int_equal(site_status_of(reply), 200);
    close(fd);
    site_close(&s);
}

/* The store's times lead: whoever starts a server on a clock that was set back goes on from them. */
static void the_latest_time_is_known(void **state) {
    struct site s;
    struct visitor v;
    int64_t latest;
    (void)state;
    site_open(&s, "server-clock", 6, "\"tasks\":1,");
    assert_ok(lk_survey_latest(s.t.survey, &latest));
    assert_int_equal(latest, 0);
    s.now += 5000;
    in_task(&s, &v, "abc");
    s.now += 60000;
    site_post(&v, "/task/1", "item=1&lease=1&a.race_drift=2", 200, "Saved");
    assert_ok(lk_survey_latest(s.t.survey, &latest));
    assert_int_equal(latest, s.now);
    site_close(&s);
}

/* Whoever logs out has no session any more, though the cookie comes again; another session and the answers stay. */
static void a_session_is_ended(void **state) {
    struct site s;
    struct visitor here, there;
    (void)state;
    site_open(&s, "server-leave", 6, "\"tasks\":1,");
    in_task(&s, &there, "abc");
    site_enter(&here, &s, "PROLIFIC_PID=abc"); /* elsewhere, in the same task */
    char *page = site_ask(&here, "/task/1", "", NULL);
    site_take(page, "name=\"form\" value=\"", sizeof here.form, here.form);
    free(page);
    site_post(&here, "/task/1", "item=1&lease=2&a.race_drift=2", 200, "Saved");
    site_expect(&here, "/leave", "", "form=0", 403, "");
    site_expect(&here, "/leave", "", NULL, 404, "");
    site_expect(&here, "/tasks", "", NULL, 200, "action=\"/leave\"");
    site_post(&here, "/leave", "", 200, "Your answers are kept.");
    site_expect(&here, "/tasks", "", NULL, 303, "Location: /\r\n");
    site_post(&here, "/task/1", "item=1&lease=1&a.race_drift=3", 403, "");
    site_expect(&there, "/task/1", "", NULL, 200, "name=\"a.race_drift\" value=\"2\" checked");
    site_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_ended),
        cmocka_unit_test(a_place_given_back_is_told_at_the_next_save),
        cmocka_unit_test(a_link_alone_enters_nobody),
        cmocka_unit_test(signed_links),
        cmocka_unit_test(addresses_enter_only_so_often),
        cmocka_unit_test(names_of_a_server),
        cmocka_unit_test(addresses_to_bind),
        cmocka_unit_test(dropped_connections_keep_no_place),
        cmocka_unit_test(a_whole_request_is_answered_to_who_hangs_up),
        cmocka_unit_test(the_latest_time_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
