/* Files of prompt embeddings: what an edit's transformer is told of prompts and of the images to edit, encoded before
 * or elsewhere. Safetensors, in which a tensor's name is the digest of all that decides it beside the weights: token
 * ids, pixels, lengths. The metadata has the identity of the text encoder's weights (and with images of the VAE's),
 * dtype and architecture, each tensor's own SHA-256, and which rows stand for no word: all of an image's and of a
 * negative prompt's of CLIP. */
#pragma once

#include "models/common/kept.h"
#include "models/family.h"

#define LK_EMBEDS_FORMAT "prompt embeddings 1"

/* Those of `kept` that are prompts or images to edit. rewrites: as lk_queue has them; NULL. */
enum lk_code lk_embeds_write(const char *path, const struct lk_pipeline *pipeline, const struct lk_kept *kept,
                             const char *architecture, const char *rewrites);
/* How this prompt came of another one, if the file says so: JSON (lk_free), else NULL. LK_E_METADATA for a damaged
 * list.
 */
enum lk_code lk_embeds_rewrite(const char *path, const char *prompt, char **record);
/* Puts the file's entries before the others, to be found by lk_walk_find_prompt for requests that name the file.
 * LK_E_INPUT when they are of other weights or of another dtype, or were changed; LK_E_METADATA for another file. */
enum lk_code lk_embeds_read(const char *path, const struct lk_pipeline *pipeline, struct lk_kept **kept,
                            char architecture[32]);

/* The text encoder of a pipeline that is opened, in its folder; where that has none, and the file of embeddings that is
 * named stands in its place, the config that the file holds, and no weights: then *out is empty and
 * pipeline->text_identity set. in_part: shards may be missing. */
struct lk_config;
enum lk_code lk_text_encoder_config(const struct lk_pipeline *pipeline, const char *released, struct lk_config **out);
enum lk_code lk_text_encoder_open(struct lk_pipeline *pipeline, bool in_part, struct lk_checkpoint *out);

/* What a mitigation makes of a file with the embeddings of all base prompts: of every token the prompts' mean is
 * subtracted, by zscore it is also divided by their deviation, channel by channel, over the tokens of all prompts
 * without padding; then each token gets back the norm it had, of two text encoders' columns each by itself. Padding
 * stays, and of CLIP the beginning, the same in all prompts, and all behind the end. The result is read as any such
 * file, and its architecture says what was done: "avx2, center". none copies. */
enum lk_embeds_norm { LK_EMBEDS_NONE, LK_EMBEDS_CENTER, LK_EMBEDS_ZSCORE };
/* LK_E_METADATA for another file or one that is normalised already, LK_E_INPUT for bytes that were changed, LK_E_NOMEM.
 */
enum lk_code lk_embeds_normalize(const char *from, const char *to, enum lk_embeds_norm how);
/* rows [n, width] by themselves: the two steps. */
enum lk_code lk_rows_normalize(double *rows, int64_t n, int64_t width, enum lk_embeds_norm how);
void lk_rows_restore(double *rows, const double *norms, int64_t n, int64_t width);

/* Some phrases in the text encoder's eyes: of each the mean over its tokens of what the transformer is told of them
 * when the phrase alone is the prompt; the template's tokens and padding do not count. Of SDXL the projected state of
 * its second encoder ("text_embeds"), which CLIP was trained to compare. */
struct lk_phrases {
    double *means;  /* [n, width] */
    bool projected; /* text_embeds */
    int64_t width;
    char text_encoder[65]; /* identity of its weights */
    bool canvas;           /* the model edits only: it was shown a mid-gray picture */
};
/* Prepares dev. phrases [n], no two alike. LK_E_INPUT for one that has no tokens of its own, or too many. */
enum lk_code lk_phrases_embed(struct lk_pipeline *pipeline, struct lk_device *dev, const char *const *phrases, int n,
                              struct lk_phrases *out);
void lk_phrases_free(struct lk_phrases *phrases);
