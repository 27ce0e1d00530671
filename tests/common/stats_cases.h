/* The inputs of the statistics' cases and the peers' values for them (tests/golden/stats_cases.py, its mirror image).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "eval/study/random.h"

enum stats_kind { STATS_SCORES, STATS_MEANS, STATS_FINE, STATS_BINARY, STATS_WIDE, STATS_CONSTANT };

/* The stream of one case: seed 42, label "STATISTIC/CASE". */
struct lk_stream stats_stream(const char *statistic, int case_number);
void stats_values(struct lk_stream *stream, double *values, size_t n, enum stats_kind kind);

#define STATS_CHECKSUM_START 0xcbf29ce484222325u
uint64_t stats_checksum(uint64_t hash, const double *numbers, size_t n);

/* golden/data/stats/NAME.csv. values [n_cases, n_columns]; NaN where the peer has no value. Fails the test when the
 * file is not as expected. */
struct stats_golden {
    const char *name;
    double *values;
    size_t n_cases, n_columns;
    uint64_t inputs; /* checksum of all inputs */
};
void stats_golden_open(struct stats_golden *golden, const char *name, size_t n_columns);
/* The same for a file anywhere. */
void stats_golden_open_path(struct stats_golden *golden, const char *path, size_t n_columns);
/* The row of one case, [n_columns]. */
const double *stats_row(const struct stats_golden *golden, int case_number);
void stats_golden_close(struct stats_golden *golden);
/* Closes, and fails the test unless the inputs that were made have this checksum, as the peer's had. */
void stats_golden_finish(struct stats_golden *golden, uint64_t checksum);

/* Fails the test unless |got - expected| <= max(relative * |expected|, absolute). NaN expected wants NaN. */
void stats_assert_close(const char *what, int case_number, double got, double expected, double relative,
                        double absolute);

/* Values within 1e-10 (or 1e-12 near 0), probabilities within 1e-8. */
void stats_assert_value(const char *what, int case_number, double got, double expected);
void stats_assert_p(const char *what, int case_number, double got, double expected);
