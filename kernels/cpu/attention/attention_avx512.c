#if defined(__x86_64__)
#include <immintrin.h>

#define KERNEL lk_attention_avx512
#define LANES  16
#define MR     6
#define NV     4

typedef __m512 vec;
typedef float vec_at __attribute__((vector_size(64), aligned(4)));

#define SET1(x)        _mm512_set1_ps(x)
#define FMA(a, b, c)   _mm512_fmadd_ps(a, b, c)
#define FUSED(a, b, c) _mm512_fmadd_ps(a, b, c)
#define MAX(a, b)      _mm512_max_ps(a, b)
#define MAX_LANE(v)    _mm512_reduce_max_ps(v)

#include "kernels/cpu/attention/attention_f32.h"
#endif
