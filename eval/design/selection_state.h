/* Inside of a selection. Private to eval/design. */
#pragma once

#include "engine/base/store.h"
#include "eval/design/selection.h"

struct lk_selection_choice {
    int16_t source;
    int8_t pool;
};

struct lk_selection {
    const char *pools, *log;
    struct lk_candidate candidates[LK_N_SOURCES][LK_N_POOLS];
    struct lk_selection_choice *stack; /* choices that can be taken back, the last one last */
    size_t n_stack, stack_capacity;
    size_t n_actions;
    int64_t first, last; /* seconds since 1970 */
    struct lk_store texts;
};

/* Seconds since 1970 of 2026-01-17T10:00:00Z; -1 for what is no such time. */
int64_t lk_selection_seconds(const char *time);
/* The first criterion that it does not fulfil; LK_N_CRITERIA: none. */
int lk_selection_failed(const struct lk_candidate *candidate);
