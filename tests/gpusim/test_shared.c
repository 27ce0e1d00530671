/* GPUSIM_SHARED: a GPU whose blocks get at most 99 KiB of shared memory says so, and gives no more. */
#include <stdlib.h>

#include "tests/gpusim/common/device.h"

enum { MOST = 99 << 10, SAXPY_THREADS = 256 };

static void what_it_states(void **state) {
    (void)state;
    int block, multiprocessor;
    device_open();
    cu_ok(cuDeviceGetAttribute(&block, 97, 0));
    cu_ok(cuDeviceGetAttribute(&multiprocessor, 81, 0));
    assert_int_equal(block, MOST);
    assert_int_equal(multiprocessor, 100 << 10);
    device_close();
}

static CUresult launch(CUfunction saxpy, unsigned shared) {
    int n = 0;
    float a = 1.0f;
    CUdeviceptr none = 0;
    return device_run(saxpy, 1, SAXPY_THREADS, shared, (void *)&n, (void *)&a, (void *)&none, (void *)&none, NULL);
}

static void what_it_gives(void **state) {
    (void)state;
    int blocks;
    device_open();
    CUfunction saxpy = device_function(device_ptx("saxpy"), "saxpy");
    assert_cu(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(saxpy, 8, MOST + 1));
    assert_cu(CUDA_ERROR_INVALID_VALUE, launch(saxpy, MOST));
    cu_ok(cuFuncSetAttribute(saxpy, 8, MOST));
    cu_ok(launch(saxpy, MOST));
    assert_cu(CUDA_ERROR_INVALID_VALUE, launch(saxpy, MOST + 1));
    device_close();
    static const struct {
        size_t shared;
        int blocks;
    } cases[] = {{MOST + 1, 0}, {MOST, 1}, {49 << 10, 2}, {(49 << 10) + 1, 1}};
    device_open();
    saxpy = device_function(device_ptx("saxpy"), "saxpy");
    for (int i = 0; i < 4; i++) {
        cu_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, saxpy, SAXPY_THREADS, cases[i].shared));
        assert_int_equal(blocks, cases[i].blocks);
    }
    device_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_it_states), cmocka_unit_test(what_it_gives)};
    setenv("GPUSIM_SHARED", "99K", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
