/* Matrix products of the cuda device: the bits of a row whatever rows are beside it, whichever kernel and tile serves,
 * and whatever the distance of rows; bf16 against float64; every part of the epilogue; convolutions; the choice of
 * tiles.
 */
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/ops.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/cuda.h"
#include "tests/common/cuda.h"

#define ARENA_BYTES ((size_t)32 << 20)
#define A100        ((size_t)163 << 10) /* bytes of shared memory that it gives a block */

static struct lk_device *cuda, *cpu;

/* A tensor with rows ld apart in a device's arena; contents from the host. */
static struct lk_tensor put(struct lk_device *dev, enum lk_dtype dtype, int64_t rows, int64_t columns, int64_t ld,
                            const float *from) {
    struct lk_tensor whole;
    void *host = lk_calloc((size_t)(rows * ld), lk_dtype_size(dtype));
    assert_non_null(host);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            float v = from[r * columns + c];
            if (dtype == LK_BF16)
                ((uint16_t *)host)[r * ld + c] = lk_f32_to_bf16(v);
            else
                ((float *)host)[r * ld + c] = v;
        }
    assert_ok(LK_NEW(&dev->arena, &whole, dtype, rows, ld));
    assert_ok(lk_upload(dev, &whole, host));
    lk_free(host);
    return lk_tensor_cols(&whole, 0, columns);
}

/* The elements of a window, in f32. */
static float *get(struct lk_device *dev, const struct lk_tensor *t) {
    struct lk_tensor whole = LK_TENSOR(t->data, t->dtype, t->shape[0], t->ld);
    void *host = lk_malloc(lk_tensor_bytes(&whole));
    float *out = lk_malloc((size_t)(t->shape[0] * t->shape[1]) * sizeof *out);
    assert_ok(lk_download(dev, host, &whole));
    for (int64_t r = 0; r < t->shape[0]; r++)
        for (int64_t c = 0; c < t->shape[1]; c++)
            out[r * t->shape[1] + c] = t->dtype == LK_BF16 ? lk_bf16_to_f32(((uint16_t *)host)[r * t->ld + c])
                                                           : ((float *)host)[r * t->ld + c];
    lk_free(host);
    return out;
}

static float *normals(uint64_t *seed, int64_t n, double scale) {
    float *out = lk_malloc((size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = lk_round_bf16((float)(scale * test_normal(seed)));
    return out;
}

/* A layer's contents, bf16 values, on the host. */
struct layer {
    int64_t m, n, k, rank; /* rank 0: no adapter */
    enum lk_dtype dtype, w_dtype;
    float *x, *w, *bias, *gate, *residual, *low, *up;
    enum lk_act act;
    bool has_bias, has_gate, has_residual, round_before_bias;
};

static struct layer make(int64_t m, int64_t n, int64_t k, enum lk_dtype dtype, uint64_t seed) {
    return (struct layer){.m = m,
                          .n = n,
                          .k = k,
                          .dtype = dtype,
                          .w_dtype = dtype,
                          .x = normals(&seed, m * k, 1),
                          .w = normals(&seed, n * k, 1 / sqrt((double)k)),
                          .bias = normals(&seed, n, 1),
                          .gate = normals(&seed, n, 1),
                          .residual = normals(&seed, m * n, 1)};
}

static void drop(struct layer *l) {
    lk_free(l->x);
    lk_free(l->w);
    lk_free(l->bias);
    lk_free(l->gate);
    lk_free(l->residual);
    lk_free(l->low);
    lk_free(l->up);
}

static void adapt(struct layer *l, int64_t rank, uint64_t seed) {
    l->rank = rank;
    l->low = normals(&seed, l->m * rank, 1);
    l->up = normals(&seed, l->n * rank, 1 / sqrt((double)rank));
}

/* Rows [first, first + m) of the layer; rows of x and w lie `gap` elements more than K apart, those of y and the
 * residual `gap` more than N. */
static float *run_by(struct lk_device *dev, const struct layer *l, int64_t first, int64_t m, int64_t gap,
                     const struct lk_cuda_gemm_tile *tile) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor x = put(dev, l->dtype, m, l->k, l->k + gap, l->x + first * l->k);
    struct lk_tensor w = put(dev, l->w_dtype, l->n, l->k, l->k + gap, l->w);
    struct lk_tensor bias = put(dev, l->w_dtype, 1, l->n, l->n, l->bias);
    struct lk_tensor gate = put(dev, l->dtype, 1, l->n, l->n, l->gate);
    struct lk_tensor residual = put(dev, l->dtype, m, l->n, l->n + gap, l->residual + first * l->n);
    struct lk_tensor y = put(dev, l->dtype, m, l->n, l->n + gap, l->residual + first * l->n);
    struct lk_tensor low, up;
    if (l->rank) {
        low = put(dev, l->dtype, m, l->rank, l->rank + gap, l->low + first * l->rank);
        up = put(dev, l->dtype, l->n, l->rank, l->rank + gap, l->up);
    }
    bias = LK_VIEW(&bias, l->n);
    gate = LK_VIEW(&gate, l->n);
    const struct lk_linear op = {.y = &y,
                                 .x = &x,
                                 .w = &w,
                                 .bias = l->has_bias ? &bias : NULL,
                                 .gate = l->has_gate ? &gate : NULL,
                                 .residual = l->has_residual ? &residual : NULL,
                                 .low = l->rank ? &low : NULL,
                                 .up = l->rank ? &up : NULL,
                                 .act = l->act,
                                 .round_before_bias = l->round_before_bias};
    assert_ok(tile ? lk_cuda_linear_by(dev, &op, tile) : lk_linear(dev, &op));
    float *out = get(dev, &y);
    lk_arena_release(&dev->arena, mark);
    return out;
}

static float *run(struct lk_device *dev, const struct layer *l, int64_t first, int64_t m, int64_t gap) {
    return run_by(dev, l, first, m, gap, NULL);
}

static double nmse(const float *got, const float *expected, int64_t n) {
    double error = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        error += ((double)got[i] - expected[i]) * ((double)got[i] - expected[i]);
        norm += (double)expected[i] * expected[i];
    }
    return norm > 0 ? error / norm : error;
}

/* Two tiles of linear.cu by N, and K that ends inside a chunk, a step and a stage. */
static const struct { int64_t n, k; } tiles[] = {{256, 136}, {72, 212}, {64, 16}};

/* Some rows alone have the bits of the same rows among 200. */
static void rows_alone_have_the_same_bits(void **state) {
    (void)state;
    static const int64_t ms[] = {1, 7, 33, 128};
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        for (int dtype = 0; dtype < 2; dtype++) {
            struct layer l = make(200, tiles[i].n, tiles[i].k, dtype ? LK_BF16 : LK_F32, 1 + i);
            l.has_bias = l.has_gate = l.has_residual = true;
            l.act = LK_ACT_GELU_TANH;
            if (i) adapt(&l, i == 1 ? 32 : 100, i);
            float *all = run(cuda, &l, 0, 200, 0);
            for (size_t j = 0; j < sizeof ms / sizeof *ms; j++) {
                int64_t first = (int64_t)(17 * j);
                float *part = run(cuda, &l, first, ms[j], 0);
                assert_memory_equal(part, all + first * l.n, (size_t)(ms[j] * l.n) * sizeof *part);
                lk_free(part);
            }
            lk_free(all);
            drop(&l);
        }
}

/* Every tile gives the same bits, and so does the kernel that gathers. */
static void tiles_have_the_same_bits(void **state) {
    (void)state;
    const struct lk_cuda_gemm_tile *by[] = {
        lk_cuda_linear_tile(6144, 6144, A100), lk_cuda_linear_tile(3072, 3072, A100),
        lk_cuda_linear_tile(300, 3072, A100),  lk_cuda_linear_tile(64, 3072, A100),
        lk_cuda_linear_tile(128, 3072, A100),  lk_cuda_linear_tile_few()};
    static const int64_t ks[] = {24, 64, 200, 580};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        struct layer l = make(150, 264, ks[i], LK_BF16, 3 + i);
        l.has_bias = l.has_residual = true;
        l.act = LK_ACT_QUICK_GELU;
        if (i % 2) adapt(&l, i == 1 ? 96 : 40, i);
        float *gathered = run(cuda, &l, 0, l.m, 3);
        for (size_t j = 0; j < sizeof by / sizeof *by; j++) {
            float *y = run_by(cuda, &l, 0, l.m, 0, by[j]);
            if (memcmp(y, gathered, (size_t)(l.m * l.n) * sizeof *y)) fail_msg("%s, K %d", by[j]->kernel, (int)ks[i]);
            lk_free(y);
        }
        lk_free(gathered);
        drop(&l);
    }
}

/* An adapter is more of K: the bits of the product of [x low] and [w up], where K ends with a stage. */
static void an_adapter_is_more_of_k(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct layer l = make(i % 2 ? 20 : 140, i < 3 ? 200 : 64, i % 3 ? 64 : 192, i == 5 ? LK_F32 : LK_BF16, 40);
        l.has_bias = l.has_gate = l.has_residual = true;
        l.act = LK_ACT_SILU;
        adapt(&l, i % 2 ? 96 : 64, 41);
        float *y = run(cuda, &l, 0, l.m, 0);
        const int64_t k = l.k + l.rank;
        float *x = lk_malloc((size_t)(l.m * k) * sizeof *x), *w = lk_malloc((size_t)(l.n * k) * sizeof *w);
        for (int64_t r = 0; r < l.m; r++) {
            memcpy(x + r * k, l.x + r * l.k, (size_t)l.k * sizeof *x);
            memcpy(x + r * k + l.k, l.low + r * l.rank, (size_t)l.rank * sizeof *x);
        }
        for (int64_t r = 0; r < l.n; r++) {
            memcpy(w + r * k, l.w + r * l.k, (size_t)l.k * sizeof *w);
            memcpy(w + r * k + l.k, l.up + r * l.rank, (size_t)l.rank * sizeof *w);
        }
        lk_free(l.x);
        lk_free(l.w);
        l.x = x;
        l.w = w;
        l.k = k;
        l.rank = 0;
        float *joined = run(cuda, &l, 0, l.m, 0);
        assert_memory_equal(joined, y, (size_t)(l.m * l.n) * sizeof *y);
        lk_free(y);
        lk_free(joined);
        drop(&l);
    }
}

/* gap 8 keeps rows 16-byte aligned; 3 does not, and another kernel serves. */
static void windows_have_the_same_bits(void **state) {
    (void)state;
    static const int64_t gaps[] = {8, 3};
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        for (int few = 0; few < 2; few++) {
            struct layer l = make(few ? 9 : 130, tiles[i].n, tiles[i].k, LK_BF16, 11 + i);
            l.has_bias = l.has_gate = l.has_residual = true;
            l.act = LK_ACT_SILU;
            float *dense = run(cuda, &l, 0, l.m, 0);
            for (int j = 0; j < 2; j++) {
                float *window = run(cuda, &l, 0, l.m, gaps[j]);
                assert_memory_equal(window, dense, (size_t)(l.m * l.n) * sizeof *dense);
                lk_free(window);
            }
            lk_free(dense);
            drop(&l);
        }
}

/* Against float64, rounded once: the tensor cores cut each sum to 24 bits, which moves few roundings. */
static void bf16_against_float64(void **state) {
    (void)state;
    double worst = 0;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        for (int few = 0; few < 2; few++) {
            struct layer l = make(few ? 20 : 70, tiles[i].n, tiles[i].k, LK_BF16, 21 + i);
            float *got = run(cuda, &l, 0, l.m, 0), *expected = lk_malloc((size_t)(l.m * l.n) * sizeof *expected);
            for (int64_t r = 0; r < l.m; r++)
                for (int64_t c = 0; c < l.n; c++) {
                    double sum = 0;
                    for (int64_t k = 0; k < l.k; k++) sum += (double)l.x[r * l.k + k] * l.w[c * l.k + k];
                    expected[r * l.n + c] = lk_round_bf16((float)sum);
                }
            double e = nmse(got, expected, l.m * l.n);
            if (e > worst) worst = e;
            lk_free(got);
            lk_free(expected);
            drop(&l);
        }
    print_message("NMSE %.2g\n", worst);
    assert_true(worst <= 1e-7);
}

/* A NaN or Inf in x or w reaches the outputs that it should and no other: beyond K, M and N there are zeros, or
 * products that nothing stores. */
static void nonfinite(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) { /* f32, few rows, many rows, rows without alignment */
        struct layer l = make(kind == 1 ? 20 : 40, 70, 75, kind ? LK_BF16 : LK_F32, 7);
        l.x[7 * l.k + 74] = NAN;
        l.x[19 * l.k + 3] = INFINITY;
        l.w[69 * l.k + 74] = -INFINITY;
        float *y = run(cuda, &l, 0, l.m, kind == 3 ? 2 : 5);
        for (int64_t r = 0; r < l.m; r++)
            for (int64_t c = 0; c < l.n; c++) {
                float v = y[r * l.n + c];
                bool both = r == 19 && c == 69; /* the signs decide */
                assert_true(r == 7 ? isnan(v) : both ? !isfinite(v) : r == 19 || c == 69 ? isinf(v) : isfinite(v));
            }
        lk_free(y);
        drop(&l);
    }
}

/* Every combination of the epilogue's parts, both dtypes, with f32 activations bf16 weights as well. */
static void epilogues(void **state) {
    (void)state;
    double worst[3] = {0};
    for (int parts = 0; parts < 16; parts++)
        for (int pair = 0; pair < 3; pair++) {
            struct layer l = make(5 + parts, 40, 24, pair == 2 ? LK_BF16 : LK_F32, 31 + (uint64_t)parts);
            l.w_dtype = pair ? LK_BF16 : LK_F32;
            l.has_bias = parts & 1;
            l.has_gate = parts & 2;
            l.has_residual = parts & 4;
            l.round_before_bias = parts & 8;
            l.act = (enum lk_act)((parts + pair) % 5);
            float *got = run(cuda, &l, 0, l.m, 0), *expected = run(cpu, &l, 0, l.m, 0);
            double e = nmse(got, expected, l.m * l.n);
            if (e > worst[pair]) worst[pair] = e;
            lk_free(got);
            lk_free(expected);
            drop(&l);
        }
    print_message("NMSE f32 %.2g, bf16 weights %.2g, bf16 %.2g\n", worst[0], worst[1], worst[2]);
    assert_true(worst[0] <= 1e-10 && worst[1] <= 1e-10);
    assert_true(worst[2] <= 1e-7); /* a rounding left out or in the wrong place gives 1e-6 */
}

struct conv {
    int64_t h, w, c_in, c_out, kt, kh, kw;
    int stride, upsample, top, left, bottom, right;
    bool residual;
};

/* shift: elements that x begins behind where it would. */
static float *convolve_shifted(struct lk_device *dev, const struct conv *v, enum lk_dtype dtype, enum lk_dtype w_dtype,
                               int64_t shift, int64_t *n) {
    size_t mark = lk_arena_mark(&dev->arena);
    uint64_t seed = 5;
    const int64_t h = (v->upsample * v->h + v->top + v->bottom - v->kh) / v->stride + 1;
    const int64_t w = (v->upsample * v->w + v->left + v->right - v->kw) / v->stride + 1;
    const int64_t k = v->c_in * v->kt * v->kh * v->kw;
    float *x = normals(&seed, v->h * v->w * v->c_in, 1), *filters = normals(&seed, v->c_out * k, 1 / sqrt((double)k));
    float *bias = normals(&seed, v->c_out, 1), *residual = normals(&seed, h * w * v->c_out, 1);
    struct lk_tensor tx = put(dev, dtype, v->h * v->w, v->c_in, v->c_in, x);
    if (shift) {
        float *shifted = lk_calloc((size_t)(v->h * v->w * v->c_in + shift), sizeof *shifted);
        memcpy(shifted + shift, x, (size_t)(v->h * v->w * v->c_in) * sizeof *x);
        tx = put(dev, dtype, 1, v->h * v->w * v->c_in + shift, v->h * v->w * v->c_in + shift, shifted);
        tx.data = (unsigned char *)tx.data + (size_t)shift * lk_dtype_size(dtype);
        lk_free(shifted);
    }
    struct lk_tensor tw = put(dev, w_dtype, v->c_out, k, k, filters);
    struct lk_tensor tb = put(dev, w_dtype, 1, v->c_out, v->c_out, bias);
    struct lk_tensor ty = put(dev, dtype, h * w, v->c_out, v->c_out, residual);
    lk_free(x);
    lk_free(filters);
    lk_free(bias);
    lk_free(residual);
    struct lk_tensor y = LK_VIEW(&ty, h, w, v->c_out);
    tx = LK_VIEW(&tx, v->h, v->w, v->c_in);
    tw = v->kt > 1 ? LK_VIEW(&tw, v->c_out, v->c_in, v->kt, v->kh, v->kw)
                   : LK_VIEW(&tw, v->c_out, v->c_in, v->kh, v->kw);
    tb = LK_VIEW(&tb, v->c_out);
    assert_ok(lk_conv2d(dev, &(struct lk_conv2d){.y = &y,
                                                 .x = &tx,
                                                 .w = &tw,
                                                 .bias = &tb,
                                                 .residual = v->residual ? &y : NULL,
                                                 .stride = v->stride,
                                                 .upsample = v->upsample,
                                                 .pad_top = v->top,
                                                 .pad_left = v->left,
                                                 .pad_bottom = v->bottom,
                                                 .pad_right = v->right}));
    float *out = get(dev, &ty);
    *n = h * w * v->c_out;
    lk_arena_release(&dev->arena, mark);
    return out;
}

static float *convolve(struct lk_device *dev, const struct conv *v, enum lk_dtype dtype, enum lk_dtype w_dtype,
                       int64_t *n) {
    return convolve_shifted(dev, v, dtype, w_dtype, 0, n);
}

static void convolutions(void **state) {
    (void)state;
    static const struct conv cases[] = {
        {9, 11, 8, 24, 1, 3, 3, 1, 1, 1, 1, 1, 1, true},   {12, 9, 64, 192, 1, 3, 3, 2, 1, 0, 0, 1, 1, false},
        {7, 6, 24, 256, 3, 3, 3, 1, 2, 1, 1, 1, 1, true},  {10, 10, 3, 70, 1, 3, 3, 1, 1, 1, 1, 1, 1, false},
        {12, 8, 40, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, false},  {5, 7, 16, 64, 1, 1, 1, 1, 1, 0, 0, 0, 0, true},
        {5, 7, 24, 70, 2, 1, 1, 1, 1, 0, 0, 0, 0, false},  {14, 15, 3, 20, 1, 5, 4, 3, 2, 2, 1, 0, 3, true},
        {14, 15, 16, 20, 1, 5, 4, 3, 2, 2, 1, 0, 3, true},
    };
    double worst[3] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int pair = 0; pair < 3; pair++) {
            enum lk_dtype dtype = pair == 2 ? LK_BF16 : LK_F32, w_dtype = pair ? LK_BF16 : LK_F32;
            int64_t n;
            float *got = convolve(cuda, &cases[i], dtype, w_dtype, &n);
            float *expected = convolve(cpu, &cases[i], dtype, w_dtype, &n);
            double e = nmse(got, expected, n);
            if (!(e <= (pair == 2 ? 1e-5 : 1e-10))) fail_msg("case %zu, pair %d: NMSE %g", i, pair, e);
            if (e > worst[pair]) worst[pair] = e;
            lk_free(got);
            lk_free(expected);
        }
    print_message("NMSE f32 %.2g, bf16 weights %.2g, bf16 %.2g\n", worst[0], worst[1], worst[2]);
}

/* The kernel for pictures of three channels reads whole sectors, also where rows begin inside one; pictures that do not
 * begin at 16 bytes go to the gathering kernel. Both have the same bits. */
static void pictures(void **state) {
    (void)state;
    static const struct conv cases[] = {
        {9, 32, 3, 96, 1, 3, 3, 1, 1, 1, 1, 1, 1, false},  {5, 131, 3, 130, 3, 3, 3, 1, 1, 1, 1, 1, 1, true},
        {6, 127, 3, 8, 1, 3, 3, 1, 1, 0, 0, 2, 2, false},  {1, 1, 3, 5, 1, 3, 3, 1, 1, 1, 1, 1, 1, true},
        {3, 3, 3, 40, 1, 3, 3, 1, 1, 0, 0, 0, 0, false},   {4, 258, 3, 16, 1, 3, 3, 1, 1, 2, 0, 0, 2, false},
        {4, 130, 3, 32, 1, 3, 3, 1, 1, 7, 135, 6, 9, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t n;
        const struct conv *v = &cases[i];
        float *expected = convolve(cpu, v, LK_BF16, LK_BF16, &n), *got = convolve(cuda, v, LK_BF16, LK_BF16, &n);
        assert_string_equal(lk_cuda_device_of(cuda)->last_kernel, "conv2d_rgb_bf16");
        double e = nmse(got, expected, n);
        if (!(e <= 1e-5)) fail_msg("case %zu: NMSE %g", i, e);
        float *shifted = convolve_shifted(cuda, v, LK_BF16, LK_BF16, 8, &n); /* begins within a sector */
        assert_string_equal(lk_cuda_device_of(cuda)->last_kernel, "conv2d_rgb_bf16");
        float *gathered = convolve_shifted(cuda, v, LK_BF16, LK_BF16, 3, &n);
        assert_string_not_equal(lk_cuda_device_of(cuda)->last_kernel, "conv2d_rgb_bf16");
        assert_memory_equal(shifted, got, (size_t)n * sizeof *got);
        assert_memory_equal(gathered, got, (size_t)n * sizeof *got);
        lk_free(expected);
        lk_free(got);
        lk_free(shifted);
        lk_free(gathered);
    }
}

/* Where the usual tiles would leave multiprocessors idle; what there are of these decides the kernel, and no bit. */
static void smaller_tiles_have_the_same_bits(void **state) {
    (void)state;
    static const struct conv cases[] = {{40, 30, 32, 192, 1, 3, 3, 1, 1, 1, 1, 1, 1, true},
                                        {16, 16, 64, 128, 1, 3, 3, 2, 1, 1, 1, 1, 1, false},
                                        {9, 7, 24, 80, 1, 3, 3, 1, 2, 1, 1, 1, 1, true}};
    static const char *const kernels[] = {"conv2d_64_bf16", "conv2d_flat_64_bf16", "conv2d_few_bf16"};
    bool met[3] = {false};
    struct lk_cuda_device *device = lk_cuda_device_of(cuda);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t n;
        float *usual = convolve(cuda, &cases[i], LK_BF16, LK_BF16, &n);
        for (int processors = 4; processors < 3000; processors *= 2) {
            device->n_multiprocessors = processors;
            float *other = convolve(cuda, &cases[i], LK_BF16, LK_BF16, &n);
            for (int k = 0; k < 3; k++) met[k] = met[k] || !strcmp(device->last_kernel, kernels[k]);
            assert_memory_equal(usual, other, (size_t)n * sizeof *other);
            lk_free(other);
        }
        device->n_multiprocessors = 1;
        lk_free(usual);
    }
    assert_true(met[0] && met[1] && met[2]);
    const int64_t sides[][2] = {{64, 1280}, {256, 1280}, {1024, 640}, {4096, 320}};
    static const char *const expected[] = {"linear_few_bf16", "linear_flat_64_bf16", "linear_64_bf16", NULL};
    for (int i = 0; i < 4; i++) { /* SD 1.5's levels on an A100 */
        const struct lk_cuda_gemm_tile *tile = lk_cuda_linear_tile_small(sides[i][0], sides[i][1], 640, A100, 108);
        assert_true(!tile == !expected[i]);
        if (tile) assert_string_equal(tile->kernel, expected[i]);
    }
}

static void tiles_by_columns(void **state) {
    (void)state;
    static const struct {
        int64_t n, k;
        const char *kernel;
    } expected[] = {
        {55296, 6144, "linear_256_bf16"}, {6144, 24576, "linear_256_bf16"}, {6144, 6144, "linear_256_bf16"},
        {3072, 12288, "linear_128_bf16"}, {12288, 3072, "linear_128_bf16"}, {128, 6144, "linear_flat_128_bf16"},
        {3, 6144, "linear_flat_64_bf16"}, {300, 64, "linear_64_bf16"},      {96, 64, "linear_flat_128_bf16"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_string_equal(lk_cuda_linear_tile(expected[i].n, expected[i].k, A100)->kernel, expected[i].kernel);
    assert_string_equal(lk_cuda_linear_tile_few()->kernel, "linear_few_bf16");
    assert_string_equal(lk_cuda_conv2d_tile(512, false)->kernel, "conv2d_128_bf16");
    assert_string_equal(lk_cuda_conv2d_tile(3, false)->kernel, "conv2d_16_bf16");
    assert_string_equal(lk_cuda_conv2d_tile(8, true)->kernel, "conv2d_64_bf16");
    assert_string_equal(lk_cuda_conv2d_tile(32, false)->kernel, "conv2d_64_bf16");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_alone_have_the_same_bits),
        cmocka_unit_test(tiles_have_the_same_bits),
        cmocka_unit_test(an_adapter_is_more_of_k),
        cmocka_unit_test(windows_have_the_same_bits),
        cmocka_unit_test(bf16_against_float64),
        cmocka_unit_test(nonfinite),
        cmocka_unit_test(epilogues),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(pictures),
        cmocka_unit_test(smaller_tiles_have_the_same_bits),
        cmocka_unit_test(tiles_by_columns),
    };
    cuda = test_cuda_open();
    lk_cuda_device_of(cuda)->n_multiprocessors = 1; /* the usual tiles for small problems too */
    if (lk_device_prepare(cuda, ARENA_BYTES) || lk_device_cpu_create(1, &cpu) || lk_device_prepare(cpu, ARENA_BYTES))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lk_device_free(cuda);
    lk_device_free(cpu);
    return failed;
}
