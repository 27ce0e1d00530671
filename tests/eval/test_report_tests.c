/* Disparities, hypothesis tests and robustness as the report prints them: against hand-computed numbers, direct calls
 * of the statistics, and the published margins of the one model that they fit. */
#include <math.h>

#include "engine/alloc.h"
#include "eval/report/paper_tables.h"
#include "eval/report/report.h"
#include "eval/stats/bootstrap_rates.h"
#include "eval/study/random.h"
#include "tests/common/test.h"

static struct lk_item *add_item(struct lk_dataset *data, int model, int source, int prompt, int arm) {
    char who[48], id[96];
    int race, gender, age;
    int32_t at;
    lk_source_factors(source, &race, &gender, &age);
    lk_source_id(source, who);
    int n = snprintf(id, sizeof id, "%s_%s_%s_%s_%s%s", lk_factor_key(LK_FACTOR_MODEL, model),
                     lk_factor_key(LK_FACTOR_AGE, age), lk_factor_key(LK_FACTOR_GENDER, gender),
                     lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(prompt), arm ? ".preserved" : "");
    assert_ok(lk_dataset_item(data, id, (size_t)n, &at));
    assert_int_equal(data->items[at].source, source);
    return &data->items[at];
}

static struct lk_report_options options_of(int64_t n_bootstrap) {
    struct lk_report_options options;
    lk_report_options_init(&options);
    options.n_bootstrap = n_bootstrap;
    return options;
}

static struct lk_report *build(struct lk_dataset *data, const struct lk_report_options *options) {
    struct lk_report *report;
    assert_ok(lk_report_build(&report, data, options));
    return report;
}

static const struct lk_table *table_of(const struct lk_report *report, const char *id) {
    const struct lk_table *table = lk_report_table(report, id);
    if (!table) fail_msg("no table %s", id);
    return table;
}

/* The n-th row (from 0) after the heading whose first cell is this text. heading NULL: any. */
static const struct lk_table_row *find_row(const struct lk_table *table, const char *heading, const char *first) {
    bool inside = !heading;
    for (int r = 0; r < table->n_rows; r++) {
        const struct lk_table_row *row = &table->rows[r];
        if (heading && row->heading && row->n_cells == 1) inside = !strcmp(row->cells[0].text, heading);
        if (inside && !row->heading && !strcmp(row->cells[0].text, first)) return row;
    }
    fail_msg("%s: no row %s under %s", table->id, first, heading ? heading : "(any)");
    return NULL;
}

static void score(struct lk_item *item, int success, int skin, int race, int gender, int age) {
    const int values[LK_N_AXES] = {success, skin, race, gender, age};
    for (int a = 0; a < LK_N_AXES; a++) item->score[a] = (uint8_t)values[a];
}

/* FLUX with 1,680 outputs of which race drift holds for 44 of 238 Indian faces and so on; 1,546 edits succeed, 104 are
 * erased. Missing outputs have no score. */
static void published_margins_give_the_published_cells(void **state) {
    (void)state;
    /* White, Black, East Asian, Southeast Asian, Indian, Middle Eastern, Latino; Southeast Asian and Latino print the
     * same 15.1%, Latino first. */
    const int drifted[LK_N_RACES] = {3, 40, 23, 36, 44, 43, 36}, n[LK_N_RACES] = {240, 240, 240, 239, 238, 240, 238};
    struct lk_dataset data;
    lk_dataset_init(&data);
    int so_far[LK_N_RACES] = {0}, total = 0;
    for (int source = 0; source < LK_N_SOURCES; source++)
        for (int prompt = 0; prompt < LK_N_EDIT_PROMPTS; prompt++) {
            struct lk_item *item = add_item(&data, 0, source, prompt, LK_ARM_EDITED);
            int at = so_far[item->race]++;
            int success = total < 1546 ? 5 : total < 1650 ? 1 : 3;
            total++;
            score(item, success, 3, at < drifted[item->race] ? 3 : 2, 1, 3);
            if (at >= n[item->race]) item->score[LK_AXIS_RACE_DRIFT] = 0;
        }
    assert_int_equal(total, 1680);
    struct lk_report_options options = options_of(20);
    struct lk_report *report = build(&data, &options);
    struct lk_paper_tables paper;
    assert_ok(lk_paper_tables_read(&paper));
    const struct lk_table *ours = table_of(report, "table_12"), *theirs = lk_paper_tables_find(&paper, "table_12");
    for (int c = 0; c < theirs->n_columns; c++)
        assert_string_equal(ours->rows[0].cells[c].text, theirs->rows[0].cells[c].text);
    ours = table_of(report, "table_13");
    theirs = lk_paper_tables_find(&paper, "table_13");
    assert_int_equal(ours->n_rows, theirs->n_rows);
    for (int r = 0; r < theirs->n_rows; r++)
        for (int c = 0; c < 2; c++) assert_string_equal(ours->rows[r].cells[c].text, theirs->rows[r].cells[c].text);
    lk_paper_tables_free(&paper);
    lk_report_free(report);
    lk_dataset_free(&data);
}

/* A study in small: every source, four prompts, two models, both arms; race drift grows with the race's number. */
static int clamp(int value) { return value < 1 ? 1 : value > 5 ? 5 : value; }

static void small_study(struct lk_dataset *data, int n_sources, int n_prompts, int n_models) {
    struct lk_stream stream;
    lk_stream_named(&stream, 7, "report tests");
    lk_dataset_init(data);
    for (int model = 0; model < n_models; model++)
        for (int s = 0; s < n_sources; s++)
            for (int p = 0; p < n_prompts; p++)
                for (int arm = 0; arm < 2; arm++) {
                    int source = s * (LK_N_SOURCES / n_sources);
                    struct lk_item *item = add_item(data, model, source, p * 19 / (n_prompts - 1), arm);
                    int drift = item->race > 3 && lk_stream_bounded(&stream, 3) == 0 && !arm ? 2 : 0;
                    for (int a = 0; a < LK_N_AXES; a++) {
                        int level = a == LK_AXIS_EDIT_SUCCESS                          ? 4
                                    : a == LK_AXIS_SKIN_TONE || a == LK_AXIS_AGE_DRIFT ? 3
                                                                                       : 2;
                        int base =
                            level + (int)lk_stream_bounded(&stream, 3) - 1 + (a == LK_AXIS_RACE_DRIFT ? drift : 0);
                        item->judge[0][a] = (uint8_t)clamp(base);
                        item->judge[1][a] = (uint8_t)clamp(base + (int)lk_stream_bounded(&stream, 4) - 1);
                        item->human_mean[a] = clamp(base) + (double)lk_stream_bounded(&stream, 3) / 4;
                    }
                }
    lk_dataset_pair(data);
    lk_ensemble_apply(data, &(struct lk_ensemble){.rounding = LK_HALF_EVEN}, NULL);
}

static void disparities_are_those_of_the_bootstrap(void **state) {
    (void)state;
    struct lk_dataset data;
    small_study(&data, 84, 4, 2);
    struct lk_report_options options = options_of(200);
    struct lk_report *report = build(&data, &options);
    double *values = calloc(data.n_items, sizeof *values);
    int32_t *race = calloc(data.n_items, sizeof *race), *source = calloc(data.n_items, sizeof *source);
    size_t n = 0;
    for (size_t i = 0; i < data.n_items; i++)
        if (data.items[i].arm == LK_ARM_EDITED) {
            values[n] = data.items[i].score[LK_AXIS_RACE_DRIFT] >= 3;
            race[n] = data.items[i].race;
            source[n++] = data.items[i].source;
        }
    const struct lk_grouping by_race = {race, LK_N_RACES};
    const struct lk_rates rates = {n, 1, values, 1, &by_race};
    const struct lk_table_row *row = find_row(table_of(report, "disparities_all"), "By race", "Race change");
    for (int clustered = 0; clustered < 2; clustered++) {
        struct lk_resampling how = {42, 200, 0.95, clustered ? source : NULL, 1};
        struct lk_rate_results *results;
        assert_ok(lk_bootstrap_rates(&rates, &how, &results));
        const struct lk_disparity *expected = lk_disparity_of(results, 0, 0);
        const struct lk_cell *cell = &row->cells[2 + clustered];
        assert_true(cell->value == expected->number.value);
        assert_true(cell->low == expected->number.low && cell->high == expected->number.high);
        const char *name = lk_factor_display(LK_FACTOR_RACE, expected->highest);
        assert_memory_equal(row->cells[4].text, name, strlen(name));
        lk_rate_results_free(results);
    }
    assert_true(row->cells[2].low != row->cells[3].low);
    assert_non_null(strstr(table_of(report, "disparities_all")->note, "84 sources repeat"));
    const struct lk_table_row *h = find_row(table_of(report, "cohen_h"), "Race change", "Latino");
    struct lk_group white = LK_GROUP_ANY, latino = LK_GROUP_ANY;
    white.race = 0;
    latino.race = 6;
    double p1 = lk_rate_value(lk_measure_rate(&data, &latino, LK_MEASURE_RACE_DRIFT, &options.thresholds));
    double p2 = lk_rate_value(lk_measure_rate(&data, &white, LK_MEASURE_RACE_DRIFT, &options.thresholds));
    assert_true(fabs(h->cells[1].value - 2 * (asin(sqrt(p1)) - asin(sqrt(p2)))) < 1e-12);
    free(values);
    free(race);
    free(source);
    lk_report_free(report);
    lk_dataset_free(&data);
}

static void empty_data_say_so(void **state) {
    (void)state;
    struct lk_dataset data;
    lk_dataset_init(&data);
    struct lk_report_options options = options_of(20);
    struct lk_report *report = build(&data, &options);
    const char *const ids[] = {"disparities_all", "rate_intervals", "cohen_h", "mixed_design"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (!table_of(report, ids[i])->no_data) fail_msg("%s has data", ids[i]);
    lk_report_free(report);
    lk_dataset_free(&data);
}

static void nth_allocation_fails(void **state) {
    (void)state;
    struct lk_dataset data;
    small_study(&data, 7, 2, 1);
    struct lk_report_options options = options_of(3);
    struct lk_report *report;
    lk_report_free(build(&data, &options));
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    lk_report_free(build(&data, &options));
    int64_t n = lk_alloc_count() - before;
    for (int64_t i = 1; i <= n; i += i < 40 ? 1 : 7) {
        lk_alloc_fail_at(i);
        enum lk_code rc = lk_report_build(&report, &data, &options);
        lk_alloc_fail_at(0);
        if (rc != LK_E_NOMEM) fail_msg("allocation %lld of %lld: code %d", (long long)i, (long long)n, (int)rc);
        assert_null(report);
        assert_int_equal(lk_alloc_live(), live);
    }
    lk_dataset_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_margins_give_the_published_cells),
        cmocka_unit_test(disparities_are_those_of_the_bootstrap),
        cmocka_unit_test(empty_data_say_so),
        cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
