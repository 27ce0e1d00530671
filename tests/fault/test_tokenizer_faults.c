/* T2 and M1 for the tokenizer: hostile prompts, hostile tokenizer.json files, failing allocations, two threads. */
#include "tests/common/test.h"

#include <pthread.h>

#include "engine/base/alloc.h"
#include "models/tokenizer/bpe.h"
#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/unicode.h"

#define MISTRAL "golden/data/tokenizer/mistral.json"
#define QWEN    "golden/data/tokenizer/qwen.json"

static struct lk_tokenizer *open_file(const char *path) {
    struct lk_tokenizer *tokenizer;
    assert_ok(lk_tokenizer_open(&tokenizer, path));
    return tokenizer;
}

/* --- prompts --- */

static void bad_text_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t length;
        const char *message;
    } cases[] = {
        {"a\0b", 3, "byte 1: expected text, got NUL"},
        {"\0", 1, "byte 0: expected text, got NUL"},
        {"ab\x80", 3, "byte 2: expected UTF-8, got 0x80"},
        {"\xc3", 1, "byte 0: expected UTF-8, got 0xc3"},
        {"\xc3(", 2, "byte 0"},
        {"\xc0\xaf", 2, "byte 0"},             /* overlong */
        {"\xe0\x80\xaf", 3, "byte 0"},         /* overlong */
        {"\xf0\x80\x80\xaf", 4, "byte 0"},     /* overlong */
        {"ok \xed\xa0\x80", 6, "byte 3"},      /* a surrogate */
        {"\xf4\x90\x80\x80", 4, "byte 0"},     /* past U+10FFFF */
        {"\xf8\x88\x80\x80\x80", 5, "byte 0"}, /* five bytes */
        {"\xff\xfe", 2, "byte 0"},
        {"12345678\xe4\xb8", 10, "byte 8"}, /* cut off, behind a whole word of ASCII */
    };
    struct lk_tokenizer *tokenizer = open_file(QWEN);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t *ids;
        size_t n;
        assert_fails(lk_tokenizer_encode(tokenizer, cases[i].text, cases[i].length, &ids, &n), LK_E_PROMPT,
                     cases[i].message);
        assert_null(ids);
        assert_int_equal(n, 0);
    }
    size_t too_long = (16 << 20) + 1;
    char *text = malloc(too_long);
    memset(text, 'a', too_long);
    int32_t *ids;
    size_t n;
    assert_fails(lk_tokenizer_encode(tokenizer, text, too_long, &ids, &n), LK_E_PROMPT, "at most 16777216 bytes");
    free(text);
    lk_tokenizer_free(tokenizer);
}

static void empty_text_has_no_ids(void **state) {
    (void)state;
    struct lk_tokenizer *tokenizer = open_file(MISTRAL);
    int32_t *ids;
    size_t n = 1;
    assert_ok(lk_tokenizer_encode(tokenizer, "", 0, &ids, &n));
    assert_int_equal(n, 0);
    lk_free(ids);
    assert_ok(lk_tokenizer_encode(tokenizer, NULL, 0, &ids, &n));
    assert_int_equal(n, 0);
    lk_free(ids);
    lk_tokenizer_free(tokenizer);
}

static void special_tokens_in_text_are_matched(void **state) {
    (void)state;
    struct lk_tokenizer *tokenizer = open_file(MISTRAL);
    static const char text[] = "</s>[INST][INST][/INST]<s>";
    static const int32_t expected[] = {2, 3, 3, 4, 1};
    int32_t *ids;
    size_t n;
    assert_ok(lk_tokenizer_encode(tokenizer, text, sizeof text - 1, &ids, &n));
    assert_int_equal(n, 5);
    assert_memory_equal(ids, expected, sizeof expected);
    lk_free(ids);
    lk_tokenizer_free(tokenizer);
}

/* Long runs, each the worst case of some step: merging, backtracking over white space, ordering of marks. long.txt
 * holds the reference's hash for each: tokenizer, unit and tail in hexadecimal, repetitions, hash. */
static void a_mebibyte_of_anything_is_quick(void **state) {
    (void)state;
    char *file = test_read("golden/data/tokenizer/long.txt", NULL), *lines;
    int n_checked = 0;
    for (char *line = strtok_r(file, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines), n_checked++) {
        char name[32], path[128], unit[64] = "", tail[64] = "";
        unsigned units[32], tails[32], expected, hash = 0x811c9dc5u;
        int times, n_unit = 0, n_tail = 0;
        assert_int_equal(sscanf(line, "%31s %63s %63s %d %u", name, unit, tail, &times, &expected), 5);
        while (sscanf(unit + 2 * n_unit, "%2x", &units[n_unit]) == 1) n_unit++;
        while (sscanf(tail + 2 * n_tail, "%2x", &tails[n_tail]) == 1) n_tail++;
        size_t length = (size_t)n_unit * (size_t)times + (size_t)n_tail, n;
        char *text = malloc(length);
        for (size_t i = 0; i < length; i++) {
            size_t behind = length - i;
            text[i] = (char)(behind > (size_t)n_tail ? units[i % (size_t)n_unit] : tails[(size_t)n_tail - behind]);
        }
        snprintf(path, sizeof path, "golden/data/tokenizer/%s.json", name);
        struct lk_tokenizer *tokenizer = open_file(path);
        int32_t *ids;
        assert_ok(lk_tokenizer_encode(tokenizer, text, length, &ids, &n));
        for (size_t i = 0; i < n; i++) hash = (hash ^ (uint32_t)ids[i]) * 0x01000193u;
        if (hash != expected) fail_msg("%s", line);
        lk_free(ids);
        free(text);
        lk_tokenizer_free(tokenizer);
    }
    assert_true(n_checked >= 10);
    free(file);
}

/* --- tokenizer.json --- */

/* Sections of a small tokenizer.json. */
enum { ADDED, NORMALIZER, PRE, POST, DECODER, OPTIONS, VOCAB, MERGES, EXTRA, N_SECTIONS };
#define SPLIT(pattern, behavior)                                                                                       \
    "{\"type\":\"Split\",\"pattern\":" pattern ",\"behavior\":" behavior ",\"invert\":false}"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}"
#define REGEX(text)                                                                                                    \
    "{\"type\":\"Sequence\",\"pretokenizers\":[" SPLIT("{\"Regex\":\"" text "\"}", "\"Isolated\"") "," BYTE_LEVEL "]}"
#define TOKEN(id, content)                                                                                             \
    "{\"id\":" id ",\"content\":" content ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"                  \
    "\"normalized\":false,\"special\":true}"

static const char *const plain[N_SECTIONS] = {
    [ADDED] = "[" TOKEN("258", "\"<s>\"") "]",
    [NORMALIZER] = "{\"type\":\"NFC\"}",
    [PRE] = REGEX("\\\\p{L}+"),
    [POST] = "null",
    [DECODER] = "null",
    [OPTIONS] = ("\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":\"\","
                 "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false"),
    [VOCAB] = "\"ab\":256,\"abc\":257",
    [MERGES] = "[[\"a\",\"b\"],[\"ab\",\"c\"]]",
    [EXTRA] = "",
};

/* The 256 bytes have the ids of their value. */
static char *compose(const char *const sections[N_SECTIONS]) {
    size_t size = 8192, n;
    for (int i = 0; i < N_SECTIONS; i++) size += strlen(sections[i]);
    char *json = malloc(size);
    n = (size_t)sprintf(json,
                        "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":%s,"
                        "\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":%s,\"decoder\":%s,%s"
                        "\"model\":{%s,\"vocab\":{",
                        sections[ADDED], sections[NORMALIZER], sections[PRE], sections[POST], sections[DECODER],
                        sections[EXTRA], sections[OPTIONS]);
    for (int byte = 0; byte < 256; byte++) {
        char c[5] = {0};
        uint32_t code = lk_byte_alphabet((unsigned char)byte);
        lk_utf8_encode(code, c);
        n += (size_t)sprintf(json + n, code == '"' || code == '\\' ? "\"\\%s\":%d," : "\"%s\":%d,", c, byte);
    }
    sprintf(json + n, "%s},\"merges\":%s}}", sections[VOCAB], sections[MERGES]);
    return json;
}

static char *compose_with(int section, const char *text) {
    const char *sections[N_SECTIONS];
    memcpy(sections, plain, sizeof sections);
    if (section < N_SECTIONS) sections[section] = text;
    return compose(sections);
}

static const struct hostile {
    int section;
    const char *text;
    enum lk_code code;
    const char *message;
} hostile[] = {
#include "tests/fault/hostile_tokenizers.inc"
};

static void hostile_files_are_refused(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    char *json = compose_with(N_SECTIONS, NULL);
    struct lk_tokenizer *tokenizer;
    assert_ok(lk_tokenizer_parse(&tokenizer, json, strlen(json), "plain"));
    assert_int_equal(lk_tokenizer_vocab_size(tokenizer), 259);
    lk_tokenizer_free(tokenizer);
    free(json);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        json = compose_with(hostile[i].section, hostile[i].text);
        enum lk_code rc = lk_tokenizer_parse(&tokenizer, json, strlen(json), "hostile.json");
        if (rc != hostile[i].code || !strstr(lk_error_text(), hostile[i].message) ||
            (rc && strncmp(lk_error_text(), "hostile.json: ", 14)))
            fail_msg("%s: expected %d and \"%s\", got %d: %s", hostile[i].text, hostile[i].code, hostile[i].message, rc,
                     lk_error_text());
        lk_tokenizer_free(tokenizer);
        free(json);
    }
    assert_int_equal(lk_alloc_live(), live);
}

/* Every prefix of a good file, and every byte of it replaced by each of some others: an answer, and nothing leaks. */
static void damaged_files_are_answered(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    char *json = compose_with(N_SECTIONS, NULL);
    size_t length = strlen(json);
    static const char others[] = {'"', '{', ']', ',', '\\', '0', 'x', 0, (char)0xff};
    struct lk_tokenizer *tokenizer;
    for (size_t i = 0; i < length; i++) {
        char *cut = malloc(i ? i : 1);
        memcpy(cut, json, i);
        assert_int_equal(lk_tokenizer_parse(&tokenizer, cut, i, "cut.json"), LK_E_JSON);
        free(cut);
    }
    for (size_t i = 0; i < length; i += 3) {
        char saved = json[i];
        json[i] = others[i / 3 % sizeof others];
        enum lk_code rc = lk_tokenizer_parse(&tokenizer, json, length, "damaged.json");
        assert_true(!rc || lk_exit_code(rc) == 3);
        lk_tokenizer_free(tokenizer);
        json[i] = saved;
    }
    free(json);
    assert_int_equal(lk_alloc_live(), live);
}

static void missing_files_are_named(void **state) {
    (void)state;
    struct lk_tokenizer *tokenizer;
    assert_fails(lk_tokenizer_open(&tokenizer, test_path("no-tokenizer.json")), LK_E_NOT_FOUND, "no-tokenizer.json");
    assert_null(tokenizer);
}

/* A pattern that backtracks as n^6 must end with an error and not run for years. */
static void patterns_cannot_hang(void **state) {
    (void)state;
    char *json = compose_with(PRE, REGEX("\\\\s*\\\\s*\\\\s*\\\\s*\\\\s*\\\\s*[xy]"));
    struct lk_tokenizer *tokenizer;
    assert_ok(lk_tokenizer_parse(&tokenizer, json, strlen(json), "slow.json"));
    free(json);
    char *text = malloc(5000);
    memset(text, ' ', 5000);
    int32_t *ids;
    size_t n;
    assert_fails(lk_tokenizer_encode(tokenizer, text, 5000, &ids, &n), LK_E_PROMPT, "steps a byte");
    free(text);
    lk_tokenizer_free(tokenizer);
}

/* --- memory, threads --- */

static const char mixed_text[] = "<s>Abc  abcab e\u0301\u0323 \u00e9 12345 \u4e2d\u6587\t\n\U00031350 <s> x";

static enum lk_code parse_and_encode(const char *json, size_t length, int32_t **ids, size_t *n) {
    struct lk_tokenizer *tokenizer;
    *ids = NULL;
    enum lk_code rc = lk_tokenizer_parse(&tokenizer, json, length, "memory.json");
    if (!rc) rc = lk_tokenizer_encode(tokenizer, mixed_text, sizeof mixed_text - 1, ids, n);
    lk_tokenizer_free(tokenizer);
    return rc;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const char *sections[N_SECTIONS];
    memcpy(sections, plain, sizeof sections);
    sections[ADDED] = "[" TOKEN("258", "\"<s>\"") ",{\"id\":259,\"content\":\"e\u0301\",\"single_word\":true,"
                                                  "\"lstrip\":true,\"rstrip\":true,\"normalized\":true,"
                                                  "\"special\":false}]";
    sections[PRE] = "{\"type\":\"Sequence\",\"pretokenizers\":[" SPLIT(
        "{\"Regex\":\"\\\\p{L}+\"}",
        "\"Isolated\"") ",{"
                        "\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true}]}";
    char *json = compose(sections);
    size_t length = strlen(json), n, n_expected;
    int32_t *ids, *expected;
    int64_t live = lk_alloc_live(), made = lk_alloc_count();
    assert_ok(parse_and_encode(json, length, &expected, &n_expected));
    made = lk_alloc_count() - made;
    int n_refused = 0;
    for (int64_t nth = 1; nth <= made; nth++) {
        lk_alloc_fail_at(nth);
        enum lk_code rc = parse_and_encode(json, length, &ids, &n);
        lk_alloc_fail_at(0);
        /* Machine code for a pattern may be done without. */
        assert_true(rc == LK_E_NOMEM || (!rc && n == n_expected && !memcmp(ids, expected, n * sizeof *ids)));
        n_refused += rc == LK_E_NOMEM;
        lk_free(ids);
        assert_int_equal(lk_alloc_live(), live + 1);
    }
    assert_true(n_refused > 20);
    assert_ok(parse_and_encode(json, length, &ids, &n));
    assert_int_equal(n, n_expected);
    assert_memory_equal(ids, expected, n * sizeof *ids);
    lk_free(ids);
    lk_free(expected);
    free(json);
}

struct worker {
    const struct lk_tokenizer *tokenizer;
    uint32_t hash;
    enum lk_code rc;
};

static void *encode_many(void *argument) {
    struct worker *w = argument;
    char text[256];
    for (int i = 0; i < 3000 && !w->rc; i++) {
        int length =
            snprintf(text, sizeof text, "%s %d don't <|im_start|> %c%c", mixed_text, i, 'a' + i % 26, 'A' + i % 7);
        int32_t *ids;
        size_t n;
        if ((w->rc = lk_tokenizer_encode(w->tokenizer, text, (size_t)length, &ids, &n))) break;
        for (size_t k = 0; k < n; k++) w->hash = (w->hash ^ (uint32_t)ids[k]) * 0x01000193u;
        lk_free(ids);
    }
    return NULL;
}

static void threads_share_a_tokenizer(void **state) {
    (void)state;
    struct lk_tokenizer *tokenizer = open_file(QWEN);
    struct worker workers[3] = {{tokenizer, 1, LK_OK}, {tokenizer, 1, LK_OK}, {tokenizer, 1, LK_OK}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, encode_many, &workers[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    encode_many(&workers[2]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(workers[i].rc, LK_OK);
        assert_int_equal(workers[i].hash, workers[2].hash);
    }
    lk_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_text_is_refused),
        cmocka_unit_test(empty_text_has_no_ids),
        cmocka_unit_test(special_tokens_in_text_are_matched),
        cmocka_unit_test(a_mebibyte_of_anything_is_quick),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(damaged_files_are_answered),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(patterns_cannot_hang),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(threads_share_a_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
