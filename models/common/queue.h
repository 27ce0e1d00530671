/* A queue of jobs passes through the stages of its family together: what one stage needs of the weights is not needed
 * by the others. Stages run first on the plan device, which learns how much memory they take, then on the device. */
#pragma once

#include "models/common/walk.h"
#include "models/family.h"

/* What a family does for one job. A run is the family's state of it and begins with its struct lk_walk. An entry that a
 * family does not need is NULL. */
struct lk_stages {
    size_t run_bytes;
    /* Checks the request, measures, tokenises; walk->result is NULL when the job is only to be planned. Sets
     * walk->checkpoints, vae and sizes. */
    enum lk_code (*begin)(void *run, struct lk_pipeline *pipeline);
    /* Images through the vision tower; prompts through the text encoder. They take what they need from walk->kept and
     * leave what they made there. */
    enum lk_code (*see)(void *run);
    enum lk_code (*encode)(void *run);
    /* Reference i through the VAE, to walk->references[i] under the key. */
    enum lk_code (*encode_reference)(void *run, int i, const char *key);
    /* All of runs[k] that lives through the steps, into the arena: walk->latents and walk->velocity, conditioning,
     * noise, and what is made ahead for all steps; runs[0..k) of the same visit are prepared already. */
    enum lk_code (*prepare)(void *const *runs, int k);
    /* Velocities of step i. */
    enum lk_code (*predict)(void *const *runs, int n, int i);
    /* The latents to the end of step i, whose velocity is there; NULL: an Euler step along it. */
    enum lk_code (*advance)(void *run, int i);
    int (*forwards)(const void *run);    /* of the transformer in a step */
    int (*whole_steps)(const void *run); /* in which all tokens pass through it; NULL: all */
    /* A second diffusion (Stable Cascade's decoder): of its table prepare, predict, advance, forwards and whole_steps
     * count, and its first prepare finds the first diffusion's latents in walk->final. prepare sets walk->n_calls.
     * NULL: there is one. */
    const struct lk_stages *second;
    /* walk->final to walk->result->image. */
    enum lk_code (*decode)(void *run);
    void (*describe)(const void *run, struct lk_plan *out);
    void (*end)(void *run);
};

/* A job has its picture (LK_OK) or cannot be done: notes it and tells the caller. A code that concerns all jobs is
 * returned instead. */
enum lk_code lk_queued_end(const struct lk_queue *queue, struct lk_queued *job, enum lk_code rc);

enum lk_code lk_stages_plan(const struct lk_stages *stages, struct lk_pipeline *pipeline,
                            const struct lk_device *target, const struct lk_request *request, struct lk_plan *out);
/* What `begin` says of the request: its sizes, and its tokens. */
enum lk_code lk_stages_check(const struct lk_stages *stages, struct lk_pipeline *pipeline,
                             const struct lk_request *request);
/* lk_pipeline_edit_queue for requests that were checked: jobs that have ended already are passed over. */
enum lk_code lk_stages_run(const struct lk_stages *stages, struct lk_pipeline *pipeline, struct lk_device *dev,
                           const struct lk_queue *queue);
