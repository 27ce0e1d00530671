/* Answers to the older study's questions: yes, partial or no about an edit, which of two arms' pictures, which person.
 *
 *     struct lk_legacy legacy = {.pairwise = false};
 *     LK_TRY(lk_legacy_read(&legacy, text, n, "answers.jsonl"));
 *     ... legacy.items.items[i].id was answered with legacy.list[i] ...
 *     lk_legacy_free(&legacy); */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "eval/scores/dataset.h"
#include "eval/scores/rejects.h"

enum lk_legacy_question {
    LK_LEGACY_EDIT,   /* 0 no, 1 partial, 2 yes */
    LK_LEGACY_GENDER, /* 0 no, 1 yes */
    LK_LEGACY_RACE,
    LK_LEGACY_ROLE, /* lk_role */
    LK_N_LEGACY,
};

struct lk_legacy_answer {
    int8_t classes[LK_N_LEGACY];    /* -1: not asked */
    double confidence[LK_N_LEGACY]; /* 0..1, NaN when not said */
    int8_t order[2]; /* of a comparison with the baseline's, with the preserved arm's picture as image A: lk_arm, 2 the
                        same, -1 not answered */
    double order_confidence[2];
};

struct lk_legacy {
    bool pairwise;           /* the comparison of two arms was asked, not about each output */
    bool mixed;              /* either: a record with "order" or "preference" is a comparison */
    struct lk_dataset items; /* whose answers there are; of a comparison under the baseline's id */
    struct lk_legacy_answer *list;
    size_t capacity;
    size_t n_records, n_repeated, n_invalid;
    struct lk_rejects rejects;
};

/* Records of CSV, JSON lines or a JSON array with item_id and the answers: edit_success, gender_drift, race_drift;
 * assigned for a composite; of a comparison order (edited_first, preserved_first) and preferred (A, B, Same), or what
 * came of both orders as preference (edited, preserved, same). Or all of it in the judge's words as "answer": JSON with
 * these keys, or a line each, with or without numbers. confidence: a number, or an object with these keys. A record
 * that is not understood, or that contradicts an earlier one, is listed in rejects. LK_E_INPUT, LK_E_JSON, LK_E_NOMEM.
 * Free in any case. */
enum lk_code lk_legacy_read(struct lk_legacy *legacy, const char *text, size_t n, const char *name);
void lk_legacy_free(struct lk_legacy *legacy);

/* Into the items of a dataset, which are made where they are new; roles as the judge's of that slot. LK_E_NOMEM. */
enum lk_code lk_legacy_store(const struct lk_legacy *legacy, int slot, struct lk_dataset *data);

/* The words of a class, "" for none. */
const char *lk_legacy_word(enum lk_legacy_question question, int answer);
const char *lk_legacy_key(enum lk_legacy_question question); /* "edit_success", ..., "assigned" */
/* The arm that both orders prefer; 2 (the same) when they say so or contradict each other, -1 unless both are there. */
int lk_legacy_preference(const struct lk_legacy_answer *answer);
