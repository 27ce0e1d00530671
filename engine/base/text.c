#include "engine/base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"

/* Room for `more` bytes and the NUL. */
static bool reserve(struct lk_text *text, size_t more) {
    if (!text->rc && more >= SIZE_MAX - text->n)
        text->rc = lk_fail(LK_E_NOMEM, "a text of more than %zu bytes; write less at once", text->n);
    if (!text->rc) text->rc = lk_grow(&text->bytes, &text->capacity, text->n + more + 1, 1);
    return !text->rc;
}

void lk_text_bytes(struct lk_text *text, const char *bytes, size_t n) {
    if (!reserve(text, n)) return;
    if (n) memcpy(text->bytes + text->n, bytes, n);
    text->n += n;
    text->bytes[text->n] = '\0';
}

void lk_text_add(struct lk_text *text, const char *format, ...) {
    if (!strchr(format, '%')) {
        lk_text_bytes(text, format, strlen(format));
        return;
    }
    if (!reserve(text, 0)) return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text->bytes + text->n, text->capacity - text->n, format, args);
    va_end(args);
    if (n < 0) {
        text->rc = lk_fail(LK_E_INTERNAL, "a format that printf refuses: %s", format);
        return;
    }
    if ((size_t)n >= text->capacity - text->n) {
        if (!reserve(text, (size_t)n)) return;
        va_start(args, format);
        vsnprintf(text->bytes + text->n, text->capacity - text->n, format, args);
        va_end(args);
    }
    text->n += (size_t)n;
}

void lk_text_json(struct lk_text *text, const char *string) {
    lk_text_bytes(text, "\"", 1);
    for (size_t left = strlen(string); left;) {
        uint32_t c;
        size_t n = lk_utf8_decode(string, left, &c);
        if (c == '"' || c == '\\')
            lk_text_add(text, "\\%c", (int)c);
        else if (c < 0x20 || c == 0x7f || c == 0x2028 || c == 0x2029)
            lk_text_add(text, "\\u%04x", (unsigned)c);
        else if (n)
            lk_text_bytes(text, string, n);
        else
            lk_text_add(text, "\\ufffd");
        string += n ? n : 1;
        left -= n ? n : 1;
    }
    lk_text_bytes(text, "\"", 1);
}

void lk_text_base64(struct lk_text *text, const void *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)b[i] << 16 | (i + 1 < n ? (uint32_t)b[i + 1] << 8 : 0) | (i + 2 < n ? b[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], i + 1 < n ? digits[v >> 6 & 63] : '=',
                        i + 2 < n ? digits[v & 63] : '='};
        lk_text_bytes(text, four, 4);
    }
}

void lk_text_number(struct lk_text *text, double value) { lk_text_add(text, "%.17g", value == 0 ? 0.0 : value); }

enum lk_code lk_text_free(struct lk_text *text) {
    const enum lk_code rc = text->rc;
    lk_free(text->bytes);
    *text = (struct lk_text){0};
    return rc;
}

char *lk_format(const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *out = n < 0 ? NULL : lk_malloc((size_t)n + 1);
    if (out) vsnprintf(out, (size_t)n + 1, format, again);
    va_end(again);
    return out;
}
