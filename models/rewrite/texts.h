/* What a language model is told in order to rewrite the prompts of edits. The texts are the models' authors' and not
 * part of this program: a JSON file of the user's has them, which tests/golden/generate_rewrite_prompts.py makes from
 * the authors' source. Qwen's edit polisher:
 *
 *     {"style": "qwen-edit-2511", "source": "QwenLM/Qwen-Image@6b5e1f5", "system": "...", "user": "...{prompt}...",
 *      "reply": "json:Rewritten"}
 *
 * FLUX.2's caption upsampling has "system_t2i" and "system_i2i" instead of "system", and "reply": "text". Which style
 * it is, the texts' digests say; "custom:NAME" is taken as it stands. */
#pragma once

#include "engine/base/status.h"

struct lk_rewrite_texts {
    char *style, *source;
    char *system;          /* without pictures, and with them where the next one is NULL */
    char *system_pictures; /* NULL: the text follows the pictures in one message, as Qwen's polisher has it */
    char *user;            /* with {prompt} in it, once */
    char *key;             /* the reply is a JSON object with this member; NULL: the reply is the text */
    char sha256[65];       /* of all of them */
};

/* LK_E_NOT_FOUND and the like, LK_E_CONFIG_* for keys, LK_E_CHECKSUM for texts that are not the style's or lack
 * {prompt}. Free in any case. */
enum lk_code lk_rewrite_texts_read(struct lk_rewrite_texts *out, const char *path);
void lk_rewrite_texts_free(struct lk_rewrite_texts *texts);
