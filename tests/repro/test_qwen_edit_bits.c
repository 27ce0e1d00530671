/* The bits of an edit depend on weights, job and instruction level, on nothing else: threads, repetition, process, and
 * whether there is a negative prompt, as far as it takes no part, do not show. */
#include "tests/common/test.h"

#include "engine/base/isa.h"
#include "tests/common/pipeline_checks.h"
#include "engine/base/digest.h"

#define CHECKPOINT "golden/data/qwen_edit/edit2511/checkpoint"
#define CASES      "golden/data/qwen_edit/edit2511/cases/"

static const char *const prompts[2] = {"red hair",
                                       "put the person behind glass, in winter, and the sky over it on fire"};

struct digests {
    char velocity[65], latents[65]; /* the first conditional velocity, the last latents */
    char image[65];
};

/* The final image alone could hide a difference that rounding to 8 bits removed. */
static enum lk_code add_to_digests(void *context, struct lk_device *dev, const char *name,
                                   const struct lk_tensor *value) {
    struct digests *d = context;
    char *to = !strcmp(name, "step.0.cond.velocity") ? d->velocity
               : !strcmp(name, "step.1.latents")     ? d->latents
                                                     : NULL;
    if (!to || !lk_tensor_is_dense(value)) return LK_OK;
    size_t n = lk_tensor_bytes(value);
    char *bytes = malloc(n);
    enum lk_code rc = lk_download(dev, bytes, value);
    lk_sha256(bytes, n, to);
    free(bytes);
    return rc;
}

static struct lk_image pictures[2];

static int read_pictures(void **state) {
    (void)state;
    return lk_image_read(&pictures[0], CASES "portrait.jpg", 0, 0) ||
           lk_image_read(&pictures[1], CASES "wide.jpg", 0, 0);
}

static int free_pictures(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) lk_image_free(&pictures[i]);
    return 0;
}

static void edit(struct lk_pipeline *p, struct lk_device *dev, const char *prompt, const char *negative, bool tiling,
                 struct digests *digests) {
    struct lk_request request;
    struct lk_result result;
    lk_request_init(&request, p);
    request.images = pictures;
    request.n_images = 2;
    request.condition_area = 96 * 96;
    request.vae_area = 64 * 64;
    request.width = 48;
    request.height = 80;
    request.prompt = prompt;
    request.negative_prompt = negative;
    request.num_inference_steps = 2;
    request.vae_tiling = tiling;
    *digests = (struct digests){0};
    dev->trace = add_to_digests;
    dev->trace_context = digests;
    assert_ok(lk_pipeline_edit(p, dev, &request, &result));
    assert_int_equal(strlen(digests->velocity), 64);
    assert_int_equal(strlen(digests->latents), 64);
    lk_sha256(result.image.pixels, (size_t)result.image.width * (size_t)result.image.height * 3, digests->image);
    lk_result_free(&result);
}

static void edit_once(enum lk_dtype dtype, int n_threads, const char *prompt, const char *negative,
                      struct digests *digests) {
    struct lk_pipeline *p;
    struct lk_device *dev;
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, dtype));
    assert_ok(lk_device_cpu_create(n_threads, &dev));
    edit(p, dev, prompt, negative, false, digests);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static void assert_same(const struct digests *a, const struct digests *b) {
    assert_string_equal(a->velocity, b->velocity);
    assert_string_equal(a->latents, b->latents);
    assert_string_equal(a->image, b->image);
}

static void same_bits_for_any_number_of_threads(void **state) {
    (void)state;
    enum lk_isa most = lk_cpu_isa();
    for (enum lk_isa isa = LK_ISA_PORTABLE; isa <= most; isa++) {
        lk_cpu_isa_set(isa);
        for (enum lk_dtype dtype = LK_F32; dtype <= LK_BF16; dtype++) {
            for (int i = 0; i < 2; i++) {
                struct digests first, again;
                edit_once(dtype, 1, prompts[i], prompts[!i], &first);
                edit_once(dtype, 2 + i, prompts[i], prompts[!i], &again);
                assert_same(&first, &again);
            }
        }
    }
    lk_cpu_isa_set(most);
}

/* One pipeline and one device do many jobs: what went before must not show, nor a VAE in tiles. */
static void same_bits_after_other_jobs(void **state) {
    (void)state;
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct digests first, other, again;
    assert_ok(lk_pipeline_open(&p, CHECKPOINT, LK_BF16));
    assert_ok(lk_device_cpu_create(2, &dev));
    edit(p, dev, prompts[0], " ", false, &first);
    edit(p, dev, prompts[1], NULL, true, &other);
    assert_string_not_equal(first.image, other.image);
    edit(p, dev, prompts[0], " ", true, &again);
    assert_same(&first, &again);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

/* The conditional forward of the first step is the same whatever stands beside it. */
static void the_negative_prompt_does_not_reach_the_other_branch(void **state) {
    (void)state;
    struct digests alone, with_short, with_long;
    edit_once(LK_BF16, 1, prompts[0], NULL, &alone);
    edit_once(LK_BF16, 1, prompts[0], " ", &with_short);
    edit_once(LK_BF16, 1, prompts[0], prompts[1], &with_long);
    assert_string_equal(alone.velocity, with_short.velocity);
    assert_string_equal(alone.velocity, with_long.velocity);
    assert_string_not_equal(alone.latents, with_short.latents);
    assert_string_not_equal(with_long.latents, with_short.latents);
}

static void same_bits_in_another_process(void **state) {
    (void)state;
    struct digests here;
    edit_once(LK_BF16, 2, prompts[0], " ", &here);
    test_same_in_another_process(&here, sizeof here);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "digest")) {
        struct digests digests;
        if (read_pictures(NULL)) return 1;
        edit_once(LK_BF16, 1, prompts[0], " ", &digests);
        free_pictures(NULL);
        return fwrite(&digests, sizeof digests, 1, stdout) == 1 ? 0 : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_any_number_of_threads),
        cmocka_unit_test(same_bits_after_other_jobs),
        cmocka_unit_test(the_negative_prompt_does_not_reach_the_other_branch),
        cmocka_unit_test(same_bits_in_another_process),
    };
    return cmocka_run_group_tests(tests, read_pictures, free_pictures);
}
