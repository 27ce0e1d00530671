/* M1, M3 and N1 on a whole FLUX.2 edit: failing allocations, the plan against the actual peak, non-finite values. */
#include "tests/common/test.h"

#include <math.h>

#include "tests/common/pipeline_checks.h"

#define CHECKPOINT "golden/data/flux2/rich/checkpoint"

static void fill_request(struct lk_request *request, const struct lk_pipeline *p) {
    static const int out_layers[] = {1, 2, 3};
    lk_request_init(request, p);
    memcpy(request->text_encoder_out_layers, out_layers, sizeof out_layers);
    request->prompt = "a red scarf";
    request->width = 64;
    request->height = 96;
    request->num_inference_steps = 2;
    request->max_sequence_length = 80;
}

static void every_failing_allocation_of_an_edit_is_an_error(void **state) {
    (void)state;
    test_allocations_of_edit(CHECKPOINT, fill_request, 1);
}

static void failing_allocations_of_open_are_errors(void **state) {
    (void)state;
    test_allocations_of_open(CHECKPOINT);
}

static void plan_is_the_actual_peak(void **state) {
    (void)state;
    for (int references = 0; references <= 2; references++) {
        struct lk_pipeline *p;
        struct lk_device *dev;
        struct lk_request request;
        struct lk_plan plan;
        struct lk_result result;
        struct lk_image images[2];
        assert_ok(lk_pipeline_open(&p, CHECKPOINT, references ? LK_F32 : LK_BF16));
        assert_ok(lk_device_cpu_create(2, &dev));
        fill_request(&request, p);
        assert_ok(lk_image_new(&images[0], 100, 64, 3));
        assert_ok(lk_image_new(&images[1], 80, 131, 3));
        request.images = images;
        request.n_images = references;
        assert_ok(lk_pipeline_plan(p, dev, &request, &plan));
        assert_ok(lk_pipeline_edit(p, dev, &request, &result));
        assert_int_equal(result.peak_bytes, plan.arena_bytes);
        lk_result_free(&result);
        for (int i = 0; i < 2; i++) lk_image_free(&images[i]);
        lk_device_free(dev);
        lk_pipeline_close(p);
    }
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
    float *latents = calloc(16 * 24, sizeof *latents);
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

static void bad_requests_are_refused(void **state) {
    (void)state;
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request good, bad;
    struct lk_result result;
    struct lk_image image;
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, LK_F32));
    assert_ok(lk_device_cpu_create(1, &dev));
    fill_request(&good, p);
    assert_ok(lk_image_new(&image, 100, 64, 3));
#define REFUSED(change, code, part)                                                                                    \
    do {                                                                                                               \
        bad = good;                                                                                                    \
        change;                                                                                                        \
        assert_fails(lk_pipeline_edit(p, dev, &bad, &result), code, part);                                             \
    } while (0)
    REFUSED(bad.num_inference_steps = 0, LK_E_USAGE, "num_inference_steps");
    REFUSED(bad.num_inference_steps = 1001, LK_E_USAGE, "num_inference_steps");
    REFUSED(bad.width = 8, LK_E_USAGE, "output size");
    REFUSED(bad.width = 1 << 20, LK_E_USAGE, "width: expected 1 to 65535, got 1048576");
    REFUSED(bad.max_sequence_length = 0, LK_E_USAGE, "max_sequence_length");
    REFUSED(bad.text_encoder_out_layers[1] = 9, LK_E_USAGE, "layer 9");
    REFUSED(bad.n_text_encoder_out_layers = 2, LK_E_USAGE, "channels");
    REFUSED(bad.prompt = "a \xff", LK_E_PROMPT, "prompt: byte 2");
    REFUSED((bad.images = &image, bad.n_images = 1, image.width = 63), LK_E_IMAGE_SIZE, "image 1");
    REFUSED((bad.images = &image, bad.n_images = 1, image.width = 600), LK_E_IMAGE_SIZE, "aspect");
    image.width = 100;
    lk_image_free(&image);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_allocation_of_an_edit_is_an_error),
        cmocka_unit_test(failing_allocations_of_open_are_errors),
        cmocka_unit_test(plan_is_the_actual_peak),
        cmocka_unit_test(non_finite_latents_fail_the_job),
        cmocka_unit_test(bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
