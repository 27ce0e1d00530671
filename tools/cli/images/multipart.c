/* The bodies of requests, as fields: multipart/form-data and JSON. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/json.h"
#include "engine/base/utf8.h"
#include "tools/cli/images/api.h"

enum { MAX_BOUNDARY = 70, MAX_PART_HEADER = 4096 };

static enum lk_code add(struct images_fields *out, const struct images_field *field) {
    if (out->n == IMAGES_MAX_FIELDS)
        return lk_fail(LK_E_INPUT, "the request: expected at most %d fields, got more", IMAGES_MAX_FIELDS);
    out->list[out->n++] = *field;
    return LK_OK;
}

/* --- multipart/form-data --- */

/* The value of NAME=value or NAME="value" in a header's parameters, into out; false: there is none, or it is longer. */
static bool parameter(const char *header, const char *name, char *out, size_t size) {
    const size_t n_name = strlen(name);
    for (const char *at = strchr(header, ';'); at; at = strchr(at, ';')) {
        at += 1 + strspn(at + 1, " \t");
        if (strncasecmp(at, name, n_name) || at[n_name] != '=') {
            bool quoted = false; /* a ";" in quotes ends nothing */
            for (; *at && (quoted || *at != ';'); at++) {
                if (quoted && *at == '\\' && at[1])
                    at++;
                else if (*at == '"')
                    quoted = !quoted;
            }
            continue;
        }
        at += n_name + 1;
        const bool quoted = *at == '"';
        size_t n = 0;
        for (at += quoted; *at && (quoted ? *at != '"' : !strchr("; \t", *at)); at++) {
            if (quoted && *at == '\\' && (at[1] == '"' || at[1] == '\\')) at++;
            if (n + 1 >= size) return false;
            out[n++] = *at;
        }
        out[n] = '\0';
        return !quoted || *at == '"';
    }
    return false;
}

/* What a file's name becomes: without folders, and a name in any case. */
static void plain_name(char *name, const char *otherwise) {
    const char *from = name;
    for (const char *at = name; *at; at++)
        if (*at == '/' || *at == '\\') from = at + 1;
    if (from != name) memmove(name, from, strlen(from) + 1);
    bool bad = !lk_utf8_valid(name, strlen(name)) || !*name || !strcmp(name, ".") || !strcmp(name, "..");
    for (const char *at = name; *at; at++) bad |= (unsigned char)*at < 0x20 || *at == 0x7f;
    if (bad) snprintf(name, IMAGES_MAX_NAME, "%s", otherwise);
}

/* One part, whose header ends at `value`. Its names go where the header stood. */
static enum lk_code read_part(char *header, char *value, size_t n, struct images_fields *out) {
    char name[IMAGES_MAX_NAME], file[IMAGES_MAX_NAME];
    char *line = header;
    while (line && strncasecmp(line, "Content-Disposition:", 20))
        line = (line = strstr(line, "\r\n")) ? line + 2 : NULL;
    if (line) line[strcspn(line, "\r\n")] = '\0';
    if (!line || !parameter(line, "name", name, sizeof name))
        return lk_fail(LK_E_INPUT,
                       "the form: part %d: expected a Content-Disposition with a name of at most %d bytes, "
                       "got none",
                       out->n + 1, IMAGES_MAX_NAME - 1);
    const bool is_file = strstr(line, "filename");
    if (is_file && !parameter(line, "filename", file, sizeof file)) *file = '\0';
    if (is_file) plain_name(file, "picture");
    const size_t n_name = strlen(name) + 1, n_file = is_file ? strlen(file) + 1 : 0;
    memcpy(header, name, n_name); /* shorter than the header, which has both */
    if (is_file) memcpy(header + n_name, file, n_file);
    return add(out, &(struct images_field){header, value, n, is_file ? header + n_name : NULL});
}

enum lk_code images_form_read(const char *content_type, char *body, size_t n, struct images_fields *out) {
    char boundary[MAX_BOUNDARY + 1], mark[MAX_BOUNDARY + 5];
    *out = (struct images_fields){.n = 0};
    if (!content_type || strncasecmp(content_type, "multipart/form-data", 19) ||
        !parameter(content_type, "boundary", boundary, sizeof boundary) || !*boundary)
        return lk_fail(LK_E_INPUT,
                       "Content-Type: expected multipart/form-data with a boundary of at most %d bytes, got \"%.80s\"",
                       MAX_BOUNDARY, content_type ? content_type : "");
    const size_t n_mark = (size_t)snprintf(mark, sizeof mark, "\r\n--%s", boundary);
    const char *const end = body + n;
    if (n < n_mark || memcmp(body, mark + 2, n_mark - 2))
        return lk_fail(LK_E_INPUT, "the form: expected it to begin with the boundary of Content-Type");
    for (char *at = body + n_mark - 2;;) {
        if (end - at >= 2 && !memcmp(at, "--", 2)) return LK_OK;
        if (end - at < 2 || memcmp(at, "\r\n", 2)) break;
        at += 2;
        const size_t rest = (size_t)(end - at);
        char *value = memmem(at, rest < MAX_PART_HEADER ? rest : MAX_PART_HEADER, "\r\n\r\n", 4);
        if (!value) break;
        *value = '\0';
        if (strlen(at) != (size_t)(value - at)) break;
        value += 4;
        char *next = memmem(value, (size_t)(end - value), mark, n_mark);
        if (!next) break;
        *next = '\0';
        LK_TRY(read_part(at, value, (size_t)(next - value), out));
        at = next + n_mark;
    }
    return lk_fail(LK_E_INPUT, "the form: part %d: expected a header, a value and the boundary, got an end before them",
                   out->n + 1);
}

/* --- JSON --- */

/* A copy behind what the block has already. */
static char *keep(char **end, const char *text, size_t n) {
    char *at = *end;
    memcpy(at, text, n);
    at[n] = '\0';
    *end = at + n + 1;
    return at;
}

/* A text, a number as it is written, on or off; null is no value. False: anything else. */
static bool read_value(struct lk_json *j, char **end, char **value) {
    const char kind = lk_json_peek(j), *const from = (const char *)j->at, *text;
    *value = NULL;
    if (kind == '"') {
        if (lk_json_string(j, &text)) *value = keep(end, text, strlen(text));
    } else if (lk_json_skip(j)) {
        if (kind == 't') *value = keep(end, "on", 2);
        if (kind == 'f') *value = keep(end, "off", 3);
        if (kind == '0') *value = keep(end, from, (size_t)((const char *)j->at - from));
    }
    return kind != '{' && kind != '[';
}

static void read_array(struct lk_json *j, const char *key, char **end, struct images_fields *out) {
    struct images_field *numbers = NULL;
    char *value;
    lk_json_enter(j, '[');
    while (lk_json_next(j)) {
        const bool is_number = lk_json_peek(j) == '0';
        if (!read_value(j, end, &value) || !value) {
            lk_json_fail(j, LK_E_INPUT, "%s: expected an array of texts or numbers", key);
            return;
        }
        if (is_number && numbers) {
            value[-1] = ','; /* behind the number before it */
            numbers->n = strlen(numbers->value);
            continue;
        }
        if (add(out, &(struct images_field){key, value, strlen(value), NULL})) {
            lk_json_fail(j, LK_E_INPUT, "%s", lk_error_text());
            return;
        }
        numbers = is_number ? &out->list[out->n - 1] : NULL;
    }
}

enum lk_code images_json_read(const char *body, size_t n, struct images_fields *out) {
    struct lk_json j;
    const char *key;
    char *value;
    *out = (struct images_fields){.block = lk_malloc(2 * n + 1)}; /* nothing becomes longer than it is written */
    if (!out->block) return lk_fail(LK_E_NOMEM, "out of memory for a request");
    char *end = out->block;
    lk_json_init(&j, body, n, "the request");
    lk_json_enter(&j, '{');
    while (lk_json_next(&j) && lk_json_key(&j, &key)) {
        char *name = keep(&end, key, strlen(key));
        if (lk_json_peek(&j) == '[')
            read_array(&j, name, &end, out);
        else if (!read_value(&j, &end, &value))
            lk_json_fail(&j, LK_E_INPUT, "%s: expected a text, a number, true or false, got an object", name);
        else if (value && add(out, &(struct images_field){name, value, strlen(value), NULL}))
            lk_json_fail(&j, LK_E_INPUT, "%s", lk_error_text());
    }
    lk_json_end(&j);
    return lk_json_finish(&j);
}
