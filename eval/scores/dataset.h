/* The scores of a run in memory: one item per output, what judges gave it, and what raters gave it. Readers fill it
 * (judge answers, human exports, the long score table), the ensemble and the combination of raters complete it, and
 * everything in stats/ and report/ is computed from it. Texts belong to the dataset. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "eval/study/factors.h"

enum { LK_N_JUDGES = 2 };               /* primary, secondary */
enum { LK_SCORES_MAX_BYTES = 1 << 28 }; /* of a file of scores or ratings */
enum lk_role { LK_ROLE_NONE = -1, LK_ROLE_MALE, LK_ROLE_FEMALE, LK_ROLE_UNCLEAR };

struct lk_item {
    const char *id; /* flux_20s_male_black_O-01.preserved */
    int32_t job;    /* of the study that the dataset is of; -1: the id says all, as the portrait study's do */
    int8_t model, race, gender, age, arm;
    int8_t swapped;                        /* a composite whose first picture is the woman */
    int16_t prompt;                        /* lk_prompt_parse */
    int16_t source;                        /* 0..83 */
    int32_t partner;                       /* index of the other arm's item, -1 when it is not here */
    uint8_t judge[LK_N_JUDGES][LK_N_AXES]; /* 1..5 as given; 0: no valid answer */
    uint8_t low_mass[LK_N_JUDGES];         /* bit per axis: the judge would rather have said something else */
    uint8_t score[LK_N_AXES];              /* the ensemble; 0: none */
    uint8_t review;                        /* bit per axis: the judges differ by more than 1 */
    int8_t judge_role[LK_N_JUDGES];        /* experiment 3: lk_role as each judge says */
    int8_t role;                           /* experiment 3: the ensemble */
    int8_t legacy[3]; /* the older questions: edit 0 no, 1 partial, 2 yes; gender, race changed 0 no, 1 yes; -1 */
    int8_t legacy_preference;    /* of the pair: lk_arm, 2 the same, -1; at the baseline's item */
    uint8_t reviewed[LK_N_AXES]; /* a reviewer's decision (eval/judge/review.h), where ... */
    int8_t reviewed_role;
    uint8_t reviewed_axes; /* ... this has a bit: per axis, and LK_N_AXES for the role */
    /* of the raters who are kept; NaN and 0 below the minimum of two ratings */
    double human_mean[LK_N_AXES];
    uint8_t human_majority[LK_N_AXES]; /* without a majority the median, rounded as in human.h */
    uint8_t human_unresolved;          /* bit per axis: no majority */
    uint8_t n_ratings;
    const char *evidence;             /* the judge's words, "" if none */
    const char *image, *source_image; /* paths, NULL when not known */
};

enum { LK_OPEN_PREFERENCE = 1 << LK_N_AXES, LK_OPEN_ROLE = 2 << LK_N_AXES };

struct lk_rating {
    int32_t item, rater;
    uint8_t score[LK_N_AXES];       /* 0: skipped */
    int8_t answer_class[LK_N_AXES]; /* answers in classes instead of five levels, -1 none: edit success 0 no, 1 partial,
                                       2 yes; skin tone 0 darker, 1 same, 2 lighter; race and gender 0 no, 1 yes; age
                                       0 on target, 1 off target */
    uint8_t skin_magnitude;         /* 1..5 on the printed one-sided scale, 0 not asked; never a skin tone score */
    int32_t question_ms[LK_N_AXES]; /* -1: not recorded */
    int32_t duration_ms;            /* -1: not recorded */
    int32_t task, position;         /* a number per task id, and the place in it; -1: not recorded */
    uint8_t n_asked, n_skipped;     /* questions of this record, and those left open */
    uint8_t open_questions;         /* bit per axis that was left open, LK_OPEN_PREFERENCE, LK_OPEN_ROLE */
    int8_t preference;              /* of a pair: lk_arm, 2 a tie of any kind, -1 not asked */
    int8_t confidence;              /* 1..5, 0 not asked */
    int8_t role;                    /* lk_role */
    int32_t gold;                   /* of an attention check its number among the ids of the import; -1 */
    bool is_gold;                   /* an attention check; item is then -1 unless it is a real one */
    bool gold_keyed;                /* an expectation was there to compare with */
    bool gold_right;
    const char *timestamp, *comment; /* as recorded; NULL: not */
};

struct lk_rater {
    const char *id;
    bool submitted;  /* 100 % of the task */
    bool code_valid; /* a valid completion code, or the export has no such column */
    int32_t n_questions, n_skipped;
    bool is_pilot;
    bool is_simulated;  /* of `survey pilot`, as its export says */
    int32_t n_sessions; /* platform submissions, 1 without a participants file; more is repeated participation */
    uint32_t rules_hit; /* bit per quality rule (quality.h) */
    bool excluded;
};

struct lk_dataset {
    struct lk_item *items;
    size_t n_items, items_capacity;
    struct lk_rating *ratings;
    size_t n_ratings, ratings_capacity;
    struct lk_rater *raters;
    size_t n_raters, raters_capacity;
    size_t nominal; /* outputs that the design asks for; 0 when not known */
    bool is_closed; /* only items of a study's jobs, whose ids say nothing: an unknown id is refused */
    void *texts;    /* arena of the strings */
    void *index;    /* item ids to items */
};

void lk_dataset_init(struct lk_dataset *data);
void lk_dataset_free(struct lk_dataset *data);
/* The item of that id, made from the id's parts when it is new (models, ages, genders and races as in the id, the
 * prompt, the arm after the last dot). LK_E_INPUT names the part that is not understood. */
enum lk_code lk_dataset_item(struct lk_dataset *data, const char *id, size_t n, int32_t *out);
/* An item of a study's job, whatever its id is: what is not given is "not known". Each id once. Afterwards only such
 * items are known. */
enum lk_code lk_dataset_add(struct lk_dataset *data, const char *id, int32_t job, enum lk_arm arm, int32_t *out);
/* The same without adding: -1 when the dataset does not hold the item. */
enum lk_code lk_dataset_find(const struct lk_dataset *data, const char *id, size_t n, int32_t *out);
/* The prompt that an item id names (lk_prompt_parse); -1 of an item that was added as a study's job. data NULL: by the
 * id alone. */
enum lk_code lk_dataset_id_prompt(const struct lk_dataset *data, const char *id, size_t n, int *out);
/* The same of all its parts. */
enum lk_code lk_dataset_parts(const struct lk_dataset *data, const char *id, size_t n, struct lk_item *out);
/* All that an item id says, without a dataset: model, race, gender, age, arm, prompt, source; the rest "not known". */
enum lk_code lk_dataset_id_parts(const char *id, size_t n, struct lk_item *out);
/* An id as people type it, without what does not count: white space around it, letter case, the host of Prolific's
 * e-mail form. LK_E_INPUT: none or too long, or damaged by a spreadsheet (5.60E+23). */
enum { LK_RATER_ID_MAX = 200 };
enum lk_code lk_rater_id(const char *typed, size_t n, char out[LK_RATER_ID_MAX + 1]);
/* The rater of an id as typed. */
enum lk_code lk_dataset_rater(struct lk_dataset *data, const char *id, size_t n, int32_t *out);
enum lk_code lk_dataset_rating(struct lk_dataset *data, struct lk_rating **out); /* appended, all fields "not known" */
/* A rating with all fields "not known". */
void lk_rating_clear(struct lk_rating *rating);
/* A copy that lives as long as the dataset; NULL for memory. */
const char *lk_dataset_text(struct lk_dataset *data, const char *text, size_t n);
/* Sets every item's partner. */
void lk_dataset_pair(struct lk_dataset *data);
