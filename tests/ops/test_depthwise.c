#include "tests/common/oracle.h"

static void depthwise_case(struct oracle *o) {
    const int64_t h = oracle_int(o, 1, 7), w = oracle_int(o, 1, 7),
                  n = oracle_int(o, 1, oracle_int(o, 0, 9) ? 70 : 1300);
    const enum lk_dtype dtype = o->dtype == LK_F32 && oracle_int(o, 0, 1) ? LK_F32 : LK_BF16;
    const bool replicate = oracle_int(o, 0, 1);
    struct lk_tensor *x = TENSOR(o, o->dtype, false, FILL_NORMAL, h, w, n),
                     *y = TENSOR(o, o->dtype, false, FILL_NONE, h, w, n);
    struct lk_tensor *filters = TENSOR(o, dtype, false, FILL_NORMAL, n, 1, 3, 3),
                     *bias = TENSOR(o, dtype, false, FILL_NORMAL, n);
    struct oracle_error error = {0};
    assert_ok(lk_depthwise(o->dev, &(struct lk_depthwise){y, x, filters, bias, replicate}));
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++)
            for (int64_t c = 0; c < n; c++) {
                double sum = oracle_get(bias, c);
                for (int64_t tap = 0; tap < 9; tap++) {
                    int64_t at_y = i + tap / 3 - 1, at_x = j + tap % 3 - 1;
                    const bool outside = at_y < 0 || at_x < 0 || at_y >= h || at_x >= w;
                    if (outside && !replicate) continue;
                    at_y = at_y < 0 ? 0 : at_y >= h ? h - 1 : at_y;
                    at_x = at_x < 0 ? 0 : at_x >= w ? w - 1 : at_x;
                    sum += oracle_get(x, (at_y * w + at_x) * n + c) * oracle_get(filters, c * 9 + tap);
                }
                oracle_error_add(&error, oracle_get(y, (i * w + j) * n + c), sum);
            }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, y);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(depthwise_case, 200);
}

static void test_wrong_calls(void **state) {
    (void)state;
    struct lk_cost cost = {0};
    char data[8];
    struct lk_tensor x = LK_TENSOR(data, LK_BF16, 4, 5, 32), y = LK_TENSOR(NULL, LK_BF16, 4, 5, 32);
    struct lk_tensor w = LK_TENSOR(NULL, LK_BF16, 32, 1, 3, 3), bias = LK_TENSOR(NULL, LK_BF16, 32);
    struct lk_tensor full = LK_TENSOR(NULL, LK_BF16, 32, 32, 3, 3), f32 = LK_TENSOR(NULL, LK_F32, 32);
    assert_ok(lk_check_depthwise(&(struct lk_depthwise){&y, &x, &w, &bias, true}, &cost));
    assert_int_equal(cost.bytes, 2 * (2 * 4 * 5 * 32 + 32 * 9 + 32));
    assert_fails(lk_check_depthwise(&(struct lk_depthwise){&x, &x, &w, &bias, true}, &cost), LK_E_INTERNAL, "data");
    assert_fails(lk_check_depthwise(&(struct lk_depthwise){&y, &x, &full, &bias, true}, &cost), LK_E_INTERNAL,
                 "shape[1] == 1");
    assert_fails(lk_check_depthwise(&(struct lk_depthwise){&y, &x, &w, &f32, true}, &cost), LK_E_INTERNAL, "bias");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
