#include "tests/common/oracle.h"

static void response_norm_case(struct oracle *o) {
    const int64_t m = oracle_int(o, 1, 40), n = oracle_int(o, 1, oracle_int(o, 0, 9) ? 300 : 2500);
    const enum lk_dtype dtype = o->dtype == LK_F32 && oracle_int(o, 0, 1) ? LK_F32 : LK_BF16, t = o->dtype;
    struct lk_tensor *x = TENSOR(o, t, oracle_int(o, 0, 1), FILL_NORMAL, m, n), *from = oracle_clone(o, x);
    struct lk_tensor *gamma = TENSOR(o, dtype, false, FILL_NORMAL, n), *beta = TENSOR(o, dtype, false, FILL_NORMAL, n);
    struct lk_tensor *y = oracle_int(o, 0, 1) ? x : TENSOR(o, t, oracle_int(o, 0, 1), FILL_NONE, m, n);
    struct oracle_error error = {0};
    double norms[2500], mean = 0;
    assert_ok(lk_response_norm(o->dev, &(struct lk_response_norm){y, x, gamma, beta, 1e-6f}));
    for (int64_t c = 0; c < n; c++) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++) sum += oracle_square(oracle_get(from, i * n + c));
        norms[c] = oracle_round(t, sqrt(sum));
        mean += norms[c] / (double)n;
    }
    mean = oracle_round(t, oracle_round(t, mean) + 1e-6);
    for (int64_t i = 0; i < m; i++)
        for (int64_t c = 0; c < n; c++) {
            const double v = oracle_get(from, i * n + c),
                         scaled = oracle_round(t, v * oracle_round(t, norms[c] / mean));
            const double moved = oracle_round(t, oracle_round(t, oracle_get(gamma, c) * scaled) + oracle_get(beta, c));
            oracle_error_add(&error, oracle_get(y, i * n + c), oracle_round(t, moved + v));
        }
    oracle_error_check(&error, LK_F32 == t ? LK_F32 : LK_BF16);
    oracle_record(o, y);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(response_norm_case, 200);
}

static void test_wrong_calls(void **state) {
    (void)state;
    struct lk_cost cost = {0};
    struct lk_tensor x = LK_TENSOR(NULL, LK_BF16, 4, 32), v = LK_TENSOR(NULL, LK_BF16, 1, 1, 1, 32);
    struct lk_tensor f32 = LK_TENSOR(NULL, LK_F32, 32), few = LK_TENSOR(NULL, LK_BF16, 31);
    assert_ok(lk_check_response_norm(&(struct lk_response_norm){&x, &x, &v, &v, 1e-6f}, &cost));
    assert_int_equal(cost.bytes, 2 * (3 * 4 * 32 + 2 * 32));
    assert_fails(lk_check_response_norm(&(struct lk_response_norm){&x, &x, &few, &v, 1e-6f}, &cost), LK_E_INTERNAL,
                 "numel(op->gamma)");
    assert_fails(lk_check_response_norm(&(struct lk_response_norm){&x, &x, &v, &f32, 1e-6f}, &cost), LK_E_INTERNAL,
                 "dtype");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
