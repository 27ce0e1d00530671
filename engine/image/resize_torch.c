/* torch's separable antialiased interpolation on the CPU: along the width first, then along the height, a pass left out
 * where the size stays. Bytes are filtered by integers of 16 bits, f32 by weights made in f32. The compiler of torch's
 * kernels left its mark on the f32 sums: of the taps behind the first, whole groups of 4 are multiplied, rounded and
 * added, and the rest goes through fused multiply-adds. */
#include "engine/image/resize_torch.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/image/internal.h"

#define WEIGHT_BITS_MAX 22 /* of the fraction; fewer where a weight would not fit 16 bits */

/* Output i of an axis is the sum over k < n[i] of weight[i * stride + k] * input[first[i] + k]. */
struct taps {
    int stride;
    int *first, *n; /* [n_out], one block */
    union {
        int16_t *fixed; /* times 2^bits */
        float *real;
    } weight; /* [n_out, stride] */
    int bits;
};

static void free_taps(struct taps *taps) {
    lk_free(taps->first);
    lk_free(taps->weight.real);
    *taps = (struct taps){0};
}

static enum lk_code no_memory(int n_in, int n_out) {
    return lk_fail(LK_E_NOMEM, "image: no memory to resize %d to %d; free memory and try again", n_in, n_out);
}

static enum lk_code check_sizes(const struct lk_image *in, int width, int height) {
    if (in->channels != 3 || in->nearest_only)
        return lk_fail(LK_E_INTERNAL, "image: expected RGB to resize as torch does, got %d channels", in->channels);
    return lk_image_check_size("image", width, height, 0);
}

/* Room for the taps of one axis; `support` in input pixels. */
static enum lk_code new_taps(struct taps *taps, int n_in, int n_out, double support, size_t weight_bytes) {
    taps->stride = (int)ceil(support) * 2 + 1;
    taps->first = lk_calloc((size_t)n_out, 2 * sizeof *taps->first);
    taps->weight.real = lk_calloc((size_t)n_out, (size_t)taps->stride * weight_bytes);
    if (!taps->first || !taps->weight.real) {
        free_taps(taps);
        return no_memory(n_in, n_out);
    }
    taps->n = taps->first + n_out;
    return LK_OK;
}

/* Which inputs count for output i. */
static int set_range(struct taps *taps, int i, int n_in, double low, double high) {
    int first = low > 0 ? (int)low : 0, end = high < n_in ? (int)high : n_in;
    int n = end - first;
    taps->first[i] = first;
    return taps->n[i] = n < taps->stride ? n : taps->stride;
}

/* --- bytes, bicubic --- */

static double bicubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

/* w [n_out, stride]: normalised; the largest of all. */
static double bicubic_weights(struct taps *taps, double *w, int n_in, int n_out, double scale, double support) {
    double largest = 0, inverse = scale >= 1 ? 1 / scale : 1;
    for (int i = 0; i < n_out; i++, w += taps->stride) {
        double center = scale * (i + 0.5), sum = 0;
        int n = set_range(taps, i, n_in, center - support + 0.5, center + support + 0.5);
        for (int k = 0; k < n; k++) sum += w[k] = bicubic((k + taps->first[i] - center + 0.5) * inverse);
        for (int k = 0; k < n && sum != 0; k++) {
            w[k] /= sum;
            if (w[k] > largest) largest = w[k];
        }
    }
    return largest;
}

static enum lk_code make_fixed_taps(struct taps *taps, int n_in, int n_out) {
    double scale = (double)n_in / n_out, support = scale >= 1 ? 2 * scale : 2;
    enum lk_code rc = new_taps(taps, n_in, n_out, support, sizeof *taps->weight.fixed);
    if (rc) return rc;
    size_t n = (size_t)n_out * (size_t)taps->stride;
    double *w = lk_calloc(n, sizeof *w);
    if (!w) {
        free_taps(taps);
        return no_memory(n_in, n_out);
    }
    double largest = bicubic_weights(taps, w, n_in, n_out, scale, support);
    while (taps->bits < WEIGHT_BITS_MAX && (int)(0.5 + largest * (1 << (taps->bits + 1))) < 1 << 15) taps->bits++;
    for (size_t i = 0; i < n; i++) {
        double v = w[i] * (1 << taps->bits);
        taps->weight.fixed[i] = (int16_t)(v < 0 ? v - 0.5 : v + 0.5);
    }
    lk_free(w);
    return LK_OK;
}

static inline uint8_t clip(int32_t v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v); }

static enum lk_code resize_width(struct lk_image *out, const struct lk_image *in, int width) {
    struct taps taps = {0};
    enum lk_code rc = make_fixed_taps(&taps, in->width, width);
    if (!rc) rc = lk_image_new(out, width, in->height, 3);
    uint8_t *to = out->pixels;
    for (size_t y = 0; !rc && y < (size_t)in->height; y++) {
        const uint8_t *row = in->pixels + y * (size_t)in->width * 3;
        for (int x = 0; x < width; x++, to += 3) {
            const uint8_t *from = row + (size_t)taps.first[x] * 3;
            const int16_t *w = taps.weight.fixed + (size_t)x * (size_t)taps.stride;
            int32_t half = taps.bits ? 1 << (taps.bits - 1) : 0, r = half, g = half, b = half;
            for (int k = 0; k < taps.n[x]; k++, from += 3) {
                r += from[0] * w[k];
                g += from[1] * w[k];
                b += from[2] * w[k];
            }
            to[0] = clip(r >> taps.bits);
            to[1] = clip(g >> taps.bits);
            to[2] = clip(b >> taps.bits);
        }
    }
    free_taps(&taps);
    return rc;
}

static enum lk_code resize_height(struct lk_image *out, const struct lk_image *in, int height) {
    struct taps taps = {0};
    size_t row = (size_t)in->width * 3;
    enum lk_code rc = make_fixed_taps(&taps, in->height, height);
    int32_t *restrict sums = rc ? NULL : lk_malloc(row * sizeof *sums);
    if (!rc && !sums) rc = no_memory(in->height, height);
    if (!rc) rc = lk_image_new(out, in->width, height, 3);
    for (size_t y = 0; !rc && y < (size_t)height; y++) {
        for (size_t i = 0; i < row; i++) sums[i] = taps.bits ? 1 << (taps.bits - 1) : 0;
        for (int k = 0; k < taps.n[y]; k++) {
            const uint8_t *from = in->pixels + (size_t)(taps.first[y] + k) * row;
            int16_t w = taps.weight.fixed[y * (size_t)taps.stride + (size_t)k];
            for (size_t i = 0; i < row; i++) sums[i] += from[i] * w;
        }
        for (size_t i = 0; i < row; i++) out->pixels[y * row + i] = clip(sums[i] >> taps.bits);
    }
    lk_free(sums);
    free_taps(&taps);
    return rc;
}

enum lk_code lk_image_resize_torch_bicubic(struct lk_image *out, const struct lk_image *in, int width, int height) {
    struct lk_image wide = {0}, made = {0};
    const struct lk_image *at = in;
    enum lk_code rc = check_sizes(in, width, height);
    *out = (struct lk_image){0};
    if (!rc && width == in->width && height == in->height) return lk_image_crop(out, in, 0, 0, width, height);
    if (!rc && width != in->width) {
        rc = resize_width(&wide, in, width);
        at = &wide;
    }
    if (!rc && height != in->height) {
        rc = resize_height(&made, at, height);
        lk_image_free(&wide);
    } else {
        made = wide;
    }
    if (rc)
        lk_image_free(&made);
    else
        *out = made;
    return rc;
}

/* --- f32, bilinear --- */

static enum lk_code make_real_taps(struct taps *taps, int n_in, int n_out) {
    float scale = (float)n_in / (float)n_out, support = scale >= 1 ? scale : 1, inverse = scale >= 1 ? 1 / scale : 1;
    enum lk_code rc = new_taps(taps, n_in, n_out, support, sizeof *taps->weight.real);
    if (rc) return rc;
    for (int i = 0; i < n_out; i++) {
        float *w = taps->weight.real + (size_t)i * (size_t)taps->stride, sum = 0;
        float center = (float)(scale * (i + 0.5));
        int n = set_range(taps, i, n_in, center - support + 0.5, center + support + 0.5);
        for (int k = 0; k < n; k++) {
            float x = fabsf((float)(((float)(k + taps->first[i]) - center + 0.5) * inverse));
            sum += w[k] = x < 1 ? 1 - x : 0;
        }
        for (int k = 0; k < n && sum != 0; k++) w[k] /= sum;
    }
    return LK_OK;
}

/* Fused multiply-adds are instructions where the processor has them, and a slow but equal function elsewhere: the
 * bodies below are compiled for both. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Taps below this number are not fused. */
ALWAYS_INLINE int rounded_taps(int n) { return 1 + (n - 1) / 4 * 4; }

/* to [width, 3] from one row of pixels; `level` [256] is what a byte is worth. */
ALWAYS_INLINE void filter_row(float *restrict to, const uint8_t *row, const float *level, const struct taps *taps,
                              int width) {
    for (int x = 0; x < width; x++, to += 3) {
        const uint8_t *from = row + (size_t)taps->first[x] * 3;
        const float *w = taps->weight.real + (size_t)x * (size_t)taps->stride;
        float r = level[from[0]] * w[0], g = level[from[1]] * w[0], b = level[from[2]] * w[0];
        int k = 1, n = taps->n[x], n_rounded = rounded_taps(n);
        for (; k < n_rounded; k++) {
            from += 3;
            r += level[from[0]] * w[k];
            g += level[from[1]] * w[k];
            b += level[from[2]] * w[k];
        }
        for (; k < n; k++) {
            from += 3;
            r = fmaf(level[from[0]], w[k], r);
            g = fmaf(level[from[1]], w[k], g);
            b = fmaf(level[from[2]], w[k], b);
        }
        to[0] = r;
        to[1] = g;
        to[2] = b;
    }
}

/* to [row] = sum of weighted rows. */
ALWAYS_INLINE void add_rows(float *restrict to, const float *from, const float *w, int n, size_t row) {
    for (size_t i = 0; i < row; i++) to[i] = from[i] * w[0];
    int k = 1, n_rounded = rounded_taps(n);
    for (; k < n_rounded; k++) {
        from += row;
        for (size_t i = 0; i < row; i++) to[i] += from[i] * w[k];
    }
    for (; k < n; k++) {
        from += row;
        for (size_t i = 0; i < row; i++) to[i] = fmaf(from[i], w[k], to[i]);
    }
}

struct row_functions {
    void (*filter_row)(float *, const uint8_t *, const float *, const struct taps *, int);
    void (*add_rows)(float *, const float *, const float *, int, size_t);
};

static void filter_row_any(float *to, const uint8_t *row, const float *level, const struct taps *taps, int width) {
    filter_row(to, row, level, taps, width);
}

static void add_rows_any(float *to, const float *from, const float *w, int n, size_t row) {
    add_rows(to, from, w, n, row);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void filter_row_fma(float *to, const uint8_t *row, const float *level,
                                                               const struct taps *taps, int width) {
    filter_row(to, row, level, taps, width);
}

__attribute__((target("avx2,fma"))) static void add_rows_fma(float *to, const float *from, const float *w, int n,
                                                             size_t row) {
    add_rows(to, from, w, n, row);
}
#endif

static struct row_functions row_functions(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct row_functions){filter_row_fma, add_rows_fma};
#endif
    return (struct row_functions){filter_row_any, add_rows_any};
}

/* Every row of the image at the new width. */
static enum lk_code real_width(float *out, const struct lk_image *in, int width, const struct row_functions *f) {
    struct taps taps = {0};
    float level[256];
    for (int v = 0; v < 256; v++) level[v] = (float)v / 255.0f;
    size_t n_in = (size_t)in->width * 3, n_out = (size_t)width * 3;
    if (width == in->width) {
        for (size_t i = 0; i < (size_t)in->height * n_in; i++) out[i] = level[in->pixels[i]];
        return LK_OK;
    }
    enum lk_code rc = make_real_taps(&taps, in->width, width);
    for (size_t y = 0; !rc && y < (size_t)in->height; y++)
        f->filter_row(out + y * n_out, in->pixels + y * n_in, level, &taps, width);
    free_taps(&taps);
    return rc;
}

static enum lk_code real_height(float *out, const float *in, size_t row, int n_in, int n_out,
                                const struct row_functions *f) {
    struct taps taps = {0};
    enum lk_code rc = make_real_taps(&taps, n_in, n_out);
    for (size_t y = 0; !rc && y < (size_t)n_out; y++)
        f->add_rows(out + y * row, in + (size_t)taps.first[y] * row, taps.weight.real + y * (size_t)taps.stride,
                    taps.n[y], row);
    free_taps(&taps);
    return rc;
}

enum lk_code lk_image_resize_torch_bilinear_f32(float *out, const struct lk_image *rgb, int width, int height) {
    struct row_functions f = row_functions();
    size_t row = (size_t)width * 3;
    enum lk_code rc = check_sizes(rgb, width, height);
    if (!rc && height == rgb->height) {
        rc = real_width(out, rgb, width, &f);
    } else if (!rc) {
        float *wide = lk_malloc((size_t)rgb->height * row * sizeof *wide);
        rc = wide ? real_width(wide, rgb, width, &f) : no_memory(rgb->height, height);
        if (!rc) rc = real_height(out, wide, row, rgb->height, height, &f);
        lk_free(wide);
    }
    for (size_t i = 0; !rc && i < (size_t)height * row; i++) out[i] = out[i] * 2 - 1;
    return rc;
}
