#include "eval/judge/answer_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "eval/scores/json_lines.h"

/* How models mark their thoughts: Qwen, DeepSeek; their relatives; Magistral; Kimi; Seed; gpt-oss. */
static const struct {
    const char *open, *close;
} thoughts[] = {{"<think>", "</think>"},
                {"<thinking>", "</thinking>"},
                {"<thought>", "</thought>"},
                {"<reasoning>", "</reasoning>"},
                {"[THINK]", "[/THINK]"},
                {"\xe2\x97\x81think\xe2\x96\xb7", "\xe2\x97\x81/think\xe2\x96\xb7"},
                {"<seed:think>", "</seed:think>"},
                {"<|begin_of_thought|>", "<|end_of_thought|>"},
                {"<|channel|>analysis", "<|channel|>final<|message|>"}};
enum { N_THOUGHTS = sizeof thoughts / sizeof *thoughts };

static bool starts(const char *text, size_t n, const char *what) {
    size_t n_what = strlen(what);
    return n >= n_what && !strncasecmp(text, what, n_what);
}

enum lk_code lk_answer_behind_thoughts(const char **text, size_t *n) {
    const char *end = *text + *n, *rest = *text, *opened = NULL;
    for (const char *at = *text; at < end; at++) {
        if (*at != '<' && *at != '[' && *at != '\xe2') continue;
        for (int i = 0; i < N_THOUGHTS; i++) {
            size_t left = (size_t)(end - at);
            if (starts(at, left, thoughts[i].open)) opened = thoughts[i].open;
            if (!starts(at, left, thoughts[i].close)) continue;
            rest = at + strlen(thoughts[i].close);
            opened = NULL;
        }
    }
    if (opened) return lk_fail(LK_E_INPUT, "a thought that %s begins is not closed: there is no answer", opened);
    bool thought = rest != *text;
    while (thought && rest < end && isspace((unsigned char)*rest)) rest++;
    if (thought && rest == end) return lk_fail(LK_E_INPUT, "no answer follows the thought");
    *n = (size_t)(end - rest);
    *text = rest;
    return LK_OK;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Whether a bracket closes behind the comma at text[i]. */
static bool is_trailing(const char *text, size_t n, size_t i) {
    do i++;
    while (i < n && is_space(text[i]));
    return i < n && (text[i] == '}' || text[i] == ']');
}

enum lk_code lk_answer_mend(const char *object, size_t n, struct lk_answer_object *out) {
    bool in_string = false;
    char last = 0; /* that is no space, outside strings */
    *out = (struct lk_answer_object){.json = lk_malloc(2 * n + 1)};
    if (!out->json) return lk_fail(LK_E_NOMEM, "out of memory for an answer");
    for (size_t i = 0; i < n; i++) {
        char c = object[i];
        if (in_string && (c == '\n' || c == '\r' || c == '\t')) {
            out->json[out->n++] = '\\';
            c = c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
            out->n_mended++;
        } else if (in_string && c == '\\' && i + 1 < n) {
            out->json[out->n++] = c;
            c = object[++i];
        } else if (c == '"') {
            in_string = !in_string;
        } else if (c == ',' && !in_string && !strchr(",{[", last) && is_trailing(object, n, i)) {
            out->n_mended++;
            continue;
        }
        if (!in_string && !is_space(c)) last = c;
        out->json[out->n++] = c;
    }
    out->json[out->n] = 0;
    return LK_OK;
}

static bool has_word(const char *text, size_t n, const char *word, bool whole) {
    size_t n_word = strlen(word);
    for (size_t i = 0; i + n_word <= n; i++) {
        bool begins = !i || !isalpha((unsigned char)text[i - 1]);
        bool ends = i + n_word == n || !isalpha((unsigned char)text[i + n_word]);
        if ((!whole || (begins && ends)) && !strncasecmp(text + i, word, n_word)) return true;
    }
    return false;
}

/* Whether the words between an earlier answer and this one say that this one counts. */
static bool is_marked(const char *from, const char *object) {
    static const char *const yes[] = {"final", "corrected", "correction", "revised", "revision", "updated"};
    static const char *const no[] = {"not", "draft", "example", "previous", "first"};
    enum { NEAR = 120 };
    if (object - from > NEAR) from = object - NEAR;
    size_t n = (size_t)(object - from);
    bool marked = false, denied = has_word(from, n, "n't", false);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) marked = marked || has_word(from, n, yes[i], true);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) denied = denied || has_word(from, n, no[i], true);
    return marked && !denied;
}

struct search {
    lk_answer_reader read;
    void *context;
    const char *from, *end; /* of the object that counts so far; NULL: none yet */
    enum lk_code rc;        /* of it */
    bool differs;           /* another one means something else */
    char meaning[LK_ANSWER_MEANING], reason[512];
    char passed[512]; /* why the first object that answers nothing does not */
};

static enum lk_code look_at(struct search *s, const char *object, size_t n) {
    char meaning[LK_ANSWER_MEANING] = "";
    struct lk_answer_object mended;
    enum lk_code rc = lk_answer_mend(object, n, &mended);
    if (!rc) rc = s->read(s->context, mended.json, mended.n, meaning);
    lk_free(mended.json);
    if (rc == LK_E_NOT_FOUND && !*s->passed) snprintf(s->passed, sizeof s->passed, "%s", lk_error_text());
    if (rc == LK_E_NOT_FOUND) return LK_OK;
    if (rc && rc != LK_E_INPUT) return rc;
    bool first = !s->from, marked = !first && is_marked(s->end, object);
    if (first || marked) {
        s->from = object;
        s->rc = rc;
        s->differs = false;
        snprintf(s->meaning, sizeof s->meaning, "%s", meaning);
        if (rc) snprintf(s->reason, sizeof s->reason, "%s", lk_error_text());
    } else {
        s->differs = s->differs || rc || s->rc || strcmp(meaning, s->meaning) != 0;
    }
    s->end = object + n;
    return LK_OK;
}

enum lk_code lk_answer_find(const char *text, size_t n, lk_answer_reader read, void *context,
                            struct lk_answer_object *out) {
    struct search s = {.read = read, .context = context};
    *out = (struct lk_answer_object){0};
    LK_TRY(lk_answer_behind_thoughts(&text, &n));
    const char *end = text + n;
    for (const char *at = text; at < end && (at = memchr(at, '{', (size_t)(end - at)));) {
        size_t n_object = lk_json_balanced(at, (size_t)(end - at));
        if (!n_object) return lk_fail(LK_E_INPUT, "the JSON object is not closed");
        LK_TRY(look_at(&s, at, n_object));
        at += n_object;
    }
    if (s.differs)
        return lk_fail(LK_E_INPUT, "two answers that differ, and no word such as \"final\" says which one counts");
    if (s.rc) return lk_fail(s.rc, "%s", s.reason);
    if (!s.from) return lk_fail(LK_E_INPUT, "%s", *s.passed ? s.passed : "no JSON object in the answer");
    return lk_answer_mend(s.from, lk_json_balanced(s.from, (size_t)(end - s.from)), out);
}
