/* The long score table: written and read back, tables of others, and what is refused. */
#include "engine/base/alloc.h"
#include "eval/scores/long_table.h"
#include "tests/common/test.h"

#define HEADER "item_id,kind,who,axis,score,race,gender,age,model,prompt,arm,job\n"

static struct lk_long_report report;

static enum lk_code load(struct lk_dataset *data, const char *text) {
    return lk_long_table_read(data, text, strlen(text), "t.csv", &report);
}

static void a_table_survives_the_round_trip(void **state) {
    (void)state;
    static const char table[] = HEADER
        "flux_20s_male_black_O-01,judge,primary,edit_success,4,Black,Male,20s,flux,O-01,edited,\"run, \"\"1\"\"\"\n"
        "flux_20s_male_black_O-01,judge,secondary,skin_tone,3,Black,Male,20s,flux,O-01,edited,\"run, \"\"1\"\"\"\n"
        "qwen_pair_latino_20s_W-07,judge,primary,role,female,Latino,,20s,qwen,W-07,edited,\"run, \"\"1\"\"\"\n"
        "flux_20s_male_black_O-01,rater,\"a,b\",edit_success,5,Black,Male,20s,flux,O-01,edited,\"run, \"\"1\"\"\"\n"
        "flux_20s_male_black_O-01,rater,\"a,b\",age_drift,2,Black,Male,20s,flux,O-01,edited,\"run, \"\"1\"\"\"\n"
        "flux_20s_male_black_O-01,rater,\"a,b\",preference,tie,Black,Male,20s,flux,O-01,edited,\"run, \"\"1\"\"\"\n"
        "qwen_pair_latino_20s_W-07,rater,c,role,unclear,Latino,,20s,qwen,W-07,edited,\"run, \"\"1\"\"\"\n";
    struct lk_dataset data;
    char *text;
    size_t n;
    lk_dataset_init(&data);
    assert_ok(load(&data, table));
    assert_int_equal(report.n_rows, 7);
    assert_int_equal(report.n_judge, 3);
    assert_int_equal(report.n_rater, 4);
    assert_int_equal(data.n_items, 2);
    assert_int_equal(data.n_ratings, 2);
    assert_int_equal(data.items[0].judge[0][0], 4);
    assert_int_equal(data.items[0].judge[1][1], 3);
    assert_int_equal(data.items[1].judge_role[0], LK_ROLE_FEMALE);
    assert_int_equal(data.ratings[0].score[4], 2);
    assert_int_equal(data.ratings[0].preference, 2);
    assert_int_equal(data.ratings[1].role, LK_ROLE_UNCLEAR);
    assert_ok(lk_long_table_write(&data, "run, \"1\"", &text, &n));
    assert_int_equal(n, strlen(text));
    assert_string_equal(text, table);
    assert_ok(load(&data, table)); /* again: nothing contradicts */
    assert_int_equal(data.n_ratings, 2);
    lk_free(text);
    lk_dataset_free(&data);
}

static void tables_of_others(void **state) {
    (void)state;
    struct lk_dataset data;
    lk_dataset_init(&data);
    assert_ok(load(&data, "\xef\xbb\xbfscore,axis,who,KIND,item_id,note\r\n"
                          "4.0,Skin Tone Change,Primary,Judge,flux_20s_male_black_catB_001,x\r\n"
                          ",race_drift,r1,rater,flux_20s_male_black_O-01,\r\n"
                          "2,age_accuracy,r1,rater,flux_20s_male_black_V-03,\r\n"));
    assert_int_equal(data.items[0].judge[0][1], 4);
    assert_int_equal(report.n_skipped, 1);
    assert_int_equal(data.ratings[0].n_asked, 1);
    assert_int_equal(data.ratings[0].n_skipped, 1);
    assert_int_equal(data.ratings[1].score[4], 2);
    lk_dataset_free(&data);
}

static void rows_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *row, *message;
    } cases[] = {
        {"x,judge,primary,skin_tone,3,,,,,,,", "line 2, column 1 (\"item_id\"): item id \"x\""},
        {"flux_20s_male_black_O-01,robot,primary,skin_tone,3,,,,,,,", "column 2 (\"kind\"): expected judge or rater"},
        {"flux_20s_male_black_O-01,judge,third,skin_tone,3,,,,,,,", "column 3 (\"who\"): expected primary"},
        {"flux_20s_male_black_O-01,rater,,skin_tone,3,,,,,,,", "column 3 (\"who\"): expected a rater"},
        {"flux_20s_male_black_O-01,judge,primary,beauty,3,,,,,,,", "column 4 (\"axis\"): \"beauty\" is no axis"},
        {"flux_20s_male_black_O-01,judge,primary,age_accuracy,3,,,,,,,", "is no axis"},
        {"flux_20s_male_black_O-01,judge,primary,preference,tie,,,,,,,", "a judge gives no preference"},
        {"flux_20s_male_black_O-01,judge,primary,skin_tone,0,,,,,,,",
         "column 5 (\"score\"): expected 1 to 5, got \"0\""},
        {"flux_20s_male_black_O-01,judge,primary,skin_tone,3.5,,,,,,,", "expected 1 to 5"},
        {"flux_20s_male_black_O-01,judge,primary,skin_tone, 3,,,,,,,", "expected 1 to 5"},
        {"flux_20s_male_black_O-01,judge,primary,role,both,,,,,,,", "expected male, female or unclear"},
        {"flux_20s_male_black_O-01,rater,r,preference,A,,,,,,,", "expected edited, preserved or tie"},
        {"flux_20s_male_black_O-01,judge,primary,skin_tone,3,White,,,,,,",
         "column 6 (\"race\"): \"White\" is not what"},
        {"flux_20s_male_black_O-01,judge,primary,skin_tone,3,,,,qwen,,,", "column 9 (\"model\")"},
        {"flux_20s_male_black_O-01,judge,primary,skin_tone,3,,,,,O-02,,", "column 10 (\"prompt\")"},
        {"flux_20s_male_black_O-01,judge,primary,skin_tone,3,,,,,,preserved,", "column 11 (\"arm\")"},
        {"flux_20s_male_black_O-01,judge,primary,skin_tone,3,,,,,,,\n"
         "flux_20s_male_black_O-01,judge,primary,skin_tone,4,,,,,,,",
         "line 3, column 5 (\"score\"): another line"},
        {"flux_20s_male_black_O-01,rater,r,skin_tone,3,,,,,,,\n"
         "flux_20s_male_black_O-01.edited,rater,r,skin_tone,4,,,,,,,",
         "line 3, column 5 (\"score\"): another line"},
        {"flux_20s_male_black_O-01,judge,primary", "line 2: expected 12 cells"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_dataset data;
        char text[512];
        lk_dataset_init(&data);
        snprintf(text, sizeof text, HEADER "%s\n", cases[i].row);
        assert_fails(load(&data, text), LK_E_INPUT, cases[i].message);
        lk_dataset_free(&data);
    }
    struct lk_dataset data;
    lk_dataset_init(&data);
    assert_fails(load(&data, "item_id,kind,who,axis\n"), LK_E_INPUT, "expected a column \"score\"");
    assert_fails(load(&data, ""), LK_E_INPUT, "empty file");
    lk_dataset_free(&data);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    static const char table[] = HEADER "flux_20s_male_black_O-01,judge,primary,skin_tone,3,,,,,,,\n"
                                       "flux_20s_male_black_O-01,rater,r,skin_tone,3,,,,,,,\n";
    int64_t live = lk_alloc_live();
    enum lk_code rc = LK_E_NOMEM;
    for (int64_t n = 1; rc; n++) {
        struct lk_dataset data;
        char *text;
        size_t n_text;
        lk_dataset_init(&data);
        lk_alloc_fail_at(n);
        rc = load(&data, table);
        if (!rc) rc = lk_long_table_write(&data, "", &text, &n_text);
        lk_alloc_fail_at(0);
        assert_true(!rc || rc == LK_E_NOMEM);
        if (!rc) lk_free(text);
        lk_dataset_free(&data);
        assert_int_equal(lk_alloc_live(), live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_survives_the_round_trip),
        cmocka_unit_test(tables_of_others),
        cmocka_unit_test(rows_that_are_refused),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
