#include "eval/judge/server.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"

/* What a server replies: the answer, its thoughts and refusals, or what it says is wrong. */

static const cJSON *member(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static int64_t count_at(const cJSON *object, const char *key) {
    const cJSON *number = member(object, key);
    return cJSON_IsNumber(number) && number->valuedouble >= 0 && number->valuedouble < 1e9
               ? (int64_t)number->valuedouble
               : 0;
}

/* What a message says, part by part where it comes in parts. */
struct said {
    struct lk_text content, thought, refusal;
};

static void add_to(struct lk_text *to, const char *text) { lk_text_bytes(to, text, strlen(text)); }

static void read_message(const cJSON *message, struct said *said) {
    const cJSON *content = member(message, "content"), *part;
    if (cJSON_IsString(content)) add_to(&said->content, content->valuestring);
    cJSON_ArrayForEach(part, content) { /* a string has none */
        const char *type = lk_http_string(part, "type"), *text = lk_http_string(part, "text");
        bool thinks = !strcmp(type, "thinking") || !strcmp(type, "reasoning");
        add_to(thinks ? &said->thought : &said->content, thinks && !*text ? lk_http_string(part, type) : text);
        add_to(&said->refusal, lk_http_string(part, "refusal"));
    }
    const char *thought = lk_http_string(message, "reasoning_content");
    add_to(&said->thought, *thought ? thought : lk_http_string(message, "reasoning"));
    add_to(&said->refusal, lk_http_string(message, "refusal"));
}

/* An error that is a refusal to look at the pictures or the question, as services name it. */
static bool is_filtered(const cJSON *root) {
    static const char *const names[] = {"content_filter", "content_policy_violation", "moderation_blocked"};
    const cJSON *error = member(root, "error");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(lk_http_string(error, "code"), names[i]) || !strcmp(lk_http_string(error, "type"), names[i]))
            return true;
    return false;
}

/* The words of an answer, its thoughts before it; of a refusal, what was said. NULL when memory is out. */
static char *words_of(const struct said *s, const struct lk_chat_answer *out, const char *complaint) {
    const char *content = s->content.n ? s->content.bytes : "", *thought = s->thought.n ? s->thought.bytes : NULL;
    const char *refusal = s->refusal.n ? s->refusal.bytes : *content ? content : complaint;
    if (out->refused) return lk_strdup(refusal);
    if (!thought) return lk_strdup(content);
    return lk_format("<think>%s%s%s", thought, *content || out->stopped ? "</think>\n" : "", content);
}

bool lk_judge_server_read(const char *bytes, size_t n, const struct lk_http_secrets *secrets,
                          struct lk_chat_answer *out, char words[LK_HTTP_WORDS]) {
    struct lk_text readable = {0};
    struct said said = {{0}, {0}, {0}};
    lk_http_readable(&readable, bytes, n);
    cJSON *root = readable.n ? cJSON_ParseWithLength(readable.bytes, readable.n) : NULL;
    const cJSON *choice = cJSON_GetArrayItem(member(root, "choices"), 0), *usage = member(root, "usage");
    const cJSON *message = member(choice, "message");
    const char *reason = lk_http_string(choice, "finish_reason");
    bool filtered = is_filtered(root);
    *out = (struct lk_chat_answer){.stopped = strcmp(reason, "length") != 0};
    lk_http_words(root, &readable, secrets, words);
    read_message(message, &said);
    out->refused = filtered || said.refusal.n || (!said.content.n && !strcmp(reason, "content_filter"));
    if (cJSON_IsObject(message) || filtered) out->text = words_of(&said, out, words);
    if (out->text) {
        lk_http_mask(out->text, secrets);
        out->n = strlen(out->text);
        out->n_prompt_tokens = count_at(usage, "prompt_tokens");
        out->n_tokens = count_at(usage, "completion_tokens");
    }
    lk_text_free(&said.content);
    lk_text_free(&said.thought);
    lk_text_free(&said.refusal);
    lk_text_free(&readable);
    cJSON_Delete(root);
    return out->text != NULL;
}

struct lk_judge_server {
    struct lk_http *http;
    const char *model;
};

enum lk_code lk_judge_server_open(struct lk_judge_server **out, const struct lk_judge_server_settings *s) {
    struct lk_judge_server *server = *out = lk_calloc(1, sizeof *server);
    if (!server) return lk_fail(LK_E_NOMEM, "judge on a server: out of memory");
    server->model = s->model;
    enum lk_code rc =
        lk_http_open(&server->http, &(struct lk_http_settings){.what = "judge on a server",
                                                               .option = "--openai-url",
                                                               .url = s->url,
                                                               .behind = "/chat/completions",
                                                               .key = s->key,
                                                               .requests_per_minute = s->requests_per_minute,
                                                               .answer_bytes = LK_JUDGE_SERVER_ANSWER_BYTES,
                                                               .answer_ms = s->answer_ms,
                                                               .pause_ms = s->pause_ms,
                                                               .waiting = s->waiting});
    if (!rc) return LK_OK;
    lk_judge_server_close(server);
    *out = NULL;
    return rc;
}

void lk_judge_server_close(struct lk_judge_server *server) {
    if (!server) return;
    lk_http_close(server->http);
    lk_free(server);
}

/* --- a question --- */

/* A question under way. */
struct question {
    const struct lk_judge_server *server;
    const struct lk_chat_question *asked;
    struct lk_chat_answer *answer;
};

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

static enum lk_code make_body(const char *model, const struct lk_chat_question *q, struct lk_text *body) {
    const struct lk_generation_config *g = &q->request.generation;
    lk_text_add(body, "{\"model\":");
    lk_text_json(body, model);
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

static enum lk_code make(struct lk_http_call *call, struct lk_text *body, const char **content_type) {
    const struct question *q = call->context;
    (void)content_type;
    return make_body(q->server->model, q->asked, body);
}

/* --- an answer --- */

/* What servers say of a model that takes no pictures: no question can be answered. */
static bool has_no_vision(const char *said) {
    static const char *const words[] = {"image input is not supported", "mmproj",
                                        "not a multimodal model",       "does not support image",
                                        "image_url is not supported",   "not support vision"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(said, words[i])) return true;
    return false;
}

static enum lk_http_verdict read_reply(struct lk_http_call *call, const struct lk_http_reply *r,
                                       char why[LK_HTTP_WHY_BYTES]) {
    const struct question *q = call->context;
    struct lk_chat_answer read;
    const long status = r->status;
    char said[LK_HTTP_WORDS];
    bool answered = lk_judge_server_read(r->bytes, r->n, lk_http_secrets(q->server->http), &read, said) &&
                    (status == 200 || (read.refused && status >= 400 && status < 500));
    if (answered) {
        *q->answer = read;
        return LK_HTTP_TAKEN;
    }
    lk_chat_answer_free(&read);
    const char *lacks = status == 200 ? "expected choices[0].message, got none: " : "";
    int n = snprintf(why, LK_HTTP_WHY_BYTES, "%.160s: status %ld: %s%.200s", r->address, status, lacks, said);
    if ((status >= 300 && status < 400) || status == 401 || status == 403 || status == 404) {
        snprintf(why + n, LK_HTTP_WHY_BYTES - (size_t)n,
                 "; see that --openai-url, --model and the key in OPENAI_API_KEY are the server's");
        return LK_HTTP_STOP;
    }
    if (has_no_vision(said)) {
        snprintf(why + n, LK_HTTP_WHY_BYTES - (size_t)n,
                 "; a judge must see: serve a model that takes pictures (llama-server: --mmproj)");
        return LK_HTTP_STOP;
    }
    return status == 200 || status == 408 || status == 429 || status >= 500 ? LK_HTTP_AGAIN : LK_HTTP_ALONE;
}

/* --- all of them --- */

const char *lk_judge_server_shown(const struct lk_judge_server *server) { return lk_http_shown(server->http); }

enum lk_code lk_judge_server_state(const struct lk_judge_server *server) { return lk_http_state(server->http); }

enum lk_code lk_judge_server_ask(struct lk_judge_server *server, const struct lk_chat_question *questions, int n,
                                 int n_slots, enum lk_code (*tick)(void), struct lk_chat_answer *answers) {
    struct lk_http_call *calls = lk_calloc((size_t)n + 1, sizeof *calls);
    struct question *list = lk_calloc((size_t)n + 1, sizeof *list);
    enum lk_code rc = calls && list ? LK_OK : lk_fail(LK_E_NOMEM, "judge on a server: out of memory");
    for (int i = 0; i < n; i++) {
        answers[i] = (struct lk_chat_answer){0};
        if (!rc && questions[i].form)
            rc = lk_fail(LK_E_USAGE, "a judge on a server: expected questions of free text, got a form to fill in");
        if (rc) continue;
        list[i] = (struct question){server, &questions[i], &answers[i]};
        calls[i] =
            (struct lk_http_call){.path = "/chat/completions", .make = make, .read = read_reply, .context = &list[i]};
    }
    if (!rc) rc = lk_http_ask(server->http, calls, n, n_slots, tick);
    for (int i = 0; i < n && !rc; i++) {
        if (!calls[i].code) continue;
        answers[i].code = calls[i].code;
        snprintf(answers[i].error, sizeof answers[i].error, "%s", calls[i].error);
    }
    lk_free(list);
    lk_free(calls);
    return rc;
}
