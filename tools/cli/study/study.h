/* Actions of `study`. */
#pragma once

#include "eval/design/study.h"
#include "tools/cli/core/options.h"

cli_action study_new; /* a file to begin with */
cli_action study_check, study_pools, study_finalize, study_validate;
cli_action study_prompts_of; /* of operand 1, if there is one */
cli_action study_serve_selection;
cli_action study_serve_run;                         /* a run while it goes on */
cli_action study_status, study_prune, study_verify; /* of a run's folder */
cli_action study_bench; /* `bench study STUDY.json RESULT.json...`: the plan from what was measured */
cli_study_action study_plan, study_jobs, study_rewrite, study_run, study_rerun, study_merge, study_slurm, study_k8s;
cli_study_action study_prompts;                         /* study: NULL when no file was given */
cli_study_action study_compare;                         /* with operand 2 */
cli_study_action study_run_all;                         /* with --all its judges too */
void study_warn_of_leaks(const struct lk_study *study); /* feature prompts that name a demographic group */
/* The pools in a file and the log beside it, selection_log.jsonl. action: "study finalize", for messages. */
struct lk_selection;
enum lk_code study_selection_open(const char *pools, const char *action, struct lk_selection **out);
/* LK_E_USAGE when no job of an experiment and model could be made, whatever it is given. */
enum lk_code study_can_run(const struct cli_arguments *arguments, const struct lk_study *study);
