/* Thinking and reflection with a model that is played: what is asked, what is edited, what becomes the result. And the
 * file of instructions. */
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "models/step1x/rounds.h"

/* Replies to give in turn, one text per call; "*N text" gives it N times. The last one is repeated. */
struct script {
    const char *replies[32];
    int at, times;
    char asked[4096]; /* "call(image widths) ..." of every question */
    char edited[1024];
    int n_edits;
    bool fail_edit;
};

static struct lk_step1x_instructions texts;
static const struct lk_image source = {.width = 100, .height = 50, .channels = 3};

static void make_texts(void) {
    static char system[LK_STEP1X_N_CALLS][16];
    static char *const user[] = {"{instruction}|{language}",
                                 "{instruction}|{language}",
                                 "{instruction}|{description}",
                                 "{instruction}|{score}|{reason}",
                                 "{instruction}",
                                 ""};
    static const char *const names[] = {"rewrite", "describe", "score", "reflect", "score1", "score2"};
    for (int i = 0; i < LK_STEP1X_N_CALLS; i++) {
        snprintf(system[i], sizeof system[i], "%s", names[i]);
        texts.texts[i][LK_STEP1X_SYSTEM] = system[i];
        texts.texts[i][LK_STEP1X_USER] = user[i];
    }
}

static enum lk_code ask(void *context, const struct lk_step1x_question *q, char **reply) {
    struct script *s = context;
    size_t n = strlen(s->asked);
    n += (size_t)snprintf(s->asked + n, sizeof s->asked - n, "%s%s(", q->text_first ? "text first " : "", q->system);
    for (int i = 0; i < q->n_images; i++)
        n += (size_t)snprintf(s->asked + n, sizeof s->asked - n, "%d ", q->images[i]->width);
    snprintf(s->asked + n, sizeof s->asked - n, "%s) ", q->user);
    const char *text = s->replies[s->at];
    if (*text == '*') {
        char *end;
        long times = strtol(text + 1, &end, 10);
        text = end + 1;
        if (++s->times >= times) s->times = 0, s->at++;
    } else if (s->replies[s->at + 1]) {
        s->at++;
    }
    *reply = lk_strdup(text);
    return *reply ? LK_OK : lk_fail(LK_E_NOMEM, "script");
}

static enum lk_code edit(void *context, const struct lk_image *image, const char *prompt, struct lk_result *result) {
    struct script *s = context;
    size_t n = strlen(s->edited);
    snprintf(s->edited + n, sizeof s->edited - n, "%d:%s ", image->width, prompt);
    if (s->fail_edit && s->n_edits) return lk_fail(LK_E_NONFINITE, "script: an edit failed");
    LK_TRY(lk_image_new(&result->image, 200 + s->n_edits, 4, 3)); /* its width tells the round */
    result->n_steps = ++s->n_edits;
    return LK_OK;
}

static enum lk_code play(struct script *s, bool thinking, bool reflection, int max_try_cnt, struct lk_result *result) {
    const struct lk_step1x_player player = {.ask = ask, .edit = edit, .context = s};
    struct lk_request request = {.images = &source, .n_images = 1, .prompt = "p", .max_try_cnt = max_try_cnt};
    request.thinking_mode = thinking;
    request.reflection_mode = reflection;
    *result = (struct lk_result){0};
    return lk_step1x_run_rounds(&request, &texts, &player, result);
}

#define GOOD       "{\"meets_instruction\": \"yes\", \"raw_score\": 9.5, \"reason\": \"fine\"}"
#define SCORES(ab) "{\"score\": [" ab "], \"reasoning\": \"\"}"

static void thinking_rewrites_the_prompt(void **state) {
    (void)state;
    struct script s = {.replies = {" Paint it blue.\n"}};
    struct lk_result result;
    assert_ok(play(&s, true, false, 3, &result));
    assert_string_equal(s.asked, "rewrite(100 p|英文) ");
    assert_string_equal(s.edited, "100:Paint it blue. ");
    assert_int_equal(result.n_rounds, 1);
    assert_string_equal(result.rounds[0].prompt, "Paint it blue.");
    assert_int_equal(result.rounds[0].verdict, LK_VERDICT_NONE);
    assert_int_equal(result.image.width, 200);
    lk_result_free(&result);
    struct script refused = {.replies = {"错误: no"}};
    assert_fails(play(&refused, true, false, 3, &result), LK_E_INPUT, "no");
    lk_result_free(&result);
}

static void a_success_ends_the_rounds(void **state) {
    (void)state;
    struct script s = {.replies = {"D", GOOD, "<#Think> a <#Success>", SCORES("8, 9"), SCORES("7, 6")}};
    struct lk_result result;
    assert_ok(play(&s, false, true, 3, &result));
    assert_string_equal(s.asked, "describe(100 p|英文) text first score(200 p|D) reflect(100 200 p|9.5|fine) "
                                 "score1(100 200 p) score2(200 ) ");
    assert_int_equal(result.n_rounds, 1);
    assert_int_equal(result.rounds[0].verdict, LK_VERDICT_SUCCESS);
    assert_true(result.rounds[0].consistency == 9.5 && result.rounds[0].edit_score == 8);
    assert_true(result.rounds[0].look_score == 6 && result.rounds[0].score == 48);
    lk_result_free(&result);
}

/* Reflection edits the result further; failure starts over; the best of all is kept. */
static void rounds_follow_the_verdicts(void **state) {
    (void)state;
    struct script s = {.replies = {"rewritten", "D", GOOD, "<#Think> a <#Reflection> more", SCORES("9"), SCORES("9"),
                                   "D", GOOD, "<#Think> a <#Failed>", SCORES("5"), SCORES("5"), "D", GOOD,
                                   "<#Think> a <#Reflection> again", SCORES("2"), SCORES("2")}};
    struct lk_result result;
    assert_ok(play(&s, true, true, 3, &result));
    assert_string_equal(s.edited, "100:rewritten 200: more 100:rewritten ");
    assert_non_null(strstr(s.asked, "reflect(100 201 rewritten|"));
    assert_int_equal(result.n_rounds, 3);
    assert_int_equal(result.best_round, 0);
    assert_int_equal(result.image.width, 200);
    assert_int_equal(result.n_steps, 1);
    assert_true(result.rounds[0].from_source && !result.rounds[1].from_source && result.rounds[2].from_source);
    assert_string_equal(result.rounds[1].prompt, " more");
    assert_int_equal(result.rounds[1].verdict, LK_VERDICT_FAILED);
    lk_result_free(&result);
}

/* Each call is tried 20 times; what never came is a failure, and its scores are 0. */
static void malformed_replies_are_asked_for_again(void **state) {
    (void)state;
    struct script s = {.replies = {"*19 错误:", "D", "*19 no", GOOD, "*19 no", "<#Think> a <#Others>", "*20 no",
                                   "*19 no", SCORES("3")}};
    struct lk_result result;
    assert_ok(play(&s, false, true, 3, &result));
    assert_int_equal(result.n_rounds, 1);
    assert_int_equal(result.rounds[0].verdict, LK_VERDICT_OTHERS);
    assert_true(result.rounds[0].edit_score == 0 && result.rounds[0].look_score == 3);
    lk_result_free(&result);
    struct script never = {.replies = {"*20 错误:", "no"}};
    assert_ok(play(&never, false, true, 1, &result));
    assert_null(strstr(never.asked, "reflect("));
    assert_int_equal(result.rounds[0].verdict, LK_VERDICT_FAILED);
    assert_non_null(strstr(result.rounds[0].reflection, "<#Failed>"));
    lk_result_free(&result);
}

static void failures_leave_nothing_behind(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    struct lk_result result;
    struct script edit_fails = {.replies = {"D", GOOD, "<#Think> a <#Reflection> more", SCORES("9")},
                                .fail_edit = true};
    assert_fails(play(&edit_fails, false, true, 3, &result), LK_E_NONFINITE, "an edit failed");
    lk_result_free(&result);
    assert_int_equal(lk_alloc_live(), live);
    for (int64_t n = 1, rc = LK_E_NOMEM; rc; n++) {
        struct script s = {
            .replies = {"rewritten", "D", GOOD, "<#Think> a <#Reflection> more", SCORES("9"), SCORES("9")}};
        lk_alloc_fail_at(n);
        rc = play(&s, true, true, 2, &result);
        lk_alloc_fail_at(0);
        assert_true(rc == LK_OK || rc == LK_E_NOMEM);
        lk_result_free(&result);
        assert_int_equal(lk_alloc_live(), live);
        assert_true(n < 1000);
    }
}

static void requests_that_cannot_be_played(void **state) {
    (void)state;
    struct lk_result result;
    struct lk_request request = {.prompt = "p", .thinking_mode = true};
    struct script s = {.replies = {"x"}};
    const struct lk_step1x_player player = {.ask = ask, .edit = edit, .context = &s};
    assert_fails(lk_step1x_run_rounds(&request, &texts, &player, &result), LK_E_USAGE, "source image");
    assert_fails(play(&s, false, true, 0, &result), LK_E_USAGE, "max_try_cnt: expected 1 to 20, got 0");
    assert_fails(play(&s, false, true, 21, &result), LK_E_USAGE, "max_try_cnt");
}

static void values_are_filled_in_once(void **state) {
    (void)state;
    const char *const values[] = {"{language}", "英文", "D", "5.0", "R"};
    char *text;
    assert_ok(lk_step1x_fill("{instruction} in {language}: {\"score\"} {reason}{reason} {Score} {", values, &text));
    assert_string_equal(text, "{language} in 英文: {\"score\"} RR {Score} {");
    lk_free(text);
}

#define OTHERS                                                                                                         \
    "\"describe_system\":\"\",\"describe_user\":\"\",\"score_system\":\"\",\"score_user\":\"\",\"reflect_system\":"    \
    "\"\","                                                                                                            \
    "\"reflect_user\":\"\",\"score1_system\":\"\",\"score1_user\":\"\",\"score2_system\":\"\",\"score2_user\":\"\"}"

/* SHA-256 of "" begins with e3b0c44298fc1c14, of "do make it snow" with 775d534f8ebf74d1. */
static void fill_rules(struct lk_step1x_instruction_rules *rules) {
    for (int i = 0; i < LK_STEP1X_N_CALLS; i++)
        for (int j = 0; j < LK_STEP1X_N_ROLES; j++)
            rules->of[i][j] = (struct lk_step1x_instruction_rule){.digest = "e3b0c44298fc1c14"};
    rules->of[LK_STEP1X_REWRITE][LK_STEP1X_USER] = (struct lk_step1x_instruction_rule){{1}, "775d534f8ebf74d1"};
}

static void instruction_files_are_checked(void **state) {
    (void)state;
    struct lk_step1x_instruction_rules rules;
    struct lk_step1x_instructions read;
    const char *path = test_path("step1x_instructions.json");
    const struct {
        const char *json, *message;
        enum lk_code code;
    } cases[] = {
        {"{\"rewrite_system\":\"\",\"rewrite_user\":\"do {instruction}\"," OTHERS, NULL, LK_OK},
        {"{\"rewrite_system\":\"\",\"rewrite_user\":\"do make it snow\"," OTHERS,
         "expected {instruction} 1 times, got 0", LK_E_CHECKSUM},
        {"{\"rewrite_system\":\"\",\"rewrite_user\":\"Do {instruction}\"," OTHERS, "rewrite_user", LK_E_CHECKSUM},
        {"{\"rewrite_system\":\"x\",\"rewrite_user\":\"do {instruction}\"," OTHERS, "rewrite_system", LK_E_CHECKSUM},
        {"{\"rewrite_system\":\"\"," OTHERS, "rewrite_user", LK_E_CONFIG_KEY},
        {"{\"rewrite_system\":\"\",\"rewrite_user\":7," OTHERS, "rewrite_user", LK_E_CONFIG_TYPE},
        {"{\"more\":\"\",\"rewrite_system\":\"\",\"rewrite_user\":\"do {instruction}\"," OTHERS, "more",
         LK_E_CONFIG_KEY},
        {"[]", "object", LK_E_JSON},
    };
    int64_t live = lk_alloc_live();
    fill_rules(&rules);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_write(path, cases[i].json, strlen(cases[i].json));
        if (cases[i].code) {
            assert_fails(lk_step1x_instructions_read(&read, path, &rules), cases[i].code, cases[i].message);
        } else {
            assert_ok(lk_step1x_instructions_read(&read, path, &rules));
            assert_string_equal(read.texts[LK_STEP1X_REWRITE][LK_STEP1X_USER], "do {instruction}");
            lk_step1x_instructions_free(&read);
        }
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_fails(lk_step1x_instructions_read(&read, path, &lk_step1x_released_rules), LK_E_JSON, "");
    assert_fails(lk_step1x_instructions_read(&read, NULL, &rules), LK_E_USAGE, "prompts_file");
    assert_fails(lk_step1x_instructions_read(&read, test_path("none.json"), &rules), LK_E_NOT_FOUND, "none.json");
}

int main(void) {
    make_texts();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thinking_rewrites_the_prompt),  cmocka_unit_test(a_success_ends_the_rounds),
        cmocka_unit_test(rounds_follow_the_verdicts),    cmocka_unit_test(malformed_replies_are_asked_for_again),
        cmocka_unit_test(failures_leave_nothing_behind), cmocka_unit_test(requests_that_cannot_be_played),
        cmocka_unit_test(values_are_filled_in_once),     cmocka_unit_test(instruction_files_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
