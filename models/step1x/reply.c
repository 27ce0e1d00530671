#include "models/step1x/reply.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "models/step1x/thinking.h"
#include "engine/base/json.h"

#define MAX_NUMBER 64

/* cJSON takes more than JSON; what it may see is checked first. *out NULL: not JSON. */
static enum lk_code parse(const char *text, size_t n, cJSON **out) {
    struct lk_json j;
    *out = NULL;
    lk_json_init(&j, text, n, "reply");
    lk_json_skip(&j);
    lk_json_end(&j);
    enum lk_code rc = lk_json_finish(&j);
    if (rc == LK_E_NOMEM) return rc;
    if (rc) return LK_OK;
    *out = cJSON_ParseWithLength(text, n);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "reply: out of memory");
}

/* Python's strip, then its number syntax: underscores between digits are left out. False when it would not fit. */
static bool number_text(const char *text, bool integer, char out[MAX_NUMBER]) {
    size_t n, k = 0;
    const char *at = lk_utf8_strip(text, strlen(text), &n);
    if (!n || n >= MAX_NUMBER) return false;
    for (size_t i = 0; i < n; i++) {
        bool between = i && i + 1 < n && strchr("0123456789", at[i - 1]) && strchr("0123456789", at[i + 1]);
        if (at[i] == '_' && between) continue;
        if (!at[i] || !strchr(integer ? "+-0123456789" : "+-.0123456789eEinfatyINFATY", at[i])) return false;
        out[k++] = at[i];
    }
    out[k] = 0;
    return true;
}

static bool from_text(const char *text, bool integer, double *out) {
    char digits[MAX_NUMBER], *end;
    if (!number_text(text, integer, digits)) return false;
    *out = strtod(digits, &end);
    return !*end && end != digits;
}

/* int(value or 0) */
static bool whole_number(const cJSON *object, const char *key, double *out) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    *out = 0;
    if (!v || cJSON_IsNull(v) || cJSON_IsFalse(v)) return true;
    if (cJSON_IsTrue(v)) *out = 1;
    if (cJSON_IsNumber(v)) *out = trunc(v->valuedouble);
    if (cJSON_IsString(v) && *v->valuestring) return from_text(v->valuestring, true, out);
    return isfinite(*out) && !((cJSON_IsArray(v) || cJSON_IsObject(v)) && v->child);
}

/* float(value), 0 when missing */
static bool real_number(const cJSON *object, const char *key, double *out) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    *out = 0;
    if (!v) return true;
    if (cJSON_IsBool(v)) *out = cJSON_IsTrue(v);
    if (cJSON_IsNumber(v)) *out = v->valuedouble;
    if (cJSON_IsString(v)) return from_text(v->valuestring, false, out);
    return cJSON_IsBool(v) || cJSON_IsNumber(v);
}

static enum lk_step1x_meets meets_instruction(const cJSON *object) {
    static const struct {
        const char *word;
        enum lk_step1x_meets meets;
    } words[] = {{"yes", LK_STEP1X_MEETS_YES}, {"partial", LK_STEP1X_MEETS_PARTIAL}, {"no", LK_STEP1X_MEETS_NO}};
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, "meets_instruction");
    if (!cJSON_IsString(v)) return LK_STEP1X_MEETS_OTHER;
    size_t n;
    const char *text = lk_utf8_strip(v->valuestring, strlen(v->valuestring), &n);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (n == strlen(words[i].word) && !strncasecmp(text, words[i].word, n)) return words[i].meets;
    return LK_STEP1X_MEETS_OTHER;
}

/* str(value), stripped. Lists and objects, which nobody asked for, as JSON. */
static enum lk_code read_reason(const cJSON *object, char **reason) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, "reason");
    char *printed = NULL;
    const char *text = !v                  ? ""
                       : cJSON_IsString(v) ? v->valuestring
                       : cJSON_IsNull(v)   ? "None"
                       : cJSON_IsTrue(v)   ? "True"
                       : cJSON_IsFalse(v)  ? "False"
                                           : (printed = cJSON_PrintUnformatted(v));
    if (text) {
        size_t n;
        const char *start = lk_utf8_strip(text, strlen(text), &n);
        *reason = lk_strndup(start, n);
    }
    cJSON_free(printed);
    return *reason ? LK_OK : lk_fail(LK_E_NOMEM, "reply: out of memory");
}

enum lk_code lk_step1x_read_faults(const char *json, size_t n, bool *valid, struct lk_step1x_faults *out,
                                   char **reason) {
    cJSON *object;
    double minor;
    *valid = false;
    *reason = NULL;
    LK_TRY(parse(json, n, &object));
    if (!object) return LK_OK;
    *valid = cJSON_IsObject(object) && whole_number(object, "major_conflicts", &out->major_conflicts) &&
             whole_number(object, "minor_conflicts", &minor) &&
             whole_number(object, "hallucinations", &out->hallucinations) &&
             whole_number(object, "omissions", &out->omissions) && real_number(object, "raw_score", &out->raw_score);
    out->meets = meets_instruction(object);
    enum lk_code rc = *valid ? read_reason(object, reason) : LK_OK;
    cJSON_Delete(object);
    return rc;
}

enum lk_code lk_step1x_read_score_list(const char *json, size_t n, bool *valid, double *least) {
    cJSON *object;
    *valid = false;
    LK_TRY(parse(json, n, &object));
    if (!object) return LK_OK;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "score"), *item;
    *valid = cJSON_IsArray(list) && list->child && cJSON_GetObjectItemCaseSensitive(object, "reasoning");
    *least = INFINITY;
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item) && !cJSON_IsBool(item)) *valid = false;
        double value = cJSON_IsNumber(item) ? item->valuedouble : cJSON_IsTrue(item);
        if (value < *least) *least = value;
    }
    cJSON_Delete(object);
    return LK_OK;
}
