#include "tests/common/oracle.h"

/* n of engine/ops.h in double, for row r. */
static void oracle_row(const struct lk_layer_norm *op, int64_t r, double *out) {
    int64_t n = op->x->shape[1];
    double mean = 0.0, variance = 0.0;
    for (int64_t i = 0; i < n; i++) mean += oracle_get(op->x, r * n + i) / (double)n;
    for (int64_t i = 0; i < n; i++) variance += oracle_square(oracle_get(op->x, r * n + i) - mean) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double v = (oracle_get(op->x, r * n + i) - mean) / sqrt(variance + (double)op->eps);
        if (op->weight) v *= oracle_get(op->weight, i);
        if (op->bias) v += oracle_get(op->bias, i);
        v = oracle_round(op->x->dtype, v);
        if (op->shift) {
            v *= oracle_round(op->x->dtype, 1.0 + oracle_get(op->scale, i));
            v = oracle_round(op->x->dtype, v) + oracle_get(op->shift, i);
        }
        out[i] = oracle_round(op->x->dtype, v);
    }
}

static void layer_norm_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 12), n = oracle_int(o, 2, oracle_int(o, 0, 3) ? 300 : 3000);
    enum oracle_fill fill = (enum oracle_fill)oracle_int(o, FILL_NORMAL, FILL_SMALL);
    bool window = oracle_int(o, 0, 1);
    int64_t parts = oracle_int(o, 0, 5);
    struct lk_tensor *x = TENSOR(o, o->dtype, window, fill, rows, n),
                     *y = TENSOR(o, o->dtype, window, FILL_NONE, rows, n);
    struct lk_tensor *vectors[4];
    for (int i = 0; i < 4; i++) vectors[i] = TENSOR(o, o->dtype, false, FILL_NORMAL, n);
    struct lk_layer_norm op = {.y = y, .x = x, .eps = 1e-6f};
    if (parts == 1 || parts == 2 || parts == 5) op.weight = vectors[0];
    if (parts == 2 || parts == 3 || parts == 5) op.bias = vectors[1];
    if (parts >= 4) op.shift = vectors[2], op.scale = vectors[3];
    assert_ok(lk_layer_norm(o->dev, &op));
    struct oracle_error error = {0};
    double want[3000];
    for (int64_t r = 0; r < rows; r++) {
        oracle_row(&op, r, want);
        for (int64_t i = 0; i < n; i++) oracle_error_add(&error, oracle_get(y, r * n + i), want[i]);
    }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, y);
    int64_t first = oracle_int(o, 0, rows - 1);
    struct lk_tensor *part = TENSOR(o, o->dtype, true, FILL_NONE, rows - first, n);
    struct lk_tensor x_part = lk_tensor_rows(x, first, rows - first), y_part = lk_tensor_rows(y, first, rows - first);
    op.x = &x_part, op.y = part;
    assert_ok(lk_layer_norm(o->dev, &op));
    oracle_same(part, &y_part);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(layer_norm_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
