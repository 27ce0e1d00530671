/* conv2d against a float64 oracle over random shapes, filters, strides, paddings and enlargement, at every instruction
 * level; sentinels behind the output; and the bits of a pixel, which must not depend on the image around it or on the
 * threads. */
#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "kernels/cpu/cpu.h"
#include "engine/base/isa.h"

#define N_CASES  220
#define SENTINEL 0x5a
#define TAIL     64

struct layer {
    enum lk_dtype dtype, w_dtype;
    bool taps_first;
    int64_t h_in, w_in, c_in, c_out, kt, kh, kw, h_out, w_out;
    struct lk_conv2d op;                       /* stride, upsample and padding; tensors are set by run */
    bool has_bias, has_residual, one_residual; /* one for all pixels */
    struct lk_tensor x, w, y, bias, residual;
};

static struct lk_tensor filled(enum lk_dtype dtype, int n_dims, const int64_t *shape, uint64_t *seed) {
    struct lk_tensor t = lk_tensor_make(NULL, dtype, n_dims, shape);
    int64_t n = lk_tensor_numel(&t);
    t.data = lk_malloc((size_t)n * lk_dtype_size(dtype));
    for (int64_t i = 0; i < n; i++) lk_cpu_set(&t, i, (float)test_normal(seed));
    return t;
}
#define FILLED(dtype, seed, n_dims, ...) filled(dtype, n_dims, (int64_t[]){__VA_ARGS__}, seed)

static void make(struct layer *l, uint64_t *seed) {
    l->h_out = (l->op.upsample * l->h_in + l->op.pad_top + l->op.pad_bottom - l->kh) / l->op.stride + 1;
    l->w_out = (l->op.upsample * l->w_in + l->op.pad_left + l->op.pad_right - l->kw) / l->op.stride + 1;
    l->x = FILLED(l->dtype, seed, 3, l->h_in, l->w_in, l->c_in);
    l->op.taps_first = l->taps_first;
    if (l->taps_first) l->kt = 0;
    l->w = l->taps_first ? FILLED(l->w_dtype, seed, 4, l->c_out, l->kh, l->kw, l->c_in)
           : l->kt       ? FILLED(l->w_dtype, seed, 5, l->c_out, l->c_in, l->kt, l->kh, l->kw)
                         : FILLED(l->w_dtype, seed, 4, l->c_out, l->c_in, l->kh, l->kw);
    l->bias = FILLED(l->w_dtype, seed, 1, l->c_out);
    l->residual =
        l->one_residual ? FILLED(l->dtype, seed, 1, l->c_out) : FILLED(l->dtype, seed, 3, l->h_out, l->w_out, l->c_out);
    l->y = LK_TENSOR(NULL, l->dtype, l->h_out, l->w_out, l->c_out);
    l->y.data = lk_malloc(lk_tensor_bytes(&l->y) + TAIL);
    memset(l->y.data, SENTINEL, lk_tensor_bytes(&l->y) + TAIL);
}

static void drop(struct layer *l) {
    lk_free(l->x.data);
    lk_free(l->w.data);
    lk_free(l->bias.data);
    lk_free(l->residual.data);
    lk_free(l->y.data);
}

static void run(struct layer *l, int n_threads) {
    struct lk_device dev = {.kind = LK_DEVICE_CPU, .n_threads = n_threads};
    l->op.x = &l->x;
    l->op.w = &l->w;
    l->op.y = &l->y;
    l->op.bias = l->has_bias ? &l->bias : NULL;
    l->op.residual = l->has_residual ? &l->residual : NULL;
    size_t bytes = lk_cpu_conv2d_scratch(&dev, &l->op);
    void *scratch = lk_malloc(bytes);
    assert_non_null(scratch);
    memset(scratch, 0xff, bytes); /* NaN: padding must not be read before it is written */
    assert_ok(lk_cpu_conv2d(&dev, &l->op, scratch));
    lk_free(scratch);
}

static double oracle(const struct layer *l, int64_t oy, int64_t ox, int64_t o) {
    const int64_t up = l->op.upsample, kt = l->kt ? l->kt : 1;
    double sum = l->has_bias ? lk_cpu_get(&l->bias, o) : 0;
    for (int64_t ky = 0; ky < l->kh; ky++)
        for (int64_t kx = 0; kx < l->kw; kx++) {
            int64_t y = oy * l->op.stride + ky - l->op.pad_top, x = ox * l->op.stride + kx - l->op.pad_left;
            if (y < 0 || x < 0 || y >= up * l->h_in || x >= up * l->w_in) continue;
            for (int64_t c = 0; c < l->c_in; c++)
                sum += (double)lk_cpu_get(&l->x, ((y / up) * l->w_in + x / up) * l->c_in + c) *
                       lk_cpu_get(&l->w, l->taps_first ? ((o * l->kh + ky) * l->kw + kx) * l->c_in + c
                                                       : (((o * l->c_in + c) * kt + kt - 1) * l->kh + ky) * l->kw + kx);
        }
    if (l->dtype == LK_BF16) sum = lk_round_bf16((float)sum);
    const int64_t pixel = l->one_residual ? 0 : oy * l->w_out + ox;
    if (l->has_residual) sum += lk_cpu_get(&l->residual, pixel * l->c_out + o);
    return l->dtype == LK_BF16 ? lk_round_bf16((float)sum) : sum;
}

static double nmse(const struct layer *l) {
    double error = 0, norm = 0;
    for (int64_t y = 0; y < l->h_out; y++)
        for (int64_t x = 0; x < l->w_out; x++)
            for (int64_t o = 0; o < l->c_out; o++) {
                double expected = oracle(l, y, x, o), got = lk_cpu_get(&l->y, (y * l->w_out + x) * l->c_out + o);
                assert_true(isfinite(got));
                error += (got - expected) * (got - expected);
                norm += expected * expected;
            }
    const unsigned char *tail = (const unsigned char *)l->y.data + lk_tensor_bytes(&l->y);
    for (int i = 0; i < TAIL; i++) assert_int_equal(tail[i], SENTINEL);
    return norm > 0 ? error / norm : error;
}

static int64_t up_to(uint64_t *seed, uint64_t n) { return 1 + (int64_t)(test_random(seed) % n); }

static void random_case(uint64_t *seed, enum lk_isa isa, double *worst_f32, double *worst_bf16) {
    struct layer l = {0};
    int pair = (int)(test_random(seed) % 3);
    l.dtype = pair == 2 ? LK_BF16 : LK_F32;
    l.w_dtype = pair == 0 ? LK_F32 : LK_BF16;
    l.kh = test_random(seed) % 3 ? 3 : up_to(seed, 7);
    l.kw = test_random(seed) % 3 ? l.kh : up_to(seed, 7);
    l.kt = (int64_t)(test_random(seed) % 4); /* 0: a 2-D filter */
    l.op.stride = (int)up_to(seed, 2);
    l.op.upsample = (int)up_to(seed, 2);
    l.op.pad_top = (int)(test_random(seed) % (uint64_t)l.kh);
    l.op.pad_left = (int)(test_random(seed) % (uint64_t)l.kw);
    l.op.pad_bottom = (int)(test_random(seed) % (uint64_t)l.kh);
    l.op.pad_right = (int)(test_random(seed) % (uint64_t)l.kw);
    l.h_in = l.kh + up_to(seed, 9) - 1;
    l.w_in = l.kw + up_to(seed, 9) - 1;
    l.c_in = up_to(seed, test_random(seed) % 4 ? 20 : 70);
    l.c_out = up_to(seed, test_random(seed) % 4 ? 20 : 70);
    l.taps_first = test_random(seed) % 4 == 0;
    if (l.taps_first) l.c_in = 8 * up_to(seed, 6);
    l.has_bias = test_random(seed) % 2;
    l.has_residual = test_random(seed) % 2;
    l.one_residual = test_random(seed) % 2;
    make(&l, seed);
    run(&l, (int)up_to(seed, 4));
    double e = nmse(&l), bar = l.dtype == LK_BF16 ? 1e-5 : 1e-10;
    double *worst = l.dtype == LK_BF16 ? worst_bf16 : worst_f32;
    if (e > *worst) *worst = e;
    if (!(e <= bar))
        fail_msg("%s: %lldx%lldx%lld -> %lld, filter %lldx%lld stride %d upsample %d: NMSE %g", lk_cpu_isa_name(isa),
                 (long long)l.h_in, (long long)l.w_in, (long long)l.c_in, (long long)l.c_out, (long long)l.kh,
                 (long long)l.kw, l.op.stride, l.op.upsample, e);
    drop(&l);
}

static void against_float64(void **state) {
    (void)state;
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++) {
        if (lk_cpu_isa_set((enum lk_isa)isa) != (enum lk_isa)isa) continue;
        uint64_t seed = 70 + (uint64_t)isa;
        double worst_f32 = 0, worst_bf16 = 0;
        for (int i = 0; i < N_CASES; i++) random_case(&seed, (enum lk_isa)isa, &worst_f32, &worst_bf16);
        print_message("%s: worst NMSE f32 %.2g, bf16 %.2g\n", lk_cpu_isa_name((enum lk_isa)isa), worst_f32, worst_bf16);
    }
}

/* Rows [first, first + n) of an unpadded convolution, computed from the rows under them alone: the same bits. */
static void check_strip(const struct layer *whole, int64_t first, int64_t n, int n_threads) {
    struct layer strip = *whole;
    strip.x = lk_tensor_rows(&whole->x, first, n + whole->kh - 1);
    strip.residual = lk_tensor_rows(&whole->residual, first, n);
    strip.y = LK_TENSOR(NULL, whole->dtype, n, whole->w_out, whole->c_out);
    strip.y.data = lk_malloc(lk_tensor_bytes(&strip.y));
    run(&strip, n_threads);
    struct lk_tensor expected = lk_tensor_rows(&whole->y, first, n);
    assert_memory_equal(strip.y.data, expected.data, lk_tensor_bytes(&strip.y));
    lk_free(strip.y.data);
}

static void pixel_bits(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 3, 7, 16};
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++)
        for (int pair = 0; pair < 3; pair++) {
            if (lk_cpu_isa_set((enum lk_isa)isa) != (enum lk_isa)isa) continue;
            uint64_t seed = 4;
            struct layer l = {.h_in = 40, .w_in = 37, .c_in = 41, .c_out = 45, .kh = 3, .kw = 3};
            l.dtype = pair == 2 ? LK_BF16 : LK_F32;
            l.w_dtype = pair == 0 ? LK_F32 : LK_BF16;
            l.op.stride = l.op.upsample = 1;
            l.has_bias = l.has_residual = true;
            make(&l, &seed);
            run(&l, 2);
            for (int i = 0; i < 5; i++) {
                check_strip(&l, 0, l.h_out, threads[i]);
                check_strip(&l, 3 * i, 1 + 5 * i, threads[i]);
                check_strip(&l, 30 + i, 1, threads[i]);
            }
            drop(&l);
        }
}

/* A filter with taps in time is as the last of them alone, in bits and in cost; a wrong number of them is refused. */
static void last_tap(void **state) {
    (void)state;
    uint64_t seed = 11;
    struct layer l = {.dtype = LK_BF16, .w_dtype = LK_BF16, .h_in = 9, .w_in = 8, .c_in = 19, .c_out = 21, .kt = 3};
    for (l.kh = l.kw = 1; l.kh <= 3; l.kh += 2, l.kw += 2) {
        l.op = (struct lk_conv2d){.stride = 1, .upsample = 1};
        make(&l, &seed);
        run(&l, 2);
        struct layer flat = l;
        const int64_t taps = l.kh * l.kw;
        flat.w = FILLED(LK_BF16, &seed, 4, l.c_out, l.c_in, l.kh, l.kw);
        for (int64_t i = 0; i < l.c_out * l.c_in * taps; i++)
            lk_cpu_set(&flat.w, i, lk_cpu_get(&l.w, (i / taps * 3 + 2) * taps + i % taps));
        flat.y.data = lk_malloc(lk_tensor_bytes(&l.y));
        run(&flat, 2);
        assert_memory_equal(l.y.data, flat.y.data, lk_tensor_bytes(&l.y));
        struct lk_cost cost = {0}, flat_cost = {0};
        assert_ok(lk_check_conv2d(&l.op, &cost));
        assert_ok(lk_check_conv2d(&flat.op, &flat_cost));
        assert_int_equal(cost.flops, flat_cost.flops);
        assert_int_equal(cost.bytes, flat_cost.bytes);
        struct lk_tensor six = LK_VIEW(&l.w, 1, l.c_out, l.c_in, 3, l.kh, l.kw);
        l.op.w = &six;
        assert_fails(lk_check_conv2d(&l.op, &cost), LK_E_INTERNAL, "has_dims(w, 5)");
        lk_free(flat.w.data);
        lk_free(flat.y.data);
        drop(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_float64), cmocka_unit_test(pixel_bits),
                                       cmocka_unit_test(last_tap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
