#include "models/tokenizer/json_text.h"

#include <string.h>

#include "engine/base/json.h"

enum lk_code lk_tokenizer_json_check(const char *text, size_t length, const char *name, struct json_value *root) {
    struct lk_json j;
    lk_json_init(&j, text, length, name);
    lk_json_peek(&j); /* passes over white space */
    root->at = (const char *)j.at;
    lk_json_skip(&j);
    root->end = (const char *)j.at;
    lk_json_end(&j);
    return lk_json_finish(&j);
}

/* From here on the text is known to be well-formed. */

char lk_tokenizer_json_kind(struct json_value value) {
    char first = *value.at;
    return first == '-' || (first >= '0' && first <= '9') ? '0' : first;
}

const char *lk_tokenizer_json_kind_name(struct json_value value) {
    switch (lk_tokenizer_json_kind(value)) {
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

struct json_iterator lk_tokenizer_json_begin(struct json_value container) {
    return (struct json_iterator){container.at + 1};
}

bool lk_tokenizer_json_next(struct json_iterator *it, struct json_value *element) {
    const char *at = after_space(it->at, ',');
    if (*at == ']' || *at == '}') return false;
    *element = (struct json_value){at, value_end(at)};
    it->at = element->end;
    return true;
}

bool lk_tokenizer_json_next_member(struct json_iterator *it, struct json_value *key, struct json_value *value) {
    if (!lk_tokenizer_json_next(it, key)) return false;
    const char *at = after_space(it->at, ':');
    *value = (struct json_value){at, value_end(at)};
    it->at = value->end;
    return true;
}

size_t lk_tokenizer_json_count(struct json_value container) {
    struct json_iterator it = lk_tokenizer_json_begin(container);
    struct json_value key, value;
    size_t n = 0;
    if (lk_tokenizer_json_kind(container) == '{') {
        while (lk_tokenizer_json_next_member(&it, &key, &value)) n++;
    } else {
        while (lk_tokenizer_json_next(&it, &value)) n++;
    }
    return n;
}

size_t lk_tokenizer_json_string(struct json_value string, char *out) {
    size_t n = (size_t)(string.end - string.at) - 2;
    if (memchr(string.at + 1, '\\', n)) return lk_json_decode(string.at, n + 2, out);
    memcpy(out, string.at + 1, n);
    return n;
}

bool lk_tokenizer_json_string_is(struct json_value string, const char *text) {
    char decoded[256];
    size_t n = strlen(text), raw = (size_t)(string.end - string.at);
    if (lk_tokenizer_json_kind(string) != '"' || raw > sizeof decoded) return false;
    return lk_tokenizer_json_string(string, decoded) == n && !memcmp(decoded, text, n);
}

bool lk_tokenizer_json_index(struct json_value number, int64_t max, int64_t *out) {
    int64_t value = 0;
    if (lk_tokenizer_json_kind(number) != '0') return false;
    for (const char *s = number.at; s < number.end; s++) {
        if (*s < '0' || *s > '9') return false;
        value = value * 10 + (*s - '0');
        if (value > max) return false;
    }
    *out = value;
    return true;
}
