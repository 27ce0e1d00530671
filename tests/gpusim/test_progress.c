/* Progress: grid barriers under the checkers, the watchdog; GPUSIM_CHECKS=global; copies of boxes. */
#include <sys/wait.h>
#include <unistd.h>

#include "gpusim.h"
#include "tests/gpusim/common/device.h"

#define BLOCKS  24
#define THREADS 64

static int open_device(void **state) {
    device_open();
    *state = device_fatbin("progress");
    return 0;
}
static int close_device(void **state) {
    (void)state;
    device_close();
    return 0;
}

static void test_grid_barriers(void **state) {
    if (!*state) skip();
    uint32_t wrong = 1;
    int rounds = 15;
    CUdeviceptr numbers = device_zeros(4 * BLOCKS), count = device_zeros(4);
    void *arguments[] = {&numbers, &count, &rounds};
    CUfunction f = device_function(*state, "grid_rounds");
    for (int i = 0; i < 5; i++) {
        cu_ok(cuLaunchCooperativeKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments));
        cu_ok(cuCtxSynchronize());
    }
    device_get(&wrong, count, 4);
    assert_int_equal(wrong, 0);
}

static void test_tiles_of_warps(void **state) {
    if (!*state) skip();
    uint32_t got[2];
    CUdeviceptr sums = device_zeros(sizeof got);
    cu_ok(device_run(device_function(*state, "tile_sums"), 3, 128, 0, (void *)&sums, NULL));
    device_get(got, sums, sizeof got);
    assert_int_equal(got[0], 63 * 64 / 2);
    assert_int_equal(got[1], 63 * 64 / 2 + 64 * 64);
}

static void test_watchdog(void **state) {
    if (!*state) skip();
    struct gpusim_report report;
    CUdeviceptr flag = device_zeros(4);
    assert_cu(CUDA_ERROR_LAUNCH_TIMEOUT, device_run(device_function(*state, "spin"), 1, 32, 0, (void *)&flag, NULL));
    assert_true(gpusim_report_last(&report));
    assert_int_equal(report.kind, GPUSIM_REPORT_DEADLOCK);
    assert_non_null(strstr(report.what, "does not end"));
}

static void test_unwritten_shared(void **state) {
    if (!*state) skip();
    uint32_t got[128], keep = 64;
    CUdeviceptr out = device_zeros(sizeof got);
    cu_ok(device_run(device_function(*state, "unwritten"), 1, 128, 0, (void *)&out, (void *)&keep, NULL));
    device_get(got, out, sizeof got);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(got[i], i);
    /* What is used shows: shared memory begins as NaN of every type. */
    keep = 128;
    cu_ok(device_run(device_function(*state, "unwritten"), 1, 128, 0, (void *)&out, (void *)&keep, NULL));
    device_get(got, out, sizeof got);
    for (uint32_t i = 64; i < 128; i++) assert_int_equal(got[i], UINT32_MAX);
}

/* A box of 3 x 2 x 2 bytes out of one of 5 x 4 x 3 into the middle of another. */
static void test_copy_box(void **state) {
    (void)state;
    uint8_t from[3][4][5], to[4][5][7], want[4][5][7];
    memset(want, 0, sizeof want);
    for (int i = 0; i < 60; i++) (&from[0][0][0])[i] = (uint8_t)(i + 1);
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < 3; x++) want[z + 2][y + 1][x + 3] = from[z + 1][y + 2][x + 1];
    CUdeviceptr device = device_zeros(sizeof to);
    CUDA_MEMCPY3D box = {.srcXInBytes = 1,
                         .srcY = 2,
                         .srcZ = 1,
                         .srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = from,
                         .srcPitch = 5,
                         .srcHeight = 4,
                         .dstXInBytes = 3,
                         .dstY = 1,
                         .dstZ = 2,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = device,
                         .dstPitch = 7,
                         .dstHeight = 5,
                         .WidthInBytes = 3,
                         .Height = 2,
                         .Depth = 2};
    cu_ok(cuMemcpy3D_v2(&box));
    device_get(to, device, sizeof to);
    assert_memory_equal(to, want, sizeof to);
    cu_ok(cuMemsetD8_v2(device, 0, sizeof to));
    cu_ok(cuMemcpy3DAsync_v2(&box, NULL));
    cu_ok(cuCtxSynchronize());
    device_get(to, device, sizeof to);
    assert_memory_equal(to, want, sizeof to);
    box.dstZ = 3; /* beyond the end */
    assert_cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&box));
    box.dstHeight = 2;
    assert_cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&box));
}

/* In a process of its own, since the driver reads its settings once. */
static int run_with(const char *name, const char *value, const char *of, CMUnitTestFunction test) {
    const struct CMUnitTest tests[] = {{of, test, open_device, close_device, NULL}};
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        setenv(name, value, 1);
        exit(cmocka_run_group_tests(tests, NULL, NULL));
    }
    return child < 0 || waitpid(child, &status, 0) < 0 || status;
}

int main(void) {
    /* The checkers do not follow the barriers of such tiles. Blocks that wait for others may spin for long where the
     * machine is busy: only the kernel that never ends has an impatient watchdog. */
    int failed = run_with("GPUSIM_CHECKS", "memory", "test_tiles_of_warps", test_tiles_of_warps);
    failed |= run_with("GPUSIM_WATCHDOG", "600000", "test_watchdog", test_watchdog);
    setenv("GPUSIM_CHECKS", "global", 1);
    setenv("GPUSIM_THREADS", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_grid_barriers, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_unwritten_shared, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_copy_box, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) || failed;
}
