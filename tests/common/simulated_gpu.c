#include "tests/common/simulated_gpu.h"

#include <dlfcn.h>

#include "tests/common/cuda.h"

const struct simulated_gpu *simulated_gpu(void) {
    static struct simulated_gpu gpu;
    lk_device_free(test_cuda_open());
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
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
            printf("SKIP: a real driver cannot be made to fail or to count; needs the simulated GPU (build target "
                   "gpusim)\n");
            exit(TEST_SKIPPED);
        }
        memcpy(functions[i].place, &address, sizeof address);
    }
    return &gpu;
}

bool test_is_full(void) {
    const char *full = getenv("LIKENESS_TEST_FULL");
    return full && strcmp(full, "0");
}
