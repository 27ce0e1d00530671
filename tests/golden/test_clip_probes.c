/* Phrases and embed_norm in CLIP's text encoders, against transformers, diffusers and scikit-learn
 * (generate_clip_probes.py). */
#include <math.h>

#include "models/embeds.h"
#include "tests/common/golden.h"
#include "tests/common/test.h"
#include "tests/common/tiny_edit.h"

enum { N_CONFIGS = 2, N_PHRASES = 5, N_PROMPTS = 3, ROWS = 77 };
static const char *const configs[] = {"sd15", "sdxl"};
static struct golden golden;
static char phrases_text[256], prompts_text[256];
static const char *phrases[N_PHRASES], *prompts[N_PROMPTS];

static int split(char *text, const char *source, const char **out) {
    int n = 0;
    strcpy(text, source);
    for (char *rest, *one = strtok_r(text, "|", &rest); one; one = strtok_r(NULL, "|", &rest)) out[n++] = one;
    return n;
}

static int open_golden(void **state) {
    (void)state;
    golden_open(&golden, "golden/data/clip_probes.safetensors", "clip_probes");
    return split(phrases_text, golden_text(&golden, "phrases"), phrases) != N_PHRASES ||
           split(prompts_text, golden_text(&golden, "prompts"), prompts) != N_PROMPTS;
}

static int close_golden(void **state) {
    (void)state;
    golden_close(&golden);
    return 0;
}

static float *stored(int config, const char *name, size_t *n) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", configs[config], name);
    return golden_values(&golden, key, n);
}

static double cosine(const double *a, const double *b, int64_t n) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
    return ab / sqrt(aa * bb);
}

static void as_transformers(void **state) {
    (void)state;
    for (int k = 0; k < N_CONFIGS; k++) {
        struct lk_device *dev;
        struct tiny_job job;
        struct lk_phrases e;
        size_t n;
        double worst = 0;
        assert_ok(lk_device_cpu_create(1, &dev));
        tiny_job_open(&job, &tiny_pictures[k], LK_F32, 1);
        assert_ok(lk_phrases_embed(job.pipeline, dev, phrases, N_PHRASES, &e));
        assert_int_equal(e.projected, k);
        float *expected = stored(k, "cosines", &n);
        assert_int_equal(n, N_PHRASES * N_PHRASES);
        for (int i = 0; i < N_PHRASES * N_PHRASES; i++) {
            const double *a = e.means + i / N_PHRASES * e.width, *b = e.means + i % N_PHRASES * e.width;
            worst = fmax(worst, fabs(cosine(a, b, e.width) - (double)expected[i]));
        }
        print_message("%s: worst %.2g\n", configs[k], worst);
        assert_true(worst < 1e-6);
        free(expected);
        lk_phrases_free(&e);
        assert_fails(lk_phrases_embed(job.pipeline, dev, (const char *[]){" "}, 1, &e), LK_E_INPUT, "differ for the");
        tiny_job_close(&job);
        lk_device_free(dev);
    }
}

/* What the UNet is told. */
struct told {
    float *embeds, *negative, *pooled;
};

static enum lk_code take(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct told *t = context;
    float **to = !strcmp(name, "positive.prompt_embeds")   ? &t->embeds
                 : !strcmp(name, "negative.prompt_embeds") ? &t->negative
                 : !strcmp(name, "positive.pooled")        ? &t->pooled
                                                           : NULL;
    if (!to) return LK_OK;
    *to = malloc(lk_tensor_bytes(value));
    return lk_download(dev, *to, value);
}

static struct told run(struct tiny_job *job, struct lk_device *dev, const struct lk_request *request) {
    struct told told = {0};
    struct lk_result result;
    dev->trace = take;
    dev->trace_context = &told;
    assert_ok(lk_pipeline_edit(job->pipeline, dev, request, &result));
    dev->trace = NULL;
    lk_result_free(&result);
    return told;
}

static double distance(const float *a, const float *b, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static void free_told(struct told *t) {
    free(t->embeds);
    free(t->negative);
    free(t->pooled);
}

/* Prompt i told plainly and out of the normalised file: the latter as scikit-learn has it, all else as before. */
static void compare(struct tiny_job *job, struct lk_device *dev, const struct lk_request *request, int k, int i,
                    const char *how, const char *file) {
    struct lk_request normed = *request;
    char name[32];
    size_t n, n_pooled;
    snprintf(name, sizeof name, "%s.embeds", how);
    normed.prompt_embeds = file;
    float *expected = stored(k, name, &n), *none = stored(k, "none.embeds", &n);
    const size_t each = n / N_PROMPTS;
    struct told plain = run(job, dev, request), told = run(job, dev, &normed);
    const double off = distance(told.embeds, expected + (size_t)i * each, each);
    if (!(off < 1e-5)) fail_msg("%s: prompt %d, %s: off by %.3g, allowed 1e-5", configs[k], i, how, off);
    assert_true(distance(plain.embeds, none + (size_t)i * each, each) < 1e-5);
    assert_memory_equal(told.embeds, plain.embeds, each / ROWS * sizeof(float)); /* the beginning */
    assert_true(distance(told.embeds, plain.embeds, each) > 0.1);
    assert_memory_equal(told.negative, plain.negative, each * sizeof(float));
    if (k) {
        float *pooled = stored(k, "pooled", &n_pooled);
        assert_memory_equal(told.pooled, plain.pooled, n_pooled / N_PROMPTS * sizeof(float));
        assert_true(distance(told.pooled, pooled + (size_t)i * n_pooled / N_PROMPTS, n_pooled / N_PROMPTS) < 1e-5);
        free(pooled);
    }
    free(expected);
    free(none);
    free_told(&plain);
    free_told(&told);
}

static void words_alone_are_normalised(void **state) {
    (void)state;
    for (int k = 0; k < N_CONFIGS; k++) {
        struct lk_device *dev;
        struct tiny_job job;
        struct lk_request requests[N_PROMPTS];
        struct lk_queued queued[N_PROMPTS] = {0}, *list[N_PROMPTS];
        char *file = strdup(test_path("clip.safetensors")), *to = strdup(test_path("clip_normed.safetensors"));
        assert_ok(lk_device_cpu_create(1, &dev));
        tiny_job_open(&job, &tiny_pictures[k], LK_F32, 1);
        for (int i = 0; i < N_PROMPTS; i++) {
            requests[i] = job.request;
            requests[i].prompt = prompts[i];
            requests[i].negative_prompt = "blurry";
            if (k && i == N_PROMPTS - 1) requests[i].prompt_2 = golden_text(&golden, "prompt_2");
            queued[i].request = &requests[i];
            list[i] = &queued[i];
        }
        const struct lk_queue queue = {.jobs = list, .n_jobs = N_PROMPTS, .jobs_per_visit = 1};
        assert_ok(lk_pipeline_embed(job.pipeline, dev, &queue, file));
        for (enum lk_embeds_norm how = LK_EMBEDS_CENTER; how <= LK_EMBEDS_ZSCORE; how++) {
            assert_ok(lk_embeds_normalize(file, to, how));
            for (int i = 0; i < N_PROMPTS; i++)
                compare(&job, dev, &requests[i], k, i, how == LK_EMBEDS_CENTER ? "center" : "zscore", to);
        }
        tiny_job_close(&job);
        lk_device_free(dev);
        free(file);
        free(to);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_transformers), cmocka_unit_test(words_alone_are_normalised)};
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
