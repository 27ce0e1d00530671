/* The report's tables about raters: plans against the printed cells, and synthetic raters whose results are worked out
 * by hand or by the statistics themselves. */
#include <math.h>

#include "engine/alloc.h"
#include "eval/report/paper_tables.h"
#include "eval/report/report.h"
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plans_as_printed, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
