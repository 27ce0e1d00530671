/* Prompts that were encoded before, by themselves or together, give the pictures that one process gives; the text
 * encoder is not visited then. A file that is not of this model, prompt, picture or dtype, or damaged, is refused. */
#include "engine/base/alloc.h"
#include "tests/common/test.h"
#include "tests/common/tiny_queue.h"

static enum lk_code refuse_encoder(void *context, struct lk_device *dev, const char *name,
                                   const struct lk_tensor *value) {
    (void)context, (void)dev, (void)value;
    if (strstr(name, "text_encoder") || strstr(name, "vision")) fail_msg("%s is computed", name);
    return LK_OK;
}

static const char *embed(struct tiny_queue *q, struct lk_device *dev, int first, int n, const char *name) {
    const char *file = test_path(name);
    struct lk_queued *jobs[TINY_QUEUE];
    for (int i = 0; i < n; i++) jobs[i] = &q->jobs[first + i];
    struct lk_queue queue = {.jobs = jobs, .n_jobs = n, .jobs_per_visit = 1};
    assert_ok(lk_pipeline_embed(q->tiny.pipeline, dev, &queue, file));
    return file;
}

static bool has_encoder(const struct lk_plan *plan) {
    for (int i = 0; i < plan->n_stages; i++)
        if (!strcmp(plan->stages[i].name, "text_encoder") || !strcmp(plan->stages[i].name, "vision")) return true;
    return false;
}

/* What the plan says of a job with the file and without. */
static void planned(struct tiny_queue *q, struct lk_device *dev, const char *file) {
    struct lk_request request = q->requests[0];
    struct lk_plan with, without;
    request.prompt_embeds = NULL;
    assert_ok(lk_pipeline_plan(q->tiny.pipeline, dev, &request, &without));
    request.prompt_embeds = file;
    assert_ok(lk_pipeline_plan(q->tiny.pipeline, dev, &request, &with));
    assert_true(has_encoder(&without));
    assert_false(has_encoder(&with));
    assert_true(with.weight_bytes < without.weight_bytes && with.arena_bytes <= without.arena_bytes);
}

static void same_picture_from_a_file(void **state) {
    static const int order[] = {2, 0, 3, 1};
    (void)state;
    for (int i = 0; i < TINY_EDITS; i++) {
        struct lk_device *dev, *fresh;
        struct tiny_queue q;
        const char *files[2];
        assert_ok(lk_device_cpu_create(2, &dev));
        assert_ok(lk_device_cpu_create(1, &fresh));
        tiny_queue_open(&q, dev, &tiny_edits[i], i % 2 ? LK_F32 : LK_BF16);
        int64_t live = lk_alloc_live();
        files[0] = embed(&q, dev, 0, 3, "first.safetensors");
        files[1] = embed(&q, dev, 3, 1, "last.safetensors");
        assert_int_equal(lk_alloc_live(), live);
        for (int k = 0; k < TINY_QUEUE; k++) q.requests[k].prompt_embeds = files[k == 3];
        fresh->trace = refuse_encoder;
        tiny_queue_same(&q, fresh, order, TINY_QUEUE, 2);
        tiny_queue_same(&q, fresh, order, 1, 1);
        planned(&q, fresh, files[0]);
        tiny_queue_close(&q);
        lk_device_free(fresh);
        lk_device_free(dev);
    }
}

static void refused(struct tiny_queue *q, struct lk_device *dev, const struct lk_request *request, enum lk_code code,
                    const char *part) {
    struct lk_result result;
    int64_t live = lk_alloc_live();
    assert_fails(lk_pipeline_edit(q->tiny.pipeline, dev, request, &result), code, part);
    assert_int_equal(lk_alloc_live(), live);
}

/* Another prompt, negative prompt, picture; another dtype, another model; a file of something else. */
static void of_something_else(void **state) {
    struct lk_device *dev;
    struct tiny_queue q, f32, other;
    (void)state;
    assert_ok(lk_device_cpu_create(2, &dev));
    tiny_queue_open(&q, dev, &tiny_edits[1], LK_BF16);
    const char *file = embed(&q, dev, 0, 1, "one.safetensors");
    struct lk_request request = q.requests[0];
    request.prompt_embeds = file;
    request.prompt = "a wet scarf";
    refused(&q, dev, &request, LK_E_NOT_FOUND, "nothing of the prompt \"a wet scarf\" with these pictures");
    request.prompt = q.requests[0].prompt;
    request.negative_prompt = "sharp";
    refused(&q, dev, &request, LK_E_NOT_FOUND, "nothing of the prompt \"sharp\" with these pictures");
    request.negative_prompt = q.requests[0].negative_prompt;
    request.images = &q.other;
    refused(&q, dev, &request, LK_E_NOT_FOUND, "nothing of the prompt \"a red scarf\"");
    request.images = q.requests[0].images;
    request.prompt_embeds = test_path("none.safetensors");
    refused(&q, dev, &request, LK_E_NOT_FOUND, "none.safetensors");
    request.prompt_embeds = "golden/data/qwen_edit/edit2511/checkpoint/vae/diffusion_pytorch_model.safetensors";
    refused(&q, dev, &request, LK_E_METADATA, "no file of `embed`");
    request.prompt_embeds = file;
    tiny_queue_open(&f32, dev, &tiny_edits[1], LK_F32);
    refused(&f32, dev, &request, LK_E_INPUT, "made with --dtype bf16, the edit is in f32");
    tiny_queue_open(&other, dev, &tiny_edits[2], LK_BF16);
    struct lk_request step1x = other.requests[0];
    step1x.prompt_embeds = file;
    refused(&other, dev, &step1x, LK_E_INPUT, "made with the text encoder ");
    step1x.thinking_mode = true;
    step1x.prompts_file = "none";
    refused(&other, dev, &step1x, LK_E_USAGE, "thinking");
    tiny_queue_close(&other);
    tiny_queue_close(&f32);
    tiny_queue_close(&q);
    lk_device_free(dev);
}

/* Cut anywhere, or with another byte in its data. */
static void damaged(void **state) {
    struct lk_device *dev;
    struct tiny_queue q;
    size_t n;
    (void)state;
    assert_ok(lk_device_cpu_create(2, &dev));
    tiny_queue_open(&q, dev, &tiny_edits[0], LK_BF16);
    const char *file = embed(&q, dev, 0, 1, "whole.safetensors");
    char *bytes = test_read(file, &n);
    struct lk_request request = q.requests[0];
    request.prompt_embeds = test_path("damaged.safetensors");
    static const int eighths[] = {0, 1, 4, 7};
    for (int i = 0; i < 4; i++) {
        test_write(request.prompt_embeds, bytes, n * (size_t)eighths[i] / 8);
        refused(&q, dev, &request, LK_E_ST_TRUNCATED, "damaged.safetensors");
    }
    bytes[n - 3] ^= 1;
    test_write(request.prompt_embeds, bytes, n);
    refused(&q, dev, &request, LK_E_INPUT, "expected bytes with the SHA-256");
    bytes[n - 3] ^= 1;
    test_write(request.prompt_embeds, bytes, n);
    struct lk_result result;
    assert_ok(lk_pipeline_edit(q.tiny.pipeline, dev, &request, &result));
    assert_string_equal(result.embeds_isa, dev->architecture);
    lk_result_free(&result);
    free(bytes);
    tiny_queue_close(&q);
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_picture_from_a_file),
        cmocka_unit_test(of_something_else),
        cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
