#include <math.h>
#include <string.h>

#include "eval/study/packing.h"

static const double minimum_wage = 7.25; /* dollars an hour */

static const struct lk_cost_plan plans[] = {
    {.name = "000",
     .lines = {{"exp1", 38, 1.50, 600, 600}, {"exp2", 25, 2.00, 800, 800}, {"exp3", 6, 1.00, 375, 375}},
     .n_lines = 3,
     .fee_rate = 0.2,
     .bonus = 0.25,
     .bonus_share = 0.6,
     .bonus_percent = 90},
    {.name = "004",
     .lines = {{"exp1", 38, 1.50, 600, 900}, {"exp2", 25, 1.50, 600, 900}, {"exp3", 8, 1.50, 600, 900}},
     .n_lines = 3,
     .fee_rate = 0.2},
    {.name = "001",
     .lines = {{"participants", 300, 4.00, 1200, 1200}},
     .n_lines = 1,
     .bonus = 1.00,
     .bonus_percent = 90,
     .bonus_above = true},
    {.name = "003", .lines = {{"tasks", 30, 3.00, 1500, 1800}}, .n_lines = 1, .fee_rate = 1.0 / 3},
    {.name = "000-packed",
     .lines = {{"exp1", 42, 1.50, 600, 600}, {"exp2", 30, 2.00, 800, 800}, {"exp3", 9, 1.00, 375, 375}},
     .n_lines = 3,
     .fee_rate = 0.2,
     .bonus = 0.25,
     .bonus_share = 0.6,
     .bonus_percent = 90},
    {.name = "pilot", .lines = {{"exp1", 20, 1.50, 600, 600}}, .n_lines = 1},
};

const struct lk_cost_plan *lk_cost_plan(const char *name) {
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (!strcmp(plans[i].name, name)) return &plans[i];
    return NULL;
}

void lk_cost(const struct lk_cost_plan *plan, struct lk_study_cost *out) {
    *out = (struct lk_study_cost){0};
    for (int i = 0; i < plan->n_lines; i++) {
        const struct lk_cost_line *line = &plan->lines[i];
        out->line_subtotal[i] = (double)line->n * line->pay;
        out->subtotal += out->line_subtotal[i];
        out->n += line->n;
        out->hourly_max[i] = line->pay * 3600 / line->seconds_min;
        out->hourly_min[i] = line->pay * 3600 / line->seconds_max;
        out->floor[i] = minimum_wage * line->seconds_max / 3600;
        out->below_floor[i] = line->pay < out->floor[i];
    }
    out->bonus = plan->bonus * (double)out->n * plan->bonus_share;
    const double fee = plan->fee_rate * (out->subtotal + (plan->fee_on_bonus ? out->bonus : 0));
    out->fee = floor(fee * 100 + 0.5) / 100; /* whole cents, so that printed sums add up */
    out->total = out->subtotal + out->fee;
    out->total_with_bonus = out->total + out->bonus;
}
