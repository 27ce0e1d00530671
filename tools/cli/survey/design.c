#include "tools/cli/survey/design.h"

#include <stdio.h>
#include <string.h>

enum { RATERS = 3, SHARED_PERCENT = 20, PILOT_TASKS = 2 };

enum lk_code survey_design_begin(struct survey_design *d, const struct cli_arguments *a, int experiment,
                                 const char *human, const char *run) {
    const char *otherwise = !strcmp(human, "003") && experiment != 2 ? "001" : human;
    const char *protocol = a->survey.protocol ? a->survey.protocol : otherwise;
    *d = (struct survey_design){.protocol = (enum lk_protocol)lk_protocol_parse(protocol),
                                .experiment = experiment,
                                .pilot = a->survey.pilot > 0,
                                .pilot_raters = a->survey.pilot,
                                .raters = a->survey.raters,
                                .shared_percent = a->survey.shared,
                                .asked_tasks = a->study.tasks,
                                .pay = a->survey.pay,
                                .minutes = a->survey.minutes};
    if (d->protocol == LK_PROTOCOL_003 && experiment != 2)
        return lk_fail(LK_E_USAGE, "survey new: --protocol: 003 asks about pairs, and %s has none; use 001, 000 or 004",
                       run);
    if (d->pilot && d->shared_percent)
        return lk_fail(LK_E_USAGE, "survey new: --pilot has everybody do both tasks: leave out --shared");
    return LK_OK;
}

/* Items of the study that a task holds, as the protocols print it: 50 pairs; 50, 30, 40 stimuli; 40 or 25 with gold. */
static size_t a_task(const struct survey_design *d) {
    static const size_t stimuli[] = {50, 30, 40};
    if (d->protocol == LK_PROTOCOL_003) return 50;
    if (d->protocol == LK_PROTOCOL_001) return stimuli[d->experiment - 1];
    return (size_t)((d->protocol == LK_PROTOCOL_000 && d->experiment == 3 ? 25 : 40) - d->gold_per_task);
}

size_t survey_design_count(struct survey_design *d, size_t n_items) {
    const bool turk = d->protocol == LK_PROTOCOL_000 || d->protocol == LK_PROTOCOL_004;
    d->gold_per_task = !d->has_gold ? 0 : !turk || d->experiment == 3 ? 2 : 4;
    d->places = d->raters ? (int)d->raters : RATERS;
    d->tasks_per_worker = 1;
    const size_t each = a_task(d);
    if (d->pilot) {
        if (n_items > PILOT_TASKS * each) n_items = PILOT_TASKS * each;
        d->places = (int)d->pilot_raters;
        d->n_tasks = n_items < PILOT_TASKS ? 1 : PILOT_TASKS;
        d->tasks_per_worker = d->n_tasks;
        return n_items;
    }
    if (d->protocol == LK_PROTOCOL_001 && !d->raters && !d->shared_percent) d->shared_percent = SHARED_PERCENT;
    const size_t n_shared = (n_items * (size_t)d->shared_percent + 50) / 100;
    const size_t n = n_items + n_shared * (size_t)(d->places - 1);
    size_t n_tasks = d->asked_tasks ? (size_t)d->asked_tasks : (n + each - 1) / each;
    if (n_shared && n_tasks < (size_t)d->places && !d->asked_tasks) n_tasks = (size_t)d->places;
    d->n_tasks = (int)n_tasks;
    return n_items;
}

void survey_design_write(const struct survey_design *d, struct lk_text *out) {
    lk_text_add(out, "  \"gold_per_task\": %d,\n  \"tasks\": %d,\n", d->gold_per_task, d->n_tasks);
    if (d->shared_percent)
        lk_text_add(out, "  \"places\": 1,\n  \"shared_percent\": %d,\n  \"shared_raters\": %d,\n",
                    (int)d->shared_percent, d->places);
    else
        lk_text_add(out, "  \"places\": %d,\n", d->places);
    if (d->tasks_per_worker > 1) lk_text_add(out, "  \"tasks_per_worker\": %d,\n", d->tasks_per_worker);
    if (d->minutes > 0) lk_text_add(out, "  \"minutes\": %g,\n", d->minutes);
    if (d->pay > 0) lk_text_add(out, "  \"pay\": %g,\n", d->pay);
}

void survey_design_print(const struct survey_design *d, const char *path, size_t n_items, const char *what) {
    printf("%s: %zu %s in %d %s, ", path, n_items, what, d->n_tasks, d->n_tasks == 1 ? "task" : "tasks");
    if (d->pilot)
        printf("all for each of %d people", d->places);
    else if (d->shared_percent)
        printf("%d %% of them for %d people, the others for one", (int)d->shared_percent, d->places);
    else
        printf("each for %d people", d->places);
    puts("; fill in approval, investigator and contact");
}
