/* The manifest of the chosen sources and the records of their features: what is read, and what is refused by name. */
#include "engine/base/alloc.h"
#include "eval/scores/feature_prompts.h"
#include "eval/scores/source_manifest.h"
#include "tests/common/test.h"

static enum lk_code manifest(struct lk_source_manifest *out, const char *text) {
    return lk_source_manifest_read(out, text, strlen(text), "m");
}

static enum lk_code features(struct lk_feature_prompts *out, const char *text) {
    return lk_feature_prompts_read(out, text, strlen(text), "f", &lk_portrait_ids);
}

#define SIX(last)                                                                                                      \
    "{\"frontal_face\":true,\"clear_focus\":true,\"proper_lighting\":true,\"identifiable_features\":true,"             \
    "\"neutral_expression\":true,\"upright_posture\":" last "}"

static void a_manifest_is_counted(void **state) {
    (void)state;
    struct lk_source_manifest m;
    assert_ok(manifest(&m,
                       "[{\"id\":\"White_Male_20s\",\"ordinal\":\"001\",\"pool\":\"V3\",\"criteria\":" SIX(
                           "true") "},\n"
                                   "{\"source_id\":\"Latino/Hispanic_Female_70+\",\"ordinal\":84,\"race\":\"Latino\","
                                   "\"gender\":\"Female\",\"age\":\"more than 70\",\"pool\":7,\"file\":\"x\"}]"));
    assert_int_equal(m.n, 2);
    assert_int_equal(m.pool[0], 3);
    assert_int_equal(m.pool[83], 7);
    assert_int_equal(m.count[2] + m.count[6], 2);
    assert_ok(manifest(&m, "id,pool,width\r\nBlack_Male_40s,v1,448\r\nBlack_Male_50s,V1,448\r\n"));
    assert_int_equal(m.pool[14], 1);
    assert_int_equal(m.count[0], 2);
}

static void a_manifest_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
        enum lk_code code;
    } cases[] = {
        {"", "m: expected chosen sources", LK_E_INPUT},
        {"[]", "got none", LK_E_INPUT},
        {"{\"pool\":1}", "m: line 1, a source: id: expected a source such as", LK_E_INPUT},
        {"{\"id\":\"Martian_Male_20s\",\"pool\":1}", "got \"Martian_Male_20s\"", LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\"}", "White_Male_20s: pool: expected V1 to V7, got \"nothing\"", LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\",\"pool\":0}", "pool: expected V1 to V7", LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\",\"pool\":\"V8\"}", "pool: expected V1 to V7", LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\",\"pool\":\"W1\"}", "pool: expected V1 to V7", LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\",\"pool\":1}\n{\"id\":\"White_Male_20-29\",\"pool\":2}",
         "line 2, *: id: expected each", LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\",\"pool\":1,\"ordinal\":2}", "ordinal: expected 001", LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\",\"pool\":1,\"gender\":\"Female\"}", "gender: expected Male", LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\",\"pool\":1,\"criteria\":" SIX("false") "}",
         "criteria.upright_posture: expected true", LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\",\"pool\":1,\"criteria\":{\"clear_focus\":true}}", "criteria.frontal_face",
         LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\",\"pool\":1,\"criteria\":null}", "criteria.frontal_face", LK_E_INPUT},
        {"{\"id\":\"White_Male_20s\",\"pool\":1,\"criteria\":[true]}", "an array", LK_E_INPUT},
        {"{\"id\":", "m: line 1: expected a JSON object", LK_E_JSON},
        {"[1]", "m: line 1", LK_E_JSON},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_source_manifest m;
        const char *star = strstr(cases[i].part, "*");
        if (manifest(&m, cases[i].text) != cases[i].code) fail_msg("case %zu: %s", i, lk_error_text());
        if (!strstr(lk_error_text(), star ? star + 1 : cases[i].part)) fail_msg("case %zu: %s", i, lk_error_text());
    }
}

#define SEVEN                                                                                                          \
    "\"skin_tone\":\"olive\",\"face_shape\":\"oval\",\"eyes\":\"brown\",\"nose\":\"broad\",\"lips\":\"full\","         \
    "\"hair\":\"dark\",\"distinctive_features\":\"none\","

static void features_are_read(void **state) {
    (void)state;
    struct lk_feature_prompts f;
    assert_ok(features(&f, "{\"source_id\":\"Black_Female_30s\"," SEVEN
                           "\"identity_prompt\":\" Maintain the person\xe2\x80\x99s skin, e.g. olive. And hair. \"}\n"
                           "{\"source_id\":\"Indian_Male_50s\"," SEVEN
                           "\"identity_prompt\":\"Maintain the person's Indian face\",\"other\":[1,{}]}\n"
                           "{\"source_id\":\"White_Male_60s\",\"no_feature_prompt\":true}\n"
                           "{\"source_id\":\"White_Male_20s\"," SEVEN "\"label_leak\":true,"
                           "\"identity_prompt\":\"Maintain the person's nose.\"}"));
    assert_int_equal(f.n, 3);
    assert_int_equal(f.n_none, 1);
    assert_int_equal(f.n_leaks, 2);
    int black = lk_source_parse("Black_Female_30s", 16), white = lk_source_parse("White_Male_60s", 14);
    assert_string_equal(f.of[black].identity, "Maintain the person\xe2\x80\x99s skin, e.g. olive. And hair.");
    assert_true(f.of[white].none && !f.of[white].identity && !f.of[black].leak && f.of[0].leak);
    lk_feature_prompts_free(&f);
    assert_int_equal(lk_alloc_live(), 0);
}

static void features_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "f: expected feature prompts, got none"},
        {"{\"source_id\":\"x\"}", "line 1, a source: source_id: expected"},
        {"{\"source_id\":\"White_Male_20s\",\"skin_tone\":\" \"}", "White_Male_20s: skin_tone: expected a text"},
        {"{\"source_id\":\"White_Male_20s\"," SEVEN "\"hair2\":1}",
         "identity_prompt: expected a text, got \"nothing\""},
        {"{\"source_id\":\"White_Male_20s\"," SEVEN "\"identity_prompt\":7}", "identity_prompt: expected a text"},
        {"{\"source_id\":\"White_Male_20s\"," SEVEN "\"identity_prompt\":\"Keep the person's hair.\"}",
         "expected it to begin with"},
        {"{\"source_id\":\"White_Male_20s\"," SEVEN "\"identity_prompt\":\"Maintain the person's a. B! C.\"}",
         "one or two sentences"},
        {"{\"source_id\":\"White_Male_20s\",\"no_feature_prompt\":\"maybe\"}",
         "no_feature_prompt: expected true or false"},
        {"{\"source_id\":\"White_Male_20s\",\"no_feature_prompt\":true}\n"
         "{\"source_id\":\"White_Male_20s\",\"no_feature_prompt\":true}",
         "line 2, White_Male_20s: source_id: expected each source once"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_feature_prompts f;
        if (features(&f, cases[i].text) != LK_E_INPUT) fail_msg("case %zu: %s", i, lk_error_text());
        if (!strstr(lk_error_text(), cases[i].part)) fail_msg("case %zu: %s", i, lk_error_text());
        lk_feature_prompts_free(&f);
    }
    assert_int_equal(lk_alloc_live(), 0);
}

static void groups_in_whole_words(void **state) {
    (void)state;
    static const char *const named[] = {"a black woman",         "White  people", "an AFRICAN face",
                                        "middle eastern looks",  "Asian-looking", "her ethnicity",
                                        "the race. And the hair"};
    static const char *const not_named[] = {"black hair", "white womanly",   "Africans",    "traces of grey",
                                            "racer",      "blackman person", "blackperson", "Caucasia"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (!lk_names_group(named[i])) fail_msg("%s", named[i]);
    for (size_t i = 0; i < sizeof not_named / sizeof *not_named; i++)
        if (lk_names_group(not_named[i])) fail_msg("%s", not_named[i]);
    assert_int_equal(lk_count_sentences("One e.g.this"), 1);
    assert_int_equal(lk_count_sentences("One... Two?! Three"), 3);
    assert_int_equal(lk_count_sentences("One, e.g. this. Two."), 2);
    assert_int_equal(lk_count_sentences(" . "), 0);
}

static enum lk_code all_files(void) {
    static const char text[] =
        "{\"source_id\":\"Black_Female_30s\"," SEVEN "\"identity_prompt\":\"Maintain the person's hair.\",\"pool\":3}";
    struct lk_feature_prompts f;
    struct lk_source_manifest m;
    enum lk_code rc = features(&f, text);
    if (!rc) rc = manifest(&m, text);
    lk_feature_prompts_free(&f);
    return rc;
}

static void nth_allocation_fails(void **state) {
    (void)state;
    test_every_allocation(all_files, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_is_counted), cmocka_unit_test(a_manifest_is_refused),
        cmocka_unit_test(features_are_read),     cmocka_unit_test(features_are_refused),
        cmocka_unit_test(groups_in_whole_words), cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
