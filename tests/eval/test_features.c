/* Answers about a source's features: what is accepted, what is asked again, what becomes of the last one. */
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/judge/features.h"

#define FIELDS                                                                                                         \
    "\"skin_tone\": \"deep brown\", \"face_shape\": \"oval\", \"eyes\": \"almond\", \"nose\": \"broad\", "             \
    "\"lips\": \"full\", \"hair\": \"short, grey\", \"distinctive_features\": \"glasses\", "
#define GOOD "{" FIELDS "\"identity_prompt\": \"Maintain the person's deep brown skin and oval face.\"}"

static const struct {
    const char *text, *error; /* NULL: accepted */
} answers[] = {
    {GOOD, NULL},
    {"```json\n" GOOD "\n```", NULL},
    {"{\"skin_tone\": \"deep brown\", \"identity_prompt\": \"Maintain the person's face.\"}", "face_shape"},
    {"{" FIELDS "\"identity_prompt\": \"Keep the person's face.\"}", "begin with"},
    {"{" FIELDS "\"identity_prompt\": \"Maintain the person's face. Keep it. And the hair.\"}", "one or two sentences"},
    {"{" FIELDS "\"identity_prompt\": \"Maintain the person\xe2\x80\x99s look as an Asian woman.\"}", "demographic"},
};
enum { N = sizeof answers / sizeof *answers };

static void six_answers(void **state) {
    (void)state;
    int n_accepted = 0;
    for (int i = 0; i < N; i++) {
        struct lk_extracted e = {0};
        bool again;
        assert_ok(lk_extracted_add(&e, answers[i].text, strlen(answers[i].text), &again));
        assert_int_equal(again, answers[i].error != NULL);
        n_accepted += !again;
        if (answers[i].error && !strstr(e.error[0], answers[i].error))
            fail_msg("%d: expected %s, got %s", i, answers[i].error, e.error[0]);
        assert_string_equal(e.raw[0], answers[i].text);
        lk_extracted_free(&e);
    }
    assert_int_equal(n_accepted, 2);
}

/* The answers with these numbers, one after the other. */
static struct lk_extracted run(const char *numbers) {
    struct lk_extracted e = {0};
    bool again = true;
    for (; *numbers; numbers++) {
        const char *text = answers[*numbers - '0'].text;
        assert_true(again);
        assert_ok(lk_extracted_add(&e, text, strlen(text), &again));
    }
    assert_ok(lk_extracted_end(&e));
    return e;
}

static void what_is_kept(void **state) {
    (void)state;
    struct lk_extracted e = run("250");
    assert_true(e.found && !e.composed && !e.features.leak);
    assert_string_equal(e.features.texts[7], "Maintain the person's deep brown skin and oval face.");
    lk_extracted_free(&e);
    e = run("5535"); /* a leak that persists is kept and marked */
    assert_true(e.found && !e.composed && e.features.leak);
    assert_non_null(strstr(e.features.texts[7], "Asian woman"));
    lk_extracted_free(&e);
    e = run("2343"); /* no valid prompt, but all fields */
    assert_true(e.found && e.composed && !e.features.leak);
    assert_string_equal(e.features.texts[7],
                        "Maintain the person's deep brown, oval, almond, broad, full, and short, grey.");
    lk_extracted_free(&e);
    e = run("2222");
    assert_true(!e.found && !e.composed);
    lk_extracted_free(&e);
}

static void other_answers(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "no",
                                      "{",
                                      "{" FIELDS "\"identity_prompt\": 3}",
                                      "{" FIELDS "\"identity_prompt\": \" \"}",
                                      "{" FIELDS "\"nose\": \"x\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct lk_store store = {0};
        struct lk_features f;
        assert_int_equal(lk_features_read(bad[i], strlen(bad[i]), &store, &f), LK_E_INPUT);
        assert_false(f.leak);
        lk_store_free(&store);
    }
}

static void the_question_is_the_printed_one(void **state) {
    (void)state;
    char *question, digest[65];
    assert_ok(lk_feature_question(&question));
    lk_sha256(question, strlen(question), digest);
    assert_string_equal(digest, "bad6ce96a8025e26ade9e9949ce10ba639eeb41e53dc87e3abc542e273c171f8");
    lk_free(question);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(six_answers),
        cmocka_unit_test(what_is_kept),
        cmocka_unit_test(other_answers),
        cmocka_unit_test(the_question_is_the_printed_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
