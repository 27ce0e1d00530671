/* T1: ids equal to those of Hugging Face tokenizers (data/tokenizer, made by generate_tokenizer.py): 10,000 prompts on
 * each of two small tokenizers, and what every part of a tokenizer.json does, all code points included. */
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/unicode.h"

#define N_PROMPTS         10000
#define N_VARIANT_PROMPTS 250
#define HASH_START        0x811c9dc5u

static char *fragments_text, *fragments[2000];
static size_t n_fragments;

/* As in generate_tokenizer.py. */
static const uint32_t ranges[][2] = {
    {0x01, 0x7f},       {0x80, 0x24f},      {0x250, 0x36f},     {0x370, 0x58f},     {0x590, 0x8ff},
    {0x900, 0x109f},    {0x10a0, 0x1fff},   {0x2000, 0x206f},   {0x2070, 0x2bff},   {0x2c00, 0x3134},
    {0x3130, 0x9fff},   {0xa000, 0xabff},   {0xac00, 0xd7ff},   {0xe000, 0xffff},   {0x10000, 0x16fff},
    {0x17000, 0x1bfff}, {0x1cc00, 0x1e0ff}, {0x1e000, 0x1faff}, {0x20000, 0x323af}, {0xe0000, 0x10ffff},
};
static const uint32_t spaces[] = {9,      10,     11,     12,     13,     32,     0x85,   0xa0,
                                  0x1680, 0x180e, 0x2002, 0x2009, 0x200b, 0x2028, 0x202f, 0x3000};
#define LENGTH(a) (sizeof(a) / sizeof *(a))

static size_t make_prompt(uint64_t index, char *out) {
    uint64_t state = index;
    size_t n = 0;
    for (uint64_t parts = 1 + test_random(&state) % 12; parts; parts--) {
        uint64_t kind = test_random(&state) % 8;
        if (kind == 6) {
            const uint32_t *range = ranges[test_random(&state) % LENGTH(ranges)];
            for (uint64_t k = 1 + test_random(&state) % 6; k; k--)
                n += lk_utf8_encode(range[0] + (uint32_t)(test_random(&state) % (range[1] - range[0] + 1)), out + n);
        } else if (kind == 7) {
            uint32_t space = spaces[test_random(&state) % LENGTH(spaces)];
            for (uint64_t k = 1 + test_random(&state) % 5; k; k--) n += lk_utf8_encode(space, out + n);
        } else {
            const char *fragment = fragments[test_random(&state) % n_fragments];
            memcpy(out + n, fragment, strlen(fragment));
            n += strlen(fragment);
            if (test_random(&state) % 2) out[n++] = ' ';
        }
    }
    return n;
}

static uint32_t hash_step(uint32_t hash, uint32_t number) { return (hash ^ number) * 0x01000193u; }

static uint32_t hash_ids(const struct lk_tokenizer *tokenizer, const char *text, size_t length, uint32_t hash) {
    int32_t *ids;
    size_t n;
    assert_ok(lk_tokenizer_encode(tokenizer, text, length, &ids, &n));
    for (size_t i = 0; i < n; i++) hash = hash_step(hash, (uint32_t)ids[i]);
    lk_free(ids);
    return hash;
}

static void check_prompts(const char *name) {
    char path[128], text[8192];
    struct lk_tokenizer *tokenizer;
    size_t bytes;
    int n_wrong = 0, first = -1;
    snprintf(path, sizeof path, "golden/data/tokenizer/%s.json", name);
    assert_ok(lk_tokenizer_open(&tokenizer, path));
    snprintf(path, sizeof path, "golden/data/tokenizer/%s.hashes", name);
    char *expected = test_read(path, &bytes);
    assert_int_equal(bytes, 4 * N_PROMPTS);
    for (int i = 0; i < N_PROMPTS; i++) {
        uint32_t hash;
        memcpy(&hash, expected + 4 * i, 4);
        size_t n = make_prompt((uint64_t)i, text);
        if (hash_ids(tokenizer, text, n, HASH_START) != hash && !n_wrong++) first = i;
    }
    free(expected);
    lk_tokenizer_free(tokenizer);
    if (n_wrong) fail_msg("%s: %d of %d prompts differ, the first is %d", name, n_wrong, N_PROMPTS, first);
}

/* The prompts themselves are the generator's: versions.json holds a hash of all their bytes. */
static void prompts_are_those_of_the_generator(void **state) {
    (void)state;
    uint32_t hash = HASH_START;
    char text[8192], wanted[64];
    for (uint64_t i = 0; i < N_PROMPTS; i++) {
        size_t n = make_prompt(i, text);
        for (size_t k = 0; k < n; k++) hash = hash_step(hash, (unsigned char)text[k]);
    }
    char *versions = test_read("golden/data/tokenizer/versions.json", NULL);
    snprintf(wanted, sizeof wanted, "\"prompt_bytes_hash\": %u\n", hash);
    assert_non_null(strstr(versions, wanted));
    free(versions);
}

static void ids_of_prompts_mistral(void **state) {
    (void)state;
    check_prompts("mistral");
}

static void ids_of_prompts_qwen(void **state) {
    (void)state;
    check_prompts("qwen");
}

static size_t from_hex(const char *hex, char *out) {
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        sscanf(hex + 2 * i, "%2x", &byte);
        out[i] = (char)byte;
    }
    return n;
}

/* Whole id lists, so that a difference can be read. */
static void ids_of_vectors(void **state) {
    (void)state;
    char *file = test_read("golden/data/tokenizer/vectors.txt", NULL), *lines, *fields, text[8192];
    int n_checked = 0;
    for (char *line = strtok_r(file, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines), n_checked++) {
        char path[128];
        struct lk_tokenizer *tokenizer;
        snprintf(path, sizeof path, "golden/data/tokenizer/%s.json", strtok_r(line, "\t", &fields));
        size_t length = from_hex(strtok_r(NULL, "\t", &fields), text), n;
        char *number = fields;
        int32_t *ids;
        assert_ok(lk_tokenizer_open(&tokenizer, path));
        assert_ok(lk_tokenizer_encode(tokenizer, text, length, &ids, &n));
        for (size_t i = 0; i < n; i++) {
            if (ids[i] != strtol(number, &number, 10)) fail_msg("%s: %.*s: id %zu", path, (int)length, text, i);
        }
        assert_string_equal(number, "");
        lk_free(ids);
        lk_tokenizer_free(tokenizer);
    }
    assert_true(n_checked > 80);
    free(file);
}

/* One text of a variant: a block of 1024 code points, plain or each among others. */
static size_t code_point_text(const char *kind, uint32_t *at, char *out) {
    size_t n = 0;
    for (int k = 0; k < 1024 && *at < 0x110000; k++, ++*at) {
        if (*at == 0xd800) *at = 0xe000;
        char c[5] = {0};
        lk_utf8_encode(*at, c);
        if (!strcmp(kind, "code points")) n += (size_t)sprintf(out + n, "%s", c);
        if (!strcmp(kind, "words")) n += (size_t)sprintf(out + n, "%sWord;Word%s;", c, c);
        if (!strcmp(kind, "marks")) n += (size_t)sprintf(out + n, "a%s\u0334o\u0323%se\u0345%s\u0307", c, c, c);
    }
    return n;
}

static uint32_t hash_variant(const struct lk_tokenizer *tokenizer, const char *kind) {
    static char text[64 << 10];
    uint32_t hash = HASH_START;
    if (!strcmp(kind, "prompts")) {
        for (uint64_t i = 0; i < N_VARIANT_PROMPTS; i++) {
            size_t n = make_prompt(i, text);
            hash = hash_step(hash_ids(tokenizer, text, n, hash), UINT32_MAX);
        }
        return hash;
    }
    for (uint32_t at = 1; at < 0x110000;) {
        size_t n = code_point_text(kind, &at, text);
        hash = hash_step(hash_ids(tokenizer, text, n, hash), UINT32_MAX);
    }
    return hash;
}

/* Each line of variants.txt is a tokenizer.json without its model: added tokens with every flag, every split behaviour,
 * each general category over all code points, ... */
static void ids_of_variants(void **state) {
    (void)state;
    char *file = test_read("golden/data/tokenizer/variants.txt", NULL), *lines, *fields;
    int n_checked = 0;
    for (char *line = strtok_r(file, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines), n_checked++) {
        char *kind = strtok_r(line, "\t", &fields), *name = strtok_r(NULL, "\t", &fields);
        char *head = strtok_r(NULL, "\t", &fields), path[128];
        snprintf(path, sizeof path, "golden/data/tokenizer/variants.%s.json", name);
        char *model = test_read(path, NULL);
        uint32_t expected = (uint32_t)strtoul(fields, NULL, 10);
        size_t size = strlen(head) + strlen(model) + 32;
        char *json = malloc(size);
        int n = snprintf(json, size, "%.*s, \"model\": %s}", (int)strlen(head) - 1, head, model);
        struct lk_tokenizer *tokenizer;
        assert_ok(lk_tokenizer_parse(&tokenizer, json, (size_t)n, head));
        if (hash_variant(tokenizer, kind) != expected) fail_msg("%s differ with %s (%s)", kind, head, name);
        lk_tokenizer_free(tokenizer);
        free(json);
        free(model);
    }
    assert_true(n_checked > 100);
    free(file);
}

static void ids_by_name(void **state) {
    (void)state;
    struct lk_tokenizer *tokenizer;
    assert_ok(lk_tokenizer_open(&tokenizer, "golden/data/tokenizer/mistral.json"));
    static const struct {
        const char *token;
        int32_t id;
    } known[] = {{"<unk>", 0}, {"<s>", 1}, {"[INST]", 3}, {"[IMG]", 10}, {"<pad>", 11}, {"[/SYSTEM_PROMPT]", 18}};
    for (size_t i = 0; i < LENGTH(known); i++)
        assert_int_equal(lk_tokenizer_id(tokenizer, known[i].token), known[i].id);
    assert_int_equal(lk_tokenizer_id(tokenizer, "no such token"), -1);
    assert_int_equal(lk_tokenizer_id(tokenizer, ""), -1);
    lk_tokenizer_free(tokenizer);
    assert_ok(lk_tokenizer_open(&tokenizer, "golden/data/tokenizer/qwen.json"));
    assert_int_equal(lk_tokenizer_id(tokenizer, "<|file_sep|>"), lk_tokenizer_vocab_size(tokenizer) - 1);
    lk_tokenizer_free(tokenizer);
}

static int read_fragments(void **state) {
    (void)state;
    char *rest;
    fragments_text = test_read("golden/data/tokenizer/fragments.txt", NULL);
    for (char *f = strtok_r(fragments_text, "\x1e", &rest); f; f = strtok_r(NULL, "\x1e", &rest)) {
        fragments[n_fragments++] = f;
    }
    return 0;
}

static int free_fragments(void **state) {
    (void)state;
    free(fragments_text);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_are_those_of_the_generator),
        cmocka_unit_test(ids_of_prompts_mistral),
        cmocka_unit_test(ids_of_prompts_qwen),
        cmocka_unit_test(ids_of_vectors),
        cmocka_unit_test(ids_of_variants),
        cmocka_unit_test(ids_by_name),
    };
    return cmocka_run_group_tests(tests, read_fragments, free_fragments);
}
