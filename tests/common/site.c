#include "tests/common/site.h"

#include "engine/base/alloc.h"
#include "tests/common/test.h"

static int64_t clock_of(void *context) { return *(int64_t *)context; }

void site_serve(struct site *s) {
    s->server = (struct survey_server){
        .respond = survey_respond, .survey = s->t.survey, .study = s->t.study, .now = clock_of, .clock = &s->now};
    assert_ok(survey_listen(&s->listener, &s->server, "127.0.0.1", 0));
    s->port = survey_port(s->listener);
}

void site_open(struct site *s, const char *name, int n_items, const char *more) {
    memset(s, 0, sizeof *s);
    s->now = SITE_START;
    test_survey_open(&s->t, name, n_items, more);
    site_serve(s);
}

void site_close(struct site *s) {
    survey_stop(s->listener);
    test_survey_close(&s->t);
}

/* headers: further lines, each with its end. body NULL: a GET. */
char *site_ask(const struct visitor *v, const char *path, const char *headers, const char *body) {
    char cookie[120] = "";
    if (*v->cookie) snprintf(cookie, sizeof cookie, "Cookie: survey-%d=%s\r\n", v->site->port, v->cookie);
    char *request = lk_format("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n%s%s",
                              body ? "POST" : "GET", path, v->site->port, cookie, headers);
    char *whole = body ? lk_format("%sContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
                                   request, strlen(body), body)
                       : lk_format("%s\r\n", request);
    assert_non_null(whole);
    char *reply = test_http(v->site->port, whole, strlen(whole));
    lk_free(request);
    lk_free(whole);
    return reply;
}

int site_status_of(const char *reply) { return strncmp(reply, "HTTP/1.1 ", 9) ? 0 : atoi(reply + 9); }

void site_expect(const struct visitor *v, const char *path, const char *headers, const char *body, int status,
                 const char *part) {
    char *reply = site_ask(v, path, headers, body);
    if (site_status_of(reply) != status || !strstr(reply, part))
        fail_msg("%s: expected %d and \"%s\", got %.1500s", path, status, part, reply);
    free(reply);
}

/* A page as every page must be: nothing from elsewhere, the headers that hold a browser to it. */
void site_expect_page(const struct visitor *v, const char *path) {
    char *reply = site_ask(v, path, "", NULL), *body = strstr(reply, "\r\n\r\n");
    assert_int_equal(site_status_of(reply), 200);
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

void site_take(const char *from, const char *mark, size_t n, char *out) {
    const char *at = strstr(from, mark);
    if (!at) fail_msg("no %s in %.800s", mark, from);
    snprintf(out, n, "%s", at + strlen(mark));
    out[strcspn(out, "\";&")] = '\0';
}

char *site_post_entry(const struct site *site, const char *query) {
    struct visitor nobody = {.site = site};
    return site_ask(&nobody, "/enter", "", query);
}

void site_enter(struct visitor *v, const struct site *site, const char *query) {
    char path[200], mark[60];
    *v = (struct visitor){.site = site};
    snprintf(path, sizeof path, "/?%s", query);
    char *reply = site_ask(v, path, "", NULL); /* looking changes nothing */
    assert_int_equal(site_status_of(reply), 200);
    assert_null(strstr(reply, "Set-Cookie"));
    assert_non_null(strstr(reply, "action=\"/enter\""));
    free(reply);
    reply = site_post_entry(site, query);
    assert_int_equal(site_status_of(reply), 303);
    assert_non_null(strstr(reply, "; HttpOnly; SameSite=Strict; Path=/"));
    snprintf(mark, sizeof mark, "Set-Cookie: survey-%d=", site->port);
    site_take(reply, mark, sizeof v->cookie, v->cookie);
    free(reply);
    reply = site_ask(v, site->t.study->consent_first ? "/consent" : "/guide", "", NULL);
    if (!strstr(reply, "303 ")) site_take(reply, "name=\"form\" value=\"", sizeof v->form, v->form);
    free(reply);
}

void site_post(const struct visitor *v, const char *path, const char *fields, int status, const char *part) {
    char body[2000];
    snprintf(body, sizeof body, "form=%s&%s", v->form, fields);
    site_expect(v, path, "Accept: application/json\r\n", body, status, part);
}

void site_consent(const struct visitor *v) {
    char sha256[65], body[200];
    site_post(v, "/guide", "check.answer=4&seen=yes", 303, "Location: /consent");
    char *reply = site_ask(v, "/consent", "", NULL);
    site_take(reply, "name=\"text\" value=\"", sizeof sha256, sha256);
    free(reply);
    snprintf(body, sizeof body, "text=%s&adult=yes", sha256);
    site_post(v, "/consent", body, 200, "Both boxes");
    snprintf(body, sizeof body, "text=%s&adult=yes&agree=yes", sha256);
    site_post(v, "/consent", body, 303, "Location: /tasks");
    if (!v->site->t.study->consent_first) return;
    site_expect(v, "/tasks", "", NULL, 303, "Location: /guide");
    site_post(v, "/guide", "", 303, "Location: /consent");
}
