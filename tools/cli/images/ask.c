/* Fields of a request as a job. What the API has and these models have not is refused unless it asks for what they do
 * anyway; what the models have beyond the API goes by the names that recipes have. */
#include <inttypes.h>
#include <openssl/rand.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/json.h"
#include "engine/base/utf8.h"
#include "tools/cli/images/api.h"

/* The bodies of requests, as fields: multipart/form-data and JSON. */

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

void images_refuse(struct images_answer *out, int status, const char *param, const char *format, ...) {
    static const struct {
        int status;
        const char *type, *code;
    } kinds[] = {{401, "invalid_request_error", "invalid_api_key"},
                 {404, "invalid_request_error", "not_found"},
                 {405, "invalid_request_error", "method_not_allowed"},
                 {413, "invalid_request_error", "request_too_large"},
                 {421, "invalid_request_error", "wrong_host"},
                 {429, "rate_limit_error", "queue_full"},
                 {500, "server_error", "server_error"},
                 {503, "server_error", "server_is_stopping"},
                 {0, "invalid_request_error", "invalid_value"}};
    char text[LK_ERROR_TEXT_MAX];
    size_t kind = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    while (kinds[kind].status && kinds[kind].status != status) kind++;
    lk_text_free(&out->body);
    out->body = (struct lk_text){0};
    out->status = status;
    lk_text_add(&out->body, "{\"error\":{\"message\":");
    lk_text_json(&out->body, text);
    lk_text_add(&out->body, ",\"type\":\"%s\",\"param\":", kinds[kind].type);
    if (param)
        lk_text_json(&out->body, param);
    else
        lk_text_add(&out->body, "null");
    lk_text_add(&out->body, ",\"code\":\"%s\"}}\n",
                param && !strcmp(param, "model") && status == 404 ? "model_not_found" : kinds[kind].code);
}

int images_status_of(enum lk_code code) {
    const int band = lk_exit_code(code);
    return band == 2 || band == 3 || code == LK_E_FIT ? 400 : code == LK_E_INTERRUPTED ? 503 : 500;
}

struct reading {
    const struct images_model *model;
    struct images_ask *ask;
    struct images_answer *answer;
    const struct images_field *first[IMAGES_MAX_FIELDS]; /* of each name */
    int n_first;
};

/* LK_E_USAGE, whose message is already in the answer, or is to come with the field's name. */
typedef enum lk_code reader(struct reading *r, const struct images_field *f);

static enum lk_code read_model(struct reading *r, const struct images_field *f) {
    if (!strcmp(f->value, r->model->id) || !strcmp(f->value, r->model->path)) return LK_OK;
    images_refuse(r->answer, 404, "model", "model: expected %s, which this server has, got \"%.100s\"", r->model->id,
                  f->value);
    return LK_E_USAGE;
}

static enum lk_code read_n(struct reading *r, const struct images_field *f) {
    int64_t n;
    LK_TRY(lk_read_int("n", f->value, f->n, 1, IMAGES_MAX_PICTURES, &n));
    r->ask->n = (int)n;
    return LK_OK;
}

static enum lk_code read_size(struct reading *r, const struct images_field *f) {
    const struct lk_parameter *sides[] = {lk_parameter_named("width"), lk_parameter_named("height")};
    const char *by = strchr(f->value, 'x');
    char side[16];
    if (!strcmp(f->value, "auto")) return LK_OK;
    bool good = by && by - f->value < (ptrdiff_t)sizeof side && strlen(by + 1) < sizeof side;
    for (int i = 0; i < 2 && good; i++) {
        snprintf(side, sizeof side, "%.*s", i ? (int)sizeof side - 1 : (int)(by - f->value), i ? by + 1 : f->value);
        good = !lk_parameter_parse(sides[i], &r->ask->job, "size", side);
    }
    return good ? LK_OK
                : lk_fail(LK_E_USAGE, "size: expected WIDTHxHEIGHT as 1024x1024, or auto, got \"%.60s\"", f->value);
}

static enum lk_code add_picture(struct reading *r, const struct images_field *f) {
    struct images_ask *ask = r->ask;
    if (!r->model->takes_images)
        return lk_fail(LK_E_USAGE, "image: %s makes pictures from text alone: ask /v1/images/generations",
                       r->model->id);
    if (ask->n_images == LK_MAX_REFERENCES)
        return lk_fail(LK_E_USAGE, "image: expected at most %d, got more", LK_MAX_REFERENCES);
    ask->images[ask->n_images++] = (struct images_file){f->file, f->value, f->n};
    return LK_OK;
}

static enum lk_code read_mask(struct reading *r, const struct images_field *f) {
    r->ask->mask = (struct images_file){f->file, f->value, f->n};
    return LK_OK;
}

/* What the API has beside parameters of ours. */
static const struct known {
    const char *name;
    reader *read;     /* NULL: a text that must be `only` */
    const char *only; /* the values that ask for what these models do, with "|" between; NULL: any, without meaning */
    bool file, list;
} known[] = {{"model", read_model, NULL, false, false},
             {"n", read_n, NULL, false, false},
             {"size", read_size, NULL, false, false},
             {"image", add_picture, NULL, true, true},
             {"image[]", add_picture, NULL, true, true},
             {"mask", read_mask, NULL, true, false},
             {"response_format", NULL, "b64_json", false, false},
             {"output_format", NULL, "png", false, false},
             {"output_compression", NULL, "100", false, false},
             {"quality", NULL, "auto", false, false},
             {"background", NULL, "auto|opaque", false, false},
             {"moderation", NULL, "auto|low", false, false},
             {"stream", NULL, "off|false", false, false},
             {"partial_images", NULL, "0", false, false},
             {"user", NULL, NULL, false, false}};

/* A parameter by the name in recipes, or by its short one: steps. */
static const struct lk_parameter *parameter_of(const char *name) {
    char alias[40];
    for (size_t i = 0; i < lk_n_parameters; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        snprintf(alias, sizeof alias, "%s", p->alias ? p->alias : "");
        for (char *c = alias; *c; c++)
            if (*c == '-') *c = '_';
        if (!strcmp(name, p->key) || !strcmp(name, alias)) return p;
    }
    return NULL;
}

static enum lk_code read_parameter(struct reading *r, const struct images_field *f, const struct lk_parameter *p) {
    const char *value = f->value;
    if (p->place != LK_IN_REQUEST || p->machine)
        return lk_fail(LK_E_USAGE, "%s: is the server's alone to set; leave it out", f->name);
    if (!strcmp(p->name, "scheduler") && *value != '{' && strpbrk(value, "./"))
        return lk_fail(LK_E_USAGE, "%s: expected a scheduler's name or its config as text, got \"%.60s\"", f->name,
                       value);
    if (!(p->families & lk_family_bit_of(r->model->family)) && !lk_parameter_is_idle(p, value))
        return lk_fail(LK_E_USAGE, "%s: %s has no such parameter; leave it out", f->name, r->model->id);
    if (p->kind == LK_PARAMETER_FLAG && !strcmp(value, "true")) value = "on"; /* as forms say it */
    if (p->kind == LK_PARAMETER_FLAG && !strcmp(value, "false")) value = "off";
    return lk_parameter_parse(p, &r->ask->job, f->name, value);
}

static enum lk_code check_once(struct reading *r, const struct images_field *f) {
    for (int i = 0; i < r->n_first; i++)
        if (!strcmp(r->first[i]->name, f->name)) return lk_fail(LK_E_USAGE, "%s: is given twice", f->name);
    r->first[r->n_first++] = f;
    return LK_OK;
}

static bool is_one_of(const char *value, const char *list) {
    const char *choice;
    return !list || !lk_read_choice("", value, list, &choice);
}

static enum lk_code check_text(const struct images_field *f) {
    if (strlen(f->value) == f->n && lk_utf8_valid(f->value, f->n)) return LK_OK;
    return lk_fail(LK_E_USAGE, "%s: expected UTF-8 without NUL, got other bytes", f->name);
}

static enum lk_code read_field(struct reading *r, const struct images_field *f) {
    const struct known *k = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known && !k; i++)
        if (!strcmp(known[i].name, f->name)) k = &known[i];
    const struct lk_parameter *p = k ? NULL : parameter_of(f->name);
    if (!k && !p) return lk_fail(LK_E_USAGE, "%.60s: is no field that this server knows; leave it out", f->name);
    const bool file = k && k->file;
    if (file != (f->file != NULL))
        return lk_fail(LK_E_USAGE, "%s: expected %s", f->name,
                       file ? "a file, in a form (multipart/form-data) to /v1/images/edits, got a text"
                            : "a text, got a file");
    if (!file) LK_TRY(check_text(f));
    if (!(k ? k->list : p->kind == LK_PARAMETER_TEXTS)) LK_TRY(check_once(r, f));
    if (p) return read_parameter(r, f, p);
    if (k->read) return k->read(r, f);
    if (is_one_of(f->value, k->only)) return LK_OK;
    return lk_fail(LK_E_USAGE, "%s: expected %s, which is what this server does, got \"%.60s\"; leave it out", f->name,
                   k->only, f->value);
}

static size_t n_characters(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += (*text & 0xc0) != 0x80;
    return n;
}

/* What the fields together must be. *param: which is to blame. */
static enum lk_code check_whole(const struct images_ask *ask, bool edit, const char **param) {
    const char *prompt = ask->job.request.prompt;
    *param = "prompt";
    if (!prompt || !*prompt) return lk_fail(LK_E_USAGE, "prompt: expected a text, got none");
    if (n_characters(prompt) > IMAGES_MAX_PROMPT)
        return lk_fail(LK_E_USAGE, "prompt: expected at most %d characters, got %zu", IMAGES_MAX_PROMPT,
                       n_characters(prompt));
    const struct lk_request *q = &ask->job.request;
    *param = "size";
    if ((int64_t)q->width * q->height > IMAGES_MAX_PIXELS)
        return lk_fail(LK_E_USAGE, "size: expected at most %d pixels, got %dx%d", IMAGES_MAX_PIXELS, q->width,
                       q->height);
    *param = edit ? "image" : ask->mask.bytes ? "mask" : "image";
    if (edit && !ask->n_images) return lk_fail(LK_E_USAGE, "image: expected a picture to edit, got none");
    if (!edit && (ask->n_images || ask->mask.bytes))
        return lk_fail(LK_E_USAGE, "%s: a picture goes to /v1/images/edits", *param);
    return LK_OK;
}

/* Requests without a seed give different pictures, as the API's do. */
static enum lk_code draw_seed(struct images_ask *ask) {
    const struct lk_parameter *seed = lk_parameter_named("seed");
    uint32_t drawn;
    if (!lk_job_given(&ask->job, seed)) {
        if (RAND_bytes((unsigned char *)&drawn, sizeof drawn) != 1) return lk_fail(LK_E_INTERNAL, "no random numbers");
        ask->job.request.seed = drawn >> 1;
        ask->job.given |= (uint64_t)1 << (seed - lk_parameters);
    }
    if (ask->job.request.seed <= (uint64_t)INT64_MAX - (uint64_t)ask->n) return LK_OK;
    return lk_fail(LK_E_USAGE, "seed: expected at most %" PRId64 ", so that %d seeds follow each other, got %" PRIu64,
                   INT64_MAX - ask->n, ask->n, ask->job.request.seed);
}

void images_ask_read(const struct images_model *model, bool edit, const struct images_fields *fields,
                     struct images_ask *ask, struct images_answer *answer) {
    struct reading r = {.model = model, .ask = ask, .answer = answer};
    const char *param = NULL;
    enum lk_code rc = LK_OK;
    *ask = (struct images_ask){.job = *model->job, .n = 1};
    ask->job.owned = 0;
    for (int i = 0; i < fields->n && !rc; i++) {
        param = fields->list[i].name;
        rc = read_field(&r, &fields->list[i]);
    }
    if (!rc) rc = check_whole(ask, edit, &param);
    if (!rc) param = "seed", rc = draw_seed(ask);
    if (rc && !answer->status) images_refuse(answer, images_status_of(rc), param, "%s", lk_error_text());
}

void images_ask_free(struct images_ask *ask) { lk_job_free(&ask->job); }
