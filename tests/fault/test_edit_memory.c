/* Whole edits of each family: failing allocations, the plan against the actual peak, non-finite values. */
#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "engine/rng.h"
#include "tests/common/pipeline_checks.h"

#define STEP1X_SIDE 48 /* of the latents' picture, in an edit of the source below */

static struct lk_image pictures[2], source; /* of Qwen-Image-Edit; of Step1X-Edit */

static void fill_flux2(struct lk_request *request, const struct lk_pipeline *p) {
    static const int out_layers[] = {1, 2, 3};
    lk_request_init(request, p);
    memcpy(request->text_encoder_out_layers, out_layers, sizeof out_layers);
    request->prompt = "a red scarf";
    request->width = 64;
    request->height = 96;
    request->num_inference_steps = 2;
    request->max_sequence_length = 80;
}

static void fill_qwen_edit(struct lk_request *request, const struct lk_pipeline *p) {
    lk_request_init(request, p);
    request->prompt = "a red scarf";
    request->images = pictures;
    request->n_images = 2;
    request->condition_area = request->vae_area = 64 * 64;
    request->width = 32;
    request->height = 48;
    request->num_inference_steps = 2;
}

static void fill_step1x(struct lk_request *request, const struct lk_pipeline *p) {
    lk_request_init(request, p);
    request->images = &source;
    request->n_images = 1;
    request->prompt = "a \"red\" scarf!";
    request->size_level = STEP1X_SIDE;
    request->num_inference_steps = 1;
}

static void fill_sd(struct lk_request *request, const struct lk_pipeline *p) {
    lk_request_init(request, p);
    request->prompt = "a red scarf";
    request->negative_prompt = "blurry";
    request->width = request->height = 64;
    request->num_inference_steps = 2;
}

static void fill_cascade(struct lk_request *request, const struct lk_pipeline *p) {
    lk_request_init(request, p);
    request->prompt = "a red scarf";
    request->width = 128;
    request->height = 256;
    request->num_inference_steps = request->decoder_steps = 1;
    request->decoder_guidance = 1.5;
}

static const struct family {
    const char *checkpoint;
    test_fill_request *fill;
    int stride;      /* between allocations that are made to fail; tokenizing has a test of its own for each */
    size_t n_values; /* at least as many as the latents have */
    bool posterior;  /* has noise of its own */
} flux2 = {"golden/data/flux2/rich/checkpoint", fill_flux2, 1, 16 * 24, false},
  qwen_edit = {"golden/data/qwen_edit/edit2511/checkpoint", fill_qwen_edit, 1, 64 * 32 * 48, false},
  step1x = {"golden/data/step1x/plain/checkpoint", fill_step1x, 7, 4 * STEP1X_SIDE *STEP1X_SIDE, true},
  sd15 = {"golden/data/sd/sd15/checkpoint", fill_sd, 3, 4 * 8 * 8, false},
  sdxl = {"golden/data/sd/sdxl/checkpoint", fill_sd, 3, 4 * 8 * 8, false},
  cascade = {"golden/data/cascade/checkpoint", fill_cascade, 5, 16 * 3 * 6, false};

static void failing_allocations_of_an_edit_are_errors(void **state) {
    const struct family *f = *state;
    test_allocations_of_edit(f->checkpoint, f->fill, f->stride);
}

static void failing_allocations_of_open_are_errors(void **state) {
    const struct family *f = *state;
    test_allocations_of_open(f->checkpoint);
}

static void non_finite_noise_fails_the_job(void **state) {
    const struct family *f = *state;
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_result result;
    assert_ok(lk_pipeline_open(&p, f->checkpoint, LK_F32));
    assert_ok(lk_device_cpu_create(1, &dev));
    f->fill(&request, p);
    float *noise = calloc(f->n_values, sizeof *noise);
    noise[5] = NAN;
    request.latents = noise;
    assert_fails(lk_pipeline_edit(p, dev, &request, &result), LK_E_NONFINITE, "transformer, step 1");
    if (f->posterior) {
        request.latents = NULL;
        request.posterior_noise = noise;
        assert_fails(lk_pipeline_edit(p, dev, &request, &result), LK_E_NONFINITE, "VAE encode");
    }
    noise[5] = 0;
    request.latents = noise;
    assert_ok(lk_pipeline_edit(p, dev, &request, &result));
    lk_result_free(&result);
    free(noise);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static void flux2_plan_is_the_actual_peak(void **state) {
    (void)state;
    for (int references = 0; references <= 2; references++) {
        struct lk_pipeline *p;
        struct lk_device *dev;
        struct lk_request request;
        struct lk_plan plan;
        struct lk_result result;
        struct lk_image images[2];
        assert_ok(lk_pipeline_open(&p, flux2.checkpoint, references ? LK_F32 : LK_BF16));
        assert_ok(lk_device_cpu_create(2, &dev));
        fill_flux2(&request, p);
        assert_ok(lk_image_new(&images[0], 100, 64, 3));
        assert_ok(lk_image_new(&images[1], 80, 131, 3));
        request.images = images;
        request.n_images = references;
        test_plan_is_the_peak(p, dev, &request, &plan, &result);
        lk_result_free(&result);
        for (int i = 0; i < 2; i++) lk_image_free(&images[i]);
        lk_device_free(dev);
        lk_pipeline_close(p);
    }
}

/* For one and two references, either prompt the longer one, and none. */
static void qwen_edit_plan_is_the_actual_peak(void **state) {
    (void)state;
    const char *const negatives[] = {" ", "blurry, low quality, worse than any picture that anybody has ever made",
                                     NULL};
    for (int i = 0; i < 6; i++) {
        struct lk_pipeline *p;
        struct lk_device *dev;
        struct lk_request request;
        struct lk_plan plan;
        struct lk_result result;
        assert_ok(lk_pipeline_open(&p, qwen_edit.checkpoint, i % 2 ? LK_F32 : LK_BF16));
        assert_ok(lk_device_cpu_create(2, &dev));
        fill_qwen_edit(&request, p);
        request.n_images = 1 + i % 2;
        request.negative_prompt = negatives[i / 2];
        test_plan_is_the_peak(p, dev, &request, &plan, &result);
        assert_int_equal(plan.n_stages, 6);
        assert_int_equal(plan.stages[4].calls, request.negative_prompt ? 4 : 2);
        lk_result_free(&result);
        lk_device_free(dev);
        lk_pipeline_close(p);
    }
}

/* Kernels may want more scratch for fewer rows: neither prompt's memory bounds the other's. */
static void qwen_edit_plan_holds_for_prompts_of_any_two_lengths(void **state) {
    (void)state;
    struct lk_pipeline *p;
    assert_ok(lk_pipeline_open(&p, qwen_edit.checkpoint, LK_BF16));
    for (int threads = 1; threads <= 4; threads++) {
        struct lk_device *dev;
        assert_ok(lk_device_cpu_create(threads, &dev));
        for (int length = 1; length <= 120; length += 7) {
            char negative[256];
            struct lk_request request;
            struct lk_plan plan;
            struct lk_result result;
            memset(negative, '7', (size_t)length); /* one token a digit */
            negative[length] = 0;
            fill_qwen_edit(&request, p);
            request.condition_area = 96 * 96;
            request.negative_prompt = negative;
            test_plan_is_the_peak(p, dev, &request, &plan, &result);
            lk_result_free(&result);
        }
        lk_device_free(dev);
    }
    lk_pipeline_close(p);
}

/* With a prompt and a tokenizer the plan knows the prompts' lengths; neither bounds the other's memory. */
static void step1x_plan_is_the_actual_peak(void **state) {
    (void)state;
    struct lk_pipeline *p;
    assert_ok(lk_pipeline_open(&p, step1x.checkpoint, LK_BF16));
    for (int i = 0; i < 12; i++) {
        struct lk_device *dev;
        struct lk_request request;
        struct lk_plan plan;
        struct lk_result result;
        char negative[160];
        assert_ok(lk_device_cpu_create(1 + i % 3, &dev));
        fill_step1x(&request, p);
        memset(negative, '7', sizeof negative);
        negative[13 * i] = 0;
        request.negative_prompt = negative;
        if (i % 4 == 1) request.n_images = 0;
        if (i % 4 == 2) request.true_cfg_scale = 1;
        if (i % 4 == 3) request.max_sequence_length = 5; /* less than the picture has */
        request.width = request.n_images ? 0 : 50;
        request.height = request.n_images ? 0 : 90;
        test_plan_is_the_peak(p, dev, &request, &plan, &result);
        assert_int_equal(result.width, plan.width);
        assert_int_equal(result.height, result.image.height);
        assert_int_equal(result.image.width, request.n_images ? source.width : 50);
        lk_result_free(&result);
        lk_device_free(dev);
    }
    lk_pipeline_close(p);
}

/* Every sampler keeps other tensors; with and without guidance and a negative prompt. */
static void sd_plan_is_the_actual_peak(void **state) {
    static const char *const schedulers[] = {"pndm", "ddim", "euler-a", "dpm++", "unipc"};
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct lk_pipeline *p;
        struct lk_device *dev;
        struct lk_request request;
        struct lk_plan plan;
        struct lk_result result;
        assert_ok(lk_pipeline_open(&p, i % 2 ? sdxl.checkpoint : sd15.checkpoint, i % 3 ? LK_F32 : LK_BF16));
        assert_ok(lk_device_cpu_create(1 + i % 3, &dev));
        fill_sd(&request, p);
        request.scheduler = schedulers[i / 2];
        if (i / 2 == 1) request.eta = 1;
        if (i / 2 == 2) request.negative_prompt = NULL;
        if (i / 2 == 3) request.guidance_scale = 1;
        request.guidance_rescale = i % 2;
        request.width = 128;
        test_plan_is_the_peak(p, dev, &request, &plan, &result);
        assert_int_equal(result.width, 128);
        lk_result_free(&result);
        lk_device_free(dev);
        lk_pipeline_close(p);
    }
}

/* An image of a batch that one generator draws at once has the noise of its place. */
static void sd_images_of_a_batch(void **state) {
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_result result[3];
    struct lk_rng rng;
    (void)state;
    assert_ok(lk_pipeline_open(&p, sd15.checkpoint, LK_F32));
    assert_ok(lk_device_cpu_create(1, &dev));
    fill_sd(&request, p);
    lk_rng_seed(&rng, request.seed);
    for (int k = 0; k < 3; k++) {
        struct lk_queued job = {.request = &request, .rng = &rng}, *jobs = &job;
        request.image_index = k;
        assert_ok(lk_pipeline_edit(p, dev, &request, &result[k]));
        request.image_index = 0;
        assert_ok(lk_pipeline_edit_queue(p, dev, &(struct lk_queue){.jobs = &jobs, .n_jobs = 1, .jobs_per_visit = 1}));
        assert_string_equal(result[k].noise_sha256, job.result.noise_sha256);
        assert_memory_equal(result[k].image.pixels, job.result.image.pixels, 64 * 64 * 3);
        lk_result_free(&job.result);
        for (int j = 0; j < k; j++) assert_string_not_equal(result[k].noise_sha256, result[j].noise_sha256);
    }
    request.image_index = 1;
    request.scheduler = "euler-a";
    assert_fails(lk_pipeline_edit(p, dev, &request, &result[0]), LK_E_USAGE, "draws noise in every step");
    for (int k = 1; k < 3; k++) lk_result_free(&result[k]);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static void sd_bad_requests_are_refused(void **state) {
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request good;
    struct lk_result result;
    struct lk_image image = {.width = 64, .height = 64, .channels = 3};
    (void)state;
    assert_ok(lk_pipeline_open(&p, sd15.checkpoint, LK_F32));
    assert_ok(lk_device_cpu_create(1, &dev));
    fill_sd(&good, p);
    TEST_REFUSED((bad.images = &image, bad.n_images = 1), LK_E_USAGE, "sd-1.5 makes pictures from text alone");
    TEST_REFUSED(bad.width = 72, LK_E_USAGE, "multiples of 64, got 72x64");
    TEST_REFUSED(bad.height = 8, LK_E_USAGE, "multiples of 64, got 64x8");
    TEST_REFUSED(bad.scheduler = "lms", LK_E_USAGE, "scheduler: expected one of pndm|");
    TEST_REFUSED(bad.num_inference_steps = 1000, LK_E_USAGE, "fewer than 1000");
    TEST_REFUSED(bad.eta = 0.5, LK_E_USAGE, "eta: pndm has none");
    TEST_REFUSED(bad.clip_skip = 3, LK_E_USAGE, "clip_skip: the text encoder has 3 layers, got 3");
    TEST_REFUSED(bad.original_size[0] = bad.n_original_size = 1, LK_E_USAGE, "original_size: sd-1.5 has no such");
    TEST_REFUSED(bad.prompt = "a\xff", LK_E_PROMPT, "expected UTF-8");
    TEST_REFUSED(bad.negative_prompt = "a\xff", LK_E_PROMPT, "negative_prompt: ");
    lk_pipeline_close(p);
    assert_ok(lk_pipeline_open(&p, sdxl.checkpoint, LK_F32));
    fill_sd(&good, p);
    TEST_REFUSED(bad.width = 72, LK_E_USAGE, "multiples of 32, got 72x64");
    TEST_REFUSED(bad.original_size[0] = bad.n_original_size = 1, LK_E_USAGE,
                 "original_size: expected 2 numbers, got 1");
    lk_device_free(dev);
    lk_pipeline_close(p);
}

/* Each diffusion with guidance and without. */
static void cascade_plan_is_the_actual_peak(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct lk_pipeline *p;
        struct lk_device *dev;
        struct lk_request request;
        struct lk_plan plan;
        struct lk_result result;
        assert_ok(lk_pipeline_open(&p, cascade.checkpoint, i % 2 ? LK_F32 : LK_BF16));
        assert_ok(lk_device_cpu_create(2, &dev));
        fill_cascade(&request, p);
        request.guidance_scale = i & 2 ? 1 : 4;
        request.decoder_guidance = i & 4 ? 0 : 1.5;
        test_plan_is_the_peak(p, dev, &request, &plan, &result);
        assert_int_equal(plan.n_stages, 6);
        assert_string_equal(plan.stages[4].name, "decoder");
        assert_int_equal(plan.stages[2].calls, i & 2 ? 1 : 2);
        assert_int_equal(plan.stages[4].calls, i & 4 ? 1 : 2);
        assert_true(result.cfg_scale == (i & 2 ? 1 : 4));
        lk_result_free(&result);
        lk_device_free(dev);
        lk_pipeline_close(p);
    }
}

struct told {
    const char *stage; /* in which to stop; NULL: nowhere */
    int steps[2];      /* that were told of each diffusion */
};

static enum lk_code stop(void *context, const char *stage, int step, int n_steps) {
    struct told *t = context;
    const bool second = !strcmp(stage, "decoder");
    if (step && (second || !strcmp(stage, "transformer"))) {
        t->steps[second]++;
        assert_int_equal(n_steps, second ? 2 : 3);
        assert_int_equal(step, t->steps[second]);
    }
    return step && t->stage && !strcmp(stage, t->stage) ? lk_fail(LK_E_INTERRUPTED, "stopped") : LK_OK;
}

static void cascade_stops_in_either_diffusion(void **state) {
    static const struct {
        const char *stage;
        int steps[2];
    } stops[] = {{NULL, {3, 2}}, {"transformer", {1, 0}}, {"decoder", {3, 1}}};
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_result result;
    (void)state;
    assert_ok(lk_pipeline_open(&p, cascade.checkpoint, LK_F32));
    assert_ok(lk_device_cpu_create(1, &dev));
    fill_cascade(&request, p);
    request.num_inference_steps = 3;
    request.decoder_steps = 2;
    for (int i = 0; i < 3; i++) {
        struct told told = {.stage = stops[i].stage};
        request.progress = stop;
        request.progress_context = &told;
        const int64_t live = lk_alloc_live();
        assert_int_equal(lk_pipeline_edit(p, dev, &request, &result), stops[i].stage ? LK_E_INTERRUPTED : LK_OK);
        lk_result_free(&result);
        if (i) assert_int_equal(lk_alloc_live(), live);
        assert_memory_equal(told.steps, stops[i].steps, sizeof told.steps);
    }
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static void cascade_bad_requests_are_refused(void **state) {
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request good;
    struct lk_result result;
    struct lk_image image = {.width = 64, .height = 64, .channels = 3};
    (void)state;
    assert_ok(lk_pipeline_open(&p, cascade.checkpoint, LK_BF16));
    assert_ok(lk_device_cpu_create(1, &dev));
    fill_cascade(&good, p);
    TEST_REFUSED((bad.images = &image, bad.n_images = 1), LK_E_USAGE, "cascade makes pictures from text alone");
    TEST_REFUSED(bad.width = 192, LK_E_USAGE, "multiples of 128, got 192x256");
    TEST_REFUSED(bad.height = 64, LK_E_USAGE, "multiples of 128, got 128x64");
    TEST_REFUSED(bad.num_inference_steps = 251, LK_E_USAGE, "num_inference_steps: expected 1 to 250 in bf16, got 251");
    TEST_REFUSED(bad.decoder_steps = 251, LK_E_USAGE, "decoder_steps: expected 1 to 250 in bf16, got 251");
    TEST_REFUSED(bad.decoder_steps = 0, LK_E_USAGE, "decoder_steps: expected 1 to 1000, got 0");
    TEST_REFUSED(bad.clip_skip = 1, LK_E_USAGE, "clip_skip: cascade has no such parameter");
    TEST_REFUSED(bad.prompt = "a\xff", LK_E_PROMPT, "expected UTF-8");
    TEST_REFUSED(bad.negative_prompt = "a\xff", LK_E_PROMPT, "negative_prompt: ");
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static void flux2_bad_requests_are_refused(void **state) {
    (void)state;
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request good;
    struct lk_result result;
    struct lk_image image;
    assert_ok(lk_pipeline_open(&p, flux2.checkpoint, LK_F32));
    assert_ok(lk_device_cpu_create(1, &dev));
    fill_flux2(&good, p);
    assert_ok(lk_image_new(&image, 100, 64, 3));
    TEST_REFUSED(bad.num_inference_steps = 0, LK_E_USAGE, "num_inference_steps");
    TEST_REFUSED(bad.num_inference_steps = 1001, LK_E_USAGE, "num_inference_steps");
    TEST_REFUSED(bad.width = 8, LK_E_USAGE, "output size");
    TEST_REFUSED(bad.width = 1 << 20, LK_E_USAGE, "width: expected 1 to 65535, got 1048576");
    TEST_REFUSED(bad.max_sequence_length = 0, LK_E_USAGE, "max_sequence_length");
    TEST_REFUSED(bad.text_encoder_out_layers[1] = 9, LK_E_USAGE, "layer 9");
    TEST_REFUSED(bad.n_text_encoder_out_layers = 2, LK_E_USAGE,
                 "/transformer/config.json: joint_attention_dim: expected");
    TEST_REFUSED(bad.prompt = "a \xff", LK_E_PROMPT, "prompt: byte 2");
    TEST_REFUSED((bad.images = &image, bad.n_images = 1, image.width = 63), LK_E_IMAGE_SIZE, "image 1");
    TEST_REFUSED((bad.images = &image, bad.n_images = 1, image.width = 600), LK_E_IMAGE_SIZE, "aspect");
    image.width = 100;
    lk_image_free(&image);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static int make_pictures(void **state) {
    (void)state;
    uint64_t random = 7;
    const int sizes[2][2] = {{50, 41}, {33, 70}};
    for (int i = 0; i < 2; i++) {
        if (lk_image_new(&pictures[i], sizes[i][0], sizes[i][1], i ? 4 : 3)) return -1;
        for (int j = 0; j < sizes[i][0] * sizes[i][1] * pictures[i].channels; j++)
            pictures[i].pixels[j] = (uint8_t)test_random(&random);
    }
    if (lk_image_new(&source, 57, 61, 3)) return -1;
    for (int i = 0; i < 57 * 61 * 3; i++) source.pixels[i] = (uint8_t)(i * 37);
    return 0;
}

static int free_pictures(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) lk_image_free(&pictures[i]);
    lk_image_free(&source);
    return 0;
}

#define OF(family, function)                                                                                           \
    { #family ": " #function, function, NULL, NULL, (void *)(uintptr_t)&family }
#define OF_EACH(function)                                                                                              \
    OF(flux2, function), OF(qwen_edit, function), OF(step1x, function), OF(sd15, function), OF(sdxl, function),        \
        OF(cascade, function)

int main(void) {
    const struct CMUnitTest tests[] = {
        OF_EACH(failing_allocations_of_an_edit_are_errors),
        OF_EACH(failing_allocations_of_open_are_errors),
        OF_EACH(non_finite_noise_fails_the_job),
        cmocka_unit_test(flux2_plan_is_the_actual_peak),
        cmocka_unit_test(qwen_edit_plan_is_the_actual_peak),
        cmocka_unit_test(qwen_edit_plan_holds_for_prompts_of_any_two_lengths),
        cmocka_unit_test(step1x_plan_is_the_actual_peak),
        cmocka_unit_test(sd_plan_is_the_actual_peak),
        cmocka_unit_test(sd_images_of_a_batch),
        cmocka_unit_test(sd_bad_requests_are_refused),
        cmocka_unit_test(cascade_plan_is_the_actual_peak),
        cmocka_unit_test(cascade_stops_in_either_diffusion),
        cmocka_unit_test(cascade_bad_requests_are_refused),
        cmocka_unit_test(flux2_bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, make_pictures, free_pictures);
}
