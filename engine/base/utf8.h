/* UTF-8, strictly: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the code point at text (1 to 4), 0 if it is not well-formed UTF-8 (overlong, surrogate, past U+10FFFF, cut
 * off). */
static inline size_t lk_utf8_decode(const char *text, size_t length, uint32_t *code) {
    const unsigned char *s = (const unsigned char *)text;
    *code = 0xfffd;
    if (!length) return 0;
    uint32_t c = s[0];
    if (c < 0x80) {
        *code = c;
        return 1;
    }
    size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || length < n) return 0;
    c &= 0x7fu >> n;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
    *code = c;
    return n;
}

/* Writes 1 to 4 bytes. */
static inline size_t lk_utf8_encode(uint32_t c, char *out) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    size_t n = c < 0x10000 ? 3 : 4;
    out[0] = (char)(n == 3 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
    for (size_t i = 1; i < n; i++) out[i] = (char)(0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
    return n;
}

/* Length of the longest well-formed prefix; `length` when all of it is. */
size_t lk_utf8_valid_prefix(const char *text, size_t length);

/* True when all of it is UTF-8 and no byte is NUL. */
bool lk_utf8_valid(const char *text, size_t length);

/* White space of Unicode off both ends, as Python's str.strip. *n gets the bytes left. */
const char *lk_utf8_strip(const char *text, size_t length, size_t *n);
