#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "eval/human/ratings_internal.h"

/* Platforms and spreadsheets differ in letter case and in words around the name. */
static const struct lk_field *field_of(const struct lk_fields *fields, const char *const *names) {
    for (int i = 0; names[i]; i++)
        for (size_t k = 0; k < fields->n; k++)
            if (!strcasecmp(fields->list[k].name, names[i])) return lk_fields_find(fields, fields->list[k].name);
    return NULL;
}

static const char *const id_names[] = {"participant id", "participant_id", "workerId", "PROLIFIC_PID", NULL};

static enum lk_code copy(struct lk_ratings_import *import, const struct lk_fields *fields, const char *const *names,
                         const char **out) {
    static const char *const missing[] = {"DATA_EXPIRED", "CONSENT_REVOKED", "Prefer not to say", NULL};
    const struct lk_field *field = field_of(fields, names);
    bool known = field && field->kind != '[' && lk_field_word(field, missing) < 0;
    *out = lk_store_copy(&import->texts, known ? field->text : "", known ? field->n : 0);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for the participants");
}

static enum lk_code read_flag(const struct lk_fields *fields, const char *const *names, int *out) {
    const struct lk_field *field = field_of(fields, names);
    *out = -1;
    if (!field) return LK_OK;
    *out = lk_field_bool(field);
    if (*out >= 0) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: expected true or false, got \"%.40s\"", field->name, field->text);
}

/* 1 for a submission, 0 for one that was given back or ran out, -1 without such a column. */
static enum lk_code read_submitted(const struct lk_fields *fields, int *out) {
    static const char *const flag[] = {"submitted", NULL}, *const status[] = {"status", NULL};
    static const char *const words[] = {
        "returned", "timed-out", "active",          "reserved",  "screened out",       "approved",
        "rejected", "submitted", "awaiting review", "completed", "partially approved", NULL};
    const struct lk_field *field = field_of(fields, status);
    LK_TRY(read_flag(fields, flag, out));
    if (*out >= 0 || !field) return LK_OK;
    int word = lk_field_word(field, words);
    if (word < 0) return lk_fail(LK_E_INPUT, "%s: unknown status \"%.40s\"", field->name, field->text);
    *out = word >= 5;
    return LK_OK;
}

static enum lk_code read_code(const struct lk_fields *fields, bool has_column, const char *code, bool *valid) {
    static const char *const flag[] = {"code_valid", NULL};
    static const char *const names[] = {"completion code", "completion_code", "completionCode", "code", NULL};
    static const char *const none[] = {"NOCODE", NULL};
    int given;
    LK_TRY(read_flag(fields, flag, &given));
    const struct lk_field *field = field_of(fields, names);
    if (given >= 0)
        *valid = given;
    else if (!field)
        *valid = !has_column;
    else
        *valid = code ? !strcmp(field->text, code) : lk_field_word(field, none) < 0;
    return LK_OK;
}

static bool has_any(const struct lk_fields *fields, const char *const *names) {
    for (int i = 0; names[i]; i++)
        for (size_t k = 0; k < fields->n; k++)
            if (!strcasecmp(fields->list[k].name, names[i])) return true;
    return false;
}

static enum lk_code read_person(struct lk_ratings_import *import, const struct lk_fields *fields,
                                struct lk_participant *out) {
    static const char *const age[] = {"age", NULL}, *const sex[] = {"sex", NULL},
                             *const ethnicity[] = {"ethnicity simplified", "ethnicity", NULL},
                             *const student[] = {"student status", "student_status", "student", NULL},
                             *const language[] = {"language", NULL},
                             *const country[] = {"country of residence", "country_of_residence", "country", NULL},
                             *const status[] = {"status", NULL};
    const struct lk_field *years = field_of(fields, age);
    long value = years ? lk_field_count(years, 120) : -1;
    out->age = (int16_t)value;
    LK_TRY(copy(import, fields, sex, &out->sex));
    LK_TRY(copy(import, fields, ethnicity, &out->ethnicity));
    LK_TRY(copy(import, fields, student, &out->student));
    LK_TRY(copy(import, fields, language, &out->language));
    LK_TRY(copy(import, fields, country, &out->country));
    return copy(import, fields, status, &out->status);
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

static enum lk_code read_participant(struct lk_ratings_import *import, const struct lk_fields *fields,
                                     const char *code) {
    static const char *const pilot_names[] = {"pilot", "is_pilot", NULL};
    static const char *const code_names[] = {"completion code", "completion_code", "completionCode", "code", NULL};
    const struct lk_field *id = field_of(fields, id_names);
    int32_t at;
    int submitted, pilot;
    bool valid;
    if (!id) return lk_fail(LK_E_INPUT, "expected a field \"participant id\" or \"workerId\"");
    LK_TRY(read_submitted(fields, &submitted));
    LK_TRY(read_code(fields, has_any(fields, code_names), code, &valid));
    LK_TRY(read_flag(fields, pilot_names, &pilot));
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

enum lk_code lk_ratings_participants(struct lk_ratings_import *import, const char *text, size_t n, const char *name,
                                     const char *code) {
    struct lk_records records;
    LK_TRY(lk_records_open(&records, text, n, name));
    enum lk_code rc;
    for (bool more, bad; !(rc = lk_records_next(&records, &more, &bad)) && more;) {
        rc = bad ? LK_E_INPUT : read_participant(import, &records.fields, code);
        if (rc) {
            rc = lk_fail_prefix(rc, "%s: line %zu", name, records.line);
            break;
        }
    }
    lk_records_close(&records);
    if (!rc) mark_unlisted(import);
    return rc;
}
