#include "eval/t2i/tokens.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"
#include "eval/scores/csv.h"
#include "eval/scores/level.h"
#include "eval/stats/models/silhouette.h"
#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/multiple.h"
#include "eval/t2i/distribution.h"

enum { MAX_ROLES = 1000 };

static const char *const measures[LK_N_T2I_MEASURES] = {"n_both", "pmi_bits", "cosine"};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i tokens: out of memory"); }

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_' || (c & 0x80); }

static bool has_words(const char *text, const char *words) {
    size_t n = strlen(words);
    for (const char *at = text; *at; at++)
        if (!strncasecmp(at, words, n) && (at == text || !in_word(at[-1])) && !in_word(at[n])) return true;
    return false;
}

static const char *without_article(const char *role) {
    static const char *const articles[] = {"a ", "an ", "the "};
    for (int i = 0; i < 3; i++)
        if (!strncasecmp(role, articles[i], strlen(articles[i]))) return role + strlen(articles[i]);
    return role;
}

static enum lk_code take_roles(struct lk_t2i_tokens *t) {
    t->role_of = lk_store_alloc(&t->store, (t->prompts->n + 1) * sizeof *t->role_of);
    if (!t->role_of) return out_of_memory();
    for (size_t i = 0; i < t->prompts->n; i++) {
        const char *role = without_article(t->prompts->list[i].cells[LK_T2I_ROLE_LABEL]);
        t->role_of[i] = -1;
        if (*role) LK_TRY(lk_names_number(&t->phrases, role, strlen(role), &t->role_of[i]));
    }
    t->n_roles = t->phrases.n;
    if (t->n_roles && t->n_roles <= MAX_ROLES) return LK_OK;
    return lk_fail(LK_E_INPUT, "prompts: column \"role_label\": expected 1 to %d roles, got %zu", MAX_ROLES,
                   t->n_roles);
}

static enum lk_code take_tokens(struct lk_t2i_tokens *t, const char *const *tokens, size_t n) {
    static const char *const words[] = {"male", "female", "man", "woman", "young", "old"};
    const size_t n_words = sizeof words / sizeof *words;
    t->n_tokens = tokens ? n : n_words + (size_t)lk_t2i_levels(LK_T2I_RACE);
    t->tokens = lk_store_alloc(&t->store, (t->n_tokens + 1) * sizeof *t->tokens);
    if (!t->tokens) return out_of_memory();
    for (size_t k = 0; k < t->n_tokens; k++) {
        const char *token = tokens        ? tokens[k]
                            : k < n_words ? words[k]
                                          : lk_t2i_level_name(LK_T2I_RACE, (int)(k - n_words));
        int32_t ignored;
        if (!*token) return lk_fail(LK_E_INPUT, "token: expected words, got none");
        for (size_t j = 0; j < k; j++)
            if (!strcasecmp(t->tokens[j], token)) return lk_fail(LK_E_INPUT, "token: \"%.80s\" is given twice", token);
        if (!(t->tokens[k] = lk_store_text(&t->store, token))) return out_of_memory();
        LK_TRY(lk_names_number(&t->phrases, token, strlen(token), &ignored));
    }
    return LK_OK;
}

/* role, token [n]: which prompts have their words. */
static void count_pair(const bool *role, const bool *token, size_t n, struct lk_t2i_together *pair) {
    *pair = (struct lk_t2i_together){.pmi = NAN, .cosine = NAN};
    for (size_t i = 0; i < n; i++) {
        pair->n_role += role[i];
        pair->n_token += token[i];
        pair->n_both += role[i] && token[i];
    }
    if (pair->n_both)
        pair->pmi = log2((double)n * (double)pair->n_both / ((double)pair->n_role * (double)pair->n_token));
}

static enum lk_code count(struct lk_t2i_tokens *t, const char *const *tokens, size_t n_tokens) {
    LK_TRY(take_roles(t));
    LK_TRY(take_tokens(t, tokens, n_tokens));
    const size_t n = t->prompts->n;
    bool *has = lk_store_alloc(&t->store, (t->n_roles + t->n_tokens) * n);
    t->pairs = lk_store_alloc(&t->store, (t->n_roles * t->n_tokens + 1) * sizeof *t->pairs);
    if (!has || !t->pairs) return out_of_memory();
    for (size_t w = 0; w < t->n_roles + t->n_tokens; w++)
        for (size_t i = 0; i < n; i++)
            has[w * n + i] = has_words(t->prompts->list[i].cells[LK_T2I_NATURAL_PROMPT],
                                       w < t->n_roles ? t->phrases.list[w] : t->tokens[w - t->n_roles]);
    for (size_t r = 0; r < t->n_roles; r++)
        for (size_t k = 0; k < t->n_tokens; k++)
            count_pair(has + r * n, has + (t->n_roles + k) * n, n, &t->pairs[r * t->n_tokens + k]);
    return LK_OK;
}

enum lk_code lk_t2i_tokens_count(struct lk_t2i_tokens *out, const struct lk_t2i_prompts *prompts,
                                 const char *const *tokens, size_t n_tokens) {
    *out = (struct lk_t2i_tokens){.prompts = prompts};
    enum lk_code rc = count(out, tokens, n_tokens);
    if (rc) lk_t2i_tokens_free(out);
    return rc;
}

enum lk_code lk_t2i_tokens_cosines(struct lk_t2i_tokens *t, const double *means, int64_t width) {
    for (size_t p = 0; p < t->n_roles * t->n_tokens; p++) {
        const char *token = t->tokens[p % t->n_tokens];
        struct lk_number cosine;
        LK_TRY(lk_cosine_similarity(means + (int64_t)(p / t->n_tokens) * width,
                                    means + lk_names_find(&t->phrases, token, strlen(token)) * width, (size_t)width,
                                    &cosine));
        t->pairs[p].cosine = cosine.undefined ? NAN : cosine.value;
    }
    return LK_OK;
}

/* The row of the prompt that metrics names by its id, or by its id and its role; -1: none has both. */
static int32_t prompt_of(const struct lk_t2i_prompts *prompts, const char *name) {
    int32_t at = lk_names_find(&prompts->ids, name, strlen(name));
    for (const char *space = name; at < 0 && (space = strchr(space, ' ')); space++) {
        char whole[200];
        at = lk_names_find(&prompts->ids, name, (size_t)(space - name));
        if (at >= 0) lk_t2i_prompt_name(&prompts->list[at], whole);
        if (at >= 0 && strcmp(name, whole)) at = -1;
    }
    return at;
}

static enum lk_code add_outcome(struct lk_t2i_tokens *t, const char *key, int32_t role, double value) {
    int32_t number;
    const size_t known = t->outcomes.n;
    LK_TRY(lk_grow(&t->list, &t->capacity, known + 1, sizeof *t->list));
    LK_TRY(lk_names_number(&t->outcomes, key, strlen(key), &number));
    struct lk_t2i_outcome *o = &t->list[number];
    if ((size_t)number == known) {
        o->sum = lk_store_alloc(&t->store, t->n_roles * sizeof *o->sum);
        o->n = lk_store_alloc(&t->store, t->n_roles * sizeof *o->n);
        if (!o->sum || !o->n) return out_of_memory();
    }
    o->sum[role] += value;
    o->n[role]++;
    return LK_OK;
}

struct columns {
    int model, prompt, attribute, group, arm, value;
};

static enum lk_code read_outcome(struct lk_t2i_tokens *t, const struct lk_csv *csv, const struct columns *c) {
    const char *value = lk_csv_cell(csv, c->value), *group = lk_csv_cell(csv, c->group);
    double number;
    int32_t prompt = prompt_of(t->prompts, lk_csv_cell(csv, c->prompt));
    if (prompt < 0)
        return lk_csv_fail(
            csv, c->prompt,
            "no prompt of the prompt table is \"%.80s\"; name the table that the results are of with --csv",
            lk_csv_cell(csv, c->prompt));
    if ((c->arm >= 0 && strcmp(lk_csv_cell(csv, c->arm), lk_t2i_arm_name(LK_T2I_NONE))) || !*value) return LK_OK;
    if (!lk_decimal_of_text(value, strlen(value), &number))
        return lk_csv_fail(csv, c->value, "expected a number, got \"%.64s\"", value);
    if (t->role_of[prompt] < 0) return LK_OK;
    struct lk_text key = {0};
    lk_text_add(&key, "%s\t%s\t%s%s", lk_csv_cell(csv, c->model), lk_csv_cell(csv, c->attribute),
                c->group < 0 ? "SPD" : "RR ", group);
    enum lk_code rc = key.rc ? key.rc : add_outcome(t, key.bytes, t->role_of[prompt], number);
    lk_text_free(&key);
    return rc;
}

enum lk_code lk_t2i_tokens_outcomes(struct lk_t2i_tokens *t, const char *text, size_t n, const char *name) {
    struct lk_csv csv;
    struct columns c;
    LK_TRY(lk_csv_open(&csv, text, n, name));
    c.group = lk_csv_column(&csv, "Group");
    c.arm = lk_csv_column(&csv, "Arm");
    enum lk_code rc = lk_csv_require(&csv, "Model", &c.model);
    if (!rc) rc = lk_csv_require(&csv, "Prompt", &c.prompt);
    if (!rc) rc = lk_csv_require(&csv, "Attribute", &c.attribute);
    if (!rc) rc = lk_csv_require(&csv, c.group < 0 ? "SPD" : "Base", &c.value);
    for (bool more = true; !rc && more;) {
        rc = lk_csv_next(&csv, &more);
        if (!rc && more) rc = read_outcome(t, &csv, &c);
    }
    lk_csv_close(&csv);
    return rc;
}

static double measure_of(const struct lk_t2i_together *pair, int measure) {
    return measure == LK_T2I_COUNT ? (double)pair->n_both : measure == LK_T2I_PMI ? pair->pmi : pair->cosine;
}

/* x, y [n_roles]: scratch. */
static enum lk_code correlate_one(const struct lk_t2i_tokens *t, size_t i, double *x, double *y, struct lk_test *test) {
    const struct lk_t2i_outcome *o = &t->list[i / LK_N_T2I_MEASURES / t->n_tokens];
    size_t token = i / LK_N_T2I_MEASURES % t->n_tokens, n = 0;
    for (size_t r = 0; r < t->n_roles; r++) {
        x[n] = measure_of(&t->pairs[r * t->n_tokens + token], (int)(i % LK_N_T2I_MEASURES));
        y[n] = o->n[r] ? o->sum[r] / (double)o->n[r] : NAN;
        n += !isnan(x[n]) && !isnan(y[n]);
    }
    return lk_spearman(x, y, n, test);
}

enum lk_code lk_t2i_tokens_correlate(struct lk_t2i_tokens *t) {
    const size_t n = t->outcomes.n * t->n_tokens * LK_N_T2I_MEASURES;
    double *x = lk_store_alloc(&t->store, (2 * t->n_roles + n) * sizeof *x), *p = x ? x + 2 * t->n_roles : NULL;
    t->tests = lk_store_alloc(&t->store, (n + 1) * sizeof *t->tests);
    t->adjusted = lk_store_alloc(&t->store, (n + 1) * sizeof *t->adjusted);
    if (!x || !t->tests || !t->adjusted) return out_of_memory();
    size_t n_defined = 0;
    for (size_t i = 0; i < n; i++) {
        LK_TRY(correlate_one(t, i, x, x + t->n_roles, &t->tests[i]));
        if (!t->tests[i].undefined) p[n_defined++] = t->tests[i].p;
    }
    LK_TRY(lk_adjust_p(p, n_defined, LK_ADJUST_BENJAMINI_HOCHBERG, p));
    for (size_t i = 0, k = 0; i < n; i++) t->adjusted[i] = t->tests[i].undefined ? NAN : p[k++];
    return LK_OK;
}

static void number(struct lk_text *out, double value) {
    lk_text_add(out, ",");
    if (isfinite(value)) lk_text_number(out, value);
}

static void text(struct lk_text *out, const char *cell) {
    lk_text_add(out, ",");
    lk_print_csv_field(out, cell, "");
}

#define CORRELATIONAL "correlational: says nothing about causes"

static void pair_line(const struct lk_t2i_tokens *t, size_t p, const char *encoder, struct lk_text *out) {
    const struct lk_t2i_together *pair = &t->pairs[p];
    lk_text_add(out, "pair");
    text(out, t->phrases.list[p / t->n_tokens]);
    text(out, t->tokens[p % t->n_tokens]);
    lk_text_add(out, ",%zu,%lld,%lld,%lld", t->prompts->n, (long long)pair->n_role, (long long)pair->n_token,
                (long long)pair->n_both);
    number(out, pair->pmi);
    number(out, pair->cosine);
    text(out, isnan(pair->cosine) ? "" : encoder);
    lk_text_add(out, ",,,,,,,,,");
    text(out, CORRELATIONAL);
    lk_text_add(out, "\r\n");
}

static void test_line(const struct lk_t2i_tokens *t, size_t i, const char *encoder, struct lk_text *out) {
    const struct lk_test *test = &t->tests[i];
    const int measure = (int)(i % LK_N_T2I_MEASURES);
    const char *model = t->outcomes.list[i / LK_N_T2I_MEASURES / t->n_tokens], *attribute = strchr(model, '\t') + 1;
    char name[2][512];
    snprintf(name[0], sizeof name[0], "%.*s", (int)(attribute - model - 1), model);
    snprintf(name[1], sizeof name[1], "%.*s", (int)strcspn(attribute, "\t"), attribute);
    lk_text_add(out, "spearman,");
    text(out, t->tokens[i / LK_N_T2I_MEASURES % t->n_tokens]);
    lk_text_add(out, ",,,,,,");
    text(out, measure == LK_T2I_COSINE ? encoder : "");
    text(out, name[0]);
    text(out, name[1]);
    text(out, strchr(attribute, '\t') + 1);
    text(out, measures[measure]);
    lk_text_add(out, ",%zu", test->n);
    number(out, test->undefined ? NAN : test->statistic);
    number(out, test->undefined ? NAN : test->p);
    number(out, t->adjusted[i]);
    text(out, test->undefined ? test->undefined : "");
    text(out, CORRELATIONAL);
    lk_text_add(out, "\r\n");
}

enum lk_code lk_t2i_tokens_csv(const struct lk_t2i_tokens *t, const char *encoder, struct lk_text *out) {
    lk_text_add(out,
                "record,role,token,n_prompts,n_role,n_token,n_both,pmi_bits,cosine,encoder,model,attribute,outcome,"
                "measure,n_roles,rho,p,adjusted_p,undefined,note\r\n");
    for (size_t p = 0; p < t->n_roles * t->n_tokens; p++) pair_line(t, p, encoder, out);
    for (size_t i = 0; t->tests && i < t->outcomes.n * t->n_tokens * LK_N_T2I_MEASURES; i++)
        if (*encoder || i % LK_N_T2I_MEASURES != LK_T2I_COSINE) test_line(t, i, encoder, out);
    return out->rc;
}

void lk_t2i_tokens_free(struct lk_t2i_tokens *t) {
    lk_names_free(&t->phrases);
    lk_names_free(&t->outcomes);
    lk_free(t->list);
    lk_store_free(&t->store);
    *t = (struct lk_t2i_tokens){0};
}
