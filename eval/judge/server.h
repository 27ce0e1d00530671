/* A judge on an OpenAI-compatible server of the user's (llama.cpp's llama-server, vLLM): the same questions as in this
 * process, over HTTP. Pictures go there as PNG in the message, nowhere else; no redirect is followed.
 *
 *     struct lk_judge_server *server;
 *     LK_TRY(lk_judge_server_open(&server, &(struct lk_judge_server_settings){.url = "http://localhost:8080/v1",
 *                                                                             .model = "qwen2.5-vl-7b"}));
 *     struct lk_seeing_judge judge = {.server = server, .mode = LK_JUDGE_FREE, .n_slots = 8};
 *     ...
 *     lk_judge_server_close(server); */
#pragma once

#include "eval/net/http.h"
#include "models/text/chat_batch.h"

struct lk_judge_server;

struct lk_judge_server_settings {
    const char *url;                  /* what /chat/completions is put behind; http or https */
    const char *model;                /* as the server calls it */
    const char *key;                  /* sent as bearer token; NULL or "": none */
    double requests_per_minute;       /* begun at most; 0: no limit */
    int64_t answer_ms;                /* that an answer may take; 0: LK_HTTP_ANSWER_MS */
    int64_t pause_ms;                 /* before the second try, twice as long before each further one; 0: 1000 */
    void (*waiting)(const char *why); /* told before each pause: why, how long, until when; NULL: nobody */
};
enum { LK_JUDGE_SERVER_ANSWER_BYTES = 4 << 20 };

/* Opens libcurl; sends nothing. LK_E_USAGE for a URL that is none, LK_E_IO when there is no libcurl, LK_E_NOMEM. */
enum lk_code lk_judge_server_open(struct lk_judge_server **out, const struct lk_judge_server_settings *settings);
void lk_judge_server_close(struct lk_judge_server *server);

/* Asks n questions of free text, n_slots at a time. Tried again, LK_HTTP_TRIES times in all: no or half of an
 * answer, an answer that is none of the protocol's, status 408, 429 and 5xx (not before what Retry-After says). What
 * the server says of one question alone (400, 413, 422, or all tries in vain) is in its answer. When no connection can
 * be had in all tries, the server refuses the key, the address or the model (401, 403, 404, 3xx) or takes no pictures,
 * or the first LK_HTTP_ALIKE questions fail for one reason, that is in the answers that are missing, and
 * nothing more is sent, now or later. A refusal by the model or a filter is an answer (`refused`) and is not asked
 * again. tick: ten times a second; another code than LK_OK ends it all. LK_E_USAGE for a question with a form. Free
 * each of answers [n] with lk_chat_answer_free in any case. */
enum lk_code lk_judge_server_ask(struct lk_judge_server *server, const struct lk_chat_question *questions, int n,
                                 int n_slots, enum lk_code (*tick)(void), struct lk_chat_answer *answers);
/* The address without user and password, for messages and records. */
const char *lk_judge_server_shown(const struct lk_judge_server *server);
/* LK_E_IO or LK_E_INPUT with the reason when nothing more can be asked. */
enum lk_code lk_judge_server_state(const struct lk_judge_server *server);

/* A server's reply of n bytes: its first choice's text, the thoughts that stand beside it in front as
 * <think>...</think> (left open when the limit of tokens cut them off); or, `refused`, the words of a refusal; or
 * false. Bytes that are no UTF-8, NULs and lone surrogates become \xNN and \uXXXX. words: what the server says is
 * wrong, or how the reply begins, printable. Free *out with lk_chat_answer_free in any case. */
bool lk_judge_server_read(const char *bytes, size_t n, const struct lk_http_secrets *secrets,
                          struct lk_chat_answer *out, char words[LK_HTTP_WORDS]);
