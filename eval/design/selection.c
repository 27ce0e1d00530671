/* The log of a selection, and what stands after it. */
#include "eval/design/selection.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/file.h"
#include "engine/base/store.h"
#include "eval/design/selection_state.h"
#include "eval/scores/fields.h"

enum { MAX_BYTES = 1 << 26, MAX_NOTE = 1000 };

const char *const lk_criteria[LK_N_CRITERIA] = {"frontal_face",          "clear_focus",        "proper_lighting",
                                                "identifiable_features", "neutral_expression", "upright_posture"};
const char *const lk_criteria_words[LK_N_CRITERIA] = {"Frontal face: oriented toward the camera, no profiles",
                                                      "Clear focus: sharp, without motion blur",
                                                      "Proper lighting: even illumination, no harsh shadows",
                                                      "Identifiable features: facial features clearly visible",
                                                      "Neutral expression: neutral or mild",
                                                      "Upright posture: head in upright position"};
const char *const lk_selection_kinds[LK_N_SELECTION_KINDS] = {"choose", "unchoose", "flag", "note"};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "out of memory for a selection"); }

static enum lk_code read_cell(const struct lk_fields *fields, const char *file, size_t line, int *source, int *pool) {
    const struct lk_field *id = lk_fields_find(fields, "source_id"), *number = lk_fields_find(fields, "pool");
    *source = id ? lk_source_parse(id->text, id->n) : -1;
    long n = number ? lk_field_count(number, LK_N_POOLS) : 0;
    if (*source < 0) return lk_field_wrong(file, line, "source_id", "a source such as Black_Male_40s", id);
    if (n < 0) return lk_field_wrong(file, line, "pool", "1 to 7", number);
    *pool = (int)n;
    return LK_OK;
}

static enum lk_code read_candidate(struct lk_selection *s, const struct lk_fields *fields, size_t line) {
    int source, pool;
    const struct lk_field *file = lk_fields_find(fields, "file");
    LK_TRY(read_cell(fields, s->pools, line, &source, &pool));
    if (!pool) return lk_field_wrong(s->pools, line, "pool", "1 to 7", NULL);
    if (!file) return lk_field_wrong(s->pools, line, "file", "a path", file);
    struct lk_candidate *candidate = &s->candidates[source][pool - 1];
    if (candidate->file) return lk_field_wrong(s->pools, line, "source_id", "each pool and source once", file);
    *candidate = (struct lk_candidate){.file = lk_store_copy(&s->texts, file->text, file->n), .note = ""};
    return candidate->file ? LK_OK : out_of_memory();
}

int64_t lk_selection_seconds(const char *time) {
    struct tm t = {0};
    int n = 0;
    if (sscanf(time, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec,
               &n) != 6 ||
        n != 20 || time[n])
        return -1;
    t.tm_year -= 1900, t.tm_mon -= 1;
    return (int64_t)timegm(&t);
}

/* What the action does to the state, or why it cannot. */
static enum lk_code apply(struct lk_selection *s, const struct lk_selection_action *a, bool undo) {
    char id[48];
    lk_source_id(a->source, id);
    bool choice = a->kind == LK_SELECT_CHOOSE || a->kind == LK_SELECT_UNCHOOSE;
    if (lk_selection_seconds(a->time) < 0)
        return lk_fail(LK_E_INPUT, "%s: expected a time as 2026-01-17T10:00:00Z, got \"%.40s\"", id, a->time);
    if (!a->pool && a->kind != LK_SELECT_NOTE)
        return lk_fail(LK_E_INPUT, "%s: expected a candidate's pool, 1 to 7, got none", id);
    struct lk_candidate *c = a->pool ? &s->candidates[a->source][a->pool - 1] : NULL;
    if (choice && c->chosen == (a->kind == LK_SELECT_CHOOSE))
        return lk_fail(LK_E_INPUT, "%s: the candidate of pool %d is %s already", id, a->pool,
                       c->chosen ? "chosen" : "not chosen");
    if (choice && undo && s->n_stack)
        s->n_stack--;
    else if (choice) {
        LK_TRY(lk_grow(&s->stack, &s->stack_capacity, s->n_stack + 1, sizeof *s->stack));
        s->stack[s->n_stack++] = (struct lk_selection_choice){(int16_t)a->source, (int8_t)a->pool};
    }
    const char *note = a->kind == LK_SELECT_NOTE ? lk_store_text(&s->texts, a->note) : "";
    if (!note) return out_of_memory();
    if (choice) c->chosen = a->kind == LK_SELECT_CHOOSE;
    if (a->kind == LK_SELECT_CHOOSE) memcpy(c->criteria, a->criteria, sizeof c->criteria);
    if (a->kind == LK_SELECT_FLAG) c->flagged = !c->flagged;
    if (a->kind == LK_SELECT_NOTE && c) c->note = note;
    int64_t at = lk_selection_seconds(a->time);
    if (!s->n_actions++) s->first = at;
    s->last = at;
    return LK_OK;
}

static enum lk_code read_action(struct lk_selection *s, const struct lk_fields *fields, size_t line) {
    static const char *const kinds[] = {"choose", "unchoose", "flag", "note", NULL};
    const struct lk_field *time = lk_fields_find(fields, "time"), *kind = lk_fields_find(fields, "action"),
                          *note = lk_fields_find(fields, "note"), *file = lk_fields_find(fields, "file"),
                          *undo = lk_fields_find(fields, "undo");
    struct lk_selection_action a = {.time = time ? time->text : "", .note = note ? note->text : ""};
    int at = kind ? lk_field_word(kind, kinds) : -1;
    if (at < 0) return lk_field_wrong(s->log, line, "action", "choose, unchoose, flag or note", kind);
    a.kind = (enum lk_selection_kind)at;
    LK_TRY(read_cell(fields, s->log, line, &a.source, &a.pool));
    const char *drawn = a.pool ? s->candidates[a.source][a.pool - 1].file : NULL;
    if (a.pool && file && strcmp(file->text, drawn)) return lk_field_wrong(s->log, line, "file", drawn, file);
    for (int i = 0; i < LK_N_CRITERIA; i++) {
        char name[64];
        snprintf(name, sizeof name, "criteria.%s", lk_criteria[i]);
        const struct lk_field *field = lk_fields_find(fields, name);
        int value = field ? lk_field_bool(field) : 0;
        if (value < 0 || (!field && a.kind == LK_SELECT_CHOOSE))
            return lk_field_wrong(s->log, line, name, "true or false", field);
        a.criteria[i] = value;
    }
    enum lk_code rc = apply(s, &a, undo && lk_field_bool(undo) == 1);
    return rc ? lk_fail_prefix(rc, "%s: line %zu", s->log, line) : LK_OK;
}

typedef enum lk_code record_fn(struct lk_selection *s, const struct lk_fields *fields, size_t line);

/* A line that is no JSON was cut off by a crash: its action was never confirmed. */
static enum lk_code read_lines(struct lk_selection *s, const char *path, bool may_be_cut, record_fn *record) {
    struct lk_records records;
    char *text;
    size_t n;
    bool more = false, bad = false;
    LK_TRY(lk_read_file(path, MAX_BYTES, &text, &n));
    if (!n && may_be_cut) { /* nobody has chosen yet */
        lk_free(text);
        return LK_OK;
    }
    enum lk_code rc = lk_records_open(&records, text, n, path);
    if (!rc) rc = may_be_cut ? lk_records_next(&records, &more, &bad) : lk_records_next_strict(&records, &more);
    while (!rc && more) {
        if (!bad) rc = record(s, &records.fields, records.line);
        if (!rc) rc = may_be_cut ? lk_records_next(&records, &more, &bad) : lk_records_next_strict(&records, &more);
    }
    lk_records_close(&records);
    lk_free(text);
    return rc;
}

static enum lk_code check_candidates(const struct lk_selection *s) {
    for (int i = 0; i < LK_N_SOURCES; i++)
        for (int v = 0; v < LK_N_POOLS; v++) {
            char id[48];
            lk_source_id(i, id);
            if (!s->candidates[i][v].file)
                return lk_fail(LK_E_INPUT, "%s: %s: expected a candidate of pool %d, got none", s->pools, id, v + 1);
        }
    return LK_OK;
}

enum lk_code lk_selection_open(struct lk_selection **out, const char *pools, const char *log) {
    struct lk_selection *s = lk_calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return out_of_memory();
    s->pools = lk_store_copy(&s->texts, pools, strlen(pools));
    s->log = lk_store_copy(&s->texts, log, strlen(log));
    enum lk_code rc = s->pools && s->log ? LK_OK : out_of_memory();
    if (!rc) rc = read_lines(s, pools, false, read_candidate);
    if (!rc) rc = check_candidates(s);
    if (!rc) rc = read_lines(s, log, true, read_action);
    if (rc == LK_E_NOT_FOUND && !s->n_actions && s->candidates[0][0].file) rc = LK_OK; /* no log yet */
    if (rc)
        lk_selection_close(s);
    else
        *out = s;
    return rc;
}

void lk_selection_close(struct lk_selection *s) {
    if (!s) return;
    lk_free(s->stack);
    lk_store_free(&s->texts);
    lk_free(s);
}

const struct lk_candidate *lk_selection_candidate(const struct lk_selection *s, int source, int pool) {
    return &s->candidates[source][pool - 1];
}
size_t lk_selection_n_actions(const struct lk_selection *s) { return s->n_actions; }

int lk_selection_chosen(const struct lk_selection *s, int source) {
    int chosen = 0, n = 0;
    for (int v = 1; v <= LK_N_POOLS; v++)
        if (s->candidates[source][v - 1].chosen) chosen = v, n++;
    return n == 1 ? chosen : 0;
}

int lk_selection_failed(const struct lk_candidate *candidate) {
    int i = 0;
    while (i < LK_N_CRITERIA && candidate->criteria[i]) i++;
    return i;
}

int lk_selection_n_done(const struct lk_selection *s) {
    int n = 0;
    for (int i = 0; i < LK_N_SOURCES; i++) {
        int pool = lk_selection_chosen(s, i);
        n += pool && lk_selection_failed(&s->candidates[i][pool - 1]) == LK_N_CRITERIA;
    }
    return n;
}

static enum lk_code act(struct lk_selection *s, const struct lk_selection_action *a, bool undo) {
    struct lk_text line = {0};
    char id[48];
    lk_source_id(a->source, id);
    if (strlen(a->note) > MAX_NOTE)
        return lk_fail(LK_E_INPUT, "note: expected at most %d bytes, got %zu", MAX_NOTE, strlen(a->note));
    lk_text_add(&line, "{\"time\": ");
    lk_text_json(&line, a->time);
    lk_text_add(&line, ", \"actor\": ");
    lk_text_json(&line, a->actor);
    lk_text_add(&line, ", \"action\": \"%s\", \"source_id\": \"%s\"", lk_selection_kinds[a->kind], id);
    if (a->pool) {
        lk_text_add(&line, ", \"pool\": %d, \"file\": ", a->pool);
        lk_text_json(&line, s->candidates[a->source][a->pool - 1].file);
    }
    lk_text_add(&line, ", \"criteria\": {");
    for (int i = 0; i < LK_N_CRITERIA; i++)
        lk_text_add(&line, "%s\"%s\": %s", i ? ", " : "", lk_criteria[i], a->criteria[i] ? "true" : "false");
    lk_text_add(&line, "}, \"note\": ");
    lk_text_json(&line, a->note);
    lk_text_add(&line, "%s}\n", undo ? ", \"undo\": true" : "");
    /* What the log would refuse when it is read again must not come into it: the state says so first. */
    struct lk_candidate before = a->pool ? s->candidates[a->source][a->pool - 1] : (struct lk_candidate){0};
    struct lk_selection counts = *s;
    enum lk_code rc = line.rc ? line.rc : apply(s, a, undo);
    if (!rc && (rc = lk_append_lines(s->log, line.bytes, line.n))) {
        if (a->pool) s->candidates[a->source][a->pool - 1] = before;
        s->n_actions = counts.n_actions, s->first = counts.first, s->last = counts.last, s->n_stack = counts.n_stack;
    }
    lk_text_free(&line);
    return rc;
}

enum lk_code lk_selection_act(struct lk_selection *s, const struct lk_selection_action *action) {
    return act(s, action, false);
}

enum lk_code lk_selection_undo(struct lk_selection *s, const char *time, const char *actor, int *source) {
    if (!s->n_stack) return lk_fail(LK_E_INPUT, "there is no choice to take back");
    const struct lk_selection_choice last = s->stack[s->n_stack - 1];
    const struct lk_candidate *c = &s->candidates[last.source][last.pool - 1];
    struct lk_selection_action a = {.time = time,
                                    .actor = actor,
                                    .kind = c->chosen ? LK_SELECT_UNCHOOSE : LK_SELECT_CHOOSE,
                                    .source = last.source,
                                    .pool = last.pool,
                                    .note = ""};
    memcpy(a.criteria, c->criteria, sizeof a.criteria);
    *source = last.source;
    return act(s, &a, true);
}
