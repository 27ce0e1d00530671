/* Text that grows. The first failure stays in `rc`; later calls do nothing. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "eval/document/table.h"

static bool reserve(struct lk_text *text, size_t more) {
    if (text->rc) return false;
    if (more >= SIZE_MAX / 4 || text->n >= SIZE_MAX / 4) {
        text->rc = lk_fail(LK_E_NOMEM, "report: a text of %zu bytes; write fewer items per list", text->n);
        return false;
    }
    size_t need = text->n + more + 1;
    if (need <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : 1024;
    while (capacity < need) capacity *= 2;
    char *bytes = lk_realloc(text->bytes, capacity);
    if (!bytes) {
        text->rc = lk_fail(LK_E_NOMEM, "report: no memory for a text of %zu bytes; free memory and try again", need);
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
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
        text->rc = lk_fail(LK_E_INTERNAL, "report: a format that printf refuses: %s", format);
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

/* What HTML does not allow in a text at all, not even by number: it is shown as U+FFFD, as a browser would. */
static bool forbidden(uint32_t c) {
    return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7f && c < 0xa0) || (c & 0xfffe) == 0xfffe ||
           (c >= 0xfdd0 && c <= 0xfdef);
}

/* Directional overrides and isolates would let a text change how the text after it reads. */
static bool turns_direction(uint32_t c) { return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069); }

/* ASCII that HTML takes as it is. */
static bool plain(char c) {
    return c >= ' ' && c < 0x7f && c != '&' && c != '<' && c != '>' && c != '"' && c != '\'' && c != '`';
}

void lk_text_escaped(struct lk_text *text, const char *utf8) {
    for (size_t left = strlen(utf8); left;) {
        uint32_t c;
        size_t n_plain = 0;
        while (n_plain < left && plain(utf8[n_plain])) n_plain++;
        lk_text_bytes(text, utf8, n_plain);
        utf8 += n_plain;
        if (!(left -= n_plain)) return;
        size_t n = lk_utf8_decode(utf8, left, &c);
        const char *entity = c == '&'    ? "&amp;"
                             : c == '<'  ? "&lt;"
                             : c == '>'  ? "&gt;"
                             : c == '"'  ? "&quot;"
                             : c == '\'' ? "&#39;"
                             : c == '`'  ? "&#96;"
                                         : NULL;
        if (entity)
            lk_text_bytes(text, entity, strlen(entity));
        else if (!n || forbidden(c) || turns_direction(c))
            lk_text_bytes(text, "\xef\xbf\xbd", 3);
        else if (c == 0x2028 || c == 0x2029)
            lk_text_add(text, "&#x%x;", (unsigned)c);
        else
            lk_text_bytes(text, utf8, n);
        utf8 += n ? n : 1;
        left -= n ? n : 1;
    }
}

void lk_text_free(struct lk_text *text) {
    lk_free(text->bytes);
    *text = (struct lk_text){0};
}
