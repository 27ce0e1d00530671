/* Device memory: every allocation of the cuda device is made here, in whole grains (pages of 2 MiB on hardware), so
 * that what a plan adds up is what the driver hands out. Under it lie only the driver's own context and code.
 *
 * And the host's pinned memory, which lies in the NUMA node that the device is attached to: copies from another node
 * share the link between the two. */
#pragma once

#include <sched.h>

#include "engine/device.h"
#include "kernels/cuda/runtime/driver.h"

static inline size_t lk_cuda_grains(const struct lk_device *dev, size_t bytes) {
    return (bytes + dev->memory_grain - 1) / dev->memory_grain * dev->memory_grain;
}

struct lk_cuda_device;

/* Notes what the process takes on the device beside what is allocated here. */
enum lk_code lk_cuda_measure_beside(struct lk_cuda_device *cuda);

/* LK_E_FIT with what was needed, what is free and what to do. what: "activations". */
enum lk_code lk_cuda_alloc(const struct lk_cuda_device *cuda, size_t bytes, const char *what, lk_cu_address *out);

/* CPUs of a device's node that this process may use. */
struct lk_cuda_near {
    cpu_set_t cpus;
    int n; /* 0: not known, or all */
};
extern const char *lk_cuda_pci_devices; /* the folder in which the system describes them */
/* pci_id: as the driver writes it, "0000:3B:00.0". */
void lk_cuda_near_read(const char *pci_id, struct lk_cuda_near *out);
/* LK_E_FIT, LK_E_DEVICE. */
enum lk_code lk_cuda_host_alloc(const struct lk_cuda_near *near, size_t bytes, void **out);
/* memcpy by several threads, which run near the device: pages that were never written come from its node. */
void lk_cuda_host_copy(const struct lk_cuda_near *near, void *to, const void *from, size_t bytes);

/* As struct lk_device_memory has them. */
enum lk_code lk_cuda_check_fit(struct lk_device *dev, size_t arena_bytes);
enum lk_code lk_cuda_room(const struct lk_device *dev, uint64_t bytes, struct lk_device_room *out);
uint64_t lk_cuda_footprint(const struct lk_device *dev, size_t arena_bytes, const struct lk_ranges *weights);
