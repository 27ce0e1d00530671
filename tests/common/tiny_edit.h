/* Whole jobs of the tiny checkpoints, a second or so each on the simulated GPU: one edit and one picture from text
 * alone of each family. */
#pragma once

#include "models/pipeline.h"

struct tiny_edit {
    const char *name;       /* "flux2 edit" */
    const char *checkpoint; /* relative to tests/ */
    bool from_text;
    const char *lora; /* a LoRA of all its layers, FILE=SCALE */
};
#define TINY_EDITS 6
extern const struct tiny_edit tiny_edits[TINY_EDITS]; /* the edits, then those from text */
#define TINY_FAMILIES 3
#define TINY_PICTURES 3
extern const struct tiny_edit tiny_pictures[TINY_PICTURES]; /* of models that make pictures from text alone */

/* An open job; everything in it lives until tiny_job_close. */
struct tiny_job {
    struct lk_pipeline *pipeline;
    struct lk_image image;
    struct lk_request request;
};
/* n_steps 0: the fewest that the family takes. Fails the running test when something cannot be opened. */
void tiny_job_open(struct tiny_job *job, const struct tiny_edit *edit, enum lk_dtype dtype, int n_steps);
/* The same with other weights, from a folder, or packed as they are read. */
void tiny_job_open_with(struct tiny_job *job, const struct tiny_edit *edit, const char *checkpoint,
                        const struct lk_pipeline_options *options, int n_steps);
void tiny_job_close(struct tiny_job *job);
