/* The prompts of the text-to-image study: negative social roles, three ways to name a gender, styles, contexts, and
 * what mitigations at the level of the prompt make of each.
 *
 *     struct lk_t2i_prompts prompts;
 *     LK_TRY(lk_t2i_prompts_build(&prompts, NULL));       // or lk_t2i_prompts_read
 *     rc = lk_t2i_prompts_mitigate(&prompts, 1);
 *     if (!rc) rc = lk_t2i_prompts_csv(&prompts, LK_T2I_ALL_COLUMNS, &text);
 *     lk_t2i_prompts_free(&prompts); */
#pragma once

#include "eval/document/table.h"
#include "engine/base/store.h"
#include "engine/base/names.h"
#include "eval/scores/rejects.h"

/* Arms, in the order of every table. The first four differ in their prompts. */
enum lk_t2i_arm {
    LK_T2I_NONE,
    LK_T2I_REWRITE,
    LK_T2I_DIVERSITY,
    LK_T2I_SAFETY,
    LK_T2I_POST_FILTER,
    LK_T2I_EMBED_NORM,
    LK_T2I_FAIR, /* semantic guidance by a fair instruction */
    LK_N_T2I_ARMS
};
const char *lk_t2i_arm_key(int arm);   /* "post_filter", as files have it */
const char *lk_t2i_arm_name(int arm);  /* "Post-filter" */
int lk_t2i_arm_parse(const char *key); /* "" is none; -1 for no arm */

/* The table's columns: ten as printed, then what mitigations make of the prompt, and which of them a row is meant for.
 */
enum lk_t2i_column {
    LK_T2I_PROMPT_ID,
    LK_T2I_CATEGORY,
    LK_T2I_ROLE_LABEL,
    LK_T2I_GENDER_SPEC,
    LK_T2I_STYLE,
    LK_T2I_CONTEXT,
    LK_T2I_NATURAL_PROMPT,
    LK_T2I_TOKEN_PROMPT,
    LK_T2I_MITIGATION,
    LK_T2I_NOTES,
    LK_T2I_REWRITE_PROMPT,
    LK_T2I_DIVERSITY_PROMPT,
    LK_T2I_SAFETY_PROMPT,
    LK_T2I_MITIGATION_FLAG,
    LK_N_T2I_COLUMNS
};

struct lk_t2i_prompt {
    const char *cells[LK_N_T2I_COLUMNS]; /* "" where the table has none */
    const char **extra;                  /* [n_extra]: cells of columns that are not ours */
};

struct lk_t2i_prompts {
    struct lk_t2i_prompt *list;
    size_t n, capacity;
    const char **extra; /* names of the columns that are not ours, in the table's order */
    size_t n_extra;
    struct lk_names ids; /* number i is row i */
    struct lk_store store;
    struct lk_rejects rejects; /* prompts that no rule rewrites */
};

struct lk_t2i_design {
    const char *const *styles;
    int n_styles; /* 0: the three printed */
    const char *const *contexts;
    int n_contexts; /* 0: the one printed; one that is "fitting": three that fit every role */
};

/* 12 roles x neutral, male, female x styles x contexts, ids from 1 in that nesting. design may be NULL. LK_E_INPUT for
 * an empty style or context. out is empty after a failure; so after lk_t2i_prompts_read. */
enum lk_code lk_t2i_prompts_build(struct lk_t2i_prompts *out, const struct lk_t2i_design *design);
/* A table of one's own: CSV with prompt_id (once each) and natural_prompt at least. Columns that are not ours are kept,
 * and so are mitigated prompts that it has. */
enum lk_code lk_t2i_prompts_read(struct lk_t2i_prompts *out, const char *text, size_t n, const char *name);
/* A companion table: prompt_id and any of rewrite_prompt, diversity_prompt, safety_prompt. LK_E_INPUT for an id that
 * the prompts lack, and for a cell that says something else than the table. */
enum lk_code lk_t2i_prompts_join(struct lk_t2i_prompts *prompts, const char *text, size_t n, const char *name);
/* Makes the mitigated prompts that are still empty. cue: 1 or 2, of the diversity arm. A prompt whose role has no
 * neutral wording, or does not occur in it, is named in rejects and stays without a rewrite. */
enum lk_code lk_t2i_prompts_mitigate(struct lk_t2i_prompts *prompts, int cue);
void lk_t2i_prompts_free(struct lk_t2i_prompts *prompts);

enum lk_t2i_columns { LK_T2I_ALL_COLUMNS, LK_T2I_PRINTED_COLUMNS, LK_T2I_COMPANION_COLUMNS };
/* CSV: all columns with one's own between the printed ten and the mitigated prompts; the printed ten and one's own; or
 * a companion table. LK_E_NOMEM. */
enum lk_code lk_t2i_prompts_csv(const struct lk_t2i_prompts *prompts, enum lk_t2i_columns which, struct lk_text *out);

/* The roles of the study: "a shoplifter", and the neutral wording "a person suspected of shoplifting". */
struct lk_t2i_role {
    const char *label, *category, *neutral;
};
enum { LK_N_T2I_ROLES = 12 };
extern const struct lk_t2i_role lk_t2i_roles[LK_N_T2I_ROLES];
enum lk_t2i_gender { LK_T2I_NEUTRAL, LK_T2I_MALE, LK_T2I_FEMALE, LK_N_T2I_GENDERS };
const char *lk_t2i_gender_key(int gender); /* "neutral" */
int lk_t2i_gender_parse(const char *text); /* "" is neutral; -1 */
/* "an inmate", male: "a male inmate". out holds 256 bytes. */
void lk_t2i_gendered_role(const char *role, int gender, char out[256]);
/* As tables of results name a prompt: "17 a male thief". */
void lk_t2i_prompt_name(const struct lk_t2i_prompt *prompt, char out[200]);
