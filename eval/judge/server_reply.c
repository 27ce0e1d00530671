/* What a server replies: the answer, its thoughts and refusals, or what it says is wrong. Nothing that it sends is
 * taken for text as it is: bytes that are no UTF-8, NULs and lone surrogates become escapes that a reader sees, and
 * secrets are masked. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "eval/judge/server.h"

void lk_judge_server_mask(char *text, const struct lk_judge_secrets *secrets) {
    for (size_t i = 0; secrets && i < sizeof secrets->list / sizeof *secrets->list; i++) {
        size_t n = secrets->list[i] ? strlen(secrets->list[i]) : 0;
        if (n < LK_JUDGE_SECRET_LEAST) continue; /* "none", "EMPTY": what local servers are given */
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

/* JSON whose strings hold UTF-8 without NUL: the n bytes with \xNN in place of others, \uXXXX where that stands for no
 * character. */
static void write_readable(struct lk_text *out, const char *bytes, size_t n) {
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

static const cJSON *member(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* "" without. */
static const char *string_at(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(member(object, key));
    return text ? text : "";
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
        const char *type = string_at(part, "type"), *text = string_at(part, "text");
        bool thinks = !strcmp(type, "thinking") || !strcmp(type, "reasoning");
        add_to(thinks ? &said->thought : &said->content, thinks && !*text ? string_at(part, type) : text);
        add_to(&said->refusal, string_at(part, "refusal"));
    }
    const char *thought = string_at(message, "reasoning_content");
    add_to(&said->thought, *thought ? thought : string_at(message, "reasoning"));
    add_to(&said->refusal, string_at(message, "refusal"));
}

/* What the server says is wrong, in its words as far as they are printable, or else how its reply begins. */
static void complaint(const cJSON *root, const char *bytes, size_t n, char out[LK_JUDGE_SERVER_WORDS],
                      const struct lk_judge_secrets *secrets) {
    const cJSON *error = member(root, "error");
    const char *words = string_at(error, "message");
    if (!*words && cJSON_IsString(error)) words = error->valuestring;
    if (!*words) words = string_at(root, "message");
    if (!*words) words = string_at(root, "detail");
    char *whole = *words ? lk_strdup(words) : lk_strndup(n ? bytes : "", n);
    if (whole) lk_judge_server_mask(whole, secrets);
    if (*words)
        snprintf(out, LK_JUDGE_SERVER_WORDS, "%s", whole ? whole : "");
    else if (n)
        snprintf(out, LK_JUDGE_SERVER_WORDS, "no reason given; the reply begins \"%.80s\"", whole ? whole : "");
    else
        snprintf(out, LK_JUDGE_SERVER_WORDS, "no reason given; the reply is empty");
    lk_free(whole);
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f) *at = '?';
}

/* An error that is a refusal to look at the pictures or the question, as services name it. */
static bool is_filtered(const cJSON *root) {
    static const char *const names[] = {"content_filter", "content_policy_violation", "moderation_blocked"};
    const cJSON *error = member(root, "error");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(string_at(error, "code"), names[i]) || !strcmp(string_at(error, "type"), names[i])) return true;
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

bool lk_judge_server_read(const char *bytes, size_t n, const struct lk_judge_secrets *secrets,
                          struct lk_chat_answer *out, char words[LK_JUDGE_SERVER_WORDS]) {
    struct lk_text readable = {0};
    struct said said = {{0}, {0}, {0}};
    write_readable(&readable, bytes, n);
    cJSON *root = readable.n ? cJSON_ParseWithLength(readable.bytes, readable.n) : NULL;
    const cJSON *choice = cJSON_GetArrayItem(member(root, "choices"), 0), *usage = member(root, "usage");
    const cJSON *message = member(choice, "message");
    const char *reason = string_at(choice, "finish_reason");
    bool filtered = is_filtered(root);
    *out = (struct lk_chat_answer){.stopped = strcmp(reason, "length") != 0};
    complaint(root, readable.bytes, readable.n, words, secrets);
    read_message(message, &said);
    out->refused = filtered || said.refusal.n || (!said.content.n && !strcmp(reason, "content_filter"));
    if (cJSON_IsObject(message) || filtered) out->text = words_of(&said, out, words);
    if (out->text) {
        lk_judge_server_mask(out->text, secrets);
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
