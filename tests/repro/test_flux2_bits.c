/* The bits of an edit depend on weights, job and instruction level, on nothing else: threads, repetition and process do
 * not show. */
#include "tests/common/test.h"

#include "engine/base/isa.h"
#include "tests/common/pipeline_checks.h"
#include "engine/base/digest.h"

#define CHECKPOINT "golden/data/flux2/rich/checkpoint"
#define PICTURE    "golden/data/flux2/deep/cases/small.png"

static enum lk_code add_to_digest(void *context, struct lk_device *dev, const char *name,
                                  const struct lk_tensor *value) {
    /* The final image alone could hide a difference that rounding to 8 bits removed: the last latents count as well. */
    char *digest = context;
    if (strcmp(name, "step.2.latents") || !lk_tensor_is_dense(value)) return LK_OK;
    size_t n = lk_tensor_bytes(value);
    char *bytes = malloc(n);
    enum lk_code rc = lk_download(dev, bytes, value);
    lk_sha256(bytes, n, digest);
    free(bytes);
    return rc;
}

/* digest: 128 hex digits of latents and image. */
static void edit_digest(enum lk_dtype dtype, int n_threads, char digest[130]) {
    static const int out_layers[] = {1, 2, 3};
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_result result;
    struct lk_image picture;
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, dtype));
    assert_ok(lk_device_cpu_create(n_threads, &dev));
    assert_ok(lk_image_read(&picture, PICTURE, 0, 0));
    lk_request_init(&request, p);
    memcpy(request.text_encoder_out_layers, out_layers, sizeof out_layers);
    request.images = &picture;
    request.n_images = 1;
    request.prompt = "make the hair silver";
    request.num_inference_steps = 3;
    request.max_sequence_length = 96;
    memset(digest, 0, 130);
    dev->trace = add_to_digest;
    dev->trace_context = digest;
    assert_ok(lk_pipeline_edit(p, dev, &request, &result));
    assert_int_equal(strlen(digest), 64);
    lk_sha256(result.image.pixels, (size_t)result.image.width * (size_t)result.image.height * 3, digest + 64);
    lk_result_free(&result);
    lk_image_free(&picture);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static void same_bits_for_any_number_of_threads(void **state) {
    (void)state;
    enum lk_isa most = lk_cpu_isa();
    for (enum lk_isa isa = LK_ISA_PORTABLE; isa <= most; isa++) {
        lk_cpu_isa_set(isa);
        for (enum lk_dtype dtype = LK_F32; dtype <= LK_BF16; dtype++) {
            char first[130], again[130];
            edit_digest(dtype, 1, first);
            for (int threads = 2; threads <= 3; threads++) {
                edit_digest(dtype, threads, again);
                assert_string_equal(first, again);
            }
        }
    }
    lk_cpu_isa_set(most);
}

static void same_bits_in_another_process(void **state) {
    (void)state;
    char here[130];
    edit_digest(LK_BF16, 2, here);
    test_same_in_another_process(here, 128);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "digest")) {
        char digest[130];
        edit_digest(LK_BF16, 1, digest);
        return fwrite(digest, 1, 128, stdout) == 128 ? 0 : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_any_number_of_threads),
        cmocka_unit_test(same_bits_in_another_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
