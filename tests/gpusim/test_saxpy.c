/* The way from a module to results, and what an access out of bounds gives. */
#include "tests/gpusim/common/device.h"

#include <math.h>

enum { N = 10003 };

static void check(CUmodule module) {
    static float x[N], y[N], z[N];
    int n = N, too_many = N + 300;
    float a = 2.5f;
    for (int i = 0; i < N; i++) x[i] = (float)i * 0.37f, y[i] = (float)(i % 17);
    CUdeviceptr dx = device_put(x, sizeof x), dy = device_put(y, sizeof y);
    CUfunction saxpy = device_function(module, "saxpy");
    cu_ok(device_run(saxpy, (N + 255) / 256, 256, 0, (void *)&n, (void *)&a, (void *)&dx, (void *)&dy, NULL));
    device_get(z, dy, sizeof z);
    for (int i = 0; i < N; i++)
        if (z[i] != fmaf(x[i], a, y[i])) fail_msg("y[%d]: expected %g, got %g", i, fmaf(x[i], a, y[i]), z[i]);
    assert_cu(CUDA_ERROR_ILLEGAL_ADDRESS, device_run(saxpy, (N + 555) / 256, 256, 0, (void *)&too_many, (void *)&a,
                                                     (void *)&dx, (void *)&dy, NULL));
    assert_cu(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&dx, 4)); /* sticky */
}

static void test_ptx(void **state) {
    (void)state;
    device_open();
    check(device_ptx("saxpy"));
    device_close();
}

static void test_fatbin(void **state) {
    (void)state;
    device_open();
    CUmodule module = device_fatbin("saxpy");
    if (module) check(module);
    device_close();
    if (!module) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ptx), cmocka_unit_test(test_fatbin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
