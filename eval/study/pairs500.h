/* The balanced sample of 500 pairs for experiment 2: every count of the study's sampling table at once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

enum { LK_N_PAIRS = 500, LK_N_FIVE_PAIR_CELLS = 4 };

struct lk_pair {
    int16_t source; /* 0..83 */
    int8_t model;
    int8_t prompt; /* 0..19 */
};

/* P001 is out[0]. */
void lk_pairs500(uint64_t seed, struct lk_pair out[LK_N_PAIRS]);

/* The same from a given order of the 84 sources, the 20 prompts, and the sources that get five pairs instead of six. */
void lk_pairs500_arrange(const int32_t sources[84], const int32_t prompts[20], const int32_t five[LK_N_FIVE_PAIR_CELLS],
                         struct lk_pair out[LK_N_PAIRS]);
/* The four cells of a seed, in the order of the races Black, SoutheastAsian, Indian, MiddleEastern. */
void lk_pairs500_fives(uint64_t seed, int32_t out[LK_N_FIVE_PAIR_CELLS]);

/* pairs500.csv: "pair_id,race,gender,age,prompt_id,model" and the 500 lines, NUL-terminated, lk_free. */
enum lk_code lk_pairs500_csv(const struct lk_pair pairs[LK_N_PAIRS], char **out, size_t *n);
/* SHA-256 (hex) of the 500 lines "race,gender,age,prompt_id,model\n". */
enum lk_code lk_pairs500_sha256(const struct lk_pair pairs[LK_N_PAIRS], char out[65]);
