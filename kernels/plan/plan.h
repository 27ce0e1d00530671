/* Shared by the parts of the plan device. */
#pragma once

#include "engine/ops.h"

/* An op has read a weight, or computes (start 0). */
struct lk_plan_note {
    uintptr_t start;
    size_t bytes;
    uintptr_t leader; /* of a linear's weight whose scales these are; 0 */
    int64_t rows;
    double gemm_flops, attention_flops, other_bytes;
    double packed; /* weights that a byte of it holds, if they are packed; 0 */
    int stage;
    bool travels;
};

struct lk_plan_stage_weights {
    struct lk_ranges ranges; /* that ops have read */
    uint64_t parameters;
};

struct lk_plan_device {
    struct lk_device device;
    struct lk_op_table table; /* run does nothing, scratch asks the target */
    const struct lk_device *target;
    struct lk_ranges weights; /* that ops have read */
    struct lk_plan_note *notes;
    size_t n_notes, notes_capacity;
    char stages[LK_MAX_STAGES][24];
    uint64_t stage_peaks[LK_MAX_STAGES];
    struct lk_plan_stage_weights stage_weights[LK_MAX_STAGES];
    int n_stages, stage; /* what comes before the first stage belongs to it */
};

static inline struct lk_plan_device *lk_plan_device_of(const struct lk_device *dev) {
    return (struct lk_plan_device *)(uintptr_t)dev;
}
