#include <string.h>

#include "models/tokenizer/pattern.h"
#include "models/tokenizer/unicode.h"

/* Oniguruma and PCRE2 differ in much: what \w, \b, ^, \h and \v mean, nested classes, {n,m}+, {,n}, case folding to
 * several characters. This checker accepts the common ground only. It also refuses a repetition without upper bound
 * inside another, the one source of exponential matching. */

#define MAX_PATTERN_BYTES 8192
#define MAX_GROUPS_DEEP   16

struct syntax {
    const char *at, *end;
    const char *refusal;
    bool caseless;
    char previous; /* the last literal in a row of them, lower case; 0 when there is none */
    int depth;
};

static bool refuse(struct syntax *s, const char *what) {
    if (!s->refusal) s->refusal = what;
    return false;
}

static bool more(const struct syntax *s) { return s->at < s->end; }
static bool looking_at(const struct syntax *s, const char *text) {
    size_t n = strlen(text);
    return (size_t)(s->end - s->at) >= n && !memcmp(s->at, text, n);
}

static bool is_letter(uint32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }

/* \p{L}, \P{Lu}: general categories only; s->at behind the p. */
static bool property(struct syntax *s) {
    static const char categories[] =
        " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs "
        "Zl Zp C Cc Cf Co Cn ";
    char name[8] = " ";
    size_t n = 1;
    if (!more(s) || *s->at != '{') return refuse(s, "a property not in braces");
    s->at++;
    while (more(s) && *s->at != '}' && n < 4) name[n++] = *s->at++;
    name[n] = ' ';
    if (!more(s) || *s->at != '}' || n == 1 || !strstr(categories, name)) {
        return refuse(s, "a property other than a general category such as \\p{L}");
    }
    if (s->caseless) return refuse(s, "a property inside (?i:");
    s->at++;
    return true;
}

/* s->at behind a backslash. *literal is the character meant, or 0 for a set of characters. */
static bool escape(struct syntax *s, uint32_t *literal) {
    if (!more(s)) return refuse(s, "a backslash at the end");
    char c = *s->at++;
    *literal = 0;
    switch (c) {
    case 's':
    case 'S':
    case 'd':
    case 'D':
        return true;
    case 'p':
    case 'P':
        return property(s);
    case 'n':
        *literal = '\n';
        return true;
    case 'r':
        *literal = '\r';
        return true;
    case 't':
        *literal = '\t';
        return true;
    case 'f':
        *literal = '\f';
        return true;
    default:
        if ((unsigned char)c <= 0x20 || (unsigned char)c >= 0x7f || is_letter((unsigned char)c) ||
            is_digit((unsigned char)c)) {
            s->at--;
            return refuse(s, "an escape that is not one of \\s \\S \\d \\D \\p \\P \\n \\r \\t \\f or of punctuation");
        }
        *literal = (unsigned char)c;
        return true;
    }
}

/* Any character that stands for itself. */
static bool plain(struct syntax *s, uint32_t *c) {
    size_t n = lk_utf8_decode(s->at, (size_t)(s->end - s->at), c);
    if (!n || !*c) return refuse(s, "a character that is NUL or not UTF-8");
    if (*c >= 0x80 && s->caseless) return refuse(s, "a character outside ASCII inside (?i:");
    if (lk_unicode_stand_in_touches(*c, *c))
        return refuse(s, "a character whose category differs between Unicode versions");
    s->at += n;
    return true;
}

/* Case folding can turn a row of letters into one character (st, ff); the engines disagree there. */
static bool literal_in_row(struct syntax *s, uint32_t c) {
    static const char pairs[] = "ss ff fi fl st ";
    char lower = (char)(is_letter(c) ? c | 0x20 : c < 0x80 ? c : 0);
    char pair[] = {s->previous, lower, ' ', 0};
    if (s->caseless && s->previous && is_letter(c) && strstr(pairs, pair)) {
        return refuse(s, "letters inside (?i: that fold together with a ligature");
    }
    s->previous = lower;
    return true;
}

/* One member of a class; *c is 0 for a set. */
static bool class_member(struct syntax *s, uint32_t *c) {
    if (*s->at == '\\') {
        s->at++;
        return escape(s, c);
    }
    if (*s->at == '[') return refuse(s, "a class inside a class");
    if (looking_at(s, "&&")) return refuse(s, "an intersection of classes");
    return plain(s, c);
}

static bool character_class(struct syntax *s) {
    s->at++;
    if (more(s) && *s->at == '^') s->at++;
    if (more(s) && *s->at == ']') return refuse(s, "an empty class");
    bool first = true;
    while (more(s) && *s->at != ']') {
        bool dash = *s->at == '-';
        uint32_t low, high;
        if (!class_member(s, &low)) return false;
        if (dash && !first && more(s) && *s->at != ']') return refuse(s, "an unescaped - in the middle of a class");
        first = false;
        if (!more(s) || *s->at != '-' || s->end - s->at < 2 || s->at[1] == ']') continue;
        s->at++;
        if (!class_member(s, &high)) return false;
        if (!low || !high || low > high) return refuse(s, "a range that does not go from one character up to another");
        if (lk_unicode_stand_in_touches(low, high)) {
            return refuse(s, "a range with characters whose category differs between Unicode versions");
        }
    }
    if (!more(s)) return refuse(s, "a class without an end");
    s->at++;
    s->previous = 0;
    return true;
}

/* {n}, {n,}, {n,m}; *bounded false for {n,}. */
static bool braces(struct syntax *s, bool *bounded) {
    int numbers[2] = {0, 0}, i = 0;
    *bounded = true;
    s->at++;
    for (; more(s) && *s->at != '}'; s->at++) {
        if (is_digit((unsigned char)*s->at)) {
            numbers[i] = numbers[i] * 10 + (*s->at - '0');
            *bounded = true;
            if (numbers[i] > 1000) return refuse(s, "a repetition of more than 1000");
        } else if (*s->at == ',' && i == 0 && is_digit((unsigned char)s->at[-1])) {
            i = 1;
            *bounded = false;
        } else {
            return refuse(s, "a { that does not begin a repetition such as {1,3}");
        }
    }
    if (!more(s) || s->at[-1] == '{') return refuse(s, "a { that does not begin a repetition such as {1,3}");
    if (i && *bounded && numbers[1] < numbers[0]) return refuse(s, "a repetition with its bounds reversed");
    s->at++;
    if (more(s) && strchr("?+*{", *s->at)) return refuse(s, "a repetition in braces that is itself modified");
    return true;
}

/* What may follow an atom. *unbounded: the atom, or something in it, repeats without an upper bound. */
static bool quantifier(struct syntax *s, bool repeatable, bool *unbounded) {
    if (!more(s) || !strchr("?*+{", *s->at)) return true;
    if (!repeatable) return refuse(s, "a repetition of nothing or of a lookahead");
    s->previous = 0;
    bool bounded = *s->at == '?';
    if (*s->at == '{') {
        if (!braces(s, &bounded)) return false;
    } else {
        s->at++;
        if (more(s) && (*s->at == '?' || *s->at == '+')) s->at++;
        if (more(s) && strchr("?*+{", *s->at)) return refuse(s, "a repetition of a repetition");
    }
    if (!bounded && *unbounded) return refuse(s, "a repetition without upper bound inside another");
    *unbounded = *unbounded || !bounded;
    return true;
}

static bool alternatives(struct syntax *s, bool *unbounded);

/* ( ... ), (?: ... ), (?i: ... ), (?= ... ), (?! ... ) */
static bool group(struct syntax *s, bool *unbounded, bool *lookahead) {
    bool caseless = s->caseless;
    *lookahead = looking_at(s, "(?=") || looking_at(s, "(?!");
    if (*lookahead || looking_at(s, "(?:")) {
        s->at += 3;
    } else if (looking_at(s, "(?i:")) {
        s->at += 4;
        s->caseless = true;
    } else if (looking_at(s, "(?") || looking_at(s, "(*")) {
        return refuse(s, "a group other than (...) (?:...) (?i:...) (?=...) (?!...)");
    } else {
        s->at++;
    }
    if (++s->depth > MAX_GROUPS_DEEP) return refuse(s, "groups nested too deep");
    if (!alternatives(s, unbounded)) return false;
    if (!more(s)) return refuse(s, "a group without an end");
    s->at++;
    s->depth--;
    s->caseless = caseless;
    return true;
}

static bool atom(struct syntax *s, bool *unbounded, bool *repeatable) {
    uint32_t c;
    bool lookahead = false;
    *repeatable = true;
    switch (*s->at) {
    case '(':
        if (!group(s, unbounded, &lookahead)) return false;
        *repeatable = !lookahead;
        return true;
    case '[':
        return character_class(s);
    case '.':
        s->at++;
        s->previous = 0;
        return true;
    case '^':
    case '$':
        return refuse(s, "an anchor");
    case '\\':
        s->at++;
        if (!escape(s, &c)) return false;
        return literal_in_row(s, c);
    case '?':
    case '*':
    case '+':
    case '{':
        *repeatable = false; /* quantifier() refuses it */
        return true;
    default:
        return plain(s, &c) && literal_in_row(s, c);
    }
}

/* Stops at the closing parenthesis or at the end. */
static bool alternatives(struct syntax *s, bool *unbounded) {
    s->previous = 0;
    while (more(s) && *s->at != ')') {
        if (*s->at == '|') {
            s->at++;
            s->previous = 0;
            continue;
        }
        bool inner = false, repeatable;
        if (!atom(s, &inner, &repeatable) || !quantifier(s, repeatable, &inner)) return false;
        *unbounded = *unbounded || inner;
    }
    return true;
}

const char *lk_pattern_refusal(const char *regex, size_t length, size_t *at) {
    struct syntax s = {.at = regex, .end = regex + length};
    bool unbounded = false;
    const char *nul = memchr(regex, 0, length);
    if (length > MAX_PATTERN_BYTES || nul) {
        *at = nul ? (size_t)(nul - regex) : MAX_PATTERN_BYTES;
        return nul ? "NUL" : "an expression of more than 8192 bytes";
    }
    if (alternatives(&s, &unbounded) && more(&s)) refuse(&s, "a ) without its (");
    *at = (size_t)(s.at - regex);
    return s.refusal;
}
