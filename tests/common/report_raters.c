#include "tests/common/report_raters.h"

#include "engine/base/alloc.h"
#include "tests/common/test.h"

struct lk_dataset data;
struct lk_report_options options;

int raters_begin(void **state) {
    (void)state;
    lk_dataset_init(&data);
    lk_report_options_init(&options);
    options.n_bootstrap = 50;
    return 0;
}

int raters_end(void **state) {
    (void)state;
    lk_dataset_free(&data);
    return lk_alloc_live() != 0;
}

const struct lk_cell *cell_of(const struct lk_table *table, int row, int column) {
    if (row >= table->n_rows || column >= table->rows[row].n_cells)
        fail_msg("%s has no cell %d, %d", table->id, row, column);
    return &table->rows[row].cells[column];
}

void expect_text(const struct lk_table *table, int row, int column, const char *text) {
    const char *got = cell_of(table, row, column)->text;
    if (strcmp(got, text) != 0) fail_msg("%s, %d, %d: expected \"%s\", got \"%s\"", table->id, row, column, text, got);
}

const struct lk_table *table_of(const struct lk_report *report, const char *id) {
    const struct lk_table *table = lk_report_table(report, id);
    if (!table) fail_msg("the report has no table %s", id);
    return table;
}

void has_levels(struct lk_rating *rating, int axis, int level) { rating->score[axis] = (uint8_t)level; }

struct lk_rating *rate(const char *rater, const char *item, int race_drift) {
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
