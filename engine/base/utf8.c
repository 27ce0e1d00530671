#include "engine/base/utf8.h"

#include <string.h>

size_t lk_utf8_valid_prefix(const char *text, size_t length) {
    size_t at = 0;
    while (at < length) {
        uint64_t word;
        if (length - at >= sizeof word) {
            memcpy(&word, text + at, sizeof word);
            if (!(word & 0x8080808080808080u)) {
                at += sizeof word;
                continue;
            }
        }
        uint32_t c;
        size_t n = lk_utf8_decode(text + at, length - at, &c);
        if (!n) break;
        at += n;
    }
    return at;
}

bool lk_utf8_valid(const char *text, size_t length) {
    return !memchr(text, 0, length) && lk_utf8_valid_prefix(text, length) == length;
}

static bool is_space(uint32_t c) {
    static const uint32_t single[] = {0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (c == single[i]) return true;
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || (c >= 0x2000 && c <= 0x200a);
}

const char *lk_utf8_strip(const char *text, size_t length, size_t *n) {
    const char *start = text, *end = text + length;
    uint32_t code;
    for (size_t step; start < end; start += step) {
        step = lk_utf8_decode(start, (size_t)(end - start), &code);
        if (!step || !is_space(code)) break;
    }
    while (end > start) {
        const char *at = end - 1;
        while (at > start && ((unsigned char)*at & 0xc0) == 0x80) at--;
        if (!lk_utf8_decode(at, (size_t)(end - at), &code) || !is_space(code)) break;
        end = at;
    }
    *n = (size_t)(end - start);
    return start;
}
