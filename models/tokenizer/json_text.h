/* JSON without a tree: engine/base/json.h checks the text as a whole, then it is read through windows into it, so that
 * a tokenizer.json of 17 MB with 400,000 small values costs no allocation per value. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* One value: the bytes [at, end), without white space around it. Valid while the text lives. */
struct json_value {
    const char *at, *end;
};

/* As lk_json_skip and lk_json_end judge it: LK_E_JSON, LK_E_JSON_DUPLICATE, LK_E_JSON_LIMIT. `name` is for messages. */
enum lk_code lk_tokenizer_json_check(const char *text, size_t length, const char *name, struct json_value *root);

/* '{' '[' '"' 't' 'f' 'n', or '0' for a number. */
char lk_tokenizer_json_kind(struct json_value value);
const char *lk_tokenizer_json_kind_name(struct json_value value);

/* Elements of an array or members of an object, in the order of the text. Returns false at the end. */
struct json_iterator {
    const char *at;
};
struct json_iterator lk_tokenizer_json_begin(struct json_value container);
bool lk_tokenizer_json_next(struct json_iterator *it, struct json_value *element);
bool lk_tokenizer_json_next_member(struct json_iterator *it, struct json_value *key, struct json_value *value);
size_t lk_tokenizer_json_count(struct json_value container);

/* Decodes a string into out, which has at least (end - at) bytes; returns its length. No NUL is added. */
size_t lk_tokenizer_json_string(struct json_value string, char *out);
bool lk_tokenizer_json_string_is(struct json_value string, const char *text);
/* True for an integer literal in [0, max]; no sign, point or exponent. */
bool lk_tokenizer_json_index(struct json_value number, int64_t max, int64_t *out);
