/* Values of parameters: from text, from JSON, to both, from job to job. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "models/parameters.h"
#include "weights/config.h"

static void *field(const struct lk_parameter *p, struct lk_job *job) { return (char *)job + p->offset; }
static const void *value(const struct lk_parameter *p, const struct lk_job *job) {
    return (const char *)job + p->offset;
}
static uint64_t bit(const struct lk_parameter *p) { return (uint64_t)1 << (p - lk_parameters); }
static int64_t whole(double limit) { return limit >= 0x1p63 ? INT64_MAX : (int64_t)limit; }

static bool is_text(const struct lk_parameter *p) {
    return p->kind == LK_PARAMETER_TEXT || p->kind == LK_PARAMETER_FILE || p->kind == LK_PARAMETER_CHOICE;
}

static size_t value_size(const struct lk_parameter *p) {
    static const size_t sizes[] = {
        [LK_PARAMETER_FLAG] = sizeof(bool),     [LK_PARAMETER_INT] = sizeof(int),
        [LK_PARAMETER_INT64] = sizeof(int64_t), [LK_PARAMETER_BYTES] = sizeof(uint64_t),
        [LK_PARAMETER_NUMBER] = sizeof(double), [LK_PARAMETER_INTS] = (LK_MAX_OUT_LAYERS + 1) * sizeof(int),
        [LK_PARAMETER_TEXT] = sizeof(char *),   [LK_PARAMETER_FILE] = sizeof(char *),
        [LK_PARAMETER_CHOICE] = sizeof(char *), [LK_PARAMETER_TEXTS] = LK_MAX_TEXTS * sizeof(char *) + sizeof(int),
    };
    return sizes[p->kind];
}

enum lk_code lk_read_int(const char *flag, const char *text, size_t length, int64_t min, int64_t max, int64_t *out) {
    char digits[32];
    bool is_whole = length > 0 && length < sizeof digits;
    for (size_t i = 0; is_whole && i < length; i++)
        if (!isdigit((unsigned char)text[i]) && !(i == 0 && text[i] == '-' && length > 1)) is_whole = false;
    if (is_whole) {
        memcpy(digits, text, length);
        digits[length] = 0;
        errno = 0;
        long long read = strtoll(digits, NULL, 10);
        if (errno == 0 && read >= min && read <= max) {
            *out = read;
            return LK_OK;
        }
    }
    return lk_fail(LK_E_USAGE, "%s: expected a whole number from %lld to %lld, got \"%.*s\"", flag, (long long)min,
                   (long long)max, length > 64 ? 64 : (int)length, text);
}

/* Plain decimal only: digits, one point, an exponent. What else strtod reads (hex, inf, nan, blanks) is refused. */
static bool is_decimal(const char *text) {
    size_t n = strspn(text, "0123456789.eE+-");
    return n > 0 && n < 64 && text[n] == 0 && (isdigit((unsigned char)text[0]) || strchr(".-", text[0]));
}

enum lk_code lk_read_number(const char *flag, const char *text, double min, double max, double *out) {
    char *end = NULL;
    double read = is_decimal(text) ? strtod(text, &end) : NAN;
    if (!end || *end || !(read >= min && read <= max))
        return lk_fail(LK_E_USAGE, "%s: expected a number from %g to %g, got \"%.64s\"", flag, min, max, text);
    *out = read;
    return LK_OK;
}

enum lk_code lk_read_bytes(const char *flag, const char *text, uint64_t *out) {
    size_t digits = strspn(text, "0123456789");
    static const char units[] = "KMGT";
    const char *unit = text[digits] ? strchr(units, toupper((unsigned char)text[digits])) : NULL;
    const char *rest = text + digits + (unit ? 1 : 0);
    if (unit && !strcmp(rest, "iB")) rest += 2;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    errno = 0;
    unsigned long long read = digits > 0 && digits < 20 ? strtoull(text, NULL, 10) : 0;
    if (*rest || read == 0 || errno || read > (UINT64_MAX >> 1) >> shift)
        return lk_fail(LK_E_USAGE, "%s: expected a size as 16G, 81920M or a number of bytes, got \"%.64s\"", flag,
                       text);
    *out = (uint64_t)read << shift;
    return LK_OK;
}

static bool is_choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    for (const char *c = choices; c; c = strchr(c, '|')) {
        if (*c == '|') c++;
        if (length && strcspn(c, "|") == length && !memcmp(c, text, length)) return true;
    }
    return false;
}

enum lk_code lk_read_choice(const char *flag, const char *text, const char *choices, const char **out) {
    if (!is_choice(choices, text)) return lk_fail(LK_E_USAGE, "%s: expected %s, got \"%.64s\"", flag, choices, text);
    *out = text;
    return LK_OK;
}

static enum lk_code read_ints(const struct lk_parameter *p, const char *flag, const char *text, int *out) {
    int values[LK_MAX_OUT_LAYERS + 1] = {0}, n = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        int64_t one;
        if (n == LK_MAX_OUT_LAYERS)
            return lk_fail(LK_E_USAGE, "%s: at most %d numbers, got \"%.64s\"", flag, LK_MAX_OUT_LAYERS, text);
        LK_TRY(lk_read_int(flag, at, length, whole(p->min), whole(p->max), &one));
        values[n++] = (int)one;
        at += length;
        if (!*at) break;
    }
    values[LK_MAX_OUT_LAYERS] = n;
    memcpy(out, values, sizeof values);
    return LK_OK;
}

static const int *n_texts(const void *list) { return (const int *)((const char *const *)list + LK_MAX_TEXTS); }

/* Texts that are the job's own. */
static void free_text(const struct lk_parameter *p, struct lk_job *job) {
    char **texts = field(p, job);
    if (!(job->owned & bit(p))) return;
    const int n = p->kind == LK_PARAMETER_TEXTS ? *n_texts(texts) : 1;
    for (int i = 0; i < n; i++) lk_free(texts[i]);
}

static enum lk_code add_text(const struct lk_parameter *p, const char *flag, const char *text, const char **list) {
    int *n = (int *)(list + LK_MAX_TEXTS);
    if (p->read) LK_TRY(p->read(flag, text, NULL));
    if (*n == LK_MAX_TEXTS)
        return lk_fail(LK_E_USAGE, "%s: expected at most %d values, \"%.64s\" is one more", flag, LK_MAX_TEXTS, text);
    list[(*n)++] = text;
    return LK_OK;
}

static enum lk_code take_text(const struct lk_parameter *p, struct lk_job *job, const char *flag, const char *text) {
    char *own = NULL;
    if (p->read) LK_TRY(p->read(flag, text, &own));
    free_text(p, job);
    *(const char **)field(p, job) = own ? own : text;
    job->owned = (job->owned & ~bit(p)) | (own ? bit(p) : 0);
    return LK_OK;
}

enum lk_code lk_parameter_parse(const struct lk_parameter *p, struct lk_job *job, const char *flag, const char *text) {
    void *out = field(p, job);
    const char *choice = NULL;
    int64_t number = 0;
    switch (p->kind) {
    case LK_PARAMETER_FLAG:
        LK_TRY(lk_read_choice(flag, text, "on|off", &choice));
        *(bool *)out = !strcmp(choice, "on");
        break;
    case LK_PARAMETER_INT:
    case LK_PARAMETER_INT64:
        LK_TRY(lk_read_int(flag, text, strlen(text), whole(p->min), whole(p->max), &number));
        if (p->kind == LK_PARAMETER_INT)
            *(int *)out = (int)number;
        else
            *(int64_t *)out = number;
        break;
    case LK_PARAMETER_BYTES:
        LK_TRY(lk_read_bytes(flag, text, out));
        break;
    case LK_PARAMETER_NUMBER:
        LK_TRY(lk_read_number(flag, text, p->min, p->max, out));
        break;
    case LK_PARAMETER_INTS:
        LK_TRY(read_ints(p, flag, text, out));
        break;
    case LK_PARAMETER_CHOICE:
        LK_TRY(lk_read_choice(flag, text, p->choices, out));
        break;
    case LK_PARAMETER_FILE:
        if (!*text) return lk_fail(LK_E_USAGE, "%s: expected a path, got an empty string", flag);
        *(const char **)out = text;
        break;
    case LK_PARAMETER_TEXT:
        LK_TRY(take_text(p, job, flag, text));
        break;
    case LK_PARAMETER_TEXTS:
        LK_TRY(add_text(p, flag, text, out));
        break;
    }
    job->given |= bit(p);
    return LK_OK;
}

bool lk_job_given(const struct lk_job *job, const struct lk_parameter *p) { return job->given & bit(p); }

void lk_parameter_copy(const struct lk_parameter *p, struct lk_job *to, const struct lk_job *from) {
    memcpy(field(p, to), value(p, from), value_size(p));
    to->given = (to->given & ~bit(p)) | (from->given & bit(p));
}

bool lk_parameter_equal(const struct lk_parameter *p, const struct lk_job *a, const struct lk_job *b) {
    if (p->kind == LK_PARAMETER_TEXTS) {
        const char *const *x = value(p, a), *const *y = value(p, b);
        bool equal = *n_texts(x) == *n_texts(y);
        for (int i = 0; equal && i < *n_texts(x); i++) equal = !strcmp(x[i], y[i]);
        return equal;
    }
    if (!is_text(p)) return !memcmp(value(p, a), value(p, b), value_size(p));
    const char *x = *(const char *const *)value(p, a), *y = *(const char *const *)value(p, b);
    return x == y || (x && y && !strcmp(x, y));
}

void lk_parameter_print(const struct lk_parameter *p, const struct lk_job *job, char *out, size_t size) {
    const void *in = value(p, job);
    const int *ints = in;
    const char *text;
    size_t used = 0;
    switch (p->kind) {
    case LK_PARAMETER_FLAG:
        snprintf(out, size, "%s", *(const bool *)in ? "on" : "off");
        break;
    case LK_PARAMETER_INT:
        snprintf(out, size, "%d", *ints);
        break;
    case LK_PARAMETER_INT64:
    case LK_PARAMETER_BYTES:
        snprintf(out, size, "%" PRIu64, *(const uint64_t *)in);
        break;
    case LK_PARAMETER_NUMBER:
        snprintf(out, size, "%g", *(const double *)in);
        break;
    case LK_PARAMETER_INTS:
        snprintf(out, size, "-");
        for (int i = 0; i < ints[LK_MAX_OUT_LAYERS] && used < size; i++)
            used += (size_t)snprintf(out + used, size - used, "%s%d", i ? "," : "", ints[i]);
        break;
    case LK_PARAMETER_TEXT:
    case LK_PARAMETER_FILE:
    case LK_PARAMETER_CHOICE:
        text = *(const char *const *)in;
        snprintf(out, size, "%s", text ? text : "-");
        break;
    case LK_PARAMETER_TEXTS:
        snprintf(out, size, "-");
        for (int i = 0; i < *n_texts(in) && used < size; i++)
            used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", ((const char *const *)in)[i]);
        break;
    }
}

void lk_job_init(struct lk_job *job) {
    *job = (struct lk_job){0};
    for (size_t i = 0; i < lk_n_parameters; i++)
        if (lk_parameters[i].initial) lk_parameter_parse(&lk_parameters[i], job, "", lk_parameters[i].initial);
    job->given = 0;
}

void lk_job_free(struct lk_job *job) {
    for (size_t i = 0; i < lk_n_parameters; i++) free_text(&lk_parameters[i], job);
    *job = (struct lk_job){0};
}

/* cJSON writes numbers as doubles; texts keep every bit of what they hold. */
bool lk_parameter_write(const struct lk_parameter *p, const struct lk_job *job, struct cJSON *object) {
    const void *in = value(p, job);
    const int *ints = in;
    char text[32];
    cJSON *array;
    switch (p->kind) {
    case LK_PARAMETER_FLAG:
        return cJSON_AddBoolToObject(object, p->key, *(const bool *)in);
    case LK_PARAMETER_INT:
    case LK_PARAMETER_INT64:
    case LK_PARAMETER_BYTES:
        lk_parameter_print(p, job, text, sizeof text);
        return cJSON_AddRawToObject(object, p->key, text);
    case LK_PARAMETER_NUMBER:
        snprintf(text, sizeof text, "%.17g", *(const double *)in);
        return cJSON_AddRawToObject(object, p->key, text);
    case LK_PARAMETER_INTS:
        array = cJSON_CreateIntArray(ints, ints[LK_MAX_OUT_LAYERS]);
        if (cJSON_AddItemToObject(object, p->key, array)) return true;
        cJSON_Delete(array);
        return false;
    case LK_PARAMETER_TEXT:
    case LK_PARAMETER_FILE:
    case LK_PARAMETER_CHOICE:
        return cJSON_AddStringToObject(object, p->key, *(const char *const *)in);
    case LK_PARAMETER_TEXTS:
        array = cJSON_CreateStringArray(in, *n_texts(in));
        if (cJSON_AddItemToObject(object, p->key, array)) return true;
        cJSON_Delete(array);
        return false;
    }
    return false;
}

/* A member's number, exactly: a config holds doubles. The text is known to be strict JSON. */
static bool exact_number(const char *text, const char *key, uint64_t *out) {
    struct lk_json j;
    const char *name;
    bool found = false;
    lk_json_init(&j, text, strlen(text), "");
    lk_json_enter(&j, '{');
    while (lk_json_next(&j) && lk_json_key(&j, &name)) {
        if (!strcmp(name, key))
            found = lk_json_u64(&j, out);
        else
            lk_json_skip(&j);
    }
    return lk_json_finish(&j) == LK_OK && found;
}

static void read_text(const struct lk_parameter *p, struct lk_job *job, struct lk_config *c) {
    const char *text = NULL;
    lk_config_string(c, p->key, &text);
    if (!text) return;
    if (p->kind == LK_PARAMETER_CHOICE && !is_choice(p->choices, text)) {
        lk_config_problem(c, p->key, LK_E_CONFIG_VALUE, "expected %s, got \"%.64s\"", p->choices, text);
        return;
    }
    char *copy = NULL, *placed = NULL;
    if (job->beside && lk_parameter_is_path(p, text)) text = placed = lk_path_beside(job->beside, text);
    if (text && p->read && p->read(p->key, text, &copy)) {
        lk_config_problem(c, p->key, LK_E_CONFIG_VALUE, "%s", lk_error_text());
        lk_free(placed);
        return;
    }
    if (!copy && text) copy = lk_strdup(text);
    lk_free(placed);
    if (!copy) lk_config_problem(c, p->key, LK_E_NOMEM, "out of memory");
    free_text(p, job);
    *(char **)field(p, job) = copy;
    job->owned |= bit(p);
}

bool lk_parameter_is_path(const struct lk_parameter *p, const char *text) {
    return p->kind == LK_PARAMETER_FILE || (!strcmp(p->key, "scheduler") && *text != '{' && strpbrk(text, "./"));
}

static void read_texts(const struct lk_parameter *p, struct lk_job *job, struct lk_config *c) {
    const char **list = field(p, job), *texts[LK_MAX_TEXTS];
    size_t n = 0;
    lk_config_strings(c, p->key, texts, LK_MAX_TEXTS, &n);
    free_text(p, job);
    memset(list, 0, value_size(p));
    for (size_t i = 0; i < n; i++) {
        char *copy = lk_strdup(texts[i]);
        if (!copy || add_text(p, p->key, copy, list)) {
            lk_config_problem(c, p->key, copy ? LK_E_CONFIG_VALUE : LK_E_NOMEM, "%s",
                              copy ? lk_error_text() : "out of memory");
            lk_free(copy);
        }
    }
    job->owned |= bit(p);
}

static void read_one(const struct lk_parameter *p, struct lk_job *job, struct lk_config *c, const char *text) {
    void *out = field(p, job);
    int64_t read[LK_MAX_OUT_LAYERS];
    uint64_t exact = 0;
    size_t n = 0;
    switch (p->kind) {
    case LK_PARAMETER_FLAG:
        lk_config_bool(c, p->key, out);
        break;
    case LK_PARAMETER_INT:
        read[0] = *(int *)out;
        lk_config_int(c, p->key, &read[0], whole(p->min), whole(p->max));
        *(int *)out = (int)read[0];
        break;
    case LK_PARAMETER_INT64:
    case LK_PARAMETER_BYTES:
        lk_config_ignore(c, p->key);
        if (exact_number(text, p->key, &exact) && exact >= (uint64_t)p->min && exact <= (uint64_t)whole(p->max))
            *(uint64_t *)out = exact;
        else
            lk_config_problem(c, p->key, LK_E_CONFIG_VALUE, "expected a whole number from %lld to %lld",
                              (long long)whole(p->min), (long long)whole(p->max));
        break;
    case LK_PARAMETER_NUMBER:
        lk_config_number(c, p->key, out, p->min, p->max);
        break;
    case LK_PARAMETER_INTS:
        lk_config_ints(c, p->key, read, LK_MAX_OUT_LAYERS, &n);
        for (size_t i = 0; i < n; i++) {
            if (read[i] < p->min || read[i] > p->max)
                lk_config_problem(c, p->key, LK_E_CONFIG_VALUE, "expected numbers from %g to %g", p->min, p->max);
            else
                ((int *)out)[i] = (int)read[i];
        }
        ((int *)out)[LK_MAX_OUT_LAYERS] = (int)n;
        break;
    case LK_PARAMETER_TEXT:
    case LK_PARAMETER_FILE:
    case LK_PARAMETER_CHOICE:
        read_text(p, job, c);
        break;
    case LK_PARAMETER_TEXTS:
        read_texts(p, job, c);
        break;
    }
}

void lk_job_read(struct lk_job *job, struct lk_config *config, const char *text, bool whole) {
    for (size_t i = 0; i < lk_n_parameters; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        if (!lk_config_has(config, p->key) && !(whole && p->record == LK_RECORD_ALWAYS)) continue;
        read_one(p, job, config, text); /* a missing one is recorded there */
        job->given |= bit(p);
    }
}
