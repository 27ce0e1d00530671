/* What Step1X-Edit's reflection makes of a language model's replies, against the authors' own functions. */
#include "tests/common/test.h"

#include <cjson/cJSON.h>

#include "engine/base/alloc.h"
#include "models/step1x/step1x.h"
#include "models/step1x/thinking.h"

static cJSON *table;

static const cJSON *rows(const char *name, int least) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(table, name);
    assert_true(cJSON_GetArraySize(list) >= least);
    return list;
}

static const char *text_of(const cJSON *row, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(row, key);
    return cJSON_IsString(value) ? value->valuestring : NULL;
}

static double number_of(const cJSON *row, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(row, key);
    assert_true(cJSON_IsNumber(value));
    return value->valuedouble;
}

static bool is_true(const cJSON *row, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(row, key);
    assert_true(cJSON_IsBool(value));
    return cJSON_IsTrue(value);
}

static void expect_valid(const cJSON *row, bool valid) {
    if (valid != is_true(row, "valid"))
        fail_msg("reply \"%s\": expected %s", text_of(row, "reply"), valid ? "malformed" : "valid");
}

static void languages(void **state) {
    (void)state;
    const cJSON *row;
    cJSON_ArrayForEach(row, rows("language", 10))
        assert_string_equal(lk_step1x_language(text_of(row, "prompt")), text_of(row, "language"));
}

static void consistency(void **state) {
    (void)state;
    const cJSON *row;
    cJSON_ArrayForEach(row, rows("consistency", 70)) {
        bool valid;
        double score;
        char *reason, printed[32];
        assert_ok(lk_step1x_read_consistency(text_of(row, "reply"), &valid, &score, &reason));
        expect_valid(row, valid);
        if (valid) {
            if (score != number_of(row, "score"))
                fail_msg("%s: expected %g, got %g", text_of(row, "reply"), number_of(row, "score"), score);
            lk_step1x_print_score(score, printed);
            assert_string_equal(printed, text_of(row, "printed"));
            assert_string_equal(reason, text_of(row, "reason"));
        }
        lk_free(reason);
    }
}

static void reflections(void **state) {
    (void)state;
    const cJSON *row;
    cJSON_ArrayForEach(row, rows("reflection", 20)) {
        bool valid;
        char *words;
        const char *next;
        assert_ok(lk_step1x_read_reflection(text_of(row, "reply"), &valid, &words));
        expect_valid(row, valid);
        if (valid) {
            assert_string_equal(words, text_of(row, "words"));
            enum lk_verdict verdict = lk_step1x_verdict(words, &next);
            assert_int_equal(verdict == LK_VERDICT_SUCCESS || verdict == LK_VERDICT_OTHERS, is_true(row, "success"));
            assert_int_equal(verdict == LK_VERDICT_REFLECTION, text_of(row, "next") != NULL);
            if (next) assert_string_equal(next, text_of(row, "next"));
        }
        lk_free(words);
    }
}

static void scores(void **state) {
    (void)state;
    const cJSON *row;
    cJSON_ArrayForEach(row, rows("scores", 25)) {
        bool valid;
        double least;
        assert_ok(lk_step1x_read_scores(text_of(row, "reply"), &valid, &least));
        expect_valid(row, valid);
        if (!valid) continue;
        const cJSON *expected = cJSON_GetObjectItemCaseSensitive(row, "least"); /* true counts as 1 */
        assert_true(least == (cJSON_IsNumber(expected) ? expected->valuedouble : cJSON_IsTrue(expected)));
    }
}

/* Where our reading is stricter than Python's, which is written in thinking.h. */
static void stricter_than_python(void **state) {
    (void)state;
    static const char *const malformed[] = {
        "{\"score\": [\"5\", 6], \"reasoning\": \"x\"}", "{\"score\": [], \"reasoning\": \"x\"}",
        "{\"score\": [5], \"score\": [6], \"reasoning\": \"x\"}", "{\"score\": [NaN], \"reasoning\": \"x\"}"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        bool valid = true;
        double least;
        assert_ok(lk_step1x_read_scores(malformed[i], &valid, &least));
        assert_false(valid);
    }
}

static void courses(void **state) {
    (void)state;
    const cJSON *row, *round;
    cJSON_ArrayForEach(row, rows("courses", 10)) {
        const cJSON *reply = cJSON_GetObjectItemCaseSensitive(row, "replies")->child;
        struct lk_step1x_course course = {.prompt = "p", .from_source = true};
        cJSON_ArrayForEach(round, cJSON_GetObjectItemCaseSensitive(row, "rounds")) {
            const char *next;
            assert_false(course.done);
            assert_string_equal(course.prompt, text_of(round, "prompt"));
            assert_int_equal(course.from_source, is_true(round, "from_source"));
            enum lk_verdict verdict = lk_step1x_verdict(reply->valuestring, &next);
            lk_step1x_advance(&course, verdict, next, "p");
            reply = reply->next;
        }
        assert_true(course.done || !reply);
    }
}

static void best_rounds(void **state) {
    (void)state;
    const cJSON *row, *round;
    cJSON_ArrayForEach(row, rows("best", 14)) {
        struct lk_round all[LK_MAX_ROUNDS] = {0};
        int n = 0;
        cJSON_ArrayForEach(round, cJSON_GetObjectItemCaseSensitive(row, "rounds")) {
            all[n].score = number_of(round, "score");
            all[n++].reflection = cJSON_GetObjectItemCaseSensitive(round, "words")->valuestring;
        }
        assert_int_equal(lk_step1x_best_round(all, n), (int)number_of(row, "best"));
    }
}

static void thumbnails(void **state) {
    (void)state;
    const cJSON *row;
    cJSON_ArrayForEach(row, rows("thumbnails", 256)) {
        int sides[4], width, height;
        for (int i = 0; i < 4; i++) sides[i] = cJSON_GetArrayItem(row, i)->valueint;
        lk_step1x_thumbnail_size(sides[0], sides[1], &width, &height);
        if (width != sides[2] || height != sides[3])
            fail_msg("%dx%d: expected %dx%d, got %dx%d", sides[0], sides[1], sides[2], sides[3], width, height);
    }
}

/* No reply crashes, whatever is cut or damaged; failing allocations are errors and leak nothing. */
static void damaged_replies(void **state) {
    (void)state;
    static const char whole[] =
        "```json\n{\"meets_instruction\": \"yes\", \"raw_score\": 7, \"reason\": \"a\\u00e9\", \"score\": [1, 2], "
        "\"reasoning\": \"好\"}\n``` <#Think> x <#Reflection> 好";
    int64_t live = lk_alloc_live();
    for (size_t n = 0; n < 2 * sizeof whole - 1; n++) {
        char reply[sizeof whole];
        memcpy(reply, whole, sizeof whole);
        if (n < sizeof whole)
            reply[n] = 0;
        else
            reply[n - sizeof whole] = (char)0xff;
        for (int fail = 0; fail < 12; fail++) {
            bool valid;
            double score;
            char *out = NULL;
            lk_alloc_fail_at(fail);
            enum lk_code rc = lk_step1x_read_consistency(reply, &valid, &score, &out);
            lk_free(out);
            assert_true(rc == LK_OK || rc == LK_E_NOMEM);
            lk_alloc_fail_at(fail);
            rc = lk_step1x_read_reflection(reply, &valid, &out);
            lk_free(out);
            assert_true(rc == LK_OK || rc == LK_E_NOMEM);
            lk_alloc_fail_at(fail);
            rc = lk_step1x_read_scores(reply, &valid, &score);
            assert_true(rc == LK_OK || rc == LK_E_NOMEM);
            lk_alloc_fail_at(0);
        }
        assert_int_equal(lk_alloc_live(), live);
    }
}

int main(void) {
    size_t n;
    char *text = test_read("golden/data/step1x_thinking.json", &n);
    table = cJSON_ParseWithLength(text, n);
    free(text);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(languages),   cmocka_unit_test(consistency),          cmocka_unit_test(reflections),
        cmocka_unit_test(scores),      cmocka_unit_test(stricter_than_python), cmocka_unit_test(courses),
        cmocka_unit_test(best_rounds), cmocka_unit_test(thumbnails),           cmocka_unit_test(damaged_replies),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cJSON_Delete(table);
    return failed;
}
