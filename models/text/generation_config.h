/* generation_config.json: how ids are chosen and when to stop (transformers' GenerationConfig). */
#pragma once

#include <stdint.h>

#include "weights/config.h"

#define LK_MAX_STOP_IDS 8

struct lk_generation_config {
    bool do_sample; /* false: the first of the highest scores */
    double temperature;
    int64_t top_k; /* 0: off */
    double top_p;  /* 1: off */
    double repetition_penalty;
    int64_t max_new_tokens;             /* 0: not said */
    int64_t max_length;                 /* prompt and output together; 0: not said. max_new_tokens goes before it */
    int64_t bos_token_id, pad_token_id; /* -1: none */
    int64_t stop_ids[LK_MAX_STOP_IDS];  /* eos_token_id */
    size_t n_stop_ids;
};

/* What transformers does when a file says nothing: greedy, and for sampling temperature 1, top_k 50, top_p 1. */
void lk_generation_config_init(struct lk_generation_config *config);

/* Keys that would change what is generated must have the value that switches them off; unknown keys are errors. Takes
 * and closes `json`. */
enum lk_code lk_generation_config_read(struct lk_generation_config *out, struct lk_config *json);

/* Ranges, for settings that did not come from a file: LK_E_USAGE. */
enum lk_code lk_generation_config_check(const struct lk_generation_config *config);
