#include "eval/judge/server.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"

#define LONGEST_PAUSE_MS 300000
#define CONNECT_MS       10000L

/* --- libcurl, opened when it is needed, so that other commands start without it --- */

#define CURL_FUNCTIONS(F)                                                                                              \
    F(easy_init)                                                                                                       \
    F(easy_setopt)                                                                                                     \
    F(easy_getinfo)                                                                                                    \
    F(easy_cleanup)                                                                                                    \
    F(easy_strerror)                                                                                                   \
    F(slist_append)                                                                                                    \
    F(slist_free_all) F(multi_init) F(multi_add_handle) F(multi_remove_handle) F(multi_perform) F(multi_poll)          \
        F(multi_info_read) F(multi_cleanup) F(getdate)

#undef curl_easy_setopt /* macros that check types; the functions are called here */
#undef curl_easy_getinfo

static struct {
#define POINTER(name) __typeof__(curl_##name) *name;
    CURL_FUNCTIONS(POINTER)
} curl;

static enum lk_code open_curl(void) {
    static const struct {
        const char *symbol;
        void *at;
    } functions[] = {
#define ENTRY(name) {"curl_" #name, &curl.name},
        CURL_FUNCTIONS(ENTRY)};
    static const char *const libraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL; /* open until the program ends */
    if (curl.multi_cleanup) return LK_OK;
    for (size_t i = 0; !library && i < sizeof libraries / sizeof *libraries; i++)
        library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return lk_fail(LK_E_IO, "a judge on a server needs libcurl.so.4 (%s); install the package libcurl4", dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].symbol);
        if (!address)
            return lk_fail(LK_E_IO, "libcurl.so.4 has no function %s; 7.85 or newer is needed", functions[i].symbol);
        memcpy(functions[i].at, &address, sizeof address);
    }
    return LK_OK;
}

/* --- the server --- */

struct lk_judge_server {
    struct lk_judge_server_settings settings;
    struct lk_judge_secrets secrets;
    char *address, *shown, *password; /* shown: the address without user and password */
    struct curl_slist *headers;
    CURLM *multi;
    int64_t next_ms;      /* when another request may begin */
    struct lk_error lost; /* why nothing more can be asked */
    int n_alike;          /* questions that failed in a row for one reason, before any was answered; -1: one was */
    char alike[600];      /* the reason */
};

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static enum lk_code add_header(struct lk_judge_server *server, const char *line) {
    struct curl_slist *longer = line ? curl.slist_append(server->headers, line) : NULL;
    if (!longer) return lk_fail(LK_E_NOMEM, "judge on a server: out of memory");
    server->headers = longer;
    return LK_OK;
}

/* http://USER:PASSWORD@HOST/...: whom libcurl logs in as, and what nobody else is shown. */
static enum lk_code set_address(struct lk_judge_server *server) {
    const char *url = server->settings.url, *host = strstr(url, "://") + 3, *end = host + strcspn(host, "/");
    const char *at = memrchr(host, '@', (size_t)(end - host)), *colon = memchr(host, ':', (size_t)(end - host));
    size_t n = strlen(url);
    while (n && url[n - 1] == '/') n--;
    server->address = lk_format("%.*s/chat/completions", (int)n, url);
    server->shown = at ? lk_format("%.*s***%.*s", (int)(host - url), url, (int)(n - (size_t)(at - url)), at)
                       : lk_format("%.*s", (int)n, url);
    if (at && colon && colon < at) server->password = lk_strndup(colon + 1, (size_t)(at - colon - 1));
    server->secrets = (struct lk_judge_secrets){{server->settings.key, server->password}};
    bool ok = server->address && server->shown && (server->password || !at || !colon || colon > at);
    return ok ? LK_OK : lk_fail(LK_E_NOMEM, "judge on a server: out of memory");
}

static enum lk_code prepare(struct lk_judge_server *server) {
    const struct lk_judge_server_settings *s = &server->settings;
    LK_TRY(set_address(server));
    server->multi = curl.multi_init();
    if (!server->multi) return lk_fail(LK_E_NOMEM, "judge on a server: out of memory");
    LK_TRY(add_header(server, "Content-Type: application/json"));
    LK_TRY(add_header(server, "Expect:")); /* large questions are sent without asking first */
    if (!s->key || !*s->key) return LK_OK;
    char *line = lk_format("Authorization: Bearer %s", s->key);
    enum lk_code rc = add_header(server, line);
    lk_free(line);
    return rc;
}

enum lk_code lk_judge_server_open(struct lk_judge_server **out, const struct lk_judge_server_settings *settings) {
    *out = NULL;
    if (strncasecmp(settings->url, "http://", 7) && strncasecmp(settings->url, "https://", 8))
        return lk_fail(LK_E_USAGE, "--openai-url: expected http://HOST:PORT/v1 or https://..., got \"%.*s\"",
                       (int)strcspn(settings->url, "@?"), settings->url);
    if (strpbrk(settings->url, "?#"))
        return lk_fail(LK_E_USAGE,
                       "--openai-url: expected no \"?\" or \"#\": /chat/completions is put behind it; a key "
                       "goes into OPENAI_API_KEY");
    if (settings->key && strpbrk(settings->key, "\r\n"))
        return lk_fail(LK_E_USAGE, "the server's key: expected one line, got more");
    LK_TRY(open_curl());
    struct lk_judge_server *server = *out = lk_calloc(1, sizeof *server);
    if (!server) return lk_fail(LK_E_NOMEM, "judge on a server: out of memory");
    server->settings = *settings;
    if (!server->settings.answer_ms) server->settings.answer_ms = LK_JUDGE_SERVER_ANSWER_MS;
    if (!server->settings.pause_ms) server->settings.pause_ms = 1000;
    enum lk_code rc = prepare(server);
    if (!rc) return LK_OK;
    lk_judge_server_close(server);
    *out = NULL;
    return rc;
}

void lk_judge_server_close(struct lk_judge_server *server) {
    if (!server) return;
    if (server->multi) curl.multi_cleanup(server->multi);
    curl.slist_free_all(server->headers);
    lk_free(server->address);
    lk_free(server->shown);
    lk_free(server->password);
    lk_free(server);
}

/* --- a question --- */

static enum lk_code add_part(struct lk_text *body, const struct lk_chat_part *part) {
    void *png;
    size_t n;
    if (part->text) {
        lk_text_add(body, "{\"type\":\"text\",\"text\":");
        lk_text_json(body, part->text);
        lk_text_add(body, "}");
        return body->rc;
    }
    LK_TRY(lk_png_encode("a picture for the judge", part->image, &png, &n));
    lk_text_add(body, "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,");
    lk_text_base64(body, png, n);
    lk_text_add(body, "\"}}");
    lk_free(png);
    return body->rc;
}

static enum lk_code make_body(const struct lk_judge_server *server, const struct lk_chat_question *q,
                              struct lk_text *body) {
    const struct lk_generation_config *g = &q->request.generation;
    lk_text_add(body, "{\"model\":");
    lk_text_json(body, server->settings.model);
    lk_text_add(body, ",\"messages\":[");
    for (int m = 0; m < q->request.n_messages; m++) {
        const struct lk_chat_message *message = &q->request.messages[m];
        lk_text_add(body, "%s{\"role\":\"%s\",\"content\":[", m ? "," : "", message->role);
        for (int i = 0; i < message->n_parts; i++) {
            if (i) lk_text_add(body, ",");
            LK_TRY(add_part(body, &message->parts[i]));
        }
        lk_text_add(body, "]}");
    }
    lk_text_add(body, "],\"temperature\":%.9g,\"top_p\":%.9g,\"max_tokens\":%lld,\"seed\":%llu,\"stream\":false}",
                (double)g->temperature, (double)g->top_p, (long long)g->max_new_tokens,
                (unsigned long long)q->request.seed);
    return body->rc;
}

/* A question under way. */
struct call {
    const struct lk_chat_question *question;
    struct lk_chat_answer *answer;
    CURL *easy; /* NULL: waits, or is over */
    struct lk_text body, got;
    int64_t not_before_ms, retry_after_ms;
    int n_tries;
    bool too_long, over;
};

static size_t receive(char *bytes, size_t size, size_t n, void *context) {
    struct call *c = context;
    if (size * n > LK_JUDGE_SERVER_ANSWER_BYTES - c->got.n) {
        c->too_long = true;
        return 0;
    }
    lk_text_bytes(&c->got, bytes, size * n);
    return c->got.rc ? 0 : size * n;
}

static size_t receive_header(char *bytes, size_t size, size_t n, void *context) {
    struct call *c = context;
    static const char name[] = "retry-after:";
    char line[64];
    if (size * n < sizeof line && size * n > sizeof name && !strncasecmp(bytes, name, sizeof name - 1)) {
        snprintf(line, sizeof line, "%.*s", (int)(size * n - sizeof name + 1), bytes + sizeof name - 1);
        char *end;
        double seconds = strtod(line, &end);
        if (end == line) { /* a date instead */
            time_t date = curl.getdate(line, NULL);
            seconds = date > 0 ? difftime(date, time(NULL)) : 0;
        }
        if (seconds > 0)
            c->retry_after_ms = seconds * 1000 < LONGEST_PAUSE_MS ? (int64_t)(seconds * 1000) : LONGEST_PAUSE_MS;
    }
    return size * n;
}

static enum lk_code begin(struct lk_judge_server *server, struct call *c) {
    if (!c->body.bytes) LK_TRY(make_body(server, c->question, &c->body));
    CURL *easy = c->easy = curl.easy_init();
    if (!easy) return lk_fail(LK_E_NOMEM, "judge on a server: out of memory");
    c->got.n = 0;
    c->retry_after_ms = 0;
    c->too_long = false;
    c->n_tries++;
    bool ok =
        !curl.easy_setopt(easy, CURLOPT_URL, server->address) &&
        !curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") && !curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) &&
        !curl.easy_setopt(easy, CURLOPT_HTTPHEADER, server->headers) &&
        !curl.easy_setopt(easy, CURLOPT_POSTFIELDS, c->body.bytes) &&
        !curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.n) &&
        !curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS) &&
        !curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)server->settings.answer_ms) &&
        !curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive) && !curl.easy_setopt(easy, CURLOPT_WRITEDATA, c) &&
        !curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive_header) &&
        !curl.easy_setopt(easy, CURLOPT_HEADERDATA, c) && !curl.easy_setopt(easy, CURLOPT_PRIVATE, c) &&
        !curl.multi_add_handle(server->multi, easy);
    return ok ? LK_OK : lk_fail(LK_E_IO, "%s: libcurl refuses the request", server->shown);
}

static void end_try(struct lk_judge_server *server, struct call *c) {
    if (!c->easy) return;
    curl.multi_remove_handle(server->multi, c->easy);
    curl.easy_cleanup(c->easy);
    c->easy = NULL;
}

/* --- an answer --- */

static void give_up(struct call *c, const char *why) {
    c->over = true;
    c->answer->code = LK_E_IO;
    snprintf(c->answer->error, sizeof c->answer->error, "%.500s", why);
}

/* A question failed in all its tries: when the first ones do so alike, the others would. */
static enum lk_code fail_one(struct lk_judge_server *server, struct call *c, const char *why) {
    give_up(c, why);
    if (server->n_alike < 0) return LK_OK;
    if (strcmp(server->alike, why) != 0) server->n_alike = 0;
    snprintf(server->alike, sizeof server->alike, "%s", why);
    if (++server->n_alike < LK_JUDGE_SERVER_ALIKE) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s; the first %d questions failed alike, so no more are sent", why, server->n_alike);
}

/* Once more after a pause, if any try is left. */
static enum lk_code again(struct lk_judge_server *server, struct call *c, const char *why) {
    char text[600];
    if (c->n_tries >= LK_JUDGE_SERVER_TRIES) {
        snprintf(text, sizeof text, "%s, in %d tries", why, c->n_tries);
        return fail_one(server, c, text);
    }
    int64_t pause = server->settings.pause_ms << (c->n_tries - 1);
    if (pause > LONGEST_PAUSE_MS) pause = LONGEST_PAUSE_MS;
    if (pause < c->retry_after_ms) pause = c->retry_after_ms;
    c->not_before_ms = now_ms() + pause;
    if (!server->settings.waiting) return LK_OK;
    char until[16];
    time_t end = time(NULL) + (time_t)(pause / 1000);
    struct tm parts;
    localtime_r(&end, &parts);
    strftime(until, sizeof until, "%H:%M:%S", &parts);
    snprintf(text, sizeof text, "%s; waiting %lld s, until %s, then try %d of %d", why, (long long)(pause + 999) / 1000,
             until, c->n_tries + 1, LK_JUDGE_SERVER_TRIES);
    server->settings.waiting(text);
    return LK_OK;
}

/* What servers say of a model that takes no pictures: no question can be answered. */
static bool has_no_vision(const char *said) {
    static const char *const words[] = {"image input is not supported", "mmproj",
                                        "not a multimodal model",       "does not support image",
                                        "image_url is not supported",   "not support vision"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(said, words[i])) return true;
    return false;
}

static bool no_connection(CURLcode result) {
    return result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST ||
           result == CURLE_COULDNT_RESOLVE_PROXY;
}

static enum lk_code take(struct lk_judge_server *server, struct call *c, const struct lk_chat_answer *read) {
    *c->answer = *read;
    c->over = true;
    server->n_alike = -1;
    lk_text_free(&c->body);
    lk_text_free(&c->got);
    return LK_OK;
}

/* A try is over. LK_E_IO and LK_E_INPUT: so will every other be. */
static enum lk_code finish(struct lk_judge_server *server, struct call *c, CURLcode result) {
    char address[240], why[500], said[LK_JUDGE_SERVER_WORDS];
    struct lk_chat_answer read;
    long status = 0;
    snprintf(address, sizeof address, "%.200s/chat/completions", server->shown);
    curl.easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    end_try(server, c);
    if (c->got.rc) return lk_fail(c->got.rc, "judge on a server: out of memory");
    if (c->too_long) {
        snprintf(why, sizeof why, "%.200s: expected at most %d bytes, got more", address, LK_JUDGE_SERVER_ANSWER_BYTES);
        return fail_one(server, c, why);
    }
    if (result) {
        if (no_connection(result) && c->n_tries >= LK_JUDGE_SERVER_TRIES)
            return lk_fail(LK_E_IO,
                           "%s: %s, in %d tries; see that the server runs, then give the command again: it goes on",
                           address, curl.easy_strerror(result), c->n_tries);
        snprintf(why, sizeof why, "%.200s: %s", address, curl.easy_strerror(result));
        return again(server, c, why);
    }
    bool answered = lk_judge_server_read(c->got.bytes, c->got.n, &server->secrets, &read, said) &&
                    (status == 200 || (read.refused && status >= 400 && status < 500));
    if (answered) return take(server, c, &read);
    lk_chat_answer_free(&read);
    snprintf(why, sizeof why, "%.160s: status %ld: %s%.200s", address, status,
             status == 200 ? "expected choices[0].message, got none: " : "", said);
    if ((status >= 300 && status < 400) || status == 401 || status == 403 || status == 404)
        return lk_fail(LK_E_INPUT, "%s; see that --openai-url, --model and the key in OPENAI_API_KEY are the server's",
                       why);
    if (has_no_vision(said))
        return lk_fail(LK_E_INPUT, "%s; a judge must see: serve a model that takes pictures (llama-server: --mmproj)",
                       why);
    if (status == 200 || status == 408 || status == 429 || status >= 500) return again(server, c, why);
    return fail_one(server, c, why);
}

/* --- all of them --- */

/* Begins what may begin now. */
static enum lk_code begin_some(struct lk_judge_server *server, struct call *calls, int n, int n_slots) {
    const double a_minute = server->settings.requests_per_minute;
    int n_running = 0;
    for (int i = 0; i < n; i++) n_running += calls[i].easy != NULL;
    for (int i = 0; i < n && n_running < n_slots; i++) {
        struct call *c = &calls[i];
        int64_t now = now_ms();
        if (c->over || c->easy || now < c->not_before_ms || (a_minute > 0 && now < server->next_ms)) continue;
        if (a_minute > 0) server->next_ms = now + (int64_t)(60000 / a_minute);
        LK_TRY(begin(server, c));
        n_running++;
    }
    return LK_OK;
}

static enum lk_code finish_some(struct lk_judge_server *server) {
    int n_left;
    for (CURLMsg *m; (m = curl.multi_info_read(server->multi, &n_left));) {
        if (m->msg != CURLMSG_DONE) continue;
        char *context = NULL;
        CURLcode result = m->data.result;
        curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &context);
        LK_TRY(finish(server, (struct call *)(void *)context, result));
    }
    return LK_OK;
}

static bool all_over(const struct call *calls, int n) {
    for (int i = 0; i < n; i++)
        if (!calls[i].over) return false;
    return true;
}

static enum lk_code ask(struct lk_judge_server *server, struct call *calls, int n, int n_slots,
                        enum lk_code (*tick)(void)) {
    int n_running;
    while (!all_over(calls, n)) {
        if (tick) LK_TRY(tick());
        LK_TRY(begin_some(server, calls, n, n_slots));
        if (curl.multi_perform(server->multi, &n_running) ||
            curl.multi_poll(server->multi, NULL, 0, n_running ? 100 : 10, NULL))
            return lk_fail(LK_E_INTERNAL, "%s: libcurl failed", server->shown);
        LK_TRY(finish_some(server));
    }
    return LK_OK;
}

const char *lk_judge_server_shown(const struct lk_judge_server *server) { return server->shown; }

enum lk_code lk_judge_server_state(const struct lk_judge_server *server) {
    return server->lost.code ? lk_error_set(&server->lost) : LK_OK;
}

enum lk_code lk_judge_server_ask(struct lk_judge_server *server, const struct lk_chat_question *questions, int n,
                                 int n_slots, enum lk_code (*tick)(void), struct lk_chat_answer *answers) {
    struct call *calls = lk_calloc((size_t)n + 1, sizeof *calls);
    enum lk_code rc = calls ? LK_OK : lk_fail(LK_E_NOMEM, "judge on a server: out of memory");
    for (int i = 0; i < n; i++) {
        answers[i] = (struct lk_chat_answer){0};
        if (!rc && questions[i].form)
            rc = lk_fail(LK_E_USAGE, "a judge on a server: expected questions of free text, got a form to fill in");
        if (!rc) calls[i] = (struct call){.question = &questions[i], .answer = &answers[i]};
    }
    if (!rc) rc = server->lost.code ? lk_judge_server_state(server) : ask(server, calls, n, n_slots, tick);
    if (rc == LK_E_IO || rc == LK_E_INPUT) { /* what was answered stays */
        lk_error_get(&server->lost, rc);
        for (int i = 0; i < n; i++)
            if (!calls[i].over) give_up(&calls[i], server->lost.text);
        rc = LK_OK;
    }
    for (int i = 0; calls && i < n; i++) {
        end_try(server, &calls[i]);
        lk_text_free(&calls[i].body);
        lk_text_free(&calls[i].got);
    }
    lk_free(calls);
    return rc;
}
