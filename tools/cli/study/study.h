/* Actions of `study`. */
#pragma once

#include "eval/design/study.h"
#include "tools/cli/core/options.h"

enum lk_code study_new(const struct cli_arguments *a); /* a file to begin with */
enum lk_code study_check(const struct cli_arguments *a);
void study_warn_of_leaks(const struct lk_study *study); /* feature prompts that name a demographic group */
enum lk_code study_compare(const struct cli_arguments *a, struct lk_study *study); /* with operand 2 */
enum lk_code study_rewrite(const struct cli_arguments *a, struct lk_study *study);
enum lk_code study_run_all(const struct cli_arguments *a, struct lk_study *study); /* with --all its judges too */
enum lk_code study_run(const struct cli_arguments *a, struct lk_study *study);
enum lk_code study_rerun(const struct cli_arguments *a, struct lk_study *study);
enum lk_code study_merge(const struct cli_arguments *a, struct lk_study *study);
enum lk_code study_slurm(const struct cli_arguments *a, struct lk_study *study);
enum lk_code study_k8s(const struct cli_arguments *a, struct lk_study *study);
/* Of a run's folder. */
enum lk_code study_status(const struct cli_arguments *a);
enum lk_code study_prune(const struct cli_arguments *a);
enum lk_code study_verify(const struct cli_arguments *a);
enum lk_code study_jobs(const struct cli_arguments *arguments, struct lk_study *study);
enum lk_code study_prompts_of(const struct cli_arguments *arguments); /* of operand 1, if there is one */
/* study: NULL when no file was given. */
enum lk_code study_prompts(const struct cli_arguments *arguments, struct lk_study *study);
enum lk_code study_pools(const struct cli_arguments *arguments);
enum lk_code study_finalize(const struct cli_arguments *arguments);
enum lk_code study_validate(const struct cli_arguments *arguments);
/* The pools in a file and the log beside it, selection_log.jsonl. action: "study finalize", for messages. */
struct lk_selection;
enum lk_code study_selection_open(const char *pools, const char *action, struct lk_selection **out);
enum lk_code study_serve_selection(const struct cli_arguments *arguments);
/* A run while it goes on. */
enum lk_code study_serve_run(const struct cli_arguments *arguments);
enum lk_code study_plan(const struct cli_arguments *arguments, struct lk_study *study);
/* LK_E_USAGE when no job of an experiment and model could be made, whatever it is given. */
enum lk_code study_can_run(const struct cli_arguments *arguments, const struct lk_study *study);
/* `bench study STUDY.json RESULT.json...`: the same from what was measured. */
enum lk_code study_bench(const struct cli_arguments *arguments);
