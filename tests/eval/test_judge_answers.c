/* What a judge's answer may look like, and that nothing else is read: rule by rule, and 660 answers whose verdict came
 * from Python's json module (tests/golden/generate_scores.py). */
#include "engine/base/alloc.h"
#include "eval/judge/answers.h"
#include "eval/study/prompts.h"
#include "tests/common/test.h"
#include "engine/base/json.h"

#define FIVE "\"edit_success\": 4, \"skin_tone\": 3, \"race_drift\": 1, \"gender_drift\": 2, \"age_drift\": 5"

static enum lk_code read_answer(const char *text, int prompt, struct lk_judge_answer *out) {
    struct lk_store texts = {0};
    enum lk_code rc = lk_judge_answer_read(text, strlen(text), prompt, &texts, out);
    lk_store_free(&texts);
    return rc;
}

static void assert_five(const char *text, int prompt, int a, int b, int c, int d, int e) {
    struct lk_judge_answer answer;
    assert_ok(read_answer(text, prompt, &answer));
    const uint8_t expected[] = {(uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)d, (uint8_t)e};
    assert_memory_equal(answer.score, expected, sizeof expected);
}

static void answers_that_are_read(void **state) {
    (void)state;
    assert_five("{\"observations\": {}, \"scores\": {" FIVE "}, \"evidence_summary\": \"x\"}", 0, 4, 3, 1, 2, 5);
    assert_five("{" FIVE "}", 0, 4, 3, 1, 2, 5);
    assert_five("```json\n{\"scores\": {" FIVE "}}\n```", 0, 4, 3, 1, 2, 5);
    assert_five("```json {" FIVE "}```", 0, 4, 3, 1, 2, 5);
    assert_five("``` {" FIVE "}", 0, 4, 3, 1, 2, 5);
    assert_five("```{json}\n{" FIVE "}\n```", 0, 4, 3, 1, 2, 5);
    assert_five("Here you are:\n```\n{" FIVE "}\n```\nI hope {this} helps.", 0, 4, 3, 1, 2, 5);
    assert_five("{\"note\": \"a } and a \\\" brace {\", " FIVE "} trailing", 0, 4, 3, 1, 2, 5);
    assert_five(
        "{\"Scores\": {\"EDIT_SUCCESS\": \"4\", \"Skin_Stone\": 3.0, \"race_change\": 1e0, \"Gender Change\": 20e-1, "
        "\"age_drift\": 5}}",
        0, 4, 3, 1, 2, 5);
    assert_five("{\"skin_stone\": 3, " FIVE "}", 0, 4, 3, 1, 2, 5);
    assert_five("{\"overall\": 9, \"age_accuracy\": \"n/a\", " FIVE "}", 0, 4, 3, 1, 2, 5);
    assert_five("{\"edit_success\": \"see below\", \"scores\": {" FIVE "}}", 0, 4, 3, 1, 2, 5);
    assert_five("{\"edit_success\": 1, \"skin_tone\": 2, \"race_drift\": 3, \"gender_drift\": 4, \"age_accuracy\": 5}",
                LK_PROMPT_V03, 1, 2, 3, 4, 5);
    assert_five("{\"age_accuracy\": 5, " FIVE "}", LK_PROMPT_V03, 4, 3, 1, 2, 5);
}

#define OTHER "{\"edit_success\": 1, \"skin_tone\": 5, \"race_drift\": 5, \"gender_drift\": 5, \"age_drift\": 5}"
#define A     "{" FIVE "}"

/* Which of several objects is the answer: wanted[0] 'a' for A, 'o' for OTHER, else the reason of a refusal. */
static void which_words_are_the_answer(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        /* thoughts of every kind; drafts in them; braces of prose in them; opened by the prompt */
        {"<think>" OTHER "</think>" A, "a"},
        {"<think>axes are {edit_success, skin_tone}</think>\n" A, "a"},
        {"<think>a { that is open</think>" A, "a"},
        {"<think>a \"quote</think>" A, "a"},
        {OTHER "</think>\n\n" A, "a"},
        {"<THINK>" OTHER "</Think>" A, "a"},
        {"<thinking>" OTHER "</thinking>" A, "a"},
        {"<thought>" OTHER "</thought>" A, "a"},
        {"<reasoning>" OTHER "</reasoning>" A, "a"},
        {"[THINK]" OTHER "[/THINK]" A, "a"},
        {"\xe2\x97\x81think\xe2\x96\xb7" OTHER "\xe2\x97\x81/think\xe2\x96\xb7" A, "a"},
        {"<seed:think>" OTHER "</seed:think>" A, "a"},
        {"<|channel|>analysis<|message|>" OTHER "<|end|><|start|>assistant<|channel|>final<|message|>" A, "a"},
        {"<think>a</think>" OTHER "<think>b</think>" A, "a"},
        {"<think>a<think>" OTHER "</think>" A, "a"},
        {"<think>" OTHER "</think>```json\n" A "\n```", "a"},
        /* thoughts that are no answers */
        {"<think>" OTHER, "<think> begins is not closed"},
        {"<think>" OTHER " but let me look again", "not closed"},
        {A "<think>or rather", "not closed"},
        {"<think>a</think><think>" A, "not closed"},
        {"[THINK]" A, "[THINK] begins is not closed"},
        {"<|channel|>analysis<|message|>" A, "not closed"},
        {"<think>" A "</think>", "no answer follows the thought"},
        {A "</think> \n", "no answer follows the thought"},
        {"<think>" A "</think>I cannot.", "no JSON object"},
        /* objects that are no answers */
        {"The axes {edit_success, skin_tone}: " A, "a"},
        {A " Hope {this} helps.", "a"},
        {"{} " A, "a"},
        {A "\n{}", "a"},
        {"{\"observations\": {\"edit\": \"done\"}}\n" A, "a"},
        {A " {\"note\": 4}", "a"},
        /* several answers */
        {A "\n" A, "a"},
        {A "\nThe same again: {\"scores\": " A "}", "a"},
        {A "\n" OTHER, "two answers that differ"},
        {"Draft: " OTHER "\nAnswer: " A, "two answers that differ"},
        {OTHER "\nFinal answer: " A, "a"},
        {OTHER "\n**FINAL**\n```json\n" A "\n```", "a"},
        {OTHER "\nCorrected: " A, "a"},
        {OTHER "\nCorrection:\n" A, "a"},
        {OTHER "\nMy revised scores: " A, "a"},
        {OTHER "\nRevision: " A, "a"},
        {OTHER "\nUpdated: " A, "a"},
        {A "\n" OTHER "\nFinal: " A, "a"},
        {"Final: " A "\n" OTHER, "two answers that differ"},
        {A "\nFinal: " OTHER "\nFinal: " A, "a"},
        {A "\nFinal: " OTHER "\n" A, "two answers that differ"},
        {A "\nFinally, the finals: " OTHER, "two answers that differ"},
        {A "\nThis is not final: " OTHER, "two answers that differ"},
        {A "\nIt isn't final: " OTHER, "two answers that differ"},
        {A "\nFinal draft: " OTHER, "two answers that differ"},
        {A "\nA revised example: " OTHER, "two answers that differ"},
        {"{\"edit_success\": 9} " A, "two answers that differ"},
        {"{\"edit_success\": 9} final: " A, "a"},
        {A " {'edit_success': 4}", "two answers that differ"},
        {A " final: {\"edit_success\": 4}", "skin_tone: missing"},
        {"{\"scores\": " A " \"x\"} " A, "two answers that differ"},
        /* objects that are cut off */
        {A "\n{\"edit_success\": 4, \"skin", "not closed"},
        {"{\"scores\": " A ", \"evidence_summary\": \"cut", "not closed"},
    };
    struct lk_judge_answer a, o, got;
    assert_ok(read_answer(A, 0, &a));
    assert_ok(read_answer(OTHER, 0, &o));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum lk_code rc = read_answer(cases[i].text, 0, &got);
        const struct lk_judge_answer *wanted = cases[i].wanted[1] ? NULL : cases[i].wanted[0] == 'a' ? &a : &o;
        bool right = wanted ? !rc && !memcmp(got.score, wanted->score, LK_N_AXES)
                            : rc == LK_E_INPUT && strstr(lk_error_text(), cases[i].wanted);
        if (!right) fail_msg("%s\nwanted %s, got %d: %s", cases[i].text, cases[i].wanted, rc, lk_error_text());
    }
}

/* Raw line ends in strings and commas before a closing bracket have one meaning; they are read and counted. */
static void slips_are_mended_and_counted(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int n;
    } cases[] = {
        {A, 0},
        {"{" FIVE ",}", 1},
        {"{" FIVE " , \n}", 1},
        {"{\"scores\": {" FIVE ",},}", 2},
        {"{\"list\": [1, [2,],], " FIVE "}", 2},
        {"{\"evidence_summary\": \"one\ntwo\r\n\tthree\", " FIVE "}", 4},
        {"{\"evidence_summary\": \"a,} b,] \\\",}\", " FIVE "}", 0},
        {"{\"a\": \"\\\\\",\n\"b\": \",}\", " FIVE ",}", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_judge_answer answer;
        assert_five(cases[i].text, 0, 4, 3, 1, 2, 5);
        assert_ok(read_answer(cases[i].text, 0, &answer));
        assert_int_equal(answer.n_mended, cases[i].n);
    }
}

/* Ages in years for a level, by the printed ranges; V-03 asks for 30 years more. */
static void years_become_levels(void **state) {
    (void)state;
    static const struct {
        double years;
        int prompt, level;
    } cases[] = {{-15, 0, 1},
                 {-14.9, 0, 2},
                 {-5, 0, 3},
                 {5, 0, 3},
                 {5.1, 0, 4},
                 {15, 0, 5},
                 {14.9, 0, 4},
                 {-5.1, 0, 2},
                 {10, LK_PROMPT_V03, 1},
                 {20, LK_PROMPT_V03, 3},
                 {40, LK_PROMPT_V03, 3},
                 {50, LK_PROMPT_V03, 5},
                 {10.1, LK_PROMPT_V03, 2},
                 {40.1, LK_PROMPT_V03, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "{\"scores\": {\"edit_success\": 4, \"skin_tone\": 3, \"race_drift\": 1, \"gender_drift\": 2, "
                 "\"age_years\": %g}}",
                 cases[i].years);
        assert_five(text, cases[i].prompt, 4, 3, 1, 2, cases[i].level);
    }
    struct lk_judge_answer answer;
    assert_fails(read_answer("{\"edit_success\": 4, \"skin_tone\": 3, \"race_drift\": 1, \"gender_drift\": 2, "
                             "\"age_years\": \"older\"}",
                             0, &answer),
                 LK_E_INPUT, "age_drift");
    assert_fails(read_answer("{" FIVE ", \"age_years\": 0}", 0, &answer), LK_E_INPUT, "two spellings");
}

static void answers_that_are_refused(void **state) {
    (void)state;
    const struct {
        const char *text;
        int prompt;
        const char *reason;
    } cases[] = {
        {"", 0, "no JSON object"},
        {"I cannot judge this picture.", 0, "no JSON object"},
        {"```json {\n\"edit_success\": 4}```", 0, "skin_tone: missing"},
        {"```json\nnothing\n```", 0, "no JSON object"},
        {"{\"scores\": {" FIVE "}", 0, "not closed"},
        {"{\"scores\": {" FIVE "}, \"evidence_summary\": \"cut", 0, "not closed"},
        {"{x}", 0, "not strict JSON"},
        {"{'edit_success': 4}", 0, "not strict JSON"},
        {"{" FIVE ",,}", 0, "not strict JSON"},
        {"{,}", 0, "not strict JSON"},
        {"{" FIVE ", \"age_drift\": 5}", 0, "occurs twice"},
        {"{\"skin_stone\": 4, " FIVE "}", 0, "skin_tone: two spellings with different values, 4 and 3"},
        {"{\"SKIN_TONE\": 2, " FIVE "}", 0, "two spellings"},
        {"{\"age_accuracy\": 4, " FIVE "}", LK_PROMPT_V03, "age_drift: two spellings"},
        {"{\"scores\": {" FIVE "}, \"Scores\": {" FIVE "}}", 0, "two objects"},
        {"{\"scores\": [4, 3, 1, 2, 5], " FIVE "}", 0, "\"scores\" is no object"},
        {"{\"scores\": {}, " FIVE "}", 0, "edit_success: missing from \"scores\""},
        {"{\"edit_success\": 4, \"skin_tone\": 3, \"race_drift\": 1, \"gender_drift\": 2}", 0, "age_drift: missing"},
        {"{\"edit_success\": 4, \"skin_tone\": 3, \"race_drift\": 1, \"gender_drift\": 2, \"age_accuracy\": 3}", 0,
         "age_drift: missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_judge_answer answer;
        assert_fails(read_answer(cases[i].text, cases[i].prompt, &answer), LK_E_INPUT, cases[i].reason);
        for (int a = 0; a < LK_N_AXES; a++) assert_int_equal(answer.score[a], 0);
    }
    static const char *const values[] = {"0",
                                         "6",
                                         "3.5",
                                         "\"4/5\"",
                                         "null",
                                         "-1",
                                         "\"\"",
                                         "\"4.0\"",
                                         "\" 4\"",
                                         "true",
                                         "[4]",
                                         "{}",
                                         "44",
                                         "4e1",
                                         "0.4",
                                         "\"five\"",
                                         "1e999",
                                         "40",
                                         "4.0001",
                                         "-4",
                                         "1.4e1",
                                         "1e-999",
                                         "4.00000000000000001"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[256];
        struct lk_judge_answer answer;
        snprintf(text, sizeof text,
                 "{\"edit_success\": 4, \"skin_tone\": 3, \"race_drift\": %s, \"gender_drift\": 2, \"age_drift\": 3}",
                 values[i]);
        assert_fails(read_answer(text, 0, &answer), LK_E_INPUT, "race_drift: expected an integer from 1 to 5, got");
    }
}

static void roles_of_experiment_3(void **state) {
    (void)state;
    struct lk_judge_answer answer;
    int w = LK_N_EDIT_PROMPTS + 3;
    assert_ok(read_answer("{\"assigned\": \"Female\"}", w, &answer));
    assert_int_equal(answer.role, LK_ROLE_FEMALE);
    assert_int_equal(answer.score[0], 0);
    assert_ok(read_answer("```json\n{\"assigned\": \"unclear\"}\n```", w, &answer));
    assert_int_equal(answer.role, LK_ROLE_UNCLEAR);
    assert_ok(read_answer("{" FIVE "}", w, &answer));
    assert_int_equal(answer.role, LK_ROLE_NONE);
    assert_fails(read_answer("{\"assigned\": \"both\"}", w, &answer), LK_E_INPUT, "assigned: expected");
    assert_fails(read_answer("{\"assigned\": 1}", w, &answer), LK_E_INPUT, "assigned: expected");
    assert_fails(read_answer("{\"assigned\": \"male\", \"skin_tone\": 3}", w, &answer), LK_E_INPUT, "missing");
    assert_fails(read_answer("{\"assigned\": \"male\"}", 0, &answer), LK_E_INPUT, "missing");
    const int8_t presented[] = {LK_ROLE_MALE, LK_ROLE_MALE, LK_ROLE_UNCLEAR, LK_ROLE_FEMALE, LK_ROLE_FEMALE};
    for (int level = 1; level <= 5; level++) {
        char text[64];
        snprintf(text, sizeof text, "{\"gender_presentation\": %d}", level);
        assert_ok(read_answer(text, w, &answer));
        assert_int_equal(answer.role, presented[level - 1]);
        assert_int_equal(answer.presentation, level);
        assert_fails(read_answer(text, 0, &answer), LK_E_INPUT, "missing");
    }
    assert_fails(read_answer("{\"gender_presentation\": 6}", w, &answer), LK_E_INPUT, "gender_presentation: expected");
    assert_fails(read_answer("{\"gender_presentation\": 5, \"assigned\": \"male\"}", w, &answer), LK_E_INPUT,
                 "another gender");
}

static void verdicts_of_python(void **state) {
    (void)state;
    size_t n;
    char *text = test_read("golden/data/judge_answers.json", &n);
    struct lk_json j;
    int n_cases = 0, n_valid = 0;
    lk_json_init(&j, text, n, "judge_answers.json");
    assert_true(lk_json_enter(&j, '['));
    while (lk_json_next(&j)) { /* [prompt, answer, "43125" or ""] */
        const char *piece;
        char prompt[8], *answer;
        struct lk_judge_answer got;
        assert_true(lk_json_enter(&j, '[') && lk_json_next(&j) && lk_json_string(&j, &piece));
        snprintf(prompt, sizeof prompt, "%s", piece);
        assert_true(lk_json_next(&j) && lk_json_string(&j, &piece));
        answer = strdup(piece);
        assert_true(lk_json_next(&j) && lk_json_string(&j, &piece));
        enum lk_code rc = read_answer(answer, lk_prompt_parse(prompt, strlen(prompt)), &got);
        char digits[LK_N_AXES + 1] = "";
        for (int a = 0; !rc && a < LK_N_AXES; a++) digits[a] = (char)('0' + got.score[a]);
        if (strcmp(digits, piece) || (rc && rc != LK_E_INPUT))
            fail_msg("case %d: %s\nexpected \"%s\", got \"%s\" (%s)", n_cases, answer, piece, digits, lk_error_text());
        n_valid += !rc;
        free(answer);
        assert_false(lk_json_next(&j));
        n_cases++;
    }
    assert_true(lk_json_end(&j));
    assert_ok(lk_json_finish(&j));
    free(text);
    assert_true(n_cases >= 660 && n_valid > 250 && n_valid < n_cases - 250);
}

static const char jsonl[] =
    "\xef\xbb\xbf{\"item_id\": \"flux_20s_male_black_O-01\", \"scores\": {" FIVE
    "}, \"evidence_summary\": \"seen\"}\r\n"
    "\n"
    "{\"item_id\": \"flux_20s_male_black_O-02\", \"answer\": \"```json\\n{\\\"edit_success\\\": 5, \\\"skin_stone\\\": "
    "3, "
    "\\\"race_drift\\\": 1, \\\"gender_drift\\\": 1, \\\"age_drift\\\": 3}\\n```\"}\n"
    "{\"item_id\": \"flux_20s_male_black_O-03\", " FIVE "}\n"
    "{\"item_id\": \"flux_20s_male_black_O-04\", \"answer\": \"I cannot.\"}\n"
    "not json\n"
    "{\"item_id\": \"nonsense\", " FIVE "}\n"
    "{" FIVE "}\n"
    "{\"item_id\": \"flux_20s_male_black_O-01.edited\", " FIVE "}\n"
    "{\"item_id\": \"flux_20s_male_black_O-01\", \"edit_success\": 1, \"skin_tone\": 3, \"race_drift\": 1, "
    "\"gender_drift\": 2, \"age_drift\": 5}\n"
    "{\"item_id\": \"flux_20s_male_black_V-03\", \"raw\": null, \"edit_success\": 1, \"skin_tone\": 3, \"race_drift\": "
    "1, "
    "\"gender_drift\": 2, \"age_accuracy\": 2}";

static void a_file_is_read_line_by_line(void **state) {
    (void)state;
    struct lk_dataset data;
    struct lk_judge_report report = {0};
    lk_dataset_init(&data);
    assert_ok(lk_judge_answers_read(&data, jsonl, sizeof jsonl - 1, "a.jsonl", &(struct lk_judge_import){.slot = 1},
                                    &report));
    assert_int_equal(report.n_records, 10);
    assert_int_equal(report.n_matched, 4);
    assert_int_equal(report.n_repeated, 1);
    assert_int_equal(report.n_invalid, 5);
    assert_int_equal(report.n_unknown, 0);
    assert_int_equal(data.n_items, 4);
    assert_int_equal(data.items[0].judge[1][0], 4);
    assert_int_equal(data.items[0].judge[0][0], 0);
    assert_string_equal(data.items[0].evidence, "seen");
    assert_int_equal(data.items[1].judge[1][0], 5);
    assert_int_equal(data.items[3].judge[1][LK_AXIS_AGE_DRIFT], 2);
    const struct {
        size_t line;
        const char *item, *reason;
    } rejects[] = {{5, "flux_20s_male_black_O-04", "no JSON object"},
                   {6, "", "not strict JSON"},
                   {7, "nonsense", "is no prompt"},
                   {8, "", "item_id"},
                   {10, "flux_20s_male_black_O-01", "differs from the first"}};
    assert_int_equal(report.rejects.n, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(report.rejects.list[i].line, rejects[i].line);
        assert_string_equal(report.rejects.list[i].item, rejects[i].item);
        assert_non_null(strstr(report.rejects.list[i].reason, rejects[i].reason));
    }
    /* into a dataset that knows its items */
    static const char other[] = "[ {\"item_id\": \"flux_20s_male_black_O-01\", " FIVE "},\n"
                                "  {\"item_id\": \"flux_20s_male_black_O-09\", " FIVE "}\n]";
    lk_judge_report_free(&report);
    assert_ok(lk_judge_answers_read(&data, other, sizeof other - 1, "a.json",
                                    &(struct lk_judge_import){.slot = 0, .known_only = true}, &report));
    assert_int_equal(report.n_matched, 1);
    assert_int_equal(report.n_unknown, 1);
    assert_int_equal(report.rejects.list[0].line, 2);
    assert_int_equal(data.n_items, 4);
    lk_judge_report_free(&report);
    lk_dataset_free(&data);
}

/* What was asked to check a judge is read as that check and as no score; from the other's place skin and age mirror. */
static void checks_are_no_scores(void **state) {
    (void)state;
    static const char lines[] =
        "{\"item_id\":\"flux_20s_male_black_O-01\",\"judge\":\"mistral3\",\"model\":\"m\",\"judge_check\":\"roles\","
        "\"scores\":{\"edit_success\":1,\"skin_tone\":2,\"race_drift\":4,\"gender_drift\":5,\"age_drift\":5}}\n"
        "{\"item_id\":\"flux_20s_male_black_V-03\",\"judge_check\":\"roles\","
        "\"scores\":{\"edit_success\":1,\"skin_tone\":3,\"race_drift\":1,\"gender_drift\":1,\"age_drift\":5}}\n";
    static const char *const checks[] = {NULL, "order", "roles"};
    static const uint8_t mirrored[2][LK_N_AXES] = {{1, 4, 4, 5, 1}, {1, 3, 1, 1, 5}};
    for (int i = 0; i < 3; i++) {
        struct lk_dataset data;
        struct lk_judge_report report = {0};
        lk_dataset_init(&data);
        const struct lk_judge_import import = {.slot = 1, .check = checks[i]};
        assert_ok(lk_judge_answers_read(&data, lines, sizeof lines - 1, "x", &import, &report));
        assert_int_equal(report.n_matched, i == 2 ? 2 : 0);
        assert_int_equal(report.n_invalid, i == 2 ? 0 : 2);
        if (i < 2) assert_non_null(strstr(report.rejects.list[0].reason, "got roles"));
        assert_string_equal(report.judge, i == 2 ? "mistral3" : "");
        for (size_t k = 0; k < data.n_items; k++) assert_memory_equal(data.items[k].judge[1], mirrored[k], LK_N_AXES);
        lk_judge_report_free(&report);
        lk_dataset_free(&data);
    }
    /* a file without a check, where one is expected; a server's model by its name */
    static const char plain[] =
        "{\"item_id\":\"flux_20s_male_black_O-01\",\"judge\":\"openai\",\"model\":\"m\","
        "\"scores\":{\"edit_success\":1,\"skin_tone\":2,\"race_drift\":4,\"gender_drift\":5,\"age_drift\":5}}\n";
    for (int i = 0; i < 2; i++) {
        struct lk_dataset data;
        struct lk_judge_report report = {0};
        lk_dataset_init(&data);
        const struct lk_judge_import import = {.check = checks[i]};
        assert_ok(lk_judge_answers_read(&data, plain, sizeof plain - 1, "x", &import, &report));
        assert_int_equal(report.n_invalid, i);
        assert_string_equal(report.judge, i ? "" : "m");
        lk_judge_report_free(&report);
        lk_dataset_free(&data);
    }
}

static void arrays_that_are_none(void **state) {
    (void)state;
    static const char *const texts[] = {"[",       "[{}",   "[{},]", "[{}] {}",      "[1]",
                                        "[{} {}]", "[,{}]", "[[]]",  "[{\"a\": \"}]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct lk_dataset data;
        struct lk_judge_report report = {0};
        lk_dataset_init(&data);
        assert_fails(
            lk_judge_answers_read(&data, texts[i], strlen(texts[i]), "a.json", &(struct lk_judge_import){0}, &report),
            LK_E_JSON, "a.json: line 1: ");
        lk_judge_report_free(&report);
        lk_dataset_free(&data);
    }
    struct lk_dataset data;
    struct lk_judge_report report = {0};
    lk_dataset_init(&data);
    assert_ok(lk_judge_answers_read(&data, " [ ] \n", 6, "a.json", &(struct lk_judge_import){0}, &report));
    assert_ok(lk_judge_answers_read(&data, "", 0, "a.json", &(struct lk_judge_import){0}, &report));
    assert_int_equal(report.n_records, 0);
    lk_dataset_free(&data);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    enum lk_code rc = LK_E_NOMEM;
    for (int64_t n = 1; rc; n++) {
        struct lk_dataset data;
        struct lk_judge_report report = {0};
        lk_dataset_init(&data);
        lk_alloc_fail_at(n);
        rc = lk_judge_answers_read(&data, jsonl, sizeof jsonl - 1, "a.jsonl", &(struct lk_judge_import){0}, &report);
        lk_alloc_fail_at(0);
        assert_true(!rc || rc == LK_E_NOMEM);
        if (!rc) assert_int_equal(report.n_matched, 4);
        lk_judge_report_free(&report);
        lk_dataset_free(&data);
        assert_int_equal(lk_alloc_live(), live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_are_read),        cmocka_unit_test(which_words_are_the_answer),
        cmocka_unit_test(slips_are_mended_and_counted), cmocka_unit_test(years_become_levels),
        cmocka_unit_test(answers_that_are_refused),     cmocka_unit_test(roles_of_experiment_3),
        cmocka_unit_test(verdicts_of_python),           cmocka_unit_test(a_file_is_read_line_by_line),
        cmocka_unit_test(checks_are_no_scores),         cmocka_unit_test(arrays_that_are_none),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
