#include "models/recipe.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/digest.h"
#include "engine/base/text.h"

#define MAX_IMAGE_BYTES ((size_t)512 << 20)

/* cJSON writes numbers as doubles; these keep every bit of what they hold. */
static bool add_int(cJSON *object, const char *key, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return cJSON_AddRawToObject(object, key, text) != NULL;
}

static bool add_string(cJSON *object, const char *key, const char *value) {
    return cJSON_AddStringToObject(object, key, value) != NULL;
}

static bool add_number(cJSON *object, const char *key, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    return cJSON_AddRawToObject(object, key, text) != NULL;
}

static bool add_images(cJSON *root, const struct lk_recipe_run *run) {
    cJSON *images = cJSON_AddArrayToObject(root, "images");
    bool ok = images != NULL;
    for (int i = 0; i < run->job->request.n_images && ok; i++) {
        cJSON *image = cJSON_CreateObject();
        if (!image || !cJSON_AddItemToArray(images, image)) {
            cJSON_Delete(image);
            return false;
        }
        ok = add_string(image, "file", run->image_names[i]) && add_string(image, "sha256", run->image_sha256[i]);
        ok = ok && add_int(image, "source_width", run->result->references[i].source_width);
        ok = ok && add_int(image, "source_height", run->result->references[i].source_height);
        ok = ok && add_int(image, "width", run->result->references[i].width);
        ok = ok && add_int(image, "height", run->result->references[i].height);
        ok = ok && add_int(image, "crop_left", run->result->references[i].crop_left);
        ok = ok && add_int(image, "crop_top", run->result->references[i].crop_top);
        const char *profile = run->result->references[i].converted_from;
        if (*profile) ok = ok && add_string(image, "converted_from", profile);
    }
    return ok;
}

/* Each round of an edit with thinking or reflection: what it was told, and what the model made of the result. */
static bool add_rounds(cJSON *root, const struct lk_request *r, const struct lk_result *result) {
    static const char *const verdicts[] = {[LK_VERDICT_NONE] = "none",
                                           [LK_VERDICT_SUCCESS] = "success",
                                           [LK_VERDICT_OTHERS] = "others",
                                           [LK_VERDICT_REFLECTION] = "reflection",
                                           [LK_VERDICT_FAILED] = "failed"};
    if (!r->thinking_mode && !r->reflection_mode) return true;
    cJSON *rounds = add_int(root, "best_round", result->best_round) ? cJSON_AddArrayToObject(root, "rounds") : NULL;
    bool ok = rounds != NULL;
    for (int i = 0; i < result->n_rounds && ok; i++) {
        const struct lk_round *round = &result->rounds[i];
        cJSON *o = cJSON_CreateObject();
        if (!o || !cJSON_AddItemToArray(rounds, o)) {
            cJSON_Delete(o);
            return false;
        }
        ok = add_string(o, "prompt", round->prompt ? round->prompt : "") &&
             cJSON_AddBoolToObject(o, "from_source", round->from_source) &&
             add_string(o, "verdict", verdicts[round->verdict]) && add_number(o, "consistency", round->consistency) &&
             add_number(o, "score", round->score);
        if (round->reflection) ok = ok && add_string(o, "reflection", round->reflection);
    }
    return ok;
}

/* Adapters of the transformer, in their order. */
static bool add_loras(cJSON *root, const struct lk_loras *loras) {
    cJSON *list = loras ? cJSON_AddArrayToObject(root, "loras") : NULL;
    for (int i = 0; loras && i < loras->n; i++) {
        const struct lk_lora *l = &loras->list[i];
        cJSON *o = cJSON_CreateObject();
        if (!o || !cJSON_AddItemToArray(list, o)) {
            cJSON_Delete(o);
            return false;
        }
        if (!add_string(o, "file", l->name) || !add_string(o, "sha256", l->sha256) ||
            !add_number(o, "scale", l->scale) || !add_int(o, "modules", (int64_t)l->n_modules) ||
            !add_string(o, "layout", l->layout))
            return false;
    }
    return !loras || list;
}

/* Of a step cache: the steps that were computed and what decided, a list for each branch of the guidance,
 * in it for each gate. */
static bool add_cache(cJSON *root, const struct lk_result *result) {
    if (!result->n_cached) return true;
    cJSON *o = cJSON_AddObjectToObject(root, "cache"),
          *gates = *result->cache_gates ? cJSON_AddArrayToObject(o, "gates") : NULL,
          *computed = cJSON_AddArrayToObject(o, "computed"), *distance = cJSON_AddArrayToObject(o, "distance");
    bool ok = computed && distance;
    for (int b = 0; b < result->n_cached && ok; b++) {
        cJSON *steps = cJSON_CreateArray(), *values = cJSON_CreateArray();
        ok = cJSON_AddItemToArray(computed, steps) && cJSON_AddItemToArray(distance, values);
        if (gates) ok = ok && cJSON_AddItemToArray(gates, cJSON_CreateString(result->cache_gates[b]));
        for (int i = 0; i < result->n_steps && ok; i++) {
            const double d = result->distance[b][i];
            if (result->computed[b][i]) ok = cJSON_AddItemToArray(steps, cJSON_CreateNumber(i));
            ok = ok && cJSON_AddItemToArray(values, isfinite(d) ? cJSON_CreateNumber(d) : cJSON_CreateNull());
        }
    }
    return ok;
}

/* Where it was edited, elsewhere it has the first image's bytes. */
static bool add_mask(cJSON *root, const struct lk_recipe_run *run) {
    const char *path = run->job->request.mask;
    if (!path) return true;
    const char *slash = strrchr(path, '/');
    cJSON *o = cJSON_AddObjectToObject(root, "masked");
    return o && add_string(o, "file", slash ? slash + 1 : path) && add_string(o, "sha256", run->result->mask_sha256) &&
           add_number(o, "edited", run->result->mask_edited) &&
           cJSON_AddBoolToObject(o, "kept_exact", run->result->kept_exact);
}

static bool add_sigmas(cJSON *root, const struct lk_result *result) {
    cJSON *sigmas = cJSON_AddArrayToObject(root, "sigmas");
    for (int i = 0; i <= result->n_steps && sigmas; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.9g", (double)result->sigmas[i]);
        cJSON *number = cJSON_CreateRaw(text);
        if (!number || !cJSON_AddItemToArray(sigmas, number)) {
            cJSON_Delete(number);
            return false;
        }
    }
    return sigmas != NULL;
}

/* Every parameter of the job in the table's order, with what came of some beside them. */
static bool add_parameters(cJSON *root, const struct lk_recipe_run *run) {
    bool ok = true;
    for (size_t i = 0; i < lk_n_parameters && ok; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        if (lk_parameter_recorded(p, run->job, run->pipeline)) ok = lk_parameter_write(p, run->job, root);
        if (!strcmp(p->name, "rng")) ok = ok && add_string(root, "noise_sha256", run->result->noise_sha256);
        if (!strcmp(p->name, "device")) ok = ok && add_string(root, "isa", run->isa);
    }
    return ok;
}

/* Prompts that were encoded by another kind of device, or while a library of NVIDIA's stands in the recipe. */
static bool add_encoder(cJSON *root, const struct lk_recipe_run *run) {
    const char *isa = run->result->embeds_isa;
    if (!*isa || (!strcmp(isa, run->isa) && !strcmp(run->job->run.gemm, "own"))) return true;
    return add_string(root, "text_encoder_isa", isa);
}

static bool fill(cJSON *root, const struct lk_recipe_run *run) {
    char quantization[96];
    lk_pipeline_quantization(run->pipeline, quantization);
    if (*quantization && !add_string(root, "quantization", quantization)) return false;
    const char *configs = lk_pipeline_configs(run->pipeline), *merged = lk_pipeline_merged(run->pipeline);
    return add_int(root, "format", 1) && add_string(root, "version", LIKENESS_VERSION) &&
           add_int(root, "numerics_version", LK_NUMERICS_VERSION) &&
           add_string(root, "family", lk_pipeline_family(run->pipeline)) && add_string(root, "model", run->model) &&
           add_string(root, "weights_identity", run->weights_identity) &&
           (!configs || cJSON_AddRawToObject(root, "configs", configs)) && add_parameters(root, run) &&
           (!run->rewrite || cJSON_AddItemToObject(root, "rewrite", cJSON_Parse(run->rewrite))) &&
           add_loras(root, lk_pipeline_loras(run->pipeline)) && add_mask(root, run) && add_cache(root, run->result) &&
           (!merged || cJSON_AddRawToObject(root, "merged", merged)) &&
           (!run->result->n_cut_ids || add_int(root, "n_cut_ids", run->result->n_cut_ids)) && add_encoder(root, run) &&
           add_rounds(root, &run->job->request, run->result) && add_images(root, run) && add_sigmas(root, run->result);
}

/* ", NAME: value" of what is recorded and readers of these lines have no name for. */
static void add_others(char *out, size_t size, const struct lk_recipe_run *run) {
    for (size_t i = 0, used = 0; i < lk_n_parameters && used < size; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        char value[64];
        if (!p->a1111 || !lk_parameter_recorded(p, run->job, run->pipeline)) continue;
        lk_parameter_print(p, run->job, value, sizeof value);
        used += (size_t)snprintf(out + used, size - used, ", %s: %s", p->a1111, value);
    }
}

/* ", Lora hashes: "NAME: 0123456789"": the names without their endings. */
static void add_lora_hashes(char *out, size_t size, const struct lk_loras *loras) {
    size_t used = strlen(out);
    for (int i = 0; loras && i < loras->n && used < size; i++) {
        const char *name = loras->list[i].name, *dot = strrchr(name, '.');
        used += (size_t)snprintf(out + used, size - used, "%s%.*s: %.10s%s", i ? ", " : ", Lora hashes: \"",
                                 (int)(dot ? (size_t)(dot - name) : strlen(name)), name, loras->list[i].sha256,
                                 i + 1 < loras->n ? "" : "\"");
    }
}

/* The lines that A1111's readers look for: the prompt, the negative prompt, then "Steps: ..., key: value, ...". */
static char *parameters_of(const struct lk_recipe_run *run) {
    const struct lk_request *r = &run->job->request;
    const char *family = lk_pipeline_family(run->pipeline), *negative = r->negative_prompt;
    if (run->result->cfg_scale <= 1) negative = NULL;
    size_t size = strlen(r->prompt) + (negative ? strlen(negative) : 0) + strlen(family) + 512 + LK_MAX_LORAS * 300;
    char *text = lk_malloc(size), distilled[48] = "", others[256 + LK_MAX_LORAS * 300] = "";
    if (!r->true_cfg_scale) snprintf(distilled, sizeof distilled, " Distilled CFG Scale: %g,", r->guidance_scale);
    add_others(others, 256, run);
    add_lora_hashes(others, sizeof others, lk_pipeline_loras(run->pipeline));
    if (text)
        snprintf(text, size,
                 "%s\n%s%s%sSteps: %d, Sampler: Euler, Schedule type: Simple, CFG scale: %g,%s Seed: %" PRIu64
                 ", Size: %dx%d, Model: %s, RNG: CPU%s, Version: likeness " LIKENESS_VERSION,
                 r->prompt, negative ? "Negative prompt: " : "", negative ? negative : "", negative ? "\n" : "",
                 r->num_inference_steps, run->result->cfg_scale, distilled, r->seed, run->result->width,
                 run->result->height, family, others);
    return text;
}

enum lk_code lk_recipe_make(const struct lk_recipe_run *run, char **json, char **parameters) {
    cJSON *root = cJSON_CreateObject();
    char *printed = root && fill(root, run) ? cJSON_PrintUnformatted(root) : NULL;
    *json = printed ? lk_strdup(printed) : NULL;
    *parameters = parameters_of(run);
    cJSON_free(printed);
    cJSON_Delete(root);
    if (*json && *parameters) return LK_OK;
    lk_free(*json);
    lk_free(*parameters);
    *json = *parameters = NULL;
    return lk_fail(LK_E_NOMEM, "out of memory for the picture's recipe");
}

static void base_name(const char *path, char *out, size_t size) {
    char *copy = lk_strdup(path);
    snprintf(out, size, "%s", copy ? basename(copy) : "");
    lk_free(copy);
}

/* Digest and pixels from the same bytes. */
static enum lk_code take_image(const char *path, const char *expected, const void *bytes, size_t n_bytes,
                               int exif_transpose, int64_t max_pixels, struct lk_image *out, char name[256],
                               char sha256[65]) {
    lk_sha256(bytes, n_bytes, sha256);
    base_name(path, name, 256);
    if (expected && strcmp(expected, sha256))
        return lk_fail(LK_E_CHANGED, "%s: expected the image with SHA-256 %s, got %s", path, expected, sha256);
    return lk_image_decode(out, bytes, n_bytes, path, exif_transpose, max_pixels);
}

enum lk_code lk_recipe_image_read(const char *path, const char *expected, int exif_transpose, struct lk_image *out,
                                  char name[256], char sha256[65]) {
    char *bytes;
    size_t n_bytes;
    LK_TRY(lk_read_file(path, MAX_IMAGE_BYTES, &bytes, &n_bytes));
    enum lk_code rc = take_image(path, expected, bytes, n_bytes, exif_transpose, 0, out, name, sha256);
    lk_free(bytes);
    return rc;
}

enum lk_code lk_recipe_image_take(const char *path, const void *bytes, size_t n_bytes, int exif_transpose,
                                  int64_t max_pixels, struct lk_image *out, char name[256], char sha256[65]) {
    return take_image(path, NULL, bytes, n_bytes, exif_transpose, max_pixels, out, name, sha256);
}

void lk_recipe_model_name(const char *model, char out[256]) {
    struct stat st;
    char *real = stat(model, &st) == 0 ? realpath(model, NULL) : NULL;
    if (real) base_name(real, out, 256);
    if (!real) snprintf(out, 256, "%s", model);
    free(real);
}

/* A format that loses bits: its recipe says so, with the digest of the pixels before. */
static enum lk_code write_texts(const char *path, const struct lk_image *image, const char *json,
                                const char *parameters, int quality) {
    const enum lk_picture_format format = lk_picture_format(path);
    const size_t n = strlen(json);
    char sha256[65], *packed = NULL;
    struct lk_png_text texts[] = {{"parameters", parameters}, {"likeness", json}};
    if (!quality) quality = LK_RECIPE_QUALITY;
    if (format != LK_PICTURE_PNG && n) {
        lk_sha256(image->pixels, (size_t)image->width * (size_t)image->height * (size_t)image->channels, sha256);
        packed = lk_format("%.*s,\"packed\":{\"as\":\"%s\",\"quality\":%d,\"pixels_sha256\":\"%s\"}}", (int)(n - 1),
                           json, format == LK_PICTURE_JPEG ? "jpeg" : "webp", quality, sha256);
        if (!packed) return lk_fail(LK_E_NOMEM, "%s: out of memory for the picture's recipe", path);
        texts[1].text = packed;
    }
    enum lk_code rc = lk_picture_write(path, image, quality, texts, 2);
    lk_free(packed);
    return rc;
}

enum lk_code lk_recipe_write_as(const char *path, const void *png, size_t n_bytes, int quality) {
    struct lk_png_text *texts;
    struct lk_image image = {0};
    const char *json = NULL, *parameters = NULL;
    LK_TRY(lk_png_text_parse(png, n_bytes, "picture", &texts));
    for (const struct lk_png_text *t = texts; t->key; t++) {
        if (!strcmp(t->key, "likeness")) json = t->text;
        if (!strcmp(t->key, "parameters")) parameters = t->text;
    }
    enum lk_code rc = json && parameters && *json ? LK_OK : lk_fail(LK_E_METADATA, "picture: no recipe inside");
    if (!rc) rc = lk_image_decode(&image, png, n_bytes, "picture", 0, 0);
    if (!rc) rc = write_texts(path, &image, json, parameters, quality);
    lk_image_free(&image);
    lk_png_text_free(texts);
    return rc;
}

/* Into the file, or where out is not NULL into memory. */
static enum lk_code write_picture(const char *path, const struct lk_recipe_run *run, void **out, size_t *n_bytes) {
    struct lk_job job = *run->job;
    struct lk_recipe_run made = *run;
    char *json, *parameters;
    job.request.width = run->result->width;
    job.request.height = run->result->height;
    made.job = &job;
    LK_TRY(lk_recipe_make(&made, &json, &parameters));
    const struct lk_png_text texts[] = {{"parameters", parameters}, {"likeness", json}};
    enum lk_code rc = out ? lk_png_encode_with(path, &run->result->image, texts, 2, out, n_bytes)
                          : write_texts(path, &run->result->image, json, parameters, run->quality);
    lk_free(json);
    lk_free(parameters);
    return rc;
}

enum lk_code lk_recipe_write(const char *path, const struct lk_recipe_run *run) {
    return write_picture(path, run, NULL, NULL);
}

enum lk_code lk_recipe_encode(const char *name, const struct lk_recipe_run *run, void **out, size_t *n_bytes) {
    *out = NULL;
    return write_picture(name, run, out, n_bytes);
}
