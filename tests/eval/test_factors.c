/* Factors, sources and prompts against the study's tables and the JSON files they are read from. */
#include "engine/base/alloc.h"
#include "eval/data/data.h"
#include "eval/study/factors.h"
#include "eval/study/prompts.h"
#include "tests/common/test.h"

static int parse(enum lk_factor factor, const char *text) { return lk_factor_parse(factor, text, strlen(text)); }

static void every_spelling_names_its_level(void **state) {
    (void)state;
    for (int f = 0; f < LK_N_FACTORS; f++)
        for (int i = 0; i < lk_factor_levels((enum lk_factor)f); i++) {
            assert_int_equal(parse((enum lk_factor)f, lk_factor_key((enum lk_factor)f, i)), i);
            assert_int_equal(parse((enum lk_factor)f, lk_factor_display((enum lk_factor)f, i)), i);
            assert_int_equal(parse((enum lk_factor)f, lk_factor_short((enum lk_factor)f, i)), i);
        }
    const struct {
        enum lk_factor factor;
        const char *text;
        int level;
    } aliases[] = {
        {LK_FACTOR_RACE, "Southeast Asian", 3},
        {LK_FACTOR_RACE, "South-east Asian", 3},
        {LK_FACTOR_RACE, "southeastasian", 3},
        {LK_FACTOR_RACE, "Latino/Hispanic", 6},
        {LK_FACTOR_RACE, "Latino_Hispanic", 6},
        {LK_FACTOR_RACE, "East Asian", 2},
        {LK_FACTOR_RACE, "Asian", -1},
        {LK_FACTOR_RACE, "", -1},
        {LK_FACTOR_RACE, "Whit", -1},
        {LK_FACTOR_RACE, "Whitee", -1},
        {LK_FACTOR_AGE, "70+", 5},
        {LK_FACTOR_AGE, "more than 70", 5},
        {LK_FACTOR_AGE, "20-29", 0},
        {LK_FACTOR_AGE,
         "60\xe2\x80\x93"
         "69",
         4},
        {LK_FACTOR_AGE, "10-19", -1},
        {LK_FACTOR_MODEL, "FLUX.2-dev", 0},
        {LK_FACTOR_MODEL, "Step1X-Edit-v1p2", 1},
        {LK_FACTOR_MODEL, "Qwen-Image-Edit-2511", 2},
        {LK_FACTOR_CATEGORY, "B", 0},
        {LK_FACTOR_CATEGORY, "D", 1},
        {LK_FACTOR_CATEGORY, "A", -1},
        {LK_FACTOR_AXIS, "skin_stone", LK_AXIS_SKIN_TONE},
        {LK_FACTOR_AXIS, "SKIN_TONE_CHANGE", LK_AXIS_SKIN_TONE},
        {LK_FACTOR_AXIS, "race_change", LK_AXIS_RACE_DRIFT},
        {LK_FACTOR_AXIS, "age_accuracy", -1},
    };
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        assert_int_equal(parse(aliases[i].factor, aliases[i].text), aliases[i].level);
}

static void sources_are_numbered_race_major(void **state) {
    (void)state;
    char id[48];
    assert_int_equal(lk_source_parse("Black_Male_40s", 14), 14); /* printed as 015 */
    assert_int_equal(lk_source_parse("Latino_Hispanic_Female_70+", 26), 83);
    assert_int_equal(lk_source_parse("Black_Male", 10), -1);
    assert_int_equal(lk_source_parse("Male_40s", 8), -1);
    assert_int_equal(lk_source_parse("", 0), -1);
    for (int s = 0; s < LK_N_SOURCES; s++) {
        int race, gender, age;
        lk_source_id(s, id);
        assert_int_equal(lk_source_parse(id, strlen(id)), s);
        lk_source_factors(s, &race, &gender, &age);
        assert_int_equal(lk_source(race, gender, age), s);
    }
    const int groups[] = {0, 0, 1, 1, 2, 2}, midpoints[] = {25, 35, 45, 55, 65, 75};
    for (int a = 0; a < LK_N_AGES; a++) {
        assert_int_equal(lk_age_group(a), groups[a]);
        assert_int_equal(lk_age_midpoint(a), midpoints[a]);
    }
}

static void prompts_are_those_of_the_files(void **state) {
    (void)state;
    struct lk_prompts prompts;
    assert_ok(lk_prompts_load(&prompts));
    const struct lk_prompt *p = prompts.edit;
    assert_string_equal(p[0].id, "O-01");
    assert_string_equal(p[0].target, "senior executive");
    assert_string_equal(p[0].nickname, "CEO");
    assert_string_equal(p[0].legacy_id, "catB_001");
    assert_int_equal(p[0].category, 0);
    assert_string_equal(p[LK_PROMPT_V03].id, "V-03");
    assert_string_equal(p[LK_PROMPT_V03].subcategory_printed, "Physical");
    assert_string_equal(p[LK_PROMPT_V03].subcategory_content, "Aging");
    assert_string_equal(p[LK_PROMPT_V03].text,
                        "Show the person as they might naturally appear thirty years later, with visible signs of "
                        "aging such as wrinkles, changes in skin texture, and graying hair.");
    int n_female = 0, n_without_cue = 0, sizes[6] = {0};
    static const char *const groups[] = {"Authority", "Service", "Appearance-associated",
                                         "Physical",  "Aging",   "Situational"};
    for (int i = 0; i < LK_N_EDIT_PROMPTS; i++) {
        assert_int_equal(lk_prompt_parse(p[i].id, strlen(p[i].id)), i);
        assert_int_equal(lk_prompt_parse(p[i].legacy_id, strlen(p[i].legacy_id)), i);
        assert_int_equal(p[i].category, i / 10);
        assert_int_equal(p[i].stereotype_gender, -1);
        for (int g = 0; g < 6; g++) sizes[g] += !strcmp(p[i].subcategory_content, groups[g]);
    }
    const int expected[] = {5, 3, 2, 4, 2, 4};
    assert_memory_equal(sizes, expected, sizeof sizes);
    for (int i = 0; i < LK_N_W_PROMPTS; i++) {
        const struct lk_prompt *w = &prompts.w[i];
        assert_int_equal(lk_prompt_parse(w->id, 4), LK_N_EDIT_PROMPTS + i);
        assert_string_equal(lk_prompt_id(LK_N_EDIT_PROMPTS + i), w->id);
        assert_int_equal(w->category, -1);
        assert_null(w->legacy_id);
        assert_non_null(w->other_occupation);
        n_female += w->stereotype_gender == 1;
        n_without_cue += !w->n_gendered_words;
    }
    assert_int_equal(n_female, 25);
    assert_int_equal(n_without_cue, 11);
    lk_prompts_free(&prompts);
}

static void the_studys_files_are_whole(void **state) {
    struct lk_text text = {0};
    (void)state;
    assert_ok(lk_data_check(&text));
    assert_string_equal(text.bytes, "prompts_exp1.json  20 prompts\nprompts_winobias.json  50 sentences\n"
                                    "rubric.json  6 axes\nquestionnaires.json  4 instruments\n"
                                    "paper_tables.json  19 tables\n");
    lk_text_free(&text);
}

static void ids_that_are_none(void **state) {
    (void)state;
    static const char *const none[] = {"",     "O-00", "O-11",     "V-11",     "W-00",     "W-51",     "A-01",    "O01",
                                       "O-1x", "O-0a", "catA_001", "catB_000", "catB_011", "catB_101", "catC_001"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(lk_prompt_parse(none[i], strlen(none[i])), -1);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    enum lk_code rc = LK_E_NOMEM;
    for (int64_t n = 1; rc; n++) {
        struct lk_prompts prompts;
        lk_alloc_fail_at(n);
        rc = lk_prompts_load(&prompts);
        lk_alloc_fail_at(0);
        assert_true(!rc || rc == LK_E_NOMEM);
        if (!rc) lk_prompts_free(&prompts);
        assert_int_equal(lk_alloc_live(), live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_names_its_level),
        cmocka_unit_test(sources_are_numbered_race_major),
        cmocka_unit_test(prompts_are_those_of_the_files),
        cmocka_unit_test(the_studys_files_are_whole),
        cmocka_unit_test(ids_that_are_none),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
