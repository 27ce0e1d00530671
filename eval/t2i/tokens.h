/* Words of roles beside words of demographic groups: how often they stand in one prompt, how alike a text encoder finds
 * them, and whether that goes with who is depicted. Correlational: none of it says what causes what.
 *
 *     struct lk_t2i_tokens t;
 *     LK_TRY(lk_t2i_tokens_count(&t, &prompts, NULL, 0));
 *     // with a model: lk_phrases_embed(..., t.phrases.list, (int)t.phrases.n, &e), lk_t2i_tokens_cosines(&t, e.means,
 * e.width)
 *     // with results of t2i metrics: lk_t2i_outcomes_read(&t.outcomes, text, n, "t2i_spd.csv"),
 *     // lk_t2i_tokens_correlate(&t)
 *     rc = lk_t2i_tokens_csv(&t, "flux2-dev ...", &text);
 *     lk_t2i_tokens_free(&t); */
#pragma once

#include "eval/t2i/outcomes.h"

/* A role and a token. */
struct lk_t2i_together {
    int64_t n_role, n_token, n_both; /* prompts that have the role's words, the token's, those of both */
    double pmi;                      /* log2(n n_both / (n_role n_token)); NaN when they never meet */
    double cosine;                   /* of their embeddings; NaN: not known */
};

enum lk_t2i_measure { LK_T2I_COUNT, LK_T2I_PMI, LK_T2I_COSINE, LK_N_T2I_MEASURES };

struct lk_t2i_tokens {
    const struct lk_t2i_prompts *prompts;
    struct lk_names phrases; /* the roles without their articles, then the tokens that are no role */
    size_t n_roles, n_tokens;
    const char **tokens;
    struct lk_t2i_together *pairs;   /* [n_roles, n_tokens] */
    int32_t *role_of;                /* [prompts->n]: -1 for none */
    struct lk_t2i_outcomes outcomes; /* by role */
    struct lk_test *tests;           /* [outcomes.names.n, n_tokens, LK_N_T2I_MEASURES]; NULL: not correlated */
    double *adjusted;                /* their p by Benjamini and Hochberg, NaN where there is none */
    struct lk_store store;
};

/* The first place from `at` on in text where these whole words stand, in any letter case; NULL. */
const char *lk_t2i_find_words(const char *text, const char *at, const char *words);

/* Looks for whole words, in any letter case, in natural_prompt. The roles are those of role_label. tokens [n_tokens];
 * NULL: male, female, man, woman, young, old, and the perceived races. LK_E_INPUT: no role, an empty token, one that is
 * given twice. Prompts are borrowed. out is empty after a failure. */
enum lk_code lk_t2i_tokens_count(struct lk_t2i_tokens *out, const struct lk_t2i_prompts *prompts,
                                 const char *const *tokens, size_t n_tokens);
/* means [phrases.n, width]. */
enum lk_code lk_t2i_tokens_cosines(struct lk_t2i_tokens *t, const double *means, int64_t width);
/* Spearman over the roles of each measure with each outcome, an outcome of a role being the mean of its prompts'. */
enum lk_code lk_t2i_tokens_correlate(struct lk_t2i_tokens *t);
/* token_corr.csv: lines "pair", then "spearman". encoder: what made the cosines, "" for none. */
enum lk_code lk_t2i_tokens_csv(const struct lk_t2i_tokens *t, const char *encoder, struct lk_text *out);
void lk_t2i_tokens_free(struct lk_t2i_tokens *t);
