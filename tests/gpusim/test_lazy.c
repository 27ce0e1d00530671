/* A driver that loads functions at their first look-up, and waits for idle streams then. */
#include <sys/wait.h>
#include <unistd.h>

#include "gpusim.h"
#include "tests/gpusim/common/device.h"

#define N_SETS 200

/* nccl/nccl.c's way into the driver (driver/gather.c) */
struct gpusim_ranks;
int gpusim_ranks_new(int n, struct gpusim_ranks **out);
int gpusim_all_gather(struct gpusim_ranks *group, int rank, const void *from, void *to, size_t bytes, void *stream);

static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry first() { ret; }\n"
                           ".visible .entry second() { ret; }\n.visible .entry third() { ret; }\n";

/* Work on a stream, and whether it was done when the function had been looked up. */
static bool waits(CUmodule module, const char *name, CUstream stream) {
    CUfunction function;
    CUevent done;
    CUdeviceptr x = device_zeros(4);
    cu_ok(cuEventCreate(&done, 2));
    for (uint32_t i = 0; i < N_SETS; i++) cu_ok(cuMemsetD32Async(x, i, 1, stream));
    cu_ok(cuEventRecord(done, stream));
    cu_ok(cuModuleGetFunction(&function, module, name));
    const CUresult is = cuEventQuery(done);
    cu_ok(cuStreamSynchronize(stream));
    cu_ok(cuEventDestroy_v2(done));
    return is == CUDA_SUCCESS;
}

static void first_look_ups(const char *lazy) {
    CUcontext context[2];
    CUstream own, other;
    CUmodule module;
    const bool is_lazy = *lazy, all = !strcmp(lazy, "all");
    cu_ok(cuInit(0));
    for (int i = 0; i < 2; i++) cu_ok(cuDevicePrimaryCtxRetain(&context[i], i));
    cu_ok(cuCtxSetCurrent(context[1]));
    cu_ok(cuStreamCreate(&other, 1));
    CUdeviceptr share = device_zeros(64);
    cu_ok(cuCtxSetCurrent(context[0]));
    cu_ok(cuStreamCreate(&own, 1));
    cu_ok(cuModuleLoadData(&module, text));
    assert_int_equal(waits(module, "first", own), is_lazy);
    assert_false(waits(module, "first", own)); /* it is loaded */

    /* Another device's stream waits for a rank that has not called yet. */
    struct gpusim_ranks *group;
    CUfunction function;
    assert_int_equal(gpusim_ranks_new(2, &group), 0);
    assert_int_equal(gpusim_all_gather(group, 0, (void *)share, (void *)(share + 32), 16, other), 0);
    assert_cu(all ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_SUCCESS, cuModuleGetFunction(&function, module, "second"));
    struct gpusim_report report;
    assert_int_equal(gpusim_report_last(&report), all);
    if (all) assert_int_equal(report.kind, GPUSIM_REPORT_DEADLOCK);
    if (all) assert_string_equal(report.kernel, "second");
}

/* In a process each, since settings are read once. */
static void test_look_ups(void **state) {
    static const char *const lazy[] = {"", "own", "all"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        int status;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            setenv("GPUSIM_LAZY", lazy[i], 1);
            setenv("GPUSIM_DEVICES", "2", 1);
            execl("/proc/self/exe", "gpusim_test_lazy", lazy[i], (char *)NULL);
            _exit(127);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status) fail_msg("GPUSIM_LAZY=%s: status %d", lazy[i], status);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_look_ups)};
    if (argc == 2) {
        first_look_ups(argv[1]);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
