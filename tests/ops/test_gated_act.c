#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vector_math.h"
#include "tests/common/oracle.h"

static float scalar_act(enum lk_act act, float x) {
    switch (act) {
    case LK_ACT_NONE:
        return x;
    case LK_ACT_SILU:
        return lk_silu(x);
    case LK_ACT_GELU_TANH:
        return lk_gelu_tanh(x);
    case LK_ACT_GELU_ERF:
        return lk_gelu_erf(x);
    case LK_ACT_QUICK_GELU:
        return lk_quick_gelu(x);
    }
    return x;
}

static void gated_act_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 20), n = oracle_int(o, 1, oracle_int(o, 0, 3) ? 300 : 1500);
    enum lk_act act = (enum lk_act)oracle_int(o, LK_ACT_NONE, LK_ACT_QUICK_GELU);
    struct lk_tensor *x = TENSOR(o, o->dtype, oracle_int(o, 0, 1), FILL_NORMAL, rows, 2 * n);
    struct lk_tensor *y = TENSOR(o, o->dtype, oracle_int(o, 0, 1), FILL_NONE, rows, n);
    const bool last = oracle_int(o, 0, 1);
    assert_ok(lk_gated_act(o->dev, &(struct lk_gated_act){y, x, act, last}));
    struct oracle_error error = {0};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++) {
            double gate = oracle_get(x, r * 2 * n + (last ? n : 0) + i);
            double value = oracle_get(x, r * 2 * n + (last ? 0 : n) + i);
            double want = oracle_round(o->dtype, oracle_round(o->dtype, oracle_act(act, gate)) * value);
            double got = oracle_get(y, r * n + i);
            oracle_error_add(&error, got, want);
            float step = lk_cpu_round(o->dtype, scalar_act(act, (float)gate)) * (float)value;
            oracle_exact(got, lk_cpu_round(o->dtype, step));
        }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, y);
    int64_t first = oracle_int(o, 0, rows - 1);
    struct lk_tensor *part = TENSOR(o, o->dtype, true, FILL_NONE, rows - first, n);
    struct lk_tensor x_part = lk_tensor_rows(x, first, rows - first), y_part = lk_tensor_rows(y, first, rows - first);
    assert_ok(lk_gated_act(o->dev, &(struct lk_gated_act){part, &x_part, act, last}));
    oracle_same(part, &y_part);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(gated_act_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
