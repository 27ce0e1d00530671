/* Python's json.loads, as far as one member of an object is concerned: a key that comes twice has its last value, NaN
 * and Infinity are numbers, surrogates may stand alone; anything else that is no JSON is refused. The strict reader of
 * engine/base/json.h refuses more, and a reply that the authors take must be taken. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "models/rewrite/reply.h"

enum { MAX_DEPTH = 900, MAX_DIGITS = 4300 }; /* Python's: of its stack, about, and of a whole number */

struct scan {
    const char *at, *end;
    int depth;
};

static bool value(struct scan *s);

static void space(struct scan *s) {
    while (s->at < s->end && strchr(" \t\n\r", *s->at) && *s->at) s->at++;
}

static bool take(struct scan *s, char c) {
    space(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static bool hex4(const struct scan *s, const char *at, uint32_t *code) {
    *code = 0;
    if (s->end - at < 4) return false;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", c = at[i] >= 'A' && at[i] <= 'F' ? (char)(at[i] - 'A' + 'a') : at[i];
        const char *digit = c ? strchr(digits, c) : NULL;
        if (!digit) return false;
        *code = *code << 4 | (uint32_t)(digit - digits);
    }
    return true;
}

/* Behind the backslash. What it stands for goes into out; `text` is false where that is no UTF-8. */
static bool escape(struct scan *s, struct lk_text *out, bool *text) {
    static const char names[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    const char *name = s->at < s->end && *s->at ? strchr(names, *s->at) : NULL;
    char bytes[4];
    uint32_t code, low;
    if (name) {
        lk_text_bytes(out, &codes[name - names], 1);
        s->at++;
        return true;
    }
    if (s->at == s->end || *s->at != 'u' || !hex4(s, s->at + 1, &code)) return false;
    s->at += 5;
    if (code >= 0xd800 && code < 0xdc00 && s->end - s->at > 5 && s->at[0] == '\\' && s->at[1] == 'u' &&
        hex4(s, s->at + 2, &low) && low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        s->at += 6;
    }
    if (!code || (code >= 0xd800 && code < 0xe000))
        *text = false;
    else
        lk_text_bytes(out, bytes, lk_utf8_encode(code, bytes));
    return true;
}

static bool string(struct scan *s, struct lk_text *out, bool *text) {
    *text = true;
    if (!take(s, '"')) return false;
    lk_text_add(out, "%s", "");
    for (; s->at < s->end && *s->at != '"';) {
        const char *from = s->at;
        while (s->at < s->end && *s->at != '"' && *s->at != '\\' && (unsigned char)*s->at >= 0x20) s->at++;
        lk_text_bytes(out, from, (size_t)(s->at - from));
        if (s->at == s->end || *s->at == '"') continue;
        if (*s->at++ != '\\' || !escape(s, out, text)) return false;
    }
    if (s->at == s->end) return false;
    s->at++;
    return true;
}

static size_t digits(struct scan *s) {
    const char *from = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9') s->at++;
    return (size_t)(s->at - from);
}

static bool number(struct scan *s) {
    if (*s->at == '-') s->at++;
    const bool zero = s->at < s->end && *s->at == '0';
    size_t n = digits(s);
    if (!n || (zero && n > 1)) return false;
    bool whole = true;
    if (s->at < s->end && *s->at == '.') {
        s->at++, whole = false;
        if (!digits(s)) return false;
    }
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        s->at++, whole = false;
        if (s->at < s->end && (*s->at == '+' || *s->at == '-')) s->at++;
        if (!digits(s)) return false;
    }
    return !whole || n <= MAX_DIGITS;
}

static bool word(struct scan *s) {
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(s->end - s->at) < n || memcmp(s->at, words[i], n)) continue;
        s->at += n;
        return true;
    }
    return false;
}

/* The members of an object, or elements; `found`: the member `key`, the last of them, and whether it is a text. */
static bool members(struct scan *s, char close, const char *key, struct lk_text *found, bool *is_text) {
    struct lk_text name = {0}, last = {0};
    bool ok = ++s->depth < MAX_DEPTH, text;
    s->at++;
    if (ok && take(s, close)) return s->depth--, true;
    while (ok) {
        name.n = last.n = 0;
        ok = close == ']' || (string(s, &name, &text) && take(s, ':'));
        const bool asked = ok && key && text && name.n == strlen(key) && !memcmp(name.bytes, key, name.n);
        space(s);
        if (ok && asked && s->at < s->end && *s->at == '"') {
            ok = string(s, &last, is_text);
            found->n = 0;
            lk_text_bytes(found, last.bytes ? last.bytes : "", last.n);
        } else if (ok) {
            ok = value(s);
            if (asked) *is_text = false;
        }
        if (!ok || !take(s, ',')) break;
    }
    lk_text_free(&name);
    lk_text_free(&last);
    s->depth--;
    return ok && take(s, close);
}

static bool value(struct scan *s) {
    struct lk_text unused = {0};
    bool text, ok;
    space(s);
    if (s->at == s->end) return false;
    if (*s->at == '{' || *s->at == '[') return members(s, *s->at == '{' ? '}' : ']', NULL, NULL, NULL);
    if (*s->at == '"') {
        ok = string(s, &unused, &text);
        lk_text_free(&unused);
        return ok;
    }
    return word(s) || number(s);
}

/* Every `what` taken out, from left to right. */
static void take_out(struct lk_text *text, const char *what) {
    const size_t n = strlen(what);
    size_t to = 0;
    for (size_t at = 0; at < text->n;)
        if (text->n - at >= n && !memcmp(text->bytes + at, what, n))
            at += n;
        else
            text->bytes[to++] = text->bytes[at++];
    text->n = to;
}

enum lk_code lk_rewrite_reply_json(const char *reply, size_t n, const char *key, char **out, const char **why) {
    struct lk_text text = {0}, found = {0};
    bool is_text = false;
    size_t kept;
    *out = NULL;
    *why = "expected a JSON object, got something else";
    lk_text_bytes(&text, reply, n);
    lk_text_add(&text, "%s", ""); /* of nothing, too */
    if (!text.rc) take_out(&text, "```json"), take_out(&text, "```");
    struct scan s = {text.bytes, text.bytes ? text.bytes + text.n : NULL, 0};
    if (!text.rc && lk_utf8_valid_prefix(text.bytes, text.n) == text.n) {
        space(&s);
        bool ok = s.at < s.end && *s.at == '{' && members(&s, '}', key, &found, &is_text);
        if (ok) space(&s), ok = s.at == s.end;
        if (ok) *why = "expected a member of the instruction's name that is a text in UTF-8, got none";
        if (ok && is_text && !found.rc) {
            const char *from = lk_utf8_strip(found.bytes, found.n, &kept);
            if (!kept) *why = "expected a text, got an empty one";
            if (kept && !(*out = lk_strndup(from, kept))) found.rc = LK_E_NOMEM;
            for (char *c = *out; c && *c; c++)
                if (*c == '\n') *c = ' ';
        }
    }
    enum lk_code rc = lk_text_free(&text), rc2 = lk_text_free(&found);
    return rc || rc2 ? lk_fail(LK_E_NOMEM, "rewrite: out of memory for a reply") : LK_OK;
}
