/* Embeddings of prompts normalised, against scikit-learn (generate_embed_norm.py): columns have mean 0, tokens their
 * norms. */
#include <math.h>

#include "engine/base/digest.h"
#include "models/embeds.h"
#include "tests/common/test.h"
#include "weights/safetensors.h"

enum { N = 9, WIDTH = 6 };

static void make_rows(double rows[N * WIDTH], double norms[N]) {
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int k = 0; k < WIDTH; k++) {
            double v = k == 4 ? 2.5 : ((i * 37 + k * 101 + i * i * k * 13) % 97 - 40) / 8.0;
            rows[i * WIDTH + k] = v;
            sum += v * v;
        }
        norms[i] = sqrt(sum);
    }
}

static void as_scikit_learn(void **state) {
    (void)state;
    size_t n_bytes;
    char *text = test_read("golden/data/embed_norm.txt", &n_bytes), *at = strchr(text, '\n');
    double rows[N * WIDTH], norms[N];
    for (enum lk_embeds_norm how = LK_EMBEDS_CENTER; how <= LK_EMBEDS_ZSCORE; how++) {
        make_rows(rows, norms);
        assert_ok(lk_rows_normalize(rows, N, WIDTH, how));
        for (int k = 0; k < WIDTH; k++) {
            double mean = 0, square = 0;
            for (int i = 0; i < N; i++) mean += rows[i * WIDTH + k] / N;
            for (int i = 0; i < N; i++) square += rows[i * WIDTH + k] * rows[i * WIDTH + k] / N;
            assert_true(fabs(mean) < 1e-12);
            if (how == LK_EMBEDS_ZSCORE && k != 4) assert_true(fabs(square - 1) < 1e-12);
        }
        lk_rows_restore(rows, norms, N, WIDTH);
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int k = 0; k < WIDTH; k++) {
                double expected = strtod(at, &at);
                if (fabs(rows[i * WIDTH + k] - expected) > 1e-12)
                    fail_msg("token %d, channel %d: %.17g for %.17g", i, k, rows[i * WIDTH + k], expected);
                sum += rows[i * WIDTH + k] * rows[i * WIDTH + k];
            }
            assert_true(fabs(sqrt(sum) - norms[i]) < 1e-12);
        }
    }
    free(text);
}

enum { PADS = 2, FIRST = 5 }; /* of the first prompt */
static char path[1024], to[1024];

static const char *list_name(int i) {
    static char name[65];
    memset(name, i ? 'a' : 'b', 64);
    return name;
}

/* Two prompts under made-up names, one of them with padding: the rows from above. pads: as the file says it. */
static void write_prompts(const char *isa, const char *pads) {
    static float values[(N + PADS) * WIDTH];
    double rows[N * WIDTH], norms[N];
    char key[2][65], sha256[2][65], metadata[1000];
    make_rows(rows, norms);
    for (int i = 0; i < PADS * WIDTH; i++) values[i] = (float)(1000 + i);
    for (int i = 0; i < N * WIDTH; i++) values[PADS * WIDTH + i] = (float)rows[i];
    struct lk_st_named list[2];
    for (int i = 0; i < 2; i++) {
        float *at = values + i * (PADS + FIRST) * WIDTH;
        strcpy(key[i], list_name(i));
        list[i] = (struct lk_st_named){key[i], LK_TENSOR(at, LK_F32, i ? N - FIRST : PADS + FIRST, WIDTH)};
        lk_sha256(at, lk_tensor_bytes(&list[i].tensor), sha256[i]);
    }
    snprintf(metadata, sizeof metadata,
             "{\"likeness\":\"" LK_EMBEDS_FORMAT "\",\"text_encoder\":\"x\",\"dtype\":\"f32\",\"isa\":\"%s\","
             "\"%s\":\"%s\",\"%s.padding\":\"%s\",\"%s\":\"%s\"}",
             isa, key[0], sha256[0], key[0], pads, key[1], sha256[1]);
    snprintf(path, sizeof path, "%s", test_path("prompts.safetensors"));
    snprintf(to, sizeof to, "%s", test_path("normalised.safetensors"));
    assert_ok(lk_safetensors_write(path, list, 2, metadata));
}

static void files(void **state) {
    (void)state;
    size_t n_bytes;
    char *text = test_read("golden/data/embed_norm.txt", &n_bytes), *at = strchr(text, '\n');
    for (enum lk_embeds_norm how = LK_EMBEDS_CENTER; how <= LK_EMBEDS_ZSCORE; how++) {
        struct lk_safetensors st;
        write_prompts("avx2", "2");
        assert_ok(lk_embeds_normalize(path, to, how));
        assert_ok(lk_safetensors_open(&st, to));
        assert_int_equal(st.n_tensors, 2);
        assert_non_null(strstr(st.metadata_json, how == LK_EMBEDS_CENTER ? "avx2, center" : "avx2, zscore"));
        const float *b = st.tensors[1].tensor.data, *a = st.tensors[0].tensor.data;
        for (int i = 0; i < PADS * WIDTH; i++) assert_true(b[i] == (float)(1000 + i));
        for (int i = 0; i < N * WIDTH; i++) {
            float got = i < FIRST * WIDTH ? b[PADS * WIDTH + i] : a[i - FIRST * WIDTH];
            assert_true(fabs(got - strtod(at, &at)) < 1e-6);
        }
        lk_safetensors_close(&st);
    }
    free(text);
    char *whole, *copy;
    size_t n_copy;
    assert_ok(lk_embeds_normalize(path, to, LK_EMBEDS_NONE));
    whole = test_read(path, &n_bytes);
    copy = test_read(to, &n_copy);
    assert_true(n_bytes == n_copy && !memcmp(whole, copy, n_copy));
    whole[n_bytes - 3] ^= 1;
    test_write(path, whole, n_bytes);
    assert_fails(lk_embeds_normalize(path, to, LK_EMBEDS_CENTER), LK_E_INPUT, "SHA-256");
    free(whole);
    free(copy);
    static const char *const pads[] = {"8", "-1", "x"};
    for (int i = 0; i < 3; i++) {
        write_prompts("avx2", pads[i]);
        assert_fails(lk_embeds_normalize(path, to, LK_EMBEDS_CENTER), LK_E_METADATA, "a number of rows");
    }
    static const char *const behind[] = {"9,0,0", "0,6,0", "-1,0,0", "1,1", "1,1,6", "1,1,-1"};
    for (int i = 0; i < 6; i++) {
        char both[128];
        snprintf(both, sizeof both, "2\",\"%.64s.behind\":\"%s", list_name(0), behind[i]);
        write_prompts("avx2", both);
        assert_fails(lk_embeds_normalize(path, to, LK_EMBEDS_CENTER), LK_E_METADATA, "two numbers of rows and one");
    }
    static const char *const isas[] = {"avx2, center", "avx2\\\"", "", "avx2_of_a_machine_to_come"};
    for (int i = 0; i < 4; i++) {
        write_prompts(isas[i], "2");
        assert_fails(lk_embeds_normalize(path, to, LK_EMBEDS_CENTER), LK_E_METADATA, "as `embed` writes them");
    }
}

static enum lk_code normalise(void) { return lk_embeds_normalize(path, to, LK_EMBEDS_ZSCORE); }

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    write_prompts("avx2", "2");
    test_every_allocation(normalise, 10);
}

/* One token is all of its mean: nothing is left of it, and nothing is made of that. */
static void one_token(void **state) {
    (void)state;
    double row[3] = {1, -2, 4};
    const double norm = sqrt(21);
    assert_ok(lk_rows_normalize(row, 1, 3, LK_EMBEDS_ZSCORE));
    lk_rows_restore(row, &norm, 1, 3);
    for (int k = 0; k < 3; k++) assert_true(row[k] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_scikit_learn), cmocka_unit_test(files),
                                       cmocka_unit_test(no_memory_leaves_nothing), cmocka_unit_test(one_token)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
