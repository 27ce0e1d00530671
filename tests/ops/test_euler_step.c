#include "tests/common/oracle.h"

static void euler_step_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 40), n = oracle_int(o, 1, 200);
    float dt = -(float)test_uniform(&o->random);
    struct lk_tensor *x = TENSOR(o, o->dtype, false, FILL_NORMAL, rows, n);
    struct lk_tensor *v = TENSOR(o, o->dtype, false, oracle_int(o, 0, 4) ? FILL_NORMAL : FILL_EXTREME, rows, n);
    struct lk_tensor *before = oracle_clone(o, x);
    assert_ok(lk_euler_step(o->dev, &(struct lk_euler_step){x, v, dt}));
    float rounded_dt = (float)oracle_round(o->dtype, dt);
    struct oracle_error error = {0};
    for (int64_t i = 0; i < rows * n; i++) {
        float step = (float)oracle_round(o->dtype, rounded_dt * (float)oracle_get(v, i));
        oracle_exact(oracle_get(x, i), oracle_round(o->dtype, (float)oracle_get(before, i) + step));
        oracle_error_add(&error, oracle_get(x, i),
                         oracle_get(before, i) + oracle_round(o->dtype, (double)rounded_dt * oracle_get(v, i)));
    }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, x);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(euler_step_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
