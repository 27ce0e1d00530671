#include "eval/scores/words.h"

#include <string.h>
#include <strings.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Bytes of the white space at text: U+00A0 and U+FEFF come from web pages and spreadsheets. */
static size_t space_at(const char *text, size_t n) {
    if (n && memchr(" \t\r\n\v\f", *text, 6)) return 1;
    if (n >= 2 && !memcmp(text, "\xc2\xa0", 2)) return 2;
    return n >= 3 && (!memcmp(text, "\xef\xbb\xbf", 3) || !memcmp(text, "\xe2\x80\xaf", 3)) ? 3 : 0;
}

const char *lk_trim(const char *text, size_t *n) {
    size_t length = *n, space;
    while ((space = space_at(text, length))) text += space, length -= space;
    for (size_t k = 1; k <= 3 && k <= length;) {
        if (space_at(text + length - k, k) == k)
            length -= k, k = 1;
        else
            k++;
    }
    *n = length;
    return text;
}

bool lk_is_missing(const char *text, size_t n) {
    static const char *const exact[] = {
        "N/A",  "n/a",  "#N/A",    "#N/A N/A", "#NA",     "<NA>",   "NULL",   "null", "None",         "NaT",
        "-NaN", "-nan", "1.#QNAN", "-1.#QNAN", "-1.#IND", "1.#IND", "#NULL!", "-",    "\xe2\x80\x93", "\xe2\x80\x94"};
    text = lk_trim(text, &n);
    if (!n || (n == 2 && !strncasecmp(text, "NA", 2)) || (n == 3 && !strncasecmp(text, "NaN", 3))) return true;
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (strlen(exact[i]) == n && !memcmp(exact[i], text, n)) return true;
    return false;
}

/* The next byte of a name that counts, in lower case; 0 at its end. */
static int next_letter(const char **text, const char *end) {
    while (*text < end && memchr(" \t_-()[]", **text, 8)) ++*text;
    if (*text == end) return 0;
    int c = (unsigned char)*(*text)++;
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

bool lk_same_name_n(const char *a, size_t n_a, const char *b, size_t n_b) {
    const char *end_a = a + n_a, *end_b = b + n_b;
    for (;;) {
        int x = next_letter(&a, end_a);
        if (x != next_letter(&b, end_b)) return false;
        if (!x) return true;
    }
}

bool lk_same_name(const char *a, const char *b) { return lk_same_name_n(a, strlen(a), b, strlen(b)); }

int lk_word_of(const char *const *words, const char *text, size_t n) {
    text = lk_trim(text, &n);
    for (int i = 0; words[i]; i++)
        if (lk_same_name_n(words[i], strlen(words[i]), text, n)) return i;
    return -1;
}

bool lk_is_damaged_id(const char *text, size_t n) {
    size_t i = 0;
    text = lk_trim(text, &n);
    if (!n || !is_digit(text[i++])) return false;
    if (i < n && (text[i] == '.' || text[i] == ','))
        for (i++; i < n && is_digit(text[i]);) i++;
    if (i + 2 >= n || (text[i] | 0x20) != 'e' || text[i + 1] != '+') return false;
    for (i += 2; i < n && is_digit(text[i]);) i++;
    return i == n;
}
