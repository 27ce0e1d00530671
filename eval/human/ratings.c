#include "eval/human/ratings.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "eval/human/quality.h"
#include "eval/scores/words.h"
#include "eval/study/prompts.h"

struct lk_gold_key {
    bool keyed;
    struct lk_human_answers expected;
};

/* What the protocols and the platforms call who rated and what; the first is what messages ask for. */
static const char *const worker_names[] = {"workerId",  "PROLIFIC_PID", "participant id", "rater", "rater_id",
                                           "annotator", "completed_by", "email address",  "email", NULL};
static const char *const image_names[] = {"imageId", "item_id", "image", NULL};

static const struct lk_field *required(const struct lk_fields *fields, const char *const *names) {
    const struct lk_field *field = lk_fields_find_any(fields, names);
    if (!field || (field->kind != '"' && field->kind != 'c' && field->kind != '0')) {
        lk_fail(LK_E_INPUT, "expected a field \"%s\"", names[0]);
        return NULL;
    }
    return field;
}

/* A table needs a column of one of the names, whatever is in it. */
static enum lk_code require_column(const struct lk_records *records, const char *const *names) {
    int column = -1;
    for (size_t i = 0; records->names && i < records->csv.n_columns; i++)
        if (lk_word_of(names, records->names[i], strlen(records->names[i])) >= 0) return LK_OK;
    for (int i = 0; names[i]; i++)
        if (lk_csv_column(&records->csv, names[i]) >= 0) return LK_OK;
    return lk_csv_require(&records->csv, names[0], &column);
}

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "out of memory for ratings"); }

enum lk_code lk_ratings_reject(struct lk_ratings_import *import, size_t line, const char *item) {
    char reason[1024];
    snprintf(reason, sizeof reason, "%s", lk_error_text());
    return lk_rejects_add(&import->rejects, line, item, reason);
}

/* The file's name alone, without folder and ending, as forms and annotation tools show pictures. */
static const char *bare_id(const struct lk_field *image, size_t *n) {
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".webp"};
    const char *slash = memrchr(image->text, '/', image->n), *text = slash ? slash + 1 : image->text;
    *n = image->n - (size_t)(text - image->text);
    text = lk_trim(text, n);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t length = strlen(ends[i]);
        if (*n > length && !strncasecmp(text + *n - length, ends[i], length)) *n -= length;
    }
    return text;
}

/* imageId with the arm of the field "arm" where the id itself names none. */
static enum lk_code item_id(const struct lk_fields *fields, const struct lk_field *image, char out[256]) {
    const struct lk_field *arm = lk_fields_find(fields, "arm");
    int level = arm ? lk_factor_parse(LK_FACTOR_ARM, arm->text, arm->n) : -1;
    size_t n;
    const char *id = bare_id(image, &n), *dot = memrchr(id, '.', n);
    if (arm && level < 0) return lk_fail(LK_E_INPUT, "arm: expected edited or preserved, got \"%.40s\"", arm->text);
    if (n > 200) return lk_fail(LK_E_INPUT, "imageId: longer than 200 bytes");
    if (dot && level >= 0 && lk_factor_parse(LK_FACTOR_ARM, dot + 1, (size_t)(id + n - dot - 1)) != level)
        return lk_fail(LK_E_INPUT, "arm: \"%.40s\" is not that of imageId", arm->text);
    snprintf(out, 256, "%.*s%s", (int)n, id, !dot && level == LK_ARM_PRESERVED ? ".preserved" : "");
    return LK_OK;
}

/* The number of a gold id, with room for its expectation. */
static enum lk_code gold_number(struct lk_ratings_import *import, const char *id, int32_t *out) {
    LK_TRY(lk_grow(&import->gold, &import->gold_capacity, import->n_gold_keys + 1, sizeof *import->gold));
    LK_TRY(lk_names_number(&import->gold_ids, id, strlen(id), out));
    if ((size_t)*out == import->n_gold_keys) import->gold[import->n_gold_keys++] = (struct lk_gold_key){0};
    return LK_OK;
}

static enum lk_code read_gold(struct lk_ratings_import *import, const struct lk_fields *fields) {
    struct lk_human_answers expected;
    const struct lk_field *image = required(fields, image_names);
    char id[256];
    int32_t at;
    if (!image) return LK_E_INPUT;
    LK_TRY(item_id(fields, image, id));
    LK_TRY(lk_human_answers_read(fields, "expected.", -1, &expected));
    if (!lk_human_answers_any(&expected)) LK_TRY(lk_human_answers_read(fields, "", -1, &expected));
    if (!lk_human_answers_any(&expected))
        return lk_fail(LK_E_INPUT, "gold item \"%.80s\": expects nothing", image->text);
    if (expected.choice) {
        expected.choice = lk_store_copy(&import->texts, expected.choice, strlen(expected.choice));
        if (!expected.choice) return out_of_memory();
    }
    LK_TRY(gold_number(import, id, &at));
    if (import->gold[at].keyed) return lk_fail(LK_E_INPUT, "gold item \"%.80s\": keyed twice", image->text);
    import->gold[at] = (struct lk_gold_key){true, expected};
    return LK_OK;
}

enum lk_code lk_ratings_gold(struct lk_ratings_import *import, const char *text, size_t n, const char *name) {
    struct lk_records records;
    LK_TRY(lk_records_open(&records, text, n, name));
    enum lk_code rc;
    for (bool more, bad; !(rc = lk_records_next(&records, &more, &bad)) && more;) {
        rc = bad ? LK_E_INPUT : read_gold(import, &records.fields);
        if (rc) {
            rc = lk_fail_prefix(rc, "%s: line %zu", name, records.line);
            break;
        }
    }
    lk_records_close(&records);
    return rc;
}

/* The fields that repeat a part of the item's id must agree with it. */
static enum lk_code check_labels(const struct lk_fields *fields, const struct lk_item *item) {
    const struct {
        const char *name;
        enum lk_factor factor;
        int level;
    } labels[] = {{"model", LK_FACTOR_MODEL, item->model},
                  {"race", LK_FACTOR_RACE, item->race},
                  {"gender", LK_FACTOR_GENDER, item->gender},
                  {"age", LK_FACTOR_AGE, item->age},
                  {"category", LK_FACTOR_CATEGORY, lk_prompt_category(item->prompt)}};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        const struct lk_field *field = lk_fields_find_exactly(fields, labels[i].name);
        if (!field || labels[i].level < 0) continue;
        if (lk_factor_parse(labels[i].factor, field->text, field->n) != labels[i].level)
            return lk_fail(LK_E_INPUT, "%s: \"%.40s\" is not that of imageId (%s)", field->name, field->text,
                           lk_factor_key(labels[i].factor, labels[i].level));
    }
    const struct lk_field *prompt = lk_fields_find(fields, "promptId");
    if (prompt && item->prompt >= 0 && lk_prompt_parse(prompt->text, prompt->n) != item->prompt)
        return lk_fail(LK_E_INPUT, "promptId: \"%.40s\" is not that of imageId (%s)", prompt->text,
                       lk_prompt_id(item->prompt));
    return LK_OK;
}

static enum lk_code take_ms(const struct lk_field *field, int32_t *out) {
    long ms = field ? lk_field_count(field, INT32_MAX) : 0;
    if (ms < 0) return lk_fail(LK_E_INPUT, "%s: expected milliseconds, got \"%.40s\"", field->name, field->text);
    if (field) *out = (int32_t)ms;
    return LK_OK;
}

static enum lk_code take_times(const struct lk_fields *fields, struct lk_rating *rating) {
    LK_TRY(take_ms(lk_fields_find(fields, "duration_ms"), &rating->duration_ms));
    LK_TRY(take_ms(lk_fields_find(fields, "position"), &rating->position));
    for (size_t i = 0; i < fields->n; i++) {
        struct lk_field *field = &fields->list[i];
        if (strncmp(field->name, "question_ms.", 12) || lk_field_is_open(field)) continue;
        int axis = lk_factor_parse(LK_FACTOR_AXIS, field->name + 12, strlen(field->name + 12));
        if (axis < 0 && lk_same_name(field->name + 12, "age_accuracy")) axis = LK_AXIS_AGE_DRIFT;
        if (axis < 0) continue;
        field->read = true;
        LK_TRY(take_ms(field, &rating->question_ms[axis]));
    }
    return LK_OK;
}

struct record {
    struct lk_rating rating;
    uint64_t key; /* of the document, so that a revision finds it */
    bool sides_assumed;
};

static void fill_rating(struct lk_rating *rating, const struct lk_human_answers *answers) {
    memcpy(rating->score, answers->score, sizeof rating->score);
    memcpy(rating->answer_class, answers->answer_class, sizeof rating->answer_class);
    rating->skin_magnitude = answers->skin_magnitude;
    rating->preference = answers->preference;
    rating->confidence = answers->confidence;
    rating->role = answers->role;
    rating->n_asked = (uint8_t)(answers->n_answered + answers->n_left_open);
    rating->n_skipped = answers->n_left_open;
    rating->open_questions = answers->open_questions;
}

/* An attention check: its expectation, and whether the answers meet it. */
static enum lk_code take_gold(struct lk_ratings_import *import, const struct lk_fields *fields, const char *id,
                              const struct lk_human_answers *answers, struct lk_rating *rating, int32_t *number) {
    struct lk_human_answers own;
    LK_TRY(lk_human_answers_read(fields, "expected.", -1, &own));
    LK_TRY(gold_number(import, id, number));
    const struct lk_gold_key *key = &import->gold[*number];
    const struct lk_human_answers *expected = lk_human_answers_any(&own) ? &own : key->keyed ? &key->expected : NULL;
    rating->gold = *number;
    rating->is_gold = true;
    const struct lk_field *verdict = lk_fields_find(fields, "gold_right");
    int right = verdict ? lk_field_bool(verdict) : -1;
    if (verdict && right < 0) return lk_fail(LK_E_INPUT, "gold_right: expected true or false");
    if (expected) right = lk_gold_is_right(expected, answers, import->gold_tolerance);
    rating->gold_keyed = right >= 0;
    rating->gold_right = right == 1;
    return LK_OK;
}

static enum lk_code find_item(struct lk_ratings_import *import, const struct lk_fields *fields, const char *id,
                              bool is_gold, int32_t *out) {
    struct lk_dataset *data = import->data;
    size_t n = strlen(id);
    if (is_gold) { /* often no item of the study */
        if (lk_dataset_find(data, id, n, out)) *out = -1;
        return LK_OK;
    }
    struct lk_item parts;
    LK_TRY(lk_dataset_parts(data, id, n, &parts));
    if (parts.job < 0) LK_TRY(check_labels(fields, &parts));
    if (!import->known_only) return lk_dataset_item(data, id, n, out);
    LK_TRY(lk_dataset_find(data, id, n, out));
    if (*out >= 0) return LK_OK;
    import->n_unknown++;
    return lk_fail(LK_E_INPUT, "no such item in this run");
}

static enum lk_code take_text(struct lk_dataset *data, const struct lk_fields *fields, const char *name,
                              const char **out) {
    const struct lk_field *field = lk_fields_find(fields, name);
    if (!field || (field->kind != '"' && field->kind != 'c') || !field->n) return LK_OK;
    *out = lk_dataset_text(data, field->text, field->n);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for ratings");
}

/* All of a record before anything is added to the dataset but its item and rater. */
static enum lk_code read_record(struct lk_ratings_import *import, const struct lk_fields *fields, struct record *out) {
    struct lk_human_answers answers;
    char id[256], rater[LK_RATER_ID_MAX + 1];
    const struct lk_field *worker = required(fields, worker_names),
                          *image = worker ? required(fields, image_names) : NULL;
    if (!image) return LK_E_INPUT;
    LK_TRY(lk_rater_id(worker->text, worker->n, rater));
    const struct lk_field *check = lk_fields_find(fields, "isAttentionCheck"), *task = lk_fields_find(fields, "taskId");
    int is_gold = check ? lk_field_bool(check) : 0;
    if (is_gold < 0) return lk_fail(LK_E_INPUT, "isAttentionCheck: expected true or false, got \"%.40s\"", check->text);

    int prompt = -1;
    LK_TRY(item_id(fields, image, id));
    if (lk_dataset_id_prompt(is_gold ? NULL : import->data, id, strlen(id), &prompt) && !is_gold) return LK_E_INPUT;
    LK_TRY(lk_human_answers_read(fields, "", prompt, &answers));
    bool judged = is_gold && lk_fields_find(fields, "gold_right");
    if (!answers.n_answered && !answers.n_left_open && !judged) return lk_fail(LK_E_INPUT, "no answer to any question");
    struct lk_rating *rating = &out->rating;
    lk_rating_clear(rating);
    LK_TRY(take_times(fields, rating));
    LK_TRY(take_text(import->data, fields, "timestamp", &rating->timestamp));
    LK_TRY(take_text(import->data, fields, "comment", &rating->comment));
    fill_rating(rating, &answers);
    int32_t gold = 0;
    if (is_gold) LK_TRY(take_gold(import, fields, id, &answers, rating, &gold));
    if (task) LK_TRY(lk_names_number(&import->tasks, task->text, task->n, &rating->task));
    LK_TRY(find_item(import, fields, id, is_gold, &rating->item));
    LK_TRY(lk_dataset_rater(import->data, rater, strlen(rater), &rating->rater));
    const struct lk_field *protocol = lk_fields_find(fields, "protocol");
    const int said = protocol ? lk_protocol_parse(protocol->text) : -1;
    if (said >= 0) import->protocols |= 1u << said;
    const struct lk_field *simulated = lk_fields_find(fields, "simulated");
    if (simulated && lk_field_bool(simulated) == 1) import->data->raters[rating->rater].is_simulated = true;
    bool is_choice = answers.preference >= 0 || lk_fields_find_open(fields, "preference");
    uint64_t what = is_gold ? (uint64_t)gold : (uint64_t)rating->item;
    out->key = ((uint64_t)rating->rater << 32 | what) << 2 | (uint64_t)is_gold << 1 | is_choice;
    out->sides_assumed = answers.sides_assumed;
    return LK_OK;
}

static enum lk_code store(struct lk_ratings_import *import, const struct record *record) {
    struct lk_dataset *data = import->data;
    struct lk_rating *slot;
    int32_t at = lk_key_index_find(&import->revisions, record->key);
    import->n_sides_assumed += record->sides_assumed;
    if (at >= 0) {
        import->n_revisions++;
        data->ratings[at] = record->rating;
        return LK_OK;
    }
    LK_TRY(lk_key_index_reserve(&import->revisions));
    LK_TRY(lk_dataset_rating(data, &slot));
    *slot = record->rating;
    lk_key_index_put(&import->revisions, record->key, (int32_t)data->n_ratings - 1);
    import->n_gold += slot->is_gold;
    import->n_gold_unkeyed += slot->is_gold && !slot->gold_keyed;
    return LK_OK;
}

/* A platform's own word that a record is no rating. */
static bool is_left_out(struct lk_ratings_import *import, enum lk_record_state state) {
    import->n_rejected += state == LK_RECORD_REJECTED;
    import->n_unfinished += state == LK_RECORD_UNFINISHED;
    import->n_previews += state == LK_RECORD_PREVIEW;
    return state != LK_RECORD_ANSWERS;
}

static bool is_stale(struct lk_ratings_import *import, const struct lk_fields *fields) {
    const struct lk_field *image = lk_fields_find_any(fields, image_names),
                          *sha256 = lk_fields_find(fields, "imageSha256");
    char id[256];
    if (!import->is_shown || !image || !sha256 || item_id(fields, image, id)) return false;
    const bool stale = !import->is_shown(import->pictures, id, sha256->text);
    import->n_stale += stale;
    return stale;
}

static enum lk_code next_record(struct lk_ratings_import *import, struct lk_records *records, bool bad) {
    struct record record;
    import->n_records++;
    if (!bad && is_left_out(import, records->state)) {
        lk_records_leave(records);
        return LK_OK;
    }
    if (!bad && is_stale(import, &records->fields)) {
        lk_records_leave(records);
        return LK_OK;
    }
    enum lk_code rc = bad ? LK_E_INPUT : read_record(import, &records->fields, &record);
    if (!rc) return store(import, &record);
    if (rc != LK_E_INPUT) return rc;
    const struct lk_field *image = bad ? NULL : lk_fields_find_any(&records->fields, image_names);
    import->n_invalid++;
    rc = lk_ratings_reject(import, records->line, image ? image->text : "");
    lk_records_leave(records);
    return rc;
}

/* Of this file alone. */
static enum lk_code note_unread(struct lk_ratings_import *import, struct lk_records *records) {
    lk_names_free(&import->unread);
    return lk_records_unread(records, &import->unread);
}

enum lk_code lk_ratings_read(struct lk_ratings_import *import, const char *text, size_t n, const char *name) {
    struct lk_records records;
    LK_TRY(lk_records_open(&records, text, n, name));
    enum lk_code rc = LK_OK;
    if (records.is_csv) rc = require_column(&records, worker_names);
    if (records.is_csv && !rc) rc = require_column(&records, image_names);
    for (bool more = true, bad; !rc && more;) {
        rc = lk_records_next(&records, &more, &bad);
        if (rc || !more) break;
        rc = next_record(import, &records, bad);
        if (rc) rc = lk_fail_prefix(rc, "%s: line %zu", name, records.line);
    }
    if (!rc) rc = note_unread(import, &records);
    lk_records_close(&records);
    return rc;
}

void lk_ratings_count(struct lk_dataset *data) {
    for (size_t i = 0; i < data->n_raters; i++) data->raters[i].n_questions = data->raters[i].n_skipped = 0;
    for (size_t i = 0; i < data->n_ratings; i++) {
        const struct lk_rating *rating = &data->ratings[i];
        if (rating->rater < 0) continue;
        data->raters[rating->rater].n_questions += rating->n_asked;
        data->raters[rating->rater].n_skipped += rating->n_skipped;
    }
}

void lk_ratings_import_free(struct lk_ratings_import *import) {
    lk_rejects_free(&import->rejects);
    lk_key_index_free(&import->revisions);
    lk_key_index_free(&import->by_participant);
    lk_names_free(&import->tasks);
    lk_names_free(&import->unread);
    lk_names_free(&import->gold_ids);
    lk_store_free(&import->texts);
    lk_free(import->participants);
    lk_free(import->gold);
    memset(import, 0, sizeof *import);
}
