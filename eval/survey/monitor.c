#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/human/ratings.h"
#include "eval/study/factors.h"
#include "eval/study/random.h"
#include "eval/survey/store.h"

/* Simulated participants, for a dry run of everything behind the pages. What they see is planted: outputs of the edited
 * arm drift where the source is not White (race 4, skin 4), those of the preserved arm do not; one answer in ten is a
 * level off. */

enum { QUESTION_MS = 4000 };

struct pilot {
    struct lk_survey *s;
    struct lk_survey_visitor who;
    int64_t now;
    struct lk_stream stream;
};

/* The option that stands for the level planted, or for the side or person. */
static const char *option_of(struct pilot *p, const struct lk_survey_item *item, const struct lk_survey_question *q,
                             int left_arm) {
    static const int drifted[LK_N_AXES] = {5, 4, 4, 1, 3}, kept[LK_N_AXES] = {5, 3, 1, 1, 3};
    int arm = q->picture < 0 ? LK_ARM_EDITED : q->picture ? 1 - left_arm : left_arm;
    bool drifts = arm == LK_ARM_EDITED && item->race > 0;
    const char *first = q->options[0].value;
    if (!strcmp(first, "A") || !strcmp(first, "left")) return q->options[left_arm == LK_ARM_PRESERVED ? 0 : 1].value;
    int axis = lk_survey_axis_of(q->axis), level = axis < 0 ? 3 : (drifts ? drifted : kept)[axis];
    if (!strcmp(q->axis, "skin_change_magnitude")) level = drifts ? 3 : 1;
    if (!lk_stream_bounded(&p->stream, 10)) level += level == 5 ? -1 : 1;
    if (axis >= 0) return lk_survey_option_of(q, level);
    return first[0] >= '1' && first[0] <= '5' ? q->options[level - 1].value : first;
}

static enum lk_code answer_item(struct pilot *p, const struct lk_survey_item *item, int position) {
    struct lk_survey_questions questions;
    struct lk_survey_given given[LK_SURVEY_MAX_QUESTIONS];
    char expected[LK_SURVEY_MAX_QUESTIONS][16];
    int64_t lease;
    int left_arm;
    enum lk_survey_verdict verdict = LK_SURVEY_INVALID;
    LK_TRY(lk_survey_left_arm(p->s->study, p->who.worker, item, &left_arm));
    LK_TRY(lk_survey_show(p->s, &p->who, position, p->now, &lease));
    LK_TRY(lk_survey_questions_of(p->s->study, item, &questions));
    for (int i = 0; i < questions.n; i++) {
        const struct lk_survey_question *q = &questions.list[i];
        const char *right = lk_survey_expected(item, q, left_arm, expected[i]);
        given[i] = (struct lk_survey_given){q->key, right ? right : option_of(p, item, q, left_arm)};
    }
    p->now += (int64_t)questions.n * (QUESTION_MS + p->s->study->min_ms);
    enum lk_code rc = lk_survey_answer(p->s, &p->who, lease, position, given, (size_t)questions.n, p->now, &verdict);
    lk_survey_questions_free(&questions);
    if (!rc && verdict) rc = lk_fail(LK_E_INTERNAL, "pilot: item %s was refused", item->id);
    return rc;
}

static enum lk_code work(struct pilot *p) {
    size_t n = lk_survey_task_length(p->s->study, p->who.place);
    const struct lk_survey_item **items = lk_malloc(n * sizeof *items);
    if (!items) return lk_fail(LK_E_NOMEM, "out of memory for a task");
    enum lk_code rc = lk_survey_task_items(p->s->study, p->who.worker, p->who.place, items);
    for (size_t i = 0; i < n && !rc; i++) rc = answer_item(p, items[i], (int)i);
    lk_free(items);
    enum lk_survey_verdict verdict = LK_SURVEY_DONE;
    if (!rc) rc = lk_survey_submit(p->s, &p->who, p->now, &verdict);
    if (!rc && verdict) rc = lk_fail(LK_E_INTERNAL, "pilot: a complete task was refused");
    return rc;
}

static enum lk_code take_part(struct pilot *p, int number) {
    char id[32], token[65];
    enum lk_survey_verdict verdict = LK_SURVEY_CONFLICT;
    snprintf(id, sizeof id, "pilot-%d", number);
    LK_TRY(lk_survey_enter(p->s, id, true, p->now, token));
    LK_TRY(lk_survey_visitor(p->s, token, p->now, &p->who));
    if (p->who.claim) return LK_OK; /* of an earlier dry run */
    LK_TRY(lk_survey_guided(p->s, &p->who, true, p->now));
    LK_TRY(lk_survey_consent(p->s, &p->who, p->s->consent_sha256, p->now));
    for (int t = 0; t < p->s->study->n_tasks && verdict; t++)
        LK_TRY(lk_survey_claim(p->s, &p->who, (number + t) % p->s->study->n_tasks, p->now, &verdict));
    if (verdict)
        return lk_fail(LK_E_INPUT, "pilot: no place is left for participant %d; have fewer, or a survey of more tasks",
                       number + 1);
    LK_TRY(lk_survey_visitor(p->s, token, p->now, &p->who));
    return work(p);
}

enum lk_code lk_survey_pilot(struct lk_survey *s, int n, int64_t now) {
    struct pilot p = {.s = s};
    int64_t n_real;
    LK_TRY(lk_sql_number(&s->sql, &n_real, 0, lk_survey_of_people, ""));
    if (n_real)
        return lk_fail(LK_E_INPUT,
                       "pilot: people have answered this survey (%lld answers): simulated ones would count among them; "
                       "give the dry run a --store of its own",
                       (long long)n_real);
    /* A dry run need not survive a power cut. */
    sqlite3_exec(s->sql.db, "PRAGMA synchronous=OFF", NULL, NULL, NULL);
    enum lk_code rc = LK_OK;
    for (int i = 0; i < n && !rc; i++) {
        p.now = now;
        lk_stream_numbered(&p.stream, s->study->seed, "pilot|", (uint64_t)i);
        rc = take_part(&p, i);
    }
    sqlite3_exec(s->sql.db, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
    return rc;
}

enum { DAY_MS = 24 * 3600 * 1000, FEW_HITS = 5, MANY_FAILURES_PERCENT = 30, OFF_PERCENT = 20, RANGE = 2000 };

struct days {
    struct lk_survey_day *list;
    size_t n, capacity;
    int n_comments;
};

static enum lk_code add_day(struct days *days, const char *date, int n_answers, int n_submitted) {
    size_t i = 0;
    while (i < days->n && strcmp(days->list[i].date, date) != 0) i++;
    if (i == days->n) {
        LK_TRY(lk_grow(&days->list, &days->capacity, days->n + 1, sizeof *days->list));
        days->list[days->n] = (struct lk_survey_day){.n_answers = 0};
        snprintf(days->list[days->n++].date, sizeof days->list[0].date, "%s", date);
    }
    days->list[i].n_answers += n_answers;
    days->list[i].n_submitted += n_submitted;
    return LK_OK;
}

/* Rows of date, answers, comments and submissions, for one range of ids. */
static enum lk_code count_range(struct lk_survey *s, const char *sql, int64_t from, struct days *days) {
    sqlite3_stmt *q;
    LK_TRY(lk_sql_open(&s->sql, &q, sql, "ii", from, from + RANGE));
    enum lk_code rc = LK_OK;
    for (bool row = true; !rc && row;) {
        rc = lk_sql_step(&s->sql, q, &row);
        if (rc || !row) break;
        rc = add_day(days, lk_sql_text(q, 0), sqlite3_column_int(q, 1), sqlite3_column_int(q, 3));
        days->n_comments += sqlite3_column_int(q, 2);
    }
    sqlite3_finalize(q);
    return rc;
}

static int newest_first(const void *a, const void *b) {
    return strcmp(((const struct lk_survey_day *)b)->date, ((const struct lk_survey_day *)a)->date);
}

/* Range by range: while a statement reads, nobody's answer can be written. */
static enum lk_code count_days(struct lk_survey *s, struct lk_survey_counts *out) {
    static const char *const tables[][2] = {
        {"SELECT max(id) FROM answers",
         "SELECT date(at/1000,'unixepoch') AS day, sum(key<>'comment'), sum(key='comment'), 0 FROM read_answers WHERE "
         "id>=?1 AND id<?2 GROUP BY day"},
        {"SELECT max(id) FROM claims",
         "SELECT date(submitted_at/1000,'unixepoch') AS day, 0, 0, count(*) FROM read_claims "
         "WHERE state='submitted' AND id>=?1 AND id<?2 GROUP BY day"}};
    struct days days = {.n = 0};
    enum lk_code rc = LK_OK;
    for (int t = 0; !rc && t < 2; t++) {
        int64_t last = 0;
        rc = lk_sql_number(&s->sql, &last, 0, tables[t][0], "");
        for (int64_t from = 1; !rc && from <= last; from += RANGE) rc = count_range(s, tables[t][1], from, &days);
    }
    if (days.n) qsort(days.list, days.n, sizeof *days.list, newest_first);
    out->n_comments = days.n_comments;
    for (size_t i = 0; i < days.n && out->n_days < 31; i++) out->days[out->n_days++] = days.list[i];
    lk_free(days.list);
    return rc;
}

static enum lk_code count_rows(struct lk_survey *s, int64_t now, struct lk_survey_counts *out) {
    const struct {
        int *to;
        const char *sql;
    } all[] = {
        {&out->n_participants, "SELECT count(*) FROM read_participants WHERE ?1 AND ?2"},
        {&out->n_refused, "SELECT count(*) FROM read_events WHERE kind='blocked' AND ?1 AND ?2"},
        {&out->n_consented, "SELECT count(*) FROM read_participants WHERE consent_at IS NOT NULL AND ?1 AND ?2"},
        {&out->n_open, "SELECT count(*) FROM read_claims WHERE state='open' AND active_at>=?2"},
        {&out->n_submitted, "SELECT count(*) FROM read_claims WHERE state='submitted' AND ?1 AND ?2"},
        {&out->n_abandoned,
         "SELECT count(*) FROM read_claims WHERE state='abandoned' OR (state='open' AND active_at<?2)"},
        {&out->n_last_day, "SELECT count(*) FROM read_claims WHERE state='submitted' AND submitted_at>=?1 AND ?2"},
        {&out->n_errors, "SELECT count(*) FROM read_events WHERE kind='error' AND ?1 AND ?2"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t n;
        LK_TRY(lk_sql_number(&s->sql, &n, 0, all[i].sql, "ii", now - DAY_MS, now - s->study->claim_ms));
        *all[i].to = (int)n;
    }
    return count_days(s, out);
}

/* A single fast answer makes nobody an outlier, nor does a task that is not finished yet. */
static void add_outlier(const struct lk_rater *rater, const struct lk_rater_quality *q, struct lk_survey_counts *out) {
    const uint32_t rules = q->rules & ~(1u << LK_Q7_FAST | 1u << LK_Q11_UNFINISHED | 1u << LK_Q12_NO_CODE);
    if (!rules || out->n_outliers++ >= LK_SURVEY_MAX_OUTLIERS) return;
    struct lk_survey_outlier *outlier = &out->outliers[out->n_outliers - 1];
    *outlier = (struct lk_survey_outlier){.rules = rules,
                                          .median_ms = q->median_ms,
                                          .n_checks = q->n_gold,
                                          .n_checks_right = q->n_gold_right,
                                          .excluded = q->excluded};
    snprintf(outlier->worker, sizeof outlier->worker, "%s", rater->id);
}

static enum lk_code count_rules(const struct lk_survey *s, struct lk_dataset *data, struct lk_survey_counts *out) {
    struct lk_quality_options options;
    struct lk_quality_report report = {0};
    lk_quality_defaults(s->study->protocol, &options);
    enum lk_code rc = lk_quality_check(data, &options, &report);
    out->n_raters = (int)report.n_raters;
    out->n_excluded = (int)report.n_excluded;
    for (int i = 0; i < LK_N_QUALITY_RULES; i++) out->n_hit[i] = (int)report.n_hit[i];
    for (size_t r = 0; r < report.n_raters; r++) add_outlier(&data->raters[r], &report.raters[r], out);
    lk_quality_report_free(&report);
    return rc;
}

/* Items whose ids say nothing are known before their ratings are read. */
static enum lk_code add_plain_items(const struct lk_survey_study *study, struct lk_dataset *data) {
    for (size_t i = 0; study->plain_ids && i < study->n_items; i++) {
        char id[200];
        int32_t at;
        LK_TRY(lk_dataset_add(data, study->items[i].id, (int32_t)i, LK_ARM_EDITED, &at));
        snprintf(id, sizeof id, "%.180s.%s", study->items[i].id, lk_factor_key(LK_FACTOR_ARM, LK_ARM_PRESERVED));
        LK_TRY(lk_dataset_add(data, id, (int32_t)i, LK_ARM_PRESERVED, &at));
    }
    return LK_OK;
}

enum lk_code lk_survey_ratings(struct lk_survey *s, struct lk_ratings_import *import) {
    struct lk_text text = {0}, people = {0};
    import->gold_tolerance = 1;
    enum lk_code rc = add_plain_items(s->study, import->data);
    if (!rc) rc = lk_survey_export_answers(s, false, false, &text);
    if (!rc) rc = lk_survey_export_participants(s, &people);
    if (!rc && text.n) rc = lk_ratings_read(import, text.bytes, text.n, "the survey's answers");
    if (!rc && people.n) rc = lk_ratings_participants(import, people.bytes, people.n, "its participants", NULL);
    if (!rc) lk_ratings_count(import->data);
    lk_text_free(&people);
    lk_text_free(&text);
    return rc;
}

static enum lk_code count_checks(struct lk_survey *s, struct lk_survey_counts *out) {
    struct lk_dataset data;
    lk_dataset_init(&data);
    struct lk_ratings_import import = {.data = &data};
    enum lk_code rc = lk_survey_ratings(s, &import);
    if (!rc) rc = count_rules(s, &data, out);
    for (size_t i = 0; !rc && i < data.n_ratings; i++) {
        out->n_checks += data.ratings[i].is_gold && data.ratings[i].gold_keyed;
        out->n_checks_right += data.ratings[i].is_gold && data.ratings[i].gold_right;
    }
    lk_ratings_import_free(&import);
    lk_dataset_free(&data);
    return rc;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How long tasks took against what participants were told: pay follows time. Simulated participants do not count. */
static enum lk_code count_time(struct lk_survey *s, struct lk_survey_counts *out) {
    double pay, *minutes = lk_malloc(((size_t)out->n_submitted + 1) * sizeof *minutes);
    size_t n = 0;
    sqlite3_stmt *q;
    lk_survey_terms(s->study, out->estimate, &pay);
    out->median_minutes = NAN;
    snprintf(out->told, sizeof out->told, out->estimate[0] < out->estimate[1] ? "%.3g to %.3g" : "%.3g",
             out->estimate[0], out->estimate[1]);
    if (!minutes) return lk_fail(LK_E_NOMEM, "out of memory for the times of tasks");
    enum lk_code rc = lk_sql_open(&s->sql, &q,
                                  "SELECT c.submitted_at-c.claimed_at FROM read_claims c JOIN read_participants p ON "
                                  "p.id=c.participant WHERE c.state='submitted' AND NOT p.pilot LIMIT ?1",
                                  "i", (int64_t)out->n_submitted);
    for (bool row = true; !rc && row;) {
        rc = lk_sql_step(&s->sql, q, &row);
        if (!rc && row) minutes[n++] = (double)sqlite3_column_int64(q, 0) / 60000;
    }
    sqlite3_finalize(q);
    if (n) {
        qsort(minutes, n, sizeof *minutes, ascending);
        out->median_minutes = (minutes[(n - 1) / 2] + minutes[n / 2]) / 2;
    }
    out->n_timed = (int)n;
    out->time_off = n >= FEW_HITS && (100 * out->median_minutes < (100 - OFF_PERCENT) * out->estimate[0] ||
                                      100 * out->median_minutes > (100 + OFF_PERCENT) * out->estimate[1]);
    lk_free(minutes);
    return rc;
}

enum lk_code lk_survey_count(struct lk_survey *s, int64_t now, struct lk_survey_counts *out) {
    *out = (struct lk_survey_counts){0};
    LK_TRY(count_rows(s, now, out)); /* short reads, between which others write */
    LK_TRY(count_time(s, out));
    LK_TRY(count_checks(s, out));
    out->few_hits = out->n_last_day < FEW_HITS;
    out->many_failures = 100 * (out->n_checks - out->n_checks_right) > MANY_FAILURES_PERCENT * out->n_checks;
    out->errors = out->n_errors > 0;
    return LK_OK;
}
