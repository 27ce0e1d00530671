/* Pillow's resize, to the byte: two passes with 8 bits between them, taps as integers with 22 fractional
 * bits. The taps are computed in double in Pillow's order of operations; 16-bit grey is summed with them as they are.
 */
#include "engine/image/internal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"

#define PI       3.14159265358979323846
#define TAP_BITS 22

/* What a picture's channels are: as they come, colours and their alpha, or the bytes of 16-bit grey, high one first. */
enum kind { PLAIN, ALPHA, WIDE };

/* The taps of one axis: output i is the sum over k < n[i] of weight[i * stride + k] * input[first[i] + k]. */
struct taps {
    int stride;
    int *first;      /* [n_out] */
    int *n;          /* [n_out] */
    int32_t *weight; /* [n_out, stride] */
    double *exact;   /* [n_out, stride], weight before it was rounded */
};

static double sinc(double x) { return x == 0 ? 1 : sin(x * PI) / (x * PI); }

static double lanczos(double x) { return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

static double bicubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

static double bilinear(double x) { return fabs(x) < 1 ? 1 - fabs(x) : 0; }

static int32_t to_fixed(double w) {
    double scaled = w * (1 << TAP_BITS);
    return (int32_t)(w < 0 ? scaled - 0.5 : scaled + 0.5);
}

static void free_taps(struct taps *taps) {
    lk_free(taps->first);
    lk_free(taps->weight);
    lk_free(taps->exact);
    *taps = (struct taps){0};
}

static enum lk_code make_taps(struct taps *taps, int n_in, int n_out, enum lk_resample resample) {
    double (*filter)(double) = resample == LK_RESAMPLE_LANCZOS   ? lanczos
                               : resample == LK_RESAMPLE_BICUBIC ? bicubic
                                                                 : bilinear;
    double scale = (double)n_in / n_out, stretch = scale < 1 ? 1 : scale;
    double support = (filter == lanczos ? 3 : filter == bicubic ? 2 : 1) * stretch, inverse = 1 / stretch;
    size_t stride = (size_t)ceil(support) * 2 + 1;
    taps->stride = (int)stride;
    taps->first = lk_calloc((size_t)n_out, 2 * sizeof *taps->first);
    taps->weight = lk_calloc((size_t)n_out, stride * sizeof *taps->weight);
    taps->exact = lk_calloc((size_t)n_out, stride * sizeof *taps->exact);
    if (!taps->first || !taps->weight || !taps->exact) {
        free_taps(taps);
        return lk_fail(LK_E_NOMEM, "image: no memory to resize %d to %d; free memory and try again", n_in, n_out);
    }
    taps->n = taps->first + n_out;
    for (int i = 0; i < n_out; i++) {
        double center = (i + 0.5) * scale, sum = 0, *w = taps->exact + (size_t)i * stride;
        int first = (int)(center - support + 0.5), last = (int)(center + support + 0.5);
        if (first < 0) first = 0;
        if (last > n_in) last = n_in;
        int n = last - first;
        for (int k = 0; k < n; k++) sum += w[k] = filter((k + first - center + 0.5) * inverse);
        for (int k = 0; k < n; k++) {
            if (sum != 0) w[k] /= sum;
            taps->weight[(size_t)i * stride + (size_t)k] = to_fixed(w[k]);
        }
        taps->first[i] = first;
        taps->n[i] = n;
    }
    return LK_OK;
}

static inline uint8_t clip(int32_t sum) {
    int32_t v = sum >> TAP_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* One row. `channels` is a constant in each caller, and the sums are not an array, so that they stay in registers. */
static inline __attribute__((always_inline)) void filter_row(uint8_t *restrict out, const uint8_t *restrict in,
                                                             const struct taps *taps, int n_out, int channels) {
    for (int i = 0; i < n_out; i++, out += channels) {
        const uint8_t *from = in + (size_t)taps->first[i] * (size_t)channels;
        const int32_t *weight = taps->weight + (size_t)i * (size_t)taps->stride, *end = weight + taps->n[i];
        int32_t sum_0 = 1 << (TAP_BITS - 1), sum_1 = sum_0, sum_2 = sum_0, sum_3 = sum_0;
        for (; weight < end; weight++, from += channels) {
            sum_0 += from[0] * *weight;
            if (channels > 1) sum_1 += from[1] * *weight;
            if (channels > 2) sum_2 += from[2] * *weight;
            if (channels > 3) sum_3 += from[3] * *weight;
        }
        out[0] = clip(sum_0);
        if (channels > 1) out[1] = clip(sum_1);
        if (channels > 2) out[2] = clip(sum_2);
        if (channels > 3) out[3] = clip(sum_3);
    }
}

static void filter_horizontal(uint8_t *out, const uint8_t *in, const struct taps *taps, int n_out, int channels) {
    switch (channels) {
    case 1:
        filter_row(out, in, taps, n_out, 1);
        break;
    case 2:
        filter_row(out, in, taps, n_out, 2);
        break;
    case 3:
        filter_row(out, in, taps, n_out, 3);
        break;
    default:
        filter_row(out, in, taps, n_out, 4);
    }
}

/* All channels of a row are alike here: whole rows are added up, weighted. sums [row]. */
static void filter_vertical(uint8_t *restrict out, const uint8_t *in, const int32_t *weight, int n, size_t row,
                            int32_t *restrict sums) {
    for (size_t i = 0; i < row; i++) sums[i] = 1 << (TAP_BITS - 1);
    for (int k = 0; k < n; k++) {
        const uint8_t *restrict from = in + (size_t)k * row;
        for (size_t i = 0; i < row; i++) sums[i] += from[i] * weight[k];
    }
    for (size_t i = 0; i < row; i++) out[i] = clip(sums[i]);
}

static enum lk_code resize_horizontal(struct lk_image *out, const struct lk_image *in, int width,
                                      enum lk_resample resample) {
    struct taps taps = {0};
    enum lk_code rc = make_taps(&taps, in->width, width, resample);
    if (!rc) rc = lk_image_new(out, width, in->height, in->channels);
    size_t from = (size_t)in->width * (size_t)in->channels, to = (size_t)width * (size_t)in->channels;
    for (size_t y = 0; !rc && y < (size_t)in->height; y++)
        filter_horizontal(out->pixels + y * to, in->pixels + y * from, &taps, width, in->channels);
    free_taps(&taps);
    return rc;
}

static enum lk_code resize_vertical(struct lk_image *out, const struct lk_image *in, int height,
                                    enum lk_resample resample) {
    struct taps taps = {0};
    enum lk_code rc = make_taps(&taps, in->height, height, resample);
    size_t row = (size_t)in->width * (size_t)in->channels;
    int32_t *sums = rc ? NULL : lk_calloc(row, sizeof *sums);
    if (!rc && !sums) rc = lk_fail(LK_E_NOMEM, "image: no memory for a row of %zu values", row);
    if (!rc) rc = lk_image_new(out, in->width, height, in->channels);
    for (int y = 0; !rc && y < height; y++)
        filter_vertical(out->pixels + (size_t)y * row, in->pixels + (size_t)taps.first[y] * row,
                        taps.weight + (size_t)y * (size_t)taps.stride, taps.n[y], row, sums);
    lk_free(sums);
    free_taps(&taps);
    return rc;
}

/* Pillow clips the bytes of a sum, not the sum: what lies past white keeps its low byte, and only a high byte above 0
 * counts when it is converted. */
static void store_wide(uint8_t *to, double sum) {
    int v = (int)(sum >= 0 ? sum + 0.5 : sum - 0.5), high = v >> 8, low = v % 256;
    to[0] = (uint8_t)(high < 0 ? 0 : high > 255 ? 255 : high);
    to[1] = (uint8_t)(low < 0 ? 0 : low);
}

/* One axis of 16-bit grey: `n_lines` sums of samples that lie `step` bytes apart for each output position. */
static enum lk_code resize_wide(struct lk_image *out, const struct lk_image *in, bool vertical, int size,
                                enum lk_resample resample) {
    struct taps taps = {0};
    LK_TRY(make_taps(&taps, vertical ? in->height : in->width, size, resample));
    int n_lines = vertical ? in->width : in->height;
    enum lk_code rc = lk_image_new(out, vertical ? in->width : size, vertical ? size : in->height, 2);
    size_t row_in = 2 * (size_t)in->width, row_out = 2 * (size_t)out->width, step = vertical ? row_in : 2;
    for (int i = 0; !rc && i < size; i++) {
        const double *weight = taps.exact + (size_t)i * (size_t)taps.stride;
        for (size_t line = 0; line < (size_t)n_lines; line++) {
            const uint8_t *from = in->pixels + line * (vertical ? 2 : row_in) + (size_t)taps.first[i] * step;
            double sum = 0;
            for (int k = 0; k < taps.n[i]; k++, from += step) sum += (from[0] << 8 | from[1]) * weight[k];
            store_wide(out->pixels + line * (vertical ? 2 : row_out) + (size_t)i * (vertical ? row_out : 2), sum);
        }
    }
    free_taps(&taps);
    return rc;
}

/* Where each output position reads, stepping by addition as Pillow does: its rounding decides. */
static void nearest_positions(int *at, int n_in, int n_out) {
    double step = (double)n_in / n_out, position = step * 0.5;
    for (int i = 0; i < n_out; i++, position += step) at[i] = position < n_in ? (int)position : n_in - 1;
}

static enum lk_code resize_nearest(struct lk_image *out, const struct lk_image *in, int width, int height) {
    int *x_at = lk_calloc((size_t)width + (size_t)height, sizeof *x_at);
    if (!x_at) return lk_fail(LK_E_NOMEM, "image: no memory to resize to %d x %d", width, height);
    enum lk_code rc = lk_image_new(out, width, height, in->channels);
    int *y_at = x_at + width;
    nearest_positions(x_at, in->width, width);
    nearest_positions(y_at, in->height, height);
    size_t channels = (size_t)in->channels;
    uint8_t *to = out->pixels;
    for (int y = 0; !rc && y < height; y++) {
        const uint8_t *row = in->pixels + (size_t)y_at[y] * (size_t)in->width * channels;
        for (int x = 0; x < width; x++)
            for (size_t c = 0; c < channels; c++) *to++ = row[(size_t)x_at[x] * channels + c];
    }
    lk_free(x_at);
    return rc;
}

/* a * b / 255, rounded */
static inline unsigned multiply_255(unsigned a, unsigned b) {
    unsigned t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

static void premultiply(struct lk_image *out, const struct lk_image *in) {
    int channels = in->channels, n_colors = channels - 1;
    size_t n = (size_t)in->width * (size_t)in->height;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *from = in->pixels + i * (size_t)channels;
        uint8_t *to = out->pixels + i * (size_t)channels;
        for (int c = 0; c < n_colors; c++) to[c] = (uint8_t)multiply_255(from[c], from[n_colors]);
        to[n_colors] = from[n_colors];
    }
}

static void unpremultiply(struct lk_image *image) {
    int channels = image->channels, n_colors = channels - 1;
    size_t n = (size_t)image->width * (size_t)image->height;
    for (size_t i = 0; i < n; i++) {
        uint8_t *pixel = image->pixels + i * (size_t)channels;
        unsigned alpha = pixel[n_colors];
        for (int c = 0; c < n_colors && alpha != 0 && alpha != 255; c++) {
            unsigned v = 255u * pixel[c] / alpha;
            pixel[c] = (uint8_t)(v > 255 ? 255 : v);
        }
    }
}

/* One pass along one axis: from `image`, or from `in` while `image` is empty, to `image`. */
static enum lk_code one_pass(struct lk_image *image, const struct lk_image *in, bool vertical, int size,
                             enum lk_resample resample, enum kind kind) {
    struct lk_image made = {0};
    const struct lk_image *from = image->pixels ? image : in;
    if (size == (vertical ? from->height : from->width)) return LK_OK;
    if (kind == WIDE)
        LK_TRY(resize_wide(&made, from, vertical, size, resample));
    else
        LK_TRY(vertical ? resize_vertical(&made, from, size, resample)
                        : resize_horizontal(&made, from, size, resample));
    lk_image_free(image);
    *image = made;
    return LK_OK;
}

static enum lk_code resize_filtered(struct lk_image *out, const struct lk_image *in, int width, int height,
                                    enum lk_resample resample, enum kind kind) {
    enum lk_code rc;
    if (kind == ALPHA) {
        if ((rc = lk_image_new(out, in->width, in->height, in->channels))) return rc;
        premultiply(out, in);
    }
    /* Since 13.0 Pillow begins with the axis that leaves it less to do; the 8 bits in between make it matter. */
    int fewer_rows = in->height - height, fewer_columns = in->width - width;
    bool vertical_first = fewer_rows > 0 && fewer_rows > 2 * fewer_columns;
    if ((rc = one_pass(out, in, vertical_first, vertical_first ? height : width, resample, kind)) ||
        (rc = one_pass(out, in, !vertical_first, vertical_first ? width : height, resample, kind)))
        return rc;
    if (kind == ALPHA) unpremultiply(out);
    return LK_OK;
}

/* What the file holds is resized, then converted. */
static enum lk_code resize_unconverted(struct lk_image *out, const struct lk_image *in, int width, int height,
                                       enum lk_resample resample) {
    bool inks = in->channels == 3;
    struct lk_image held = {.width = in->width, .height = in->height, .channels = inks ? 4 : 2}, resized = {0};
    held.pixels = in->unconverted;
    enum lk_code rc = resize_filtered(&resized, &held, width, height, resample, inks ? PLAIN : WIDE);
    if (!rc) rc = lk_image_new(out, width, height, in->channels);
    if (!rc) lk_image_convert(out->pixels, resized.pixels, (size_t)width * (size_t)height, in->channels);
    lk_image_free(&resized);
    return rc;
}

enum lk_code lk_image_resize(struct lk_image *out, const struct lk_image *in, int width, int height,
                             enum lk_resample resample) {
    *out = (struct lk_image){0};
    if (width < 1 || height < 1 || width > LK_IMAGE_SIDE_MAX || height > LK_IMAGE_SIDE_MAX)
        return lk_fail(LK_E_IMAGE_SIZE, "image: expected to resize to 1 to %d pixels a side, got %d x %d",
                       LK_IMAGE_SIDE_MAX, width, height);
    struct lk_image resized = {0};
    enum lk_code rc;
    if (width == in->width && height == in->height)
        rc = lk_image_crop(&resized, in, 0, 0, width, height);
    else if (in->nearest_only || resample == LK_RESAMPLE_NEAREST)
        rc = resize_nearest(&resized, in, width, height);
    else if (in->unconverted)
        rc = resize_unconverted(&resized, in, width, height, resample);
    else
        rc = resize_filtered(&resized, in, width, height, resample, in->channels % 2 ? PLAIN : ALPHA);
    if (rc) {
        lk_image_free(&resized);
        return rc;
    }
    resized.nearest_only = in->nearest_only;
    *out = resized;
    return LK_OK;
}
