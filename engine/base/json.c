#include "engine/base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/content.h"
#include "engine/base/utf8.h"

void lk_json_init(struct lk_json *j, const void *text, size_t n_bytes, const char *name) {
    memset(j, 0, sizeof *j);
    j->name = name;
    j->text = j->at = text;
    j->end = j->text + n_bytes;
    if (n_bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) j->at += 3;
}

enum lk_code lk_json_finish(struct lk_json *j) {
    lk_free(j->keys);
    lk_free(j->key_bytes);
    lk_free(j->string);
    j->keys = NULL;
    j->key_bytes = NULL;
    j->string = NULL;
    return j->rc;
}

bool lk_json_fail(struct lk_json *j, enum lk_code code, const char *format, ...) {
    if (j->rc) return false;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t at = (size_t)(j->at - j->text);
    const char *other = lk_content_not_text(j->text, (size_t)(j->end - j->text));
    j->rc = other && code == LK_E_JSON ? lk_fail(code, "%s: expected JSON, got %s", j->name, other)
                                       : lk_fail(code, "%s: byte %zu: %s", j->name, at, text);
    return false;
}

static bool expected(struct lk_json *j, const char *what) {
    if (j->at == j->end) return lk_json_fail(j, LK_E_JSON, "expected %s, got the end of the text", what);
    if (*j->at < 0x20 || *j->at > 0x7e) return lk_json_fail(j, LK_E_JSON, "expected %s, got byte 0x%02x", what, *j->at);
    return lk_json_fail(j, LK_E_JSON, "expected %s, got '%c'", what, *j->at);
}

static bool out_of_memory(struct lk_json *j) { return lk_json_fail(j, LK_E_NOMEM, "out of memory while reading"); }

static void skip_space(struct lk_json *j) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r')) j->at++;
}

static bool at_nan(const struct lk_json *j) { return j->end - j->at >= 3 && !memcmp(j->at, "NaN", 3); }

char lk_json_peek(struct lk_json *j) {
    if (j->rc) return 0;
    skip_space(j);
    if (j->at == j->end) return 0;
    char c = (char)*j->at;
    if (c == '-' || (c >= '0' && c <= '9')) return '0';
    if (j->nan_is_null && at_nan(j)) return 'n';
    return c && strchr("{[\"tfn", c) ? c : 0;
}

bool lk_json_enter(struct lk_json *j, char open) {
    if (j->rc) return false;
    skip_space(j);
    if (j->at == j->end || (char)*j->at != open) return expected(j, open == '{' ? "an object" : "an array");
    if (j->depth == LK_JSON_MAX_DEPTH)
        return lk_json_fail(j, LK_E_JSON_LIMIT, "nested deeper than %d levels", LK_JSON_MAX_DEPTH);
    j->at++;
    j->open[j->depth].close = open == '{' ? '}' : ']';
    j->open[j->depth].started = false;
    j->open[j->depth].first_key = j->n_keys;
    j->depth++;
    return true;
}

static int by_length_and_bytes(const void *a, const void *b, void *key_bytes) {
    const struct lk_json_key *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return memcmp((char *)key_bytes + x->offset, (char *)key_bytes + y->offset, x->length);
}

/* Closes the innermost object: its keys must differ. */
static bool leave(struct lk_json *j) {
    size_t first = j->open[--j->depth].first_key, n = j->n_keys - first;
    if (!n) return true;
    struct lk_json_key *keys = j->keys + first;
    j->n_key_bytes = keys[0].offset;
    j->n_keys = first;
    qsort_r(keys, n, sizeof *keys, by_length_and_bytes, j->key_bytes);
    for (size_t i = 1; i < n; i++)
        if (!by_length_and_bytes(&keys[i - 1], &keys[i], j->key_bytes))
            return lk_json_fail(j, LK_E_JSON_DUPLICATE, "key \"%.200s\" occurs twice in one object",
                                j->key_bytes + keys[i].offset);
    return true;
}

bool lk_json_next(struct lk_json *j) {
    if (j->rc || !j->depth) return false;
    bool started = j->open[j->depth - 1].started;
    char close = j->open[j->depth - 1].close;
    skip_space(j);
    if (j->at < j->end && (char)*j->at == close) {
        j->at++;
        leave(j);
        return false;
    }
    if (started) {
        if (j->at == j->end || *j->at != ',') return expected(j, close == '}' ? "',' or '}'" : "',' or ']'");
        j->at++;
    }
    j->open[j->depth - 1].started = true;
    return true;
}

static int hex4(const unsigned char *at, const unsigned char *end) {
    int value = 0;
    if (end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int c = at[i], digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (c | 0x20) - 'a' + 10;
        else
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* The code point of an escape at j->at (behind "\u"), moved past it; 0 after a failure. */
static unsigned unicode_escape(struct lk_json *j) {
    int unit = hex4(j->at, j->end);
    bool high = unit >= 0xd800 && unit <= 0xdbff;
    if (unit < 0) {
        expected(j, "four hexadecimal digits after \\u");
        return 0;
    }
    if (unit == 0) {
        lk_json_fail(j, LK_E_JSON, "a string may not contain NUL");
        return 0;
    }
    j->at += 4;
    int low = high && j->end - j->at >= 2 && j->at[0] == '\\' && j->at[1] == 'u' ? hex4(j->at + 2, j->end) : -1;
    if (high && low >= 0xdc00 && low <= 0xdfff) {
        j->at += 6;
        return 0x10000u + (((unsigned)unit - 0xd800u) << 10) + ((unsigned)low - 0xdc00u);
    }
    if (high || (unit >= 0xdc00 && unit <= 0xdfff)) {
        lk_json_fail(j, LK_E_JSON, "lone surrogate \\u%04x", (unsigned)unit);
        return 0;
    }
    return (unsigned)unit;
}

/* Where the string that starts at `at` (behind its quote) ends: the closing quote, or NULL. Escapes are looked at
 * later. */
static const unsigned char *closing_quote(const struct lk_json *j) {
    for (const unsigned char *at = j->at; at < j->end; at++) {
        if (*at == '"') return at;
        if (*at == '\\') at++;
    }
    return NULL;
}

/* An escape at j->at (behind the backslash) into out; 0 after a failure. */
static size_t string_escape(struct lk_json *j, char *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *which = *j->at ? strchr(from, *j->at) : NULL;
    if (which) {
        out[0] = to[which - from];
        j->at++;
        return 1;
    }
    if (*j->at != 'u') {
        expected(j, "one of \" \\ / b f n r t u after a backslash");
        return 0;
    }
    j->at++;
    unsigned c = unicode_escape(j);
    return c ? lk_utf8_encode(c, out) : 0;
}

/* ASCII that a string holds as it is. */
static bool plain(unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; }

/* One piece of a string at j->at, which is not its end, into out; 0 after a failure. */
static size_t string_piece(struct lk_json *j, char *out) {
    const unsigned char *from = j->at;
    while (j->at < j->end && plain(*j->at)) j->at++;
    if (j->at > from) {
        memcpy(out, from, (size_t)(j->at - from));
        return (size_t)(j->at - from);
    }
    if (*j->at == '\\') {
        j->at++; /* something follows: closing_quote looked */
        return string_escape(j, out);
    }
    if (*j->at < 0x20) {
        expected(j, "no control character in a string");
        return 0;
    }
    uint32_t code;
    size_t n = lk_utf8_decode((const char *)j->at, (size_t)(j->end - j->at), &code);
    if (!n) lk_json_fail(j, LK_E_JSON, "a string is not UTF-8 (byte 0x%02x)", *j->at);
    memcpy(out, j->at, n);
    j->at += n;
    return n;
}

size_t lk_json_decode(const char *string, size_t n, char *out) {
    struct lk_json j;
    size_t length = 0;
    lk_json_init(&j, string + 1, n - 2, "");
    j.at = j.text; /* a byte order mark is a character here */
    while (j.at < j.end) length += string_piece(&j, out + length);
    return length;
}

/* Appends the string at j->at to a buffer behind `used` bytes, with a NUL. */
static bool read_string(struct lk_json *j, char **buffer, size_t *capacity, size_t used, size_t *length) {
    if (j->rc) return false;
    skip_space(j);
    if (j->at == j->end || *j->at != '"') return expected(j, "a string");
    j->at++;
    const unsigned char *quote = closing_quote(j);
    if (!quote) {
        j->at = j->end;
        return expected(j, "a closing quote");
    }
    /* No piece grows: an escape is longer than what it stands for. */
    if (lk_grow(buffer, capacity, used + (size_t)(quote - j->at) + 1, 1)) return out_of_memory(j);
    size_t n = used;
    while (j->at < quote) {
        size_t added = string_piece(j, *buffer + n);
        if (!added) return false;
        n += added;
    }
    (*buffer)[n] = 0;
    *length = n - used;
    j->at = quote + 1;
    return true;
}

bool lk_json_string(struct lk_json *j, const char **out) {
    size_t length;
    if (!read_string(j, &j->string, &j->string_capacity, 0, &length)) return false;
    *out = j->string;
    return true;
}

bool lk_json_key(struct lk_json *j, const char **key) {
    size_t length, start = j->n_key_bytes;
    if (!read_string(j, &j->key_bytes, &j->key_bytes_capacity, start, &length)) return false;
    if (lk_grow(&j->keys, &j->keys_capacity, j->n_keys + 1, sizeof *j->keys)) return out_of_memory(j);
    j->keys[j->n_keys++] = (struct lk_json_key){start, length};
    j->n_key_bytes = start + length + 1;
    skip_space(j);
    if (j->at == j->end || *j->at != ':') return expected(j, "':'");
    j->at++;
    *key = j->key_bytes + start;
    return true;
}

static size_t digits(struct lk_json *j) {
    const unsigned char *from = j->at;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9') j->at++;
    return (size_t)(j->at - from);
}

/* -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool number(struct lk_json *j) {
    const unsigned char *from = j->at;
    if (j->at < j->end && *j->at == '-') j->at++;
    const unsigned char *whole = j->at;
    size_t n = digits(j);
    if (!n) return expected(j, "a digit");
    if (n > 1 && *whole == '0') return lk_json_fail(j, LK_E_JSON, "a number may not begin with 0");
    if (j->at < j->end && *j->at == '.') {
        j->at++;
        if (!digits(j)) return expected(j, "a digit");
    }
    if (j->at < j->end && (*j->at | 0x20) == 'e') {
        j->at++;
        if (j->at < j->end && (*j->at == '+' || *j->at == '-')) j->at++;
        if (!digits(j)) return expected(j, "a digit");
    }
    if (j->at - from > LK_JSON_MAX_NUMBER)
        return lk_json_fail(j, LK_E_JSON_LIMIT, "a number has more than %d characters", LK_JSON_MAX_NUMBER);
    return true;
}

bool lk_json_number(struct lk_json *j, double *out) {
    if (j->rc) return false;
    skip_space(j);
    const unsigned char *from = j->at;
    if (!number(j)) return false;
    char text[LK_JSON_MAX_NUMBER + 1] = "";
    memcpy(text, from, (size_t)(j->at - from));
    double value = strtod(text, NULL);
    if (value - value != 0) return lk_json_fail(j, LK_E_JSON_LIMIT, "%s is beyond the range of a double", text);
    *out = value;
    return true;
}

bool lk_json_u64(struct lk_json *j, uint64_t *out) {
    if (j->rc) return false;
    skip_space(j);
    const unsigned char *from = j->at;
    if (j->at == j->end || *j->at < '0' || *j->at > '9') return expected(j, "an unsigned integer");
    if (!number(j)) return false;
    uint64_t value = 0;
    for (const unsigned char *at = from; at < j->at; at++)
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return lk_json_fail(j, LK_E_JSON, "expected an integer below 2^64, got %.*s", (int)(j->at - from),
                                (const char *)from);
    *out = value;
    return true;
}

static bool literal(struct lk_json *j, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(j->end - j->at) < n || memcmp(j->at, word, n)) return expected(j, "true, false or null");
    j->at += n;
    return true;
}

bool lk_json_skip(struct lk_json *j) {
    const char *ignored;
    switch (lk_json_peek(j)) {
    case '{':
        if (!lk_json_enter(j, '{')) return false;
        while (lk_json_next(j))
            if (!lk_json_key(j, &ignored) || !lk_json_skip(j)) return false;
        return !j->rc;
    case '[':
        if (!lk_json_enter(j, '[')) return false;
        while (lk_json_next(j))
            if (!lk_json_skip(j)) return false;
        return !j->rc;
    case '"':
        return lk_json_string(j, &ignored);
    case '0':
        return number(j);
    case 't':
        return literal(j, "true");
    case 'f':
        return literal(j, "false");
    case 'n':
        return literal(j, j->nan_is_null && at_nan(j) ? "NaN" : "null");
    default:
        return j->rc ? false : expected(j, "a value");
    }
}

bool lk_json_end(struct lk_json *j) {
    if (j->rc) return false;
    skip_space(j);
    return j->at == j->end ? true : expected(j, "nothing after the closing brace");
}

enum lk_code lk_json_check(const void *text, size_t n_bytes, const char *name) {
    struct lk_json j;
    lk_json_init(&j, text, n_bytes, name);
    lk_json_skip(&j);
    lk_json_end(&j);
    return lk_json_finish(&j);
}
