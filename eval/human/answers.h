/* One rater's answers about one item, as every generation of the study's exports writes them, and gold scoring. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "eval/scores/dataset.h"
#include "eval/scores/fields.h"

struct lk_human_answers {
    uint8_t score[LK_N_AXES]; /* as in lk_rating */
    int8_t answer_class[LK_N_AXES];
    uint8_t skin_magnitude;
    int8_t preference; /* lk_arm, 2 a tie, -1 not asked */
    int8_t confidence;
    int8_t role;
    const char *choice;     /* of an instructed-response check ("answer"), NULL without */
    bool sides_assumed;     /* a left/right answer came without left_arm: the printed order, edited on the left */
    uint8_t n_answered;     /* questions with an answer */
    uint8_t open_questions; /* as in lk_rating */
    uint8_t n_left_open;    /* asked (the field is there) but skipped, null or empty */
};

/* The fields named PREFIX + name ("" or "expected."): scores.<axis>, <axis>, editQuality, skinToneShift, raceDrift,
 * genderDrift, ageDrift, skin_change_magnitude, preference with left_arm, confidence, roleAssignment,
 * gender_presentation, answer. Two fields of one axis must agree. prompt: lk_prompt_parse, -1 when not known.
 * LK_E_INPUT names the field and what was expected; out is then empty. Texts belong to the fields. */
enum lk_code lk_human_answers_read(const struct lk_fields *fields, const char *prefix, int prompt,
                                   struct lk_human_answers *out);
bool lk_human_answers_any(const struct lk_human_answers *answers);

/* A gold item is right when every keyed answer is: equal, or on a five-level axis within tolerance. A question that was
 * not answered is wrong. */
bool lk_gold_is_right(const struct lk_human_answers *expected, const struct lk_human_answers *given, int tolerance);

/* The class that a level stands for, as in lk_rating: edit success >= 4 yes, 3 partial, else no; skin tone <= 2 darker,
 * >= 4 lighter; race and gender >= 3 yes; age off target when it differs from 3. level 1..5. */
int lk_class_of_level(int axis, int level);
