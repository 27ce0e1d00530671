/* What is perceived in a face: race, gender and age of the closed sets that FairFace's classifier knows, by it or by a
 * model that sees. Of that read from its thoughts, not from what it would write: each answer is whole, and its
 * probability is the share that its first distinguishing token has among those of the set. Perceived, not known: a
 * group of a picture is what an observer takes the person for. */
#pragma once

#include "eval/judge/seeing.h"
#include "eval/scores/labels.h"
#include "models/face/fairface.h"

enum lk_perceived_kind { LK_PERCEIVED_RACE, LK_PERCEIVED_GENDER, LK_PERCEIVED_AGE, LK_N_PERCEIVED };
enum { LK_PERCEIVED_MAX_LEVELS = LK_N_AGE_BRACKETS };

struct lk_perceived {
    enum lk_code code; /* the face could not be shown; `error` says why */
    char error[512];
    double probability[LK_N_PERCEIVED][LK_PERCEIVED_MAX_LEVELS]; /* of the levels of factors.h and labels.h: sums 1 */
    double mass[LK_N_PERCEIVED]; /* what the set has of all tokens: far below 1 the model wanted to say another thing */
};

int lk_perceived_levels(enum lk_perceived_kind kind);
/* The likeliest, of equals the first; *confidence gets its probability. */
int lk_perceived_level(const struct lk_perceived *perceived, enum lk_perceived_kind kind, double *confidence);
/* The words that the model is asked with. */
extern const char lk_perceived_question[];
/* faces [n]: pictures of a face alone. The judge's mode and seed do not matter; it has no server. Codes as
 * lk_judge_see. */
enum lk_code lk_perceive(const struct lk_seeing_judge *judge, const struct lk_image *faces, int n,
                         struct lk_perceived *out);

/* What FairFace's classifier says: a softmax over each set. mass is 1. */
void lk_perceived_of_fairface(const float logits[LK_FAIRFACE_OUTPUTS], struct lk_perceived *out);

/* The square around a found face that is shown: half as long again as the box, as far as the picture has it.
 * LK_E_INPUT: the box lies outside; LK_E_NOMEM. */
enum lk_code lk_perceived_crop(const struct lk_image *image, const struct lk_face *face, struct lk_image *out);
