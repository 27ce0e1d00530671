#include "tests/common/oracle.h"

static void activation_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 20), n = oracle_int(o, 1, oracle_int(o, 0, 3) ? 300 : 2200);
    bool window = oracle_int(o, 0, 1);
    enum lk_act act = (enum lk_act)oracle_int(o, LK_ACT_NONE, LK_ACT_QUICK_GELU);
    struct lk_tensor *x = TENSOR(o, o->dtype, window, FILL_NORMAL, rows, n);
    double spread = (double[]){1.0, 8.0, 100.0, 1e-3}[oracle_int(o, 0, 3)];
    for (int64_t i = 0; i < rows * n; i++) oracle_set(x, i, spread * oracle_get(x, i));
    if (n > 4) { /* both ends: no NaN out of finite numbers */
        oracle_set(x, 0, 1e6), oracle_set(x, 1, -1e6), oracle_set(x, 2, -88.9), oracle_set(x, 3, 0.0);
        oracle_set(x, 4, -104.2);
    }
    struct lk_tensor *y = TENSOR(o, o->dtype, window, FILL_NONE, rows, n);
    assert_ok(lk_activation(o->dev, &(struct lk_activation){y, x, act}));
    /* Relative to the largest of |x| and the true value: GELU's tails are differences of nearly equal numbers. */
    for (int64_t i = 0; i < rows * n; i++) {
        double got = oracle_get(y, i), want = oracle_act(act, oracle_get(x, i));
        double bar = (o->dtype == LK_BF16 ? 0.00391 : 0.0) * fabs(want) + 4e-7 * fabs(oracle_get(x, i)) + 1e-40;
        if (!(fabs(got - want) <= bar))
            fail_msg("act %d of %.9g: expected %.9g, got %.9g", act, oracle_get(x, i), want, got);
    }
    oracle_record(o, y);
    assert_ok(lk_activation(o->dev, &(struct lk_activation){x, x, act}));
    oracle_same(x, y);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(activation_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
