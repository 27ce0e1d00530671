/* The page of a run against a running server on 127.0.0.1: what it says of a journal and its shards, whom it refuses,
 * that it changes nothing. */
#include <sqlite3.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "tests/common/survey.h"
#include "tests/common/test.h"
#include "tools/cli/study/live.h"

static const int64_t now_is = 1768644000000; /* 2026-01-17T10:00:00Z */
static char folder[500], hash[65];
static struct live_site site;
static struct survey_server server;
static struct survey_listener *listener;
static int port;

static int64_t now(void) { return now_is; }
static int64_t clock_of(void *context) {
    (void)context;
    return now_is;
}

static const char *const keys[] = {"flux"};

static enum lk_code entry(void *context, size_t k, struct lk_journal_entry *out) {
    static char name[32], output[48];
    snprintf(name, sizeof name, "job-%d", (int)k + *(const int *)context);
    snprintf(output, sizeof output, "exp1/%s.png", name);
    *out = (struct lk_journal_entry){(int64_t)k + *(const int *)context, name, name, output, 0};
    return LK_OK;
}

/* Jobs first..first+n-1 in a journal of their own; the first n_done are made ten minutes after each other up to five
 * minutes ago, the next one has failed. */
static void fill(const char *path, int first, size_t n, int n_done) {
    struct lk_journal *j;
    struct lk_journal_lease leases[32];
    int n_taken;
    int64_t others;
    assert_ok(lk_journal_open(&j, path, &(struct lk_journal_list){hash, 1, 1, n, keys, 1, entry, NULL, &first}));
    for (int k = 0; k <= n_done + 2; k++) { /* a failure takes three attempts */
        bool kept, good = k < n_done;
        assert_ok(lk_journal_take(j, 0, 1, leases, &n_taken, &others));
        assert_int_equal(n_taken, 1);
        struct lk_journal_made made = {.started_ms = now_is - 300000 - 600000LL * (n_done - k),
                                       .seconds = 600,
                                       .stages = "{}",
                                       .sha256 = good ? hash : NULL,
                                       .bytes = 4,
                                       .error = good ? NULL : "<no> picture",
                                       .line = "{}"};
        assert_ok(lk_journal_end(j, leases, &made, &kept));
        assert_true(kept);
    }
    assert_ok(lk_journal_take(j, 0, 1, leases, &n_taken, &others)); /* one in hand */
    lk_journal_close(j);
}

static const char *in(const char *name) {
    static char path[4][1200];
    static int next;
    snprintf(path[next = (next + 1) % 4], sizeof *path, "%s/%s", folder, name);
    return path[next];
}

static int make(void **state) {
    (void)state;
    memset(hash, 'd', 64);
    snprintf(folder, sizeof folder, "%s", test_path("live"));
    char command[2600];
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s/results/exp1' '%s/shards/1-of-2' '%s/shards/2-of-2'",
             folder, folder, folder, folder);
    assert_int_equal(system(command), 0);
    fill(in("journal.sqlite"), 0, 20, 15);
    fill(in("shards/1-of-2/journal.sqlite"), 100, 5, 2);
    fill(in("shards/2-of-2/journal.sqlite"), 200, 5, 3);
    test_write(in("results/exp1/job-3.png"), "\x89PNG", 4);
    test_write(in("secret.png"), "none", 4);
    assert_int_equal(symlink("../../secret.png", in("results/exp1/job-4.png")), 0);
    site = (struct live_site){.site = live_local_site, .folder = folder, .now = now};
    memset(site.site.token, 'a', 64);
    lk_sha256(site.site.token, 64, site.site.form_token);
    server = (struct survey_server){.respond = local_respond, .context = &site.site, .now = clock_of};
    assert_ok(survey_listen(&listener, &server, "127.0.0.1", 0));
    port = survey_port(listener);
    return 0;
}

static int end(void **state) {
    (void)state;
    survey_stop(listener);
    return 0;
}

/* The reply in free()-able memory; its status must be the one expected. cookie NULL: that of who has the link. */
static char *ask(const char *method, const char *path, const char *host, const char *cookie, int status) {
    char ours[40];
    snprintf(ours, sizeof ours, "127.0.0.1:%d", port);
    char *request = lk_format("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: 0\r\nCookie: "
                              "pages-%d=%s\r\n\r\n",
                              method, path, host ? host : ours, port, cookie ? cookie : site.site.token);
    assert_non_null(request);
    char *reply = test_http(port, request, strlen(request));
    int got = strncmp(reply, "HTTP/1.1 ", 9) ? 0 : atoi(reply + 9);
    if (got != status) fail_msg("%s %s: expected %d, got %.800s", method, path, status, reply);
    lk_free(request);
    return reply;
}

static void expect(const char *method, const char *path, const char *host, const char *cookie, int status) {
    free(ask(method, path, host, cookie, status));
}

static void has(const char *page, const char *part) {
    if (!strstr(page, part)) fail_msg("no \"%s\" in %.6000s", part, page);
}

static void the_page_says_how_far_the_run_is(void **state) {
    (void)state;
    char *page = ask("GET", "/", NULL, NULL, 200);
    has(page, "15 of 20 pictures, 1 failed; 5.5 an hour, 43:20 left; the last one 5:00 ago");
    has(page, "<th scope=\"row\">flux</th><td>15 of 20</td><td>1</td><td>1</td><td>3</td><td>600</td>");
    has(page, "<b>job-15</b> tried 3 times: &lt;no&gt; picture</li>");
    /* Twelve, the last one first. */
    const char *at = strstr(page, "<ul class=\"pictures\">");
    for (int k = 14; k > 2; k--) {
        char link[60];
        snprintf(link, sizeof link, "href=\"/picture/%d?v=dddddddd\"", k);
        assert_non_null(at = strstr(at, link));
    }
    assert_null(strstr(page, "/picture/2?"));
    has(page, "Content-Security-Policy: default-src 'none'");
    has(page, "Cache-Control: no-store");
    assert_null(strstr(strstr(page, "\r\n\r\n"), "//")); /* nothing of another host */
    assert_null(strstr(page, "<form"));
    at = strstr(page, "<!DOCTYPE");
    test_write(test_path("run.html"), at, strlen(at)); /* for test_page_scripts.sh */
    free(page);
}

static void shards_are_put_together(void **state) {
    struct live_site whole = site;
    char elsewhere[1100];
    (void)state;
    snprintf(elsewhere, sizeof elsewhere, "%.400s-shards", folder);
    char *command =
        lk_format("rm -rf '%s' && mkdir '%s' && mv '%s/shards' '%s'", elsewhere, elsewhere, folder, elsewhere);
    assert_int_equal(system(command), 0);
    lk_free(command);
    site.folder = elsewhere;
    char *page = ask("GET", "/", NULL, NULL, 200);
    has(page, "5 of 10 pictures, 2 failed");
    has(page, "<b>job-203</b>");
    const char *at = page;
    static const int order[] = {101, 202, 100, 201, 200}; /* of both, as they ended */
    for (int k = 0; k < 5; k++) {
        char link[60];
        snprintf(link, sizeof link, "<a href=\"/picture/%d?", order[k]);
        assert_non_null(at = strstr(at, link));
    }
    free(page);
    site = whole;
}

static void pictures_of_the_run_alone_are_shown(void **state) {
    (void)state;
    char *reply = ask("GET", "/picture/3?v=dddddddd", NULL, NULL, 200);
    has(reply, "Content-Type: image/png");
    assert_string_equal(strstr(reply, "\r\n\r\n") + 4, "\x89PNG");
    free(reply);
    expect("GET", "/picture/4", NULL, NULL, 404);  /* a link out of the results */
    expect("GET", "/picture/5", NULL, NULL, 404);  /* lost */
    expect("GET", "/picture/15", NULL, NULL, 404); /* failed */
    expect("GET", "/picture/77", NULL, NULL, 404);
    expect("GET", "/picture/../secret.png", NULL, NULL, 404);
    expect("GET", "/picture/-1", NULL, NULL, 404);
    expect("GET", "/journal.sqlite", NULL, NULL, 404);
    expect("GET", "/results/exp1/job-3.png", NULL, NULL, 404);
    expect("GET", "/style.css", NULL, NULL, 200);
    expect("GET", "/script.js", NULL, NULL, 200);
}

static void strangers_and_writes_are_refused(void **state) {
    static const char *const paths[] = {"/", "/picture/3", "/style.css"};
    char link[100];
    (void)state;
    for (int i = 0; i < 3; i++) {
        expect("GET", paths[i], NULL, "none", 403);
        expect("GET", paths[i], "evil.test", NULL, 421);
        expect("GET", paths[i], "localhost", NULL, 421);
        expect("POST", paths[i], NULL, NULL, 405);
        expect("DELETE", paths[i], NULL, NULL, 405);
    }
    expect("GET", "/?token=b", NULL, "none", 403);
    snprintf(link, sizeof link, "/?token=%s", site.site.token);
    char *reply = ask("GET", link, NULL, "none", 303);
    char mark[40];
    snprintf(mark, sizeof mark, "Set-Cookie: pages-%d=aaaa", port);
    has(reply, mark);
    has(reply, "Location: /\r\n");
    free(reply);
}

/* Who looks on holds up nobody: the journal is read while another has begun to write. */
static void what_is_in_hand_is_shown(void **state) {
    (void)state;
    uint8_t black[3 * 4] = {0};
    const struct lk_image image = {.pixels = black, .height = 2, .width = 2, .channels = 3};
    const struct lk_png_text ours = {"likeness preview", "step 3 of 8"}, other = {"parameters", "step 3 of 8"};
    expect("GET", "/preview", NULL, NULL, 404);
    /* A picture that is no preview, a link, what is none. */
    assert_ok(lk_picture_write(in(LIVE_PREVIEW), &image, 90, &other, 1));
    expect("GET", "/preview", NULL, NULL, 404);
    assert_ok(lk_picture_write(in("elsewhere.png"), &image, 90, &ours, 1));
    assert_int_equal(unlink(in(LIVE_PREVIEW)) | symlink("elsewhere.png", in(LIVE_PREVIEW)), 0);
    expect("GET", "/preview", NULL, NULL, 404);
    assert_int_equal(unlink(in(LIVE_PREVIEW)), 0);
    test_write(in(LIVE_PREVIEW), "\x89PNG", 4);
    char *page = ask("GET", "/", NULL, NULL, 200);
    assert_null(strstr(page, "In hand</h2>"));
    free(page);

    assert_int_equal(rename(in("elsewhere.png"), in(LIVE_PREVIEW)), 0);
    page = ask("GET", "/", NULL, NULL, 200);
    has(page, "<h2>In hand</h2>");
    has(page, "<span>step 3 of 8</span>");
    free(page);
    page = ask("GET", "/preview?v=1", NULL, NULL, 200);
    has(page, "Content-Type: image/png");
    has(page, "Cache-Control: no-store");
    free(page);
    expect("GET", "/preview", "elsewhere.example", NULL, 421);
    assert_int_equal(unlink(in(LIVE_PREVIEW)), 0);
}

static void a_run_goes_on_beside_it(void **state) {
    sqlite3 *writer;
    (void)state;
    assert_int_equal(sqlite3_open(in("journal.sqlite"), &writer), SQLITE_OK);
    assert_int_equal(sqlite3_exec(writer, "BEGIN IMMEDIATE; UPDATE jobs SET attempts=9 WHERE i=0", 0, 0, 0), SQLITE_OK);
    expect("GET", "/", NULL, NULL, 200);
    assert_int_equal(sqlite3_exec(writer, "ROLLBACK", 0, 0, 0), SQLITE_OK);
    sqlite3_close(writer);
}

/* Of tiny pictures many are made, and names are long. */
static void numbers_are_grouped_and_names_break(void **state) {
    struct live_view *view = lk_calloc(1, sizeof *view);
    struct lk_text out = {0};
    (void)state;
    assert_non_null(view);
    view->counts.total = view->counts.all[LK_JOB_DONE] = 5000, view->counts.all[LK_JOB_QUEUED] = 40;
    view->per_hour = 90039.5;
    view->n_latest = 1;
    strcpy(view->latest[0].name, "flux_20s_<b>");
    live_page(&site, view, &out);
    has(out.bytes, "; 90,040 an hour, ");
    has(out.bytes, "<span>flux_<wbr>20s_<wbr>&lt;b&gt;<wbr></span>");
    lk_text_free(&out);
    lk_free(view);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_says_how_far_the_run_is),
        cmocka_unit_test(shards_are_put_together),
        cmocka_unit_test(pictures_of_the_run_alone_are_shown),
        cmocka_unit_test(strangers_and_writes_are_refused),
        cmocka_unit_test(what_is_in_hand_is_shown),
        cmocka_unit_test(a_run_goes_on_beside_it),
        cmocka_unit_test(numbers_are_grouped_and_names_break),
    };
    return cmocka_run_group_tests(tests, make, end);
}
