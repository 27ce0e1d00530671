/* Pictures of a log that were made here are made again, each from its own recipe, to look at what happens meanwhile. */
#pragma once

#include "tools/cli/t2i/t2i.h"
#include "tools/cli/edit/job.h"

struct cli_replay {
    const struct cli_arguments *arguments;
    struct lk_t2i_images log;
    struct lk_pipeline *pipeline;
    struct lk_device *device;
    int32_t *chosen;         /* [n]: lines of the log, rising */
    size_t n, n_other;       /* n_other: pictures that came out with other pixels than the file has */
    struct lk_recipe recipe; /* of the picture at hand, with its job */
    struct lk_job job;
};

/* --log, --model, and of the base arm's pictures of that model a sample, --sample of them, as many of each prompt as
 * its share is. prompts (NULL: any), wanted [prompts->n] (NULL: all): which of them. LK_E_INPUT with the reason where
 * none was made here. cli_replay_close in any case. */
enum lk_code cli_replay_open(struct cli_replay *r, const struct cli_arguments *arguments,
                             const struct lk_t2i_prompts *prompts, const bool *wanted);
/* The job of picture i, in r->job until the next; LK_E_METADATA for one without a recipe. */
enum lk_code cli_replay_job(struct cli_replay *r, size_t i);
/* Whether it came out as it was; counted, and refused where the same kernels made it. */
enum lk_code cli_replay_compare(struct cli_replay *r, size_t i, const struct lk_image *image);
void cli_replay_close(struct cli_replay *r);
