#include "kernels/cuda/runtime/memory.h"

#include <ctype.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

#define NCCL_BESIDE ((uint64_t)400000000) /* that NCCL is taken for where it is not running */
#define MOST_BESIDE ((uint64_t)1 << 30)   /* that a context with its code is taken for; NCCL for as much again */

/* A thread reads pages of files at some 5 GB/s, measured; a bus of today takes 25 to 55. */
#define COPY_THREADS 8
#define COPY_BYTES   ((size_t)1 << 20) /* of a thread at a time */

#define ADVICE                                                                                                         \
    "make the picture smaller or use fewer references, close other programs on the GPU, or use --device cpu; "         \
    "`likeness plan` shows what a run needs"

static double mib(uint64_t bytes) { return (double)bytes / (1 << 20); }

enum lk_code lk_cuda_alloc(const struct lk_cuda_device *cuda, size_t bytes, const char *what, lk_cu_address *out) {
    size_t available = 0, total = 0, wanted = lk_cuda_grains(&cuda->device, bytes ? bytes : 1);
    enum lk_code rc = LK_CU(memory_alloc, (out, wanted), "%s: %s of %zu bytes", cuda->device.name, what, wanted);
    if (rc) lk_cuda_weights_forget(cuda->weights);
    if (rc != LK_E_FIT) return rc;
    LK_TRY(LK_CU(memory_info, (&available, &total), "%s", cuda->device.name));
    return lk_fail(LK_E_FIT, "%s: %s: %s of %.1f MiB (%zu bytes) could not be had, %.1f of %.1f MiB are free; " ADVICE,
                   cuda->device.name, lk_cuda_symbols.memory_alloc, what, mib(wanted), wanted, mib(available),
                   mib(total));
}

const char *lk_cuda_pci_devices = "/sys/bus/pci/devices";

void lk_cuda_near_read(const char *pci_id, struct lk_cuda_near *out) {
    char path[512], list[4096];
    cpu_set_t allowed;
    int n = snprintf(path, sizeof path, "%s/", lk_cuda_pci_devices);
    *out = (struct lk_cuda_near){0};
    for (; *pci_id && n < (int)sizeof path - 20; pci_id++) path[n++] = (char)tolower((unsigned char)*pci_id);
    snprintf(path + n, sizeof path - (size_t)n, "/local_cpulist");
    FILE *f = fopen(path, "r");
    const bool got = f && fgets(list, sizeof list, f);
    if (f) fclose(f);
    if (!got || sched_getaffinity(0, sizeof allowed, &allowed)) return;
    for (char *at = list; isdigit((unsigned char)*at); at += *at == ',') {
        long first = strtol(at, &at, 10), last = *at == '-' ? strtol(at + 1, &at, 10) : first;
        for (; first <= last && first < CPU_SETSIZE; first++)
            if (CPU_ISSET(first, &allowed)) CPU_SET(first, &out->cpus);
    }
    out->n = CPU_COUNT(&out->cpus);
    if (out->n == CPU_COUNT(&allowed)) out->n = 0;
}

/* Keeps the thread near the device. False: it may run anywhere, and nothing is to be undone. */
static bool go_near(const struct lk_cuda_near *near, cpu_set_t *before) {
    return near->n && !sched_getaffinity(0, sizeof *before, before) &&
           !sched_setaffinity(0, sizeof near->cpus, &near->cpus);
}

static void go_back(bool moved, const cpu_set_t *before) {
    if (moved) sched_setaffinity(0, sizeof *before, before);
}

/* The driver takes pages where the thread that asks for them runs. */
enum lk_code lk_cuda_host_alloc(const struct lk_cuda_near *near, size_t bytes, void **out) {
    cpu_set_t before;
    const bool moves = go_near(near, &before);
    enum lk_code rc = LK_CU(host_alloc, (out, bytes, 0), "pinned host memory, %zu bytes", bytes);
    go_back(moves, &before);
    return rc;
}

void lk_cuda_host_copy(const struct lk_cuda_near *near, void *to, const void *from, size_t bytes) {
    const int most = omp_get_max_threads(), n_threads = most < COPY_THREADS ? most : COPY_THREADS;
    const size_t n = (bytes + COPY_BYTES - 1) / COPY_BYTES;
#pragma omp parallel num_threads(n_threads) if (n > 1)
    {
        cpu_set_t before;
        const bool moves = go_near(near, &before);
#pragma omp for schedule(dynamic)
        for (size_t i = 0; i < n; i++) {
            const size_t done = i * COPY_BYTES, left = bytes - done;
            memcpy((unsigned char *)to + done, (const unsigned char *)from + done,
                   left < COPY_BYTES ? left : COPY_BYTES);
        }
        go_back(moves, &before);
    }
}

enum lk_code lk_cuda_measure_beside(struct lk_cuda_device *cuda) {
    size_t available, total;
    LK_TRY(LK_CU(context_set, (cuda->context), "%s", cuda->device.name));
    LK_TRY(LK_CU(memory_info, (&available, &total), "%s", cuda->device.name));
    uint64_t taken = total - available; /* by others as well, if there are any */
    const uint64_t most = cuda->ranks ? 2 * MOST_BESIDE : MOST_BESIDE;
    cuda->beside = taken < most ? taken - cuda->device.memory_own : most;
    return LK_OK;
}

static uint64_t arena_room(const struct lk_device *dev, size_t bytes) { return lk_cuda_grains(dev, bytes ? bytes : 1); }

uint64_t lk_cuda_footprint(const struct lk_device *dev, size_t arena_bytes, const struct lk_ranges *weights) {
    return dev->memory_own + arena_room(dev, arena_bytes) + lk_cuda_weights_room(dev, weights);
}

enum lk_code lk_cuda_check_fit(struct lk_device *dev, size_t arena_bytes) {
    const struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    size_t available = 0, total = 0;
    uint64_t arena = lk_device_keeps_arena(dev, arena_bytes) ? 0 : arena_room(dev, arena_bytes);
    uint64_t weights = lk_cuda_weights_room(dev, &cuda->weights->ranges);
    if (!arena && !weights) return LK_OK;
    LK_TRY(LK_CU(context_set, (cuda->context), "%s", dev->name));
    LK_TRY(LK_CU(memory_info, (&available, &total), "%s", dev->name));
    uint64_t freed = dev->arena_block && arena ? arena_room(dev, dev->arena_block_bytes) : 0;
    if (arena + weights <= available + freed) return LK_OK;
    lk_cuda_weights_forget(cuda->weights);
    return lk_fail(LK_E_FIT,
                   "%s: %.1f MiB (%llu bytes) are needed, %.1f for weights and %.1f for activations, and %.1f of %.1f "
                   "MiB are free; " ADVICE,
                   dev->name, mib(arena + weights), (unsigned long long)(arena + weights), mib(weights), mib(arena),
                   mib(available + freed), mib(total));
}

enum lk_code lk_cuda_room(const struct lk_device *dev, uint64_t bytes, struct lk_device_room *out) {
    const struct lk_cuda_device *cuda = (const struct lk_cuda_device *)dev;
    size_t available = SIZE_MAX / 4, total = 0; /* of a device that is only described */
    if (cuda->context) {
        LK_TRY(LK_CU(context_set, (cuda->context), "%s", dev->name));
        LK_TRY(LK_CU(memory_info, (&available, &total), "%s", dev->name));
        available += cuda->weights->held + (dev->arena_block ? arena_room(dev, dev->arena_block_bytes) : 0);
    }
    out->needed_beside = cuda->beside + dev->memory_own;
    if (dev->budget.n_ranks && !cuda->ranks) out->needed_beside += NCCL_BESIDE;
    out->bytes = available;
    out->host_held = cuda->placed.active ? cuda->placed.placement.pinned_bytes : 0;
    if (!bytes) return LK_OK;
    uint64_t allowed = bytes > out->needed_beside ? bytes - out->needed_beside : 0;
    if (allowed < out->bytes) out->bytes = allowed;
    return LK_OK;
}
