/* UTF-8 and the few character properties that the tokenizer needs, with the values of the reference's libraries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the code point at text (1 to 4), 0 if it is not well-formed UTF-8 (overlong, surrogate, past U+10FFFF, cut
 * off). */
static inline size_t utf8_decode(const char *text, size_t length, uint32_t *code) {
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
static inline size_t utf8_encode(uint32_t c, char *out) {
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
size_t utf8_valid_prefix(const char *text, size_t length);

/* A character of the same UTF-8 length and of the general category that c has for the reference's regular expressions
 * (Oniguruma), whatever Unicode version the installed PCRE2 knows; c itself for nearly all characters. */
uint32_t unicode_stand_in(uint32_t c);
/* Whether [first, last] holds a character that unicode_stand_in maps, or maps to. */
bool unicode_stand_in_touches(uint32_t first, uint32_t last);

/* Characters that Unicode assigned after the version of the reference's normalizer: NFC leaves them where they are. */
bool unicode_inert_in_nfc(uint32_t c);

/* The White_Space property. */
bool unicode_white_space(uint32_t c);
