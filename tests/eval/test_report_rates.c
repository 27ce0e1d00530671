/* Rates as the report prints them: by hand for every rounding of the ensemble, and against the bootstrap. */
#include <math.h>

#include "eval/stats/resampling/bootstrap_rates.h"
#include "eval/study/prompts.h"
#include "tests/common/report_study.h"
#include "tests/common/test.h"

static void assert_rate(const struct lk_cell *cell, int64_t k, int64_t n) {
    if (cell->count != k || cell->n != n)
        fail_msg("expected %lld of %lld, got %lld of %lld", (long long)k, (long long)n, (long long)cell->count,
                 (long long)cell->n);
}

/* Four outputs whose judges gave (1,1), (1,2), (2,3), (2,4) on every axis but age. */
static void conventions_by_hand(void **state) {
    (void)state;
    const int g[4] = {1, 1, 2, 2}, o[4] = {1, 2, 3, 4};
    struct lk_dataset data;
    lk_dataset_init(&data);
    for (int i = 0; i < 4; i++) {
        struct lk_item *item = add_item(&data, 1, i * 20, i, LK_ARM_EDITED);
        for (int a = 0; a < LK_N_AXES; a++) {
            item->judge[0][a] = (uint8_t)g[i];
            item->judge[1][a] = (uint8_t)o[i];
        }
    }
    lk_ensemble_apply(&data, &(struct lk_ensemble){.rounding = LK_HALF_EVEN}, NULL);
    uint8_t before[4][LK_N_AXES];
    for (int i = 0; i < 4; i++) memcpy(before[i], data.items[i].score, LK_N_AXES);
    struct lk_report_options options = options_of(20);
    struct lk_report *report = build(&data, &options);
    for (int i = 0; i < 4; i++) assert_memory_equal(before[i], data.items[i].score, LK_N_AXES);
    /* half-even 1 2 2 2, half-up 1 2 3 2, half-down 1 1 2 2, min 1 1 2 2, max 1 2 3 4 */
    const int64_t drift[5] = {0, 1, 0, 0, 2}, erased[5] = {4, 3, 4, 4, 2}, same_age[5] = {4, 3, 4, 4, 3};
    const struct lk_table *table = study_table(report, "t_round");
    for (int c = 0; c < 5; c++) {
        assert_rate(&find_row(table, "All models", "Race change")->cells[1 + c], drift[c], 4);
        assert_rate(&find_row(table, "Step1X-Edit", "Soft erasure")->cells[1 + c], erased[c], 4);
        assert_rate(&find_row(table, "All models", "Age change")->cells[1 + c], same_age[c], 4);
        assert_int_equal(find_row(table, "All models", "Race change")->cells[1 + c].bold, c == 0);
    }
    assert_int_equal(find_row(table, "FLUX.2-dev", "Race change")->cells[1].kind, LK_CELL_NONE);

    const struct lk_table_row *judges =
        find_row(study_table(report, "t_judge"), NULL, lk_factor_display(LK_FACTOR_AXIS, LK_AXIS_RACE_DRIFT));
    assert_rate(&judges->cells[2], 1, 4);
    assert_rate(&judges->cells[3], 3, 4);
    assert_rate(&judges->cells[4], 1, 4);
    /* one agreement of four; by chance (2 x 1 + 2 x 1) / 16 */
    assert_near(judges->cells[5].value + 1, 1, 1e-12);
    /* 1 - (0 + 1 + 1 + 4) / 4 / ((0 + 1 + 4 + 9 + 1 + 0 + 1 + 4) / 8) */
    assert_near(judges->cells[6].value, 0.4, 1e-12);
    assert_near(judges->cells[7].value, 4 / sqrt(20), 1e-12);

    table = study_table(report, "thresholds");
    const struct {
        int row;
        int64_t k;
    } moved[] = {{0, 0}, {1, 0}, {2, 4}, {3, 1}, {4, 3}, {5, 0}, {6, 0}, {10, 0}, {11, 0}};
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++)
        assert_rate(&table->rows[moved[i].row].cells[2], moved[i].k, 4);
    assert_true(table->rows[0].cells[1].bold && !table->rows[1].cells[1].bold);
    lk_report_free(report);
    lk_dataset_free(&data);
}

/* A score of the secondary judge alone counts where the dataset counts it, and not else. */
static void secondary_scores_count_as_in_the_dataset(void **state) {
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        struct lk_dataset data;
        lk_dataset_init(&data);
        for (int a = 0; a < LK_N_AXES; a++) add_item(&data, 0, 3, 3, LK_ARM_EDITED)->judge[1][a] = 4;
        lk_ensemble_apply(&data, &(struct lk_ensemble){.secondary_only = alone}, NULL);
        struct lk_report_options options = options_of(5);
        struct lk_report *report = build(&data, &options);
        const struct lk_table *table = study_table(report, "t_round");
        assert_int_equal(table->no_data, !alone);
        if (alone) assert_rate(&find_row(table, "All models", "Race change")->cells[4], 1, 1);
        assert_true(study_table(report, "t_judge")->no_data);
        lk_report_free(report);
        lk_dataset_free(&data);
    }
}

/* The row of a table of race by a factor. */
static const struct lk_table_row *crossed_row(const struct lk_table *table, const char *measure, const char *race,
                                              const char *level) {
    for (int r = 0, inside = 0; r < table->n_rows; r++) {
        const struct lk_table_row *row = &table->rows[r];
        if (row->heading) inside = !strcmp(row->cells[0].text, measure);
        if (inside && !row->heading && !strcmp(row->cells[0].text, race) && !strcmp(row->cells[1].text, level))
            return row;
    }
    fail_msg("%s: no row %s, %s", table->id, race, level);
    return NULL;
}

/* Every rate of race by model, category and gender, each with the intervals of both resamplings. */
static void rates_by_race_and_another_factor(void **state) {
    (void)state;
    static const enum lk_factor factors[] = {LK_FACTOR_MODEL, LK_FACTOR_CATEGORY, LK_FACTOR_GENDER};
    struct lk_dataset data;
    small_study(&data, 84, 4, 2);
    struct lk_report_options options = options_of(50);
    struct lk_report *report = build(&data, &options);
    double *values = calloc(data.n_items, sizeof *values);
    int32_t *group = calloc(data.n_items, sizeof *group), *source = calloc(data.n_items, sizeof *source);
    for (int f = 0; f < 3; f++) {
        char id[64];
        size_t n = 0;
        int levels = lk_factor_levels(factors[f]);
        snprintf(id, sizeof id, "rates_race_by_%s", lk_factor_name(factors[f]));
        const struct lk_table *table = study_table(report, id);
        assert_int_equal(table->n_rows, LK_N_MEASURES * (1 + LK_N_RACES * levels));
        for (size_t i = 0; i < data.n_items; i++) {
            const struct lk_item *item = &data.items[i];
            const int level[] = {item->model, item->prompt / 10, item->gender};
            if (item->arm != LK_ARM_EDITED) continue;
            values[n] = item->score[LK_AXIS_RACE_DRIFT] >= 3;
            group[n] = item->race * levels + level[f];
            source[n++] = item->source;
        }
        const struct lk_grouping grouping = {group, LK_N_RACES * levels};
        const struct lk_rates rates = {n, 1, values, 1, &grouping};
        for (int clustered = 0; clustered < 2; clustered++) {
            struct lk_resampling how = {42, 50, 0.95, clustered ? source : NULL, 1};
            struct lk_rate_results *results;
            assert_ok(lk_bootstrap_rates(&rates, &how, &results));
            for (int g = 0; g < LK_N_RACES * levels; g++) {
                const struct lk_table_row *row =
                    crossed_row(table, "Race change", lk_factor_display(LK_FACTOR_RACE, g / levels),
                                lk_factor_display(factors[f], g % levels));
                const struct lk_number *expected =
                    clustered ? lk_rate_expanded_of(results, 0, g, 0) : lk_rate_of(results, 0, g, 0);
                const struct lk_cell *cell = &row->cells[3 + clustered];
                assert_int_equal((int64_t)row->cells[2].value, expected->n);
                assert_int_equal(cell->kind == LK_CELL_NONE, expected->undefined != NULL);
                if (expected->undefined) continue;
                assert_near(cell->value, expected->value, 1e-15);
                assert_true(cell->low == expected->low && cell->high == expected->high);
            }
            lk_rate_results_free(results);
        }
        assert_non_null(strstr(table->note, "ources repeat"));
    }
    const struct lk_table_row *overall = study_table(report, "rate_intervals")->rows + 1; /* edit success, all models */
    assert_true(overall->cells[2].low < overall->cells[3].low && overall->cells[3].high < overall->cells[2].high);
    assert_int_equal(
        crossed_row(study_table(report, "rates_race_by_model"), "Race change", "Black", "Qwen-Edit")->cells[3].kind,
        LK_CELL_NONE);
    free(values);
    free(group);
    free(source);
    lk_report_free(report);
    lk_dataset_free(&data);
}

/* Twelve outputs of White, Black and Indian people, four of them again with the feature prompt, and four sentences.
 * Scores: edit success, skin tone, race, gender and age change; 0: none. */
static void twenty_items(struct lk_dataset *data) {
    static const uint8_t edited[3][4][LK_N_AXES] = {
        {{5, 3, 1, 1, 3}, {4, 4, 2, 1, 3}, {3, 3, 1, 3, 4}, {2, 2, 1, 1, 3}},
        {{5, 5, 3, 1, 3}, {1, 4, 4, 2, 2}, {4, 3, 5, 1, 5}, {4, 2, 0, 1, 5}},
        {{2, 4, 4, 4, 3}, {2, 5, 3, 1, 1}, {3, 4, 3, 2, 3}, {0, 0, 2, 5, 0}},
    };
    static const struct {
        uint8_t race, prompt, score[LK_N_AXES];
    } preserved[] = {
        {0, 1, {4, 3, 1, 1, 3}}, {1, 0, {5, 4, 1, 1, 3}}, {1, 1, {3, 2, 2, 2, 3}}, {2, 0, {4, 3, 4, 2, 3}}};
    static const struct {
        const char *id;
        int role;
    } sentences[] = {{"flux_pair_white_20s_W-01", LK_ROLE_MALE},
                     {"flux_pair_white_20s_W-02", LK_ROLE_FEMALE},
                     {"flux_pair_white_20s_W-26", LK_ROLE_FEMALE},
                     {"flux_pair_white_20s_W-27", LK_ROLE_UNCLEAR}};
    static const int prompts[4] = {0, 1, 10, LK_PROMPT_V03}, races[3] = {0, 1, 4};
    lk_dataset_init(data);
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < 4; i++)
            memcpy(add_item(data, 0, lk_source(races[r], 0, i), prompts[i], LK_ARM_EDITED)->score, edited[r][i],
                   LK_N_AXES);
    for (int i = 0; i < 4; i++)
        memcpy(add_item(data, 0, lk_source(races[preserved[i].race], 0, preserved[i].prompt), preserved[i].prompt,
                        LK_ARM_PRESERVED)
                   ->score,
               preserved[i].score, LK_N_AXES);
    for (int i = 0; i < 4; i++) {
        int32_t at;
        assert_ok(lk_dataset_item(data, sentences[i].id, strlen(sentences[i].id), &at));
        data->items[at].role = (int8_t)sentences[i].role;
    }
    lk_dataset_pair(data);
    assert_int_equal(data->n_items, 20);
}

/* Cells 1.. of a row, as printed. */
static void assert_row(const struct lk_table *table, const char *heading, const char *first, int n,
                       const char *const *cells) {
    const struct lk_table_row *row = find_row(table, heading, first);
    for (int c = 0; c < n; c++)
        if (strcmp(row->cells[1 + c].text, cells[c]) != 0)
            fail_msg("%s, %s, %d: expected %s, got %s", table->id, first, c, cells[c], row->cells[1 + c].text);
}

/* Every measure by hand; a disparity names both groups, of equal ones the first. */
static void measures_of_twenty_items(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t of_race[3][2]; /* White, Black, Indian: k, n */
        const char *cells[4];  /* overall, disparity, highest, lowest */
    } rates[] = {
        {"Edit success", {{2, 4}, {3, 4}, {0, 3}}, {"45.5%", "75.0 pp", "Black 75.0%", "Indian 0.0%"}},
        {"Soft erasure", {{1, 4}, {1, 4}, {2, 3}}, {"36.4%", "41.7 pp", "Indian 66.7%", "White 25.0%"}},
        {"Race change", {{0, 4}, {3, 3}, {3, 4}}, {"54.5%", "100.0 pp", "Black 100.0%", "White 0.0%"}},
        {"Gender change", {{1, 4}, {0, 4}, {2, 4}}, {"25.0%", "50.0 pp", "Indian 50.0%", "Black 0.0%"}},
        {"Skin lightening", {{1, 4}, {2, 4}, {3, 3}}, {"54.5%", "75.0 pp", "Indian 100.0%", "White 25.0%"}},
        {"Skin darkening", {{1, 4}, {1, 4}, {0, 3}}, {"18.2%", "25.0 pp", "White 25.0%", "Indian 0.0%"}},
        {"Age change", {{1, 3}, {2, 3}, {1, 3}}, {"44.4%", "33.3 pp", "Black 66.7%", "White 33.3%"}},
        {"Age accuracy (V-03)", {{1, 1}, {0, 1}, {0, 0}}, {"50.0%", "100.0 pp", "White 100.0%", "Black 0.0%"}},
        {"Identity erasure", {{0, 4}, {2, 3}, {2, 4}}, {"36.4%", "66.7 pp", "Black 66.7%", "White 0.0%"}},
    };
    static const char *const races[3] = {"White", "Black", "Indian"};
    static const struct {
        const char *axis, *cells[5]; /* pairs, baseline, with the feature prompt, change, change / baseline */
    } changes[] = {{"Edit Success", {"4", "3.00", "4.00", "+1.00", "+0.33"}},
                   {"Skin Tone Change", {"4", "4.25", "3.00", "-1.25", "-0.29"}},
                   {"Race Change", {"4", "3.25", "2.00", "-1.25", "-0.38"}},
                   {"Gender Change", {"4", "2.00", "1.50", "-0.50", "-0.25"}},
                   {"Age Change", {"4", "2.75", "3.00", "+0.25", "+0.09"}},
                   {"|Skin Tone Change − 3|", {"4", "1.25", "0.50", "-0.75", "-0.60"}},
                   {"|Age Change − 3|", {"4", "0.25", "0.00", "-0.25", "-1.00"}}};
    static const char *const adherence[3] = {"66.7%", "62.5%", "50.0%"};
    struct lk_dataset data;
    twenty_items(&data);
    struct lk_report_options options = options_of(20);
    for (int unclear = 0; unclear < 3; unclear++) {
        options.unclear = (enum lk_unclear)unclear;
        struct lk_report *report = build(&data, &options);
        const char *const followed[] = {"4", "2", "1", "1", adherence[unclear]};
        assert_row(study_table(report, "t_w"), "FLUX.2-dev", "All sentences", 5, followed);
        for (int m = 0; m < LK_N_MEASURES && !unclear; m++) {
            assert_row(study_table(report, "t_000_3_1_flux"), NULL, rates[m].name, 4, rates[m].cells);
            for (int r = 0; r < 3; r++) {
                const struct lk_table_row *row = find_row(study_table(report, "rates_by_factor"), "By race", races[r]);
                assert_rate(&row->cells[2 + m], rates[m].of_race[r][0], rates[m].of_race[r][1]);
            }
            const struct lk_table_row *row = find_row(study_table(report, "disparities_all"), "By race", rates[m].name);
            for (int c = 1; c < 4; c++) assert_string_equal(row->cells[c == 1 ? 2 : 2 + c].text, rates[m].cells[c]);
        }
        for (size_t i = 0; i < sizeof changes / sizeof *changes && !unclear; i++)
            assert_row(study_table(report, "mitigation"), "All models", changes[i].axis, 5, changes[i].cells);
        lk_report_free(report);
    }
    options.thresholds = (struct lk_thresholds){.success = 3, .soft_erasure = 1, .drift = 4, .identity = 3};
    struct lk_report *report = build(&data, &options);
    const struct lk_table_row *moved = find_row(study_table(report, "rates_by_factor"), NULL, "All");
    static const int64_t counts[LK_N_MEASURES][2] = {{7, 11}, {1, 11}, {3, 11}, {2, 12}, {6, 11},
                                                     {2, 11}, {4, 9},  {1, 2},  {8, 11}};
    for (int m = 0; m < LK_N_MEASURES; m++) assert_rate(&moved->cells[2 + m], counts[m][0], counts[m][1]);
    lk_report_free(report);
    lk_dataset_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conventions_by_hand),
        cmocka_unit_test(secondary_scores_count_as_in_the_dataset),
        cmocka_unit_test(rates_by_race_and_another_factor),
        cmocka_unit_test(measures_of_twenty_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
