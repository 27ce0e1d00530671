#include "tests/common/oracle.h"

static void pixels_case(struct oracle *o) {
    int64_t h = oracle_int(o, 1, 12), w = oracle_int(o, 1, oracle_int(o, 0, 3) ? 60 : 400);
    struct lk_tensor *bytes = TENSOR(o, LK_U8, false, FILL_NORMAL, h, w, 3);
    struct lk_tensor *x = TENSOR(o, o->dtype, false, FILL_NORMAL, h, w, 3);
    for (int64_t i = 0; i < h * w * 3; i++) oracle_set(bytes, i, (double)oracle_int(o, 0, 255));
    assert_ok(lk_pixels(o->dev, &(struct lk_pixels){x, bytes}));
    for (int64_t i = 0; i < h * w * 3; i++)
        oracle_exact(oracle_get(x, i), oracle_round(o->dtype, 2.0f * ((float)oracle_get(bytes, i) / 255.0f) - 1.0f));
    oracle_record(o, x);
    struct lk_tensor *back = TENSOR(o, LK_U8, false, FILL_NONE, h, w, 3);
    assert_ok(lk_pixels(o->dev, &(struct lk_pixels){back, x}));
    if (o->dtype == LK_F32) oracle_same(back, bytes);

    const double special[] = {INFINITY, -INFINITY, NAN, 1.5, -1.5, 1e30, 1.0, -1.0};
    for (int64_t i = 0; i < h * w * 3; i++) oracle_set(x, i, i < 8 ? special[i] : 2.4 * test_uniform(&o->random) - 1.2);
    assert_ok(lk_pixels(o->dev, &(struct lk_pixels){back, x}));
    for (int64_t i = 0; i < h * w * 3; i++) {
        double v = oracle_round(o->dtype, 0.5f * (float)oracle_get(x, i) + 0.5f);
        v = isnan(v) || v < 0.0 ? 0.0 : v > 1.0 ? 1.0 : v;
        oracle_exact(oracle_get(back, i), rint(255.0f * (float)v));
    }
    oracle_record(o, back);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(pixels_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
