/* The report's tables about raters and plans, against the cells as printed. */
#include "engine/base/alloc.h"
#include "eval/human/combine.h"
#include "eval/report/build.h"
#include "eval/study/pairs500.h"
#include "tests/common/paper_tables.h"
#include "tests/common/report_raters.h"
#include "tests/common/test.h"

/* Every cell as published. */
static void expect_published(const struct lk_report *report, const struct lk_paper_tables *paper, const char *id,
                             const char *published) {
    const struct lk_table *ours = table_of(report, id), *theirs = lk_paper_tables_find(paper, published);
    if (!theirs) fail_msg("no published table %s", published);
    assert_false(ours->no_data);
    assert_int_equal(ours->n_rows, theirs->n_rows);
    assert_int_equal(ours->n_columns, theirs->n_columns);
    for (int c = 0; c < theirs->n_columns; c++) assert_string_equal(ours->columns[c], theirs->columns[c]);
    for (int r = 0; r < theirs->n_rows; r++) {
        assert_int_equal(ours->rows[r].n_cells, theirs->rows[r].n_cells);
        assert_int_equal(ours->rows[r].heading, theirs->rows[r].heading);
        for (int c = 0; c < theirs->rows[r].n_cells; c++) expect_text(ours, r, c, theirs->rows[r].cells[c].text);
    }
}

static void plans_as_printed(void **state) {
    (void)state;
    static const char *const tables[][2] = {
        {"table_9", "table_9"},
        {"t_000_9_2", "seed_000_9.2"},
        {"t_000_9_3", "seed_000_9.3"},
        {"t_000_10_2", "seed_000_10.2"},
        {"t_004_5_1", "seed_004_5.1"},
        {"t_004_5_2", "seed_004_5.2"},
        {"t_001_meta", "seed_001_Questionnaire Metadata"},
    };
    struct lk_paper_tables paper;
    struct lk_report *report;
    assert_ok(lk_paper_tables_read(&paper));
    assert_ok(lk_report_build(&report, &data, &options));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        expect_published(report, &paper, tables[i][0], tables[i][1]);
    const struct lk_table *hits = table_of(report, "t_000_10_2"), *scale = table_of(report, "t_000_1_3");
    assert_non_null(strstr(hits->note, "$135.60"));
    assert_non_null(strstr(hits->note, "$145.95"));
    assert_non_null(strstr(hits->note, "81 assignments: $132.00, with fee $158.40"));
    assert_non_null(strstr(table_of(report, "t_004_5_2")->note, "$106.50, with the platform's fee $127.80"));
    assert_non_null(strstr(table_of(report, "table_9")->note, "$6.00 to $7.20"));
    assert_non_null(strstr(table_of(report, "table_9")->note, "$3.63 for the longest time, and the pay is below it"));
    const char *const images[] = {"5,040", "500", "100", "5,640"}, *const models[] = {"3", "3", "2", ""};
    for (int r = 0; r < 4; r++) {
        expect_text(scale, r, 1, models[r]);
        expect_text(scale, r, 2, images[r]);
    }
    assert_true(table_of(report, "t_000_1_2")->no_data && table_of(report, "t_000_1_2")->n_rows == 0);
    lk_report_free(report);
    lk_paper_tables_free(&paper);
}

/* The published participants, made from the published counts, and one who does not count. */
static void demographics_as_printed(void **state) {
    (void)state;
    static const int16_t ages[30] = {21, 69, 22, 23, 30, 27, 48, 32, 32, 24, 39, 30, 24, 38, 24,
                                     40, 22, 35, 36, 54, 23, 39, 22, 34, 29, 44, 55, 41, 53, 28};
    static const struct {
        const char *text;
        int n;
    } people[5][16] = {
        {{"Male", 15}, {"Female", 15}},
        {{"Other", 2}, {"Asian", 1}, {"Black", 8}, {"Mixed", 2}, {"White", 17}},
        {{"", 3}, {"Yes", 12}, {"No", 15}},
        {{"Spanish", 8},
         {"Slovak", 1},
         {"Greek", 1},
         {"English", 14},
         {"Portuguese", 2},
         {"Indonesian", 1},
         {"French", 2},
         {"Czech", 1}},
        {{"United Kingdom", 1},
         {"Spain", 5},
         {"Slovakia", 1},
         {"United States", 2},
         {"South Africa", 8},
         {"Portugal", 2},
         {"Mexico", 2},
         {"Ireland", 1},
         {"Indonesia", 1},
         {"Greece", 2},
         {"France", 3},
         {"Czech Republic", 1},
         {"Chile", 1}},
    };
    struct lk_participant participants[32] = {{0}};
    struct lk_paper_tables paper;
    struct lk_report *report;
    for (int p = 0; p < 32; p++) {
        char id[8];
        snprintf(id, sizeof id, "p%d", p);
        assert_ok(lk_dataset_rater(&data, id, strlen(id), &participants[p].rater));
        participants[p].age = p < 30 ? ages[p] : 99;
        participants[p].sex = participants[p].ethnicity = participants[p].student = participants[p].language =
            participants[p].country = "not counted";
    }
    for (int field = 0; field < 5; field++)
        for (int p = 0, k = 0, left = people[field][0].n; p < 30; p++) {
            const char *text = people[field][k].text;
            struct lk_participant *one = &participants[p];
            const char **const fields[] = {&one->sex, &one->ethnicity, &one->student, &one->language, &one->country};
            *fields[field] = text;
            if (--left == 0) left = people[field][++k].n;
        }
    data.raters[30].excluded = true;
    participants[31].rater = -1;
    options.participants = participants;
    options.n_participants = 32;
    assert_ok(lk_paper_tables_read(&paper));
    assert_ok(lk_report_build(&report, &data, &options));
    expect_published(report, &paper, "table_10", "table_10");
    lk_report_free(report);
    participants[0].age = participants[1].age = -1;
    for (int p = 2; p < 30; p++) participants[p].age = (int16_t)(p % 2 ? 20 : 24);
    assert_ok(lk_report_build(&report, &data, &options)); /* 14 of 20 and of 24: sd 2 sqrt(28/27) */
    expect_text(table_of(report, "table_10"), 1, 1, "22.0 ± 2.0 (range 20–24), Missing 2 (6.7%)");
    lk_report_free(report);
    lk_paper_tables_free(&paper);
}

/* The sample of 500 pairs, rated, has the published distribution. */
static void distribution_as_printed(void **state) {
    (void)state;
    static const char *const arms[] = {"", ".preserved"};
    struct lk_pair pairs[LK_N_PAIRS];
    struct lk_paper_tables paper;
    struct lk_report *report;
    lk_pairs500(42, pairs);
    for (int p = 0; p < LK_N_PAIRS; p++)
        for (int arm = 0; arm < 2; arm++) {
            int race, gender, age;
            char id[128];
            lk_source_factors(pairs[p].source, &race, &gender, &age);
            snprintf(id, sizeof id, "%s_%s_%s_%s_%s%s", lk_factor_key(LK_FACTOR_MODEL, pairs[p].model),
                     lk_factor_key(LK_FACTOR_AGE, age), lk_factor_key(LK_FACTOR_GENDER, gender),
                     lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(pairs[p].prompt), arms[arm]);
            rate("a", id, 1);
        }
    rate("x", "flux_20s_male_black_W-01", 1); /* of experiment 3; then one that only an excluded rater saw */
    char other[64];
    int32_t unseen = 0;
    for (int p = 0; unseen >= 0; p++) {
        assert_true(p < LK_N_EDIT_PROMPTS);
        snprintf(other, sizeof other, "flux_20s_male_white_%s", lk_prompt_id(p));
        assert_ok(lk_dataset_find(&data, other, strlen(other), &unseen));
    }
    rate("y", other, 1);
    assert_ok(lk_dataset_rater(&data, "y", 1, &unseen));
    data.raters[unseen].excluded = true;
    assert_ok(lk_combine(&data));
    assert_ok(lk_paper_tables_read(&paper));
    assert_ok(lk_report_build(&report, &data, &options));
    expect_published(report, &paper, "table_11", "table_11");
    lk_report_free(report);
    lk_paper_tables_free(&paper);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plans_as_printed, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(demographics_as_printed, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(distribution_as_printed, raters_begin, raters_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
