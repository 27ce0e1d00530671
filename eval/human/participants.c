#include <string.h>

#include "engine/base/alloc.h"
#include "eval/human/ratings_internal.h"

enum column {
    ID,
    SUBMITTED,
    STATUS,
    CODE_VALID,
    CODE,
    PILOT,
    AGE,
    SEX,
    ETHNICITY,
    STUDENT,
    LANGUAGE,
    COUNTRY,
    N_COLUMNS
};
static const char *const names[N_COLUMNS][5] = {
    [ID] = {"participant id", "workerId", "PROLIFIC_PID", "participant"},
    [SUBMITTED] = {"submitted"},
    [STATUS] = {"status", "submission status", "AssignmentStatus"},
    [CODE_VALID] = {"code_valid"},
    [CODE] = {"completion code", "code", "entered code", "survey code"},
    [PILOT] = {"pilot", "is_pilot"},
    [AGE] = {"age"},
    [SEX] = {"sex"},
    [ETHNICITY] = {"ethnicity simplified", "ethnicity"},
    [STUDENT] = {"student status", "student"},
    [LANGUAGE] = {"language"},
    [COUNTRY] = {"country of residence", "country"},
};

static const struct lk_field *field_of(const struct lk_fields *fields, enum column column) {
    return lk_fields_find_any(fields, names[column]);
}

/* Whether the record has such a column, whatever is in it. */
static bool has_column(const struct lk_fields *fields, enum column column) {
    for (int i = 0; names[column][i]; i++)
        if (lk_fields_find(fields, names[column][i]) || lk_fields_find_open(fields, names[column][i])) return true;
    return false;
}

static enum lk_code copy(struct lk_ratings_import *import, const struct lk_fields *fields, enum column column,
                         const char **out) {
    static const char *const missing[] = {"DATA_EXPIRED", "CONSENT_REVOKED", "Prefer not to say", NULL};
    const struct lk_field *field = field_of(fields, column);
    bool known = field && field->kind != '[' && lk_field_word(field, missing) < 0;
    *out = lk_store_copy(&import->texts, known ? field->text : "", known ? field->n : 0);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for the participants");
}

static enum lk_code read_flag(const struct lk_fields *fields, enum column column, int *out) {
    const struct lk_field *field = field_of(fields, column);
    *out = -1;
    if (!field) return LK_OK;
    *out = lk_field_bool(field);
    if (*out >= 0) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: expected true or false, got \"%.40s\"", field->name, field->text);
}

const struct lk_field *lk_participant_id(const struct lk_fields *fields, bool *asked) {
    *asked = has_column(fields, ID);
    return field_of(fields, ID);
}

const struct lk_field *lk_participant_code(const struct lk_fields *fields, bool *asked) {
    static const char *const none[] = {"NOCODE", NULL};
    const struct lk_field *field = field_of(fields, CODE);
    *asked = has_column(fields, CODE);
    return field && lk_field_word(field, none) < 0 ? field : NULL;
}

enum lk_code lk_participant_submission(const struct lk_records *records, enum lk_submission *out) {
    static const char *const words[] = {
        "returned", "timed-out", "active",          "reserved",  "screened out", "rejected",           "abandoned",
        "unknown",  "submitted", "awaiting review", "completed", "approved",     "partially approved", NULL};
    enum { FIRST_SUBMITTED = 8, FIRST_APPROVED = 11 };
    const struct lk_field *field = field_of(&records->fields, STATUS);
    *out = records->state == LK_RECORD_ANSWERS ? LK_SUBMISSION_UNSAID : LK_SUBMISSION_GONE;
    if (*out || !field || lk_records_knows_state(records)) return LK_OK;
    int word = lk_field_word(field, words);
    if (word < 0) return lk_fail(LK_E_INPUT, "%s: unknown status \"%.40s\"", field->name, field->text);
    *out = word >= FIRST_APPROVED    ? LK_SUBMISSION_APPROVED
           : word >= FIRST_SUBMITTED ? LK_SUBMISSION_WAITING
                                     : LK_SUBMISSION_GONE;
    return LK_OK;
}

/* 1 for a submission that stands, 0 for one that is gone, -1 without such a column. */
static enum lk_code read_submitted(const struct lk_records *records, int *out) {
    enum lk_submission submission;
    LK_TRY(read_flag(&records->fields, SUBMITTED, out));
    if (records->state != LK_RECORD_ANSWERS) *out = 0;
    if (*out >= 0) return LK_OK;
    LK_TRY(lk_participant_submission(records, &submission));
    if (submission) *out = submission > LK_SUBMISSION_GONE;
    return LK_OK;
}

static enum lk_code read_code(const struct lk_fields *fields, const char *code, bool *valid) {
    int given;
    bool asked;
    LK_TRY(read_flag(fields, CODE_VALID, &given));
    const struct lk_field *field = lk_participant_code(fields, &asked);
    if (given >= 0)
        *valid = given;
    else
        *valid = field ? !code || !strcmp(field->text, code) : !asked;
    return LK_OK;
}

static enum lk_code read_person(struct lk_ratings_import *import, const struct lk_fields *fields,
                                struct lk_participant *out) {
    const struct lk_field *years = field_of(fields, AGE);
    long value = years ? lk_field_count(years, 120) : -1;
    out->age = (int16_t)value;
    LK_TRY(copy(import, fields, SEX, &out->sex));
    LK_TRY(copy(import, fields, ETHNICITY, &out->ethnicity));
    LK_TRY(copy(import, fields, STUDENT, &out->student));
    LK_TRY(copy(import, fields, LANGUAGE, &out->language));
    LK_TRY(copy(import, fields, COUNTRY, &out->country));
    return copy(import, fields, STATUS, &out->status);
}

static enum lk_code add_person(struct lk_ratings_import *import, const struct lk_fields *fields, int32_t rater,
                               bool submitted) {
    int32_t at = lk_key_index_find(&import->by_participant, (uint64_t)rater);
    struct lk_participant person = {.rater = rater};
    if (at >= 0 && !submitted) return LK_OK;
    LK_TRY(read_person(import, fields, &person));
    if (at >= 0) { /* the submission counts, not what was given back before */
        import->participants[at] = person;
        return LK_OK;
    }
    LK_TRY(lk_grow(&import->participants, &import->participants_capacity, import->n_participants + 1,
                   sizeof *import->participants));
    LK_TRY(lk_key_index_reserve(&import->by_participant));
    lk_key_index_put(&import->by_participant, (uint64_t)rater, (int32_t)import->n_participants);
    import->participants[import->n_participants++] = person;
    return LK_OK;
}

static enum lk_code read_participant(struct lk_ratings_import *import, const struct lk_records *records,
                                     const char *code) {
    const struct lk_fields *fields = &records->fields;
    const struct lk_field *id = field_of(fields, ID);
    int32_t at;
    int submitted, pilot;
    bool valid;
    if (!id) return lk_fail(LK_E_INPUT, "expected a field \"participant id\" or \"workerId\"");
    LK_TRY(read_submitted(records, &submitted));
    LK_TRY(read_code(fields, code, &valid));
    LK_TRY(read_flag(fields, PILOT, &pilot));
    LK_TRY(lk_dataset_rater(import->data, id->text, id->n, &at));
    struct lk_rater *rater = &import->data->raters[at];
    bool first = lk_key_index_find(&import->by_participant, (uint64_t)at) < 0;
    if (first) {
        rater->submitted = rater->code_valid = false;
        rater->n_sessions = 0;
    }
    rater->n_sessions += submitted != 0;
    rater->submitted = rater->submitted || submitted != 0;
    rater->code_valid = rater->code_valid || (valid && submitted != 0);
    rater->is_pilot = rater->is_pilot || pilot == 1;
    return add_person(import, fields, at, submitted != 0);
}

/* Who rated but is on none of the platform's lists submitted nothing there. */
static void mark_unlisted(struct lk_ratings_import *import) {
    import->n_unlisted = 0;
    for (size_t r = 0; r < import->data->n_raters; r++) {
        if (lk_key_index_find(&import->by_participant, r) >= 0) continue;
        import->data->raters[r].submitted = import->data->raters[r].code_valid = false;
        import->n_unlisted++;
    }
}

/* A table without any column of ids is none of participants. */
static enum lk_code require_id(const struct lk_csv *csv) {
    int column = -1;
    for (int i = 0; names[ID][i]; i++)
        if (lk_csv_column(csv, names[ID][i]) >= 0) return LK_OK;
    return lk_csv_require(csv, names[ID][0], &column);
}

static enum lk_code next_participant(struct lk_ratings_import *import, struct lk_records *records, bool bad,
                                     const char *code) {
    import->n_listed++;
    enum lk_code rc = bad ? LK_E_INPUT : read_participant(import, records, code);
    if (rc != LK_E_INPUT) return rc;
    const struct lk_field *id = bad ? NULL : field_of(&records->fields, ID);
    import->n_listed_invalid++;
    rc = lk_ratings_reject(import, records->line, id ? id->text : "");
    lk_records_leave(records);
    return rc;
}

enum lk_code lk_ratings_participants(struct lk_ratings_import *import, const char *text, size_t n, const char *name,
                                     const char *code) {
    struct lk_records records;
    enum lk_code rc = LK_OK;
    LK_TRY(lk_records_open(&records, text, n, name));
    if (records.is_csv) rc = require_id(&records.csv);
    for (bool more = true, bad; !rc && more;) {
        rc = lk_records_next(&records, &more, &bad);
        if (rc || !more) break;
        rc = next_participant(import, &records, bad, code);
        if (rc) rc = lk_fail_prefix(rc, "%s: line %zu", name, records.line);
    }
    lk_names_free(&import->unread);
    if (!rc) rc = lk_records_unread(&records, &import->unread);
    lk_records_close(&records);
    if (!rc) mark_unlisted(import);
    return rc;
}
