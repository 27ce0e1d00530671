#include "tests/common/oracle.h"

static double length(const struct lk_tensor *x, int64_t first, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += oracle_square(oracle_get(x, first + i));
    return fmax(sqrt(sum), 1e-12);
}

static void l2_norm_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 40), inner = oracle_int(o, 1, 4), n = oracle_int(o, 1, inner > 1 ? 200 : 1500);
    enum oracle_fill fill = (enum oracle_fill)oracle_int(o, FILL_NORMAL, FILL_SMALL);
    bool window = oracle_int(o, 0, 1);
    struct lk_tensor *x = TENSOR(o, o->dtype, window, fill, rows, inner, n);
    struct lk_tensor *y = TENSOR(o, o->dtype, window, FILL_NONE, rows, inner, n);
    struct lk_tensor *w = TENSOR(o, oracle_int(o, 0, 1) ? LK_BF16 : o->dtype, false, FILL_NORMAL, n, 1, 1, 1);
    if (oracle_int(o, 0, 1)) *w = LK_VIEW(w, n);
    if (!oracle_int(o, 0, 3)) /* a row of zeros stays zeros */
        for (int64_t i = 0; i < n; i++) oracle_set(x, i, 0.0);
    struct lk_l2_norm op = {y, x, w, oracle_int(o, 0, 1) ? LK_ACT_SILU : LK_ACT_NONE};
    assert_ok(lk_l2_norm(o->dev, &op));
    struct oracle_error error = {0};
    for (int64_t r = 0; r < rows * inner; r++) {
        double norm = length(x, r * n, n);
        for (int64_t i = 0; i < n; i++) {
            double v = oracle_round(o->dtype, oracle_get(x, r * n + i) / norm);
            v = oracle_round(o->dtype, oracle_round(o->dtype, v * sqrt((double)n)) * oracle_get(w, i));
            oracle_error_add(&error, oracle_get(y, r * n + i), oracle_round(o->dtype, oracle_act(op.act, v)));
        }
    }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, y);
    int64_t first = oracle_int(o, 0, rows - 1);
    struct lk_tensor part = lk_tensor_rows(x, first, 1), want = lk_tensor_rows(y, first, 1);
    op.x = op.y = &part;
    assert_ok(lk_l2_norm(o->dev, &op));
    oracle_same(&part, &want);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(l2_norm_case, 200);
}

static void test_wrong_calls(void **state) {
    (void)state;
    struct lk_cost cost = {0};
    struct lk_tensor x = LK_TENSOR(NULL, LK_BF16, 4, 5, 32), w = LK_TENSOR(NULL, LK_BF16, 32, 1, 1);
    struct lk_tensor short_w = LK_TENSOR(NULL, LK_BF16, 31), f32_w = LK_TENSOR(NULL, LK_F32, 32);
    struct lk_tensor y = LK_TENSOR(NULL, LK_BF16, 4, 4, 32);
    assert_ok(lk_check_l2_norm(&(struct lk_l2_norm){.y = &x, .x = &x, .w = &w}, &cost));
    assert_int_equal(cost.bytes, 2 * (2 * 4 * 5 * 32 + 32));
    assert_fails(lk_check_l2_norm(&(struct lk_l2_norm){.y = &x, .x = &x}, &cost), LK_E_INTERNAL, "op->w");
    assert_fails(lk_check_l2_norm(&(struct lk_l2_norm){.y = &x, .x = &x, .w = &short_w}, &cost), LK_E_INTERNAL, "w");
    assert_fails(lk_check_l2_norm(&(struct lk_l2_norm){.y = &x, .x = &x, .w = &f32_w}, &cost), LK_E_INTERNAL, "w");
    assert_fails(lk_check_l2_norm(&(struct lk_l2_norm){.y = &y, .x = &x, .w = &w}, &cost), LK_E_INTERNAL, "alike");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
