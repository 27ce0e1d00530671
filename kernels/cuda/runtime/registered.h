/* Pages of mapped files that are registered with the driver, so that copies of weights read them where they are: no
 * second copy in host memory, no thread that fills slots. Only pages that may be read and not written are asked for,
 * since those of a mapping that may be written are copied. Most drivers refuse (device attribute 113 is 0).
 *
 * What is registered is a second mapping of the same pages, which this module makes and ends: a model's own mapping may
 * go first. */
#pragma once

#include "engine/placement.h"
#include "kernels/cuda/runtime/driver.h"

struct lk_cuda_device;

struct lk_cuda_registered {
    void *pages;
    size_t bytes;
};

/* Registers what a stage of the placement sends and sets `pinned` of the device's struct lk_cuda_placed to where it now
 * is. False when anything is left for readers: what that is has no `pinned`. */
bool lk_cuda_register_stage(struct lk_cuda_device *cuda, const struct lk_placement *placement, int stage);
/* Pages of the process's own, huge where the system has such, for what is to be pinned: to be written first, by threads
 * near the device, and then pinned: four times as fast as memory that the driver allocates (bench/RESULTS.md). LK_E_FIT
 * where the system or the driver has no more; pages are then given back. */
enum lk_code lk_cuda_pages_new(size_t bytes, struct lk_cuda_registered *out);
enum lk_code lk_cuda_pages_pin(const struct lk_cuda_registered *pages);
/* Nothing that reads the pages may be under way. */
void lk_cuda_unregister(const struct lk_cuda_registered *registered);
