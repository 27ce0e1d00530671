#include "eval/scores/json_lines.h"

#include <string.h>

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static void skip_space(struct lk_json_lines *lines) {
    for (; lines->at < lines->end && is_space(*lines->at); lines->at++) lines->line += *lines->at == '\n';
}

static size_t mark_bytes(const char *text, size_t n) { return n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0; }

bool lk_is_json(const char *text, size_t n) {
    size_t i = n ? mark_bytes(text, n) : 0;
    while (i < n && is_space(text[i])) i++;
    return i < n && (text[i] == '{' || text[i] == '[');
}

void lk_json_lines_open(struct lk_json_lines *lines, const void *text, size_t n, const char *name) {
    *lines = (struct lk_json_lines){.name = name, .at = text, .line = 1};
    lines->end = n ? lines->at + n : lines->at;
    if (n) lines->at += mark_bytes(lines->at, n);
    skip_space(lines);
    lines->is_array = lines->at < lines->end && *lines->at == '[';
}

size_t lk_json_balanced(const char *text, size_t n) {
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        if (in_string) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                in_string = false;
        } else if (text[i] == '"') {
            in_string = true;
        } else if (text[i] == '{') {
            depth++;
        } else if (text[i] == '}' && !--depth) {
            return i + 1;
        }
    }
    return 0;
}

static enum lk_code not_an_array(const struct lk_json_lines *lines, const char *expected) {
    return lk_fail(LK_E_JSON, "%s: line %zu: expected %s", lines->name, lines->line, expected);
}

static enum lk_code next_element(struct lk_json_lines *lines, struct lk_json_record *out, bool *more) {
    skip_space(lines);
    if (lines->at == lines->end) {
        if (lines->started && !lines->is_array) return LK_OK; /* the array was closed before */
        return not_an_array(lines, "',' or ']', got the end of the file");
    }
    if (!lines->is_array) return not_an_array(lines, "nothing after the array");
    bool first = !lines->started;
    lines->started = true;
    if (*lines->at == (first ? '[' : ',')) {
        lines->at++;
        skip_space(lines);
        if (!first || lines->at == lines->end || *lines->at != ']') {
            size_t n = lines->at < lines->end && *lines->at == '{'
                           ? lk_json_balanced(lines->at, (size_t)(lines->end - lines->at))
                           : 0;
            if (!n) return not_an_array(lines, "an object that is closed");
            *out = (struct lk_json_record){lines->at, n, lines->line};
            for (const char *end = lines->at + n; lines->at < end; lines->at++) lines->line += *lines->at == '\n';
            *more = true;
            return LK_OK;
        }
    }
    if (*lines->at != ']') return not_an_array(lines, "',' or ']' after an object");
    lines->at++;
    lines->is_array = false;
    return next_element(lines, out, more);
}

enum lk_code lk_json_lines_next(struct lk_json_lines *lines, struct lk_json_record *out, bool *more) {
    *more = false;
    *out = (struct lk_json_record){0};
    if (lines->is_array || lines->started) return next_element(lines, out, more);
    skip_space(lines);
    if (lines->at == lines->end) return LK_OK;
    size_t rest = (size_t)(lines->end - lines->at);
    const char *newline = memchr(lines->at, '\n', rest);
    size_t n = newline ? (size_t)(newline - lines->at) : rest;
    *out = (struct lk_json_record){lines->at, n, lines->line};
    while (out->n && is_space(out->text[out->n - 1])) out->n--;
    lines->at += n;
    *more = true;
    return LK_OK;
}
