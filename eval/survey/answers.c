#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "eval/survey/store.h"

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
