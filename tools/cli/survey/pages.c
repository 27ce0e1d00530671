/* What all pages share, and those before and after the task. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table.h"
#include "tools/cli/survey/http.h"

void page_text(struct lk_text *out, const char *text) {
    for (const char *at = text; *at; at++) {
        const char *entity = *at == '&'    ? "&amp;"
                             : *at == '<'  ? "&lt;"
                             : *at == '>'  ? "&gt;"
                             : *at == '"'  ? "&quot;"
                             : *at == '\'' ? "&#39;"
                                           : NULL;
        if (entity)
            lk_text_bytes(out, entity, strlen(entity));
        else
            lk_text_bytes(out, at, 1);
    }
}

void page_html(struct lk_text *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lk_text_html_by(out, &(struct lk_html){.escape = page_text}, format, args);
    va_end(args);
}

static const char *text_of(const void *study, const char *name) { return lk_survey_text(study, name); }

void page_add(const struct survey_page *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lk_text_html_by(&p->reply->body, &(struct lk_html){page_text, text_of, p->study}, format, args);
    va_end(args);
}

static void element(const struct survey_page *p, const char *tag, const char *class, const char *text) {
    lk_text_add(&p->reply->body, "<%s%s%s%s>", tag, *class ? " class=\"" : "", class, *class ? "\"" : "");
    page_add(p, "%s</%s>\n", text, tag);
}

static void say_in(const struct survey_page *p, const char *tag, const char *class, const char *name) {
    element(p, tag, class, lk_survey_text(p->study, name));
}

void page_note(const struct survey_page *p, const char *class, const char *name) { say_in(p, "p", class, name); }

enum lk_code page_go(struct survey_page *p, const char *where) {
    p->reply->status = 303;
    snprintf(p->reply->location, sizeof p->reply->location, "%s", where);
    return LK_OK;
}

void page_begin(const struct survey_page *p, const char *title, const char *body_class) {
    struct lk_text *out = &p->reply->body;
    page_add(p,
             "<!DOCTYPE html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
             "content=\"width=device-width, initial-scale=1\">\n<title>%s</title>\n<link rel=\"stylesheet\" "
             "href=\"/style.css\">\n</head>\n<body class=\"%s%s\">\n",
             lk_survey_text(p->study, title), body_class, p->study->protocol == LK_PROTOCOL_001 ? " wall" : "");
    say_in(p, "aside", "gate", "gate");
    lk_text_add(out, "<main id=\"main\">\n");
    say_in(p, "h1", "", title);
}

void page_end(const struct survey_page *p) { lk_text_add(&p->reply->body, "</main>\n</body>\n</html>\n"); }

void page_form(const struct survey_page *p, const char *action, const char *id) {
    lk_text_add(&p->reply->body,
                "<form method=\"post\" action=\"%s\"%s%s%s>\n<input type=\"hidden\" name=\"form\" value=\"%s\">\n",
                action, *id ? " id=\"" : "", id, *id ? "\"" : "", p->form_token);
}

static void button(const struct survey_page *p, const char *name) {
    page_add(p, "<button class=\"main\">%s</button>\n", lk_survey_text(p->study, name));
}

void page_question(const struct survey_page *p, const struct lk_survey_question *q, const char *prefix,
                   const char *given) {
    struct lk_text *out = &p->reply->body;
    lk_text_add(out, "<fieldset data-picture=\"%s\">\n<legend>", q->picture < 0 ? "" : q->picture ? "b" : "a");
    if (q->picture >= 0) { /* heard, and read where no column says it */
        page_add(p, "<span class=\"of\">%s: </span>", lk_survey_text(p->study, q->picture ? "image_b" : "image_a"));
    }
    if (*q->title) page_text(out, q->title);
    if (*q->title) lk_text_add(out, ": ");
    page_text(out, q->text);
    bool five = q->n_options >= 5 && q->options[4].value[0] == '5';
    lk_text_add(out, "</legend>\n<div class=\"options%s\">\n", five ? " five" : "");
    for (int i = 0; i < q->n_options; i++) {
        const struct lk_survey_option *option = &q->options[i];
        bool bare = option->value[1] == '\0' && strncmp(option->text, option->value, 1);
        lk_text_add(out, "<label><input type=\"radio\" name=\"%s%s\" value=\"%s\"%s>", prefix, q->key, option->value,
                    !strcmp(option->value, given) ? " checked=\"checked\"" : "");
        lk_text_add(out, "<span>");
        if (bare && option->value[0] <= '5') lk_text_add(out, "%s%s", option->value, *option->text ? " " : "");
        page_text(out, option->text); /* in one element: what stands beside the button is one column */
        lk_text_add(out, "</span></label>\n");
    }
    lk_text_add(out, "</div>\n</fieldset>\n");
}

const int page_picture_kinds[] = {LK_PICTURE_SOURCE, LK_PICTURE_SECOND_SOURCE, LK_PICTURE_EDITED, LK_PICTURE_PRESERVED};

/* picture: 0 the source, 1 the second source, 2 A or the only one, 3 B. */
void page_pictures(const struct survey_page *p, const struct lk_survey_item *item, const char *folder, int number,
                   int picture) {
    bool scene = item->picture[LK_PICTURE_SECOND_SOURCE] != NULL, two = p->study->experiment == 2;
    const char *const names[] = {scene ? "source_male" : "source", "source_female", two ? "image_a" : "edited",
                                 "image_b"};
    page_add(p,
             "<figure data-picture=\"%c\"><figcaption>%s</figcaption><button type=\"button\" class=\"picture\"><img "
             "src=\"/%s/%d/%c\" alt=\"%s\"></button></figure>\n",
             "stab"[picture], lk_survey_text(p->study, names[picture]), folder, number, "stab"[picture],
             lk_survey_text(p->study, names[picture]));
}

/* For those who share a computer. */
static void leave(const struct survey_page *p) {
    page_form(p, "/leave", "");
    page_add(p, "<button>{admin_leave}</button>\n</form>\n");
}

enum lk_code page_left(struct survey_page *p) {
    page_begin(p, "left_title", "narrow");
    say_in(p, "p", "note", "left");
    page_end(p);
    return p->reply->body.rc;
}

enum lk_code page_welcome(struct survey_page *p, const char *id, bool bad) {
    page_begin(p, "welcome_title", "narrow");
    if (id) {
        say_in(p, "p", "", "guide");
        lk_text_add(&p->reply->body,
                    "<form method=\"post\" action=\"/enter\">\n<input type=\"hidden\" name=\"workerId\" value=\"%s\">\n"
                    "<input type=\"hidden\" name=\"sig\" value=\"",
                    id); /* letters, digits, - and _ */
        page_add(p, "%s\">\n", survey_form_value(p->query, "sig"));
        button(p, "start");
        lk_text_add(&p->reply->body, "</form>\n<script src=\"/script.js\"></script>\n");
    } else
        say_in(p, "p", bad ? "note bad" : "note", bad ? "bad_id" : "welcome");
    if (!id && !bad) { /* a preview shows what is asked of those who come in */
        struct lk_survey_questions questions;
        LK_TRY(lk_survey_questions_of(p->study, &p->study->items[0], &questions));
        page_guidelines(p, &questions, &p->study->items[0]);
        lk_survey_questions_free(&questions);
    }
    page_end(p);
    return p->reply->body.rc;
}

static const struct lk_survey_item entry_check = {.kind = LK_SURVEY_CHECK, .prompt = "", .choice = "4"};

bool page_guide_check(const struct survey_page *p) {
    return p->study->protocol != LK_PROTOCOL_001 ||
           !strcmp(survey_form_value(p->form, "check.answer"), entry_check.choice);
}

/* What leads from the guide to the tasks: the check, where the protocol has one, and the button. */
static enum lk_code guide_form(struct survey_page *p, bool answered) {
    bool wrong = answered && !page_guide_check(p);
    page_form(p, "/guide", "");
    if (p->study->protocol == LK_PROTOCOL_001) {
        struct lk_survey_questions questions;
        LK_TRY(lk_survey_questions_of(p->study, &entry_check, &questions));
        say_in(p, "h2", "", "guide_check");
        page_question(p, &questions.list[0], "check.", survey_form_value(p->form, "check.answer"));
        lk_survey_questions_free(&questions);
    }
    if (wrong) say_in(p, "p", "note bad", "guide_check_wrong");
    if (wrong || *survey_form_value(p->form, "again"))
        lk_text_add(&p->reply->body, "<input type=\"hidden\" name=\"again\" value=\"yes\">\n");
    button(p, "guide_continue");
    lk_text_add(&p->reply->body, "</form>\n");
    return LK_OK;
}

static void points(const struct survey_page *p, const cJSON *list) {
    const cJSON *one;
    if (!cJSON_IsArray(list)) return;
    lk_text_add(&p->reply->body, "<ul>\n");
    cJSON_ArrayForEach(one, list) {
        if (cJSON_IsString(one)) element(p, "li", "", one->valuestring);
    }
    lk_text_add(&p->reply->body, "</ul>\n");
}

/* What an item looks like, by the first practice item's own pictures. */
static void example(const struct survey_page *p) {
    const struct lk_survey_item *item = p->study->tutorial;
    if (!p->study->n_tutorial) return;
    say_in(p, "h2", "", "guide_example");
    page_add(p, "<p><strong>{edit_request}</strong> <bdi>%s</bdi></p>\n<div class=\"item shown\">\n", item->prompt);
    for (int k = 0; k < LK_SURVEY_N_PICTURES; k++)
        if (item->picture[page_picture_kinds[k]]) page_pictures(p, item, "example", 1, k);
    lk_text_add(&p->reply->body, "</div>\n");
}

enum lk_code page_guide(struct survey_page *p, bool answered) {
    const cJSON *general = lk_survey_instrument(p->study, "general");
    struct lk_survey_questions questions;
    int n_practised = 0;
    const bool practises = p->study->n_tutorial > 0;
    if (practises) LK_TRY(lk_survey_practised(p->server->survey, &p->who, &n_practised));
    const bool practised = practises && n_practised >= (int)p->study->n_tutorial;
    page_begin(p, "guide_title", "narrow");
    if (practised) {
        say_in(p, "p", "note good", "practice_done");
        LK_TRY(guide_form(p, answered));
        say_in(p, "h2", "", "guidelines_title");
    }
    LK_TRY(lk_survey_questions_of(p->study, &p->study->items[0], &questions));
    page_guidelines(p, &questions, &p->study->items[0]);
    lk_survey_questions_free(&questions);
    example(p);
    points(p, cJSON_GetObjectItemCaseSensitive(general, "technical_requirements"));
    if (p->study->protocol == LK_PROTOCOL_000) say_in(p, "p", "", "guide_time");
    say_in(p, "p", "", "guide_keys");
    if (*p->study->attribution) element(p, "p", "", p->study->attribution);
    if (!practises) LK_TRY(guide_form(p, answered));
    if (practises && !practised) {
        page_form(p, "/practice", "");
        button(p, "practice_start");
        lk_text_add(&p->reply->body, "</form>\n");
    }
    page_end(p);
    return p->reply->body.rc;
}

enum lk_code page_consent(struct survey_page *p, bool missing) {
    static const char *const boxes[][2] = {{"adult", "confirm_adult"}, {"agree", "confirm_agree"}};
    char *text, sha256[65];
    LK_TRY(lk_survey_consent_text(p->study, &text, sha256));
    page_begin(p, "consent_title", "narrow");
    char *end = text;
    for (char *line = text; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        if (strcmp(line, lk_survey_text(p->study, "confirm_adult")) &&
            strcmp(line, lk_survey_text(p->study, "confirm_agree")))
            element(p, "p", "", line);
    }
    lk_free(text);
    page_form(p, "/consent", "");
    lk_text_add(&p->reply->body, "<input type=\"hidden\" name=\"text\" value=\"%s\">\n", sha256);
    if (missing) say_in(p, "p", "note bad", "consent_missing");
    for (int i = 0; i < 2; i++) {
        page_add(p, "<label class=\"box\"><input type=\"checkbox\" name=\"%s\" value=\"yes\">%s</label>\n", boxes[i][0],
                 lk_survey_text(p->study, boxes[i][1]));
    }
    button(p, "consent_continue");
    lk_text_add(&p->reply->body, "</form>\n");
    page_end(p);
    return p->reply->body.rc;
}

/* In words as well as in colour: done, free, full, one's own. */
static void task_place(const struct survey_page *p, int task, const struct lk_survey_place *place) {
    int places = p->study->places;
    bool own = p->who.task == task, full = place->n_taken >= places, done = place->n_submitted >= places;
    struct lk_text *out = &p->reply->body;
    page_add(p, "<li class=\"%s\"><strong>{task} %d</strong><p>%s (%d/%d {progress})</p>\n",
             done || place->n_submitted ? "done" : "free", task + 1,
             lk_survey_text(p->study, own    ? "task_mine"
                                      : done ? "task_completed"
                                      : full ? "task_full"
                                             : "task_available"),
             place->n_submitted, places);
    if (own) {
        page_add(p, "<a class=\"button main\" href=\"/task/%d\">{start}</a>", task + 1);
    } else {
        lk_text_add(out, "<button name=\"task\" value=\"%d\"%s>", task + 1,
                    full || p->who.claim ? " disabled=\"disabled\"" : "");
        page_add(p, "{task_start}</button>");
    }
    lk_text_add(out, "</li>\n");
}

/* Why the place that a participant had is gone. */
static void lost_place(const struct survey_page *p) {
    page_add(p, "<p class=\"note bad\">{task} %d: {task_lost} (%lld min)</p>\n", p->who.lost_task + 1,
             (long long)p->study->claim_ms / 60000);
}

enum lk_code page_tasks(struct survey_page *p, bool refused) {
    struct lk_survey_place *places = lk_calloc((size_t)p->study->n_tasks, sizeof *places);
    if (!places) return lk_fail(LK_E_NOMEM, "out of memory for a page");
    enum lk_code rc = lk_survey_places(p->server->survey, &p->who, p->now, places);
    if (!rc) {
        if (refused) p->reply->status = 409;
        page_begin(p, "tasks_title", "");
        if (refused) say_in(p, "p", "note bad", p->who.claim ? "task_own" : "task_taken");
        if (p->who.lost_task >= 0 && !p->who.claim) lost_place(p);
        say_in(p, "p", "", p->study->tasks_per_worker > 1 ? "tasks_more" : "tasks");
        page_form(p, "/tasks", "");
        lk_text_add(&p->reply->body, "<ol class=\"tasks\">\n");
        for (int t = 0; t < p->study->n_tasks; t++) task_place(p, t, &places[t]);
        lk_text_add(&p->reply->body, "</ol>\n</form>\n");
        leave(p);
        page_end(p);
        rc = p->reply->body.rc;
    }
    lk_free(places);
    return rc;
}

enum lk_code page_done(struct survey_page *p) {
    char code[48];
    LK_TRY(lk_survey_code(p->server->survey, &p->who, code));
    page_begin(p, "done_title", "narrow");
    if (p->study->debriefing) {
        say_in(p, "h2", "", "debrief_title");
        say_in(p, "p", "", "debrief");
    }
    say_in(p, "p", "", "done");
    element(p, "p", "code", code);
    if (!p->who.submitted) {
        say_in(p, "p", "", "done_more");
        page_add(p, "<p><a class=\"button\" href=\"/tasks\">{tasks_title}</a></p>\n");
    }
    leave(p);
    page_end(p);
    return p->reply->body.rc;
}

enum lk_code page_blocked(struct survey_page *p) {
    p->reply->status = 403;
    page_begin(p, "blocked_title", "narrow");
    say_in(p, "p", "note", "blocked");
    page_end(p);
    return p->reply->body.rc;
}

enum lk_code page_refused(struct survey_page *p, int status, const char *name) {
    p->reply->status = status;
    page_begin(p, status == 200 ? "done_title" : "refused_title", "narrow");
    say_in(p, "p", "note", name);
    page_add(p, "<p><a href=\"/tasks\">{start}</a></p>\n");
    page_end(p);
    return p->reply->body.rc;
}
