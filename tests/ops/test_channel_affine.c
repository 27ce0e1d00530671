#include "tests/common/oracle.h"

static void channel_affine_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 60), n = oracle_int(o, 1, 150);
    if (!oracle_int(o, 0, 20)) n = 1500;
    bool window = oracle_int(o, 0, 1), normalize = oracle_int(o, 0, 1);
    struct lk_tensor *x = TENSOR(o, o->dtype, window, FILL_NORMAL, rows, n);
    struct lk_tensor *y = TENSOR(o, o->dtype, window, FILL_NONE, rows, n);
    struct lk_tensor *mean = TENSOR(o, o->dtype, false, FILL_NORMAL, n);
    struct lk_tensor *std = TENSOR(o, o->dtype, false, FILL_OFFSET, n);
    assert_ok(lk_channel_affine(o->dev, &(struct lk_channel_affine){y, x, mean, std, normalize, false}));
    for (int64_t i = 0; i < rows * n; i++) {
        float v = (float)oracle_get(x, i), m = (float)oracle_get(mean, i % n), s = (float)oracle_get(std, i % n);
        float want = normalize ? (float)oracle_round(o->dtype, v - m) / s : (float)oracle_round(o->dtype, v * s) + m;
        oracle_exact(oracle_get(y, i), oracle_round(o->dtype, want));
    }
    oracle_record(o, y);
    assert_ok(lk_channel_affine(o->dev, &(struct lk_channel_affine){x, x, mean, std, normalize, false}));
    oracle_same(x, y);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(channel_affine_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
