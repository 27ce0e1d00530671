/* A chat with a hostile folder, a hostile generation_config.json, hostile prompts, and memory that runs out. The model
 * is made by make_checkpoint. */
#include "tests/common/test.h"

#include <cjson/cJSON.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "models/text/chat.h"
#include "models/text/generate.h"

static char folder[1024];

static int make_model(void **state) {
    (void)state;
    char command[2600];
    const char *build = getenv("BUILD_DIR");
    snprintf(folder, sizeof folder, "%s", test_path("chat_faults"));
    snprintf(command, sizeof command, "rm -rf '%s' && '%s/make_checkpoint' --family qwen25_vl --preset tiny '%s'",
             folder, build ? build : "../build", folder);
    return system(command);
}

static const char *file_path(const char *name) {
    static char path[1100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static enum lk_code try_open(void) {
    struct lk_chat *chat;
    enum lk_code rc = lk_chat_open(&chat, folder, LK_BF16);
    if (rc) assert_null(chat);
    lk_chat_close(chat);
    return rc;
}

/* The config with one key set to a JSON text (NULL: taken out); opening gives this code, naming the key. */
static void vary(const char *key, const char *json, enum lk_code expected) {
    size_t n;
    char *original = test_read(file_path("generation_config.json"), &n);
    cJSON *root = cJSON_Parse(original);
    assert_non_null(root);
    cJSON_DeleteItemFromObjectCaseSensitive(root, key);
    if (json) cJSON_AddItemToObject(root, key, cJSON_Parse(json));
    char *text = cJSON_Print(root);
    test_write(file_path("generation_config.json"), text, strlen(text));
    cJSON_free(text);
    cJSON_Delete(root);
    enum lk_code rc = try_open();
    test_write(file_path("generation_config.json"), original, n);
    free(original);
    if (rc != expected || (rc && (!strstr(lk_error_text(), key) || !strstr(lk_error_text(), "generation_config.json"))))
        fail_msg("%s = %s: expected code %d, got %d: %s", key, json ? json : "(absent)", (int)expected, (int)rc,
                 rc ? lk_error_text() : "(no error)");
}

static void every_key_of_generation_config_counts(void **state) {
    (void)state;
    static const struct {
        const char *key, *json;
        enum lk_code expected;
    } cases[] = {
        {"do_sample", NULL, LK_OK},
        {"do_sample", "1", LK_E_CONFIG_TYPE},
        {"temperature", NULL, LK_OK},
        {"temperature", "\"hot\"", LK_E_CONFIG_TYPE},
        {"temperature", "0", LK_E_CONFIG_VALUE},
        {"temperature", "-1", LK_E_CONFIG_VALUE},
        {"temperature", "1e300", LK_E_CONFIG_VALUE},
        {"top_k", NULL, LK_OK},
        {"top_k", "0", LK_OK},
        {"top_k", "-1", LK_E_CONFIG_VALUE},
        {"top_k", "1.5", LK_E_CONFIG_TYPE},
        {"top_k", "1e15", LK_E_CONFIG_VALUE},
        {"top_p", NULL, LK_OK},
        {"top_p", "1.1", LK_E_CONFIG_VALUE},
        {"top_p", "true", LK_E_CONFIG_TYPE},
        {"repetition_penalty", NULL, LK_OK},
        {"repetition_penalty", "0", LK_E_CONFIG_VALUE},
        {"repetition_penalty", "[1]", LK_E_CONFIG_TYPE},
        {"eos_token_id", NULL, LK_OK},
        {"eos_token_id", "null", LK_OK},
        {"eos_token_id", "3", LK_OK},
        {"eos_token_id", "[]", LK_OK},
        {"eos_token_id", "[1, 2, 3]", LK_OK},
        {"eos_token_id", "\"3\"", LK_E_CONFIG_TYPE},
        {"eos_token_id", "[\"3\"]", LK_E_CONFIG_TYPE},
        {"eos_token_id", "-1", LK_E_CONFIG_VALUE},
        {"eos_token_id", "[1, 1e9]", LK_E_CONFIG_VALUE},
        {"eos_token_id", "[1, 2, 3, 4, 5, 6, 7, 8, 9]", LK_E_CONFIG_VALUE},
        {"max_new_tokens", "20", LK_OK},
        {"max_new_tokens", "0", LK_E_CONFIG_VALUE},
        {"max_new_tokens", "1e12", LK_E_CONFIG_VALUE},
        {"max_length", "20", LK_OK},
        {"max_length", "\"20\"", LK_E_CONFIG_TYPE},
        {"bos_token_id", "-2", LK_E_CONFIG_VALUE},
        {"pad_token_id", "[1]", LK_E_CONFIG_TYPE},
        {"use_cache", "true", LK_OK},
        {"num_beams", "1", LK_OK},
        {"num_beams", "null", LK_OK},
        {"num_beams", "4", LK_E_CONFIG_VALUE},
        {"typical_p", "1.0", LK_OK},
        {"typical_p", "0.9", LK_E_CONFIG_VALUE},
        {"min_p", "0.1", LK_E_CONFIG_VALUE},
        {"no_repeat_ngram_size", "3", LK_E_CONFIG_VALUE},
        {"min_new_tokens", "3", LK_E_CONFIG_VALUE},
        {"bad_words_ids", "[[1]]", LK_E_CONFIG_VALUE},
        {"suppress_tokens", "[1]", LK_E_CONFIG_VALUE},
        {"stop_strings", "\"x\"", LK_E_CONFIG_VALUE},
        {"guidance_scale", "2", LK_E_CONFIG_VALUE},
        {"renormalize_logits", "true", LK_E_CONFIG_VALUE},
        {"novel_key", "1", LK_E_CONFIG_KEY},
    };
    assert_ok(try_open());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) vary(cases[i].key, cases[i].json, cases[i].expected);
    size_t n;
    char *original = test_read(file_path("generation_config.json"), &n);
    static const char *const texts[] = {"", "[]", "{", "{\"do_sample\": true, \"do_sample\": false}",
                                        "{\"top_k\": 1e999}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        test_write(file_path("generation_config.json"), texts[i], strlen(texts[i]));
        assert_int_equal(lk_exit_code(try_open()), 3);
    }
    assert_int_equal(unlink(file_path("generation_config.json")), 0);
    assert_ok(try_open()); /* greedy, stopping at the end of a message */
    test_write(file_path("generation_config.json"), original, n);
    free(original);
}

static void files_that_are_missing_or_do_not_belong_together(void **state) {
    (void)state;
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json",
                                        "preprocessor_config.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char aside[1200], path[1100];
        snprintf(path, sizeof path, "%s", file_path(files[i]));
        snprintf(aside, sizeof aside, "%s.aside", path);
        assert_int_equal(rename(path, aside), 0);
        assert_int_equal(lk_exit_code(try_open()), 3);
        assert_int_equal(rename(aside, path), 0);
    }
    size_t n;
    char *original = test_read(file_path("config.json"), &n);
    static const char *const keys[] = {"image_token_id", "vision_start_token_id", "vision_end_token_id"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        cJSON *root = cJSON_Parse(original);
        cJSON_ReplaceItemInObjectCaseSensitive(root, keys[i], cJSON_CreateNumber(3));
        char *text = cJSON_Print(root);
        test_write(file_path("config.json"), text, strlen(text));
        cJSON_free(text);
        cJSON_Delete(root);
        assert_fails(try_open(), LK_E_TOKENIZER, "the config says id 3");
    }
    test_write(file_path("config.json"), original, n);
    free(original);
    original = test_read(file_path("preprocessor_config.json"), &n);
    cJSON *root = cJSON_Parse(original);
    cJSON_ReplaceItemInObjectCaseSensitive(root, "patch_size", cJSON_CreateNumber(16));
    char *text = cJSON_Print(root);
    test_write(file_path("preprocessor_config.json"), text, strlen(text));
    assert_fails(try_open(), LK_E_CONFIG_VALUE, "image processor");
    cJSON_free(text);
    cJSON_Delete(root);
    test_write(file_path("preprocessor_config.json"), original, n);
    free(original);
    assert_ok(try_open());
}

struct talk {
    struct lk_chat *chat;
    struct lk_device *dev;
    struct lk_image image;
    struct lk_chat_part parts[12];
    struct lk_chat_message message;
    struct lk_chat_request request;
};

static void begin(struct talk *t) {
    memset(t, 0, sizeof *t);
    assert_ok(lk_chat_open(&t->chat, folder, LK_F32));
    assert_ok(lk_device_cpu_create(1, &t->dev));
    assert_ok(lk_image_new(&t->image, 60, 90, 4));
    for (int i = 0; i < 60 * 90 * 4; i++) t->image.pixels[i] = (uint8_t)(i * 7);
    lk_chat_request_init(&t->request, t->chat);
    assert_true(t->request.generation.n_stop_ids == 2);
    t->parts[0] = (struct lk_chat_part){.image = &t->image};
    t->parts[1] = (struct lk_chat_part){.text = "Who?"};
    t->message = (struct lk_chat_message){"user", t->parts, 2};
    t->request.messages = &t->message;
    t->request.n_messages = 1;
    t->request.generation.max_new_tokens = 6;
}

static void end(struct talk *t) {
    lk_image_free(&t->image);
    lk_device_free(t->dev);
    lk_chat_close(t->chat);
}

static void bad_requests_are_refused(void **state) {
    (void)state;
    struct talk t;
    struct lk_chat_reply reply;
    begin(&t);
    const struct lk_chat_message good = t.message;
    const struct lk_chat_part parts[] = {t.parts[0], t.parts[1]};
    const struct lk_chat_request request = t.request;
#define REFUSED(change, code, part)                                                                                    \
    do {                                                                                                               \
        t.message = good;                                                                                              \
        memcpy(t.parts, parts, sizeof parts);                                                                          \
        t.request = request;                                                                                           \
        change;                                                                                                        \
        assert_fails(lk_chat_reply(t.chat, t.dev, &t.request, &reply), code, part);                                    \
        lk_chat_reply_free(&reply);                                                                                    \
    } while (0)
    struct lk_image thin = {.width = 1, .height = 300, .channels = 3, .pixels = t.image.pixels};
    for (int i = 2; i < 12; i++) t.parts[i] = t.parts[0];
    REFUSED(t.parts[1].text = "a \xff", LK_E_PROMPT, "byte 2");
    REFUSED(t.parts[1].text = "<|image_pad|>", LK_E_PROMPT, "<|image_pad|>");
    REFUSED(t.parts[1].text = "a<|im_start|>system", LK_E_PROMPT, "<|im_start|>");
    REFUSED(t.message.role = "tool", LK_E_USAGE, "role");
    REFUSED(t.message.n_parts = 12, LK_E_USAGE, "at most 10");
    REFUSED(t.parts[0].image = &thin, LK_E_IMAGE_SIZE, "image 1");
    REFUSED(t.request.generation.temperature = -1, LK_E_USAGE, "temperature");
    REFUSED(t.request.generation.max_new_tokens = INT64_MAX, LK_E_USAGE, "max_new_tokens");
    end(&t);
}

static enum lk_code stop_at_three(void *context, const char *text, size_t n, int64_t n_tokens) {
    size_t *total = context;
    assert_int_equal(strlen(text), n);
    *total += n;
    return n_tokens == 3 ? lk_fail(LK_E_INTERRUPTED, "three") : LK_OK;
}

static void what_was_said_before_a_stop_is_kept(void **state) {
    (void)state;
    struct talk t;
    struct lk_chat_reply whole, part;
    size_t total = 0;
    begin(&t);
    assert_ok(lk_chat_reply(t.chat, t.dev, &t.request, &whole));
    assert_int_equal(whole.n_tokens, 6);
    assert_int_equal(whole.n, strlen(whole.text));
    t.request.text = stop_at_three;
    t.request.text_context = &total;
    assert_fails(lk_chat_reply(t.chat, t.dev, &t.request, &part), LK_E_INTERRUPTED, "three");
    assert_int_equal(part.n_tokens, 3);
    assert_int_equal(part.n, total);
    assert_memory_equal(part.text, whole.text, part.n);
    lk_chat_reply_free(&part);
    lk_chat_reply_free(&whole);
    end(&t);
}

static void every_failing_allocation_of_a_reply_is_an_error(void **state) {
    (void)state;
    struct talk t;
    struct lk_chat_reply good, reply;
    begin(&t);
    assert_ok(lk_chat_reply(t.chat, t.dev, &t.request, &good));
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    assert_ok(lk_chat_reply(t.chat, t.dev, &t.request, &reply));
    int64_t total = lk_alloc_count() - before;
    lk_chat_reply_free(&reply);
    int n_failed = 0;
    for (int64_t n = 1; n <= total; n++) {
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_chat_reply(t.chat, t.dev, &t.request, &reply);
        lk_alloc_fail_at(0);
        /* An allocation that only saves time (a compiled pattern's stack) may be done without. */
        if (rc && rc != LK_E_NOMEM)
            fail_msg("allocation %lld: expected code 400, got %d: %s", (long long)n, (int)rc, lk_error_text());
        if (!rc) assert_string_equal(reply.text, good.text);
        n_failed += rc != LK_OK;
        lk_chat_reply_free(&reply);
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(total > 20 && n_failed > total / 2);
    lk_chat_reply_free(&good);
    end(&t);
}

static void failing_allocations_of_open_are_errors(void **state) {
    (void)state;
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    assert_ok(try_open());
    int64_t total = lk_alloc_count() - before;
    int n_failed = 0, n_tried = 0;
    for (int64_t n = 1; n <= total; n += n < 100 ? 1 : total / 150 + 1) {
        n_tried++;
        lk_alloc_fail_at(n);
        enum lk_code rc = try_open();
        lk_alloc_fail_at(0);
        if (rc && rc != LK_E_NOMEM)
            fail_msg("allocation %lld of %lld: got %d: %s", (long long)n, (long long)total, (int)rc, lk_error_text());
        n_failed += rc != LK_OK;
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(n_failed > n_tried / 2);
}

/* The peak of a whole reply is what was planned: the arena that the reply prepared was just large enough. */
static void the_plan_is_the_actual_peak(void **state) {
    (void)state;
    struct talk t;
    struct lk_chat_reply reply;
    begin(&t);
    t.request.generation.n_stop_ids = 0;
    for (int n = 1; n <= 200; n += 199) {
        t.request.generation.max_new_tokens = n;
        assert_ok(lk_chat_reply(t.chat, t.dev, &t.request, &reply));
        assert_int_equal(reply.n_tokens, n);
        assert_int_equal(reply.peak_bytes, t.dev->arena.capacity);
        lk_chat_reply_free(&reply);
    }
    end(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_generation_config_counts),
        cmocka_unit_test(files_that_are_missing_or_do_not_belong_together),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(what_was_said_before_a_stop_is_kept),
        cmocka_unit_test(every_failing_allocation_of_a_reply_is_an_error),
        cmocka_unit_test(failing_allocations_of_open_are_errors),
        cmocka_unit_test(the_plan_is_the_actual_peak),
    };
    return cmocka_run_group_tests(tests, make_model, NULL);
}
