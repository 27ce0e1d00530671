/* Aggregates of queries that resample clusters: boot_low and boot_high (value, cluster) of a mean, with a third
 * argument, 0 or 1, of the difference of the means of those with 1 and those with 0, of which boot_p says how likely it
 * is to be none. Fewer than 5 clusters (on either side): NULL. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/names.h"
#include "eval/intake/internal.h"
#include "eval/stats/resampling/bootstrap.h"

enum { N_DRAWS = 10000, LEAST_CLUSTERS = 5 };

struct gathered {
    double (*rows)[4]; /* sums and numbers of the two sides */
    int32_t *clusters;
    size_t n, rows_capacity, clusters_capacity;
    struct lk_names names;
    bool sides, failed;
};

static void gather(sqlite3_context *context, int n_arguments, sqlite3_value **arguments) {
    struct gathered *g = sqlite3_aggregate_context(context, sizeof *g);
    if (!g || sqlite3_value_type(arguments[0]) == SQLITE_NULL) return;
    const char *cluster = (const char *)sqlite3_value_text(arguments[1]);
    const int side = n_arguments > 2 && sqlite3_value_int(arguments[2]) ? 1 : 0;
    int32_t number;
    g->sides = n_arguments > 2;
    if (!cluster) cluster = "";
    if (g->failed || lk_names_number(&g->names, cluster, strlen(cluster), &number) ||
        lk_grow(&g->rows, &g->rows_capacity, g->n + 1, sizeof *g->rows) ||
        lk_grow(&g->clusters, &g->clusters_capacity, g->n + 1, sizeof *g->clusters)) {
        g->failed = true;
        return;
    }
    g->clusters[g->n] = number;
    memset(g->rows[g->n], 0, sizeof *g->rows);
    g->rows[g->n][2 * side] = sqlite3_value_double(arguments[0]);
    g->rows[g->n++][2 * side + 1] = 1;
}

/* Of a resample: the mean, or the difference of the sides' means. */
static void statistic(const double *totals, const void *context, void *scratch, double *out) {
    const bool sides = *(const bool *)context;
    const double zero = totals[1] > 0 ? totals[0] / totals[1] : NAN, one = totals[3] > 0 ? totals[2] / totals[3] : NAN;
    (void)scratch;
    *out = sides ? one - zero : zero;
}

static bool enough(const struct gathered *g) {
    size_t n[2] = {0, 0};
    for (int side = 0; side < 2; side++)
        for (size_t c = 0; c < g->names.n; c++) {
            bool any = false;
            for (size_t i = 0; i < g->n && !any; i++)
                any = g->clusters[i] == (int32_t)c && g->rows[i][2 * side + 1] > 0;
            n[side] += any;
        }
    return n[0] >= LEAST_CLUSTERS && (!g->sides || n[1] >= LEAST_CLUSTERS);
}

/* Two-sided, of the share of resamples on the other side of zero. */
static double p_value(const double *replicates) {
    size_t below = 0, above = 0, n = 0;
    for (int i = 0; i < N_DRAWS; i++) {
        if (!isfinite(replicates[i])) continue;
        below += replicates[i] <= 0;
        above += replicates[i] >= 0;
        n++;
    }
    return fmin(1, 2 * (double)((below < above ? below : above) + 1) / (double)(n + 1));
}

enum end { LOW, HIGH, P };

static void finish(sqlite3_context *context, enum end end) {
    const struct lk_audit *audit = sqlite3_user_data(context);
    struct gathered *g = sqlite3_aggregate_context(context, 0);
    if (!g) return; /* no row: NULL */
    double *replicates = lk_calloc(N_DRAWS, sizeof *replicates);
    struct lk_resampling how = LK_RESAMPLING;
    struct lk_number number = {0};
    const struct lk_tally tally = {.n_units = g->n, .n_columns = 4, .n_cells = 1, .columns = g->rows ? *g->rows : NULL};
    how.seed = audit->seed;
    how.n_replicates = N_DRAWS;
    how.confidence = 1 - audit->alpha;
    how.clusters = g->clusters;
    bool failed = g->failed || !replicates;
    if (!failed && enough(g)) {
        failed = lk_bootstrap_totals(&tally, &how, statistic, &g->sides, 0, 1, replicates) != LK_OK;
        if (!failed && end == P) sqlite3_result_double(context, p_value(replicates));
        if (!failed && end != P) {
            failed = lk_interval_percentile(replicates, N_DRAWS, how.confidence, &number) != LK_OK;
            sqlite3_result_double(context, end == LOW ? number.low : number.high);
        }
    }
    if (failed) sqlite3_result_error_nomem(context);
    lk_free(replicates);
    lk_free(g->rows);
    lk_free(g->clusters);
    lk_names_free(&g->names);
}

static void low(sqlite3_context *context) { finish(context, LOW); }
static void high(sqlite3_context *context) { finish(context, HIGH); }
static void p(sqlite3_context *context) { finish(context, P); }

enum lk_code lk_audit_resampled(struct lk_audit *a) {
    const struct {
        const char *name;
        void (*finish)(sqlite3_context *);
    } aggregates[] = {{"boot_low", low}, {"boot_high", high}, {"boot_p", p}};
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates; i++)
        for (int n = 2; n <= 3; n++)
            if (sqlite3_create_function_v2(a->sql.db, aggregates[i].name, n, SQLITE_UTF8 | SQLITE_DETERMINISTIC, a,
                                           NULL, gather, aggregates[i].finish, NULL))
                return lk_fail(LK_E_NOMEM, "out of memory for the audit");
    return LK_OK;
}
