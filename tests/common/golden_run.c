#include "tests/common/golden_run.h"

#include "models/pipeline.h"
#include "tests/common/cuda.h"
#include "tests/common/golden.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/test.h"

#include <glob.h>

#define MAX_CASES 64
#define N_MODES   3

static const char *const mode_arguments[N_MODES] = {"f32", "seed", "bf16"};

struct run_case {
    char path[256];   /* of the golden */
    char folder[160]; /* golden/data/FAMILY/CONFIG */
    char label[160];
    char name[128];
    enum golden_mode mode;
};

static bool on_cuda;

/* Where in [C, h, w] the value of packed row i, column j stands: patches of side 1 or 2, `width` of them a row. */
static size_t unpacked(size_t i, size_t j, size_t side, size_t width, size_t n) {
    size_t cell = side * side, c = j / cell, dy = j % cell / side, dx = j % side;
    return c * n * cell + (i / width * side + dy) * width * side + i % width * side + dx;
}

/* The noise of the golden, [n, C], as the request wants it: [C, n], or, where the metadata have the size of the VAE's
 * latents, those: [C / 4, latent_height, latent_width]. */
static float *given_noise(const struct golden *golden) {
    size_t n_values;
    float *packed = golden_values(golden, "noise", &n_values);
    const struct lk_tensor *t = &lk_safetensors_find(&golden->st, "noise")->tensor;
    size_t n = (size_t)t->shape[0], columns = (size_t)t->shape[1], side = 1, width = n;
    if (golden_number(golden, "latent_width", 0) > 0) {
        side = 2;
        width = (size_t)golden_number(golden, "latent_width", 0) / side;
        assert_int_equal(n % width, 0);
    }
    float *latents = malloc(n_values * sizeof *latents);
    assert_non_null(latents);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < columns; j++) latents[unpacked(i, j, side, width, n)] = packed[i * columns + j];
    free(packed);
    return latents;
}

/* The golden's noise of the posterior, [h, w, C], as the request wants it: [C, h, w]. NULL if it has none. */
static float *given_posterior_noise(const struct golden *golden) {
    const struct lk_st_tensor *found = lk_safetensors_find(&golden->st, "posterior_noise.0");
    if (!found) return NULL;
    size_t n_values, c = (size_t)found->tensor.shape[2];
    float *last = golden_values(golden, "posterior_noise.0", &n_values);
    float *first = malloc(n_values * sizeof *first);
    assert_non_null(first);
    for (size_t i = 0; i < n_values; i++) first[i % c * (n_values / c) + i / c] = last[i];
    free(last);
    return first;
}

/* The reference images, named in the metadata and lying beside the golden. */
static int read_images(const char *folder, const struct golden *golden, struct lk_image *images) {
    char names[256];
    snprintf(names, sizeof names, "%s", golden_text(golden, "images"));
    int n = 0;
    for (char *rest, *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        char path[512];
        snprintf(path, sizeof path, "%s/cases/%s", folder, name);
        assert_true(n < LK_MAX_REFERENCES);
        assert_ok(lk_image_read(&images[n++], path, 0, 0));
    }
    return n;
}

/* Adapters, named in the metadata and lying in "loras" beside the cases. Gives how many; texts are malloc'ed. */
static int find_loras(const char *folder, const struct golden *golden, char *loras[LK_MAX_LORAS]) {
    char names[256] = "";
    if (lk_config_has(golden->metadata, "loras")) snprintf(names, sizeof names, "%s", golden_text(golden, "loras"));
    int n = 0;
    for (char *rest, *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        assert_true(n < LK_MAX_LORAS);
        assert_true(asprintf(&loras[n++], "%s/loras/%s", folder, name) > 0);
    }
    return n;
}

/* Concepts of semantic guidance, split at "|"; their texts live until the next call. */
static void read_concepts(struct lk_request *request, const struct golden *golden) {
    static char text[512];
    if (!lk_config_has(golden->metadata, "concepts")) return;
    snprintf(text, sizeof text, "%s", golden_text(golden, "concepts"));
    for (char *rest, *one = strtok_r(text, "|", &rest); one; one = strtok_r(NULL, "|", &rest))
        request->concepts[request->n_concepts++] = one;
    request->concept_momentum_scale = golden_number(golden, "momentum_scale", 0);
    request->concept_momentum_beta = golden_number(golden, "momentum_beta", 0);
}

/* "(200, 150)"; how many there are: 2, or 0 where the metadata have none. */
static int read_pair(const struct golden *golden, const char *key, int *out) {
    return sscanf(golden_text(golden, key), "(%d, %d)", &out[0], &out[1]) == 2 ? 2 : 0;
}

/* What the metadata do not have stays as the family's defaults say, but for the negative prompt: the reference has
 * none. */
static void fill_request(struct lk_request *request, const struct golden *golden) {
    request->prompt = golden_text(golden, "prompt");
    bool negative = lk_config_has(golden->metadata, "negative_prompt");
    request->negative_prompt = negative ? golden_text(golden, "negative_prompt") : NULL;
    request->true_cfg_scale = golden_number(golden, "true_cfg_scale", request->true_cfg_scale);
    request->guidance_scale = golden_number(golden, "guidance", request->guidance_scale);
    request->width = (int)golden_number(golden, "width", 0);
    request->height = (int)golden_number(golden, "height", 0);
    request->num_inference_steps = (int)golden_number(golden, "steps", 0);
    request->seed = strtoull(golden_text(golden, "seed"), NULL, 10);
    request->max_sequence_length = (int)golden_number(golden, "max_sequence_length", request->max_sequence_length);
    request->size_level = (int)golden_number(golden, "size_level", request->size_level);
    request->condition_area = (int)golden_number(golden, "condition_area", 0);
    request->vae_area = (int)golden_number(golden, "vae_area", 0);
    request->eta = golden_number(golden, "eta", 0);
    read_concepts(request, golden);
    request->guidance_rescale = golden_number(golden, "guidance_rescale", 0);
    if (lk_config_has(golden->metadata, "prompt_2")) request->prompt_2 = golden_text(golden, "prompt_2");
    if (lk_config_has(golden->metadata, "negative_prompt_2"))
        request->negative_prompt_2 = golden_text(golden, "negative_prompt_2");
    request->n_original_size = read_pair(golden, "original_size", request->original_size);
    request->n_crops_coords_top_left = read_pair(golden, "crops_coords_top_left", request->crops_coords_top_left);
    request->n_target_size = read_pair(golden, "target_size", request->target_size);
    request->clip_skip = (int)golden_number(golden, "clip_skip", 0);
    if (lk_config_has(golden->metadata, "scheduler")) request->scheduler = golden_text(golden, "scheduler");
    if (lk_config_has(golden->metadata, "accel")) request->accel = golden_text(golden, "accel");
    request->region_threshold = golden_number(golden, "region_threshold", 0);
    const char *layers = golden_text(golden, "out_layers");
    if (*layers) request->n_text_encoder_out_layers = 0;
    for (char *end; *layers && request->n_text_encoder_out_layers < LK_MAX_OUT_LAYERS; layers = end)
        request->text_encoder_out_layers[request->n_text_encoder_out_layers++] = (int)strtol(layers, &end, 10);
}

void golden_edit_open(struct golden_edit *edit, const struct golden *golden, const char *folder, enum lk_dtype dtype) {
    char checkpoint[256], *loras[LK_MAX_LORAS];
    const int n_loras = find_loras(folder, golden, loras);
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint", folder);
    assert_ok(lk_pipeline_open_with(
        &edit->pipeline, checkpoint,
        &(struct lk_pipeline_options){.compute = dtype, .loras = (const char *const *)loras, .n_loras = n_loras}));
    for (int i = 0; i < n_loras; i++) free(loras[i]);
    lk_request_init(&edit->request, edit->pipeline);
    fill_request(&edit->request, golden);
    edit->request.images = edit->images;
    edit->request.n_images = read_images(folder, golden, edit->images);
}

void golden_edit_close(struct golden_edit *edit) {
    for (int i = 0; i < edit->request.n_images; i++) lk_image_free(&edit->images[i]);
    lk_pipeline_close(edit->pipeline);
}

static enum lk_code open_device(struct lk_device **out) {
    if (on_cuda) return lk_device_cuda_create(0, out);
    return lk_device_cpu_create(1, out); /* bits do not depend on it; tests run beside each other */
}

static void test_case(void **state) {
    const struct run_case *item = *state;
    struct golden golden;
    golden_open(&golden, item->path, item->name);
    struct golden_check check;
    golden_check_begin(&check, &golden, item->mode);
    check.on_gpu = on_cuda;

    struct golden_edit edit;
    golden_edit_open(&edit, &golden, item->folder, item->mode == GOLDEN_BF16 ? LK_BF16 : LK_F32);
    struct lk_device *dev;
    assert_ok(open_device(&dev));
    dev->trace = golden_check_trace;
    dev->trace_context = &check;

    float *latents = item->mode == GOLDEN_F32 ? given_noise(&golden) : NULL;
    float *posterior_noise = item->mode == GOLDEN_F32 ? given_posterior_noise(&golden) : NULL;
    edit.request.latents = latents;
    edit.request.posterior_noise = posterior_noise;
    struct lk_result result;
    assert_ok(lk_pipeline_edit(edit.pipeline, dev, &edit.request, &result));
    golden_check_sigmas(&check, result.sigmas, result.n_steps);
    golden_check_image(&check, &result.image);

    lk_result_free(&result);
    free(latents);
    free(posterior_noise);
    lk_device_free(dev);
    golden_edit_close(&edit);
    golden_check_end(&check);
}

static void test_pooled(void **state) {
    (void)state;
    golden_check_pooled();
}

static bool chosen(const char *label, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strstr(label, argv[i])) return true;
    return argc < 2;
}

/* "golden/data/flux2/rich/cases/text.safetensors" -> folder "golden/data/flux2/rich", name "rich/text" */
static void name_case(struct run_case *item, const char *family, const char *path, enum golden_mode mode) {
    char found[32], config[32], base[64];
    assert_int_equal(sscanf(path, "golden/data/%31[^/]/%31[^/]/cases/%63[^.]", found, config, base), 3);
    assert_string_equal(found, family);
    snprintf(item->path, sizeof item->path, "%s", path);
    snprintf(item->folder, sizeof item->folder, "golden/data/%s/%s", family, config);
    snprintf(item->name, sizeof item->name, "%s/%s", config, base);
    snprintf(item->label, sizeof item->label, "%s/%s %s", config, base, mode_arguments[mode]);
    item->mode = mode;
}

int golden_run_cuda(const char *family, size_t min_cases, int argc, char **argv) {
    lk_device_free(test_cuda_open());
    on_cuda = true;
    return golden_run(family, min_cases, argc, argv);
}

int golden_run(const char *family, size_t min_cases, int argc, char **argv) {
    static struct run_case items[MAX_CASES * N_MODES];
    static struct CMUnitTest tests[MAX_CASES * N_MODES + 1];
    char pattern[128];
    snprintf(pattern, sizeof pattern, "golden/data/%s/*/cases/*.safetensors", family);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) || found.gl_pathc < min_cases) {
        fprintf(stderr, "%s: expected %zu goldens or more\n", pattern, min_cases);
        return 1;
    }
    size_t n = 0, n_bf16 = 0, n_flat = 0;
    for (size_t i = 0; i < found.gl_pathc && i < MAX_CASES; i++) {
        /* One f32 run: large (generate_flat.py), or of a sampler that draws in every step (generate_sd.py). */
        bool flat = strstr(found.gl_pathv[i], "/flat_") || strstr(found.gl_pathv[i], "/f32_");
        bool lora = strstr(found.gl_pathv[i], "/lora_");                  /* f32 stages only: generate_lora.py */
        bool long_run = on_cuda && strstr(found.gl_pathv[i], "/region_"); /* 28 steps, f32 bounds only */
        bool concepts = strstr(found.gl_pathv[i], "_concepts_");
        n_flat += flat || long_run || lora;
        for (int mode = 0; mode < N_MODES; mode++) {
            if (lora && mode == GOLDEN_BF16) continue;
            if (flat && (mode != GOLDEN_F32 || (on_cuda && !concepts))) continue;
            if (long_run && (mode != GOLDEN_F32 || !test_is_full())) continue;
            name_case(&items[n], family, found.gl_pathv[i], (enum golden_mode)mode);
            if (!chosen(items[n].label, argc, argv)) continue;
            tests[n] = (struct CMUnitTest){.name = items[n].label, .test_func = test_case, .initial_state = &items[n]};
            n++;
            n_bf16 += mode == GOLDEN_BF16;
        }
    }
    if (n_bf16 + n_flat == found.gl_pathc)
        tests[n++] = (struct CMUnitTest){.name = "all bf16", .test_func = test_pooled};
    globfree(&found);
    if (!n) {
        fprintf(stderr, "no case matches\n");
        return 1;
    }
    int failed = _cmocka_run_group_tests(family, tests, n, NULL, NULL);
    golden_print_table();
    return failed;
}
