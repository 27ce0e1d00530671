/* Groupings are taken together (a bin): a resample is first summed by the combinations of their groups that occur, its
 * cells, and then the cells by each grouping. Where sums depend on their order, bins end before their cells are many;
 * all bins draw the same resamples. */
#include "eval/stats/resampling/bootstrap_rates.h"

#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/bootstrap_rates_clusters.h"
#include "eval/stats/resampling/packed_columns.h"
#include "eval/stats/resampling/range_interval.h"
#include "eval/stats/resampling/resample.h"

enum { CELLS_MAX = 512 };

struct lk_rate_results {
    int n_groupings, n_measures, n_groups; /* groups of all groupings */
    int *first_group;                      /* [n_groupings + 1] */
    struct lk_number *numbers;             /* [n_groups, n_measures] */
    struct lk_number *expanded;            /* the same with expanded intervals */
    struct lk_disparity *disparities;      /* [n_groupings, n_measures] */
};

/* What the statistics of one bin are computed with. */
struct bin {
    const struct lk_rate_results *results;
    const int *valid_column;   /* [n_measures]: the column that counts a measure's valid units; 0 counts all */
    int n_columns, first, end; /* columns; groupings first..end-1 */
    int n_cells;
    int32_t *cells;   /* [n_units] */
    int32_t *of_cell; /* [n_cells, end - first]: groups, numbered through from the bin's first */
    struct lk_rate_clusters *clusters;
};

const struct lk_number *lk_rate_of(const struct lk_rate_results *results, int grouping, int group, int measure) {
    return &results->numbers[(results->first_group[grouping] + group) * results->n_measures + measure];
}

const struct lk_number *lk_rate_expanded_of(const struct lk_rate_results *results, int grouping, int group,
                                            int measure) {
    return &results->expanded[(results->first_group[grouping] + group) * results->n_measures + measure];
}

const struct lk_disparity *lk_disparity_of(const struct lk_rate_results *results, int grouping, int measure) {
    return &results->disparities[grouping * results->n_measures + measure];
}

void lk_rate_results_free(struct lk_rate_results *results) {
    if (!results) return;
    lk_free(results->first_group);
    lk_free(results->numbers);
    lk_free(results->expanded);
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
    size_t n_numbers = (size_t)results->n_groups * (size_t)rates->n_measures;
    results->numbers = lk_calloc(n_numbers, sizeof *results->numbers);
    results->expanded = lk_calloc(n_numbers, sizeof *results->expanded);
    results->disparities =
        lk_calloc((size_t)rates->n_groupings * (size_t)rates->n_measures, sizeof *results->disparities);
    if (!results->first_group || !results->numbers || !results->expanded || !results->disparities) {
        lk_rate_results_free(results);
        return lk_fail(LK_E_NOMEM, "rates: no memory for the results");
    }
    *out = results;
    return LK_OK;
}

static bool same_validity(const struct lk_rates *rates, int a, int b) {
    for (size_t i = 0; i < rates->n_units; i++) {
        const double *row = rates->values + i * (size_t)rates->n_measures;
        if (isnan(row[a]) != isnan(row[b])) return false;
    }
    return true;
}

/* Columns of a unit: 1; each measure's value, 0 where it is not valid; 1 or 0 for the validity of each measure that is
 * not always valid, one for all measures that are valid together. */
static int number_columns(const struct lk_rates *rates, int *valid_column) {
    int n = 1 + rates->n_measures;
    for (int m = 0; m < rates->n_measures; m++) {
        valid_column[m] = 0;
        for (size_t i = 0; i < rates->n_units && !valid_column[m]; i++)
            if (isnan(rates->values[i * (size_t)rates->n_measures + (size_t)m])) valid_column[m] = n;
        for (int other = 0; other < m && valid_column[m] == n; other++)
            if (valid_column[other] && same_validity(rates, other, m)) valid_column[m] = valid_column[other];
        n += valid_column[m] == n;
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

/* Units in ascending order of key [n_units], 0..n_keys-1, those of one key as in `order`. start [n_keys + 1]. */
static void sort_by_key(const int32_t *key, size_t n_keys, const int32_t *order, size_t n, int32_t *sorted,
                        size_t *start) {
    memset(start, 0, (n_keys + 1) * sizeof *start);
    for (size_t i = 0; i < n; i++) start[key[i] + 1]++;
    for (size_t k = 0; k < n_keys; k++) start[k + 1] += start[k];
    for (size_t i = 0; i < n; i++) sorted[start[key[order[i]]]++] = order[i];
}

struct splitting {
    int32_t *split, *group, *order, *sorted; /* [n_units] */
    size_t *start;                           /* [most cells or groups + 1] */
};

/* Splits cells [n_units] by one more grouping into work->split; returns their number. */
static int split_cells(const struct lk_rates *rates, int grouping, const int32_t *cells, int n_cells,
                       const struct splitting *work) {
    const struct lk_grouping *by = &rates->groupings[grouping];
    size_t n = rates->n_units;
    for (size_t i = 0; i < n; i++) {
        work->group[i] = by->group ? by->group[i] + 1 : 0;
        work->split[i] = (int32_t)i;
    }
    sort_by_key(work->group, (size_t)by->n_groups + 1, work->split, n, work->order, work->start);
    sort_by_key(cells, (size_t)n_cells, work->order, n, work->sorted, work->start);
    int32_t last = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t unit = work->sorted[i], before = i ? work->sorted[i - 1] : unit;
        last += cells[unit] != cells[before] || work->group[unit] != work->group[before];
        work->split[unit] = last;
    }
    return last + 1;
}

static enum lk_code splitting_make(const struct lk_rates *rates, struct splitting *work) {
    size_t n = rates->n_units, n_keys = n;
    for (int g = 0; g < rates->n_groupings; g++)
        if ((size_t)rates->groupings[g].n_groups > n_keys) n_keys = (size_t)rates->groupings[g].n_groups;
    work->start = lk_malloc((n_keys + 2) * sizeof *work->start);
    work->split = lk_malloc(4 * n * sizeof *work->split);
    if (!work->start || !work->split) {
        lk_free(work->start);
        lk_free(work->split);
        return lk_fail(LK_E_NOMEM, "rates: no memory for %zu units", n);
    }
    work->group = work->split + n;
    work->order = work->group + n;
    work->sorted = work->order + n;
    return LK_OK;
}

/* Takes groupings from bin->first on as long as there are at most most_cells cells, at least one. */
static enum lk_code fill_bin(const struct lk_rates *rates, size_t most_cells, struct bin *bin) {
    size_t n = rates->n_units;
    const int *first_group = bin->results->first_group;
    struct splitting work = {0};
    LK_TRY(splitting_make(rates, &work));
    memset(bin->cells, 0, n * sizeof *bin->cells);
    bin->n_cells = 1;
    for (bin->end = bin->first; bin->end < rates->n_groupings; bin->end++) {
        int n_cells = split_cells(rates, bin->end, bin->cells, bin->n_cells, &work);
        if ((size_t)n_cells > most_cells && bin->end > bin->first) break;
        memcpy(bin->cells, work.split, n * sizeof *bin->cells);
        bin->n_cells = n_cells;
    }
    lk_free(work.start);
    lk_free(work.split);
    int width = bin->end - bin->first;
    bin->of_cell = lk_malloc((size_t)bin->n_cells * (size_t)width * sizeof *bin->of_cell);
    if (!bin->of_cell) return lk_fail(LK_E_NOMEM, "rates: no memory for %d cells", bin->n_cells);
    for (size_t i = 0; i < n; i++)
        for (int g = 0; g < width; g++) {
            const int32_t *group = rates->groupings[bin->first + g].group;
            int32_t of_unit = group ? group[i] : 0, base = first_group[bin->first + g] - first_group[bin->first];
            bin->of_cell[bin->cells[i] * width + g] = of_unit < 0 ? -1 : base + of_unit;
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

/* Rates [groups of the bin, n_measures]. */
static void rates_of_totals(const double *totals, const void *context, void *scratch, double *out) {
    (void)scratch;
    const struct bin *bin = context;
    const int *first_group = bin->results->first_group;
    int n_columns = bin->n_columns, n_measures = bin->results->n_measures;
    for (int g = first_group[bin->first]; g < first_group[bin->end]; g++, totals += n_columns)
        for (int m = 0; m < n_measures; m++) {
            double n = totals[bin->valid_column[m]];
            *out++ = n > 0 ? totals[1 + m] / n : NAN;
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
            struct lk_disparity *disparity = &results->disparities[g * n_measures + m];
            struct lk_number *number = &disparity->number;
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
            const double *of_groups = values + (first - base) * n_measures + m;
            highest_and_lowest(of_groups, results->first_group[g + 1] - first, n_measures, &disparity->highest,
                               &disparity->lowest);
            number->value = of_groups[disparity->highest * n_measures] - of_groups[disparity->lowest * n_measures];
        }
}

/* Both intervals of the bin's rates. */
static enum lk_code set_intervals(const double *replicates, const struct lk_resampling *how, const struct bin *bin,
                                  struct lk_rate_results *results) {
    size_t n = (size_t)how->n_replicates, n_measures = (size_t)results->n_measures;
    size_t at = (size_t)results->first_group[bin->first] * n_measures;
    size_t n_numbers = (size_t)results->first_group[bin->end] * n_measures - at;
    LK_TRY(lk_intervals_percentile(replicates, n, how, results->numbers + at, n_numbers));
    memcpy(results->expanded + at, results->numbers + at, n_numbers * sizeof *results->numbers);
    if (!how->clusters) return LK_OK;
    return lk_intervals_percentile_each(replicates, n, how, bin->clusters->confidence + at, results->expanded + at,
                                        n_numbers);
}

/* The largest difference that values of a measure can have. */
static double widest(const struct lk_rates *rates, int measure) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < rates->n_units; i++) {
        double value = rates->values[i * (size_t)rates->n_measures + (size_t)measure];
        low = fmin(low, value);
        high = fmax(high, value);
    }
    return high - low;
}

/* values, replicates: of the bin's rates, a row of replicates per rate. */
static enum lk_code set_disparities(const struct lk_rates *rates, const struct lk_resampling *how,
                                    const struct bin *bin, const double *values, const double *replicates,
                                    struct lk_rate_results *results) {
    size_t n = (size_t)how->n_replicates, n_measures = (size_t)results->n_measures;
    int base = results->first_group[bin->first], n_threads = lk_resampling_threads(how);
    double *scratch = lk_malloc(LK_RANGE_SCRATCH_ROWS * n * (size_t)n_threads * sizeof *scratch);
    if (!scratch) return lk_fail(LK_E_NOMEM, "rates: no memory for %zu resamples", n);
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
    for (int i = bin->first * results->n_measures; i < bin->end * results->n_measures; i++) {
        struct lk_disparity *disparity = &results->disparities[i];
        size_t g = (size_t)i / n_measures, m = (size_t)i % n_measures;
        size_t at = (size_t)(results->first_group[g] - base) * n_measures + m;
        if (disparity->number.undefined) continue;
        const struct lk_resampled_groups groups = {.n_groups = results->first_group[g + 1] - results->first_group[g],
                                                   .values = values + at,
                                                   .stride = n_measures,
                                                   .replicates = replicates + at * n,
                                                   .row_stride = n_measures * n,
                                                   .n_replicates = n};
        struct lk_range_options range = {.confidence = how->confidence, .limit = widest(rates, (int)m)};
        if (how->clusters) {
            int first = results->first_group[g], n_valid = 0;
            for (int group = first; group < results->first_group[g + 1]; group++)
                n_valid += !results->numbers[(size_t)group * n_measures + m].undefined;
            range.n_drawn = (double)bin->clusters->n_drawn;
            range.df_all = fmax(1, lk_rate_clusters_all(bin->clusters, (int)n_measures, (int)g, (int)m, n_valid));
            range.df_pair = fmax(1, lk_rate_clusters_pair(bin->clusters, (int)n_measures, (int)g, (int)m,
                                                          first + disparity->highest, first + disparity->lowest));
        }
        lk_range_interval(&groups, &range, scratch + LK_RANGE_SCRATCH_ROWS * n * (size_t)omp_get_thread_num(),
                          &disparity->number);
    }
    lk_free(scratch);
    return LK_OK;
}

/* Totals of cells and groups, values, and the replicates of a bin, in one block. */
static enum lk_code run_bin(const struct lk_rates *rates, const struct lk_resampling *how, const double *columns,
                            const struct bin *bin, struct lk_rate_results *results) {
    size_t n = (size_t)how->n_replicates, width = (size_t)bin->n_columns;
    size_t n_groups = (size_t)(results->first_group[bin->end] - results->first_group[bin->first]);
    size_t n_statistics = n_groups * (size_t)results->n_measures;
    size_t n_cell_totals = (size_t)bin->n_cells * width, n_totals = n_groups * width;
    double *cell_totals = lk_malloc((n_cell_totals + n_totals + n_statistics * (n + 1)) * sizeof *cell_totals);
    if (!cell_totals)
        return lk_fail(LK_E_NOMEM, "rates: no memory for %zu statistics of %zu resamples", n_statistics, n);
    double *totals = cell_totals + n_cell_totals, *values = totals + n_totals, *replicates = values + n_statistics;
    const struct lk_cell_groups groups = {bin->end - bin->first, (int)n_groups, bin->of_cell};
    struct lk_tally tally = {rates->n_units, bin->n_columns, bin->n_cells, columns, bin->cells, &groups};
    lk_tally_totals(&tally, cell_totals);
    lk_tally_groups(&tally, cell_totals, totals);
    rates_of_totals(totals, bin, NULL, values);
    set_estimates(rates, bin, values, results);
    enum lk_code rc = lk_bootstrap_totals(&tally, how, rates_of_totals, bin, 0, (int)n_statistics, replicates);
    if (!rc) rc = set_intervals(replicates, how, bin, results);
    if (!rc) rc = set_disparities(rates, how, bin, values, replicates, results);
    lk_free(cell_totals);
    return rc;
}

static enum lk_code run_bins(const struct lk_rates *rates, const struct lk_resampling *how, const int *valid_column,
                             int n_columns, struct lk_rate_results *results) {
    struct lk_rate_clusters clusters = {0};
    struct bin bin = {.results = results, .valid_column = valid_column, .n_columns = n_columns, .clusters = &clusters};
    if (how->clusters) LK_TRY(lk_rate_clusters_make(rates, how, &clusters));
    double *columns = lk_malloc(rates->n_units * (size_t)n_columns * sizeof *columns);
    bin.cells = lk_malloc(rates->n_units * sizeof *bin.cells);
    enum lk_code rc = LK_OK;
    if (!columns || !bin.cells)
        rc = lk_fail(LK_E_NOMEM, "rates: no memory for %zu units", rates->n_units);
    else
        fill_columns(rates, valid_column, n_columns, columns);
    size_t most_cells = !rc && lk_exact_sums(columns, rates->n_units, n_columns) ? rates->n_units : CELLS_MAX;
    for (; !rc && bin.first < rates->n_groupings; bin.first = bin.end) {
        rc = fill_bin(rates, most_cells, &bin);
        if (!rc) rc = run_bin(rates, how, columns, &bin, results);
        lk_free(bin.of_cell);
        bin.of_cell = NULL;
    }
    lk_free(columns);
    lk_free(bin.cells);
    lk_rate_clusters_free(&clusters);
    return rc;
}

static enum lk_code no_units(struct lk_rate_results *results) {
    int n_rates = results->n_groups * results->n_measures, n_disparities = results->n_groupings * results->n_measures;
    for (int i = 0; i < n_rates; i++) results->numbers[i].undefined = results->expanded[i].undefined = "no valid unit";
    for (int i = 0; i < n_disparities; i++)
        results->disparities[i] =
            (struct lk_disparity){{.undefined = "fewer than two groups with valid units"}, -1, -1};
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
    *out = results;
    return LK_OK;
}
