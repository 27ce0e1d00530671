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
