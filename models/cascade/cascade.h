/* Stable Cascade: what its two repositories hold. Stage C (the prior) makes 16 channels of a small picture from a
 * prompt, stage B (the decoder) makes latents from those, stage A (vqgan) the picture. Private to models/cascade.
 * Source: diffusers pipeline_stable_cascade_prior.py, pipeline_stable_cascade.py. */
#pragma once

#include "models/cascade/paella.h"
#include "models/cascade/unet.h"
#include "models/family.h"
#include "models/text/clip_text.h"
#include "models/tokenizer/tokenizer.h"

#define LK_CASCADE_GRAIN 128 /* sides of pictures are multiples of it: then all levels are exact */

enum { LK_CASCADE_TEXT, LK_CASCADE_PRIOR, LK_CASCADE_VQGAN, LK_CASCADE_DECODER, LK_CASCADE_CHECKPOINTS };

struct lk_cascade {
    struct lk_tokenizer *tokenizer;
    struct lk_clip_ids clip_ids;
    struct lk_clip_text text; /* the prior's, always in f32; the decoder's repository has the same one again */
    struct lk_cascade_unet prior, decoder;
    struct lk_paella vqgan;
    struct lk_checkpoint checkpoints[LK_CASCADE_CHECKPOINTS];
};

/* A folder that holds both repositories, "stable-cascade" and "stable-cascade-prior", stands for the first of them:
 * *folder is replaced then. */
enum lk_code lk_cascade_enter(char **folder);
enum lk_code lk_cascade_open(struct lk_pipeline *pipeline, bool with_weights);
void lk_cascade_close(struct lk_pipeline *pipeline);

extern const struct lk_stages lk_cascade_stages;
