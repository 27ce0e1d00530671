/* What Step1X-Edit's language model is told to do in thinking and reflection. The texts are the authors' and not part
 * of this program: a JSON file of the user's has them, an object of twelve strings, a system and a user text for each
 * call: "rewrite_system", "rewrite_user", "describe_...", "score_...", "reflect_...", "score1_...", "score2_...". In
 * place of what changes they have {instruction}, {language}, {description}, {score} and {reason}.
 * tests/golden/generate_step1x_thinking.py --prompts writes it from the authors' own code. */
#pragma once

#include "engine/base/status.h"

enum lk_step1x_call {
    LK_STEP1X_REWRITE,
    LK_STEP1X_DESCRIBE,
    LK_STEP1X_SCORE,
    LK_STEP1X_REFLECT,
    LK_STEP1X_SCORE1,
    LK_STEP1X_SCORE2,
    LK_STEP1X_N_CALLS
};

enum lk_step1x_role { LK_STEP1X_SYSTEM, LK_STEP1X_USER, LK_STEP1X_N_ROLES };

enum lk_step1x_value {
    LK_STEP1X_INSTRUCTION,
    LK_STEP1X_LANGUAGE,
    LK_STEP1X_DESCRIPTION,
    LK_STEP1X_PRIOR_SCORE,
    LK_STEP1X_REASON,
    LK_STEP1X_N_VALUES
};

struct lk_step1x_instructions {
    char *texts[LK_STEP1X_N_CALLS][LK_STEP1X_N_ROLES];
};

/* How a right text is known: how often each value stands in it, and the first 16 hex digits of its SHA-256 when filled
 * with "make it snow", "英文", "D", "5.0" and "R". */
struct lk_step1x_instruction_rules {
    struct lk_step1x_instruction_rule {
        int times[LK_STEP1X_N_VALUES];
        char digest[17];
    } of[LK_STEP1X_N_CALLS][LK_STEP1X_N_ROLES];
};
extern const struct lk_step1x_instruction_rules lk_step1x_released_rules;

/* LK_E_USAGE without a path (what is wanted and how to get it), LK_E_CONFIG_* for keys, LK_E_CHECKSUM for a text that
 * is another or lacks a placeholder. `rules`: those released but in tests. */
enum lk_code lk_step1x_instructions_read(struct lk_step1x_instructions *out, const char *path,
                                         const struct lk_step1x_instruction_rules *rules);
void lk_step1x_instructions_free(struct lk_step1x_instructions *instructions);

/* The text with its values; *out is lk_malloc'ed. A value that looks like a placeholder stays as it is. */
enum lk_code lk_step1x_fill(const char *text, const char *const values[LK_STEP1X_N_VALUES], char **out);
