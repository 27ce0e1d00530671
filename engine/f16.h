/* IEEE half precision to float; exact. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float lk_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3ffu, bits;
    float f;
    if (exponent == 0) { /* zero and subnormals: mantissa * 2^-24 */
        f = (float)mantissa * 0x1p-24f;
        memcpy(&bits, &f, sizeof bits);
        bits |= sign;
    } else {
        bits = sign | (exponent == 31 ? 0xffu : exponent + 112u) << 23 | mantissa << 13;
    }
    memcpy(&f, &bits, sizeof f);
    return f;
}
