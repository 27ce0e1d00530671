#include "tests/common/oracle.h"

static void distance_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 60), n = oracle_int(o, 1, oracle_int(o, 0, 3) ? 300 : 3000);
    struct lk_tensor *a = TENSOR(o, o->dtype, oracle_int(o, 0, 1), FILL_NORMAL, rows, n);
    struct lk_tensor *b = TENSOR(o, o->dtype, oracle_int(o, 0, 1), FILL_OFFSET, rows, n);
    struct lk_tensor *y = TENSOR(o, LK_F32, false, FILL_NONE, rows, 2);
    assert_ok(lk_distance(o->dev, &(struct lk_distance){y, a, b}));
    struct oracle_error error = {0};
    for (int64_t r = 0; r < rows; r++) {
        double apart = 0, size = 0;
        for (int64_t i = r * n; i < (r + 1) * n; i++) {
            apart += fabs(oracle_round(o->dtype, (float)oracle_get(a, i) - (float)oracle_get(b, i)));
            size += fabs(oracle_get(b, i));
        }
        oracle_error_add(&error, oracle_get(y, 2 * r), apart);
        oracle_error_add(&error, oracle_get(y, 2 * r + 1), size);
        if (o->dtype == LK_BF16) oracle_exact(oracle_get(y, 2 * r), (float)apart); /* any order gives this sum */
        if (o->dtype == LK_BF16) oracle_exact(oracle_get(y, 2 * r + 1), (float)size);
    }
    oracle_error_check(&error, LK_F32);
    oracle_record(o, y);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(distance_case, 200);
}

static void test_wrong_calls(void **state) {
    (void)state;
    struct lk_cost cost = {0};
    struct lk_tensor x = LK_TENSOR(NULL, LK_BF16, 4, 32), y = LK_TENSOR(NULL, LK_F32, 4, 2);
    struct lk_tensor other = LK_TENSOR(NULL, LK_BF16, 4, 33);
    assert_ok(lk_check_distance(&(struct lk_distance){&y, &x, &x}, &cost));
    assert_int_equal(cost.bytes, 2 * 4 * 32 * 2 + 4 * 2 * 4);
    assert_fails(lk_check_distance(&(struct lk_distance){&y, &x, &other}, &cost), LK_E_INTERNAL, "alike");
    assert_fails(lk_check_distance(&(struct lk_distance){&x, &x, &x}, &cost), LK_E_INTERNAL, "LK_F32");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
