/* Qwen2.5-VL's vision tower and language model against transformers' (tests/golden/README.md). Arguments choose cases
 * by a part of "CONFIG/CASE MODE", MODE one of f32, bf16: `test_qwen25_vl "nested/square f32" flat/`. */
#include "tests/common/golden.h"
#include "tests/common/test.h"

#include <glob.h>

#include "models/text/qwen25_vl.h"

#define FOLDER  "golden/data/qwen25_vl/"
#define N_MODES 2

static const enum golden_mode modes[N_MODES] = {GOLDEN_F32, GOLDEN_BF16};
static const char *const mode_names[N_MODES] = {"f32", "bf16"};

struct vl_case {
    char path[256]; /* of the golden */
    char label[160];
    char name[128];
    char config[32];
    enum golden_mode mode;
};

/* What one case runs on. */
struct vl_input {
    int32_t *ids;
    int64_t n;
    struct lk_vlm_image images[LK_VLM_MAX_IMAGES];
    float *rows[LK_VLM_MAX_IMAGES];
    int n_images;
    int64_t n_image_tokens;
};

static void open_model(struct lk_qwen25_vl *m, struct lk_checkpoint *checkpoint, const struct vl_case *item) {
    char folder[256], path[300];
    snprintf(folder, sizeof folder, FOLDER "%s/checkpoint", item->config);
    snprintf(path, sizeof path, "%s/config.json", folder);
    struct lk_config *json;
    struct lk_qwen25_vl_config config;
    assert_ok(lk_config_open(&json, path));
    assert_ok(lk_qwen25_vl_config_read(&config, json));
    assert_ok(lk_checkpoint_open(checkpoint, folder, "model"));
    assert_ok(lk_qwen25_vl_bind(m, &config, true, checkpoint, item->mode == GOLDEN_BF16 ? LK_BF16 : LK_F32));
}

static void read_input(struct vl_input *in, const struct golden *golden, const struct lk_qwen25_vl_config *config) {
    size_t n;
    memset(in, 0, sizeof *in);
    float *ids = golden_values(golden, "input.ids", &n);
    in->n = (int64_t)n;
    in->ids = calloc(n, sizeof *in->ids);
    assert_non_null(in->ids);
    for (size_t i = 0; i < n; i++) in->ids[i] = (int32_t)ids[i];
    free(ids);
    char grids[128];
    snprintf(grids, sizeof grids, "%s", golden_text(golden, "grids"));
    for (char *rest, *grid = strtok_r(grids, " ", &rest); grid; grid = strtok_r(NULL, " ", &rest)) {
        char name[64];
        assert_true(in->n_images < LK_VLM_MAX_IMAGES);
        struct lk_vlm_image *image = &in->images[in->n_images];
        assert_int_equal(sscanf(grid, "%dx%d", &image->grid_h, &image->grid_w), 2);
        snprintf(name, sizeof name, "input.image.%d", in->n_images);
        float *values = golden_values(golden, name, &n);
        for (size_t i = 0; i < n; i++) values[i] = (values[i] - 117.25f) / 53; /* pixel_rows of qwen25_vl_models.py */
        image->rows = in->rows[in->n_images++] = values;
        in->n_image_tokens += lk_qwen25_vl_image_tokens(config, image);
    }
}

static void free_input(struct vl_input *in) {
    free(in->ids);
    for (int i = 0; i < in->n_images; i++) free(in->rows[i]);
}

/* All that the model does with a prompt; on the plan device without looking at values. */
static enum lk_code run(struct lk_device *dev, const struct lk_qwen25_vl *m, const struct vl_input *in,
                        enum lk_dtype dtype) {
    bool planning = dev->kind == LK_DEVICE_PLAN;
    struct lk_tensor features = {0}, hidden;
    if (in->n_images)
        LK_TRY(LK_NEW(&dev->arena, &features, dtype, in->n_image_tokens, m->config.vision.out_hidden_size));
    int64_t at = 0;
    for (int i = 0; i < in->n_images; i++) {
        struct lk_vlm_image image = in->images[i];
        int64_t n = lk_qwen25_vl_image_tokens(&m->config, &image);
        struct lk_tensor part = lk_tensor_rows(&features, at, n);
        if (planning) image.rows = NULL;
        LK_TRY(lk_qwen25_vl_vision(dev, m, &image, i, &part));
        at += n;
    }
    struct lk_vlm_prompt prompt = {.name = "cond", .n = in->n, .images = in->images, .n_images = in->n_images};
    prompt.ids = planning ? NULL : in->ids;
    prompt.features = in->n_images ? &features : NULL;
    prompt.uncounted_id = -1;
    LK_TRY(LK_NEW(&dev->arena, &hidden, dtype, in->n, m->config.hidden_size));
    return lk_qwen25_vl_hidden_states(dev, m, &prompt, &hidden, NULL);
}

static void check_positions(struct golden_check *check, struct lk_device *dev, const struct lk_qwen25_vl *m,
                            const struct vl_input *in) {
    int32_t(*positions)[3] = calloc((size_t)in->n, sizeof *positions), next;
    assert_non_null(positions);
    struct lk_vlm_prompt prompt = {.ids = in->ids, .n = in->n, .images = in->images, .n_images = in->n_images};
    prompt.uncounted_id = -1;
    assert_ok(lk_qwen25_vl_positions(&m->config, &prompt, positions, &next));
    int32_t last = -1;
    for (int64_t i = 0; i < in->n; i++)
        for (int axis = 0; axis < 3; axis++) last = positions[i][axis] > last ? positions[i][axis] : last;
    assert_int_equal(next, last + 1);
    struct lk_tensor t = LK_TENSOR(positions, LK_I32, in->n, 3);
    assert_ok(golden_check_trace(check, dev, "positions", &t));
    free(positions);
}

/* So that what is read must have been written. */
static void fill_with_nan(struct lk_device *dev) {
    void *all;
    size_t mark = lk_arena_mark(&dev->arena), n = dev->arena.capacity - LK_ARENA_ALIGN;
    assert_ok(lk_arena_alloc(&dev->arena, n, &all));
    memset(all, 0xff, n);
    lk_arena_release(&dev->arena, mark);
    dev->arena.peak = 0;
}

static void test_case(void **state) {
    const struct vl_case *item = *state;
    enum lk_dtype dtype = item->mode == GOLDEN_BF16 ? LK_BF16 : LK_F32;
    struct golden golden;
    golden_open(&golden, item->path, item->name);
    struct golden_check check;
    golden_check_begin(&check, &golden, item->mode);
    struct lk_qwen25_vl m;
    struct lk_checkpoint checkpoint;
    open_model(&m, &checkpoint, item);
    struct vl_input in;
    read_input(&in, &golden, &m.config);

    struct lk_device *dev, *plan;
    assert_ok(lk_device_cpu_create(1, &dev)); /* bits do not depend on it; tests run beside each other */
    assert_ok(lk_device_plan_create(dev, &plan));
    assert_ok(run(plan, &m, &in, dtype));
    assert_ok(lk_device_prepare(dev, plan->arena.peak));
    fill_with_nan(dev);
    dev->trace = golden_check_trace;
    dev->trace_context = &check;
    assert_ok(run(dev, &m, &in, dtype));
    assert_int_equal(dev->arena.peak, plan->arena.peak);
    assert_true(dev->cost.flops == plan->cost.flops && dev->cost.bytes == plan->cost.bytes);
    check_positions(&check, dev, &m, &in);

    lk_device_free(plan);
    lk_device_free(dev);
    free_input(&in);
    lk_qwen25_vl_free(&m);
    lk_checkpoint_close(&checkpoint);
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

/* "golden/data/qwen25_vl/flat/cases/text.safetensors" -> config "flat", name "flat/text" */
static void name_case(struct vl_case *item, const char *path, int mode) {
    char config[32], base[64];
    assert_int_equal(sscanf(path, FOLDER "%31[^/]/cases/%63[^.]", config, base), 2);
    snprintf(item->path, sizeof item->path, "%s", path);
    snprintf(item->config, sizeof item->config, "%s", config);
    snprintf(item->name, sizeof item->name, "%s/%s", config, base);
    snprintf(item->label, sizeof item->label, "%s/%s %s", config, base, mode_names[mode]);
    item->mode = modes[mode];
}

int main(int argc, char **argv) {
    glob_t found;
    if (glob(FOLDER "*/cases/*.safetensors", 0, NULL, &found) || found.gl_pathc < 6) {
        fprintf(stderr, "the goldens under " FOLDER " are not there\n");
        return 1;
    }
    static struct vl_case items[32 * N_MODES];
    static struct CMUnitTest tests[32 * N_MODES + 1];
    size_t n = 0, n_bf16 = 0;
    for (size_t i = 0; i < found.gl_pathc && i < 32; i++) {
        for (int mode = 0; mode < N_MODES; mode++) {
            name_case(&items[n], found.gl_pathv[i], mode);
            if (!chosen(items[n].label, argc, argv)) continue;
            tests[n] = (struct CMUnitTest){.name = items[n].label, .test_func = test_case, .initial_state = &items[n]};
            n++;
            n_bf16 += modes[mode] == GOLDEN_BF16;
        }
    }
    if (n_bf16 == found.gl_pathc) tests[n++] = (struct CMUnitTest){.name = "all bf16", .test_func = test_pooled};
    globfree(&found);
    if (!n) {
        fprintf(stderr, "no case matches\n");
        return 1;
    }
    int failed = _cmocka_run_group_tests("qwen25_vl goldens", tests, n, NULL, NULL);
    golden_print_table();
    return failed;
}
