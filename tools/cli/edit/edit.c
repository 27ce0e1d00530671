#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

enum lk_code cli_edit(const struct cli_arguments *a) {
    struct cli_job job = {
        .job = a->job, .model = a->model, .n_images = a->n_images, .output = a->output, .dump_steps = a->dump_steps};
    memcpy(job.images, a->images, sizeof job.images);
    return cli_job_run(&job);
}
