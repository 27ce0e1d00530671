/* What the simulated GPU lets tests see and do (tools/gpusim/gpusim.h), when the driver in use is the simulated one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct simulated_gpu {
    uint64_t (*calls)(const char *name);
    void (*fail_at)(const char *name, uint64_t n, int result, bool sticky);
    const char *(*failed_call)(void);
    uint64_t (*memory_peak)(int device);
    void (*memory_limit)(uint64_t bytes);
    void (*memory_piece)(uint64_t bytes);
    void (*memory_pages)(uint64_t bytes);
    uint64_t (*report_count)(void);
};

/* Opens the cuda device's driver; ends the program as skipped, with the reason, when it is not the simulated one. */
const struct simulated_gpu *simulated_gpu(void);

/* Whether this is the full run (tools/test --full sets LIKENESS_TEST_FULL). */
bool test_is_full(void);
