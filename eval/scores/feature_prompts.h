/* What a vision-language model says of each source's features, and the prompt that asks an edit to keep them: records
 * of source_id, skin_tone, face_shape, eyes, nose, lips, hair, distinctive_features and identity_prompt, as JSON lines,
 * a JSON array or CSV. A record with no_feature_prompt true has none of them: its pairs failed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "eval/study/factors.h"
#include "engine/base/store.h"

struct lk_feature {
    const char *identity; /* trimmed; NULL without a record, or marked as without */
    bool none;            /* marked as without */
    bool leak;            /* names a demographic group, or is marked to */
};

struct lk_feature_prompts {
    struct lk_feature *of; /* [n_sources] */
    int n_sources;
    int n, n_none, n_leaks; /* prompts; sources without; prompts that leak */
    struct lk_store texts;
};

/* Whose ids the records have: the number of a source below n, -1 when there is none of this id. */
struct lk_source_ids {
    int n;
    int32_t (*find)(const void *context, const char *id, size_t n);
    const void *context;
};
extern const struct lk_source_ids lk_portrait_ids; /* the 84 cells, by every spelling of their names */

/* Strict: LK_E_INPUT (LK_E_JSON for what is none) with line, source and field at the first record that comes twice,
 * lacks one of the eight texts, or whose identity_prompt does not begin with "Maintain the person's" (either
 * apostrophe) or has more than two sentences; so is a file without a record. Free in any case. */
enum lk_code lk_feature_prompts_read(struct lk_feature_prompts *out, const char *text, size_t n, const char *name,
                                     const struct lk_source_ids *ids);
void lk_feature_prompts_free(struct lk_feature_prompts *prompts);

/* Whether a prompt names a demographic group: Asian, Latino, ..., or Black or White before man, woman, person and the
 * like; whole words in any letter case. */
bool lk_names_group(const char *prompt);
/* Sentences of a text: each ends with ".", "!" or "?" at the end of the text, or before white space that no small
 * letter follows ("e.g. olive" goes on); the last may end without. */
int lk_count_sentences(const char *text);
