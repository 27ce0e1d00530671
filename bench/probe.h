/* What the machine can do at this moment: loops that only keep the arithmetic units busy. Timings of a shared machine
 * mean little alone; next to a probe taken between the repetitions they give a share of the peak. */
#pragma once

#include <immintrin.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "engine/base/isa.h"
#include "kernels/cpu/gemm/tile_config.h"

/* 24 independent chains hide the latency of 4 clocks at two operations per clock three times over. */
#define PROBE_CHAINS 24

#if defined(__clang__)
#define PROBE_UNROLL _Pragma("unroll")
#else
#define PROBE_UNROLL _Pragma("GCC unroll 24")
#endif

__attribute__((target("avx512f"), noinline, unused)) static float fma_avx512(int64_t n) {
    __m512 sum[PROBE_CHAINS], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(1e-3f);
    PROBE_UNROLL for (int i = 0; i < PROBE_CHAINS; i++) sum[i] = _mm512_set1_ps((float)i);
    for (; n > 0; n--) {
        PROBE_UNROLL for (int i = 0; i < PROBE_CHAINS; i++) sum[i] = _mm512_fmadd_ps(sum[i], x, y);
    }
    PROBE_UNROLL for (int i = 1; i < PROBE_CHAINS; i++) sum[0] = _mm512_add_ps(sum[0], sum[i]);
    return _mm512_reduce_add_ps(sum[0]);
}

__attribute__((target("avx2,fma"), noinline, unused)) static float fma_avx2(int64_t n) {
    __m256 sum[12], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-3f);
    PROBE_UNROLL for (int i = 0; i < 12; i++) sum[i] = _mm256_set1_ps((float)i);
    for (; n > 0; n--) {
        PROBE_UNROLL for (int i = 0; i < 12; i++) sum[i] = _mm256_fmadd_ps(sum[i], x, y);
    }
    PROBE_UNROLL for (int i = 1; i < 12; i++) sum[0] = _mm256_add_ps(sum[0], sum[i]);
    float out[8];
    _mm256_storeu_ps(out, sum[0]);
    return out[0];
}

/* Four sums from two tiles of A and two of B, as the real kernel has them, without its loads and stores. */
__attribute__((target("amx-tile,amx-bf16"), noinline, unused)) static float tiles_amx(int64_t n) {
    _tile_loadconfig(&lk_tile_config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (; n > 0; n--) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    float out[256];
    _tile_stored(0, out, 64);
    _tile_release();
    return out[0];
}

static inline double probe_cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct probe {
    double gflops;      /* of all threads together, by the clock */
    double core_gflops; /* of one core, by CPU time */
};

static inline struct probe probe_run(int n_threads, float (*loop)(int64_t), int64_t n, double flops_per_round) {
    double start = omp_get_wtime(), cpu_start = probe_cpu_seconds();
#pragma omp parallel num_threads(n_threads)
    {
        volatile float sink = loop(n);
        (void)sink;
    }
    double seconds = omp_get_wtime() - start, cpu_seconds = probe_cpu_seconds() - cpu_start;
    double gflop = (double)n * flops_per_round * n_threads * 1e-9;
    return (struct probe){gflop / seconds, gflop / cpu_seconds};
}

/* About 30 ms of the widest f32 fused multiply-add that the instruction level in force has (0 at the portable level).
 */
static inline struct probe probe_fma(int n_threads) {
    switch (lk_cpu_isa()) {
    case LK_ISA_PORTABLE:
        return (struct probe){0, 0};
    case LK_ISA_AVX2:
        return probe_run(n_threads, fma_avx2, 15000000, 12 * 8 * 2);
    default:
        return probe_run(n_threads, fma_avx512, 7000000, PROBE_CHAINS * 16 * 2);
    }
}

/* The same for AMX bf16 tile products; 0 below the amx level. */
static inline struct probe probe_amx(int n_threads) {
    if (lk_cpu_isa() < LK_ISA_AMX) return (struct probe){0, 0};
    return probe_run(n_threads, tiles_amx, 1500000, 4.0 * 16 * 16 * 32 * 2);
}

#define PROBE_BLOCK 4096 /* bytes */

static inline uint64_t probe_sum_block(const char *data) {
    typedef uint64_t line __attribute__((vector_size(64), aligned(8)));
    const line *at = (const line *)data;
    line sums[4] = {0};
    uint64_t sum = 0;
    for (int j = 0; j < PROBE_BLOCK / 64; j += 4)
        for (int k = 0; k < 4; k++) sums[k] += at[j + k];
    sums[0] += sums[1] + sums[2] + sums[3];
    for (int k = 0; k < 8; k++) sum += sums[0][k];
    return sum;
}

__attribute__((target("avx512f"), noinline, unused)) static uint64_t probe_sum_block_avx512(const char *data) {
    __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    for (int j = 0; j < PROBE_BLOCK; j += 256)
        PROBE_UNROLL for (int k = 0; k < 4; k++) sums[k] =
            _mm512_add_epi64(sums[k], _mm512_loadu_si512(data + j + 64 * k));
    sums[0] = _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
    return (uint64_t)_mm512_reduce_add_epi64(sums[0]);
}

/* GB/s of a plain read of n bytes, whole blocks only. */
static inline double probe_read(int n_threads, const void *data, uint64_t n) {
    const int64_t n_blocks = (int64_t)(n / PROBE_BLOCK);
    const bool wide = lk_cpu_isa() >= LK_ISA_AVX512;
    uint64_t sum = 0;
    double start = omp_get_wtime();
#pragma omp parallel for schedule(static) num_threads(n_threads) reduction(+ : sum)
    for (int64_t i = 0; i < n_blocks; i++) {
        const char *block = (const char *)data + i * PROBE_BLOCK;
        sum += wide ? probe_sum_block_avx512(block) : probe_sum_block(block);
    }
    double seconds = omp_get_wtime() - start;
    return sum == 1 ? 0.0 : (double)(n_blocks * PROBE_BLOCK) * 1e-9 / seconds; /* the sum must be wanted */
}
