/* Ids back to text against Hugging Face tokenizers: data/generate/decode.txt (tests/golden/README.md). */
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "models/text/text_stream.h"
#include "models/tokenizer/tokenizer.h"

#define MAX_IDS 64

struct line {
    char tokenizer[16];
    int skip;
    int32_t ids[MAX_IDS];
    size_t n_ids;
    char *text; /* unhexed */
    size_t n;
};

static void read_line(struct line *l, const char *text) {
    static char ids[2048], hex[8192];
    assert_int_equal(sscanf(text, "%15s %d %2047s %8191s", l->tokenizer, &l->skip, ids, hex), 4);
    l->n_ids = 0;
    for (char *rest, *id = strtok_r(ids, ",", &rest); id; id = strtok_r(NULL, ",", &rest)) {
        assert_true(l->n_ids < MAX_IDS);
        l->ids[l->n_ids++] = (int32_t)strtol(id, NULL, 10);
    }
    l->n = strcmp(hex, "-") ? strlen(hex) / 2 : 0;
    l->text = calloc(l->n + 1, 1);
    for (size_t i = 0; i < l->n; i++) l->text[i] = (char)strtol((char[]){hex[2 * i], hex[2 * i + 1], 0}, NULL, 16);
}

static void add(struct lk_text_stream *s, const struct lk_tokenizer *t, const int32_t *ids, size_t n, int skip) {
    char *bytes;
    size_t n_bytes;
    assert_ok(lk_tokenizer_decode(t, ids, n, skip, &bytes, &n_bytes));
    assert_int_equal(bytes[n_bytes], 0);
    assert_ok(lk_text_stream_add(s, bytes, n_bytes));
    lk_free(bytes);
}

static void check_line(const struct lk_tokenizer *t, const struct line *l, const char *shown) {
    struct lk_text_stream whole = {0}, parts = {0};
    add(&whole, t, l->ids, l->n_ids, l->skip);
    for (size_t i = 0; i < l->n_ids; i++) add(&parts, t, &l->ids[i], 1, l->skip);
    assert_ok(lk_text_stream_end(&whole));
    assert_ok(lk_text_stream_end(&parts));
    if (whole.text.n != l->n || memcmp(whole.text.bytes, l->text, l->n))
        fail_msg("%s: got \"%s\"", shown, whole.text.bytes);
    if (parts.text.n != l->n || memcmp(parts.text.bytes, l->text, l->n))
        fail_msg("%s: id by id: \"%s\"", shown, parts.text.bytes);
    lk_text_free(&whole.text);
    lk_text_free(&parts.text);
}

static void texts_are_those_of_tokenizers(void **state) {
    (void)state;
    struct lk_tokenizer *qwen, *mistral;
    assert_ok(lk_tokenizer_open(&qwen, "golden/data/tokenizer/qwen.json"));
    assert_ok(lk_tokenizer_open(&mistral, "golden/data/tokenizer/mistral.json"));
    char *file = test_read("golden/data/generate/decode.txt", NULL);
    int n = 0;
    for (char *rest, *text = strtok_r(file, "\n", &rest); text; text = strtok_r(NULL, "\n", &rest), n++) {
        struct line l;
        read_line(&l, text);
        check_line(strcmp(l.tokenizer, "qwen") ? mistral : qwen, &l, text);
        free(l.text);
    }
    assert_int_equal(n, 120);
    free(file);
    lk_tokenizer_free(qwen);
    lk_tokenizer_free(mistral);
}

static void ids_of_no_token_are_errors(void **state) {
    (void)state;
    struct lk_tokenizer *t;
    char *bytes;
    size_t n;
    assert_ok(lk_tokenizer_open(&t, "golden/data/tokenizer/qwen.json"));
    int32_t size = lk_tokenizer_vocab_size(t);
    const int32_t bad[] = {-1, INT32_MIN, size, INT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(lk_tokenizer_decode(t, (int32_t[]){5, bad[i]}, 2, true, &bytes, &n), LK_E_INPUT, "token id");
        assert_null(bytes);
        assert_false(lk_tokenizer_is_special(t, bad[i]));
    }
    assert_ok(lk_tokenizer_decode(t, NULL, 0, true, &bytes, &n));
    assert_int_equal(n, 0);
    assert_string_equal(bytes, "");
    lk_free(bytes);
    assert_true(lk_tokenizer_is_special(t, lk_tokenizer_id(t, "<|im_end|>")));
    assert_false(lk_tokenizer_is_special(t, lk_tokenizer_id(t, "<tool_call>")));
    assert_false(lk_tokenizer_is_special(t, 5));
    lk_tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_those_of_tokenizers),
        cmocka_unit_test(ids_of_no_token_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
