/* Work for raters: items packed into HITs and tasks, the order of each rater's items, and what it costs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* The printed arithmetic of the older protocols, the same rounded up, and what can be worked with: room for gold items,
 * each HIT published once per rater. */
enum lk_packing { LK_PACKING_SEED, LK_PACKING_CEIL, LK_PACKING_PACKED };

struct lk_hits {
    int64_t n_hits;        /* different HITs; with seed and ceil the raters are already in the count */
    int64_t n_assignments; /* paid pieces of work */
};

/* LK_E_INPUT when a count is below 1 or the gold items leave no room. */
enum lk_code lk_pack_hits(int64_t n_items, int n_raters, int per_hit, int gold_per_hit, enum lk_packing rule,
                          struct lk_hits *out);

/* Which item stands where when n items are cut into tasks of equal length: out [n], shuffled by stream(seed, "tasks"),
 * or as they come when blocked. Task t holds out[t * per_task] and on. */
void lk_pack_tasks(size_t n, bool blocked, uint64_t seed, int32_t *out);

/* The order in which a participant sees a task's items and gold items: out [n_items + n_gold], items as 0.., gold as
 * -1, -2, ... by stream(seed, "order|PARTICIPANT|TASK"). Gold is never first and never adjacent: LK_E_INPUT when
 * n_gold > n_items, LK_E_NOMEM. */
enum lk_code lk_task_order(uint64_t seed, const char *participant, const char *task, size_t n_items, size_t n_gold,
                           int32_t *out);
/* The arm on the left for this participant and item, by stream(seed, "side|PARTICIPANT|ITEM"): lk_arm. */
enum lk_code lk_left_arm(uint64_t seed, const char *participant, const char *item, int *out);

struct lk_cost_line {
    const char *name; /* "exp1" */
    int64_t n;        /* paid pieces of work */
    double pay;       /* dollars each */
    double seconds_min, seconds_max;
};
struct lk_cost_plan {
    const char *name; /* "000" */
    struct lk_cost_line lines[3];
    int n_lines;
    double fee_rate;           /* of the subtotal */
    double bonus, bonus_share; /* dollars per piece, and the share of pieces that get it */
    int bonus_percent;         /* of attention checks right that earn it: at least, or */
    bool bonus_above;          /* ... more than these */
    bool fee_on_bonus;
};
struct lk_study_cost {
    double subtotal, fee, total; /* dollars; total without the bonus */
    double bonus, total_with_bonus;
    int64_t n;
    double line_subtotal[3];
    double hourly_min[3], hourly_max[3]; /* pay / time */
    double floor[3];                     /* 7.25 dollars an hour for the longest time */
    bool below_floor[3];
};

void lk_cost(const struct lk_cost_plan *plan, struct lk_study_cost *out);
/* "000", "004", "001", "003", "000-packed" or "pilot"; NULL when it is none. */
const struct lk_cost_plan *lk_cost_plan(const char *name);
