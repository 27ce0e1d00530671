#include "tests/common/oracle.h"

static void nonfinite_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 30), n = oracle_int(o, 1, oracle_int(o, 0, 3) ? 300 : 3000);
    struct lk_tensor *x = TENSOR(o, o->dtype, oracle_int(o, 0, 1), FILL_EXTREME, rows, n);
    int64_t planted = oracle_int(o, 0, 3) * oracle_int(o, 0, 40), want = 0, count = 7;
    for (int64_t i = 0; i < planted; i++)
        oracle_set(x, oracle_int(o, 0, rows * n - 1), (double[]){NAN, INFINITY, -INFINITY}[i % 3]);
    for (int64_t i = 0; i < rows * n; i++) want += !isfinite(oracle_get(x, i));
    assert_ok(lk_nonfinite(o->dev, &(struct lk_nonfinite){x, &count}));
    assert_int_equal(count, want + 7);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(nonfinite_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
