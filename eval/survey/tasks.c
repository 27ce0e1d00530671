#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "eval/human/ratings.h"
#include "eval/scores/words.h"
#include "eval/study/factors.h"
#include "eval/study/packing.h"
#include "eval/study/random.h"
#include "eval/survey/store.h"
#include "eval/survey/study.h"

enum { MAX_COMMENT_BYTES = 2000, MAX_REVISIONS = 100 };

/* The visitor's claim, if it is still open at this time. Within a transaction. */
static enum lk_code open_claim(struct lk_survey *s, const struct lk_survey_visitor *who, int64_t now, bool *open) {
    int64_t found;
    LK_TRY(lk_survey_expire(s, now));
    LK_TRY(lk_sql_number(&s->sql, &found, 0,
                         "SELECT id FROM read_claims WHERE id=?1 AND participant=?2 AND state='open'", "ii", who->claim,
                         who->id));
    *open = found != 0;
    return LK_OK;
}

static enum lk_code items_of(struct lk_survey *s, const struct lk_survey_visitor *who,
                             const struct lk_survey_item ***out, size_t *n) {
    *n = lk_survey_task_length(s->study, who->place);
    *out = lk_malloc(*n * sizeof **out);
    if (!*out) return lk_fail(LK_E_NOMEM, "out of memory for a task");
    enum lk_code rc = lk_survey_task_items(s->study, who->worker, who->place, *out);
    if (rc) lk_free(*out);
    return rc;
}

static enum lk_code read_answers(struct lk_survey *s, int64_t claim, struct lk_survey_answer **out, size_t *n) {
    sqlite3_stmt *q;
    size_t capacity = 0;
    *out = NULL;
    *n = 0;
    enum lk_code rc =
        lk_sql_open(&s->sql, &q,
                    "SELECT position, key, value, max(id) FROM read_answers WHERE claim=?1 AND key<>'comment' "
                    "GROUP BY position, key ORDER BY position, key",
                    "i", claim);
    for (bool row = true; !rc && row;) {
        rc = lk_sql_step(&s->sql, q, &row);
        if (!rc && row) rc = lk_grow(out, &capacity, *n + 1, sizeof **out);
        if (rc || !row) break;
        struct lk_survey_answer *answer = &(*out)[(*n)++];
        answer->position = sqlite3_column_int(q, 0);
        snprintf(answer->key, sizeof answer->key, "%s", lk_sql_text(q, 1));
        snprintf(answer->value, sizeof answer->value, "%s", lk_sql_text(q, 2));
    }
    sqlite3_finalize(q);
    return rc;
}

/* answers are in the order of positions. */
static enum lk_code find_open(struct lk_survey *s, const struct lk_survey_visitor *who,
                              const struct lk_survey_answer *answers, size_t n_answers, size_t *first_open) {
    const struct lk_survey_item **items;
    size_t n, at = 0;
    LK_TRY(items_of(s, who, &items, &n));
    enum lk_code rc = LK_OK;
    for (*first_open = 0; *first_open < n; ++*first_open) {
        struct lk_survey_questions questions;
        rc = lk_survey_questions_of(s->study, items[*first_open], &questions);
        if (rc) break;
        int n_given = 0, n_asked = questions.n;
        for (; at < n_answers && answers[at].position == (int)*first_open; at++) n_given++;
        lk_survey_questions_free(&questions);
        if (n_given < n_asked) break;
    }
    lk_free(items);
    return rc;
}

enum lk_code lk_survey_answers(struct lk_survey *s, const struct lk_survey_visitor *who, struct lk_survey_answer **out,
                               size_t *n, size_t *first_open) {
    pthread_mutex_lock(&s->sql.lock);
    enum lk_code rc = read_answers(s, who->claim, out, n);
    pthread_mutex_unlock(&s->sql.lock);
    if (!rc) rc = find_open(s, who, *out, *n, first_open);
    if (!rc) return LK_OK;
    lk_free(*out);
    *out = NULL;
    return rc;
}

enum lk_code lk_survey_show(struct lk_survey *s, const struct lk_survey_visitor *who, int position, int64_t now,
                            int64_t *lease) {
    bool open = false;
    (void)position;
    *lease = 0;
    LK_TRY(lk_sql_begin(&s->sql));
    enum lk_code rc = open_claim(s, who, now, &open);
    if (!rc && open)
        rc = lk_sql_run(&s->sql, "UPDATE claims SET lease=lease+1, last_at=?1, active_at=?1 WHERE id=?2", "ii", now,
                        who->claim);
    if (!rc && open)
        rc = lk_sql_number(&s->sql, lease, 0, "SELECT lease FROM read_claims WHERE id=?1", "i", who->claim);
    return lk_sql_end(&s->sql, rc);
}

static bool comment_is_valid(const struct lk_survey_study *study, const char *text) {
    size_t n = strlen(text);
    return study->comments && n <= MAX_COMMENT_BYTES && lk_utf8_valid(text, n);
}

bool lk_survey_is_valid(const struct lk_survey_study *study, const struct lk_survey_questions *questions,
                        const struct lk_survey_given *given) {
    if (!strcmp(given->key, "comment")) return comment_is_valid(study, given->value);
    for (int i = 0; i < questions->n; i++) {
        const struct lk_survey_question *q = &questions->list[i];
        if (strcmp(q->key, given->key)) continue;
        for (int k = 0; k < q->n_options; k++)
            if (!strcmp(q->options[k].value, given->value)) return true;
    }
    return false;
}

struct writing {
    struct lk_survey *s;
    const struct lk_survey_visitor *who;
    const struct lk_survey_item *item;
    int position, left_arm;
    int64_t now, ms; /* of each new answer */
};

/* Whether there is an answer to the question, and whether it is this one: a repeated request changes nothing. */
static enum lk_code compare(const struct writing *w, const struct lk_survey_given *given, bool *is_new, bool *same) {
    int64_t found;
    LK_TRY(lk_sql_number(
        &w->s->sql, &found, -1,
        "SELECT value=?1 FROM read_answers WHERE claim=?2 AND position=?3 AND key=?4 ORDER BY id DESC LIMIT "
        "1",
        "tiit", given->value, w->who->claim, (int64_t)w->position, given->key));
    *is_new = found < 0;
    *same = found == 1 || (*is_new && !strcmp(given->key, "comment") && !*given->value);
    return LK_OK;
}

static enum lk_code write_one(const struct writing *w, const struct lk_survey_given *given) {
    bool is_new, same;
    LK_TRY(compare(w, given, &is_new, &same));
    if (same) return LK_OK;
    return lk_sql_run(&w->s->sql,
                      "INSERT INTO answers(claim,position,key,value,item,left_arm,ms,at) VALUES(?1,?2,?3,?4,?5,?6,?7,"
                      "?8)",
                      "iitttiii", w->who->claim, (int64_t)w->position, given->key, given->value, w->item->id,
                      (int64_t)w->left_arm, is_new ? w->ms : (int64_t)0, w->now);
}

static enum lk_code write_all(struct writing *w, int64_t lease, const struct lk_survey_given *given, size_t n,
                              enum lk_survey_verdict *verdict) {
    int64_t held, last_at, n_new = 0;
    bool open;
    LK_TRY(open_claim(w->s, w->who, w->now, &open));
    LK_TRY(lk_sql_number(&w->s->sql, &held, 0, "SELECT lease FROM read_claims WHERE id=?1", "i", w->who->claim));
    LK_TRY(
        lk_sql_number(&w->s->sql, &last_at, w->now, "SELECT last_at FROM read_claims WHERE id=?1", "i", w->who->claim));
    *verdict = LK_SURVEY_CONFLICT;
    if (!open || held != lease) return LK_OK;
    *verdict = LK_SURVEY_INVALID;
    for (size_t i = 0; i < n; i++) {
        bool is_new, same;
        int64_t n_kept;
        LK_TRY(compare(w, &given[i], &is_new, &same));
        n_new += is_new && strcmp(given[i].key, "comment");
        LK_TRY(lk_sql_number(&w->s->sql, &n_kept, 0,
                             "SELECT count(*) FROM read_answers WHERE claim=?1 AND position=?2 AND key=?3", "iit",
                             w->who->claim, (int64_t)w->position, given[i].key));
        if (n_kept >= MAX_REVISIONS && !same) return LK_OK; /* nobody changes an answer so often */
    }
    *verdict = LK_SURVEY_EARLY;
    if (w->now - last_at < n_new * w->s->study->min_ms) return LK_OK;
    if (n_new) w->ms = (w->now - last_at) / n_new;
    for (size_t i = 0; i < n; i++) LK_TRY(write_one(w, &given[i]));
    *verdict = LK_SURVEY_DONE;
    return lk_sql_run(&w->s->sql,
                      "UPDATE claims SET active_at=?1, last_at=CASE WHEN ?2>0 THEN ?1 ELSE last_at END WHERE id=?3",
                      "iii", w->now, n_new, w->who->claim);
}

enum lk_code lk_survey_answer(struct lk_survey *s, const struct lk_survey_visitor *who, int64_t lease, int position,
                              const struct lk_survey_given *given, size_t n, int64_t now,
                              enum lk_survey_verdict *verdict) {
    const struct lk_survey_item **items;
    struct lk_survey_questions questions;
    struct writing w = {.s = s, .who = who, .position = position, .now = now};
    size_t n_items;
    *verdict = LK_SURVEY_CONFLICT;
    if (!who->claim || who->submitted) return LK_OK;
    LK_TRY(items_of(s, who, &items, &n_items));
    *verdict = LK_SURVEY_INVALID;
    if (position >= 0 && (size_t)position < n_items) w.item = items[position];
    lk_free(items);
    if (!w.item || !n || n > LK_SURVEY_MAX_QUESTIONS + 1) return LK_OK;
    LK_TRY(lk_survey_left_arm(s->study, who->worker, w.item, &w.left_arm));
    LK_TRY(lk_survey_questions_of(s->study, w.item, &questions));
    bool valid = true;
    for (size_t i = 0; i < n; i++) valid = valid && lk_survey_is_valid(s->study, &questions, &given[i]);
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i; k++) valid = valid && strcmp(given[i].key, given[k].key);
    lk_survey_questions_free(&questions);
    if (!valid) return LK_OK;
    LK_TRY(lk_sql_begin(&s->sql));
    return lk_sql_end(&s->sql, write_all(&w, lease, given, n, verdict));
}

static enum lk_code submit(struct lk_survey *s, const struct lk_survey_visitor *who, int64_t now,
                           enum lk_survey_verdict *verdict) {
    struct lk_survey_answer *answers;
    size_t n, first_open = 0;
    bool open;
    *verdict = LK_SURVEY_CONFLICT;
    LK_TRY(open_claim(s, who, now, &open));
    if (!open) return LK_OK;
    enum lk_code rc = read_answers(s, who->claim, &answers, &n);
    if (!rc) rc = find_open(s, who, answers, n, &first_open);
    lk_free(answers);
    if (rc || first_open < lk_survey_task_length(s->study, who->place)) return rc;
    *verdict = LK_SURVEY_DONE;
    return lk_sql_run(&s->sql, "UPDATE claims SET state='submitted', submitted_at=?1, active_at=?1 WHERE id=?2", "ii",
                      now, who->claim);
}

enum lk_code lk_survey_submit(struct lk_survey *s, const struct lk_survey_visitor *who, int64_t now,
                              enum lk_survey_verdict *verdict) {
    *verdict = LK_SURVEY_CONFLICT;
    if (!who->claim || who->submitted) return LK_OK;
    LK_TRY(lk_sql_begin(&s->sql));
    return lk_sql_end(&s->sql, submit(s, who, now, verdict));
}

/* Who may not take part: participants of a pilot or of an earlier study. */

enum { HASH_DIGITS = 64 };

static enum lk_code add(struct lk_survey *s, const char *text, size_t n, const char *name, size_t line) {
    char worker[HASH_DIGITS + 1];
    int32_t at;
    text = lk_trim(text, &n);
    bool is_hash = n == HASH_DIGITS && strspn(text, "0123456789abcdef") >= HASH_DIGITS;
    enum lk_code rc = is_hash ? LK_OK : lk_survey_hash(s, text, n, worker);
    if (rc == LK_E_INPUT)
        return lk_fail(rc,
                       "%s: line %zu: expected a participant's id, or its 64 hexadecimal digits in this store's "
                       "exports, got \"%.*s\"",
                       name, line, n > 60 ? 60 : (int)n, text);
    return rc ? rc : lk_names_number(&s->blocked, is_hash ? text : worker, HASH_DIGITS, &at);
}

static enum lk_code add_lines(struct lk_survey *s, const char *text, size_t n, const char *name) {
    size_t line = 1;
    for (const char *at = text, *end = text + n; at < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        size_t length = (size_t)(stop - at);
        const char *word = lk_trim(at, &length);
        if (length) LK_TRY(add(s, word, length, name, line));
        at = stop + 1;
    }
    return LK_OK;
}

/* *is_table: the text has a column of ids. A record without one is an error: somebody might slip through. */
static enum lk_code add_table(struct lk_survey *s, const char *text, size_t n, const char *name, bool *is_table) {
    struct lk_records records;
    bool more, asked;
    LK_TRY(lk_records_open(&records, text, n, name));
    enum lk_code rc = LK_OK;
    *is_table = false;
    while (!(rc = lk_records_next_strict(&records, &more)) && more) {
        const struct lk_field *id = lk_participant_id(&records.fields, &asked);
        *is_table = asked;
        if (!asked) break;
        rc = add(s, id ? id->text : "", id ? id->n : 0, name, records.line);
        if (rc) break;
    }
    lk_records_close(&records);
    return rc;
}

enum lk_code lk_survey_block(struct lk_survey *s, const char *text, size_t n, const char *name, size_t *n_listed) {
    bool is_table = false;
    enum lk_code rc = n ? add_table(s, text, n, name, &is_table) : LK_OK;
    if (!rc && !is_table) rc = add_lines(s, text, n, name);
    lk_free(s->has_come);
    s->has_come = lk_calloc(s->blocked.n + 1, sizeof *s->has_come);
    *n_listed = s->blocked.n;
    if (!rc && !s->has_come) rc = lk_fail(LK_E_NOMEM, "out of memory for a survey");
    return rc || s->blocked.n ? rc : lk_fail(LK_E_INPUT, "%s: expected an id in each line, got none", name);
}

enum lk_code lk_survey_refuses(struct lk_survey *s, const char *external_id, int64_t now, bool *refuses) {
    char hash[HASH_DIGITS + 1], worker[HASH_DIGITS + 1]; /* worker: of an older store another one */
    bool known;
    *refuses = false;
    if (!s->blocked.n) return LK_OK;
    LK_TRY(lk_survey_hash(s, external_id, strlen(external_id), hash));
    LK_TRY(lk_survey_worker(s, external_id, strlen(external_id), worker, &known));
    int32_t at = lk_names_find(&s->blocked, hash, HASH_DIGITS);
    if (at < 0) at = lk_names_find(&s->blocked, worker, HASH_DIGITS);
    *refuses = at >= 0;
    if (at < 0) return LK_OK;
    LK_TRY(lk_sql_begin(&s->sql));
    enum lk_code rc = LK_OK;
    if (!s->has_come[at]) rc = lk_sql_run(&s->sql, "INSERT INTO events(kind,at) VALUES('blocked',?1)", "i", now);
    s->has_come[at] = s->has_come[at] || !rc;
    return lk_sql_end(&s->sql, rc);
}

/* What lies in which task: items, some of them for several raters, gold items, which are used equally often, and
 * instructed checks; and in what order and on which sides a participant sees them. */

static enum lk_code make_checks(struct lk_survey_study *s) {
    static const char *const ids[] = {"check_1", "check_2", "check_3", "check_4", "check_5"};
    size_t n = (size_t)s->n_checks_per_task;
    if (n > 5) return lk_fail(LK_E_INPUT, "checks_per_task: expected at most 5, got %zu", n);
    s->checks = lk_calloc(n + 1, sizeof *s->checks);
    if (!s->checks) return lk_fail(LK_E_NOMEM, "out of memory for a survey");
    for (size_t i = 0; i < n; i++) {
        s->checks[i] = (struct lk_survey_item){
            .kind = LK_SURVEY_CHECK, .id = ids[i], .prompt = "", .race = -1, .gender = -1, .age = -1, .model = -1};
        s->checks[i].prompt_number = -1;
        s->checks[i].choice[0] = "32415"[i];
    }
    s->n_checks = n;
    return LK_OK;
}

static int by_id(const void *a, const void *b) {
    return strcmp(((const struct lk_survey_item *)a)->id, ((const struct lk_survey_item *)b)->id);
}

static enum lk_code check_unique(const struct lk_survey_study *s, const char *path) {
    size_t n = s->n_items + s->n_gold;
    struct lk_survey_item *all = lk_malloc((n + 1) * sizeof *all);
    if (!all) return lk_fail(LK_E_NOMEM, "out of memory for a survey");
    memcpy(all, s->items, s->n_items * sizeof *all);
    memcpy(all + s->n_items, s->gold, s->n_gold * sizeof *all);
    qsort(all, n, sizeof *all, by_id);
    enum lk_code rc = LK_OK;
    for (size_t i = 1; i < n && !rc; i++)
        if (!strcmp(all[i - 1].id, all[i].id)) rc = lk_fail(LK_E_INPUT, "%s: two items \"%s\"", path, all[i].id);
    lk_free(all);
    return rc;
}

/* The first and the one behind the last item of a task in `packed`; the remainder goes to the first tasks. */
static void task_range(const struct lk_survey_study *s, int task, size_t *first, size_t *end) {
    size_t n = (size_t)s->n_tasks, t = (size_t)task, each = s->n_packed / n, more = s->n_packed % n;
    *first = t * each + (t < more ? t : more);
    *end = *first + each + (t < more);
}

/* Item `one` into as many tasks as are to share it, those that share the fewest so far: n_in [n_tasks] counts, order
 * [n_tasks] breaks ties. */
static void share(struct lk_survey_study *s, int32_t one, const int32_t *order, size_t *n_in) {
    for (int copy = 0; copy < s->shared_raters; copy++) {
        int best = -1;
        for (int i = 0; i < s->n_tasks; i++) {
            size_t first, end, t = (size_t)order[i];
            task_range(s, order[i], &first, &end);
            bool has = n_in[t] && s->packed[first + n_in[t] - 1] == one, full = first + n_in[t] == end;
            if (!has && !full && (best < 0 || n_in[t] < n_in[best])) best = order[i];
        }
        size_t first, end;
        task_range(s, best, &first, &end);
        s->packed[first + n_in[best]++] = one;
    }
}

/* The first n_shared of `drawn`, each into several tasks, then the others, in the order of `items`. */
static void fill(struct lk_survey_study *s, const int32_t *items, const bool *is_shared, int32_t *order, size_t *n_in) {
    struct lk_stream stream;
    lk_stream_named(&stream, s->seed, "shared|tasks");
    for (int t = 0; t < s->n_tasks; t++) order[t] = t;
    for (size_t i = 0; i < s->n_items; i++) {
        if (!is_shared[items[i]]) continue;
        lk_stream_shuffle(&stream, order, (size_t)s->n_tasks);
        share(s, items[i], order, n_in);
    }
    int task = 0;
    for (size_t i = 0; i < s->n_items; i++) {
        size_t first, end;
        if (is_shared[items[i]]) continue;
        for (task_range(s, task, &first, &end); first + n_in[task] == end; task_range(s, task, &first, &end)) task++;
        s->packed[first + n_in[task]++] = items[i];
    }
}

/* Which items several raters see: drawn, so that they stand for all. */
static enum lk_code pack_shared(struct lk_survey_study *s, size_t n_shared) {
    struct lk_stream stream;
    int32_t *work = lk_malloc((2 * s->n_items + (size_t)s->n_tasks) * sizeof *work);
    bool *is_shared = lk_calloc(s->n_items, sizeof *is_shared);
    size_t *n_in = lk_calloc((size_t)s->n_tasks, sizeof *n_in);
    enum lk_code rc = work && is_shared && n_in ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for a survey");
    if (!rc) {
        int32_t *items = work, *drawn = work + s->n_items;
        lk_pack_tasks(s->n_items, s->blocked, s->seed, items);
        for (size_t i = 0; i < s->n_items; i++) drawn[i] = (int32_t)i;
        lk_stream_named(&stream, s->seed, "shared|items");
        lk_stream_shuffle(&stream, drawn, s->n_items);
        for (size_t i = 0; i < n_shared; i++) is_shared[drawn[i]] = true;
        fill(s, items, is_shared, drawn + s->n_items, n_in);
    }
    lk_free(work);
    lk_free(is_shared);
    lk_free(n_in);
    return rc;
}

enum lk_code lk_survey_pack(struct lk_survey_study *s, const char *path) {
    const size_t n_tasks = (size_t)s->n_tasks, n_shared = (s->n_items * (size_t)s->shared_percent + 50) / 100;
    s->n_packed = s->n_items + n_shared * (size_t)(s->shared_raters - 1);
    if (s->n_packed < n_tasks || s->n_packed / n_tasks > LK_SURVEY_MAX_A_TASK)
        return lk_fail(LK_E_INPUT, "%s: field \"items\": expected 1 to 1,000 for each of %zu tasks, got %zu", path,
                       n_tasks, s->n_packed);
    if (n_shared && s->tasks_per_worker > 1)
        return lk_fail(LK_E_INPUT,
                       "%s: field \"tasks_per_worker\": expected 1 with shared_percent, got %d: somebody "
                       "would see an item twice",
                       path, s->tasks_per_worker);
    if (n_shared && s->n_tasks < s->shared_raters)
        return lk_fail(LK_E_INPUT, "%s: field \"tasks\": expected at least %d, for nobody sees an item twice, got %d",
                       path, s->shared_raters, s->n_tasks);
    if (s->n_gold < (size_t)s->n_gold_per_task)
        return lk_fail(LK_E_INPUT, "%s: gold_per_task is %d, but only %zu gold items are given", path,
                       s->n_gold_per_task, s->n_gold);
    LK_TRY(make_checks(s));
    LK_TRY(check_unique(s, path));
    s->packed = lk_malloc(s->n_packed * sizeof *s->packed);
    if (!s->packed) return lk_fail(LK_E_NOMEM, "out of memory for a survey");
    if (n_shared) return pack_shared(s, n_shared);
    lk_pack_tasks(s->n_items, s->blocked, s->seed, s->packed);
    return LK_OK;
}

size_t lk_survey_task_length(const struct lk_survey_study *s, int place) {
    size_t first, end;
    task_range(s, place % s->n_tasks, &first, &end);
    return end - first + (size_t)s->n_gold_per_task + (size_t)s->n_checks_per_task;
}

/* The gold items of a place, [n_gold_per_task] of `gold`: dealt round, place after place, so that each is used as often
 * as any other, or one time more; or drawn for each task, which the first versions did. */
static void deal_gold(const struct lk_survey_study *s, int place, int32_t *gold) {
    struct lk_stream stream;
    const size_t n_each = (size_t)s->n_gold_per_task;
    if (!s->gold_drawn)
        for (size_t k = 0; k < n_each; k++) gold[k] = (int32_t)(((size_t)place * n_each + k) % s->n_gold);
    if (!s->gold_drawn) return;
    for (size_t i = 0; i < s->n_gold; i++) gold[i] = (int32_t)i;
    lk_stream_numbered(&stream, s->seed, "gold|", (uint64_t)(place % s->n_tasks));
    lk_stream_shuffle(&stream, gold, s->n_gold);
}

enum lk_code lk_survey_task_items(const struct lk_survey_study *s, const char *worker, int place,
                                  const struct lk_survey_item **out) {
    size_t first, end, n = lk_survey_task_length(s, place), n_gold = (size_t)s->n_gold_per_task;
    char name[32];
    task_range(s, place % s->n_tasks, &first, &end);
    snprintf(name, sizeof name, "%d", place % s->n_tasks + 1);
    int32_t *order = lk_malloc((n + s->n_gold) * sizeof *order), *gold = order + n;
    if (!order) return lk_fail(LK_E_NOMEM, "out of memory for a task");
    deal_gold(s, place, gold);
    enum lk_code rc = lk_task_order(s->seed, worker, name, end - first, n - (end - first), order);
    for (size_t i = 0; i < n && !rc; i++) {
        size_t special = order[i] < 0 ? (size_t)(-1 - order[i]) : 0;
        out[i] = order[i] >= 0      ? &s->items[s->packed[first + (size_t)order[i]]]
                 : special < n_gold ? &s->gold[gold[special]]
                                    : &s->checks[special - n_gold];
    }
    lk_free(order);
    return rc;
}

enum lk_code lk_survey_left_arm(const struct lk_survey_study *s, const char *worker, const struct lk_survey_item *item,
                                int *out) {
    *out = LK_ARM_EDITED;
    return s->fixed_sides || s->experiment != 2 ? LK_OK : lk_left_arm(s->seed, worker, item->id, out);
}
