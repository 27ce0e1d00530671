#include "tests/common/packed.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/quantized.h"
#include "models/flux2/transformer.h"
#include "models/qwen_edit/transformer.h"
#include "models/step1x/transformer.h"
#include "tests/common/test.h"
#include "weights/bind.h"
#include "weights/checkpoint.h"

enum { ALIGN = 32, GGUF_BF16 = 30 };

/* A matrix that is packed, and what it stands for. */
struct packed {
    unsigned char *bytes;
    size_t n_bytes;
    uint16_t *plain;
    float scale; /* of fp8 */
};

static float largest(const float *x, int n) {
    float most = 0;
    for (int i = 0; i < n; i++) most = fmaxf(most, fabsf(x[i]));
    return most;
}

/* The least power of two that holds x in codes up to `most`, as f32 and as f16. */
static float scale_of(float x, float most, unsigned char half[2]) {
    int exponent = -14;
    while (ldexpf(most, exponent) < x) exponent++;
    const uint16_t bits = (uint16_t)((exponent + 15) << 10);
    memcpy(half, &bits, 2);
    return ldexpf(1, exponent);
}

static int code_of(float x, float scale, int least, int most) {
    const int code = scale != 0 ? (int)lrintf(x / scale) : 0;
    return code < least ? least : code > most ? most : code;
}

static size_t pack_q8_0(const float *x, unsigned char *out, float *y) {
    const float scale = scale_of(largest(x, 32), 127, out);
    for (int i = 0; i < 32; i++) {
        const int code = code_of(x[i], scale, -127, 127);
        out[2 + i] = (unsigned char)code;
        y[i] = scale * (float)code;
    }
    return 34;
}

static size_t pack_q4_0(const float *x, unsigned char *out, float *y) {
    const float scale = scale_of(largest(x, 32), 7, out);
    memset(out + 2, 0, 16);
    for (int i = 0; i < 32; i++) { /* the second half of the block in the high nibbles */
        const int code = code_of(x[i], scale, -8, 7);
        out[2 + i % 16] |= (unsigned char)((code + 8) << (i < 16 ? 0 : 4));
        y[i] = scale * (float)code;
    }
    return 18;
}

/* 128 low halves of a byte, 64 quarters, 16 scales, f16. */
static size_t pack_q6_k(const float *x, unsigned char *out, float *y) {
    const float scale = scale_of(largest(x, 256), 31 * 127, out + 208);
    memset(out, 0, 208);
    for (int i = 0; i < 256; i++) {
        const int part = i / 16, half = i / 128, quarter = i % 128 / 32, l = i % 32;
        const int of = 1 + (int)(largest(x + 16 * part, 16) / (31 * scale));
        out[192 + part] = (unsigned char)(of > 127 ? 127 : of);
        const float step = scale * (float)out[192 + part];
        const int code = code_of(x[i], step, -32, 31);
        out[64 * half + l + 32 * (quarter % 2)] |= (unsigned char)(((code + 32) & 15) << (quarter < 2 ? 0 : 4));
        out[128 + 32 * half + l] |= (unsigned char)((code + 32) >> 4 << 2 * quarter);
        y[i] = step * (float)code;
    }
    return 210;
}

static const struct gguf_type {
    uint32_t number;
    int block;
    size_t (*pack)(const float *x, unsigned char *out, float *y);
} types[] = {{8, 32, pack_q8_0}, {2, 32, pack_q4_0}, {14, 256, pack_q6_k}};

static struct packed pack_gguf(const struct lk_tensor *t, const struct gguf_type *type) {
    const size_t n = (size_t)lk_tensor_numel(t);
    const uint16_t *from = t->data;
    struct packed p = {.bytes = lk_malloc(2 * n), .plain = lk_malloc(2 * n)};
    float x[256], y[256];
    for (size_t i = 0; i < n; i += (size_t)type->block) {
        for (int k = 0; k < type->block; k++) x[k] = lk_bf16_to_f32(from[i + (size_t)k]);
        p.n_bytes += type->pack(x, p.bytes + p.n_bytes, y);
        for (int k = 0; k < type->block; k++) p.plain[i + (size_t)k] = lk_f32_to_bf16(y[k]);
    }
    return p;
}

static struct packed pack_fp8(const struct lk_tensor *t) {
    const size_t n = (size_t)lk_tensor_numel(t);
    const uint16_t *from = t->data;
    struct packed p = {.bytes = lk_malloc(n), .n_bytes = n, .plain = lk_malloc(2 * n)};
    for (size_t i = 0; i < n; i++) p.scale = fmaxf(p.scale, fabsf(lk_bf16_to_f32(from[i])) / 448);
    for (size_t i = 0; i < n; i++) {
        const float x = lk_bf16_to_f32(from[i]) / p.scale;
        int nearest = 0;
        for (int code = 0; code < 255; code++) /* 127 and 255 are NaN, which is nearer to nothing */
            if (fabsf(lk_f8_value(LK_F8_E4M3, (uint8_t)code) - x) <
                fabsf(lk_f8_value(LK_F8_E4M3, (uint8_t)nearest) - x))
                nearest = code;
        p.bytes[i] = (unsigned char)nearest;
        p.plain[i] = lk_f32_to_bf16(lk_f8_value(LK_F8_E4M3, (uint8_t)nearest) * p.scale);
    }
    return p;
}

/* A GGUF file with tensors t[0..n), of which those with blocks are packed. */
static void write_gguf(const char *path, const struct lk_st_named *t, const struct packed *packed,
                       const struct gguf_type *const *type, size_t n) {
    const uint32_t version = 3, bf16 = GGUF_BF16;
    const uint64_t counts[2] = {n, 0};
    static const unsigned char zeros[ALIGN];
    uint64_t at = 0;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite("GGUF", 1, 4, f);
    fwrite(&version, 4, 1, f);
    fwrite(counts, 8, 2, f);
    for (size_t i = 0; i < n; i++) {
        const uint64_t length = strlen(t[i].name), bytes = packed[i].n_bytes;
        const uint32_t n_dims = (uint32_t)t[i].tensor.n_dims;
        fwrite(&length, 8, 1, f);
        fwrite(t[i].name, 1, (size_t)length, f);
        fwrite(&n_dims, 4, 1, f);
        for (int k = (int)n_dims - 1; k >= 0; k--) fwrite(&t[i].tensor.shape[k], 8, 1, f);
        fwrite(type[i] ? &type[i]->number : &bf16, 4, 1, f);
        fwrite(&at, 8, 1, f);
        at = (at + bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t over = (size_t)ftell(f) % ALIGN;
        fwrite(zeros, 1, over ? ALIGN - over : 0, f);
        fwrite(type[i] ? packed[i].bytes : t[i].tensor.data, 1, packed[i].n_bytes, f);
    }
    assert_int_equal(fclose(f), 0);
}

/* The file's path. */
static const char *write_packed(int family, enum packed_form form, bool plain) {
    static const char *const *const kept[TINY_FAMILIES] = {lk_flux2_kept, lk_qwen_kept, lk_step1x_kept};
    enum { MOST = 128 };
    struct lk_checkpoint cp;
    struct lk_st_named all[2 * MOST];
    struct packed packed[MOST] = {{0}};
    const struct gguf_type *type[MOST] = {0};
    static char names[MOST][160];
    char folder[1100];
    int turn = 0;
    snprintf(folder, sizeof folder, "%s/transformer", tiny_edits[family].checkpoint);
    assert_ok(lk_checkpoint_open(&cp, folder, "diffusion_pytorch_model"));
    assert_true(cp.n_tensors <= MOST);
    size_t n = cp.n_tensors;
    for (size_t i = 0; i < cp.n_tensors; i++) {
        const struct lk_st_tensor *t = cp.tensors[i].tensor;
        all[i] = (struct lk_st_named){t->name, t->tensor};
        packed[i].n_bytes = lk_tensor_bytes(&t->tensor);
        assert_int_equal(t->tensor.dtype, LK_BF16);
        if (t->tensor.n_dims != 2) continue;
        const int64_t columns = t->tensor.shape[1];
        if (form == PACKED_GGUF && columns % 32 == 0) {
            type[i] = &types[columns % 256 ? turn++ % 2 : 2];
            packed[i] = pack_gguf(&t->tensor, type[i]);
        } else if (form == PACKED_FP8 && !lk_bind_keeps(t->name, kept[family])) {
            packed[i] = pack_fp8(&t->tensor);
            if (plain) continue;
            all[i].tensor.dtype = LK_F8_E4M3;
            snprintf(names[i], sizeof names[i], "%s_scale", t->name);
            all[n++] = (struct lk_st_named){names[i], lk_tensor_make(&packed[i].scale, LK_F32, 0, NULL)};
        }
    }
    const char *path = test_path(form == PACKED_GGUF && !plain ? "packed.gguf" : "packed.safetensors");
    for (size_t i = 0; i < cp.n_tensors; i++)
        if (packed[i].bytes) all[i].tensor.data = plain ? (void *)packed[i].plain : packed[i].bytes;
    if (form == PACKED_GGUF && !plain)
        write_gguf(path, all, packed, type, n);
    else
        assert_ok(lk_safetensors_write(path, all, n, NULL));
    for (size_t i = 0; i < cp.n_tensors; i++) {
        lk_free(packed[i].bytes);
        lk_free(packed[i].plain);
    }
    lk_checkpoint_close(&cp);
    return path;
}

const char *const packed_names[PACKED_FORMS] = {"bf16", "q8", "nf4", "GGUF", "fp8 file"};

struct lk_pipeline_options packed_options(int family, enum packed_form form, int n_loras, bool plain) {
    static const enum lk_quantize quantize[PACKED_FORMS] = {
        [PACKED_Q8] = LK_QUANTIZE_Q8, [PACKED_NF4] = LK_QUANTIZE_NF4};
    static const char *loras[2];
    loras[0] = loras[1] = tiny_edits[family].lora;
    assert_true(n_loras <= 2);
    return (struct lk_pipeline_options){.compute = LK_BF16,
                                        .quantize = quantize[form],
                                        .transformer = form < PACKED_GGUF ? NULL : write_packed(family, form, plain),
                                        .loras = loras,
                                        .n_loras = n_loras};
}
