/* M1, M3 and N1 on a whole Step1X-Edit edit: failing allocations, the plan against the actual peak, non-finite values.
 */
#include "tests/common/test.h"

#include <math.h>

#include "engine/alloc.h"
#include "models/pipeline.h"

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
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_result good, result;
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, LK_BF16));
    assert_ok(lk_device_cpu_create(1, &dev));
    fill_request(&request, p);
    assert_ok(lk_pipeline_edit(p, dev, &request, &good));
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    assert_ok(lk_pipeline_edit(p, dev, &request, &result));
    int64_t total = lk_alloc_count() - before;
    lk_result_free(&result);
    assert_true(total > 10);
    int n_failed = 0, n_tried = 0;
    /* Tokenizing has a test of its own for every n; here the first ones, the last ones and a spread over the rest. */
    for (int64_t n = 1; n <= total; n += n < 30 || n > total - 60 ? 1 : 7) {
        n_tried++;
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_pipeline_edit(p, dev, &request, &result);
        lk_alloc_fail_at(0);
        if (rc && rc != LK_E_NOMEM)
            fail_msg("allocation %lld: expected code 400, got %d: %s", (long long)n, (int)rc, lk_error_text());
        if (!rc) assert_memory_equal(good.image.pixels, result.image.pixels, (size_t)source.width * source.height * 3);
        if (rc) assert_null(result.image.pixels);
        n_failed += rc != LK_OK;
        lk_result_free(&result);
        assert_int_equal(lk_alloc_live(), live);
    }
    print_message("%lld allocations, %d made to fail\n", (long long)total, n_tried);
    assert_true(n_failed > n_tried / 2);
    assert_ok(lk_pipeline_edit(p, dev, &request, &result));
    assert_memory_equal(good.image.pixels, result.image.pixels, (size_t)source.width * source.height * 3);
    lk_result_free(&result);
    lk_result_free(&good);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static void failing_allocations_of_open_are_errors(void **state) {
    (void)state;
    struct lk_pipeline *p;
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, LK_BF16));
    lk_pipeline_close(p);
    int64_t total = lk_alloc_count() - before;
    int n_failed = 0, n_tried = 0;
    /* The parsers have tests of their own for every n; here the first ones and a spread over the rest. */
    for (int64_t n = 1; n <= total; n += n < 100 ? 1 : total / 150 + 1) {
        n_tried++;
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_pipeline_open(&p, CHECKPOINT, LK_BF16);
        lk_alloc_fail_at(0);
        if (rc && rc != LK_E_NOMEM)
            fail_msg("allocation %lld of %lld: got %d: %s", (long long)n, (long long)total, (int)rc, lk_error_text());
        if (!rc) lk_pipeline_close(p);
        n_failed += rc != LK_OK;
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(n_failed > n_tried / 2);
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
        request.width = 50;                              /* of a picture without a source */
        request.height = 90;
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
