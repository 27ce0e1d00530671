#include "eval/scores/level.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The exponent behind an 'e', kept within limits that no level comes near; n_used 0 when it is none. */
static int exponent_of(const char *text, size_t n, bool *ok) {
    size_t i = 0;
    int value = 0;
    bool negative = i < n && text[i] == '-';
    if (i < n && (text[i] == '-' || text[i] == '+')) i++;
    *ok = i < n;
    for (; i < n; i++) {
        if (!is_digit(text[i])) *ok = false;
        if (value < 100000) value = value * 10 + (text[i] - '0');
    }
    return negative ? -value : value;
}

int lk_level_of_number(const char *text, size_t n) {
    size_t i = 0;
    int exponent = 0, level = 0, place = 0; /* place: power of ten of the digit that is not zero */
    bool point = false, any = false;
    for (; i < n && (is_digit(text[i]) || (text[i] == '.' && !point)); i++) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        any = true;
        if (level && !point) place++;
        if (!level && point) place--;
        if (text[i] == '0') continue;
        if (level) return 0; /* a second digit */
        level = text[i] - '0';
    }
    if (!any) return 0;
    if (i < n) {
        bool ok = text[i] == 'e' || text[i] == 'E';
        if (ok) exponent = exponent_of(text + i + 1, n - i - 1, &ok);
        if (!ok) return 0;
    }
    return level >= 1 && level <= 5 && place + exponent == 0 ? level : 0;
}

int lk_level_of_string(const char *text, size_t n) {
    return n == 1 && text[0] >= '1' && text[0] <= '5' ? text[0] - '0' : 0;
}

long lk_count_of_text(const char *text, size_t n, long max) {
    long value = 0;
    size_t i = 0;
    for (; i < n && is_digit(text[i]); i++) {
        if (value > (max - (text[i] - '0')) / 10) return -1;
        value = value * 10 + (text[i] - '0');
    }
    if (!i) return -1;
    if (i < n && text[i] == '.') {
        size_t point = i++;
        while (i < n && text[i] == '0') i++;
        if (i == point + 1) return -1;
    }
    return i == n ? value : -1;
}

bool lk_decimal_of_text(const char *text, size_t n, double *out) {
    char copy[64];
    size_t i = 0, n_digits = 0;
    if (n >= sizeof copy) return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    i += copy[i] == '-' || copy[i] == '+';
    for (; is_digit(copy[i]); i++) n_digits++;
    i += copy[i] == '.';
    for (; is_digit(copy[i]); i++) n_digits++;
    if (!n_digits) return false;
    if (copy[i] == 'e' || copy[i] == 'E') {
        i++;
        i += copy[i] == '-' || copy[i] == '+';
        if (!is_digit(copy[i])) return false;
        while (is_digit(copy[i])) i++;
    }
    if (i != n) return false;
    *out = strtod(copy, NULL); /* the program never leaves the C locale */
    return isfinite(*out);
}

int lk_level_of_years(double years, double near, double far) {
    if (years <= -far) return 1;
    if (years >= far) return 5;
    return years < -near ? 2 : years > near ? 4 : 3;
}
