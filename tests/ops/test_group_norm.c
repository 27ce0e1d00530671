#include "tests/common/oracle.h"

static void group_norm_case(struct oracle *o) {
    int64_t height = oracle_int(o, 1, 12), width = oracle_int(o, 1, 12);
    int groups = (int)(int64_t[]){1, 2, 4, 32}[oracle_int(o, 0, 3)];
    int64_t per_group = oracle_int(o, 1, 6), channels = groups * per_group;
    if (!oracle_int(o, 0, 30)) channels = groups * (1100 / groups), height = 2, width = 3; /* wider than one chunk */
    per_group = channels / groups;
    struct lk_tensor *x =
        TENSOR(o, o->dtype, false, (enum oracle_fill)oracle_int(o, FILL_NORMAL, FILL_SMALL), height, width, channels);
    struct lk_tensor *y = TENSOR(o, o->dtype, false, FILL_NONE, height, width, channels);
    struct lk_tensor *w = TENSOR(o, oracle_int(o, 0, 1) ? LK_BF16 : o->dtype, false, FILL_NORMAL, channels);
    struct lk_tensor *b = TENSOR(o, o->dtype, false, FILL_NORMAL, channels);
    enum lk_act act = oracle_int(o, 0, 1) ? LK_ACT_SILU : LK_ACT_NONE;
    struct lk_group_norm op = {.y = y, .x = x, .w = w, .b = b, .n_groups = groups, .eps = 1e-6f, .act = act};
    assert_ok(lk_group_norm(o->dev, &op));
    struct oracle_error error = {0};
    int64_t pixels = height * width;
    for (int64_t g = 0; g < groups; g++) {
        double mean = 0.0, variance = 0.0, n = (double)(pixels * per_group);
        for (int64_t i = 0; i < pixels * per_group; i++)
            mean += oracle_get(x, i / per_group * channels + g * per_group + i % per_group) / n;
        for (int64_t i = 0; i < pixels * per_group; i++)
            variance +=
                oracle_square(oracle_get(x, i / per_group * channels + g * per_group + i % per_group) - mean) / n;
        for (int64_t i = 0; i < pixels * per_group; i++) {
            int64_t c = g * per_group + i % per_group, place = i / per_group * channels + c;
            double v =
                (oracle_get(x, place) - mean) / sqrt(variance + (double)op.eps) * oracle_get(w, c) + oracle_get(b, c);
            v = oracle_round(o->dtype, oracle_act(act, oracle_round(o->dtype, v)));
            oracle_error_add(&error, oracle_get(y, place), v);
        }
    }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, y);
    op.y = x;
    assert_ok(lk_group_norm(o->dev, &op));
    oracle_same(x, y);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(group_norm_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
