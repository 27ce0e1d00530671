/* The lines of an export: each field of the dictionary in the protocols and experiments that have it, of its type and
 * within its values, and no others. */
#include <cjson/cJSON.h>

#include "eval/study/factors.h"
#include "eval/survey/store.h"
#include "tests/common/survey.h"
#include "tests/common/test.h"

static const int64_t start = 1768608000000; /* 2026-01-17 */

/* a, b, c: experiments 1 to 3 of protocol 000; d, e, f: those of 001, e by pictures; g: 003; h: 004; i: 003 with the
 * skin scale as printed. */
static const char *const fields_of_study[] = {
    "\"protocol\":\"000\",\"gold_per_task\":0,",
    "\"protocol\":\"000\",\"experiment\":2,\"gold_per_task\":0,",
    "\"protocol\":\"000\",\"experiment\":3,\"gold_per_task\":0,",
    "\"protocol\":\"001\",",
    "\"protocol\":\"001\",\"experiment\":2,\"exp2_option\":\"B\",",
    "\"protocol\":\"001\",\"experiment\":3,",
    "",
    "\"protocol\":\"004\",\"gold_per_task\":0,",
    "\"skin_scale\":\"printed\",",
};

/* values: those of a text, NULL any; "" a JSON object of whole numbers. where: the studies whose items have it. */
static const struct {
    const char *name, *where, *values;
    char type; /* s text, 1 a level 1 to 5, n a whole number, b true or false, o an object */
} fields[] = {
    {"workerId", "abcdefghi", NULL, 's'},
    {"imageId", "abcdefghi", NULL, 's'},
    {"model", "abcdefghi", "flux step1x qwen", 's'},
    {"race", "abcdefghi", "White Black EastAsian SoutheastAsian Indian MiddleEastern Latino", 's'},
    {"gender", "abcdefghi", "Male Female", 's'},
    {"age", "abcdefghi", "20s 30s 40s 50s 60s 70plus", 's'},
    {"category", "abdeghi", "O V", 's'},
    {"promptId", "abcdefghi", NULL, 's'},
    {"editQuality", "a", NULL, '1'},
    {"skinToneShift", "a", "lighter same darker", 's'},
    {"raceDrift", "a", NULL, '1'},
    {"genderDrift", "a", NULL, '1'},
    {"ageDrift", "a", "on-target off-target", 's'},
    {"duration_ms", "abcdefghi", NULL, 'n'},
    {"timestamp", "abcdefghi", NULL, 's'},
    {"isAttentionCheck", "abcdefghi", NULL, 'b'},
    {"arm", "adeghi", "edited preserved", 's'},
    {"pairId", "abcdefghi", NULL, 's'},
    {"scores", "defgi", NULL, 'o'},
    {"skin_change_magnitude", "i", NULL, '1'},
    {"preference", "b", "edited preserved same", 's'},
    {"confidence", "bc", NULL, '1'},
    {"roleAssignment", "c", "male female unclear", 's'},
    {"left_arm", "begi", "edited preserved", 's'},
    {"position", "abcdefghi", NULL, 'n'},
    {"question_ms", "abcdefghi", NULL, 'o'},
    {"comment", "def", "seen", 's'},
    {"taskId", "abcdefghi", "T01", 's'},
    {"protocol", "abcdefghi", "000 001 003 004", 's'},
    {"instrument", "abcdefghi", "protocol_000 questionnaire_001 supplement_003 strategy_004", 's'},
    {"consentHash", "abcdefghi", NULL, 's'},
};

static bool is_word_of(const char *values, const char *word) {
    size_t n = strlen(word);
    for (const char *at = values; (at = strstr(at, word)); at++)
        if ((at == values || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}

static bool is_typed(const cJSON *value, char type, const char *values) {
    if (type == 's') return cJSON_IsString(value) && (!values || is_word_of(values, value->valuestring));
    if (type == 'b') return cJSON_IsBool(value);
    if (type == 'o') {
        const cJSON *one;
        if (!cJSON_IsObject(value) || !value->child) return false;
        cJSON_ArrayForEach(one, value) {
            if (!is_typed(one, 'n', NULL)) return false;
        }
        return true;
    }
    double number = cJSON_IsNumber(value) ? value->valuedouble : -1;
    return number == (double)(int64_t)number && number >= (type == '1' ? 1 : 0) && (type == 'n' || number <= 5);
}

static void check_line(const cJSON *line, char study) {
    const cJSON *one;
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
        one = cJSON_GetObjectItemCaseSensitive(line, fields[k].name);
        if (!one != !strchr(fields[k].where, study) || (one && !is_typed(one, fields[k].type, fields[k].values)))
            fail_msg("study %c: field %s: %s", study, fields[k].name, cJSON_Print(line));
    }
    one = cJSON_GetObjectItem(cJSON_GetObjectItem(line, "scores"), "skin_tone");
    assert_int_equal(one != NULL, study == 'd' || study == 'e' || study == 'g'); /* another scale is another field */
    const char *at = cJSON_GetStringValue(cJSON_GetObjectItem(line, "timestamp"));
    assert_true(strlen(at) == 20 && !strncmp(at, "2026-01-17T0", 12) && at[19] == 'Z');
    assert_int_equal(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(line, "workerId"))), 64);
    assert_int_equal(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(line, "consentHash"))), 64);
}

static void the_dictionary(void **state) {
    (void)state;
    for (int i = 0; i < 9; i++) {
        struct test_survey t;
        struct lk_survey_visitor who;
        struct lk_text text = {0}, silent = {0};
        const struct lk_survey_item *items[16];
        char token[65], more[120];
        enum lk_survey_verdict verdict;
        int64_t lease;
        int n_items = 0;
        snprintf(more, sizeof more, "%s\"tasks\":1,\"min_seconds\":0,", fields_of_study[i]);
        test_survey_open(&t, "export-fields", 6, more);
        test_survey_person(&t, "p1", 0, start, token, &who);
        assert_ok(lk_survey_task_items(t.study, who.worker, 0, items));
        for (int k = 0; k < (int)lk_survey_task_length(t.study, 0); k++) {
            assert_int_equal(test_survey_answer_all(&t, &who, k, k % 5, start + k * 20000), LK_SURVEY_DONE);
            if (!t.study->comments || items[k]->kind) continue;
            assert_ok(lk_survey_show(t.survey, &who, k, start, &lease));
            assert_ok(lk_survey_answer(t.survey, &who, lease, k, &(struct lk_survey_given){"comment", "seen"}, 1,
                                       start + k * 20000, &verdict));
            assert_int_equal(verdict, LK_SURVEY_DONE);
        }
        assert_ok(lk_survey_export_answers(t.survey, false, true, &text));
        assert_ok(lk_survey_export_answers(t.survey, false, false, &silent));
        assert_null(strstr(silent.bytes, "seen")); /* comments only when asked for */
        for (char *line = text.bytes, *end; *line; line = end + 1) {
            end = strchr(line, '\n');
            cJSON *root = cJSON_ParseWithLength(line, (size_t)(end - line));
            assert_non_null(root);
            bool check = cJSON_IsTrue(cJSON_GetObjectItem(root, "isAttentionCheck"));
            if (!check) check_line(root, (char)('a' + i));
            n_items += !check;
            cJSON_Delete(root);
        }
        assert_int_equal(n_items, t.study->both_arms ? 12 : 6);
        lk_text_free(&silent);
        lk_text_free(&text);
        test_survey_close(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_dictionary)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
