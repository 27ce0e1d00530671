#include "eval/hosted/images.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"

enum { PAUSE_MS = 500, LONGEST_PAUSE_MS = 8000 };

struct lk_images_server {
    struct lk_images_settings settings;
    struct lk_http *http;
};

enum lk_code lk_images_open(struct lk_images_server **out, const struct lk_images_settings *s) {
    struct lk_images_server *server = *out = lk_calloc(1, sizeof *server);
    if (!server) return lk_fail(LK_E_NOMEM, "images server: out of memory");
    server->settings = *s;
    const struct lk_http_settings http = {.what = "images server",
                                          .option = s->option,
                                          .url = s->url,
                                          .behind = "/images/generations",
                                          .key = s->key,
                                          .requests_per_minute = s->requests_per_minute,
                                          .answer_bytes = LK_IMAGES_ANSWER_BYTES,
                                          .answer_ms = s->answer_ms,
                                          .pause_ms = s->pause_ms ? s->pause_ms : PAUSE_MS,
                                          .longest_pause_ms = LONGEST_PAUSE_MS,
                                          .waiting = s->waiting};
    enum lk_code rc = lk_http_open(&server->http, &http);
    if (!rc) return LK_OK;
    lk_images_close(server);
    *out = NULL;
    return rc;
}

void lk_images_close(struct lk_images_server *server) {
    if (!server) return;
    lk_http_close(server->http);
    lk_free(server);
}

enum lk_code lk_images_state(const struct lk_images_server *server) { return lk_http_state(server->http); }

void lk_image_answer_free(struct lk_image_answer *a) {
    lk_image_free(&a->image);
    lk_text_free(&a->body);
    for (int i = 0; i < LK_N_ASKED_CELLS; i++) lk_free(a->texts[i]);
    *a = (struct lk_image_answer){0};
}

/* --- the request --- */

struct question {
    struct lk_images_server *server;
    const struct lk_image_question *asked;
    struct lk_image_answer *answer;
    char *url;              /* where the picture is, when it is not in the answer */
    char content_type[100]; /* of a form */
    bool given;             /* the answer is whole, and the caller has been told */
    void (*answered)(void *context, int i);
    void *context;
    int number;
};

static bool is_set(const struct lk_images_settings *s, const char *key) {
    for (int i = 0; i < s->n_set; i++)
        if (!strcmp(s->set[i].key, key)) return true;
    return false;
}

/* GPT image always answers with the picture itself and refuses to be asked how; others are asked for it. */
static struct lk_images_option format_of(const struct lk_images_settings *s) {
    const bool gpt = !strncmp(s->model, "gpt-image", 9) || !strncmp(s->model, "chatgpt-image", 13);
    return gpt ? (struct lk_images_option){"output_format", "png", true}
               : (struct lk_images_option){"response_format", "b64_json", true};
}

/* All members but pictures, one after another. */
static void each_member(const struct question *q, void (*add)(struct lk_text *, const struct lk_images_option *),
                        struct lk_text *body) {
    const struct lk_images_settings *s = &q->server->settings;
    const struct lk_images_option format = format_of(s);
    char seed[24];
    add(body, &(struct lk_images_option){"model", s->model, true});
    add(body, &(struct lk_images_option){"prompt", q->asked->prompt, true});
    add(body, &(struct lk_images_option){"n", "1", false});
    for (int i = 0; i < s->n_set; i++) add(body, &s->set[i]);
    if (!is_set(s, format.key)) add(body, &format);
    if (!s->seed_field) return;
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)q->asked->seed);
    add(body, &(struct lk_images_option){"seed", seed, false});
}

static void add_json(struct lk_text *body, const struct lk_images_option *member) {
    lk_text_add(body, "%s\"%s\":", body->n > 1 ? "," : "", member->key);
    if (member->text)
        lk_text_json(body, member->value);
    else
        lk_text_add(body, "%s", member->value);
}

/* Put in place of the boundary once the body's digest is known. */
#define BOUNDARY "likeness-0000000000000000000000000000000000000000"

static void add_field(struct lk_text *body, const struct lk_images_option *member) {
    lk_text_add(body, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n", member->key);
    lk_text_bytes(body, member->value, strlen(member->value));
    lk_text_add(body, "\r\n");
}

/* Pixels alone go: what a file says beside them, of camera and place, stays here. */
static enum lk_code add_picture(struct lk_text *body, const struct lk_image *image, bool several) {
    void *png;
    size_t n;
    LK_TRY(lk_png_encode("a picture for the images server", image, &png, &n));
    lk_text_add(body,
                "--" BOUNDARY
                "\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"image.png\"\r\nContent-Type: "
                "image/png\r\n\r\n",
                several ? "image[]" : "image");
    lk_text_bytes(body, png, n);
    lk_text_add(body, "\r\n");
    lk_free(png);
    return body->rc;
}

/* No picture and no prompt holds its own digest. */
static void set_boundary(struct question *q, struct lk_text *body) {
    char digest[65];
    const size_t n = strlen(BOUNDARY);
    lk_sha256(body->bytes, body->n, digest);
    for (char *at = body->bytes; (at = memmem(at, (size_t)(body->bytes + body->n - at), BOUNDARY, n)); at += n)
        memcpy(at + 9, digest, n - 9);
    snprintf(q->content_type, sizeof q->content_type, "multipart/form-data; boundary=likeness-%.40s", digest);
}

static enum lk_code make(struct lk_http_call *call, struct lk_text *body, const char **content_type) {
    struct question *q = call->context;
    if (!q->asked->n_images) {
        lk_text_add(body, "{");
        each_member(q, add_json, body);
        lk_text_add(body, "}");
        return body->rc;
    }
    each_member(q, add_field, body);
    for (int i = 0; i < q->asked->n_images; i++)
        LK_TRY(add_picture(body, &q->asked->images[i], q->asked->n_images > 1));
    lk_text_add(body, "--" BOUNDARY "--\r\n");
    if (body->rc) return body->rc;
    set_boundary(q, body);
    *content_type = q->content_type;
    return LK_OK;
}

/* --- the answer --- */

static int digit_of(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Base64, maybe as a data: URL; lk_free. NULL: it is none, or memory is out. */
static char *decode(const char *text, size_t *n) {
    if (!strncmp(text, "data:", 5) && strchr(text, ',')) text = strchr(text, ',') + 1;
    char *bytes = lk_malloc(strlen(text) / 4 * 3 + 3);
    unsigned bits = 0;
    int n_bits = 0;
    *n = 0;
    for (; bytes && *text && *text != '='; text++) {
        const int digit = digit_of(*text);
        if (*text == '\n' || *text == '\r') continue;
        if (digit < 0) {
            lk_free(bytes);
            return NULL;
        }
        bits = bits << 6 | (unsigned)digit, n_bits += 6;
        if (n_bits >= 8) bytes[(*n)++] = (char)(bits >> (n_bits -= 8) & 0xff);
    }
    return bytes;
}

/* The picture, or that it is a placeholder. */
static enum lk_http_verdict take_picture(struct question *q, const void *bytes, size_t n, const char *address,
                                         char why[LK_HTTP_WHY_BYTES]) {
    struct lk_image_answer *a = q->answer;
    struct lk_picture_signs signs;
    if (lk_image_decode(&a->image, bytes, n, "its picture", 1, 0) || lk_picture_signs_of(&a->image, &signs)) {
        snprintf(why, LK_HTTP_WHY_BYTES, "%.160s: %.250s", address, lk_error_text());
        return LK_HTTP_REQUEST;
    }
    a->asked.outcome = LK_OUTCOME_MADE;
    if (!signs.placeholder) return LK_HTTP_TAKEN;
    a->asked.outcome = LK_OUTCOME_PLACEHOLDER;
    snprintf(a->error, sizeof a->error, "a %s picture in place of one", lk_placeholder_key(signs.placeholder));
    lk_image_answer_set(a, LK_ASKED_STAGE, "placeholder", NULL);
    lk_image_answer_set(a, LK_ASKED_CODE, lk_placeholder_key(signs.placeholder), NULL);
    return LK_HTTP_TAKEN;
}

/* SCHEME://HOST:PORT of an address, without user and password. */
static size_t host_of(const char *address, const char **host) {
    const char *from = strstr(address, "://"), *end;
    if (!from) return 0;
    from += 3, end = from + strcspn(from, "/?#");
    const char *at = memrchr(from, '@', (size_t)(end - from));
    *host = at ? at + 1 : from;
    return (size_t)(end - *host);
}

static bool may_fetch(const struct lk_images_settings *s, const char *url) {
    const char *ours = "", *theirs = "";
    if (strncasecmp(url, "http://", 7) && strncasecmp(url, "https://", 8)) return false;
    const size_t n = host_of(s->url, &ours), m = host_of(url, &theirs);
    return s->fetch_urls || (n && n == m && !strncasecmp(ours, theirs, n));
}

static enum lk_http_verdict read_reply(struct lk_http_call *call, const struct lk_http_reply *r,
                                       char why[LK_HTTP_WHY_BYTES]) {
    struct question *q = call->context;
    struct lk_images_reply parts;
    enum lk_http_verdict verdict = lk_images_classify(r, lk_http_secrets(q->server->http), q->answer, &parts, why);
    if (verdict == LK_HTTP_TAKEN && *parts.b64) {
        size_t n;
        char *bytes = decode(parts.b64, &n);
        if (bytes) verdict = take_picture(q, bytes, n, r->address, why);
        if (!bytes) snprintf(why, LK_HTTP_WHY_BYTES, "%.160s: data[0].b64_json: expected base64", r->address);
        if (!bytes) verdict = LK_HTTP_ALONE;
        lk_free(bytes);
    } else if (verdict == LK_HTTP_TAKEN && *parts.url) {
        if (may_fetch(&q->server->settings, parts.url)) {
            q->url = lk_strdup(parts.url);
        } else {
            snprintf(why, LK_HTTP_WHY_BYTES,
                     "%.160s: the picture is on another host; --fetch-urls fetches it from there, without the key",
                     r->address);
            verdict = LK_HTTP_REQUEST;
        }
    }
    cJSON_Delete(parts.root);
    return verdict;
}

static enum lk_http_verdict read_fetched(struct lk_http_call *call, const struct lk_http_reply *r,
                                         char why[LK_HTTP_WHY_BYTES]) {
    struct question *q = call->context;
    if (r->status == 200) return take_picture(q, r->bytes, r->n, "the picture's address", why);
    snprintf(why, LK_HTTP_WHY_BYTES, "the picture's address: status %ld", r->status);
    return r->status >= 500 ? LK_HTTP_AGAIN : LK_HTTP_ALONE;
}

/* --- all of them --- */

static enum lk_code set_number(struct lk_image_answer *a, enum lk_asked_cell cell, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return lk_image_answer_set(a, cell, text, NULL);
}

/* What the request itself says of its answer. */
static enum lk_code note_call(const struct question *q, const struct lk_http_call *call) {
    struct lk_image_answer *a = q->answer;
    char at[32] = "";
    const time_t begun = time(NULL) - (time_t)(call->latency_ms / 1000);
    struct tm tm;
    if (gmtime_r(&begun, &tm)) strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
    LK_TRY(set_number(a, LK_ASKED_LATENCY_MS, call->latency_ms));
    LK_TRY(set_number(a, LK_ASKED_N_SENT, call->n_sent));
    LK_TRY(lk_image_answer_set(a, LK_ASKED_AT, at, NULL));
    if (a->texts[LK_ASKED_API_MODEL]) return LK_OK;
    return lk_image_answer_set(a, LK_ASKED_API_MODEL, q->server->settings.model, NULL);
}

static enum lk_code note_fault(const struct question *q, const struct lk_http_call *call) {
    struct lk_image_answer *a = q->answer;
    a->asked.outcome = LK_OUTCOME_FAULT;
    a->code = lk_http_state(q->server->http) ? LK_E_IO : LK_E_INPUT;
    snprintf(a->error, sizeof a->error, "%s", call->error);
    return lk_image_answer_set(a, LK_ASKED_WORDS, call->error, lk_http_secrets(q->server->http));
}

/* The answer is the caller's from here. */
static void give(struct question *q) {
    q->given = true;
    if (q->answered) q->answered(q->context, q->number);
}

static void question_over(struct lk_http_call *call) {
    struct question *q = call->context;
    if (!q->url && !note_call(q, call)) give(q); /* otherwise it is looked at again */
}

static void fetched(struct lk_http_call *call) { give(call->context); }

/* Pictures that answers name by an address, which does not last. */
static enum lk_code fetch(struct lk_images_server *server, struct question *list, struct lk_http_call *calls, int n,
                          int n_slots, enum lk_code (*tick)(void)) {
    int n_urls = 0;
    for (int i = 0; i < n; i++)
        if (list[i].url && !calls[i].code)
            calls[n + n_urls++] = (struct lk_http_call){
                .address = list[i].url, .read = read_fetched, .over = fetched, .context = &list[i]};
    if (!n_urls) return LK_OK;
    LK_TRY(lk_http_ask(server->http, calls + n, n_urls, n_slots, tick));
    for (int i = n; i < n + n_urls; i++)
        if (calls[i].code) LK_TRY(note_fault(calls[i].context, &calls[i]));
    return LK_OK;
}

enum lk_code lk_images_ask_each(struct lk_images_server *server, const struct lk_image_question *questions, int n,
                                int n_slots, enum lk_code (*tick)(void), void (*answered)(void *context, int i),
                                void *context, struct lk_image_answer *answers) {
    struct lk_http_call *calls = lk_calloc(2 * (size_t)n + 1, sizeof *calls);
    struct question *list = lk_calloc((size_t)n + 1, sizeof *list);
    enum lk_code rc = calls && list ? LK_OK : lk_fail(LK_E_NOMEM, "images server: out of memory");
    for (int i = 0; i < n; i++) {
        answers[i] = (struct lk_image_answer){0};
        if (rc) continue;
        list[i] = (struct question){.server = server,
                                    .asked = &questions[i],
                                    .answer = &answers[i],
                                    .answered = answered,
                                    .context = context,
                                    .number = i};
        calls[i] = (struct lk_http_call){.path = questions[i].n_images ? "/images/edits" : "/images/generations",
                                         .make = make,
                                         .read = read_reply,
                                         .over = question_over,
                                         .context = &list[i]};
    }
    if (!rc) rc = lk_http_ask(server->http, calls, n, n_slots, tick);
    for (int i = 0; i < n && !rc; i++) {
        if (list[i].given) continue;
        rc = note_call(&list[i], &calls[i]);
        if (!rc && calls[i].code) rc = note_fault(&list[i], &calls[i]);
        if (!rc && !calls[i].code && !list[i].url) give(&list[i]);
    }
    if (!rc) rc = fetch(server, list, calls, n, n_slots, tick);
    for (int i = 0; list && i < n; i++) lk_free(list[i].url);
    lk_free(list);
    lk_free(calls);
    return rc;
}

enum lk_code lk_images_ask(struct lk_images_server *server, const struct lk_image_question *questions, int n,
                           int n_slots, enum lk_code (*tick)(void), struct lk_image_answer *answers) {
    return lk_images_ask_each(server, questions, n, n_slots, tick, NULL, NULL, answers);
}
