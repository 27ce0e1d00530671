/* Prompts that are rewritten before their edits. */
#pragma once

#include "models/rewrite/rewrite.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

/* The rewriter of --rewrite-prompts, --rewrite-model (otherwise: the encoder of `model`) and --rewrite-temperature, on
 * the command line's device. Free in any case. */
struct cli_rewriter {
    struct cli_devices devices;
    struct lk_rewriter rewriter;
};
enum lk_code cli_rewriter_open(struct cli_rewriter *out, const struct cli_arguments *a, const char *model);
void cli_rewriter_close(struct cli_rewriter *rewriter);

/* The prompts of all jobs: each gets its new prompt and the record of it, or the reason why there is none. */
enum lk_code cli_rewrite_jobs(const struct cli_arguments *a, struct cli_jobs *jobs);
void cli_rewrite_jobs_free(struct cli_jobs *jobs);

/* LK_E_CONFLICT unless the rewriter makes of the recipe's original prompt the prompt that the recipe has. */
enum lk_code cli_rewrite_again(const struct cli_arguments *a, const struct lk_recipe *recipe);
