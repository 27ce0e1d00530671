#include "eval/human/answers.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/human/ratings.h"
#include "eval/scores/words.h"
#include "eval/study/prompts.h"

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

enum { NAME_MAX_BYTES = 64 };

static const char *const words_of_axis[LK_N_AXES][4] = {{"no", "partial", "yes", NULL},
                                                        {"darker", "same", "lighter", NULL},
                                                        {"no", "yes", NULL},
                                                        {"no", "yes", NULL},
                                                        {"on-target", "off-target", NULL}};

static const char *const skipped_words[] = {"skip", "skipped", NULL};

struct reader {
    const struct lk_fields *fields;
    const char *prefix;
    struct lk_human_answers *out;
    bool axis_open[LK_N_AXES];
};

static const struct lk_field *find(const struct reader *r, const char *name) {
    char full[NAME_MAX_BYTES];
    snprintf(full, sizeof full, "%s%s", r->prefix, name);
    const struct lk_field *field = lk_fields_find(r->fields, full);
    return field && lk_field_word(field, skipped_words) < 0 ? field : NULL;
}

/* A question that the record has, without an answer. */
static bool is_open(const struct reader *r, const char *name) {
    char full[NAME_MAX_BYTES];
    snprintf(full, sizeof full, "%s%s", r->prefix, name);
    const struct lk_field *field = lk_fields_find(r->fields, full);
    return field ? lk_field_word(field, skipped_words) >= 0 : lk_fields_find_open(r->fields, full) != NULL;
}

static enum lk_code bad(const struct lk_field *field, const char *expected) {
    if (field->kind == '[')
        return lk_fail(LK_E_INPUT, "%s: expected %s, got %.80s", field->name, expected, field->text);
    return lk_fail(LK_E_INPUT, "%s: expected %s, got \"%.40s\"", field->name, expected, field->text);
}

static enum lk_code differs(const struct lk_field *field) {
    return lk_fail(LK_E_INPUT, "%s: another field answers the same question differently", field->name);
}

static enum lk_code take_class(struct reader *r, int axis, const struct lk_field *field, int word) {
    int8_t *known = &r->out->answer_class[axis];
    if ((*known >= 0 && *known != word) || (*known < 0 && r->out->score[axis])) return differs(field);
    *known = (int8_t)word;
    if (axis == LK_AXIS_SKIN_TONE) r->out->score[axis] = (uint8_t)(2 + word);
    return LK_OK;
}

static enum lk_code take_axis(struct reader *r, int axis, const struct lk_field *field) {
    int level = lk_field_level(field), word = lk_field_word(field, words_of_axis[axis]);
    if (word >= 0) return take_class(r, axis, field, word);
    if (!level) {
        static const char *const expected[LK_N_AXES] = {"1 to 5, or yes, partial, no",
                                                        "1 to 5, or lighter, same, darker", "1 to 5, or yes, no",
                                                        "1 to 5, or yes, no", "1 to 5, or on-target, off-target"};
        return bad(field, expected[axis]);
    }
    uint8_t *known = &r->out->score[axis];
    if (r->out->answer_class[axis] >= 0 || (*known && *known != level)) return differs(field);
    *known = (uint8_t)level;
    return LK_OK;
}

static enum lk_code take_named(struct reader *r, int axis, const char *name) {
    const struct lk_field *field = find(r, name);
    if (field) return take_axis(r, axis, field);
    r->axis_open[axis] = r->axis_open[axis] || is_open(r, name);
    return LK_OK;
}

/* The oldest field of each axis takes one kind of answer only: 4 is no skin tone shift. */
static enum lk_code take_oldest(struct reader *r, int axis) {
    static const char *const names[LK_N_AXES] = {"editQuality", "skinToneShift", "raceDrift", "genderDrift",
                                                 "ageDrift"};
    const struct lk_field *field = find(r, names[axis]);
    bool in_words = (axis == LK_AXIS_SKIN_TONE || axis == LK_AXIS_AGE_DRIFT) && field &&
                    !strcmp(field->name + strlen(r->prefix), names[axis]); /* ageDrift, and not age_drift */
    if (in_words && lk_field_word(field, words_of_axis[axis]) < 0)
        return bad(field, axis == LK_AXIS_SKIN_TONE ? "lighter, same or darker" : "on-target or off-target");
    return take_named(r, axis, names[axis]);
}

/* An axis under any of its spellings, -1: none. */
static int axis_of(const char *name, int prompt) {
    if (prompt == LK_PROMPT_V03 && lk_same_name(name, "age_accuracy")) return LK_AXIS_AGE_DRIFT;
    for (int a = 0; a < LK_N_AXES; a++)
        if (lk_same_name(name, lk_factor_key(LK_FACTOR_AXIS, a))) return a;
    return lk_factor_parse(LK_FACTOR_AXIS, name, strlen(name));
}

static enum lk_code take_axes(struct reader *r, int prompt) {
    for (size_t i = 0; i < r->fields->n; i++) {
        struct lk_field *field = &r->fields->list[i];
        const char *name = field->name;
        if (strncmp(name, r->prefix, strlen(r->prefix))) continue;
        name += strlen(r->prefix);
        bool inner = !strncmp(name, "scores.", 7);
        if (inner) name += 7;
        const int axis = axis_of(name, prompt);
        if (axis < 0) continue;
        const bool open = lk_field_is_open(field) || lk_field_word(field, skipped_words) >= 0;
        field->read = true;
        r->axis_open[axis] = r->axis_open[axis] || open;
        if (!open) LK_TRY(take_axis(r, axis, field));
    }
    for (int a = 0; a < LK_N_AXES; a++) LK_TRY(take_oldest(r, a));
    return LK_OK;
}

static enum lk_code take_level(const struct reader *r, const char *name, uint8_t *out) {
    char inner[NAME_MAX_BYTES];
    snprintf(inner, sizeof inner, "scores.%s", name);
    const struct lk_field *field = find(r, name);
    if (!field) field = find(r, inner);
    if (!field) return LK_OK;
    *out = (uint8_t)lk_field_level(field);
    return *out ? LK_OK : bad(field, "1 to 5");
}

static enum lk_code take_preference(struct reader *r) {
    static const char *const words[] = {
        "edited",        "preserved", "same", "tie",   "both", "neither", "cannot_determine",
        "no_preference", "left",      "a",    "right", "b",    NULL};
    const struct lk_field *field = find(r, "preference"), *side = find(r, "left_arm");
    int left = side ? lk_factor_parse(LK_FACTOR_ARM, side->text, side->n) : LK_ARM_EDITED;
    if (left < 0) return bad(side, "edited or preserved");
    if (!field) return LK_OK;
    int word = lk_field_word(field, words);
    if (word < 0) return bad(field, "edited, preserved, A, B, left, right or a kind of tie");
    if (word < 8) {
        r->out->preference = (int8_t)(word < 2 ? word : 2);
        return LK_OK;
    }
    r->out->sides_assumed = !side;
    r->out->preference = (int8_t)(word < 10 ? left : 1 - left);
    return LK_OK;
}

static enum lk_code take_role(struct reader *r) {
    static const char *const words[] = {"male", "female", "unclear", NULL};
    const struct lk_field *field = find(r, "roleAssignment");
    uint8_t presentation = 0;
    LK_TRY(take_level(r, "gender_presentation", &presentation));
    if (presentation)
        r->out->role = presentation <= 2 ? LK_ROLE_MALE : presentation >= 4 ? LK_ROLE_FEMALE : LK_ROLE_UNCLEAR;
    if (!field) return LK_OK;
    int role = lk_field_word(field, words);
    if (role < 0) return bad(field, "male, female or unclear");
    if (presentation && role != r->out->role) return differs(field);
    r->out->role = (int8_t)role;
    return LK_OK;
}

static enum lk_code take_all(struct reader *r, int prompt) {
    struct lk_human_answers *out = r->out;
    LK_TRY(take_axes(r, prompt));
    LK_TRY(take_level(r, "skin_change_magnitude", &out->skin_magnitude));
    LK_TRY(take_preference(r));
    uint8_t confidence = 0;
    LK_TRY(take_level(r, "confidence", &confidence));
    out->confidence = (int8_t)confidence;
    LK_TRY(take_role(r));
    const struct lk_field *choice = find(r, "answer");
    out->choice = choice ? choice->text : NULL;
    return LK_OK;
}

/* The other questions under "scores.": how many have an answer; *n_open grows by those that were skipped. */
static int count_further(const struct reader *r, int *n_open) {
    int n = 0;
    for (size_t i = 0; i < r->fields->n; i++) {
        const struct lk_field *field = &r->fields->list[i];
        const char *name = field->name;
        size_t n_prefix = strlen(r->prefix);
        if (strncmp(name, r->prefix, n_prefix) || strncmp(name + n_prefix, "scores.", 7)) continue;
        name += n_prefix + 7;
        if (axis_of(name, -1) >= 0 || lk_same_name(name, "age_accuracy") || lk_same_name(name, "confidence") ||
            lk_same_name(name, "skin_change_magnitude"))
            continue; /* counted where they are read */
        bool open = lk_field_is_open(field) || lk_field_word(field, skipped_words) >= 0;
        *n_open += open;
        n += !open && !lk_same_name(name, "gender_presentation"); /* that is the role */
    }
    return n;
}

/* In a table of several experiments an axis column is empty where the question was another one: an open axis counts as
 * skipped only in a record about axes. */
static void count_questions(struct reader *r) {
    struct lk_human_answers *out = r->out;
    int n_axes = 0, n_open = 0;
    for (int a = 0; a < LK_N_AXES; a++) {
        bool answered = out->score[a] || out->answer_class[a] >= 0;
        n_axes += answered;
        n_open += !answered && r->axis_open[a];
        if (!answered && r->axis_open[a]) out->open_questions |= (uint8_t)(1u << a);
    }
    bool other = out->preference >= 0 || out->role != LK_ROLE_NONE || out->choice;
    if (!n_axes && other) n_open = out->open_questions = 0;
    bool alone = !n_axes && !other, preference = is_open(r, "preference"), role = is_open(r, "roleAssignment");
    if (alone && preference) out->open_questions |= LK_OPEN_PREFERENCE;
    if (alone && role) out->open_questions |= LK_OPEN_ROLE;
    n_open += (alone && preference) + (alone && role);
    int n_further = count_further(r, &n_open);
    out->n_answered = (uint8_t)(n_further + n_axes + (out->skin_magnitude > 0) + (out->preference >= 0) +
                                (out->confidence > 0) + (out->role != LK_ROLE_NONE) + (out->choice != NULL));
    out->n_left_open = (uint8_t)n_open;
}

static const struct lk_human_answers none = {
    .answer_class = {-1, -1, -1, -1, -1}, .preference = -1, .role = LK_ROLE_NONE};

enum lk_code lk_human_answers_read(const struct lk_fields *fields, const char *prefix, int prompt,
                                   struct lk_human_answers *out) {
    struct reader r = {.fields = fields, .prefix = prefix, .out = out};
    *out = none;
    enum lk_code rc = take_all(&r, prompt);
    if (rc)
        *out = none;
    else
        count_questions(&r);
    return rc;
}

bool lk_human_answers_any(const struct lk_human_answers *answers) { return answers->n_answered > 0; }

int lk_class_of_level(int axis, int level) {
    switch (axis) {
    case LK_AXIS_EDIT_SUCCESS:
        return level >= 4 ? 2 : level == 3;
    case LK_AXIS_SKIN_TONE:
        return level <= 2 ? 0 : level == 3 ? 1 : 2;
    case LK_AXIS_AGE_DRIFT:
        return level != 3;
    default:
        return level >= 3;
    }
}

static bool axis_is_right(const struct lk_human_answers *expected, const struct lk_human_answers *given, int axis,
                          int tolerance) {
    int wanted = expected->answer_class[axis], got = given->answer_class[axis];
    if (!expected->score[axis] && wanted < 0) return true; /* not keyed */
    if (!given->score[axis] && got < 0) return false;
    if (wanted < 0 && got < 0) {
        int distance = expected->score[axis] - given->score[axis];
        return distance <= tolerance && -distance <= tolerance;
    }
    if (wanted < 0) wanted = lk_class_of_level(axis, expected->score[axis]);
    if (got < 0) got = lk_class_of_level(axis, given->score[axis]);
    return wanted == got;
}

bool lk_gold_is_right(const struct lk_human_answers *expected, const struct lk_human_answers *given, int tolerance) {
    for (int a = 0; a < LK_N_AXES; a++)
        if (!axis_is_right(expected, given, a, tolerance)) return false;
    if (expected->preference >= 0 && expected->preference != given->preference) return false;
    if (expected->role != LK_ROLE_NONE && expected->role != given->role) return false;
    return !expected->choice || (given->choice && lk_same_name(expected->choice, given->choice));
}
