/* The recipe inside a picture: a JSON object under the PNG key "likeness" and the same as text that other programs read
 * under "parameters". Both depend on the job alone: no time, no host, no paths. */
#pragma once

#include "models/parameters.h"

#define LK_NUMERICS_VERSION 3 /* raised when equal jobs stop giving equal bits */

#define LK_RECIPE_QUALITY   95

/* What was run. */
struct lk_recipe_run {
    const char *model; /* as recorded: ORG/NAME[@REV], or the folder's own name */
    const char *weights_identity, *isa;
    const struct lk_pipeline *pipeline;
    const struct lk_job *job; /* complete */
    const struct lk_result *result;
    const char *rewrite; /* how the prompt was made of another one (models/rewrite/rewrite.h); NULL: it was given */
    int quality;         /* of JPEG and WebP; 0: LK_RECIPE_QUALITY */
    char image_names[LK_MAX_REFERENCES][256];
    char image_sha256[LK_MAX_REFERENCES][65];
};

/* Both texts are to be freed with lk_free. */
enum lk_code lk_recipe_make(const struct lk_recipe_run *run, char **json, char **parameters);

/* What a recipe has of a source beside its pixels: the file's name and digest. expected: the digest that it must have,
 * or NULL. exif_transpose: as lk_image_decode. */
enum lk_code lk_recipe_image_read(const char *path, const char *expected, int exif_transpose, struct lk_image *out,
                                  char name[256], char sha256[65]);
/* A model as recipes have it: a folder by its own name, a repository as it was written. */
void lk_recipe_model_name(const char *model, char out[256]);
/* The same of a file's bytes; `path` names it. max_pixels 0: as lk_image_decode has it. */
enum lk_code lk_recipe_image_take(const char *path, const void *bytes, size_t n_bytes, int exif_transpose,
                                  int64_t max_pixels, struct lk_image *out, char name[256], char sha256[65]);
/* run->job is complete. JPEG and WebP by the name's ending: their recipe also has the digest of the pixels that were
 * packed, so that a rerun can be compared with them. */
enum lk_code lk_recipe_write(const char *path, const struct lk_recipe_run *run);
/* A PNG of lk_recipe_encode, into a file of the name's format. quality 0: LK_RECIPE_QUALITY. */
enum lk_code lk_recipe_write_as(const char *path, const void *png, size_t n_bytes, int quality);
/* A PNG's bytes instead of the file (lk_free); `name` is for messages. */
enum lk_code lk_recipe_encode(const char *name, const struct lk_recipe_run *run, void **out, size_t *n_bytes);

/* A recipe read back. Strings are held by the recipe. */
struct lk_recipe {
    char *text;        /* the JSON */
    struct lk_job job; /* what was given is what the recipe has */
    char *model, *family, *weights_identity, *isa, *version, *noise_sha256;
    char *quantization;     /* formats of weights that were not plain; NULL: none */
    char *configs;          /* digests of the model's configs (weights/config_identity.h); NULL: an older version */
    char *text_encoder_isa; /* that encoded the prompts, where it is another; NULL */
    int64_t numerics_version, n_cut_ids; /* tokens of the prompt that the model did not read */
    struct {
        char *file, *sha256;
        int source_width, source_height, width, height, crop_left, crop_top;
        char *converted_from; /* the profile that its colours were converted from; NULL: none */
    } images[LK_MAX_REFERENCES];
    int n_images;
    struct {
        char *file, *sha256;
        double scale;
    } loras[LK_MAX_LORAS];
    int n_loras;
    int n_cached, n_computed[LK_MAX_CACHES]; /* gates of a step cache, and the steps of each that were computed */
    struct lk_cache_replay cache;
    char cache_gates[LK_MAX_CACHES][12]; /* "double", "single"; "": over all blocks */
    struct {
        char *file, *sha256; /* NULL: no mask */
        double edited;
    } mask;
    char *rewrite; /* JSON; NULL: the prompt was given */
    struct {
        char *as, *pixels_sha256; /* "jpeg", "webp"; NULL: nothing was lost */
        int quality;
    } packed;
    double sigmas[LK_MAX_STEPS + 1];
    int n_sigmas;
};

/* LK_E_METADATA when the file has no recipe of ours, or a damaged one. */
enum lk_code lk_recipe_read(struct lk_recipe *out, const char *path);
/* From the JSON; `name` is for messages. LK_E_JSON..., LK_E_CONFIG_... or LK_E_METADATA for anything else than a
 * recipe. */
enum lk_code lk_recipe_parse(struct lk_recipe *out, const char *text, const char *name);
void lk_recipe_free(struct lk_recipe *recipe);
/* LK_E_CONFLICT when a picture that was made again from `recipe`, of the file `recipe_path`, records anything else or
 * has other pixels: each difference is a warning. What says only where things lay (names of files and of the model, the
 * machine) may differ. */
enum lk_code lk_recipe_compare(const struct lk_recipe *recipe, const char *recipe_path, const char *png_path);
