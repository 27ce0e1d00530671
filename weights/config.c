#include "weights/config.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "weights/config_identity.h"
#include "weights/mapped_file.h"
#include "weights/paths.h"

#define MAX_BYTES    ((size_t)1 << 20)
#define EXACT_BELOW  9007199254740992.0 /* 2^53: cJSON keeps numbers as double, which is exact below it */
#define MAX_CHILDREN 64                 /* objects opened inside one object */

struct lk_config {
    struct lk_config *root, *parent;
    const cJSON *object;
    const char *key; /* in the parent; NULL at the top */
    bool *known;     /* per member of the object */
    size_t n_members;
    struct lk_config *children[MAX_CHILDREN];
    size_t n_children;
    /* at the top only */
    cJSON *tree;
    char *file;
    bool recorded;          /* what is read counts for the identity of a model */
    struct lk_text taken;   /* what was read then: lines "vision_config.depth 32" */
    struct lk_error *first; /* made at open, so that a problem can be kept when memory is out */
};

/* cJSON's memory comes from here too. Before main, so that no tree is made with one allocator and freed with another.
 */
__attribute__((constructor)) static void use_lk_malloc(void) {
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = lk_malloc, .free_fn = lk_free});
}

static void discard(struct lk_config *c) {
    for (size_t i = 0; i < c->n_children; i++) discard(c->children[i]);
    lk_free(c->known);
    lk_free(c);
}

void lk_config_discard(struct lk_config *c) {
    if (!c) return;
    if (c->recorded && c->taken.n) lk_config_identity_add(c->file, c->taken.bytes);
    lk_text_free(&c->taken);
    cJSON_Delete(c->tree);
    lk_free(c->file);
    lk_free(c->first);
    discard(c);
}

/* "vision_config.rope.type" into out. */
static void describe(const struct lk_config *c, const char *key, char *out, size_t n) {
    if (!c->parent) {
        snprintf(out, n, "%s", key);
        return;
    }
    char inner[512];
    snprintf(inner, sizeof inner, "%.200s.%.200s", c->key, key);
    describe(c->parent, inner, out, n);
}

static void keep_first(struct lk_config *c, enum lk_code code) {
    if (!c->root->first->code) lk_error_get(c->root->first, code);
}

static void record(struct lk_config *c, const char *key, enum lk_code code, const char *text) {
    char field[512];
    describe(c, key, field, sizeof field);
    keep_first(c, lk_fail(code, "%s: field \"%s\": %s", c->root->file, field, text));
}

void lk_config_problem(struct lk_config *c, const char *key, enum lk_code code, const char *format, ...) {
    if (!c) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    record(c, key, code, text);
}

static struct lk_config *make(struct lk_config *parent, const cJSON *object) {
    struct lk_config *c = lk_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->parent = parent;
    c->root = parent ? parent->root : c;
    c->object = object;
    c->key = parent ? object->string : NULL;
    c->n_members = (size_t)cJSON_GetArraySize(object);
    c->known = lk_calloc(c->n_members, sizeof *c->known);
    if (c->known) return c;
    lk_free(c);
    return NULL;
}

/* Everything that cJSON would let pass: duplicate keys, NUL, bad UTF-8, text behind the end, long numbers. */
static enum lk_code check_strictly(const char *text, size_t length, const char *name) {
    struct lk_json j;
    lk_json_init(&j, text, length, name);
    if (lk_json_peek(&j) != '{') lk_json_fail(&j, LK_E_JSON, "expected a JSON object");
    lk_json_skip(&j);
    lk_json_end(&j);
    return lk_json_finish(&j);
}

enum lk_code lk_config_parse(struct lk_config **out, const char *text, size_t length, const char *name) {
    *out = NULL;
    if (length > MAX_BYTES)
        return lk_fail(LK_E_INPUT, "%s: expected at most %zu bytes, got %zu", name, MAX_BYTES, length);
    enum lk_code rc = check_strictly(text, length, name);
    if (rc) return rc;
    cJSON *tree = cJSON_ParseWithLength(text, length);
    struct lk_config *c = tree ? make(NULL, tree) : NULL;
    if (!c) {
        cJSON_Delete(tree);
        return lk_fail(LK_E_NOMEM, "%s: out of memory", name);
    }
    c->tree = tree;
    c->file = lk_strdup(name);
    c->recorded = lk_config_identity_wants(name);
    c->first = lk_calloc(1, sizeof *c->first);
    if (!c->file || !c->first) {
        lk_config_discard(c);
        return lk_fail(LK_E_NOMEM, "%s: out of memory", name);
    }
    *out = c;
    return LK_OK;
}

enum lk_code lk_config_open(struct lk_config **out, const char *path) {
    char *text;
    size_t n;
    *out = NULL;
    enum lk_code rc = lk_read_file(path, MAX_BYTES, &text, &n);
    if (rc) return rc;
    rc = lk_config_parse(out, text, n, path);
    lk_free(text);
    return rc;
}

static const cJSON *find(const struct lk_config *c, const char *key, size_t *index) {
    *index = 0;
    for (const cJSON *item = c->object->child; item; item = item->next, (*index)++)
        if (!strcmp(item->string, key)) return item;
    return NULL;
}

/* The member, marked as known; NULL when it is not there. */
static const cJSON *take(struct lk_config *c, const char *key) {
    size_t i;
    const cJSON *item = find(c, key, &i);
    if (item) c->known[i] = true;
    return item;
}

bool lk_config_has(const struct lk_config *c, const char *key) {
    size_t i;
    const cJSON *item = c ? find(c, key, &i) : NULL;
    return item && !cJSON_IsNull(item);
}

bool lk_config_is_object(const struct lk_config *c, const char *key) {
    size_t i;
    return c && cJSON_IsObject(find(c, key, &i));
}

static void add_value(struct lk_text *out, const cJSON *item) {
    const cJSON *element;
    if (cJSON_IsNumber(item))
        lk_text_number(out, item->valuedouble);
    else if (cJSON_IsString(item))
        lk_text_json(out, item->valuestring);
    else if (!cJSON_IsArray(item))
        lk_text_add(out, cJSON_IsTrue(item) ? "true" : cJSON_IsFalse(item) ? "false" : "null");
    else
        cJSON_ArrayForEach(element, item) {
            lk_text_add(out, ",");
            add_value(out, element);
        }
}

/* A value that a reader takes: of the file, or a default. */
static void take_value(struct lk_config *c, const char *key, const cJSON *value) {
    char field[512];
    if (!c || !c->root->recorded) return;
    describe(c, key, field, sizeof field);
    lk_text_add(&c->root->taken, "%s ", field);
    add_value(&c->root->taken, value);
    lk_text_add(&c->root->taken, "\n");
    if (c->root->taken.rc) lk_config_problem(c, key, LK_E_NOMEM, "out of memory");
}

/* What a value is, for messages. */
static const char *shown(const cJSON *item, char out[96]) {
    if (cJSON_IsString(item))
        snprintf(out, 96, "\"%.80s\"", item->valuestring);
    else if (cJSON_IsNumber(item))
        snprintf(out, 96, "%.17g", item->valuedouble);
    else
        snprintf(out, 96, "%s",
                 cJSON_IsNull(item)     ? "null"
                 : cJSON_IsTrue(item)   ? "true"
                 : cJSON_IsFalse(item)  ? "false"
                 : cJSON_IsArray(item)  ? "an array"
                 : cJSON_IsObject(item) ? "an object"
                                        : "nothing");
    return out;
}

static void wrong_type(struct lk_config *c, const char *key, const char *expected, const cJSON *item) {
    char got[96];
    lk_config_problem(c, key, LK_E_CONFIG_TYPE, "expected %s, got %s", expected, shown(item, got));
}

/* A member that must be there; the problem is recorded when it is not. */
static const cJSON *require(struct lk_config *c, const char *key, const char *expected) {
    const cJSON *item = c ? take(c, key) : NULL;
    if (c && !item) lk_config_problem(c, key, LK_E_CONFIG_KEY, "expected %s, but the field is missing", expected);
    return item;
}

/* A member that may be absent or null: NULL then. */
static const cJSON *optional(struct lk_config *c, const char *key) {
    const cJSON *item = c ? take(c, key) : NULL;
    return cJSON_IsNull(item) ? NULL : item;
}

static bool is_integer(const cJSON *item) {
    return cJSON_IsNumber(item) && item->valuedouble == floor(item->valuedouble) &&
           fabs(item->valuedouble) < EXACT_BELOW;
}

struct lk_config *lk_config_object(struct lk_config *c, const char *key, bool required) {
    const cJSON *item = required ? require(c, key, "an object") : c ? optional(c, key) : NULL;
    if (!item) return NULL;
    for (size_t i = 0; i < c->n_children; i++)
        if (c->children[i]->object == item) return c->children[i];
    if (!cJSON_IsObject(item)) {
        wrong_type(c, key, "an object", item);
        return NULL;
    }
    struct lk_config *child = c->n_children < MAX_CHILDREN ? make(c, item) : NULL;
    if (!child) {
        lk_config_problem(c, key, LK_E_NOMEM, "out of memory");
        return NULL;
    }
    return c->children[c->n_children++] = child;
}

static void get_int(struct lk_config *c, const char *key, const cJSON *item, int64_t *out, int64_t min, int64_t max) {
    if (!item) return;
    take_value(c, key, item);
    if (!is_integer(item)) {
        wrong_type(c, key, "an integer below 2^53", item);
        return;
    }
    int64_t value = (int64_t)item->valuedouble;
    if (value < min || value > max)
        lk_config_problem(c, key, LK_E_CONFIG_VALUE, "expected an integer from %lld to %lld, got %lld", (long long)min,
                          (long long)max, (long long)value);
    else
        *out = value;
}

void lk_config_int(struct lk_config *c, const char *key, int64_t *out, int64_t min, int64_t max) {
    get_int(c, key, require(c, key, "an integer"), out, min, max);
}

void lk_config_int_or(struct lk_config *c, const char *key, int64_t *out, int64_t otherwise, int64_t min, int64_t max) {
    const cJSON *item = optional(c, key);
    if (!item) {
        *out = otherwise;
        take_value(c, key, &(cJSON){.type = cJSON_Number, .valuedouble = (double)otherwise});
    }
    get_int(c, key, item, out, min, max);
}

static void get_number(struct lk_config *c, const char *key, const cJSON *item, double *out, double min, double max) {
    char got[96];
    if (!item) return;
    take_value(c, key, item);
    if (!cJSON_IsNumber(item))
        wrong_type(c, key, "a number", item);
    else if (!(item->valuedouble >= min && item->valuedouble <= max) || !isfinite(item->valuedouble))
        lk_config_problem(c, key, LK_E_CONFIG_VALUE, "expected a number from %g to %g, got %s", min, max,
                          shown(item, got));
    else
        *out = item->valuedouble;
}

void lk_config_number(struct lk_config *c, const char *key, double *out, double min, double max) {
    get_number(c, key, require(c, key, "a number"), out, min, max);
}

void lk_config_number_or(struct lk_config *c, const char *key, double *out, double otherwise, double min, double max) {
    const cJSON *item = optional(c, key);
    if (!item) {
        *out = otherwise;
        take_value(c, key, &(cJSON){.type = cJSON_Number, .valuedouble = otherwise});
    }
    get_number(c, key, item, out, min, max);
}

static void get_bool(struct lk_config *c, const char *key, const cJSON *item, bool *out) {
    if (!item) return;
    take_value(c, key, item);
    if (cJSON_IsBool(item))
        *out = cJSON_IsTrue(item);
    else
        wrong_type(c, key, "true or false", item);
}

void lk_config_bool(struct lk_config *c, const char *key, bool *out) {
    get_bool(c, key, require(c, key, "true or false"), out);
}

void lk_config_bool_or(struct lk_config *c, const char *key, bool *out, bool otherwise) {
    const cJSON *item = optional(c, key);
    if (!item) {
        *out = otherwise;
        take_value(c, key, &(cJSON){.type = otherwise ? cJSON_True : cJSON_False});
    }
    get_bool(c, key, item, out);
}

static void get_string(struct lk_config *c, const char *key, const cJSON *item, const char **out) {
    if (!item) return;
    take_value(c, key, item);
    if (cJSON_IsString(item))
        *out = item->valuestring;
    else
        wrong_type(c, key, "a string", item);
}

void lk_config_string(struct lk_config *c, const char *key, const char **out) {
    get_string(c, key, require(c, key, "a string"), out);
}

void lk_config_string_or(struct lk_config *c, const char *key, const char **out, const char *otherwise) {
    const cJSON *item = optional(c, key);
    if (!item) {
        *out = otherwise;
        take_value(
            c, key,
            &(cJSON){.type = otherwise ? cJSON_String : cJSON_NULL, .valuestring = (char *)(uintptr_t)otherwise});
    }
    get_string(c, key, item, out);
}

/* The array under key with 0 to max_n elements that all pass; NULL with the problem recorded otherwise. */
static const cJSON *array_of(struct lk_config *c, const char *key, const char *expected, bool (*passes)(const cJSON *),
                             size_t max_n) {
    const cJSON *item = require(c, key, expected), *element;
    if (!item) return NULL;
    take_value(c, key, item);
    if (!cJSON_IsArray(item)) {
        wrong_type(c, key, expected, item);
        return NULL;
    }
    cJSON_ArrayForEach(element, item) if (!passes(element)) {
        wrong_type(c, key, expected, element);
        return NULL;
    }
    if ((size_t)cJSON_GetArraySize(item) > max_n) {
        lk_config_problem(c, key, LK_E_CONFIG_VALUE, "expected at most %zu elements, got %d", max_n,
                          cJSON_GetArraySize(item));
        return NULL;
    }
    return item;
}

#define READ_ARRAY(name, type, expected, passes, value)                                                                \
    void name(struct lk_config *c, const char *key, type *out, size_t max_n, size_t *n) {                              \
        const cJSON *element, *array = array_of(c, key, expected, passes, max_n);                                      \
        if (!array) return;                                                                                            \
        *n = 0;                                                                                                        \
        cJSON_ArrayForEach(element, array) out[(*n)++] = value;                                                        \
    }
READ_ARRAY(lk_config_ints, int64_t, "an array of integers", is_integer, (int64_t)element->valuedouble)

void lk_config_int_or_ints(struct lk_config *c, const char *key, int64_t *out, size_t max_n, size_t *n) {
    const cJSON *item = c ? cJSON_GetObjectItemCaseSensitive(c->object, key) : NULL;
    if (!item || !is_integer(item)) {
        lk_config_ints(c, key, out, max_n, n);
        return;
    }
    take(c, key);
    take_value(c, key, item);
    out[0] = (int64_t)item->valuedouble;
    *n = 1;
}

static bool is_string(const cJSON *item) { return cJSON_IsString(item); }
READ_ARRAY(lk_config_strings, const char *, "an array of strings", is_string, element->valuestring)

static bool is_strings(const cJSON *item) {
    const cJSON *element;
    cJSON_ArrayForEach(element, item) if (!cJSON_IsString(element)) return false;
    return cJSON_IsArray(item);
}

void lk_config_string_list(struct lk_config *c, const char *key, size_t i, const char **out, size_t max_n, size_t *n) {
    const cJSON *element, *array = array_of(c, key, "an array of arrays of strings", is_strings, SIZE_MAX);
    const cJSON *list = array ? cJSON_GetArrayItem(array, (int)i) : NULL;
    *n = 0;
    if (array && (!list || (size_t)cJSON_GetArraySize(list) > max_n))
        lk_config_problem(c, key, LK_E_CONFIG_VALUE, "element %zu: expected at most %zu strings", i, max_n);
    else
        cJSON_ArrayForEach(element, list) out[(*n)++] = element->valuestring;
}

static bool is_number(const cJSON *item) { return cJSON_IsNumber(item) && isfinite(item->valuedouble); }

READ_ARRAY(lk_config_numbers, double, "an array of numbers", is_number, element->valuedouble)

static bool is_bool(const cJSON *item) { return cJSON_IsBool(item); }
READ_ARRAY(lk_config_bools, bool, "an array of true and false", is_bool, cJSON_IsTrue(element))

static void not_implemented(struct lk_config *c, const char *key, const char *expected, const cJSON *item) {
    char got[96];
    lk_config_problem(c, key, LK_E_CONFIG_VALUE, "expected %s, got %s: this program implements only the former",
                      expected, shown(item, got));
}

void lk_config_expect_one_of(struct lk_config *c, const char *key, const char *const *values) {
    char expected[256] = "";
    const cJSON *item = c ? take(c, key) : NULL;
    if (!item) return;
    for (size_t i = 0, n = 0; values[i]; i++) {
        if (cJSON_IsString(item) && !strcmp(item->valuestring, values[i])) return;
        if (n < sizeof expected)
            n += (size_t)snprintf(expected + n, sizeof expected - n, "%s\"%.100s\"", i ? " or " : "", values[i]);
    }
    not_implemented(c, key, expected, item);
}

void lk_config_expect_string(struct lk_config *c, const char *key, const char *value) {
    lk_config_expect_one_of(c, key, (const char *const[]){value, NULL});
}

void lk_config_expect_bool(struct lk_config *c, const char *key, bool value) {
    const cJSON *item = c ? take(c, key) : NULL;
    if (item && !(cJSON_IsBool(item) && cJSON_IsTrue(item) == value))
        not_implemented(c, key, value ? "true" : "false", item);
}

void lk_config_expect_int(struct lk_config *c, const char *key, int64_t value) {
    char expected[32];
    const cJSON *item = c ? take(c, key) : NULL;
    if (!item || (is_integer(item) && (int64_t)item->valuedouble == value)) return;
    snprintf(expected, sizeof expected, "%lld", (long long)value);
    not_implemented(c, key, expected, item);
}

void lk_config_expect_null(struct lk_config *c, const char *key) {
    const cJSON *item = c ? take(c, key) : NULL;
    if (item && !cJSON_IsNull(item)) not_implemented(c, key, "null", item);
}

void lk_config_ignore(struct lk_config *c, const char *key) {
    if (c) take(c, key);
}

/* Appends the unknown keys of c and of the objects opened in it; *n is the length so far, *count how many. */
static void list_unknown(const struct lk_config *c, char *out, size_t size, size_t *n, size_t *count) {
    size_t i = 0;
    for (const cJSON *item = c->object->child; item; item = item->next, i++) {
        if (c->known[i]) continue;
        char field[512];
        describe(c, item->string, field, sizeof field);
        if (*n < size) *n += (size_t)snprintf(out + *n, size - *n, "%s\"%s\"", *count ? ", " : "", field);
        (*count)++;
    }
    for (i = 0; i < c->n_children; i++) list_unknown(c->children[i], out, size, n, count);
}

enum lk_code lk_config_close(struct lk_config *c) {
    char unknown[2048] = "";
    size_t n = 0, count = 0;
    enum lk_code rc = LK_OK;
    if (!c) return LK_OK;
    list_unknown(c, unknown, sizeof unknown, &n, &count);
    if (c->first->code)
        rc = lk_error_set(c->first);
    else if (count)
        rc = lk_fail(LK_E_CONFIG_KEY,
                     "%s: %zu unknown field%s: %s; this program cannot say what they change, so it does not go on",
                     c->file, count, count == 1 ? "" : "s", unknown);
    lk_config_discard(c);
    return rc;
}
