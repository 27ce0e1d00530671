/* cuLaunchKernel and its relations. */
#include "driver/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUresult bad(const struct gpusim_function *f, CUresult result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static CUresult bad(const struct gpusim_function *f, CUresult result, const char *format, ...) {
    struct gpusim_report report = {.kind = GPUSIM_REPORT_BAD_LAUNCH};
    va_list args;
    va_start(args, format);
    vsnprintf(report.what, sizeof report.what, format, args);
    va_end(args);
    snprintf(report.kernel, sizeof report.kernel, "%s", f->name);
    gpusim_report_emit(&report);
    return result;
}

static CUresult check_shape(const struct gpusim_function *f, const uint32_t grid[3], const uint32_t block[3],
                            uint32_t shared, bool cooperative) {
    static const uint32_t max_block[3] = {1024, 1024, 64}, max_grid[3] = {INT32_MAX, 65535, 65535};
    for (int i = 0; i < 3; i++)
        if (!grid[i] || !block[i] || grid[i] > max_grid[i] || block[i] > max_block[i])
            return bad(f, CUDA_ERROR_INVALID_VALUE,
                       "%u x %u x %u blocks of %u x %u x %u threads: a dimension is 0 or too large", grid[0], grid[1],
                       grid[2], block[0], block[1], block[2]);
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    const uint32_t *bound = f->req_ntid[0] ? f->req_ntid : f->max_ntid;
    uint64_t most = bound[0] ? (uint64_t)bound[0] * bound[1] * bound[2] : GPUSIM_THREADS_PER_BLOCK;
    if (threads > GPUSIM_THREADS_PER_BLOCK || threads > most || (f->req_ntid[0] && threads != most))
        return bad(f, CUDA_ERROR_INVALID_VALUE, "%llu threads per block, the kernel's bound is %llu",
                   (unsigned long long)threads, (unsigned long long)most);
    if (shared > f->max_dynamic_shared_bytes)
        return bad(f, CUDA_ERROR_INVALID_VALUE,
                   "%u bytes of dynamic shared memory, the function's maximum is %u "
                   "(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)",
                   shared, f->max_dynamic_shared_bytes);
    if (f->registers_exact && !gpusim_occupancy(f, (uint32_t)threads, shared))
        return bad(f, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                   "%llu threads of %u registers and %llu bytes of shared memory: no multiprocessor has as much",
                   (unsigned long long)threads, f->registers, (unsigned long long)f->shared_bytes + shared);
    if (cooperative) {
        uint64_t fit = (uint64_t)gpusim_occupancy(f, (uint32_t)threads, shared) * GPUSIM_N_SMS;
        if ((uint64_t)grid[0] * grid[1] * grid[2] > fit)
            return bad(f, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "%llu blocks of a cooperative launch, %llu fit",
                       (unsigned long long)grid[0] * grid[1] * grid[2], (unsigned long long)fit);
    }
    return CUDA_SUCCESS;
}

static CUresult read_params(const struct gpusim_function *f, struct gpusim_item *item, void **params, void **extra) {
    item->params = calloc(1, f->param_bytes + 16);
    if (!item->params) return CUDA_ERROR_OUT_OF_MEMORY;
    if (params) {
        for (uint32_t k = 0; k < f->n_params; k++) {
            if (!params[k]) return CUDA_ERROR_INVALID_VALUE;
            memcpy(item->params + f->params[k].offset, params[k], f->params[k].bytes);
        }
        return CUDA_SUCCESS;
    }
    const void *buffer = NULL;
    size_t n = 0;
    for (int i = 0; extra && extra[i]; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            n = *(size_t *)extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (f->n_params && (!buffer || n > f->param_bytes + 8)) return CUDA_ERROR_INVALID_VALUE;
    if (buffer) memcpy(item->params, buffer, n < f->param_bytes ? n : f->param_bytes);
    return CUDA_SUCCESS;
}

static struct gpusim_range ranges[GPUSIM_MAX_RANGES];
static size_t n_ranges;

void gpusim_tensors(const struct gpusim_range *told, size_t n) {
    gpusim_lock();
    n_ranges = n > GPUSIM_MAX_RANGES || gpusim_settings()->checks == GPUSIM_CHECKS_NONE ? 0 : n;
    if (n_ranges) memcpy(ranges, told, n * sizeof *told);
    gpusim_unlock(CUDA_SUCCESS);
}

static CUresult launch(CUfunction kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                       CUstream stream, void **params, void **extra, bool cooperative) {
    ENTER_CONTEXT_AS("cuLaunchKernel");
    struct gpusim_stream *s = gpusim_stream_of(context, stream);
    if (!s || !kernel) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    if (kernel->module->context != context) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    if (params && extra) LEAVE(CUDA_ERROR_INVALID_VALUE);
    CUresult result = check_shape(kernel->function, grid, block, shared, cooperative);
    if (result) LEAVE(result);
    struct gpusim_item *item = gpusim_item_new(context, GPUSIM_WORK_LAUNCH);
    if (!item) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    if ((result = read_params(kernel->function, item, params, extra))) {
        free(item->params);
        free(item);
        LEAVE(result);
    }
    item->launch.function = kernel->function;
    memcpy(item->launch.grid, grid, sizeof item->launch.grid);
    memcpy(item->launch.block, block, sizeof item->launch.block);
    item->launch.dynamic_shared_bytes = shared;
    item->launch.device = context->device;
    item->launch.cooperative = cooperative;
    item->launch.n_ranges = n_ranges;
    memcpy(item->launch.ranges, ranges, sizeof ranges);
    gpusim_enqueue(s, item);
    gpusim_some_work(context);
    LEAVE(CUDA_SUCCESS);
}

EXPORT CUresult cuLaunchKernel(CUfunction kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {
    return launch(kernel, (uint32_t[]){gx, gy, gz}, (uint32_t[]){bx, by, bz}, shared, stream, params, extra, false);
}
EXPORT CUresult cuLaunchCooperativeKernel(CUfunction kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                          unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params) {
    return launch(kernel, (uint32_t[]){gx, gy, gz}, (uint32_t[]){bx, by, bz}, shared, stream, params, NULL, true);
}
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction kernel, void **params, void **extra) {
    bool cooperative = false;
    if (!c || (c->numAttrs && !c->attrs)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *a = &c->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            cooperative = a->value.cooperative;
        else if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
                 a->value.cluster[0] * a->value.cluster[1] * a->value.cluster[2] > 1)
            return gpusim_not_supported("cuLaunchKernelEx with clusters");
        else if (a->id != CU_LAUNCH_ATTRIBUTE_IGNORE && a->id != CU_LAUNCH_ATTRIBUTE_PRIORITY &&
                 a->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            gpusim_say("cuLaunchKernelEx: attribute %u is ignored", a->id);
    }
    return launch(kernel, (uint32_t[]){c->gridDimX, c->gridDimY, c->gridDimZ},
                  (uint32_t[]){c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes, c->hStream, params, extra,
                  cooperative);
}
