/* Text from Qwen2.5-VL: one pass over the prompt, then a token at a time, each chosen by the sampler from the logits of
 * the last row. Everything on the device is planned and allocated before the first token: keys and values have room for
 * the prompt and max_new_tokens. */
#pragma once

#include "models/text/generation_config.h"
#include "models/text/qwen25_vl.h"

#define LK_DEFAULT_NEW_TOKENS 512 /* where neither the caller nor the model sets a limit */

/* Called after each token chosen (a stop id included), n from 1; another code than LK_OK ends the generation. */
typedef enum lk_code lk_token_fn(void *context, int32_t id, int64_t n);

struct lk_generate_request {
    const int32_t *ids; /* host [n_ids]: the prompt, image tokens repeated; NULL when planning */
    int64_t n_ids;
    const struct lk_qwen25_vl_image *images; /* in the order of their tokens; rows may be NULL when planning */
    int n_images;
    struct lk_generation_config config;
    enum lk_dtype compute; /* as the model was bound */
    int64_t n_valid_ids;   /* ids that the tokenizer has: no other is ever chosen */
    uint64_t seed;
    lk_token_fn *token; /* NULL: none */
    void *token_context;
};

struct lk_generation {
    int32_t *ids; /* what was chosen, a final stop id included; lk_malloc'ed */
    int64_t n;
    bool stopped; /* by a stop id, not by the limit */
    size_t peak_bytes;
};

/* Tokens that may be chosen at most: max_new_tokens, else what max_length leaves (at least 1), else
 * LK_DEFAULT_NEW_TOKENS. */
int64_t lk_generate_limit(const struct lk_generation_config *config, int64_t n_prompt);

/* Prepares dev and generates. m must be bound with its head. Traces: those of the prompt under "generate", and
 * generate.K.logits [1, vocab_size] before token K. On failure *out holds what was chosen until then. LK_E_USAGE for a
 * setting out of range, LK_E_NONFINITE, LK_E_FIT, LK_E_NOMEM or the callback's code. Free out with lk_generation_free.
 */
enum lk_code lk_generate(struct lk_device *dev, const struct lk_qwen25_vl *m, const struct lk_generate_request *request,
                         struct lk_generation *out);
void lk_generation_free(struct lk_generation *generation);
