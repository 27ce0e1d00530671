/* What the simulated GPU lets tests see and do (tools/gpusim/gpusim.h). A real driver has none of these hooks: a test
 * then compares pictures and bits, and leaves out counts, peaks of memory and injected failures. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct simulated_gpu {
    bool hooks; /* false: the functions below do nothing and return 0 */
    uint64_t (*calls)(const char *name);
    void (*fail_at)(const char *name, uint64_t n, int result, bool sticky);
    const char *(*failed_call)(void);
    uint64_t (*memory_peak)(int device);
    void (*memory_limit)(uint64_t bytes);
    void (*memory_piece)(uint64_t bytes);
    void (*memory_pages)(uint64_t bytes);
    uint64_t (*report_count)(void);
};

/* Opens the cuda device's driver and looks up the hooks; says on stdout when there are none. LIKENESS_TEST_NO_HOOKS=1
 * hides those of the simulated GPU. Ends the program as skipped where there is no device. */
const struct simulated_gpu *simulated_gpu(void);

/* Whether this is the full run (tools/test --full sets LIKENESS_TEST_FULL). */
bool test_is_full(void);
