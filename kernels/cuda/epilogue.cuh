/* The end of a linear layer on one element, with the rounding points of ops.h. */
#pragma once

#include "kernels/cuda/common.cuh"

/* y = residual + r(gate * r(act(r(product + bias)))). */
template <class T>
__device__ __forceinline__ T linear_epilogue(const lk_cuda_linear &args, int64_t m, int64_t n, float product) {
    float v = args.round_before_bias ? rounded<T>(product) : product;
    if (args.bias) v = v + element(args.bias, n, args.bias_bf16);
    v = rounded<T>(v);
    if (args.act != LK_ACT_NONE) v = rounded<T>(act(args.act, v));
    if (args.gate) v = rounded<T>(to_f32(((const T *)args.gate)[n]) * v);
    if (args.residual) v = to_f32(((const T *)args.residual)[m * args.ld_residual + n]) + v;
    return from_f32<T>(v);
}
