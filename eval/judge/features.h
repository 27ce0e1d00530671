/* What a model that sees says of a source's features, and the prompt that it makes of them: eight texts as JSON, of
 * which the last asks an edit to keep the person's identity. Read strictly; asked again when it is not valid or names a
 * demographic group. What comes of it is what eval/scores/feature_prompts.h reads. */
#pragma once

#include "engine/base/store.h"
#include "eval/judge/seeing.h"

enum { LK_N_FEATURES = 8, LK_FEATURE_ATTEMPTS = 4, LK_FEATURE_NEW_TOKENS = 512 };
extern const char *const lk_feature_keys[LK_N_FEATURES]; /* the last is "identity_prompt" */

/* The question, byte for byte; of the program's own data, lk_free. LK_E_NOMEM, LK_E_INTERNAL. */
enum lk_code lk_feature_question(char **out);

struct lk_features {
    const char *texts[LK_N_FEATURES]; /* in the store given; NULL where the answer has none */
    bool fields;                      /* the first seven are there, whatever the prompt is */
    bool leak;                        /* the prompt names a demographic group */
};
/* One answer. LK_E_INPUT with the reason when it is not valid; texts are what was found all the same. */
enum lk_code lk_features_read(const char *answer, size_t n, struct lk_store *store, struct lk_features *out);

/* What came of a source. */
struct lk_extracted {
    char *raw[LK_FEATURE_ATTEMPTS]; /* lk_malloc'ed */
    char error[LK_FEATURE_ATTEMPTS][256];
    int n_attempts;
    enum lk_code code; /* the picture could not be shown; `reason` says why */
    char reason[512];
    struct lk_store store;
    struct lk_features features;
    bool found;    /* a valid prompt, leaking or not; otherwise: */
    bool composed; /* made of the seven fields */
};
/* Asks about n pictures with the judge's model, seed 1 + attempt; mode free, or forced without a server. Codes as
 * lk_judge_see. Free each of out [n] in any case. */
enum lk_code lk_features_extract(const struct lk_seeing_judge *judge, const char *question,
                                 const struct lk_image *pictures, int n, struct lk_extracted *out);
void lk_extracted_free(struct lk_extracted *e);
/* The verdict of one more answer of a source: whether it must be asked again. LK_E_NOMEM. */
enum lk_code lk_extracted_add(struct lk_extracted *e, const char *answer, size_t n, bool *again);
/* After the last attempt: a prompt made of the fields where none was valid. LK_E_NOMEM. */
enum lk_code lk_extracted_end(struct lk_extracted *e);
