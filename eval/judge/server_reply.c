/* What a server replies: the answer, its thoughts and refusals, or what it says is wrong. */
#include <cjson/cJSON.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "eval/judge/server.h"

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
