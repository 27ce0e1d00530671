#include "models/tokenizer/json_text.h"

#include <string.h>

#include "models/tokenizer/unicode.h"

struct checker {
    const char *text, *at, *end, *name;
};

static enum lk_code fail_at(const struct checker *c, const char *at, const char *what) {
    size_t line = 1, column = 1;
    for (const char *s = c->text; s < at; s++) {
        column++;
        if (*s == '\n') {
            line++;
            column = 1;
        }
    }
    return lk_fail(LK_E_JSON, "%s: line %zu, column %zu: %s; the file is damaged or not JSON", c->name, line, column,
                   what);
}

static void skip_space(struct checker *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t')) c->at++;
}

static int hex_value(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
}

/* The four hex digits at s as a number, -1 if they are not. */
static int32_t hex4(const char *s, const char *end) {
    if (end - s < 4) return -1;
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(s[i]);
        if (digit < 0) return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* c->at is behind the backslash. */
static enum lk_code check_escape(struct checker *c) {
    if (c->at < c->end && *c->at && strchr("\"\\/bfnrt", *c->at)) {
        c->at++;
        return LK_OK;
    }
    if (c->at == c->end || *c->at != 'u') return fail_at(c, c->at, "unknown escape in a string");
    int32_t unit = hex4(c->at + 1, c->end);
    if (unit < 0) return fail_at(c, c->at, "\\u needs four hexadecimal digits");
    c->at += 5;
    if (unit < 0xd800 || unit > 0xdfff) return LK_OK;
    int32_t low =
        unit < 0xdc00 && c->end - c->at >= 6 && c->at[0] == '\\' && c->at[1] == 'u' ? hex4(c->at + 2, c->end) : -1;
    if (low < 0xdc00 || low > 0xdfff) return fail_at(c, c->at, "half a surrogate pair in a string");
    c->at += 6;
    return LK_OK;
}

static enum lk_code check_string(struct checker *c) {
    const char *start = c->at++;
    while (c->at < c->end) {
        unsigned char b = (unsigned char)*c->at;
        if (b == '"') {
            c->at++;
            return LK_OK;
        }
        if (b == '\\') {
            c->at++;
            enum lk_code rc = check_escape(c);
            if (rc) return rc;
        } else if (b < 0x20) {
            return fail_at(c, c->at, "control character in a string");
        } else if (b < 0x80) {
            c->at++;
        } else {
            uint32_t code;
            size_t n = lk_utf8_decode(c->at, (size_t)(c->end - c->at), &code);
            if (!n) return fail_at(c, c->at, "not UTF-8");
            c->at += n;
        }
    }
    return fail_at(c, start, "string without an end");
}

static bool skip_digits(struct checker *c) {
    const char *start = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') c->at++;
    return c->at > start;
}

static enum lk_code check_number(struct checker *c) {
    const char *start = c->at;
    if (*c->at == '-') c->at++;
    if (c->at < c->end && *c->at == '0') {
        c->at++;
    } else if (!skip_digits(c)) {
        return fail_at(c, start, "expected a value");
    }
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (!skip_digits(c)) return fail_at(c, start, "number without digits after its point");
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
        if (!skip_digits(c)) return fail_at(c, start, "number without digits in its exponent");
    }
    return LK_OK;
}

static enum lk_code check_scalar(struct checker *c) {
    static const char *const words[] = {"true", "false", "null"};
    if (c->at == c->end) return fail_at(c, c->at, "the text ends where a value is expected");
    if (*c->at == '"') return check_string(c);
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(c->end - c->at) >= n && !memcmp(c->at, words[i], n)) {
            c->at += n;
            return LK_OK;
        }
    }
    return check_number(c);
}

/* "key" : with white space around, c->at before the quote. */
static enum lk_code check_key(struct checker *c) {
    if (c->at == c->end || *c->at != '"') return fail_at(c, c->at, "expected a key in quotes");
    enum lk_code rc = check_string(c);
    if (rc) return rc;
    skip_space(c);
    if (c->at == c->end || *c->at != ':') return fail_at(c, c->at, "expected \":\" after a key");
    c->at++;
    skip_space(c);
    return LK_OK;
}

/* One value with everything in it. `closer` holds the closing bracket of each open container. */
static enum lk_code check_value(struct checker *c) {
    char closer[JSON_TEXT_MAX_DEPTH];
    int depth = 0;
    enum lk_code rc;
    for (;;) {
        bool opened = c->at < c->end && (*c->at == '{' || *c->at == '[');
        if (opened) {
            if (depth == JSON_TEXT_MAX_DEPTH) {
                return lk_fail(LK_E_JSON_LIMIT, "%s: expected at most %d nested arrays and objects, got more", c->name,
                               JSON_TEXT_MAX_DEPTH);
            }
            closer[depth++] = *c->at++ == '{' ? '}' : ']';
            skip_space(c);
        } else if ((rc = check_scalar(c))) {
            return rc;
        }
        while (depth) {
            bool ended = c->at < c->end && *c->at == closer[depth - 1];
            if (!opened) {
                skip_space(c);
                ended = c->at < c->end && *c->at == closer[depth - 1];
                if (!ended && (c->at == c->end || *c->at != ',')) {
                    return fail_at(c, c->at,
                                   closer[depth - 1] == '}' ? "expected \",\" or \"}\"" : "expected \",\" or \"]\"");
                }
                if (!ended) c->at++;
                skip_space(c);
            }
            if (!ended) break;
            c->at++;
            depth--;
            opened = false;
        }
        if (!depth) return LK_OK;
        if (closer[depth - 1] == '}' && (rc = check_key(c))) return rc;
    }
}

enum lk_code json_check(const char *text, size_t length, const char *name, struct json_value *root) {
    struct checker c = {text, text, text + length, name};
    skip_space(&c);
    root->at = c.at;
    enum lk_code rc = check_value(&c);
    if (rc) return rc;
    root->end = c.at;
    skip_space(&c);
    if (c.at != c.end) return fail_at(&c, c.at, "text after the end of the value");
    return LK_OK;
}

/* From here on the text is known to be well-formed. */

char json_kind(struct json_value value) {
    char first = *value.at;
    return first == '-' || (first >= '0' && first <= '9') ? '0' : first;
}

const char *json_kind_name(struct json_value value) {
    switch (json_kind(value)) {
    case '{':
        return "an object";
    case '[':
        return "an array";
    case '"':
        return "a string";
    case 't':
        return "true";
    case 'f':
        return "false";
    case 'n':
        return "null";
    default:
        return "a number";
    }
}

static const char *string_end(const char *at) {
    for (at++; *at != '"'; at++) {
        if (*at == '\\') at++;
    }
    return at + 1;
}

static const char *value_end(const char *at) {
    if (*at == '"') return string_end(at);
    if (*at != '{' && *at != '[') {
        while (*at == '-' || *at == '+' || *at == '.' || (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
               *at == 'E')
            at++;
        return at;
    }
    int depth = 0;
    for (;;) {
        char b = *at;
        if (b == '"') {
            at = string_end(at);
            continue;
        }
        at++;
        if (b == '{' || b == '[') depth++;
        if ((b == '}' || b == ']') && --depth == 0) return at;
    }
}

static const char *after_space(const char *at, char also) {
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t' || *at == also) at++;
    return at;
}

struct json_iterator json_begin(struct json_value container) {
    return (struct json_iterator){container.at + 1};
}

bool json_next(struct json_iterator *it, struct json_value *element) {
    const char *at = after_space(it->at, ',');
    if (*at == ']' || *at == '}') return false;
    *element = (struct json_value){at, value_end(at)};
    it->at = element->end;
    return true;
}

bool json_next_member(struct json_iterator *it, struct json_value *key, struct json_value *value) {
    if (!json_next(it, key)) return false;
    const char *at = after_space(it->at, ':');
    *value = (struct json_value){at, value_end(at)};
    it->at = value->end;
    return true;
}

size_t json_count(struct json_value container) {
    struct json_iterator it = json_begin(container);
    struct json_value key, value;
    size_t n = 0;
    if (json_kind(container) == '{') {
        while (json_next_member(&it, &key, &value)) n++;
    } else {
        while (json_next(&it, &value)) n++;
    }
    return n;
}

size_t json_string(struct json_value string, char *out) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *at = string.at + 1, *end = string.end - 1;
    if (!memchr(at, '\\', (size_t)(end - at))) {
        memcpy(out, at, (size_t)(end - at));
        return (size_t)(end - at);
    }
    char *start = out;
    while (at < end) {
        if (*at != '\\') {
            *out++ = *at++;
        } else if (at[1] != 'u') {
            *out++ = meanings[strchr(letters, at[1]) - letters];
            at += 2;
        } else {
            uint32_t code = (uint32_t)hex4(at + 2, end);
            at += 6;
            if (code >= 0xd800 && code <= 0xdfff) {
                code = 0x10000 + ((code - 0xd800) << 10) + ((uint32_t)hex4(at + 2, end) - 0xdc00);
                at += 6;
            }
            out += lk_utf8_encode(code, out);
        }
    }
    return (size_t)(out - start);
}

bool json_string_is(struct json_value string, const char *text) {
    char decoded[256];
    size_t n = strlen(text), raw = (size_t)(string.end - string.at);
    if (json_kind(string) != '"' || raw > sizeof decoded) return false;
    return json_string(string, decoded) == n && !memcmp(decoded, text, n);
}

bool json_index(struct json_value number, int64_t max, int64_t *out) {
    int64_t value = 0;
    if (json_kind(number) != '0') return false;
    for (const char *s = number.at; s < number.end; s++) {
        if (*s < '0' || *s > '9') return false;
        value = value * 10 + (*s - '0');
        if (value > max) return false;
    }
    *out = value;
    return true;
}
