/* The recipe inside a picture: a JSON object under the PNG key "likeness" and the same as text that other programs read
 * under "parameters". Both depend on the job alone: no time, no host, no paths. */
#pragma once

#include "models/pipeline.h"

#define CLI_NUMERICS_VERSION 1 /* raised when equal jobs stop giving equal bits */

/* What was run. */
struct cli_run {
    const char *model; /* as recorded: ORG/NAME[@REV], or the folder's own name */
    const char *family, *weights_identity;
    const char *dtype, *device, *isa, *rng;
    const char *gemm, *conv; /* NVIDIA's libraries, where they computed; NULL: our kernels */
    bool exif_transpose;
    const struct lk_request *request;
    const struct lk_result *result;
    char image_names[LK_MAX_REFERENCES][256];
    char image_sha256[LK_MAX_REFERENCES][65];
};

/* Both texts are to be freed with lk_free. */
enum lk_code cli_recipe_make(const struct cli_run *run, char **json, char **parameters);

/* A recipe read back. Strings are held by the recipe. */
struct cli_recipe {
    char *text;            /* the JSON */
    char *negative_prompt; /* NULL: none */
    char *prompt, *model, *family, *weights_identity, *dtype, *device, *isa, *rng, *version, *noise_sha256;
    char *gemm, *conv; /* NULL: our kernels */
    int64_t seed, num_inference_steps, max_sequence_length, width, height, numerics_version;
    double guidance_scale, true_cfg_scale; /* -1: not in the model */
    int64_t size_level;                    /* 0: not in the model */
    bool exif_transpose, thinking_mode, reflection_mode;
    int64_t max_try_cnt; /* 0: not in the model */
    int64_t out_layers[LK_MAX_OUT_LAYERS];
    size_t n_out_layers;
    struct {
        char *file, *sha256;
        int source_width, source_height, width, height, crop_left, crop_top;
    } images[LK_MAX_REFERENCES];
    int n_images;
    double sigmas[LK_MAX_STEPS + 1];
    int n_sigmas;
};

/* LK_E_METADATA when the file has no recipe of ours, or a damaged one. */
enum lk_code cli_recipe_read(struct cli_recipe *out, const char *png_path);
/* From the JSON; `name` is for messages. LK_E_JSON..., LK_E_CONFIG_... or LK_E_METADATA for anything else than a
 * recipe. */
enum lk_code cli_recipe_parse(struct cli_recipe *out, const char *text, const char *name);
void cli_recipe_free(struct cli_recipe *recipe);
