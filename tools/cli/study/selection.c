/* serve selection: the pages on this machine alone, for who has the token. */
#include "tools/cli/study/selection.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/data/data.h"
#include "eval/survey/store.h"
#include "tools/cli/cli.h"
#include "tools/cli/core/signals.h"
#include "tools/cli/study/study.h"

static const char address[] = "127.0.0.1";

static enum lk_code go(struct survey_reply *reply, int source) {
    reply->status = 303;
    snprintf(reply->location, sizeof reply->location, "/cell/%d", source + 1);
    return LK_OK;
}

static enum lk_code refuse(struct survey_reply *reply, int status, const char *said) {
    reply->status = status;
    selection_refused(said, &reply->body);
    return reply->body.rc;
}

/* The cell in "/cell/12"; -1 for none. */
static int cell_of(const char *text) { return (int)survey_number(text, LK_N_SOURCES) - 1; }

static enum lk_code picture(const struct selection_server *s, const char *rest, struct survey_reply *reply) {
    char number[4] = "";
    size_t digits = strspn(rest, "0123456789");
    if (digits && digits < sizeof number) memcpy(number, rest, digits);
    int source = cell_of(number), pool = rest[digits] == '/' ? (int)survey_number(rest + digits + 1, LK_N_POOLS) : -1;
    if (source < 0 || pool < 1) return refuse(reply, 404, "There is no such picture.");
    reply->file = s->pictures[source][pool - 1];
    reply->may_be_kept = true;
    return LK_OK;
}

static enum lk_code file_of_ours(const char *name, const char *type, struct survey_reply *reply) {
    struct lk_data_file file;
    if (!lk_data_find(name, &file)) return refuse(reply, 404, "There is no such page.");
    reply->type = type;
    lk_text_bytes(&reply->body, file.text, file.n_bytes);
    return reply->body.rc;
}

static enum lk_code get(const struct selection_server *s, const char *path, struct survey_reply *reply) {
    int source = !strncmp(path, "/cell/", 6) ? cell_of(path + 6) : -1;
    if (!strcmp(path, "/style.css")) return file_of_ours("selection_style", "text/css; charset=utf-8", reply);
    if (!strcmp(path, "/script.js")) return file_of_ours("selection_script", "text/javascript; charset=utf-8", reply);
    if (!strcmp(path, "/")) return go(reply, selection_next_open(s->selection, 0));
    if (!strncmp(path, "/picture/", 9)) return picture(s, path + 9, reply);
    if (source < 0) return refuse(reply, 404, "There is no such page.");
    selection_page(s, source, &reply->body);
    return reply->body.rc;
}

/* One of a cell is chosen at most: choosing takes back what was. */
static enum lk_code choose(struct selection_server *s, struct lk_selection_action *action) {
    for (int v = 1; v <= LK_N_POOLS; v++) {
        const struct lk_candidate *c = lk_selection_candidate(s->selection, action->source, v);
        struct lk_selection_action back = *action;
        if (!c->chosen) continue;
        back.kind = LK_SELECT_UNCHOOSE, back.pool = v;
        memcpy(back.criteria, c->criteria, sizeof back.criteria);
        LK_TRY(lk_selection_act(s->selection, &back));
    }
    return lk_selection_act(s->selection, action);
}

static enum lk_code act(struct selection_server *s, const struct survey_form *form, const char *time,
                        struct survey_reply *reply) {
    struct lk_selection_action a = {.time = time, .actor = s->actor, .kind = LK_N_SELECTION_KINDS, .note = ""};
    a.source = cell_of(survey_form_value(form, "cell"));
    a.pool = (int)survey_number(survey_form_value(form, "pool"), LK_N_POOLS);
    for (int i = 0; i < LK_N_CRITERIA; i++) a.criteria[i] = !strcmp(survey_form_value(form, lk_criteria[i]), "yes");
    for (int k = 0; k < LK_N_SELECTION_KINDS; k++)
        if (!strcmp(survey_form_value(form, "action"), lk_selection_kinds[k])) a.kind = (enum lk_selection_kind)k;
    if (a.source < 0 || a.pool < 1 || a.kind == LK_N_SELECTION_KINDS)
        return refuse(reply, 400, "This form is not of the selection.");
    if (a.kind == LK_SELECT_NOTE) a.note = survey_form_value(form, "note");
    enum lk_code rc = a.kind == LK_SELECT_CHOOSE ? choose(s, &a) : lk_selection_act(s->selection, &a);
    if (rc == LK_E_INPUT) return refuse(reply, 409, lk_error_text());
    if (rc) return rc;
    return go(reply, a.kind == LK_SELECT_CHOOSE ? selection_next_open(s->selection, a.source) : a.source);
}

static enum lk_code post(struct selection_server *s, const char *path, const struct survey_form *form, int64_t now,
                         struct survey_reply *reply) {
    char text[32];
    int source;
    time_t seconds = (time_t)(now / 1000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (!lk_survey_same(survey_form_value(form, "form"), s->form_token))
        return refuse(reply, 403, "This form is not of the selection.");
    if (!strcmp(path, "/act")) return act(s, form, text, reply);
    if (strcmp(path, "/undo")) return refuse(reply, 404, "There is no such page.");
    enum lk_code rc = lk_selection_undo(s->selection, text, s->actor, &source);
    if (rc == LK_E_INPUT) return refuse(reply, 409, lk_error_text());
    return rc ? rc : go(reply, source);
}

static enum lk_code route(struct selection_server *s, const struct survey_server *server, struct survey_request *r,
                          const struct survey_form *query, const struct survey_form *form, struct survey_reply *reply) {
    bool reads = !strcmp(r->method, "GET") || !strcmp(r->method, "HEAD"), writes = !strcmp(r->method, "POST");
    char cookie[SURVEY_COOKIE_BYTES + 1];
    if (!reads && !writes) return refuse(reply, 405, "There is no such page.");
    if (!survey_is_ours(server, r)) return refuse(reply, 421, "This is not the address of the selection.");
    if (reads && lk_survey_same(survey_form_value(query, "token"), s->token)) {
        snprintf(reply->cookie, sizeof reply->cookie, "%s", s->token);
        return go(reply, selection_next_open(s->selection, 0));
    }
    if (!survey_cookie(r->cookie, cookie) || !lk_survey_same(cookie, s->token))
        return refuse(reply, 403, "Open the link with the token that 'likeness serve selection' has printed.");
    return reads ? get(s, r->uri, reply) : post(s, r->uri, form, server->now(server->clock), reply);
}

enum lk_code selection_respond(const struct survey_server *server, struct survey_request *r,
                               struct survey_reply *reply) {
    struct selection_server *s = server->context;
    struct survey_form query = {.n = 0}, form = {.n = 0};
    *reply = (struct survey_reply){.status = 200, .type = "text/html; charset=utf-8"};
    char *mark = strchr(r->uri, '?');
    if (mark) *mark = '\0';
    if ((mark && !survey_form_read(mark + 1, &query)) || (r->body && !survey_form_read(r->body, &form)))
        return refuse(reply, 400, "This form is not of the selection.");
    pthread_mutex_lock(&s->lock);
    enum lk_code rc = route(s, server, r, &query, &form, reply);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* Pictures lie in the folder of the pools, links followed: nothing else of this machine is shown. */
static enum lk_code find_pictures(struct selection_server *s, const char *pools) {
    char whole[PATH_MAX], folder[PATH_MAX];
    const char *slash = strrchr(pools, '/');
    char *beside = slash ? lk_strndup(pools, (size_t)(slash - pools) + 1) : lk_strdup(".");
    const char *real = beside ? realpath(beside, folder) : NULL;
    if (!real) {
        lk_free(beside);
        return lk_fail(LK_E_NOT_FOUND, "%s: its folder cannot be found", pools);
    }
    enum lk_code rc = LK_OK;
    for (int i = 0; i < LK_N_SOURCES * LK_N_POOLS && !rc; i++) {
        const char *file = lk_selection_candidate(s->selection, i / LK_N_POOLS, i % LK_N_POOLS + 1)->file;
        char *path = *file == '/' ? lk_strdup(file) : lk_format("%s/%s", beside, file);
        size_t n = strlen(folder);
        if (!path || !realpath(path, whole))
            rc = lk_fail(LK_E_NOT_FOUND, "%s: no picture %.200s", pools, file);
        else if (strncmp(whole, folder, n) || whole[n] != '/')
            rc = lk_fail(LK_E_ESCAPES, "%s: picture %.200s lies outside its folder", pools, file);
        else if (!(s->pictures[i / LK_N_POOLS][i % LK_N_POOLS] = lk_strdup(whole)))
            rc = lk_fail(LK_E_NOMEM, "serve selection: out of memory");
        lk_free(path);
    }
    lk_free(beside);
    return rc;
}

static int64_t wall_clock(void *context) {
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static enum lk_code serve(struct selection_server *s, int port) {
    struct survey_server server = {.respond = selection_respond, .context = s, .now = wall_clock};
    struct survey_listener *listener;
    LK_TRY(survey_listen(&listener, &server, address, port));
    cli_signals_install();
    printf("http://%s:%d/?token=%s\n", address, survey_port(listener), s->token);
    fflush(stdout);
    while (!cli_signals_check()) usleep(100000);
    survey_stop(listener);
    return LK_OK;
}

enum lk_code study_serve_selection(const struct cli_arguments *a) {
    if (a->survey.bind && strcmp(a->survey.bind, address))
        return lk_fail(LK_E_USAGE, "--bind: serve selection shows portraits to this machine alone: leave it out");
    struct selection_server *s = lk_calloc(1, sizeof *s);
    if (!s) return lk_fail(LK_E_NOMEM, "serve selection: out of memory");
    pthread_mutex_init(&s->lock, NULL);
    s->actor = a->stats.by ? a->stats.by : "";
    enum lk_code rc = study_selection_open(a->more[0], "serve selection", &s->selection);
    if (!rc) rc = find_pictures(s, a->more[0]);
    if (!rc) rc = lk_survey_token(s->token);
    if (!rc) lk_sha256(s->token, 64, s->form_token);
    if (!rc) rc = serve(s, (int)a->survey.port);
    for (int i = 0; i < LK_N_SOURCES * LK_N_POOLS; i++) lk_free(s->pictures[i / LK_N_POOLS][i % LK_N_POOLS]);
    lk_selection_close(s->selection);
    pthread_mutex_destroy(&s->lock);
    lk_free(s);
    return rc;
}
