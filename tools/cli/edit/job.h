/* Edits from files to files: what `edit`, `embed` and `rerun` share. One edit is a queue of one. */
#pragma once

#include "models/pipeline.h"
#include "models/recipe.h"
#include "models/rewrite/rewrite.h"
#include "tools/cli/cli.h"

/* --preview FILE: a file that is rewritten after steps, with a small picture of what the one under way comes to. */
struct cli_preview {
    const char *file; /* NULL: none */
    int every;        /* steps; 0: 1 */
    bool failed;      /* it could not be written */
};

/* LK_E_USAGE for a file that is there and is no picture of ours. */
enum lk_code cli_preview_check(const char *file, bool overwrite);
/* LK_E_USAGE for a family that has no previews. p outlives the request. */
enum lk_code cli_preview_attach(struct cli_preview *p, const struct lk_pipeline *pipeline, struct lk_request *request);

struct cli_job {
    struct lk_job job; /* as given; completed by the run */
    const char *images[LK_MAX_REFERENCES];
    int n_images;
    const char *output;
    int quality;                                 /* of a JPEG or WebP; 0: the default */
    const char *image_sha256[LK_MAX_REFERENCES]; /* that the images must have; NULL: any */
    bool as_stored[LK_MAX_REFERENCES];           /* their colours are not converted to sRGB */
    char where[64];                              /* of a list: "line 3"; else "" */
    struct {
        char *original, *record, *text; /* lk_malloc'ed; NULL: the prompt is as given */
        struct lk_error error;          /* code LK_OK: none */
    } rewrite;                          /* models/rewrite/rewrite.h */
};

struct cli_jobs {
    struct cli_job *list;
    int n;
    const char *file; /* the list; NULL: one job, of the command line */
    const char *model;
    const char *dump_steps;     /* of one job; NULL: none */
    struct cli_preview preview; /* the same */
    const char *embeds;         /* encode the prompts into this file instead of editing; NULL */
    int jobs_per_visit;
    bool auto_quantize; /* their run.quantize is to be chosen, for the first of them */
    bool overwrite;     /* also files that are not of this program */
    bool check_steps;   /* refuse a number of steps that the model is not made for */
    /* Of a list: when its jobs are done, the next ones, in place of list and n; n 0: there are none. NULL: one list.
     * Their outcome is the caller's to tell. */
    enum lk_code (*next)(struct cli_jobs *jobs);
    void *context;
    /* When the run must repeat another one: the picture with its recipe, and the weights it must find; else NULL. */
    const char *recipe, *weights_identity, *configs; /* configs NULL: the recipe does not say */
    bool allow_other;                                /* other configs than those are a warning */
};

struct cli_arguments;
/* Reference images that are planned and timed: as told, else one for models that take any. */
int cli_references(const struct cli_arguments *a, const struct lk_pipeline *pipeline);
/* LK_E_USAGE for a number of steps that the model is not made for. The job is complete. */
enum lk_code cli_job_check_steps(const struct lk_pipeline *pipeline, const struct lk_job *job);
/* What the complete job needs; LK_E_USAGE for what no such job can have. */
enum lk_code cli_job_plan(struct lk_pipeline *pipeline, const struct lk_device *target, const struct lk_job *job,
                          struct lk_plan *out);
/* Runs them and prints the path of each output. Of a list, jobs that cannot be done are named and the others are done:
 * LK_E_PARTIAL. */
enum lk_code cli_jobs_run(struct cli_jobs *jobs);

/* A job as the recipe has it, computed where `given` says. */
void cli_rerun_job(struct lk_job *job, const struct lk_recipe *recipe, const struct lk_job *given);

/* A list from a file with a JSON object a line: keys of parameters as recipes have them, "images" and "output". What a
 * line does not say is as in `given`. The list is to be freed with cli_jobs_free. Errors name line and field. */
enum lk_code cli_jobs_read(struct cli_jobs *jobs, const struct cli_job *given);
void cli_jobs_free(struct cli_jobs *jobs);

/* What is wrong with a job, found before the long run: texts that are none, an output that cannot be written or that is
 * read by a job. */
enum lk_code cli_jobs_check(const struct cli_jobs *jobs);

enum lk_dtype cli_dtype(const struct lk_job_run *run);
struct lk_pipeline_options cli_pipeline_options(const struct lk_job_run *run);
/* For --quantize auto: what is chosen for jobs like this one, whose images need only have sizes; it is logged. */
enum lk_code cli_choose_quantize(const char *model, const struct lk_job *job, int jobs_per_visit,
                                 struct lk_device *target, const char **out);
/* run->device: "cpu", "cuda" or "cuda:INDEX", with the libraries that compute there. LK_E_DEVICE for a device that this
 * build or machine does not have. */
enum lk_code cli_device_open(const struct lk_job_run *run, struct lk_device **out);
/* The same, or all of run->device, as cuda:0,1, that hold the weights together: ranks. */
struct cli_devices {
    struct lk_device *list[LK_MAX_RANKS];
    int n;
};
enum lk_code cli_devices_open(const struct lk_job_run *run, struct cli_devices *out);
void cli_devices_free(struct cli_devices *devices);
enum lk_code cli_devices_edit(struct lk_pipeline *pipeline, const struct cli_devices *devices,
                              const struct lk_queue *queue);
/* The same as one for planning alone, where it may also be one of LK_CUDA_DESCRIBED, a GPU that need not be there; a
 * list stands for as many ranks, of which it is one. */
enum lk_code cli_plan_target(const struct lk_job_run *run, struct lk_device **out);

/* Prompts that are rewritten before their edits. */

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
