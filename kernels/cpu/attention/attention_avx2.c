#if defined(__x86_64__)
#include <immintrin.h>

#define KERNEL lk_attention_avx2
#define LANES  8
#define MR     6
#define NV     2

typedef __m256 vec;
typedef float vec_at __attribute__((vector_size(32), aligned(4)));

#define SET1(x)        _mm256_set1_ps(x)
#define FMA(a, b, c)   _mm256_fmadd_ps(a, b, c)
#define FUSED(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MAX(a, b)      _mm256_max_ps(a, b)
#define MAX_LANE(v)    max_lane(v)

static inline float max_lane(vec v) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

#include "kernels/cpu/attention/attention_f32.h"
#endif
