/* One edit from files to a file: what `edit` and `rerun` share. */
#pragma once

#include "tools/cli/edit/recipe.h"

struct cli_job {
    struct lk_job job; /* as given; completed by the run */
    const char *model;
    const char *images[LK_MAX_REFERENCES];
    int n_images;
    const char *output;
    const char *dump_steps; /* NULL: none */
    /* When the run must repeat another one: the picture with its recipe, and identities it must find; NULL otherwise.
     */
    const char *recipe;
    const char *weights_identity;
    const char *image_sha256[LK_MAX_REFERENCES];
};

/* What the complete job needs; LK_E_USAGE for what no such job can have. */
enum lk_code cli_job_plan(struct lk_pipeline *pipeline, const struct lk_device *target, const struct lk_job *job,
                          struct lk_plan *out);
/* Runs it and prints the output's path. */
enum lk_code cli_job_run(struct cli_job *job);

enum lk_dtype cli_dtype(const struct lk_job_run *run);
struct lk_pipeline_options cli_pipeline_options(const struct lk_job_run *run);
/* run->device: "cpu", "cuda" or "cuda:INDEX", with the libraries that compute there. LK_E_DEVICE for a device that this
 * build or machine does not have. */
enum lk_code cli_device_open(const struct lk_job_run *run, struct lk_device **out);
/* The same for planning alone, where it may also be "sm_80" or "sm_90", a GPU that need not be there. */
enum lk_code cli_plan_target(const struct lk_job_run *run, struct lk_device **out);

/* What a recipe has of a source beside its pixels: the file's name and digest. expected: the digest that it must have,
 * or NULL. */
enum lk_code cli_image_read(const char *path, const char *expected, bool exif_transpose, struct lk_image *out,
                            char name[256], char sha256[65]);
/* A model as recipes have it: a folder by its own name, a repository as it was written. */
void cli_model_name(const char *model, char out[256]);
/* run->job is complete. */
enum lk_code cli_picture_write(const char *path, const struct cli_run *run);
