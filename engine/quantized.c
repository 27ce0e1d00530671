#include "engine/quantized.h"

#include "engine/quantized_units.h"

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

void lk_dequantize(const struct lk_tensor *t, int64_t first, int64_t n, uint16_t *out) { dequantize(t, first, n, out); }
