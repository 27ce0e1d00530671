/* CLIP whole: a picture and a text as vectors that point the same way where the text describes the picture. Computes in
 * f32 on the CPU. Source: transformers modeling_clip.py and CLIPImageProcessor with Pillow's bicubic.
 *
 *     struct lk_clip *clip;
 *     LK_TRY(lk_clip_open(&clip, "openai/clip-vit-large-patch14", 0));
 *     float text[LK_CLIP_WIDTH_MAX], picture[LK_CLIP_WIDTH_MAX];
 *     if (!(rc = lk_clip_text(clip, "a photo of a thief", text, &n_cut))) rc = lk_clip_image(clip, &image, picture);
 *     cosine = lk_clip_cosine(clip, text, picture);
 *     lk_clip_close(clip); */
#pragma once

#include "engine/image/image.h"

enum { LK_CLIP_WIDTH_MAX = 4096 };

struct lk_clip;

/* A folder or a name of the hub's with config.json, preprocessor_config.json, model.safetensors and the tokenizer.
 * n_threads 0: all. */
enum lk_code lk_clip_open(struct lk_clip **out, const char *model, int n_threads);
void lk_clip_close(struct lk_clip *clip);
/* Digests of the configs and of the weights. */
const char *lk_clip_configs(const struct lk_clip *clip);
enum lk_code lk_clip_identity(const struct lk_clip *clip, char out[65]);

/* The projected states. *n_cut: tokens of the text beyond the 75 that CLIP reads. */
enum lk_code lk_clip_text(struct lk_clip *clip, const char *text, float out[LK_CLIP_WIDTH_MAX], int *n_cut);
enum lk_code lk_clip_image(struct lk_clip *clip, const struct lk_image *image, float out[LK_CLIP_WIDTH_MAX]);
/* Of two such states; NaN where one is zero. */
double lk_clip_cosine(const struct lk_clip *clip, const float *a, const float *b);
