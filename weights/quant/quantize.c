#include "weights/quant/quantize.h"

#include <math.h>
#include <string.h>

#include "engine/bf16.h"
#include "engine/quantized.h"

/* A block of at most LK_QUANTIZE_MOST elements on its way. */
struct block {
    int n;
    float w[LK_QUANTIZE_MOST];
    uint8_t code[LK_QUANTIZE_MOST + 1];
    float scale; /* a bf16 value */
};

static const struct {
    const char *name;
    enum lk_dtype dtype;
} forms[LK_QUANTIZE_COUNT] = {
    [LK_QUANTIZE_NONE] = {"none", LK_BF16},
    [LK_QUANTIZE_Q8] = {"q8", LK_Q8},
    [LK_QUANTIZE_NF4] = {"nf4", LK_NF4},
    [LK_QUANTIZE_NF4_MSE] = {"nf4-mse", LK_NF4},
};
const char *lk_quantize_name(enum lk_quantize how) { return forms[how].name; }
enum lk_quantize lk_quantize_named(const char *name) {
    int how = 0;
    while (how < LK_QUANTIZE_COUNT && strcmp(name, forms[how].name) != 0) how++;
    return (enum lk_quantize)how;
}
enum lk_dtype lk_quantize_dtype(enum lk_quantize how) { return forms[how].dtype; }

/* NaN is passed over. By bits, which are in the order of the magnitudes: clang vectorises no maximum of floats. */
static float largest(const struct block *b) {
    uint32_t most = 0;
#pragma omp simd reduction(max : most)
    for (int i = 0; i < b->n; i++) {
        uint32_t bits;
        memcpy(&bits, &b->w[i], sizeof bits);
        bits &= 0x7fffffff;
        bits = bits <= 0x7f800000 ? bits : 0;
        most = bits > most ? bits : most;
    }
    float magnitude;
    memcpy(&magnitude, &most, sizeof magnitude);
    return magnitude;
}

/* Codes of w * factor: how many thresholds lie below. */
static void nf4_codes(const struct block *b, float factor, uint8_t *code) {
#pragma omp simd
    for (int i = 0; i < b->n; i++) {
        const float x = b->w[i] * factor;
        int n = 0;
        for (int t = 0; t < 15; t++) n += x > lk_nf4_thresholds[t];
        code[i] = (uint8_t)n;
    }
}

/* As bitsandbytes computes it on a CPU: the smallest blocks do not reach the ends of the levels. */
static void quantize_nf4(struct block *b) {
    const float most = largest(b);
    nf4_codes(b, 1 / (most > 1e-38f ? most : 1e-38f), b->code);
    b->scale = most;
}

static float squared_error(const struct block *b, const uint8_t *code, float scale) {
    float sum = 0;
    for (int i = 0; i < b->n; i++) {
        const float d = lk_round_bf16(lk_nf4_levels[code[i]] * scale) - b->w[i];
        sum += d * d;
    }
    return sum;
}

/* The scale that fits the codes best, by least squares. */
static float fitted(const struct block *b, const uint8_t *code) {
    float product = 0, square = 0;
    for (int i = 0; i < b->n; i++) {
        const float level = lk_nf4_levels[code[i]];
        product += level * b->w[i];
        square += level * level;
    }
    return square > 0 ? lk_round_bf16(product / square) : 0;
}

/* The least error of 17: bitsandbytes' own scale, then eight factors of it with either sign, since the levels are not
 * symmetric, each refined by one step of least squares. Of equals the earlier. */
static void quantize_nf4_mse(struct block *b) {
    enum { N_FACTORS = 8 };
    quantize_nf4(b);
    const float most = b->scale;
    float least = squared_error(b, b->code, most);
    for (int i = 0; i < 2 * N_FACTORS && least > 0; i++) {
        uint8_t code[LK_QUANTIZE_MOST];
        const float factor = 0.75f + 0.3f * (float)(i / 2) / (N_FACTORS - 1);
        float scale = lk_round_bf16((i % 2 ? -factor : factor) * most);
        if (scale == 0 || !isfinite(1 / scale)) continue;
        nf4_codes(b, 1 / scale, code);
        scale = fitted(b, code);
        if (scale == 0 || !isfinite(1 / scale)) continue;
        nf4_codes(b, 1 / scale, code);
        const float error = squared_error(b, code, scale);
        if (error >= least) continue;
        least = error;
        b->scale = scale;
        for (int j = 0; j < b->n; j++) b->code[j] = code[j];
    }
}

static void quantize_q8(struct block *b) {
    b->scale = lk_round_bf16(largest(b) / 127);
    const float factor = b->scale > 0 ? 1 / b->scale : 0;
    for (int i = 0; i < b->n; i++) {
        float q = isfinite(factor) ? rintf(b->w[i] * factor) : rintf(b->w[i] / b->scale);
        q = q > 127 ? 127 : q < -127 ? -127 : q;
        b->code[i] = (uint8_t)(int8_t)q;
    }
}

/* Loads elements of a block; the index of one that is not finite, or -1. */
static int load(struct block *b, const uint16_t *bf16) {
    bool finite = true;
    for (int i = 0; i < b->n; i++) {
        b->w[i] = lk_bf16_to_f32(bf16[i]);
        finite &= (bf16[i] & 0x7f80u) != 0x7f80u;
    }
    for (int i = 0; !finite && i < b->n; i++)
        if ((bf16[i] & 0x7f80u) == 0x7f80u) return i;
    return -1;
}

/* The block that begins at `first`; the index of its first element that is not finite, or -1. */
static int64_t quantize_block(enum lk_quantize how, const uint16_t *bf16, int64_t first, int n, int block,
                              unsigned char *codes, uint16_t *scales) {
    struct block b = {.n = n};
    const int bad = load(&b, bf16 + first);
    if (bad >= 0) return first + bad;
    if (how == LK_QUANTIZE_Q8)
        quantize_q8(&b);
    else if (how == LK_QUANTIZE_NF4_MSE)
        quantize_nf4_mse(&b);
    else
        quantize_nf4(&b);
    scales[first / block] = lk_f32_to_bf16(b.scale);
    if (how == LK_QUANTIZE_Q8) {
        for (int i = 0; i < b.n; i++) codes[first + i] = b.code[i];
        return -1;
    }
    if (b.n % 2) b.code[b.n] = 0; /* the end of an odd n */
    for (int i = 0; i < b.n; i += 2) codes[(first + i) / 2] = (unsigned char)(b.code[i] << 4 | b.code[i + 1]);
    return -1;
}

int64_t lk_quantize(enum lk_quantize how, const uint16_t *bf16, int64_t n, int block, unsigned char *codes,
                    uint16_t *scales) {
    int64_t bad = n;
#pragma omp parallel for schedule(static) reduction(min : bad) if (n >= 1 << 16)
    for (int64_t first = 0; first < n; first += block) {
        const int count = n - first < block ? (int)(n - first) : block;
        const int64_t at = quantize_block(how, bf16, first, count, block, codes, scales);
        if (at >= 0 && at < bad) bad = at;
    }
    return bad < n ? bad : -1;
}
