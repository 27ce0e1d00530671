#include "tests/common/oracle.h"

static void oracle_head(const struct lk_norm_rope *op, const struct lk_tensor *x, int64_t row, int64_t head,
                        double *out) {
    int64_t n = x->shape[2], half = n / 2, first = (row * x->shape[1] + head) * n;
    enum lk_dtype dtype = x->dtype, product = op->round_products ? dtype : LK_F32;
    double sum = 0.0, v[600];
    for (int64_t i = 0; i < n; i++) sum += oracle_square(oracle_get(x, first + i));
    for (int64_t i = 0; i < n; i++) {
        v[i] = oracle_get(x, first + i);
        if (op->norm_w) {
            v[i] =
                oracle_round(op->round_before_weight ? dtype : LK_F32, v[i] / sqrt(sum / (double)n + (double)op->eps));
            v[i] = oracle_round(dtype, v[i] * oracle_get(op->norm_w, i));
        }
        out[i] = v[i];
    }
    for (int64_t j = 0; op->cos && j < half; j++) {
        bool interleaved = op->pairing == LK_ROPE_INTERLEAVED;
        int64_t a = interleaved ? 2 * j : j, b = interleaved ? 2 * j + 1 : j + half;
        double c = oracle_get(op->cos, row * half + j), s = oracle_get(op->sin, row * half + j);
        out[a] = oracle_round(dtype, oracle_round(product, v[a] * c) - oracle_round(product, v[b] * s));
        out[b] = oracle_round(dtype, oracle_round(product, v[b] * c) + oracle_round(product, v[a] * s));
    }
}

static void norm_rope_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 12), heads = oracle_int(o, 1, 6), n = 2 * oracle_int(o, 1, 70);
    if (!oracle_int(o, 0, 20)) n = 512;
    struct lk_tensor *x = TENSOR(o, o->dtype, oracle_int(o, 0, 1), FILL_NORMAL, rows, heads, n);
    struct lk_tensor *before = oracle_clone(o, x), *again = oracle_clone(o, x);
    struct lk_tensor *w = TENSOR(o, oracle_int(o, 0, 1) ? LK_BF16 : o->dtype, false, FILL_NORMAL, n);
    struct lk_tensor *cosines = TENSOR(o, LK_F32, true, FILL_NORMAL, rows, n / 2);
    struct lk_tensor *sines = TENSOR(o, LK_F32, true, FILL_NORMAL, rows, n / 2);
    for (int64_t i = 0; i < rows * n / 2; i++) {
        double angle = 100.0 * test_uniform(&o->random);
        oracle_set(cosines, i, cos(angle)), oracle_set(sines, i, sin(angle));
    }
    struct lk_norm_rope op = {.x = x, .cos = cosines, .sin = sines, .eps = 1e-6f};
    int64_t parts = oracle_int(o, 0, 4);
    if (parts) op.norm_w = w;
    if (parts == 1) op.cos = op.sin = NULL;
    op.pairing = oracle_int(o, 0, 1) ? LK_ROPE_INTERLEAVED : LK_ROPE_HALF;
    op.round_products = oracle_int(o, 0, 1);
    op.round_before_weight = oracle_int(o, 0, 1);
    assert_ok(lk_norm_rope(o->dev, &op));
    struct oracle_error error = {0};
    double want[600];
    for (int64_t r = 0; r < rows * heads; r++) {
        oracle_head(&op, before, r / heads, r % heads, want);
        for (int64_t i = 0; i < n; i++) oracle_error_add(&error, oracle_get(x, r * n + i), want[i]);
    }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, x);
    int64_t first = oracle_int(o, 0, rows - 1);
    struct lk_tensor part = lk_tensor_rows(again, first, 1), same = lk_tensor_rows(x, first, 1);
    struct lk_tensor cos_row = lk_tensor_rows(cosines, first, 1), sin_row = lk_tensor_rows(sines, first, 1);
    op.x = &part;
    if (op.cos) op.cos = &cos_row, op.sin = &sin_row;
    assert_ok(lk_norm_rope(o->dev, &op));
    oracle_same(&part, &same);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(norm_rope_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
