/* Qwen-Image and Qwen-Image-Edit: what their pipelines hold. Private to models/qwen_edit. Source: diffusers
 * pipeline_qwenimage_edit_plus.py, pipeline_qwenimage_edit.py, pipeline_qwenimage.py. */
#pragma once

#include "engine/flow_match.h"
#include "models/family.h"
#include "models/qwen_edit/transformer.h"
#include "models/text/qwen25_vl.h"
#include "models/text/qwen2_vl_image.h"
#include "models/tokenizer/tokenizer.h"
#include "models/vae/autoencoder_kl_qwen_image.h"

#define LK_QWEN_EDIT_MAX_LENGTH 1024 /* the pipelines' tokenizer_max_length, and the largest max_sequence_length */

enum lk_qwen_edit_kind {
    LK_QWEN_EDIT_PLUS, /* QwenImageEditPlusPipeline: 2509 and 2511, several images of sizes of their own */
    LK_QWEN_EDIT,      /* QwenImageEditPipeline: one image, which the text encoder sees at the VAE's size */
    LK_QWEN_IMAGE,     /* QwenImagePipeline: text to image */
};

struct lk_qwen_edit {
    enum lk_qwen_edit_kind kind;
    struct lk_flow_match_config scheduler;
    struct lk_qwen2_vl_processor processor; /* not for LK_QWEN_IMAGE */
    struct lk_tokenizer *tokenizer;         /* NULL without weights */
    struct lk_checkpoint checkpoints[3];    /* text_encoder, transformer, vae */
    struct lk_qwen25_vl text;
    struct lk_qwen_transformer transformer;
    struct lk_qwen_vae vae;
};

/* The configurations of the released models as JSON texts, for planning without files. They agree but for the
 * transformer of 2511. */
extern const char lk_qwen_edit_released_scheduler[], lk_qwen_edit_released_text_encoder[],
    lk_qwen_edit_released_transformer_2511[], lk_qwen_edit_released_transformer[], lk_qwen_edit_released_vae[],
    lk_qwen_edit_released_processor[];

enum lk_code lk_qwen_edit_open(struct lk_pipeline *pipeline, bool with_weights);
void lk_qwen_edit_close(struct lk_pipeline *pipeline);
unsigned lk_qwen_edit_quantized(const struct lk_pipeline *pipeline);
const struct lk_checkpoint *lk_qwen_edit_checkpoints(const struct lk_pipeline *pipeline);

/* A reference image as the model sees it. */
struct lk_qwen_edit_reference {
    int condition_width, condition_height; /* for the text encoder, before its own resize */
    struct lk_vlm_image grid;              /* patches of the vision tower; rows NULL */
    int64_t n_tokens;                      /* of the prompt */
    int width, height;                     /* for the VAE */
};
enum lk_code lk_qwen_edit_reference_size(const struct lk_qwen_edit *m, const struct lk_request *request, int i,
                                         struct lk_qwen_edit_reference *out);

/* Width and height as asked for, else those of a picture of 1024^2 pixels with the aspect of the last reference, in
 * whole tokens. */
enum lk_code lk_qwen_edit_picture_size(const struct lk_qwen_edit *m, const struct lk_request *request, int *width,
                                       int *height);

/* The image as the vision tower's rows (lk_malloc'ed), and as the VAE sees it. */
enum lk_code lk_qwen_edit_condition_rows(const struct lk_qwen_edit *m, const struct lk_image *image,
                                         const struct lk_qwen_edit_reference *reference, float **rows);
enum lk_code lk_qwen_edit_vae_image(const struct lk_image *image, const struct lk_qwen_edit_reference *reference,
                                    struct lk_image *out);

/* Leading tokens of the template, whose hidden states are dropped. */
int64_t lk_qwen_edit_drop(enum lk_qwen_edit_kind kind);

/* Token ids of the whole chat with the image tokens of each reference. *ids is lk_malloc'ed. The text-to-image pipeline
 * keeps LK_QWEN_EDIT_MAX_LENGTH after those that are dropped; edits are never cut. */
enum lk_code lk_qwen_edit_tokenize(const struct lk_qwen_edit *m, const char *prompt,
                                   const struct lk_qwen_edit_reference *references, int n_references, int32_t **ids,
                                   int64_t *n_ids);

/* How many there would be for a prompt of n_prompt_ids, as the released tokenizer counts. */
int64_t lk_qwen_edit_planned_ids(enum lk_qwen_edit_kind kind, const struct lk_qwen_edit_reference *references,
                                 int n_references, int64_t n_prompt_ids);

void lk_qwen_edit_defaults(struct lk_request *request);
extern const struct lk_stages lk_qwen_edit_stages;
