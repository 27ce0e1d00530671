/* What the sources of a study differ in: "attributes" of its file. */
#include <stdio.h>
#include <string.h>

#include "engine/base/json.h"
#include "eval/design/internal.h"

struct reader {
    struct lk_json j;
    struct lk_study *study;
    char field[200];
    int number;                    /* of the attribute in the file */
    const char *of[LK_MAX_LEVELS]; /* of each level the levels that it pools, a line each; NULL: none */
};

bool lk_study_is_word(const char *text, size_t n, size_t max) {
    static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    if (!n || n > max) return false;
    for (size_t i = 0; i < n; i++)
        if (!text[i] || !strchr(allowed, text[i])) return false;
    return true;
}

static char fold(char c) { return c == '_' ? ' ' : c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c; }

static bool same(const char *spelling, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!spelling[i] || fold(spelling[i]) != fold(text[i])) return false;
    return !spelling[n];
}

int lk_attribute_parse(const struct lk_attribute *a, const char *text, size_t n) {
    for (int i = 0; i < a->n; i++)
        if (same(a->keys[i], text, n) || same(a->displays[i], text, n)) return i;
    return -1;
}

static bool fail(struct reader *r, const char *expected, const char *got) {
    if (!r->j.rc) r->j.rc = lk_study_bad(r->study, r->field, "expected %s, got \"%.60s\"", expected, got);
    return false;
}

static bool out_of_memory(struct reader *r) { return lk_json_fail(&r->j, LK_E_NOMEM, "out of memory for the study"); }

static bool read_text(struct reader *r, const char **out) {
    const char *text;
    if (!lk_json_string(&r->j, &text)) return false;
    *out = lk_store_text(&r->study->store, text);
    return *out || out_of_memory(r);
}

/* ["20s", "30s"], as lines. */
static bool read_members(struct reader *r, const char **out) {
    struct lk_text lines = {0};
    const char *text;
    if (!lk_json_enter(&r->j, '[')) return false;
    while (lk_json_next(&r->j) && lk_json_string(&r->j, &text)) lk_text_add(&lines, "%s\n", text);
    *out = r->j.rc || !lines.n || lines.rc ? NULL : lk_store_text(&r->study->store, lines.bytes);
    const bool empty = !r->j.rc && !lines.rc && !lines.n;
    lk_text_free(&lines);
    if (empty) return fail(r, "levels that the group pools", "none");
    return *out || r->j.rc ? !r->j.rc : out_of_memory(r);
}

/* "IV", or {"key": "IV", "display": "Type IV"}; of a group {"key": "Young", "of": ["20s", "30s"]}. */
static bool read_level(struct reader *r, const char **key, const char **display, const char **of) {
    const char *member;
    *key = *display = *of = NULL;
    if (lk_json_peek(&r->j) == '"') {
        if (!read_text(r, key)) return false;
    } else {
        if (!lk_json_enter(&r->j, '{')) return false;
        while (lk_json_next(&r->j) && lk_json_key(&r->j, &member)) {
            const char **to = !strcmp(member, "key") ? key : !strcmp(member, "display") ? display : NULL;
            if (!strcmp(member, "of")) {
                if (!read_members(r, of)) return false;
                continue;
            }
            if (!to) return fail(r, "\"key\", \"display\" and \"of\" of a level", member);
            if (!read_text(r, to)) return false;
        }
        if (r->j.rc) return false;
    }
    if (!*key || !lk_study_is_word(*key, strlen(*key), 40))
        return fail(r, "a level's key of 1 to 40 letters, digits, - or _ (its display may be any text)",
                    *key ? *key : "nothing");
    if (!*display) *display = *key;
    return true;
}

static bool read_levels(struct reader *r, struct lk_attribute *a) {
    const char *keys[LK_MAX_LEVELS], *displays[LK_MAX_LEVELS];
    a->n = 0;
    if (!lk_json_enter(&r->j, '[')) return false;
    while (lk_json_next(&r->j)) {
        if (a->n == LK_MAX_LEVELS) return fail(r, "at most 100 levels", "more");
        a->keys = keys;
        a->displays = displays;
        if (!read_level(r, &keys[a->n], &displays[a->n], &r->of[a->n])) return false;
        for (int k = 0; k < 2; k++) {
            const char *text = k ? displays[a->n] : keys[a->n];
            if (lk_attribute_parse(a, text, strlen(text)) >= 0) return fail(r, "each level once", text);
        }
        a->n++;
    }
    if (r->j.rc) return false;
    size_t bytes = (size_t)(a->n ? a->n : 1) * sizeof *keys;
    a->keys = lk_store_alloc(&r->study->store, bytes);
    a->displays = lk_store_alloc(&r->study->store, bytes);
    if (!a->keys || !a->displays) return out_of_memory(r);
    memcpy(a->keys, keys, (size_t)a->n * sizeof *keys);
    memcpy(a->displays, displays, (size_t)a->n * sizeof *keys);
    return true;
}

/* Columns of every table that lists sources or outputs. */
static bool is_taken(const struct lk_study *s, const char *name) {
    static const char *const reserved[] = {"id",         "source_id",   "path",      "file",     "sha256",
                                           "item_id",    "model",       "prompt_id", "category", "subcategory",
                                           "target",     "prompt_text", "arm",       "seed",     "status",
                                           "experiment", "axis",        "who",       "value",    "measure"};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(reserved[i], name)) return true;
    for (int i = 0; i < s->n_attributes; i++)
        if (!strcmp(s->attributes[i].name, name)) return true;
    return false;
}

/* Each level of the attribute that is pooled is in one group. */
static bool pool(struct reader *r, struct lk_attribute *a, const char *name) {
    struct lk_study *s = r->study;
    const struct lk_attribute *of = NULL;
    for (int i = 0; name && i < s->n_attributes; i++)
        if (!strcmp(s->attributes[i].name, name) && !s->attributes[i].of) of = &s->attributes[i];
    if (name && !of) return fail(r, "an attribute before this one, which is no group itself", name);
    for (int k = 0; k < a->n; k++)
        if (!name != !r->of[k])
            return fail(r,
                        name ? "\"of\" of each level, the levels that it pools"
                             : "no \"of\" of levels without one of the attribute",
                        a->keys[k]);
    if (!name) return true;
    int8_t *group = lk_store_alloc(&s->store, (size_t)of->n);
    if (!group) return out_of_memory(r);
    memset(group, -1, (size_t)of->n);
    for (int k = 0; k < a->n; k++)
        for (const char *at = r->of[k]; *at; at += strcspn(at, "\n") + 1) {
            const int level = lk_attribute_parse(of, at, strcspn(at, "\n"));
            if (level < 0 || group[level] >= 0)
                return fail(r, level < 0 ? "levels of the attribute that is pooled" : "each level in one group", at);
            group[level] = (int8_t)k;
        }
    for (int i = 0; i < of->n; i++)
        if (group[i] < 0) return fail(r, "each level in a group", of->keys[i]);
    a->of = of;
    a->group = group;
    return true;
}

static bool read_attribute(struct reader *r) {
    struct lk_study *s = r->study;
    const char *key, *kind = NULL, *of = NULL;
    if (s->n_attributes == LK_MAX_ATTRIBUTES) return fail(r, "at most 16 attributes", "more");
    struct lk_attribute *a = &s->attributes[s->n_attributes];
    snprintf(r->field, sizeof r->field, "attributes[%d]", r->number);
    const size_t stem = strlen(r->field);
    *a = (struct lk_attribute){0};
    if (!lk_json_enter(&r->j, '{')) return false;
    while (lk_json_next(&r->j) && lk_json_key(&r->j, &key)) {
        snprintf(r->field + stem, sizeof r->field - stem, ".%.60s", key);
        bool ok = !strcmp(key, "name")      ? read_text(r, &a->name)
                  : !strcmp(key, "display") ? read_text(r, &a->display)
                  : !strcmp(key, "kind")    ? read_text(r, &kind)
                  : !strcmp(key, "levels")  ? read_levels(r, a)
                  : !strcmp(key, "of")      ? read_text(r, &of)
                                            : fail(r, "name, display, kind, of or levels", key);
        if (!ok) return false;
    }
    if (r->j.rc) return false;
    snprintf(r->field + stem, sizeof r->field - stem, ".name");
    if (!a->name || !lk_study_is_word(a->name, strlen(a->name), 40))
        return fail(r, "1 to 40 letters, digits, - or _, the column of the table of sources", a->name ? a->name : "");
    if (is_taken(s, a->name)) return fail(r, "a name that no other column has", a->name);
    snprintf(r->field + stem, sizeof r->field - stem, ".kind");
    if (kind && strcmp(kind, "nominal") && strcmp(kind, "ordered")) return fail(r, "nominal or ordered", kind);
    snprintf(r->field + stem, sizeof r->field - stem, ".levels");
    if (!a->n) return fail(r, "a list of levels in their order", "nothing");
    if (!pool(r, a, of)) return false;
    a->ordered = kind && !strcmp(kind, "ordered");
    if (!a->display) a->display = a->name;
    snprintf(r->field + stem, sizeof r->field - stem, ".display");
    for (int i = 0; i < s->n_attributes; i++)
        if (!strcmp(s->attributes[i].display, a->display))
            return fail(r, "a name that no other attribute has", a->display);
    s->n_attributes++;
    return true;
}

static enum lk_code add_portrait(struct lk_study *s) {
    static const enum lk_factor factors[] = {LK_FACTOR_RACE, LK_FACTOR_GENDER, LK_FACTOR_AGE};
    static const char *const displays[] = {"Race", "Gender", "Age"};
    for (int f = 0; f < 3; f++) {
        struct lk_attribute *a = &s->attributes[s->n_attributes++];
        *a = (struct lk_attribute){
            lk_factor_name(factors[f]), displays[f], f == 2, lk_factor_levels(factors[f]), NULL, NULL, NULL, NULL};
        a->keys = lk_store_alloc(&s->store, (size_t)a->n * sizeof *a->keys);
        a->displays = lk_store_alloc(&s->store, (size_t)a->n * sizeof *a->keys);
        if (!a->keys || !a->displays) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
        for (int i = 0; i < a->n; i++) {
            a->keys[i] = lk_factor_key(factors[f], i);
            a->displays[i] = lk_factor_display(factors[f], i);
        }
    }
    return LK_OK;
}

enum lk_code lk_study_read_attributes(struct lk_study *s) {
    struct reader r = {.study = s};
    const bool given = s->attributes_given.text != NULL;
    if (!s->item_ids) s->item_ids = given ? "plain" : "portrait";
    s->portrait = !strcmp(s->item_ids, "portrait");
    if (s->portrait && given)
        return lk_study_bad(s, "item_ids", "\"portrait\" is race, gender and age: leave \"attributes\" out");
    if (s->portrait) return add_portrait(s);
    if (!given) return LK_OK;
    lk_json_init(&r.j, s->attributes_given.text, s->attributes_given.n, s->file);
    if (lk_json_enter(&r.j, '['))
        for (int i = 0; lk_json_next(&r.j) && lk_json_peek(&r.j); i++) {
            const char *from = (const char *)r.j.at;
            if (!lk_json_skip(&r.j)) break;
            struct reader one = {.study = s, .number = i};
            lk_json_init(&one.j, from, (size_t)((const char *)r.j.at - from), s->file);
            read_attribute(&one);
            enum lk_code rc = lk_json_finish(&one.j);
            if (rc && (rc = lk_study_note(s, rc))) r.j.rc = rc;
        }
    lk_json_end(&r.j);
    return lk_json_finish(&r.j);
}

void lk_study_write_attributes(const struct lk_study *s, struct lk_text *out) {
    lk_text_add(out, "[");
    for (int i = 0; i < s->n_attributes; i++) {
        const struct lk_attribute *a = &s->attributes[i];
        lk_text_add(out, "%s\n    {\"name\": \"%s\", \"display\": ", i ? "," : "", a->name);
        lk_text_json(out, a->display);
        if (a->of) lk_text_add(out, ", \"of\": \"%s\"", a->of->name);
        lk_text_add(out, ", \"kind\": \"%s\", \"levels\": [", a->ordered ? "ordered" : "nominal");
        for (int k = 0; k < a->n; k++) {
            lk_text_add(out, "%s{\"key\": \"%s\", \"display\": ", k ? ", " : "", a->keys[k]);
            lk_text_json(out, a->displays[k]);
            for (int i = 0, n = 0; a->of && i < a->of->n; i++)
                if (a->group[i] == k) lk_text_add(out, "%s\"%s\"", n++ ? ", " : ", \"of\": [", a->of->keys[i]);
            lk_text_add(out, a->of ? "]}" : "}");
        }
        lk_text_add(out, "]}");
    }
    lk_text_add(out, "\n  ]");
}
