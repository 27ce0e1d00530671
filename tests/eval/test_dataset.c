/* The dataset: every form of an item id, the index under many items, pairs, and memory that runs out. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/scores/dataset.h"
#include "eval/study/prompts.h"
#include "tests/common/test.h"

static int32_t add(struct lk_dataset *data, const char *id) {
    int32_t item;
    assert_ok(lk_dataset_item(data, id, strlen(id), &item));
    return item;
}

static void ids_are_taken_apart(void **state) {
    (void)state;
    struct lk_dataset data;
    lk_dataset_init(&data);
    int32_t preserved = add(&data, "flux_20s_male_black_O-01.preserved");
    const struct lk_item *item = &data.items[preserved];
    assert_string_equal(item->id, "flux_20s_male_black_O-01.preserved");
    assert_int_equal(item->model, 0);
    assert_int_equal(item->age, 0);
    assert_int_equal(item->gender, 0);
    assert_int_equal(item->race, 1);
    assert_int_equal(item->prompt, 0);
    assert_int_equal(item->arm, LK_ARM_PRESERVED);
    assert_int_equal(item->source, 12);
    assert_int_equal(item->partner, -1);
    assert_int_equal(item->role, LK_ROLE_NONE);
    assert_true(isnan(item->human_mean[0]) && !item->score[0]);

    /* the older form, the bare form and the form with an arm are one item */
    int32_t edited = add(&data, "flux_20s_male_black_catB_001");
    assert_int_not_equal(edited, preserved);
    assert_int_equal(add(&data, "flux_20s_male_black_O-01"), edited);
    assert_int_equal(add(&data, "flux_20s_male_black_O-01.edited"), edited);
    assert_int_equal(data.n_items, 2);

    int32_t pair = add(&data, "qwen_pair_latino_20s_W-07");
    assert_int_equal(data.items[pair].gender, -1);
    assert_int_equal(data.items[pair].race, 6);
    assert_int_equal(data.items[pair].age, 0);
    assert_int_equal(data.items[pair].source, -1);
    assert_int_equal(data.items[pair].prompt, LK_N_EDIT_PROMPTS + 6);
    int32_t swapped = add(&data, "qwen_pair_latino_20s_W-07_swapped");
    assert_int_not_equal(swapped, pair);
    assert_int_equal(data.items[swapped].prompt, data.items[pair].prompt);
    assert_true(data.items[swapped].swapped && !data.items[pair].swapped);
    int32_t separate = add(&data, "qwen_20s_female_latino_W-07");
    assert_int_not_equal(separate, pair);
    assert_int_equal(add(&data, "step1x_70plus_female_latino_hispanic_catD_010"),
                     add(&data, "step1x_70plus_female_latino_V-10"));

    lk_dataset_pair(&data);
    assert_int_equal(data.items[edited].partner, preserved);
    assert_int_equal(data.items[preserved].partner, edited);
    assert_int_equal(data.items[pair].partner, -1);
    lk_dataset_free(&data);
}

static void ids_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *id, *part;
    } cases[] = {
        {"", "1 to 200 bytes"},
        {"flux", "\"flux\" is no prompt"},
        {"sdxl_20s_male_black_O-01", "\"sdxl\" is no model"},
        {"flux_10s_male_black_O-01", "\"10s\" is no age"},
        {"flux_20s_man_black_O-01", "\"man\" is no gender"},
        {"flux_20s_male_purple_O-01", "\"purple\" is no race"},
        {"flux_20s_male_O-01", "\"\" is no race"},
        {"flux_20s_male_black_O-11", "\"O-11\" is no prompt"},
        {"flux_20s_male_black_catA_001", "\"catA_001\" is no prompt"},
        {"flux_20s_male_black_O-01.png", "\"png\" is no arm"},
        {"flux_20s_male_black_O-01.", "\"\" is no arm"},
        {"flux_pair_black_20s_O-01", "takes a W prompt"},
        {"flux_20s_male_black_W-07_swapped", "only the order of a pair"},
        {"_swapped", "is no prompt"},
        {"_", "is no prompt"},
        {"001", "is no prompt"},
        {"_001", "is no prompt"},
    };
    struct lk_dataset data;
    lk_dataset_init(&data);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t item = 7;
        assert_fails(lk_dataset_item(&data, cases[i].id, strlen(cases[i].id), &item), LK_E_INPUT, cases[i].part);
        assert_int_equal(item, -1);
    }
    char id[300];
    memset(id, 'x', sizeof id);
    int32_t out;
    assert_fails(lk_dataset_item(&data, id, sizeof id, &out), LK_E_INPUT, "1 to 200 bytes");
    assert_fails(lk_dataset_rater(&data, id, sizeof id, &out), LK_E_INPUT, "1 to 200 bytes");
    assert_int_equal(data.n_items, 0);
    lk_dataset_free(&data);
}

/* Every item of experiment 1, both arms. */
static void all_items_are_found_again(void **state) {
    (void)state;
    struct lk_dataset data;
    lk_dataset_init(&data);
    for (int pass = 0; pass < 2; pass++) {
        int32_t expected = 0;
        for (int m = 0; m < LK_N_MODELS; m++)
            for (int s = 0; s < LK_N_SOURCES; s++)
                for (int p = 0; p < LK_N_EDIT_PROMPTS; p++)
                    for (int arm = 0; arm < LK_N_ARMS; arm++) {
                        int race, gender, age;
                        char id[128];
                        lk_source_factors(s, &race, &gender, &age);
                        snprintf(id, sizeof id, "%s_%s_%s_%s_%s.%s", lk_factor_key(LK_FACTOR_MODEL, m),
                                 lk_factor_key(LK_FACTOR_AGE, age), lk_factor_key(LK_FACTOR_GENDER, gender),
                                 lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(p),
                                 lk_factor_key(LK_FACTOR_ARM, arm));
                        int32_t item = add(&data, id);
                        assert_int_equal(item, expected++);
                        assert_int_equal(data.items[item].source, s);
                    }
    }
    assert_int_equal(data.n_items, 2 * 5040);
    lk_dataset_pair(&data);
    for (size_t i = 0; i < data.n_items; i++) assert_int_equal(data.items[i].partner, i ^ 1);
    lk_dataset_free(&data);
}

static void raters_and_ratings(void **state) {
    (void)state;
    struct lk_dataset data;
    lk_dataset_init(&data);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 1000; i++) {
            char id[32];
            int32_t rater;
            snprintf(id, sizeof id, "rater%d", i);
            assert_ok(lk_dataset_rater(&data, id, strlen(id), &rater));
            assert_int_equal(rater, i);
        }
    assert_int_equal(data.n_raters, 1000);
    assert_true(data.raters[0].submitted && data.raters[0].code_valid && !data.raters[0].excluded);
    struct lk_rating *rating;
    assert_ok(lk_dataset_rating(&data, &rating));
    assert_int_equal(rating->item, -1);
    assert_int_equal(rating->question_ms[4], -1);
    assert_int_equal(rating->preference, -1);
    assert_int_equal(rating->score[0], 0);
    lk_dataset_free(&data);
}

static enum lk_code fill(struct lk_dataset *data) {
    for (int i = 0; i < 200; i++) {
        char id[64];
        int32_t out;
        struct lk_rating *rating;
        snprintf(id, sizeof id, "flux_%s_male_white_W-%02d", lk_factor_key(LK_FACTOR_AGE, i / 50), i % 50 + 1);
        LK_TRY(lk_dataset_item(data, id, strlen(id), &out));
        LK_TRY(lk_dataset_rater(data, id, strlen(id), &out));
        LK_TRY(lk_dataset_rating(data, &rating));
    }
    return LK_OK;
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    enum lk_code rc = LK_E_NOMEM;
    for (int64_t n = 1; rc; n++) {
        struct lk_dataset data;
        lk_dataset_init(&data);
        lk_alloc_fail_at(n);
        rc = fill(&data);
        lk_alloc_fail_at(0);
        assert_true(!rc || rc == LK_E_NOMEM);
        if (rc) assert_ok(fill(&data)); /* what is there still works */
        assert_int_equal(data.n_items, 200);
        lk_dataset_free(&data);
        assert_int_equal(lk_alloc_live(), live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_taken_apart),       cmocka_unit_test(ids_that_are_refused),
        cmocka_unit_test(all_items_are_found_again), cmocka_unit_test(raters_and_ratings),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
