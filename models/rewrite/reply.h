/* What a model's reply says that the rewritten prompt is, by the authors' own lines, and pictures as their models see
 * them. */
#pragma once

#include "engine/image/image.h"

/* Qwen's: "```json" and "```" are taken out wherever they stand, the rest is JSON as Python's json reads it, its member
 * `key` a text; white space at its ends goes, each newline becomes a space. *out NULL: there is none such, and `why`
 * says what was expected. *out is lk_malloc'ed. LK_E_NOMEM. */
enum lk_code lk_rewrite_reply_json(const char *reply, size_t n, const char *key, char **out, const char **why);

/* FLUX.2's: as transformers' clean_up_tokenization leaves it; *out NULL: nothing but white space. */
enum lk_code lk_rewrite_reply_text(const char *reply, size_t n, char **out, const char **why);

/* As Qwen's polisher sends it: a side of more than 2,000 pixels makes it smaller, its sides exchanged, as the authors'
 * code does. *out without pixels: as it is. */
enum lk_code lk_rewrite_picture_qwen(const struct lk_image *image, struct lk_image *out);

/* As FLUX.2 sees all of them: side by side on white, at most 768 x 768 pixels. *out without pixels: the first, as it
 * is.
 */
enum lk_code lk_rewrite_picture_flux2(const struct lk_image *images, int n, struct lk_image *out);
