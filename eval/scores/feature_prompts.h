/* What a vision-language model says of each source's features, and the prompt that asks an edit to keep them: records
 * of source_id, skin_tone, face_shape, eyes, nose, lips, hair, distinctive_features and identity_prompt, as JSON lines,
 * a JSON array or CSV. A record with no_feature_prompt true has none of them: its pairs failed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "eval/study/factors.h"
#include "engine/base/store.h"

struct lk_feature_prompts {
    const char *identity[LK_N_SOURCES]; /* trimmed; NULL without a record, or marked as without */
    bool none[LK_N_SOURCES];            /* marked as without */
    bool leak[LK_N_SOURCES];            /* names a demographic group, or is marked to */
    int n, n_none, n_leaks;             /* prompts; sources without; prompts that leak */
    struct lk_store texts;
};

/* Strict: LK_E_INPUT (LK_E_JSON for what is none) with line, source and field at the first record that comes twice,
 * lacks one of the eight texts, or whose identity_prompt does not begin with "Maintain the person's" (either
 * apostrophe) or has more than two sentences; so is a file without a record. Free in any case. */
enum lk_code lk_feature_prompts_read(struct lk_feature_prompts *out, const char *text, size_t n, const char *name);
void lk_feature_prompts_free(struct lk_feature_prompts *prompts);

/* Whether a prompt names a demographic group: Asian, Latino, ..., or Black or White before man, woman, person and the
 * like; whole words in any letter case. */
bool lk_names_group(const char *prompt);
/* Sentences of a text: each ends with ".", "!" or "?" at the end of the text, or before white space that no small
 * letter follows ("e.g. olive" goes on); the last may end without. */
int lk_count_sentences(const char *text);
