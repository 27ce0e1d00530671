/* The selection's pages: driven by requests alone, without a socket. */
#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "tests/common/test.h"
#include "tools/cli/study/live.h"

int __wrap_fsync(int fd);
int __wrap_fsync(int fd) { return fd < 0 ? -1 : 0; } /* waited for elsewhere */

static struct selection_server pages;
static struct survey_server server;
static char log_path[4096], picture[] = "/nowhere/p.png";

static int64_t clock_of(void *context) {
    (void)context;
    return 1768644000000; /* 2026-01-17T10:00:00Z */
}

static void begin(void) {
    struct lk_text lines = {0};
    char pools[4096];
    snprintf(pools, sizeof pools, "%s", test_path("pools.jsonl"));
    snprintf(log_path, sizeof log_path, "%s", test_path("selection_log.jsonl"));
    remove(log_path);
    for (int v = 1; v <= LK_N_POOLS; v++)
        for (int i = 0; i < LK_N_SOURCES; i++) {
            char id[48];
            lk_source_id(i, id);
            lk_text_add(&lines, "{\"pool\":%d,\"source_id\":\"%s\",\"file\":\"p%d.png\"}\n", v, id, i);
        }
    test_write(pools, lines.bytes, lines.n);
    lk_text_free(&lines);
    pages = (struct selection_server){.site = selection_site, .actor = "A.B.", .pictures = {{picture}}};
    pthread_mutex_init(&pages.lock, NULL);
    memset(pages.site.token, 'a', 64);
    lk_sha256(pages.site.token, 64, pages.site.form_token);
    assert_ok(lk_selection_open(&pages.selection, pools, log_path));
    server = (struct survey_server){
        .respond = local_respond, .context = &pages.site, .now = clock_of, .host = "127.0.0.1:8080"};
}

static void end(void) {
    lk_selection_close(pages.selection);
    pthread_mutex_destroy(&pages.lock);
}

struct asked {
    const char *method, *path, *body, *host, *origin;
    bool no_cookie;
};

/* The status; the reply's place and body in static buffers. */
static char location[64], body[200000], cookie_set[65];
static const char *file_sent;

static int ask(const struct asked *q) {
    char uri[2000], form[2000] = "", cookie[100];
    struct survey_reply reply;
    snprintf(uri, sizeof uri, "%s", q->path);
    if (q->body) snprintf(form, sizeof form, "%s", q->body);
    snprintf(cookie, sizeof cookie, "survey=%s", pages.site.token);
    struct survey_request request = {.method = q->method,
                                     .uri = uri,
                                     .body = q->body ? form : NULL,
                                     .host = q->host ? q->host : "127.0.0.1:8080",
                                     .origin = q->origin,
                                     .cookie = q->no_cookie ? NULL : cookie};
    assert_ok(server.respond(&server, &request, &reply));
    snprintf(location, sizeof location, "%s", reply.location);
    snprintf(cookie_set, sizeof cookie_set, "%s", reply.cookie);
    snprintf(body, sizeof body, "%s", reply.body.bytes ? reply.body.bytes : "");
    file_sent = reply.file;
    lk_text_free(&reply.body);
    return reply.status;
}

static int get(const char *path) { return ask(&(struct asked){.method = "GET", .path = path}); }

static int post(const char *path, const char *fields) {
    char form[1500];
    snprintf(form, sizeof form, "form=%s&%s", pages.site.form_token, fields);
    return ask(&(struct asked){.method = "POST", .path = path, .body = form});
}

static int choose(int cell, int pool, const char *boxes) {
    char fields[500];
    snprintf(fields, sizeof fields, "cell=%d&pool=%d&action=choose&%s", cell, pool, boxes);
    return post("/act", fields);
}

#define ALL_BOXES                                                                                                      \
    "frontal_face=yes&clear_focus=yes&proper_lighting=yes&identifiable_features=yes&neutral_expression=yes&"           \
    "upright_posture=yes"

static int count_lines(void) {
    size_t n;
    int lines = 0;
    char *text = test_read(log_path, &n);
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    free(text);
    return lines;
}

static void a_session_of_102_actions(void **state) {
    (void)state;
    begin();
    for (int cell = 1; cell <= 84; cell++) {
        assert_int_equal(choose(cell, cell % 7 + 1, ALL_BOXES), 303);
        if (cell == 1) assert_string_equal(location, "/cell/2"); /* the next one that is open */
    }
    for (int k = 0; k < 9; k++) assert_int_equal(post("/undo", ""), 303);
    assert_string_equal(location, "/cell/76");
    assert_int_equal(get("/cell/76"), 200);
    assert_non_null(strstr(body, "75 of 84 done, 93 actions"));
    for (int cell = 76; cell <= 84; cell++) assert_int_equal(choose(cell, cell % 7 + 1, ALL_BOXES), 303);
    assert_int_equal(count_lines(), 102);
    assert_int_equal(lk_selection_n_done(pages.selection), 84);
    end();
}

static void one_of_a_cell_is_chosen(void **state) {
    (void)state;
    begin();
    assert_int_equal(choose(3, 1, "frontal_face=yes"), 303);
    assert_string_equal(location, "/cell/3"); /* without all six boxes it stays open */
    assert_int_equal(choose(3, 5, ALL_BOXES), 303);
    assert_int_equal(lk_selection_chosen(pages.selection, 2), 5);
    assert_int_equal(count_lines(), 3);
    assert_int_equal(post("/act", "cell=3&pool=5&action=flag"), 303);
    assert_int_equal(post("/act", "cell=3&pool=5&action=note&note=%3Cb%3E+%22x%22"), 303);
    assert_int_equal(get("/cell/3"), 200);
    assert_non_null(strstr(body, "value=\"&lt;b&gt; &quot;x&quot;\""));
    assert_non_null(strstr(body, "candidate chosen flagged"));
    assert_int_equal(post("/act", "cell=3&pool=4&action=unchoose"), 409);
    end();
}

static void strangers_are_refused(void **state) {
    char form[200];
    (void)state;
    begin();
    snprintf(form, sizeof form, "form=%s&cell=1&pool=1&action=choose", pages.site.form_token);
    assert_int_equal(ask(&(struct asked){.method = "GET", .path = "/cell/1", .no_cookie = true}), 403);
    assert_int_equal(ask(&(struct asked){.method = "GET", .path = "/picture/1/1", .no_cookie = true}), 403);
    assert_int_equal(ask(&(struct asked){.method = "GET", .path = "/cell/1", .host = "evil.test"}), 421);
    assert_int_equal(ask(&(struct asked){.method = "GET", .path = "/?token=b", .no_cookie = true}), 403);
    assert_int_equal(ask(&(struct asked){.method = "POST", .path = "/act", .body = form, .no_cookie = true}), 403);
    assert_int_equal(ask(&(struct asked){.method = "POST", .path = "/act", .body = form, .origin = "http://evil.test"}),
                     421);
    assert_int_equal(ask(&(struct asked){.method = "POST", .path = "/act", .body = "cell=1&pool=1&action=choose"}),
                     403);
    assert_int_equal(ask(&(struct asked){.method = "DELETE", .path = "/cell/1"}), 405);
    assert_int_equal(post("/act", "cell=85&pool=1&action=choose"), 400);
    assert_int_equal(post("/act", "cell=1&pool=8&action=choose"), 400);
    assert_int_equal(post("/act", "cell=1&pool=1&action=forget"), 400);
    assert_int_equal(get("/picture/0/1"), 404);
    assert_int_equal(get("/picture/1/8"), 404);
    assert_int_equal(get("/picture/../../etc/passwd"), 404);
    assert_int_equal(get("/cell/85"), 404);
    assert_int_equal(lk_selection_n_actions(pages.selection), 0);
    end();
}

static void the_link_lets_in(void **state) {
    char link[100];
    (void)state;
    begin();
    snprintf(link, sizeof link, "/?token=%s", pages.site.token);
    assert_int_equal(ask(&(struct asked){.method = "GET", .path = link, .no_cookie = true}), 303);
    assert_string_equal(cookie_set, pages.site.token);
    assert_int_equal(get("/picture/1/1"), 200);
    assert_string_equal(file_sent, picture);
    assert_int_equal(get("/style.css"), 200);
    assert_int_equal(get("/script.js"), 200);
    assert_int_equal(get("/cell/84"), 200);
    assert_null(strstr(body, "//"));                        /* nothing of another host */
    test_write(test_path("cell.html"), body, strlen(body)); /* for test_page_scripts.sh */
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_of_102_actions),
        cmocka_unit_test(one_of_a_cell_is_chosen),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(the_link_lets_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
