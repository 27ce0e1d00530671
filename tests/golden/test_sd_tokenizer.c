/* The 77 ids of prompts by both tokenizers of a Stable Diffusion folder against transformers'
 * (generate_sd_tokenizer.py), and folders that are refused. */
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "models/sd/sd.h"
#include "tests/common/test.h"

#define FOLDER "golden/data/sd/sdxl/checkpoint"

static void compare(const struct lk_sd *m, struct lk_config *line, const char *key, int i, const char *prompt) {
    int64_t expected[LK_SD_IDS];
    int32_t ids[LK_SD_IDS];
    size_t n = 0;
    int n_real, n_cut;
    lk_config_ints(line, key, expected, LK_SD_IDS, &n);
    assert_int_equal(n, LK_SD_IDS);
    assert_ok(lk_tokenizer_encode_clip(m->tokenizers[i], &m->clip_ids[i], prompt, ids, &n_real, &n_cut));
    for (int k = 0; k < LK_SD_IDS; k++)
        if (ids[k] != expected[k])
            fail_msg("%s: \"%s\": id %d: %d, expected %lld", key, prompt, k, (int)ids[k], (long long)expected[k]);
    if (expected[LK_SD_IDS - 2] == m->clip_ids[i].pad) assert_int_equal(n_cut, 0);
    if (!strncmp(prompt, "cat cat cat", 11)) assert_true(n_cut > 100); /* 90 words of more than one id each */
}

static void ids_of_prompts(void **state) {
    (void)state;
    struct lk_sd m = {.n_text = 2};
    char *rest, *text = test_read("golden/data/sd_tokenizer.txt", NULL);
    int n = 0;
    assert_ok(lk_tokenizer_open_clip(&m.tokenizers[0], FOLDER, "tokenizer", &m.clip_ids[0]));
    assert_ok(lk_tokenizer_open_clip(&m.tokenizers[1], FOLDER, "tokenizer_2", &m.clip_ids[1]));
    assert_int_equal(m.clip_ids[0].pad, m.clip_ids[0].eos);
    assert_int_equal(m.clip_ids[1].pad, 0);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), n++) {
        struct lk_config *c;
        const char *prompt = NULL;
        assert_ok(lk_config_parse(&c, line, strlen(line), "line"));
        lk_config_string(c, "prompt", &prompt);
        compare(&m, c, "ids", 0, prompt);
        compare(&m, c, "ids_2", 1, prompt);
        assert_ok(lk_config_close(c));
    }
    assert_true(n > 90);
    for (int i = 0; i < 2; i++) lk_tokenizer_free(m.tokenizers[i]);
    free(text);
}

static void decoded_again(void **state) {
    (void)state;
    struct lk_tokenizer *t;
    struct lk_clip_ids special;
    int32_t *ids;
    size_t n;
    char *bytes;
    static const char text[] = "A Thief, 2 cats", expected[] = "a thief , 2 cats ";
    assert_ok(lk_tokenizer_open_clip(&t, FOLDER, "tokenizer", &special));
    assert_ok(lk_tokenizer_encode(t, text, strlen(text), &ids, &n));
    assert_ok(lk_tokenizer_decode(t, ids, n, true, &bytes, &n));
    assert_string_equal(bytes, expected);
    lk_free(bytes);
    lk_free(ids);
    lk_tokenizer_free(t);
}

static void put(const char *folder, const char *name, const char *text, size_t n) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fwrite(text, 1, n, file) == n);
    assert_int_equal(fclose(file), 0);
}

/* A copy of the tokenizer in which `from` stands as `to` in one of the files. */
static void hostile(const char *name, const char *from, const char *to, enum lk_code code, const char *says) {
    static const char *const names[] = {"vocab.json", "merges.txt", "tokenizer_config.json"};
    char folder[400], parts[450], path[512];
    struct lk_tokenizer *t;
    struct lk_clip_ids special;
    snprintf(folder, sizeof folder, "%s", test_fresh("tokenizer"));
    snprintf(parts, sizeof parts, "%s/tokenizer", folder);
    assert_int_equal(mkdir(parts, 0700), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, FOLDER "/tokenizer/%s", names[i]);
        char *text = test_read(path, NULL), *at = strstr(text, from);
        if (strcmp(names[i], name)) {
            put(parts, names[i], text, strlen(text));
        } else {
            assert_non_null(at);
            char *changed = malloc(strlen(text) + strlen(to) + 1);
            sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
            put(parts, names[i], changed, strlen(changed));
            free(changed);
        }
        free(text);
    }
    assert_fails(lk_tokenizer_open_clip(&t, folder, "tokenizer", &special), code, says);
    assert_null(t);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", parts, names[i]);
        unlink(path);
    }
    rmdir(parts);
    rmdir(folder);
}

static void damaged_folders(void **state) {
    (void)state;
    hostile("merges.txt", "#version: 0.2", "", LK_E_TOKENIZER, "merges.txt: line 1: expected \"#version: 0.2\"");
    hostile("merges.txt", "\nt h\n", "\nt h\r\n", LK_E_TOKENIZER, "two tokens and a bare line feed");
    hostile("merges.txt", "\nt h\n", "\n\n", LK_E_TOKENIZER, "two tokens and a bare line feed");
    hostile("merges.txt", "\nt h\n", "\nt hhhh\n", LK_E_TOKENIZER, "expected a right side that is in the vocabulary");
    hostile("vocab.json", "\"!\": 0", "\"!\": 1", LK_E_TOKENIZER, "each id from 0 to 999 once");
    hostile("vocab.json", "\"!\": 0", "\"!!!!\": 0", LK_E_TOKENIZER, "a token for each of the 256 bytes");
    hostile("vocab.json", "\"!</w>\"", "\"!!!!\"", LK_E_TOKENIZER, "with \"</w>\" behind it");
    hostile("vocab.json", "{", "[", LK_E_JSON, "");
    hostile("tokenizer_config.json", "\"CLIPTokenizer\"", "\"T5Tokenizer\"", LK_E_CONFIG_VALUE, "\"tokenizer_class\"");
    hostile("tokenizer_config.json", "\"<|endoftext|>\"", "\"<|end|>\"", LK_E_TOKENIZER, "no token \"<|end|>\"");
    hostile("tokenizer_config.json", "\"lstrip\": false", "\"lstrip\": true", LK_E_CONFIG_VALUE,
            "\"bos_token.lstrip\"");
    hostile("tokenizer_config.json", "\"do_lower_case\": true", "\"do_lower_case\": false", LK_E_CONFIG_VALUE,
            "\"do_lower_case\"");
    hostile("tokenizer_config.json", "77", "64", LK_E_CONFIG_VALUE, "\"model_max_length\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_prompts),
        cmocka_unit_test(decoded_again),
        cmocka_unit_test(damaged_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
