#include "tests/common/oracle.h"

static double inverse_rms(const struct lk_tensor *x, int64_t first, int64_t n, double eps) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += oracle_get(x, first + i) * oracle_get(x, first + i);
    return 1.0 / sqrt(sum / (double)n + eps);
}

static void rms_norm_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 12), heads = oracle_int(o, 1, 4), n = oracle_int(o, 1, heads > 1 ? 300 : 3000);
    enum oracle_fill fill = (enum oracle_fill)oracle_int(o, FILL_NORMAL, FILL_SMALL);
    bool window = oracle_int(o, 0, 1);
    struct lk_tensor *x = TENSOR(o, o->dtype, window, fill, rows, heads, n);
    struct lk_tensor *y = TENSOR(o, o->dtype, window, FILL_NONE, rows, heads, n);
    struct lk_tensor *w = TENSOR(o, oracle_int(o, 0, 1) ? LK_BF16 : o->dtype, false, FILL_NORMAL, n);
    struct lk_rms_norm op = {y, x, oracle_int(o, 0, 3) ? w : NULL, 1e-6f, oracle_int(o, 0, 1)};
    assert_ok(lk_rms_norm(o->dev, &op));
    struct oracle_error error = {0};
    for (int64_t r = 0; r < rows * heads; r++) {
        double factor = inverse_rms(x, r * n, n, op.eps);
        for (int64_t i = 0; i < n; i++) {
            double v = oracle_get(x, r * n + i) * factor;
            if (op.w && op.round_before_weight) v = oracle_round(o->dtype, v);
            if (op.w) v *= oracle_get(w, i);
            oracle_error_add(&error, oracle_get(y, r * n + i), oracle_round(o->dtype, v));
        }
    }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, y);
    int64_t first = oracle_int(o, 0, rows - 1);
    struct lk_tensor part = lk_tensor_rows(x, first, 1), want = lk_tensor_rows(y, first, 1);
    op.x = op.y = &part;
    assert_ok(lk_rms_norm(o->dev, &op));
    oracle_same(&part, &want);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(rms_norm_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
