/* What people decided about outputs whose judges differ: a journal that only grows, one decision a line, the last one
 * about an item's axis counts. A decision stands beside the judges' score and never replaces it in a file of scores.
 *
 *     struct lk_review review = {0};
 *     LK_TRY(lk_review_file(&review, "review.jsonl"));
 *     rc = lk_review_apply(&data, &review, &counts);   // data.items[i].reviewed
 *     lk_review_swap(&data);                           // the scores with decisions; once more: as judged
 *     lk_review_free(&review); */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "eval/scores/dataset.h"
#include "eval/scores/rejects.h"

enum { LK_REVIEW_ROLE = LK_N_AXES, LK_N_REVIEW_AXES }; /* of experiment 3: who was given the role */
enum { LK_REVIEW_WITHDRAWN = -2 };                     /* the judges' score counts again */

struct lk_decision {
    const char *item_id;
    const char *reviewer, *time, *reason; /* "" for the last two when not said */
    int axis;                             /* lk_axis or LK_REVIEW_ROLE */
    int score;                            /* 1..5, of a role lk_role, or LK_REVIEW_WITHDRAWN */
    size_t line;                          /* of its file, from 1 */
};

struct lk_review {
    const struct lk_dataset *data; /* whose items are decided about; NULL: any whose id says all */
    const char *by, *when;    /* reviewer and time of a CSV's rows that say none; NULL: they must, "" for the time */
    struct lk_decision *list; /* in the files' order */
    size_t n, capacity;
    size_t n_records, n_open, n_invalid; /* open: a row of a table whose score nobody filled in */
    struct lk_rejects rejects;
    struct lk_store texts;
};

/* The axis of that name ("role" too), -1 when it is none of the item's. prompt: lk_prompt_parse. */
int lk_review_axis(const char *name, int prompt);
const char *lk_review_axis_key(int axis);                  /* "race_drift", "role" */
const char *lk_review_score_text(int axis, int score);     /* "4", "female", "" for a score that is none */
int lk_review_score_parse(int axis, const char *text);     /* LK_REVIEW_WITHDRAWN for "none", -1 for anything else */
enum lk_code lk_review_check(const struct lk_decision *d); /* reviewer, time and reason; LK_E_INPUT */

/* CSV, JSON lines or a JSON array with item_id, axis, score, reviewer and perhaps time (2026-01-17, or
 * 2026-01-17T10:00:00Z) and reason; a score null or "none" withdraws what was decided, an empty cell of CSV decides
 * nothing. A record that is not understood is listed in rejects. LK_E_INPUT for a table without these columns,
 * LK_E_JSON, LK_E_NOMEM. Appends to review; free in any case. */
enum lk_code lk_review_read(struct lk_review *review, const char *text, size_t n, const char *name);
enum lk_code lk_review_file(struct lk_review *review, const char *path);
void lk_review_free(struct lk_review *review);

struct lk_review_counts {
    size_t n_standing, n_replaced, n_unknown; /* unknown: of no item of the dataset */
};
/* Which decision stands: its index, -1 without one. out [n_items, LK_N_REVIEW_AXES]. counts may be NULL. */
void lk_review_standing(const struct lk_dataset *data, const struct lk_review *review, int32_t *out,
                        struct lk_review_counts *counts);
/* Sets `reviewed` and `reviewed_axes` of every item. LK_E_NOMEM. */
enum lk_code lk_review_apply(struct lk_dataset *data, const struct lk_review *review, struct lk_review_counts *counts);
/* Exchanges the ensemble's scores and the decisions, where there is one; a second call undoes the first. */
void lk_review_swap(struct lk_dataset *data);
