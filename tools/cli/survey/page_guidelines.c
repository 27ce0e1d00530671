/* What the protocol prints about answering: the guidelines and examples of each question, in the guide and, a key
 * away, on the item page. */
#include <cjson/cJSON.h>
#include <string.h>
#include <strings.h>

#include "tools/cli/survey/http.h"

/* Guidelines that tell a rater what the study expects to find are not for raters. */
static bool names_hypothesis(const char *text) { return strstr(text, "stereotyp") || strstr(text, "bias"); }

static void add_point(const struct survey_page *p, const cJSON *point, const char *occupation) {
    const cJSON *sub, *text = cJSON_IsObject(point) ? cJSON_GetObjectItemCaseSensitive(point, "text") : point;
    if (!cJSON_IsString(text) || names_hypothesis(text->valuestring)) return;
    size_t n = occupation ? strlen(occupation) : 0; /* "Doctor: white coat" is no example for a doctor */
    if (n && !strncasecmp(text->valuestring, occupation, n)) return;
    lk_text_add(&p->reply->body, "<li>");
    page_text(&p->reply->body, text->valuestring);
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
    lk_text_add(&p->reply->body, "<p>");
    page_say(p, p->study->experiment == 3 ? "guide_scene" : "guide");
    lk_text_add(&p->reply->body, "</p>\n");
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
        lk_text_add(&p->reply->body, "<h2>");
        page_text(&p->reply->body, *q->title ? q->title : q->text);
        lk_text_add(&p->reply->body, "</h2>\n");
        add_points(p, guidelines, item->occupation);
        add_points(p, examples, item->occupation);
    }
}
