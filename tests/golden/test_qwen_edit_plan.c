/* What the released Qwen-Image models need, by their configurations alone: parameters as their files hold them, FLOPs
 * and sizes as diffusers' functions give them. */
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

/* A plan for references of these sizes. */
static void plan_for(const char *name, int n_images, const int (*sizes)[2], int width, int height,
                     struct lk_plan *plan) {
    struct lk_pipeline *p;
    struct lk_request request;
    struct lk_image images[LK_MAX_REFERENCES] = {0};
    assert_ok(lk_pipeline_open_configs(&p, name, LK_BF16));
    lk_request_init(&request, p);
    for (int i = 0; i < n_images; i++) {
        images[i].width = sizes[i][0];
        images[i].height = sizes[i][1];
    }
    request.images = images;
    request.n_images = n_images;
    request.width = width;
    request.height = height;
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
    plan_for("qwen-edit-2511", 1, (const int[][2]){{1024, 1024}}, 0, 0, &plan);
    assert_string_equal(plan.family, "qwen-edit-2511");
    assert_int_equal(plan.n_stages, 6);
    /* 60 blocks' modulation of both streams, 12 D^2 + 12 D each, is not read in the steps, nor are the embedders of
     * time and text and the last norm. */
    const struct lk_plan_stage *ahead = stage(&plan, "conditioning"), *steps = stage(&plan, "transformer");
    uint64_t d = 3072, modulation = 60 * (12 * d * d + 12 * d), last = 2 * d * d + 2 * d;
    uint64_t unread = 10 * d * d + 7 * d + 128; /* queries, output and MLP of the last block's text */
    assert_int_equal(ahead->parameters + steps->parameters + unread, 20430401088);
    assert_int_equal(ahead->parameters, modulation + last + (256 * d + d) + (d * d + d) + 3584 + (3584 * d + d));
    assert_int_equal(ahead->weight_bytes, 2 * ahead->parameters);
    assert_int_equal(steps->weight_bytes, 2 * steps->parameters);
    assert_int_equal(stage(&plan, "vae_encode")->parameters, 126892531);
    assert_int_equal(stage(&plan, "vision")->parameters, 676550144);
    /* The file's, output head included, of which an edit reads nothing. */
    assert_int_equal(stage(&plan, "vision")->parameters + stage(&plan, "text_encoder")->parameters, 8292166656);
    assert_int_equal(stage(&plan, "vision")->weight_bytes + stage(&plan, "text_encoder")->weight_bytes,
                     2 * (8292166656 - 2 * 544997376)); /* nor of the embedding's table more than the prompt's rows */
    assert_int_equal(stage(&plan, "transformer")->calls, 80);
    assert_near(&plan, "transformer", 166, 0.005); /* the mean of both branches, the negative one 63 tokens shorter */
    assert_near(&plan, "vision", 1.03, 0.01);
    assert_near(&plan, "vae_encode", 2.9, 0.02);
    assert_near(&plan, "vae_decode", 4.7, 0.01);
    plan_for("qwen-image", 0, NULL, 0, 0, &plan);
    assert_int_equal(plan.n_stages, 4);
    assert_int_equal(plan.width, 1024);
    assert_int_equal(plan.height, 1024);
    assert_near(&plan, "transformer", 69, 0.01);
}

/* References to tokens: target and reference of the transformer, and of the prompt what follows the 64 that are
 * dropped: 5 + 1 + 196 + 1 for a square picture, the planned prompt, 5 at the end. */
static void tokens(void **state) {
    (void)state;
    struct lk_plan plan;
    plan_for("qwen-edit-2509", 1, (const int[][2]){{1024, 1024}}, 512, 512, &plan);
    assert_int_equal(plan.n_tokens, 1024 + 4096 + 208 + 64);
    plan_for("qwen-edit-2509", 2, (const int[][2]){{1024, 1024}, {640, 480}}, 512, 512, &plan);
    assert_int_equal(plan.n_tokens, 1024 + 4096 + 4144 + 208 + 64 + 7 + 176);
    /* The first model shows its text encoder the picture at the VAE's size, 37 x 37 tokens, without a number. */
    plan_for("qwen-edit", 1, (const int[][2]){{1024, 1024}}, 512, 512, &plan);
    assert_int_equal(plan.n_tokens, 1024 + 4096 + 2 + 37 * 37 + 5 + 64);
}

static void the_last_image_gives_the_size(void **state) {
    (void)state;
    static const int cases[][4] = {
        {1024, 1024, 1024, 1024}, {1920, 1080, 1376, 768}, {1536, 1024, 1248, 832}, {640, 480, 1184, 896}};
    struct lk_plan plan;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan_for("qwen-edit-2511", 2, (const int[][2]){{300, 900}, {cases[i][0], cases[i][1]}}, 0, 0, &plan);
        assert_int_equal(plan.width, cases[i][2]);
        assert_int_equal(plan.height, cases[i][3]);
    }
    plan_for("qwen-edit-2511", 1, (const int[][2]){{1920, 1080}}, 0, 500, &plan);
    assert_int_equal(plan.width, 1376);
    assert_int_equal(plan.height, 496);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_and_flops),
        cmocka_unit_test(tokens),
        cmocka_unit_test(the_last_image_gives_the_size),
    };
    return cmocka_run_group_tests(tests, create_device, free_device);
}
