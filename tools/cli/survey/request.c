#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "tools/cli/survey/http.h"

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One name or value up to `end`, decoded in place. */
static bool decode(char *text, char *end) {
    char *to = text;
    for (const char *at = text; at < end; at++) {
        unsigned char c = (unsigned char)(*at == '+' ? ' ' : *at);
        if (*at == '%') {
            int high = end - at > 2 ? hex_digit(at[1]) : -1, low = high < 0 ? -1 : hex_digit(at[2]);
            if (low < 0) return false;
            c = (unsigned char)(high * 16 + low);
            at += 2;
        }
        if (c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r')) return false;
        *to++ = (char)c;
    }
    *to = '\0';
    return lk_utf8_valid(text, (size_t)(to - text));
}

bool survey_form_read(char *text, struct survey_form *out) {
    out->n = 0;
    for (char *next = text; next && *next;) {
        char *name = next, *end = strchr(name, '&');
        next = end ? end + 1 : NULL;
        if (!end) end = name + strlen(name);
        if (end == name) continue;
        char *equals = memchr(name, '=', (size_t)(end - name));
        if (out->n == SURVEY_MAX_FIELDS) return false;
        struct survey_field *field = &out->fields[out->n++];
        *field = (struct survey_field){name, ""};
        if (equals) field->value = equals + 1;
        bool last = !*end;
        if (equals && !decode(equals + 1, end)) return false;
        if (!last && !equals) *end = '\0';
        if (!decode(name, equals ? equals : end)) return false;
    }
    return true;
}

const char *survey_form_value(const struct survey_form *form, const char *name) {
    for (int i = 0; i < form->n; i++)
        if (!strcmp(form->fields[i].name, name)) return form->fields[i].value;
    return "";
}

int64_t survey_number(const char *text, int64_t max) {
    size_t n = strspn(text, "0123456789");
    if (!n || n > 15 || text[n]) return -1;
    int64_t value = strtoll(text, NULL, 10);
    return value <= max ? value : -1;
}

const char *survey_cookie_name(const struct survey_server *server) {
    return server->study && *server->study->host ? "__Host-survey"
           : *server->cookie_name                ? server->cookie_name
                                                 : "survey";
}

bool survey_cookie(const char *header, const char *name, char out[SURVEY_COOKIE_BYTES + 1]) {
    size_t n_name = strlen(name);
    while (header && *header) {
        header += strspn(header, " ;");
        size_t n = strcspn(header, ";");
        const char *value = header + n_name + 1;
        if (n == n_name + 1 + SURVEY_COOKIE_BYTES && !strncmp(header, name, n_name) && header[n_name] == '=' &&
            strspn(value, "0123456789abcdef") >= SURVEY_COOKIE_BYTES) {
            memcpy(out, value, SURVEY_COOKIE_BYTES);
            out[SURVEY_COOKIE_BYTES] = '\0';
            return true;
        }
        header += n;
    }
    return false;
}
