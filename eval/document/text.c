/* Text as HTML and SVG take it. */
#include <string.h>

#include "engine/base/utf8.h"
#include "eval/document/table.h"

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
