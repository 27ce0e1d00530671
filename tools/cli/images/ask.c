/* Fields of a request as a job. What the API has and these models have not is refused unless it asks for what they do
 * anyway; what the models have beyond the API goes by the names that recipes have. */
#include <inttypes.h>
#include <openssl/rand.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "tools/cli/images/api.h"

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
