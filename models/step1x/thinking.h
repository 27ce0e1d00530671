/* Step1X-Edit's reflection without the model: what its replies say, and what follows from them. Malformed replies are
 * told by *valid = false and asked for again; a code other than LK_OK is LK_E_NOMEM. Texts that come out are
 * lk_malloc'ed. Source: the fork's pipeline_step1x_edit_thinker.py and the loop of pipeline_step1x_edit_v1p2.py.
 *
 * JSON is read more strictly than Python's json: a reply with a key twice, with NaN or with deeper nesting than anybody
 * meant counts as malformed. */
#pragma once

#include "models/pipeline.h"

/* What the instructions call the language that a reply shall be in: Chinese from the second Chinese character on. */
const char *lk_step1x_language(const char *prompt);

/* The reply begins as an error of the service does that the authors' code was made for: in rewriting, describing and
 * scoring it is malformed. */
bool lk_step1x_is_error(const char *reply);

/* A JSON object somewhere in the reply, with counts of faults: the score 0..10 after the caps that they set, four
 * decimals, and the reason. */
enum lk_code lk_step1x_read_consistency(const char *reply, bool *valid, double *score, char **reason);
/* A score as Python prints it: "8.99", "7.0". */
void lk_step1x_print_score(double score, char out[32]);

/* A reflection: from "<#Think>" on, with exactly one of the four outcomes after it. */
enum lk_code lk_step1x_read_reflection(const char *reply, bool *valid, char **words);
/* What a reflection decides. *next (in `words`, may be NULL) gets the prompt of LK_VERDICT_REFLECTION. */
enum lk_verdict lk_step1x_verdict(const char *words, const char **next);

/* {"score": [...], "reasoning": ...}, perhaps fenced: the least of the scores. Lists without numbers alone are
 * malformed here; the authors' code would end there. */
enum lk_code lk_step1x_read_scores(const char *reply, bool *valid, double *least);

/* The round that becomes the result. */
int lk_step1x_best_round(const struct lk_round *rounds, int n);

/* Where an edit with reflection stands. */
struct lk_step1x_course {
    const char *prompt;
    bool from_source; /* otherwise the picture of the round before is edited */
    bool done;
};
/* After a round: `next` is lk_step1x_verdict's; `original` the prompt of the first round. */
void lk_step1x_advance(struct lk_step1x_course *course, enum lk_verdict verdict, const char *next,
                       const char *original);
