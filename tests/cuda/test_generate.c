/* Replies within a memory budget: weights resident in part or all streamed give the ids of the run with all of them,
 * never in more memory than allowed, and below the least nothing is read. On the simulated GPU. */
#include "models/pipeline.h"
#include "models/text/chat_batch.h"
#include "models/text/qwen25_vl.h"
#include "models/text/generate.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"
#include "weights/quant/write.h"

#define CHECKPOINT "golden/data/qwen25_vl/nested/checkpoint"
#define N_PROMPT   12
#define N_REPLIES  2

static const struct simulated_gpu *gpu;

struct model {
    struct lk_checkpoint checkpoint;
    struct lk_qwen25_vl m;
    struct lk_vlm view;
    int32_t ids[N_PROMPT];
    struct lk_generate_request requests[N_REPLIES];
};

static void open_model(struct model *model) {
    struct lk_config *json;
    struct lk_qwen25_vl_config config;
    uint64_t random = 1;
    assert_ok(lk_config_open(&json, CHECKPOINT "/config.json"));
    assert_ok(lk_qwen25_vl_config_read(&config, json));
    assert_ok(lk_checkpoint_open(&model->checkpoint, CHECKPOINT, "model"));
    assert_ok(lk_qwen25_vl_bind(&model->m, &config, true, &model->checkpoint, LK_BF16));
    model->view = lk_qwen25_vl_view(&model->m);
    for (int i = 0; i < N_PROMPT; i++) model->ids[i] = (int32_t)(test_random(&random) % 200);
    for (int i = 0; i < N_REPLIES; i++) {
        struct lk_generate_request *q = &model->requests[i];
        *q = (struct lk_generate_request){.ids = model->ids + i, .n_ids = N_PROMPT - i, .n_valid_ids = 200};
        lk_generation_config_init(&q->config);
        q->config.max_new_tokens = 3 + i;
    }
}

/* With so many bytes; 0: all there is. Returns the peak of memory. */
static uint64_t generate(struct model *model, uint64_t budget, struct lk_generation *out) {
    struct lk_device *dev;
    gpu->memory_peak(0);
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget = (struct lk_budget){.bytes = budget, .readers = 2, .host_bytes = budget % 2 ? 1 : 0};
    assert_ok(lk_generate(dev, &model->view, LK_BF16, model->requests, N_REPLIES, 1, out));
    lk_device_free(dev);
    return gpu->memory_peak(0);
}

/* The least budget, as the refusal of less says it. */
static uint64_t least(struct model *model) {
    struct lk_generation out[N_REPLIES];
    struct lk_device *dev;
    unsigned long long bytes = 0;
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget.bytes = 4096;
    uint64_t copies = gpu->calls("cuMemcpyHtoD");
    assert_fails(lk_generate(dev, &model->view, LK_BF16, model->requests, N_REPLIES, 1, out), LK_E_FIT, "at least");
    assert_int_equal(gpu->calls("cuMemcpyHtoD"), copies);
    const char *text = strchr(lk_error_text(), '(');
    text = text ? strstr(text, "MiB (") : NULL;
    assert_non_null(text);
    assert_int_equal(sscanf(text, "MiB (%llu bytes)", &bytes), 1);
    bytes += dev->memory_own;
    lk_device_free(dev);
    return bytes;
}

static struct lk_plan plan_of(struct model *model) {
    struct lk_device *dev;
    struct lk_plan plan;
    assert_ok(lk_device_cuda_create(0, &dev));
    assert_ok(lk_generate_plan(dev, &model->view, LK_BF16, model->requests, N_REPLIES, 1, &plan));
    lk_device_free(dev);
    return plan;
}

/* The plan is the peak to the byte, and its least budget the one that less is refused by. */
static void planned_memory_is_the_peak(void **state) {
    struct model model;
    struct lk_generation all[N_REPLIES];
    struct lk_device *dev;
    (void)state;
    open_model(&model);
    const uint64_t peak = generate(&model, 0, all);
    for (int i = 0; i < N_REPLIES; i++) lk_generation_free(&all[i]);
    struct lk_plan plan = plan_of(&model);
    assert_true(plan.fits && plan.whole);
    assert_true(!gpu->hooks || plan.device_bytes == peak);
    assert_int_equal(plan.placed_bytes, plan.device_bytes);
    assert_int_equal(plan.least_bytes, least(&model));
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget.bytes = plan.least_bytes - 1;
    assert_ok(lk_generate_plan(dev, &model.view, LK_BF16, model.requests, N_REPLIES, 1, &plan));
    assert_false(plan.fits);
    lk_device_free(dev);
    lk_qwen25_vl_free(&model.m);
    lk_checkpoint_close(&model.checkpoint);
}

static void same_ids_within_any_budget(void **state) {
    struct model model;
    struct lk_generation all[N_REPLIES], some[N_REPLIES];
    (void)state;
    open_model(&model);
    generate(&model, 0, all);
    const struct lk_plan plan = plan_of(&model);
    const uint64_t whole = plan.device_bytes, lower = plan.least_bytes;
    assert_true(lower < whole);
    for (int i = 0; i < 3; i++) {
        uint64_t budget = lower + (whole - lower) * (uint64_t)i / 4 + (uint64_t)(i == 1),
                 waits = gpu->calls("cuStreamWaitEvent");
        assert_true(generate(&model, budget, some) <= budget);
        assert_true(!gpu->hooks || gpu->calls("cuStreamWaitEvent") > waits);
        for (int k = 0; k < N_REPLIES; k++) {
            assert_int_equal(some[k].n, all[k].n);
            assert_memory_equal(some[k].ids, all[k].ids, (size_t)all[k].n * sizeof *all[k].ids);
            lk_generation_free(&some[k]);
        }
    }
    for (int k = 0; k < N_REPLIES; k++) lk_generation_free(&all[k]);
    lk_qwen25_vl_free(&model.m);
    lk_checkpoint_close(&model.checkpoint);
}

enum { QWEN, QWEN_PACKED, MISTRAL, N_CHATS, N_QUESTIONS = 3 };
static const char *const names[N_CHATS] = {"Qwen2.5-VL", "Qwen2.5-VL in nf4", "Mistral-Small-3"};

/* A tiny model's folder; packed: bitsandbytes' four bits in its language and vision layers. Mistral with Pixtral is
 * FLUX.2's text encoder. */
static const char *chat_folder(int chat) {
    static const char *const kept[] = {"lm_head", "embed_tokens", NULL};
    static char folder[1024];
    char command[4200];
    struct lk_checkpoint checkpoint;
    snprintf(folder, sizeof folder, "%s-%d", test_path("chat"), chat);
    snprintf(command, sizeof command, "rm -rf '%s' && '%s/make_checkpoint' --family %s --preset tiny '%s'", folder,
             getenv("BUILD_DIR"), chat == MISTRAL ? "flux2" : "qwen25_vl", folder);
    assert_int_equal(system(command), 0);
    if (chat != QWEN_PACKED) return folder;
    assert_ok(lk_checkpoint_open_present(&checkpoint, folder, "model"));
    assert_ok(lk_quantize_write(&checkpoint, folder, "packed", LK_QUANTIZE_NF4, kept, UINT64_MAX));
    lk_checkpoint_close(&checkpoint);
    snprintf(command, sizeof command, "mv '%s/packed.safetensors' '%s/model.safetensors'", folder, folder);
    assert_int_equal(system(command), 0);
    return folder;
}

/* What the model says of pictures is one text for each question, resident or streamed, from pinned copies or by
 * readers, one at a time or together, with a shared beginning or each by itself, with weights of 16 bits and of four.
 */
static void same_words_about_pictures(void **state) {
    static const struct lk_budget budgets[] = {
        {0}, {.resident_bytes = 1, .host_bytes = 1 << 30}, {.resident_bytes = 1, .host_bytes = 1, .readers = 3}};
    static const int slots[] = {1, 2, 3};
    (void)state;
    for (int k = 0; k < N_CHATS; k++) {
        struct lk_chat *chat;
        struct lk_token_bytes tokens;
        struct lk_image images[2];
        struct lk_chat_question questions[N_QUESTIONS] = {0};
        struct lk_chat_part parts[N_QUESTIONS][2] = {0};
        struct lk_chat_message messages[N_QUESTIONS];
        struct lk_chat_answer first[N_QUESTIONS], again[N_QUESTIONS];
        uint64_t peaks[3];
        assert_ok(lk_chat_open(&chat, chat_folder(k), LK_BF16));
        assert_ok(lk_chat_tokens(chat, &tokens));
        for (int i = 0; i < 2; i++) {
            assert_ok(lk_image_new(&images[i], 56, 84, 3));
            for (int p = 0; p < 56 * 84 * 3; p++) images[i].pixels[p] = (uint8_t)(p * (3 + i));
        }
        for (int i = 0; i < N_QUESTIONS; i++) {
            parts[i][0].image = &images[i == 2]; /* the first two are of one picture */
            parts[i][1].text = i ? "And this?" : "Who is it?";
            messages[i] = (struct lk_chat_message){"user", parts[i], 2};
            lk_chat_request_init(&questions[i].request, chat);
            questions[i].request.messages = &messages[i];
            questions[i].request.n_messages = 1;
            questions[i].request.generation.max_new_tokens = 6;
        }
        for (int b = 0; b < 3; b++) {
            struct lk_device *dev;
            struct lk_chat_answer *answers = b ? again : first;
            uint64_t waits = gpu->calls("cuStreamWaitEvent");
            for (int i = 0; i < 2; i++) questions[i].shared_key = b == 1, questions[i].n_shared_images = b == 1;
            gpu->memory_peak(0);
            assert_ok(lk_device_cuda_create(0, &dev));
            dev->budget = budgets[b];
            assert_ok(lk_chat_ask(chat, dev, &tokens, questions, N_QUESTIONS, slots[b], NULL, answers));
            lk_device_free(dev);
            peaks[b] = gpu->memory_peak(0);
            if (gpu->hooks) assert_int_equal(gpu->calls("cuStreamWaitEvent") > waits, b > 0);
            for (int i = 0; i < N_QUESTIONS; i++) {
                assert_int_equal(answers[i].code, LK_OK);
                assert_true(answers[i].n_tokens > 0);
                assert_int_equal(answers[i].n, first[i].n);
                assert_memory_equal(answers[i].text, first[i].text, first[i].n);
                if (b) lk_chat_answer_free(&answers[i]);
            }
        }
        printf("%s: %llu bytes with all weights, %llu streamed; \"%.*s\"\n", names[k], (unsigned long long)peaks[0],
               (unsigned long long)peaks[2], (int)first[0].n, first[0].text);
        assert_true(!gpu->hooks || peaks[2] < peaks[0]);
        for (int i = 0; i < N_QUESTIONS; i++) lk_chat_answer_free(&first[i]);
        for (int i = 0; i < 2; i++) lk_image_free(&images[i]);
        lk_token_bytes_free(&tokens);
        lk_chat_close(chat);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(planned_memory_is_the_peak),
                                       cmocka_unit_test(same_ids_within_any_budget),
                                       cmocka_unit_test(same_words_about_pictures)};
    gpu = simulated_gpu();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
