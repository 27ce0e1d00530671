#include "tests/common/simulated_gpu.h"

#include <dlfcn.h>

#include "tests/common/cuda.h"

static bool is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && strcmp(value, "0");
}

static uint64_t no_calls(const char *name) { return (void)name, 0; }
static void no_failure(const char *name, uint64_t n, int result, bool sticky) {
    (void)name, (void)n, (void)result, (void)sticky;
}
static const char *no_failed_call(void) { return NULL; }
static uint64_t no_peak(int device) { return (void)device, 0; }
static void no_setting(uint64_t bytes) { (void)bytes; }
static uint64_t no_reports(void) { return 0; }

static const struct simulated_gpu no_hooks = {false,      no_calls,   no_failure, no_failed_call, no_peak,
                                              no_setting, no_setting, no_setting, no_reports};

const struct simulated_gpu *simulated_gpu(void) {
    static struct simulated_gpu gpu = {.hooks = true};
    lk_device_free(test_cuda_open());
    void *driver = is_set("LIKENESS_TEST_NO_HOOKS") ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const struct {
        const char *symbol;
        void *place;
    } functions[] = {
        {"gpusim_calls", &gpu.calls},
        {"gpusim_fail_at", &gpu.fail_at},
        {"gpusim_failed_call", &gpu.failed_call},
        {"gpusim_memory_peak", &gpu.memory_peak},
        {"gpusim_memory_limit", &gpu.memory_limit},
        {"gpusim_memory_piece", &gpu.memory_piece},
        {"gpusim_memory_pages", &gpu.memory_pages},
        {"gpusim_report_count", &gpu.report_count},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = driver ? dlsym(driver, functions[i].symbol) : NULL;
        if (!address) {
            printf(
                "no hooks of the simulated GPU: counts of driver calls, peaks of memory and injected failures are not "
                "checked here; tests of these alone are marked SKIPPED\n");
            return &no_hooks;
        }
        memcpy(functions[i].place, &address, sizeof address);
    }
    return &gpu;
}

bool test_is_full(void) { return is_set("LIKENESS_TEST_FULL"); }
