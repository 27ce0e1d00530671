/* cvt. What kernels use all the time is vector code here; the rest is convert_any.c's. */
#include "tools/gpusim/numerics/convert_any.h"
#include "tools/gpusim/numerics/lanes.h"

enum { RELU = GPUSIM_NUM_RELU };

INLINE uint32_t f16(uint32_t x, enum gpusim_num_rounding rounding, unsigned flags) {
    return finish_f16(f16_from_f32(x, rounding), flags);
}
INLINE uint32_t bf16(uint32_t x, enum gpusim_num_rounding rounding, unsigned flags) {
    return finish_bf16(bf16_from_f32(x, rounding), flags);
}
INLINE uint32_t tf32(uint32_t x) {
    uint32_t r = (x >> 13) + round_up(0, x & 0x1fff, 0x1000, 0, GPUSIM_NUM_RNA);
    return is_nan_f32(x) ? NAN_F32 : r << 13;
}

/* |x| below 2^32, so that the host's conversion to 64 bits is defined; then clamped. */
INLINE uint32_t s32(float x) {
    x = x < 0x1p31f ? x : 0x1p31f;
    x = x > -0x1p31f ? x : -0x1p31f;
    return x >= 0x1p31f ? 0x7fffffffu : (uint32_t)(int32_t)(x >= 0x1p31f ? 0 : x);
}
INLINE uint32_t u32(float x) {
    x = x > 0 ? x : 0;
    return x >= 0x1p32f ? 0xffffffffu : (uint32_t)(x >= 0x1p32f ? 0 : x);
}
INLINE float number(uint32_t x) { return is_nan_f32(x) ? 0 : f32_of(x); }
INLINE uint32_t u32_to_f32(uint32_t x) { return bits_f32((float)x); }
INLINE uint32_t s32_to_f32(uint32_t x) { return bits_f32((float)(int32_t)x); }

#define HALVES(NAME, FN, ROUNDING, FLAGS)                                                                              \
    LANES_32(NAME##_1, FN(x[l], GPUSIM_NUM_##ROUNDING, FLAGS))                                                         \
    LANES_32(NAME##_2, FN(x[l], GPUSIM_NUM_##ROUNDING, FLAGS) << 16 | FN(y[l], GPUSIM_NUM_##ROUNDING, FLAGS))
HALVES(f16_rn, f16, RN, 0)
HALVES(f16_rz, f16, RZ, 0)
HALVES(f16_rn_relu, f16, RN, RELU)
HALVES(f16_rz_relu, f16, RZ, RELU)
HALVES(bf16_rn, bf16, RN, 0)
HALVES(bf16_rz, bf16, RZ, 0)
HALVES(bf16_rn_relu, bf16, RN, RELU)
HALVES(bf16_rz_relu, bf16, RZ, RELU)
LANES_32(tf32_rna, tf32(x[l]))
LANES_32(f32_f16, f32_from_f16(x[l] & 0xffff))
LANES_32(f32_bf16, f32_from_bf16(x[l] & 0xffff))
LANES_32(f32_s32, s32_to_f32(x[l]))
LANES_32(f32_u32, u32_to_f32(x[l]))
LANES_32(s32_rni, s32(__builtin_rintf(number(x[l]))))
LANES_32(s32_rzi, s32(number(x[l])))
LANES_32(s32_rmi, s32(__builtin_floorf(number(x[l]))))
LANES_32(s32_rpi, s32(__builtin_ceilf(number(x[l]))))
LANES_32(u32_rni, u32(__builtin_rintf(number(x[l]))))
LANES_32(u32_rzi, u32(number(x[l])))
LANES_32(f32_rni, finish_f32(bits_f32(__builtin_rintf(f32_of(x[l]))), 0))
LANES_32(f32_rzi, finish_f32(bits_f32(__builtin_truncf(f32_of(x[l]))), 0))
LANES_32(f32_rmi, finish_f32(bits_f32(__builtin_floorf(f32_of(x[l]))), 0))
LANES_32(f32_rpi, finish_f32(bits_f32(__builtin_ceilf(f32_of(x[l]))), 0))

/* Integers without saturation: EXTEND_to(EXTEND_from(x)). */
#define EXTEND_S8(X)  ((uint64_t)(int8_t)(X))
#define EXTEND_U8(X)  ((uint64_t)(uint8_t)(X))
#define EXTEND_S16(X) ((uint64_t)(int16_t)(X))
#define EXTEND_U16(X) ((uint64_t)(uint16_t)(X))
#define EXTEND_S32(X) ((uint64_t)(int32_t)(X))
#define EXTEND_U32(X) ((uint64_t)(uint32_t)(X))
LANES(s8_32, 32, 32, 32, 32, (uint32_t)EXTEND_S8(x[l]))
LANES(u8_32, 32, 32, 32, 32, (uint32_t)EXTEND_U8(x[l]))
LANES(s16_32, 32, 32, 32, 32, (uint32_t)EXTEND_S16(x[l]))
LANES(u16_32, 32, 32, 32, 32, (uint32_t)EXTEND_U16(x[l]))
LANES(s32_32, 32, 32, 32, 32, x[l])
LANES(s32_64, 32, 64, 32, 32, (uint32_t)x[l])
LANES(s64_s32, 64, 32, 32, 32, EXTEND_S32(x[l]))
LANES(u64_u32, 64, 32, 32, 32, EXTEND_U32(x[l]))
LANES(s64_s16, 64, 32, 32, 32, EXTEND_S16(x[l]))
LANES(u64_u16, 64, 32, 32, 32, EXTEND_U16(x[l]))
LANES(s64_s8, 64, 32, 32, 32, EXTEND_S8(x[l]))
LANES(u64_u8, 64, 32, 32, 32, EXTEND_U8(x[l]))
LANES(s64_64, 64, 64, 32, 32, x[l])

static gpusim_num_fn *integers(enum gpusim_num_type to, enum gpusim_num_type from) {
    static gpusim_num_fn *const extend_32[] = {s8_32, u8_32, s16_32, u16_32, s32_32, s32_32};
    static gpusim_num_fn *const extend_64[] = {s64_s8, u64_u8, s64_s16, u64_u16, s64_s32, u64_u32, s64_64, s64_64};
    int wide_to = to >= GPUSIM_NUM_S64, wide_from = from >= GPUSIM_NUM_S64;
    if (wide_to) return extend_64[from - GPUSIM_NUM_S8];
    if (to >= GPUSIM_NUM_S32) return wide_from ? s32_64 : extend_32[from - GPUSIM_NUM_S8];
    /* the same width, or from 32 bits: only the target's extension counts */
    if (!wide_from && ((to - GPUSIM_NUM_S8) / 2 == (from - GPUSIM_NUM_S8) / 2 || from >= GPUSIM_NUM_S32))
        return extend_32[to - GPUSIM_NUM_S8];
    return NULL;
}

struct row {
    enum gpusim_num_type to, from;
    enum gpusim_num_rounding rounding;
    unsigned flags, ignored; /* flags that make no difference */
    gpusim_num_fn *fn;
};
#define ROW(TO, FROM, R, FLAGS, IGNORED, FN)                                                                           \
    { GPUSIM_NUM_##TO, GPUSIM_NUM_##FROM, GPUSIM_NUM_##R, FLAGS, IGNORED, FN }
#define FTZ GPUSIM_NUM_FTZ
#define SAT GPUSIM_NUM_SAT
static const struct row rows[] = {
    ROW(F16, F32, RN, 0, FTZ, f16_rn_1),
    ROW(F16, F32, RZ, 0, FTZ, f16_rz_1),
    ROW(F16, F32, RN, RELU, 0, f16_rn_relu_1),
    ROW(F16, F32, RZ, RELU, 0, f16_rz_relu_1),
    ROW(F16X2, F32, RN, 0, 0, f16_rn_2),
    ROW(F16X2, F32, RZ, 0, 0, f16_rz_2),
    ROW(F16X2, F32, RN, RELU, 0, f16_rn_relu_2),
    ROW(F16X2, F32, RZ, RELU, 0, f16_rz_relu_2),
    ROW(BF16, F32, RN, 0, 0, bf16_rn_1),
    ROW(BF16, F32, RZ, 0, 0, bf16_rz_1),
    ROW(BF16, F32, RN, RELU, 0, bf16_rn_relu_1),
    ROW(BF16, F32, RZ, RELU, 0, bf16_rz_relu_1),
    ROW(BF16X2, F32, RN, 0, 0, bf16_rn_2),
    ROW(BF16X2, F32, RZ, 0, 0, bf16_rz_2),
    ROW(BF16X2, F32, RN, RELU, 0, bf16_rn_relu_2),
    ROW(BF16X2, F32, RZ, RELU, 0, bf16_rz_relu_2),
    ROW(TF32, F32, RNA, 0, 0, tf32_rna),
    ROW(F32, F16, RN, 0, FTZ, f32_f16),
    ROW(F32, BF16, RN, 0, 0, f32_bf16),
    ROW(F32, S32, RN, 0, FTZ, f32_s32),
    ROW(F32, U32, RN, 0, FTZ, f32_u32),
    ROW(S32, F32, RNI, 0, FTZ | SAT, s32_rni),
    ROW(S32, F32, RZI, 0, FTZ | SAT, s32_rzi),
    ROW(S32, F32, RMI, 0, SAT, s32_rmi),
    ROW(S32, F32, RPI, 0, SAT, s32_rpi),
    ROW(U32, F32, RNI, 0, FTZ | SAT, u32_rni),
    ROW(U32, F32, RZI, 0, FTZ | SAT, u32_rzi),
    ROW(F32, F32, RNI, 0, FTZ, f32_rni),
    ROW(F32, F32, RZI, 0, FTZ, f32_rzi),
    ROW(F32, F32, RMI, 0, 0, f32_rmi),
    ROW(F32, F32, RPI, 0, 0, f32_rpi),
};

gpusim_num_fn *ISA(num_convert)(enum gpusim_num_type to, enum gpusim_num_type from, enum gpusim_num_rounding rounding,
                                unsigned flags) {
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].to == to && rows[i].from == from && rows[i].rounding == rounding &&
            rows[i].flags == (flags & ~rows[i].ignored))
            return rows[i].fn;
    gpusim_num_fn *fn = NULL;
    if (to >= GPUSIM_NUM_S8 && from >= GPUSIM_NUM_S8 && rounding == GPUSIM_NUM_RN && !flags) fn = integers(to, from);
    return fn ? fn : num_convert_any(to, from, rounding, flags);
}
