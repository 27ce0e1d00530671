#include <math.h>

#include "kernels/cpu/vector_math.h"
#include "tests/common/test.h"

/* Distance in units of the last place of the exact value, denormals included. */
static double ulps(float got, double want) {
    double place = ldexp(1.0, (int)fmax(floor(log2(want)), -126.0) - 23);
    return fabs((double)got - want) / place;
}

static void test_exp(void **state) {
    (void)state;
    double worst = 0.0;
    for (float x = -104.0f; x < 88.72f; x += 0.000173f) {
        double error = ulps(lk_exp(x), exp((double)x));
        if (error > worst) worst = error;
    }
    print_message("exp: %.3f ulp\n", worst);
    assert_true(worst <= 2.0);
}

static void test_exp_ends(void **state) {
    (void)state;
    assert_true(lk_exp(0.0f) == 1.0f && lk_exp(-0.0f) == 1.0f);
    assert_true(lk_exp(-INFINITY) == 0.0f && lk_exp(-1e30f) == 0.0f && lk_exp(-110.0f) == 0.0f);
    assert_true(lk_exp(INFINITY) == INFINITY && lk_exp(1e30f) == INFINITY && lk_exp(89.0f) == INFINITY);
    assert_true(isnan(lk_exp(NAN)) && isnan(lk_exp(-NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exp), cmocka_unit_test(test_exp_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
