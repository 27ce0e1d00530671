/* Writing handlers: loops over the 32 lanes that compilers turn into vector code, and tables of handlers by name.
 *
 * Files exec/ops_*.c are compiled once per instruction set (GPUSIM_ISA is base, avx2 or avx512); exec/registry.c picks
 * one. A 16-bit register is held zero-extended in a 32-bit lane. A destination never overlaps a source of another
 * width. */
#pragma once

#include "exec/warp.h"

#include <string.h>

#define HANDLER(name) static int name(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask)

/* `statement` for every lane i in mask. */
#define LANES(...)                                                                                                     \
    do {                                                                                                               \
        if (mask == UINT32_MAX) {                                                                                      \
            _Pragma("omp simd") for (int i = 0; i < GPUSIM_WARP; i++) { __VA_ARGS__; }                                 \
        } else {                                                                                                       \
            _Pragma("omp simd") for (int i = 0; i < GPUSIM_WARP; i++) {                                                \
                if (mask >> i & 1) {                                                                                   \
                    __VA_ARGS__;                                                                                       \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* The same without vectors, for bodies that call functions. */
#define EACH_LANE(...)                                                                                                 \
    for (uint32_t rest_ = mask; rest_; rest_ &= rest_ - 1) {                                                           \
        int i = __builtin_ctz(rest_);                                                                                  \
        __VA_ARGS__;                                                                                                   \
    }

/* Handlers of one to three operands. R: lane type, V: type the operands are read as, U: unsigned type of the result. */
#define UNARY(name, R, V, U, ...)                                                                                      \
    HANDLER(name) {                                                                                                    \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const R *a = (const R *)REGS32(op->a);                                                                         \
        LANES(V x = (V)a[i]; d[i] = (U)(__VA_ARGS__));                                                                 \
        return GPUSIM_NEXT;                                                                                            \
    }
#define BINARY(name, R, V, U, ...)                                                                                     \
    HANDLER(name) {                                                                                                    \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const R *a = (const R *)REGS32(op->a), *b = (const R *)REGS32(op->b);                                          \
        LANES(V x = (V)a[i]; V y = (V)b[i]; d[i] = (U)(__VA_ARGS__));                                                  \
        return GPUSIM_NEXT;                                                                                            \
    }
#define TERNARY(name, R, V, U, ...)                                                                                    \
    HANDLER(name) {                                                                                                    \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const R *a = (const R *)REGS32(op->a), *b = (const R *)REGS32(op->b), *c = (const R *)REGS32(op->c);           \
        LANES(V x = (V)a[i]; V y = (V)b[i]; V z = (V)c[i]; d[i] = (U)(__VA_ARGS__));                                   \
        return GPUSIM_NEXT;                                                                                            \
    }
/* Second operand is a 32-bit register whatever the type (shifts). */
#define SHIFT(name, R, V, U, ...)                                                                                      \
    HANDLER(name) {                                                                                                    \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const R *a = (const R *)REGS32(op->a);                                                                         \
        const uint32_t *b = REGS32(op->b);                                                                             \
        LANES(V x = (V)a[i]; uint32_t n = b[i]; d[i] = (U)(__VA_ARGS__));                                              \
        return GPUSIM_NEXT;                                                                                            \
    }

/* One handler per integer type. */
#define FOR_B(KIND, name, ...)                                                                                         \
    KIND(name##_b16, uint32_t, uint16_t, uint16_t, __VA_ARGS__)                                                        \
    KIND(name##_b32, uint32_t, uint32_t, uint32_t, __VA_ARGS__)                                                        \
    KIND(name##_b64, uint64_t, uint64_t, uint64_t, __VA_ARGS__)
#define FOR_S(KIND, name, ...)                                                                                         \
    KIND(name##_s16, uint32_t, int16_t, uint16_t, __VA_ARGS__)                                                         \
    KIND(name##_s32, uint32_t, int32_t, uint32_t, __VA_ARGS__)                                                         \
    KIND(name##_s64, uint64_t, int64_t, uint64_t, __VA_ARGS__)
#define FOR_U(KIND, name, ...)                                                                                         \
    KIND(name##_u16, uint32_t, uint16_t, uint16_t, __VA_ARGS__)                                                        \
    KIND(name##_u32, uint32_t, uint32_t, uint32_t, __VA_ARGS__)                                                        \
    KIND(name##_u64, uint64_t, uint64_t, uint64_t, __VA_ARGS__)
#define FOR_US(KIND, name, ...) FOR_U(KIND, name, __VA_ARGS__) FOR_S(KIND, name, __VA_ARGS__)

struct gpusim_entry {
    const char *key;
    gpusim_handler *run;
};
#define ROW_B(key, name)                                                                                               \
    {key ".b16", name##_b16}, {key ".b32", name##_b32}, { key ".b64", name##_b64 }
#define ROW_S(key, name)                                                                                               \
    {key ".s16", name##_s16}, {key ".s32", name##_s32}, { key ".s64", name##_s64 }
#define ROW_U(key, name)                                                                                               \
    {key ".u16", name##_u16}, {key ".u32", name##_u32}, { key ".u64", name##_u64 }
#define ROW_US(key, name)   ROW_U(key, name), ROW_S(key, name)

#define GPUSIM_PASTE_(a, b) a##_##b
#define GPUSIM_PASTE(a, b)  GPUSIM_PASTE_(a, b)
#ifndef GPUSIM_ISA
#define GPUSIM_ISA base
#endif
/* The table of a file, ended by a NULL key: const struct gpusim_entry TABLE(ops_integer)[] = {...}. */
#define TABLE(file) GPUSIM_PASTE(gpusim_##file, GPUSIM_ISA)

__extension__ typedef unsigned __int128 gpusim_u128;
__extension__ typedef __int128 gpusim_s128;

static inline float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
static inline uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}
static inline double as_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}
static inline uint64_t double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}
