/* Every stage of the FLUX.2 pipeline against diffusers' (tests/golden/README.md). Arguments choose cases by a part of
 * "CONFIG/CASE MODE", MODE one of f32, seed, bf16: `test_flux2 "rich/text f32" deep/`. */
#include "models/pipeline.h"
#include "tests/common/golden.h"
#include "tests/common/test.h"

#include <glob.h>

#define FOLDER  "golden/data/flux2/"
#define N_MODES 3

static const char *const mode_names[N_MODES] = {"f32", "seed", "bf16"};

struct flux2_case {
    char path[256]; /* of the golden */
    char label[160];
    char name[128];
    char config[32];
    enum golden_mode mode;
};

/* The noise of the golden, [n, C], as the request wants it: [C, n]. */
static float *given_noise(const struct golden *golden) {
    size_t n_values;
    float *packed = golden_values(golden, "noise", &n_values);
    const struct lk_tensor *t = &lk_safetensors_find(&golden->st, "noise")->tensor;
    size_t n = (size_t)t->shape[0], c = (size_t)t->shape[1];
    float *latents = malloc(n_values * sizeof *latents);
    assert_non_null(latents);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < c; j++) latents[j * n + i] = packed[i * c + j];
    free(packed);
    return latents;
}

/* The reference images, named in the metadata and lying beside the golden. */
static int read_images(const struct flux2_case *item, const struct golden *golden, struct lk_image *images) {
    char names[256];
    snprintf(names, sizeof names, "%s", golden_text(golden, "images"));
    int n = 0;
    for (char *rest, *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        char path[512];
        snprintf(path, sizeof path, FOLDER "%s/cases/%s", item->config, name);
        assert_true(n < LK_MAX_REFERENCES);
        assert_ok(lk_image_read(&images[n++], path, 0, 0));
    }
    return n;
}

static void fill_request(struct lk_request *request, const struct golden *golden) {
    request->prompt = golden_text(golden, "prompt");
    request->width = (int)golden_number(golden, "width", 0);
    request->height = (int)golden_number(golden, "height", 0);
    request->num_inference_steps = (int)golden_number(golden, "steps", 0);
    request->guidance_scale = golden_number(golden, "guidance", 0);
    request->seed = strtoull(golden_text(golden, "seed"), NULL, 10);
    request->max_sequence_length = (int)golden_number(golden, "max_sequence_length", 0);
    const char *layers = golden_text(golden, "out_layers");
    request->n_text_encoder_out_layers = 0;
    for (char *end; *layers && request->n_text_encoder_out_layers < LK_MAX_OUT_LAYERS; layers = end)
        request->text_encoder_out_layers[request->n_text_encoder_out_layers++] = (int)strtol(layers, &end, 10);
}

static void test_case(void **state) {
    const struct flux2_case *item = *state;
    struct golden golden;
    golden_open(&golden, item->path, item->name);
    struct golden_check check;
    golden_check_begin(&check, &golden, item->mode);

    char folder[256];
    snprintf(folder, sizeof folder, FOLDER "%s/checkpoint", item->config);
    struct lk_pipeline *pipeline;
    assert_ok(lk_pipeline_open(&pipeline, folder, item->mode == GOLDEN_BF16 ? LK_BF16 : LK_F32));
    struct lk_device *dev;
    assert_ok(lk_device_cpu_create(1, &dev)); /* bits do not depend on it; tests run beside each other */
    dev->trace = golden_check_trace;
    dev->trace_context = &check;

    struct lk_image images[LK_MAX_REFERENCES];
    struct lk_request request;
    lk_request_init(&request, pipeline);
    fill_request(&request, &golden);
    request.images = images;
    request.n_images = read_images(item, &golden, images);
    float *latents = item->mode == GOLDEN_F32 ? given_noise(&golden) : NULL;
    request.latents = latents;
    struct lk_result result;
    assert_ok(lk_pipeline_edit(pipeline, dev, &request, &result));
    golden_check_sigmas(&check, result.sigmas, result.n_steps);
    golden_check_image(&check, &result.image);

    lk_result_free(&result);
    free(latents);
    for (int i = 0; i < request.n_images; i++) lk_image_free(&images[i]);
    lk_device_free(dev);
    lk_pipeline_close(pipeline);
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

/* "golden/data/flux2/rich/cases/text.safetensors" -> config "rich", name "rich/text" */
static void name_case(struct flux2_case *item, const char *path, enum golden_mode mode) {
    char config[32], base[64];
    assert_int_equal(sscanf(path, FOLDER "%31[^/]/cases/%63[^.]", config, base), 2);
    snprintf(item->path, sizeof item->path, "%s", path);
    snprintf(item->config, sizeof item->config, "%s", config);
    snprintf(item->name, sizeof item->name, "%s/%s", config, base);
    snprintf(item->label, sizeof item->label, "%s/%s %s", config, base, mode_names[mode]);
    item->mode = mode;
}

int main(int argc, char **argv) {
    glob_t found;
    if (glob(FOLDER "*/cases/*.safetensors", 0, NULL, &found) || found.gl_pathc < 8) {
        fprintf(stderr, "the goldens under " FOLDER " are not there\n");
        return 1;
    }
    static struct flux2_case items[64 * N_MODES];
    static struct CMUnitTest tests[64 * N_MODES + 1];
    size_t n = 0, n_bf16 = 0;
    for (size_t i = 0; i < found.gl_pathc && i < 64; i++) {
        for (int mode = 0; mode < N_MODES; mode++) {
            name_case(&items[n], found.gl_pathv[i], (enum golden_mode)mode);
            if (!chosen(items[n].label, argc, argv)) continue;
            tests[n] = (struct CMUnitTest){.name = items[n].label, .test_func = test_case, .initial_state = &items[n]};
            n++;
            n_bf16 += mode == GOLDEN_BF16;
        }
    }
    if (n_bf16 == found.gl_pathc) tests[n++] = (struct CMUnitTest){.name = "all bf16", .test_func = test_pooled};
    globfree(&found);
    if (!n) {
        fprintf(stderr, "no case matches\n");
        return 1;
    }
    int failed = _cmocka_run_group_tests("flux2 goldens", tests, n, NULL, NULL);
    golden_print_table();
    return failed;
}
