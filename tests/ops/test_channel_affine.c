#include "tests/common/oracle.h"

static void channel_affine_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 60), n = oracle_int(o, 1, 150);
    if (!oracle_int(o, 0, 20)) n = 1500;
    bool window = oracle_int(o, 0, 1), normalize = oracle_int(o, 0, 1), inverse_std = oracle_int(o, 0, 1);
    enum lk_dtype dtype = oracle_int(o, 0, 1) ? LK_F32 : o->dtype;
    struct lk_tensor *x = TENSOR(o, o->dtype, window, FILL_NORMAL, rows, n);
    struct lk_tensor *y = TENSOR(o, o->dtype, window, FILL_NONE, rows, n);
    struct lk_tensor *mean = TENSOR(o, dtype, false, FILL_NORMAL, n);
    struct lk_tensor *std = TENSOR(o, dtype, false, FILL_OFFSET, n);
    assert_ok(lk_channel_affine(o->dev, &(struct lk_channel_affine){y, x, mean, std, normalize, inverse_std}));
    for (int64_t i = 0; i < rows * n; i++) {
        float v = (float)oracle_get(x, i), s = (float)oracle_get(std, i % n);
        float m = (float)oracle_round(o->dtype, oracle_get(mean, i % n));
        if (normalize) v = (float)oracle_round(o->dtype, v - m);
        v = normalize == inverse_std ? v * s : v / s;
        if (!normalize) v = (float)oracle_round(o->dtype, v) + m;
        oracle_exact(oracle_get(y, i), oracle_round(o->dtype, v));
    }
    oracle_record(o, y);
    assert_ok(lk_channel_affine(o->dev, &(struct lk_channel_affine){x, x, mean, std, normalize, inverse_std}));
    oracle_same(x, y);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(channel_affine_case, 200);
}

static void test_wrong_calls(void **state) {
    (void)state;
    struct lk_cost cost = {0};
    struct lk_tensor x = LK_TENSOR(NULL, LK_BF16, 4, 16), f32 = LK_TENSOR(NULL, LK_F32, 16);
    struct lk_tensor bf16 = LK_TENSOR(NULL, LK_BF16, 16), x_f32 = LK_TENSOR(NULL, LK_F32, 4, 16);
    assert_ok(lk_check_channel_affine(&(struct lk_channel_affine){&x, &x, &f32, &f32, true, true}, &cost));
    assert_fails(lk_check_channel_affine(&(struct lk_channel_affine){&x, &x, &f32, &bf16, true, true}, &cost),
                 LK_E_INTERNAL, "std");
    assert_fails(lk_check_channel_affine(&(struct lk_channel_affine){&x_f32, &x_f32, &bf16, &bf16, true, true}, &cost),
                 LK_E_INTERNAL, "mean");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
