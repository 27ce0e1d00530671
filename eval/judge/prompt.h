/* What a judge is asked about an output: the pictures in their order and the text, from the study's templates.
 *
 *     struct lk_judge_prompts *prompts;
 *     LK_TRY(lk_judge_prompts_load(&prompts));
 *     struct lk_judge_ask ask = {.prompt = LK_JUDGE_PROMPT_V1};
 *     rc = lk_judge_message(prompts, "flux_20s_male_black_O-01", &ask, &message);
 *     ... message.parts[i].text or .image, the last part is the prompt; message.sha256 goes with every score ...
 *     lk_judge_message_free(&message);
 *     lk_judge_prompts_free(prompts); */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

/* v1: the paper's text with the rubric's levels. printed: as in the paper, skin_stone included. legacy: the older
 * study's questions in words. */
enum lk_judge_prompt { LK_JUDGE_PROMPT_V1, LK_JUDGE_PROMPT_PRINTED, LK_JUDGE_PROMPT_LEGACY, LK_N_JUDGE_PROMPTS };

const char *lk_judge_prompt_name(enum lk_judge_prompt prompt); /* "v1" */
int lk_judge_prompt_parse(const char *name);                   /* -1 when it is none */

enum lk_judge_image {
    LK_JUDGE_NO_IMAGE,
    LK_JUDGE_SOURCE,
    LK_JUDGE_EDITED,    /* the output; of a comparison that of the baseline arm */
    LK_JUDGE_PRESERVED, /* of a comparison the other arm's */
    LK_JUDGE_SOURCE_MALE,
    LK_JUDGE_SOURCE_FEMALE,
    LK_N_JUDGE_IMAGES,
};
const char *lk_judge_image_name(enum lk_judge_image image); /* "source", "edited", ... */

/* What an answer is. */
enum lk_judge_question {
    LK_ASKED_AXES,         /* five scores */
    LK_ASKED_ROLE,         /* of a composite: male, female or unclear */
    LK_ASKED_PRESENTATION, /* of a sentence applied to one person: 1 masculine to 5 feminine */
    LK_ASKED_EDIT,         /* legacy: yes, partial or no; yes or no twice */
    LK_ASKED_PAIR,         /* legacy: A, B or Same */
};

enum { LK_JUDGE_PARTS_MAX = 7 };
struct lk_judge_part {
    const char *text; /* NULL for a picture */
    enum lk_judge_image image;
};
struct lk_judge_message {
    struct lk_judge_part parts[LK_JUDGE_PARTS_MAX];
    int n_parts;
    enum lk_judge_question question;
    int number;   /* of the edit prompt, as lk_prompt_parse has it; -1: of a study of one's own */
    char *prompt; /* the last part */
    size_t n;
    char sha256[65]; /* of the prompt */
};

/* What is asked to learn how far scores depend on what they should not. They are never scores of the study. */
enum lk_judge_check {
    LK_CHECK_NONE,
    LK_CHECK_ORDER,  /* the edited picture first, with its own label: every score should stay */
    LK_CHECK_ROLES,  /* the pictures change places under their labels: skin tone and age mirror, race and gender stay */
    LK_CHECK_REPEAT, /* asked again, with other seeds */
    LK_CHECK_REPEAT2,
    LK_N_CHECKS,
};
const char *lk_judge_check_name(enum lk_judge_check check); /* "order", NULL for none */
int lk_judge_check_parse(const char *name);                 /* NULL: LK_CHECK_NONE; -1 when it is none of them */

/* Of an output that its id does not tell: the edit, and what is known of the person, as "Skin type=IV, Age=30s". */
struct lk_judge_facts {
    const char *instruction, *source;
};

struct lk_judge_ask {
    enum lk_judge_prompt prompt;
    bool pairwise;             /* legacy: compare the arms of the pair that the item belongs to */
    bool preserved_first;      /* ... with the preserved arm as image A */
    enum lk_judge_check check; /* of the five axes alone */
    const struct lk_judge_facts *facts; /* NULL: the portrait study's, by the item's id */
};

struct lk_judge_prompts;
/* LK_E_NOMEM. */
enum lk_code lk_judge_prompts_load(struct lk_judge_prompts **out);
void lk_judge_prompts_free(struct lk_judge_prompts *prompts);
/* Five axes of one output (age accuracy for V-03), the comparison of two arms, who of a composite's two people has the
 * role, or which gender the one person of a W prompt presents. LK_E_INPUT: the id, or no such question about it. Free
 * in any case. */
enum lk_code lk_judge_message(const struct lk_judge_prompts *prompts, const char *item_id,
                              const struct lk_judge_ask *ask, struct lk_judge_message *out);
void lk_judge_message_free(struct lk_judge_message *message);
