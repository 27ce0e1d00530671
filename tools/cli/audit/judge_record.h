/* A line of what a model said of an item. `judge import` and the report read it as any judge's. */
#pragma once

#include "engine/base/text.h"
#include "eval/judge/seeing.h"

/* What all lines of a run have in common, and the order of a comparison. */
struct judge_record {
    const char *slot, *family, *mode, *prompt_version, *dtype;
    const char *order;  /* NULL: no comparison */
    const char *check;  /* NULL: none */
    const char *server; /* where it was asked; NULL: here */
    char model[256], weights_identity[65];
    const char *configs; /* lk_chat_configs; NULL: not known */
    unsigned quantized;
};

/* Whether the model gave the digits less than 0.9 of its probability where it wrote some score: it wanted to say
 * something else. Such axes stand in the line as "low_mass". */
bool judge_record_low_mass(const struct lk_seen *verdict);
/* LK_E_NOMEM. */
enum lk_code judge_record_add(const struct judge_record *record, const struct lk_judge_item *item,
                              const struct lk_seen *verdict, struct lk_text *lines);
