/* The evaluation page, and the practice items before it, which look the same. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "eval/study/factors.h"
#include "tools/cli/survey/http.h"

/* What the protocol prints about answering: the guidelines and examples of each question, in the guide and, a key
 * away, on the item page. */

/* Guidelines that tell a rater what the study expects to find are not for raters. */
static bool names_hypothesis(const char *text) { return strstr(text, "stereotyp") || strstr(text, "bias"); }

static void add_point(const struct survey_page *p, const cJSON *point, const char *occupation) {
    const cJSON *sub, *text = cJSON_IsObject(point) ? cJSON_GetObjectItemCaseSensitive(point, "text") : point;
    if (!cJSON_IsString(text) || names_hypothesis(text->valuestring)) return;
    size_t n = occupation ? strlen(occupation) : 0; /* "Doctor: white coat" is no example for a doctor */
    if (n && !strncasecmp(text->valuestring, occupation, n)) return;
    page_add(p, "<li>%s", text->valuestring);
    if (cJSON_IsObject(point)) {
        lk_text_add(&p->reply->body, "<ul>\n");
        cJSON_ArrayForEach(sub, cJSON_GetObjectItemCaseSensitive(point, "sub")) add_point(p, sub, occupation);
        lk_text_add(&p->reply->body, "</ul>\n");
    }
    lk_text_add(&p->reply->body, "</li>\n");
}

static void add_points(const struct survey_page *p, const cJSON *list, const char *occupation) {
    const cJSON *one;
    if (!cJSON_GetArraySize(list)) return;
    lk_text_add(&p->reply->body, "<ul>\n");
    cJSON_ArrayForEach(one, list) add_point(p, one, occupation);
    lk_text_add(&p->reply->body, "</ul>\n");
}

void page_guidelines(const struct survey_page *p, const struct lk_survey_questions *questions,
                     const struct lk_survey_item *item) {
    const cJSON *general = lk_survey_instrument(p->study, "general");
    const cJSON *printed = lk_survey_instrument(p->study, "instructions_exp1");
    page_add(p, "<p>%s</p>\n", lk_survey_text(p->study, p->study->experiment == 3 ? "guide_scene" : "guide"));
    /* Printed for the first experiment; the guidelines hold in all. */
    static const char *const parts[] = {"pair", "what_to_evaluate", "guidelines"};
    for (int i = p->study->experiment == 1 ? 0 : 2; i < 3; i++)
        add_points(p, cJSON_GetObjectItemCaseSensitive(printed, parts[i]), NULL);
    add_points(p, cJSON_GetObjectItemCaseSensitive(general, "response_guidelines"), NULL);
    for (int i = 0; i < questions->n; i++) {
        const struct lk_survey_question *q = &questions->list[i];
        const cJSON *guidelines = cJSON_GetObjectItemCaseSensitive(q->printed, "guidelines");
        const cJSON *examples = cJSON_GetObjectItemCaseSensitive(q->printed, "examples");
        if (q->picture > 0 || !(cJSON_GetArraySize(guidelines) + cJSON_GetArraySize(examples))) continue;
        page_add(p, "<h2>%s</h2>\n", *q->title ? q->title : q->text);
        add_points(p, guidelines, item->occupation);
        add_points(p, examples, item->occupation);
    }
}

struct item_page {
    struct survey_page *page;
    const struct lk_survey_item *item, *next; /* next: NULL behind the last */
    struct lk_survey_answer *answers;
    size_t n_answers, n_items, first_open;
    struct lk_survey_questions questions;
    int position;
    int64_t lease;
    bool practice, shown; /* shown: with what its answers are worth */
};

static const char *given(const struct item_page *v, const char *key) {
    if (v->practice) return survey_form_value(v->page->form, key);
    for (size_t i = 0; i < v->n_answers; i++)
        if (v->answers[i].position == v->position && !strcmp(v->answers[i].key, key)) return v->answers[i].value;
    return "";
}

static void line(const struct item_page *v, const char *name, const char *text) {
    page_add(v->page, "<p><strong>%s</strong> ", lk_survey_text(v->page->study, name));
    lk_text_add(&v->page->reply->body, "<bdi>"); /* a text written from the right turns nothing else round */
    page_add(v->page, "%s</bdi></p>\n", text);
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

/* Whether an answer to a practice item is the expected one, or on a scale one beside it; expected NULL: any is. */
static bool is_right(const char *expected, const char *given) {
    bool near = expected && *expected >= '1' && *expected <= '5' && abs(*expected - *given) <= 1;
    return !expected || near || !strcmp(given, expected);
}

static bool all_right(const struct item_page *v) {
    bool right = true;
    char text[16];
    for (int i = 0; i < v->questions.n; i++) {
        const struct lk_survey_question *q = &v->questions.list[i];
        right &= is_right(lk_survey_expected(v->item, q, LK_ARM_EDITED, text), given(v, q->key));
    }
    return right;
}

static void feedback(const struct item_page *v, const struct lk_survey_question *q) {
    char text[16];
    const char *expected = lk_survey_expected(v->item, q, LK_ARM_EDITED, text);
    bool right = is_right(expected, given(v, q->key));
    struct lk_text *out = &v->page->reply->body;
    if (!expected) return;
    page_add(v->page, "<p class=\"note %s\">%s", right ? "good" : "bad",
             lk_survey_text(v->page->study, right ? "tutorial_right" : "tutorial_wrong"));
    for (int k = 0; k < q->n_options; k++)
        if (!strcmp(q->options[k].value, expected)) {
            const char *option = q->options[k].text;
            bool bare = expected[1] == '\0' && strncmp(option, expected, 1);
            page_add(v->page, " {tutorial_expected} %s%s%s", bare ? expected : "", bare ? " " : "", option);
        }
    lk_text_add(out, "</p>\n");
}

/* The questions about a picture: 0 or 1, -1 those about all. */
static void questions_about(const struct item_page *v, int picture) {
    for (int i = 0; i < v->questions.n; i++) {
        const struct lk_survey_question *q = &v->questions.list[i];
        if (q->picture != picture) continue;
        page_question(v->page, q, "", given(v, q->key));
        if (v->shown) feedback(v, q);
    }
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
    int n_pictures = 0;
    for (int k = 0; k < LK_SURVEY_N_PICTURES; k++) n_pictures += item->picture[k] != NULL;
    bool asked_above = item->kind != LK_SURVEY_CHECK && is_asked_above(v);
    lk_text_add(&p->reply->body, "<div class=\"item%s\">\n",
                item->kind == LK_SURVEY_CHECK ? " one"
                : both                        ? " each"
                : n_pictures > 2              ? " three above"
                                              : " two above");
    if (asked_above) { /* which stays in view with the pictures */
        lk_text_add(&p->reply->body, "<div class=\"asked\">\n");
        about(v);
        lk_text_add(&p->reply->body, "</div>\n");
    }
    for (int k = 0; k < 4; k++) {
        if (!item->picture[page_picture_kinds[k]]) continue;
        lk_text_add(&p->reply->body, "<section>\n");
        page_pictures(p, item, v->practice ? "example" : "picture", v->position + 1, k);
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
    page_add(
        v->page,
        "<label class=\"box\">{comment}<textarea name=\"comment\" rows=\"2\" maxlength=\"500\"></textarea></label>\n");
}

static void bar(const struct item_page *v) {
    struct lk_text *out = &v->page->reply->body;
    lk_text_add(out, "<div class=\"bar\">\n");
    if (v->shown) {
        bool right = all_right(v);
        page_add(v->page, "<p class=\"note %s\" role=\"status\">%s %s</p>\n", right ? "good" : "bad",
                 lk_survey_text(v->page->study, right ? "tutorial_right" : "tutorial_wrong"), v->item->feedback);
    }
    if (v->position > 0 && !v->practice) {
        page_add(v->page, "<a class=\"button\" id=\"previous\" href=\"/task/%d?item=%d\">{previous}</a>\n",
                 v->page->who.task + 1, v->position);
    }
    lk_text_add(out, v->shown ? "<a class=\"button main\" id=\"next\" href=\"/practice\">"
                              : "<button class=\"main\" id=\"next\">");
    page_add(v->page, "%s</%s>\n<label>%zu/%zu <progress max=\"%zu\" value=\"%zu\"></progress></label>\n",
             lk_survey_text(v->page->study, v->shown      ? "practice_next"
                                            : v->practice ? "tutorial_check"
                                                          : "next"),
             v->shown ? "a" : "button", v->first_open, v->n_items, v->n_items, v->first_open);
    static const char *const tools[][2] = {
        {"zoom-open", "zoom_open"}, {"flicker", "flicker"}, {"guidelines-open", "guidelines_open"}};
    for (int i = 0; i < 3; i++) {
        page_add(v->page, "<button type=\"button\" id=\"%s\">%s</button>\n", tools[i][0],
                 lk_survey_text(v->page->study, tools[i][1]));
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
    if (v->practice)
        lk_text_add(out, "<form method=\"post\" id=\"item\" action=\"/practice\" data-practice=\"%s\"",
                    v->shown ? "shown" : "asked");
    else
        lk_text_add(out, "<form method=\"post\" id=\"item\" action=\"/task/%d\"", v->page->who.task + 1);
    for (int i = 0; i < 5; i++) {
        page_add(v->page, " data-%s=\"%s\"", names[i][0], lk_survey_text(v->page->study, names[i][1]));
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
    page_add(p, "<dialog id=\"guidelines\" aria-labelledby=\"guidelines-title\">\n<h2 "
                "id=\"guidelines-title\">{guidelines_title}");
    /* The button comes first: it has the focus, and what has it is scrolled to. */
    page_add(p, "</h2>\n<form method=\"dialog\"><button>{guidelines_close}</button></form>\n");
    page_guidelines(p, &v->questions, v->item);
    page_add(p, "</dialog>\n<dialog id=\"zoom\" tabindex=\"0\" aria-label=\"{zoom_title}\"></dialog>\n<details "
                "id=\"keys\"><summary>{keys_title}</summary><p>{guide_keys}</p><label class=\"box\"><input "
                "type=\"checkbox\" id=\"keys-on\" checked=\"checked\">{keys_on}</label></details>\n");
    page_form(p, "/problem", "");
    page_add(p, "<button>{report_error}</button>\n</form>\n");
    for (int k = 0; k < 4 && v->next; k++)
        if (v->next->picture[page_picture_kinds[k]])
            lk_text_add(out, "<link rel=\"prefetch\" href=\"/picture/%d/%c\">\n", v->position + 2, "stab"[k]);
    lk_text_add(out, "<script src=\"/script.js\"></script>\n");
}

static enum lk_code complete(struct survey_page *p) {
    page_begin(p, "submit", "narrow");
    page_form(p, "/submit", "");
    page_add(p, "<button class=\"main\">{submit}</button>\n</form>\n");
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
    enum lk_code rc = lk_survey_task_items(p->study, p->who.worker, p->who.place, items);
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
    struct item_page v = {.page = p, .position = position, .n_items = lk_survey_task_length(p->study, p->who.place)};
    enum lk_code rc = lk_survey_answers(p->server->survey, &p->who, &v.answers, &v.n_answers, &v.first_open);
    if (!rc) rc = show(&v);
    lk_free(v.answers);
    return rc;
}

static bool all_answered(const struct item_page *v) {
    for (int i = 0; i < v->questions.n; i++)
        if (!*given(v, v->questions.list[i].key)) return false;
    return true;
}

static enum lk_code show_practice(struct item_page *v, bool incomplete) {
    struct survey_page *p = v->page;
    page_begin(p, "tutorial_title", "evaluation");
    script_texts(v);
    if (incomplete) page_note(p, "note bad", "incomplete");
    body(v);
    bar(v);
    lk_text_add(&p->reply->body, "</form>\n");
    foot(v);
    page_end(p);
    return p->reply->body.rc;
}

enum lk_code page_practice(struct survey_page *p, bool answered) {
    int n;
    LK_TRY(lk_survey_practised(p->server->survey, &p->who, &n));
    if (n >= (int)p->study->n_tutorial) return page_go(p, "/guide");
    struct item_page v = {.page = p,
                          .item = &p->study->tutorial[n],
                          .position = n,
                          .first_open = (size_t)n,
                          .n_items = p->study->n_tutorial,
                          .practice = true};
    /* A form sent twice, or an older one, is not of this item. */
    if (answered && survey_number(survey_form_value(p->form, "item"), 100) != n + 1) return page_go(p, "/practice");
    LK_TRY(lk_survey_questions_of(p->study, v.item, &v.questions));
    v.shown = answered && all_answered(&v);
    enum lk_code rc = v.shown ? lk_survey_practise(p->server->survey, &p->who, n + 1, all_right(&v), p->now) : LK_OK;
    v.first_open += v.shown;
    if (!rc) rc = show_practice(&v, answered && !v.shown);
    lk_survey_questions_free(&v.questions);
    return rc;
}
