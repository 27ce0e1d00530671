/* One bf16 forward of Step1X-Edit's transformer on given inputs, against the original's (tests/golden/README.md). In a
 * whole pipeline two bf16 runs have drifted apart before they come to the transformer; from the same inputs they stay
 * together as long as they round at the same points. */
#include "engine/rope_table.h"
#include "models/step1x/transformer.h"
#include "tests/common/golden.h"
#include "tests/common/test.h"

#define FOLDER      "golden/data/step1x/plain/"
#define WEIGHTS     FOLDER "checkpoint/transformer"
#define ARENA_BYTES ((size_t)16 << 20)

static struct lk_tensor input(struct lk_device *dev, const struct golden *golden, const char *name) {
    char full[64];
    snprintf(full, sizeof full, "input.%s", name);
    const struct lk_st_tensor *stored = lk_safetensors_find(&golden->st, full);
    struct lk_tensor out;
    assert_non_null(stored);
    assert_int_equal(stored->tensor.dtype, LK_BF16);
    assert_ok(lk_arena_tensor(&dev->arena, &out, LK_BF16, stored->tensor.n_dims, stored->tensor.shape));
    assert_ok(lk_upload(dev, &out, stored->tensor.data));
    return out;
}

static void fill_rope(struct lk_device *dev, const struct golden *golden, const struct lk_step1x_transformer_config *c,
                      struct lk_step1x_conditioning *conditioning) {
    size_t n, half = (size_t)c->attention_head_dim / 2;
    float *positions = golden_values(golden, "input.positions", &n);
    n /= LK_STEP1X_AXES;
    float *table = malloc(2 * n * half * sizeof *table);
    assert_non_null(table);
    lk_rope_table(positions, (int64_t)n, c->axes_dims_rope, LK_STEP1X_AXES, LK_STEP1X_ROPE_THETA, table,
                  table + n * half);
    assert_ok(LK_NEW(&dev->arena, &conditioning->cos, LK_F32, (int64_t)n, (int64_t)half));
    assert_ok(LK_NEW(&dev->arena, &conditioning->sin, LK_F32, (int64_t)n, (int64_t)half));
    assert_ok(lk_upload(dev, &conditioning->cos, table));
    assert_ok(lk_upload(dev, &conditioning->sin, table + n * half));
    free(table);
    free(positions);
}

static void forward(struct lk_device *dev, const struct golden *golden, const struct lk_step1x_transformer *t) {
    size_t n_txt, one;
    float *quoted = golden_values(golden, "input.quoted", &n_txt);
    float *timestep = golden_values(golden, "input.timestep", &one);
    bool flags[64];
    assert_true(n_txt <= sizeof flags);
    for (size_t i = 0; i < n_txt; i++) flags[i] = quoted[i] != 0;
    struct lk_tensor x = input(dev, golden, "x"), velocity;
    struct lk_step1x_conditioning conditioning = {.quoted = flags};
    conditioning.hidden = input(dev, golden, "hidden");
    conditioning.embeds = input(dev, golden, "embeds");
    fill_rope(dev, golden, &t->config, &conditioning);
    assert_ok(LK_NEW(&dev->arena, &velocity, LK_BF16, x.shape[0] / 2, t->config.out_channels));
    struct lk_step1x_pass pass = {&x, &conditioning, *timestep, 0, "cond", &velocity, 0, NULL};
    assert_ok(lk_step1x_look_ahead(dev, t, &conditioning.hidden, timestep, 1, "cond", &conditioning.ahead));
    assert_ok(lk_step1x_transformer_forward(dev, t, &pass, 1));
    assert_ok(lk_trace(dev, &velocity, "step.0.cond.velocity"));
    free(quoted);
    free(timestep);
}

static void rounds_where_the_original_does(void **state) {
    (void)state;
    struct golden golden;
    struct golden_check check;
    golden_open(&golden, FOLDER "forward.safetensors", "forward");
    golden_check_begin(&check, &golden, GOLDEN_BF16);

    struct lk_config *json;
    struct lk_step1x_transformer_config config;
    struct lk_checkpoint checkpoint;
    struct lk_step1x_transformer t;
    struct lk_device *dev;
    assert_ok(lk_config_open(&json, WEIGHTS "/config.json"));
    assert_ok(lk_step1x_transformer_config_read(&config, json));
    assert_ok(lk_checkpoint_open(&checkpoint, WEIGHTS, "diffusion_pytorch_model"));
    assert_ok(lk_step1x_transformer_bind(&t, &config, &checkpoint, LK_BF16, LK_QUANTIZE_NONE, NULL));
    assert_ok(lk_device_cpu_create(1, &dev));
    assert_ok(lk_device_prepare(dev, ARENA_BYTES));
    dev->trace = golden_check_trace;
    dev->trace_context = &check;
    forward(dev, &golden, &t);
    lk_device_free(dev);
    lk_step1x_transformer_free(&t);
    lk_checkpoint_close(&checkpoint);
    golden_check_end(&check);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounds_where_the_original_does)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    golden_print_table();
    return failed;
}
