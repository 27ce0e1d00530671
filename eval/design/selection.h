/* The choice of the 84 sources: seven candidates a cell, drawn from a table of labelled portraits, and a log of what
 * people chose, one action a line, which only grows. The last word of the log is the selection.
 *
 *     LK_TRY(lk_pools_draw(text, n, "labels.csv", 42, &lines));                  // pools.jsonl
 *     struct lk_selection *selection;
 *     LK_TRY(lk_selection_open(&selection, "pools.jsonl", "selection_log.jsonl"));
 *     rc = lk_selection_act(selection, &(struct lk_selection_action){...});      // a new line, on the disk
 *     if (!rc) rc = lk_selection_finalize(selection, folder, &summary); // names every cell that is not done
 *     lk_selection_close(selection); */
#pragma once

#include "engine/base/text.h"
#include "eval/scores/source_manifest.h"
#include "eval/study/factors.h"

enum { LK_N_CRITERIA = 6 };
extern const char *const lk_criteria[LK_N_CRITERIA];       /* "frontal_face", as files have it */
extern const char *const lk_criteria_words[LK_N_CRITERIA]; /* "Frontal Face: face oriented toward camera, no profiles"
                                                            */

/* For pool v = 1..7 and each cell one picture of the table (file, age, gender, race; CSV or JSON lines), uniformly, by
 * stream(seed + v - 1, "pool|" + source id): 7 x 84 JSON lines with pool, source_id and file. People below 20 are
 * passed over. LK_E_INPUT with the line for a label that is none, and for the first cell without a picture. */
enum lk_code lk_pools_draw(const char *text, size_t n, const char *name, uint64_t seed, struct lk_text *out);

enum lk_selection_kind { LK_SELECT_CHOOSE, LK_SELECT_UNCHOOSE, LK_SELECT_FLAG, LK_SELECT_NOTE, LK_N_SELECTION_KINDS };
extern const char *const lk_selection_kinds[LK_N_SELECTION_KINDS]; /* "choose", ... */

struct lk_selection_action {
    const char *time; /* 2026-01-17T10:00:00Z */
    const char *actor;
    enum lk_selection_kind kind;
    int source, pool; /* 0..83; 1..7, 0 where a note is about the cell */
    bool criteria[LK_N_CRITERIA];
    const char *note;
};

struct lk_candidate {
    const char *file; /* as the pools have it, beside their file */
    bool chosen, flagged;
    bool criteria[LK_N_CRITERIA]; /* as last said */
    const char *note;             /* "" without */
};

struct lk_selection;
/* The log may be missing: nobody has chosen yet. A line of it that is not understood, or that the pools contradict, is
 * LK_E_INPUT with its line. */
enum lk_code lk_selection_open(struct lk_selection **out, const char *pools, const char *log);
void lk_selection_close(struct lk_selection *selection); /* NULL is allowed */
/* pool 1..7. */
const struct lk_candidate *lk_selection_candidate(const struct lk_selection *selection, int source, int pool);
size_t lk_selection_n_actions(const struct lk_selection *selection);
int lk_selection_n_done(const struct lk_selection *selection); /* cells with one picture that fulfils all criteria */
/* The pool of the picture chosen for a cell; 0: none or several. */
int lk_selection_chosen(const struct lk_selection *selection, int source);
/* Appends one line to the log, in one piece and on the disk, then is of that opinion too. LK_E_INPUT for a
 * contradiction (unchoosing what is not chosen), LK_E_IO. */
enum lk_code lk_selection_act(struct lk_selection *selection, const struct lk_selection_action *action);
/* Takes back the last choice that still stands (chosen or unchosen) by an action of its own; LK_E_INPUT when none is.
 */
enum lk_code lk_selection_undo(struct lk_selection *selection, const char *time, const char *actor, int *source);

/* All 84 cells with exactly one chosen picture that fulfils the six criteria: copies these to FOLDER/source/ID.EXT and
 * writes FOLDER/source_manifest.json. summary: the counts of the pools (Table 2), the number of actions, and the time
 * from the first to the last. LK_E_INPUT that names every cell that is not done. */
enum lk_code lk_selection_finalize(const struct lk_selection *selection, const char *folder, struct lk_text *summary);
/* A manifest as finalize writes it: 84 different sources, all six criteria, files that have their SHA-256 and can be
 * decoded. summary: Table 2, a line a pool, and their sum. The first fault is LK_E_INPUT, LK_E_CHANGED, LK_E_IMAGE. */
enum lk_code lk_source_manifest_validate(const char *path, struct lk_text *summary);
