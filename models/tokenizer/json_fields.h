/* Objects of tokenizer.json read by a list of known keys; every message names file and JSON path. */
#pragma once

#include "models/tokenizer/json_text.h"

/* Where an object stands: "tokenizer.json", "pre_tokenizer.pretokenizers[0]" ("" for the top). */
struct json_place {
    const char *file, *path;
};

struct json_field {
    const char *key;
    struct json_value value; /* at NULL when absent */
};

/* Fills the values. Not an object, or a key not listed: LK_E_TOKENIZER. */
enum lk_code lk_tokenizer_json_fields(struct json_place place, struct json_value object, struct json_field *fields,
                                      int n_fields);
/* Looks for one key, whatever others there are. */
enum lk_code lk_tokenizer_json_find(struct json_place place, struct json_value object, struct json_field *field);

/* LK_E_TOKENIZER when absent or of another kind. */
enum lk_code lk_tokenizer_json_field_kind(struct json_place place, const struct json_field *field, char kind);
enum lk_code lk_tokenizer_json_field_bool(struct json_place place, const struct json_field *field, bool *out);
enum lk_code lk_tokenizer_json_field_index(struct json_place place, const struct json_field *field, int64_t max,
                                           int64_t *out);

/* LK_E_TOKENIZER: "PATH.KEY: expected EXPECTED, got VALUE: not implemented". */
enum lk_code lk_tokenizer_json_unknown(struct json_place place, const char *key, struct json_value value,
                                       const char *expected);
