#include "eval/net/http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

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

#define CONNECT_MS 10000L

/* --- libcurl, opened when it is needed, so that other commands start without it --- */

#define CURL_FUNCTIONS(F)                                                                                              \
    F(easy_init)                                                                                                       \
    F(easy_setopt)                                                                                                     \
    F(easy_getinfo)                                                                                                    \
    F(easy_cleanup)                                                                                                    \
    F(easy_strerror)                                                                                                   \
    F(slist_append)                                                                                                    \
    F(slist_free_all)                                                                                                  \
    F(multi_init)                                                                                                      \
    F(multi_add_handle)                                                                                                \
    F(multi_remove_handle) F(multi_perform) F(multi_poll) F(multi_info_read) F(multi_cleanup) F(getdate)

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
        return lk_fail(LK_E_IO, "asking a server needs libcurl.so.4 (%s); install the package libcurl4", dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].symbol);
        if (!address)
            return lk_fail(LK_E_IO, "libcurl.so.4 has no function %s; 7.85 or newer is needed", functions[i].symbol);
        memcpy(functions[i].at, &address, sizeof address);
    }
    return LK_OK;
}

/* --- the server --- */

struct lk_http {
    struct lk_http_settings settings;
    struct lk_http_secrets secrets;
    char *url, *shown, *password; /* shown: the URL without user and password */
    CURLM *multi;
    int64_t next_ms;      /* when another request may begin */
    struct lk_error lost; /* why nothing more can be asked */
    int n_alike;          /* requests that failed in a row for one reason, before any was answered; -1: one was */
    char alike[600];      /* the reason */
};

static enum lk_code out_of_memory(const struct lk_http *http) {
    return lk_fail(LK_E_NOMEM, "%s: out of memory", http->settings.what);
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* http://USER:PASSWORD@HOST/...: whom libcurl logs in as, and what nobody else is shown. */
static enum lk_code set_address(struct lk_http *http) {
    const char *url = http->settings.url, *host = strstr(url, "://") + 3, *end = host + strcspn(host, "/");
    const char *at = memrchr(host, '@', (size_t)(end - host)), *colon = memchr(host, ':', (size_t)(end - host));
    size_t n = strlen(url);
    while (n && url[n - 1] == '/') n--;
    http->url = lk_format("%.*s", (int)n, url);
    http->shown = at ? lk_format("%.*s***%.*s", (int)(host - url), url, (int)(n - (size_t)(at - url)), at)
                     : lk_format("%.*s", (int)n, url);
    if (at && colon && colon < at) http->password = lk_strndup(colon + 1, (size_t)(at - colon - 1));
    http->secrets = (struct lk_http_secrets){{http->settings.key, http->password}};
    bool ok = http->url && http->shown && (http->password || !at || !colon || colon > at);
    return ok ? LK_OK : out_of_memory(http);
}

enum lk_code lk_http_open(struct lk_http **out, const struct lk_http_settings *s) {
    *out = NULL;
    if (strncasecmp(s->url, "http://", 7) && strncasecmp(s->url, "https://", 8))
        return lk_fail(LK_E_USAGE, "%s: expected http://HOST:PORT/v1 or https://..., got \"%.*s\"", s->option,
                       (int)strcspn(s->url, "@?"), s->url);
    if (strpbrk(s->url, "?#"))
        return lk_fail(LK_E_USAGE,
                       "%s: expected no \"?\" or \"#\": %s is put behind it; a key goes into OPENAI_API_KEY", s->option,
                       s->behind);
    if (s->key && strpbrk(s->key, "\r\n")) return lk_fail(LK_E_USAGE, "the server's key: expected one line, got more");
    LK_TRY(open_curl());
    struct lk_http *http = *out = lk_calloc(1, sizeof *http);
    if (!http) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->what);
    http->settings = *s;
    if (!http->settings.answer_ms) http->settings.answer_ms = LK_HTTP_ANSWER_MS;
    if (!http->settings.pause_ms) http->settings.pause_ms = 1000;
    if (!http->settings.longest_pause_ms) http->settings.longest_pause_ms = LK_HTTP_LONGEST_MS;
    enum lk_code rc = set_address(http);
    if (!rc && !(http->multi = curl.multi_init())) rc = out_of_memory(http);
    if (!rc) return LK_OK;
    lk_http_close(http);
    *out = NULL;
    return rc;
}

void lk_http_close(struct lk_http *http) {
    if (!http) return;
    if (http->multi) curl.multi_cleanup(http->multi);
    lk_free(http->url);
    lk_free(http->shown);
    lk_free(http->password);
    lk_free(http);
}

const char *lk_http_shown(const struct lk_http *http) { return http->shown; }
const struct lk_http_secrets *lk_http_secrets(const struct lk_http *http) { return &http->secrets; }

enum lk_code lk_http_state(const struct lk_http *http) { return http->lost.code ? lk_error_set(&http->lost) : LK_OK; }

/* --- a request --- */

static size_t receive(char *bytes, size_t size, size_t n, void *context) {
    struct lk_http_call *c = context;
    if (size * n > c->own.most - c->own.got.n) {
        c->own.too_long = true;
        return 0;
    }
    lk_text_bytes(&c->own.got, bytes, size * n);
    return c->own.got.rc ? 0 : size * n;
}

/* What stands behind the header's name, if it is this header; "" otherwise. */
static void header_value(const char *line, size_t n, const char *name, char *out, size_t room) {
    const size_t at = strlen(name);
    *out = 0;
    if (n <= at || strncasecmp(line, name, at) != 0) return;
    line += at, n -= at;
    while (n && (*line == ' ' || *line == '\t')) line++, n--;
    while (n && (unsigned char)line[n - 1] <= ' ') n--;
    if (n < room) snprintf(out, room, "%.*s", (int)n, line);
}

static void set_retry_after(struct lk_http_call *c, double seconds) {
    if (seconds > 0)
        c->own.retry_after_ms = seconds * 1000 < LK_HTTP_LONGEST_MS ? (int64_t)(seconds * 1000) : LK_HTTP_LONGEST_MS;
}

static size_t receive_header(char *bytes, size_t size, size_t n, void *context) {
    struct lk_http_call *c = context;
    char value[128], *end;
    header_value(bytes, size * n, "retry-after:", value, sizeof value);
    if (*value) {
        double seconds = strtod(value, &end);
        if (end == value) { /* a date instead */
            time_t date = curl.getdate(value, NULL);
            seconds = date > 0 ? difftime(date, time(NULL)) : 0;
        }
        set_retry_after(c, seconds);
    }
    header_value(bytes, size * n, "retry-after-ms:", value, sizeof value);
    if (*value) set_retry_after(c, strtod(value, &end) / 1000);
    header_value(bytes, size * n, "x-should-retry:", value, sizeof value);
    if (*value) c->own.should_retry = !strcasecmp(value, "true") ? 1 : !strcasecmp(value, "false") ? -1 : 0;
    header_value(bytes, size * n, "x-request-id:", value, sizeof value);
    for (char *at = value; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f) *at = '?';
    if (*value) snprintf(c->own.request_id, sizeof c->own.request_id, "%s", value);
    return size * n;
}

static enum lk_code add_header(const struct lk_http *http, struct lk_http_call *c, const char *line) {
    struct curl_slist *longer = line ? curl.slist_append(c->own.headers, line) : NULL;
    if (!longer) return out_of_memory(http);
    c->own.headers = longer;
    return LK_OK;
}

static enum lk_code add_headers(const struct lk_http *http, struct lk_http_call *c) {
    const char *key = http->settings.key;
    if (!c->path) return LK_OK;
    char *type = lk_format("Content-Type: %s", c->own.content_type);
    char *line = key && *key ? lk_format("Authorization: Bearer %s", key) : NULL;
    enum lk_code rc = add_header(http, c, type);
    if (!rc) rc = add_header(http, c, "Expect:"); /* large questions are sent without asking first */
    if (!rc && key && *key) rc = add_header(http, c, line);
    lk_free(type);
    lk_free(line);
    return rc;
}

static enum lk_code set_request(struct lk_http *http, struct lk_http_call *c) {
    CURL *easy = c->own.easy;
    char *address = c->path ? lk_format("%s%s", http->url, c->path) : lk_strdup(c->address);
    bool ok =
        address && !curl.easy_setopt(easy, CURLOPT_URL, address) &&
        !curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") && !curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) &&
        !curl.easy_setopt(easy, CURLOPT_HTTPHEADER, c->own.headers) &&
        (!c->path || (!curl.easy_setopt(easy, CURLOPT_POSTFIELDS, c->own.body.bytes) &&
                      !curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->own.body.n))) &&
        !curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS) &&
        !curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)http->settings.answer_ms) &&
        !curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive) && !curl.easy_setopt(easy, CURLOPT_WRITEDATA, c) &&
        !curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive_header) &&
        !curl.easy_setopt(easy, CURLOPT_HEADERDATA, c) && !curl.easy_setopt(easy, CURLOPT_PRIVATE, c) &&
        !curl.multi_add_handle(http->multi, easy);
    lk_free(address);
    return ok ? LK_OK : lk_fail(LK_E_IO, "%s: libcurl refuses the request", http->shown);
}

static enum lk_code begin(struct lk_http *http, struct lk_http_call *c) {
    struct lk_http_private *own = &c->own;
    own->content_type = own->content_type ? own->content_type : "application/json";
    if (c->path && !own->body.bytes) LK_TRY(c->make(c, &own->body, &own->content_type));
    if (!(own->easy = curl.easy_init())) return out_of_memory(http);
    LK_TRY(add_headers(http, c));
    own->got.n = 0;
    own->most = http->settings.answer_bytes;
    own->retry_after_ms = 0;
    own->should_retry = 0;
    own->too_long = false;
    own->begun_ms = now_ms();
    c->n_tries++;
    return set_request(http, c);
}

static void end_try(struct lk_http *http, struct lk_http_call *c) {
    curl.slist_free_all(c->own.headers);
    c->own.headers = NULL;
    if (!c->own.easy) return;
    curl.multi_remove_handle(http->multi, c->own.easy);
    curl.easy_cleanup(c->own.easy);
    c->own.easy = NULL;
}

/* --- an answer --- */

static void give_up(struct lk_http_call *c, const char *why) {
    c->own.over = true;
    c->code = LK_E_IO;
    snprintf(c->error, sizeof c->error, "%.500s", why);
}

/* A request failed in all its tries: when the first ones do so alike, the others would. */
static enum lk_code fail_one(struct lk_http *http, struct lk_http_call *c, const char *why) {
    give_up(c, why);
    if (http->n_alike < 0) return LK_OK;
    if (strcmp(http->alike, why) != 0) http->n_alike = 0;
    snprintf(http->alike, sizeof http->alike, "%s", why);
    if (++http->n_alike < LK_HTTP_ALIKE) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s; the first %d questions failed alike, so no more are sent", why, http->n_alike);
}

/* Once more after a pause, if any try is left. */
static enum lk_code again(struct lk_http *http, struct lk_http_call *c, const char *why) {
    char text[600];
    if (c->n_tries >= LK_HTTP_TRIES) {
        snprintf(text, sizeof text, "%s, in %d tries", why, c->n_tries);
        return fail_one(http, c, text);
    }
    int64_t pause = http->settings.pause_ms << (c->n_tries - 1);
    if (pause > http->settings.longest_pause_ms) pause = http->settings.longest_pause_ms;
    if (pause < c->own.retry_after_ms) pause = c->own.retry_after_ms;
    c->own.not_before_ms = now_ms() + pause;
    if (!http->settings.waiting) return LK_OK;
    char until[16];
    time_t end = time(NULL) + (time_t)(pause / 1000);
    struct tm parts;
    localtime_r(&end, &parts);
    strftime(until, sizeof until, "%H:%M:%S", &parts);
    snprintf(text, sizeof text, "%s; waiting %lld s, until %s, then try %d of %d", why, (long long)(pause + 999) / 1000,
             until, c->n_tries + 1, LK_HTTP_TRIES);
    http->settings.waiting(text);
    return LK_OK;
}

static bool no_connection(CURLcode result) {
    return result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST ||
           result == CURLE_COULDNT_RESOLVE_PROXY;
}

static enum lk_code follow(struct lk_http *http, struct lk_http_call *c, enum lk_http_verdict verdict,
                           const char *why) {
    if (verdict == LK_HTTP_TAKEN) {
        c->own.over = true;
        c->code = LK_OK;
        if (c->path) http->n_alike = -1;
        lk_text_free(&c->own.body);
        lk_text_free(&c->own.got);
        if (c->over) c->over(c);
        return LK_OK;
    }
    if (verdict == LK_HTTP_AGAIN) return again(http, c, why);
    const bool stop = verdict == LK_HTTP_STOP || (verdict == LK_HTTP_REQUEST && http->n_alike >= 0);
    return stop ? lk_fail(LK_E_INPUT, "%s", why) : fail_one(http, c, why);
}

/* A try is over. LK_E_IO and LK_E_INPUT: so will every other be. */
static enum lk_code finish(struct lk_http *http, struct lk_http_call *c, CURLcode result) {
    char address[240], why[LK_HTTP_WHY_BYTES] = "";
    long status = 0;
    curl_off_t n_uploaded = 0;
    snprintf(address, sizeof address, "%.200s%.30s", c->path ? http->shown : c->address, c->path ? c->path : "");
    curl.easy_getinfo(c->own.easy, CURLINFO_RESPONSE_CODE, &status);
    curl.easy_getinfo(c->own.easy, CURLINFO_SIZE_UPLOAD_T, &n_uploaded);
    c->latency_ms = now_ms() - c->own.begun_ms;
    c->n_sent += c->path && (n_uploaded > 0 || status > 0);
    end_try(http, c);
    if (c->own.got.rc) return out_of_memory(http);
    if (c->own.too_long) {
        snprintf(why, sizeof why, "%.200s: expected at most %zu bytes, got more", address, c->own.most);
        return fail_one(http, c, why);
    }
    if (result) {
        if (no_connection(result) && c->n_tries >= LK_HTTP_TRIES && c->path)
            return lk_fail(LK_E_IO,
                           "%s: %s, in %d tries; see that the server runs, then give the command again: it goes on",
                           address, curl.easy_strerror(result), c->n_tries);
        snprintf(why, sizeof why, "%.200s: %s", address, curl.easy_strerror(result));
        return again(http, c, why);
    }
    const struct lk_http_reply reply = {.status = status,
                                        .bytes = c->own.got.n ? c->own.got.bytes : "",
                                        .n = c->own.got.n,
                                        .request_id = c->own.request_id,
                                        .should_retry = c->own.should_retry,
                                        .address = address};
    return follow(http, c, c->read(c, &reply, why), why);
}

/* --- all of them --- */

/* Begins what may begin now. */
static enum lk_code begin_some(struct lk_http *http, struct lk_http_call *calls, int n, int n_slots) {
    const double a_minute = http->settings.requests_per_minute;
    int n_running = 0;
    for (int i = 0; i < n; i++) n_running += calls[i].own.easy != NULL;
    for (int i = 0; i < n && n_running < n_slots; i++) {
        struct lk_http_call *c = &calls[i];
        int64_t now = now_ms();
        const bool waits = c->path && a_minute > 0 && now < http->next_ms;
        if (c->own.over || c->own.easy || now < c->own.not_before_ms || waits) continue;
        if (c->path && a_minute > 0) http->next_ms = now + (int64_t)(60000 / a_minute);
        LK_TRY(begin(http, c));
        n_running++;
    }
    return LK_OK;
}

static enum lk_code finish_some(struct lk_http *http) {
    int n_left;
    for (CURLMsg *m; (m = curl.multi_info_read(http->multi, &n_left));) {
        if (m->msg != CURLMSG_DONE) continue;
        char *context = NULL;
        CURLcode result = m->data.result;
        curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &context);
        LK_TRY(finish(http, (struct lk_http_call *)(void *)context, result));
    }
    return LK_OK;
}

static bool all_over(const struct lk_http_call *calls, int n) {
    for (int i = 0; i < n; i++)
        if (!calls[i].own.over) return false;
    return true;
}

static enum lk_code ask(struct lk_http *http, struct lk_http_call *calls, int n, int n_slots,
                        enum lk_code (*tick)(void)) {
    int n_running;
    while (!all_over(calls, n)) {
        if (tick) LK_TRY(tick());
        LK_TRY(begin_some(http, calls, n, n_slots));
        if (curl.multi_perform(http->multi, &n_running) ||
            curl.multi_poll(http->multi, NULL, 0, n_running ? 100 : 10, NULL))
            return lk_fail(LK_E_INTERNAL, "%s: libcurl failed", http->shown);
        LK_TRY(finish_some(http));
    }
    return LK_OK;
}

enum lk_code lk_http_ask(struct lk_http *http, struct lk_http_call *calls, int n, int n_slots,
                         enum lk_code (*tick)(void)) {
    enum lk_code rc = http->lost.code ? lk_http_state(http) : ask(http, calls, n, n_slots, tick);
    if (rc == LK_E_IO || rc == LK_E_INPUT) { /* what was answered stays */
        lk_error_get(&http->lost, rc);
        for (int i = 0; i < n; i++)
            if (!calls[i].own.over) give_up(&calls[i], http->lost.text);
        rc = LK_OK;
    }
    for (int i = 0; i < n; i++) {
        end_try(http, &calls[i]);
        lk_text_free(&calls[i].own.body);
        lk_text_free(&calls[i].own.got);
    }
    return rc;
}
