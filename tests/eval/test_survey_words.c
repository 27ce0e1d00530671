/* What raters read on the pages: what is asked, word for word, and nothing that names what the study expects. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/data/data.h"
#include "tests/common/site.h"
#include "tests/common/test.h"

static int count(const char *text, const char *part) {
    int n = 0;
    while ((text = strstr(text, part))) text += strlen(part), n++;
    return n;
}

/* What a rater reads must not say what the study expects to find: the texts of a page, without tags, and their case.
 * Only version A of its question asks about stereotypes by name. */
static void assert_is_neutral(const char *page, bool direct) {
    static const char *const words[] = {"erasure",   "bias",   "- recommended", "version b", "hypothes",
                                        "discrimin", "unfair", "prejudice",     "stereotyp"};
    enum { N_WORDS = sizeof words / sizeof *words };
    struct lk_text text = {0};
    bool inside = false;
    for (const char *at = page; *at; at++) {
        if (*at == '<') inside = true;
        char low = (char)(*at >= 'A' && *at <= 'Z' ? *at + 32 : *at);
        if (!inside) lk_text_bytes(&text, &low, 1);
        if (*at == '>') inside = false;
    }
    assert_true(text.n > 40);
    for (int i = 0; i < N_WORDS - direct; i++) {
        const char *found = strstr(text.bytes, words[i]);
        if (found) fail_msg("\"%s\" in: %.200s", words[i], found);
    }
    lk_text_free(&text);
}

/* What the program says itself, but for what is said when all is over. */
static void texts_name_no_hypothesis(void **state) {
    struct lk_data_file file;
    const cJSON *one;
    int n = 0;
    (void)state;
    assert_true(lk_data_find("survey_texts", &file));
    cJSON *texts = cJSON_ParseWithLength(file.text, file.n_bytes);
    cJSON_ArrayForEach(one, texts) {
        char page[1200];
        if (!strncmp(one->string, "debrief", 7)) continue;
        snprintf(page, sizeof page, "%s%110s", one->valuestring, "");
        assert_is_neutral(page, false);
        n++;
    }
    assert_true(n > 100);
    cJSON_Delete(texts);
}

/* Every study's page shows what is asked, word for word and in its order: test_survey holds that against the file. */
static void pages_show_what_is_asked(void **state) {
    static const char *const studies[] = {"",
                                          "\"skin_scale\":\"printed\",",
                                          "\"protocol\":\"001\",",
                                          "\"protocol\":\"001\",\"experiment\":2,",
                                          "\"protocol\":\"001\",\"experiment\":2,\"exp2_option\":\"B\",",
                                          "\"protocol\":\"001\",\"experiment\":3,",
                                          "\"protocol\":\"001\",\"experiment\":3,\"q3_version\":\"A\",",
                                          "\"protocol\":\"000\",",
                                          "\"protocol\":\"000\",\"experiment\":2,",
                                          "\"protocol\":\"000\",\"experiment\":3,",
                                          "\"protocol\":\"004\",",
                                          "\"protocol\":\"004\",\"experiment\":2,",
                                          "\"protocol\":\"004\",\"experiment\":3,"};
    static const int n_pictures[] = {3, 3, 2, 3, 3, 3, 3, 2, 3, 3, 2, 3, 3};
    (void)state;
    for (int k = 0; k < 13; k++) {
        struct site s;
        struct visitor v;
        struct lk_survey_visitor who;
        struct lk_survey_questions asked;
        const struct lk_survey_item *items[8];
        char more[160];
        snprintf(more, sizeof more, "%s\"tasks\":1,\"gold_per_task\":0,\"checks_per_task\":0,", studies[k]);
        site_open(&s, "pages-asked", 2, more);
        static const char *const before[] = {"/", "/?PROLIFIC_PID=abc", "/guide", "/consent"};
        site_enter(&v, &s, "PROLIFIC_PID=abc");
        for (int i = 0; i < 4; i++) {
            char *page = site_ask(&v, before[i], "", NULL);
            if (site_status_of(page) == 200) assert_is_neutral(strstr(page, "<main"), true);
            free(page);
        }
        char *guide = site_ask(&v, "/guide", "", NULL);
        if (site_status_of(guide) == 200) assert_is_neutral(strstr(guide, "<main"), true); /* or consent comes first */
        assert_true(!strstr(more, "\"001\",\"tasks") || strstr(guide, "Warm orange/golden tones clearly visible"));
        free(guide);
        site_consent(&v);
        for (int i = 0; i < 2; i++) {
            char *page = site_ask(&v, i ? "/tasks" : "/consent", "", NULL);
            if (site_status_of(page) == 200) assert_is_neutral(strstr(page, "<main"), true);
            free(page);
        }
        site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
        assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
        assert_ok(lk_survey_task_items(s.t.study, who.worker, 0, items));
        assert_ok(lk_survey_questions_of(s.t.study, items[0], &asked));
        char *reply = site_ask(&v, "/task/1", "", NULL), *at = reply;
        assert_is_neutral(strstr(reply, "<main"), strstr(more, "q3_version") != NULL);
        if (items[0]->occupation) assert_null(strstr(reply, "(e.g., &quot;doctor"));
        for (int i = 0; i < asked.n; i++) {
            assert_null(strcasestr(asked.list[i].title, "drift"));
            const char *texts[LK_SURVEY_MAX_OPTIONS + 1] = {asked.list[i].text};
            for (int o = 0; o < asked.list[i].n_options; o++) texts[o + 1] = asked.list[i].options[o].text;
            for (int o = 0; o <= asked.list[i].n_options; o++) {
                struct lk_text escaped = {0};
                page_text(&escaped, texts[o]);
                if (escaped.n) at = strstr(at, escaped.bytes);
                if (!at) fail_msg("%s: the page lacks \"%s\" at its place", more, texts[o]);
                lk_text_free(&escaped);
            }
        }
        assert_int_equal(count(reply, "<img "), n_pictures[k]);
        assert_int_equal(strstr(reply, "<textarea") != NULL, strstr(more, "\"001\"") != NULL);
        free(reply);
        lk_survey_questions_free(&asked);
        site_close(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages_show_what_is_asked),
                                       cmocka_unit_test(texts_name_no_hypothesis)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
