/* Queries: what they may do, the statistics that they may call, and their rows. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/names.h"
#include "eval/intake/internal.h"
#include "eval/stats/crossed/crossed.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/proportion.h"
#include "eval/stats/tests/count_tests.h"

static const double LEAST_SEEN = 0.5; /* share of the cells, sources by prompts, that a rate is estimated from */

enum { MAX_SQL = 100000, MAX_ROWS = 1000000, STEPS_PER_CALL = 10000 };

/* Clusters of values, numbered as they come: by a row's number or by a name. */
struct keys {
    struct lk_names names;
    int32_t *of_name, *of_row; /* number of a name; of a row, -1: none yet */
    size_t of_name_capacity, of_row_capacity, n_rows;
    int32_t n;
    int32_t *of; /* of each value */
    size_t capacity;
};

/* What an aggregate has been given. */
struct gathered {
    double *values;
    size_t n, values_capacity;
    struct keys clusters, prompts; /* the latter empty where no prompt is given */
};

static void keys_free(struct keys *k) {
    lk_free(k->of_name);
    lk_free(k->of_row);
    lk_free(k->of);
    lk_names_free(&k->names);
}

static void gathered_free(struct gathered *g) {
    lk_free(g->values);
    keys_free(&g->clusters);
    keys_free(&g->prompts);
}

static enum lk_code key_of_row(struct keys *k, size_t row, int32_t *out) {
    LK_TRY(lk_grow(&k->of_row, &k->of_row_capacity, row + 1, sizeof *k->of_row));
    while (k->n_rows <= row) k->of_row[k->n_rows++] = -1;
    if (k->of_row[row] < 0) k->of_row[row] = k->n++;
    *out = k->of_row[row];
    return LK_OK;
}

static enum lk_code key_of_name(struct keys *k, const char *text, int32_t *out) {
    const size_t before = k->names.n;
    int32_t name;
    LK_TRY(lk_names_number(&k->names, text, strlen(text), &name));
    LK_TRY(lk_grow(&k->of_name, &k->of_name_capacity, k->names.n, sizeof *k->of_name));
    if (k->names.n > before) k->of_name[name] = k->n++;
    *out = k->of_name[name];
    return LK_OK;
}

/* The key of the n-th value. */
static enum lk_code add_key(struct keys *k, sqlite3_value *value, size_t n) {
    const int64_t row = sqlite3_value_type(value) == SQLITE_INTEGER ? sqlite3_value_int64(value) : -1;
    const char *text = row < 0 || row > MAX_ROWS ? (const char *)sqlite3_value_text(value) : NULL;
    LK_TRY(lk_grow(&k->of, &k->capacity, n + 1, sizeof *k->of));
    return row >= 0 && row <= MAX_ROWS ? key_of_row(k, (size_t)row, &k->of[n])
                                       : key_of_name(k, text ? text : "", &k->of[n]);
}

static void gather(sqlite3_context *context, int n_arguments, sqlite3_value **arguments) {
    struct gathered *g = sqlite3_aggregate_context(context, sizeof *g);
    if (!g || sqlite3_value_type(arguments[0]) == SQLITE_NULL) return;
    enum lk_code rc = add_key(&g->clusters, arguments[1], g->n);
    if (!rc && n_arguments > 2) rc = add_key(&g->prompts, arguments[2], g->n);
    if (!rc) rc = lk_grow(&g->values, &g->values_capacity, g->n + 1, sizeof *g->values);
    if (rc) {
        sqlite3_result_error_nomem(context);
        return;
    }
    g->values[g->n++] = sqlite3_value_double(arguments[0]);
}

enum end { RATE_LOW, RATE_HIGH, MEAN_LOW, MEAN_HIGH, RATE_BOTH };

/* adjusted: the rate that the interval is of, where it is not that of what is there; NaN. */
static void give(sqlite3_context *context, enum end end, double low, double high, double adjusted) {
    const bool rate = end == RATE_LOW || end == RATE_HIGH || end == RATE_BOTH;
    const double both[3] = {rate ? fmin(fmax(low, 0), 1) : low, rate ? fmin(fmax(high, 0), 1) : high, adjusted};
    if (end == RATE_BOTH)
        sqlite3_result_blob(context, both, sizeof both, SQLITE_TRANSIENT);
    else
        sqlite3_result_double(context, both[end == RATE_HIGH || end == MEAN_HIGH]);
}

/* Of a mean of the sources, prompts as given: none where all sources are alike. */
static void by_source(sqlite3_context *context, const struct gathered *g, enum end end, double alpha) {
    struct lk_cluster_mean mean;
    const struct lk_number *cr2 = &mean.cr2;
    if (lk_cluster_mean(g->values, g->clusters.of, g->n, 1 - alpha, &mean) || cr2->undefined || mean.n_clusters < 2)
        return;
    if (cr2->low != 0 || cr2->high != 0) give(context, end, cr2->low, cr2->high, NAN);
}

/* Of the share of all outputs, where most sources have not met most prompts: the squared widths of the intervals by
 * source and by prompt are added, which counts twice what is an output's own. Where all are alike, Wilson's of as many
 * outputs as sources. */
static void by_either(sqlite3_context *context, const struct gathered *g, enum end end, double alpha) {
    struct lk_cluster_mean sources, prompts;
    struct lk_number alike;
    double sum = 0;
    for (size_t i = 0; i < g->n; i++) sum += g->values[i];
    const double mean = sum / (double)g->n;
    if (mean <= 0 || mean >= 1) {
        const int64_t n = g->clusters.n;
        if (!lk_proportion(mean > 0 ? n : 0, n, LK_WILSON, 1 - alpha, &alike) && !alike.undefined)
            give(context, end, alike.low, alike.high, NAN);
        return;
    }
    if (lk_cluster_mean(g->values, g->clusters.of, g->n, 1 - alpha, &sources) || sources.cr2.undefined ||
        lk_cluster_mean(g->values, g->prompts.of, g->n, 1 - alpha, &prompts) || prompts.cr2.undefined)
        return;
    const double of_sources = sources.cr2.high - mean, of_prompts = prompts.cr2.high - mean;
    const double width = sqrt(of_sources * of_sources + of_prompts * of_prompts);
    give(context, end, mean - width, mean + width, NAN);
}

/* Of a share among people and prompts like these, near 0 and 1 too. Each source and prompt counts alike: where some
 * have fewer outputs than others the rate is another than that of all outputs. */
static enum lk_code by_both(sqlite3_context *context, const struct gathered *g, enum end end, double alpha) {
    const size_t n_s = (size_t)g->clusters.n, n_p = (size_t)g->prompts.n;
    int32_t *zeros = lk_calloc(n_s + n_p + 1, sizeof *zeros);
    double *z = lk_calloc(2 * n_s * n_p + 1, sizeof *z), *n = z ? z + n_s * n_p : NULL;
    int64_t *outputs = lk_calloc(n_s + 1, sizeof *outputs);
    struct lk_residual_maker prompts = {0};
    enum lk_code rc = zeros && z && outputs ? LK_OK : LK_E_NOMEM;
    struct lk_crossed_table table = {.n_sources = (int)n_s, .n_prompts = (int)n_p, .z = z, .prompts_are_all = n_p == 1};
    const struct lk_levels one = {zeros, 1};
    struct lk_crossed_rate rate = {0};
    double sum = 0;
    for (size_t i = 0; i < g->n && !rc; i++) {
        const size_t source = (size_t)g->clusters.of[i], cell = source * n_p + (size_t)g->prompts.of[i];
        z[cell] += g->values[i], n[cell]++, outputs[source]++;
        sum += g->values[i];
    }
    for (size_t i = 0; i < n_s * n_p && !rc; i++) z[i] = n[i] > 0 ? z[i] / n[i] : NAN;
    if (!rc) rc = lk_crossed_fill(z, (int)n_s, (int)n_p, &table.share_seen);
    if (!rc) rc = lk_residual_maker((int)n_p, &one, 1, &prompts);
    if (!rc) rc = lk_crossed_rates(&table, &one, &prompts, outputs, 1 - alpha, &rate, NULL);
    const double adjusted = fabs(rate.rate - sum / (double)g->n) > 1e-9 ? rate.rate : NAN;
    if (!rc && table.share_seen < LEAST_SEEN)
        by_either(context, g, end, alpha);
    else if (!rc && !rate.undefined)
        give(context, end, rate.low, rate.high, adjusted);
    lk_residual_maker_free(&prompts);
    lk_free(zeros);
    lk_free(z);
    lk_free(outputs);
    return rc == LK_E_NOMEM ? rc : LK_OK;
}

static void finish(sqlite3_context *context, enum end end) {
    const struct lk_audit *audit = sqlite3_user_data(context);
    struct gathered *g = sqlite3_aggregate_context(context, 0);
    if (!g) return; /* no row: NULL */
    if (g->prompts.n && by_both(context, g, end, audit->alpha))
        sqlite3_result_error_nomem(context);
    else if (!g->prompts.n && g->n)
        by_source(context, g, end, audit->alpha);
    gathered_free(g);
}

static void rate_low(sqlite3_context *context) { finish(context, RATE_LOW); }
static void rate_high(sqlite3_context *context) { finish(context, RATE_HIGH); }
static void rate_both(sqlite3_context *context) { finish(context, RATE_BOTH); }
static void mean_low(sqlite3_context *context) { finish(context, MEAN_LOW); }
static void mean_high(sqlite3_context *context) { finish(context, MEAN_HIGH); }

/* Of k in n requests as if each were independent: Wilson's interval, Clopper and Pearson's where k is small. */
static void share(sqlite3_context *context, sqlite3_value **arguments, bool high) {
    const struct lk_audit *audit = sqlite3_user_data(context);
    const int64_t k = sqlite3_value_int64(arguments[0]), n = sqlite3_value_int64(arguments[1]);
    struct lk_number rate;
    if (lk_proportion(k, n, k <= LK_FEW_OUTCOMES ? LK_CLOPPER_PEARSON : LK_WILSON, 1 - audit->alpha, &rate) ||
        rate.undefined)
        return;
    sqlite3_result_double(context, high ? rate.high : rate.low);
}

/* An end of what rate_interval gives: NULL of another value. */
static void end_of(sqlite3_context *context, sqlite3_value *interval, int end) {
    double both[3];
    if (sqlite3_value_type(interval) != SQLITE_BLOB || sqlite3_value_bytes(interval) != sizeof both) return;
    memcpy(both, sqlite3_value_blob(interval), sizeof both);
    if (!isnan(both[end])) sqlite3_result_double(context, both[end]);
}

static void interval_low(sqlite3_context *context, int n, sqlite3_value **arguments) {
    (void)n;
    end_of(context, arguments[0], 0);
}

static void interval_high(sqlite3_context *context, int n, sqlite3_value **arguments) {
    (void)n;
    end_of(context, arguments[0], 1);
}

static void interval_rate(sqlite3_context *context, int n, sqlite3_value **arguments) {
    (void)n;
    end_of(context, arguments[0], 2);
}

static void share_low(sqlite3_context *context, int n, sqlite3_value **arguments) {
    (void)n;
    share(context, arguments, false);
}

static void share_high(sqlite3_context *context, int n, sqlite3_value **arguments) {
    (void)n;
    share(context, arguments, true);
}

static void mcnemar_p(sqlite3_context *context, int n, sqlite3_value **arguments) {
    struct lk_test test;
    (void)n;
    if (!lk_mcnemar(sqlite3_value_int64(arguments[0]), sqlite3_value_int64(arguments[1]), LK_MCNEMAR_EXACT, &test) &&
        !test.undefined)
        sqlite3_result_double(context, test.p);
}

enum lk_code lk_audit_functions(struct lk_audit *a) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    const struct {
        const char *name;
        void (*finish)(sqlite3_context *);
    } aggregates[] = {{"rate_low", rate_low},
                      {"rate_high", rate_high},
                      {"rate_interval", rate_both},
                      {"mean_low", mean_low},
                      {"mean_high", mean_high}};
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates; i++)
        for (int n = 2; n <= (i < 3 ? 3 : 2); n++)
            if (sqlite3_create_function_v2(a->sql.db, aggregates[i].name, n, flags, a, NULL, gather,
                                           aggregates[i].finish, NULL))
                return lk_fail(LK_E_NOMEM, "out of memory for the audit");
    const struct {
        const char *name;
        int n;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } scalars[] = {{"interval_low", 1, interval_low},   {"interval_rate", 1, interval_rate},
                   {"interval_high", 1, interval_high}, {"share_low", 2, share_low},
                   {"share_high", 2, share_high},       {"mcnemar_p", 2, mcnemar_p}};
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        if (sqlite3_create_function_v2(a->sql.db, scalars[i].name, scalars[i].n, flags, a, scalars[i].call, NULL, NULL,
                                       NULL))
            return lk_fail(LK_E_NOMEM, "out of memory for the audit");
    sqlite3_limit(a->sql.db, SQLITE_LIMIT_SQL_LENGTH, MAX_SQL);
    return LK_OK;
}

/* SELECT alone: no table is changed, no file attached, no setting set. */
static int authorise(void *context, int action, const char *a, const char *b, const char *c, const char *d) {
    (void)context, (void)a, (void)c, (void)d;
    if (action == SQLITE_FUNCTION && b && !strcasecmp(b, "load_extension")) return SQLITE_DENY;
    return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION || action == SQLITE_RECURSIVE
               ? SQLITE_OK
               : SQLITE_DENY;
}

static int column_of(const struct lk_audit_row *row, const char *column) {
    const int n = sqlite3_column_count(row->statement);
    for (int i = 0; i < n; i++)
        if (!strcmp(sqlite3_column_name(row->statement, i), column))
            return sqlite3_column_type(row->statement, i) == SQLITE_NULL ? -1 : i;
    return -1;
}

const char *lk_audit_text(const struct lk_audit_row *row, const char *column) {
    const int i = column_of(row, column);
    return i < 0 ? NULL : (const char *)sqlite3_column_text(row->statement, i);
}

bool lk_audit_number(const struct lk_audit_row *row, const char *column, double *out) {
    const int i = column_of(row, column);
    if (i >= 0) *out = sqlite3_column_double(row->statement, i);
    return i >= 0;
}

/* A query that never ends (WITH RECURSIVE without LIMIT) must not hold a report for ever. */
static int count_steps(void *context) {
    struct lk_audit *a = context;
    a->n_steps += STEPS_PER_CALL;
    return a->n_steps > a->max_steps;
}

static enum lk_code refuse(struct lk_audit *a, const char *what) {
    const int code = sqlite3_errcode(a->sql.db);
    if (code == SQLITE_INTERRUPT)
        return lk_fail(LK_E_INPUT,
                       "query: expected an end within %" PRId64
                       " steps; give joins a condition and recursive queries a LIMIT",
                       a->max_steps);
    if (code == SQLITE_NOMEM) return lk_fail(LK_E_NOMEM, "query: out of memory");
    if (code == SQLITE_AUTH)
        return lk_fail(LK_E_INPUT, "query: only SELECT is allowed (%s)", sqlite3_errmsg(a->sql.db));
    return lk_fail(LK_E_INPUT, "query: %s%s", what, sqlite3_errmsg(a->sql.db));
}

static enum lk_code each_row(struct lk_audit *a, sqlite3_stmt *statement, lk_audit_row_fn *fn, void *context) {
    const struct lk_audit_row row = {statement};
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) LK_TRY(fn(context, &row));
    return step == SQLITE_DONE ? LK_OK : refuse(a, "");
}

enum lk_code lk_audit_each(struct lk_audit *a, const char *sql, lk_audit_row_fn *fn, void *context) {
    sqlite3_stmt *statement = NULL;
    const char *rest = "";
    a->n_steps = 0;
    sqlite3_set_authorizer(a->sql.db, authorise, NULL);
    sqlite3_progress_handler(a->sql.db, STEPS_PER_CALL, count_steps, a);
    enum lk_code rc = sqlite3_prepare_v2(a->sql.db, sql, -1, &statement, &rest) ? refuse(a, "") : LK_OK;
    if (!rc && !statement) rc = lk_fail(LK_E_INPUT, "query: expected a SELECT, got nothing");
    if (!rc && rest[strspn(rest, " \t\r\n;")]) rc = lk_fail(LK_E_INPUT, "query: expected one SELECT, got more");
    if (!rc && !sqlite3_stmt_readonly(statement)) rc = lk_fail(LK_E_INPUT, "query: only SELECT is allowed");
    if (!rc) rc = each_row(a, statement, fn, context);
    sqlite3_finalize(statement);
    sqlite3_progress_handler(a->sql.db, 0, NULL, NULL);
    sqlite3_set_authorizer(a->sql.db, NULL, NULL);
    return rc;
}

static enum lk_code add_row(void *context, const struct lk_audit_row *row) {
    struct lk_table *table = context;
    sqlite3_stmt *q = row->statement;
    const int n = sqlite3_column_count(q);
    if (table->n_rows == MAX_ROWS) return lk_fail(LK_E_INPUT, "query: expected at most %d rows; add LIMIT", MAX_ROWS);
    const bool first = !table->n_columns;
    for (int i = 0; i < n && first; i++) {
        char name[100]; /* a "|" in it would make two columns */
        snprintf(name, sizeof name, "%s", sqlite3_column_name(q, i));
        for (char *at = name; *at; at++)
            if (*at == '|') *at = '/';
        const bool number = sqlite3_column_type(q, i) == SQLITE_INTEGER || sqlite3_column_type(q, i) == SQLITE_FLOAT;
        lk_table_column(table, name, number ? LK_ALIGN_RIGHT : LK_ALIGN_LEFT);
    }
    lk_table_row(table);
    for (int i = 0; i < n; i++) switch (sqlite3_column_type(q, i)) {
        case SQLITE_NULL:
            lk_table_none(table, "NULL");
            break;
        case SQLITE_INTEGER:
            lk_table_count(table, sqlite3_column_int64(q, i));
            break;
        case SQLITE_FLOAT:
            lk_table_fixed(table, sqlite3_column_double(q, i), 4);
            break;
        default:
            lk_table_text(table, "%s", (const char *)sqlite3_column_text(q, i));
        }
    return LK_OK;
}

enum lk_code lk_audit_query(struct lk_audit *a, const char *sql, struct lk_table **out) {
    LK_TRY(lk_table_new(out, "query", sql, NULL));
    enum lk_code rc = lk_audit_each(a, sql, add_row, *out);
    if (!rc && !(*out)->n_columns) lk_table_column(*out, "no rows", LK_ALIGN_LEFT);
    if (!rc) rc = lk_table_finish(*out);
    if (rc) {
        lk_table_free(*out);
        *out = NULL;
    }
    return rc;
}
