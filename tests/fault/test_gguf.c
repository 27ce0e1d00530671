/* GGUF files: what is read, bound and multiplied; every part of a header that is wrong in turn. fp8 weights with their
 * scales, and the forms that are refused by name. */
#include "tests/common/test.h"

#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/quantized.h"
#include "weights/bind.h"
#include "weights/quant/gguf.h"
#include "weights/quant/rename.h"

/* A file in the making. */
struct file {
    unsigned char bytes[4096];
    size_t n;
};

static void put(struct file *f, const void *bytes, size_t n) {
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}
static void put32(struct file *f, uint32_t x) { put(f, &x, 4); }
static void put64(struct file *f, uint64_t x) { put(f, &x, 8); }
static void put_text(struct file *f, const char *text) {
    put64(f, strlen(text));
    put(f, text, strlen(text));
}

/* What a test changes. */
struct recipe {
    const char *magic, *name;
    uint32_t version, alignment, type, n_dims, key_type;
    uint64_t row, second_offset, n_tensors;
};
static const struct recipe good = {"GGUF", "a.weight", 3, 64, 8, 2, 9, 64, 320, 2};

/* "a.weight" [4, row] of a type, "norm.weight" f32 [3]; 272 bytes of blocks, f16 scales of 0.5. */
static struct file make(const struct recipe *r) {
    struct file f = {.n = 0};
    put(&f, r->magic, 4);
    put32(&f, r->version);
    put64(&f, r->n_tensors);
    put64(&f, 3);
    put_text(&f, "general.architecture");
    put32(&f, 8);
    put_text(&f, "qwen_image");
    put_text(&f, "list");
    put32(&f, r->key_type);
    put32(&f, 8);
    put64(&f, 2);
    put_text(&f, "x");
    put_text(&f, "y");
    put_text(&f, "general.alignment");
    put32(&f, 4);
    put32(&f, r->alignment);
    put_text(&f, r->name);
    put32(&f, r->n_dims);
    put64(&f, r->row);
    put64(&f, 4);
    put32(&f, r->type);
    put64(&f, 0);
    put_text(&f, "norm.weight");
    put32(&f, 1);
    put64(&f, 3);
    put32(&f, 0);
    put64(&f, r->second_offset);
    f.n = (f.n + 63) / 64 * 64;
    for (int block = 0; block < 8; block++) {
        const uint16_t half = 0x3800;
        put(&f, &half, 2);
        for (int i = 0; i < 32; i++) f.bytes[f.n++] = (unsigned char)(37 * block + 11 * i);
    }
    f.n = (f.n + 63) / 64 * 64;
    for (int i = 0; i < 3; i++) put(&f, &(float){(float)i}, 4);
    return f;
}

static enum lk_code parse(const struct file *f, size_t n) {
    struct lk_safetensors st;
    const int64_t live = lk_alloc_live();
    enum lk_code rc = lk_gguf_parse(&st, f->bytes, n, n, "w.gguf");
    if (!rc) lk_safetensors_close(&st);
    assert_int_equal(lk_alloc_live(), live);
    return rc;
}

static void wrong_headers(void **state) {
    (void)state;
    static const struct {
        struct recipe r;
        const char *part;
    } wrong[] = {
        {{"GGUf", "a.weight", 3, 64, 8, 2, 9, 64, 320, 2}, "expected a GGUF file"},
        {{"GGUF", "a.weight", 1, 64, 8, 2, 9, 64, 320, 2}, "got version 1"},
        {{"GGUF", "a.weight", 4, 64, 8, 2, 9, 64, 320, 2}, "got version 4"},
        {{"GGUF", "a.weight", 3, 48, 8, 2, 9, 64, 320, 2}, "power of two"},
        {{"GGUF", "a.weight", 3, 0, 8, 2, 9, 64, 320, 2}, "power of two"},
        {{"GGUF", "a.weight", 3, 64, 10, 2, 9, 64, 320, 2}, "\"a.weight\" is of type 10"},
        {{"GGUF", "a.weight", 3, 64, 8, 0, 9, 64, 320, 2}, "1 to 4 dimensions"},
        {{"GGUF", "a.weight", 3, 64, 8, 5, 9, 64, 320, 2}, "1 to 4 dimensions"},
        {{"GGUF", "a.weight", 3, 64, 8, 2, 13, 64, 320, 2}, "type 13"},
        {{"GGUF", "a.weight", 3, 64, 8, 2, 9, 48, 320, 2}, "no whole blocks of 32"},
        {{"GGUF", "a.weight", 3, 64, 8, 2, 9, 0, 320, 2}, "a dimension of 0"},
        {{"GGUF", "a.weight", 3, 64, 8, 2, 9, (uint64_t)1 << 63, 320, 2}, "a dimension of"},
        {{"GGUF", "a.weight", 3, 64, 8, 2, 9, 64, 300, 2}, "cannot begin at byte 300"},
        {{"GGUF", "a.weight", 3, 64, 8, 2, 9, 64, 256, 2}, "\"norm.weight\" lies in \"a.weight\""},
        {{"GGUF", "a.weight", 3, 64, 8, 2, 9, 64, 384, 2}, "\"norm.weight\" ends beyond the file"},
        {{"GGUF", "a.weight", 3, 64, 8, 2, 9, 64, UINT64_MAX - 63, 2}, "lies in\0beyond"},
        {{"GGUF", "norm.weight", 3, 64, 8, 2, 9, 64, 320, 2}, "occurs twice"},
        {{"GGUF", "", 3, 64, 8, 2, 9, 64, 320, 2}, "1 to 1023 bytes"},
        {{"GGUF", "a.weight", 3, 64, 8, 2, 9, 64, 320, 0}, "0 tensors"},
        {{"GGUF", "a.weight", 3, 64, 8, 2, 9, 64, 320, (uint64_t)1 << 40}, "not a model"},
    };
    struct file f = make(&good);
    assert_ok(parse(&f, f.n));
    for (size_t n = 0; n < f.n; n++) assert_int_equal(parse(&f, n), LK_E_INPUT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        f = make(&wrong[i].r);
        if (wrong[i].r.second_offset > UINT64_MAX / 2)
            assert_int_equal(parse(&f, f.n), LK_E_INPUT);
        else
            assert_fails(parse(&f, f.n), LK_E_INPUT, wrong[i].part);
        assert_non_null(strstr(lk_error_text(), "w.gguf"));
    }
}

static void bound(void **state) {
    (void)state;
    struct file f = make(&good);
    const char *path = test_path("weights.gguf");
    test_write(path, f.bytes, f.n);
    for (int embedding = 0; embedding < 2; embedding++) {
        struct lk_checkpoint cp;
        struct lk_bind *b;
        struct lk_tensor w, norm;
        struct lk_bind_totals totals;
        uint16_t values[256];
        void *owned;
        assert_ok(lk_checkpoint_open_file(&cp, path));
        assert_ok(lk_bind_begin(&b, &cp, "transformer", LK_BF16));
        lk_bind_quantize(b, LK_QUANTIZE_NF4, (const char *const[]){NULL}); /* is packed already */
        if (embedding)
            lk_bind_embedding(b, &w, 4, 64, "a.weight");
        else
            LK_BIND(b, &w, LK_SHAPE(4, 64), "a.weight");
        LK_BIND(b, &norm, LK_SHAPE(3), "norm.weight");
        assert_ok(lk_bind_finish(b, &owned, &totals));
        assert_int_equal(w.dtype, embedding ? LK_BF16 : LK_Q8_0);
        assert_int_equal(totals.weight_bytes, (embedding ? 512 : 272) + 6);
        if (embedding)
            memcpy(values, w.data, sizeof values);
        else
            lk_dequantize(&w, 0, 256, values);
        for (int i = 0; i < 256; i++) {
            const float want = 0.5f * (float)(int8_t)(37 * (i / 32) + 11 * (i % 32));
            assert_true(lk_bf16_to_f32(values[i]) == want);
        }
        assert_true(lk_bf16_to_f32(((uint16_t *)norm.data)[2]) == 2);
        lk_free(owned);
        lk_checkpoint_close(&cp);
    }
}

/* Binds "a.weight" [2, 3] from the tensors given. */
static enum lk_code bind_tensors(const struct lk_st_named *tensors, size_t n, uint16_t values[6]) {
    const char *path = test_path("fp8.safetensors");
    struct lk_checkpoint cp;
    struct lk_bind *b;
    struct lk_tensor w;
    void *owned;
    assert_ok(lk_safetensors_write(path, tensors, n, NULL));
    assert_ok(lk_checkpoint_open_file(&cp, path));
    assert_ok(lk_bind_begin(&b, &cp, "transformer", LK_BF16));
    LK_BIND(b, &w, LK_SHAPE(2, 3), "a.weight");
    enum lk_code rc = lk_bind_finish(b, &owned, NULL);
    if (!rc) lk_dequantize(&w, 0, 6, values);
    lk_free(owned);
    lk_checkpoint_close(&cp);
    return rc;
}

static void fp8(void **state) {
    (void)state;
    unsigned char codes[6] = {0x38, 0xb8, 0x01, 0x7e, 0x40, 0x00}; /* 1, -1, 2^-9, 448, 2, 0 */
    static const float e4m3[6] = {1, -1, 0x1p-9f, 448, 2, 0}, e5m2[6] = {0.5f, -0.5f, 0x1p-16f, 24576, 2, 0};
    float scale = 0.37f, two[2] = {1, 2};
    char json[] = "{\"format\": \"float8_e4m3fn\", \"full_precision_matrix_mult\": true}",
         other[] = "{\"format\": \"nvfp4\"}";
    uint16_t values[6];
    struct lk_st_named t[5] = {{"a.weight", LK_TENSOR(codes, LK_F8_E4M3, 2, 3)},
                               {"a.weight_scale", lk_tensor_make(&scale, LK_F32, 0, NULL)},
                               {"a.input_scale", LK_TENSOR(two, LK_F32, 1)},
                               {"a.comfy_quant", LK_TENSOR(json, LK_U8, (int64_t)strlen(json))},
                               {"scaled_fp8", LK_TENSOR(codes, LK_F8_E4M3, 0)}};
    assert_ok(bind_tensors(t, 4, values));
    for (int i = 0; i < 6; i++) assert_true(lk_bf16_to_f32(values[i]) == lk_round_bf16(e4m3[i] * scale));
    assert_ok(bind_tensors(t, 1, values)); /* no scale */
    for (int i = 0; i < 6; i++) assert_true(lk_bf16_to_f32(values[i]) == e4m3[i]);
    t[0].tensor.dtype = LK_F8_E5M2; /* the older names */
    codes[3] = 0x76;
    t[1] = (struct lk_st_named){"a.scale_weight", LK_TENSOR(&scale, LK_F32, 1)};
    t[2].name = "a.scale_input";
    t[3] = t[4];
    assert_ok(bind_tensors(t, 4, values));
    for (int i = 0; i < 6; i++) assert_true(lk_bf16_to_f32(values[i]) == lk_round_bf16(e5m2[i] * scale));
    t[3] = (struct lk_st_named){"a.comfy_quant", LK_TENSOR(json, LK_U8, (int64_t)strlen(json))};
    assert_fails(bind_tensors(t, 4, values), LK_E_BIND, "a.comfy_quant: byte ");
    t[1].tensor = LK_TENSOR(two, LK_F32, 2);
    assert_fails(bind_tensors(t, 3, values), LK_E_BIND, "a.scale_weight: expected one scale");
    t[1].tensor = LK_TENSOR(&scale, LK_F32, 1);
    scale = __builtin_nanf("");
    assert_fails(bind_tensors(t, 3, values), LK_E_BIND, "a.weight: scale 0 is NaN");

    t[0].tensor.dtype = LK_I8; /* other people's forms */
    t[1] = (struct lk_st_named){"a.SCB", LK_TENSOR(two, LK_F32, 2)};
    assert_fails(bind_tensors(t, 2, values), LK_E_BIND, "LLM.int8");
    t[0].tensor.dtype = LK_U8;
    t[1] = (struct lk_st_named){"a.comfy_quant", LK_TENSOR(other, LK_U8, (int64_t)strlen(other))};
    assert_fails(bind_tensors(t, 2, values), LK_E_BIND, "nvfp4");
    t[0].name = "a.qweight";
    assert_fails(bind_tensors(t, 1, values), LK_E_BIND, "nunchaku");
}

/* Of a fused matrix each layer has its rows and the whole text about them, whatever its length. */
static void fused_fp8(void **state) {
    (void)state;
    static const struct lk_rename rules[] = {{"qkv", "q", 0, 1, 3, false},
                                             {"qkv", "k", 1, 1, 3, false},
                                             {"qkv", "v", 2, 1, 3, false},
                                             {"shift", "scale", 0, 1, 1, true}};
    static const char *const modules[] = {"q", "k", "v", "scale"};
    unsigned char codes[6] = {0x38, 0xb8, 0x01, 0x7e, 0x40, 0x00};
    float scale = 0.5f;
    for (int blanks = 0; blanks < 6; blanks++) {
        char json[64], name[64];
        const int n = snprintf(json, sizeof json, "{\"format\":%*s\"float8_e4m3fn\"}", blanks, "");
        struct lk_st_named t[] = {{"qkv.weight", LK_TENSOR(codes, LK_F8_E4M3, 3, 2)},
                                  {"qkv.weight_scale", LK_TENSOR(&scale, LK_F32, 1)},
                                  {"qkv.comfy_quant", LK_TENSOR(json, LK_U8, n)},
                                  {"shift.weight", LK_TENSOR(codes, LK_F8_E4M3, 2, 3)},
                                  {"shift.comfy_quant", LK_TENSOR(json, LK_U8, n)}};
        struct lk_checkpoint cp;
        assert_ok(lk_safetensors_write(test_path("fused.safetensors"), t, 5, NULL));
        assert_ok(lk_checkpoint_open_file(&cp, test_path("fused.safetensors")));
        assert_ok(lk_checkpoint_rename(&cp, "", rules, 4));
        for (int i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "%s.comfy_quant", modules[i]);
            const struct lk_st_tensor *about = lk_checkpoint_find(&cp, name);
            assert_non_null(about);
            assert_int_equal(about->tensor.shape[0], n);
            assert_memory_equal(about->tensor.data, json, (size_t)n);
            snprintf(name, sizeof name, "%s.weight", modules[i]);
            const unsigned char *rows = lk_checkpoint_find(&cp, name)->tensor.data;
            assert_memory_equal(rows, i < 3 ? codes + 2 * i : codes + 3, i < 3 ? 2 : 3);
        }
        lk_checkpoint_close(&cp);
    }
}

/* A GGUF file is one by its bytes; what is only called so is refused as one. */
static void whatever_its_name(void **state) {
    (void)state;
    static const char *const names[] = {"w.gguf", "w.GGUF", "w.Gguf", "w.bin", "w.safetensors", "w"};
    const struct file f = make(&good);
    struct lk_checkpoint cp;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        test_write(test_path(names[i]), f.bytes, f.n);
        assert_ok(lk_checkpoint_open_file(&cp, test_path(names[i])));
        assert_non_null(lk_checkpoint_find(&cp, "a.weight"));
        lk_checkpoint_close(&cp);
        test_write(test_path(names[i]), "GGUf\3\0\0\0", 8);
        assert_fails(lk_checkpoint_open_file(&cp, test_path(names[i])), i < 3 ? LK_E_INPUT : LK_E_ST_HEADER_SIZE,
                     names[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_headers), cmocka_unit_test(bound), cmocka_unit_test(fp8),
                                       cmocka_unit_test(fused_fp8), cmocka_unit_test(whatever_its_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
