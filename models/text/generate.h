/* Text from a language model that sees pictures: a pass over the prompt, then a token at a time, each chosen by the
 * sampler from the logits of the last row. Several prompts go together: a pass runs the new rows of all of them through
 * each layer at once, and a prompt whose reply ended makes room for the next. What is chosen for a prompt depends on
 * the prompt, its settings and its seed alone: not on the others, their order, or how many go together. Everything on
 * the device is planned and allocated before the first token: keys and values have room for the longest prompt and
 * reply in each slot. */
#pragma once

#include "models/text/generation_config.h"
#include "models/text/vlm.h"

#define LK_DEFAULT_NEW_TOKENS 512 /* where neither the caller nor the model sets a limit */

/* Called after each token chosen (a stop id included), n from 1; another code than LK_OK ends the generation. */
typedef enum lk_code lk_token_fn(void *context, int32_t id, int64_t n);

/* Steers one reply. */
struct lk_guide {
    void *context;
    /* scores [n] of the next choice: -INFINITY for what must not be chosen; something must stay. NULL: all may be. */
    void (*allow)(void *context, float *scores, int64_t n);
    /* The id was chosen; logits [n]: as the model gave them, before any setting. *forced, *n_forced: tokens that follow
     * without a choice, valid until the next call. *end: the reply is complete with them. */
    enum lk_code (*chosen)(void *context, int32_t id, const float *logits, int64_t n, const int32_t **forced,
                           int64_t *n_forced, bool *end);
    int64_t max_forced; /* at once */
};

struct lk_generate_request {
    const int32_t *ids; /* host [n_ids]: the prompt, image tokens repeated; NULL when planning */
    int64_t n_ids;
    const struct lk_vlm_image *images; /* in the order of their tokens; rows may be NULL when planning */
    int n_images;
    struct lk_generation_config config;
    int64_t n_valid_ids; /* ids that the tokenizer has: no other is ever chosen */
    uint64_t seed;
    /* The prompt's beginning, n_shared ids with n_shared_images images, is that of every request with this key (0:
     * none): of neighbours it is computed once. */
    uint64_t shared_key;
    int64_t n_shared; /* less than n_ids */
    int n_shared_images;
    lk_token_fn *token; /* NULL: none */
    void *token_context;
    const struct lk_guide *guide; /* NULL: none */
};

struct lk_generation {
    int32_t *ids; /* what was chosen and forced, a final stop id included; lk_malloc'ed */
    int64_t n;
    bool stopped;      /* by a stop id or the guide, not by the limit */
    size_t peak_bytes; /* of the arena, over all */
};

/* Tokens that may be chosen at most: max_new_tokens, else what max_length leaves (at least 1), else
 * LK_DEFAULT_NEW_TOKENS. */
int64_t lk_generate_limit(const struct lk_generation_config *config, int64_t n_prompt);

/* Prepares dev and generates a reply to each of n requests, n_slots of them together (1 to LK_VLM_MAX_SEQUENCES).
 * compute: as the model was bound, which must have its head. Traces of a single request: those of the prompt under
 * "generate", and generate.K.logits [1, vocab_size] before token K. On failure out holds what was chosen until then.
 * LK_E_USAGE for a setting out of range, LK_E_NONFINITE, LK_E_FIT, LK_E_NOMEM or a callback's code. Free each of out
 * [n] with lk_generation_free, in any case. */
enum lk_code lk_generate(struct lk_device *dev, const struct lk_vlm *m, enum lk_dtype compute,
                         const struct lk_generate_request *requests, int n, int n_slots, struct lk_generation *out);
/* What that takes on `target`, in *out's stages and memory: from shapes alone, no weight is read. Requests may lack ids
 * and rows. LK_E_USAGE as above. */
struct lk_plan;
enum lk_code lk_generate_plan(const struct lk_device *target, const struct lk_vlm *m, enum lk_dtype compute,
                              const struct lk_generate_request *requests, int n, int n_slots, struct lk_plan *out);
void lk_generation_free(struct lk_generation *generation);
