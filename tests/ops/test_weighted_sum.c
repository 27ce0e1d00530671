#include "tests/common/oracle.h"

static void weighted_sum_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 24), n = oracle_int(o, 1, oracle_int(o, 0, 3) ? 300 : 2200);
    int64_t n_terms = oracle_int(o, 1, LK_SUM_TERMS);
    struct lk_weighted_sum op = {.y = TENSOR(o, o->dtype, false, FILL_NONE, rows, n)};
    for (int k = 0; k < n_terms; k++) {
        op.x[k] = TENSOR(o, o->dtype, false, FILL_NORMAL, rows, n);
        op.scale[k] = (float)((double)oracle_int(o, -3000, 3000) / 997.0);
    }
    assert_ok(lk_weighted_sum(o->dev, &op));
    for (int64_t i = 0; i < rows * n; i++) {
        float sum = op.scale[0] * (float)oracle_get(op.x[0], i);
        for (int k = 1; k < n_terms; k++) sum = sum + op.scale[k] * (float)oracle_get(op.x[k], i);
        oracle_exact(oracle_get(op.y, i), oracle_round(o->dtype, sum));
    }
    oracle_record(o, op.y);
    const int64_t at = oracle_int(o, 0, n_terms - 1);
    struct lk_weighted_sum in_place = op;
    in_place.y = in_place.x[at] = oracle_clone(o, op.x[at]);
    assert_ok(lk_weighted_sum(o->dev, &in_place));
    oracle_same(in_place.y, op.y);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(weighted_sum_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
