#include "tests/common/oracle.h"

static void posterior_sample_case(struct oracle *o) {
    int64_t h = oracle_int(o, 1, 9), w = oracle_int(o, 1, 9), n = oracle_int(o, 1, oracle_int(o, 0, 9) ? 40 : 1100);
    struct lk_tensor *moments = TENSOR(o, o->dtype, false, FILL_NORMAL, h, w, 2 * n);
    struct lk_tensor *noise = TENSOR(o, o->dtype, false, FILL_NORMAL, h, w, n);
    struct lk_tensor *z = TENSOR(o, o->dtype, false, FILL_NONE, h, w, n);
    const double spread = (double[]){1.0, 12.0}[oracle_int(o, 0, 1)]; /* with 12 both clamps are met */
    for (int64_t i = 0; i < h * w * n; i++) {
        int64_t at = i / n * 2 * n + n + i % n;
        oracle_set(moments, at, spread * oracle_get(moments, at));
    }
    assert_ok(lk_posterior_sample(o->dev, &(struct lk_posterior_sample){z, moments, noise}));
    struct oracle_error error = {0};
    for (int64_t i = 0; i < h * w * n; i++) {
        int64_t at = i / n * 2 * n + i % n;
        double logvar = fmin(fmax(oracle_get(moments, at + n), -30.0), 20.0);
        double std = oracle_round(o->dtype, exp(oracle_round(o->dtype, 0.5 * logvar)));
        double step = oracle_round(o->dtype, std * oracle_get(noise, i));
        oracle_error_add(&error, oracle_get(z, i), oracle_round(o->dtype, oracle_get(moments, at) + step));
    }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, z);
    assert_ok(lk_posterior_sample(o->dev, &(struct lk_posterior_sample){noise, moments, noise}));
    oracle_same(noise, z);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(posterior_sample_case, 200);
}

static void test_wrong_calls(void **state) {
    (void)state;
    struct lk_cost cost = {0};
    struct lk_tensor z = LK_TENSOR(NULL, LK_BF16, 4, 6, 16), moments = LK_TENSOR(NULL, LK_BF16, 4, 6, 32);
    struct lk_tensor flat = LK_TENSOR(NULL, LK_BF16, 24, 1, 32), f32 = LK_TENSOR(NULL, LK_F32, 4, 6, 16);
    assert_ok(lk_check_posterior_sample(&(struct lk_posterior_sample){&z, &moments, &z}, &cost));
    assert_int_equal(cost.bytes, 2 * 4 * 24 * 16);
    assert_fails(lk_check_posterior_sample(&(struct lk_posterior_sample){&z, &z, &z}, &cost), LK_E_INTERNAL, "2 * z");
    assert_fails(lk_check_posterior_sample(&(struct lk_posterior_sample){&z, &flat, &z}, &cost), LK_E_INTERNAL,
                 "shape[0]");
    assert_fails(lk_check_posterior_sample(&(struct lk_posterior_sample){&z, &moments, &f32}, &cost), LK_E_INTERNAL,
                 "noise");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
