/* What one can ask to change in a drawn portrait: the study's 20 prompts and plain instructions with slots ("Add a
 * {colour} {hat}."), each with its effect on the fields.
 *
 * Some combinations of words are held out: training never sees them, and a model that was trained on the rest is asked
 * them to show that it reads instructions instead of remembering them. */
#pragma once

#include "engine/base/text.h"
#include "eval/study/prompts.h"
#include "tools/portrait/portrait.h"

enum { EDITS_MAX_TEMPLATES = 4, EDITS_MAX_SLOTS = 2, EDITS_MAX_SETS = 6 };
enum { EDITS_AGE = PORTRAIT_N_FIELDS, EDITS_END = -1 }; /* in place of a field: age by so many steps; the end */

struct edit_set {
    int field, level;
};
struct edit_word {
    const char *text;
    struct edit_set set[3];
};
struct edit_instruction {
    char id[5];                                 /* "O-01", "V-10", "P-01" */
    const char *templates[EDITS_MAX_TEMPLATES]; /* {0} and {1} are slots; of the study's prompts ways to say it shorter
                                                 */
    const struct edit_word *slots[EDITS_MAX_SLOTS]; /* each ends with text NULL */
    struct edit_set set[EDITS_MAX_SETS];            /* what the words of the slots do not say */
    struct edit_set needs[2];                       /* of the portrait before; level -1: any but 0 */
};
enum { EDITS_N_STUDY = LK_N_EDIT_PROMPTS, EDITS_N_PLAIN = 25, EDITS_N = EDITS_N_STUDY + EDITS_N_PLAIN };

/* One way to ask for something. */
struct edit {
    int instruction, way, word[EDITS_MAX_SLOTS]; /* way: of the study's prompts 0 is the study's own text */
    bool preserve;                               /* "... while preserving the person's identity." */
};

const struct edit_instruction *edit_instruction(int i); /* 0 .. EDITS_N - 1; the study's first, as lk_prompt_id */
int edit_ways(int instruction);
int edit_words(int instruction, int slot); /* 1 where there is no slot */
bool edit_held_out(const struct edit *edit);
/* From {0} on, each way to ask for each thing once; false after the last. */
bool edit_next(struct edit *edit);
/* The edit that a prompt is the text of. LK_E_INPUT where it is none. */
enum lk_code edit_parse(const char *text, const struct lk_prompts *prompts, struct edit *out);
/* The instruction as text, appended. */
void edit_text(const struct edit *edit, const struct lk_prompts *prompts, struct lk_text *out);
/* What the edit makes of a portrait where nothing goes wrong. */
void edit_apply(const struct edit *edit, const struct portrait *before, struct portrait *after);
/* Whether the edit changes the field of some portrait; EDITS_AGE: asks for an age. */
bool edit_touches(const struct edit *edit, int field);
/* Draws an edit and a portrait that it changes. instruction -1: any. */
void edit_draw(struct lk_stream *stream, int instruction, bool held_out, struct edit *edit, int *source,
               struct portrait *before);
