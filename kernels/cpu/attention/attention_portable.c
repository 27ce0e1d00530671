/* Attention for any processor: four lanes, which compilers map to SSE2, NEON or scalar code. */
#include <math.h>

#define KERNEL lk_attention_portable
#define LANES  4
#define MR     4
#define NV     2

typedef float vec __attribute__((vector_size(16)));
typedef float vec_at __attribute__((vector_size(16), aligned(4)));
typedef int mask_vec __attribute__((vector_size(16)));

#define SET1(x)        ((vec){(x), (x), (x), (x)})
#define FMA(a, b, c)   ((a) * (b) + (c))
#define FUSED(a, b, c) fused(a, b, c)
#define MAX(a, b)      max_of(a, b)
#define MAX_LANE(v)    max_lane(v)

static inline vec fused(vec a, vec b, vec c) {
    for (int i = 0; i < LANES; i++) c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}
static inline vec max_of(vec a, vec b) {
    mask_vec greater = a > b;
    return (vec)((greater & (mask_vec)a) | (~greater & (mask_vec)b));
}
static inline float max_lane(vec v) {
    float most = v[0];
    for (int i = 1; i < LANES; i++) most = v[i] > most ? v[i] : most;
    return most;
}

#include "kernels/cpu/attention/attention_f32.h"
