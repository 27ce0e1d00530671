/* survey cost: what raters are paid, by a plan. */
#include <stdio.h>
#include <string.h>

#include "engine/base/log.h"
#include "eval/study/packing.h"
#include "tools/cli/cli.h"
#include "tools/cli/survey/http.h"

const char *survey_money(double dollars, char out[32]) {
    char digits[32];
    const long long cents = (long long)(dollars * 100 + 0.5);
    const int n = snprintf(digits, sizeof digits, "%lld", cents / 100);
    char *at = out;
    *at++ = '$';
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) *at++ = ',';
        *at++ = digits[i];
    }
    *at++ = '.';
    *at++ = (char)('0' + cents / 10 % 10);
    *at++ = (char)('0' + cents % 10);
    *at = '\0';
    return out;
}

static void print_money(const char *name, double dollars) {
    char text[32];
    printf("%s %s\n", name, survey_money(dollars, text));
}

enum lk_code survey_cost(const struct cli_arguments *a) {
    const char *name = a->more[0];
    const struct lk_cost_plan *plan = lk_cost_plan(name ? name : "003");
    struct lk_study_cost cost;
    if (!plan) return lk_fail(LK_E_USAGE, "survey cost: expected 000, 004, 001, 003, 000-packed or pilot");
    lk_cost(plan, &cost);
    for (int i = 0; i < plan->n_lines; i++) {
        const struct lk_cost_line *line = &plan->lines[i];
        printf("%s: %lld x $%.2f = $%.2f; $%.2f to $%.2f an hour; minimum wage $%.2f%s\n", line->name,
               (long long)line->n, line->pay, cost.line_subtotal[i], cost.hourly_min[i], cost.hourly_max[i],
               cost.floor[i], cost.below_floor[i] ? ", PAY IS LOWER" : "");
    }
    print_money("subtotal", cost.subtotal);
    print_money("fee", cost.fee);
    print_money("total", cost.total);
    if (cost.bonus > 0) print_money("bonus", cost.bonus);
    if (cost.bonus > 0) print_money("with bonus", cost.total_with_bonus);
    if (!strcmp(plan->name, "003"))
        lk_log(LK_LOG_WARNING, "the ethical statement promises $12 an hour; this pays less");
    return LK_OK;
}
