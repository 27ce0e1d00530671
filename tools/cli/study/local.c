#include "tools/cli/study/local.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/digest.h"
#include "eval/data/data.h"
#include "eval/survey/store.h"
#include "tools/cli/cli.h"

static const char address[] = "127.0.0.1";

void local_begin(struct lk_text *out, const char *title, bool refresh) {
    page_html(out,
              "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
              "content=\"width=device-width, initial-scale=1\">\n<title>%s",
              title);
    lk_text_add(out, "</title>\n<link rel=\"stylesheet\" href=\"/style.css\">\n%s</head>\n<body>\n",
                refresh ? "<noscript><meta http-equiv=\"refresh\" content=\"15\"></noscript>\n" : "");
}

enum lk_code local_refuse(const struct local_site *site, struct survey_reply *reply, int status, const char *said) {
    reply->status = status;
    local_begin(&reply->body, "Refused", false);
    page_html(&reply->body,
              "<p class=\"said\">%s</p>\n<p class=\"said\"><a href=\"/\">Back to the %s</a></p>\n</body>\n</html>\n",
              said, site->name);
    return reply->body.rc;
}

enum lk_code local_file(const struct local_site *site, const char *name, const char *type, struct survey_reply *reply) {
    struct lk_data_file file;
    if (!lk_data_find(name, &file)) return local_refuse(site, reply, 404, "There is no such page.");
    reply->type = type;
    lk_text_bytes(&reply->body, file.text, file.n_bytes);
    return reply->body.rc;
}

static enum lk_code refuse_form(const struct local_site *site, struct survey_reply *reply, int status) {
    char said[100];
    snprintf(said, sizeof said, "This form is not of the %s.", site->name);
    return local_refuse(site, reply, status, said);
}

static enum lk_code route(struct local_site *s, const struct survey_server *server, struct survey_request *r,
                          const struct survey_form *query, const struct survey_form *form, struct survey_reply *reply) {
    bool reads = !strcmp(r->method, "GET") || !strcmp(r->method, "HEAD"),
         writes = s->post && !strcmp(r->method, "POST");
    char cookie[SURVEY_COOKIE_BYTES + 1], said[160];
    if (!reads && !writes) return local_refuse(s, reply, 405, "There is no such page.");
    snprintf(said, sizeof said, "This is not the address of the %s.", s->name);
    if (!survey_is_ours(server, r)) return local_refuse(s, reply, 421, said);
    if (reads && !strcmp(r->uri, "/favicon.ico")) { /* browsers ask for it; there is none */
        reply->status = 204;
        return LK_OK;
    }
    if (reads && lk_survey_same(survey_form_value(query, "token"), s->token)) {
        snprintf(reply->cookie, sizeof reply->cookie, "%s", s->token);
        reply->status = 303;
        strcpy(reply->location, "/");
        return LK_OK;
    }
    snprintf(said, sizeof said, "Open the link with the token that 'likeness %s' has printed.", s->command);
    if (!survey_cookie(r->cookie, survey_cookie_name(server), cookie) || !lk_survey_same(cookie, s->token))
        return local_refuse(s, reply, 403, said);
    if (reads) return s->get(s, r->uri, reply);
    if (!lk_survey_same(survey_form_value(form, "form"), s->form_token)) return refuse_form(s, reply, 403);
    return s->post(s, r->uri, form, server->now(server->clock), reply);
}

enum lk_code local_respond(const struct survey_server *server, struct survey_request *r, struct survey_reply *reply) {
    struct local_site *s = server->context;
    struct survey_form query = {.n = 0}, form = {.n = 0};
    *reply = (struct survey_reply){.status = 200, .type = "text/html; charset=utf-8"};
    char *mark = strchr(r->uri, '?');
    if (mark) *mark = '\0';
    if ((mark && !survey_form_read(mark + 1, &query)) || (r->body && !survey_form_read(r->body, &form)))
        return refuse_form(s, reply, 400);
    return route(s, server, r, &query, &form, reply);
}

static int64_t wall_clock(void *context) {
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum lk_code local_check_bind(const struct local_site *site, const char *bind) {
    if (!bind || !strcmp(bind, address)) return LK_OK;
    return lk_fail(LK_E_USAGE, "--bind: %s shows portraits to this machine alone: leave it out", site->command);
}

enum lk_code local_serve(struct local_site *site, int port) {
    struct survey_server server = {.respond = local_respond, .context = site, .now = wall_clock};
    struct survey_listener *listener;
    LK_TRY(lk_survey_token(site->token));
    lk_sha256(site->token, 64, site->form_token);
    LK_TRY(survey_listen(&listener, &server, address, port));
    cli_signals_install();
    printf("http://%s:%d/?token=%s\n", address, survey_port(listener), site->token);
    fflush(stdout);
    while (!cli_signals_check()) usleep(100000);
    survey_stop(listener);
    return LK_OK;
}
