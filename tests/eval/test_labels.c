/* Label tables of a face classifier, and numbers as files write them. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/scores/labels.h"
#include "eval/scores/level.h"
#include "tests/common/test.h"

#define HEADER                                                                                                         \
    "file_path,prompt_id,model_tag,seed,cfg,face_found,race,race_conf,gender,gender_conf,age,age_conf,skin_tone,"      \
    "skin_value\n"

static enum lk_code load(struct lk_labels *labels, const char *text) {
    return lk_labels_read(labels, text, strlen(text), "labels.csv");
}

static void the_studys_own_table(void **state) {
    (void)state;
    struct lk_labels labels;
    assert_ok(load(&labels,
                   HEADER "out/a.png,P1,flux,0,6.5,true,Latino_Hispanic,0.91,Female,1,more than 70,0.5,tan,19.25\n"
                          "out/b.png,P1,flux,1,6.5,False,,,,,,,,\n"
                          "out/c.png,P1,flux,,,1,Southeast Asian,0,Male,,0-2,,dark,-45\n"));
    assert_int_equal(labels.n, 3);
    const struct lk_label *l = labels.list;
    assert_string_equal(l[0].file_path, "out/a.png");
    assert_string_equal(l[0].prompt_id, "P1");
    assert_int_equal(l[0].race, 6);
    assert_int_equal(l[0].gender, 1);
    assert_int_equal(l[0].age, 8);
    assert_int_equal(l[0].skin_tone, 3);
    assert_true(l[0].face_found && l[0].seed == 0 && l[0].cfg == 6.5 && l[0].race_conf == 0.91f &&
                l[0].skin_value == 19.25);
    assert_true(!l[1].face_found && l[1].race == -1 && l[1].age == -1 && isnan(l[1].race_conf) && l[1].seed == 1);
    assert_true(l[2].face_found && l[2].seed == -1 && isnan(l[2].cfg) && l[2].age == 0 && l[2].race == 3);
    lk_labels_free(&labels);
}

static void fairfaces_own_tables(void **state) {
    (void)state;
    struct lk_labels labels;
    assert_ok(load(&labels, "file,age,gender,race,service_test\nval/1.jpg,3-9,Male,East Asian,False\n"));
    assert_int_equal(labels.list[0].age, 1);
    assert_int_equal(labels.list[0].race, 2);
    assert_true(labels.list[0].face_found);
    lk_labels_free(&labels);
    assert_ok(load(&labels, "face_name_align,race,gender,age\nx.jpg,Black,Female,70+\n"));
    assert_int_equal(labels.list[0].age, 8);
    lk_labels_free(&labels);
    for (int i = 0; i < LK_N_AGE_BRACKETS; i++)
        assert_int_equal(lk_age_bracket_parse(lk_age_bracket_name(i), strlen(lk_age_bracket_name(i))), i);
}

static void rows_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"race,gender\nBlack,Male\n", "expected a column \"file_path\""},
        {"file_path,seed\na,1\n", "expected a column \"race\""},
        {"file_path,race\n,Black\n", "line 2, column 1 (\"file_path\"): expected a file path"},
        {"file_path,race\na,Martian\n", "column 2 (\"race\"): \"Martian\" is no race"},
        {"file_path,age\na,25\n", "\"25\" is no age bracket"},
        {"file_path,race,race_conf\na,Black,1.01\n", "expected a number from 0 to 1"},
        {"file_path,race,race_conf\na,Black,inf\n", "expected a number from 0 to 1"},
        {"file_path,race,race_conf\na,Black,0x1\n", "expected a number from 0 to 1"},
        {"file_path,race,face_found\na,Black,0\n", "a race where face_found is false"},
        {"file_path,race,face_found\na,,perhaps\n", "expected true or false"},
        {"file_path,race,seed\na,Black,1.5\n", "a seed is an integer"},
        {"file_path,race,skin_tone\na,Black,beige\n", "\"beige\" is no skin tone"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_labels labels;
        assert_fails(load(&labels, cases[i].text), LK_E_INPUT, cases[i].message);
        assert_null(labels.list);
    }
}

static void numbers_as_files_write_them(void **state) {
    (void)state;
    const struct {
        const char *text;
        int level;
        long count;
    } cases[] = {{"4", 4, 4},         {"4.0", 4, 4},  {"4.000", 4, 4}, {"0.4e1", 4, -1},
                 {"400e-2", 4, -1},   {"4.", 4, -1},  {"", 0, -1},     {".", 0, -1},
                 {"5.1", 0, -1},      {"6", 0, 6},    {"0", 0, 0},     {"-1", 0, -1},
                 {"4e", 0, -1},       {"4e+", 0, -1}, {"4e0", 4, -1},  {"1e99999999999", 0, -1},
                 {"0.0004e4", 4, -1}, {"04", 4, 4},   {"44", 0, 44},   {"1000", 0, 1000},
                 {"1001", 0, -1},     {"4 ", 0, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].text);
        if (lk_level_of_number(cases[i].text, n) != cases[i].level) fail_msg("level of \"%s\"", cases[i].text);
        if (lk_count_of_text(cases[i].text, n, 1000) != cases[i].count) fail_msg("count of \"%s\"", cases[i].text);
    }
    double value;
    assert_true(lk_decimal_of_text("-1.25e2", 7, &value) && value == -125);
    assert_false(lk_decimal_of_text("1e999", 5, &value));
    static const char *const none[] = {"", ".", "-", "+", "-.", ".e3", "1e", "1e+", "--1", "1..", "1.2.3", "0x1", " 1"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(lk_decimal_of_text(none[i], strlen(none[i]), &value));
    assert_true(lk_decimal_of_text(".9", 2, &value) && value == 0.9); /* as SPSS and SAS write it */
    assert_true(lk_decimal_of_text("-.25e1", 6, &value) && value == -2.5);
    assert_true(lk_decimal_of_text("1.", 2, &value) && value == 1);
    assert_true(lk_decimal_of_text("+2", 2, &value) && value == 2);
    assert_false(lk_decimal_of_text("inf", 3, &value));
    assert_false(lk_decimal_of_text("1\0", 2, &value));
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    enum lk_code rc = LK_E_NOMEM;
    for (int64_t n = 1; rc; n++) {
        struct lk_labels labels;
        lk_alloc_fail_at(n);
        rc = load(&labels, "file_path,race\na,Black\nb,White\n");
        lk_alloc_fail_at(0);
        assert_true(!rc || rc == LK_E_NOMEM);
        if (!rc) assert_int_equal(labels.n, 2);
        lk_labels_free(&labels);
        assert_int_equal(lk_alloc_live(), live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_studys_own_table),     cmocka_unit_test(fairfaces_own_tables),
        cmocka_unit_test(rows_that_are_refused),    cmocka_unit_test(numbers_as_files_write_them),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
