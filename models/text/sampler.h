/* The next id from a model's logits: repetition penalty, temperature, top_k, top_p and the draw, in the order and with
 * the arithmetic (f32) of transformers' LogitsProcessors. */
#pragma once

#include "engine/rng.h"
#include "models/text/generation_config.h"

struct lk_sampler {
    struct lk_generation_config config;
    int64_t n_vocab; /* logits */
    int64_t n_valid; /* ids that exist: the tokenizer's; those above never come out */
    bool *seen;      /* per id: in the prompt or drawn */
    float *scores;   /* [n_vocab] after lk_sampler_process; -inf: cannot be drawn */
    struct lk_sampler_candidate {
        float score;
        int32_t id;
    } * candidates;       /* [n_vocab] */
    float *probabilities; /* [n_vocab] */
    struct lk_rng rng;
};

/* LK_E_USAGE for a setting out of range, LK_E_NOMEM. The seed means what torch.manual_seed means to torch.multinomial
 * on the CPU. Free with lk_sampler_free. */
enum lk_code lk_sampler_init(struct lk_sampler *s, const struct lk_generation_config *config, int64_t n_vocab,
                             int64_t n_valid, uint64_t seed);
void lk_sampler_free(struct lk_sampler *s);

/* Ids of the prompt, which the repetition penalty counts as it counts those drawn. Others than 0 .. n_vocab - 1 are
 * passed over. */
void lk_sampler_see(struct lk_sampler *s, const int32_t *ids, int64_t n);

/* s->scores from logits [n_vocab]. LK_E_NONFINITE when one of a valid id is NaN or Inf. */
enum lk_code lk_sampler_process(struct lk_sampler *s, const float *logits);
/* The id that the scores give: the first of the highest, or a draw; it counts as seen from now on. */
int32_t lk_sampler_pick(struct lk_sampler *s);

/* probabilities [n_vocab] of the scores: softmax in f32. */
void lk_sampler_probabilities(const struct lk_sampler *s, float *probabilities);
