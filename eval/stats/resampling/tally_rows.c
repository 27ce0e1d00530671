#include "eval/stats/resampling/tally_rows.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"

/* For qsort, which takes no context: a unit with all that it is compared by. */
struct unit {
    const double *columns;
    size_t n_bytes;
    int32_t cell, cluster, index;
};

static int by_content(const void *a, const void *b) {
    const struct unit *x = a, *y = b;
    if (x->cell != y->cell) return x->cell < y->cell ? -1 : 1;
    if (x->cluster != y->cluster) return x->cluster < y->cluster ? -1 : 1;
    int order = memcmp(x->columns, y->columns, x->n_bytes);
    if (order) return order;
    return x->index < y->index ? -1 : x->index > y->index;
}

void lk_tally_rows_free(struct lk_tally_rows *rows) {
    lk_free(rows->of_draw);
    lk_free(rows->cell);
    lk_free(rows->cluster);
    lk_free(rows->count_of_row);
    lk_free(rows->multiplicity);
    lk_free(rows->column);
    lk_free(rows->sums);
    lk_free(rows->by_column);
    lk_free(rows->first_row);
    lk_free(rows->group);
    lk_packed_columns_free(&rows->packed);
    memset(rows, 0, sizeof *rows);
}

static bool allocate(struct lk_tally_rows *rows, size_t n_draws, size_t n_rows) {
    rows->of_draw = lk_malloc(n_draws * sizeof *rows->of_draw);
    rows->cell = lk_malloc(n_rows * sizeof *rows->cell);
    rows->cluster = lk_malloc(n_rows * sizeof *rows->cluster);
    rows->count_of_row = lk_malloc(n_rows * sizeof *rows->count_of_row);
    rows->multiplicity = lk_malloc(n_rows * sizeof *rows->multiplicity);
    rows->column = lk_malloc(n_rows * sizeof *rows->column);
    return rows->of_draw && rows->cell && rows->cluster && rows->count_of_row && rows->multiplicity && rows->column;
}

static void merge(const struct unit *units, size_t n_units, struct lk_tally_rows *rows) {
    for (size_t i = 0; i < n_units; i++) {
        const struct unit *u = &units[i];
        if (!i || u->cell != units[i - 1].cell || u->cluster != units[i - 1].cluster ||
            memcmp(u->columns, units[i - 1].columns, u->n_bytes)) {
            rows->cell[rows->n] = u->cell;
            rows->cluster[rows->n] = u->cluster;
            rows->column[rows->n] = u->columns;
            rows->count_of_row[rows->n] = (int32_t)rows->n;
            rows->multiplicity[rows->n++] = 0;
        }
        rows->multiplicity[rows->n - 1]++;
    }
}

/* Without clusters every row has a count. */
static void count_units(const struct unit *units, struct lk_tally_rows *rows) {
    for (size_t r = 0, i = 0; r < rows->n; r++)
        for (size_t end = i + (size_t)rows->multiplicity[r]; i < end; i++) rows->of_draw[units[i].index] = (int32_t)r;
    rows->n_counts = rows->n;
}

static void count_clusters(size_t n_clusters, struct lk_tally_rows *rows) {
    rows->n_counts = n_clusters;
    for (size_t c = 0; c < n_clusters; c++) rows->of_draw[c] = (int32_t)c;
    for (size_t r = 0; r < rows->n; r++) rows->count_of_row[r] = rows->cluster[r];
}

/* Rows of the same cluster and cell become one, their sum. */
static bool sum_clusters(struct lk_tally_rows *rows) {
    size_t width = (size_t)rows->n_columns, n = 0;
    rows->sums = lk_calloc(rows->n, width * sizeof *rows->sums);
    if (!rows->sums) return false;
    for (size_t r = 0; r < rows->n; r++) {
        if (!r || rows->cell[r] != rows->cell[n - 1] || rows->cluster[r] != rows->cluster[n - 1]) {
            rows->cell[n] = rows->cell[r];
            rows->cluster[n++] = rows->cluster[r];
        }
        double *sum = rows->sums + (n - 1) * width;
        for (size_t c = 0; c < width; c++) sum[c] += rows->multiplicity[r] * rows->column[r][c];
    }
    for (size_t r = 0; r < n; r++) {
        rows->column[r] = rows->sums + r * width;
        rows->multiplicity[r] = 1;
    }
    rows->n = n;
    return true;
}

static enum lk_code make_sorted(const struct lk_tally *tally, const struct lk_clusters *clusters,
                                struct lk_tally_rows *rows) {
    size_t n = tally->n_units, width = (size_t)tally->n_columns;
    struct unit *units = lk_malloc(n * sizeof *units);
    if (!units || !allocate(rows, n, n)) {
        lk_free(units);
        return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu units", n);
    }
    for (size_t i = 0; i < n; i++)
        units[i] = (struct unit){tally->columns + i * width, width * sizeof(double), tally->cells ? tally->cells[i] : 0,
                                 clusters->of_unit ? clusters->of_unit[i] : 0, (int32_t)i};
    qsort(units, n, sizeof *units, by_content);
    merge(units, n, rows);
    if (!clusters->of_unit) count_units(units, rows);
    lk_free(units);
    if (clusters->of_unit) {
        if (!sum_clusters(rows)) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu units", n);
        count_clusters(clusters->n, rows);
    }
    return LK_OK;
}

/* Exact sums by group and cluster at once: in any order. The cells are then the groups. */
static enum lk_code make_grouped(const struct lk_tally *tally, const struct lk_clusters *clusters,
                                 struct lk_tally_rows *rows) {
    size_t width = (size_t)tally->n_columns, n_rows = (size_t)tally->groups->n_groups * clusters->n;
    rows->sums = lk_calloc(n_rows, width * sizeof *rows->sums);
    bool *present = lk_calloc(n_rows, sizeof *present);
    if (!rows->sums || !present || !allocate(rows, clusters->n, n_rows)) {
        lk_free(present);
        return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu clusters", clusters->n);
    }
    for (size_t i = 0; i < tally->n_units; i++) {
        int32_t cell = tally->cells ? tally->cells[i] : 0;
        const double *columns = tally->columns + i * width;
        for (int g = 0; g < tally->groups->n_groupings && cell >= 0; g++) {
            int32_t group = tally->groups->of_cell[cell * tally->groups->n_groupings + g];
            if (group < 0) continue;
            size_t row = (size_t)group * clusters->n + (size_t)clusters->of_unit[i];
            present[row] = true;
            for (size_t c = 0; c < width; c++) rows->sums[row * width + c] += columns[c];
        }
    }
    for (size_t row = 0; row < n_rows; row++) {
        if (!present[row]) continue;
        rows->cell[rows->n] = (int32_t)(row / clusters->n);
        rows->cluster[rows->n] = (int32_t)(row % clusters->n);
        rows->multiplicity[rows->n] = 1;
        rows->column[rows->n++] = rows->sums + row * width;
    }
    lk_free(present);
    count_clusters(clusters->n, rows);
    return LK_OK;
}

/* The same bits, and less to add for each resample. */
static bool is_grouped(const struct lk_tally *tally, const struct lk_clusters *clusters) {
    return clusters->of_unit && tally->groups && clusters->n <= 4 * tally->n_units / (size_t)tally->groups->n_groups &&
           lk_exact_sums(tally->columns, tally->n_units, tally->n_columns);
}

/* What is summed where: rows by cell, cells by group; cells are groups where there are none or the rows are grouped. */
static enum lk_code lay_out(const struct lk_tally *tally, struct lk_tally_rows *rows) {
    bool itself = rows->grouped || !tally->groups;
    size_t n_cells = (size_t)(rows->grouped ? tally->groups->n_groups : tally->n_cells);
    size_t width = itself ? 1 : (size_t)tally->groups->n_groupings;
    rows->first_row = lk_malloc((n_cells + 1) * sizeof *rows->first_row);
    rows->group = lk_malloc(n_cells * width * sizeof *rows->group);
    if (!rows->first_row || !rows->group) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu cells", n_cells);
    size_t r = 0;
    while (r < rows->n && rows->cell[r] < 0) r++;
    for (size_t c = 0; c < n_cells; c++) {
        rows->first_row[c] = r;
        while (r < rows->n && rows->cell[r] == (int32_t)c) r++;
        for (size_t g = 0; g < width; g++)
            rows->group[c * width + g] = itself ? (int32_t)c : tally->groups->of_cell[c * width + g];
    }
    rows->first_row[n_cells] = r;
    size_t n_groups = tally->groups ? (size_t)tally->groups->n_groups : n_cells;
    rows->layout =
        (struct lk_packed_layout){n_cells, width, n_groups, rows->first_row, rows->group, rows->count_of_row};
    return LK_OK;
}

/* A bound of the sum of the weights of the rows that one group sums: of a cluster these are its cells of that group. */
static double largest_weight(const struct lk_tally_rows *rows, const struct lk_clusters *clusters, bool cells_add_up) {
    double n = (double)clusters->n;
    return clusters->of_unit && cells_add_up ? n * (double)rows->layout.n_cells : n;
}

/* Columns side by side in memory: the rows lie where the caller has them. */
static enum lk_code copy_columns(struct lk_tally_rows *rows) {
    rows->by_column = lk_malloc(rows->n * (size_t)rows->n_columns * sizeof *rows->by_column);
    if (!rows->by_column) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu rows", rows->n);
    for (size_t r = 0; r < rows->n; r++)
        for (size_t c = 0; c < (size_t)rows->n_columns; c++) rows->by_column[c * rows->n + r] = rows->column[r][c];
    return LK_OK;
}

enum lk_code lk_tally_rows_make(const struct lk_tally *tally, const struct lk_clusters *clusters,
                                struct lk_tally_rows *rows) {
    memset(rows, 0, sizeof *rows);
    rows->n_columns = tally->n_columns;
    rows->grouped = is_grouped(tally, clusters);
    enum lk_code rc = rows->grouped ? make_grouped(tally, clusters, rows) : make_sorted(tally, clusters, rows);
    if (!rc) rc = lay_out(tally, rows);
    if (!rc)
        rc = lk_pack_columns(rows->column, rows->n, rows->n_columns,
                             largest_weight(rows, clusters, !rows->grouped && tally->groups), &rows->packed);
    if (!rc && !rows->packed.vectors) rc = copy_columns(rows);
    if (rc) lk_tally_rows_free(rows);
    return rc;
}
