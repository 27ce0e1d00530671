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

const char *lk_t2i_find_words(const char *text, const char *at, const char *words) {
    const size_t n = strlen(words);
    for (; *at; at++)
        if (!strncasecmp(at, words, n) && (at == text || !in_word(at[-1])) && !in_word(at[n])) return at;
    return NULL;
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
        for (size_t i = 0; i < n; i++) {
            const char *prompt = t->prompts->list[i].cells[LK_T2I_NATURAL_PROMPT];
            has[w * n + i] =
                lk_t2i_find_words(prompt, prompt, w < t->n_roles ? t->phrases.list[w] : t->tokens[w - t->n_roles]);
        }
    for (size_t r = 0; r < t->n_roles; r++)
        for (size_t k = 0; k < t->n_tokens; k++)
            count_pair(has + r * n, has + (t->n_roles + k) * n, n, &t->pairs[r * t->n_tokens + k]);
    return LK_OK;
}

enum lk_code lk_t2i_tokens_count(struct lk_t2i_tokens *out, const struct lk_t2i_prompts *prompts,
                                 const char *const *tokens, size_t n_tokens) {
    *out = (struct lk_t2i_tokens){.prompts = prompts};
    enum lk_code rc = count(out, tokens, n_tokens);
    out->outcomes = (struct lk_t2i_outcomes){.prompts = prompts, .unit_of = out->role_of, .n_units = out->n_roles};
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

static double measure_of(const struct lk_t2i_together *pair, int measure) {
    return measure == LK_T2I_COUNT ? (double)pair->n_both : measure == LK_T2I_PMI ? pair->pmi : pair->cosine;
}

enum lk_code lk_t2i_tokens_correlate(struct lk_t2i_tokens *t) {
    const size_t n = t->outcomes.names.n * t->n_tokens * LK_N_T2I_MEASURES;
    double *x = lk_store_alloc(&t->store, 3 * t->n_roles * sizeof *x);
    t->tests = lk_store_alloc(&t->store, (n + 1) * sizeof *t->tests);
    t->adjusted = lk_store_alloc(&t->store, (n + 1) * sizeof *t->adjusted);
    if (!x || !t->tests || !t->adjusted) return out_of_memory();
    for (size_t i = 0; i < n; i++) {
        const size_t token = i / LK_N_T2I_MEASURES % t->n_tokens;
        for (size_t r = 0; r < t->n_roles; r++)
            x[r] = measure_of(&t->pairs[r * t->n_tokens + token], (int)(i % LK_N_T2I_MEASURES));
        LK_TRY(lk_t2i_outcomes_correlate(&t->outcomes, i / LK_N_T2I_MEASURES / t->n_tokens, x, x + t->n_roles,
                                         &t->tests[i]));
    }
    return lk_t2i_adjust(t->tests, n, t->adjusted);
}

static void pair_line(const struct lk_t2i_tokens *t, size_t p, const char *encoder, struct lk_text *out) {
    const struct lk_t2i_together *pair = &t->pairs[p];
    lk_text_add(out, "pair");
    lk_t2i_cell_text(out, t->phrases.list[p / t->n_tokens]);
    lk_t2i_cell_text(out, t->tokens[p % t->n_tokens]);
    lk_text_add(out, ",%zu,%lld,%lld,%lld", t->prompts->n, (long long)pair->n_role, (long long)pair->n_token,
                (long long)pair->n_both);
    lk_t2i_cell_number(out, pair->pmi);
    lk_t2i_cell_number(out, pair->cosine);
    lk_t2i_cell_text(out, isnan(pair->cosine) ? "" : encoder);
    lk_text_add(out, ",,,,,,,,,");
    lk_t2i_cell_text(out, LK_T2I_CORRELATIONAL);
    lk_text_add(out, "\r\n");
}

static void test_line(const struct lk_t2i_tokens *t, size_t i, const char *encoder, struct lk_text *out) {
    const int measure = (int)(i % LK_N_T2I_MEASURES);
    lk_text_add(out, "spearman,");
    lk_t2i_cell_text(out, t->tokens[i / LK_N_T2I_MEASURES % t->n_tokens]);
    lk_text_add(out, ",,,,,,");
    lk_t2i_cell_text(out, measure == LK_T2I_COSINE ? encoder : "");
    lk_t2i_cells_outcome(out, &t->outcomes, i / LK_N_T2I_MEASURES / t->n_tokens);
    lk_t2i_cell_text(out, measures[measure]);
    lk_t2i_cells_test(out, &t->tests[i], t->adjusted[i]);
}

enum lk_code lk_t2i_tokens_csv(const struct lk_t2i_tokens *t, const char *encoder, struct lk_text *out) {
    lk_text_add(out,
                "record,role,token,n_prompts,n_role,n_token,n_both,pmi_bits,cosine,encoder,model,attribute,outcome,"
                "measure,n_roles,rho,p,adjusted_p,undefined,note\r\n");
    for (size_t p = 0; p < t->n_roles * t->n_tokens; p++) pair_line(t, p, encoder, out);
    for (size_t i = 0; t->tests && i < t->outcomes.names.n * t->n_tokens * LK_N_T2I_MEASURES; i++)
        if (*encoder || i % LK_N_T2I_MEASURES != LK_T2I_COSINE) test_line(t, i, encoder, out);
    return out->rc;
}

void lk_t2i_tokens_free(struct lk_t2i_tokens *t) {
    lk_names_free(&t->phrases);
    lk_t2i_outcomes_free(&t->outcomes);
    lk_store_free(&t->store);
    *t = (struct lk_t2i_tokens){0};
}
