/* The few vector operations of mma_dot.c, in the widest form that this compilation may use; W lanes of 32 bits. */
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
enum { W = 16 };
typedef __m512 vf;
typedef __m512i vi;
static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
static inline vf vf_all(float x) { return _mm512_set1_ps(x); }
static inline vf vf_mul(vf x, vf y) { return _mm512_mul_ps(x, y); }
static inline vf vf_add(vf x, vf y) { return _mm512_add_ps(x, y); }
static inline vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline void vi_store(int32_t *p, vi x) { _mm512_storeu_si512(p, x); }
static inline vi vi_all(int32_t x) { return _mm512_set1_epi32(x); }
static inline vi vi_add(vi x, vi y) { return _mm512_add_epi32(x, y); }
static inline vi vi_sub(vi x, vi y) { return _mm512_sub_epi32(x, y); }
static inline vi vi_max(vi x, vi y) { return _mm512_max_epi32(x, y); }
static inline vi vi_truncated(vf x) { return _mm512_cvttps_epi32(x); }
static inline vf vf_power(vi field) { return _mm512_castsi512_ps(_mm512_slli_epi32(field, 23)); }
static inline vi vi_field(vf x) {
    return _mm512_and_si512(_mm512_srli_epi32(_mm512_castps_si512(x), 23), _mm512_set1_epi32(255));
}
static inline vi vi_or(vi x, vf y) { return _mm512_or_si512(x, _mm512_castps_si512(y)); }
/* towards zero */
static inline vf vf_from(vi x) { return _mm512_cvt_roundepi32_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
/* lanes where x is not in low..high, as bits */
static inline uint32_t vi_outside(vi x, int32_t low, int32_t high) {
    return _mm512_cmpgt_epu32_mask(_mm512_sub_epi32(x, _mm512_set1_epi32(low)), _mm512_set1_epi32(high - low));
}

#elif defined(__AVX2__)
#include <immintrin.h>
enum { W = 8 };
typedef __m256 vf;
typedef __m256i vi;
static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vf_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
static inline vf vf_all(float x) { return _mm256_set1_ps(x); }
static inline vf vf_mul(vf x, vf y) { return _mm256_mul_ps(x, y); }
static inline vf vf_add(vf x, vf y) { return _mm256_add_ps(x, y); }
static inline vi vi_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
static inline void vi_store(int32_t *p, vi x) { _mm256_storeu_si256((__m256i *)(void *)p, x); }
static inline vi vi_all(int32_t x) { return _mm256_set1_epi32(x); }
static inline vi vi_add(vi x, vi y) { return _mm256_add_epi32(x, y); }
static inline vi vi_sub(vi x, vi y) { return _mm256_sub_epi32(x, y); }
static inline vi vi_max(vi x, vi y) { return _mm256_max_epi32(x, y); }
static inline vi vi_truncated(vf x) { return _mm256_cvttps_epi32(x); }
static inline vf vf_power(vi field) { return _mm256_castsi256_ps(_mm256_slli_epi32(field, 23)); }
static inline vi vi_field(vf x) {
    return _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(x), 23), _mm256_set1_epi32(255));
}
static inline vi vi_or(vi x, vf y) { return _mm256_or_si256(x, _mm256_castps_si256(y)); }
static inline vf vf_from(vi x) {
    __m256 nearest = _mm256_cvtepi32_ps(x);
    __m256i over = _mm256_cmpgt_epi32(_mm256_abs_epi32(_mm256_cvttps_epi32(nearest)), _mm256_abs_epi32(x));
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(nearest), over));
}
static inline uint32_t vi_outside(vi x, int32_t low, int32_t high) {
    __m256i out =
        _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(low), x), _mm256_cmpgt_epi32(x, _mm256_set1_epi32(high)));
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(out));
}

#else
enum { W = 4 };
typedef struct {
    float v[4];
} vf;
typedef struct {
    int32_t v[4];
} vi;
#define EACH for (int i = 0; i < 4; i++)
static inline vf vf_load(const float *p) {
    vf r;
    memcpy(&r, p, sizeof r);
    return r;
}
static inline void vf_store(float *p, vf x) { memcpy(p, &x, sizeof x); }
static inline vf vf_all(float x) { return (vf){{x, x, x, x}}; }
static inline vf vf_mul(vf x, vf y) {
    EACH x.v[i] *= y.v[i];
    return x;
}
static inline vf vf_add(vf x, vf y) {
    EACH x.v[i] += y.v[i];
    return x;
}
static inline vi vi_load(const int32_t *p) {
    vi r;
    memcpy(&r, p, sizeof r);
    return r;
}
static inline void vi_store(int32_t *p, vi x) { memcpy(p, &x, sizeof x); }
static inline vi vi_all(int32_t x) { return (vi){{x, x, x, x}}; }
static inline vi vi_add(vi x, vi y) {
    EACH x.v[i] = (int32_t)((uint32_t)x.v[i] + (uint32_t)y.v[i]);
    return x;
}
static inline vi vi_sub(vi x, vi y) {
    EACH x.v[i] -= y.v[i];
    return x;
}
static inline vi vi_max(vi x, vi y) {
    EACH x.v[i] = x.v[i] > y.v[i] ? x.v[i] : y.v[i];
    return x;
}
/* Beyond 32 bits (lanes whose result is not used): anything, but defined. */
static inline vi vi_truncated(vf x) {
    vi r;
    EACH r.v[i] = x.v[i] > -0x1p30f && x.v[i] < 0x1p30f ? (int32_t)x.v[i] : 0;
    return r;
}
static inline vf vf_power(vi field) {
    vf r;
    uint32_t bits[4];
    EACH bits[i] = (uint32_t)field.v[i] << 23;
    memcpy(&r, bits, sizeof r);
    return r;
}
static inline vi vi_field(vf x) {
    vi r;
    memcpy(&r, &x, sizeof r);
    EACH r.v[i] = (int32_t)((uint32_t)r.v[i] >> 23 & 255);
    return r;
}
static inline vi vi_or(vi x, vf y) {
    int32_t bits[4];
    memcpy(bits, &y, sizeof bits);
    EACH x.v[i] |= bits[i];
    return x;
}
static inline vf vf_from(vi x) {
    vf r;
    int32_t bits[4];
    EACH r.v[i] = (float)x.v[i];
    memcpy(bits, &r, sizeof r);
    EACH {
        uint32_t size = x.v[i] < 0 ? 0 - (uint32_t)x.v[i] : (uint32_t)x.v[i];
        float nearest = r.v[i] < 0 ? -r.v[i] : r.v[i];
        bits[i] -= (uint32_t)nearest > size;
    }
    memcpy(&r, bits, sizeof r);
    return r;
}
static inline uint32_t vi_outside(vi x, int32_t low, int32_t high) {
    uint32_t out = 0;
    EACH out |= (uint32_t)(x.v[i] < low || x.v[i] > high) << i;
    return out;
}
#undef EACH
#endif
