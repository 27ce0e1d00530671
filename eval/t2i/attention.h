/* How much of a model's attention goes to the words of a demographic group while it makes the pictures of a prompt, and
 * whether that goes with who is depicted. Correlational.
 *
 *     struct lk_t2i_attention t;
 *     LK_TRY(lk_t2i_attention_init(&t, &prompts));
 *     // for each picture: lk_t2i_attention_add(&t, prompt, &seen)
 *     // with results of t2i metrics: lk_t2i_outcomes_read(&t.outcomes, text, n, "t2i_spd.csv")
 *     rc = lk_t2i_attention_csv(&t, &text);
 *     lk_t2i_attention_free(&t); */
#pragma once

#include "eval/t2i/outcomes.h"

enum { LK_T2I_LAYER = 32 }; /* of a layer's name */

/* What was seen of a picture. */
struct lk_t2i_seen {
    int n_tokens, n_layers;
    const char (*layers)[LK_T2I_LAYER]; /* [n_layers] */
    const int *first;                   /* [n_layers + 1]: where a layer's heads begin, and how many there are in all */
    const double *weights, *shares;     /* of each head; shares: of all that the prompt's words get */
};

struct lk_t2i_attention {
    struct lk_t2i_outcomes outcomes; /* by prompt */
    int n_layers, n_heads;           /* heads of all layers */
    char (*layers)[LK_T2I_LAYER];
    int *first;
    double *sum, *share_sum; /* [prompts->n, n_heads + 1], over a prompt's pictures; the last one is the mean over the
                                layers of the mean of a layer's heads */
    int64_t *n;              /* [prompts->n] */
    int *n_tokens;
};

/* Prompts are borrowed. lk_t2i_attention_free in any case. */
enum lk_code lk_t2i_attention_init(struct lk_t2i_attention *t, const struct lk_t2i_prompts *prompts);
/* A picture of a prompt, of one model. */
enum lk_code lk_t2i_attention_add(struct lk_t2i_attention *t, size_t prompt, const struct lk_t2i_seen *seen);
/* attn_corr.csv: lines "prompt" (mean over all layers and heads), "head" (mean over the prompts), then "spearman" over
 * the prompts, of the mean of all heads and of each head, with each outcome; p is adjusted among the former and among
 * the latter. */
enum lk_code lk_t2i_attention_csv(const struct lk_t2i_attention *t, struct lk_text *out);
void lk_t2i_attention_free(struct lk_t2i_attention *t);
