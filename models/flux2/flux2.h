/* FLUX.2-dev: what its pipeline holds. Private to models/flux2. Source: diffusers pipeline_flux2.py. */
#pragma once

#include "engine/flow_match.h"
#include "models/family.h"
#include "models/flux2/transformer.h"
#include "models/text/mistral.h"
#include "models/tokenizer/tokenizer.h"
#include "models/vae/autoencoder_kl.h"

struct lk_flux2 {
    struct lk_flow_match_config scheduler;
    struct lk_mistral_config text_config;
    struct lk_tokenizer *tokenizer;
    int32_t pad_id;
    struct lk_checkpoint checkpoints[3]; /* text_encoder, transformer, vae */
    struct lk_mistral text;
    struct lk_flux2_transformer transformer;
    struct lk_vae vae;
};

/* The configurations of black-forest-labs/FLUX.2-dev as JSON texts, for planning without files. */
extern const char lk_flux2_released_scheduler[], lk_flux2_released_text_encoder[], lk_flux2_released_transformer[],
    lk_flux2_released_vae[];

enum lk_code lk_flux2_open(struct lk_pipeline *pipeline, bool with_weights);
void lk_flux2_close(struct lk_pipeline *pipeline);
unsigned lk_flux2_quantized(const struct lk_pipeline *pipeline);
const struct lk_checkpoint *lk_flux2_checkpoints(const struct lk_pipeline *pipeline);

/* Binds as many text encoder layers as the request's out layers need. or_more: more that are bound already do as well.
 */
enum lk_code lk_flux2_bind_text(struct lk_pipeline *pipeline, const struct lk_request *request, bool or_more);

/* Token ids of a prompt in the model's chat template, at most max_length: n_cut more at the end are left out. *ids is
 * lk_malloc'ed. */
enum lk_code lk_flux2_tokenize(const struct lk_flux2 *model, const char *prompt, int max_length, int32_t **ids,
                               int *n_ids, int64_t *n_cut);

/* A reference image as the model sees it: shrunk to 1 megapixel if larger, cropped to a multiple of `multiple`, RGB.
 * The sizes can be asked for without pixels (out NULL), which is what planning does. */
struct lk_flux2_reference_size {
    int resized_width, resized_height; /* before the crop */
    int left, top, width, height;      /* the crop */
};
enum lk_code lk_flux2_reference_size(int width, int height, int multiple, struct lk_flux2_reference_size *size);
enum lk_code lk_flux2_prepare_reference(const struct lk_image *image, const struct lk_flux2_reference_size *size,
                                        struct lk_image *out);

/* The empirical mu from the number of noise tokens (references not counted) and steps. In double. */
double lk_flux2_mu(int64_t n_noise_tokens, int n_steps);
