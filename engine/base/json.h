/* A strict JSON reader for texts that nobody has checked: safetensors headers, shard indexes, configs. RFC 8259 and
 * more: a byte order mark before the text is passed over, keys of an object must differ, strings must be UTF-8 without
 * NUL, integers are exact, depth is limited.
 *
 *     struct lk_json j;
 *     lk_json_init(&j, text, n_bytes, "model.json");
 *     if (lk_json_enter(&j, '{'))
 *         while (lk_json_next(&j)) {
 *             if (!lk_json_key(&j, &key)) break;
 *             if (!strcmp(key, "size")) lk_json_u64(&j, &size);
 *             else lk_json_skip(&j);
 *         }
 *     lk_json_end(&j);
 *     rc = lk_json_finish(&j);        // the first failure, with its message set; frees what the reader holds
 *
 * After a failure every call returns false and does nothing, so a reader may be driven to its end without looking at
 * each result. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define LK_JSON_MAX_DEPTH  32
#define LK_JSON_MAX_NUMBER 63 /* characters; more is no number that anybody meant */

struct lk_json_key {
    size_t offset, length; /* in key_bytes */
};

struct lk_json {
    const char *name; /* for messages */
    bool nan_is_null; /* set after lk_json_init: NaN, which Python writes, is taken for null */
    const unsigned char *text, *at, *end;
    enum lk_code rc;
    int depth;
    struct {
        char close;
        bool started;
        size_t first_key;
    } open[LK_JSON_MAX_DEPTH];
    struct lk_json_key *keys; /* of all objects that are open */
    size_t n_keys, keys_capacity;
    char *key_bytes; /* behind keys; every key NUL-terminated */
    size_t n_key_bytes, key_bytes_capacity;
    char *string; /* the last string read */
    size_t string_capacity;
};

/* text is borrowed until lk_json_finish. */
void lk_json_init(struct lk_json *j, const void *text, size_t n_bytes, const char *name);
/* Frees and gives the first failure: LK_E_JSON, LK_E_JSON_DUPLICATE, LK_E_JSON_LIMIT, LK_E_NOMEM or a caller's code. */
enum lk_code lk_json_finish(struct lk_json *j);

/* What comes next: one of { [ " 0 (any number) t f n; 0 for the end or anything else. */
char lk_json_peek(struct lk_json *j);
/* Goes into an object ('{') or an array ('['). */
bool lk_json_enter(struct lk_json *j, char open);
/* True when another member or element follows; false when the object or array has closed (or failed). */
bool lk_json_next(struct lk_json *j);
/* A member's key and the colon; valid until the object closes or another key is read. */
bool lk_json_key(struct lk_json *j, const char **key);
/* A string without its escapes, NUL-terminated; valid until the next string is read. */
bool lk_json_string(struct lk_json *j, const char **out);
/* What the n bytes of a well-formed string, quotes included, stand for; out has room for n bytes. No NUL is added. */
size_t lk_json_decode(const char *string, size_t n, char *out);
/* An unsigned integer, exactly: no sign, fraction or exponent, below 2^64. */
bool lk_json_u64(struct lk_json *j, uint64_t *out);
/* A number as the nearest double; one beyond its range is refused. */
bool lk_json_number(struct lk_json *j, double *out);
/* Any value, checked as strictly as the rest. */
bool lk_json_skip(struct lk_json *j);
/* Nothing but white space is left. */
bool lk_json_end(struct lk_json *j);
/* A whole text, nothing of which is kept. */
enum lk_code lk_json_check(const void *text, size_t n_bytes, const char *name);
/* Records a failure of the caller's, "NAME: byte N: ..."; returns false. The first failure stays. */
bool lk_json_fail(struct lk_json *j, enum lk_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));
