#include "tests/common/oracle.h"

static void add_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 24), n = oracle_int(o, 1, oracle_int(o, 0, 3) ? 300 : 2200);
    bool window = oracle_int(o, 0, 1);
    enum oracle_fill fill = oracle_int(o, 0, 3) ? FILL_NORMAL : FILL_EXTREME;
    struct lk_tensor *a = TENSOR(o, o->dtype, window, fill, rows, n), *b = TENSOR(o, o->dtype, window, fill, rows, n);
    struct lk_tensor *y = TENSOR(o, o->dtype, window, FILL_NONE, rows, n);
    assert_ok(lk_add(o->dev, &(struct lk_add){.y = y, .a = a, .b = b}));
    for (int64_t i = 0; i < rows * n; i++)
        oracle_exact(oracle_get(y, i), oracle_round(o->dtype, (float)oracle_get(a, i) + (float)oracle_get(b, i)));
    oracle_record(o, y);
    bool is_a = oracle_int(o, 0, 1);
    struct lk_tensor *in_place = oracle_clone(o, is_a ? a : b);
    assert_ok(lk_add(o->dev, &(struct lk_add){in_place, is_a ? in_place : a, is_a ? b : in_place}));
    oracle_same(in_place, y);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(add_case, 200);
}

/* 1-D and 3-D tensors take the same way. */
static void test_other_ranks(void **state) {
    (void)state;
    struct lk_device *dev;
    assert_ok(lk_device_cpu_create(1, &dev));
    float a[24], b[24], y[24];
    for (int i = 0; i < 24; i++) a[i] = (float)i, b[i] = 100.0f;
    struct lk_tensor ta = LK_TENSOR(a, LK_F32, 24), tb = LK_TENSOR(b, LK_F32, 24), ty = LK_TENSOR(y, LK_F32, 24);
    assert_ok(lk_add(dev, &(struct lk_add){&ty, &ta, &tb}));
    for (int i = 0; i < 24; i++) assert_true(y[i] == 100.0f + (float)i);
    memset(y, 0, sizeof y);
    ta = LK_VIEW(&ta, 2, 3, 4), tb = LK_VIEW(&tb, 2, 3, 4), ty = LK_VIEW(&ty, 2, 3, 4);
    assert_ok(lk_add(dev, &(struct lk_add){&ty, &ta, &tb}));
    for (int i = 0; i < 24; i++) assert_true(y[i] == 100.0f + (float)i);
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_other_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
