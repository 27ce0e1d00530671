#include "eval/t2i/fair.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/base/digest.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "eval/study/random.h"
#include "eval/t2i/distribution.h"
#include "eval/t2i/rebalance.h"

const char lk_fair_gender[] =
    "{\"version\":1,\"defaults\":{\"scale\":4,\"threshold\":0.95,\"warmup\":5,\"cooldown\":null,\"momentum_scale\":0.5,"
    "\"momentum_beta\":0.6},\"attributes\":{\"gender\":{\"target\":{\"male\":0.5,\"female\":0.5},\"concepts\":{"
    "\"male\":\"male person\",\"female\":\"female person\"},\"decrease\":\"others\"}},\"rules\":[{\"match\":\"*\","
    "\"attributes\":[\"gender\"],\"unless\":[\"male\",\"female\",\"man\",\"woman\"]}]}";

static const char *keep(struct lk_fair *f, struct lk_json *j, const char *text) {
    const char *copy = lk_store_text(&f->store, text);
    if (!copy) lk_json_fail(j, LK_E_NOMEM, "out of memory");
    return copy;
}

static bool unknown(struct lk_json *j, const char *key, const char *expected) {
    return lk_json_fail(j, LK_E_CONFIG_KEY, "field \"%.60s\": unknown; expected %s", key, expected);
}

static void read_number(struct lk_json *j, const char *key, double min, double max, double *out) {
    double value;
    if (!lk_json_number(j, &value)) return;
    if (value >= min && value <= max)
        *out = value;
    else
        lk_json_fail(j, LK_E_CONFIG_VALUE, "field \"%s\": expected a number from %g to %g, got %g", key, min, max,
                     value);
}

static void read_whole(struct lk_json *j, const char *key, int *out) {
    uint64_t value;
    if (!lk_json_u64(j, &value)) return;
    if (value <= 1000)
        *out = (int)value;
    else
        lk_json_fail(j, LK_E_CONFIG_VALUE, "field \"%s\": expected a whole number from 0 to 1000, got %llu", key,
                     (unsigned long long)value);
}

static void read_defaults(struct lk_fair *f, struct lk_json *j) {
    const char *key;
    if (!lk_json_enter(j, '{')) return;
    while (lk_json_next(j) && lk_json_key(j, &key)) {
        if (!strcmp(key, "scale"))
            read_number(j, key, 0, 1000, &f->scale);
        else if (!strcmp(key, "threshold"))
            read_number(j, key, 0, 1, &f->threshold);
        else if (!strcmp(key, "momentum_scale"))
            read_number(j, key, 0, 1, &f->momentum_scale);
        else if (!strcmp(key, "momentum_beta"))
            read_number(j, key, 0, 1, &f->momentum_beta);
        else if (!strcmp(key, "warmup"))
            read_whole(j, key, &f->warmup);
        else if (!strcmp(key, "cooldown") && lk_json_peek(j) == 'n')
            lk_json_skip(j);
        else if (!strcmp(key, "cooldown"))
            read_whole(j, key, &f->cooldown);
        else
            unknown(j, key, "scale, threshold, warmup, cooldown, momentum_scale or momentum_beta");
    }
}

static int level_of(const struct lk_fair_attribute *a, const char *name) {
    for (int i = 0; i < a->n; i++)
        if (!strcmp(a->levels[i], name)) return i;
    return -1;
}

/* A log joins names by "+" in a cell of a table. */
static bool is_name(const char *text) {
    const size_t n = strlen(text);
    return n && n <= LK_FAIR_MAX_NAME && !strpbrk(text, ",\"+\r\n");
}

/* The level of a member of "target", "concepts" or "label", new in whichever comes first. */
static int member(struct lk_fair *f, struct lk_json *j, struct lk_fair_attribute *a, const char *key) {
    const int level = level_of(a, key);
    if (level >= 0) return level;
    if (!is_name(key) || !strcmp(key, "quota") || !strcmp(key, "draw")) {
        lk_json_fail(j, LK_E_CONFIG_VALUE,
                     "level \"%.60s\": expected at most %d bytes without , \" and +, and not quota or draw", key,
                     LK_FAIR_MAX_NAME);
        return -1;
    }
    if (a->n == LK_FAIR_MAX_CONCEPTS) {
        lk_json_fail(j, LK_E_CONFIG_VALUE, "attribute \"%s\": expected at most %d levels", a->name,
                     LK_FAIR_MAX_CONCEPTS);
        return -1;
    }
    a->shares[a->n] = NAN;
    a->labels[a->n] = a->levels[a->n] = keep(f, j, key);
    return a->levels[a->n] ? a->n++ : -1;
}

static void read_label(struct lk_fair *f, struct lk_json *j, struct lk_fair_attribute *a, int level) {
    const char *text;
    int attribute, found;
    if (!lk_json_string(j, &text)) return;
    if (is_name(text) && lk_t2i_level_find(a->name, text, &attribute, &found))
        a->labels[level] = keep(f, j, text);
    else
        lk_json_fail(j, LK_E_CONFIG_VALUE, "label of \"%s\": expected a level of labels as Female, got \"%.60s\"",
                     a->levels[level], text);
}

enum member { SHARE, CONCEPT, LABEL };

static void read_levels(struct lk_fair *f, struct lk_json *j, struct lk_fair_attribute *a, enum member what) {
    const char *key, *text;
    if (!lk_json_enter(j, '{')) return;
    while (lk_json_next(j) && lk_json_key(j, &key)) {
        const int level = member(f, j, a, key);
        if (level < 0) return;
        if (what == SHARE) {
            read_number(j, key, 0, 1, &a->shares[level]);
        } else if (what == LABEL) {
            read_label(f, j, a, level);
        } else if (lk_json_string(j, &text)) {
            if (!*text || strchr(text, ';'))
                lk_json_fail(j, LK_E_CONFIG_VALUE, "concept of \"%s\": expected a text without ;", a->levels[level]);
            else
                a->concepts[level] = keep(f, j, text);
        }
    }
}

static void check_attribute(struct lk_json *j, const struct lk_fair_attribute *a) {
    double sum = 0;
    for (int i = 0; i < a->n; i++) {
        if (isnan(a->shares[i]) || !a->concepts[i]) {
            lk_json_fail(j, LK_E_CONFIG_VALUE, "attribute \"%s\": level \"%s\" has no %s", a->name, a->levels[i],
                         a->concepts[i] ? "share in \"target\"" : "text in \"concepts\"");
            return;
        }
        sum += a->shares[i];
    }
    if (a->n < 1 || !(fabs(sum - 1) <= 1e-9))
        lk_json_fail(j, LK_E_CONFIG_VALUE, "attribute \"%s\": target: expected shares that sum to 1, got %.12g",
                     a->name, sum);
}

static void read_attribute(struct lk_fair *f, struct lk_json *j, struct lk_fair_attribute *a) {
    const char *key, *text;
    if (!lk_json_enter(j, '{')) return;
    a->decrease = true;
    while (lk_json_next(j) && lk_json_key(j, &key)) {
        if (!strcmp(key, "target")) {
            read_levels(f, j, a, SHARE);
        } else if (!strcmp(key, "concepts")) {
            read_levels(f, j, a, CONCEPT);
        } else if (!strcmp(key, "label")) {
            read_levels(f, j, a, LABEL);
        } else if (strcmp(key, "decrease") != 0) {
            unknown(j, key, "target, concepts, label or decrease");
        } else if (lk_json_string(j, &text)) {
            a->decrease = !strcmp(text, "others");
            if (!a->decrease && strcmp(text, "none") != 0)
                lk_json_fail(j, LK_E_CONFIG_VALUE, "decrease: expected others or none, got \"%.60s\"", text);
        }
    }
    if (!j->rc) check_attribute(j, a);
}

static void read_attributes(struct lk_fair *f, struct lk_json *j) {
    const char *key;
    if (!lk_json_enter(j, '{')) return;
    while (lk_json_next(j) && lk_json_key(j, &key)) {
        if (f->n_attributes == LK_FAIR_MAX_ATTRIBUTES || !is_name(key)) {
            lk_json_fail(j, LK_E_CONFIG_VALUE,
                         "attributes: expected at most %d, with names of at most %d bytes without , \" and +",
                         LK_FAIR_MAX_ATTRIBUTES, LK_FAIR_MAX_NAME);
            return;
        }
        struct lk_fair_attribute *a = &f->attributes[f->n_attributes++];
        a->name = keep(f, j, key);
        read_attribute(f, j, a);
    }
}

/* " drug dealer ": the text's words in one case, each between two spaces, so that a phrase of whole words is a piece of
 * it. Words are runs of letters, marks and digits. LK_E_INPUT: no UTF-8. */
static enum lk_code add_words(struct lk_text *out, const char *text) {
    const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD;
    utf8proc_uint8_t *folded = NULL;
    const utf8proc_ssize_t n =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)strlen(text), &folded, options);
    if (n < 0)
        return n == UTF8PROC_ERROR_NOMEM ? lk_fail(LK_E_NOMEM, "out of memory")
                                         : lk_fail(LK_E_INPUT, "\"%.60s\": expected UTF-8", text);
    lk_text_add(out, " ");
    uint32_t code;
    size_t length;
    for (const char *at = (const char *)folded, *end = at + n; at < end; at += length) {
        length = lk_utf8_decode(at, (size_t)(end - at), &code);
        const utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)code);
        if (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NO)
            lk_text_bytes(out, at, length);
        else if (out->n && out->bytes[out->n - 1] != ' ')
            lk_text_add(out, " ");
    }
    if (out->n && out->bytes[out->n - 1] != ' ') lk_text_add(out, " ");
    free(folded);
    return out->rc;
}

/* A phrase's words, without a leading article; NULL after a failure. */
static const char *keep_phrase(struct lk_fair *f, struct lk_json *j, const char *text) {
    static const char *const articles[] = {" a ", " an ", " the "};
    struct lk_text words = {0};
    const char *kept = NULL;
    const enum lk_code rc = add_words(&words, text);
    if (rc) {
        j->rc = lk_fail_prefix(rc, "%s", j->name);
    } else {
        const char *from = words.bytes;
        for (int i = 0; i < 3; i++) {
            const size_t n = strlen(articles[i]);
            if (!strncmp(words.bytes, articles[i], n) && words.n > n) from = words.bytes + n - 1;
        }
        if (words.n > 1)
            kept = keep(f, j, from);
        else
            lk_json_fail(j, LK_E_CONFIG_VALUE, "phrase \"%.60s\": expected a word, got none", text);
    }
    lk_text_free(&words);
    return kept;
}

/* A list of phrases; in place of one "*" where any is not NULL. */
static void read_phrases(struct lk_fair *f, struct lk_json *j, const char **list, int *n, bool *any) {
    const char *text;
    if (any && lk_json_peek(j) == '"') {
        if (!lk_json_string(j, &text)) return;
        *any = !strcmp(text, "*");
        if (!*any)
            lk_json_fail(j, LK_E_CONFIG_VALUE, "match: expected \"*\" or a list of phrases, got \"%.60s\"", text);
        return;
    }
    if (!lk_json_enter(j, '[')) return;
    while (lk_json_next(j)) {
        if (!lk_json_string(j, &text)) return;
        if (*n == LK_FAIR_MAX_PHRASES) {
            lk_json_fail(j, LK_E_CONFIG_VALUE, "expected at most %d phrases", LK_FAIR_MAX_PHRASES);
            return;
        }
        if (!(list[*n] = keep_phrase(f, j, text))) return;
        ++*n;
    }
}

static int attribute_named(const struct lk_fair *f, const char *name) {
    for (int i = 0; i < f->n_attributes; i++)
        if (f->attributes[i].name && !strcmp(f->attributes[i].name, name)) return i;
    return -1;
}

static void read_rule_attributes(struct lk_fair *f, struct lk_json *j, struct lk_fair_rule *rule) {
    const char *text;
    if (!lk_json_enter(j, '[')) return;
    while (lk_json_next(j)) {
        if (!lk_json_string(j, &text)) return;
        const int found = attribute_named(f, text);
        bool again = false;
        for (int i = 0; i < rule->n_attributes; i++) again = again || rule->attributes[i] == found;
        if (found < 0 || again) {
            lk_json_fail(j, LK_E_CONFIG_VALUE,
                         "rules: expected each of the \"attributes\" above at most once, got \"%.60s\"", text);
            return;
        }
        rule->attributes[rule->n_attributes++] = found;
    }
}

static void read_rule(struct lk_fair *f, struct lk_json *j, struct lk_fair_rule *rule) {
    const char *key;
    int n_concepts = 0;
    if (!lk_json_enter(j, '{')) return;
    while (lk_json_next(j) && lk_json_key(j, &key)) {
        if (!strcmp(key, "match"))
            read_phrases(f, j, rule->match, &rule->n_match, &rule->any);
        else if (!strcmp(key, "unless"))
            read_phrases(f, j, rule->unless, &rule->n_unless, NULL);
        else if (!strcmp(key, "attributes"))
            read_rule_attributes(f, j, rule);
        else
            unknown(j, key, "match, attributes or unless");
    }
    for (int i = 0; i < rule->n_attributes; i++) {
        const struct lk_fair_attribute *a = &f->attributes[rule->attributes[i]];
        n_concepts += a->decrease ? a->n : 1;
    }
    if (!j->rc && ((!rule->any && !rule->n_match) || !n_concepts || n_concepts > LK_FAIR_MAX_CONCEPTS))
        lk_json_fail(j, LK_E_CONFIG_VALUE,
                     "rule %d: expected a match, and attributes (listed before the rules) of 1 to %d concepts, got %d",
                     f->n_rules, LK_FAIR_MAX_CONCEPTS, n_concepts);
}

static void read_rules(struct lk_fair *f, struct lk_json *j) {
    if (!lk_json_enter(j, '[')) return;
    while (lk_json_next(j)) {
        if (f->n_rules == LK_FAIR_MAX_RULES) {
            lk_json_fail(j, LK_E_CONFIG_VALUE, "rules: expected at most %d", LK_FAIR_MAX_RULES);
            return;
        }
        read_rule(f, j, &f->rules[f->n_rules++]);
    }
}

/* As short as reads back. */
static void add_number(struct lk_text *text, double value) {
    char digits[32];
    snprintf(digits, sizeof digits, "%g", value);
    lk_text_add(text, "%.*g", strtod(digits, NULL) == value ? 6 : 17, value);
}

/* Concepts as a request has them, with the settings of the file. */
static enum lk_code write_concepts(struct lk_fair *f, const char *name) {
    for (int i = 0; i < f->n_attributes; i++)
        for (int level = 0; level < f->attributes[i].n; level++)
            for (int away = 0; away < 2; away++) {
                struct lk_fair_attribute *a = &f->attributes[i];
                struct lk_text text = {0};
                lk_text_add(&text, "%s%s;scale=", a->concepts[level], away ? ";reverse" : "");
                add_number(&text, f->scale);
                lk_text_add(&text, ";threshold=");
                add_number(&text, f->threshold);
                lk_text_add(&text, ";warmup=%d", f->warmup);
                if (f->cooldown >= 0) lk_text_add(&text, ";cooldown=%d", f->cooldown);
                const char **out = away ? &a->away[level] : &a->towards[level];
                *out = text.rc ? NULL : lk_store_text(&f->store, text.bytes);
                lk_text_free(&text);
                if (!*out) return lk_fail(LK_E_NOMEM, "%s: out of memory", name);
            }
    return LK_OK;
}

enum lk_code lk_fair_read(struct lk_fair *f, const char *text, size_t n, const char *name) {
    struct lk_json j;
    const char *key;
    uint64_t version = 0;
    *f = (struct lk_fair){.scale = 4, .threshold = 0.95, .momentum_scale = 0.5, .momentum_beta = 0.6};
    f->warmup = 5;
    f->cooldown = -1;
    lk_json_init(&j, text, n, name);
    lk_json_enter(&j, '{');
    while (lk_json_next(&j) && lk_json_key(&j, &key)) {
        if (!strcmp(key, "version"))
            lk_json_u64(&j, &version);
        else if (!strcmp(key, "defaults"))
            read_defaults(f, &j);
        else if (!strcmp(key, "attributes"))
            read_attributes(f, &j);
        else if (!strcmp(key, "rules"))
            read_rules(f, &j);
        else
            unknown(&j, key, "version, defaults, attributes or rules");
    }
    lk_json_end(&j);
    if (!j.rc && (version != 1 || !f->n_rules))
        lk_json_fail(&j, LK_E_CONFIG_VALUE, "expected \"version\": 1 and rules, got version %llu and %d rules",
                     (unsigned long long)version, f->n_rules);
    LK_TRY(lk_json_finish(&j));
    lk_sha256(text, n, f->sha256);
    return write_concepts(f, name);
}

void lk_fair_free(struct lk_fair *f) { lk_store_free(&f->store); }

static bool has_any(const char *words, const char *const *phrases, int n) {
    for (int i = 0; i < n; i++)
        if (strstr(words, phrases[i])) return true;
    return false;
}

enum lk_code lk_fair_rule(const struct lk_fair *f, const char *prompt, int *rule) {
    struct lk_text words = {0};
    LK_TRY(add_words(&words, prompt));
    *rule = -1;
    for (int i = 0; i < f->n_rules && *rule < 0; i++) {
        const struct lk_fair_rule *r = &f->rules[i];
        if (!r->any && !has_any(words.bytes, r->match, r->n_match)) continue;
        if (!has_any(words.bytes, r->unless, r->n_unless)) *rule = i;
    }
    return lk_text_free(&words);
}

enum lk_code lk_fair_check_assign(const struct lk_fair *f, const char *assign) {
    if (!strcmp(assign, "quota") || !strcmp(assign, "draw")) return LK_OK;
    for (int i = 0; i < f->n_attributes; i++)
        if (level_of(&f->attributes[i], assign) >= 0) return LK_OK;
    return lk_fail(LK_E_USAGE, "expected quota, draw or a level of the instruction, got \"%.60s\"", assign);
}

/* An index by its share: u in [0, 1). */
static int drawn(const struct lk_fair_attribute *a, double u) {
    int level = 0;
    for (double sum = a->shares[0]; level + 1 < a->n && u >= sum; sum += a->shares[level]) level++;
    return level;
}

void lk_fair_deal(const struct lk_fair *f, int attribute, const char *assign, uint64_t study_seed,
                  const char *prompt_id, int32_t *levels, size_t n) {
    const struct lk_fair_attribute *a = &f->attributes[attribute];
    const int all = level_of(a, assign);
    int64_t quotas[LK_FAIR_MAX_CONCEPTS];
    struct lk_stream stream;
    char label[256];
    snprintf(label, sizeof label, "fair|%.100s|%.100s", prompt_id, a->name);
    lk_stream_named(&stream, study_seed, label);
    lk_quotas(a->shares, a->n, (int64_t)n, quotas);
    const bool draw = all < 0 && !strcmp(assign, "draw");
    int level = 0;
    for (size_t k = 0; k < n; k++) {
        while (!draw && all < 0 && !quotas[level]) level++;
        if (!draw && all < 0) quotas[level]--;
        levels[k] = draw ? drawn(a, (double)(lk_stream_u64(&stream) >> 11) * 0x1p-53) : all >= 0 ? all : level;
    }
    if (!draw && all < 0) lk_stream_shuffle(&stream, levels, n);
}

int lk_fair_concepts(const struct lk_fair *f, int rule, const int8_t *levels,
                     const char *concepts[LK_FAIR_MAX_CONCEPTS]) {
    const struct lk_fair_rule *r = &f->rules[rule];
    int n = 0;
    for (int i = 0; i < r->n_attributes; i++) {
        const struct lk_fair_attribute *a = &f->attributes[r->attributes[i]];
        for (int level = 0; level < a->n; level++)
            if (level == levels[i])
                concepts[n++] = a->towards[level];
            else if (a->decrease)
                concepts[n++] = a->away[level];
    }
    return n;
}
