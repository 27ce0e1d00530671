/* Shared by the CPU kernels: access to elements in either dtype, and the prototypes that device_cpu.c puts in the
 * table. */
#pragma once

#include "engine/bf16.h"
#include "engine/ops.h"

#define LK_CPU_OP(name, last)                                                                                          \
    enum lk_code lk_cpu_##name(struct lk_device *dev, const struct lk_##name *op, void *scratch);
LK_OPS(LK_CPU_OP)
#undef LK_CPU_OP

size_t lk_cpu_linear_scratch(const struct lk_device *dev, const struct lk_linear *op);
size_t lk_cpu_attention_scratch(const struct lk_device *dev, const struct lk_attention *op);
size_t lk_cpu_conv2d_scratch(const struct lk_device *dev, const struct lk_conv2d *op);
size_t lk_cpu_group_norm_scratch(const struct lk_device *dev, const struct lk_group_norm *op);
size_t lk_cpu_depthwise_scratch(const struct lk_device *dev, const struct lk_depthwise *op);
size_t lk_cpu_response_norm_scratch(const struct lk_device *dev, const struct lk_response_norm *op);

/* Element i counted from t->data; t is f32 or bf16. */
static inline float lk_cpu_get(const struct lk_tensor *t, int64_t i) {
    return t->dtype == LK_BF16 ? lk_bf16_to_f32(((const uint16_t *)t->data)[i]) : ((const float *)t->data)[i];
}
static inline void lk_cpu_set(const struct lk_tensor *t, int64_t i, float value) {
    if (t->dtype == LK_BF16)
        ((uint16_t *)t->data)[i] = lk_f32_to_bf16(value);
    else
        ((float *)t->data)[i] = value;
}

/* r(.) of ops.h: the identity in f32. */
static inline float lk_cpu_round(enum lk_dtype dtype, float value) {
    return dtype == LK_BF16 ? lk_round_bf16(value) : value;
}

/* n consecutive elements from position `first` as f32, and back with rounding. Vectorised by the compiler. */
void lk_cpu_load(const struct lk_tensor *t, int64_t first, int64_t n, float *out);
void lk_cpu_store(const struct lk_tensor *t, int64_t first, int64_t n, const float *in);
