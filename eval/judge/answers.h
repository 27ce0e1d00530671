/* Reading what a judge answered: five scores as JSON, behind thoughts, perhaps in a code fence or with words around
 * (answer_text.h). An answer is valid as a whole or not at all; no score is clamped or filled in.
 *
 *     struct lk_judge_report report = {0};
 *     rc = lk_judge_answers_read(&data, text, n, "gemini.jsonl", &(struct lk_judge_import){.slot = 0}, &report);
 *     printf("%zu matched, %zu unknown, %zu invalid\n", report.n_matched, report.n_unknown, report.n_invalid);
 *     lk_judge_report_free(&report); */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "eval/scores/dataset.h"
#include "eval/scores/rejects.h"

enum { LK_ANSWER_MAX_BYTES = 1 << 20 };

struct lk_judge_answer {
    uint8_t score[LK_N_AXES]; /* 1..5; all 0 when the answer names a role only */
    int8_t role;              /* of experiment 3, "assigned" or as presented; LK_ROLE_NONE when there is none */
    uint8_t presentation;     /* 1..5: "gender_presentation" of a W prompt's one person; 0 */
    const char *evidence;     /* "evidence_summary", "" without; lives in the texts given */
    int n_mended;             /* raw line ends in strings and commas before a closing bracket, which were read */
};

/* One raw answer. prompt: lk_prompt_parse, where V-03 has age accuracy for age drift and a W prompt may be answered
 * with "assigned" alone, or with "gender_presentation" (1, 2 male, 4, 5 female); -1 when not known. LK_E_INPUT with the
 * reason (one sentence, no file name) when the answer is invalid, LK_E_NOMEM; out is all 0 then. */
enum lk_code lk_judge_answer_read(const char *text, size_t n, int prompt, struct lk_store *texts,
                                  struct lk_judge_answer *out);

struct lk_judge_import {
    int slot;        /* 0 primary, 1 secondary */
    bool known_only; /* an item that the dataset does not hold is counted as unknown, not added */
    /* When set: looks at a record's "prompt_sha256", where there is one; LK_E_INPUT with a reason refuses it. */
    enum lk_code (*check_digest)(const void *context, const char *item_id, const char *sha256);
    const void *context;
    /* When set: whether the picture of this digest, a record's "edited_sha256", is the item's; answers about another
     * are counted as stale and left out. */
    bool (*is_shown)(const void *pictures, const char *item_id, const char *sha256);
    const void *pictures;
    /* What check of a judge records must be of ("judge_check", eval/judge/prompt.h); NULL: of none. Of "roles" skin
     * tone and age are mirrored back. */
    const char *check;
};

struct lk_judge_report {
    size_t n_records, n_matched, n_unknown, n_invalid;
    size_t n_repeated;         /* valid answers equal to an earlier one of the same item */
    size_t n_refused;          /* of the invalid: the judge refused */
    size_t n_stale;            /* about a picture that is not the item's any more */
    size_t n_mended;           /* answers or records with raw line ends or trailing commas, which were read */
    char judge[128];           /* who judged, as the first record says that does; "" */
    struct lk_rejects rejects; /* unknown and invalid records */
};

/* JSON lines or a JSON array of records with "item_id" and the scores: an object "scores", the five keys beside the
 * id, or the judge's words as the string "answer" or "raw". The first valid answer of an item counts; another one that
 * differs is rejected. Rejected records are listed and counted; a file that is no such list at all is LK_E_JSON. The
 * report is added to. */
enum lk_code lk_judge_answers_read(struct lk_dataset *data, const char *text, size_t n, const char *name,
                                   const struct lk_judge_import *import, struct lk_judge_report *report);
void lk_judge_report_free(struct lk_judge_report *report);
