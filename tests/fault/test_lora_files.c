/* What is refused of LoRA files, by name. */
#include "tests/common/lora_file.h"
#include "tests/common/test.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/text.h"
#include "models/pipeline.h"

static void refuse(struct lora_file *f, enum lk_code code, const char *says) {
    struct lora_model m;
    assert_fails(lora_bind_file(&m, f, ""), code, says);
    assert_non_null(strstr(lk_error_text(), "lora"));
}

/* One more key, beside a good pair. */
static void refuse_key(const char *key, const char *what) {
    struct lora_file f = {.n = 0};
    char says[256];
    lora_put_pair(&f, Q_A, Q_B, 4, 8, 6);
    lora_put(&f, key, lora_filled(LK_F32, LORA_SHAPE(4)));
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
    struct lora_file f = {.n = 0};
    refuse(&f, LK_E_BIND, "no LoRA in it: no key");
    lora_put(&f, "b.weight", lora_filled(LK_F32, LORA_SHAPE(4)));
    lora_put(&f, "a.weight", lora_filled(LK_F32, LORA_SHAPE(4)));
    refuse(&f, LK_E_BIND, "no LoRA in it but 2 whole weights, the first \"a.weight\"");
}

static void modules(void **state) {
    (void)state;
    struct lora_file f = {.n = 0};
    lora_put(&f, Q_A, lora_filled(LK_F32, LORA_SHAPE(4, 6)));
    refuse(&f, LK_E_BIND, "\"" Q_A "\": its module has no B");
    f.n = 0;
    lora_put_pair(&f, Q_A, Q_B, 4, 8, 7);
    refuse(&f, LK_E_BIND, "\"" Q_A "\": expected 6 columns for blocks.0.to_q of this model, got 7");
    f.n = 0;
    lora_put_pair(&f, Q_A, Q_B, 4, 9, 6);
    refuse(&f, LK_E_BIND, "\"" Q_B "\": expected 8 rows for blocks.0.to_q of this model, got 9");
    f.n = 0;
    lora_put_pair(&f, "b.0.qk.lora_A", "b.0.qk.lora_B", 4, 15, 6);
    refuse(&f, LK_E_BIND, "\"b.0.qk.lora_B\": expected 16 rows for blocks.0.to_");
    f.n = 0;
    lora_put(&f, Q_A, lora_filled(LK_F32, LORA_SHAPE(4, 6)));
    lora_put(&f, Q_B, lora_filled(LK_F32, LORA_SHAPE(8, 5)));
    refuse(&f, LK_E_BIND, "\"" Q_B "\": expected 4 columns, as \"" Q_A "\" has rows, got 5");
    f.n = 0;
    lora_put(&f, Q_A, lora_filled(LK_F32, LORA_SHAPE(0, 6)));
    lora_put(&f, Q_B, lora_filled(LK_F32, LORA_SHAPE(8, 0)));
    refuse(&f, LK_E_BIND, "expected a matrix");
    f.n = 0;
    lora_put_pair(&f, Q_A, Q_B, 1025, 2, 1);
    refuse(&f, LK_E_BIND, "expected a rank up to 1024, got 1025");
    f.n = 0;
    lora_put(&f, Q_A, lora_filled(LK_F64, LORA_SHAPE(4, 6)));
    lora_put(&f, Q_B, lora_filled(LK_F32, LORA_SHAPE(8, 4)));
    refuse(&f, LK_E_BIND, "expected a matrix of f32, bf16 or f16, got f64");
    f.tensors[0].tensor = lora_filled(LK_F32, LORA_SHAPE(4, 6, 2, 1));
    refuse(&f, LK_E_BIND, "expected a matrix");
    f.n = 0;
    lora_put_pair(&f, "blocks.7.to_q.lora_A.weight", "blocks.7.to_q.lora_B.weight", 4, 8, 6);
    refuse(&f, LK_E_BIND, "1 of 1 modules are not in this model, the first of \"blocks.7.to_q.lora_A.weight\"");
    /* the same module twice: two prefixes, two spellings, fused and apart */
    f.n = 0;
    lora_put_pair(&f, Q_A, Q_B, 4, 8, 6);
    lora_put_pair(&f, "lora_unet_blocks_0_to_q.lora_down.weight", "lora_unet_blocks_0_to_q.lora_up.weight", 4, 8, 6);
    refuse(&f, LK_E_BIND, "two keys say the same: ");
    f.n = 2;
    lora_put_pair(&f, "b.0.qk.lora_A", "b.0.qk.lora_B", 4, 16, 6);
    refuse(&f, LK_E_BIND, "are both for blocks.0.to_q");
    f.n = 0;
    lora_put_pair(&f, "blocks.0.to_q.lora_A.one.weight", "blocks.0.to_q.lora_B.one.weight", 4, 8, 6);
    lora_put_pair(&f, "blocks.0.to_k.lora_A.two.weight", "blocks.0.to_k.lora_B.two.weight", 4, 8, 6);
    refuse(&f, LK_E_BIND, "adapters of several names");
}

static void alphas(void **state) {
    (void)state;
    static const float bad[] = {0, -1, NAN, INFINITY};
    float alpha = 2, two[2] = {1, 1};
    struct lora_file f = {.n = 0};
    lora_put_pair(&f, Q_A, Q_B, 4, 8, 6);
    lora_put(&f, "transformer.blocks.0.to_q.alpha", LK_TENSOR(&alpha, LK_F32, 1));
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
    lora_put(&f, "blocks.0.to_q.alpha", LK_TENSOR(&alpha, LK_F32, 1));
    refuse(&f, LK_E_BIND, "two keys say the same: ");
}

static void values(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float a[24] = {0}, b[32] = {0};
    struct lora_file f = {.n = 0};
    struct lora_model m;
    lora_put(&f, Q_A, LK_TENSOR(a, LK_F32, 4, 6));
    lora_put(&f, Q_B, LK_TENSOR(b, LK_F32, 8, 4));
    for (int i = 0; i < 3; i++) {
        a[23] = bad[i];
        refuse(&f, LK_E_BIND, "\"" Q_A "\": a value is NaN or Inf");
        a[23] = 0;
        b[31] = bad[i];
        refuse(&f, LK_E_BIND, "\"" Q_B "\": a value is NaN or Inf");
        b[31] = 0;
    }
    b[31] = 3e38f;
    assert_fails(lora_bind_file(&m, &f, "=2"), LK_E_BIND, "becomes so times 2");
    b[31] = 3.4e38f; /* finite in f32, not in bf16 */
    char *asked = lk_format("%s", lora_write(&f));
    assert_fails(lora_bind(&m, (const char *const[]){asked}, 1, LK_BF16, true), LK_E_BIND, "NaN or Inf");
    assert_ok(lora_bind(&m, (const char *const[]){asked}, 1, LK_BF16, false)); /* plans do not look */
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
    struct lora_file f = {.n = 0};
    lora_put_pair(&f, Q_A, Q_B, 4, 8, 6);
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
    f.metadata = "{\"lora_adapter_metadata\":\"{\\\"transformer.r\\\":\\\"64\\\"}\"}";
    refuse(&f, LK_E_JSON, "lora_adapter_metadata");
}

/* Files and what is asked of them. */
static void files(void **state) {
    (void)state;
    struct lk_loras *loras;
    struct lora_file f = {.n = 0};
    lora_put_pair(&f, Q_A, Q_B, 4, 8, 6);
    const char *path = lora_write(&f), *nine[9];
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
    struct lora_file f = {.n = 0};
    struct lk_loras *loras;
    char before[65];
    size_t n;
    lora_put_pair(&f, Q_A, Q_B, 4, 8, 6);
    const char *path = lora_write(&f);
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

/* Another size, or the same one written again, between the digest and the use of the values. */
static void changed_while_open(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct lora_file f = {.n = 0};
        struct lk_loras *loras;
        struct lk_tensor down, up;
        size_t n;
        lora_put_pair(&f, Q_A, Q_B, 4, 8, 6);
        const char *path = lora_write(&f);
        char *bytes = test_read(path, &n);
        assert_ok(lk_loras_open(&loras, &path, 1, true));
        assert_ok(lk_loras_layer(loras, "blocks.0.to_q", 8, 6, &down, &up));
        if (i) {
            test_write(path, bytes, n);
            assert_int_equal(utimensat(AT_FDCWD, path, (const struct timespec[2]){{0}}, 0), 0); /* at another time */
        } else {
            assert_int_equal(truncate(path, 100), 0);
        }
        assert_fails(lk_loras_bind(loras, NULL, 0, LK_F32, true), LK_E_CHANGED, "lora.safetensors");
        lk_loras_close(loras);
        free(bytes);
    }
}

/* A million keys, and one of 64 KiB. */
static void large_headers(void **state) {
    (void)state;
    enum { N = 1000000 };
    struct lk_st_named *tensors = lk_calloc(N, sizeof *tensors);
    char *names = lk_malloc((size_t)N * 32), *path = lk_strdup(test_path("lora_many.safetensors"));
    struct lk_loras *loras;
    for (int i = 0; i < N; i++) {
        snprintf(names + 32 * i, 32, "m%d.lora_%c.weight", i / 2, "AB"[i % 2]);
        tensors[i] = (struct lk_st_named){names + 32 * i, lora_filled(LK_F32, LORA_SHAPE(1, 1))};
    }
    assert_ok(lk_safetensors_write(path, tensors, N, NULL));
    struct lora_model m;
    assert_fails(lora_bind(&m, (const char *const[]){path}, 1, LK_F32, true), LK_E_BIND,
                 "500000 of 500000 modules are not in this model");
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

/* What a header says of the adapters, without an end: nested, and of 112 MiB, more than a header may have. */
static void large_metadata(void **state) {
    (void)state;
    enum { DEEP = 100000, LARGE = 7 << 24 };
    struct lora_file f = {.n = 0};
    struct lora_model m;
    char *text = lk_malloc(DEEP + 64);
    lora_put_pair(&f, Q_A, Q_B, 4, 8, 6);
    int n = sprintf(text, "{\"lora_adapter_metadata\":\"{\\\"transformer.r\\\":");
    memset(text + n, '[', DEEP);
    strcpy(text + n + DEEP, "\"}");
    f.metadata = text;
    refuse(&f, LK_E_JSON, "lora_adapter_metadata");
    const char *path = lora_write(&(struct lora_file){.n = 0}); /* its length alone, and so many bytes */
    test_write(path, (const char[8]){0, 0, 0, LARGE >> 24}, 8);
    assert_int_equal(truncate(path, 8 + LARGE), 0);
    assert_fails(lora_bind(&m, &path, 1, LK_F32, true), LK_E_ST_HEADER_SIZE, "lora");
    unlink(path);
    lk_free(text);
}

static void refuse_header(const char *json, enum lk_code code, const char *says) {
    const size_t n = strlen(json);
    char bytes[256] = {(char)n};
    struct lk_loras *loras;
    const char *path = test_path("lora_forged.safetensors");
    memcpy(bytes + 8, json, n);
    test_write(path, bytes, 8 + n + 4);
    assert_fails(lk_loras_open(&loras, &path, 1, true), code, says);
    assert_non_null(strstr(lk_error_text(), "lora_forged"));
    unlink(path);
}

/* A name with a NUL in it, which would be another one for all that read it as text; one that is there twice; a rank
 * whose matrix has more bytes than can be counted. */
static void forged_headers(void **state) {
    (void)state;
    refuse_header("{\"x\\u0000.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]}}",
                  LK_E_ST_JSON, "");
    refuse_header("{\"x.lora_A\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]},"
                  "\"x.lora_A\":{\"dtype\":\"F32\",\"shape\":[0,1],\"data_offsets\":[4,4]}}",
                  LK_E_ST_DUPLICATE, "x.lora_A");
    refuse_header("{\"x.lora_A\":{\"dtype\":\"F32\",\"shape\":[1024,9007199254740992],\"data_offsets\":[0,4]}}",
                  LK_E_ST_SHAPE, "the shape overflows");
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
    struct lora_model m;
    LK_TRY(lora_bind(&m, (const char *const[]){asked_path}, 1, LK_BF16, true));
    lk_loras_close(m.loras);
    return LK_OK;
}

static void memory(void **state) {
    (void)state;
    struct lora_file f = {.n = 0};
    lora_put_pair(&f, Q_A, Q_B, 4, 8, 6);
    lora_put_pair(&f, "last.1.lora_A", "last.1.lora_B", 4, 4, 8);
    f.config = "{\"r\":4,\"alpha_pattern\":{\"x\":1}}";
    asked_path = lk_strdup(lora_write(&f));
    test_every_allocation(open_and_bind, 10);
    lk_free(asked_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(other_adapters),
        cmocka_unit_test(modules),
        cmocka_unit_test(alphas),
        cmocka_unit_test(values),
        cmocka_unit_test(configs),
        cmocka_unit_test(files),
        cmocka_unit_test(digest_of_all),
        cmocka_unit_test(large_headers),
        cmocka_unit_test(names_of_released_models),
        cmocka_unit_test(memory),
        cmocka_unit_test(large_metadata),
        cmocka_unit_test(forged_headers),
        cmocka_unit_test(changed_while_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
