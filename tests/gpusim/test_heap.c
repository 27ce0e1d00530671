/* malloc and free in kernels, alloca, 128-bit registers. */
#include "tests/gpusim/common/defects.h"

enum { THREADS = 64 };

static CUmodule module;
static uint64_t reports;

static bool begin(void) {
    device_open();
    reports = gpusim_report_count();
    module = device_fatbin("heap");
    if (!module) device_close();
    return module != NULL;
}

static void test_results(void **state) {
    (void)state;
    if (!begin()) skip();
    int n = 100, zero = 0, one = 1, out[2 * THREADS];
    CUdeviceptr d = device_zeros(sizeof out), kept = device_zeros(THREADS * 8);
    cu_ok(device_run(device_function(module, "fill_and_sum"), 2, THREADS, 0, (void *)&d, (void *)&n, NULL));
    device_get(out, d, sizeof out);
    for (int i = 0; i < 2 * THREADS; i++) assert_int_equal(out[i], n * (n - 1) / 2 * (i % THREADS));
    cu_ok(device_run(device_function(module, "make"), 1, THREADS, 0, (void *)&kept, NULL));
    for (int round = 0; round < 2; round++) {
        cu_ok(device_run(device_function(module, "use"), 1, THREADS, 0, (void *)&kept, (void *)&d,
                         round ? (void *)&one : (void *)&zero, NULL));
        device_get(out, d, sizeof out);
        for (int i = 0; i < THREADS; i++) assert_int_equal(out[i], i + 1);
    }
    cu_ok(cuMemFree_v2(d));
    cu_ok(cuMemFree_v2(kept));
    cu_ok(cuModuleUnload(module));
    device_close();
    assert_int_equal(gpusim_report_count(), reports);
}

/* The limit is the context's, blocks of 1000 bytes take 1008; what is left at the end is told. */
static void test_limit(void **state) {
    (void)state;
    if (!begin()) skip();
    cu_ok(cuCtxSetLimit(2, 100 * 1008 + 1000));
    CUdeviceptr d = device_zeros(4);
    size_t bytes = 1000;
    int n;
    cu_ok(device_run(device_function(module, "room"), 1, 1, 0, (void *)&d, (void *)&bytes, NULL));
    device_get(&n, d, 4);
    assert_int_equal(n, 100);
    cu_ok(cuMemFree_v2(d));
    cu_ok(cuModuleUnload(module));
    device_close();
    assert_int_equal(gpusim_report_count(), reports + 1);
    assert_non_null(strstr(defect_report(GPUSIM_REPORT_LEAK).what, "100 blocks of malloc in kernels, 100000 bytes"));
}

static void check_fault(const char *name, enum gpusim_report_kind kind, CUresult error, const char *what, int extra) {
    if (!begin()) skip();
    CUdeviceptr d = device_zeros(64);
    CUresult result = device_run(device_function(module, name), 1, 1, 0, (void *)&d, (void *)&extra, NULL);
    if (result != error) fail_msg("%s: expected %d, got %d", name, (int)error, (int)result);
    struct gpusim_report report = defect_report(kind);
    if (!strstr(report.what, what)) fail_msg("%s: %s", name, report.what);
    assert_string_equal(report.kernel, name);
    device_close();
}

static void test_faults(void **state) {
    (void)state;
    check_fault("unwritten", GPUSIM_REPORT_UNINITIALISED, CUDA_ERROR_LAUNCH_FAILED, "nothing has written", 0);
    check_fault("over_the_end", GPUSIM_REPORT_OUT_OF_BOUNDS, CUDA_ERROR_ILLEGAL_ADDRESS, "outside of what malloc gave",
                0);
    check_fault("after_free", GPUSIM_REPORT_USE_AFTER_FREE, CUDA_ERROR_ILLEGAL_ADDRESS, "which were freed", 0);
    check_fault("free_twice", GPUSIM_REPORT_USE_AFTER_FREE, CUDA_ERROR_ILLEGAL_ADDRESS, "was freed before", 0);
    check_fault("free_inside", GPUSIM_REPORT_OUT_OF_BOUNDS, CUDA_ERROR_ILLEGAL_ADDRESS, "malloc did not give", 0);
    check_fault("stack_unwritten", GPUSIM_REPORT_UNINITIALISED, CUDA_ERROR_LAUNCH_FAILED, "has not written", 4);
    check_fault("stack_unwritten", GPUSIM_REPORT_STACK, CUDA_ERROR_HARDWARE_STACK_ERROR, "alloca of 400000 bytes",
                100000);
}

static void test_stack(void **state) {
    (void)state;
    if (!begin()) skip();
    int n = 500, rounds = 100, out[32];
    CUdeviceptr d = device_zeros(sizeof out);
    cu_ok(device_run(device_function(module, "stack"), 1, 32, 0, (void *)&d, (void *)&n, (void *)&rounds, NULL));
    device_get(out, d, sizeof out);
    for (int i = 0; i < 32; i++) assert_int_equal(out[i], rounds * (n + i) * (n + i - 1) + i * (i + 1) / 2);
    cu_ok(cuMemFree_v2(d));
    cu_ok(cuModuleUnload(module));
    device_close();
    assert_int_equal(gpusim_report_count(), reports);
}

static void test_wide(void **state) {
    (void)state;
    if (!begin()) skip();
    uint64_t words[2 * 32], got[2 * 32];
    for (uint64_t i = 0; i < 64; i++) words[i] = i * 0x0123456789abcdefull;
    CUdeviceptr d = device_put(words, sizeof words);
    cu_ok(device_run(device_function(module, "wide"), 1, 32, 0, (void *)&d, NULL));
    device_get(got, d, sizeof got);
    for (int i = 0; i < 64; i += 2) {
        assert_int_equal(got[i], words[i + 1]);
        assert_int_equal(got[i + 1], words[i] + 1);
    }
    cu_ok(cuMemFree_v2(d));
    cu_ok(cuModuleUnload(module));
    device_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results), cmocka_unit_test(test_limit),
                                       cmocka_unit_test(test_faults), cmocka_unit_test(test_stack),
                                       cmocka_unit_test(test_wide)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
