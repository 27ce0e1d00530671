/* Sessions: a picture has the pixels of a job, whatever was run before; what is refused; values that the caller lets go
 * of. */
#include <stdio.h>
#include <string.h>

#include "models/session.h"
#include "tests/common/test.h"
#include "tests/common/tiny_edit.h"

static struct tiny_job job;
static struct lk_result expected;
static struct lk_session *s;

static int open_all(void **state) {
    struct lk_device *dev;
    char threads[] = "1";
    (void)state;
    tiny_job_open(&job, &tiny_edits[0], LK_BF16, 2);
    assert_ok(lk_device_cpu_create(1, &dev));
    assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &expected));
    lk_device_free(dev);
    const char *const options[] = {"threads", threads, NULL};
    assert_ok(lk_session_open(&s, tiny_edits[0].checkpoint, options));
    threads[0] = 'x'; /* the session has a copy */
    return 0;
}

static int close_all(void **state) {
    (void)state;
    lk_session_close(s);
    lk_result_free(&expected);
    tiny_job_close(&job);
    return 0;
}

static enum lk_code ask(const char *prompt, uint64_t seed, int n_steps) {
    char text[512], number[32];
    snprintf(text, sizeof text, "%s", prompt);
    LK_TRY(lk_session_set(s, "prompt", text));
    memset(text, '!', 8);
    snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
    LK_TRY(lk_session_set(s, "seed", number));
    snprintf(number, sizeof number, "%d", n_steps);
    LK_TRY(lk_session_set(s, "num_inference_steps", number));
    snprintf(number, sizeof number, "%d", job.request.max_sequence_length);
    LK_TRY(lk_session_set(s, "max-sequence-length", number));
    if (job.request.width) {
        snprintf(number, sizeof number, "%d", job.request.width);
        LK_TRY(lk_session_set(s, "width", number));
        snprintf(number, sizeof number, "%d", job.request.height);
        LK_TRY(lk_session_set(s, "height", number));
    }
    char layers[64] = "";
    for (int i = 0; i < job.request.n_text_encoder_out_layers; i++)
        snprintf(layers + strlen(layers), sizeof layers - strlen(layers), "%s%d", i ? "," : "",
                 job.request.text_encoder_out_layers[i]);
    if (*layers) LK_TRY(lk_session_set(s, "text_encoder_out_layers", layers));
    return lk_session_image(s, job.image.pixels, job.image.width, job.image.height, job.image.channels);
}

static void same_pixels_after_any_run(void **state) {
    (void)state;
    int width, height;
    size_t n_bytes;
    assert_ok(ask("another one", 3, 1));
    assert_ok(lk_session_set(s, "guidance_scale", "2.5"));
    assert_ok(lk_session_run(s, NULL, NULL));
    lk_session_clear(s);
    assert_null(lk_session_pixels(s, &width, &height));
    assert_null(lk_session_encode(s, &n_bytes));
    assert_ok(ask(job.request.prompt, job.request.seed, job.request.num_inference_steps));
    assert_ok(lk_session_run(s, NULL, NULL));
    const unsigned char *pixels = lk_session_pixels(s, &width, &height);
    assert_int_equal(width, expected.image.width);
    assert_int_equal(height, expected.image.height);
    assert_memory_equal(pixels, expected.image.pixels, 3 * (size_t)width * (size_t)height);
    assert_non_null(strstr(lk_session_recipe(s), "\"file\":\"pixels\""));
    assert_non_null(lk_session_encode(s, &n_bytes));
    assert_true(n_bytes > 100);
    lk_session_clear(s);
}

static int stop_at_1(void *context, const char *stage, int step, int n_steps) {
    (void)stage, (void)n_steps;
    ++*(int *)context;
    return step == 1;
}

static void refusals_and_stops(void **state) {
    (void)state;
    struct lk_session *none;
    int n_told = 0;
    assert_fails(lk_session_set(s, "prompts", "x"), LK_E_USAGE, "\"prompts\": no such parameter");
    assert_fails(lk_session_set(s, "dtype", "f32"), LK_E_USAGE, "when the session is opened");
    assert_fails(lk_session_set(s, "seed", "-1"), LK_E_USAGE, "seed");
    assert_fails(lk_session_save(s, test_path("x.png")), LK_E_USAGE, "lk_session_run before");
    assert_fails(lk_session_open(&none, tiny_edits[0].checkpoint, (const char *[]){"seed", "1", NULL}), LK_E_USAGE,
                 "set for each run");
    assert_fails(lk_session_open(&none, tiny_edits[0].checkpoint, (const char *[]){"device", "cuda:x", NULL}),
                 LK_E_USAGE, "expected cpu, cuda");
    assert_fails(lk_session_open(&none, "nowhere", NULL), LK_E_NOT_FOUND, "nowhere");
    assert_null(none);
    assert_ok(ask("x", 1, 4));
    assert_fails(lk_session_run(s, stop_at_1, &n_told), LK_E_INTERRUPTED, "stopped by the caller");
    assert_true(n_told > 1);
    for (int i = 1; i < LK_MAX_REFERENCES; i++)
        assert_ok(lk_session_image(s, job.image.pixels, job.image.width, job.image.height, job.image.channels));
    assert_fails(lk_session_image_file(s, "nowhere.png"), LK_E_USAGE, "at most 10");
    lk_session_clear(s);
    assert_fails(lk_session_image_file(s, "nowhere.png"), LK_E_NOT_FOUND, "nowhere.png");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_pixels_after_any_run),
                                       cmocka_unit_test(refusals_and_stops)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
