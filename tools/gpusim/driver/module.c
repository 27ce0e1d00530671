/* Modules, functions, occupancy. */
#include "driver/state.h"
#include "counters/occupancy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Modules that were unloaded: a program that opens its device again, as tests do all the time, loads the same text
 * again, and reading it takes longer than a short run. A module with variables is not kept: its code has their
 * addresses, which are not used again. */
static struct gpusim_module *kept;

void gpusim_module_drop(struct gpusim_loaded *loaded) {
    for (struct gpusim_loaded **link = &loaded->context->modules; *link; link = &(*link)->next)
        if (*link == loaded) {
            *link = loaded->next;
            break;
        }
    if (loaded->module->n_variables) {
        gpusim_module_free(loaded->module);
    } else {
        loaded->module->next_kept = kept;
        kept = loaded->module;
    }
    free(loaded->kernels);
    free(loaded);
}

static uint64_t sum_machine_code(const void *image) {
    struct gpusim_image_entry entry;
    uint64_t sum = 1, word = 0;
    for (uint32_t i = 0; gpusim_image_entry(image, i, &entry); i++) {
        if (!entry.machine_code) continue;
        for (uint64_t at = 0; at < entry.n; at += sizeof word) {
            memcpy(&word, entry.bytes + at, entry.n - at < sizeof word ? entry.n - at : sizeof word);
            sum = (sum ^ word) * 0x100000001b3 + (sum >> 47);
        }
    }
    return sum;
}

static struct gpusim_module *take_kept(const char *text, size_t n, uint64_t machine_sum, int device) {
    for (struct gpusim_module **link = &kept, *m; (m = *link); link = &m->next_kept) {
        if (m->text_bytes != n || m->machine_sum != machine_sum || memcmp(m->text, text, n)) continue;
        *link = m->next_kept;
        m->device = device;
        return m;
    }
    return NULL;
}

static CUresult load(struct gpusim_context *context, CUmodule *out, const void *image, struct gpusim_message *message) {
    size_t n;
    const char *text = gpusim_find_ptx(image, &n, message);
    if (!text) return strstr(message->text, "none is PTX") ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE;
    struct gpusim_loaded *loaded = calloc(1, sizeof *loaded);
    const uint64_t machine_sum = sum_machine_code(image);
    struct gpusim_module *module = loaded ? take_kept(text, n, machine_sum, context->device) : NULL;
    const bool again = module;
    if (loaded && !module) module = gpusim_module_load(text, n, context->device, message);
    if (module) loaded->kernels = calloc(module->n_functions + 1, sizeof *loaded->kernels);
    if (!module || !loaded->kernels) {
        gpusim_module_free(module);
        free(loaded);
        if (!loaded || strstr(message->text, "out of memory") || strstr(message->text, "no device memory"))
            return CUDA_ERROR_OUT_OF_MEMORY;
        return strstr(message->text, "not supported") ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_PTX;
    }
    if (!again) gpusim_read_machine_code(image, module);
    module->machine_sum = machine_sum;
    for (uint32_t f = 0; f < module->n_functions; f++) {
        struct gpusim_function *function = module->functions[f];
        if (!function->kernel || !function->defined) continue;
        uint32_t left =
            GPUSIM_SHARED_PER_BLOCK > function->shared_bytes ? GPUSIM_SHARED_PER_BLOCK - function->shared_bytes : 0;
        function->max_dynamic_shared_bytes = left;
        loaded->kernels[loaded->n_kernels++] =
            (struct gpusim_kernel){.function = function, .module = loaded, .preferred_carveout = -1};
    }
    loaded->module = module;
    loaded->context = context;
    loaded->next = context->modules;
    context->modules = loaded;
    *out = loaded;
    return CUDA_SUCCESS;
}

/* Options: only the log buffers matter (CU_JIT_ERROR_LOG_BUFFER 5 and its size 6; CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES 4).
 */
EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n, int *options, void **values) {
    ENTER_CONTEXT_AS("cuModuleLoadData"); /* other forms come here */
    struct gpusim_message message = {""};
    if (!out || !image || (n && (!options || !values))) LEAVE(CUDA_ERROR_INVALID_VALUE);
    CUresult result = load(context, out, image, &message);
    if (result) gpusim_say("module: %s", message.text);
    char *log = NULL;
    for (unsigned i = 0; i < n; i++)
        if (options[i] == 5) log = values[i];
    for (unsigned i = 0; i < n; i++) {
        if (options[i] == 4) values[i] = (void *)0;
        if (options[i] != 6) continue;
        size_t size = (size_t)(uintptr_t)values[i];
        if (log && size) values[i] = (void *)(uintptr_t)snprintf(log, size, "%s", message.text);
    }
    LEAVE(result);
}
EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    return cuModuleLoadDataEx(out, image, 0, NULL, NULL);
}
EXPORT CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image) {
    return cuModuleLoadDataEx(out, image, 0, NULL, NULL);
}

EXPORT CUresult cuModuleLoad(CUmodule *out, const char *path) {
    if (!path) return CUDA_ERROR_INVALID_VALUE;
    FILE *file = fopen(path, "rb");
    char *image = NULL;
    long n = -1;
    if (file && !fseek(file, 0, SEEK_END) && (n = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
        image = calloc(1, (size_t)n + 64);
        if (image && fread(image, 1, (size_t)n, file) != (size_t)n) {
            free(image);
            image = NULL;
        }
    }
    if (file) fclose(file);
    if (!image) return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = cuModuleLoadData(out, image);
    free(image);
    return result;
}

static bool is_module(const struct gpusim_context *context, CUmodule module) {
    for (const struct gpusim_loaded *m = context->modules; m; m = m->next)
        if (m == module) return true;
    return false;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
    ENTER_CONTEXT();
    if (!is_module(context, module)) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    CUresult result = gpusim_drain(context, NULL);
    gpusim_module_drop(module);
    LEAVE(result);
}
/* Loads a function at its first look-up, as a driver does that loads lazily. */
static CUresult load_function(struct gpusim_context *context, struct gpusim_kernel *kernel) {
    const enum gpusim_lazy lazy = gpusim_settings()->lazy;
    bool busy = false;
    if (lazy == GPUSIM_LAZY_NEVER || kernel->loaded) return CUDA_SUCCESS;
    gpusim_driver.loading = lazy == GPUSIM_LAZY_ALL;
    for (struct gpusim_context *c = gpusim_driver.contexts; c; c = c->next) {
        if (lazy == GPUSIM_LAZY_OWN && c != context) continue;
        gpusim_drain(c, NULL);
        for (const struct gpusim_stream *s = c->streams; s; s = s->next) busy |= s->first != NULL;
    }
    gpusim_driver.loading = false;
    kernel->loaded = !busy;
    if (!busy) return context->error;
    struct gpusim_report report = {.kind = GPUSIM_REPORT_DEADLOCK};
    snprintf(report.kernel, sizeof report.kernel, "%s", kernel->function->name);
    snprintf(
        report.what, sizeof report.what,
        "loading it waits for idle streams, and these wait for calls that wait until it is loaded; look functions up "
        "before there is work");
    gpusim_report_emit(&report);
    return CUDA_ERROR_LAUNCH_TIMEOUT;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
    ENTER_CONTEXT();
    if (!out || !name) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_module(context, module)) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    for (uint32_t k = 0; k < module->n_kernels; k++)
        if (!strcmp(module->kernels[k].function->name, name)) {
            *out = &module->kernels[k];
            LEAVE(load_function(context, *out));
        }
    LEAVE(CUDA_ERROR_NOT_FOUND);
}
EXPORT CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
    ENTER_CONTEXT();
    if (!count) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_module(context, module)) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    *count = module->n_kernels;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name) {
    ENTER_CONTEXT();
    if (!name) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_module(context, module)) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    for (uint32_t v = 0; v < module->module->n_variables; v++) {
        const struct gpusim_variable *variable = &module->module->variables[v];
        if (strcmp(variable->name, name)) continue;
        if (address) *address = variable->address;
        if (bytes) *bytes = variable->bytes;
        LEAVE(CUDA_SUCCESS);
    }
    LEAVE(CUDA_ERROR_NOT_FOUND);
}
EXPORT CUresult cuModuleGetLoadingMode(int *mode) {
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = gpusim_settings()->lazy ? 2 : 1; /* 1: eager */
    return CUDA_SUCCESS;
}

static uint32_t max_threads(const struct gpusim_function *f) {
    const uint32_t *bound = f->req_ntid[0] ? f->req_ntid : f->max_ntid;
    return bound[0] ? bound[0] * bound[1] * bound[2] : GPUSIM_THREADS_PER_BLOCK;
}

EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction kernel) {
    ENTER();
    if (!value) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!kernel) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    const struct gpusim_function *f = kernel->function;
    switch (attribute) {
    case 0:
        *value = (int)max_threads(f);
        break;
    case 1:
        *value = (int)f->shared_bytes;
        break;
    case 2:
        *value = 0;
        break;
    case 3:
        *value = (int)f->local_bytes;
        break;
    case 4:
        *value = (int)f->registers;
        break;
    case 5:
    case 6:
        *value = 80;
        break;
    case 7:
        *value = 0;
        break;
    case 8:
        *value = (int)f->max_dynamic_shared_bytes;
        break;
    case 9:
        *value = kernel->preferred_carveout;
        break;
    default:
        LEAVE(attribute >= 10 && attribute <= 15 ? (*value = 0, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE);
    }
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuFuncSetAttribute(CUfunction kernel, int attribute, int value) {
    ENTER_CONTEXT();
    (void)context;
    if (!kernel) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    if (attribute == 9) {
        if (value < -1 || value > 100) LEAVE(CUDA_ERROR_INVALID_VALUE);
        kernel->preferred_carveout = value;
        LEAVE(CUDA_SUCCESS);
    }
    if (attribute != 8) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (value < 0 || value + (int64_t)kernel->function->shared_bytes > gpusim_settings()->shared_optin)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    kernel->function->max_dynamic_shared_bytes = (uint32_t)value;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuFuncSetCacheConfig(CUfunction kernel, int config) {
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    kernel->cache_config = config;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetModule(CUmodule *out, CUfunction kernel) {
    if (!kernel || !out) return CUDA_ERROR_INVALID_VALUE;
    *out = kernel->module;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetName(const char **name, CUfunction kernel) {
    if (!kernel || !name) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel->function->name;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetParamInfo(CUfunction kernel, size_t index, size_t *offset, size_t *bytes) {
    if (!kernel || index >= kernel->function->n_params) return CUDA_ERROR_INVALID_VALUE;
    if (offset) *offset = kernel->function->params[index].offset;
    if (bytes) *bytes = kernel->function->params[index].bytes;
    return CUDA_SUCCESS;
}

int gpusim_occupancy(const struct gpusim_function *f, uint32_t threads, size_t dynamic_shared) {
    return gpusim_occupancy_limit(f, threads, dynamic_shared, NULL);
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, CUfunction kernel, int threads,
                                                                     size_t shared, unsigned flags) {
    ENTER();
    (void)flags;
    if (!n || threads < 1) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!kernel) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    *n = gpusim_occupancy(kernel->function, (uint32_t)threads, shared);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction kernel, int threads, size_t shared) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, kernel, threads, shared, 0);
}
EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction kernel, CUoccupancyB2DSize shared_of,
                                                 size_t shared, int limit) {
    ENTER();
    if (!grid || !block || !kernel) LEAVE(CUDA_ERROR_INVALID_VALUE);
    int best = 0, top = (int)max_threads(kernel->function);
    if (limit > 0 && limit < top) top = limit;
    for (int threads = top; threads > 0; threads -= threads % GPUSIM_WARP ? threads % GPUSIM_WARP : GPUSIM_WARP) {
        int n = gpusim_occupancy(kernel->function, (uint32_t)threads, shared_of ? shared_of(threads) : shared);
        if (n * threads <= best) continue;
        best = n * threads;
        *block = threads;
        *grid = n * GPUSIM_N_SMS;
    }
    LEAVE(best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
