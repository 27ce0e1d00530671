/* Arithmetic that kernels shorten for bf16 because the rounded result is the same: activations for every value, the
 * division of l2_norm for rows at the ends of the range, where it must not be shortened. */
#include <math.h>
#include <stdlib.h>

#include "engine/bf16.h"
#include "engine/ops.h"
#include "tests/common/cuda.h"

#define VALUES 65536
#define ROWS   64
#define N      96

static struct lk_device *cuda, *cpu;

static bool same(uint16_t a, uint16_t b) { return a == b || (isnan(lk_bf16_to_f32(a)) && isnan(lk_bf16_to_f32(b))); }

static void expect_same(const uint16_t *want, const uint16_t *got, const uint16_t *x, int n) {
    for (int i = 0; i < n; i++)
        if (!same(want[i], got[i]))
            fail_msg("%d: of %a: expected %a, got %a", i, (double)lk_bf16_to_f32(x[i]), (double)lk_bf16_to_f32(want[i]),
                     (double)lk_bf16_to_f32(got[i]));
}

/* In the order of their bits, so that a thread's values are alike; then mixed, so that it has some of either path. */
static void test_activations(void **state) {
    (void)state;
    static uint16_t x[2 * VALUES], want[2 * VALUES], got[2 * VALUES];
    for (int i = 0; i < VALUES; i++) x[i] = (uint16_t)i, x[VALUES + i] = (uint16_t)((uint32_t)i * 40503u);
    for (int kind = LK_ACT_NONE + 1; kind <= LK_ACT_QUICK_GELU; kind++) {
        size_t mark = lk_arena_mark(&cuda->arena);
        struct lk_tensor a, b, host_x = LK_TENSOR(x, LK_BF16, 2 * VALUES),
                               host_y = LK_TENSOR(want, LK_BF16, 2 * VALUES);
        assert_ok(LK_NEW(&cuda->arena, &a, LK_BF16, 2 * VALUES));
        assert_ok(LK_NEW(&cuda->arena, &b, LK_BF16, 2 * VALUES));
        assert_ok(lk_upload(cuda, &a, x));
        assert_ok(lk_activation(cuda, &(struct lk_activation){&b, &a, kind}));
        assert_ok(lk_download(cuda, got, &b));
        assert_ok(lk_activation(cpu, &(struct lk_activation){&host_y, &host_x, kind}));
        expect_same(want, got, x, 2 * VALUES);
        lk_arena_release(&cuda->arena, mark);
    }
}

/* Rows of one size each, from the least numbers to the greatest; some of zeros, some with a few small or special ones.
 */
static float row_value(int row, int i) {
    const float v = (float)(i * 37 % 101 - 50) / 32.0f;
    if (row == 0) return i % 2 ? 0.0f : -0.0f;
    if (row == 1 && i == 5) return INFINITY;
    if (row == 2 && i == 5) return NAN;
    if (row == 3) return i == 5 ? 3e38f : v;
    if (row == 4) return i == 5 ? 1e-39f : i == 6 ? -0.0f : v;
    return ldexpf(v, (row - 5) * 5 - 148);
}

/* Weights that make results of all sizes; the special ones also where a thread has common ones. */
static float weight_value(int i) {
    if (i % 24 < 20) return (float)(i % 5 + 1) / 4.0f;
    if (i < 24) return 100.0f; /* results beyond what the short SiLU takes */
    if (i < 48) return i == 44 ? 0.0f : i == 45 ? 1e-39f : i == 46 ? -0.0f : -3e-38f; /* x[44] < 0 < x[46] */
    if (i < 72) return i == 68 ? INFINITY : i == 69 ? -3e38f : -1e30f;
    return i == 92 ? NAN : -0.001f;
}

/* Rows of n elements: 96 are three vectors of each thread, 80 are not. */
static void check_l2_norm(int n, enum lk_act act, bool all_weights) {
    static uint16_t x[ROWS * N], w[N], want[ROWS * N], got[ROWS * N];
    size_t mark = lk_arena_mark(&cuda->arena);
    for (int i = 0; i < ROWS * n; i++) x[i] = lk_f32_to_bf16(row_value(i / n, i % n));
    for (int i = 0; i < n; i++) w[i] = lk_f32_to_bf16(all_weights ? weight_value(i) : (float)(i % 5 + 1) / 4.0f);
    struct lk_tensor a, b, d, host_x = LK_TENSOR(x, LK_BF16, ROWS, n), host_y = LK_TENSOR(want, LK_BF16, ROWS, n);
    struct lk_tensor host_w = LK_TENSOR(w, LK_BF16, n);
    assert_ok(LK_NEW(&cuda->arena, &a, LK_BF16, ROWS, n));
    assert_ok(LK_NEW(&cuda->arena, &b, LK_BF16, ROWS, n));
    assert_ok(LK_NEW(&cuda->arena, &d, LK_BF16, n));
    assert_ok(lk_upload(cuda, &a, x));
    assert_ok(lk_upload(cuda, &d, w));
    assert_ok(lk_l2_norm(cuda, &(struct lk_l2_norm){&b, &a, &d, act}));
    assert_ok(lk_download(cuda, got, &b));
    assert_ok(lk_l2_norm(cpu, &(struct lk_l2_norm){&host_y, &host_x, &host_w, act}));
    expect_same(want, got, x, ROWS * n);
    lk_arena_release(&cuda->arena, mark);
}

static void test_l2_norm(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) check_l2_norm(i & 1 ? 80 : N, i & 2 ? LK_ACT_SILU : LK_ACT_NONE, i & 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_activations), cmocka_unit_test(test_l2_norm)};
    cuda = test_cuda_open();
    if (lk_device_cpu_create(1, &cpu) || lk_device_prepare(cuda, (size_t)4 << 20)) return 1;
    int failed = cmocka_run_group_tests_name("short_forms", tests, NULL, NULL);
    lk_device_free(cuda);
    lk_device_free(cpu);
    return failed;
}
