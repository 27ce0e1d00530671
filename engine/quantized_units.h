/* The decoder of engine/quantized.h, 32 elements at a time. The body is compiled once per instruction level; all levels
 * give the same bits. LEVELS, FLOATS, SCALED, NIBBLES and HALVES may name functions of the level at hand
 * (kernels/cpu/quantized_*.c). */
#pragma once

#include <string.h>

#include "engine/bf16.h"
#include "engine/f16.h"
#include "engine/quantized.h"

#define UNIT 32

/* value = v * scale - minimum, where v is the code, as i8, or what a table has for it; a scale for each half. */
struct unit {
    uint8_t code[UNIT];
    float scale[2], minimum;
};

#ifndef LEVELS
#define LEVELS levels
static inline void levels(const uint8_t code[UNIT], float out[UNIT]) {
    for (int i = 0; i < UNIT; i++) out[i] = lk_nf4_levels[code[i]];
}
#endif

#ifndef FLOATS
#define FLOATS floats
static inline void floats(enum lk_dtype dtype, const uint8_t code[UNIT], float out[UNIT]) {
    for (int i = 0; i < UNIT; i++) out[i] = lk_f8_value(dtype, code[i]);
}
#endif

#ifndef SCALED
#define SCALED scaled
static inline void scaled(const float v[UNIT / 2], float scale, float minimum, uint16_t out[UNIT / 2]) {
    for (int i = 0; i < UNIT / 2; i++) out[i] = lk_f32_to_bf16(v[i] * scale - minimum);
}
#endif

#ifndef NIBBLES
#define NIBBLES nibbles_of
static inline void nibbles_of(const unsigned char bytes[UNIT / 2], uint8_t code[UNIT]) {
    for (int i = 0; i < UNIT / 2; i++) {
        code[2 * i] = bytes[i] >> 4;
        code[2 * i + 1] = bytes[i] & 15;
    }
}
#endif

#ifndef HALVES
#define HALVES halves_of
static inline void halves_of(const unsigned char bytes[UNIT / 2], uint8_t code[UNIT]) {
    for (int i = 0; i < UNIT / 2; i++) code[i] = (uint8_t)((bytes[i] & 15) - 8);
    for (int i = 0; i < UNIT / 2; i++) code[i + UNIT / 2] = (uint8_t)((bytes[i] >> 4) - 8);
}
#endif

static inline float half_at(const unsigned char *p) { return lk_f16_to_f32((uint16_t)(p[0] | p[1] << 8)); }

/* n of a unit's codes whose first lies at data; the others are 0. */
static inline void unit_scaled(struct unit *u, enum lk_dtype dtype, const unsigned char *data, int n, float scale) {
    u->scale[0] = u->scale[1] = scale;
    if (n == UNIT && dtype == LK_NF4) {
        NIBBLES(data, u->code);
    } else if (n == UNIT) {
        memcpy(u->code, data, UNIT);
    } else {
        memset(u->code, 0, UNIT);
        for (int i = 0; i < n; i++)
            u->code[i] = dtype != LK_NF4 ? data[i] : i % 2 ? data[i / 2] & 15 : data[i / 2] >> 4;
    }
}

static inline void unit_q8_0(struct unit *u, const unsigned char *block) {
    u->scale[0] = u->scale[1] = half_at(block);
    memcpy(u->code, block + 2, UNIT);
}

static inline void unit_q4_0(struct unit *u, const unsigned char *block) {
    u->scale[0] = u->scale[1] = half_at(block);
    HALVES(block + 2, u->code);
}

/* Sub-block j of Q4_K, and of Q5_K whose fifth bits lie before the nibbles. */
static inline void unit_q45_k(struct unit *u, const unsigned char *block, int j, bool has_fifth_bits) {
    const unsigned char *s = block + 4, *high = block + 16, *nibbles = has_fifth_bits ? high + 32 : high;
    const int sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    const int m = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
    u->scale[0] = u->scale[1] = half_at(block) * (float)sc;
    u->minimum = half_at(block + 2) * (float)m;
    nibbles += j / 2 * UNIT;
    for (int l = 0; l < UNIT; l++) u->code[l] = (uint8_t)(j % 2 ? nibbles[l] >> 4 : nibbles[l] & 15);
    for (int l = 0; has_fifth_bits && l < UNIT; l++) u->code[l] |= (uint8_t)((high[l] >> j & 1) << 4);
}

/* Elements [32 j, 32 j + 32) of a block. In each half of it, bits 4 and 5 of element 32 k + l are pair k of high[l]. */
static inline void unit_q6_k(struct unit *u, const unsigned char *block, int j) {
    const int half = j / 4, k = j % 4;
    const float d = half_at(block + 208);
    const unsigned char *low = block + 64 * half + UNIT * (k % 2), *high = block + 128 + UNIT * half;
    u->scale[0] = d * (float)(int8_t)block[192 + 2 * j];
    u->scale[1] = d * (float)(int8_t)block[192 + 2 * j + 1];
    for (int l = 0; l < UNIT; l++) {
        const int q = (k < 2 ? low[l] & 15 : low[l] >> 4) | (high[l] >> 2 * k & 3) << 4;
        u->code[l] = (uint8_t)(q - 32);
    }
}

/* The unit that begins with element `at`, a multiple of UNIT. */
static inline void load_unit(struct unit *u, const struct lk_tensor *t, int64_t at, int64_t numel) {
    const unsigned char *data = t->data;
    const int j = (int)(at % 256 / UNIT);
    u->minimum = 0;
    switch (t->dtype) {
    case LK_Q8_0:
        unit_q8_0(u, data + at / UNIT * 34);
        break;
    case LK_Q4_0:
        unit_q4_0(u, data + at / UNIT * 18);
        break;
    case LK_Q4_K:
        unit_q45_k(u, data + at / 256 * 144, j, false);
        break;
    case LK_Q5_K:
        unit_q45_k(u, data + at / 256 * 176, j, true);
        break;
    case LK_Q6_K:
        unit_q6_k(u, data + at / 256 * 210, j);
        break;
    default:
        unit_scaled(u, t->dtype, data + (t->dtype == LK_NF4 ? at / 2 : at),
                    numel - at < UNIT ? (int)(numel - at) : UNIT, lk_scale_of(&t->scales, at));
        break;
    }
}

static inline void unit_values(const struct unit *u, enum lk_dtype dtype, uint16_t out[UNIT]) {
    float v[UNIT];
    if (dtype == LK_NF4) {
        LEVELS(u->code, v);
    } else if (dtype < LK_NF4) {
        FLOATS(dtype, u->code, v);
    } else {
        for (int i = 0; i < UNIT; i++) v[i] = (float)(int8_t)u->code[i];
    }
    SCALED(v, u->scale[0], u->minimum, out);
    SCALED(v + UNIT / 2, u->scale[1], u->minimum, out + UNIT / 2);
}

static inline void dequantize(const struct lk_tensor *t, int64_t first, int64_t n, uint16_t *out) {
    const int64_t numel = lk_tensor_numel(t), end = first + n;
    for (int64_t at = first / UNIT * UNIT; at < end; at += UNIT) {
        struct unit u;
        uint16_t part[UNIT];
        load_unit(&u, t, at, numel);
        if (at >= first && at + UNIT <= end) {
            unit_values(&u, t->dtype, out + (at - first));
            continue;
        }
        const int64_t from = at < first ? first : at, to = at + UNIT < end ? at + UNIT : end;
        unit_values(&u, t->dtype, part);
        memcpy(out + (from - first), part + (from - at), (size_t)(to - from) * sizeof *out);
    }
}
