/* One walk over the stages of a pipeline serves planning and running: on the plan device nothing is computed, pixels
 * and token ids are not looked at, and one step stands for all. Here is what the walks of all families share. */
#pragma once

#include "engine/ops.h"
#include "engine/rng.h"
#include "models/pipeline.h"
#include "weights/bind.h"

struct lk_walk {
    struct lk_device *dev;
    const struct lk_request *request;
    enum lk_dtype dtype;
    struct lk_plan *plan;     /* stages are noted here; NULL when running */
    struct lk_result *result; /* NULL when planning */
    float sigmas[LK_MAX_STEPS + 1], timesteps[LK_MAX_STEPS + 1];
};

/* The stages of a family's run; `run` is the family's state, whose lk_walk it knows. */
typedef enum lk_code lk_walk_fn(void *run);

static inline bool lk_walk_planning(const struct lk_walk *walk) { return walk->dev->kind == LK_DEVICE_PLAN; }

/* A stage begins: peak memory is measured afresh, the caller is told. A stage is ended by lk_walk_note with the same
 * name. *before gets the cost up to here. */
enum lk_code lk_walk_begin(struct lk_walk *walk, const char *name, struct lk_cost *before);
/* calls: forwards per image; the cost since *before is that of one. */
void lk_walk_note(struct lk_walk *walk, const char *name, const struct lk_bind_totals *totals, int calls,
                  const struct lk_cost *before);

/* LK_E_NONFINITE naming stage and step (from 0; -1: none) when t has a NaN or Inf. */
enum lk_code lk_walk_check_finite(const struct lk_walk *walk, const struct lk_tensor *t, const char *stage, int step);

/* Shows host values to the trace. */
enum lk_code lk_walk_trace_host(const struct lk_walk *walk, const char *name, const void *values, enum lk_dtype dtype,
                                int64_t n);

/* Draws [C, n] normals in the compute dtype, in the order in which torch draws them, and uploads them channels last
 * into `rows` [n, C] (or [h, w, C] with n = h w). latents: they are the initial latents, whose digest is recorded and
 * for which request->latents may stand in; otherwise they are a posterior's and request->posterior_noise may. */
enum lk_code lk_walk_noise(struct lk_walk *walk, struct lk_rng *rng, const struct lk_tensor *rows, bool latents);

/* Sigmas and timesteps into walk and trace. */
struct lk_flow_match_config;
enum lk_code lk_walk_schedule(struct lk_walk *walk, const struct lk_flow_match_config *scheduler, double mu);

/* Tells the caller of the end of step i (from 0). */
enum lk_code lk_walk_step_done(const struct lk_walk *walk, int i);

/* The image u8 [H, W, 3] on the device to result->image. Nothing when planning. */
enum lk_code lk_walk_download(const struct lk_walk *walk, const struct lk_tensor *bytes, struct lk_image *image);

/* Walks on a device that counts for `target`; *walk is restored. */
enum lk_code lk_walk_plan(struct lk_walk *walk, const struct lk_device *target, lk_walk_fn *stages, void *run,
                          struct lk_plan *plan);
/* Plans, allocates what the plan says, walks; notes sigmas, steps and the peak in walk->result. */
enum lk_code lk_walk_run(struct lk_walk *walk, lk_walk_fn *stages, void *run);
