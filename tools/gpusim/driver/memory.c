/* Allocation of device and pinned host memory. */
#include "driver/state.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { READ_ONLY = 8 }; /* of flags for registering */

static CUresult device_new(struct gpusim_context *context, CUdeviceptr *out, size_t bytes) {
    if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
    struct gpusim_allocation *r = gpusim_memory_new(GPUSIM_MEMORY_DEVICE, context->device, bytes, NULL);
    if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = r->base;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
    ENTER_CONTEXT();
    LEAVE(device_new(context, out, bytes));
}
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element) {
    ENTER_CONTEXT();
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16)) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *pitch = (width + 511) & ~(size_t)511;
    LEAVE(device_new(context, out, *pitch * height));
}

/* Waits for all work, as the hardware's driver does. */
EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
    ENTER_CONTEXT();
    if (!address) LEAVE(CUDA_SUCCESS);
    struct gpusim_allocation *r = gpusim_memory_find(address);
    if (!r || r->base != address || r->kind != GPUSIM_MEMORY_DEVICE) LEAVE(CUDA_ERROR_INVALID_VALUE);
    CUresult result = gpusim_drain(context, NULL);
    gpusim_memory_free(r);
    LEAVE(result);
}

EXPORT CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
    ENTER_CONTEXT();
    (void)context;
    if (!out || !bytes || flags > 7) LEAVE(CUDA_ERROR_INVALID_VALUE);
    struct gpusim_allocation *r = gpusim_memory_new(GPUSIM_MEMORY_PINNED, -1, bytes, NULL);
    if (!r) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    *out = r->host;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuMemAllocHost_v2(void **out, size_t bytes) { return cuMemHostAlloc(out, bytes, 0); }
EXPORT CUresult cuMemFreeHost(void *host) {
    ENTER_CONTEXT();
    struct gpusim_allocation *r = gpusim_memory_find((uint64_t)(uintptr_t)host);
    if (!r || r->host != host || r->kind != GPUSIM_MEMORY_PINNED) LEAVE(CUDA_ERROR_INVALID_VALUE);
    CUresult result = gpusim_drain(context, NULL);
    gpusim_memory_free(r);
    LEAVE(result);
}
EXPORT CUresult cuMemHostRegister_v2(void *host, size_t bytes, unsigned flags) {
    ENTER_CONTEXT();
    (void)context;
    if (!host || !bytes || flags > 15) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (flags & READ_ONLY) LEAVE(CUDA_ERROR_NOT_SUPPORTED); /* as where attribute 113 is 0 */
    uint64_t first = (uint64_t)(uintptr_t)host;
    struct gpusim_allocation *near = gpusim_memory_near(first, bytes);
    if (gpusim_memory_find(first) || gpusim_memory_find(first + bytes - 1) ||
        (near && !near->freed && near->base >= first && near->base < first + bytes))
        LEAVE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    struct gpusim_allocation *r = gpusim_memory_new(GPUSIM_MEMORY_REGISTERED, -1, bytes, host);
    if (r) gpusim_memory_pins(r);
    LEAVE(r ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
/* The pages must be there yet: on hardware they would be read on, whatever has come to their place. */
EXPORT CUresult cuMemHostUnregister(void *host) {
    ENTER_CONTEXT();
    struct gpusim_allocation *r = gpusim_memory_find((uint64_t)(uintptr_t)host);
    if (!r || r->host != host || r->kind != GPUSIM_MEMORY_REGISTERED) LEAVE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)host / page * page;
    if (msync((void *)first, (uintptr_t)host + r->bytes - first, MS_ASYNC)) {
        struct gpusim_report report = {.kind = GPUSIM_REPORT_USE_AFTER_FREE,
                                       .allocation = r->id,
                                       .allocation_base = r->base,
                                       .allocation_bytes = r->bytes,
                                       .what = "registered memory was unmapped before it was unregistered"};
        gpusim_report_emit(&report);
    }
    CUresult result = gpusim_drain(context, NULL);
    gpusim_memory_free(r);
    LEAVE(result);
}
EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *host, unsigned flags) {
    ENTER_CONTEXT();
    (void)context;
    if (!out || flags) LEAVE(CUDA_ERROR_INVALID_VALUE);
    struct gpusim_allocation *r = gpusim_memory_find((uint64_t)(uintptr_t)host);
    if (!r || r->device >= 0) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *out = (CUdeviceptr)(uintptr_t)host;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuMemHostGetFlags(unsigned *flags, void *host) {
    ENTER_CONTEXT();
    (void)context;
    struct gpusim_allocation *r = gpusim_memory_find((uint64_t)(uintptr_t)host);
    if (!flags || !r || r->kind != GPUSIM_MEMORY_PINNED) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *flags = 2;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    ENTER_CONTEXT();
    if (!available || !total) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *total = gpusim_memory_capacity();
    *available = gpusim_memory_free_bytes(context->device);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop, unsigned option) {
    ENTER();
    if (!bytes || !prop || option > 1 || prop->type != 1 || prop->location.type != 1) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *bytes = gpusim_memory_grain();
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
    ENTER_CONTEXT();
    (void)context;
    struct gpusim_allocation *r = gpusim_memory_find(address);
    if (!r) LEAVE(CUDA_ERROR_NOT_FOUND);
    if (base) *base = r->base;
    if (bytes) *bytes = r->bytes;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuPointerGetAttribute(void *out, unsigned attribute, CUdeviceptr address) {
    ENTER();
    struct gpusim_allocation *r = gpusim_memory_find(address);
    if (!out) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!r) LEAVE(CUDA_ERROR_INVALID_VALUE);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = r->device >= 0 ? gpusim_driver.primary[r->device] : NULL;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = r->device >= 0 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = address;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (r->device >= 0) LEAVE(CUDA_ERROR_INVALID_VALUE);
        *(void **)out = (void *)(uintptr_t)address;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)out = r->id;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)out = 0;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = r->device >= 0 ? r->device : 0;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)out = r->base;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)out = r->bytes;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)out = 1;
        break;
    default:
        LEAVE(gpusim_not_supported("this attribute of cuPointerGetAttribute"));
    }
    LEAVE(CUDA_SUCCESS);
}
