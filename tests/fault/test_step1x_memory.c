/* M1, M3 and N1 on a whole Step1X-Edit edit: failing allocations, the plan against the actual peak, non-finite values.
 */
#include "tests/common/test.h"

#include <math.h>

#include "tests/common/pipeline_checks.h"

#define CHECKPOINT "golden/data/step1x/plain/checkpoint"
#define SIDE       48 /* of the latents' picture, in an edit of the source below */

static struct lk_image source;

static void fill_request(struct lk_request *request, const struct lk_pipeline *p) {
    lk_request_init(request, p);
    request->images = &source;
    request->n_images = 1;
    request->prompt = "a \"red\" scarf!";
    request->size_level = SIDE;
    request->num_inference_steps = 1;
}

static void every_failing_allocation_of_an_edit_is_an_error(void **state) {
    (void)state;
    /* Tokenizing has a test of its own for every n. */
    test_allocations_of_edit(CHECKPOINT, fill_request, 7);
}

static void failing_allocations_of_open_are_errors(void **state) {
    (void)state;
    test_allocations_of_open(CHECKPOINT);
}

/* With a prompt and a tokenizer the plan knows the prompts' lengths; neither bounds the other's memory. */
static void plan_is_the_actual_peak(void **state) {
    (void)state;
    struct lk_pipeline *p;
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, LK_BF16));
    for (int i = 0; i < 12; i++) {
        struct lk_device *dev;
        struct lk_request request;
        struct lk_plan plan;
        struct lk_result result;
        char negative[160];
        assert_ok(lk_device_cpu_create(1 + i % 3, &dev));
        fill_request(&request, p);
        memset(negative, '7', sizeof negative);
        negative[13 * i] = 0;
        request.negative_prompt = negative;
        if (i % 4 == 1) request.n_images = 0;
        if (i % 4 == 2) request.true_cfg_scale = 1;
        if (i % 4 == 3) request.max_sequence_length = 5; /* less than the picture has */
        request.width = request.n_images ? 0 : 50;
        request.height = request.n_images ? 0 : 90;
        assert_ok(lk_pipeline_plan(p, dev, &request, &plan));
        assert_ok(lk_pipeline_edit(p, dev, &request, &result));
        assert_int_equal(result.peak_bytes, plan.arena_bytes);
        assert_int_equal(result.width, plan.width);
        assert_int_equal(result.height, result.image.height);
        assert_int_equal(result.image.width, request.n_images ? source.width : 50);
        lk_result_free(&result);
        lk_device_free(dev);
    }
    lk_pipeline_close(p);
}

static void non_finite_noise_fails_the_job(void **state) {
    (void)state;
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_result result;
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, LK_F32));
    assert_ok(lk_device_cpu_create(1, &dev));
    fill_request(&request, p);
    float *noise = calloc(4 * SIDE * SIDE, sizeof *noise);
    noise[5] = NAN;
    request.latents = noise;
    assert_fails(lk_pipeline_edit(p, dev, &request, &result), LK_E_NONFINITE, "transformer, step 1");
    request.latents = NULL;
    request.posterior_noise = noise;
    assert_fails(lk_pipeline_edit(p, dev, &request, &result), LK_E_NONFINITE, "VAE encode");
    noise[5] = 0;
    request.latents = noise;
    assert_ok(lk_pipeline_edit(p, dev, &request, &result));
    lk_result_free(&result);
    free(noise);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static int make_source(void **state) {
    (void)state;
    assert_ok(lk_image_new(&source, 57, 61, 3));
    for (int i = 0; i < 57 * 61 * 3; i++) source.pixels[i] = (uint8_t)(i * 37);
    return 0;
}

static int free_source(void **state) {
    (void)state;
    lk_image_free(&source);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_allocation_of_an_edit_is_an_error),
        cmocka_unit_test(failing_allocations_of_open_are_errors),
        cmocka_unit_test(plan_is_the_actual_peak),
        cmocka_unit_test(non_finite_noise_fails_the_job),
    };
    return cmocka_run_group_tests(tests, make_source, free_source);
}
