/* Step1X-Edit with thinking and reflection: the calls to the language model and the edits between them, in the order of
 * the authors' pipeline. Model and edits are the caller's, so that tests can play both. */
#pragma once

#include "models/step1x/instructions.h"
#include "models/step1x/thinking.h"

/* Tries of a call whose replies stay malformed. */
#define LK_STEP1X_TRIES 20

struct lk_step1x_question {
    const char *system, *user;
    const struct lk_image *images[2];
    int n_images;
    bool text_first; /* the user's text before the images */
};

/* *reply is lk_malloc'ed. */
typedef enum lk_code lk_step1x_ask_fn(void *context, const struct lk_step1x_question *question, char **reply);
/* One edit. *result is empty, and is freed by the caller in any case. */
typedef enum lk_code lk_step1x_edit_fn(void *context, const struct lk_image *source, const char *prompt,
                                       struct lk_result *result);

struct lk_step1x_player {
    lk_step1x_ask_fn *ask;
    lk_step1x_edit_fn *edit;
    void *context;
};

/* The modes that `request` switches on. *result gets the best round's picture and what describes it, and all rounds.
 * LK_E_USAGE without a source or for max_try_cnt out of 1 .. LK_MAX_ROUNDS; LK_E_INPUT when the prompt could not be
 * rewritten. */
enum lk_code lk_step1x_run_rounds(const struct lk_request *request, const struct lk_step1x_instructions *instructions,
                                  const struct lk_step1x_player *player, struct lk_result *result);
