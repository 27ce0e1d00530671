/* survey cost: what raters are paid, by a printed plan or by numbers of one's own. */
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

/* The plan that the options describe. */
static enum lk_code plan_of_options(const struct cli_arguments *a, struct lk_cost_plan *out) {
    const struct cli_survey_arguments *o = &a->survey;
    const struct {
        const char *name;
        bool given;
    } needed[] = {{"tasks", a->study.tasks}, {"pay", o->pay > 0}, {"minutes", o->minutes > 0}, {"raters", o->raters}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].given)
            return lk_fail(LK_E_USAGE,
                           "--%s: missing; a cost without a PLAN needs --tasks, --pay, --minutes and --raters",
                           needed[i].name);
    *out = (struct lk_cost_plan){
        .name = "",
        .lines = {{"tasks", a->study.tasks * o->raters, o->pay, o->minutes * 60, o->minutes * 60}},
        .n_lines = 1,
        .fee_rate = o->fee / 100,
        .bonus = o->bonus,
        .bonus_share = 1,
        .fee_on_bonus = true};
    return LK_OK;
}

static void print_line(const struct lk_study_cost *cost, const struct lk_cost_line *line, int i) {
    char money[5][32];
    const double dollars[] = {line->pay, cost->line_subtotal[i], cost->hourly_min[i], cost->hourly_max[i],
                              cost->floor[i]};
    for (int k = 0; k < 5; k++) survey_money(dollars[k], money[k]);
    printf("%s: %lld x %s = %s; %s to %s an hour; minimum wage %s%s\n", line->name, (long long)line->n, money[0],
           money[1], money[2], money[3], money[4], cost->below_floor[i] ? ", PAY IS LOWER" : "");
}

enum lk_code survey_cost(const struct cli_arguments *a) {
    const char *name = a->more[0];
    const struct cli_survey_arguments *o = &a->survey;
    const bool options = a->study.tasks || o->raters || o->pay > 0 || o->minutes > 0 || o->fee > 0 || o->bonus > 0;
    const struct lk_cost_plan *plan = lk_cost_plan(name ? name : "003");
    struct lk_cost_plan own;
    struct lk_study_cost cost;
    if (!plan) return lk_fail(LK_E_USAGE, "survey cost: expected 000, 004, 001, 003, 000-packed or pilot");
    if (options && name) return lk_fail(LK_E_USAGE, "survey cost: expected a PLAN or its numbers, got both");
    if (options) LK_TRY(plan_of_options(a, &own));
    if (options) plan = &own;
    lk_cost(plan, &cost);
    for (int i = 0; i < plan->n_lines; i++) print_line(&cost, &plan->lines[i], i);
    print_money("subtotal", cost.subtotal);
    print_money("fee", cost.fee);
    print_money("total", cost.total);
    if (cost.bonus > 0) print_money("bonus", cost.bonus);
    if (cost.bonus > 0) print_money("with bonus", cost.total_with_bonus);
    if (!strcmp(plan->name, "003"))
        lk_log(LK_LOG_WARNING, "the ethical statement promises $12 an hour; this pays less");
    return LK_OK;
}
