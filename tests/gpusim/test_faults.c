/* What tests may see and do to the driver: calls counted and made to fail, the peak of memory, another capacity. */
#include "gpusim.h"
#include "tests/gpusim/common/device.h"

static int open_device(void **state) {
    (void)state;
    device_open();
    return 0;
}
static int close_device(void **state) {
    (void)state;
    device_close();
    return 0;
}

static void test_calls_are_counted(void **state) {
    (void)state;
    CUdeviceptr p;
    uint32_t value = 1;
    uint64_t all = gpusim_calls(NULL), allocations = gpusim_calls("cuMemAlloc_v2"),
             copies = gpusim_calls("cuMemcpyHtoD");
    cu_ok(cuMemAlloc_v2(&p, 4));
    cu_ok(cuMemcpyHtoD_v2(p, &value, 4));
    cu_ok(cuMemcpyHtoDAsync_v2(p, &value, 4, NULL));
    cu_ok(cuMemFree_v2(p));
    assert_int_equal(gpusim_calls(NULL), all + 4);
    assert_int_equal(gpusim_calls("cuMemAlloc_v2"), allocations + 1);
    assert_int_equal(gpusim_calls("cuMemcpyHtoD"), copies + 2);
    assert_int_equal(gpusim_calls("cuNoSuchCall"), 0);
}

static void test_the_nth_call_fails_once(void **state) {
    (void)state;
    CUdeviceptr p = 0, q = 0;
    gpusim_fail_at(NULL, 2, CUDA_ERROR_UNKNOWN, false);
    cu_ok(cuMemAlloc_v2(&p, 4));
    assert_null(gpusim_failed_call());
    assert_int_equal(cuMemAlloc_v2(&q, 4), CUDA_ERROR_UNKNOWN);
    assert_int_equal(q, 0);
    assert_string_equal(gpusim_failed_call(), "cuMemAlloc_v2");
    cu_ok(cuMemFree_v2(p));
    gpusim_fail_at("cuMemFree_v2", 1, CUDA_ERROR_OUT_OF_MEMORY, false);
    assert_null(gpusim_failed_call());
    cu_ok(cuMemAlloc_v2(&p, 4)); /* another function */
    assert_int_equal(cuMemFree_v2(p), CUDA_ERROR_OUT_OF_MEMORY);
    cu_ok(cuMemFree_v2(p)); /* it had done nothing */
    gpusim_fail_at(NULL, 1, CUDA_ERROR_UNKNOWN, false);
    gpusim_fail_at(NULL, 0, 0, false); /* no longer */
    cu_ok(cuCtxSynchronize());
}

static void test_peak_and_limit(void **state) {
    (void)state;
    CUdeviceptr p, q;
    size_t available, total;
    gpusim_memory_peak(0);
    uint64_t before = gpusim_memory_peak(0);
    cu_ok(cuMemAlloc_v2(&p, 1000)); /* 512 bytes a grain */
    cu_ok(cuMemAlloc_v2(&q, 1));
    cu_ok(cuMemFree_v2(p));
    assert_int_equal(gpusim_memory_peak(0), before + 1536);
    assert_int_equal(gpusim_memory_peak(0), before + 512);
    gpusim_memory_limit(before + 512 + 1024);
    cu_ok(cuMemGetInfo_v2(&available, &total));
    assert_int_equal(total, before + 1536);
    assert_int_equal(available, 1024);
    assert_int_equal(cuMemAlloc_v2(&p, 1025), CUDA_ERROR_OUT_OF_MEMORY);
    cu_ok(cuMemAlloc_v2(&p, 1024));
    gpusim_memory_limit(512); /* less than is in use */
    cu_ok(cuMemGetInfo_v2(&available, &total));
    assert_int_equal(available, 0);
    gpusim_memory_limit(0);
    cu_ok(cuMemFree_v2(p));
    cu_ok(cuMemFree_v2(q));
    gpusim_memory_piece(2048); /* much is free, and in pieces */
    assert_int_equal(cuMemAlloc_v2(&p, 2049), CUDA_ERROR_OUT_OF_MEMORY);
    cu_ok(cuMemAlloc_v2(&p, 2048));
    cu_ok(cuMemFree_v2(p));
    gpusim_memory_piece(0);
    void *host;
    gpusim_memory_peak(-1);
    before = gpusim_memory_peak(-1);
    cu_ok(cuMemHostAlloc(&host, 1001, 0));
    cu_ok(cuMemFreeHost(host));
    assert_int_equal(gpusim_memory_peak(-1), before + 1001);
    assert_int_equal(gpusim_memory_peak(-1), before);
}

/* The last test: the context is lost. */
static void test_sticky(void **state) {
    (void)state;
    CUdeviceptr p;
    gpusim_fail_at("cuCtxSynchronize", 1, CUDA_ERROR_ILLEGAL_ADDRESS, true);
    cu_ok(cuMemAlloc_v2(&p, 4));
    assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
    gpusim_fail_at(NULL, 0, 0, false);
    assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_are_counted),
        cmocka_unit_test(test_the_nth_call_fails_once),
        cmocka_unit_test(test_peak_and_limit),
        cmocka_unit_test(test_sticky),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
