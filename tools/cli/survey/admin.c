#include <math.h>
#include <string.h>

#include "eval/survey/store.h"
#include "tools/cli/survey/http.h"

static const struct export { const char *path, *type; }
exports[] = {{"/admin/evaluations.csv", "text/csv; charset=utf-8"},
             {"/admin/evaluations.jsonl", "application/x-ndjson"},
             {"/admin/participants.jsonl", "application/x-ndjson"}};
enum { N_EXPORTS = sizeof exports / sizeof *exports };

/* Links to the exports. */
static void page_exports(const struct survey_page *p) {
    lk_text_add(&p->reply->body, "<p>Export:");
    for (int i = 0; i < N_EXPORTS; i++)
        lk_text_add(&p->reply->body, " <a href=\"%s\" download>%s</a>", exports[i].path,
                    exports[i].path + strlen("/admin/"));
    lk_text_add(&p->reply->body, "</p>\n");
}

/* What the study's team sees at /admin. */

/* Who breaks a rule, by the first digits of the hash that exports have in full. */
static void outliers(const struct survey_page *p, const struct lk_survey_counts *n) {
    struct lk_text *out = &p->reply->body;
    const int n_told = n->n_outliers < LK_SURVEY_MAX_OUTLIERS ? n->n_outliers : LK_SURVEY_MAX_OUTLIERS;
    if (!n_told) return;
    lk_text_add(out,
                "<table>\n<tr><th>Outliers: %d, %d shown</th><th>Checks right</th><th>Median time</th><th>Rules</th>"
                "<th>Excluded</th></tr>\n",
                n->n_outliers, n_told);
    for (int i = 0; i < n_told; i++) {
        const struct lk_survey_outlier *one = &n->outliers[i];
        lk_text_add(out, "<tr><td>%.12s</td><td>%d of %d</td>", one->worker, one->n_checks_right, one->n_checks);
        if (isnan(one->median_ms))
            lk_text_add(out, "<td></td><td>");
        else
            lk_text_add(out, "<td>%.1f s</td><td>", one->median_ms / 1000);
        for (int rule = 0, first = 1; rule < LK_N_QUALITY_RULES; rule++)
            if (one->rules >> rule & 1) {
                lk_text_add(out, "%s%s", first ? "" : " ", lk_quality_rule_name(rule));
                first = 0;
            }
        lk_text_add(out, "</td><td>%s</td></tr>\n", one->excluded ? "yes" : "no");
    }
    lk_text_add(out, "</table>\n");
}

static enum lk_code page_admin(struct survey_page *p) {
    struct lk_survey_counts n;
    struct lk_text *out = &p->reply->body;
    LK_TRY(lk_survey_count(p->server->reader ? p->server->reader : p->server->survey, p->now, &n));
    page_begin(p, "admin_title", "narrow");
    lk_text_add(out,
                "<table>\n<tr><th>Participants</th><td>%d</td></tr>\n<tr><th>Refused, on the list of "
                "--block</th><td>%d</td></tr>\n<tr><th>Consented</th><td>%d</td></tr>\n<tr><th>"
                "Places taken</th><td>%d of %d</td></tr>\n<tr><th>Submitted</th><td>%d</td></tr>\n<tr><th>Abandoned"
                "</th><td>%d</td></tr>\n<tr><th>Submitted in 24 hours</th><td>%d</td></tr>\n<tr><th>Attention checks "
                "right</th><td>%d of %d</td></tr>\n<tr><th>Comments</th><td>%d</td></tr>\n<tr><th>Problems reported"
                "</th><td>%d</td></tr>\n</table>\n",
                n.n_participants, n.n_refused, n.n_consented, n.n_open + n.n_submitted,
                p->study->n_tasks * p->study->places, n.n_submitted, n.n_abandoned, n.n_last_day, n.n_checks_right,
                n.n_checks, n.n_comments, n.n_errors);
    if (!isnan(n.median_minutes))
        lk_text_add(out, "<p>A task took %.1f minutes (median of %d); participants are told %s.</p>\n",
                    n.median_minutes, n.n_timed, n.told);
    if (n.time_off)
        lk_text_add(out,
                    "<p class=\"note bad\">Alert: tasks take over 20%% less or more time than participants are told "
                    "(adjust pay and \"minutes\").</p>\n");
    if (n.few_hits)
        lk_text_add(out, "<p class=\"note bad\">Alert: fewer than 5 tasks in 24 hours (consider +$0.25).</p>\n");
    if (n.many_failures)
        lk_text_add(out, "<p class=\"note bad\">Alert: more than 30%% of attention checks failed (revise them).</p>\n");
    if (n.errors) lk_text_add(out, "<p class=\"note bad\">Alert: a technical problem was reported (pause).</p>\n");
    lk_text_add(out, "<table>\n<tr><th>Rule</th><th>What</th><th>Participants of %d</th></tr>\n", n.n_raters);
    for (int i = 0; i < LK_N_QUALITY_RULES; i++)
        lk_text_add(out, "<tr><td>%s</td><td>%s</td><td>%d</td></tr>\n", lk_quality_rule_name(i),
                    lk_quality_rule_text(i), n.n_hit[i]);
    lk_text_add(out, "<tr><td></td><td>excluded, if all ended now</td><td>%d</td></tr>\n</table>\n", n.n_excluded);
    outliers(p, &n);
    page_exports(p);
    lk_text_add(out, "<table>\n<tr><th>Day</th><th>Answers</th><th>Submitted</th></tr>\n");
    for (int i = 0; i < n.n_days; i++)
        lk_text_add(out, "<tr><td>%s</td><td>%d</td><td>%d</td></tr>\n", n.days[i].date, n.days[i].n_answers,
                    n.days[i].n_submitted);
    lk_text_add(out, "</table>\n");
    if (*p->form_token) { /* a session, which can be ended */
        page_form(p, "/admin", "");
        page_add(p, "<button>{admin_leave}</button>\n</form>\n");
    }
    page_end(p);
    return out->rc;
}

/* The way in to /admin: a script brings the store's token as a bearer token, a person types it once into a form and
 * has a session of eight hours. The token never stands in an address. */

enum { SESSION_MS = 8 * 3600 * 1000 };

static struct survey_admin *session_of(const struct survey_page *p, const char *cookie) {
    struct survey_admins *a = p->server->admins;
    for (int i = 0; i < SURVEY_ADMINS; i++)
        if (a->list[i].until > p->now && lk_survey_same(a->list[i].token, cookie)) return &a->list[i];
    return NULL;
}

/* Into the place of the session that ends first. */
static enum lk_code open_session(struct survey_page *p) {
    struct survey_admins *a = p->server->admins;
    struct survey_admin *oldest = a->list;
    char token[65];
    LK_TRY(lk_survey_token(token));
    pthread_mutex_lock(&a->lock);
    for (int i = 1; i < SURVEY_ADMINS; i++)
        if (a->list[i].until < oldest->until) oldest = &a->list[i];
    memcpy(oldest->token, token, sizeof token);
    oldest->until = p->now + SESSION_MS;
    pthread_mutex_unlock(&a->lock);
    memcpy(p->reply->cookie, token, sizeof token);
    return LK_OK;
}

static bool is_open(const struct survey_page *p, const char *cookie, bool close) {
    struct survey_admins *a = p->server->admins;
    pthread_mutex_lock(&a->lock);
    struct survey_admin *session = session_of(p, cookie);
    if (session && close) session->until = 0;
    pthread_mutex_unlock(&a->lock);
    return session != NULL;
}

static enum lk_code login_page(struct survey_page *p, int status, const char *note) {
    p->reply->status = status;
    page_begin(p, "admin_title", "narrow");
    if (note) page_note(p, "note bad", note);
    page_add(p, "<form method=\"post\" action=\"/admin\">\n<label class=\"box\">{admin_token} <input type=\"password\" "
                "name=\"token\" autocomplete=\"off\"></label>\n<button class=\"main\">{start}</button>\n</form>\n");
    page_end(p);
    return p->reply->body.rc;
}

/* As `survey export` writes it, without comments, which may name people. */
static enum lk_code export(struct survey_page *p, int which) {
    struct lk_survey *s = p->server->reader ? p->server->reader : p->server->survey;
    struct lk_text lines = {0}, *out = &p->reply->body;
    p->reply->type = exports[which].type;
    if (which == 2) return lk_survey_export_participants(s, out);
    if (which == 1) return lk_survey_export_answers(s, false, false, out);
    enum lk_code rc = lk_survey_export_answers(s, false, false, &lines);
    if (!rc) rc = lk_survey_csv(&lines, out);
    lk_text_free(&lines);
    return rc;
}

/* What stands behind the door. */
static enum lk_code show(struct survey_page *p, const char *path) {
    for (int i = 0; i < N_EXPORTS; i++)
        if (!strcmp(path, exports[i].path)) return export(p, i);
    return strcmp(path, "/admin") ? page_refused(p, 404, "not_found") : page_admin(p);
}

enum lk_code page_admin_enter(struct survey_page *p, const struct survey_request *r, const char *path) {
    struct lk_survey *s = p->server->survey;
    bool writes = !strcmp(r->method, "POST"), bears = r->authorization && !strncmp(r->authorization, "Bearer ", 7);
    const char *token = bears ? r->authorization + 7 : writes ? survey_form_value(p->form, "token") : "";
    bool inside = p->server->admins && survey_cookie(r->cookie, survey_cookie_name(p->server), p->token) &&
                  is_open(p, p->token, false);
    if (inside) lk_survey_form_token(s, p->token, p->form_token);
    if (inside && writes && !*token) {
        if (!lk_survey_same(survey_form_value(p->form, "form"), p->form_token))
            return page_refused(p, 403, "forbidden");
        is_open(p, p->token, true);
        return page_go(p, "/admin");
    }
    /* The right one opens however many wrong ones strangers have sent: 256 bits are not guessed. */
    if (lk_survey_same(token, lk_survey_admin_token(s))) {
        if (bears && !writes) return show(p, path);
        if (!p->server->admins) return page_refused(p, 403, "forbidden");
        LK_TRY(open_session(p));
        return page_go(p, "/admin");
    }
    if (inside && !writes && !bears) return show(p, path);
    if (!*token && !writes) return login_page(p, 401, NULL);
    bool within = lk_survey_within(s, LK_SURVEY_WRONG_TOKENS, 1, p->now);
    return within ? login_page(p, 401, "admin_wrong") : page_refused(p, 429, "too_many");
}
