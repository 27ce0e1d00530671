/* Order of work: streams, events, the legacy stream, when pinned memory is read. */
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

/* A copy from pinned memory happens later than the call, if nobody waits: a change in between is seen in some runs. */
static void test_pinned_source(void **state) {
    (void)state;
    uint32_t *host, got;
    int changed = 0;
    CUstream stream;
    cu_ok(cuStreamCreate(&stream, 1));
    cu_ok(cuMemHostAlloc((void **)&host, 4, 0));
    CUdeviceptr device = device_zeros(4);
    for (int i = 0; i < 30; i++) {
        *host = 1;
        cu_ok(cuMemcpyHtoDAsync_v2(device, host, 4, stream));
        *host = 2;
        cu_ok(cuStreamSynchronize(stream));
        device_get(&got, device, 4);
        changed += got == 2;
    }
    assert_true(changed > 0);
    /* From pageable memory the call itself reads. */
    uint32_t pageable = 5;
    cu_ok(cuMemcpyHtoDAsync_v2(device, &pageable, 4, stream));
    pageable = 6;
    cu_ok(cuStreamSynchronize(stream));
    device_get(&got, device, 4);
    assert_int_equal(got, 5);
    cu_ok(cuMemFreeHost(host));
    cu_ok(cuStreamDestroy_v2(stream));
}

/* Two streams, one event: with it the second copy always sees the first; without it sometimes not. */
static void test_events(void **state) {
    (void)state;
    CUstream a, b;
    CUevent event;
    CUdeviceptr x = device_zeros(4), y = device_zeros(4);
    int early[2] = {0, 0};
    cu_ok(cuStreamCreate(&a, 1));
    cu_ok(cuStreamCreate(&b, 1));
    cu_ok(cuEventCreate(&event, 2));
    for (int i = 0; i < 60; i++) {
        uint32_t got, with = (uint32_t)i % 2;
        cu_ok(cuMemsetD32_v2(x, 0, 1));
        cu_ok(cuMemsetD32Async(x, 9, 1, a));
        cu_ok(cuEventRecord(event, a));
        if (with) cu_ok(cuStreamWaitEvent(b, event, 0));
        cu_ok(cuMemcpyDtoDAsync_v2(y, x, 4, b));
        cu_ok(cuCtxSynchronize());
        device_get(&got, y, 4);
        early[with] += got != 9;
    }
    assert_true(early[0] > 0);
    assert_int_equal(early[1], 0);
    cu_ok(cuEventDestroy_v2(event));
    cu_ok(cuStreamDestroy_v2(a));
    cu_ok(cuStreamDestroy_v2(b));
}

/* The legacy stream waits for blocking streams and they for it. */
static void test_legacy(void **state) {
    (void)state;
    CUstream a;
    CUdeviceptr x = device_zeros(4), y = device_zeros(4);
    cu_ok(cuStreamCreate(&a, 0));
    for (uint32_t i = 1; i < 40; i++) {
        uint32_t got;
        cu_ok(cuMemsetD32Async(x, i, 1, a));
        cu_ok(cuMemcpyDtoDAsync_v2(y, x, 4, NULL));
        cu_ok(cuMemsetD32Async(x, 0, 1, a));
        cu_ok(cuCtxSynchronize());
        device_get(&got, y, 4);
        assert_int_equal(got, i);
    }
    cu_ok(cuStreamDestroy_v2(a));
}

static void test_memory(void **state) {
    (void)state;
    size_t available, total, after;
    CUdeviceptr x;
    cu_ok(cuMemGetInfo_v2(&available, &total));
    cu_ok(cuMemAlloc_v2(&x, 1 << 20));
    cu_ok(cuMemGetInfo_v2(&after, &total));
    assert_int_equal(available - after, 1 << 20);
    assert_cu(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&x, total));
    assert_cu(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(x + 16));
    assert_cu(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(x + (1 << 20) - 2, &total, 4));
    cu_ok(cuMemFree_v2(x));
    assert_cu(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(x));

    /* Rows of 12 bytes from a pitch of 16 to one of 20. */
    uint8_t from[3 * 16], to[3 * 20] = {0};
    for (int i = 0; i < 48; i++) from[i] = (uint8_t)i;
    CUdeviceptr device = device_put(from, sizeof from);
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = device,
                          .srcPitch = 16,
                          .srcXInBytes = 2,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = to,
                          .dstPitch = 20,
                          .WidthInBytes = 12,
                          .Height = 3};
    cu_ok(cuMemcpy2D_v2(&copy));
    for (int y = 0; y < 3; y++)
        for (int b = 0; b < 20; b++) assert_int_equal(to[y * 20 + b], b < 12 ? y * 16 + b + 2 : 0);
}

int main(void) {
    setenv("GPUSIM_CHECKS", "memory", 1); /* here work that nothing orders must show in its results, before any checker stops it */
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_device, close_device)
    const struct CMUnitTest tests[] = {TEST(test_pinned_source), TEST(test_events), TEST(test_legacy),
                                       TEST(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
