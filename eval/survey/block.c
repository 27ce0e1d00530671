/* Who may not take part: participants of a pilot or of an earlier study. */
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/human/ratings.h"
#include "eval/scores/words.h"
#include "eval/survey/store.h"

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
