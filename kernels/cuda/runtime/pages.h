/* Pages of the process's own, huge where the system has such, for what is to be pinned: to be written first, by threads
 * near the device, and then pinned: four times as fast as memory that the driver allocates (bench/RESULTS.md). */
#pragma once

#include "kernels/cuda/runtime/driver.h"

struct lk_cuda_pages {
    void *pages;
    size_t bytes;
};

/* LK_E_FIT where the system or the driver has no more; pages are then given back. */
enum lk_code lk_cuda_pages_new(size_t bytes, struct lk_cuda_pages *out);
enum lk_code lk_cuda_pages_pin(const struct lk_cuda_pages *pages);
/* Nothing that reads the pages may be under way. */
void lk_cuda_pages_free(const struct lk_cuda_pages *pages);
