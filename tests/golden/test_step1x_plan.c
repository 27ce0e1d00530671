/* What the released Step1X-Edit needs, by its configuration alone: parameters as its files hold them, and FLOPs and
 * sizes as the reference's arithmetic gives them. */
#include "models/pipeline.h"
#include "tests/common/test.h"

static struct lk_device *dev;

static int create_device(void **state) {
    (void)state;
    return lk_device_cpu_create(1, &dev) != LK_OK;
}

static int free_device(void **state) {
    (void)state;
    lk_device_free(dev);
    return 0;
}

/* width 0: no source. */
static void plan_for(const char *name, int width, int height, int size_level, struct lk_plan *plan) {
    struct lk_pipeline *p;
    struct lk_request request;
    struct lk_image image = {.width = width, .height = height, .channels = 3};
    assert_ok(lk_pipeline_open_configs(&p, name, LK_BF16));
    assert_string_equal(lk_pipeline_family(p), name);
    lk_request_init(&request, p);
    request.images = &image;
    request.n_images = width > 0;
    request.size_level = size_level;
    assert_ok(lk_pipeline_plan(p, dev, &request, plan));
    lk_pipeline_close(p);
}

static const struct lk_plan_stage *stage(const struct lk_plan *plan, const char *name) {
    for (int i = 0; i < plan->n_stages; i++)
        if (!strcmp(plan->stages[i].name, name)) return &plan->stages[i];
    fail_msg("no stage %s", name);
    return NULL;
}

static void assert_near(const struct lk_plan *plan, const char *name, double tflop, double tolerance) {
    double got = (double)stage(plan, name)->flops * 1e-12;
    if (!(got > tflop * (1 - tolerance) && got < tflop * (1 + tolerance)))
        fail_msg("%s: expected %.4g TFLOP within %.1f %%, got %.5g", name, tflop, 100 * tolerance, got);
}

static void parameters_and_flops(void **state) {
    (void)state;
    struct lk_plan plan;
    plan_for("step1x-v1p2", 1024, 1024, 1024, &plan);
    assert_int_equal(plan.n_stages, 6);
    assert_int_equal(plan.n_tokens, 2 * 4096 + 423); /* 13 tokens around the prompt, 400 of the picture, 10 planned */
    /* Modulation of 19 double and 38 single blocks, 342 D^2 and their biases, is not read in the steps, nor are the
     * embedders of time and pooled text and the last norm. */
    const struct lk_plan_stage *ahead = stage(&plan, "conditioning"), *steps = stage(&plan, "transformer");
    uint64_t d = 3072, modulation = 342 * d * d + 342 * d, last = 2 * d * d + 2 * d;
    uint64_t time = (256 * d + d) + (d * d + d), vec = (768 * d + d) + (d * d + d), pool = 3584 * 768 + 768,
             vae = 2 * 16;
    assert_int_equal(ahead->parameters, modulation + last + time + vec + pool + vae);
    uint64_t mapping = 3584 * 4096 + 4096; /* of quoted text, which a plan without a prompt has none of */
    assert_int_equal(ahead->parameters + steps->parameters + mapping, 12442484544 + vae);
    assert_int_equal(steps->weight_bytes + ahead->weight_bytes, 24884969088 - 2 * mapping + 4 * vae);
    assert_int_equal(stage(&plan, "transformer")->calls, 56);
    assert_int_equal(stage(&plan, "vision")->parameters, 676550144);
    assert_int_equal(stage(&plan, "vision")->calls, 1);
    assert_int_equal(stage(&plan, "text_encoder")->calls, 2);
    assert_int_equal(stage(&plan, "vae_encode")->parameters, 83819683);
    assert_near(&plan, "transformer", 163.6 - 1.34, 0.002); /* of the last block 53 % of the rows are not read */
    assert_near(&plan, "text_encoder", 6.8, 0.01);
    assert_near(&plan, "vision", 2.1, 0.02);
    assert_near(&plan, "vae_encode", 4.9, 0.01);
    assert_near(&plan, "vae_decode", 10.5, 0.01);
    plan_for("step1x-v1p2", 1024, 1024, 512, &plan);
    assert_int_equal(plan.n_tokens, 2 * 1024 + 347);
    assert_near(&plan, "transformer", 34.94, 0.005);
    plan_for("step1x-v1p2", 0, 0, 1024, &plan); /* text to image */
    assert_int_equal(plan.n_stages, 5);
    assert_near(&plan, "transformer", 73.0, 0.005);
    plan_for("step1x-v1p1", 1024, 1024, 1024, &plan);
    assert_int_equal(stage(&plan, "conditioning")->parameters + stage(&plan, "transformer")->parameters,
                     12427800384 + vae);
    assert_int_equal(plan.n_tokens, 2 * 4096 + 640);
}

/* 9 steps with all tokens; those between that the schedule lets nobody leave out, twice for guidance. */
static void accelerated(void **state) {
    (void)state;
    struct lk_pipeline *p;
    struct lk_request request;
    struct lk_image image = {.width = 1024, .height = 1024, .channels = 3};
    struct lk_plan plain, plan;
    assert_ok(lk_pipeline_open_configs(&p, "step1x-v1p2", LK_BF16));
    lk_request_init(&request, p);
    request.images = &image;
    request.n_images = 1;
    assert_ok(lk_pipeline_plan(p, dev, &request, &plain));
    request.accel = "region";
    assert_ok(lk_pipeline_plan(p, dev, &request, &plan));
    assert_int_equal(stage(&plan, "transformer")->calls, 2 * 9);
    assert_true(stage(&plan, "transformer")->flops == stage(&plain, "transformer")->flops);
    assert_int_equal(stage(&plan, "region")->calls, 2 * 4);
    assert_near(&plan, "region", 85.9, 0.002); /* as if all tokens were edited */
    /* Keys and values of 57 blocks: of both prompts the image's rows and the texts', 423 and 413 planned. */
    uint64_t kv = 57 * (uint64_t)(2 * 2 * 4096 + 423 + 423) * 3072 * 2 * 2;
    assert_in_range(plan.arena_bytes - plain.arena_bytes, kv - ((uint64_t)512 << 20), kv + (8 << 20));
    request.size_level = 512;
    assert_ok(lk_pipeline_plan(p, dev, &request, &plan));
    assert_int_equal(stage(&plan, "region")->calls, 2 * 8);
    request.num_inference_steps = 27;
    assert_fails(lk_pipeline_plan(p, dev, &request, &plan), LK_E_USAGE, "num_inference_steps: expected 28");
    request.num_inference_steps = 28;
    request.true_cfg_scale = 1;
    assert_fails(lk_pipeline_plan(p, dev, &request, &plan), LK_E_USAGE, "true_cfg_scale: expected more than 1");
    request.true_cfg_scale = 6;
    request.n_images = 0;
    assert_fails(lk_pipeline_plan(p, dev, &request, &plan), LK_E_USAGE, "there is no image");
    lk_pipeline_close(p);
}

/* The result has the source's size; the edit is made at another, of so many tokens. */
static void sizes(void **state) {
    (void)state;
    static const int cases[][5] = {{1024, 1024, 1024, 4096, 400},
                                   {1920, 1080, 1024, 4080, 390},
                                   {1024, 1536, 1024, 4056, 384},
                                   {1024, 1536, 512, 1014, 330}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_plan plan;
        plan_for("step1x-v1p2", cases[i][0], cases[i][1], cases[i][2], &plan);
        assert_int_equal(plan.width, cases[i][0]);
        assert_int_equal(plan.height, cases[i][1]);
        assert_int_equal(plan.n_tokens, 2 * cases[i][3] + 13 + cases[i][4] + 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_and_flops),
        cmocka_unit_test(accelerated),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, create_device, free_device);
}
