/* The report's tables about raters: plans against the printed cells, and synthetic raters whose results are worked out
 * by hand or by the statistics themselves. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/human/combine.h"
#include "eval/report/build.h"
#include "tests/common/paper_tables.h"
#include "eval/stats/agreement/krippendorff.h"
#include "eval/study/pairs500.h"
#include "tests/common/test.h"

static struct lk_dataset data;
static struct lk_report_options options;

static int begin(void **state) {
    (void)state;
    lk_dataset_init(&data);
    lk_report_options_init(&options);
    options.n_bootstrap = 50;
    return 0;
}

static int end(void **state) {
    (void)state;
    lk_dataset_free(&data);
    return lk_alloc_live() != 0;
}

static const struct lk_cell *cell_of(const struct lk_table *table, int row, int column) {
    if (row >= table->n_rows || column >= table->rows[row].n_cells)
        fail_msg("%s has no cell %d, %d", table->id, row, column);
    return &table->rows[row].cells[column];
}

static void expect_text(const struct lk_table *table, int row, int column, const char *text) {
    const char *got = cell_of(table, row, column)->text;
    if (strcmp(got, text) != 0) fail_msg("%s, %d, %d: expected \"%s\", got \"%s\"", table->id, row, column, text, got);
}

static const struct lk_table *table_of(const struct lk_report *report, const char *id) {
    const struct lk_table *table = lk_report_table(report, id);
    if (!table) fail_msg("the report has no table %s", id);
    return table;
}

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

static void has_levels(struct lk_rating *rating, int axis, int level) { rating->score[axis] = (uint8_t)level; }

static struct lk_rating *rate(const char *rater, const char *item, int race_drift) {
    struct lk_rating *rating;
    int32_t i, r;
    assert_ok(lk_dataset_item(&data, item, strlen(item), &i));
    assert_ok(lk_dataset_rater(&data, rater, strlen(rater), &r));
    assert_ok(lk_dataset_rating(&data, &rating));
    rating->item = i;
    rating->rater = r;
    has_levels(rating, LK_AXIS_RACE_DRIFT, race_drift);
    return rating;
}

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
        cmocka_unit_test_setup_teardown(plans_as_printed, begin, end),
        cmocka_unit_test_setup_teardown(reliability_by_hand, begin, end),
        cmocka_unit_test_setup_teardown(uneven_numbers_of_answers, begin, end),
        cmocka_unit_test_setup_teardown(judges_against_raters, begin, end),
        cmocka_unit_test_setup_teardown(preferences, begin, end),
        cmocka_unit_test_setup_teardown(results_with_and_without_exclusions, begin, end),
        cmocka_unit_test_setup_teardown(tests_with_and_without_exclusions, begin, end),
        cmocka_unit_test_setup_teardown(change_by_the_feature_prompt, begin, end),
        cmocka_unit_test_setup_teardown(demographics_as_printed, begin, end),
        cmocka_unit_test_setup_teardown(distribution_as_printed, begin, end),
        cmocka_unit_test_setup_teardown(nothing_to_show, begin, end),
        cmocka_unit_test_setup_teardown(out_of_memory, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
