#include "eval/net/reply.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"

void lk_http_mask(char *text, const struct lk_http_secrets *secrets) {
    for (size_t i = 0; secrets && i < sizeof secrets->list / sizeof *secrets->list; i++) {
        size_t n = secrets->list[i] ? strlen(secrets->list[i]) : 0;
        if (n < LK_HTTP_SECRET_LEAST) continue; /* "none", "EMPTY": what local servers are given */
        for (char *at = text; (at = strstr(at, secrets->list[i])); at += n) memset(at, '*', n);
    }
}

/* The unit of a \uXXXX at text, -1 when it is none. */
static long unit_at(const char *text, size_t left) {
    char digits[5] = "";
    if (left < 6 || text[0] != '\\' || text[1] != 'u') return -1;
    memcpy(digits, text + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}

void lk_http_readable(struct lk_text *out, const char *bytes, size_t n) {
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t n_char = lk_utf8_decode(bytes + i, n - i, &c);
        long unit = unit_at(bytes + i, n - i), next = unit < 0 ? -1 : unit_at(bytes + i + 6, n - i - 6);
        bool pair = unit >= 0xd800 && unit < 0xdc00 && next >= 0xdc00 && next < 0xe000;
        if (!n_char || !c) {
            lk_text_add(out, "\\\\x%02x", (unsigned char)bytes[i]);
            n_char = 1;
        } else if (pair) {
            lk_text_bytes(out, bytes + i, n_char = 12);
        } else if (unit == 0 || (unit >= 0xd800 && unit < 0xe000)) {
            lk_text_add(out, "\\\\u%04lx", (unsigned long)unit);
            n_char = 6;
        } else {
            if (bytes[i] == '\\' && n - i > 1 && (bytes[i + 1] == '\\' || bytes[i + 1] == '"')) n_char = 2;
            lk_text_bytes(out, bytes + i, n_char);
        }
        i += n_char;
    }
}

const char *lk_http_string(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "";
}

void lk_http_show(const char *text, const struct lk_http_secrets *secrets, char *out, size_t n_out) {
    char *whole = lk_strdup(text); /* masked before it is cut: no part of a secret stays */
    if (whole) lk_http_mask(whole, secrets);
    snprintf(out, n_out, "%s", whole ? whole : "");
    lk_free(whole);
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f) *at = '?';
}

void lk_http_words(const cJSON *root, const struct lk_text *readable, const struct lk_http_secrets *secrets,
                   char out[LK_HTTP_WORDS]) {
    char begin[81];
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(root, "error");
    const char *words = lk_http_string(error, "message");
    if (!*words && cJSON_IsString(error)) words = error->valuestring;
    if (!*words) words = lk_http_string(root, "message");
    if (!*words) words = lk_http_string(root, "detail");
    if (*words) {
        lk_http_show(words, secrets, out, LK_HTTP_WORDS);
    } else if (readable->n) {
        lk_http_show(readable->bytes, secrets, begin, sizeof begin);
        snprintf(out, LK_HTTP_WORDS, "no reason given; the reply begins \"%s\"", begin);
    } else {
        snprintf(out, LK_HTTP_WORDS, "no reason given; the reply is empty");
    }
}
