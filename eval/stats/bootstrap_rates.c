/* Groupings are taken together as long as the combinations of their groups that occur are few (a bin): a resample is
 * first summed by those, its cells, and then the cells by each grouping. Bins draw the same resamples. */
#include "eval/stats/bootstrap_rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/alloc.h"

enum { CELLS_MAX = 512 };

struct lk_rate_results {
    int n_groupings, n_measures, n_groups; /* groups of all groupings */
    int *first_group;                      /* [n_groupings + 1] */
    struct lk_number *numbers;             /* [n_groups + n_groupings, n_measures]: rates, then disparities */
    struct lk_disparity *disparities;      /* [n_groupings, n_measures] */
};

/* What the statistics of one bin are computed with. */
struct bin {
    const struct lk_rate_results *results;
    const int *valid_column;   /* [n_measures]: the column that counts a measure's valid units; 0 counts all */
    int n_columns, first, end; /* columns; groupings first..end-1 */
    int n_cells;
    int32_t *cells; /* [n_units] */
    int32_t *group; /* [n_cells, end - first] */
};

const struct lk_number *lk_rate_of(const struct lk_rate_results *results, int grouping, int group, int measure) {
    return &results->numbers[(results->first_group[grouping] + group) * results->n_measures + measure];
}

const struct lk_disparity *lk_disparity_of(const struct lk_rate_results *results, int grouping, int measure) {
    return &results->disparities[grouping * results->n_measures + measure];
}

void lk_rate_results_free(struct lk_rate_results *results) {
    if (!results) return;
    lk_free(results->first_group);
    lk_free(results->numbers);
    lk_free(results->disparities);
    lk_free(results);
}

static enum lk_code check(const struct lk_rates *rates) {
    if (rates->n_measures < 1 || rates->n_groupings < 1)
        return lk_fail(LK_E_INPUT, "rates: expected measures and groupings, got %d and %d", rates->n_measures,
                       rates->n_groupings);
    for (size_t i = 0; i < rates->n_units * (size_t)rates->n_measures; i++)
        if (isinf(rates->values[i]))
            return lk_fail(LK_E_INPUT, "rates: unit %zu: expected finite values", i / (size_t)rates->n_measures);
    for (int g = 0; g < rates->n_groupings; g++) {
        const struct lk_grouping *by = &rates->groupings[g];
        if (by->n_groups < 1) return lk_fail(LK_E_INPUT, "rates: grouping %d: expected groups", g);
        for (size_t i = 0; by->group && i < rates->n_units; i++)
            if (by->group[i] < -1 || by->group[i] >= by->n_groups)
                return lk_fail(LK_E_INPUT, "rates: grouping %d, unit %zu: expected a group below %d, got %d", g, i,
                               by->n_groups, by->group[i]);
    }
    return LK_OK;
}

static enum lk_code results_make(const struct lk_rates *rates, struct lk_rate_results **out) {
    struct lk_rate_results *results = lk_calloc(1, sizeof *results);
    *out = NULL;
    if (!results) return lk_fail(LK_E_NOMEM, "rates: no memory for the results");
    results->n_groupings = rates->n_groupings;
    results->n_measures = rates->n_measures;
    results->first_group = lk_calloc((size_t)rates->n_groupings + 1, sizeof *results->first_group);
    if (results->first_group)
        for (int g = 0; g < rates->n_groupings; g++)
            results->first_group[g + 1] = results->n_groups += rates->groupings[g].n_groups;
    size_t n_numbers = (size_t)(results->n_groups + rates->n_groupings) * (size_t)rates->n_measures;
    results->numbers = lk_calloc(n_numbers, sizeof *results->numbers);
    results->disparities =
        lk_calloc((size_t)rates->n_groupings * (size_t)rates->n_measures, sizeof *results->disparities);
    if (!results->first_group || !results->numbers || !results->disparities) {
        lk_rate_results_free(results);
        return lk_fail(LK_E_NOMEM, "rates: no memory for the results");
    }
    *out = results;
    return LK_OK;
}

/* Columns of a unit: 1; each measure's value, 0 where it is not valid; 1 or 0 for the validity of each measure that is
 * not always valid. */
static int number_columns(const struct lk_rates *rates, int *valid_column) {
    int n = 1 + rates->n_measures;
    for (int m = 0; m < rates->n_measures; m++) {
        valid_column[m] = 0;
        for (size_t i = 0; i < rates->n_units && !valid_column[m]; i++)
            if (isnan(rates->values[i * (size_t)rates->n_measures + (size_t)m])) valid_column[m] = n++;
    }
    return n;
}

static void fill_columns(const struct lk_rates *rates, const int *valid_column, int n_columns, double *columns) {
    for (size_t i = 0; i < rates->n_units; i++) {
        double *row = columns + i * (size_t)n_columns;
        row[0] = 1;
        for (int m = 0; m < rates->n_measures; m++) {
            double value = rates->values[i * (size_t)rates->n_measures + (size_t)m];
            row[1 + m] = isnan(value) ? 0 : value == 0 ? 0 : value; /* never -0 */
            if (valid_column[m]) row[valid_column[m]] = isnan(value) ? 0 : 1;
        }
    }
}

struct pair {
    int32_t cell, group;
    size_t unit;
};

static int by_cell_then_group(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    if (x->cell != y->cell) return x->cell < y->cell ? -1 : 1;
    return x->group < y->group ? -1 : x->group > y->group;
}

/* Splits cells [n_units] by one more grouping into split; returns their number. pairs [n_units] is scratch. */
static int split_cells(const struct lk_rates *rates, int grouping, const int32_t *cells, struct pair *pairs,
                       int32_t *split) {
    const int32_t *group = rates->groupings[grouping].group;
    for (size_t i = 0; i < rates->n_units; i++) pairs[i] = (struct pair){cells[i], group ? group[i] : 0, i};
    qsort(pairs, rates->n_units, sizeof *pairs, by_cell_then_group);
    int32_t n = 0;
    for (size_t i = 0; i < rates->n_units; i++) {
        if (i && by_cell_then_group(&pairs[i], &pairs[i - 1])) n++;
        split[pairs[i].unit] = n;
    }
    return n + 1;
}

/* Takes groupings from bin->first on as long as their cells are few, at least one. */
static enum lk_code fill_bin(const struct lk_rates *rates, struct bin *bin) {
    size_t n = rates->n_units;
    struct pair *pairs = lk_malloc(n * sizeof *pairs);
    int32_t *split = lk_malloc(n * sizeof *split);
    if (!pairs || !split) {
        lk_free(pairs);
        lk_free(split);
        return lk_fail(LK_E_NOMEM, "rates: no memory for %zu units", n);
    }
    memset(bin->cells, 0, n * sizeof *bin->cells);
    for (bin->end = bin->first; bin->end < rates->n_groupings; bin->end++) {
        int n_cells = split_cells(rates, bin->end, bin->cells, pairs, split);
        if (n_cells > CELLS_MAX && bin->end > bin->first) break;
        memcpy(bin->cells, split, n * sizeof *split);
        bin->n_cells = n_cells;
    }
    lk_free(pairs);
    lk_free(split);
    int width = bin->end - bin->first;
    bin->group = lk_malloc((size_t)bin->n_cells * (size_t)width * sizeof *bin->group);
    if (!bin->group) return lk_fail(LK_E_NOMEM, "rates: no memory for %d cells", bin->n_cells);
    for (size_t i = 0; i < n; i++)
        for (int g = 0; g < width; g++) {
            const int32_t *group = rates->groupings[bin->first + g].group;
            bin->group[bin->cells[i] * width + g] = group ? group[i] : 0;
        }
    return LK_OK;
}

static void highest_and_lowest(const double *rates, int n_groups, int n_measures, int *highest, int *lowest) {
    *highest = *lowest = -1;
    for (int g = 0; g < n_groups; g++) {
        double rate = rates[g * n_measures];
        if (isnan(rate)) continue;
        if (*highest < 0 || rate > rates[*highest * n_measures]) *highest = g;
        if (*lowest < 0 || rate < rates[*lowest * n_measures]) *lowest = g;
    }
}

/* Rates [groups of the bin, n_measures], then disparities [groupings of the bin, n_measures]. scratch: sums [groups of
 * the bin, n_columns]. */
static void rates_of_totals(const double *totals, const void *context, void *scratch, double *out) {
    const struct bin *bin = context;
    const int *first_group = bin->results->first_group;
    int width = bin->end - bin->first, n_columns = bin->n_columns, n_measures = bin->results->n_measures;
    int base = first_group[bin->first], n_groups = first_group[bin->end] - base;
    double *sums = scratch;
    memset(sums, 0, (size_t)n_groups * (size_t)n_columns * sizeof *sums);
    for (int cell = 0; cell < bin->n_cells; cell++)
        for (int g = 0; g < width; g++) {
            int32_t group = bin->group[cell * width + g];
            if (group < 0) continue;
            double *sum = sums + (first_group[bin->first + g] - base + group) * n_columns;
#pragma omp simd
            for (int c = 0; c < n_columns; c++) sum[c] += totals[cell * n_columns + c];
        }
    for (int g = 0; g < n_groups; g++)
        for (int m = 0; m < n_measures; m++) {
            double n = sums[g * n_columns + bin->valid_column[m]];
            out[g * n_measures + m] = n > 0 ? sums[g * n_columns + 1 + m] / n : NAN;
        }
    for (int g = 0; g < width; g++)
        for (int m = 0; m < n_measures; m++) {
            const double *rates = out + (first_group[bin->first + g] - base) * n_measures + m;
            int highest, lowest, n = first_group[bin->first + g + 1] - first_group[bin->first + g];
            highest_and_lowest(rates, n, n_measures, &highest, &lowest);
            out[(n_groups + g) * n_measures + m] =
                highest < 0 || n < 2 ? NAN : rates[highest * n_measures] - rates[lowest * n_measures];
        }
}

/* The estimates of a bin, from the units themselves. */
static void set_estimates(const struct lk_rates *rates, const struct bin *bin, const double *values,
                          struct lk_rate_results *results) {
    int n_measures = results->n_measures, base = results->first_group[bin->first];
    int n_groups = results->first_group[bin->end] - base;
    for (int g = bin->first; g < bin->end; g++)
        for (size_t i = 0; i < rates->n_units; i++) {
            int group = rates->groupings[g].group ? rates->groupings[g].group[i] : 0;
            for (int m = 0; m < n_measures && group >= 0; m++)
                results->numbers[(results->first_group[g] + group) * n_measures + m].n +=
                    !isnan(rates->values[i * (size_t)n_measures + (size_t)m]);
        }
    for (int i = 0; i < n_groups * n_measures; i++) {
        struct lk_number *number = &results->numbers[base * n_measures + i];
        if (number->n)
            number->value = values[i];
        else
            number->undefined = "no valid unit";
    }
    for (int g = bin->first; g < bin->end; g++)
        for (int m = 0; m < n_measures; m++) {
            struct lk_number *number = &results->numbers[(results->n_groups + g) * n_measures + m];
            struct lk_disparity *disparity = &results->disparities[g * n_measures + m];
            int first = results->first_group[g], n_valid = 0;
            for (int i = first; i < results->first_group[g + 1]; i++) {
                number->n += results->numbers[i * n_measures + m].n;
                n_valid += !results->numbers[i * n_measures + m].undefined;
            }
            disparity->highest = disparity->lowest = -1;
            if (n_valid < 2) {
                number->undefined = "fewer than two groups with valid units";
                continue;
            }
            number->value = values[(n_groups + g - bin->first) * n_measures + m];
            highest_and_lowest(values + (first - base) * n_measures + m, results->first_group[g + 1] - first,
                               n_measures, &disparity->highest, &disparity->lowest);
        }
}

/* totals, scratch, values, and the replicates of a bin, in one block. */
static enum lk_code run_bin(const struct lk_rates *rates, const struct lk_resampling *how, const double *columns,
                            const struct bin *bin, struct lk_rate_results *results) {
    size_t n = (size_t)how->n_replicates, width = (size_t)bin->n_columns, n_measures = (size_t)results->n_measures;
    size_t n_groups = (size_t)(results->first_group[bin->end] - results->first_group[bin->first]);
    size_t n_groupings = (size_t)(bin->end - bin->first), n_statistics = (n_groups + n_groupings) * n_measures;
    size_t n_totals = (size_t)bin->n_cells * width, n_sums = n_groups * width;
    double *totals = lk_malloc((n_totals + n_sums + n_statistics * (n + 1)) * sizeof *totals);
    if (!totals) return lk_fail(LK_E_NOMEM, "rates: no memory for %zu statistics of %zu resamples", n_statistics, n);
    double *sums = totals + n_totals, *values = sums + n_sums, *replicates = values + n_statistics;
    struct lk_tally tally = {rates->n_units, bin->n_columns, bin->n_cells, columns, bin->cells};
    lk_tally_totals(&tally, totals);
    rates_of_totals(totals, bin, sums, values);
    set_estimates(rates, bin, values, results);
    enum lk_code rc =
        lk_bootstrap_totals(&tally, how, rates_of_totals, bin, n_sums * sizeof *sums, (int)n_statistics, replicates);
    size_t rate_at = (size_t)results->first_group[bin->first] * n_measures;
    size_t disparity_at = ((size_t)results->n_groups + (size_t)bin->first) * n_measures;
    if (!rc) rc = lk_intervals_percentile(replicates, n, how, results->numbers + rate_at, n_groups * n_measures);
    if (!rc)
        rc = lk_intervals_percentile(replicates + n_groups * n_measures * n, n, how, results->numbers + disparity_at,
                                     n_groupings * n_measures);
    lk_free(totals);
    return rc;
}

static enum lk_code run_bins(const struct lk_rates *rates, const struct lk_resampling *how, const int *valid_column,
                             int n_columns, struct lk_rate_results *results) {
    struct bin bin = {.results = results, .valid_column = valid_column, .n_columns = n_columns};
    double *columns = lk_malloc(rates->n_units * (size_t)n_columns * sizeof *columns);
    bin.cells = lk_malloc(rates->n_units * sizeof *bin.cells);
    enum lk_code rc = LK_OK;
    if (!columns || !bin.cells)
        rc = lk_fail(LK_E_NOMEM, "rates: no memory for %zu units", rates->n_units);
    else
        fill_columns(rates, valid_column, n_columns, columns);
    for (; !rc && bin.first < rates->n_groupings; bin.first = bin.end) {
        rc = fill_bin(rates, &bin);
        if (!rc) rc = run_bin(rates, how, columns, &bin, results);
        lk_free(bin.group);
        bin.group = NULL;
    }
    lk_free(columns);
    lk_free(bin.cells);
    return rc;
}

static enum lk_code no_units(struct lk_rate_results *results) {
    int n_rates = results->n_groups * results->n_measures, n_disparities = results->n_groupings * results->n_measures;
    for (int i = 0; i < n_rates; i++) results->numbers[i].undefined = "no valid unit";
    for (int i = 0; i < n_disparities; i++) {
        results->numbers[n_rates + i].undefined = "fewer than two groups with valid units";
        results->disparities[i].highest = results->disparities[i].lowest = -1;
    }
    return LK_OK;
}

enum lk_code lk_bootstrap_rates(const struct lk_rates *rates, const struct lk_resampling *how,
                                struct lk_rate_results **out) {
    *out = NULL;
    LK_TRY(check(rates));
    struct lk_rate_results *results;
    LK_TRY(results_make(rates, &results));
    int *valid_column = lk_malloc((size_t)rates->n_measures * sizeof *valid_column);
    enum lk_code rc = LK_OK;
    if (!valid_column)
        rc = lk_fail(LK_E_NOMEM, "rates: no memory for %d measures", rates->n_measures);
    else
        rc = rates->n_units ? run_bins(rates, how, valid_column, number_columns(rates, valid_column), results)
                            : no_units(results);
    lk_free(valid_column);
    if (rc) {
        lk_rate_results_free(results);
        return rc;
    }
    for (int i = 0; i < results->n_groupings * results->n_measures; i++)
        results->disparities[i].number = results->numbers[results->n_groups * results->n_measures + i];
    *out = results;
    return LK_OK;
}
