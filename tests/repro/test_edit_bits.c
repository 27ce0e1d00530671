/* The bits of an edit depend on weights, job and instruction level, on nothing else: threads, repetition, process, what
 * ran before, and a prompt that takes no part do not show. */
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "engine/base/isa.h"
#include "models/step1x/instructions.h"
#include "models/step1x/step1x.h"
#include "tests/common/pipeline_checks.h"

static const char *const prompts[2] = {"red hair",
                                       "put the person behind glass, in winter, and the sky over it on fire"};

static void fill_flux2(struct lk_request *request, const struct lk_pipeline *p) {
    static const int out_layers[] = {1, 2, 3};
    lk_request_init(request, p);
    memcpy(request->text_encoder_out_layers, out_layers, sizeof out_layers);
    request->prompt = "make the hair silver";
    request->num_inference_steps = 3;
    request->max_sequence_length = 96;
}

static void fill_qwen_edit(struct lk_request *request, const struct lk_pipeline *p) {
    lk_request_init(request, p);
    request->condition_area = 96 * 96;
    request->vae_area = 64 * 64;
    request->width = 48;
    request->height = 80;
    request->prompt = prompts[0];
    request->negative_prompt = " ";
    request->num_inference_steps = 2;
}

static void fill_step1x(struct lk_request *request, const struct lk_pipeline *p) {
    lk_request_init(request, p);
    request->prompt = "make the \"hair\" silver!";
    request->num_inference_steps = 2;
    request->size_level = 64;
}

static const struct family {
    const char *checkpoint;
    test_fill_request *fill;
    const char *pictures[2];
    int n_pictures;
    const char *traced[2]; /* the last latents; with two branches the first conditional velocity */
    int n_threads[2];      /* beside one; 0: none */
} flux2 = {"golden/data/flux2/rich/checkpoint",
           fill_flux2,
           {"golden/data/flux2/deep/cases/small.png"},
           1,
           {"step.2.latents"},
           {2, 3}},
  qwen_edit = {"golden/data/qwen_edit/edit2511/checkpoint",
               fill_qwen_edit,
               {"golden/data/qwen_edit/edit2511/cases/portrait.jpg", "golden/data/qwen_edit/edit2511/cases/wide.jpg"},
               2,
               {"step.1.latents", "step.0.cond.velocity"},
               {2, 3}},
  step1x = {"golden/data/step1x/rich/checkpoint",
            fill_step1x,
            {"golden/data/step1x/rich/cases/portrait.jpg"},
            1,
            {"step.1.latents"},
            {3, 0}};
static const struct family *const families[] = {&flux2, &qwen_edit, &step1x};
#define N_FAMILIES (sizeof families / sizeof *families)

/* An open job. */
struct bench {
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_image pictures[2];
    struct lk_request request;
};

static void bench_open(struct bench *b, const struct family *f, enum lk_dtype dtype, int n_threads) {
    *b = (struct bench){0};
    assert_ok(lk_pipeline_open(&b->p, f->checkpoint, dtype));
    assert_ok(lk_device_cpu_create(n_threads, &b->dev));
    for (int i = 0; i < f->n_pictures; i++) assert_ok(lk_image_read(&b->pictures[i], f->pictures[i], 0, 0));
    f->fill(&b->request, b->p);
    b->request.images = b->pictures;
    b->request.n_images = f->n_pictures;
}

static void bench_close(struct bench *b) {
    for (int i = 0; i < 2; i++) lk_image_free(&b->pictures[i]);
    lk_device_free(b->dev);
    lk_pipeline_close(b->p);
}

/* prompt NULL: the family's request as it is. */
static void edit_once(const struct family *f, enum lk_dtype dtype, int n_threads, const char *prompt,
                      const char *negative, struct test_digests *out) {
    struct bench b;
    bench_open(&b, f, dtype, n_threads);
    if (prompt) {
        b.request.prompt = prompt;
        b.request.negative_prompt = negative;
    }
    test_edit_digests(b.p, b.dev, &b.request, f->traced, out);
    bench_close(&b);
}

/* Of Qwen-Image-Edit with either prompt the longer one, each with another number of threads. */
static void same_bits_for_any_number_of_threads(void **state) {
    const struct family *f = *state;
    enum lk_isa most = lk_cpu_isa();
    for (enum lk_isa isa = LK_ISA_PORTABLE; isa <= most; isa++) {
        lk_cpu_isa_set(isa);
        for (enum lk_dtype dtype = LK_F32; dtype <= LK_BF16; dtype++) {
            struct test_digests first, again;
            for (int i = 0; i < 2 && f->n_threads[i]; i++) {
                const char *prompt = f == &qwen_edit ? prompts[i] : NULL;
                if (!i || prompt) edit_once(f, dtype, 1, prompt, prompts[!i], &first);
                edit_once(f, dtype, f->n_threads[i], prompt, prompts[!i], &again);
                test_same_digests(&first, &again);
            }
        }
    }
    lk_cpu_isa_set(most);
}

static void all_digests(int n_threads, struct test_digests out[N_FAMILIES]) {
    for (size_t i = 0; i < N_FAMILIES; i++) edit_once(families[i], LK_BF16, n_threads, NULL, NULL, &out[i]);
}

static void same_bits_in_another_process(void **state) {
    (void)state;
    struct test_digests here[N_FAMILIES];
    all_digests(2, here);
    test_same_in_another_process(here, sizeof here);
}

/* One pipeline and one device do many jobs: what went before must not show, nor a VAE in tiles. */
static void same_bits_after_other_jobs(void **state) {
    (void)state;
    struct bench b;
    struct test_digests first, other, again;
    bench_open(&b, &qwen_edit, LK_BF16, 2);
    struct lk_request elsewise = b.request;
    test_edit_digests(b.p, b.dev, &b.request, qwen_edit.traced, &first);
    elsewise.prompt = prompts[1];
    elsewise.negative_prompt = NULL;
    elsewise.vae_tiling = b.request.vae_tiling = true;
    test_edit_digests(b.p, b.dev, &elsewise, qwen_edit.traced, &other);
    assert_string_not_equal(first.pixels, other.pixels);
    test_edit_digests(b.p, b.dev, &b.request, qwen_edit.traced, &again);
    test_same_digests(&first, &again);
    bench_close(&b);
}

/* The conditional forward of the first step is the same whatever stands beside it. */
static void the_negative_prompt_does_not_reach_the_other_branch(void **state) {
    (void)state;
    struct test_digests alone, with_short, with_long;
    edit_once(&qwen_edit, LK_BF16, 1, prompts[0], NULL, &alone);
    edit_once(&qwen_edit, LK_BF16, 1, prompts[0], " ", &with_short);
    edit_once(&qwen_edit, LK_BF16, 1, prompts[0], prompts[1], &with_long);
    assert_string_equal(alone.traced[1], with_short.traced[1]);
    assert_string_equal(alone.traced[1], with_long.traced[1]);
    assert_string_not_equal(alone.traced[0], with_short.traced[0]);
    assert_string_not_equal(with_long.traced[0], with_short.traced[0]);
}

static void assert_same_image(const struct lk_image *a, const struct lk_image *b) {
    assert_true(a->width == b->width && a->height == b->height);
    assert_memory_equal(a->pixels, b->pixels, (size_t)a->width * (size_t)a->height * 3);
}

static void open_winter(struct bench *b) {
    bench_open(b, &step1x, LK_BF16, 2);
    b->request.prompt = "make it winter";
    b->request.num_inference_steps = 1;
}

/* Rounds draw on from one generator: the first is the plain edit, the next has other noise. */
static void rounds_are_not_seeded_anew(void **state) {
    (void)state;
    struct bench b;
    struct lk_result plain, rounds[2] = {0};
    struct lk_rng rng;
    open_winter(&b);
    assert_ok(lk_pipeline_edit(b.p, b.dev, &b.request, &plain));
    lk_rng_seed(&rng, b.request.seed);
    struct lk_step1x_edit edit = {.source = &b.pictures[0], .prompt = b.request.prompt, .rng = &rng};
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
    open_winter(&b);
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

#define OF(family, function)                                                                                           \
    { #family ": " #function, function, NULL, NULL, (void *)(uintptr_t)&family }

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "digest")) {
        struct test_digests digests[N_FAMILIES];
        all_digests(1, digests);
        return fwrite(digests, sizeof digests, 1, stdout) == 1 ? 0 : 1;
    }
    const struct CMUnitTest tests[] = {
        OF(flux2, same_bits_for_any_number_of_threads),
        OF(qwen_edit, same_bits_for_any_number_of_threads),
        OF(step1x, same_bits_for_any_number_of_threads),
        cmocka_unit_test(same_bits_in_another_process), /* of all three */
        cmocka_unit_test(same_bits_after_other_jobs),
        cmocka_unit_test(the_negative_prompt_does_not_reach_the_other_branch),
        cmocka_unit_test(rounds_are_not_seeded_anew),
        cmocka_unit_test(thinking_is_an_edit_with_the_rewritten_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
