#include "models/tokenizer/json_fields.h"

#include <string.h>

static const char *dot(struct json_place place) { return *place.path ? "." : ""; }

/* A value as it stands in the file, cut to what fits a message. */
struct shown {
    int length;
    const char *at, *rest;
};

static struct shown show(struct json_value value) {
    size_t n = (size_t)(value.end - value.at);
    bool cut = n > 60;
    if (cut) {
        n = 60;
        while ((value.at[n] & 0xc0) == 0x80) n--;
    }
    return (struct shown){(int)n, value.at, cut ? "..." : ""};
}

enum lk_code lk_tokenizer_json_unknown(struct json_place place, const char *key, struct json_value value,
                                       const char *expected) {
    struct shown s = show(value);
    return lk_fail(LK_E_TOKENIZER, "%s: %s%s%s: expected %s, got %.*s%s: not implemented", place.file, place.path,
                   dot(place), key, expected, s.length, s.at, s.rest);
}

static enum lk_code not_an_object(struct json_place place, struct json_value value) {
    return lk_fail(LK_E_TOKENIZER, "%s: %s: expected an object, got %s", place.file,
                   *place.path ? place.path : "the top level", lk_tokenizer_json_kind_name(value));
}

enum lk_code lk_tokenizer_json_fields(struct json_place place, struct json_value object, struct json_field *fields,
                                      int n_fields) {
    if (lk_tokenizer_json_kind(object) != '{') return not_an_object(place, object);
    struct json_iterator it = lk_tokenizer_json_begin(object);
    struct json_value key, value;
    while (lk_tokenizer_json_next_member(&it, &key, &value)) {
        int i = 0;
        while (i < n_fields && !lk_tokenizer_json_string_is(key, fields[i].key)) i++;
        struct shown s = show(key);
        if (i == n_fields) {
            return lk_fail(LK_E_TOKENIZER, "%s: %s%s%.*s%s: unknown key: not implemented", place.file, place.path,
                           dot(place), s.length, s.at, s.rest);
        }
        fields[i].value = value;
    }
    return LK_OK;
}

enum lk_code lk_tokenizer_json_find(struct json_place place, struct json_value object, struct json_field *field) {
    if (lk_tokenizer_json_kind(object) != '{') return not_an_object(place, object);
    struct json_iterator it = lk_tokenizer_json_begin(object);
    struct json_value key, value;
    while (!field->value.at && lk_tokenizer_json_next_member(&it, &key, &value)) {
        if (lk_tokenizer_json_string_is(key, field->key)) field->value = value;
    }
    return LK_OK;
}

static enum lk_code wrong_kind(struct json_place place, const struct json_field *field, const char *expected) {
    return lk_fail(LK_E_TOKENIZER, "%s: %s%s%s: expected %s, got %s", place.file, place.path, dot(place), field->key,
                   expected, field->value.at ? lk_tokenizer_json_kind_name(field->value) : "nothing");
}

enum lk_code lk_tokenizer_json_field_kind(struct json_place place, const struct json_field *field, char kind) {
    if (field->value.at && lk_tokenizer_json_kind(field->value) == kind) return LK_OK;
    char example[] = {kind, 0};
    return wrong_kind(place, field, lk_tokenizer_json_kind_name((struct json_value){example, example + 1}));
}

enum lk_code lk_tokenizer_json_field_bool(struct json_place place, const struct json_field *field, bool *out) {
    char kind = field->value.at ? lk_tokenizer_json_kind(field->value) : 0;
    if (kind != 't' && kind != 'f') return wrong_kind(place, field, "true or false");
    *out = kind == 't';
    return LK_OK;
}

enum lk_code lk_tokenizer_json_field_index(struct json_place place, const struct json_field *field, int64_t max,
                                           int64_t *out) {
    if (!field->value.at || lk_tokenizer_json_kind(field->value) != '0') return wrong_kind(place, field, "a number");
    if (lk_tokenizer_json_index(field->value, max, out)) return LK_OK;
    struct shown s = show(field->value);
    return lk_fail(LK_E_TOKENIZER, "%s: %s%s%s: expected an integer from 0 to %lld, got %.*s%s", place.file, place.path,
                   dot(place), field->key, (long long)max, s.length, s.at, s.rest);
}
