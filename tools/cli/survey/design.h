/* How `survey new` cuts items into tasks for raters. */
#pragma once

#include "tools/cli/cli.h"
#include "tools/cli/survey/http.h"

struct survey_design {
    enum lk_protocol protocol;
    int experiment;
    bool has_gold, pilot;
    int64_t pilot_raters, raters, shared_percent, asked_tasks; /* 0: not asked for */
    double pay, minutes;
    int gold_per_task, n_tasks, places, tasks_per_worker;
};
/* The protocol: --protocol, or `human`, the study's own, but where the items are no pairs 001 for 003. LK_E_USAGE where
 * it has no such items; run: what messages name. */
enum lk_code survey_design_begin(struct survey_design *design, const struct cli_arguments *a, int experiment,
                                 const char *human, const char *run);
/* Tasks and places; how many of the items it takes: a pilot not all. */
size_t survey_design_count(struct survey_design *design, size_t n_items);
void survey_design_write(const struct survey_design *design, struct lk_text *out);
void survey_design_print(const struct survey_design *design, const char *path, size_t n_items, const char *what);
