/* Step1X-Edit's prompts as tokens against the functions of its authors' fork: golden/data/step1x_prompts.txt, made by
 * golden/generate_preprocess.py with the small tokenizer of data/tokenizer/qwen.json. */
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "models/step1x/prompt.h"

#define HASH_START 0x811c9dc5u

static char *fragments[200];
static int n_fragments;

static void from_hex(const char *hex, char *out) {
    for (; hex[0] && hex[1]; hex += 2) {
        unsigned byte;
        sscanf(hex, "%2x", &byte);
        *out++ = (char)byte;
    }
    *out = 0;
}

/* step1x_prompt() of the generator. */
static void make_prompt(int index, char *out) {
    uint64_t state = (uint64_t)index;
    *out = 0;
    for (uint64_t n = 1 + test_random(&state) % 14; n; n--) {
        out = stpcpy(out, fragments[test_random(&state) % (uint64_t)n_fragments]);
        if (test_random(&state) % 2) out = stpcpy(out, " ");
    }
}

static void check_prompt(const struct lk_tokenizer *tokenizer, const char *line) {
    int index, n_image_tokens;
    unsigned expected, hash = HASH_START;
    char text[4096];
    assert_int_equal(sscanf(line, "prompt %d %d %u", &index, &n_image_tokens, &expected), 3);
    make_prompt(index, text);
    int32_t *ids;
    bool *quoted;
    int64_t n;
    assert_ok(lk_step1x_tokenize(tokenizer, text, n_image_tokens, &ids, &quoted, &n));
    for (int64_t i = 0; i < n; i++) hash = (hash ^ (2 * (uint32_t)ids[i] + quoted[i])) * 0x01000193u;
    if (hash != expected) fail_msg("%s: hash %u: %s", line, hash, text);
    lk_free(ids);
    lk_free(quoted);
}

static void check_vector(const struct lk_tokenizer *tokenizer, char *line) {
    char text[4096], *rest;
    strtok_r(line, " ", &rest);
    const char *hex = strtok_r(NULL, " ", &rest);
    from_hex(hex[0] == '-' ? "" : hex, text);
    int64_t n_image_tokens = atoi(strtok_r(NULL, " ", &rest)), n, i = 0;
    int32_t *ids;
    bool *quoted;
    assert_ok(lk_step1x_tokenize(tokenizer, text, n_image_tokens, &ids, &quoted, &n));
    for (char *id; (id = strtok_r(NULL, " ", &rest)); i++)
        if (i >= n || ids[i] != atoi(id) || quoted[i] != !!strchr(id, 'q'))
            fail_msg("\"%s\": id %lld differs", text, (long long)i);
    assert_int_equal(i, n);
    lk_free(ids);
    lk_free(quoted);
}

static void equal_to_the_reference(void **state) {
    int n_prompts = 0, n_vectors = 0;
    int64_t live = lk_alloc_live();
    char *lines = test_read("golden/data/step1x_prompts.txt", NULL), *rest = lines;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        if (!strncmp(line, "fragment ", 9)) {
            fragments[n_fragments] = malloc(strlen(line));
            from_hex(line + 9, fragments[n_fragments++]);
        } else if (!strncmp(line, "prompt ", 7)) {
            check_prompt(*state, line);
            n_prompts++;
        } else if (!strncmp(line, "vector ", 7)) {
            check_vector(*state, line);
            n_vectors++;
        } else {
            assert_true(line[0] == '#');
        }
    }
    free(lines);
    while (n_fragments) free(fragments[--n_fragments]);
    assert_true(n_prompts >= 1000 && n_vectors >= 20);
    assert_int_equal(lk_alloc_live(), live);
}

static void prompts_that_are_refused(void **state) {
    int32_t *ids;
    bool *quoted;
    int64_t n;
    assert_fails(lk_step1x_tokenize(*state, "a \xff", 1, &ids, &quoted, &n), LK_E_PROMPT, "byte 2");
    assert_fails(lk_step1x_tokenize(*state, "“a\xe2\x80", 1, &ids, &quoted, &n), LK_E_PROMPT, "byte 4");
    assert_fails(lk_step1x_tokenize(*state, "a <|image_pad|>", 1, &ids, &quoted, &n), LK_E_PROMPT, "image token");
    assert_fails(lk_step1x_tokenize(*state, "“<|vision_start|><|video_pad|>", 1, &ids, &quoted, &n), LK_E_PROMPT,
                 "video_pad");
    char *much = malloc((2u << 20) + 1);
    memset(much, '"', 2u << 20);
    much[2u << 20] = 0;
    assert_fails(lk_step1x_tokenize(*state, much, 1, &ids, &quoted, &n), LK_E_PROMPT, "at most");
    free(much);
    struct lk_tokenizer *other;
    assert_ok(lk_tokenizer_open(&other, "golden/data/tokenizer/mistral.json"));
    assert_fails(lk_step1x_tokenize(other, "a", 1, &ids, &quoted, &n), LK_E_TOKENIZER, "<|image_pad|>");
    assert_null(ids);
    assert_null(quoted);
    lk_tokenizer_free(other);
}

static void memory_may_be_out(void **state) {
    static const char prompt[] = "a \"bc\" “d” e";
    int64_t live = lk_alloc_live(), n_allocations = lk_alloc_count(), n, n_expected;
    int32_t *ids, *expected;
    bool *quoted;
    assert_ok(lk_step1x_tokenize(*state, prompt, 3, &expected, &quoted, &n_expected));
    n_allocations = lk_alloc_count() - n_allocations;
    lk_free(quoted);
    int n_refused = 0;
    for (int64_t i = 1; i <= n_allocations; i++) {
        lk_alloc_fail_at(i);
        enum lk_code rc = lk_step1x_tokenize(*state, prompt, 3, &ids, &quoted, &n);
        lk_alloc_fail_at(0);
        /* A stack for a pattern's machine code may be done without. */
        assert_true(rc == LK_E_NOMEM || (!rc && n == n_expected && !memcmp(ids, expected, (size_t)n * sizeof *ids)));
        n_refused += rc == LK_E_NOMEM;
        lk_free(ids);
        lk_free(quoted);
        assert_int_equal(lk_alloc_live(), live + 1);
    }
    assert_true(n_refused > 20);
    lk_free(expected);
}

static int open_tokenizer(void **state) {
    struct lk_tokenizer *tokenizer;
    assert_ok(lk_tokenizer_open(&tokenizer, "golden/data/tokenizer/qwen.json"));
    *state = tokenizer;
    return 0;
}

static int close_tokenizer(void **state) {
    lk_tokenizer_free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_the_reference),
        cmocka_unit_test(prompts_that_are_refused),
        cmocka_unit_test(memory_may_be_out),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
