#include "tests/common/html_check.h"

#include <stdbool.h>

#include "engine/base/utf8.h"
#include "tests/common/test.h"

#define DEPTH 64
#define NAMES 20000

struct reader {
    const char *html, *at;
    char open[DEPTH][24];
    int depth;
    char *ids[NAMES], *targets[NAMES];
    int n_ids, n_targets;
    struct html_counts counts;
};

static void bad(const struct reader *r, const char *what) {
    fail_msg("byte %zu: %s near: %.120s", (size_t)(r->at - r->html), what, r->at);
}

static bool is_void(const char *name) {
    static const char *const all[] = {"meta", "link", "img", "br", "hr", "input"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i], name)) return true;
    return false;
}

static size_t name_length(const char *at) {
    return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
}

static bool starts(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

static void attribute(struct reader *r, const char *element, const char *name, const char *value, size_t n) {
    char *text = calloc(1, n + 1);
    memcpy(text, value, n);
    if (memchr(value, '<', n)) bad(r, "a raw < in an attribute");
    if (starts(name, "on") || !strcmp(name, "style")) bad(r, "an inline handler or style");
    if (!strcmp(name, "src") || !strcmp(name, "href")) {
        bool inside = text[0] == '#' || starts(text, "./") || starts(text, "data:");
        if (!inside) bad(r, "a link that leaves the page");
        if (!strcmp(element, "script")) bad(r, "a script from elsewhere");
    }
    if (!strcmp(name, "id") || (!strcmp(name, "href") && text[0] == '#')) {
        assert_true(r->n_ids < NAMES && r->n_targets < NAMES);
        if (name[0] == 'i') {
            r->ids[r->n_ids++] = text;
        } else {
            memmove(text, text + 1, n);
            r->targets[r->n_targets++] = text;
        }
        return;
    }
    free(text);
}

static void attributes(struct reader *r, const char *element) {
    char seen[32][24];
    int n_seen = 0;
    for (;;) {
        size_t spaces = strspn(r->at, " \n");
        r->at += spaces;
        if (*r->at == '>' || starts(r->at, "/>")) return;
        size_t n = name_length(r->at);
        if (!n || n > 23 || !spaces) bad(r, "expected an attribute");
        assert_true(n_seen < 32);
        snprintf(seen[n_seen], sizeof seen[n_seen], "%.*s", (int)n, r->at);
        for (int i = 0; i < n_seen; i++)
            if (!strcmp(seen[i], seen[n_seen])) bad(r, "an attribute twice");
        r->at += n;
        const char *value = "";
        size_t length = 0;
        if (*r->at == '=') {
            if (r->at[1] != '"') bad(r, "an attribute without quotes");
            value = r->at + 2;
            length = strcspn(value, "\"");
            if (!value[length]) bad(r, "an attribute without end");
            r->at = value + length + 1;
        }
        attribute(r, element, seen[n_seen], value, length);
        n_seen++;
    }
}

static void open_tag(struct reader *r) {
    char name[24];
    size_t n = name_length(++r->at);
    if (!n || n > 23) bad(r, "expected a tag");
    snprintf(name, sizeof name, "%.*s", (int)n, r->at);
    r->at += n;
    attributes(r, name);
    r->counts.n_elements++;
    r->counts.n_images += !strcmp(name, "img");
    r->counts.n_svgs += !strcmp(name, "svg");
    r->counts.n_tables += !strcmp(name, "table");
    r->counts.n_scripts += !strcmp(name, "script");
    bool closed = *r->at == '/';
    r->at += closed ? 2 : 1;
    if (closed || is_void(name)) return;
    if (r->depth == DEPTH) bad(r, "nested too deep");
    strcpy(r->open[r->depth++], name);
    if (strcmp(name, "script") != 0 && strcmp(name, "style") != 0) return;
    char end[32];
    snprintf(end, sizeof end, "</%s>", name);
    r->at = strstr(r->at, end);
    assert_non_null(r->at);
}

static void close_tag(struct reader *r) {
    size_t n = name_length(r->at + 2);
    if (!r->depth || strlen(r->open[r->depth - 1]) != n || strncmp(r->open[r->depth - 1], r->at + 2, n) != 0 ||
        r->at[2 + n] != '>')
        bad(r, "an end tag that closes nothing");
    r->depth--;
    r->at += n + 3;
}

static void character(struct reader *r) {
    if (*r->at == '&') {
        size_t n = 1 + strcspn(r->at + 1, ";<& \n");
        if (r->at[n] != ';' || n > 9) bad(r, "a raw &");
        r->at += n + 1;
        return;
    }
    unsigned char c = (unsigned char)*r->at;
    if (c < 0x20 && c != '\n' && c != '\t') bad(r, "a control character");
    r->at++;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void html_check(const char *html, struct html_counts *counts) {
    struct reader *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->html = r->at = html;
    if (!lk_utf8_valid(html, strlen(html))) bad(r, "not UTF-8");
    if (starts(html, "<!DOCTYPE html>")) r->at += 15;
    while (*r->at)
        if (starts(r->at, "</"))
            close_tag(r);
        else if (*r->at == '<')
            open_tag(r);
        else
            character(r);
    if (r->depth) fail_msg("<%s> is never closed", r->open[r->depth - 1]);
    qsort(r->ids, (size_t)r->n_ids, sizeof *r->ids, by_text);
    for (int i = 1; i < r->n_ids; i++)
        if (!strcmp(r->ids[i - 1], r->ids[i])) fail_msg("id %s occurs twice", r->ids[i]);
    for (int i = 0; i < r->n_targets; i++)
        if (!bsearch(&r->targets[i], r->ids, (size_t)r->n_ids, sizeof *r->ids, by_text))
            fail_msg("no element has the id %s", r->targets[i]);
    r->counts.n_ids = r->n_ids;
    if (counts) *counts = r->counts;
    for (int i = 0; i < r->n_ids; i++) free(r->ids[i]);
    for (int i = 0; i < r->n_targets; i++) free(r->targets[i]);
    free(r);
}

static const struct {
    const char *entity, *text;
} entities[] = {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}};

void html_text(const char *html, size_t n, char *out, size_t capacity) {
    size_t used = 0;
    for (size_t i = 0; i < n && used + 5 < capacity;) {
        if (html[i] == '<') {
            while (i < n && html[i] != '>') i++;
            i++;
            continue;
        }
        bool done = false;
        for (size_t e = 0; e < sizeof entities / sizeof *entities && !done; e++)
            if (!strncmp(html + i, entities[e].entity, strlen(entities[e].entity))) {
                out[used++] = entities[e].text[0];
                i += strlen(entities[e].entity);
                done = true;
            }
        if (!done && html[i] == '&' && html[i + 1] == '#') {
            char *end;
            bool hex = html[i + 2] == 'x';
            used += lk_utf8_encode((uint32_t)strtoul(html + i + (hex ? 3 : 2), &end, hex ? 16 : 10), out + used);
            i = (size_t)(end - html) + 1;
        } else if (!done)
            out[used++] = html[i++];
    }
    out[used] = '\0';
}
