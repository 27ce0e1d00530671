#include "engine/quantized.h"

#include "engine/bf16.h"
#include "engine/f16.h"

#define MOST_BLOCK 256 /* elements of the longest block of GGUF */

const float lk_nf4_levels[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

/* f32 midpoints of neighbours, which are not all the exact ones. */
const float lk_nf4_thresholds[15] = {
    -0x1.b239bp-1f,  -0x1.38a4ep-1f,  -0x1.d709p-2f,  -0x1.5bd4ecp-2f, -0x1.e079d8p-3f,
    -0x1.1a7178p-3f, -0x1.74f0e2p-5f, 0x1.45f5fep-5f, 0x1.ec90c4p-4f,  0x1.a0cfcp-3f,
    0x1.2b05a8p-2f,  0x1.8ea7f2p-2f,  0x1.00da08p-1f, 0x1.491b5ep-1f,  0x1.b913b4p-1f,
};

float lk_f8_value(enum lk_dtype dtype, uint8_t code) {
    if (dtype == LK_F8_E5M2) return lk_f16_to_f32((uint16_t)(code << 8));
    const uint32_t exponent = (code >> 3) & 15u, mantissa = code & 7u;
    float value = exponent ? (float)(8 + mantissa) * 0x1p-10f * (float)(1u << exponent) : (float)mantissa * 0x1p-9f;
    if ((code & 0x7fu) == 0x7fu) value = __builtin_nanf("");
    return code & 0x80u ? -value : value;
}

float lk_scale_of(const struct lk_scales *s, int64_t element) {
    if (!s->data) return 1;
    const int64_t i = s->block ? element / s->block : 0;
    return s->dtype == LK_BF16 ? lk_bf16_to_f32(((const uint16_t *)s->data)[i]) : ((const float *)s->data)[i];
}

/* Elements [first, first + n) that share a scale. */
static void decode_scaled(enum lk_dtype dtype, const unsigned char *data, int64_t first, int64_t n, float scale,
                          uint16_t *out) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = first + i;
        float value;
        if (dtype == LK_NF4)
            value = lk_nf4_levels[at % 2 ? data[at / 2] & 15 : data[at / 2] >> 4];
        else if (dtype == LK_Q8)
            value = (float)(int8_t)data[at];
        else
            value = lk_f8_value(dtype, data[at]);
        out[i] = lk_f32_to_bf16(value * scale);
    }
}

static float half_at(const unsigned char *p) { return lk_f16_to_f32((uint16_t)(p[0] | p[1] << 8)); }

static void decode_q8_0(const unsigned char *block, float *out) {
    const float d = half_at(block);
    for (int i = 0; i < 32; i++) out[i] = d * (float)(int8_t)block[2 + i];
}

static void decode_q4_0(const unsigned char *block, float *out) {
    const float d = half_at(block);
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)((block[2 + i] & 15) - 8);
        out[i + 16] = d * (float)((block[2 + i] >> 4) - 8);
    }
}

/* Q4_K, and Q5_K whose fifth bits lie before the nibbles: 8 sub-blocks of 32 with a scale and a minimum each. */
static void decode_q45_k(const unsigned char *block, bool has_fifth_bits, float *out) {
    const float d = half_at(block), dmin = half_at(block + 2);
    const unsigned char *s = block + 4, *high = block + 16, *nibbles = has_fifth_bits ? high + 32 : high;
    for (int j = 0; j < 8; j++) {
        const int sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
        const int m = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
        const float scale = d * (float)sc, minimum = dmin * (float)m;
        for (int l = 0; l < 32; l++) {
            const int byte = nibbles[j / 2 * 32 + l];
            int q = j % 2 ? byte >> 4 : byte & 15;
            if (has_fifth_bits) q += (high[l] >> j & 1) << 4;
            out[32 * j + l] = scale * (float)q - minimum;
        }
    }
}

/* 16 sub-blocks of 16; in each half of the block, bits 4 and 5 of element 32 j + l are a pair of qh[l]. */
static void decode_q6_k(const unsigned char *block, float *out) {
    const float d = half_at(block + 208);
    const int8_t *sc = (const int8_t *)block + 192;
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, j = i % 128 / 32, l = i % 32;
        const int low = block[64 * half + 32 * (j % 2) + l], high = block[128 + 32 * half + l] >> 2 * j & 3;
        const int q = (j < 2 ? low & 15 : low >> 4) | high << 4;
        out[i] = d * (float)sc[i / 16] * (float)(q - 32);
    }
}

static void decode_block(enum lk_dtype dtype, const unsigned char *block, float *out) {
    switch (dtype) {
    case LK_Q8_0:
        decode_q8_0(block, out);
        break;
    case LK_Q4_0:
        decode_q4_0(block, out);
        break;
    case LK_Q6_K:
        decode_q6_k(block, out);
        break;
    default:
        decode_q45_k(block, dtype == LK_Q5_K, out);
        break;
    }
}

void lk_dequantize(const struct lk_tensor *t, int64_t first, int64_t n, uint16_t *out) {
    const bool in_blocks = t->dtype >= LK_Q8_0;
    const int64_t block = in_blocks ? lk_dtype_block(t->dtype) : t->scales.block;
    for (int64_t done = 0, count; done < n; done += count) {
        const int64_t at = first + done, skip = block ? at % block : 0;
        count = block && block - skip < n - done ? block - skip : n - done;
        if (in_blocks) {
            float values[MOST_BLOCK];
            const size_t offset = (size_t)(at / block) * lk_dtype_size(t->dtype);
            decode_block(t->dtype, (const unsigned char *)t->data + offset, values);
            for (int64_t i = 0; i < count; i++) out[done + i] = lk_f32_to_bf16(values[skip + i]);
        } else {
            decode_scaled(t->dtype, t->data, at, count, lk_scale_of(&t->scales, at), out + done);
        }
    }
}
