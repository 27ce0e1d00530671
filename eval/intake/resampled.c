/* Aggregates of queries that resample clusters: boot_low and boot_high (value, cluster) of a mean, with a third
 * argument, 0 or 1, of the difference of the means of those with 1 and those with 0, and boot_p, the level at which
 * that interval touches zero. Expanded percentiles (eval/stats/resampling/bootstrap.h). Fewer than 5 clusters, on
 * either side: NULL. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/names.h"
#include "eval/intake/internal.h"
#include "eval/stats/resampling/bootstrap.h"
#include "eval/stats/special/special.h"

enum { N_DRAWS = 10000, LEAST_CLUSTERS = 5 };

struct gathered {
    double *values;
    int32_t *clusters, *sides;
    size_t n, values_capacity, clusters_capacity, sides_capacity;
    struct lk_names names;
    bool two, failed;
};

static void gather(sqlite3_context *context, int n_arguments, sqlite3_value **arguments) {
    struct gathered *g = sqlite3_aggregate_context(context, sizeof *g);
    if (!g || sqlite3_value_type(arguments[0]) == SQLITE_NULL) return;
    const char *cluster = (const char *)sqlite3_value_text(arguments[1]);
    int32_t number;
    g->two = n_arguments > 2;
    if (!cluster) cluster = "";
    if (g->failed || lk_names_number(&g->names, cluster, strlen(cluster), &number) ||
        lk_grow(&g->values, &g->values_capacity, g->n + 1, sizeof *g->values) ||
        lk_grow(&g->clusters, &g->clusters_capacity, g->n + 1, sizeof *g->clusters) ||
        lk_grow(&g->sides, &g->sides_capacity, g->n + 1, sizeof *g->sides)) {
        g->failed = true;
        return;
    }
    g->values[g->n] = sqlite3_value_double(arguments[0]);
    g->clusters[g->n] = number;
    g->sides[g->n++] = g->two && sqlite3_value_int(arguments[2]) ? 1 : 0;
}

/* The clusters of each side. */
static void count(const struct gathered *g, size_t n[2]) {
    for (int side = 0; side < 2; side++)
        for (size_t c = 0; c < g->names.n; c++) {
            bool any = false;
            for (size_t i = 0; i < g->n && !any; i++) any = g->clusters[i] == (int32_t)c && g->sides[i] == side;
            n[side] += any;
        }
}

static bool enough(const struct gathered *g) {
    size_t n[2] = {0, 0};
    count(g, n);
    return n[0] >= LEAST_CLUSTERS && (!g->two || n[1] >= LEAST_CLUSTERS);
}

static enum lk_code interval(const struct gathered *g, const struct lk_audit *audit, struct lk_number *out) {
    struct lk_resampling how = LK_RESAMPLING;
    how.seed = audit->seed;
    how.n_replicates = N_DRAWS;
    how.confidence = 1 - audit->alpha;
    how.clusters = g->clusters;
    if (g->two) return lk_bootstrap_difference(g->values, g->sides, g->n, &how, LK_INTERVAL_EXPANDED, out);
    return lk_bootstrap_mean(g->values, g->n, &how, LK_INTERVAL_EXPANDED, out);
}

/* Totals: count and sum of each side. */
static void difference(const double *totals, const void *context, void *scratch, double *out) {
    (void)context, (void)scratch;
    *out = totals[0] > 0 && totals[2] > 0 ? totals[3] / totals[2] - totals[1] / totals[0] : NAN;
}

/* From the share of resamples beyond zero, as the expanded interval takes shares of them (lk_expanded_confidence). */
static enum lk_code p_value(const struct gathered *g, const struct lk_audit *audit, double *p) {
    double *columns = lk_calloc(2 * g->n + N_DRAWS, sizeof *columns), *replicates = columns + 2 * g->n;
    const struct lk_tally tally = {
        .n_units = g->n, .n_columns = 2, .n_cells = 2, .columns = columns, .cells = g->sides};
    struct lk_resampling how = LK_RESAMPLING;
    size_t clusters[2] = {0, 0}, below = 0, above = 0, n = 0;
    if (!columns) return LK_E_NOMEM;
    how.seed = audit->seed;
    how.n_replicates = N_DRAWS;
    how.clusters = g->clusters;
    for (size_t i = 0; i < g->n; i++) columns[2 * i] = 1, columns[2 * i + 1] = g->values[i];
    count(g, clusters);
    enum lk_code rc = lk_bootstrap_totals(&tally, &how, difference, NULL, 0, 1, replicates);
    for (int i = 0; i < N_DRAWS && !rc; i++) {
        below += replicates[i] <= 0;
        above += replicates[i] >= 0;
        n += isfinite(replicates[i]) != 0;
    }
    lk_free(columns);
    const double drawn = (double)g->names.n, share = (double)((below < above ? below : above) + 1) / (double)(n + 1);
    const double t = -lk_normal_quantile(share) / sqrt(drawn / (drawn - 1));
    *p = share >= 0.5 ? 1 : lk_t_two_sided(t, lk_expanded_df((double)clusters[0], (double)clusters[1]));
    return rc;
}

enum end { LOW, HIGH, P };

static void finish(sqlite3_context *context, enum end end) {
    const struct lk_audit *audit = sqlite3_user_data(context);
    struct gathered *g = sqlite3_aggregate_context(context, 0);
    if (!g) return; /* no row: NULL */
    struct lk_number number = {0};
    double p = 1;
    bool failed = g->failed;
    if (!failed && enough(g)) {
        failed = (end == P ? p_value(g, audit, &p) : interval(g, audit, &number)) != LK_OK;
        if (!failed && !number.undefined)
            sqlite3_result_double(context, end == P ? p : end == LOW ? number.low : number.high);
    }
    if (failed) sqlite3_result_error_nomem(context);
    lk_free(g->values);
    lk_free(g->clusters);
    lk_free(g->sides);
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
