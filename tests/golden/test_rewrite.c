/* Rewritten prompts against what the authors' own code makes of the same: replies, pictures, chats
 * (generate_rewrite.py). */
#include "tests/common/test.h"

#include <cjson/cJSON.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "models/rewrite/reply.h"
#include "models/rewrite/rewrite.h"
#include "models/text/chat_internal.h"

#define DATA     "golden/data/rewrite.json"
#define N_TOKENS 24

static cJSON *golden;

static const cJSON *list(const char *key) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(golden, key);
    assert_true(cJSON_IsArray(found));
    return found;
}

static const char *text_of(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    assert_non_null(text);
    return text;
}

static int number_of(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key)->valueint;
}

static void replies_are_read_as_the_authors_read_them(void **state) {
    (void)state;
    const cJSON *item;
    int n = 0, n_prompts = 0;
    cJSON_ArrayForEach(item, list("replies")) {
        const char *reply = cJSON_GetArrayItem(item, 0)->valuestring, *why;
        const char *expected = cJSON_GetStringValue(cJSON_GetArrayItem(item, 1));
        char *got;
        assert_ok(lk_rewrite_reply_json(reply, strlen(reply), "Rewritten", &got, &why));
        if (!got != !expected || (got && strcmp(got, expected)))
            fail_msg("reply %d, \"%.200s\": expected \"%s\", got \"%s\"", n, reply, expected ? expected : "(none)",
                     got ? got : "(none)");
        lk_free(got);
        n++;
        n_prompts += expected != NULL;
    }
    assert_true(n > 600 && n_prompts > 150);
    cJSON_ArrayForEach(item, list("texts")) {
        const char *reply = cJSON_GetArrayItem(item, 0)->valuestring, *why;
        const char *expected = cJSON_GetStringValue(cJSON_GetArrayItem(item, 1));
        char *got;
        assert_ok(lk_rewrite_reply_text(reply, strlen(reply), &got, &why));
        assert_int_equal(!got, !expected);
        if (got) assert_string_equal(got, expected);
        lk_free(got);
    }
}

static void bytes_that_are_no_text_are_no_prompt(void **state) {
    (void)state;
    static const char nul[] = "{\"Rewritten\": \"a\0b\"}", latin[] = "{\"Rewritten\": \"\xe9\"}", half[] = "\xe2\x82";
    const char *why;
    char *got;
    assert_ok(lk_rewrite_reply_json(nul, sizeof nul - 1, "Rewritten", &got, &why));
    assert_null(got);
    assert_ok(lk_rewrite_reply_json(latin, sizeof latin - 1, "Rewritten", &got, &why));
    assert_null(got);
    assert_ok(lk_rewrite_reply_text(nul, sizeof nul - 1, &got, &why));
    assert_null(got);
    assert_ok(lk_rewrite_reply_text(half, 2, &got, &why));
    assert_null(got);
}

/* The top bytes of splitmix64, as the script draws them. */
static void draw_picture(const cJSON *size, struct lk_image *out) {
    const int width = cJSON_GetArrayItem(size, 0)->valueint, height = cJSON_GetArrayItem(size, 1)->valueint;
    const int channels = cJSON_GetArrayItem(size, 2)->valueint;
    assert_ok(lk_image_new(out, width, height, channels));
    uint64_t x = (uint64_t)width * 70000 + (uint64_t)height;
    for (size_t i = 0; i < (size_t)width * (size_t)height * (size_t)channels; i++) {
        uint64_t z = x += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        out->pixels[i] = (uint8_t)((z ^ (z >> 31)) >> 56);
    }
}

static int draw_pictures(const cJSON *sizes, struct lk_image *out) {
    const cJSON *size;
    int n = 0;
    cJSON_ArrayForEach(size, sizes) draw_picture(size, &out[n++]);
    return n;
}

static void pictures_are_those_that_the_authors_models_see(void **state) {
    (void)state;
    const cJSON *item;
    int n_cases = 0;
    cJSON_ArrayForEach(item, list("pictures")) {
        struct lk_image images[4] = {0}, out;
        const cJSON *sizes = cJSON_GetObjectItemCaseSensitive(item, "sizes");
        const int n = draw_pictures(sizes, images);
        assert_ok(strcmp(text_of(item, "style"), "qwen") ? lk_rewrite_picture_flux2(images, n, &out)
                                                         : lk_rewrite_picture_qwen(&images[0], &out));
        const struct lk_image *seen = out.pixels ? &out : &images[0];
        char sha256[65], *printed = cJSON_PrintUnformatted(sizes);
        lk_sha256(seen->pixels, (size_t)seen->width * (size_t)seen->height * (size_t)seen->channels, sha256);
        if (seen->width != number_of(item, "width") || seen->height != number_of(item, "height") ||
            seen->channels != number_of(item, "channels") || strcmp(sha256, text_of(item, "sha256")))
            fail_msg("%s %s: expected %d x %d of other bytes, got %d x %d", text_of(item, "style"), printed,
                     number_of(item, "width"), number_of(item, "height"), seen->width, seen->height);
        cJSON_free(printed);
        lk_image_free(&out);
        for (int i = 0; i < n; i++) lk_image_free(&images[i]);
        n_cases++;
    }
    assert_true(n_cases >= 20);
}

/* A model that is asked as the rewriter asks it, for fewer tokens; what it was asked is compared. */
struct asked {
    struct lk_chat *chat;
    struct lk_device *dev;
    struct lk_token_bytes tokens;
    const cJSON *expected;
};

static enum lk_code ask(void *context, const struct lk_chat_question *questions, int n, int n_slots,
                        enum lk_code (*tick)(void), struct lk_chat_answer *answers) {
    const struct asked *a = context;
    struct lk_chat_question question = questions[0];
    struct chat_prompt prompt;
    struct lk_text ids = {0};
    char sha256[65];
    assert_int_equal(n, 1);
    assert_int_equal(question.request.generation.max_new_tokens, 512);
    assert_false(question.request.generation.do_sample);
    assert_ok(lk_chat_prompt_make(&prompt, a->chat, &question.request));
    for (int64_t i = 0; i < prompt.n_ids; i++) lk_text_add(&ids, "%s%d", i ? "," : "[", prompt.ids[i]);
    lk_text_add(&ids, "]");
    lk_sha256(ids.bytes, ids.n, sha256);
    assert_int_equal(prompt.n_ids, number_of(a->expected, "n_ids"));
    assert_string_equal(sha256, text_of(a->expected, "ids_sha256"));
    lk_text_free(&ids);
    lk_chat_prompt_free(&prompt);
    question.request.generation.max_new_tokens = N_TOKENS;
    LK_TRY(lk_chat_ask(a->chat, a->dev, &a->tokens, &question, 1, n_slots, tick, answers));
    answers[0].stopped = true; /* as if that were all */
    return LK_OK;
}

static enum lk_code check(void *context, const char *text) {
    (void)context;
    (void)text;
    return LK_OK;
}

static void chats_are_those_of_the_original(void **state) {
    (void)state;
    const cJSON *item;
    int n_cases = 0;
    cJSON_ArrayForEach(item, list("chats")) {
        struct asked a = {.expected = item};
        struct lk_image images[4] = {0};
        struct lk_chat_request request;
        char folder[128];
        const bool flux2 = !strncmp(text_of(item, "model"), "flux2", 5);
        snprintf(folder, sizeof folder, "golden/data/%s/checkpoint", text_of(item, "model"));
        assert_ok(lk_device_cpu_create(2, &a.dev));
        assert_ok(lk_chat_open(&a.chat, folder, LK_F32));
        assert_ok(lk_chat_tokens(a.chat, &a.tokens));
        lk_chat_request_init(&request, a.chat);
        struct lk_rewriter rewriter = {.ask = ask, .check = check, .context = &a, .n_slots = 1};
        rewriter.generation = request.generation;
        rewriter.texts =
            (struct lk_rewrite_texts){.system = "You rewrite.",
                                      .system_pictures = flux2 ? "You see." : NULL,
                                      .user = flux2 ? "{prompt}" : "Rules: be {short}.\n\nUser: {prompt}\n\nNew:"};
        struct lk_rewrite job = {.images = images, .prompt = text_of(item, "prompt")};
        job.n_images = draw_pictures(cJSON_GetObjectItemCaseSensitive(item, "sizes"), images);
        assert_ok(lk_rewrite(&rewriter, &job, 1, NULL));
        if (!job.text) fail_msg("%s %s: %s", text_of(item, "model"), job.prompt, job.error);
        const char *expected = text_of(item, "text");
        if (flux2) {
            assert_string_equal(job.text, expected);
        } else { /* what the model said, before spaces are cleaned */
            assert_string_equal(job.tries[0].reply, expected);
        }
        for (int i = 0; i < job.n_images; i++) lk_image_free(&images[i]);
        lk_rewrite_free(&job);
        lk_token_bytes_free(&a.tokens);
        lk_chat_close(a.chat);
        lk_device_free(a.dev);
        n_cases++;
    }
    assert_int_equal(n_cases, 10);
}

int main(void) {
    char *text;
    size_t n;
    if (lk_read_file(DATA, 1 << 24, &text, &n)) return 1;
    golden = cJSON_ParseWithLength(text, n);
    lk_free(text);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_read_as_the_authors_read_them),
        cmocka_unit_test(bytes_that_are_no_text_are_no_prompt),
        cmocka_unit_test(pictures_are_those_that_the_authors_models_see),
        cmocka_unit_test(chats_are_those_of_the_original),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cJSON_Delete(golden);
    return failed;
}
