/* Quantised weights on the cuda device: a linear layer has the bits of the same layer with the bf16 weight that its
 * quantised one stands for; the identity shows every element of it. */
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/ops.h"
#include "engine/quantized.h"
#include "tests/common/cuda.h"

static struct lk_device *cuda;

/* A matrix of random codes with sane scales. */
struct matrix {
    struct lk_tensor t;
    unsigned char *codes;
    void *scales;
    uint16_t *plain;
};

static struct matrix make(uint64_t *seed, enum lk_dtype dtype, int64_t rows, int64_t columns, int block, bool f32) {
    struct matrix m = {.t = LK_TENSOR(NULL, dtype, rows, columns)};
    const int64_t n = rows * columns, n_scales = block ? (n + block - 1) / block : 1;
    const size_t bytes = lk_tensor_bytes(&m.t), size = lk_dtype_size(dtype);
    m.codes = lk_malloc(bytes);
    m.scales = lk_malloc((size_t)n_scales * 4);
    m.plain = lk_malloc((size_t)n * sizeof *m.plain);
    assert_true(m.codes && m.scales && m.plain);
    for (size_t i = 0; i < bytes; i++) {
        m.codes[i] = (unsigned char)(dtype <= LK_F8_E5M2 ? i : test_random(seed));
        if (dtype == LK_F8_E4M3 && (m.codes[i] & 127) == 127) m.codes[i] = 1; /* NaN */
        if (dtype == LK_F8_E5M2 && (m.codes[i] & 127) >= 124) m.codes[i] = 1;
    }
    for (size_t i = 0; dtype >= LK_Q8_0 && i < bytes; i += size)
        for (size_t at = dtype == LK_Q6_K ? 209 : 1; at < 4 || at == 209; at += 2)
            m.codes[i + at] = (unsigned char)((m.codes[i + at] & 0x83) | 0x2c);
    for (int64_t i = 0; i < n_scales; i++) {
        const float scale = (float)(0.01 + 0.01 * test_uniform(seed));
        if (f32)
            ((float *)m.scales)[i] = scale;
        else
            ((uint16_t *)m.scales)[i] = lk_f32_to_bf16(scale);
    }
    m.t.data = m.codes;
    if (dtype < LK_Q8_0) m.t.scales = (struct lk_scales){m.scales, f32 ? LK_F32 : LK_BF16, block};
    lk_dequantize(&m.t, 0, n, m.plain);
    return m;
}

static void drop(struct matrix *m) {
    lk_weights_released();
    lk_free(m->codes);
    lk_free(m->scales);
    lk_free(m->plain);
}

/* y [m, n] of x and a weight, with bias, gate and residual for `parts`. */
static uint16_t *run(const struct lk_tensor *w, const uint16_t *host_x, int64_t m, bool parts) {
    const int64_t n = w->shape[0], k = w->shape[1];
    size_t mark = lk_arena_mark(&cuda->arena);
    struct lk_tensor x, y, gate;
    assert_ok(LK_NEW(&cuda->arena, &x, LK_BF16, m, k));
    assert_ok(LK_NEW(&cuda->arena, &y, LK_BF16, m, n));
    assert_ok(LK_NEW(&cuda->arena, &gate, LK_BF16, n));
    assert_ok(lk_upload(cuda, &x, host_x));
    assert_ok(lk_upload(cuda, &y, host_x)); /* at least as long */
    assert_ok(lk_upload(cuda, &gate, host_x));
    struct lk_linear op = {.y = &y, .x = &x, .w = w};
    if (parts) {
        op.bias = op.gate = &gate;
        op.residual = &y;
    }
    assert_ok(lk_linear(cuda, &op));
    uint16_t *out = lk_malloc((size_t)(m * n) * sizeof *out);
    assert_ok(lk_download(cuda, out, &y));
    lk_arena_release(&cuda->arena, mark);
    return out;
}

static void every_format(void **state) {
    (void)state;
    static const int64_t ms[] = {1, 17, 70};
    uint64_t seed = 1;
    static uint16_t x[70 * 512];
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = lk_f32_to_bf16((float)test_normal(&seed));
    for (int d = LK_FIRST_QUANTIZED; d < LK_DTYPE_COUNT; d++)
        for (int i = 0; i < 3; i++) {
            struct matrix w = make(&seed, (enum lk_dtype)d, 100, d >= LK_Q4_K ? 512 : 96, i == 1 ? 32 : 64, i == 2);
            if (d <= LK_F8_E5M2) w.t.scales.block = 0;
            lk_dequantize(&w.t, 0, lk_tensor_numel(&w.t), w.plain);
            const struct lk_tensor part = lk_tensor_rows(&w.t, i ? 2 : 0, 98), *use = i ? &part : &w.t;
            const struct lk_tensor plain =
                LK_TENSOR(w.plain + (i ? 2 * w.t.shape[1] : 0), LK_BF16, use->shape[0], use->shape[1]);
            uint16_t *got = run(use, x, ms[i], i == 1), *want = run(&plain, x, ms[i], i == 1);
            if (memcmp(got, want, (size_t)(ms[i] * use->shape[0]) * sizeof *got))
                fail_msg("%s, M %d", lk_dtype_name((enum lk_dtype)d), (int)ms[i]);
            lk_free(got);
            lk_free(want);
            drop(&w);
        }
}

/* x = 1: y is the weight's transpose. Rows that are no whole blocks, an odd number of elements. */
static void every_element(void **state) {
    (void)state;
    static const int64_t columns[] = {57, 60};
    uint64_t seed = 2;
    for (int d = LK_FIRST_QUANTIZED; d <= LK_Q8; d++)
        for (int i = 0; i < 2; i++) {
            const int64_t n = 35, k = columns[i];
            struct matrix w = make(&seed, (enum lk_dtype)d, n, k, 64, i);
            uint16_t one[60 * 60] = {0};
            for (int64_t j = 0; j < k; j++) one[j * k + j] = 0x3f80;
            uint16_t *y = run(&w.t, one, k, false);
            for (int64_t r = 0; r < n; r++)
                for (int64_t c = 0; c < k; c++)
                    if (y[c * n + r] != w.plain[r * k + c] && (y[c * n + r] | w.plain[r * k + c]) != 0x8000)
                        fail_msg("%s: element %d, %d: %04x, expected %04x", lk_dtype_name((enum lk_dtype)d), (int)r,
                                 (int)c, y[c * n + r], w.plain[r * k + c]);
            lk_free(y);
            drop(&w);
        }
}

/* What plan says of memory is what the device takes: packed bytes, scales and the scratch of two matrices. */
static void planned_bytes(void **state) {
    (void)state;
    uint64_t seed = 3;
    struct matrix w = make(&seed, LK_NF4, 128, 256, 64, false);
    struct lk_device *plan;
    assert_ok(lk_device_plan_create(cuda, &plan));
    struct lk_tensor x, y;
    assert_ok(LK_NEW(&plan->arena, &x, LK_BF16, 4, 256));
    assert_ok(LK_NEW(&plan->arena, &y, LK_BF16, 4, 128));
    assert_ok(lk_linear(plan, &(struct lk_linear){.y = &y, .x = &x, .w = &w.t}));
    assert_true(plan->arena.peak >= plan->arena.used + 2 * 2 * 128 * 256);
    assert_true(plan->arena.peak < plan->arena.used + 2 * 2 * 128 * 256 + 4096);
    const uint64_t with = lk_device_plan_footprint(plan, 1 << 20);
    lk_device_free(plan);
    assert_ok(lk_device_plan_create(cuda, &plan));
    const uint64_t without = lk_device_plan_footprint(plan, 1 << 20), bytes = with - without;
    lk_device_free(plan);
    assert_true(bytes >= 128 * 256 / 2 + 128 * 256 / 64 * 2);
    assert_true(bytes < 2 * 128 * 256 || bytes == cuda->memory_grain);
    drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_format), cmocka_unit_test(every_element),
                                       cmocka_unit_test(planned_bytes)};
    cuda = test_cuda_open();
    assert_ok(lk_device_prepare(cuda, 8 << 20));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lk_device_free(cuda);
    return failed;
}
