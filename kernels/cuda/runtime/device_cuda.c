/* The cuda device: opened through the driver, with one stream on which everything runs in order. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/modules.h"

#define LEAST_COMPUTE_MAJOR 8
#define LEAST_SHARED        (99 << 10)            /* bytes that a block of some kernel has on every device */
#define DESCRIBED_BESIDE    ((uint64_t)600000000) /* of a device that is not here */
#define DESCRIBED_GRAIN     ((uint64_t)2 << 20)   /* the same */

/* The context belongs to a thread; ops may be called from any. */
static enum lk_code enter(const struct lk_cuda_device *cuda) {
    return LK_CU(context_set, (cuda->context), "%s", cuda->device.name);
}

static enum lk_code cuda_alloc(struct lk_device *dev, size_t bytes, void **out) {
    lk_cu_address address;
    *out = NULL;
    LK_TRY(enter(lk_cuda_device_of(dev)));
    lk_cuda_plain_forget(lk_cuda_device_of(dev), 0, SIZE_MAX);
    LK_TRY(lk_cuda_alloc(lk_cuda_device_of(dev), bytes, "activations", &address));
    *out = (void *)(uintptr_t)address;
    return LK_OK;
}

static void cuda_free(struct lk_device *dev, void *block) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    if (cuda->lost) return;
    lk_cuda()->context_set(cuda->context);
    if (cuda->placed.copies) lk_cuda()->stream_synchronize(cuda->placed.copies);
    lk_cuda()->stream_synchronize(cuda->stream);
    lk_cuda()->memory_free((lk_cu_address)(uintptr_t)block);
}

static enum lk_code cuda_upload(struct lk_device *dev, void *dst, const void *host, size_t bytes) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    LK_TRY(enter(cuda));
    lk_cuda_plain_forget(cuda, (uintptr_t)dst, bytes);
    return lk_staging_upload(&cuda->staging, cuda->stream, (lk_cu_address)(uintptr_t)dst, host, bytes);
}

static enum lk_code cuda_download(struct lk_device *dev, void *host, const void *src, size_t bytes) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    LK_TRY(enter(cuda));
    for (size_t done = 0; done < bytes;) {
        size_t n = bytes - done < LK_STAGING_BYTES ? bytes - done : LK_STAGING_BYTES;
        unsigned char *slot;
        LK_TRY(lk_staging_slot(&cuda->staging, &slot));
        LK_TRY(LK_CU(copy_to_host, (slot, (lk_cu_address)(uintptr_t)src + done, n, cuda->stream),
                     "download of %zu bytes", n));
        LK_TRY(lk_cuda_wait(cuda, NULL));
        memcpy((unsigned char *)host + done, slot, n);
        done += n;
    }
    return LK_OK;
}

static enum lk_code cuda_note_weights(struct lk_device *dev, const struct lk_ranges *weights) {
    LK_TRY(enter(lk_cuda_device_of(dev)));
    return lk_cuda_weights_note(lk_cuda_device_of(dev), weights);
}

static enum lk_code cuda_load_weights(struct lk_device *dev) {
    LK_TRY(enter(lk_cuda_device_of(dev)));
    return lk_cuda_weights_load(lk_cuda_device_of(dev));
}

static void cuda_destroy(struct lk_device *dev) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    const struct lk_cuda_driver *driver = lk_cuda();
    if (cuda->lost) {
        lk_cuda_ranks_close(cuda);
        lk_cuda_placed_drop(cuda);
    } else if (cuda->context) {
        driver->context_set(cuda->context);
        lk_cuda_ranks_close(cuda);
        if (cuda->placed.copies) driver->stream_synchronize(cuda->placed.copies);
        if (cuda->stream) driver->stream_synchronize(cuda->stream);
        lk_cuda_rivals_close(dev);
        lk_cuda_placed_drop(cuda);
        if (cuda->weights) lk_cuda_weights_drop(cuda->weights);
        if (cuda->report) driver->memory_free(cuda->report);
        lk_staging_close(&cuda->staging);
        for (size_t i = 0; cuda->modules && i < lk_cuda_n_modules; i++)
            if (cuda->modules[i]) driver->module_unload(cuda->modules[i]);
        if (cuda->stream) driver->stream_destroy(cuda->stream);
        driver->context_set(NULL);
        driver->context_release(cuda->ordinal);
    }
    if (cuda->weights) {
        lk_free(cuda->weights->ranges.entries);
        lk_free(cuda->weights->blocks);
    }
    lk_free(cuda->weights);
    lk_free(cuda->modules);
}

static void cuda_rest(struct lk_device *dev) {
    struct lk_cuda_readers *readers = lk_cuda_device_of(dev)->placed.readers;
    if (readers) lk_cuda_readers_forget(readers);
}

static const struct lk_device_memory memory = {
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .destroy = cuda_destroy,
    .note_weights = cuda_note_weights,
    .check_fit = lk_cuda_check_fit,
    .load_weights = cuda_load_weights,
    .footprint = lk_cuda_footprint,
    .stage = lk_cuda_stage,
    .rest = cuda_rest,
    .room = lk_cuda_room,
    .place = lk_cuda_place,
    .leave = lk_cuda_leave,
    .joined = lk_cuda_joined,
};

/* Copies of an op's tensors with the device's addresses: pointers[i] is set to tensors[i]. The first tensor of an op
 * that has several is written. */
static enum lk_code resolve(struct lk_device *dev, const struct lk_tensor **pointers, struct lk_tensor *tensors,
                            int n) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    LK_TRY(enter(cuda));
    cuda->packed = NULL;
    for (int i = 0; i < n; i++) {
        if (!pointers[i]) continue;
        tensors[i] = *pointers[i];
        pointers[i] = &tensors[i];
        if (lk_arena_holds(&dev->arena, tensors[i].data)) continue;
        if (i == 0 && n > 1) return lk_fail(LK_E_INTERNAL, "%s: an op's output is not in the arena", dev->name);
        if (lk_tensor_is_quantized(&tensors[i])) cuda->packed = tensors[i].data;
        LK_TRY(lk_cuda_weights_find(cuda, &tensors[i]));
    }
    return LK_OK;
}

/* What the op writes to; an op with a quantised weight sees to its scratch itself. */
static void forget_written(struct lk_cuda_device *cuda, const struct lk_tensor *const *tensors, int n,
                           const void *scratch, size_t scratch_bytes) {
    if (scratch && !cuda->packed) lk_cuda_plain_forget(cuda, (uintptr_t)scratch, scratch_bytes);
    for (int i = 0; i < n; i++) {
        struct lk_tensor_part parts[LK_TENSOR_PARTS];
        const int n_parts = tensors[i] ? lk_tensor_parts(tensors[i], parts) : 0;
        for (int k = 0; k < n_parts; k++) lk_cuda_plain_forget(cuda, (uintptr_t)parts[k].data, parts[k].bytes);
    }
}

/* Tells a driver that wants to know it which memory an op's kernels may use: its tensors, its scratch, matrices of
 * weights. */
static void tell(const struct lk_cuda_device *cuda, const struct lk_tensor *const *tensors, int n, const void *scratch,
                 size_t scratch_bytes) {
    struct lk_cu_range ranges[LK_TENSOR_PARTS * 16 + 1 + LK_CUDA_PLAIN];
    size_t n_ranges = 0;
    if (!lk_cuda()->tensors) return;
    for (int i = 0; n && cuda->packed && i < LK_CUDA_PLAIN; i++)
        if (cuda->plain[i].weight) ranges[n_ranges++] = (struct lk_cu_range){cuda->plain[i].at, cuda->plain[i].bytes};
    if (scratch) ranges[n_ranges++] = (struct lk_cu_range){(uintptr_t)scratch, scratch_bytes};
    for (int i = 0; i < n; i++) {
        struct lk_tensor_part parts[LK_TENSOR_PARTS];
        const int n_parts = tensors[i] ? lk_tensor_parts(tensors[i], parts) : 0;
        for (int k = 0; k < n_parts; k++)
            ranges[n_ranges++] = (struct lk_cu_range){(uintptr_t)parts[k].data, parts[k].bytes};
    }
    lk_cuda()->tensors(ranges, n_ranges);
}

#define RESOLVED_OP(name, last)                                                                                        \
    static enum lk_code run_##name(struct lk_device *dev, const struct lk_##name *op, void *scratch) {                 \
        union {                                                                                                        \
            struct lk_##name op;                                                                                       \
            const struct lk_tensor *tensors[LK_TENSORS_##name];                                                        \
        } resolved = {.op = *op};                                                                                      \
        struct lk_tensor tensors[LK_TENSORS_##name];                                                                   \
        LK_TRY(resolve(dev, resolved.tensors, tensors, LK_TENSORS_##name));                                            \
        const size_t scratch_bytes = dev->table->name.scratch ? dev->table->name.scratch(dev, op) : 0;                 \
        forget_written(lk_cuda_device_of(dev), resolved.tensors, LK_TENSORS_##name, scratch, scratch_bytes);           \
        tell(lk_cuda_device_of(dev), resolved.tensors, LK_TENSORS_##name, scratch, scratch_bytes);                     \
        const enum lk_code rc = lk_cuda_##name(dev, &resolved.op, scratch);                                            \
        tell(lk_cuda_device_of(dev), NULL, 0, NULL, 0);                                                                \
        return rc;                                                                                                     \
    }
LK_OPS(RESOLVED_OP)

#define TABLE_ENTRY(name, last) .name.run = run_##name,
static const struct lk_op_table table = {
    LK_OPS(TABLE_ENTRY).linear.scratch = lk_cuda_linear_scratch,
    .conv2d.scratch = lk_cuda_conv2d_scratch,
    .group_norm.scratch = lk_cuda_group_norm_scratch,
    .response_norm.scratch = lk_cuda_response_norm_scratch,
};

static enum lk_code attribute(const struct lk_cuda_device *cuda, int which, int *out) {
    return LK_CU(device_attribute, (out, which, cuda->ordinal), "%s", cuda->device.name);
}

static enum lk_code find_device(int index, lk_cu_device *ordinal, struct lk_cuda_info *info) {
    LK_TRY(LK_CU(device_get, (ordinal, index), "device %d", index));
    LK_TRY(LK_CU(device_name, (info->name, (int)sizeof info->name, *ordinal), "device %d", index));
    LK_TRY(LK_CU(device_memory, (&info->memory_bytes, *ordinal), "device %d", index));
    LK_TRY(
        LK_CU(device_attribute, (&info->compute_major, LK_CU_ATTRIBUTE_COMPUTE_MAJOR, *ordinal), "device %d", index));
    LK_TRY(
        LK_CU(device_attribute, (&info->compute_minor, LK_CU_ATTRIBUTE_COMPUTE_MINOR, *ordinal), "device %d", index));
    LK_TRY(LK_CU(device_attribute, (&info->block_bytes, LK_CU_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK_OPTIN, *ordinal),
                 "device %d", index));
    return LK_CU(driver_version, (&info->driver_version), "device %d", index);
}

enum lk_code lk_cuda_info(int index, int *n_devices, struct lk_cuda_info *out) {
    int n = 0;
    lk_cu_device ordinal;
    *n_devices = 0;
    if (!lk_cuda_n_modules)
        return lk_fail(LK_E_DEVICE, "this build has no CUDA kernels (it was built without nvcc); use --device cpu");
    LK_TRY(lk_cuda_driver_open());
    LK_TRY(LK_CU(device_count, (&n), "counting devices"));
    if (index >= n)
        return lk_fail(LK_E_DEVICE, "no device %d: the driver has %d; `likeness devices` lists them", index, n);
    if (index >= 0) LK_TRY(find_device(index, &ordinal, out));
    *n_devices = n;
    return LK_OK;
}

static enum lk_code load_modules(struct lk_cuda_device *cuda) {
    cuda->modules = lk_calloc(lk_cuda_n_modules, sizeof *cuda->modules);
    if (!cuda->modules) return lk_fail(LK_E_NOMEM, "%s: out of memory", cuda->device.name);
    for (size_t i = 0; i < lk_cuda_n_modules; i++)
        LK_TRY(LK_CU(module_load, (&cuda->modules[i], lk_cuda_modules[i].fatbin), "kernels of %s",
                     lk_cuda_modules[i].name));
    return LK_OK;
}

/* Here, while no stream has work: a driver that loads lazily waits for idle streams at a kernel's first look-up, under
 * a lock that other ranks' launches need (XLA f9df0123, nccl#1428). */
static enum lk_code look_up_kernels(struct lk_cuda_device *cuda) {
    struct lk_cuda_function *f;
    for (size_t i = 0; i < lk_cuda_n_kernels; i++)
        LK_TRY(lk_cuda_function(&cuda->device, lk_cuda_kernels[i].module, lk_cuda_kernels[i].name, &f));
    return LK_OK;
}

/* What the kernels of this build need, said at once and not by the first launch that fails. */
enum lk_code lk_cuda_usable(int index, const struct lk_cuda_info *info) {
    if (info->compute_major < LEAST_COMPUTE_MAJOR)
        return lk_fail(LK_E_DEVICE, "cuda:%d: %s has compute capability %d.%d; 8.0 or newer is needed", index,
                       info->name, info->compute_major, info->compute_minor);
    if (info->driver_version / 1000 < lk_cuda_toolkit_major)
        return lk_fail(
            LK_E_DEVICE,
            "cuda:%d: the driver is of CUDA %d.%d and the kernels of this build need CUDA %d or newer; update "
            "the driver, or build with an older toolkit",
            index, info->driver_version / 1000, info->driver_version % 1000 / 10, lk_cuda_toolkit_major);
    if (info->block_bytes < LEAST_SHARED)
        return lk_fail(LK_E_DEVICE,
                       "cuda:%d: %s (compute capability %d.%d) gives a block at most %d KiB of shared memory and the "
                       "kernels need %d, which NVIDIA's GPUs of 8.0 and newer have; use another device or --device cpu",
                       index, info->name, info->compute_major, info->compute_minor, info->block_bytes >> 10,
                       LEAST_SHARED >> 10);
    return LK_OK;
}

static void set_grain(struct lk_device *dev, uint64_t bytes) {
    dev->memory_grain = bytes ? bytes : 1;
    dev->memory_own = lk_cuda_grains(dev, LK_CUDA_REPORT_BYTES);
}

static enum lk_code open_device(struct lk_cuda_device *cuda, int index) {
    struct lk_cuda_info info;
    char pci_id[32];
    int n;
    LK_TRY(lk_cuda_info(index, &n, &info));
    LK_TRY(lk_cuda_usable(index, &info));
    cuda->most_shared = (size_t)info.block_bytes;
    snprintf(cuda->device.name, sizeof cuda->device.name, "cuda:%d (%.80s)", index, info.name);
    snprintf(cuda->device.architecture, sizeof cuda->device.architecture, "sm_%d%d", info.compute_major,
             info.compute_minor);
    LK_TRY(LK_CU(device_get, (&cuda->ordinal, index), "device %d", index));
    LK_TRY(LK_CU(device_pci, (pci_id, (int)sizeof pci_id, cuda->ordinal), "device %d", index));
    lk_cuda_near_read(pci_id, &cuda->near);
    LK_TRY(attribute(cuda, LK_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, &cuda->n_multiprocessors));
    cuda->weights = lk_calloc(1, sizeof *cuda->weights);
    if (!cuda->weights) return lk_fail(LK_E_NOMEM, "%s: out of memory", cuda->device.name);
    cuda->weights->epoch = lk_weights_epoch();
    LK_TRY(LK_CU(context_retain, (&cuda->context, cuda->ordinal), "%s", cuda->device.name));
    LK_TRY(enter(cuda));
    LK_TRY(LK_CU(stream_create, (&cuda->stream, LK_CU_STREAM_NON_BLOCKING), "%s", cuda->device.name));
    LK_TRY(lk_staging_open(&cuda->staging, LK_CUDA_REPORT_BYTES));
    const struct lk_cu_allocation own = {
        .type = LK_CU_ALLOCATION_PINNED, .location_type = LK_CU_LOCATION_DEVICE, .location = cuda->ordinal};
    size_t grain;
    LK_TRY(LK_CU(memory_grain, (&grain, &own, 0), "%s", cuda->device.name));
    set_grain(&cuda->device, grain);
    LK_TRY(lk_cuda_alloc(cuda, LK_CUDA_REPORT_BYTES, "report of the kernels", &cuda->report));
    LK_TRY(LK_CU(set_bytes, (cuda->report, 0, sizeof(struct lk_cuda_report), cuda->stream), "%s", cuda->device.name));
    LK_TRY(load_modules(cuda));
    LK_TRY(look_up_kernels(cuda));
    return lk_cuda_measure_beside(cuda);
}

static enum lk_code new_device(struct lk_cuda_device **out) {
    struct lk_cuda_device *cuda = *out = lk_calloc(1, sizeof *cuda);
    if (!cuda) return lk_fail(LK_E_NOMEM, "cuda device: out of memory");
    cuda->device.kind = LK_DEVICE_CUDA;
    cuda->device.n_threads = 1;
    cuda->device.table = &table;
    cuda->device.memory = &memory;
    return LK_OK;
}

enum lk_code lk_device_cuda_describe(const char *architecture, struct lk_device **out) {
    static const struct {
        const char *architecture, *name;
        int n_multiprocessors;
    } known[] = {{"sm_80", "A100", 108},
                 {"sm_86", "RTX 3090", 82},
                 {"sm_89", "RTX 4090", 128},
                 {"sm_90", "H100", 132},
                 {"sm_120", "RTX 5090", 170}};
    struct lk_cuda_device *cuda;
    *out = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(architecture, known[i].architecture)) continue;
        LK_TRY(new_device(&cuda));
        snprintf(cuda->device.name, sizeof cuda->device.name, "%s (%s, described)", architecture, known[i].name);
        snprintf(cuda->device.architecture, sizeof cuda->device.architecture, "%s", architecture);
        cuda->n_multiprocessors = known[i].n_multiprocessors;
        cuda->beside = DESCRIBED_BESIDE;
        set_grain(&cuda->device, DESCRIBED_GRAIN);
        *out = &cuda->device;
        return LK_OK;
    }
    return lk_fail(LK_E_USAGE, "device %s: expected " LK_CUDA_DESCRIBED, architecture);
}

enum lk_code lk_device_cuda_create(int index, struct lk_device **out) {
    struct lk_cuda_device *cuda;
    *out = NULL;
    if (index < 0) return lk_fail(LK_E_USAGE, "cuda:%d: expected a device from 0 on", index);
    LK_TRY(new_device(&cuda));
    enum lk_code rc = open_device(cuda, index);
    if (rc) {
        struct lk_error error;
        lk_error_get(&error, rc); /* closing may set others */
        lk_device_free(&cuda->device);
        return lk_error_set(&error);
    }
    *out = &cuda->device;
    return LK_OK;
}
