/* The bits of a Step1X-Edit edit depend on weights, job and instruction level, on nothing else: threads, repetition and
 * process do not show. */
#include "tests/common/test.h"

#include "engine/base/isa.h"
#include "engine/base/alloc.h"
#include "tests/common/pipeline_checks.h"
#include "models/step1x/instructions.h"
#include "models/step1x/step1x.h"
#include "engine/base/digest.h"

#define CHECKPOINT "golden/data/step1x/rich/checkpoint"
#define PICTURE    "golden/data/step1x/rich/cases/portrait.jpg"

static enum lk_code add_to_digest(void *context, struct lk_device *dev, const char *name,
                                  const struct lk_tensor *value) {
    /* The final image alone could hide a difference that rounding to 8 bits removed: the last latents count as well. */
    char *digest = context;
    if (strcmp(name, "step.1.latents") || !lk_tensor_is_dense(value)) return LK_OK;
    size_t n = lk_tensor_bytes(value);
    char *bytes = malloc(n);
    enum lk_code rc = lk_download(dev, bytes, value);
    lk_sha256(bytes, n, digest);
    free(bytes);
    return rc;
}

/* digest: 128 hex digits of latents and image. */
static void edit_digest(enum lk_dtype dtype, int n_threads, char digest[130]) {
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_result result;
    struct lk_image picture;
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, dtype));
    assert_ok(lk_device_cpu_create(n_threads, &dev));
    assert_ok(lk_image_read(&picture, PICTURE, 0, 0));
    lk_request_init(&request, p);
    request.images = &picture;
    request.n_images = 1;
    request.prompt = "make the \"hair\" silver!";
    request.num_inference_steps = 2;
    request.size_level = 64;
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
            edit_digest(dtype, 3, again);
            assert_string_equal(first, again);
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

struct bench {
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_image picture;
    struct lk_request request;
};

static void bench_open(struct bench *b) {
    assert_ok(lk_pipeline_open(&b->p, CHECKPOINT, LK_BF16));
    assert_ok(lk_device_cpu_create(2, &b->dev));
    assert_ok(lk_image_read(&b->picture, PICTURE, 0, 0));
    lk_request_init(&b->request, b->p);
    b->request.images = &b->picture;
    b->request.n_images = 1;
    b->request.prompt = "make it winter";
    b->request.num_inference_steps = 1;
    b->request.size_level = 64;
}

static void bench_close(struct bench *b) {
    lk_image_free(&b->picture);
    lk_device_free(b->dev);
    lk_pipeline_close(b->p);
}

static void assert_same_image(const struct lk_image *a, const struct lk_image *b) {
    assert_true(a->width == b->width && a->height == b->height);
    assert_memory_equal(a->pixels, b->pixels, (size_t)a->width * (size_t)a->height * 3);
}

/* Rounds draw on from one generator: the first is the plain edit, the next has other noise. */
static void rounds_are_not_seeded_anew(void **state) {
    (void)state;
    struct bench b;
    struct lk_result plain, rounds[2] = {0};
    struct lk_rng rng;
    bench_open(&b);
    assert_ok(lk_pipeline_edit(b.p, b.dev, &b.request, &plain));
    lk_rng_seed(&rng, b.request.seed);
    struct lk_step1x_edit edit = {.source = &b.picture, .prompt = b.request.prompt, .rng = &rng};
    for (int i = 0; i < 2; i++) assert_ok(lk_step1x_edit_once(b.p, b.dev, &b.request, &edit, &rounds[i]));
    assert_string_equal(plain.noise_sha256, rounds[0].noise_sha256);
    assert_same_image(&plain.image, &rounds[0].image);
    assert_string_not_equal(rounds[0].noise_sha256, rounds[1].noise_sha256);
    for (int i = 0; i < 2; i++) lk_result_free(&rounds[i]);
    lk_result_free(&plain);
    bench_close(&b);
}

/* Whatever the model answers, thinking is a plain edit with that prompt, and answers the same again. */
static void thinking_is_an_edit_with_the_rewritten_prompt(void **state) {
    (void)state;
    struct lk_step1x_instructions instructions;
    struct lk_result thought[2] = {0}, plain;
    struct bench b;
    for (int i = 0; i < LK_STEP1X_N_CALLS; i++)
        for (int j = 0; j < LK_STEP1X_N_ROLES; j++) instructions.texts[i][j] = lk_strdup("{instruction} {language}");
    bench_open(&b);
    b.request.thinking_mode = true;
    for (int i = 0; i < 2; i++) {
        assert_ok(lk_step1x_think_and_edit(b.p, b.dev, &b.request, &instructions, &thought[i]));
        assert_int_equal(thought[i].n_rounds, 1);
    }
    assert_true(strlen(thought[0].rounds[0].prompt) > 20);
    assert_string_equal(thought[0].rounds[0].prompt, thought[1].rounds[0].prompt);
    assert_same_image(&thought[0].image, &thought[1].image);
    b.request.thinking_mode = false;
    b.request.prompt = thought[0].rounds[0].prompt;
    assert_ok(lk_pipeline_edit(b.p, b.dev, &b.request, &plain));
    assert_same_image(&thought[0].image, &plain.image);
    lk_result_free(&plain);
    for (int i = 0; i < 2; i++) lk_result_free(&thought[i]);
    lk_step1x_instructions_free(&instructions);
    bench_close(&b);
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
        cmocka_unit_test(rounds_are_not_seeded_anew),
        cmocka_unit_test(thinking_is_an_edit_with_the_rewritten_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
