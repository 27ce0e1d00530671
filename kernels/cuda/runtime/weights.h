/* Copies of host weights in device memory, found by host address (engine/device.h says which tensors are weights).
 *
 * Ranges of host memory are noted; overlapping ones become one, so that slices of a fused weight share its copy.
 * Loading takes one allocation for all that were noted since the last time. All copies are dropped when the weights'
 * epoch has changed: their host memory may be another model's by now. */
#pragma once

#include "engine/device.h"
#include "kernels/cuda/runtime/driver.h"

struct lk_cuda_weights {
    struct lk_ranges ranges; /* of host memory; their copy is a device address, 0: noted, not loaded */
    lk_cu_address *blocks;   /* device memory behind them */
    size_t n_blocks, blocks_capacity;
    uint64_t held; /* bytes of them */
    uint64_t epoch;
};

struct lk_cuda_device;

/* LK_E_NOMEM, LK_E_DEVICE. */
enum lk_code lk_cuda_weights_note(struct lk_cuda_device *cuda, const struct lk_ranges *ranges);
/* Bytes of device memory for those that have no copy yet. */
size_t lk_cuda_weights_room(const struct lk_device *dev, const struct lk_ranges *ranges);
enum lk_code lk_cuda_weights_load(struct lk_cuda_device *cuda);
/* Gives t, a weight in host memory, the addresses of its copies on the device; loads it if need be. */
enum lk_code lk_cuda_weights_find(struct lk_cuda_device *cuda, struct lk_tensor *t);
/* Forgets what was noted and has no copy: the run that it was for did not begin. */
void lk_cuda_weights_forget(struct lk_cuda_weights *weights);
/* Drops all copies. Nothing that reads them may be under way. */
void lk_cuda_weights_drop(struct lk_cuda_weights *weights);
