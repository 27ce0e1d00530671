/* Cross-attention of Stable Diffusion's UNets to words, and its maps, against diffusers' (generate_attended_sd.py). */
#include <math.h>

#include "engine/base/alloc.h"
#include "models/attended_maps.h"
#include "tests/common/test.h"
#include "tests/common/tiny_edit.h"

enum { N_WORDS = 3, N_CONFIGS = 2 };
static const char prompt[] = "A photo of a male thief, an old man; no mane.";
static const char *const words[N_WORDS] = {"male", "old", "man"};
static const char *const configs[] = {"sd15", "sdxl"};
static struct lk_span spans[N_WORDS];
static char *golden;

static int read_golden(void **state) {
    size_t n;
    (void)state;
    golden = test_read("golden/data/attended_sd.txt", &n);
    for (int i = 0; i < N_WORDS; i++)
        spans[i] = (struct lk_span){(size_t)(strstr(prompt, words[i]) - prompt), strlen(words[i]), i};
    return golden == NULL;
}

static int free_golden(void **state) {
    (void)state;
    free(golden);
    return 0;
}

/* The block's text and how many lines it has. */
static char *block(const char *config, const char *name, int *n) {
    char head[64];
    snprintf(head, sizeof head, "\n%s.%s ", config, name);
    char *at = strstr(golden, head);
    assert_non_null(at);
    assert_int_equal(sscanf(at += strlen(head), "%d", n), 1);
    return strchr(at, '\n') + 1;
}

static void compare(const char *config, const char *name, const double *got, int n) {
    int n_expected;
    char *at = block(config, name, &n_expected);
    double worst = 0;
    assert_int_equal(n_expected, n);
    for (int i = 0; i < n; i++) worst = fmax(worst, fabs(got[i] / strtod(at, &at) - 1));
    if (!(worst <= 1e-5)) fail_msg("%s: %s: off by %.3g, allowed 1e-5", config, name, worst);
    print_message("%s %s: worst %.2g\n", config, name, worst);
}

static void open_job(struct tiny_job *job, int k, enum lk_dtype dtype) {
    tiny_job_open(job, &tiny_pictures[k], dtype, 3);
    job->request.prompt = prompt;
    job->request.negative_prompt = "blurry";
    job->request.seed = 7;
    job->request.guidance_scale = 5;
    job->request.width = 128;
    job->request.height = 64;
    job->request.scheduler = NULL;
}

static void as_diffusers(void **state) {
    (void)state;
    for (int k = 0; k < N_CONFIGS; k++) {
        struct lk_device *dev;
        struct tiny_job job;
        struct lk_attended a = {.spans = spans, .n_spans = N_WORDS, .n_words = N_WORDS};
        struct lk_result looked, plain;
        const int64_t live = lk_alloc_live();
        assert_ok(lk_device_cpu_create(2, &dev));
        open_job(&job, k, LK_F32);
        assert_ok(lk_attended_edit(job.pipeline, dev, &job.request, &a, &looked));
        const int n = a.first[a.n_layers];
        compare(configs[k], "weights", a.weights, n);
        compare(configs[k], "shares", a.shares, n);
        compare(configs[k], "words", a.word_weights, n * N_WORDS);
        assert_true(a.map_height == 8 && a.map_width == 16);
        double maps[N_WORDS * 8 * 16];
        for (int i = 0; i < N_WORDS * 8 * 16; i++) maps[i] = (double)a.maps[i];
        compare(configs[k], "maps", maps, N_WORDS * 8 * 16);
        int n_layers;
        char *at = block(configs[k], "layers", &n_layers);
        assert_int_equal(n_layers, a.n_layers);
        for (int i = 0, heads, used; i < n_layers; i++, at += used) {
            char name[64];
            assert_int_equal(sscanf(at, "%63s %d%n", name, &heads, &used), 2);
            assert_string_equal(name, a.layers[i]);
            assert_int_equal(heads, a.first[i + 1] - a.first[i]);
        }
        assert_int_equal(a.n_steps, k ? 3 : 4); /* PNDM's second call is a step of its own */
        assert_true(a.worst < 5e-6);
        assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &plain));
        assert_memory_equal(looked.image.pixels, plain.image.pixels, 64 * 128 * 3); /* looking changes nothing */
        lk_result_free(&looked);
        lk_result_free(&plain);
        lk_attended_free(&a);
        tiny_job_close(&job);
        lk_device_free(dev);
        assert_int_equal(lk_alloc_live(), live);
    }
}

static enum lk_code look(struct tiny_job *job, struct lk_device *dev, const char *text, size_t first, size_t n,
                         int n_words) {
    const struct lk_span span = {first, n, 0};
    struct lk_attended a = {.spans = &span, .n_spans = 1, .n_words = n_words};
    struct lk_result result;
    job->request.prompt = text;
    enum lk_code rc = lk_attended_edit(job->pipeline, dev, &job->request, &a, &result);
    lk_result_free(&result);
    lk_attended_free(&a);
    return rc;
}

static void refused(void **state) {
    struct lk_device *dev;
    struct tiny_job job;
    char text[400] = "";
    (void)state;
    assert_ok(lk_device_cpu_create(1, &dev));
    open_job(&job, 0, LK_F32);
    job.request.num_inference_steps = 1;
    while (strlen(text) < 300) strcat(text, "a cat ");
    strcat(text, "man");
    assert_fails(look(&job, dev, text, strlen(text) - 3, 3, 0), LK_E_INPUT, "expected its words among the tokens");
    assert_fails(look(&job, dev, "a human", 4, 3, 0), LK_E_INPUT, "expected its words among the tokens");
    assert_ok(look(&job, dev, "Hi! A  MAN", 7, 3, 1));
    int64_t live = lk_alloc_live(), n_failed = 0;
    for (int64_t n = 1;; n += 1 + n / 4, n_failed++) {
        lk_alloc_fail_at(n);
        const enum lk_code rc = look(&job, dev, "a man", 2, 3, 1);
        lk_alloc_fail_at(0);
        assert_true(!rc || rc == LK_E_NOMEM);
        assert_int_equal(lk_alloc_live(), live);
        if (!rc) break;
    }
    assert_true(n_failed > 10);
    tiny_job_close(&job);
    open_job(&job, 1, LK_F32);
    job.request.num_inference_steps = 1;
    assert_fails(look(&job, dev, "Hi! A man", 6, 3, 0), LK_E_INPUT, "two tokenizers"); /* "!" is padding in the second
                                                                                        */
    assert_ok(look(&job, dev, "A man!", 2, 3, 0));
    job.request.prompt_2 = "A woman";
    assert_fails(look(&job, dev, "A man", 2, 3, 0), LK_E_INPUT, "two tokenizers");
    tiny_job_close(&job);
    tiny_job_open(&job, &tiny_edits[TINY_EDITS - TINY_FAMILIES], LK_F32, 1);
    assert_fails(look(&job, dev, "A man", 2, 3, 1), LK_E_USAGE, "maps are made of cross-attention");
    tiny_job_close(&job);
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_diffusers), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, read_golden, free_golden);
}
