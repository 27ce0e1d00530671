/* Human exports into a dataset: CSV, JSON lines or a JSON array of the document store's records, one per rater and item
 * (workerId, imageId, answers, times); a later line about the same is a revision and counts instead.
 *
 *     struct lk_ratings_import import = {.data = &data, .gold_tolerance = 1};
 *     rc = lk_ratings_gold(&import, key_text, n_key, "gold.jsonl");           // when there is a key
 *     if (!rc) rc = lk_ratings_read(&import, text, n, "exp1.jsonl");
 *     if (!rc) rc = lk_ratings_participants(&import, text, n, "prolific.csv", "C1ABCDEF");
 *     printf("%zu ratings, %zu rejected\n", data.n_ratings, import.rejects.n);
 *     lk_ratings_import_free(&import);
 *
 * A record that is not understood is rejected as a whole, with its line and reason; a file that is no table fails.
 * After a failure the dataset holds the records before it and is to be freed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/names.h"
#include "engine/base/status.h"
#include "eval/human/answers.h"
#include "eval/scores/dataset.h"
#include "eval/scores/fields.h"
#include "eval/scores/rejects.h"

struct lk_participant {
    int32_t rater;
    int16_t age;                                                /* years, -1 missing */
    const char *sex, *ethnicity, *student, *language, *country; /* "" missing */
    const char *status;                                         /* as in the export, "" without such a column */
};

struct lk_ratings_import {
    struct lk_dataset *data;
    int gold_tolerance; /* levels on a five-level axis */
    bool known_only;    /* an item that the dataset does not hold is rejected, not added */

    /* When set: whether the picture of this digest, a record's "imageSha256", is the item's; others are left out. */
    bool (*is_shown)(const void *pictures, const char *item_id, const char *sha256);
    const void *pictures;

    size_t n_records, n_revisions, n_invalid, n_unknown;
    size_t n_stale;                              /* about a picture that is not the item's any more */
    size_t n_rejected, n_unfinished, n_previews; /* records that their platform says are no ratings */
    size_t n_listed, n_listed_invalid;           /* records of participants, and those not understood */
    size_t n_gold, n_gold_unkeyed;               /* attention checks; those without an expectation to compare with */
    unsigned protocols;                          /* bit per lk_protocol that records name */
    size_t n_sides_assumed;                      /* left/right answers without left_arm */
    struct lk_rejects rejects;

    struct lk_participant *participants;
    size_t n_participants, participants_capacity;
    struct lk_names unread; /* columns and fields of the last file that nobody reads */
    size_t n_unlisted; /* raters of the files read before that are on no list of participants: unfinished, no code */

    /* what the readers keep between files */
    struct lk_key_index revisions, by_participant;
    struct lk_names tasks, gold_ids;
    struct lk_gold_key *gold; /* of each gold id */
    size_t n_gold_keys, gold_capacity;
    struct lk_store texts;
};

/* Expectations: records with imageId and, under "expected." or plain, the fields of lk_human_answers_read. An
 * expectation inside a rating's own record ("expected") counts before these, and both before a verdict found earlier
 * ("gold_right"). LK_E_INPUT for a record not understood. */
enum lk_code lk_ratings_gold(struct lk_ratings_import *import, const char *text, size_t n, const char *name);
enum lk_code lk_ratings_read(struct lk_ratings_import *import, const char *text, size_t n, const char *name);
/* A platform's export: "participant id" or workerId; status or submitted; completion code or code_valid; age, sex,
 * ethnicity (simplified), student status, language, country (of residence), pilot. code: the study's completion code;
 * NULL takes any that is not empty or NOCODE. Raters are added when they gave no rating; those who rated and are not
 * listed count as not submitted, so ratings are read first. A record that is not understood (an unknown status, an id
 * that a spreadsheet damaged) is rejected by name, and who it is about counts as not listed. */
enum lk_code lk_ratings_participants(struct lk_ratings_import *import, const char *text, size_t n, const char *name,
                                     const char *code);
/* What a platform's list says of one submission, as lk_ratings_participants reads it. */
enum lk_submission {
    LK_SUBMISSION_UNSAID,
    LK_SUBMISSION_GONE, /* given back, ran out, screened out or rejected */
    LK_SUBMISSION_WAITING,
    LK_SUBMISSION_APPROVED,
};
/* LK_E_INPUT: an unknown status. */
enum lk_code lk_participant_submission(const struct lk_records *records, enum lk_submission *out);
/* NULL: the record has none. *asked: it has such a column. */
const struct lk_field *lk_participant_id(const struct lk_fields *fields, bool *asked);
const struct lk_field *lk_participant_code(const struct lk_fields *fields, bool *asked);
/* Each rater's n_questions and n_skipped from the ratings that stand; to be called after the last file. */
void lk_ratings_count(struct lk_dataset *data);
void lk_ratings_import_free(struct lk_ratings_import *import);

/* What ratings.c and answers.c share. */

/* Lists the record under the thread's error message. LK_E_NOMEM. */
enum lk_code lk_ratings_reject(struct lk_ratings_import *import, size_t line, const char *item);
