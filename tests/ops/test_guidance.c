#include "tests/common/oracle.h"

struct pair {
    const struct lk_guidance *op;
    int64_t first, n; /* a row */
};

static double difference(const struct pair *p, int64_t i) {
    double d = oracle_get(p->op->cond, p->first + i) - oracle_get(p->op->uncond, p->first + i);
    return oracle_round(p->op->y->dtype, d);
}

static double combined(const struct pair *p, int64_t i) {
    enum lk_dtype dtype = p->op->y->dtype;
    double step = oracle_round(dtype, (double)p->op->scale * difference(p, i));
    return oracle_round(dtype, oracle_get(p->op->uncond, p->first + i) + step);
}

static double condition(const struct pair *p, int64_t i) { return oracle_get(p->op->cond, p->first + i); }

static double length(const struct pair *p, double (*value)(const struct pair *, int64_t)) {
    double sum = 0.0;
    for (int64_t i = 0; i < p->n; i++) sum += oracle_square(value(p, i));
    return oracle_round(p->op->y->dtype, sqrt(sum));
}

static double limit(const struct pair *p) {
    double norm = length(p, difference), power = oracle_round(p->op->y->dtype, (double)p->op->power);
    return norm < 1.0 ? 1.0 : oracle_round(p->op->y->dtype, pow(norm, power));
}

static void check_row(const struct pair *p, struct oracle_error *error) {
    enum lk_dtype dtype = p->op->y->dtype;
    bool rescale = p->op->kind == LK_GUIDANCE_RESCALE;
    double factor = rescale ? oracle_round(dtype, length(p, condition) / length(p, combined)) : limit(p);
    for (int64_t i = 0; i < p->n; i++) {
        double step = oracle_round(dtype, oracle_round(dtype, (double)p->op->scale * difference(p, i)) / factor);
        double want = rescale ? combined(p, i) * factor : oracle_get(p->op->uncond, p->first + i) + step;
        oracle_error_add(error, oracle_get(p->op->y, p->first + i), oracle_round(dtype, want));
    }
}

static void guidance_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 50), n = oracle_int(o, 1, oracle_int(o, 0, 9) ? 130 : 2500);
    struct lk_tensor *cond = TENSOR(o, o->dtype, false, FILL_NORMAL, rows, n);
    struct lk_tensor *uncond = TENSOR(o, o->dtype, false, FILL_NORMAL, rows, n);
    struct lk_tensor *y = TENSOR(o, o->dtype, false, FILL_NONE, rows, n);
    for (int64_t i = 0; i < rows * n; i++) /* differences of lengths above and below 1 */
        if (i / n % 2) oracle_set(uncond, i, oracle_get(cond, i) + 0.5 / sqrt((double)n) * oracle_get(uncond, i));
    struct lk_guidance op = {y, cond, uncond, LK_GUIDANCE_RESCALE, 4.3f, 0.4f};
    op.kind = oracle_int(o, 0, 1) ? LK_GUIDANCE_RESCALE : LK_GUIDANCE_LIMIT;
    op.power = (float[]){0.0f, 0.4f, 1.0f}[oracle_int(o, 0, 2)];
    assert_ok(lk_guidance(o->dev, &op));
    struct oracle_error error = {0};
    for (int64_t r = 0; r < rows; r++) check_row(&(struct pair){&op, r * n, n}, &error);
    oracle_error_check(&error, o->dtype);
    oracle_record(o, y);
    struct lk_tensor row = lk_tensor_rows(cond, rows - 1, 1), other = lk_tensor_rows(uncond, rows - 1, 1);
    struct lk_tensor want = lk_tensor_rows(y, rows - 1, 1);
    op.cond = &row, op.uncond = &other;
    op.y = oracle_int(o, 0, 1) ? &row : &other; /* in place, and a row alone */
    assert_ok(lk_guidance(o->dev, &op));
    oracle_same(op.y, &want);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(guidance_case, 200);
}

static void test_wrong_calls(void **state) {
    (void)state;
    struct lk_cost cost = {0};
    struct lk_tensor x = LK_TENSOR(NULL, LK_BF16, 4, 64), fewer = LK_TENSOR(NULL, LK_BF16, 3, 64), window = x;
    window.ld = 70;
    assert_ok(lk_check_guidance(&(struct lk_guidance){.y = &x, .cond = &x, .uncond = &x}, &cost));
    assert_int_equal(cost.bytes, 3 * 2 * 4 * 64);
    assert_fails(lk_check_guidance(&(struct lk_guidance){.y = &x, .cond = &x, .uncond = &fewer}, &cost), LK_E_INTERNAL,
                 "alike");
    assert_fails(lk_check_guidance(&(struct lk_guidance){.y = &x, .cond = &window, .uncond = &x}, &cost), LK_E_INTERNAL,
                 "dense");
    assert_fails(lk_check_guidance(
                     &(struct lk_guidance){.y = &x, .cond = &x, .uncond = &x, .kind = (enum lk_guidance_kind)7}, &cost),
                 LK_E_INTERNAL, "kind");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
