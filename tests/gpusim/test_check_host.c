/* Defects of host code: order of streams, launch shapes, leaks, copies of what was never written. Each has a clean
 * twin; under three seeds. */
#include "tests/gpusim/common/defects.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;
enum { N = 256, BYTES = 4 * N };

struct scene {
    CUmodule module;
    CUfunction read_a_write_b; /* b[i] = a[i] */
    CUstream one, two;
    CUevent event;
    CUdeviceptr a, b, c;
    uint8_t *pinned;
};

static struct scene scene_open(void) {
    struct scene s;
    void *pinned;
    device_open();
    s.module = device_ptx("check_core");
    s.read_a_write_b = device_function(s.module, "oob_read_ok");
    cu_ok(cuStreamCreate(&s.one, 1));
    cu_ok(cuStreamCreate(&s.two, 1));
    cu_ok(cuEventCreate(&s.event, 2));
    s.a = device_zeros(BYTES), s.b = device_zeros(BYTES), s.c = device_zeros(BYTES);
    cu_ok(cuMemAllocHost_v2(&pinned, BYTES));
    s.pinned = pinned;
    return s;
}

static CUresult scene_close(struct scene *s) {
    CUresult result = cuCtxSynchronize();
    if (!result) {
        cu_ok(cuStreamDestroy_v2(s->one));
        cu_ok(cuStreamDestroy_v2(s->two));
        cu_ok(cuMemFree_v2(s->a));
        cu_ok(cuMemFree_v2(s->b));
        cu_ok(cuMemFree_v2(s->c));
        cu_ok(cuModuleUnload(s->module));
        cu_ok(cuMemFreeHost(s->pinned));
    }
    cu_ok(cuEventDestroy_v2(s->event));
    device_close();
    return result;
}

static void kernel(struct scene *s, CUstream stream) {
    int n = N;
    void *params[] = {&s->a, &s->b, &s->c, &n};
    CUresult result = cuLaunchKernel(s->read_a_write_b, 2, 1, 1, N / 2, 1, 1, 0, stream, params, NULL);
    if (result) assert_cu(CUDA_ERROR_LAUNCH_FAILED, result);
}
/* A call that may already see the failure of queued work. */
#define MAY_FAIL(call)                                                                                                 \
    do {                                                                                                               \
        CUresult failed_ = (call);                                                                                     \
        if (failed_) assert_cu(CUDA_ERROR_LAUNCH_FAILED, failed_);                                                     \
    } while (0)
static void order(struct scene *s, CUstream before, CUstream after) {
    MAY_FAIL(cuEventRecord(s->event, before));
    MAY_FAIL(cuStreamWaitEvent(after, s->event, 0));
}

static void copy_then_kernel(struct scene *s, bool bad) { /* read after write */
    memset(s->pinned, 1, BYTES);
    MAY_FAIL(cuMemcpyHtoDAsync_v2(s->a, s->pinned, BYTES, s->one));
    if (!bad) order(s, s->one, s->two);
    kernel(s, s->two);
}
static void kernel_then_set(struct scene *s, bool bad) { /* write after read */
    kernel(s, s->one);
    if (!bad) order(s, s->one, s->two);
    MAY_FAIL(cuMemsetD8Async(s->a, 3, BYTES, s->two));
}
static void two_kernels(struct scene *s, bool bad) { /* write after write */
    kernel(s, s->one);
    if (!bad) MAY_FAIL(cuStreamSynchronize(s->one));
    kernel(s, s->two);
}
static void kernel_then_copy_out(struct scene *s, bool bad) {
    kernel(s, s->one);
    if (!bad) order(s, s->one, s->two);
    MAY_FAIL(cuMemcpyDtoHAsync_v2(s->pinned, s->b, BYTES, s->two));
}
static void late_event(struct scene *s, bool bad) { /* recorded before the work that it should cover */
    if (bad) MAY_FAIL(cuEventRecord(s->event, s->one));
    kernel(s, s->one);
    if (!bad) MAY_FAIL(cuEventRecord(s->event, s->one));
    MAY_FAIL(cuStreamWaitEvent(s->two, s->event, 0));
    MAY_FAIL(cuMemcpyDtoDAsync_v2(s->c, s->b, BYTES, s->two));
}
static void pinned_again(struct scene *s, bool bad) { /* a staging buffer is filled by one stream, emptied by another */
    MAY_FAIL(cuMemcpyDtoHAsync_v2(s->pinned, s->a, BYTES, s->one));
    if (!bad) order(s, s->one, s->two);
    MAY_FAIL(cuMemcpyHtoDAsync_v2(s->b, s->pinned, BYTES, s->two));
}
static void overlap(struct scene *s, bool bad) { /* neighbours are no conflict, one shared byte is */
    MAY_FAIL(cuMemsetD8Async(s->a, 1, 101, s->one));
    MAY_FAIL(cuMemsetD8Async(s->a + 101 - bad, 2, 50, s->two));
}
static void default_stream(struct scene *s, bool bad) { /* waits for blocking streams only */
    CUstream blocking;
    cu_ok(cuStreamCreate(&blocking, bad));
    MAY_FAIL(cuMemsetD8Async(s->a, 1, BYTES, blocking));
    MAY_FAIL(cuMemsetD8Async(s->a, 2, BYTES, NULL));
    MAY_FAIL(cuStreamDestroy_v2(blocking));
}

static const struct {
    const char *name;
    void (*run)(struct scene *s, bool bad);
} orders[] = {{"copy_then_kernel", copy_then_kernel},
              {"kernel_then_set", kernel_then_set},
              {"two_kernels", two_kernels},
              {"kernel_then_copy_out", kernel_then_copy_out},
              {"late_event", late_event},
              {"pinned_again", pinned_again},
              {"overlap", overlap},
              {"default_stream", default_stream}};

static void test_order(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        for (int bad = 0; bad < 2; bad++) {
            uint64_t before = gpusim_report_count();
            struct scene s = scene_open();
            orders[i].run(&s, bad);
            CUresult result = scene_close(&s);
            if (!bad && (result || gpusim_report_count() != before))
                fail_msg("%s, clean: %d, or a report", orders[i].name, (int)result);
            if (!bad) continue;
            if (result != CUDA_ERROR_LAUNCH_FAILED || gpusim_report_count() == before)
                fail_msg("%s: not found", orders[i].name);
            struct gpusim_report r = defect_report(GPUSIM_REPORT_STREAM_ORDER);
            assert_true(r.allocation && r.allocation_bytes == BYTES);
            assert_non_null(strstr(r.what, "nothing orders it after operation"));
        }
}

/* Reads of copied bytes: what was never written stays so through a copy on the device. */
static void test_copies_carry_what_is_written(void **state) {
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        struct scene s = scene_open();
        CUdeviceptr fresh;
        cu_ok(cuMemAlloc_v2(&fresh, BYTES));
        cu_ok(cuMemsetD8_v2(fresh, 0, bad ? N : BYTES)); /* the usual slip: elements for bytes */
        cu_ok(cuMemcpyDtoD_v2(s.a + 16, fresh + 16, BYTES - 16));
        kernel(&s, s.one);
        CUresult result = cuCtxSynchronize();
        if (bad) {
            assert_int_equal(result, CUDA_ERROR_LAUNCH_FAILED);
            struct gpusim_report r = defect_report(GPUSIM_REPORT_UNINITIALISED);
            assert_true(r.allocation_base == s.a && r.address >= s.a + N);
        } else {
            cu_ok(result);
            cu_ok(cuMemFree_v2(fresh));
        }
        assert_int_equal(scene_close(&s), bad ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS);
    }
}

static void test_launch_shapes(void **state) {
    (void)state;
    struct scene s = scene_open();
    int n = N;
    void *params[] = {&s.a, &s.b, &s.c, &n};
    static const unsigned bad[][4] = {
        {1, 1, 1025, 0}, {0, 1, 32, 0}, {1, 65536, 32, 0}, {1, 1, 0, 0}, {1, 1, 32, (48 << 10) + 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t before = gpusim_report_count();
        assert_cu(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(s.read_a_write_b, bad[i][0], bad[i][1], 1, bad[i][2], 1, 1,
                                                           bad[i][3], NULL, params, NULL));
        assert_int_equal(gpusim_report_count(), before + 1);
        assert_string_equal(defect_report(GPUSIM_REPORT_BAD_LAUNCH).kernel, "oob_read_ok");
    }
    uint64_t before = gpusim_report_count();
    cu_ok(cuLaunchKernel(s.read_a_write_b, 2, 1, 1, N / 2, 1, 1, 1024, NULL, params, NULL));
    cu_ok(scene_close(&s));
    assert_int_equal(gpusim_report_count(), before);
}

static void test_leaks_of_a_context(void **state) {
    (void)state;
    CUstream stream;
    CUdeviceptr address;
    device_open();
    cu_ok(cuMemAlloc_v2(&address, 1000));
    device_close();
    assert_int_equal(defect_report(GPUSIM_REPORT_LEAK).allocation_bytes, 1000);
    device_open();
    cu_ok(cuStreamCreate(&stream, 0));
    device_ptx("check_core");
    device_close();
    assert_string_equal(defect_report(GPUSIM_REPORT_LEAK).what,
                        "1 streams and 0 events were not destroyed, 1 modules not unloaded");
}

/* In a process of its own: what it leaks (or not) decides its exit code. */
static int leaving(const char *how) {
    CUcontext context;
    CUdeviceptr address;
    void *pinned;
    bool ok = !cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context) &&
              !cuMemAlloc_v2(&address, 4096) && !cuMemAllocHost_v2(&pinned, 64);
    if (!ok) return 1;
    if (strcmp(how, "device")) ok &= !cuMemFree_v2(address);
    if (strcmp(how, "pinned")) ok &= !cuMemFreeHost(pinned);
    return ok ? 0 : 1;
}
static void test_leaks_at_exit(void **state) {
    (void)state;
    static const struct {
        char how[8];
        int code;
    } cases[] = {{"none", 0}, {"device", 77}, {"pinned", 77}};
    setenv("GPUSIM_EXIT_CODE", "77", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char how[8];
        memcpy(how, cases[i].how, sizeof how);
        char *argv[] = {program_invocation_name, how, NULL};
        pid_t child;
        int status;
        assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) != cases[i].code)
            fail_msg("leak of %s: expected exit code %d, got %d", how, cases[i].code, WEXITSTATUS(status));
    }
    unsetenv("GPUSIM_EXIT_CODE");
}

int main(int argc, char **argv) {
    int status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_copies_carry_what_is_written),
                                       cmocka_unit_test(test_launch_shapes), cmocka_unit_test(test_leaks_of_a_context),
                                       cmocka_unit_test(test_leaks_at_exit)};
    if (argc == 2) return leaving(argv[1]);
    if (defect_seeds(argv, &status)) return status;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
