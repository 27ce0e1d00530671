#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/human/ratings.h"
#include "eval/survey/store.h"

enum { DAY_MS = 24 * 3600 * 1000, FEW_HITS = 5, MANY_FAILURES_PERCENT = 30 };

static enum lk_code count_days(struct lk_survey *s, struct lk_survey_counts *out) {
    sqlite3_stmt *q;
    LK_TRY(lk_sql_open(&s->sql, &q,
                       "SELECT date(at/1000,'unixepoch') AS day, sum(kind=0), sum(kind=1) FROM (SELECT at, 0 AS kind "
                       "FROM read_answers WHERE key<>'comment' UNION ALL SELECT submitted_at, 1 FROM read_claims WHERE "
                       "state='submitted') GROUP BY day ORDER BY day DESC LIMIT 31",
                       ""));
    enum lk_code rc = LK_OK;
    for (bool row = true; !rc && row && out->n_days < 31;) {
        rc = lk_sql_step(&s->sql, q, &row);
        if (rc || !row) break;
        struct lk_survey_day *day = &out->days[out->n_days++];
        snprintf(day->date, sizeof day->date, "%s", lk_sql_text(q, 0));
        day->n_answers = sqlite3_column_int(q, 1);
        day->n_submitted = sqlite3_column_int(q, 2);
    }
    sqlite3_finalize(q);
    return rc;
}

static enum lk_code count_rows(struct lk_survey *s, int64_t now, struct lk_survey_counts *out) {
    const struct {
        int *to;
        const char *sql;
    } all[] = {
        {&out->n_participants, "SELECT count(*) FROM read_participants WHERE ?1"},
        {&out->n_consented, "SELECT count(*) FROM read_participants WHERE consent_at IS NOT NULL AND ?1"},
        {&out->n_open, "SELECT count(*) FROM read_claims WHERE state='open' AND ?1"},
        {&out->n_submitted, "SELECT count(*) FROM read_claims WHERE state='submitted' AND ?1"},
        {&out->n_abandoned, "SELECT count(*) FROM read_claims WHERE state='abandoned' AND ?1"},
        {&out->n_last_day, "SELECT count(*) FROM read_claims WHERE state='submitted' AND submitted_at>=?1"},
        {&out->n_comments, "SELECT count(*) FROM read_answers WHERE key='comment' AND ?1"},
        {&out->n_errors, "SELECT count(*) FROM read_events WHERE kind='error' AND ?1"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t n;
        LK_TRY(lk_sql_number(&s->sql, &n, 0, all[i].sql, "i", now - DAY_MS));
        *all[i].to = (int)n;
    }
    LK_TRY(lk_survey_expire(s, now));
    return count_days(s, out);
}

static enum lk_code count_rules(const struct lk_survey *s, struct lk_dataset *data, struct lk_survey_counts *out) {
    struct lk_quality_options options;
    struct lk_quality_report report = {0};
    lk_quality_defaults(s->study->protocol, &options);
    lk_ratings_count(data);
    enum lk_code rc = lk_quality_check(data, &options, &report);
    out->n_raters = (int)report.n_raters;
    out->n_excluded = (int)report.n_excluded;
    for (int i = 0; i < LK_N_QUALITY_RULES; i++) out->n_hit[i] = (int)report.n_hit[i];
    lk_quality_report_free(&report);
    return rc;
}

/* By the readers and rules that the report uses. */
static enum lk_code count_checks(struct lk_survey *s, struct lk_survey_counts *out) {
    struct lk_text text = {0}, people = {0};
    struct lk_dataset data;
    lk_dataset_init(&data);
    struct lk_ratings_import import = {.data = &data, .gold_tolerance = 1};
    enum lk_code rc = lk_survey_export_answers(s, false, false, &text);
    if (!rc) rc = lk_survey_export_participants(s, &people);
    if (!rc && text.n) rc = lk_ratings_read(&import, text.bytes, text.n, "the survey's answers");
    if (!rc && people.n) rc = lk_ratings_participants(&import, people.bytes, people.n, "its participants", NULL);
    if (!rc) rc = count_rules(s, &data, out);
    for (size_t i = 0; !rc && i < data.n_ratings; i++) {
        out->n_checks += data.ratings[i].is_gold && data.ratings[i].gold_keyed;
        out->n_checks_right += data.ratings[i].is_gold && data.ratings[i].gold_right;
    }
    lk_ratings_import_free(&import);
    lk_dataset_free(&data);
    lk_text_free(&people);
    lk_text_free(&text);
    return rc;
}

enum lk_code lk_survey_count(struct lk_survey *s, int64_t now, struct lk_survey_counts *out) {
    *out = (struct lk_survey_counts){0};
    LK_TRY(lk_sql_begin(&s->sql));
    LK_TRY(lk_sql_end(&s->sql, count_rows(s, now, out)));
    LK_TRY(count_checks(s, out));
    out->few_hits = out->n_last_day < FEW_HITS;
    out->many_failures = 100 * (out->n_checks - out->n_checks_right) > MANY_FAILURES_PERCENT * out->n_checks;
    out->errors = out->n_errors > 0;
    return LK_OK;
}
