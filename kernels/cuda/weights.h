/* Copies of host weights in device memory, found by host address (engine/device.h says which tensors are weights).
 *
 * Ranges of host memory are noted; overlapping ones become one, so that slices of a fused weight share its copy.
 * Loading takes one allocation for all that were noted since the last time. All copies are dropped when the weights'
 * epoch has changed: their host memory may be another model's by now. */
#pragma once

#include "engine/device.h"
#include "kernels/cuda/driver.h"

struct lk_cuda_weight {
    uintptr_t host;
    size_t bytes;
    lk_cu_address device; /* 0: noted, not loaded */
};

struct lk_cuda_weights {
    struct lk_cuda_weight *entries; /* by host address; ranges do not overlap */
    size_t n, capacity;
    lk_cu_address *blocks; /* device memory behind them */
    size_t n_blocks, blocks_capacity;
    uint64_t epoch;
    enum lk_code failed; /* while noting: reported by the next load */
};

struct lk_cuda_device;

void lk_cuda_weights_note(const struct lk_cuda_device *cuda, const struct lk_tensor *t);
enum lk_code lk_cuda_weights_load(struct lk_cuda_device *cuda);
/* The device address of t, a weight in host memory; loads it if need be. */
enum lk_code lk_cuda_weights_find(struct lk_cuda_device *cuda, const struct lk_tensor *t, void **out);
/* Drops all copies. Nothing that reads them may be under way. */
void lk_cuda_weights_drop(struct lk_cuda_weights *weights);
