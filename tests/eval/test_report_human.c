/* The report's tables about raters: synthetic ones whose results are worked out by hand or by the statistics
 * themselves. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/human/combine.h"
#include "eval/report/build.h"
#include "eval/stats/agreement/krippendorff.h"
#include "tests/common/report_raters.h"
#include "tests/common/test.h"

/* The row whose first cells are these; second NULL: any. heading: search starts below this heading. */
static int row_of(const struct lk_table *table, const char *heading, const char *first, const char *second) {
    bool below = heading == NULL;
    for (int r = 0; r < table->n_rows; r++) {
        const struct lk_table_row *row = &table->rows[r];
        if (heading && row->heading) below = !strcmp(row->cells[0].text, heading);
        if (below && !row->heading && !strcmp(row->cells[0].text, first) &&
            (!second || !strcmp(row->cells[1].text, second)))
            return r;
    }
    fail_msg("%s has no row %s, %s", table->id, first, second ? second : "");
    return -1;
}

static void expect_number(const struct lk_table *table, int row, int column, double value) {
    const struct lk_cell *cell = cell_of(table, row, column);
    if (cell->kind != LK_CELL_NUMBER || !(fabs(cell->value - value) <= 1e-12))
        fail_msg("%s, %d, %d: expected %.17g, got %.17g (%s)", table->id, row, column, value, cell->value, cell->text);
}

/* Three raters and a fourth who is excluded, four outputs, race drift and a few classes and preferences. */
static const char *const outputs[4] = {"flux_20s_male_black_O-01", "flux_30s_male_black_V-01",
                                       "step1x_20s_female_white_O-02", "qwen_60s_male_indian_V-02"};
static const int levels[4][3] = {{1, 1, 1}, {1, 1, 2}, {3, 3, 3}, {5, 5, 4}};
static struct lk_rater_quality rater_quality[4];
static struct lk_quality_report quality;

static void small_study(void) {
    static const char *const raters[] = {"a", "b", "c"};
    static const uint8_t judged[4] = {3, 2, 3, 4};
    static const int8_t preferred[7] = {1, 1, 1, 1, 0, 2, 2}, classes[6] = {0, 0, 0, 2, 2, 2};
    for (int i = 0; i < 12; i++) {
        struct lk_rating *rating = rate(raters[i % 3], outputs[i / 3], levels[i / 3][i % 3]);
        has_levels(rating, LK_AXIS_EDIT_SUCCESS, 4);
        if (i < 7) rating->preference = preferred[i];
        if (i < 6) rating->answer_class[LK_AXIS_SKIN_TONE] = classes[i];
    }
    for (int i = 0; i < 4; i++) rate("d", outputs[i], 5);
    rate("a", outputs[0], 5)->is_gold = true;
    for (int i = 0; i < 4; i++) {
        data.items[i].score[LK_AXIS_RACE_DRIFT] = judged[i];
        data.items[i].score[LK_AXIS_EDIT_SUCCESS] = 4;
    }
    memset(rater_quality, 0, sizeof rater_quality);
    quality = (struct lk_quality_report){.raters = rater_quality, .n_raters = 4, .n_excluded = 1, .expected_rate = 0.1};
    rater_quality[2].rules = 1u << LK_Q9_STRAIGHT;
    rater_quality[3] =
        (struct lk_rater_quality){.rules = 1u << LK_Q9_STRAIGHT | 1u << LK_Q11_UNFINISHED, .excluded = 1};
    quality.n_hit[LK_Q9_STRAIGHT] = 2;
    quality.n_hit[LK_Q11_UNFINISHED] = 1;
    options.quality = &quality;
    lk_quality_exclude(&data, &quality, true);
    assert_ok(lk_combine(&data));
}

static void reliability_by_hand(void **state) {
    (void)state;
    struct lk_report *report;
    struct lk_number alpha[LK_N_MEASUREMENTS];
    const struct lk_resampling how = {options.study_seed, (int)options.n_bootstrap, 0.95, NULL, 0};
    double ratings[12];
    small_study();
    assert_ok(lk_report_build(&report, &data, &options));
    const struct lk_table *table = table_of(report, "t_rel");
    int race = row_of(table, NULL, "Race Change", NULL);
    expect_text(table, race, 1, "4");
    expect_number(table, race, 2, 7.0 / 13);
    expect_number(table, race, 3, 15.0 / 26);
    expect_number(table, race, 5, 151.0 / 162);
    expect_number(table, race, 6, 151.0 / 160);
    expect_number(table, race, 7, 151.0 / 154);
    expect_text(table, race, 8, "moderate / moderate");
    expect_text(table, race, 9, "almost perfect / almost perfect");
    for (int i = 0; i < 12; i++) ratings[i] = levels[i / 3][i % 3];
    assert_ok(lk_krippendorff_intervals(ratings, 4, 3, &how, alpha));
    for (int level = LK_NOMINAL; level <= LK_INTERVAL; level++) {
        const struct lk_cell *cell = cell_of(table, race, 3 + level);
        assert_true(cell->value == alpha[level].value && cell->low == alpha[level].low &&
                    cell->high == alpha[level].high);
        assert_true(cell->low < cell->high);
    }
    int success = row_of(table, NULL, "Edit Success", NULL); /* all 4: no disagreement to be expected */
    for (int c = 2; c < 10; c++) assert_int_equal(cell_of(table, success, c)->kind, LK_CELL_NONE);
    int skin = row_of(table, NULL, "Skin Tone Change, in classes", NULL),
        preferred = row_of(table, NULL, "Preferred arm", NULL);
    expect_text(table, skin, 1, "2");
    expect_number(table, skin, 2, 1);
    expect_number(table, skin, 3, 1);
    assert_int_equal(cell_of(table, skin, 5)->kind, LK_CELL_NONE);
    expect_text(table, preferred, 1, "2");
    expect_number(table, preferred, 2, 0);
    const char *flag = cell_of(table, preferred, 9)->note, *good = cell_of(table, race, 9)->note;
    assert_true(flag && strstr(flag, "α below 0.6") && !good);
    assert_int_equal(table->n_rows, 4);
    lk_report_free(report);
}

/* Items with other numbers of answers stay out of kappa and are counted; one answer is none. */
static void uneven_numbers_of_answers(void **state) {
    (void)state;
    struct lk_report *report;
    small_study();
    rate("a", "flux_40s_male_black_O-01", 2);
    rate("b", "flux_40s_male_black_O-01", 2);
    rate("a", "flux_50s_male_black_O-01", 1);
    assert_ok(lk_combine(&data));
    assert_ok(lk_report_build(&report, &data, &options));
    const struct lk_table *table = table_of(report, "t_rel");
    int race = row_of(table, NULL, "Race Change", NULL);
    expect_text(table, race, 1, "5");
    expect_number(table, race, 2, 7.0 / 13);
    assert_non_null(strstr(cell_of(table, race, 2)->note, "another number of answers than 3: 1"));
    expect_number(table, race, 6, 151.0 / 160);
    lk_report_free(report);
}

static void judges_against_raters(void **state) {
    (void)state;
    struct lk_report *report;
    small_study();
    options.judges[0] = "A";
    options.judges[1] = "B";
    assert_ok(lk_report_build(&report, &data, &options));
    const struct lk_table *table = table_of(report, "vlm_human_agreement");
    int race = row_of(table, "Overall", "Race Change", NULL);
    expect_text(table, race, 1, "4");
    expect_number(table, race, 2, 4.0 / 7);
    expect_number(table, race, 3, 0.5);
    expect_number(table, race, 4, 3 / sqrt(22.5));
    expect_number(table, race, 6, 3);
    expect_number(table, race, 7, 2.5);
    expect_text(table, race, 8, "+0.50");
    int flux = row_of(table, "FLUX.2-dev", "Race Change", NULL),
        v = row_of(table, "Vulnerability Attributes", "Race Change", NULL);
    expect_text(table, flux, 1, "2");
    expect_number(table, flux, 3, 0);             /* yes, no against no, no */
    expect_number(table, flux, 8, 2.5 - 7.0 / 6); /* 3, 2 against 1, 4/3 */
    expect_text(table, v, 1, "2");
    expect_number(table, v, 8, 0); /* 2, 4 against 4/3, 14/3 */
    int skin = row_of(table, "Overall", "Skin Tone Change", NULL);
    expect_text(table, skin, 1, "0");
    for (int c = 2; c < 9; c++) assert_int_equal(cell_of(table, skin, c)->kind, LK_CELL_NONE);
    table = table_of(report, "t_000_15_4");
    assert_string_equal(table->columns[1], "VLM (N=4)");
    assert_string_equal(table->columns[2], "Human (N=4)");
    int drift = row_of(table, NULL, "Race Drift (≥3)", NULL);
    expect_text(table, drift, 1, "75.0%");
    expect_text(table, drift, 2, "50.0%");
    expect_number(table, drift, 3, 0.5);
    table = table_of(report, "t_000_1_2");
    expect_text(table, 0, 1, "VLM (A, B)");
    expect_text(table, 0, 2, "4 images");
    expect_text(table, 1, 1, "Human (Prolific)");
    expect_text(table, 1, 2, "4 images (pairs of both arms)");
    lk_report_free(report);
}

static void preferences(void **state) {
    (void)state;
    struct lk_report *report;
    small_study();
    assert_ok(lk_report_build(&report, &data, &options));
    const struct lk_table *table = table_of(report, "preference");
    int rows[] = {row_of(table, NULL, "All", NULL), row_of(table, "By model", "FLUX.2-dev", NULL)};
    const char *const cells[2][4] = {{"7", "80.0%", "2", "28.6%"}, {"6", "80.0%", "1", "16.7%"}};
    for (int r = 0; r < 2; r++) {
        for (int c = 0; c < 4; c++) expect_text(table, rows[r], c + 1, cells[r][c]);
        const struct lk_cell *rate = cell_of(table, rows[r], 2); /* Wilson's interval of 4 in 5 */
        assert_true(fabs(rate->low - 0.3755) < 5e-5 && fabs(rate->high - 0.9638) < 5e-5);
    }
    int tie = row_of(table, "By model", "Step1X-Edit", NULL);
    assert_int_equal(cell_of(table, tie, 2)->kind, LK_CELL_NONE);
    expect_text(table, tie, 4, "100.0%");
    lk_report_free(report);
}

/* Of the tests with (0) or without (1) exclusions, each is the one that the table of tests has. */
static void expect_tests(const struct lk_table *tests, int without, const struct lk_report *report) {
    static const char *const names[] = {"Kruskal–Wallis H", "Mann–Whitney U", "Wilcoxon T"};
    static const int columns[][2] = {{3, 3}, {4, 4}, {5, 5}, {6, 6}, {7, 9}};
    const struct lk_table *all = table_of(report, "t_test");
    assert_int_equal(tests->n_rows, 2 * 3 * LK_N_AXES);
    for (int i = 0; i < 3 * LK_N_AXES; i++) {
        char heading[64];
        int row = 2 * i + without;
        snprintf(heading, sizeof heading, "%s, human mean", names[i / LK_N_AXES]);
        expect_text(tests, row, 0, names[i / LK_N_AXES]);
        expect_text(tests, row, 2, without ? "without" : "with");
        int expected = row_of(all, heading, names[i / LK_N_AXES], cell_of(tests, row, 1)->text);
        for (int c = 0; c < 5; c++) {
            const struct lk_cell *a = cell_of(tests, row, columns[c][0]), *b = cell_of(all, expected, columns[c][1]);
            assert_string_equal(a->text, b->text);
            assert_true(a->value == b->value);
        }
    }
}

/* Both arms of 18 sources; the third rater, who is excluded, sees other changes. */
static void tests_with_and_without_exclusions(void **state) {
    (void)state;
    static const char *const races[] = {"white", "black", "indian"}, *const arms[] = {"edited", "preserved"};
    struct lk_report *report, *all;
    char id[64];
    for (int i = 0; i < 36; i++) {
        int race = i / 12, age = i / 2 % 6, arm = i % 2;
        snprintf(id, sizeof id, "flux_%s_male_%s_O-01.%s", lk_factor_key(LK_FACTOR_AGE, age), races[race], arms[arm]);
        rate("a", id, 1 + (race + age + arm) % 4);
        rate("b", id, 1 + (race * 2 + age) % 5);
        rate("c", id, 1 + (7 * i + race) % 5);
    }
    lk_dataset_pair(&data);
    memset(rater_quality, 0, sizeof rater_quality);
    quality = (struct lk_quality_report){.raters = rater_quality, .n_raters = 3, .n_excluded = 1};
    rater_quality[2].excluded = true;
    options.quality = &quality;
    lk_quality_exclude(&data, &quality, true);
    assert_ok(lk_combine(&data));
    assert_ok(lk_report_build(&report, &data, &options));
    expect_tests(table_of(report, "t_qc_tests"), 0, report);
    lk_quality_exclude(&data, &quality, false);
    assert_ok(lk_combine(&data));
    assert_ok(lk_report_build(&all, &data, &options));
    expect_tests(table_of(report, "t_qc_tests"), 1, all);
    int changed = 0;
    const struct lk_table *tests = table_of(report, "t_qc_tests");
    for (int i = 0; i < tests->n_rows; i += 2)
        changed += strcmp(cell_of(tests, i, 4)->text, cell_of(tests, i + 1, 4)->text) != 0;
    assert_int_equal(changed, 3);
    lk_report_free(report);
    lk_report_free(all);
}

static void results_with_and_without_exclusions(void **state) {
    (void)state;
    struct lk_report *report;
    struct lk_item before[4];
    small_study();
    memcpy(before, data.items, sizeof before);
    assert_ok(lk_report_build(&report, &data, &options));
    assert_memory_equal(before, data.items, sizeof before);
    for (int r = 0; r < 4; r++) assert_int_equal(data.raters[r].excluded, r == 3);
    const struct lk_table *rules = table_of(report, "t_qc"), *table = table_of(report, "t_qc_results");
    assert_int_equal(rules->n_rows, LK_N_QUALITY_RULES + 2);
    int q9 = row_of(rules, NULL, "Q9", "straight-liner"), q11 = row_of(rules, NULL, "Q11", "unfinished task");
    expect_text(rules, q9, 2, "2");
    expect_text(rules, q9, 3, "1");
    expect_text(rules, q11, 2, "1");
    expect_text(rules, q11, 3, "1");
    expect_text(rules, row_of(rules, NULL, "Q1", NULL), 2, "0");
    expect_text(rules, row_of(rules, NULL, "All", NULL), 2, "4");
    expect_text(rules, row_of(rules, NULL, "All", NULL), 3, "25.0%");
    expect_text(rules, row_of(rules, NULL, "Expected", NULL), 3, "10.0%");
    const struct {
        const char *result, *of;
        double kept, all;
    } rows[] = {{"Answers", "outputs times raters", 12, 16},        {"Human mean", "Race Change", 2.5, 3.125},
                {"Fleiss κ", "Race Change", 7.0 / 13, 13.0 / 69},   {"VLM − human", "Race Change", 0.5, -0.125},
                {"Prefer Ours", "answers without a tie", 0.8, 0.8}, {"Ties", "answers", 2, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int row = row_of(table, NULL, rows[i].result, rows[i].of);
        expect_number(table, row, 2, rows[i].kept);
        expect_number(table, row, 3, rows[i].all);
    }
    lk_report_free(report);
    lk_quality_exclude(&data, &quality, false); /* exclusions that are not in force stay so */
    assert_ok(lk_report_build(&report, &data, &options));
    assert_false(data.raters[3].excluded);
    expect_number(table_of(report, "t_qc_results"),
                  row_of(table_of(report, "t_qc_results"), NULL, "Human mean", "Race Change"), 2, 2.5);
    lk_report_free(report);
}

/* One pair; the excluded rater alone sees no change. */
static void change_by_the_feature_prompt(void **state) {
    (void)state;
    static const char *const pair[] = {"flux_20s_male_black_O-01", "flux_20s_male_black_O-01.preserved"};
    struct lk_report *report;
    for (int arm = 0; arm < 2; arm++) {
        rate("a", pair[arm], arm ? 2 : 4);
        rate("b", pair[arm], arm ? 1 : 5);
        rate("c", pair[arm], 3);
    }
    lk_dataset_pair(&data);
    memset(rater_quality, 0, sizeof rater_quality);
    quality = (struct lk_quality_report){.raters = rater_quality, .n_raters = 3, .n_excluded = 1};
    rater_quality[2].excluded = true;
    options.quality = &quality;
    assert_ok(lk_report_build(&report, &data, &options));
    const struct lk_table *table = table_of(report, "t_qc_results");
    int row = row_of(table, NULL, "Δ by the feature prompt", "Race Change");
    expect_text(table, row, 2, "-3.00");
    expect_text(table, row, 3, "-2.00");
    lk_report_free(report);
}

/* Judges: the study's vector of race by change; raters: 72 outputs a race, of which so many changed; both against
 * scipy.stats.chi2_contingency and contingency.association. */
static void sentences_are_filled(void **state) {
    (void)state;
    static const int judged[LK_N_RACES][2] = {{40, 240}, {44, 238}, {23, 240}, {36, 239},
                                              {43, 240}, {36, 238}, {3, 239}};
    static const int changed[LK_N_RACES] = {10, 20, 16, 9, 24, 14, 13};
    static const char *const raters[] = {"a", "b", "c"};
    static const char *const rows[][2] = {
        {"Race change, raters", "Race change by the raters' majority: 21.0% of 504 outputs; highest for Indian sources "
                                "(33.3%), lowest for Southeast Asian ones (12.5%), a difference of 20.8 percentage "
                                "points."},
        {"Race and race change",
         "Race change by race: χ²(6, N = 1,674) = 46.2, p < 0.001, Cramér's V 0.17 with outputs "
         "taken as independent; with the sources as units p "},
        {"Race and race change, raters", "Race change by race, by the raters' majority: χ²(6, N = 504) = 14.5, p = "
                                         "0.025, Cramér's V 0.17 with"},
        {"Sample", "Raters saw 504 of 1,680 outputs, 72 a race, each output by 3 raters."},
        {"Power", "Baseline arm of the raters' sample: 72 outputs a race tell 20% from 15% with power 0.12 "
                  "(two-sided, 5%); a power of 0.80 takes 903 a race, or a difference as large as 20% against 41%; "},
    };
    struct lk_report *report;
    for (int s = 0; s < LK_N_SOURCES; s++)
        for (int p = 0; p < LK_N_EDIT_PROMPTS; p++) {
            int race, gender, age, at = s % 12 * LK_N_EDIT_PROMPTS + p;
            int32_t item;
            char id[96];
            lk_source_factors(s, &race, &gender, &age);
            snprintf(id, sizeof id, "flux_%s_%s_%s_%s", lk_factor_key(LK_FACTOR_AGE, age),
                     lk_factor_key(LK_FACTOR_GENDER, gender), lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(p));
            assert_ok(lk_dataset_item(&data, id, strlen(id), &item));
            if (at < judged[race][1]) data.items[item].score[LK_AXIS_RACE_DRIFT] = at < judged[race][0] ? 4 : 1;
            for (int r = 0; r < 3 && at < 72; r++) rate(raters[r], id, at < changed[race] ? 3 : 1 + (r == 2));
        }
    assert_ok(lk_combine(&data));
    assert_ok(lk_report_build(&report, &data, &options));
    const struct lk_table *table = table_of(report, "sentences");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = cell_of(table, row_of(table, NULL, rows[i][0], NULL), 1)->text;
        if (strncmp(got, rows[i][1], strlen(rows[i][1])) != 0) fail_msg("%s: \"%s\"", rows[i][0], got);
    }
    for (int r = 0; r < table->n_rows; r++) {
        const char *text = cell_of(table, r, 1)->text; /* every blank is filled */
        assert_null(strstr(text, "0.XX"));
        assert_null(strstr(text, "–"));
    }
    assert_non_null(strstr(table_of(report, "t_000_9_2")->note, "Experiment 1: 72 outputs a race tell"));
    for (int t = 12; t <= 14; t++) { /* no value of the paper's passes for one of this run */
        char id[32];
        snprintf(id, sizeof id, "published_%d", t);
        assert_string_equal(table_of(report, id)->columns[2], "Published by the authors");
    }
    const struct lk_table *tests = table_of(report, "t_test");
    int row = row_of(tests, "Race × race change, raters' majority", "χ²", NULL);
    assert_true(fabs(cell_of(tests, row, 4)->value - 14.455295344647766) < 1e-10);
    lk_report_free(report);
}

/* Three raters of two scenes, no judge: the majority's role stands in a table of its own; two that disagree are
 * unclear. */
static void roles_by_raters(void **state) {
    static const char *const raters[] = {"a", "b", "c"}, *const scenes[] = {"flux_20s_male_black_W-01",
                                                                            "flux_20s_male_black_W-02",
                                                                            "flux_20s_male_black_W-03"};
    static const int8_t said[3][3] = {{0, 0, 1}, {1, 1, 1}, {0, 1, LK_ROLE_NONE}};
    struct lk_report *report;
    int followed = 0, resisted = 0;
    (void)state;
    for (int i = 0; i < 9; i++) rate(raters[i % 3], scenes[i / 3], 0)->role = said[i / 3][i % 3];
    assert_ok(lk_combine(&data));
    assert_ok(lk_report_build(&report, &data, &options));
    const struct lk_table *table = table_of(report, "t_w_raters");
    int row = row_of(table, "FLUX.2-dev", "All sentences", NULL);
    for (int i = 0; i < 2; i++) {
        bool as_expected = report->prompts.w[i].stereotype_gender == i;
        followed += as_expected;
        resisted += !as_expected;
    }
    expect_text(table, row, 1, "3");
    expect_number(table, row, 2, followed);
    expect_number(table, row, 3, resisted);
    expect_text(table, row, 4, "1");
    lk_report_free(report);
}

static void nothing_to_show(void **state) {
    (void)state;
    static const char *const ids[] = {"table_10",   "table_11",   "t_rel",     "vlm_human_agreement",
                                      "preference", "t_000_15_4", "t_qc",      "t_qc_results",
                                      "t_000_1_2",  "t_004_1_1",  "t_qc_tests"};
    struct lk_report *report;
    for (int with_item = 0; with_item < 2; with_item++) {
        int32_t item;
        if (with_item) assert_ok(lk_dataset_item(&data, outputs[0], strlen(outputs[0]), &item));
        assert_ok(lk_combine(&data));
        assert_ok(lk_report_build(&report, &data, &options));
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
            const struct lk_table *table = table_of(report, ids[i]);
            if (!table->no_data || table->n_rows || !table->n_columns) fail_msg("%s has data", ids[i]);
        }
        lk_report_free(report);
    }
    rate("ann", outputs[0], 3), rate("bob", outputs[0], 4); /* without judges nothing is calibrated */
    assert_ok(lk_combine(&data));
    assert_ok(lk_report_build(&report, &data, &options));
    assert_false(table_of(report, "t_rel")->no_data);
    static const char *const of_both[] = {"calibrated", "calibrated_change", "calibrated_groups"};
    for (int i = 0; i < 3; i++) assert_true(table_of(report, of_both[i])->no_data);
    lk_report_free(report);
}

/* The files of this test alone, so that each of their allocations can be tried. */
static enum lk_code build_parts(struct lk_report **out) {
    enum lk_code (*const parts[])(struct lk_report *) = {lk_report_tables_plan, lk_report_tables_human,
                                                         lk_report_tables_agreement, lk_report_tables_quality};
    struct lk_report *report = lk_calloc(1, sizeof *report);
    *out = report;
    if (!report) return lk_fail(LK_E_NOMEM, "report");
    report->data = &data;
    report->options = options;
    for (int i = 0; i < 4; i++) LK_TRY(parts[i](report));
    return LK_OK;
}

static void out_of_memory(void **state) {
    (void)state;
    struct lk_participant participants[] = {{0, 30, "Male", "", "", "", "", ""}, {1, -1, "", "", "", "", "", ""}};
    struct lk_report *report;
    struct lk_item before[4];
    small_study();
    options.participants = participants;
    options.n_participants = 2;
    options.n_bootstrap = 2;
    memcpy(before, data.items, sizeof before);
    int64_t live = lk_alloc_live(), count = lk_alloc_count();
    assert_ok(build_parts(&report));
    lk_report_free(report);
    int64_t n = lk_alloc_count() - count;
    assert_true(n > 200);
    for (int64_t i = 1; i <= n; i++) {
        lk_alloc_fail_at(i);
        enum lk_code rc = build_parts(&report);
        lk_alloc_fail_at(0);
        lk_report_free(report);
        if (rc != LK_E_NOMEM) fail_msg("allocation %lld of %lld: code %d", (long long)i, (long long)n, (int)rc);
        assert_int_equal(lk_alloc_live(), live);
        assert_memory_equal(before, data.items, sizeof before);
        assert_true(data.raters[3].excluded);
    }
    count = lk_alloc_count();
    assert_ok(lk_report_build(&report, &data, &options));
    lk_report_free(report);
    n = lk_alloc_count() - count;
    for (int64_t i = 1; i <= n; i += 37) {
        lk_alloc_fail_at(i);
        assert_int_equal(lk_report_build(&report, &data, &options), LK_E_NOMEM);
        lk_alloc_fail_at(0);
        assert_null(report);
        assert_int_equal(lk_alloc_live(), live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reliability_by_hand, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(uneven_numbers_of_answers, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(judges_against_raters, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(preferences, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(results_with_and_without_exclusions, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(tests_with_and_without_exclusions, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(change_by_the_feature_prompt, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(sentences_are_filled, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(roles_by_raters, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(nothing_to_show, raters_begin, raters_end),
        cmocka_unit_test_setup_teardown(out_of_memory, raters_begin, raters_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
