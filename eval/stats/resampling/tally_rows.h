/* Inside of bootstrap_totals.c: the units of a tally as rows that are counted and summed. Units that are alike (same
 * cell and columns) are one row, so that small-integer scores cost little. Of clusters, which come whole, only the sums
 * by cell are kept, or by group where those are exact and fewer. */
#pragma once

#include <stdbool.h>

#include "eval/stats/resampling/packed_columns.h"
#include "eval/stats/resampling/resample.h"

struct lk_tally_rows {
    size_t n, n_counts;
    int n_columns;
    bool grouped;          /* cells are the tally's groups */
    int32_t *of_draw;      /* [units or clusters]: where a draw is counted, 0..n_counts-1 */
    int32_t *cell;         /* [n], ascending */
    int32_t *cluster;      /* [n]; only read with clusters */
    int32_t *count_of_row; /* [n] */
    double *multiplicity;  /* [n]: units that are alike */
    const double **column; /* [n] -> [n_columns] in the caller's memory, or in sums */
    double *sums;          /* with clusters, NULL without */
    double *by_column;     /* [n_columns, n] where they are not packed, NULL where they are */
    struct lk_packed_columns packed;
    struct lk_packed_layout layout;
    size_t *first_row; /* the layout's own */
    int32_t *group;
};

/* The tally is as lk_bootstrap_totals expects it. */
enum lk_code lk_tally_rows_make(const struct lk_tally *tally, const struct lk_clusters *clusters,
                                struct lk_tally_rows *rows);
void lk_tally_rows_free(struct lk_tally_rows *rows);
