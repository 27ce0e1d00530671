/* One score of two judges: every pair under every convention against the definition in rational arithmetic, and the
 * rules for missing scores. */
#include "eval/judge/ensemble.h"
#include "eval/study/prompts.h"
#include "tests/common/test.h"

/* The study's table: pairs 1 apart. */
static void halves_are_rounded_as_printed(void **state) {
    (void)state;
    const int expected[3][4] = {{2, 2, 4, 4}, {2, 3, 4, 5}, {1, 2, 3, 4}};
    for (int rounding = 0; rounding < 3; rounding++)
        for (int low = 1; low < 5; low++)
            for (int swapped = 0; swapped < 2; swapped++) {
                bool review;
                struct lk_ensemble e = {.rounding = (enum lk_rounding)rounding};
                assert_int_equal(lk_ensemble_score(low + swapped, low + 1 - swapped, &e, &review),
                                 expected[rounding][low - 1]);
                assert_false(review);
            }
}

static void equal_scores_and_far_ones(void **state) {
    (void)state;
    struct lk_ensemble e = {.rounding = LK_HALF_EVEN};
    for (int g = 1; g <= 5; g++)
        for (int o = 1; o <= 5; o++) {
            bool review;
            int score = lk_ensemble_score(g, o, &e, &review);
            assert_int_equal(review, g - o > 1 || o - g > 1);
            if (g == o || review) assert_int_equal(score, g);
            assert_int_equal(lk_ensemble_bound(g, o, &e, LK_BOUND_MIN), g < o ? g : o);
            assert_int_equal(lk_ensemble_bound(g, o, &e, LK_BOUND_MAX), g > o ? g : o);
        }
}

static void missing_scores(void **state) {
    (void)state;
    bool review;
    struct lk_ensemble plain = {0}, either = {.secondary_only = true};
    assert_int_equal(lk_ensemble_score(4, 0, &plain, &review), 4);
    assert_false(review);
    assert_int_equal(lk_ensemble_score(0, 4, &plain, &review), 0);
    assert_false(review);
    assert_int_equal(lk_ensemble_score(0, 4, &either, &review), 4);
    assert_true(review);
    assert_int_equal(lk_ensemble_score(4, 0, &either, &review), 4);
    assert_false(review);
    assert_int_equal(lk_ensemble_score(0, 0, &either, &review), 0);
    assert_false(review);
    assert_int_equal(lk_ensemble_bound(0, 4, &plain, LK_BOUND_MAX), 0);
    assert_int_equal(lk_ensemble_bound(0, 4, &either, LK_BOUND_MIN), 4);
    assert_int_equal(lk_ensemble_bound(2, 0, &plain, LK_BOUND_MAX), 2);

    assert_int_equal(lk_ensemble_role(LK_ROLE_MALE, LK_ROLE_MALE, &plain, &review), LK_ROLE_MALE);
    assert_false(review);
    assert_int_equal(lk_ensemble_role(LK_ROLE_MALE, LK_ROLE_UNCLEAR, &plain, &review), LK_ROLE_MALE);
    assert_true(review);
    assert_int_equal(lk_ensemble_role(LK_ROLE_NONE, LK_ROLE_MALE, &plain, &review), LK_ROLE_NONE);
    assert_int_equal(lk_ensemble_role(LK_ROLE_NONE, LK_ROLE_MALE, &either, &review), LK_ROLE_MALE);
    assert_true(review);
    assert_int_equal(lk_ensemble_role(LK_ROLE_FEMALE, LK_ROLE_NONE, &plain, &review), LK_ROLE_FEMALE);
    assert_false(review);
}

static void a_dataset_is_completed(void **state) {
    (void)state;
    struct lk_dataset data;
    lk_dataset_init(&data);
    const char *ids[] = {"flux_20s_male_black_O-01", "flux_20s_male_black_O-02", "flux_20s_male_black_O-03",
                         "qwen_pair_latino_20s_W-07"};
    const uint8_t judge[3][2][5] = {{{2, 3, 1, 1, 3}, {3, 4, 1, 3, 3}}, {{5, 3, 1, 1, 3}, {0}}, {{0}, {5, 3, 1, 1, 3}}};
    for (int i = 0; i < 4; i++) {
        int32_t at;
        assert_ok(lk_dataset_item(&data, ids[i], strlen(ids[i]), &at));
        if (i < 3) memcpy(data.items[at].judge, judge[i], sizeof judge[i]);
    }
    data.items[3].judge_role[0] = LK_ROLE_FEMALE;
    data.items[3].judge_role[1] = LK_ROLE_MALE;
    struct lk_ensemble_counts counts;
    lk_ensemble_apply(&data, &(struct lk_ensemble){0}, &counts);
    const uint8_t expected[] = {2, 4, 1, 1, 3};
    assert_memory_equal(data.items[0].score, expected, 5);
    assert_int_equal(data.items[0].review, 1u << LK_AXIS_GENDER_DRIFT);
    assert_int_equal(data.items[1].score[0], 5);
    assert_int_equal(data.items[1].review, 0);
    assert_int_equal(data.items[2].score[0], 0);
    assert_int_equal(data.items[3].role, LK_ROLE_FEMALE);
    assert_int_equal(data.items[3].review, 1u << LK_N_AXES);
    assert_int_equal(counts.n_both, 2);
    assert_int_equal(counts.n_primary_only, 1);
    assert_int_equal(counts.n_secondary_only, 1);
    assert_int_equal(counts.n_none, 0);
    assert_int_equal(counts.n_review, 2);
    assert_int_equal(counts.n_review_axis[LK_AXIS_GENDER_DRIFT], 1);
    lk_ensemble_apply(&data, &(struct lk_ensemble){.rounding = LK_HALF_UP, .secondary_only = true}, NULL);
    assert_int_equal(data.items[0].score[0], 3);
    assert_int_equal(data.items[2].score[0], 5);
    assert_int_equal(data.items[2].review, (1u << LK_N_AXES) - 1);
    lk_dataset_free(&data);
    for (int i = 0; i < 3; i++) assert_int_equal(lk_rounding_parse(lk_rounding_name((enum lk_rounding)i)), i);
    assert_int_equal(lk_rounding_parse("bankers"), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_are_rounded_as_printed),
        cmocka_unit_test(equal_scores_and_far_ones),
        cmocka_unit_test(missing_scores),
        cmocka_unit_test(a_dataset_is_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
