/* What came of asking a model over the network for a picture. A refusal is an outcome like a picture: it is kept,
 * counted by group, and never scored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/text.h"

/* placeholder: a picture that a safety filter puts in place of one; fault: no answer, or one that cannot be read. */
enum lk_outcome_kind { LK_OUTCOME_MADE, LK_OUTCOME_REFUSED, LK_OUTCOME_PLACEHOLDER, LK_OUTCOME_FAULT, LK_N_OUTCOMES };
const char *lk_outcome_key(int outcome); /* "made" */
int lk_outcome_parse(const char *text);  /* -1: none of them; of "" made */

/* What is noted of an answer beside its outcome: columns of a log, keys of a manifest. */
enum lk_asked_cell {
    LK_ASKED_STAGE, /* of a refusal: input, output; of a placeholder: placeholder */
    LK_ASKED_CODE,  /* the service's word for it; of a placeholder the rule that it meets */
    LK_ASKED_HTTP_STATUS,
    LK_ASKED_WORDS, /* what the service says */
    LK_ASKED_REQUEST_ID,
    LK_ASKED_LATENCY_MS,
    LK_ASKED_REVISED_PROMPT, /* what the model was given instead of the prompt */
    LK_ASKED_N_SENT,         /* requests that were sent, each of which may be billed */
    LK_ASKED_AT,
    LK_ASKED_API_MODEL, /* as the answer or else the request names it */
    LK_N_ASKED_CELLS
};
struct lk_asked {
    enum lk_outcome_kind outcome;
    const char *cells[LK_N_ASKED_CELLS]; /* NULL or "": not known */
};
const char *lk_asked_key(int cell); /* "http_status" */

/* Both with a comma in front: "outcome,stage,code,..." and the cells of one answer. */
void lk_asked_csv_header(struct lk_text *out);
void lk_asked_csv(const struct lk_asked *asked, struct lk_text *out);
/* An object with the outcome and what is known. */
void lk_asked_json(const struct lk_asked *asked, struct lk_text *out);
