/* Approximate functions. The hardware's results are not specified to the bit; these are within the PTX ISA's bounds
 * (they are nearly correctly rounded), with its results for special values. */
#include "exec/lanes.h"
#include "numerics/half.h"

#include <math.h>

static inline uint32_t flush(uint32_t v) { return v & 0x7f800000 ? v : v & 0x80000000; }
static inline uint32_t done(float v) { return v == v ? float_bits(v) : 0x7fffffffu; }

#define MATH(name, ...)                                                                                                \
    HANDLER(name##_f32) {                                                                                              \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const uint32_t *a = REGS32(op->a);                                                                             \
        EACH_LANE(float x = as_float(a[i]); d[i] = done(__VA_ARGS__);)                                                 \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(name##_ftz_f32) {                                                                                          \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const uint32_t *a = REGS32(op->a);                                                                             \
        EACH_LANE(float x = as_float(flush(a[i])); d[i] = flush(done(__VA_ARGS__));)                                   \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(name##_f16) {                                                                                              \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const uint32_t *a = REGS32(op->a);                                                                             \
        EACH_LANE(float x = num_from_f16(a[i] & 0xffff); d[i] = num_to_f16(__VA_ARGS__);)                              \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(name##_bf16) {                                                                                             \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const uint32_t *a = REGS32(op->a);                                                                             \
        EACH_LANE(float x = num_from_bf16(a[i] & 0xffff); d[i] = num_to_bf16(__VA_ARGS__);)                            \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(name##_f16x2) {                                                                                            \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const uint32_t *a = REGS32(op->a);                                                                             \
        EACH_LANE({                                                                                                    \
            float x = num_from_f16(a[i] & 0xffff);                                                                     \
            uint32_t low = num_to_f16(__VA_ARGS__);                                                                    \
            x = num_from_f16(a[i] >> 16);                                                                              \
            d[i] = low | num_to_f16(__VA_ARGS__) << 16;                                                                \
        })                                                                                                             \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(name##_bf16x2) {                                                                                           \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const uint32_t *a = REGS32(op->a);                                                                             \
        EACH_LANE({                                                                                                    \
            float x = num_from_bf16(a[i] & 0xffff);                                                                    \
            uint32_t low = num_to_bf16(__VA_ARGS__);                                                                   \
            x = num_from_bf16(a[i] >> 16);                                                                             \
            d[i] = low | num_to_bf16(__VA_ARGS__) << 16;                                                               \
        })                                                                                                             \
        return GPUSIM_NEXT;                                                                                            \
    }
MATH(lg2, log2f(x))
MATH(sin, sinf(x))
MATH(cos, cosf(x))
MATH(tanh, tanhf(x))

/* 2^x = 2^n * 2^f with |f| <= 1/2, a polynomial for 2^f (error below 2^-22, the ISA allows 2 + 1 ulp), all in vector
 * code. */
static inline uint32_t exp2_bits(float x) {
    float clamped = x > 129.0f ? 129.0f : x < -151.0f ? -151.0f : x;
    clamped = x == x ? clamped : 0.0f;
    float n = __builtin_rintf(clamped), f = clamped - n;
    float p = 1.5252733804059840e-5f;
    p = __builtin_fmaf(p, f, 1.5403530393381609e-4f);
    p = __builtin_fmaf(p, f, 1.3333558146428443e-3f);
    p = __builtin_fmaf(p, f, 9.6181291076284772e-3f);
    p = __builtin_fmaf(p, f, 5.5504108664821580e-2f);
    p = __builtin_fmaf(p, f, 2.4022650695910072e-1f);
    p = __builtin_fmaf(p, f, 6.9314718055994531e-1f);
    p = __builtin_fmaf(p, f, 1.0f);
    int32_t e = (int32_t)n, half = e / 2; /* in two steps, so that results may be subnormal */
    float scaled = p * as_float((uint32_t)(half + 127) << 23) * as_float((uint32_t)(e - half + 127) << 23);
    return x == x ? float_bits(scaled) : 0x7fffffffu;
}
UNARY(ex2_f32, uint32_t, uint32_t, uint32_t, exp2_bits(as_float(x)))
UNARY(ex2_ftz_f32, uint32_t, uint32_t, uint32_t, flush(exp2_bits(as_float(flush(x)))))
#define EX2_F16(h)  num_to_f16(as_float(exp2_bits(num_from_f16(h))))
#define EX2_BF16(h) num_to_bf16(as_float(exp2_bits(num_from_bf16(h))))
UNARY(ex2_f16, uint32_t, uint32_t, uint32_t, EX2_F16(x & 0xffff))
UNARY(ex2_bf16, uint32_t, uint32_t, uint32_t, EX2_BF16(x & 0xffff))
UNARY(ex2_f16x2, uint32_t, uint32_t, uint32_t, EX2_F16(x & 0xffff) | EX2_F16(x >> 16) << 16)
UNARY(ex2_bf16x2, uint32_t, uint32_t, uint32_t, EX2_BF16(x & 0xffff) | EX2_BF16(x >> 16) << 16)

#define ROW_M(key, name)                                                                                               \
    {key ".f32", name##_f32}, {key ".ftz.f32", name##_ftz_f32}, {key ".f16", name##_f16}, {key ".bf16", name##_bf16},  \
        {key ".f16x2", name##_f16x2}, {key ".bf16x2", name##_bf16x2}, {key ".ftz.bf16", name##_bf16}, {                \
        key ".ftz.bf16x2", name##_bf16x2                                                                               \
    }
const struct gpusim_entry TABLE(ops_math)[] = {
    ROW_M("ex2", ex2), ROW_M("lg2", lg2), ROW_M("sin", sin), ROW_M("cos", cos), ROW_M("tanh", tanh), {NULL, NULL},
};
