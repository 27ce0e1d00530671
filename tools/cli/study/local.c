#include "tools/cli/study/live.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "engine/image/image.h"
#include "eval/data/data.h"
#include "eval/survey/store.h"
#include "tools/cli/cli.h"
#include "tools/cli/study/runner.h"

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

/* The page of a run. A script fetches it again every few seconds; without one the browser does. */

/* One line of the list. */
static void live_failure(struct lk_text *out, const char *name, const char *error, int attempts) {
    page_html(out, "<li><b>%s</b> tried %d time%s: %s</li>\n", name, attempts, attempts == 1 ? "" : "s", error);
}

static void add_duration(struct lk_text *out, double seconds) {
    char text[32];
    lk_log_duration(seconds > 0 ? seconds : 0, text);
    lk_text_add(out, "%s", text);
}

/* 5,040 */
static const char *grouped(int64_t n, char out[32]) {
    if (n < 1000)
        snprintf(out, 32, "%d", (int)n);
    else if (n < 1000000)
        snprintf(out, 32, "%d,%03d", (int)(n / 1000), (int)(n % 1000));
    else
        snprintf(out, 32, "%lld,%03d,%03d", (long long)(n / 1000000), (int)(n / 1000 % 1000), (int)(n % 1000));
    return out;
}

static void add_summary(struct lk_text *out, const struct live_view *v) {
    const struct lk_journal_counts *c = &v->counts;
    int64_t left = c->all[LK_JOB_QUEUED] + c->all[LK_JOB_LEASED];
    char a[32], b[32];
    lk_text_add(out, "<p role=\"status\">%s of %s pictures", grouped(c->all[LK_JOB_DONE], a), grouped(c->total, b));
    if (c->all[LK_JOB_FAILED]) lk_text_add(out, ", %s failed", grouped(c->all[LK_JOB_FAILED], a));
    if (c->all[LK_JOB_REFUSED]) lk_text_add(out, ", %s refused", grouped(c->all[LK_JOB_REFUSED], a));
    if (!left) lk_text_add(out, ". The run has ended.");
    if (left && v->per_hour > 0) {
        if (v->per_hour < 10)
            lk_text_add(out, "; %.1f an hour, ", v->per_hour);
        else
            lk_text_add(out, "; %s an hour, ", grouped((int64_t)(v->per_hour + 0.5), a));
        add_duration(out, 3600 * (double)left / v->per_hour);
        lk_text_add(out, " left");
    }
    if (left && v->n_latest) {
        lk_text_add(out, "; the last one ");
        add_duration(out, (double)(v->now_ms - v->latest[0].ended_ms) / 1000);
        lk_text_add(out, " ago");
    }
    lk_text_add(out, "</p>");
}

static void add_models(struct lk_text *out, const struct lk_journal_counts *c) {
    lk_text_add(out,
                "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Pictures by model\"><table>\n"
                "<thead><tr><th scope=\"col\">Model</th><th scope=\"col\">Made</th><th scope=\"col\">Failed</th><th "
                "scope=\"col\">In hand</th><th scope=\"col\">Waiting</th><th scope=\"col\">Seconds each</th><th "
                "scope=\"col\">Share made</th></tr></thead>\n<tbody>\n");
    for (int m = 0; m < LK_JOURNAL_MAX_MODELS; m++) {
        const int64_t *of = c->of[m], n = study_nominal(of);
        const int64_t cells[] = {of[LK_JOB_FAILED], of[LK_JOB_LEASED], of[LK_JOB_QUEUED]};
        const char *name = c->keys[m];
        char text[32], all[32];
        if (!n) continue;
        lk_text_add(out, "<tr><th scope=\"row\">%s</th><td>%s of %s</td>", name, grouped(of[LK_JOB_DONE], text),
                    grouped(n, all));
        for (int k = 0; k < 3; k++) lk_text_add(out, "<td>%s</td>", grouped(cells[k], text));
        if (of[LK_JOB_DONE])
            lk_text_add(out, "<td>%.3g</td>", c->seconds[m] / (double)of[LK_JOB_DONE]);
        else
            lk_text_add(out, "<td>–</td>");
        lk_text_add(out, "<td><progress value=\"%lld\" max=\"%lld\" aria-label=\"%s\"></progress></td></tr>\n",
                    (long long)of[LK_JOB_DONE], (long long)n, name);
    }
    lk_text_add(out, "</tbody>\n</table></div>\n");
}

/* A line may break behind each underscore. */
static void add_name(struct lk_text *out, const char *name) {
    for (const char *end = name; *name; name = end) {
        char part[LK_STUDY_NAME_BYTES];
        end += strcspn(end, "_");
        end += *end == '_';
        snprintf(part, sizeof part, "%.*s", (int)(end - name), name);
        page_html(out, "%s<wbr>", part);
    }
}

static void add_preview(struct lk_text *out, const struct live_view *v) {
    lk_text_add(out, "<h2>In hand</h2>\n<ul class=\"pictures\"><li><img src=\"/preview?v=%lld\" alt=\"\"><span>",
                (long long)v->preview_ms);
    page_text(out, v->preview);
    lk_text_add(out, "</span></li></ul>\n");
}

static void add_pictures(struct lk_text *out, const struct live_view *v) {
    lk_text_add(out, "<h2>Latest pictures</h2>\n");
    if (!v->n_latest) lk_text_add(out, "<p>There is none yet.</p>\n");
    lk_text_add(out, "<ul class=\"pictures\">\n");
    for (int i = 0; i < v->n_latest; i++) {
        const struct live_picture *p = &v->latest[i];
        lk_text_add(out, "<li><a href=\"/picture/%lld?v=%s\"><img src=\"/picture/%lld?v=%s\" alt=\"\"><span>",
                    (long long)p->index, p->digest, (long long)p->index, p->digest);
        add_name(out, p->name);
        lk_text_add(out, "</span></a></li>\n");
    }
    lk_text_add(out, "</ul>\n");
}

void live_page(const struct live_site *site, const struct live_view *v, struct lk_text *out) {
    const struct lk_journal_counts *c = &v->counts;
    char title[100];
    snprintf(title, sizeof title, "%lld of %lld pictures", (long long)c->all[LK_JOB_DONE], (long long)c->total);
    local_begin(out, title, true);
    page_html(out, "<header><h1>%s</h1>", site->folder);
    add_summary(out, v);
    lk_text_add(out, "<p id=\"said\" role=\"alert\"></p></header>\n<main>\n");
    add_models(out, c);
    if (v->n_failures) {
        char n[32];
        lk_text_add(out, "<h2>Failed: %s%s</h2>\n<ul class=\"failures\">\n%s</ul>\n", grouped(v->n_failures, n),
                    v->n_failures > LIVE_FAILURES ? ", the first of them" : "", v->failures.bytes);
    }
    if (*v->preview) add_preview(out, v);
    add_pictures(out, v);
    lk_text_add(out, "</main>\n<script src=\"/script.js\"></script>\n</body>\n</html>\n");
}

enum { RATE_PICTURES = 400, RATE_MS = 3600 * 1000 };

/* What one journal adds to a view. */
struct gathered {
    struct live_view *view;
    int n; /* pictures of the last hour */
    int64_t first_ms;
};

static int64_t ended_ms(const struct lk_journal_row *row) {
    return row->made.started_ms + (int64_t)(1000 * row->made.seconds);
}

/* The view's pictures in order of their end; the row is one of them, or older than all. */
static enum lk_code add_picture(void *context, const struct lk_journal_row *row) {
    struct gathered *g = context;
    struct live_view *v = g->view;
    int64_t ended = ended_ms(row);
    if (ended >= v->now_ms - RATE_MS) {
        g->n++;
        if (g->first_ms > row->made.started_ms) g->first_ms = row->made.started_ms;
    }
    int at = v->n_latest;
    while (at && v->latest[at - 1].ended_ms < ended) at--;
    if (at == LIVE_PICTURES) return LK_OK;
    int n_behind = (v->n_latest < LIVE_PICTURES ? v->n_latest : LIVE_PICTURES - 1) - at;
    memmove(&v->latest[at + 1], &v->latest[at], (size_t)n_behind * sizeof *v->latest);
    struct live_picture *p = &v->latest[at];
    *p = (struct live_picture){.index = row->entry.index, .ended_ms = ended};
    snprintf(p->name, sizeof p->name, "%s", row->entry.name);
    snprintf(p->digest, sizeof p->digest, "%.8s", row->made.sha256);
    v->n_latest += v->n_latest < LIVE_PICTURES;
    return LK_OK;
}

static enum lk_code add_failure(void *context, const struct lk_journal_row *row) {
    struct live_view *v = context;
    if (v->n_failures++ < LIVE_FAILURES)
        live_failure(&v->failures, row->entry.name, row->made.error, row->attempts + row->crashes);
    return v->failures.rc;
}

static enum lk_code gather(void *context, struct lk_journal *journal, const char *path) {
    struct gathered g = {.view = context, .first_ms = INT64_MAX};
    (void)path;
    LK_TRY(lk_journal_latest(journal, RATE_PICTURES, add_picture, &g));
    if (g.n) g.view->per_hour += g.n * 3.6e6 / (double)(g.view->now_ms > g.first_ms ? g.view->now_ms - g.first_ms : 1);
    return lk_journal_each(journal, LK_JOB_FAILED, false, add_failure, context);
}

static char *preview_path(const char *folder) { return lk_format("%s/" LIVE_PREVIEW, folder); }

/* What the workers' last step has made, while there is a job in hand. A file that cannot be read shows nothing. */
static void find_preview(const char *folder, struct live_view *v) {
    char *path = preview_path(folder);
    struct stat st;
    struct lk_png_text *texts;
    if (path && v->counts.all[LK_JOB_LEASED] && !lstat(path, &st) && S_ISREG(st.st_mode) &&
        !lk_picture_text_read(path, &texts)) {
        for (const struct lk_png_text *t = texts; t->key; t++)
            if (!strcmp(t->key, "likeness preview")) snprintf(v->preview, sizeof v->preview, "%s", t->text);
        lk_png_text_free(texts);
        v->preview_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    }
    lk_free(path);
}

static enum lk_code overview(const struct live_site *s, struct survey_reply *reply) {
    struct live_view *v = lk_calloc(1, sizeof *v);
    if (!v) return lk_fail(LK_E_NOMEM, "serve study: out of memory");
    v->now_ms = s->now();
    enum lk_code rc = study_count(s->folder, &v->counts);
    if (!rc) rc = study_each_journal(s->folder, gather, v);
    if (!rc) find_preview(s->folder, v);
    if (!rc) live_page(s, v, &reply->body);
    lk_text_free(&v->failures);
    lk_free(v);
    return rc ? rc : reply->body.rc;
}

struct wanted {
    int64_t index;
    char output[2 * LK_STUDY_NAME_BYTES];
};

static enum lk_code keep_output(void *context, const struct lk_journal_row *row) {
    struct wanted *w = context;
    if (row->state == LK_JOB_DONE) snprintf(w->output, sizeof w->output, "%s", row->entry.output);
    return LK_OK;
}

static enum lk_code find_output(void *context, struct lk_journal *journal, const char *path) {
    struct wanted *w = context;
    (void)path;
    return *w->output ? LK_OK : lk_journal_one(journal, w->index, keep_output, w);
}

/* NAME in the run's results, links followed; NULL when it is not there or lies elsewhere. */
static char *find_picture(const char *folder, const char *name) {
    char whole[PATH_MAX], results[PATH_MAX];
    char *above = lk_format("%s/results", folder), *path = lk_format("%s/results/%s", folder, name);
    bool there = above && path && realpath(above, results) && realpath(path, whole);
    size_t n = there ? strlen(results) : 0;
    lk_free(above);
    lk_free(path);
    return there && !strncmp(whole, results, n) && whole[n] == '/' ? lk_strdup(whole) : NULL;
}

static enum lk_code picture(const struct live_site *s, const char *number, struct survey_reply *reply) {
    struct wanted w = {.index = survey_number(number, INT_MAX)};
    if (w.index >= 0) LK_TRY(study_each_journal(s->folder, find_output, &w));
    if (*w.output) reply->path = find_picture(s->folder, w.output);
    if (!reply->path) return local_refuse(&s->site, reply, 404, "There is no such picture.");
    reply->file = reply->path;
    reply->may_be_kept = true;
    return LK_OK;
}

static enum lk_code preview(const struct live_site *s, struct survey_reply *reply) {
    struct live_view *v = lk_calloc(1, sizeof *v);
    if (!v) return lk_fail(LK_E_NOMEM, "serve study: out of memory");
    enum lk_code rc = study_count(s->folder, &v->counts);
    if (!rc) find_preview(s->folder, v);
    const bool there = !rc && *v->preview;
    lk_free(v);
    if (rc) return rc;
    reply->path = there ? preview_path(s->folder) : NULL;
    reply->file = reply->path;
    return there ? LK_OK : local_refuse(&s->site, reply, 404, "There is no such picture.");
}

static enum lk_code get(struct local_site *site, const char *path, struct survey_reply *reply) {
    struct live_site *s = (struct live_site *)site;
    if (!strcmp(path, "/")) return overview(s, reply);
    if (!strcmp(path, "/style.css")) return local_file(site, "live_style", "text/css; charset=utf-8", reply);
    if (!strcmp(path, "/script.js")) return local_file(site, "live_script", "text/javascript; charset=utf-8", reply);
    if (!strcmp(path, "/preview")) return preview(s, reply);
    if (!strncmp(path, "/picture/", 9)) return picture(s, path + 9, reply);
    return local_refuse(site, reply, 404, "There is no such page.");
}

const struct local_site live_local_site = {.name = "run", .command = "serve study", .get = get};

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum lk_code study_serve_run(const struct cli_arguments *a) {
    struct lk_journal_counts counts;
    LK_TRY(local_check_bind(&live_local_site, a->survey.bind));
    if (!a->more[0]) return lk_fail(LK_E_USAGE, "serve study: expected the folder of a run");
    LK_TRY(study_count(a->more[0], &counts));
    struct live_site s = {.site = live_local_site, .folder = a->more[0], .now = now_ms};
    return local_serve(&s.site, (int)a->survey.port);
}
