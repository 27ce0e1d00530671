/* The evaluation page, and the one that the study's team sees. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/study/factors.h"
#include "tools/cli/survey/http.h"

struct item_page {
    struct survey_page *page;
    const struct lk_survey_item *item, *next; /* next: NULL behind the last */
    struct lk_survey_answer *answers;
    size_t n_answers, n_items, first_open;
    struct lk_survey_questions questions;
    int position;
    int64_t lease;
};

static const char *given(const struct item_page *v, const char *key) {
    for (size_t i = 0; i < v->n_answers; i++)
        if (v->answers[i].position == v->position && !strcmp(v->answers[i].key, key)) return v->answers[i].value;
    return "";
}

static void line(const struct item_page *v, const char *name, const char *text) {
    lk_text_add(&v->page->reply->body, "<p><strong>");
    page_say(v->page, name);
    lk_text_add(&v->page->reply->body, "</strong> ");
    lk_text_add(&v->page->reply->body, "<bdi>"); /* a text written from the right turns nothing else round */
    page_text(&v->page->reply->body, text);
    lk_text_add(&v->page->reply->body, "</bdi></p>\n");
}

static void about(const struct item_page *v) {
    const struct lk_survey_item *item = v->item;
    if (v->page->study->experiment == 3 && v->page->study->protocol == LK_PROTOCOL_001 && item->occupation)
        line(v, "occupation", item->occupation);
    else
        line(v, "edit_request", item->prompt);
    if (!v->page->study->show_metadata || item->race < 0) return;
    char *person =
        lk_format("%s, %s, %s", lk_factor_display(LK_FACTOR_RACE, item->race),
                  lk_factor_display(LK_FACTOR_GENDER, item->gender), lk_factor_display(LK_FACTOR_AGE, item->age));
    if (person) line(v, "about_person", person);
    lk_free(person);
}

/* The questions about a picture: 0 or 1, -1 those about all. */
static void questions_about(const struct item_page *v, int picture) {
    for (int i = 0; i < v->questions.n; i++)
        if (v->questions.list[i].picture == picture)
            page_question(v->page, &v->questions.list[i], "", given(v, v->questions.list[i].key));
}

/* Where each protocol prints what was asked for: above the pictures, or as a caption of the source. */
static bool is_asked_above(const struct item_page *v) {
    const struct lk_survey_study *study = v->page->study;
    return study->protocol == LK_PROTOCOL_001 || study->experiment == 3;
}

static void body(const struct item_page *v) {
    struct survey_page *p = v->page;
    const struct lk_survey_item *item = v->item;
    bool both = p->study->both_arms && item->kind != LK_SURVEY_CHECK;
    bool three = p->study->experiment != 1 && item->kind != LK_SURVEY_CHECK;
    bool asked_above = item->kind != LK_SURVEY_CHECK && is_asked_above(v);
    if (asked_above) about(v);
    lk_text_add(&p->reply->body, "<div class=\"item%s\">\n",
                item->kind == LK_SURVEY_CHECK ? " one"
                : both                        ? " each"
                : three                       ? " three above"
                                              : " two above");
    for (int k = 0; k < 4; k++) {
        static const int shown[] = {LK_PICTURE_SOURCE, LK_PICTURE_SECOND_SOURCE, LK_PICTURE_EDITED,
                                    LK_PICTURE_PRESERVED};
        if (!item->picture[shown[k]]) continue;
        lk_text_add(&p->reply->body, "<section>\n");
        page_pictures(p, item, "picture", v->position + 1, k);
        if (k == 0 && !asked_above) about(v);
        if (both && k >= 2) questions_about(v, k - 2);
        lk_text_add(&p->reply->body, "</section>\n");
    }
    lk_text_add(&p->reply->body, "</div>\n");
    if (both) return;
    lk_text_add(&p->reply->body, "<div class=\"one\">\n");
    questions_about(v, -1);
    lk_text_add(&p->reply->body, "</div>\n");
}

static void comment_box(const struct item_page *v) {
    lk_text_add(&v->page->reply->body, "<label class=\"box\">");
    page_say(v->page, "comment");
    lk_text_add(&v->page->reply->body, "<textarea name=\"comment\" rows=\"2\" maxlength=\"500\"></textarea></label>\n");
}

static void bar(const struct item_page *v) {
    struct lk_text *out = &v->page->reply->body;
    lk_text_add(out, "<div class=\"bar\">\n");
    if (v->position > 0) {
        lk_text_add(out, "<a class=\"button\" id=\"previous\" href=\"/task/%d?item=%d\">", v->page->who.task + 1,
                    v->position);
        page_say(v->page, "previous");
        lk_text_add(out, "</a>\n");
    }
    lk_text_add(out, "<button class=\"main\" id=\"next\">");
    page_say(v->page, "next");
    lk_text_add(out, "</button>\n<label>%zu/%zu <progress max=\"%zu\" value=\"%zu\"></progress></label>\n",
                v->first_open, v->n_items, v->n_items, v->first_open);
    static const char *const tools[][2] = {
        {"zoom-open", "zoom_open"}, {"flicker", "flicker"}, {"guidelines-open", "guidelines_open"}};
    for (int i = 0; i < 3; i++) {
        lk_text_add(out, "<button type=\"button\" id=\"%s\">", tools[i][0]);
        page_say(v->page, tools[i][1]);
        lk_text_add(out, "</button>\n");
    }
    lk_text_add(out, "<span id=\"status\" role=\"status\"></span>\n</div>\n");
}

static void script_texts(const struct item_page *v) {
    static const char *const names[][2] = {{"saved", "saved"},
                                           {"saving", "saving"},
                                           {"unsaved", "unsaved"},
                                           {"early", "too_early"},
                                           {"read-only", "read_only"}};
    struct lk_text *out = &v->page->reply->body;
    lk_text_add(out, "<form method=\"post\" id=\"item\" action=\"/task/%d\"", v->page->who.task + 1);
    for (int i = 0; i < 5; i++) {
        lk_text_add(out, " data-%s=\"", names[i][0]);
        page_say(v->page, names[i][1]);
        lk_text_add(out, "\"");
    }
    lk_text_add(out,
                ">\n<input type=\"hidden\" name=\"form\" value=\"%s\">\n<input type=\"hidden\" name=\"lease\" "
                "value=\"%lld\">\n<input type=\"hidden\" name=\"item\" value=\"%d\">\n",
                v->page->form_token, (long long)v->lease, v->position + 1);
}

/* What stands behind the form: submission, keys, the report of a problem, the next item's pictures. */
static void foot(const struct item_page *v) {
    struct survey_page *p = v->page;
    struct lk_text *out = &p->reply->body;
    lk_text_add(out, "<dialog id=\"guidelines\" aria-labelledby=\"guidelines-title\">\n<h2 id=\"guidelines-title\">");
    page_say(p, "guidelines_title");
    lk_text_add(out, "</h2>\n");
    page_guidelines(p, &v->questions, v->item);
    lk_text_add(out, "<form method=\"dialog\"><button>");
    page_say(p, "guidelines_close");
    lk_text_add(out, "</button></form>\n</dialog>\n<dialog id=\"zoom\" tabindex=\"0\" aria-label=\"");
    page_say(p, "zoom_title");
    lk_text_add(out, "\"></dialog>\n<details id=\"keys\"><summary>");
    page_say(p, "keys_title");
    lk_text_add(out, "</summary><p>");
    page_say(p, "guide_keys");
    lk_text_add(out, "</p><label class=\"box\"><input type=\"checkbox\" id=\"keys-on\" checked=\"checked\">");
    page_say(p, "keys_on");
    lk_text_add(out, "</label></details>\n");
    page_form(p, "/problem", "");
    lk_text_add(out, "<button>");
    page_say(p, "report_error");
    lk_text_add(out, "</button>\n</form>\n");
    for (int k = 0; k < 4 && v->next; k++)
        if (v->next->picture[(const int[]){0, 3, 1, 2}[k]])
            lk_text_add(out, "<link rel=\"prefetch\" href=\"/picture/%d/%c\">\n", v->position + 2, "stab"[k]);
    lk_text_add(out, "<script src=\"/script.js\"></script>\n");
}

static enum lk_code complete(struct survey_page *p) {
    page_begin(p, "submit", "narrow");
    page_form(p, "/submit", "");
    lk_text_add(&p->reply->body, "<button class=\"main\">");
    page_say(p, "submit");
    lk_text_add(&p->reply->body, "</button>\n</form>\n");
    page_end(p);
    return p->reply->body.rc;
}

static enum lk_code show(struct item_page *v) {
    struct survey_page *p = v->page;
    if (v->position < 0) v->position = (int)v->first_open;
    if (v->position >= (int)v->n_items) v->position = (int)(v->first_open < v->n_items ? v->first_open : v->n_items);
    if (v->position == (int)v->n_items) return complete(p);
    const struct lk_survey_item **items = lk_malloc(v->n_items * sizeof *items);
    if (!items) return lk_fail(LK_E_NOMEM, "out of memory for a page");
    enum lk_code rc = lk_survey_task_items(p->study, p->who.worker, p->who.task, items);
    if (!rc) v->item = items[v->position];
    if (!rc && v->position + 1 < (int)v->n_items) v->next = items[v->position + 1];
    lk_free(items);
    if (!rc) rc = lk_survey_show(p->server->survey, &p->who, v->position, p->now, &v->lease);
    if (!rc && !v->lease) return page_refused(p, 409, "expired");
    if (!rc) rc = lk_survey_questions_of(p->study, v->item, &v->questions);
    if (rc) return rc;
    page_begin(p, v->item->kind == LK_SURVEY_CHECK ? "check_title" : "welcome_title", "evaluation");
    script_texts(v);
    body(v);
    if (p->study->comments && v->item->kind != LK_SURVEY_CHECK) comment_box(v);
    bar(v);
    lk_text_add(&p->reply->body, "</form>\n");
    foot(v);
    page_end(p);
    lk_survey_questions_free(&v->questions);
    return p->reply->body.rc;
}

enum lk_code page_item(struct survey_page *p, int position) {
    struct item_page v = {.page = p, .position = position, .n_items = lk_survey_task_length(p->study, p->who.task)};
    enum lk_code rc = lk_survey_answers(p->server->survey, &p->who, &v.answers, &v.n_answers, &v.first_open);
    if (!rc) rc = show(&v);
    lk_free(v.answers);
    return rc;
}

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

enum lk_code page_admin(struct survey_page *p) {
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
        lk_text_add(out, "<button>");
        page_say(p, "admin_leave");
        lk_text_add(out, "</button>\n</form>\n");
    }
    page_end(p);
    return out->rc;
}
