#include "tests/common/oracle.h"

static void mean_rows_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, oracle_int(o, 0, 3) ? 40 : 700), n = oracle_int(o, 1, rows > 40 ? 60 : 1200);
    enum oracle_fill fill = oracle_int(o, 0, 1) ? FILL_NORMAL : FILL_OFFSET;
    struct lk_tensor *x = TENSOR(o, o->dtype, oracle_int(o, 0, 1), fill, rows, n);
    struct lk_tensor *y = TENSOR(o, o->dtype, false, FILL_NONE, 1, n);
    assert_ok(lk_mean_rows(o->dev, &(struct lk_mean_rows){y, x}));
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (int64_t r = 0; r < rows; r++) sum += oracle_get(x, r * n + i);
        double want = oracle_round(o->dtype, (float)oracle_round(o->dtype, sum) / (float)rows);
        oracle_exact(oracle_get(y, i), want);
    }
    oracle_record(o, y);
    struct lk_tensor columns = lk_tensor_cols(x, n / 2, n - n / 2), want = lk_tensor_cols(y, n / 2, n - n / 2);
    struct lk_tensor *part = TENSOR(o, o->dtype, false, FILL_NONE, 1, n - n / 2);
    assert_ok(lk_mean_rows(o->dev, &(struct lk_mean_rows){part, &columns}));
    oracle_same(part, &want);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(mean_rows_case, 200);
}

static void test_wrong_calls(void **state) {
    (void)state;
    struct lk_cost cost = {0};
    struct lk_tensor x = LK_TENSOR(NULL, LK_BF16, 4, 32), y = LK_TENSOR(NULL, LK_BF16, 1, 32);
    struct lk_tensor vector = LK_TENSOR(NULL, LK_BF16, 32), f32 = LK_TENSOR(NULL, LK_F32, 1, 32);
    assert_ok(lk_check_mean_rows(&(struct lk_mean_rows){&y, &x}, &cost));
    assert_int_equal(cost.bytes, 2 * (4 * 32 + 32));
    assert_fails(lk_check_mean_rows(&(struct lk_mean_rows){&vector, &x}, &cost), LK_E_INTERNAL, "has_dims(op->y, 2)");
    assert_fails(lk_check_mean_rows(&(struct lk_mean_rows){&x, &x}, &cost), LK_E_INTERNAL, "shape[0] == 1");
    assert_fails(lk_check_mean_rows(&(struct lk_mean_rows){&f32, &x}, &cost), LK_E_INTERNAL, "dtype");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
