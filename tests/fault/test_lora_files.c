/* LoRA files: what their scales and matrices become, bit by bit, and everything that is refused, by name. */
#include "tests/common/test.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/text.h"
#include "engine/bf16.h"
#include "models/pipeline.h"
#include "weights/lora/keys.h"
#include "weights/lora/lora.h"

#define MOST 16

/* A file in the making. */
struct file {
    struct lk_st_named tensors[MOST];
    size_t n;
    const char *metadata, *config; /* adapter_config.json beside it */
};

static float ones[4096];

static struct lk_tensor filled(enum lk_dtype dtype, int n_dims, const int64_t *shape) {
    return lk_tensor_make(ones, dtype, n_dims, shape); /* 1 in f32; any numbers in others */
}
#define SHAPE(...)                                                                                                     \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }

static void put(struct file *f, const char *key, struct lk_tensor tensor) {
    assert_true(f->n < MOST);
    f->tensors[f->n++] = (struct lk_st_named){key, tensor};
}

static void put_pair(struct file *f, const char *a, const char *b, int64_t rank, int64_t n, int64_t k) {
    put(f, a, filled(LK_F32, SHAPE(rank, k)));
    put(f, b, filled(LK_F32, SHAPE(n, rank)));
}

static const char *write_file(const struct file *f) {
    static char path[1200];
    char config[1200];
    snprintf(path, sizeof path, "%s/lora.safetensors", test_fresh("lora"));
    snprintf(config, sizeof config, "%s/adapter_config.json", test_path("lora"));
    assert_ok(lk_safetensors_write(path, f->tensors, f->n, f->metadata));
    if (f->config) test_write(config, f->config, strlen(f->config));
    return path;
}

/* A model of three layers, two of which are halves of one in other names, one with its halves swapped. */
#define N_LAYERS 3
static const struct {
    const char *name;
    int64_t rows, columns;
} layers[N_LAYERS] = {{"blocks.0.to_q", 8, 6}, {"blocks.0.to_k", 8, 6}, {"norm_out.linear", 4, 8}};
static const struct lk_rename rules[] = {{"b.%d.qk", "blocks.%d.to_q", 0, 1, 2, false},
                                         {"b.%d.qk", "blocks.%d.to_k", 1, 1, 2, false},
                                         {"last.1", "norm_out.linear", 0, 1, 1, true}};

struct model {
    struct lk_loras *loras;
    struct lk_tensor down[N_LAYERS], up[N_LAYERS];
};

static enum lk_code bind_with(struct model *m, const char *const *asked, int n, enum lk_dtype compute, bool with_data) {
    *m = (struct model){0};
    enum lk_code rc = lk_loras_open(&m->loras, asked, n, with_data);
    for (int i = 0; i < N_LAYERS && !rc; i++)
        rc = lk_loras_layer(m->loras, layers[i].name, layers[i].rows, layers[i].columns, &m->down[i], &m->up[i]);
    if (!rc) rc = lk_loras_bind(m->loras, rules, 3, compute, with_data);
    if (rc) {
        lk_loras_close(m->loras);
        m->loras = NULL;
    }
    return rc;
}

static enum lk_code bind_file(struct model *m, const struct file *f, const char *scale) {
    char *asked = lk_format("%s%s", write_file(f), scale);
    const enum lk_code rc = bind_with(m, (const char *const[]){asked}, 1, LK_F32, true);
    lk_free(asked);
    return rc;
}

#define Q_A "transformer.blocks.0.to_q.lora_A.weight"
#define Q_B "transformer.blocks.0.to_q.lora_B.weight"

/* Of B = 1 in f32, up is s. */
static void assert_scale(struct file *f, const char *scale, float expected) {
    struct model m;
    assert_ok(bind_file(&m, f, scale));
    assert_true(((float *)m.up[0].data)[0] == expected);
    lk_loras_close(m.loras);
}

static void scales(void **state) {
    (void)state;
    float alpha = 2;
    const int64_t big = 7;
    const uint16_t half = 0x4400; /* 4 in f16 */
    struct file f = {.n = 0};
    put_pair(&f, Q_A, Q_B, 4, 8, 6);
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
    put(&f, "transformer.blocks.0.to_q.alpha", LK_TENSOR(&alpha, LK_F32, 1));
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
    struct file f = {.n = 0};
    struct model m;
    put(&f, "lora_unet_b_0_qk.lora_down.weight", LK_TENSOR(a, LK_F32, 1, 6));
    put(&f, "lora_unet_b_0_qk.lora_up.weight", LK_TENSOR(b, LK_F32, 16, 1));
    assert_ok(bind_file(&m, &f, ""));
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 8; r++) {
            assert_true(((float *)m.up[i].data)[r * LK_LORA_GRAIN] == (float)(8 * i + r));
            assert_memory_equal(m.down[i].data, a, sizeof a);
        }
    assert_int_equal(m.down[2].n_dims, 0);
    assert_int_equal(m.up[2].n_dims, 0);
    lk_loras_close(m.loras);
    f.n = 0;
    put(&f, "last.1.lora_down.weight", filled(LK_F32, SHAPE(1, 8)));
    put(&f, "last.1.lora_up.weight", LK_TENSOR(last, LK_F32, 4, 1));
    assert_ok(bind_file(&m, &f, ""));
    static const float swapped[] = {2, 3, 0, 1};
    for (int r = 0; r < 4; r++) assert_true(((float *)m.up[2].data)[r * LK_LORA_GRAIN] == swapped[r]);
    lk_loras_close(m.loras);
}

static void refuse(struct file *f, enum lk_code code, const char *says) {
    struct model m;
    assert_fails(bind_file(&m, f, ""), code, says);
    assert_non_null(strstr(lk_error_text(), "lora"));
}

/* One more key, beside a good pair. */
static void refuse_key(const char *key, const char *what) {
    struct file f = {.n = 0};
    char says[256];
    put_pair(&f, Q_A, Q_B, 4, 8, 6);
    put(&f, key, filled(LK_F32, SHAPE(4)));
    snprintf(says, sizeof says, "refused: \"%s\" (%s)", key, what);
    refuse(&f, LK_E_BIND, says);
}

static void other_adapters(void **state) {
    (void)state;
    static const char *const keys[][2] = {
        {"m.lora_magnitude_vector", "DoRA"},
        {"lora_unet_m.dora_scale", "DoRA"},
        {"lycoris_m.hada_w1_a", "LoHa"},
        {"lycoris_m.hada_t1", "LoHa of a convolution"},
        {"m.lokr_w1", "LoKr"},
        {"m.lokr_t2", "LoKr of a convolution"},
        {"m.lora_mid.weight", "LoRA of a convolution"},
        {"m.lora_B.bias", "bias of an adapter"},
        {"m.lora_embedding_A", "LoRA of an embedding"},
        {"m.oft_blocks", "OFT"},
        {"m.boft_R", "BOFT"},
        {"m.ia3_l", "IA3"},
        {"m.a1.weight", "GLoRA"},
        {"m.diff", "difference of whole weights"},
        {"m.diff_b", "difference of whole biases"},
        {"m.w_norm", "difference of norms"},
        {"m.set_weight", "whole weight"},
        {"m.proj_down", "nunchaku's own LoRA"},
        {"m.smooth_factor", "nunchaku's own LoRA"},
        {"m.qweight", "packed weight"},
        {"m.scale", "scale of another program"},
        {"m.weight", "whole weight"},
        {"m.new", "unknown"},
        {"lora_te_m.lora_down.weight", "adapter of the text encoder; only the transformer's are read"},
        {"text_encoder.m.lora_A.weight", "adapter of the text encoder; only the transformer's are read"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) refuse_key(keys[i][0], keys[i][1]);
    struct file f = {.n = 0};
    refuse(&f, LK_E_BIND, "no LoRA in it: no key");
    put(&f, "b.weight", filled(LK_F32, SHAPE(4)));
    put(&f, "a.weight", filled(LK_F32, SHAPE(4)));
    refuse(&f, LK_E_BIND, "no LoRA in it but 2 whole weights, the first \"a.weight\"");
}

static void modules(void **state) {
    (void)state;
    struct file f = {.n = 0};
    put(&f, Q_A, filled(LK_F32, SHAPE(4, 6)));
    refuse(&f, LK_E_BIND, "\"" Q_A "\": its module has no B");
    f.n = 0;
    put_pair(&f, Q_A, Q_B, 4, 8, 7);
    refuse(&f, LK_E_BIND, "\"" Q_A "\": expected 6 columns for blocks.0.to_q of this model, got 7");
    f.n = 0;
    put_pair(&f, Q_A, Q_B, 4, 9, 6);
    refuse(&f, LK_E_BIND, "\"" Q_B "\": expected 8 rows for blocks.0.to_q of this model, got 9");
    f.n = 0;
    put_pair(&f, "b.0.qk.lora_A", "b.0.qk.lora_B", 4, 15, 6);
    refuse(&f, LK_E_BIND, "\"b.0.qk.lora_B\": expected 16 rows for blocks.0.to_");
    f.n = 0;
    put(&f, Q_A, filled(LK_F32, SHAPE(4, 6)));
    put(&f, Q_B, filled(LK_F32, SHAPE(8, 5)));
    refuse(&f, LK_E_BIND, "\"" Q_B "\": expected 4 columns, as \"" Q_A "\" has rows, got 5");
    f.n = 0;
    put(&f, Q_A, filled(LK_F32, SHAPE(0, 6)));
    put(&f, Q_B, filled(LK_F32, SHAPE(8, 0)));
    refuse(&f, LK_E_BIND, "expected a matrix");
    f.n = 0;
    put_pair(&f, Q_A, Q_B, 1025, 2, 1);
    refuse(&f, LK_E_BIND, "expected a rank up to 1024, got 1025");
    f.n = 0;
    put(&f, Q_A, filled(LK_F64, SHAPE(4, 6)));
    put(&f, Q_B, filled(LK_F32, SHAPE(8, 4)));
    refuse(&f, LK_E_BIND, "expected a matrix of f32, bf16 or f16, got f64");
    f.tensors[0].tensor = filled(LK_F32, SHAPE(4, 6, 2, 1));
    refuse(&f, LK_E_BIND, "expected a matrix");
    f.n = 0;
    put_pair(&f, "blocks.7.to_q.lora_A.weight", "blocks.7.to_q.lora_B.weight", 4, 8, 6);
    refuse(&f, LK_E_BIND, "1 of 1 modules are not in this model, the first of \"blocks.7.to_q.lora_A.weight\"");
    /* the same module twice: two prefixes, two spellings, fused and apart */
    f.n = 0;
    put_pair(&f, Q_A, Q_B, 4, 8, 6);
    put_pair(&f, "lora_unet_blocks_0_to_q.lora_down.weight", "lora_unet_blocks_0_to_q.lora_up.weight", 4, 8, 6);
    refuse(&f, LK_E_BIND, "two keys say the same: ");
    f.n = 2;
    put_pair(&f, "b.0.qk.lora_A", "b.0.qk.lora_B", 4, 16, 6);
    refuse(&f, LK_E_BIND, "are both for blocks.0.to_q");
    f.n = 0;
    put_pair(&f, "blocks.0.to_q.lora_A.one.weight", "blocks.0.to_q.lora_B.one.weight", 4, 8, 6);
    put_pair(&f, "blocks.0.to_k.lora_A.two.weight", "blocks.0.to_k.lora_B.two.weight", 4, 8, 6);
    refuse(&f, LK_E_BIND, "adapters of several names");
}

static void alphas(void **state) {
    (void)state;
    static const float bad[] = {0, -1, NAN, INFINITY};
    float alpha = 2, two[2] = {1, 1};
    struct file f = {.n = 0};
    put_pair(&f, Q_A, Q_B, 4, 8, 6);
    put(&f, "transformer.blocks.0.to_q.alpha", LK_TENSOR(&alpha, LK_F32, 1));
    for (int i = 0; i < 4; i++) {
        alpha = bad[i];
        refuse(&f, LK_E_BIND, "to_q.alpha\": expected a number above 0");
    }
    alpha = 2;
    f.config = "{\"r\":4,\"lora_alpha\":3}";
    refuse(&f, LK_E_BIND, "to_q.alpha\" is 2, but adapter_config.json beside it says 3: which alpha holds?");
    f.config = NULL;
    f.tensors[2].tensor = LK_TENSOR(two, LK_F32, 2);
    refuse(&f, LK_E_BIND, "expected one number");
    f.tensors[2].tensor = LK_TENSOR(two, LK_F64, 1);
    refuse(&f, LK_E_BIND, "expected one number");
    f.tensors[2].tensor = LK_TENSOR(&alpha, LK_F32, 1);
    put(&f, "blocks.0.to_q.alpha", LK_TENSOR(&alpha, LK_F32, 1));
    refuse(&f, LK_E_BIND, "two keys say the same: ");
}

static void values(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float a[24] = {0}, b[32] = {0};
    struct file f = {.n = 0};
    struct model m;
    put(&f, Q_A, LK_TENSOR(a, LK_F32, 4, 6));
    put(&f, Q_B, LK_TENSOR(b, LK_F32, 8, 4));
    for (int i = 0; i < 3; i++) {
        a[23] = bad[i];
        refuse(&f, LK_E_BIND, "\"" Q_A "\": a value is NaN or Inf");
        a[23] = 0;
        b[31] = bad[i];
        refuse(&f, LK_E_BIND, "\"" Q_B "\": a value is NaN or Inf");
        b[31] = 0;
    }
    b[31] = 3e38f;
    assert_fails(bind_file(&m, &f, "=2"), LK_E_BIND, "becomes so times 2");
    b[31] = 3.4e38f; /* finite in f32, not in bf16 */
    char *asked = lk_format("%s", write_file(&f));
    assert_fails(bind_with(&m, (const char *const[]){asked}, 1, LK_BF16, true), LK_E_BIND, "NaN or Inf");
    assert_ok(bind_with(&m, (const char *const[]){asked}, 1, LK_BF16, false)); /* plans do not look */
    assert_int_equal(m.up[0].shape[1], LK_LORA_GRAIN);
    lk_loras_close(m.loras);
    lk_free(asked);
}

static void configs(void **state) {
    (void)state;
    static const struct {
        const char *config;
        enum lk_code code;
        const char *says;
    } cases[] = {{"{\"peft_type\":\"IA3\"}", LK_E_BIND, "\"peft_type\": expected LORA, got IA3"},
                 {"{\"fan_in_fan_out\":true}", LK_E_BIND, "\"fan_in_fan_out\" is set"},
                 {"{\"use_dora\":true}", LK_E_BIND, "\"use_dora\" is set"},
                 {"{\"modules_to_save\":[\"x\"]}", LK_E_BIND, "\"modules_to_save\" is set"},
                 {"{\"r\":8}", LK_E_BIND, "expected rank 8, which adapter_config.json beside it says, got 4"},
                 {"{\"r\":\"4\"}", LK_E_JSON, "adapter_config.json"},
                 {"{\"r\":0}", LK_E_BIND, "\"r\": expected a rank from 1 to 1024, got 0"},
                 {"{\"lora_alpha\":-1}", LK_E_BIND, "\"lora_alpha\": expected a number above 0"},
                 {"{\"new_trick\":1}", LK_E_BIND, "\"new_trick\": this program does not know the field"},
                 {"{\"r\":4", LK_E_JSON, "adapter_config.json"},
                 {"{\"r\":4,\"r\":4}", LK_E_JSON_DUPLICATE, "adapter_config.json"}};
    struct file f = {.n = 0};
    put_pair(&f, Q_A, Q_B, 4, 8, 6);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f.config = cases[i].config;
        f.metadata = NULL;
        refuse(&f, cases[i].code, cases[i].says);
    }
    f.config = NULL;
    f.metadata = "{\"lora_adapter_metadata\":\"{\\\"transformer.r\\\":8}\"}";
    refuse(&f, LK_E_BIND, "expected rank 8, which its header's lora_adapter_metadata says, got 4");
    f.metadata = "{\"lora_adapter_metadata\":\"{\\\"transformer.r\\\"\"}";
    refuse(&f, LK_E_JSON, "lora_adapter_metadata");
}

/* Files and what is asked of them. */
static void files(void **state) {
    (void)state;
    struct lk_loras *loras;
    struct file f = {.n = 0};
    put_pair(&f, Q_A, Q_B, 4, 8, 6);
    const char *path = write_file(&f), *nine[9];
    for (int i = 0; i < 9; i++) nine[i] = path;
    assert_fails(lk_loras_open(&loras, nine, 9, true), LK_E_USAGE, "at most 8 files, got 9");
    assert_ok(lk_loras_open(&loras, nine, 8, true));
    assert_int_equal(strlen(loras->list[7].sha256), 64);
    assert_string_equal(loras->list[0].layout, "lora_A, prefix transformer.");
    lk_loras_close(loras);
    /* the folder stands for its one file */
    char *folder = lk_strdup(path), *second = lk_format("%s/../lora/b.safetensors", test_path("lora"));
    *strrchr(folder, '/') = 0;
    assert_ok(lk_loras_open(&loras, (const char *const[]){folder}, 1, true));
    lk_loras_close(loras);
    test_write(second, "x", 1);
    assert_fails(lk_loras_open(&loras, (const char *const[]){folder}, 1, true), LK_E_NOT_FOUND,
                 "found 2; name the file");
    assert_fails(lk_loras_open(&loras, (const char *const[]){second}, 1, true), LK_E_ST_TRUNCATED, "b.safetensors");
    unlink(second);
    assert_int_equal(truncate(path, 200), 0);
    assert_int_equal(lk_loras_open(&loras, (const char *const[]){path}, 1, true) / 10, LK_E_ST_TRUNCATED / 10);
    unlink(path);
    assert_int_equal(symlink(path, path), 0);
    assert_fails(lk_loras_open(&loras, (const char *const[]){path}, 1, true), LK_E_NOT_FOUND, "no such file");
    lk_free(second);
    lk_free(folder);
}

/* The layer's value changes with any byte of the file: the digest is of all of it. */
static void digest_of_all(void **state) {
    (void)state;
    struct file f = {.n = 0};
    struct lk_loras *loras;
    char before[65];
    size_t n;
    put_pair(&f, Q_A, Q_B, 4, 8, 6);
    const char *path = write_file(&f);
    assert_ok(lk_loras_open(&loras, (const char *const[]){path}, 1, true));
    snprintf(before, sizeof before, "%s", loras->list[0].sha256);
    lk_loras_close(loras);
    char *bytes = test_read(path, &n), digest[65];
    lk_sha256(bytes, n, digest);
    assert_string_equal(before, digest);
    bytes[n - 1] ^= 1;
    test_write(path, bytes, n);
    free(bytes);
    assert_ok(lk_loras_open(&loras, (const char *const[]){path}, 1, true));
    assert_string_not_equal(before, loras->list[0].sha256);
    lk_loras_close(loras);
}

/* A million keys, and one of 64 KiB. */
static void large_headers(void **state) {
    (void)state;
    enum { N = 200000 };
    struct lk_st_named *tensors = lk_calloc(N, sizeof *tensors);
    char *names = lk_malloc((size_t)N * 32), *path = lk_strdup(test_path("lora_many.safetensors"));
    struct lk_loras *loras;
    for (int i = 0; i < N; i++) {
        snprintf(names + 32 * i, 32, "m%d.lora_%c.weight", i / 2, "AB"[i % 2]);
        tensors[i] = (struct lk_st_named){names + 32 * i, filled(LK_F32, SHAPE(1, 1))};
    }
    assert_ok(lk_safetensors_write(path, tensors, N, NULL));
    struct model m;
    assert_fails(bind_with(&m, (const char *const[]){path}, 1, LK_F32, true), LK_E_BIND,
                 "100000 of 100000 modules are not in this model");
    char *long_name = lk_malloc(1 << 16);
    memset(long_name, 'x', (1 << 16) - 1);
    long_name[(1 << 16) - 1] = 0;
    tensors[0].name = long_name;
    assert_ok(lk_safetensors_write(path, tensors, 2, NULL));
    assert_fails(lk_loras_open(&loras, (const char *const[]){path}, 1, true), LK_E_BIND, "xxx");
    unlink(path);
    lk_free(long_name);
    lk_free(path);
    lk_free(names);
    lk_free(tensors);
}

/* No two names of a released model are one: that is checked as they are bound. */
static void names_of_released_models(void **state) {
    (void)state;
    static const char *const names[] = {"flux2-dev", "qwen-edit-2511", "step1x-v1p2"};
    static const int64_t per_rank[] = {6291456, 6635520, 4085760}; /* rows and columns of the blocks' layers */
    for (int i = 0; i < 3; i++) {
        struct lk_pipeline *pipeline;
        const struct lk_pipeline_options options = {
            .compute = LK_BF16, .configs = true, .loras = (const char *const[]){"rank=64"}, .n_loras = 1};
        assert_ok(lk_pipeline_open_with(&pipeline, names[i], &options));
        int64_t sum = 0;
        const struct lk_loras *loras = lk_pipeline_loras(pipeline);
        for (size_t l = 0; l < loras->n_layers; l++) sum += lk_lora_layer_values(loras, l);
        assert_int_equal(sum, 64 * per_rank[i]);
        lk_pipeline_close(pipeline);
    }
    struct lk_loras *loras;
    assert_fails(lk_loras_open(&loras, (const char *const[]){"rank=64"}, 1, true), LK_E_USAGE, "is for plan");
    assert_fails(lk_loras_open(&loras, (const char *const[]){"rank=0"}, 1, false), LK_E_USAGE, "rank");
    assert_fails(lk_loras_open(&loras, (const char *const[]){"rank=1025"}, 1, false), LK_E_USAGE, "rank");
}

static char *asked_path;
static enum lk_code open_and_bind(void) {
    struct model m;
    LK_TRY(bind_with(&m, (const char *const[]){asked_path}, 1, LK_BF16, true));
    lk_loras_close(m.loras);
    return LK_OK;
}

static void memory(void **state) {
    (void)state;
    struct file f = {.n = 0};
    put_pair(&f, Q_A, Q_B, 4, 8, 6);
    put_pair(&f, "last.1.lora_A", "last.1.lora_B", 4, 4, 8);
    f.config = "{\"r\":4,\"alpha_pattern\":{\"x\":1}}";
    asked_path = lk_strdup(write_file(&f));
    test_every_allocation(open_and_bind, 10);
    lk_free(asked_path);
}

int main(void) {
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) ones[i] = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales),         cmocka_unit_test(vectors),       cmocka_unit_test(windows),
        cmocka_unit_test(other_adapters), cmocka_unit_test(modules),       cmocka_unit_test(alphas),
        cmocka_unit_test(values),         cmocka_unit_test(configs),       cmocka_unit_test(files),
        cmocka_unit_test(digest_of_all),  cmocka_unit_test(large_headers), cmocka_unit_test(names_of_released_models),
        cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
