/* Chat strings, written out as the processor's template renders them, and text that arrives in pieces. */
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "models/text/chat.h"
#include "models/text/text_stream.h"

#define SYSTEM "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
#define IMAGE  "<|vision_start|><|image_pad|><|vision_end|>"
#define OPEN   "<|im_start|>assistant\n"

static void expect_rendered(const struct lk_chat_message *messages, int n, bool number, const char *expected) {
    char *text;
    assert_ok(lk_chat_string_qwen(messages, n, number, &text));
    assert_string_equal(text, expected);
    lk_free(text);
}

static void strings_are_those_of_the_template(void **state) {
    (void)state;
    const struct lk_image photo = {0};
    const struct lk_chat_part text = {.text = "Hi"}, image = {.image = &photo}, system = {.text = "Judge."};
    const struct lk_chat_part two[] = {image, image, {.text = "Who?"}}, first[] = {{.text = "Who?"}, image, image};
    const struct lk_chat_part name = {.text = "Ann."}, one[] = {image, {.text = "And this?\n"}};
    const struct lk_chat_part between[] = {{.text = "A:"}, image, {.text = "B:"}, image, {.text = "Same?"}};
    const struct lk_chat_message hi = {"user", &text, 1};
    expect_rendered(&hi, 1, false, SYSTEM "<|im_start|>user\nHi<|im_end|>\n" OPEN);
    const struct lk_chat_message talk[] = {{"user", two, 3}, {"assistant", &name, 1}, {"user", one, 2}};
    expect_rendered(talk, 3, true,
                    SYSTEM "<|im_start|>user\nPicture 1: " IMAGE "Picture 2: " IMAGE
                           "Who?<|im_end|>\n<|im_start|>assistant\nAnn.<|im_end|>\n<|im_start|>user\nPicture 3: " IMAGE
                           "And this?\n<|im_end|>\n" OPEN);
    expect_rendered(talk, 1, false, SYSTEM "<|im_start|>user\n" IMAGE IMAGE "Who?<|im_end|>\n" OPEN);
    const struct lk_chat_message judge[] = {{"system", &system, 1}, {"user", &image, 1}};
    expect_rendered(judge, 2, false,
                    "<|im_start|>system\nJudge.<|im_end|>\n<|im_start|>user\n" IMAGE "<|im_end|>\n" OPEN);
    const struct lk_chat_message text_first = {"user", first, 3}, mixed = {"user", between, 5};
    expect_rendered(&mixed, 1, false, SYSTEM "<|im_start|>user\nA:" IMAGE "B:" IMAGE "Same?<|im_end|>\n" OPEN);
    expect_rendered(&text_first, 1, false, SYSTEM "<|im_start|>user\nWho?" IMAGE IMAGE "<|im_end|>\n" OPEN);
    expect_rendered(NULL, 0, false, OPEN);
}

static void other_roles_are_refused(void **state) {
    (void)state;
    char *text;
    const struct lk_chat_part part = {.text = "a"};
    const struct lk_chat_message messages[] = {{"user", &part, 1}, {"user\n", &part, 1}};
    assert_fails(lk_chat_string_qwen(messages, 2, false, &text), LK_E_USAGE, "message 2: expected role");
    assert_null(text);
    assert_fails(lk_chat_string_mistral(messages, 2, false, &text), LK_E_USAGE, "message 2: expected role");
    assert_null(text);
}

/* The bytes in pieces of every length give this text. */
static void expect_text(const char *bytes, size_t n, const char *expected, size_t n_expected) {
    for (size_t piece = 1; piece <= n; piece++) {
        struct lk_text_stream s = {0};
        for (size_t at = 0; at < n; at += piece)
            assert_ok(lk_text_stream_add(&s, bytes + at, n - at < piece ? n - at : piece));
        assert_ok(lk_text_stream_end(&s));
        assert_int_equal(s.text.n, n_expected);
        assert_memory_equal(s.text.bytes, expected, n_expected + 1);
        lk_text_free(&s.text);
    }
}
#define TEXT(bytes, expected) expect_text(bytes, sizeof(bytes) - 1, expected, sizeof(expected) - 1)
#define X                     "\xef\xbf\xbd"

static void bytes_become_whole_characters(void **state) {
    (void)state;
    TEXT("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82z", "a\u00e9\u20ac\U0001f642z");
    TEXT("a\0b", "a\0b");
    TEXT("\x80", X);
    TEXT("\xff\xfe", X X);
    TEXT("\xe2\x82", X);
    TEXT("\xe2\x82Z", X "Z");
    TEXT("\xe2\x82\xe2\x82\xac", X "\u20ac");
    TEXT("\xf0\x9f\x99", X);
    TEXT("\xf0\x9f\x99\xf0\x9f\x99\x82", X "\U0001f642");
    TEXT("\xc0\xaf", X X);
    TEXT("\xe0\x9f\xbf", X X X);
    TEXT("\xed\xa0\x80", X X X);
    TEXT("\xf4\x90\x80\x80", X X X X);
    TEXT("\xf5\x80\x80\x80", X X X X);
}

static void unfinished_characters_are_held_back(void **state) {
    (void)state;
    struct lk_text_stream s = {0};
    assert_ok(lk_text_stream_add(&s, "ab\xf0\x9f", 4));
    assert_string_equal(s.text.bytes, "ab");
    assert_ok(lk_text_stream_add(&s, "\x99", 1));
    assert_string_equal(s.text.bytes, "ab");
    assert_ok(lk_text_stream_add(&s, "\x82", 1));
    assert_string_equal(s.text.bytes, "ab\U0001f642");
    lk_text_free(&s.text);
    assert_ok(lk_text_stream_add(&s, "", 0));
    assert_string_equal(s.text.bytes, "");
    lk_text_free(&s.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_those_of_the_template),
        cmocka_unit_test(other_roles_are_refused),
        cmocka_unit_test(bytes_become_whole_characters),
        cmocka_unit_test(unfinished_characters_are_held_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
