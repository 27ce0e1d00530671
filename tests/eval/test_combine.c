/* Raters combined: the study's vectors, every triple of levels, classes, and raters left out. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/human/answers.h"
#include "eval/human/combine.h"
#include "eval/human/quality.h"
#include "tests/common/test.h"

static struct lk_dataset data;

static int begin(void **state) {
    (void)state;
    lk_dataset_init(&data);
    return 0;
}

static int end(void **state) {
    (void)state;
    lk_dataset_free(&data);
    return lk_alloc_live() != 0;
}

static struct lk_rating *rate(const char *rater, const char *item, int level) {
    struct lk_rating *rating;
    int32_t i, r;
    assert_ok(lk_dataset_item(&data, item, strlen(item), &i));
    assert_ok(lk_dataset_rater(&data, rater, strlen(rater), &r));
    assert_ok(lk_dataset_rating(&data, &rating));
    rating->item = i;
    rating->rater = r;
    for (int a = 0; a < LK_N_AXES; a++) rating->score[a] = (uint8_t)level;
    return rating;
}

static int majority_of(const uint8_t *levels, int n, int *median) {
    int counts[6] = {0};
    for (int i = 0; i < n; i++) counts[levels[i]]++;
    return lk_majority(counts, n, median);
}

static void the_printed_twelve(void **state) {
    (void)state;
    const uint8_t ratings[12][3] = {{1, 1, 1}, {1, 2, 1}, {2, 2, 3}, {3, 3, 3}, {5, 4, 5}, {1, 1, 2},
                                    {4, 4, 4}, {2, 3, 4}, {1, 1, 1}, {5, 5, 5}, {3, 2, 3}, {1, 3, 5}};
    const int majority[] = {1, 1, 2, 3, 5, 1, 4, 0, 1, 5, 3, 0};
    for (int i = 0; i < 12; i++) {
        int median;
        assert_int_equal(majority_of(ratings[i], 3, &median), majority[i]);
        if (!majority[i]) assert_int_equal(median, 3);
    }
    const uint8_t four[] = {1, 2, 2, 2}, split[] = {2, 2, 3, 3}, wide[] = {3, 3, 4, 4}, far[] = {1, 1, 5, 5};
    int median;
    assert_int_equal(majority_of(four, 4, &median), 2);
    assert_int_equal(majority_of(split, 4, &median), 0);
    assert_int_equal(median, 2); /* 2.5 to the even level */
    assert_int_equal(majority_of(wide, 4, &median), 0);
    assert_int_equal(median, 4);
    assert_int_equal(majority_of(far, 4, &median), 0);
    assert_int_equal(median, 3);
    assert_int_equal(majority_of(far, 0, &median), 0);
    assert_int_equal(median, 0);
}

static void items_get_mean_and_majority(void **state) {
    (void)state;
    static const char *const ids[] = {"flux_20s_male_black_O-01", "flux_20s_male_black_O-02",
                                      "flux_20s_male_black_O-03"};
    rate("a", ids[0], 4);
    rate("b", ids[0], 5);
    rate("c", ids[0], 5)->score[1] = 0;
    rate("a", ids[1], 2);
    rate("b", ids[1], 3);
    rate("a", ids[2], 2);
    rate("d", ids[2], 5)->is_gold = true;
    assert_ok(lk_combine(&data));
    const struct lk_item *item = data.items;
    assert_true(item[0].human_mean[0] == 14.0 / 3 && item[0].human_mean[1] == 4.5);
    assert_int_equal(item[0].human_majority[0], 5);
    assert_int_equal(item[0].human_majority[1], 4);
    assert_int_equal(item[0].human_unresolved, 1 << 1);
    assert_int_equal(item[0].n_ratings, 3);
    assert_true(item[1].human_mean[0] == 2.5);
    assert_int_equal(item[1].human_majority[0], 2);
    assert_int_equal(item[1].human_unresolved, 31);
    assert_true(isnan(item[2].human_mean[0])); /* one rating; a gold answer is none */
    assert_int_equal(item[2].human_majority[0], 0);
    assert_int_equal(item[2].human_unresolved, 0);
    assert_int_equal(item[2].n_ratings, 1);
    data.raters[1].excluded = true;
    assert_ok(lk_combine(&data));
    assert_true(item[0].human_mean[0] == 4.5 && isnan(item[1].human_mean[0]));
    assert_int_equal(item[0].n_ratings, 2);
    data.raters[1].excluded = false;
    assert_ok(lk_combine(&data));
    assert_true(item[0].human_mean[0] == 14.0 / 3);
    lk_alloc_fail_at(1);
    assert_int_equal(lk_combine(&data), LK_E_NOMEM);
    lk_alloc_fail_at(0);
}

static void classes_by_majority(void **state) {
    (void)state;
    static const char *const ids[] = {"flux_20s_male_black_O-01", "flux_20s_male_black_O-02",
                                      "flux_20s_male_black_O-03"};
    int8_t out[3];
    const char *raters[] = {"a", "b", "c"};
    const int8_t skin[3][3] = {{0, 0, 1}, {0, 1, 2}, {2, -1, -1}};
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < 3; r++) {
            struct lk_rating *rating = rate(raters[r], ids[i], 0);
            rating->answer_class[LK_AXIS_SKIN_TONE] = skin[i][r];
            rating->preference = skin[i][r];
            rating->role = skin[i][r];
        }
    const int questions[] = {LK_AXIS_SKIN_TONE, LK_QUESTION_PREFERENCE, LK_QUESTION_ROLE};
    for (int q = 0; q < 3; q++) {
        assert_ok(lk_combine_classes(&data, questions[q], false, out));
        assert_int_equal(out[0], 0);
        assert_int_equal(out[1], LK_CLASS_UNRESOLVED);
        assert_int_equal(out[2], LK_CLASS_NONE);
    }
    data.ratings[7].score[LK_AXIS_SKIN_TONE] = 5;
    assert_ok(lk_combine_classes(&data, LK_AXIS_SKIN_TONE, true, out));
    assert_int_equal(out[2], 2);
    assert_ok(lk_combine_classes(&data, LK_AXIS_SKIN_TONE, false, out));
    assert_int_equal(out[2], LK_CLASS_NONE);
    const int classes[LK_N_AXES][5] = {
        {0, 0, 1, 2, 2}, {0, 0, 1, 2, 2}, {0, 0, 1, 1, 1}, {0, 0, 1, 1, 1}, {1, 1, 0, 1, 1}};
    for (int a = 0; a < LK_N_AXES; a++)
        for (int level = 1; level <= 5; level++) assert_int_equal(lk_class_of_level(a, level), classes[a][level - 1]);
}

/* Rates items O-01.. with these levels on all five axes together. */
static void rate_levels(const char *rater, const int *levels, int n) {
    for (int i = 0; i < n; i++) {
        char id[64];
        snprintf(id, sizeof id, "flux_20s_male_black_W-%02d", i / 5 + 1);
        struct lk_rating *rating = i % 5 ? &data.ratings[data.n_ratings - 1] : rate(rater, id, 0);
        rating->score[i % 5] = (uint8_t)levels[i];
        rating->n_asked++;
    }
}

static struct lk_quality_report check(enum lk_protocol protocol) {
    struct lk_quality_options options;
    struct lk_quality_report report;
    lk_quality_defaults(protocol, &options);
    assert_ok(lk_quality_check(&data, &options, &report));
    return report;
}

static bool hits(const struct lk_quality_report *report, int rater, enum lk_quality_rule rule) {
    return report->raters[rater].rules >> rule & 1;
}

static void patterns_of_answers(void **state) {
    (void)state;
    const int honest[20] = {5, 3, 1, 1, 3, 4, 3, 1, 1, 4, 2, 3, 2, 1, 3, 5, 4, 1, 1, 3};
    const int same[20] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    const int nearly[20] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4}; /* variance 0.0475 */
    const int straight16[20] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 5, 1, 5};
    const int straight17[20] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 5, 1, 5};
    const int up[20] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5};
    const int down[20] = {5, 4, 3, 2, 1, 5, 4, 3, 2, 1, 5, 4, 3, 2, 1, 5, 4, 3, 2, 1};
    const int up16[21] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 2, 2, 2, 2}; /* 16 of 20 steps */
    const int up15[21] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 1, 1, 1, 1, 1};
    const int *all[] = {honest, same, nearly, straight16, straight17, up, down};
    char name[8];
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "r%d", i);
        rate_levels(name, all[i], 20);
    }
    rate_levels("r7", up16, 21);
    rate_levels("r8", up15, 21);
    struct lk_quality_report report = check(LK_PROTOCOL_001);
    const bool q4[] = {0, 1, 1, 0, 0, 0, 0, 0, 0}, q5[] = {0, 1, 0, 0, 0, 0, 0, 0, 0},
               q6[] = {0, 0, 0, 0, 0, 1, 1, 1, 0}, q9[] = {0, 1, 1, 0, 1, 0, 0, 0, 0};
    for (int i = 0; i < 9; i++) {
        assert_int_equal(hits(&report, i, LK_Q4_VARIANCE), q4[i]);
        assert_int_equal(hits(&report, i, LK_Q5_IDENTICAL), q5[i]);
        assert_int_equal(hits(&report, i, LK_Q6_DIAGONAL), q6[i]);
        assert_int_equal(hits(&report, i, LK_Q9_STRAIGHT), q9[i]);
        assert_int_equal(report.raters[i].excluded, q9[i]);
    }
    assert_true(fabs(report.raters[2].variance - 0.0475) < 1e-15);
    assert_int_equal(report.n_hit[LK_Q9_STRAIGHT], 3);
    assert_int_equal(report.n_excluded, 3);
    assert_true(report.excluded_rate == 3.0 / 9 && report.expected_rate == 0.1);
    lk_quality_exclude(&data, &report, true);
    assert_true(data.raters[1].excluded && !data.raters[0].excluded);
    lk_quality_exclude(&data, &report, false);
    assert_false(data.raters[1].excluded);
    lk_quality_report_free(&report);
    report = check(LK_PROTOCOL_000); /* two flags */
    const bool excluded[] = {0, 1, 1, 0, 0, 0, 0, 0, 0};
    for (int i = 0; i < 9; i++) assert_int_equal(report.raters[i].excluded, excluded[i]);
    lk_quality_report_free(&report);
    report = check(LK_PROTOCOL_003);
    assert_int_equal(report.n_excluded, 0);
    lk_quality_report_free(&report);
}

/* 38 threes, a 2 and a 4: a variance of 0.05 exactly, which still counts as near zero; with a 5 it does not. */
static void variance_at_its_limit(void **state) {
    (void)state;
    int levels[40];
    for (int i = 0; i < 40; i++) levels[i] = 3;
    levels[7] = 2;
    levels[20] = 4;
    rate_levels("r0", levels, 40);
    levels[20] = 5;
    rate_levels("r1", levels, 40);
    struct lk_quality_report report = check(LK_PROTOCOL_000);
    assert_true(report.raters[0].variance == 0.05);
    assert_true(hits(&report, 0, LK_Q4_VARIANCE));
    assert_false(hits(&report, 1, LK_Q4_VARIANCE));
    lk_quality_report_free(&report);
}

/* Sees no change: 1 on race and gender on every item. Over all axes together that is no straight line. */
static void an_honest_rater_is_kept(void **state) {
    (void)state;
    const int levels[20] = {4, 3, 1, 1, 3, 5, 3, 1, 1, 3, 4, 3, 1, 1, 3, 2, 3, 1, 1, 3};
    rate_levels("r", levels, 20);
    struct lk_quality_report report = check(LK_PROTOCOL_001);
    assert_int_equal(report.raters[0].rules, 0);
    lk_quality_report_free(&report);
}

static void times_and_gold(void **state) {
    (void)state;
    const int levels[5] = {5, 3, 1, 1, 4};
    const int times[3][5] = {
        {1500, 2999, 2999, 9000, 9000}, {2500, 3000, 3000, 9000, 9000}, {9000, 9000, 9000, 2999, 3001}};
    char name[8];
    for (int r = 0; r < 3; r++) {
        snprintf(name, sizeof name, "r%d", r);
        rate_levels(name, levels, 5);
        for (int a = 0; a < 5; a++) data.ratings[6 * r].question_ms[a] = times[r][a];
        data.ratings[6 * r].duration_ms = r ? 187500 : 187499; /* half of 375 s */
        for (int g = 0; g < 5; g++) {
            struct lk_rating *gold = rate(name, "flux_20s_male_black_W-09", 1);
            gold->is_gold = gold->gold_keyed = true;
            gold->gold_right = g < 3 + r;
            gold->duration_ms = 0;
        }
    }
    struct lk_quality_report report = check(LK_PROTOCOL_000);
    const bool q1[] = {1, 0, 0}, q3[] = {1, 0, 0}, q7[] = {1, 0, 0}, q8[] = {1, 0, 0};
    for (int r = 0; r < 3; r++) {
        assert_int_equal(hits(&report, r, LK_Q1_GOLD), q1[r]);
        assert_int_equal(hits(&report, r, LK_Q3_DURATION), q3[r]);
        assert_int_equal(hits(&report, r, LK_Q7_FAST), q7[r]);
        assert_int_equal(hits(&report, r, LK_Q8_SPEEDER), q8[r]);
        assert_int_equal(report.raters[r].n_answers, 5);
        assert_int_equal(report.raters[r].n_gold, 5);
    }
    assert_true(report.raters[0].median_ms == 2999 && report.raters[1].median_ms == 3000);
    assert_int_equal(report.raters[0].n_fast, 1);
    lk_quality_report_free(&report);
}

/* Twelve raters, one for each rule: who trips which, as the rules say. Identical answers trip those about variance and
 * straight lines as well, and nearly identical ones the latter. */
static void a_rater_for_each_rule(void **state) {
    (void)state;
    const int honest[20] = {4, 3, 1, 1, 3, 5, 3, 1, 1, 3, 4, 3, 1, 1, 3, 2, 3, 1, 1, 3};
    const int nearly[20] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4};
    const int same[20] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    const int up[20] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5};
    const int straight[20] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 5, 1, 5};
    const int *const levels[] = {honest, honest, honest,   nearly, same,   up,
                                 honest, honest, straight, honest, honest, honest};
    size_t first[12];
    char name[8];
    for (int r = 0; r < 12; r++) {
        snprintf(name, sizeof name, "r%d", r + 1);
        first[r] = data.n_ratings;
        rate_levels(name, levels[r], 20);
    }
    for (size_t i = 0; i < 4; i++) data.ratings[first[2] + i].duration_ms = i ? 150000 : 149999; /* of 1,200 s */
    for (int a = 0; a < 5; a++) {
        data.ratings[first[6]].question_ms[a] = a ? 9000 : 1999;
        for (int i = 0; i < 4; i++) data.ratings[first[7] + (size_t)i].question_ms[a] = 2999;
    }
    data.raters[1].n_sessions = 2;
    data.raters[9].n_questions = 19;
    data.raters[9].n_skipped = 2;
    data.raters[10].submitted = false;
    data.raters[11].code_valid = false;
    for (int g = 0; g < 5; g++) {
        struct lk_rating *gold = rate("r1", "flux_20s_male_black_W-09", 1);
        gold->is_gold = gold->gold_keyed = true;
        gold->gold_right = g < 3;
    }
    static const char *const matrix[12] = {/* rules 1 to 12 */
                                           "100000000000", "010000000000", "001000000000", "000100001000",
                                           "000110001000", "000001000000", "000000100000", "000000010000",
                                           "000000001000", "000000000100", "000000000010", "000000000001"};
    struct lk_quality_report report = check(LK_PROTOCOL_001);
    for (int r = 0; r < 12; r++)
        for (int rule = 0; rule < LK_N_QUALITY_RULES; rule++)
            if (hits(&report, r, rule) != (matrix[r][rule] == '1')) fail_msg("rater %d, rule Q%d", r + 1, rule + 1);
    lk_quality_report_free(&report);
}

static void participation(void **state) {
    (void)state;
    const int levels[20] = {4, 3, 1, 1, 3, 5, 3, 1, 1, 3, 4, 3, 1, 1, 3, 2, 3, 1, 1, 3};
    char name[8];
    for (int r = 0; r < 7; r++) {
        snprintf(name, sizeof name, "r%d", r);
        rate_levels(name, levels, 20);
    }
    data.raters[1].n_sessions = 2;
    data.raters[2].is_pilot = true;
    data.raters[3].submitted = false;
    data.raters[4].code_valid = false;
    data.raters[5].n_questions = 10;
    data.raters[5].n_skipped = 1;
    data.raters[6].n_questions = 19;
    data.raters[6].n_skipped = 2;
    const uint32_t rules[] = {0, 1 << LK_Q2_REPEATED, 1 << LK_Q2_REPEATED, 1 << LK_Q11_UNFINISHED, 1 << LK_Q12_NO_CODE,
                              0, 1 << LK_Q10_SKIPPED};
    const bool any[] = {0, 1, 1, 1, 1, 0, 1}, completion[] = {0, 0, 0, 1, 1, 0, 0};
    struct lk_quality_report report = check(LK_PROTOCOL_001), printed = check(LK_PROTOCOL_003);
    for (int r = 0; r < 7; r++) {
        assert_int_equal(report.raters[r].rules, rules[r]);
        assert_int_equal(data.raters[r].rules_hit, rules[r]);
        assert_int_equal(report.raters[r].excluded, any[r]);
        assert_int_equal(printed.raters[r].excluded, completion[r]);
    }
    lk_quality_report_free(&report);
    lk_quality_report_free(&printed);
    data.ratings[0].task = data.ratings[1].task = 0; /* one task, and records that name none */
    printed = check(LK_PROTOCOL_003);
    assert_int_equal(printed.raters[0].rules, 0);
    assert_int_equal(printed.raters[0].n_tasks, 1);
    lk_quality_report_free(&printed);
    for (int i = 0; i < 4; i++) data.ratings[i].task = i / 2; /* two tasks of the first rater */
    printed = check(LK_PROTOCOL_003);
    assert_int_equal(printed.raters[0].rules, 1 << LK_Q2_REPEATED);
    lk_quality_report_free(&printed);
    for (int n = 1; n <= 3; n++) {
        struct lk_quality_options options;
        lk_quality_defaults(LK_PROTOCOL_001, &options);
        lk_alloc_fail_at(n);
        assert_int_equal(lk_quality_check(&data, &options, &report), LK_E_NOMEM);
        lk_alloc_fail_at(0);
    }
}

static void names(void **state) {
    (void)state;
    assert_int_equal(lk_quality_policy_parse("two_flags"), LK_POLICY_TWO_FLAGS);
    assert_int_equal(lk_quality_policy_parse("strict"), -1);
    assert_int_equal(lk_protocol_parse("000"), LK_PROTOCOL_000);
    assert_int_equal(lk_protocol_parse("002"), -1);
    assert_string_equal(lk_quality_rule_name(LK_Q12_NO_CODE), "Q12");
    assert_string_equal(lk_quality_rule_text(LK_Q9_STRAIGHT), "straight-liner");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_printed_twelve),
        cmocka_unit_test_setup_teardown(items_get_mean_and_majority, begin, end),
        cmocka_unit_test_setup_teardown(classes_by_majority, begin, end),
        cmocka_unit_test_setup_teardown(patterns_of_answers, begin, end),
        cmocka_unit_test_setup_teardown(variance_at_its_limit, begin, end),
        cmocka_unit_test_setup_teardown(an_honest_rater_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(times_and_gold, begin, end),
        cmocka_unit_test_setup_teardown(a_rater_for_each_rule, begin, end),
        cmocka_unit_test_setup_teardown(participation, begin, end),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
