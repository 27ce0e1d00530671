/* Edits with LoRA: bf16 errors against PEFT's own, and the published layouts of a file, which all give the same bits.
 * f32, stage by stage: the cases lora_* of the families' own tests (generate_lora.py). */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "engine/bf16.h"
#include "engine/ops.h"
#include "models/quantize.h"
#include "tests/common/golden_run.h"
#include "tests/common/test.h"
#include "weights/lora/lora.h"

#define N_FAMILIES 3
static const char *const folders[N_FAMILIES] = {"golden/data/flux2/rich", "golden/data/qwen_edit/edit2511",
                                                "golden/data/step1x/rich"};

/* The last latents of a run, as f32. */
struct last {
    char name[64];
    float *values;
    size_t n, row;
};

static enum lk_code keep_last(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct last *last = context;
    if (strcmp(name, last->name) != 0) return LK_OK;
    const size_t n = (size_t)lk_tensor_numel(value), size = lk_dtype_size(value->dtype);
    unsigned char *raw = malloc(n * size);
    assert_non_null(raw);
    last->values = malloc(n * sizeof(float));
    last->n = n;
    last->row = (size_t)lk_tensor_row_numel(value);
    const enum lk_code rc = lk_download(dev, raw, value);
    for (size_t i = 0; i < n; i++) {
        if (value->dtype == LK_F32)
            last->values[i] = ((float *)raw)[i];
        else
            last->values[i] = lk_bf16_to_f32(((uint16_t *)raw)[i]);
    }
    free(raw);
    return rc;
}

static struct last run(const struct golden_edit *edit) {
    struct last last = {.n = 0};
    struct lk_device *dev;
    struct lk_result result;
    snprintf(last.name, sizeof last.name, "step.%d.latents", edit->request.num_inference_steps - 1);
    assert_ok(lk_device_cpu_create(1, &dev));
    dev->trace = keep_last;
    dev->trace_context = &last;
    assert_ok(lk_pipeline_edit(edit->pipeline, dev, &edit->request, &result));
    assert_non_null(last.values);
    lk_result_free(&result);
    lk_device_free(dev);
    return last;
}

/* Relative to the golden's latents, of which there is every 5th row. */
static double error_of(const struct last *last, const float *expected, size_t n) {
    float *rows = malloc(n * sizeof *rows);
    assert_non_null(rows);
    assert_int_equal(n % last->row, 0);
    for (size_t i = 0; i < n / last->row; i++)
        memcpy(rows + i * last->row, last->values + 5 * i * last->row, last->row * sizeof *rows);
    const double error = test_relative_error(rows, expected, n);
    free(rows);
    return error;
}

/* PEFT rounds W x, A x, B h and their sum; we round A x and the sum. */
static void test_bf16_error(void **state) {
    (void)state;
    for (int f = 0; f < N_FAMILIES; f++) {
        double log_ratio = 0;
        const int n_edits = 16;
        struct golden golden;
        struct golden_edit edit;
        char *path = lk_format("%s/loras/bf16.safetensors", folders[f]);
        golden_open(&golden, path, folders[f]);
        golden_edit_open(&edit, &golden, folders[f], LK_BF16);
        for (int seed = 1; seed <= n_edits; seed++) {
            char name[64];
            size_t n, n_errors;
            snprintf(name, sizeof name, "every5.latents.%d", seed);
            float *expected = golden_values(&golden, name, &n);
            snprintf(name, sizeof name, "error.%d", seed);
            float *reference = golden_values(&golden, name, &n_errors);
            edit.request.seed = (uint64_t)seed;
            struct last last = run(&edit);
            log_ratio += log(error_of(&last, expected, n) / (double)reference[0]);
            free(last.values);
            free(expected);
            free(reference);
        }
        golden_edit_close(&edit);
        golden_close(&golden);
        lk_free(path);
        const double ratio = exp(log_ratio / n_edits);
        printf("%s: our bf16 error is %.3f of PEFT's, %d edits\n", folders[f], ratio, n_edits);
        if (!(ratio <= 1.0)) fail_msg("%s: beyond their bounds: expected at most 1.00", folders[f]);
    }
}

/* Values of so small a deviation, rounded. */
static void draw(uint16_t *values, size_t n, double deviation, uint64_t *seed) {
    for (size_t i = 0; i < n; i++) values[i] = lk_f32_to_bf16((float)(deviation * test_normal(seed)));
}

static double product(const uint16_t *a, const uint16_t *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)lk_bf16_to_f32(a[i]) * (double)lk_bf16_to_f32(b[i]);
    return sum;
}

/* One layer of width 3072 with an adapter of rank 64, a tenth of the weight: our error against r(r(x W) + r(r(x A) B)),
 * which is PEFT's with sums that lose nothing. 0.71 seen. */
static void test_error_of_a_linear(void **state) {
    enum { M = 24, N = 64, K = 3072, R = 64 };
    static uint16_t x[M * K], w[N * K], a[R * K], b[N * R], low[M * R], y[M * N];
    const struct lk_tensor xt = LK_TENSOR(x, LK_BF16, M, K), wt = LK_TENSOR(w, LK_BF16, N, K),
                           at = LK_TENSOR(a, LK_BF16, R, K), bt = LK_TENSOR(b, LK_BF16, N, R),
                           lt = LK_TENSOR(low, LK_BF16, M, R), yt = LK_TENSOR(y, LK_BF16, M, N);
    uint64_t seed = 1;
    double ours = 0, theirs = 0;
    struct lk_device *dev;
    (void)state;
    draw(x, M * K, 1, &seed);
    draw(w, N * K, 0.02, &seed);
    draw(a, R * K, 0.02, &seed);
    draw(b, N * R, 0.1 / 8, &seed); /* |B A| is 8 |B| |A| of single values */
    assert_ok(lk_device_cpu_create(1, &dev));
    assert_ok(lk_device_prepare(dev, 1 << 20));
    assert_ok(lk_linear(dev, &(struct lk_linear){.y = &lt, .x = &xt, .w = &at}));
    assert_ok(lk_linear(dev, &(struct lk_linear){.y = &yt, .x = &xt, .w = &wt, .low = &lt, .up = &bt}));
    for (int64_t m = 0; m < M; m++) {
        double h[R];
        uint16_t rounded[R];
        for (int64_t r = 0; r < R; r++) rounded[r] = lk_f32_to_bf16((float)(h[r] = product(x + m * K, a + r * K, K)));
        for (int64_t n = 0; n < N; n++) {
            const double base = product(x + m * K, w + n * K, K), side = product(rounded, b + n * R, R);
            double exact = base;
            for (int64_t r = 0; r < R; r++) exact += h[r] * (double)lk_bf16_to_f32(b[n * R + r]);
            const float apart = lk_round_bf16(lk_round_bf16((float)base) + lk_round_bf16((float)side));
            ours += pow((double)lk_bf16_to_f32(y[m * N + n]) - exact, 2);
            theirs += pow((double)apart - exact, 2);
        }
    }
    lk_device_free(dev);
    const double ratio = sqrt(ours / theirs);
    printf("a linear layer: our bf16 error is %.3f of PEFT's\n", ratio);
    if (!(ratio <= 0.8)) fail_msg("a linear layer: beyond their bounds: expected at most 0.80, got %.3f", ratio);
}

/* Another way of writing the same file. */
struct layout {
    const char *prefix;
    const char *a, *b; /* what the roles are called */
    bool flat, four_dimensions;
};
static const struct layout layouts[] = {
    {"", ".lora_A.weight", ".lora_B.weight", false, false},
    {"", ".lora_down.weight", ".lora_up.weight", false, false},
    {"", ".lora_A.default.weight", ".lora_B.default.weight", false, false},
    {"", ".lora_A", ".lora_B", false, false},
    {"", ".lora.down.weight", ".lora.up.weight", false, false},
    {"", "_lora.down.weight", "_lora.up.weight", false, false},
    {"", ".lora_linear_layer.down.weight", ".lora_linear_layer.up.weight", false, false},
    {"", ".lora_down.weight", ".lora_up.weight", false, true},
    {"diffusion_model.", ".lora_A.weight", ".lora_B.weight", false, false},
    {"model.diffusion_model.", ".lora_down.weight", ".lora_up.weight", false, false},
    {"base_model.model.", ".lora_A.weight", ".lora_B.weight", false, false},
    {"transformer.", ".lora_down.weight", ".lora_up.weight", false, false},
    {"unet.", ".lora_A.weight", ".lora_B.weight", false, false},
    {"lora_unet_", ".lora_down.weight", ".lora_up.weight", true, false},
    {"lora_transformer_", ".lora_down.weight", ".lora_up.weight", true, false},
    {"lycoris_", ".lora_down.weight", ".lora_up.weight", true, false},
};
#define N_LAYOUTS (sizeof layouts / sizeof *layouts)

static char *renamed(const char *key, const struct layout *layout) {
    static const char *const roles[] = {".lora_A.weight", ".lora_B.weight", ".lora_down.weight", ".lora_up.weight",
                                        ".alpha"};
    const char *const now[] = {layout->a, layout->b, layout->a, layout->b, ".alpha"};
    if (!strncmp(key, "transformer.", 12)) key += 12;
    for (int i = 0; i < 5; i++) {
        const size_t length = strlen(key), ending = strlen(roles[i]);
        if (length <= ending || strcmp(key + length - ending, roles[i]) != 0) continue;
        char *module = lk_strndup(key, length - ending);
        for (char *c = module; layout->flat && *c; c++)
            if (*c == '.') *c = '_';
        char *name = lk_format("%s%s%s", layout->prefix, module, now[i]);
        lk_free(module);
        return name;
    }
    fail_msg("%s: no key of a LoRA", key);
    return NULL;
}

static void write_as(const char *from, const char *to, const struct layout *layout) {
    struct lk_safetensors st;
    assert_ok(lk_safetensors_open(&st, from));
    struct lk_st_named *tensors = lk_calloc(st.n_tensors, sizeof *tensors);
    for (size_t i = 0; i < st.n_tensors; i++) {
        struct lk_tensor t = st.tensors[i].tensor;
        if (layout->four_dimensions && t.n_dims == 2) t = LK_VIEW(&t, t.shape[0], t.shape[1], 1, 1);
        tensors[i] = (struct lk_st_named){renamed(st.tensors[i].name, layout), t};
    }
    assert_ok(lk_safetensors_write(to, tensors, st.n_tensors, st.metadata_json));
    for (size_t i = 0; i < st.n_tensors; i++) lk_free((void *)(uintptr_t)tensors[i].name);
    lk_free(tensors);
    lk_safetensors_close(&st);
}

/* Last latents of an edit by one step with the file, in bf16. */
static struct last edit_with(const char *folder, const char *file) {
    struct golden golden;
    struct golden_edit edit;
    char *path = lk_format("%s/cases/lora_one.safetensors", folder), *checkpoint = lk_format("%s/checkpoint", folder);
    char *asked = lk_format("%s=0.7", file);
    golden_open(&golden, path, folder);
    golden_edit_open(&edit, &golden, folder, LK_BF16);
    lk_pipeline_close(edit.pipeline);
    const struct lk_pipeline_options options = {
        .compute = LK_BF16, .loras = (const char *const[]){asked}, .n_loras = 1};
    assert_ok(lk_pipeline_open_with(&edit.pipeline, checkpoint, &options));
    edit.request.num_inference_steps = 2;
    struct last last = run(&edit);
    golden_edit_close(&edit);
    golden_close(&golden);
    lk_free(path);
    lk_free(checkpoint);
    lk_free(asked);
    return last;
}

static void assert_same_edit(const char *folder, const char *file, const struct last *expected) {
    struct last last = edit_with(folder, file);
    assert_int_equal(last.n, expected->n);
    if (memcmp(last.values, expected->values, last.n * sizeof(float)) != 0)
        fail_msg("%s: beyond their bounds: other bits than the canonical file's", file);
    free(last.values);
}

static void test_layouts(void **state) {
    (void)state;
    for (int f = 0; f < N_FAMILIES; f++) {
        const char *const sets[] = {"all", "attention"};
        for (int s = 0; s < 2; s++) {
            char *file = lk_format("%s/loras/%s.safetensors", folders[f], sets[s]);
            struct last expected = edit_with(folders[f], file);
            for (size_t i = 0; i < N_LAYOUTS; i++) {
                const char *path = test_path("lora_layout.safetensors");
                write_as(file, path, &layouts[i]);
                assert_same_edit(folders[f], path, &expected);
                unlink(path);
            }
            free(expected.values);
            lk_free(file);
        }
    }
}

/* The authors' own names: dotted, flattened, and half of each, as one converter writes them. */
static void test_original_names(void **state) {
    (void)state;
    const struct layout named[] = {{"", ".lora_A.weight", ".lora_B.weight", false, false},
                                   {"diffusion_model.", ".lora_A.weight", ".lora_B.weight", false, false},
                                   {"lora_unet_", ".lora_down.weight", ".lora_up.weight", true, false}};
    for (int f = 0; f < N_FAMILIES; f += 2) {
        char *file = lk_format("%s/loras/all.safetensors", folders[f]);
        char *original = lk_format("%s/loras/all_original.safetensors", folders[f]);
        struct last expected = edit_with(folders[f], file);
        assert_same_edit(folders[f], original, &expected);
        for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
            const char *path = test_path("lora_original.safetensors");
            write_as(original, path, &named[i]);
            assert_same_edit(folders[f], path, &expected);
            unlink(path);
        }
        free(expected.values);
        lk_free(file);
        lk_free(original);
    }
}

/* A model with the adapters in its weights: close to the one beside which they are, and as the files' reader has it. */
static void test_merged(void **state) {
    (void)state;
    for (int f = 0; f < N_FAMILIES; f++) {
        double log_ratio = 0;
        const int n_edits = 4;
        struct golden golden;
        struct golden_edit edit;
        char *path = lk_format("%s/loras/bf16.safetensors", folders[f]);
        char *checkpoint = lk_format("%s/checkpoint", folders[f]), *merged = lk_strdup(test_fresh("lora_merged"));
        char *asked[2] = {lk_format("%s/loras/attention.safetensors", folders[f]),
                          lk_format("%s/loras/all.safetensors=-0.3", folders[f])};
        rmdir(merged);
        assert_ok(lk_model_merge(checkpoint, merged, (const char *const *)asked, 2));
        golden_open(&golden, path, folders[f]);
        golden_edit_open(&edit, &golden, folders[f], LK_BF16);
        lk_pipeline_close(edit.pipeline);
        assert_ok(lk_pipeline_open(&edit.pipeline, merged, LK_BF16));
        for (int seed = 1; seed <= n_edits; seed++) {
            char name[64];
            size_t n, n_errors;
            snprintf(name, sizeof name, "every5.latents.%d", seed);
            float *expected = golden_values(&golden, name, &n);
            snprintf(name, sizeof name, "error.%d", seed);
            float *reference = golden_values(&golden, name, &n_errors);
            edit.request.seed = (uint64_t)seed;
            struct last last = run(&edit);
            log_ratio += log(error_of(&last, expected, n) / (double)reference[0]);
            free(last.values);
            free(expected);
            free(reference);
        }
        const double ratio = exp(log_ratio / n_edits);
        printf("%s merged: our bf16 error is %.3f of PEFT's, %d edits\n", folders[f], ratio, n_edits);
        if (!(ratio <= 3)) fail_msg("%s: beyond their bounds: expected at most 3", folders[f]);
        golden_edit_close(&edit);
        golden_close(&golden);
        for (int i = 0; i < 2; i++) lk_free(asked[i]);
        lk_free(path);
        lk_free(checkpoint);
        lk_free(merged);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16_error), cmocka_unit_test(test_error_of_a_linear),
        cmocka_unit_test(test_layouts),    cmocka_unit_test(test_original_names),
        cmocka_unit_test(test_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
