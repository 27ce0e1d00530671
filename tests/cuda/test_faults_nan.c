/* N1 on the cuda device: a NaN put into a stage fails the job with the stage's and the step's name, and the device runs
 * the next job as if nothing had been. */
#include "tests/common/cuda.h"
#include "tests/common/tiny_edit.h"

struct injection {
    int edit; /* in tiny_edits */
    const char *tensor, *expected;
};
static const struct injection injections[] = {
    {0, "text_encoder.hidden.1", "text encoder: "},
    {0, "reference.0.mean", "VAE encode: "},
    {0, "noise", "transformer, step 1: "},
    {0, "step.1.double.1.img", "transformer, step 2: "},
    {0, "vae.decode.input", "VAE decode: "},
    {1, "vision.0.block.0", "vision tower: "},
    {1, "uncond.text_encoder.hidden.0", "text encoder: "},
    {1, "vae.encode.mid", "VAE encode: "},
    {1, "step.0.cond.block.0.img", "transformer, step 1: "},
    {1, "step.1.uncond.block.0.txt", "transformer, step 2: "},
    {1, "vae.decode.mid", "VAE decode: "},
    {2, "vision.0.block.0", "vision tower: "},
    {2, "cond.text_encoder.hidden.1", "text encoder: "},
    {2, "reference.0.moments", "VAE encode: "},
    {2, "step.0.cond.double.0.img", "transformer, step 1: "},
    {2, "step.1.velocity", "transformer, step 2: "},
    {2, "vae.decode.input", "VAE decode: "},
};

static int n_injected;

/* The first value of the tensor named in the context. */
static enum lk_code inject(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    const uint32_t bits = value->dtype == LK_BF16 ? 0x7fc0 : 0x7fc00000;
    if (strcmp(name, context)) return LK_OK;
    n_injected++;
    struct lk_tensor first = LK_TENSOR(value->data, value->dtype, 1);
    return lk_upload(dev, &first, &bits);
}

static void run_family(int edit, enum lk_dtype dtype) {
    struct tiny_job job;
    struct lk_device *dev;
    struct lk_result good, result;
    tiny_job_open(&job, &tiny_edits[edit], dtype, 2);
    assert_ok(lk_device_cuda_create(0, &dev));
    assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &good));
    for (size_t i = 0; i < sizeof injections / sizeof *injections; i++) {
        const struct injection *in = &injections[i];
        if (in->edit != edit) continue;
        dev->trace = inject;
        dev->trace_context = (void *)(uintptr_t)in->tensor;
        n_injected = 0;
        enum lk_code rc = lk_pipeline_edit(job.pipeline, dev, &job.request, &result);
        if (n_injected != 1) fail_msg("%s: seen %d times: %s", in->tensor, n_injected, rc ? lk_error_text() : "");
        if (rc != LK_E_NONFINITE || strncmp(lk_error_text(), in->expected, strlen(in->expected)) || result.image.pixels)
            fail_msg("%s: expected code 600 and \"%s\", got %d: %s", in->tensor, in->expected, (int)rc,
                     lk_error_text());
        assert_int_equal(lk_exit_code(rc), 6);
    }
    dev->trace = NULL;
    assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result));
    assert_memory_equal(good.image.pixels, result.image.pixels, (size_t)good.image.width * good.image.height * 3);
    lk_result_free(&result);
    lk_result_free(&good);
    lk_device_free(dev);
    tiny_job_close(&job);
}

static void flux2(void **state) {
    (void)state;
    run_family(0, LK_BF16);
}
static void qwen_edit(void **state) {
    (void)state;
    run_family(1, LK_BF16);
    run_family(1, LK_F32);
}
static void step1x(void **state) {
    (void)state;
    run_family(2, LK_BF16);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(flux2), cmocka_unit_test(qwen_edit), cmocka_unit_test(step1x)};
    lk_device_free(test_cuda_open());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
