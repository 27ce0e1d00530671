/* Copies and sets. Asynchronous ones are queued: pinned memory is read and written when the copy is done; pageable
 * sources are read at the call, and copies to pageable memory are finished when the call returns. */
#include "driver/state.h"

#include <stdlib.h>
#include <string.h>

struct copy {
    uint64_t target, source, target_pitch, source_pitch, width, height;
    bool to_host, from_host; /* as the caller says; false: device, or found out from the address */
};

/* Is the address one that a device knows (device, pinned, registered)? */
static bool known(uint64_t address) { return gpusim_memory_find(address) != NULL; }

static CUresult check_range(uint64_t address, uint64_t pitch, const struct copy *c, bool host) {
    if (host) return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    uint64_t span = (c->height - 1) * pitch + c->width;
    return gpusim_memory_at(address, span) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult queue_copy(struct gpusim_context *context, struct gpusim_stream *stream, const struct copy *c,
                           bool wait) {
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!c->width || !c->height) return CUDA_SUCCESS;
    bool from_pageable = c->from_host && !known(c->source), to_pageable = c->to_host && !known(c->target);
    CUresult result = check_range(c->target, c->target_pitch, c, to_pageable);
    if (!result) result = check_range(c->source, c->source_pitch, c, from_pageable);
    if (result) return result;
    struct gpusim_item *item = gpusim_item_new(context, GPUSIM_WORK_COPY);
    if (!item) return CUDA_ERROR_OUT_OF_MEMORY;
    item->target = c->target, item->source = c->source;
    item->target_pitch = c->target_pitch, item->source_pitch = c->source_pitch;
    item->width = c->width, item->height = c->height;
    item->source_host = from_pageable, item->target_host = to_pageable;
    if (from_pageable && !wait) {
        item->staged = malloc(c->width * c->height);
        if (!item->staged) {
            free(item);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        for (uint64_t y = 0; y < c->height; y++)
            memcpy(item->staged + y * c->width, (const void *)(uintptr_t)(c->source + y * c->source_pitch), c->width);
    }
    gpusim_enqueue(stream, item);
    if (wait || to_pageable) return gpusim_drain(context, stream);
    gpusim_some_work(context);
    return CUDA_SUCCESS;
}

static CUresult line(uint64_t target, uint64_t source, size_t bytes, bool to_host, bool from_host, CUstream stream,
                     bool wait) {
    ENTER_CONTEXT_AS(to_host ? (from_host ? "cuMemcpy" : "cuMemcpyDtoH") : from_host ? "cuMemcpyHtoD" : "cuMemcpyDtoD");
    struct copy c = {target, source, bytes, bytes, bytes, 1, to_host, from_host};
    LEAVE(queue_copy(context, gpusim_stream_of(context, stream), &c, wait));
}
#define HOST(p) ((uint64_t)(uintptr_t)(p))
EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *h, size_t n) {
    return line(d, HOST(h), n, false, true, NULL, true);
}
EXPORT CUresult cuMemcpyDtoH_v2(void *h, CUdeviceptr d, size_t n) {
    return line(HOST(h), d, n, true, false, NULL, true);
}
EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr d, CUdeviceptr s, size_t n) {
    return line(d, s, n, false, false, NULL, true);
}
EXPORT CUresult cuMemcpy(CUdeviceptr d, CUdeviceptr s, size_t n) { return line(d, s, n, true, true, NULL, true); }
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *h, size_t n, CUstream stream) {
    return line(d, HOST(h), n, false, true, stream, false);
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void *h, CUdeviceptr d, size_t n, CUstream stream) {
    return line(HOST(h), d, n, true, false, stream, false);
}
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream stream) {
    return line(d, s, n, false, false, stream, false);
}
EXPORT CUresult cuMemcpyAsync(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream stream) {
    return line(d, s, n, true, true, stream, false);
}
EXPORT CUresult cuMemcpyPeer(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n) {
    (void)dc, (void)sc;
    return line(d, s, n, false, false, NULL, true);
}
EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream stream) {
    (void)dc, (void)sc;
    return line(d, s, n, false, false, stream, false);
}

static CUresult rectangle(const CUDA_MEMCPY2D *r, CUstream stream, bool wait) {
    ENTER_CONTEXT_AS("cuMemcpy2D");
    if (!r || r->srcMemoryType == CU_MEMORYTYPE_ARRAY || r->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        LEAVE(r ? gpusim_not_supported("cuMemcpy2D with arrays") : CUDA_ERROR_INVALID_VALUE);
    bool from_host = r->srcMemoryType == CU_MEMORYTYPE_HOST, to_host = r->dstMemoryType == CU_MEMORYTYPE_HOST;
    uint64_t source = from_host ? HOST(r->srcHost) : r->srcDevice, target = to_host ? HOST(r->dstHost) : r->dstDevice;
    uint64_t source_pitch = r->srcPitch ? r->srcPitch : r->WidthInBytes,
             target_pitch = r->dstPitch ? r->dstPitch : r->WidthInBytes;
    if (source_pitch < r->srcXInBytes + r->WidthInBytes || target_pitch < r->dstXInBytes + r->WidthInBytes)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    struct copy c = {target + r->dstY * target_pitch + r->dstXInBytes,
                     source + r->srcY * source_pitch + r->srcXInBytes,
                     target_pitch,
                     source_pitch,
                     r->WidthInBytes,
                     r->Height,
                     to_host || r->dstMemoryType == CU_MEMORYTYPE_UNIFIED,
                     from_host || r->srcMemoryType == CU_MEMORYTYPE_UNIFIED};
    LEAVE(queue_copy(context, gpusim_stream_of(context, stream), &c, wait));
}
EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *r) { return rectangle(r, NULL, true); }
EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *r) { return rectangle(r, NULL, true); }
EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *r, CUstream stream) { return rectangle(r, stream, false); }

/* A box is one rectangle after the other. */
static CUresult box(const CUDA_MEMCPY3D *r, CUstream stream, bool wait) {
    if (!r) return CUDA_ERROR_INVALID_VALUE;
    if (r->srcMemoryType == CU_MEMORYTYPE_ARRAY || r->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return gpusim_not_supported("cuMemcpy3D with arrays");
    size_t from_height = r->srcHeight ? r->srcHeight : r->Height, to_height = r->dstHeight ? r->dstHeight : r->Height;
    if (from_height < r->srcY + r->Height || to_height < r->dstY + r->Height) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY2D slice = {.srcXInBytes = r->srcXInBytes,
                           .srcMemoryType = r->srcMemoryType,
                           .srcHost = r->srcHost,
                           .srcDevice = r->srcDevice,
                           .srcPitch = r->srcPitch ? r->srcPitch : r->WidthInBytes,
                           .dstXInBytes = r->dstXInBytes,
                           .dstMemoryType = r->dstMemoryType,
                           .dstHost = r->dstHost,
                           .dstDevice = r->dstDevice,
                           .dstPitch = r->dstPitch ? r->dstPitch : r->WidthInBytes,
                           .WidthInBytes = r->WidthInBytes,
                           .Height = r->Height};
    CUresult result = CUDA_SUCCESS;
    for (size_t left = r->Depth; left-- && !result;) { /* the last first: if that is inside, all are */
        slice.srcY = r->srcY + (r->srcZ + left) * from_height;
        slice.dstY = r->dstY + (r->dstZ + left) * to_height;
        result = rectangle(&slice, stream, wait && !left);
    }
    return result;
}
EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *r) { return box(r, NULL, true); }
EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *r, CUstream stream) { return box(r, stream, false); }

static CUresult fill(uint64_t target, size_t pitch, uint32_t value, uint32_t size, size_t width, size_t height,
                     CUstream stream, bool wait) {
    ENTER_CONTEXT_AS("cuMemset");
    struct gpusim_stream *s = gpusim_stream_of(context, stream);
    if (!s) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    if (!width || !height) LEAVE(CUDA_SUCCESS);
    uint64_t bytes = (uint64_t)width * size;
    if (target % size || (height > 1 && pitch < bytes) || !gpusim_memory_at(target, (height - 1) * pitch + bytes))
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    struct gpusim_item *item = gpusim_item_new(context, GPUSIM_WORK_SET);
    if (!item) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    item->target = target, item->target_pitch = pitch;
    item->width = bytes, item->height = height;
    item->value = value, item->value_bytes = size;
    gpusim_enqueue(s, item);
    if (wait) LEAVE(gpusim_drain(context, s));
    gpusim_some_work(context);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuMemsetD8_v2(CUdeviceptr d, unsigned char v, size_t n) { return fill(d, 0, v, 1, n, 1, NULL, true); }
EXPORT CUresult cuMemsetD16_v2(CUdeviceptr d, unsigned short v, size_t n) { return fill(d, 0, v, 2, n, 1, NULL, true); }
EXPORT CUresult cuMemsetD32_v2(CUdeviceptr d, unsigned v, size_t n) { return fill(d, 0, v, 4, n, 1, NULL, true); }
EXPORT CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream s) {
    return fill(d, 0, v, 1, n, 1, s, false);
}
EXPORT CUresult cuMemsetD16Async(CUdeviceptr d, unsigned short v, size_t n, CUstream s) {
    return fill(d, 0, v, 2, n, 1, s, false);
}
EXPORT CUresult cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream s) {
    return fill(d, 0, v, 4, n, 1, s, false);
}
EXPORT CUresult cuMemsetD2D8_v2(CUdeviceptr d, size_t p, unsigned char v, size_t w, size_t h) {
    return fill(d, p, v, 1, w, h, NULL, true);
}
EXPORT CUresult cuMemsetD2D16_v2(CUdeviceptr d, size_t p, unsigned short v, size_t w, size_t h) {
    return fill(d, p, v, 2, w, h, NULL, true);
}
EXPORT CUresult cuMemsetD2D32_v2(CUdeviceptr d, size_t p, unsigned v, size_t w, size_t h) {
    return fill(d, p, v, 4, w, h, NULL, true);
}
EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr d, size_t p, unsigned char v, size_t w, size_t h, CUstream s) {
    return fill(d, p, v, 1, w, h, s, false);
}
EXPORT CUresult cuMemsetD2D16Async(CUdeviceptr d, size_t p, unsigned short v, size_t w, size_t h, CUstream s) {
    return fill(d, p, v, 2, w, h, s, false);
}
EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr d, size_t p, unsigned v, size_t w, size_t h, CUstream s) {
    return fill(d, p, v, 4, w, h, s, false);
}
