/* Weights in host memory: copied once, found by address, slices of a fused weight in one copy, dropped when their
 * memory is given back. */
#include "engine/ops.h"
#include "kernels/cuda/cuda.h"
#include "tests/common/cuda.h"

#define ROWS 6
#define K    32

static struct lk_device *cuda;
static float weight[ROWS * K];

static void fill(float factor) {
    for (int i = 0; i < ROWS * K; i++) weight[i] = factor * (float)(i % 7 - 3);
}

/* y = x wT with x = 1, through the rows [first, first + n) of the weight. */
static void expect_sums(int64_t first, int64_t n) {
    size_t mark = lk_arena_mark(&cuda->arena);
    struct lk_tensor x, y, w = LK_TENSOR(weight, LK_F32, ROWS, K), rows = lk_tensor_rows(&w, first, n);
    float ones[K], got[ROWS];
    for (int i = 0; i < K; i++) ones[i] = 1.0f;
    assert_ok(LK_NEW(&cuda->arena, &x, LK_F32, 1, K));
    assert_ok(LK_NEW(&cuda->arena, &y, LK_F32, 1, n));
    assert_ok(lk_upload(cuda, &x, ones));
    assert_ok(lk_linear(cuda, &(struct lk_linear){.y = &y, .x = &x, .w = &rows}));
    assert_ok(lk_download(cuda, got, &y));
    for (int64_t r = 0; r < n; r++) {
        float want = 0.0f;
        for (int i = 0; i < K; i++) want += weight[(first + r) * K + i];
        assert_float_equal(got[r], want, 1e-4);
    }
    lk_arena_release(&cuda->arena, mark);
}

static const struct lk_cuda_weights *weights(void) { return lk_cuda_device_of(cuda)->weights; }

static void plan_rows(int64_t first, int64_t n) {
    struct lk_device *plan;
    struct lk_tensor x, y, w = LK_TENSOR(weight, LK_F32, ROWS, K), rows = lk_tensor_rows(&w, first, n);
    assert_ok(lk_device_plan_create(cuda, &plan));
    assert_ok(LK_NEW(&plan->arena, &x, LK_F32, 1, K));
    assert_ok(LK_NEW(&plan->arena, &y, LK_F32, 1, n));
    assert_ok(lk_linear(plan, &(struct lk_linear){.y = &y, .x = &x, .w = &rows}));
    assert_ok(lk_device_plan_show(plan, cuda));
    lk_device_free(plan);
}

static void test_planned(void **state) {
    (void)state;
    lk_weights_released();
    fill(1.0f);
    plan_rows(0, 2);
    plan_rows(4, 2);
    plan_rows(0, 2);
    assert_int_equal(weights()->ranges.n, 2);
    plan_rows(1, 4); /* reaches into both */
    assert_int_equal(weights()->ranges.n, 1);
    assert_int_equal(weights()->n_blocks, 0);
    assert_ok(lk_device_prepare(cuda, 1 << 20));
    assert_int_equal(weights()->n_blocks, 1);
    assert_int_equal(weights()->ranges.entries[0].bytes, sizeof weight);
    int64_t calls = lk_cuda_calls();
    assert_ok(lk_device_prepare(cuda, 1 << 20)); /* nothing new */
    assert_true(lk_cuda_calls() - calls <= 2);
    expect_sums(0, ROWS);
    expect_sums(2, 3);
    assert_int_equal(weights()->n_blocks, 1);
}

static void test_unplanned(void **state) {
    (void)state;
    lk_weights_released();
    fill(2.0f);
    assert_ok(lk_device_prepare(cuda, 1 << 20));
    assert_int_equal(weights()->ranges.n, 0);
    expect_sums(1, 2);
    assert_int_equal(weights()->n_blocks, 1);
    expect_sums(1, 2);
    assert_int_equal(weights()->n_blocks, 1);
    expect_sums(0, ROWS); /* more than is there: copied again, with what it overlaps */
    assert_int_equal(weights()->ranges.n, 1);
    expect_sums(1, 2);
}

static void test_released(void **state) {
    (void)state;
    fill(3.0f);
    assert_ok(lk_device_prepare(cuda, 1 << 20));
    lk_weights_released();
    expect_sums(0, ROWS);
    fill(-1.0f); /* another model's weights, where the others lay */
    lk_weights_released();
    plan_rows(0, ROWS);
    assert_ok(lk_device_prepare(cuda, 1 << 20));
    expect_sums(0, ROWS);
}

static void test_output_on_host(void **state) {
    (void)state;
    float host[K];
    struct lk_tensor y = LK_TENSOR(host, LK_F32, 1, K), x = LK_TENSOR(weight, LK_F32, 1, K);
    assert_fails(lk_copy(cuda, &(struct lk_copy){.y = &y, .x = &x}), LK_E_INTERNAL, "not in the arena");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planned),
        cmocka_unit_test(test_unplanned),
        cmocka_unit_test(test_released),
        cmocka_unit_test(test_output_on_host),
    };
    cuda = test_cuda_open();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lk_device_free(cuda);
    return failed;
}
