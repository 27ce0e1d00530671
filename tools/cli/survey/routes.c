#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "eval/data/data.h"
#include "tools/cli/survey/http.h"

/* Where a participant stands: no page behind it opens. */
static const char *stage(const struct survey_page *p) {
    bool consent_next = !p->who.consented && (p->study->consent_first || p->who.guided);
    if (p->who.submitted) return "/done";
    if (consent_next) return "/consent";
    if (!p->who.guided) return "/guide";
    return "/tasks";
}

/* The platform's id in a link or form; "" without. *usable: it may enter with what it brings. */
static const char *id_in(const struct survey_page *p, const struct survey_form *form, bool *usable) {
    static const char *const names[] = {"PROLIFIC_PID", "workerId"};
    char signature[33];
    const char *id = "";
    for (int i = 0; i < 2 && !*id; i++) id = survey_form_value(form, names[i]);
    *usable = lk_survey_id_is_valid(id);
    if (!*usable || !p->study->signed_links) return id;
    lk_survey_link(p->server->survey, id, signature);
    *usable = lk_survey_same(survey_form_value(form, "sig"), signature);
    return id;
}

/* Looking at a link changes nothing: mail scanners and previews do it too. */
static enum lk_code welcome(struct survey_page *p) {
    bool usable;
    const char *id = id_in(p, p->query, &usable);
    bool looks = !strcmp(survey_form_value(p->query, "assignmentId"), "ASSIGNMENT_ID_NOT_AVAILABLE"); /* MTurk */
    if (!*id || looks || p->server->preview) return page_welcome(p, NULL, false);
    return usable ? page_welcome(p, id, false) : page_welcome(p, NULL, true);
}

/* Whether the address has entered seldom enough in this hour. */
static bool may_enter(const struct survey_page *p) {
    struct survey_entries *e = p->server->entries;
    if (!e || !p->address) return true;
    int64_t hour = p->now / (3600 * 1000);
    if (e->hour != hour) *e = (struct survey_entries){.hour = hour};
    return e->n[p->address * 2654435761u % SURVEY_ADDRESSES]++ < SURVEY_ENTRIES_OF_ADDRESS;
}

static enum lk_code enter(struct survey_page *p) {
    bool usable, refuses;
    const char *id = id_in(p, p->form, &usable);
    if (!usable || p->server->preview) return page_welcome(p, NULL, true);
    if (!may_enter(p)) return page_refused(p, 429, "too_many");
    LK_TRY(lk_survey_refuses(p->server->survey, id, p->now, &refuses));
    if (refuses) return page_blocked(p);
    enum lk_code rc = lk_survey_enter(p->server->survey, id, false, p->now, p->reply->cookie);
    if (rc == LK_E_INPUT) {
        *p->reply->cookie = '\0';
        return page_refused(p, 429, "too_many");
    }
    LK_TRY(rc);
    LK_TRY(lk_survey_visitor(p->server->survey, p->reply->cookie, p->now, &p->who));
    return page_go(p, stage(p));
}

static enum lk_code file_of_ours(struct survey_page *p, const char *name, const char *type) {
    struct lk_data_file file;
    if (!lk_data_find(name, &file)) return page_refused(p, 404, "not_found");
    p->reply->type = type;
    p->reply->may_be_kept = true;
    lk_text_bytes(&p->reply->body, file.text, file.n_bytes);
    return p->reply->body.rc;
}

static enum lk_code post_guide(struct survey_page *p) {
    int n_practised;
    LK_TRY(lk_survey_practised(p->server->survey, &p->who, &n_practised));
    if (n_practised < (int)p->study->n_tutorial) return page_go(p, "/practice");
    if (!page_guide_check(p)) return page_guide(p, true);
    LK_TRY(lk_survey_guided(p->server->survey, &p->who, !*survey_form_value(p->form, "again"), p->now));
    return page_go(p, "/consent");
}

static enum lk_code post_consent(struct survey_page *p) {
    if (strcmp(survey_form_value(p->form, "adult"), "yes") || strcmp(survey_form_value(p->form, "agree"), "yes"))
        return page_consent(p, true);
    enum lk_code rc = lk_survey_consent(p->server->survey, &p->who, survey_form_value(p->form, "text"), p->now);
    if (rc == LK_E_INPUT) return page_consent(p, true);
    return rc ? rc : page_go(p, "/tasks");
}

static enum lk_code post_tasks(struct survey_page *p) {
    enum lk_survey_verdict verdict;
    char where[32];
    int64_t task = survey_number(survey_form_value(p->form, "task"), 100000);
    LK_TRY(lk_survey_claim(p->server->survey, &p->who, (int)task - 1, p->now, &verdict));
    snprintf(where, sizeof where, "/task/%d", (int)task);
    return verdict ? page_tasks(p, true) : page_go(p, where);
}

/* Answers of one item: a script's request is told how it went, a form's goes on to the next item. */
static enum lk_code post_item(struct survey_page *p, bool script) {
    static const char *const said[] = {"saved", "read_only", "too_early", "forbidden"};
    static const int status[] = {200, 409, 425, 400};
    struct lk_survey_given given[SURVEY_MAX_FIELDS];
    size_t n = 0;
    enum lk_survey_verdict verdict = LK_SURVEY_DONE;
    char where[48];
    int64_t position = survey_number(survey_form_value(p->form, "item"), 100000);
    int64_t lease = survey_number(survey_form_value(p->form, "lease"), INT64_MAX);
    for (int i = 0; i < p->form->n; i++) {
        const struct survey_field *field = &p->form->fields[i];
        if (!strcmp(field->name, "form") || !strcmp(field->name, "lease") || !strcmp(field->name, "item")) continue;
        given[n++] = (struct lk_survey_given){field->name, field->value};
    }
    LK_TRY(lk_survey_answer(p->server->survey, &p->who, lease, (int)position - 1, given, n, p->now, &verdict));
    if (verdict || script) return page_refused(p, status[verdict], said[verdict]);
    snprintf(where, sizeof where, "/task/%d?item=%d", p->who.task + 1, (int)position + 1);
    return page_go(p, where);
}

static enum lk_code post_submit(struct survey_page *p) {
    enum lk_survey_verdict verdict;
    LK_TRY(lk_survey_submit(p->server->survey, &p->who, p->now, &verdict));
    return verdict ? page_refused(p, 409, "incomplete") : page_go(p, "/done");
}

/* /picture/POSITION/KIND of the visitor's own task, /example/NUMBER/KIND of the guide; KIND s, t (second source), a, b.
 */
static enum lk_code picture(struct survey_page *p, bool example, const char *rest) {
    const struct lk_survey_item *item = NULL, **items;
    char number[8], kind = '\0';
    int left_arm = 0;
    size_t digits = strspn(rest, "0123456789");
    if (digits && digits < sizeof number && rest[digits] == '/' && rest[digits + 1] && !rest[digits + 2]) {
        memcpy(number, rest, digits);
        number[digits] = '\0';
        kind = rest[digits + 1];
    }
    int64_t at = kind ? survey_number(number, 100000) - 1 : -1;
    if (example && at >= 0 && at < (int64_t)p->study->n_tutorial) item = &p->study->tutorial[at];
    if (!example && p->who.claim && at >= 0 && at < (int64_t)lk_survey_task_length(p->study, p->who.place)) {
        items = lk_malloc(lk_survey_task_length(p->study, p->who.place) * sizeof *items);
        if (!items) return lk_fail(LK_E_NOMEM, "out of memory for a task");
        enum lk_code rc = lk_survey_task_items(p->study, p->who.worker, p->who.place, items);
        if (!rc) item = items[at];
        lk_free(items);
        LK_TRY(rc);
        LK_TRY(lk_survey_left_arm(p->study, p->who.worker, item, &left_arm));
    }
    const char *const kinds = "satb";
    const int of_kind[] = {LK_PICTURE_SOURCE, LK_PICTURE_EDITED + left_arm, LK_PICTURE_SECOND_SOURCE,
                           LK_PICTURE_PRESERVED - left_arm};
    const char *found = kind ? strchr(kinds, kind) : NULL;
    p->reply->file = item && found ? item->picture[of_kind[found - kinds]] : NULL;
    p->reply->may_be_kept = p->reply->file != NULL;
    return p->reply->file ? LK_OK : page_refused(p, 404, "not_found");
}

static enum lk_code get_task(struct survey_page *p, const char *rest) {
    const char *item = survey_form_value(p->query, "item");
    if (!p->who.claim || survey_number(rest, 100000) != p->who.task + 1) return page_go(p, "/tasks");
    return page_item(p, (int)survey_number(item, 100000) - 1);
}

static enum lk_code get(struct survey_page *p, const char *path) {
    const char *at = stage(p);
    bool inside = !strcmp(at, "/tasks");
    if (!strcmp(path, "/guide")) return strcmp(at, path) ? page_go(p, at) : page_guide(p, false);
    if (!strcmp(path, "/practice")) return strcmp(at, "/guide") ? page_go(p, at) : page_practice(p, false);
    if (!strcmp(path, "/consent")) return strcmp(at, path) ? page_go(p, at) : page_consent(p, false);
    if (!strcmp(path, "/done")) return p->who.n_submitted ? page_done(p) : page_go(p, at);
    if (!strncmp(path, "/example/", 9)) return picture(p, true, path + 9);
    if (!inside && (!strncmp(path, "/task", 5))) return page_go(p, at);
    if (!strcmp(path, "/tasks")) return page_tasks(p, false);
    if (!strncmp(path, "/task/", 6)) return get_task(p, path + 6);
    if (inside && !strncmp(path, "/picture/", 9)) return picture(p, false, path + 9);
    return page_refused(p, 404, "not_found");
}

static enum lk_code post(struct survey_page *p, const char *path, bool script) {
    const char *at = stage(p);
    bool inside = !strcmp(at, "/tasks");
    if (!lk_survey_same(survey_form_value(p->form, "form"), p->form_token)) return page_refused(p, 403, "forbidden");
    if (!strcmp(path, "/leave")) {
        LK_TRY(lk_survey_leave(p->server->survey, p->token));
        return page_left(p);
    }
    if (!strcmp(path, "/guide")) return strcmp(at, path) ? page_go(p, at) : post_guide(p);
    if (!strcmp(path, "/practice")) return strcmp(at, "/guide") ? page_go(p, at) : page_practice(p, true);
    if (!strcmp(path, "/consent")) return strcmp(at, path) ? page_go(p, at) : post_consent(p);
    bool to_task = !strncmp(path, "/task/", 6);
    if (to_task && survey_number(path + 6, 100000) == p->who.task + 1) return post_item(p, script);
    if (inside && (to_task || !strcmp(path, "/submit")) && !p->who.claim) return page_refused(p, 409, "expired");
    if (to_task && script) return page_refused(p, 409, "read_only"); /* of a task that is not this visitor's now */
    if (!inside) return page_go(p, at);
    if (!strcmp(path, "/tasks")) return post_tasks(p);
    if (!strcmp(path, "/submit")) return post_submit(p);
    if (!strcmp(path, "/problem")) {
        LK_TRY(lk_survey_event(p->server->survey, &p->who, "error", p->now));
        return page_refused(p, 200, "reported");
    }
    return page_refused(p, 404, "not_found");
}

static bool starts_with(const char *text, const char *start) { return text && !strncmp(text, start, strlen(start)); }

/* Names are the same in small and capital letters, port 80 is left out, and this machine is "localhost" to itself. */
static bool names_us(const struct survey_server *server, const char *name) {
    size_t n = strcspn(server->host, ":");
    const char *port = server->host + n;
    if (!strncasecmp(name, server->host, n) && (name[n] == ':' || !name[n]))
        name += n;
    else if (server->local && !strncasecmp(name, "localhost", 9))
        name += 9;
    else
        return false;
    return !strcmp(name, port) || (!*name && !strcmp(port, ":80"));
}

/* A page of another origin must neither send forms nor, by a name that leads here, read pages. */
bool survey_is_ours(const struct survey_server *server, const struct survey_request *r) {
    if (!r->host || !names_us(server, r->host)) return false;
    if (!r->origin) return true;
    const char *name = strstr(r->origin, "://");
    return name && names_us(server, name + 3);
}

static enum lk_code route(struct survey_page *p, struct survey_request *r, char *path) {
    bool reads = !strcmp(r->method, "GET") || !strcmp(r->method, "HEAD"), writes = !strcmp(r->method, "POST");
    if (!reads && !writes) return page_refused(p, 405, "not_found");
    if (!survey_is_ours(p->server, r)) return page_refused(p, 421, "forbidden");
    if (reads && !strcmp(path, "/style.css")) return file_of_ours(p, "survey_style", "text/css; charset=utf-8");
    if (reads && !strcmp(path, "/script.js")) return file_of_ours(p, "survey_script", "text/javascript; charset=utf-8");
    if (reads && !strcmp(path, "/")) return welcome(p);
    if (writes && !strcmp(path, "/enter")) return enter(p);
    if (!strncmp(path, "/admin", 6) && (!path[6] || path[6] == '/')) return page_admin_enter(p, r, path);
    if (reads && !strcmp(path, "/favicon.ico")) { /* browsers ask for it; there is none */
        p->reply->status = 204;
        return LK_OK;
    }
    enum lk_code rc = survey_cookie(r->cookie, survey_cookie_name(p->server), p->token)
                          ? lk_survey_visitor(p->server->survey, p->token, p->now, &p->who)
                          : LK_E_NOT_FOUND;
    if (rc == LK_E_NOT_FOUND) return reads ? page_go(p, "/") : page_refused(p, 403, "forbidden");
    LK_TRY(rc);
    lk_survey_form_token(p->server->survey, p->token, p->form_token);
    return reads ? get(p, path) : post(p, path, starts_with(r->accept, "application/json"));
}

enum lk_code survey_respond(const struct survey_server *server, struct survey_request *r, struct survey_reply *reply) {
    struct survey_form query = {.n = 0}, form = {.n = 0};
    struct survey_page p = {.server = server,
                            .study = server->study,
                            .query = &query,
                            .address = r->address,
                            .form = &form,
                            .now = server->now(server->clock),
                            .reply = reply};
    *reply = (struct survey_reply){.status = 200, .type = "text/html; charset=utf-8"};
    char *mark = strchr(r->uri, '?');
    if (mark) *mark = '\0';
    bool urlencoded = !r->content_type || starts_with(r->content_type, "application/x-www-form-urlencoded");
    if ((mark && !survey_form_read(mark + 1, &query)) ||
        (r->body && (!urlencoded || !survey_form_read(r->body, &form))))
        return page_refused(&p, 400, "forbidden");
    return route(&p, r, r->uri);
}
