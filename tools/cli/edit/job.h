/* One edit from files to a file: what `edit` and `rerun` share. */
#pragma once

#include "models/pipeline.h"

struct cli_job {
    const char *model;
    enum lk_dtype dtype;
    const char *device;
    const char *gemm, *conv; /* "own", or as lk_cuda_choose */
    int threads;             /* 0: all */
    const char *rng;
    const char *images[LK_MAX_REFERENCES];
    int n_images;
    bool exif_transpose;
    const char *output;
    const char *dump_steps; /* NULL: none */
    /* Asked for; NULL, 0, -1 or n 0 leave the family's default. What the family does not have is LK_E_USAGE. */
    const char *prompt, *negative_prompt;
    int64_t seed;
    double true_cfg_scale;
    int size_level, max_try_cnt;
    bool thinking_mode, reflection_mode, vae_tiling;
    const char *prompts_file;
    int num_inference_steps, width, height, max_sequence_length, n_out_layers;
    int out_layers[LK_MAX_OUT_LAYERS];
    double guidance_scale;
    /* When the run must repeat another one: identities it must find; NULL otherwise. */
    const char *weights_identity;
    const char *image_sha256[LK_MAX_REFERENCES];
};

/* Runs it and prints the output's path. */
enum lk_code cli_job_run(const struct cli_job *job);

/* name: "cpu", "cuda" or "cuda:INDEX". LK_E_DEVICE for a device that this build or machine does not have. */
enum lk_code cli_device_open(const char *name, int threads, struct lk_device **out);
/* Lets NVIDIA's libraries compute, as lk_cuda_choose. "own" is possible on every device. */
enum lk_code cli_device_choose(struct lk_device *dev, const char *gemm, const char *conv);
