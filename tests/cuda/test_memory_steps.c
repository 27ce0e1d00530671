/* Between two steps of an edit the driver is asked for no memory, and the host waits once: for the NaN scan, after
 * which the caller is told of the step. Counted by the simulated GPU. */
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/tiny_edit.h"

#define N_STEPS 4

static const struct simulated_gpu *gpu;

/* What a step may do: 0 times, once, or as often as it likes. */
static const struct {
    const char *call;
    bool once;
} counted[] = {
    {"cuMemAlloc_v2", false},      {"cuMemHostAlloc", false},   {"cuMemFree_v2", false},
    {"cuMemFreeHost", false},      {"cuModuleLoadData", false}, {"cuModuleGetFunction", false},
    {"cuFuncSetAttribute", false}, {"cuCtxSynchronize", false}, {"cuEventSynchronize", false},
    {"cuStreamCreate", false},     {"cuEventCreate", false},    {"cuMemGetInfo_v2", false},
    {"cuStreamSynchronize", true}, {"cuMemcpyDtoH", true},
};
#define N_COUNTED (sizeof counted / sizeof *counted)

struct log {
    uint64_t at[N_STEPS + 1][N_COUNTED], launches[N_STEPS + 1];
    int n; /* steps seen, the beginning among them */
};

static enum lk_code look(void *context, const char *stage, int step, int n_steps) {
    struct log *log = context;
    if (strcmp(stage, "transformer")) return LK_OK;
    assert_int_equal(n_steps, N_STEPS);
    assert_int_equal(step, log->n);
    for (size_t i = 0; i < N_COUNTED; i++) log->at[step][i] = gpu->calls(counted[i].call);
    log->launches[step] = gpu->calls("cuLaunchKernel");
    log->n++;
    return LK_OK;
}

/* The first step meets each kernel for the first time and looks it up, and may wait for uploads made before it. */
static bool is_first(int step, const char *call) {
    return step == 1 && (!strcmp(call, "cuModuleGetFunction") || !strcmp(call, "cuFuncSetAttribute") ||
                         !strcmp(call, "cuEventSynchronize"));
}

static void a_step_allocates_nothing_and_waits_once(void **state) {
    (void)state;
    for (int family = 0; family < TINY_FAMILIES; family++) {
        struct tiny_job job;
        struct lk_device *dev;
        struct lk_result result;
        struct log log = {.n = 0};
        tiny_job_open(&job, &tiny_edits[family], LK_BF16, N_STEPS);
        job.request.progress = look;
        job.request.progress_context = &log;
        assert_ok(lk_device_cuda_create(0, &dev));
        assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result));
        assert_int_equal(log.n, N_STEPS + 1);
        for (int step = 1; step <= N_STEPS; step++) {
            for (size_t i = 0; i < N_COUNTED; i++) {
                uint64_t n = log.at[step][i] - log.at[step - 1][i];
                if (is_first(step, counted[i].call) || n == counted[i].once) continue;
                fail_msg("%s, step %d: %llu calls of %s, expected %d", tiny_edits[family].name, step,
                         (unsigned long long)n, counted[i].call, counted[i].once);
            }
            assert_true(log.launches[step] > log.launches[step - 1]);
        }
        printf("%-14s %llu launches a step, no allocation, one wait\n", tiny_edits[family].name,
               (unsigned long long)(log.launches[N_STEPS] - log.launches[N_STEPS - 1]));
        lk_result_free(&result);
        lk_device_free(dev);
        tiny_job_close(&job);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_allocates_nothing_and_waits_once)};
    gpu = simulated_gpu();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
