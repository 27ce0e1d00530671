/* Requests to a server of the user's over HTTP, by libcurl, which is opened when it is first needed. Nothing goes
 * anywhere else: no redirect is followed, and no key is written or sent to another host.
 *
 *     struct lk_http *http;
 *     LK_TRY(lk_http_open(&http, &(struct lk_http_settings){.url = "http://localhost:8080/v1", ...}));
 *     struct lk_http_call calls[] = {{.path = "/chat/completions", .make = make, .read = read, .context = &mine}};
 *     LK_TRY(lk_http_ask(http, calls, 1, 1, NULL));
 *     lk_http_close(http); */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/text.h"

struct lk_http;

struct lk_http_settings {
    const char *what;                 /* who asks, for messages: "a judge on a server" */
    const char *option;               /* where the URL was written: "--openai-url" */
    const char *url;                  /* what paths are put behind; http or https */
    const char *behind;               /* for messages, the path that will be: "/chat/completions" */
    const char *key;                  /* sent as bearer token; NULL or "": none */
    double requests_per_minute;       /* begun at most; 0: no limit */
    size_t answer_bytes;              /* that an answer may have */
    int64_t answer_ms;                /* that an answer may take; 0: LK_HTTP_ANSWER_MS */
    int64_t pause_ms;                 /* before the second try, twice as long before each further one; 0: 1000 */
    int64_t longest_pause_ms;         /* 0: LK_HTTP_LONGEST_MS, which also bounds what Retry-After says */
    void (*waiting)(const char *why); /* told before each pause: why, how long, until when; NULL: nobody */
};
enum { LK_HTTP_TRIES = 5, LK_HTTP_ALIKE = 5, LK_HTTP_ANSWER_MS = 600 * 1000, LK_HTTP_LONGEST_MS = 300 * 1000 };
enum { LK_HTTP_WHY_BYTES = 500 };

/* What an answer means for its request and for the others. */
enum lk_http_verdict {
    LK_HTTP_TAKEN,   /* it is answered */
    LK_HTTP_AGAIN,   /* try again, if a try is left */
    LK_HTTP_ALONE,   /* this request fails */
    LK_HTTP_REQUEST, /* so would others, while none has been answered yet; later it fails alone */
    LK_HTTP_STOP     /* so would all others */
};

struct lk_http_reply {
    long status;
    const char *bytes; /* NUL behind them */
    size_t n;
    const char *request_id; /* "" without */
    int should_retry;       /* what x-should-retry says: 1 true, -1 false, 0 nothing */
    const char *address;    /* that was asked, as it may be shown */
};

struct lk_http_call {
    const char *path; /* behind the URL; NULL: address is fetched, without the key */
    const char *address;
    /* The request; *content_type is JSON unless it sets it. */
    enum lk_code (*make)(struct lk_http_call *call, struct lk_text *body, const char **content_type);
    /* why: what to say when it is not taken. */
    enum lk_http_verdict (*read)(struct lk_http_call *call, const struct lk_http_reply *reply,
                                 char why[LK_HTTP_WHY_BYTES]);
    void (*over)(struct lk_http_call *call); /* told as soon as it is taken, while others are under way; NULL: nobody */
    void *context;
    /* What came of it. */
    enum lk_code code; /* LK_OK: it was taken */
    char error[LK_HTTP_WHY_BYTES + 12];
    int n_tries, n_sent; /* n_sent: of the tries, those that a service may bill */
    int64_t latency_ms;  /* of the last try */
    struct lk_http_private {
        void *easy; /* NULL: waits, or is over */
        void *headers;
        struct lk_text body, got;
        const char *content_type;
        int64_t not_before_ms, retry_after_ms, begun_ms;
        size_t most;
        int should_retry;
        char request_id[128];
        bool too_long, over;
    } own;
};

/* Opens libcurl; sends nothing. LK_E_USAGE for a URL that is none, LK_E_IO when there is no libcurl, LK_E_NOMEM. */
enum lk_code lk_http_open(struct lk_http **out, const struct lk_http_settings *settings);
void lk_http_close(struct lk_http *http);

/* Asks n requests, n_slots at a time, each LK_HTTP_TRIES times at most, not before what Retry-After says. No or half of
 * an answer is tried again. When no connection can be had in all tries, a verdict is LK_HTTP_STOP, or the first
 * LK_HTTP_ALIKE requests fail for one reason, nothing more is sent, now or later: that is the error of the calls that
 * are not taken. tick: ten times a second; another code than LK_OK ends it all. */
enum lk_code lk_http_ask(struct lk_http *http, struct lk_http_call *calls, int n, int n_slots,
                         enum lk_code (*tick)(void));
/* The address without user and password, for messages and records. */
const char *lk_http_shown(const struct lk_http *http);
const struct lk_http_secrets *lk_http_secrets(const struct lk_http *http);
/* LK_E_IO or LK_E_INPUT with the reason when nothing more can be asked. */
enum lk_code lk_http_state(const struct lk_http *http);

/* What a server replies as JSON, made safe to read and to write: bytes that are no UTF-8, NULs and lone surrogates
 * become escapes that a reader sees, and secrets are masked. */

/* What is written nowhere, whoever says it. Shorter than LK_HTTP_SECRET_LEAST bytes it is none: "EMPTY". */
enum { LK_HTTP_SECRET_LEAST = 6 };
struct lk_http_secrets {
    const char *list[2]; /* NULL: none */
};
/* Stars in their place. secrets: NULL for none. */
void lk_http_mask(char *text, const struct lk_http_secrets *secrets);

/* JSON whose strings hold UTF-8 without NUL: the n bytes with \xNN in place of others, \uXXXX where that stands for no
 * character. */
void lk_http_readable(struct lk_text *out, const char *bytes, size_t n);

/* "" without. */
const char *lk_http_string(const cJSON *object, const char *key);

/* text as far as it fits into n_out bytes: secrets masked, '?' in place of what is no printable ASCII. */
void lk_http_show(const char *text, const struct lk_http_secrets *secrets, char *out, size_t n_out);

enum { LK_HTTP_WORDS = 200 };
/* What the server says is wrong, in its words as far as they are printable, or else how its reply begins. root: the
 * reply as JSON, NULL when it is none. */
void lk_http_words(const cJSON *root, const struct lk_text *readable, const struct lk_http_secrets *secrets,
                   char out[LK_HTTP_WORDS]);
