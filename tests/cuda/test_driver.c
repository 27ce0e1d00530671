/* What kernels/cuda/runtime/driver.h declares against the toolkit's cuda.h, where it is installed; and every driver
 * call made to fail in turn while a device is opened and used. */
#include "engine/base/alloc.h"
#include "engine/ops.h"
#include "kernels/cuda/runtime/driver.h"
#include "kernels/cuda/runtime/energy.h"
#include "tests/common/cuda.h"

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
_Static_assert((int)LK_CU_ERROR_OUT_OF_MEMORY == (int)CUDA_ERROR_OUT_OF_MEMORY, "");
_Static_assert((int)LK_CU_ERROR_NOT_READY == (int)CUDA_ERROR_NOT_READY, "");
_Static_assert((int)LK_CU_ERROR_UNKNOWN == (int)CUDA_ERROR_UNKNOWN, "");
_Static_assert((int)LK_CU_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK_OPTIN ==
                   (int)CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
               "");
_Static_assert((int)LK_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT == (int)CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "");
_Static_assert((int)LK_CU_ATTRIBUTE_COMPUTE_MAJOR == (int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "");
_Static_assert((int)LK_CU_ATTRIBUTE_COMPUTE_MINOR == (int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "");
_Static_assert((int)LK_CU_FUNCTION_MAX_DYNAMIC_SHARED == (int)CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, "");
_Static_assert((int)LK_CU_STREAM_NON_BLOCKING == (int)CU_STREAM_NON_BLOCKING, "");
_Static_assert((int)LK_CU_EVENT_DISABLE_TIMING == (int)CU_EVENT_DISABLE_TIMING, "");
_Static_assert((int)LK_CU_ALLOCATION_PINNED == (int)CU_MEM_ALLOCATION_TYPE_PINNED, "");
_Static_assert((int)LK_CU_LOCATION_DEVICE == (int)CU_MEM_LOCATION_TYPE_DEVICE, "");
_Static_assert(sizeof(struct lk_cu_allocation) == sizeof(CUmemAllocationProp), "");
_Static_assert(offsetof(struct lk_cu_allocation, location_type) == offsetof(CUmemAllocationProp, location), "");
_Static_assert(sizeof(lk_cu_address) == sizeof(CUdeviceptr), "");
_Static_assert(sizeof(lk_cu_device) == sizeof(CUdevice), "");
_Static_assert(sizeof(lk_cu_result) == sizeof(CUresult), "");
#endif
#endif

static enum lk_code use(struct lk_device *dev) {
    float host[64] = {1.0f}, weight[64] = {0};
    struct lk_tensor x, y, w = LK_TENSOR(weight, LK_F32, 64);
    LK_TRY(lk_device_prepare(dev, 1 << 16));
    LK_TRY(LK_NEW(&dev->arena, &x, LK_F32, 1, 64));
    LK_TRY(LK_NEW(&dev->arena, &y, LK_F32, 1, 64));
    LK_TRY(lk_upload(dev, &x, host));
    LK_TRY(lk_rms_norm(dev, &(struct lk_rms_norm){.y = &y, .x = &x, .w = &w, .eps = 1e-6f}));
    return lk_download(dev, host, &y);
}

static enum lk_code open_and_use(void) {
    struct lk_device *dev;
    LK_TRY(lk_device_cuda_create(0, &dev));
    enum lk_code rc = use(dev);
    lk_arena_release(&dev->arena, 0);
    lk_device_free(dev);
    return rc;
}

static void test_each_call_fails(void **state) {
    (void)state;
    int64_t before = lk_cuda_calls();
    assert_ok(open_and_use());
    int64_t n_calls = lk_cuda_calls() - before, live = lk_alloc_live();
    printf("%lld driver calls\n", (long long)n_calls);
    for (int64_t n = 1; n <= n_calls; n++) {
        lk_cuda_fail_at(n);
        enum lk_code rc = open_and_use();
        lk_cuda_fail_at(0);
        if (rc != LK_E_DEVICE) fail_msg("call %lld failed: expected an error of the device, got %d", (long long)n, rc);
        if (!strstr(lk_error_text(), "failed with 999")) fail_msg("call %lld: %s", (long long)n, lk_error_text());
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_ok(open_and_use());
}

static void test_no_such_device(void **state) {
    (void)state;
    struct lk_device *dev;
    assert_fails(lk_device_cuda_create(4711, &dev), LK_E_DEVICE, "no device 4711");
    assert_null(dev);
    assert_fails(lk_device_cuda_create(-1, &dev), LK_E_USAGE, "from 0 on");
}

/* The simulated GPU's counter grows by 7 J a reading. */
static void test_energy(void **state) {
    (void)state;
    struct lk_device *dev = test_cuda_open(), *cpu;
    double first, second;
    bool simulated = strstr(dev->name, "simulated");
    assert_ok(lk_device_cpu_create(1, &cpu));
    assert_false(lk_cuda_joules(cpu, &first));
    if (lk_cuda_joules(dev, &first)) {
        assert_true(lk_cuda_joules(dev, &second));
        assert_true(simulated ? second - first == 7 : second >= first);
    } else {
        assert_false(simulated);
    }
    lk_device_free(cpu);
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_such_device), cmocka_unit_test(test_each_call_fails),
                                       cmocka_unit_test(test_energy)};
    lk_device_free(test_cuda_open());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
