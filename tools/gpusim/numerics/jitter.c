/* The .approx instructions of f32 with other bits within the errors that the PTX ISA states, as another GPU may have
 * them: a function of the seed and the operands alone. 1/x, square roots: one of the two f32 next to the true value;
 * the others: up to one unit in the last place beside the nearest. Powers of two, zeros, infinities, NaN and results
 * near the ends of f32's range stay. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "tools/gpusim/numerics/jitter.h"

#define FIRST GPUSIM_NUM_DIV_APPROX
enum { N_OPS = GPUSIM_NUM_COS_APPROX - FIRST + 1 };

static _Atomic uint64_t seed;
static gpusim_num_fn *nearest[N_OPS][2]; /* by op and flush */

void gpusim_num_jitter(uint64_t new_seed) { atomic_store(&seed, new_seed); }

static double f64_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* The magnitude of `r` moves up (1), down (-1) or not. */
static int move(enum gpusim_num_op op, uint32_t x, uint32_t y, uint32_t r) {
    const uint64_t key = atomic_load(&seed) * 0x9e3779b97f4a7c15ull + (uint64_t)op;
    const uint64_t random = mixed(mixed(key) ^ ((uint64_t)x << 32 | y));
    double exact;
    if (op == GPUSIM_NUM_RCP_APPROX)
        exact = 1 / f64_of(x);
    else if (op == GPUSIM_NUM_SQRT_APPROX)
        exact = sqrt(f64_of(x));
    else if (op == GPUSIM_NUM_RSQRT_APPROX)
        exact = 1 / sqrt(f64_of(x));
    else
        return (int)(random % 3) - 1;
    const double more = fabs(exact) - fabs(f64_of(r));
    return random % 2 ? (more > 0) - (more < 0) : 0;
}

static void jittered(enum gpusim_num_op op, unsigned flags, void *d, const void *a, const void *b, uint32_t mask) {
    uint32_t x[GPUSIM_NUM_LANES], y[GPUSIM_NUM_LANES] = {0}, *r = d; /* d may be a or b */
    const bool binary = op == GPUSIM_NUM_DIV_APPROX || op == GPUSIM_NUM_DIV_FULL;
    memcpy(x, a, sizeof x);
    if (binary) memcpy(y, b, sizeof y);
    nearest[op - FIRST][flags](d, a, b, NULL, mask);
    for (int l = 0; l < GPUSIM_NUM_LANES; l++) {
        const uint32_t exponent = r[l] >> 23 & 0xff;
        if (!(mask >> l & 1) || exponent < 2 || exponent > 253 || !(r[l] << 9) || !(x[l] >> 23 & 0xff)) continue;
        r[l] += (uint32_t)move(op, x[l], y[l], r[l]);
    }
}

#define OPS(F)                                                                                                         \
    F(DIV_APPROX)                                                                                                      \
    F(DIV_FULL) F(RCP_APPROX) F(SQRT_APPROX) F(RSQRT_APPROX) F(EX2_APPROX) F(LG2_APPROX) F(SIN_APPROX) F(COS_APPROX)
#define WRAPPERS(op)                                                                                                   \
    static void op##_0(void *d, const void *a, const void *b, const void *c, uint32_t mask) {                          \
        (void)c;                                                                                                       \
        jittered(GPUSIM_NUM_##op, 0, d, a, b, mask);                                                                   \
    }                                                                                                                  \
    static void op##_1(void *d, const void *a, const void *b, const void *c, uint32_t mask) {                          \
        (void)c;                                                                                                       \
        jittered(GPUSIM_NUM_##op, 1, d, a, b, mask);                                                                   \
    }
OPS(WRAPPERS)

gpusim_num_fn *gpusim_num_jittered(enum gpusim_num_op op, enum gpusim_num_type type, unsigned flags,
                                   gpusim_num_fn *fn) {
#define PAIR(op) {op##_0, op##_1},
    static gpusim_num_fn *const wrappers[N_OPS][2] = {OPS(PAIR)};
    if (!fn || !atomic_load(&seed) || type != GPUSIM_NUM_F32 || op > GPUSIM_NUM_COS_APPROX) return fn;
    nearest[op - FIRST][flags] = fn;
    return wrappers[op - FIRST][flags];
}
