/* M1, M3 and N1 on a whole Qwen-Image-Edit edit: failing allocations, the plan against the actual peak, non-finite
 * values. */
#include "tests/common/test.h"

#include <math.h>

#include "tests/common/pipeline_checks.h"

#define CHECKPOINT "golden/data/qwen_edit/edit2511/checkpoint"

static struct lk_image images[2];

static void fill_request(struct lk_request *request, const struct lk_pipeline *p) {
    lk_request_init(request, p);
    request->prompt = "a red scarf";
    request->images = images;
    request->n_images = 2;
    request->condition_area = request->vae_area = 64 * 64;
    request->width = 32;
    request->height = 48;
    request->num_inference_steps = 2;
}

static int make_images(void **state) {
    (void)state;
    uint64_t random = 7;
    const int sizes[2][2] = {{50, 41}, {33, 70}};
    for (int i = 0; i < 2; i++) {
        if (lk_image_new(&images[i], sizes[i][0], sizes[i][1], i ? 4 : 3)) return -1;
        for (int j = 0; j < sizes[i][0] * sizes[i][1] * images[i].channels; j++)
            images[i].pixels[j] = (uint8_t)test_random(&random);
    }
    return 0;
}

static int free_images(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) lk_image_free(&images[i]);
    return 0;
}

static void every_failing_allocation_of_an_edit_is_an_error(void **state) {
    (void)state;
    test_allocations_of_edit(CHECKPOINT, fill_request, 1);
}

static void failing_allocations_of_open_are_errors(void **state) {
    (void)state;
    test_allocations_of_open(CHECKPOINT);
}

/* For one and two references, either prompt the longer one, and none. */
static void plan_is_the_actual_peak(void **state) {
    (void)state;
    const char *const negatives[] = {" ", "blurry, low quality, worse than any picture that anybody has ever made",
                                     NULL};
    for (int i = 0; i < 6; i++) {
        struct lk_pipeline *p;
        struct lk_device *dev;
        struct lk_request request;
        struct lk_plan plan;
        struct lk_result result;
        assert_ok(lk_pipeline_open(&p, CHECKPOINT, i % 2 ? LK_F32 : LK_BF16));
        assert_ok(lk_device_cpu_create(2, &dev));
        fill_request(&request, p);
        request.n_images = 1 + i % 2;
        request.negative_prompt = negatives[i / 2];
        assert_ok(lk_pipeline_plan(p, dev, &request, &plan));
        assert_ok(lk_pipeline_edit(p, dev, &request, &result));
        assert_int_equal(result.peak_bytes, plan.arena_bytes);
        assert_int_equal(plan.n_stages, 5);
        assert_int_equal(plan.stages[3].calls, request.negative_prompt ? 4 : 2);
        lk_result_free(&result);
        lk_device_free(dev);
        lk_pipeline_close(p);
    }
}

/* Kernels may want more scratch for fewer rows: neither prompt's memory bounds the other's. */
static void plan_holds_for_prompts_of_any_two_lengths(void **state) {
    (void)state;
    struct lk_pipeline *p;
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, LK_BF16));
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
            fill_request(&request, p);
            request.condition_area = 96 * 96;
            request.negative_prompt = negative;
            assert_ok(lk_pipeline_plan(p, dev, &request, &plan));
            assert_ok(lk_pipeline_edit(p, dev, &request, &result));
            assert_int_equal(result.peak_bytes, plan.arena_bytes);
            lk_result_free(&result);
        }
        lk_device_free(dev);
    }
    lk_pipeline_close(p);
}

static void non_finite_latents_fail_the_job(void **state) {
    (void)state;
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_result result;
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, LK_F32));
    assert_ok(lk_device_cpu_create(1, &dev));
    fill_request(&request, p);
    float *latents = calloc(64 * 32 * 48, sizeof *latents); /* more than any VAE makes of 32x48 pixels */
    latents[5] = NAN;
    request.latents = latents;
    assert_fails(lk_pipeline_edit(p, dev, &request, &result), LK_E_NONFINITE, "transformer, step 1");
    latents[5] = 0;
    assert_ok(lk_pipeline_edit(p, dev, &request, &result));
    lk_result_free(&result);
    free(latents);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_allocation_of_an_edit_is_an_error),
        cmocka_unit_test(failing_allocations_of_open_are_errors),
        cmocka_unit_test(plan_is_the_actual_peak),
        cmocka_unit_test(plan_holds_for_prompts_of_any_two_lengths),
        cmocka_unit_test(non_finite_latents_fail_the_job),
    };
    return cmocka_run_group_tests(tests, make_images, free_images);
}
