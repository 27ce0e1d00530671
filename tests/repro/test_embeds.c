/* Prompts and pictures that were encoded before, by themselves or together, give the pictures that one process gives;
 * neither the text encoder nor the VAE's is visited then. A file that is not of this model, prompt, picture or dtype,
 * or damaged, is refused. */
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/attended.h"
#include "models/embeds.h"
#include "models/flux2/flux2.h"
#include "models/qwen_edit/qwen_edit.h"
#include "tests/common/test.h"
#include "tests/common/tiny_queue.h"
#include "weights/safetensors.h"

static enum lk_code refuse_encoder(void *context, struct lk_device *dev, const char *name,
                                   const struct lk_tensor *value) {
    (void)context, (void)dev, (void)value;
    if (strstr(name, "text_encoder") || strstr(name, "vision") || strstr(name, ".pixels"))
        fail_msg("%s is computed", name);
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
    for (int i = 0; i < TINY_EDITS + TINY_PICTURES; i++) {
        const struct tiny_edit *edit = i < TINY_EDITS ? &tiny_edits[i] : &tiny_pictures[i - TINY_EDITS];
        struct lk_device *dev, *fresh;
        struct tiny_queue q;
        const char *files[2];
        assert_ok(lk_device_cpu_create(2, &dev));
        assert_ok(lk_device_cpu_create(1, &fresh));
        tiny_queue_open(&q, dev, edit, i % 2 ? LK_F32 : LK_BF16);
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

/* Stable Cascade: neither words nor where they are looked for can be told. */
static void not_told_of_cascade(void **state) {
    struct lk_device *dev;
    struct tiny_queue q;
    struct lk_phrases phrases;
    struct lk_attended attended = {0};
    struct lk_result result;
    (void)state;
    assert_ok(lk_device_cpu_create(1, &dev));
    tiny_queue_open(&q, dev, &tiny_pictures[2], LK_F32);
    const char *file = embed(&q, dev, 0, 2, "words.safetensors"), *to = test_path("normed.safetensors");
    assert_fails(lk_embeds_normalize(file, to, LK_EMBEDS_CENTER), LK_E_INPUT, "leave embed_norm out for this model");
    assert_fails(lk_phrases_embed(q.tiny.pipeline, dev, &(const char *){"a hat"}, 1, &phrases), LK_E_USAGE,
                 "not told by the text encoders of");
    assert_fails(lk_attended_edit(q.tiny.pipeline, dev, &q.requests[0], &attended, &result), LK_E_USAGE,
                 "cannot be told of");
    tiny_queue_close(&q);
    lk_device_free(dev);
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

/* FLUX.2's prompts do not depend on the picture: one that the file does not have is encoded by the edit. */
static void with_another_picture(void **state) {
    struct lk_device *dev;
    struct tiny_queue q;
    struct lk_result want, got;
    (void)state;
    assert_ok(lk_device_cpu_create(2, &dev));
    tiny_queue_open(&q, dev, &tiny_edits[0], LK_BF16);
    struct lk_request request = q.requests[0];
    request.images = &q.other;
    assert_ok(lk_pipeline_edit(q.tiny.pipeline, dev, &request, &want));
    request.prompt_embeds = embed(&q, dev, 0, 1, "another.safetensors");
    assert_ok(lk_pipeline_edit(q.tiny.pipeline, dev, &request, &got));
    assert_memory_equal(got.image.pixels, want.image.pixels, (size_t)want.image.width * want.image.height * 3);
    lk_result_free(&want);
    lk_result_free(&got);
    tiny_queue_close(&q);
    lk_device_free(dev);
}

/* What a mitigation makes of such a file: other rows of words, the same of pictures. */
static void pictures_are_no_words(void **state) {
    struct lk_device *dev;
    struct tiny_queue q;
    struct lk_safetensors before, after;
    (void)state;
    for (int i = 0; i < TINY_FAMILIES; i++) {
        assert_ok(lk_device_cpu_create(2, &dev));
        tiny_queue_open(&q, dev, &tiny_edits[i], LK_BF16);
        const char *file = embed(&q, dev, 0, 1, "pictures.safetensors"), *to = test_path("normal.safetensors");
        assert_ok(lk_embeds_normalize(file, to, LK_EMBEDS_CENTER));
        assert_ok(lk_safetensors_open(&before, file));
        assert_ok(lk_safetensors_open(&after, to));
        assert_int_equal(before.n_tensors, after.n_tensors);
        int n_same = 0;
        for (size_t k = 0; k < before.n_tensors; k++) {
            const struct lk_tensor *a = &before.tensors[k].tensor, *b = NULL;
            for (size_t j = 0; j < after.n_tensors; j++)
                if (!strcmp(after.tensors[j].name, before.tensors[k].name)) b = &after.tensors[j].tensor;
            assert_non_null(b);
            n_same += !memcmp(a->data, b->data, lk_tensor_bytes(a));
        }
        assert_int_equal(n_same, 1); /* the picture */
        assert_true(before.n_tensors > 1);
        lk_safetensors_close(&after);
        lk_safetensors_close(&before);
        q.requests[0].prompt_embeds = to;
        struct lk_result result;
        assert_ok(lk_pipeline_edit(q.tiny.pipeline, dev, &q.requests[0], &result));
        lk_result_free(&result);
        tiny_queue_close(&q);
        lk_device_free(dev);
    }
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
    char *vae = memmem(bytes, n, "\"vae\":\"", 7);
    assert_non_null(vae);
    vae[7] = vae[7] == '0' ? '1' : '0';
    test_write(request.prompt_embeds, bytes, n);
    refused(&q, dev, &request, LK_E_INPUT, "made with the VAE ");
    free(bytes);
    tiny_queue_close(&q);
    lk_device_free(dev);
}

static int64_t n_ids(const struct lk_tokenizer *tokenizer, const char *text) {
    int32_t *ids;
    size_t n;
    assert_ok(lk_tokenizer_encode(tokenizer, text, strlen(text), &ids, &n));
    lk_free(ids);
    return (int64_t)n;
}

/* Where a phrase stands among its prompt's rows by the tokenizer alone: before the end of the template. */
static int64_t first_row(const struct lk_pipeline *p, int64_t n_rows, const char *phrase, int64_t *n) {
    const bool flux2 = p->family == &lk_family_flux2;
    const struct lk_tokenizer *tokenizer =
        flux2 ? ((struct lk_flux2 *)p->model)->tokenizer : ((struct lk_qwen_edit *)p->model)->tokenizer;
    *n = n_ids(tokenizer, phrase);
    return n_rows - *n - n_ids(tokenizer, flux2 ? "[/INST]" : "<|im_end|>\n<|im_start|>assistant\n");
}

/* What the prompt's own rows say, by the queue that makes files of embeddings. */
static void check_phrase(struct lk_pipeline *p, struct lk_device *dev, const struct lk_request *request,
                         const struct lk_phrases *got, int i) {
    struct lk_kept *kept = NULL, *encoded = NULL;
    struct lk_queued queued = {.request = request}, *job = &queued;
    int64_t n;
    assert_ok(lk_pipeline_edit_queue(
        p, dev, &(struct lk_queue){.jobs = &job, .n_jobs = 1, .jobs_per_visit = 1, .embeds = &kept}));
    for (struct lk_kept *k = kept; k; k = k->next)
        if (k->prompt) encoded = k;
    const struct lk_tensor *t = &encoded->tensor;
    const int64_t first = first_row(p, t->shape[0], request->prompt, &n);
    assert_int_equal(t->shape[1], got->width);
    for (int64_t c = 0; c < got->width; c++) {
        double mean = 0;
        for (int64_t r = first; r < first + n; r++) {
            const int64_t at = r * got->width + c;
            mean += (double)(t->dtype == LK_F32 ? ((float *)t->data)[at] : lk_bf16_to_f32(((uint16_t *)t->data)[at]));
        }
        mean /= (double)n;
        if (fabs(mean - got->means[i * got->width + c]) > 1e-9 * (1 + fabs(mean)))
            fail_msg("%s, %s, channel %lld: %g for %g", p->name, request->prompt, (long long)c,
                     got->means[i * got->width + c], mean);
    }
    lk_kept_free(&kept);
}

static void phrases_are_their_tokens(void **state) {
    enum { MANY = 35 }; /* more than are in memory at once */
    static char numbers[MANY][16];
    const char *phrases[MANY] = {"thief", "drug dealer", "a violent criminal"};
    const char *const checkpoints[] = {test_path("flux2"), "golden/data/qwen_edit/edit2511/checkpoint",
                                       "golden/data/qwen_edit/text/checkpoint"};
    struct lk_image gray;
    struct lk_device *dev;
    const char *build = getenv("BUILD_DIR");
    char command[4200];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s' && '%s/make_checkpoint' --preset tiny '%s'", checkpoints[0],
             build ? build : "../build", checkpoints[0]);
    assert_int_equal(system(command), 0);
    for (int i = 3; i < MANY; i++) {
        snprintf(numbers[i], sizeof numbers[i], "scammer %d", i);
        phrases[i] = numbers[i];
    }
    assert_ok(lk_device_cpu_create(2, &dev));
    assert_ok(lk_image_new(&gray, 1024, 1024, 3));
    memset(gray.pixels, 128, 1024 * 1024 * 3);
    for (int c = 0; c < 3; c++) {
        struct lk_pipeline *p;
        struct lk_phrases got;
        struct lk_request request;
        assert_ok(lk_pipeline_open(&p, checkpoints[c], c == 2 ? LK_BF16 : LK_F32));
        const int n = c ? 3 : MANY;
        assert_ok(lk_phrases_embed(p, dev, phrases, n, &got));
        assert_int_equal(got.canvas, c == 1);
        assert_int_equal(strlen(got.text_encoder), 64);
        lk_request_init(&request, p);
        request.images = &gray;
        request.n_images = c == 1;
        for (int i = 0; i < n; i += i == 2 && n > 3 ? n - 3 : 1) {
            request.prompt = phrases[i];
            check_phrase(p, dev, &request, &got, i);
        }
        lk_phrases_free(&got);
        assert_fails(lk_phrases_embed(p, dev, (const char *const[]){"thief", "thief"}, 2, &got), LK_E_INPUT, "differ");
        lk_pipeline_close(p);
    }
    lk_image_free(&gray);
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_picture_from_a_file), cmocka_unit_test(not_told_of_cascade),
        cmocka_unit_test(of_something_else),        cmocka_unit_test(with_another_picture),
        cmocka_unit_test(pictures_are_no_words),    cmocka_unit_test(damaged),
        cmocka_unit_test(phrases_are_their_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
