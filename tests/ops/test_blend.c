#include "tests/common/oracle.h"

static void blend_case(struct oracle *o) {
    int64_t rows = oracle_int(o, 1, 40), n = oracle_int(o, 1, 200);
    const float sigma = oracle_int(o, 0, 4) ? (float)test_uniform(&o->random) : 0.0f;
    struct lk_tensor *x = TENSOR(o, o->dtype, false, oracle_int(o, 0, 4) ? FILL_NORMAL : FILL_EXTREME, rows, n);
    struct lk_tensor *source = TENSOR(o, o->dtype, false, FILL_NORMAL, rows, n);
    struct lk_tensor *noise = TENSOR(o, o->dtype, false, FILL_NORMAL, rows, n);
    struct lk_tensor *keep = TENSOR(o, o->dtype, false, FILL_NORMAL, rows, n);
    for (int64_t i = 0; i < rows * n; i++) oracle_set(keep, i, (double)oracle_int(o, 0, 4) / 4);
    struct lk_tensor *before = oracle_clone(o, x);
    assert_ok(lk_blend(o->dev, &(struct lk_blend){x, source, noise, keep, sigma}));
    const float rounded = (float)oracle_round(o->dtype, sigma), rest = (float)oracle_round(o->dtype, 1.0f - rounded);
    struct oracle_error error = {0};
    for (int64_t i = 0; i < rows * n; i++) {
        const float of_noise = (float)oracle_round(o->dtype, rounded * (float)oracle_get(noise, i)),
                    of_source = (float)oracle_round(o->dtype, rest * (float)oracle_get(source, i));
        const float kept = (float)oracle_get(keep, i), p = (float)oracle_round(o->dtype, of_noise + of_source);
        const float part = (float)oracle_round(o->dtype, kept * p),
                    other = (float)oracle_round(o->dtype, (1 - kept) * (float)oracle_get(before, i));
        oracle_exact(oracle_get(x, i), kept == 0   ? oracle_get(before, i)
                                       : kept == 1 ? (double)p
                                                   : oracle_round(o->dtype, part + other));
        if (!sigma && kept == 1)
            oracle_exact(oracle_get(x, i), oracle_get(source, i)); /* at the end it is the source */
        const double whole = (double)rounded * oracle_get(noise, i) + (double)rest * oracle_get(source, i);
        oracle_error_add(&error, oracle_get(x, i),
                         kept == 0   ? oracle_get(before, i)
                         : kept == 1 ? whole
                                     : kept * (double)p + (1 - kept) * oracle_get(before, i));
    }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, x);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(blend_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
