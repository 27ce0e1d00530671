/* Group norm over all pixels, channels last, in two passes over the data.
 *
 * Sums are taken in double per channel over a block of pixels, then over a group's channels and over the blocks, in
 * that order; the size of a block depends on the number of pixels only. Each group is shifted by its first value, so
 * that the difference of sum of squares and squared mean stays accurate when the mean is large. */
#include <math.h>
#include <omp.h>

#include "kernels/cpu/rows/rows.h"

#define MOST_BLOCKS  256
#define LEAST_PIXELS 64

struct layout {
    int64_t n_pixels, channels, per_group, n_groups;
    int64_t block, n_blocks; /* pixels in a block, blocks */
    int64_t width;           /* elements of the repeated coefficients: whole pixels, at least one */
    double *partial;         /* [n_blocks, n_groups, 2]: sums, sums of squares */
    double *shift;           /* [channels] */
    double *sums;            /* [n_threads, 2, channels] */
    float *mean, *a, *b;     /* [width]: n = (x - mean) a + b */
};

static struct layout layout_of(const struct lk_group_norm *op) {
    struct layout l = {.channels = op->x->shape[2], .n_groups = op->n_groups};
    l.n_pixels = op->x->shape[0] * op->x->shape[1];
    l.per_group = l.channels / l.n_groups;
    l.block = (l.n_pixels + MOST_BLOCKS - 1) / MOST_BLOCKS;
    if (l.block < LEAST_PIXELS) l.block = LEAST_PIXELS;
    l.n_blocks = (l.n_pixels + l.block - 1) / l.block;
    l.width = l.channels < LK_CHUNK ? LK_CHUNK / l.channels * l.channels : l.channels;
    return l;
}

size_t lk_cpu_group_norm_scratch(const struct lk_device *dev, const struct lk_group_norm *op) {
    struct layout l = layout_of(op);
    int64_t doubles = l.n_blocks * l.n_groups * 2 + l.channels + dev->n_threads * 2 * l.channels;
    return (size_t)doubles * sizeof(double) + (size_t)l.width * 3 * sizeof(float);
}

static void place(struct layout *l, int n_threads, void *scratch) {
    l->partial = scratch;
    l->shift = l->partial + l->n_blocks * l->n_groups * 2;
    l->sums = l->shift + l->channels;
    l->mean = (float *)(l->sums + n_threads * 2 * l->channels);
    l->a = l->mean + l->width;
    l->b = l->a + l->width;
}

static void sum_block(const struct lk_group_norm *op, const struct layout *l, int64_t block, double *sums) {
    int64_t first = block * l->block, end = first + l->block < l->n_pixels ? first + l->block : l->n_pixels;
    double *squares = sums + l->channels;
    float buffer[LK_CHUNK];
    memset(sums, 0, (size_t)l->channels * 2 * sizeof *sums);
    for (int64_t c = 0; c < l->channels; c += LK_CHUNK) {
        int64_t n = l->channels - c < LK_CHUNK ? l->channels - c : LK_CHUNK;
        int64_t pixels = n == l->channels ? LK_CHUNK / n : 1;
        for (int64_t p = first; p < end; p += pixels) {
            int64_t m = end - p < pixels ? end - p : pixels;
            const float *x = lk_cpu_view(op->x, p * l->channels + c, m * n, buffer);
            lk_cpu_rows()->channel_sums(m, n, x, n, l->shift + c, sums + c, squares + c);
        }
    }
    for (int64_t g = 0; g < l->n_groups; g++) {
        double sum = 0.0, sum_squares = 0.0;
        for (int64_t c = g * l->per_group; c < (g + 1) * l->per_group; c++) sum += sums[c], sum_squares += squares[c];
        l->partial[(block * l->n_groups + g) * 2] = sum;
        l->partial[(block * l->n_groups + g) * 2 + 1] = sum_squares;
    }
}

/* The coefficients of group g's channels, repeated over the width. */
static void finish_group(const struct lk_group_norm *op, const struct layout *l, int64_t g) {
    double sum = 0.0, sum_squares = 0.0, n = (double)(l->n_pixels * l->per_group);
    for (int64_t block = 0; block < l->n_blocks; block++) {
        sum += l->partial[(block * l->n_groups + g) * 2];
        sum_squares += l->partial[(block * l->n_groups + g) * 2 + 1];
    }
    double shifted_mean = sum / n, variance = sum_squares / n - shifted_mean * shifted_mean;
    if (variance < 0.0) variance = 0.0;
    double factor = 1.0 / sqrt(variance + (double)op->eps);
    for (int64_t c = g * l->per_group; c < (g + 1) * l->per_group; c++)
        for (int64_t i = c; i < l->width; i += l->channels) {
            l->mean[i] = (float)(l->shift[c] + shifted_mean);
            l->a[i] = (float)(factor * (double)lk_cpu_get(op->w, c));
            l->b[i] = lk_cpu_get(op->b, c);
        }
}

static void normalize(const struct lk_group_norm *op, const struct layout *l, int64_t first, int64_t n) {
    const struct lk_rows *rows = lk_cpu_rows();
    float buffer[LK_CHUNK];
    for (int64_t i = 0; i < n; i += LK_CHUNK) {
        int64_t m = n - i < LK_CHUNK ? n - i : LK_CHUNK;
        float *y = lk_cpu_target(op->y, first + i, buffer);
        const float *x = lk_cpu_view(op->x, first + i, m, buffer);
        rows->normalize(m, x, l->mean + i, l->a + i, l->b + i, y);
        if (op->act != LK_ACT_NONE) {
            if (op->x->dtype == LK_BF16) rows->round(m, y);
            rows->act(op->act, m, y, y);
        }
        lk_cpu_put(op->y, first + i, m, y);
    }
}

enum lk_code lk_cpu_group_norm(struct lk_device *dev, const struct lk_group_norm *op, void *scratch) {
    struct layout l = layout_of(op);
    place(&l, dev->n_threads, scratch);
    for (int64_t c = 0; c < l.channels; c++) l.shift[c] = lk_cpu_get(op->x, c - c % l.per_group);
#pragma omp parallel for schedule(static) num_threads(dev->n_threads)
    for (int64_t block = 0; block < l.n_blocks; block++)
        sum_block(op, &l, block, l.sums + omp_get_thread_num() * 2 * l.channels);
    for (int64_t g = 0; g < l.n_groups; g++) finish_group(op, &l, g);
    int64_t total = l.n_pixels * l.channels, n_rows = (total + l.width - 1) / l.width;
#pragma omp parallel for schedule(static) num_threads(dev->n_threads)
    for (int64_t i = 0; i < n_rows; i++) {
        int64_t first = i * l.width;
        normalize(op, &l, first, total - first < l.width ? total - first : l.width);
    }
    return LK_OK;
}
