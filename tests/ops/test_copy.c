#include "tests/common/oracle.h"

static void copy_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 20), n = oracle_int(o, 1, oracle_int(o, 0, 3) ? 300 : 2200);
    enum lk_dtype to = oracle_int(o, 0, 1) ? LK_F32 : LK_BF16;
    struct lk_tensor *x = TENSOR(o, o->dtype, oracle_int(o, 0, 1), FILL_EXTREME, rows, n);
    struct lk_tensor *y = TENSOR(o, to, oracle_int(o, 0, 1), FILL_NONE, rows, n);
    const double special[] = {INFINITY, -INFINITY, NAN, -0.0, 1.00390625, 1.01171875, 3.4e38, 1e-41};
    for (int64_t i = 0; i < 8 && i < n; i++) oracle_set(x, i, special[i]);
    assert_ok(lk_copy(o->dev, &(struct lk_copy){y, x}));
    for (int64_t i = 0; i < rows * n; i++) {
        oracle_exact(oracle_get(y, i), oracle_round(to, oracle_get(x, i)));
        assert_true(signbit(oracle_get(y, i)) == signbit(oracle_get(x, i)));
    }
    oracle_record(o, y);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(copy_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
