#include "models/tokenizer/unicode.h"

#include "models/tokenizer/unicode_tables.h"

#include <string.h>

uint32_t lk_unicode_stand_in(uint32_t c) {
    if (c < unicode_differences[0].first) return c;
    size_t low = 0, high = N_UNICODE_DIFFERENCES;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct unicode_difference *d = &unicode_differences[middle];
        if (c < d->first) {
            high = middle;
        } else if (c > d->last) {
            low = middle + 1;
        } else {
            return unicode_representatives[d->kind][c < 0x800 ? 0 : c < 0x10000 ? 1 : 2];
        }
    }
    return c;
}

bool lk_unicode_stand_in_touches(uint32_t first, uint32_t last) {
    for (size_t i = 0; i < N_UNICODE_DIFFERENCES; i++) {
        if (first <= unicode_differences[i].last && unicode_differences[i].first <= last) return true;
    }
    for (size_t i = 0; i < N_UNICODE_KINDS; i++) {
        for (int k = 0; k < 3; k++) {
            if (first <= unicode_representatives[i][k] && unicode_representatives[i][k] <= last) return true;
        }
    }
    return false;
}

bool lk_unicode_inert_in_nfc(uint32_t c) {
    if (c < unicode_inert[0].first) return false;
    size_t low = 0, high = N_UNICODE_INERT;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c < unicode_inert[middle].first) {
            high = middle;
        } else if (c > unicode_inert[middle].last) {
            low = middle + 1;
        } else {
            return true;
        }
    }
    return false;
}

bool lk_unicode_white_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}
