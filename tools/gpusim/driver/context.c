#include "driver/state.h"
#include "exec/heap.h"

#include <stdlib.h>

_Thread_local struct gpusim_context *gpusim_stack[GPUSIM_STACK_DEEP];
_Thread_local int gpusim_stack_depth;

static bool alive(const struct gpusim_context *context) {
    for (const struct gpusim_context *c = gpusim_driver.contexts; c; c = c->next)
        if (c == context) return true;
    return false;
}

struct gpusim_context *gpusim_current(void) {
    return gpusim_stack_depth ? gpusim_stack[gpusim_stack_depth - 1] : NULL;
}

CUresult gpusim_need_context(struct gpusim_context **context) {
    *context = gpusim_current();
    if (!*context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!alive(*context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if ((*context)->primary && !(*context)->retained) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (*context)->error;
}

static struct gpusim_context *context_new(CUdevice device, unsigned flags, bool primary) {
    struct gpusim_context *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->device = device;
    c->flags = flags;
    c->primary = primary;
    c->id = ++gpusim_driver.next_id;
    c->limits[0] = 1024;
    c->limits[1] = 1 << 20;
    c->limits[2] = 8 << 20;
    c->legacy = gpusim_stream_new(c, true, 0, 0);
    c->per_thread = gpusim_stream_new(c, true, 0, 0);
    if (!c->legacy || !c->per_thread) {
        if (c->legacy) gpusim_stream_free(c, c->legacy);
        free(c);
        return NULL;
    }
    c->next = gpusim_driver.contexts;
    gpusim_driver.contexts = c;
    return c;
}

struct doomed {
    struct gpusim_allocation *record;
    int device;
};
static void find_of_device(struct gpusim_allocation *record, void *context) {
    struct doomed *doomed = context;
    if (record->device == doomed->device && record->kind == GPUSIM_MEMORY_DEVICE) doomed->record = record;
}

/* Ends what belongs to the context: queued work is done first. Device memory of the device goes with its last context.
 */
static void context_free(struct gpusim_context *context) {
    if (!context->error) gpusim_drain(context, NULL);
    gpusim_report_leaks(context);
    while (context->modules) gpusim_module_drop(context->modules);
    while (context->events) gpusim_event_drop(context, context->events);
    while (context->streams) gpusim_stream_free(context, context->streams);
    bool last = true;
    for (struct gpusim_context **link = &gpusim_driver.contexts; *link;) {
        if (*link == context) {
            *link = context->next;
            continue;
        }
        last &= (*link)->device != context->device;
        link = &(*link)->next;
    }
    if (last) gpusim_heap_end(context->device);
    struct doomed doomed = {NULL, context->device};
    while (last) {
        doomed.record = NULL;
        gpusim_memory_each(find_of_device, &doomed);
        if (!doomed.record) break;
        gpusim_memory_free(doomed.record);
    }
    free(context);
}

static bool is_device(CUdevice device) { return device >= 0 && device < gpusim_settings()->n_devices; }

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    ENTER();
    if (!out) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    struct gpusim_context **primary = &gpusim_driver.primary[device];
    if (!*primary && !(*primary = context_new(device, 0, true))) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    (*primary)->retained++;
    *out = *primary;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    ENTER();
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    struct gpusim_context *primary = gpusim_driver.primary[device];
    if (!primary) LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    if (--primary->retained == 0) {
        gpusim_driver.primary[device] = NULL;
        context_free(primary);
    }
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    ENTER();
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    if (gpusim_driver.primary[device]) context_free(gpusim_driver.primary[device]);
    gpusim_driver.primary[device] = NULL;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    ENTER();
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    if (!flags || !active) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *active = gpusim_driver.primary[device] != NULL;
    *flags = *active ? gpusim_driver.primary[device]->flags : 0;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    ENTER();
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    if (gpusim_driver.primary[device]) gpusim_driver.primary[device]->flags = flags;
    LEAVE(CUDA_SUCCESS);
}

static CUresult push(CUcontext context) {
    if (gpusim_stack_depth == GPUSIM_STACK_DEEP) return CUDA_ERROR_OUT_OF_MEMORY;
    gpusim_stack[gpusim_stack_depth++] = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
    ENTER();
    if (!out) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    struct gpusim_context *c = context_new(device, flags, false);
    if (!c) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    *out = c;
    LEAVE(push(c));
}
EXPORT CUresult cuCtxCreate_v4(CUcontext *out, void *params, unsigned flags, CUdevice device) {
    if (params) return gpusim_not_supported("cuCtxCreate with parameters");
    return cuCtxCreate_v2(out, flags, device);
}
EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
    ENTER();
    if (!alive(context) || context->primary) LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    if (gpusim_current() == context) gpusim_stack_depth--;
    context_free(context);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
    ENTER();
    if (!alive(context)) LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    LEAVE(push(context));
}
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *out) {
    ENTER();
    if (!gpusim_stack_depth) LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    gpusim_stack_depth--;
    if (out) *out = gpusim_stack[gpusim_stack_depth];
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    ENTER();
    if (context && !alive(context)) LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    if (gpusim_stack_depth) gpusim_stack_depth--;
    LEAVE(context ? push(context) : CUDA_SUCCESS);
}
EXPORT CUresult cuCtxGetCurrent(CUcontext *out) {
    ENTER();
    if (!out) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *out = gpusim_current();
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    ENTER();
    struct gpusim_context *c = gpusim_current();
    if (!c) LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    if (!device) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *device = c->device;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxGetFlags(unsigned *flags) {
    ENTER_CONTEXT();
    if (!flags) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *flags = context->flags;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
    ENTER();
    if (!version) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (context && !alive(context)) LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    *version = 13000;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
    ENTER();
    if (!context) context = gpusim_current();
    if (!id) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!alive(context)) LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    *id = context->id;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxSynchronize(void) {
    ENTER_CONTEXT();
    LEAVE(gpusim_drain(context, NULL));
}
EXPORT CUresult cuCtxGetLimit(size_t *value, unsigned limit) {
    ENTER_CONTEXT();
    if (!value) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (limit >= 10) LEAVE(CUDA_ERROR_UNSUPPORTED_LIMIT);
    *value = context->limits[limit];
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxSetLimit(unsigned limit, size_t value) {
    ENTER_CONTEXT();
    if (limit >= 10) LEAVE(CUDA_ERROR_UNSUPPORTED_LIMIT);
    context->limits[limit] = value;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    ENTER_CONTEXT();
    (void)context;
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxSetCacheConfig(int config) {
    (void)config;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    ENTER_CONTEXT();
    if (flags) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!alive(peer) || peer == context || peer->device == context->device) LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    if (context->peers[peer->device]) LEAVE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    context->peers[peer->device] = true;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    ENTER_CONTEXT();
    if (!alive(peer)) LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    if (!context->peers[peer->device]) LEAVE(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    context->peers[peer->device] = false;
    LEAVE(CUDA_SUCCESS);
}
