/* Doing what streams have queued. */
#include "driver/state.h"
#include "counters/collect.h"
#include "exec/heap.h"

#include <string.h>

static CUresult fault_code(enum gpusim_fault_kind kind) {
    switch (kind) {
    case GPUSIM_FAULT_NONE:
        return CUDA_SUCCESS;
    case GPUSIM_FAULT_ADDRESS:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case GPUSIM_FAULT_MISALIGNED:
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    case GPUSIM_FAULT_ASSERT:
        return CUDA_ERROR_ASSERT;
    case GPUSIM_FAULT_INSTRUCTION:
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case GPUSIM_FAULT_STACK:
        return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case GPUSIM_FAULT_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case GPUSIM_FAULT_DEADLOCK:
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    default:
        return CUDA_ERROR_LAUNCH_FAILED;
    }
}

static CUresult launch(struct gpusim_item *item) {
    struct gpusim_launch *l = &item->launch;
    l->params = item->params;
    l->hooks = gpusim_driver.hooks;
    l->check = item->operation;
    l->number = ++gpusim_driver.n_launches;
    struct gpusim_allocation *workspace = NULL;
    if (l->cooperative) {
        workspace = gpusim_memory_new(GPUSIM_MEMORY_VARIABLE, l->device, 8, NULL);
        if (!workspace) return CUDA_ERROR_OUT_OF_MEMORY;
        workspace->name = "the cooperative launch's workspace";
        memcpy(workspace->host, (uint32_t[2]){8, 0}, 8);
        l->workspace = workspace->base;
    }
    if (l->function->module->uses_heap && !(l->heap = gpusim_heap_of(l->device, item->context->limits[2])))
        gpusim_say("no memory for a device heap of %llu bytes: malloc in kernel %s gives NULL",
                   (unsigned long long)item->context->limits[2], l->function->name);
    gpusim_counters_begin(l);
    bool ok = gpusim_launch_run(l);
    gpusim_counters_end(l);
    if (!ok) gpusim_report_emit(&l->report);
    if (workspace) gpusim_memory_free(workspace);
    return fault_code(l->fault);
}

/* A row of a copy or set. Memory may have been freed since the call: that is an illegal access, as on hardware. */
static uint8_t *row(uint64_t address, bool host, uint64_t bytes, const char *what) {
    if (host) return (uint8_t *)(uintptr_t)address;
    uint8_t *at = gpusim_memory_at(address, bytes);
    if (!at)
        gpusim_say("%s: no allocation holds %llu bytes at 0x%llx", what, (unsigned long long)bytes,
                   (unsigned long long)address);
    return at;
}

static CUresult copy(struct gpusim_item *item) {
    for (uint64_t y = 0; y < item->height; y++) {
        uint8_t *to = row(item->target + y * item->target_pitch, item->target_host, item->width, "copy to");
        const uint8_t *from =
            item->staged ? item->staged + y * item->width
                         : row(item->source + y * item->source_pitch, item->source_host, item->width, "copy from");
        if (!to || !from) return CUDA_ERROR_ILLEGAL_ADDRESS;
        uint64_t target = item->target + y * item->target_pitch, source = item->source + y * item->source_pitch;
        bool from_device = !item->staged && !item->source_host;
        if (from_device && !gpusim_check_range(item->operation, source, item->width, false))
            return CUDA_ERROR_LAUNCH_FAILED;
        if (!item->target_host && !gpusim_check_range(item->operation, target, item->width, true))
            return CUDA_ERROR_LAUNCH_FAILED;
        memmove(to, from, item->width);
        if (!item->target_host) gpusim_check_copied(target, from_device ? source : 0, item->width);
    }
    return CUDA_SUCCESS;
}

static CUresult set(struct gpusim_item *item) {
    for (uint64_t y = 0; y < item->height; y++) {
        uint8_t *to = row(item->target + y * item->target_pitch, false, item->width, "memset");
        if (!to) return CUDA_ERROR_ILLEGAL_ADDRESS;
        uint64_t target = item->target + y * item->target_pitch;
        if (!gpusim_check_range(item->operation, target, item->width, true)) return CUDA_ERROR_LAUNCH_FAILED;
        gpusim_check_copied(target, 0, item->width);
        for (uint64_t x = 0; x < item->width; x += item->value_bytes) memcpy(to + x, &item->value, item->value_bytes);
    }
    return CUDA_SUCCESS;
}

CUresult gpusim_do(struct gpusim_item *item) {
    switch (item->kind) {
    case GPUSIM_WORK_LAUNCH:
        return launch(item);
    case GPUSIM_WORK_COPY:
        return copy(item);
    case GPUSIM_WORK_SET:
        return set(item);
    case GPUSIM_WORK_RECORD:
        item->event->done = item->event_version;
        item->event->time_ns = gpusim_now_ns();
        return CUDA_SUCCESS;
    case GPUSIM_WORK_WAIT:
        return CUDA_SUCCESS;
    case GPUSIM_WORK_HOST:
        if (item->host) item->host(item->user);
        if (item->callback) item->callback(item->stream, CUDA_SUCCESS, item->user);
        return CUDA_SUCCESS;
    case GPUSIM_WORK_GATHER:
        return gpusim_gather_do(item);
    }
    return CUDA_ERROR_UNKNOWN;
}
