/* The edit instructions: O-01..O-10 and V-01..V-10 of experiments 1 and 2, W-01..W-50 of experiment 3. They are read
 * from the JSON files in eval/data that are part of the program. */
#pragma once

#include "engine/base/status.h"

enum { LK_N_EDIT_PROMPTS = 20, LK_N_W_PROMPTS = 50, LK_PROMPT_V03 = 12 };

struct lk_prompt {
    const char *id;   /* "O-01" */
    const char *text; /* byte for byte as it goes to the models */
    const char *target;
    int category;                    /* LK_FACTOR_CATEGORY; -1 for W */
    const char *subcategory_printed; /* by the id ranges of the paper; NULL for W */
    const char *subcategory_content; /* by what the prompt asks for */
    const char *legacy_id;           /* "catB_001", NULL for W */
    const char *nickname;            /* the name that the example tables use, or NULL */
    int stereotype_gender;           /* of a W prompt's target: 0 male, 1 female; -1 otherwise */
    const char *other_occupation;    /* of a W prompt */
    int n_gendered_words;            /* he, she, his, her, him in a W prompt */
};

/* Parses eval/data once; the prompts live until lk_prompts_free. LK_E_NOMEM. */
struct lk_prompts {
    struct lk_prompt edit[LK_N_EDIT_PROMPTS]; /* 0..9 O, 10..19 V */
    struct lk_prompt w[LK_N_W_PROMPTS];
    void *storage;
};
enum lk_code lk_prompts_load(struct lk_prompts *out);
void lk_prompts_free(struct lk_prompts *prompts);
/* Index 0..19 of "O-01" or "catB_001", 20..69 of "W-01"; -1 when it is none. */
int lk_prompt_parse(const char *text, size_t n);
const char *lk_prompt_id(int prompt);
/* Its level of LK_FACTOR_CATEGORY; -1 of W prompts, and of what is none of these. */
int lk_prompt_category(int prompt);
