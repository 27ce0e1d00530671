/* The language model of Qwen2.5-VL token by token: keys and values of earlier tokens are kept, so that each step of
 * generation runs one row. The bits of a row are those of a pass over all tokens at once.
 *
 *     lk_qwen25_vl_prefill(dev, m, &prompt, &cache, &h);             // cache.n = prompt.n
 *     last = lk_tensor_rows(&h, prompt.n - 1, 1);
 *     lk_qwen25_vl_logits(dev, m, &last, &logits);
 *     lk_qwen25_vl_decode(dev, m, id, cache.n + delta, &cache, &row); // cache.n grows by one */
#pragma once

#include "models/text/qwen25_vl.h"

/* Keys (rotated) and values of all layers, in memory of the caller's. */
struct lk_qwen25_vl_cache {
    struct lk_tensor *k, *v; /* per layer [capacity, kv_heads, head_dim] */
    int64_t n;               /* rows in use */
};

/* Runs a whole prompt into an empty cache. h [n, hidden]: the state after the last layer, before the final norm. */
enum lk_code lk_qwen25_vl_prefill(struct lk_device *dev, const struct lk_qwen25_vl *m,
                                  const struct lk_qwen25_vl_prompt *prompt, struct lk_qwen25_vl_cache *cache,
                                  const struct lk_tensor *h);

/* One more token, at `position` on all three axes: the number of cached rows plus delta, delta = *next of
 * lk_qwen25_vl_positions less the prompt's length. h [1, hidden]. */
enum lk_code lk_qwen25_vl_decode(struct lk_device *dev, const struct lk_qwen25_vl *m, int32_t id, int32_t position,
                                 struct lk_qwen25_vl_cache *cache, const struct lk_tensor *h);

/* logits [1, vocab_size] of a row of h: final norm and output head. The model must be bound with its head. */
enum lk_code lk_qwen25_vl_logits(struct lk_device *dev, const struct lk_qwen25_vl *m, const struct lk_tensor *h,
                                 const struct lk_tensor *logits);
