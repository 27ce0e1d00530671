/* What the scales and matrices of LoRA files become, bit by bit. */
#include "tests/common/lora_file.h"
#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/text.h"
#include "engine/bf16.h"

/* Of B = 1 in f32, up is s. */
static void assert_scale(struct lora_file *f, const char *scale, float expected) {
    struct lora_model m;
    assert_ok(lora_bind_file(&m, f, scale));
    assert_true(((float *)m.up[0].data)[0] == expected);
    lk_loras_close(m.loras);
}

static void scales(void **state) {
    (void)state;
    float alpha = 2;
    const int64_t big = 7;
    const uint16_t half = 0x4400; /* 4 in f16 */
    struct lora_file f = {.n = 0};
    lora_put_pair(&f, Q_A, Q_B, 4, 8, 6);
    assert_scale(&f, "", 1);
    assert_scale(&f, "=-0.5", -0.5f);
    f.config = "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":6,\"bias\":\"none\",\"use_dora\":false,\"modules_to_"
               "save\":null}";
    assert_scale(&f, "=0.7", (float)(0.7 * 6 / 4));
    f.config = "{\"r\":4,\"lora_alpha\":6,\"use_rslora\":true}";
    assert_scale(&f, "", (float)(6 / 2.0));
    f.config = "{\"r\":9,\"lora_alpha\":6,\"rank_pattern\":{\"x\":1,\"to_q\":4},\"alpha_pattern\":{\"^blocks.0.to_q\":"
               "5,\"to_q\":3}}";
    assert_scale(&f, "", 5 / 4.0f);
    f.config = "{\"r\":4,\"lora_alpha\":6,\"alpha_pattern\":{\"^to_q\":5,\"o_q\":5,\"blocks.0.to_q\":3}}";
    assert_scale(&f, "", 3 / 4.0f);
    f.config = NULL;
    f.metadata = "{\"lora_adapter_metadata\":\"{\\\"transformer.r\\\":4,\\\"transformer.lora_alpha\\\":8,"
                 "\\\"text_encoder.new\\\":1}\",\"ss_network_dim\":\"64\"}";
    assert_scale(&f, "", 2);
    f.config = "{\"r\":9}"; /* the header's own comes first */
    assert_scale(&f, "", 2);
    f.metadata = f.config = NULL;
    lora_put(&f, "transformer.blocks.0.to_q.alpha", LK_TENSOR(&alpha, LK_F32, 1));
    assert_scale(&f, "=0.7", (float)(0.7 * 2 / 4));
    f.tensors[2].tensor = lk_tensor_make((void *)(uintptr_t)&half, LK_F16, 0, NULL);
    assert_scale(&f, "", 1);
    f.tensors[2].tensor = lk_tensor_make((void *)(uintptr_t)&big, LK_I64, 0, NULL);
    assert_scale(&f, "", 7 / 4.0f);
}

static uint16_t vector_bits(uint64_t seed, int64_t k) {
    seed += (uint64_t)k * 0x9e3779b97f4a7c15u;
    const uint64_t z = test_random(&seed);
    return (uint16_t)((z >> 63) << 15 | (112 + (z >> 58 & 7)) << 7 | (z >> 51 & 127));
}

/* |s B A| of the file that brings these to the one layer. */
static void check_norm(const struct lk_loras *loras, int i_file, const uint16_t *a, const uint16_t *b) {
    struct lk_lora_info info;
    double sum = 0;
    assert_true(lk_lora_info(loras, 0, i_file, &info));
    for (int64_t r = 0; r < info.rows; r++)
        for (int64_t c = 0; c < info.columns; c++) {
            double product = 0;
            for (int64_t j = 0; j < info.rank; j++)
                product +=
                    (double)lk_bf16_to_f32(b[r * info.rank + j]) * (double)lk_bf16_to_f32(a[j * info.columns + c]);
            sum += product * product;
        }
    assert_true(fabs(info.norm / (fabs((double)info.s) * sqrt(sum)) - 1) < 1e-9);
}

/* Values by the definition, and the digests that another implementation gave. */
static void vectors(void **state) {
    (void)state;
    enum { N = 96, K = 128 };
    static const struct {
        const char *key;
        uint64_t seed;
        int64_t rows, columns;
    } made[] = {{"w.lora_A.weight", 43, 4, K},
                {"w.lora_B.weight", 44, N, 4},
                {"w.lora_A.weight", 45, 8, K},
                {"w.lora_B.weight", 46, N, 8}};
    static const char *const digests[] = {"e53b237dd1ce67c1615522c484ff45496a94637529057ac34385fa5dd800e0ac",
                                          "d3899ba31dcf76ad866e0512f8b4eaf5f3da7f997067956d2f2df3e598b38d65",
                                          "9bf2f072f28582fd15424f586b1d6195bb0af61ee37f1ef059bd61fc8650c81b"};
    static const char *const merged[] = {"6c1ba087420203f009758502973d0ca7849dce3b558a9ab963c30ca138da03c8",
                                         "ada75f871430875d27b4598fd112e7aaf1e3e2826a27f00b0b85e80eb8aa21e4"};
    uint16_t weight[N * K];
    uint16_t bits[4][N * 8 > 8 * K ? N * 8 : 8 * K], packed[N * 12];
    float alpha = 2;
    char digest[65], *asked[2];
    for (int i = 0; i < 4; i++)
        for (int64_t k = 0; k < made[i].rows * made[i].columns; k++) bits[i][k] = vector_bits(made[i].seed, k);
    for (int i = 0; i < 2; i++) {
        struct lk_st_named tensors[3];
        char name[64];
        for (int j = 0; j < 2; j++) {
            const int at = 2 * i + j;
            tensors[j] =
                (struct lk_st_named){made[at].key, LK_TENSOR(bits[at], LK_BF16, made[at].rows, made[at].columns)};
        }
        tensors[2] = (struct lk_st_named){"w.alpha", lk_tensor_make(&alpha, LK_F32, 0, NULL)};
        snprintf(name, sizeof name, "vector%d.safetensors", i);
        assert_ok(lk_safetensors_write(test_path(name), tensors, i ? 2 : 3, NULL));
        asked[i] = lk_format("%s=%s", test_path(name), i ? "-0.3" : "0.7");
    }
    for (int n = 1; n <= 2; n++) {
        struct lk_loras *loras;
        struct lk_tensor down, up;
        const int64_t rank = n == 1 ? 4 : 12;
        assert_ok(lk_loras_open(&loras, (const char *const *)asked, n, true));
        assert_ok(lk_loras_layer(loras, "w", N, K, &down, &up));
        assert_ok(lk_loras_bind(loras, NULL, 0, LK_BF16, true));
        assert_int_equal(down.shape[0], LK_LORA_GRAIN);
        assert_int_equal(up.shape[1], LK_LORA_GRAIN);
        for (int64_t r = 0; r < N; r++)
            memcpy(packed + r * rank, (uint16_t *)up.data + r * up.ld, (size_t)rank * sizeof *packed);
        lk_sha256(packed, (size_t)(N * rank) * sizeof *packed, digest);
        assert_string_equal(digest, digests[n - 1]);
        for (int64_t r = 0; r < N; r++)
            for (int64_t j = rank; j < LK_LORA_GRAIN; j++) assert_int_equal(((uint16_t *)up.data)[r * up.ld + j], 0);
        for (int64_t i = rank * K; i < LK_LORA_GRAIN * K; i++) assert_int_equal(((uint16_t *)down.data)[i], 0);
        lk_sha256(down.data, (size_t)(rank * K) * sizeof *packed, digest);
        if (n == 2) assert_string_equal(digest, digests[2]);
        for (int64_t k = 0; k < N * K; k++) weight[k] = vector_bits(42, k);
        const struct lk_tensor w = LK_TENSOR(weight, LK_BF16, N, K);
        bool is_merged;
        assert_ok(lk_loras_merge(loras, "w", &w, &is_merged));
        assert_true(is_merged);
        lk_sha256(weight, sizeof weight, digest);
        assert_string_equal(digest, merged[n - 1]);
        assert_ok(lk_loras_merge(loras, "v", &w, &is_merged));
        assert_false(is_merged);
        for (int i = 0; i < n; i++) check_norm(loras, i, bits[2 * i], bits[2 * i + 1]);
        lk_loras_close(loras);
    }
    for (int i = 0; i < 2; i++) lk_free(asked[i]);
}

/* Shares of fused modules and exchanged halves; layers without an adapter stay without. */
static void windows(void **state) {
    (void)state;
    float b[16], a[6], last[4];
    for (int i = 0; i < 16; i++) b[i] = (float)i;
    for (int i = 0; i < 6; i++) a[i] = (float)(10 + i);
    for (int i = 0; i < 4; i++) last[i] = (float)i;
    struct lora_file f = {.n = 0};
    struct lora_model m;
    lora_put(&f, "lora_unet_b_0_qk.lora_down.weight", LK_TENSOR(a, LK_F32, 1, 6));
    lora_put(&f, "lora_unet_b_0_qk.lora_up.weight", LK_TENSOR(b, LK_F32, 16, 1));
    assert_ok(lora_bind_file(&m, &f, ""));
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 8; r++) {
            assert_true(((float *)m.up[i].data)[r * LK_LORA_GRAIN] == (float)(8 * i + r));
            assert_memory_equal(m.down[i].data, a, sizeof a);
        }
    assert_ptr_equal(m.down[0].data, m.down[1].data); /* one A for both */
    assert_int_equal(m.down[2].n_dims, 0);
    assert_int_equal(m.up[2].n_dims, 0);
    lk_loras_close(m.loras);
    f.n = 0;
    lora_put(&f, "last.1.lora_down.weight", lora_filled(LK_F32, LORA_SHAPE(1, 8)));
    lora_put(&f, "last.1.lora_up.weight", LK_TENSOR(last, LK_F32, 4, 1));
    assert_ok(lora_bind_file(&m, &f, ""));
    static const float swapped[] = {2, 3, 0, 1};
    for (int r = 0; r < 4; r++) assert_true(((float *)m.up[2].data)[r * LK_LORA_GRAIN] == swapped[r]);
    lk_loras_close(m.loras);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(scales), cmocka_unit_test(vectors), cmocka_unit_test(windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
