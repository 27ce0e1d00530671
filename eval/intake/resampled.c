#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/names.h"
#include "eval/intake/internal.h"
#include "eval/scores/group_words.h"
#include "eval/stats/resampling/bootstrap.h"
#include "eval/stats/special/special.h"

/* Rewritten prompts in the store: a unit is a source and a prompt of a model, whatever the number of seeds; and the
 * words that name a group which the rewriter added, removed and kept. */

const char lk_audit_rewrite_schema[] =
    "CREATE TABLE rewrite(unit INTEGER PRIMARY KEY, model_key TEXT, experiment TEXT, source_id TEXT, source2_id TEXT, "
    "prompt_id TEXT, arm TEXT, style TEXT, rewriter TEXT, original TEXT, prompt TEXT, tries INTEGER, failed INTEGER, "
    "other_language INTEGER, length_ratio REAL, UNIQUE(model_key, experiment, source_id, source2_id, prompt_id, arm));"
    "CREATE TABLE group_word(category TEXT, level TEXT, position INTEGER);"
    "CREATE TABLE rewrite_word(unit INTEGER, category TEXT, level TEXT, what TEXT, agrees INTEGER);"
    "CREATE INDEX rewrite_word_units ON rewrite_word(unit, category, level);";

bool lk_audit_any_rewrite(const struct lk_audit *a) { return a->any_rewrite; }

/* "any" of a category stands before its levels. */
static enum lk_code add_levels(struct lk_audit *a) {
    for (int i = 0; i < lk_n_group_words; i++) {
        const struct lk_group_word word = *lk_group_word(i);
        if (!i || strcmp(lk_group_word(i - 1)->category, word.category) != 0)
            LK_TRY(lk_sql_run(&a->sql, "INSERT INTO group_word VALUES(?1,'any',?2)", "ti", word.category,
                              (int64_t)(2 * i)));
        LK_TRY(lk_sql_run(&a->sql, "INSERT INTO group_word VALUES(?1,?2,?3)", "tti", word.category, word.level,
                          (int64_t)(2 * i + 1)));
    }
    return LK_OK;
}

/* The attributes whose levels the words of a category are about, by their names. */
static bool is_about(const char *attribute, const char *category) {
    static const char *const names[][4] = {
        {"gender", "gender", "sex", NULL}, {"race", "race", "ethnicity", NULL}, {"age", "age", "age_group", NULL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int k = 1; !strcmp(names[i][0], category) && names[i][k]; k++)
            if (!strcasecmp(names[i][k], attribute)) return true;
    return false;
}

/* 1: the word names what the source's label is, 0: another, -1: the source has no such label. */
static int agrees(const struct lk_study *study, const struct lk_study_source *source,
                  const struct lk_group_word *word) {
    int n, is = -1;
    const struct lk_attribute *attributes = lk_study_attributes(study, &n);
    for (int i = 0; i < n && is < 0; i++) {
        const struct lk_attribute *t = &attributes[i];
        if (t->of || !is_about(t->name, word->category)) continue;
        is = lk_group_word_is(word->category, word->level, t->keys[source->level[i]]);
        if (is < 0) is = lk_group_word_is(word->category, word->level, t->displays[source->level[i]]);
    }
    return is;
}

static enum lk_code add_word(struct lk_audit *a, int64_t unit, const char *category, const char *level,
                             const char *what, int is) {
    return lk_sql_run(&a->sql,
                      is < 0 ? "INSERT INTO rewrite_word VALUES(?1,?2,?3,?4,NULL)"
                             : "INSERT INTO rewrite_word VALUES(?1,?2,?3,?4,?5)",
                      is < 0 ? "ittt" : "ittti", unit, category, level, what, (int64_t)is);
}

static enum lk_code add_words(struct lk_audit *a, const struct lk_study *study, const struct lk_study_job *job,
                              int64_t unit) {
    const uint64_t before = lk_group_words(job->original_prompt), after = lk_group_words(job->final_prompt);
    const struct lk_study_source *source = lk_study_source(study, job->sources[0]);
    char category[20] = "";
    int any = -2; /* of the category: what its added words are together; -2: none is added */
    for (int i = 0; i <= lk_n_group_words; i++) {
        const struct lk_group_word word = *lk_group_word(i);
        if (strcmp(word.category, category) != 0) {
            if (any > -2) LK_TRY(add_word(a, unit, category, "any", "added", any));
            snprintf(category, sizeof category, "%s", word.category);
            any = -2;
        }
        const bool was = before >> i & 1, is = after >> i & 1;
        if (i == lk_n_group_words || (!was && !is)) continue;
        const int agreed = job->n_sources == 1 ? agrees(study, source, &word) : -1;
        LK_TRY(add_word(a, unit, word.category, word.level, was && is ? "kept" : is ? "added" : "removed", agreed));
        if (is && !was) any = any == -2 ? agreed : any == 0 || agreed == 0 ? 0 : any;
    }
    return LK_OK;
}

enum lk_code lk_audit_add_rewrite(struct lk_audit *a, const struct lk_study *study, const struct lk_study_job *job) {
    const char *sources[2] = {"", ""};
    if (!job->rewrite) return LK_OK;
    if (!a->any_rewrite) LK_TRY(add_levels(a));
    a->any_rewrite = true;
    for (int i = 0; i < job->n_sources; i++) sources[i] = lk_study_source(study, job->sources[i])->id;
    cJSON *record = cJSON_Parse(job->rewrite->record);
    const cJSON *tries = cJSON_GetObjectItemCaseSensitive(record, "tries");
    const double n_before = (double)strlen(job->original_prompt), n_after = (double)strlen(job->final_prompt);
    enum lk_code rc =
        lk_sql_run(&a->sql,
                   "INSERT OR IGNORE INTO rewrite(model_key, experiment, source_id, source2_id, prompt_id, arm, style, "
                   "rewriter, original, prompt, tries, failed, other_language, length_ratio) "
                   "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
                   "ttttttttttiiid", job->model_key, job->experiment, sources[0], sources[1], job->prompt->id,
                   lk_factor_key(LK_FACTOR_ARM, job->arm), job->rewriter->style, job->rewriter->name,
                   job->original_prompt, job->rewrite->prompt,
                   cJSON_IsNumber(tries) ? (int64_t)tries->valuedouble : (int64_t)0, (int64_t)!job->rewrite->prompt,
                   (int64_t)(lk_other_language(job->original_prompt) || lk_other_language(job->final_prompt)),
                   n_before > 0 ? n_after / n_before : 1);
    cJSON_Delete(record);
    if (rc || !sqlite3_changes(a->sql.db) || !job->rewrite->prompt || !job->n_sources) return rc;
    return add_words(a, study, job, sqlite3_last_insert_rowid(a->sql.db));
}

/* Aggregates of queries that resample clusters: boot_low and boot_high (value, cluster) of a mean, with a third
 * argument, 0 or 1, of the difference of the means of those with 1 and those with 0, and boot_p, the level at which
 * that interval touches zero. Expanded percentiles (eval/stats/resampling/bootstrap.h). Fewer than 5 clusters, on
 * either side: NULL. */

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
