/* What a judge is asked: the digests are of the study's texts, filled by Python (str.replace). */
#include "eval/judge/prompt.h"
#include "tests/common/test.h"
#include "engine/base/digest.h"

static struct lk_judge_prompts *prompts;

static int load(void **state) {
    (void)state;
    return lk_judge_prompts_load(&prompts);
}

static int unload(void **state) {
    (void)state;
    lk_judge_prompts_free(prompts);
    return 0;
}

static void texts_of_the_study(void **state) {
    (void)state;
    const struct {
        const char *item;
        struct lk_judge_ask ask;
        const char *sha256;
    } cases[] = {
        {"flux_20s_male_black_O-01",
         {LK_JUDGE_PROMPT_V1, false, false, LK_CHECK_NONE, NULL},
         "562687e4bfbfd3823c57ae1c43b0638ba9309f4c2a3efe462b67f67bcdb5fa8e"},
        {"flux_40s_male_black_O-01",
         {LK_JUDGE_PROMPT_V1, false, false, LK_CHECK_NONE, NULL},
         "04e9fa52c2bb271fcae2a15d27ed5f50a4c85b44c54f5513fe2c8fac39acd329"},
        {"flux_70plus_female_white_V-03",
         {LK_JUDGE_PROMPT_V1, false, false, LK_CHECK_NONE, NULL},
         "4d8288ee6a6f79f059e13b0b45c9d776cd706323c86eee4513992c187c4d1b90"},
        {"flux_20s_Male_Black_catB_001.preserved",
         {LK_JUDGE_PROMPT_V1, false, false, LK_CHECK_NONE, NULL},
         "562687e4bfbfd3823c57ae1c43b0638ba9309f4c2a3efe462b67f67bcdb5fa8e"},
        {"qwen_70plus_female_southeastasian_V-10",
         {LK_JUDGE_PROMPT_V1, false, false, LK_CHECK_NONE, NULL},
         "f9eaf23cca55503ed48b94affc764c10b8900070c653fa4883a3bd608fa855bc"},
        {"step1x_40s_female_latino_V-03",
         {LK_JUDGE_PROMPT_V1, false, false, LK_CHECK_NONE, NULL},
         "0267850a055d2149fa8b1260184fd4efbb88578581fd42f83cc535ee9355167e"},
        {"step1x_40s_female_latino_V-03",
         {LK_JUDGE_PROMPT_PRINTED, false, false, LK_CHECK_NONE, NULL},
         "7f9ff2509793bb8cbd0275ca8e82f5001379c82b2ad30c73af808d24772550b1"},
        {"flux_20s_male_black_O-01",
         {LK_JUDGE_PROMPT_LEGACY, false, false, LK_CHECK_NONE, NULL},
         "c2c13ae146ce3ea10f3eec361a977b36a2aa1ebbdef2e50fd9943943b9f31a1c"},
        {"flux_20s_male_black_O-01",
         {LK_JUDGE_PROMPT_LEGACY, true, false, LK_CHECK_NONE, NULL},
         "f3a4cd61b5776c7d1540a4e4a6f73817e0dc92ea9aa29293439fd52d7accb988"},
        {"flux_20s_male_black_O-01",
         {LK_JUDGE_PROMPT_LEGACY, true, true, LK_CHECK_NONE, NULL},
         "2f36303d997d32ff6ededb6d39adc61bf775287fc33ee84377898ff3acb44402"},
        {"flux_pair_latino_20s_W-33",
         {LK_JUDGE_PROMPT_LEGACY, false, false, LK_CHECK_NONE, NULL},
         "4db8b708ec3ab224d73fc66d5d340046007ca7673aff81e6a1e4fd04f55bd0b8"},
        {"qwen_pair_white_20s_W-07",
         {LK_JUDGE_PROMPT_V1, false, false, LK_CHECK_NONE, NULL},
         "949633eb3ed6738a0ec628b9a6c6041093b948885603dfec86b0c09b4eb5dc32"},
        {"qwen_pair_white_20s_W-07",
         {LK_JUDGE_PROMPT_PRINTED, false, false, LK_CHECK_NONE, NULL},
         "949633eb3ed6738a0ec628b9a6c6041093b948885603dfec86b0c09b4eb5dc32"},
        {"qwen_20s_female_white_W-07",
         {LK_JUDGE_PROMPT_V1, false, false, LK_CHECK_NONE, NULL},
         "fbcd784a81d3e92dfb788c5e002e89437f514ad9e3be779564693b01578782eb"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_judge_message message;
        char sha256[65];
        assert_ok(lk_judge_message(prompts, cases[i].item, &cases[i].ask, &message));
        assert_string_equal(message.sha256, cases[i].sha256);
        lk_sha256(message.prompt, strlen(message.prompt), sha256);
        assert_string_equal(sha256, cases[i].sha256);
        assert_ptr_equal(message.parts[message.n_parts - 1].text, message.prompt);
        lk_judge_message_free(&message);
    }
}

/* Parts as one line: texts in brackets, pictures by name, the prompt left out. */
static void assert_parts(const char *item, struct lk_judge_ask ask, const char *expected) {
    struct lk_judge_message message;
    char got[256] = "";
    assert_ok(lk_judge_message(prompts, item, &ask, &message));
    for (int i = 0; i + 1 < message.n_parts; i++) {
        const struct lk_judge_part *part = &message.parts[i];
        size_t n = strlen(got);
        snprintf(got + n, sizeof got - n, part->text ? "[%s] " : "%s ",
                 part->text ? part->text : lk_judge_image_name(part->image));
    }
    assert_string_equal(got, expected);
    lk_judge_message_free(&message);
}

static void pictures_in_their_order(void **state) {
    (void)state;
    struct lk_judge_ask v1 = {.prompt = LK_JUDGE_PROMPT_V1};
    assert_parts("flux_20s_male_black_O-01", v1, "[SOURCE IMAGE:] source [EDITED IMAGE:] edited ");
    assert_parts("flux_20s_male_black_W-01", v1, "[SOURCE IMAGE:] source [EDITED IMAGE:] edited ");
    assert_parts("flux_pair_black_20s_W-01", v1, "source_male source_female edited ");
    assert_parts("flux_20s_male_black_O-01", (struct lk_judge_ask){LK_JUDGE_PROMPT_LEGACY, true, true, LK_CHECK_NONE, NULL},
                 "[SOURCE IMAGE:] source [IMAGE A:] preserved [IMAGE B:] edited ");
    v1.check = LK_CHECK_ORDER;
    assert_parts("flux_20s_male_black_O-01", v1, "[EDITED IMAGE:] edited [SOURCE IMAGE:] source ");
    v1.check = LK_CHECK_ROLES;
    assert_parts("flux_20s_male_black_O-01", v1, "[SOURCE IMAGE:] edited [EDITED IMAGE:] source ");
    v1.check = LK_CHECK_REPEAT;
    assert_parts("flux_20s_male_black_O-01", v1, "[SOURCE IMAGE:] source [EDITED IMAGE:] edited ");
}

static void questions_that_are_none(void **state) {
    (void)state;
    struct lk_judge_message message;
    const struct lk_judge_ask v1_pair = {LK_JUDGE_PROMPT_V1, true, false, LK_CHECK_NONE, NULL},
                              pair = {LK_JUDGE_PROMPT_LEGACY, true, false, LK_CHECK_NONE, NULL};
    assert_fails(lk_judge_message(prompts, "nonsense", &pair, &message), LK_E_INPUT, "is no prompt");
    assert_null(message.prompt);
    assert_fails(lk_judge_message(prompts, "flux_20s_male_black_O-01", &v1_pair, &message), LK_E_INPUT, "legacy");
    assert_fails(lk_judge_message(prompts, "flux_pair_black_20s_W-01", &pair, &message), LK_E_INPUT, "O or V");
    const struct lk_judge_ask legacy = {.prompt = LK_JUDGE_PROMPT_LEGACY};
    assert_fails(lk_judge_message(prompts, "flux_20s_male_black_W-01", &legacy, &message), LK_E_INPUT, "of two people");
    for (int i = 0; i < LK_N_JUDGE_PROMPTS; i++)
        assert_int_equal(lk_judge_prompt_parse(lk_judge_prompt_name((enum lk_judge_prompt)i)), i);
    assert_int_equal(lk_judge_prompt_parse("v2"), -1);
    const struct lk_judge_ask check = {.prompt = LK_JUDGE_PROMPT_V1, .check = LK_CHECK_ORDER};
    assert_fails(lk_judge_message(prompts, "flux_20s_male_black_W-01", &check, &message), LK_E_INPUT, "five scores");
    assert_fails(lk_judge_message(prompts, "flux_pair_black_20s_W-01", &check, &message), LK_E_INPUT, "five scores");
    for (int i = 0; i < LK_N_CHECKS; i++)
        assert_int_equal(lk_judge_check_parse(lk_judge_check_name((enum lk_judge_check)i)), i);
    assert_int_equal(lk_judge_check_parse("swap"), -1);
}

static enum lk_code ask_one(void) {
    struct lk_judge_prompts *loaded;
    struct lk_judge_message message;
    LK_TRY(lk_judge_prompts_load(&loaded));
    enum lk_code rc = lk_judge_message(loaded, "flux_20s_male_black_O-01",
                                       &(struct lk_judge_ask){.prompt = LK_JUDGE_PROMPT_V1}, &message);
    lk_judge_message_free(&message);
    lk_judge_prompts_free(loaded);
    return rc;
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    test_every_allocation(ask_one, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_the_study),
        cmocka_unit_test(pictures_in_their_order),
        cmocka_unit_test(questions_that_are_none),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
