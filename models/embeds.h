/* Files of prompt embeddings: what an edit's transformer is told, encoded before or elsewhere. Safetensors, in which a
 * tensor's name is the digest of all that decides it beside the weights: token ids, pixels, lengths. The metadata has
 * the identity of the text encoder's weights, dtype and architecture, and each tensor's own SHA-256. */
#pragma once

#include "models/common/kept.h"
#include "models/family.h"

/* Those of `kept` that are prompts. */
enum lk_code lk_embeds_write(const char *path, const struct lk_pipeline *pipeline, const struct lk_kept *kept,
                             const char *architecture);
/* Puts the file's entries before the others, to be found by lk_walk_find_prompt for requests that name the file.
 * LK_E_INPUT when they are of other weights or of another dtype, or were changed; LK_E_METADATA for another file. */
enum lk_code lk_embeds_read(const char *path, const struct lk_pipeline *pipeline, struct lk_kept **kept,
                            char architecture[16]);
