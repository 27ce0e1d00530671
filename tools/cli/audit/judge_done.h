/* What earlier runs of a judge have asked: the items of its file of answers. */
#pragma once

#include <stdbool.h>

#include "engine/base/store.h"
#include "engine/base/text.h"
#include "eval/judge/seeing.h"

/* A line of what a model said of an item. `judge import` and the report read it as any judge's. */
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

struct judge_done {
    struct lk_store texts;
    char **list; /* "ITEM ORDER", sorted */
    size_t n, capacity;
    /* Whether the picture of this digest is the item's; answers about another are none. NULL: all are. */
    bool (*is_shown)(const void *pictures, const char *item_id, const char *sha256);
    const void *pictures;
};

/* Adds the items of a file, which may be missing. LK_E_CHANGED: a line of another judge, or one that was asked
 * otherwise than `record` says. mend: a last line that was cut off is taken away. */
enum lk_code judge_done_read(struct judge_done *done, const struct judge_record *record, const char *path, bool mend);
/* bad: and has no answer but a failure or a refusal. */
bool judge_is_done(const struct judge_done *done, const char *item_id, const char *order, bool bad);
/* Moves the answers about other pictures from the file to the end of FILE.earlier, where nobody counts them. */
enum lk_code judge_done_set_aside(const struct judge_done *done, const char *path);
void judge_done_free(struct judge_done *done);
