#include "tools/cli/edit/recipe.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"

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

/* The parameters that the family has: the others stand at 0 in the request. */
static bool add_sampling(cJSON *root, const struct lk_request *r) {
    bool ok = add_int(root, "num_inference_steps", r->num_inference_steps);
    ok = ok && add_number(root, "guidance_scale", r->guidance_scale);
    if (r->true_cfg_scale != 0) ok = ok && add_number(root, "true_cfg_scale", r->true_cfg_scale);
    if (r->negative_prompt) ok = ok && add_string(root, "negative_prompt", r->negative_prompt);
    if (r->size_level) ok = ok && add_int(root, "size_level", r->size_level);
    ok = ok && add_int(root, "max_sequence_length", r->max_sequence_length);
    if (ok && r->n_text_encoder_out_layers) {
        cJSON *layers = cJSON_CreateIntArray(r->text_encoder_out_layers, r->n_text_encoder_out_layers);
        ok = layers && cJSON_AddItemToObject(root, "text_encoder_out_layers", layers);
    }
    return ok;
}

static bool add_images(cJSON *root, const struct cli_run *run) {
    cJSON *images = cJSON_AddArrayToObject(root, "images");
    bool ok = images != NULL;
    for (int i = 0; i < run->request->n_images && ok; i++) {
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
    bool ok = cJSON_AddBoolToObject(root, "thinking_mode", r->thinking_mode) &&
              cJSON_AddBoolToObject(root, "reflection_mode", r->reflection_mode) &&
              add_int(root, "max_try_cnt", r->max_try_cnt) && add_int(root, "best_round", result->best_round);
    cJSON *rounds = ok ? cJSON_AddArrayToObject(root, "rounds") : NULL;
    ok = rounds != NULL;
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

static bool fill(cJSON *root, const struct cli_run *run) {
    const struct lk_request *request = run->request;
    bool ok = add_int(root, "format", 1) && add_string(root, "version", LIKENESS_VERSION);
    ok = ok && add_int(root, "numerics_version", CLI_NUMERICS_VERSION);
    ok = ok && add_string(root, "family", run->family) && add_string(root, "model", run->model);
    ok = ok && add_string(root, "weights_identity", run->weights_identity);
    ok = ok && add_string(root, "prompt", request->prompt) && add_int(root, "seed", (int64_t)request->seed);
    ok = ok && add_string(root, "rng", run->rng) && add_string(root, "noise_sha256", run->result->noise_sha256);
    ok = ok && add_string(root, "dtype", run->dtype) && add_string(root, "device", run->device);
    ok = ok && add_string(root, "isa", run->isa);
    if (run->gemm) ok = ok && add_string(root, "gemm", run->gemm);
    if (run->conv) ok = ok && add_string(root, "conv", run->conv);
    ok = ok && add_sampling(root, request);
    ok = ok && add_int(root, "width", run->result->width) && add_int(root, "height", run->result->height);
    ok = ok && cJSON_AddBoolToObject(root, "exif_transpose", run->exif_transpose);
    ok = ok && add_rounds(root, request, run->result);
    return ok && add_images(root, run) && add_sigmas(root, run->result);
}

/* The lines that A1111's readers look for: the prompt, the negative prompt, then "Steps: ..., key: value, ...". */
static char *parameters_of(const struct cli_run *run) {
    const struct lk_request *r = run->request;
    const char *negative = r->true_cfg_scale > 1 && r->negative_prompt ? r->negative_prompt : NULL;
    size_t size = strlen(r->prompt) + (negative ? strlen(negative) : 0) + strlen(run->family) + 512;
    char *text = lk_malloc(size), distilled[48] = "", rivals[64];
    snprintf(rivals, sizeof rivals, "%s%s%s%s", run->gemm ? ", GEMM: " : "", run->gemm ? run->gemm : "",
             run->conv ? ", Conv: " : "", run->conv ? run->conv : "");
    if (!r->true_cfg_scale) snprintf(distilled, sizeof distilled, " Distilled CFG Scale: %g,", r->guidance_scale);
    if (text)
        snprintf(text, size,
                 "%s\n%s%s%sSteps: %d, Sampler: Euler, Schedule type: Simple, CFG scale: %g,%s Seed: %" PRIu64
                 ", Size: %dx%d, Model: %s, RNG: CPU%s, Version: likeness " LIKENESS_VERSION,
                 r->prompt, negative ? "Negative prompt: " : "", negative ? negative : "", negative ? "\n" : "",
                 r->num_inference_steps, negative ? r->true_cfg_scale : 1.0, distilled, r->seed, run->result->width,
                 run->result->height, run->family, rivals);
    return text;
}

enum lk_code cli_recipe_make(const struct cli_run *run, char **json, char **parameters) {
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
