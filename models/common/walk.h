/* One walk over the stages of a pipeline serves planning and running: on the plan device nothing is computed, pixels
 * and token ids are not looked at, and one step stands for all. Here is what the walks of all families share. */
#pragma once

#include <pthread.h>

#include "engine/ops.h"
#include "engine/rng.h"
#include "models/common/kept.h"
#include "models/pipeline.h"
#include "weights/bind.h"

/* How the source becomes the picture that is edited: resized, then cropped. */
struct lk_mask_window {
    int resized_width, resized_height, left, top, width, height;
};

/* Of an edit under a mask (models/common/mask.h). */
struct lk_mask {
    struct lk_image image; /* of the source's size: 255 edited, 0 kept */
    struct lk_mask_window window;
    struct lk_tensor source, noise, keep; /* [n_noise, C] */
};

struct lk_walk {
    struct lk_device *dev;
    const struct lk_request *request;
    enum lk_dtype dtype;
    struct lk_plan *plan;     /* stages are noted here; NULL when running */
    struct lk_result *result; /* NULL when planning */
    struct lk_rng own_rng, *rng;
    struct lk_kept **kept;                   /* the queue's */
    size_t *peak_bytes;                      /* the queue's: of the arena */
    const struct lk_checkpoint *checkpoints; /* of the pipeline, n_checkpoints (0: 3) */
    int n_checkpoints;
    int n_calls;                                       /* of the network, or of both of its branches; 0: one a step */
    const struct lk_bind_totals *vae;                  /* its parameters */
    struct lk_reference_size sizes[LK_MAX_REFERENCES]; /* the family's, but for the source's */
    struct lk_kept *references[LK_MAX_REFERENCES];     /* what the VAE makes of them */
    float sigmas[LK_MAX_STEPS + 1], timesteps[LK_MAX_STEPS + 1];
    struct lk_tensor latents, velocity; /* [n_noise, C] while the steps are under way */
    struct lk_kept *final;              /* the latents after the last step */
    struct lk_mask mask;
    struct lk_cache *caches; /* of the branches (models/common/cache.h), n_caches; NULL: none */
    int n_caches;
    unsigned family_bit; /* enum lk_family_bit */
    int columns;         /* of the latents' tokens, where a preview is made of them; 0: there is none */
    bool sparing;        /* memory wants slices and bands where the request leaves that open */
};

static inline int lk_walk_calls(const struct lk_walk *walk) {
    return walk->n_calls ? walk->n_calls : walk->request->num_inference_steps;
}

#define LK_SLICE_ROWS 1024
static inline int lk_walk_slice_rows(const struct lk_walk *walk) {
    return walk->request->slice_rows || !walk->sparing ? walk->request->slice_rows : LK_SLICE_ROWS;
}
static inline bool lk_walk_planning(const struct lk_walk *walk) { return walk->dev->kind == LK_DEVICE_PLAN; }

/* Held while a caller is told something: of several ranks (models/ranks.h) one speaks at a time. */
extern pthread_mutex_t lk_walk_telling;

/* n ids of a prompt are left out: recorded, or LK_E_PROMPT where the whole prompt is asked for. */
enum lk_code lk_walk_cut(const struct lk_walk *walk, int64_t n);

/* A stage begins: peak memory is measured afresh, the caller is told. A stage is ended by lk_walk_note with the same
 * name. *before gets the cost up to here. */
enum lk_code lk_walk_begin(struct lk_walk *walk, const char *name, struct lk_cost *before);
/* calls: forwards per image; the cost since *before is that of one. totals: of the whole component; NULL: its
 * parameters are those that the stage has read. */
void lk_walk_note(struct lk_walk *walk, const char *name, const struct lk_bind_totals *totals, int calls,
                  const struct lk_cost *before);

/* LK_E_NONFINITE naming stage and step (from 0; -1: none) when t has a NaN or Inf. */
enum lk_code lk_walk_check_finite(const struct lk_walk *walk, const struct lk_tensor *t, const char *stage, int step);

/* Shows host values to the trace. */
enum lk_code lk_walk_trace_host(const struct lk_walk *walk, const char *name, const void *values, enum lk_dtype dtype,
                                int64_t n);

/* Draws [C, n] normals from walk->rng in the compute dtype, in the order in which torch draws them, and uploads them
 * channels last into `rows` [n, C] (or [h, w, C] with n = h w). latents: they are the initial latents, whose digest is
 * recorded and for which request->latents may stand in; otherwise they are a posterior's and request->posterior_noise
 * may. */
enum lk_code lk_walk_noise(struct lk_walk *walk, const struct lk_tensor *rows, bool latents);

/* A dense tensor from the device to an entry of walk->kept, and back into a tensor as large. */
enum lk_code lk_walk_keep(const struct lk_walk *walk, const char *key, const struct lk_tensor *t, struct lk_kept **out);
enum lk_code lk_walk_give_back(const struct lk_walk *walk, const struct lk_kept *kept, const struct lk_tensor *t);

/* What the request's file of embeddings has of a prompt, which must be there; a plan takes it to be [rows, width].
 * Without a file what was kept under `key`, or NULL: to be encoded. `prompt` is for messages. */
enum lk_code lk_walk_find_prompt(const struct lk_walk *walk, char key[65], const char *prompt, int64_t rows,
                                 int64_t width, struct lk_kept **out);

/* Sigmas and timesteps into walk, result and trace. */
struct lk_flow_match_config;
enum lk_code lk_walk_schedule(struct lk_walk *walk, const struct lk_flow_match_config *scheduler, double mu);

/* Whether both have the same timesteps. */
bool lk_walk_same_schedule(const struct lk_walk *a, const struct lk_walk *b);

/* Tells the caller of the end of a stage's step i (from 0). */
enum lk_code lk_walk_step_done(const struct lk_walk *walk, const char *stage, int i);

/* An image as values in [-1, 1] on the device. Frees it; it is not looked at when planning. */
enum lk_code lk_walk_pixels(const struct lk_walk *walk, struct lk_image *rgb, const struct lk_tensor *pixels);
/* What the VAE has decoded as a u8 image [H, W, 3] on the device, which the trace knows as `name`. */
enum lk_code lk_walk_decoded(const struct lk_walk *walk, const struct lk_tensor *decoded, const struct lk_tensor *bytes,
                             const char *name);
/* The image u8 [H, W, 3] on the device to result->image. Nothing when planning. */
enum lk_code lk_walk_download(const struct lk_walk *walk, const struct lk_tensor *bytes);
