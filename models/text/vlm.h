/* A language model that sees pictures, whichever family: what generation asks of it. A family gives a view of its bound
 * model (lk_qwen25_vl_view, lk_mistral3_view); the passes over it are written once.
 *
 * Keys and values of earlier tokens are kept, so that each step of generation runs the new rows only. The bits of a row
 * are those of a pass over all tokens of its sequence at once, alone: they depend neither on what was cached how, nor
 * on the other sequences of the pass. */
#pragma once

#include "models/text/decoder.h"

#define LK_VLM_MAX_IMAGES    10
#define LK_VLM_MAX_SEQUENCES 64 /* in one pass */

/* An image as a vision tower takes it. */
struct lk_vlm_image {
    int grid_h, grid_w; /* patches; multiples of what is merged */
    const float *rows;  /* host f32 [grid_h * grid_w, values of a patch], in the family's order; NULL when planning */
};

/* A prompt: ids with every image token already repeated once per row of its image's features. */
struct lk_vlm_prompt {
    const char *name;   /* "cond", "uncond": prefix of its traces; NULL: none */
    const int32_t *ids; /* host [n]; NULL when planning (image tokens are taken to come first) */
    int64_t n;
    const struct lk_vlm_image *images; /* in the order of their tokens; only the grids are looked at */
    int n_images;
    const struct lk_tensor *features; /* [image tokens of all images, hidden]; NULL without images */
    /* A token that gets position 1 on all axes and does not advance the counter, -1: none. Step1X-Edit takes tokens
     * with id 0 ("!") for padding here, though not in attention. */
    int32_t uncounted_id;
};

struct lk_vlm {
    const char *name; /* "qwen2.5-vl" */
    const void *model;
    const struct lk_tensor *embed_tokens, *norm, *lm_head;
    int64_t vocab_size, hidden_size, n_layers, n_heads, n_kv_heads, head_dim;
    double eps, rope_theta;
    int rope_sections[3]; /* frequencies of each axis of positions, together head_dim / 2 */
    int32_t image_token_id;
    void (*layer)(const void *model, int64_t i, struct lk_decoder_layer *out);
    /* Rows of an image's features. */
    int64_t (*image_tokens)(const void *model, const struct lk_vlm_image *image);
    /* features [image_tokens, hidden] of image number `index` (for the traces vision.INDEX.*). */
    enum lk_code (*vision)(struct lk_device *dev, const void *model, const struct lk_vlm_image *image, int index,
                           const struct lk_tensor *features);
    /* Positions of the prompt on three axes. *next gets the counter after the last token. LK_E_INTERNAL when image
     * tokens and images do not match. */
    enum lk_code (*positions)(const void *model, const struct lk_vlm_prompt *prompt, int32_t (*positions)[3],
                              int32_t *next);
};

/* Keys (rotated) and values of all layers, in memory of the caller's: each has room for several sequences, one after
 * the other. */
struct lk_vlm_cache {
    struct lk_tensor *k, *v; /* per layer [rows of all sequences, kv_heads, head_dim] */
};

/* h [n, hidden]: embeddings of the prompt's tokens from number `first` on, n of them, images in their places. Images
 * that begin before `first` are taken to end before it. */
enum lk_code lk_vlm_embed(struct lk_device *dev, const struct lk_vlm *m, const struct lk_vlm_prompt *prompt,
                          int64_t first, const struct lk_tensor *h);

/* All layers over h [rows of all sequences, hidden], in place: the state after the last layer, before the final norm.
 * positions host [rows][3], NULL when planning. cache NULL: one sequence that nothing comes before. sequences: whose
 * rows follow each other in h. name: of the traces NAME.text_encoder.hidden.N, the state after N layers but the last;
 * NULL: none. */
enum lk_code lk_vlm_layers(struct lk_device *dev, const struct lk_vlm *m, const struct lk_tensor *h,
                           const int32_t (*positions)[3], const struct lk_vlm_cache *cache,
                           const struct lk_decoder_rows *sequences, int n_sequences, const char *name);

/* logits [n, vocab_size] of rows of h [n, hidden]: final norm and output head. */
enum lk_code lk_vlm_logits(struct lk_device *dev, const struct lk_vlm *m, const struct lk_tensor *h,
                           const struct lk_tensor *logits);
