#include "ptx/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ptx_fail(struct ptx_parser *p, const char *format, ...) {
    char text[900];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!p->message->text[0]) gpusim_set(p->message, "PTX line %u: %s", p->token_line, text);
    return false;
}

static bool word_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' || c == '.';
}
static bool word_more(char c) { return word_start(c) || (c >= '0' && c <= '9'); }

static void skip_space(struct ptx_parser *p) {
    while (p->at < p->end) {
        if (*p->at == '\n')
            p->line++, p->at++;
        else if (*p->at == ' ' || *p->at == '\t' || *p->at == '\r' || *p->at == '\0')
            p->at++;
        else if (p->at + 1 < p->end && p->at[0] == '/' && p->at[1] == '/')
            while (p->at < p->end && *p->at != '\n') p->at++;
        else if (p->at + 1 < p->end && p->at[0] == '/' && p->at[1] == '*') {
            p->at += 2;
            while (p->at + 1 < p->end && !(p->at[0] == '*' && p->at[1] == '/')) p->line += *p->at++ == '\n';
            p->at = p->at + 2 < p->end ? p->at + 2 : p->end;
        } else
            return;
    }
}

bool ptx_next(struct ptx_parser *p) {
    skip_space(p);
    p->start = p->at;
    p->token_line = p->line;
    if (p->at >= p->end) {
        p->token = PTX_END;
        p->length = 0;
        return true;
    }
    char c = *p->at;
    if (word_start(c)) {
        p->token = PTX_WORD;
        while (p->at < p->end) {
            if (word_more(*p->at))
                p->at++;
            else if (p->at + 2 < p->end && p->at[0] == ':' && p->at[1] == ':' && word_more(p->at[2]))
                p->at += 2;
            else
                break;
        }
    } else if (c >= '0' && c <= '9') {
        p->token = PTX_NUMBER;
        while (p->at < p->end && (word_more(*p->at) || ((*p->at == '+' || *p->at == '-') && (p->at[-1] | 32) == 'e' &&
                                                        !(p->start[0] == '0' && (p->start[1] | 32) == 'x'))))
            p->at++;
    } else if (c == '"') {
        p->token = PTX_STRING;
        p->at++;
        while (p->at < p->end && *p->at != '"') p->line += *p->at++ == '\n';
        if (p->at >= p->end) return ptx_fail(p, "string without an end");
        p->at++;
    } else {
        p->token = PTX_PUNCTUATION;
        p->punctuation = c;
        p->at++;
    }
    p->length = (size_t)(p->at - p->start);
    return true;
}

bool ptx_is(const struct ptx_parser *p, const char *text) {
    size_t n = strlen(text);
    return (p->token == PTX_WORD || p->token == PTX_PUNCTUATION) && p->length == n && !memcmp(p->start, text, n);
}

bool ptx_accept(struct ptx_parser *p, const char *text) { return ptx_is(p, text) && ptx_next(p); }

bool ptx_expect(struct ptx_parser *p, const char *text) {
    if (ptx_is(p, text)) return ptx_next(p);
    return ptx_fail(p, "expected '%s', got '%.*s'", text, (int)(p->length < 60 ? p->length : 60), p->start);
}

char *ptx_copy(struct ptx_parser *p, const char *text, size_t n) {
    char *copy = gpusim_module_alloc(p->module, n + 1);
    if (copy)
        memcpy(copy, text, n);
    else
        ptx_fail(p, "out of memory");
    return copy;
}

bool ptx_number(struct ptx_parser *p, uint64_t *bits, double *real, bool *is_float) {
    char text[64], *end;
    if (p->token != PTX_NUMBER || p->length >= sizeof text)
        return ptx_fail(p, "expected a number, got '%.*s'", (int)(p->length < 60 ? p->length : 60), p->start);
    memcpy(text, p->start, p->length);
    text[p->length] = 0;
    *is_float = false;
    *real = 0;
    char kind = text[0] == '0' ? text[1] | 32 : 0;
    if (kind == 'f' || kind == 'd') {
        *bits = strtoull(text + 2, &end, 16);
        *is_float = true;
        if (kind == 'f') {
            uint32_t low = (uint32_t)*bits;
            float value;
            memcpy(&value, &low, 4);
            *real = (double)value;
        } else
            memcpy(real, bits, 8);
        return *end ? ptx_fail(p, "bad number '%s'", text) : ptx_next(p);
    }
    if (kind == 'b')
        *bits = strtoull(text + 2, &end, 2);
    else if (kind != 'x' && strpbrk(text, ".eE")) {
        *real = strtod(text, &end);
        *is_float = true;
        memcpy(bits, real, 8);
    } else
        *bits = strtoull(text, &end, 0);
    if (*end == 'U') end++;
    return *end ? ptx_fail(p, "bad number '%s'", text) : ptx_next(p);
}

bool ptx_grow(struct ptx_parser *p, void **array, uint32_t n, uint32_t *reserved, size_t item) {
    if (n < *reserved) return true;
    uint32_t more = *reserved ? *reserved * 2 : 256;
    void *grown = realloc(*array, more * item);
    if (!grown) return ptx_fail(p, "out of memory");
    *array = grown;
    *reserved = more;
    return true;
}
