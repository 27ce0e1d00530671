/* Step1X-Edit: what its pipeline holds. Private to models/step1x. Source: the diffusers fork of the model's authors,
 * pipeline_step1x_edit_v1p2.py (branch step1xedit_v1p2). */
#pragma once

#include "engine/flow_match.h"
#include "engine/rng.h"
#include "models/family.h"
#include "models/step1x/prompt.h"
#include "models/step1x/transformer.h"
#include "models/text/qwen25_vl.h"
#include "models/text/qwen2_vl_image.h"
#include "models/vae/autoencoder_kl.h"

#define LK_STEP1X_PREFIX_TOKENS 90   /* of the chat string, whose states the transformer does not see */
#define LK_STEP1X_MAX_TOKENS    2048 /* that it sees at most, unless the request says otherwise */
/* Planning without a tokenizer or a prompt: ids after the prefix that are not the image's, with a prompt of 10 tokens.
 */
#define LK_STEP1X_PLANNED_TOKENS 23

struct lk_step1x {
    struct lk_flow_match_config scheduler;
    struct lk_qwen25_vl_config text_config;
    struct lk_qwen2_vl_processor processor; /* with the pixels that an edit's pictures get */
    struct lk_tokenizer *tokenizer;
    struct lk_checkpoint checkpoints[3]; /* text_encoder, transformer, vae */
    struct lk_qwen25_vl text;
    bool v1p1; /* needs other steps than these: planned, not run */
    struct lk_step1x_transformer transformer;
    struct lk_vae vae;
};

/* The configurations of stepfun-ai/Step1X-Edit-v1p2 as JSON texts, for planning without files; v1p1 differs in its
 * transformer. */
extern const char lk_step1x_released_scheduler[], lk_step1x_released_text_encoder[],
    lk_step1x_released_transformer_v1p2[], lk_step1x_released_transformer_v1p1[], lk_step1x_released_vae[],
    lk_step1x_released_processor[];

enum lk_code lk_step1x_open(struct lk_pipeline *pipeline, bool with_weights);
void lk_step1x_close(struct lk_pipeline *pipeline);
unsigned lk_step1x_quantized(const struct lk_pipeline *pipeline);
const struct lk_checkpoint *lk_step1x_checkpoints(const struct lk_pipeline *pipeline);

/* The picture of `width` x `height` that the vision tower sees, cut into rows (lk_malloc): the source resized by
 * Pillow's Lanczos in its own mode, or black where there is none. Without `rows` only the grid is told. */
enum lk_code lk_step1x_vision_rows(const struct lk_step1x *m, const struct lk_image *source, int width, int height,
                                   float **rows, struct lk_vlm_image *out);

/* Places of a prompt's rows in the transformer's rotation: ids and positions (in the language model) [n] are those from
 * LK_STEP1X_PREFIX_TOKENS on. Text stands at negative times that end in -1; an image token also at the
 * point of the latents' grid where its patch lies in the picture of width x height. */
void lk_step1x_text_positions(const struct lk_step1x *m, const int32_t *ids, int32_t (*positions)[3], int64_t n,
                              const struct lk_vlm_image *image, int width, int height, float (*out)[LK_STEP1X_AXES]);

/* One edit of `source` (NULL: none) with a prompt, noise from `rng`; result->image and what describes it. */
struct lk_step1x_edit {
    const struct lk_image *source;
    const char *prompt;
    struct lk_rng *rng;
};
enum lk_code lk_step1x_edit_once(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                                 const struct lk_step1x_edit *edit, struct lk_result *result);

/* Edits with thinking or reflection, as request says. */
struct lk_step1x_instructions;
enum lk_code lk_step1x_think_and_edit(struct lk_pipeline *pipeline, struct lk_device *dev,
                                      const struct lk_request *request,
                                      const struct lk_step1x_instructions *instructions, struct lk_result *result);

/* Sides of PIL's Image.thumbnail((1024, 1024)). */
void lk_step1x_thumbnail_size(int width, int height, int *out_width, int *out_height);

extern const struct lk_stages lk_step1x_stages;
