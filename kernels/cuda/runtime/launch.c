/* Finding kernels and launching them. */
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime/modules.h"

#define SHARED_ALWAYS ((size_t)48 << 10)

static uint32_t hash_of(const char *text) {
    uint32_t hash = 2166136261u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static enum lk_code find_module(const struct lk_cuda_device *cuda, const char *name, lk_cu_module *out) {
    for (size_t i = 0; i < lk_cuda_n_modules; i++) {
        if (strcmp(lk_cuda_modules[i].name, name)) continue;
        *out = cuda->modules[i];
        return LK_OK;
    }
    return lk_fail(LK_E_INTERNAL, "cuda: no module %s in this build", name);
}

enum lk_code lk_cuda_function(struct lk_device *dev, const char *module, const char *kernel,
                              struct lk_cuda_function **out) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    struct lk_cuda_function *f = NULL;
    uint32_t first = hash_of(kernel);
    for (uint32_t i = 0; i < LK_CUDA_MAX_KERNELS; i++) {
        f = &cuda->functions[(first + i) % LK_CUDA_MAX_KERNELS];
        if (!f->name || !strcmp(f->name, kernel)) break;
        f = NULL;
    }
    if (!f) return lk_fail(LK_E_INTERNAL, "cuda: more than %d kernels", LK_CUDA_MAX_KERNELS);
    if (!f->name) {
        lk_cu_module loaded = NULL;
        LK_TRY(find_module(cuda, module, &loaded));
        LK_TRY(LK_CU(module_function, (&f->function, loaded, kernel), "kernel %s of %s", kernel, module));
        f->name = kernel;
    }
    *out = f;
    return LK_OK;
}

static unsigned at_least_one(unsigned n) { return n ? n : 1; }

enum lk_code lk_cuda_launch(struct lk_device *dev, const char *module, const char *kernel, const struct lk_cuda_grid *g,
                            const void *args) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    struct lk_cuda_function *f;
    LK_TRY(lk_cuda_function(dev, module, kernel, &f));
    if (g->shared > SHARED_ALWAYS && g->shared > f->shared) {
        LK_TRY(LK_CU(function_set, (f->function, LK_CU_FUNCTION_MAX_DYNAMIC_SHARED, (int)g->shared),
                     "%s: %zu bytes of shared memory", kernel, g->shared));
        f->shared = g->shared;
    }
    const unsigned grid[3] = {at_least_one(g->grid[0]), at_least_one(g->grid[1]), at_least_one(g->grid[2])};
    const unsigned block[3] = {at_least_one(g->block[0]), at_least_one(g->block[1]), at_least_one(g->block[2])};
    cuda->last_kernel = kernel;
    void *parameters[] = {(void *)(uintptr_t)args};
    return LK_CU(launch,
                 (f->function, grid[0], grid[1], grid[2], block[0], block[1], block[2], (unsigned)g->shared,
                  cuda->stream, parameters, NULL),
                 "%s with a grid of %ux%ux%u, blocks of %ux%ux%u and %zu bytes of shared memory", kernel, grid[0],
                 grid[1], grid[2], block[0], block[1], block[2], g->shared);
}

enum lk_code lk_cuda_wait(struct lk_cuda_device *cuda, struct lk_cuda_report *out) {
    const char *last = cuda->last_kernel ? cuda->last_kernel : "none";
    struct lk_cuda_report *report = cuda->staging.report;
    LK_TRY(LK_CU(copy_to_host, (report, cuda->report, sizeof *report, cuda->stream), "report of the kernels"));
    LK_TRY(LK_CU(set_bytes, (cuda->report, 0, sizeof *report, cuda->stream), "report of the kernels"));
    if (cuda->ranks) LK_TRY(lk_cuda_await_stream(cuda, cuda->stream));
    LK_TRY(LK_CU(stream_synchronize, (cuda->stream),
                 "waiting for the kernels, of which the last was %s (CUDA_LAUNCH_BLOCKING=1 finds which one fails)",
                 last));
    lk_staging_settled(&cuda->staging);
    if (out) *out = *report;
    return LK_OK;
}
