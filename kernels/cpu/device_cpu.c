/* The cpu device: host memory, and the kernels of this folder. */
#include <omp.h>
#include <stdio.h>
#include <sys/mman.h>

#include "engine/base/alloc.h"
#include "kernels/cpu/cpu.h"
#include "engine/base/isa.h"

#define MOST_THREADS 1024

/* Asks for 2 MB pages inside a large block: page walks cost matrix products a tenth of their time otherwise. Refusal
 * changes nothing but speed. */
static void prefer_huge_pages(void *block, size_t bytes) {
    const uintptr_t page = 2 << 20, first = ((uintptr_t)block + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)block + bytes) / page * page;
    if (end > first) madvise((void *)first, end - first, MADV_HUGEPAGE);
}

static enum lk_code cpu_alloc(struct lk_device *dev, size_t bytes, void **out) {
    *out = lk_malloc(bytes);
    if (!*out) return lk_fail(LK_E_NOMEM, "%s: out of memory: %zu bytes asked for", dev->name, bytes);
    prefer_huge_pages(*out, bytes);
    return LK_OK;
}

static void cpu_free(struct lk_device *dev, void *block) {
    (void)dev;
    lk_free(block);
}

static enum lk_code cpu_upload(struct lk_device *dev, void *dst, const void *host, size_t bytes) {
    (void)dev;
    if (bytes) memcpy(dst, host, bytes);
    return LK_OK;
}

static enum lk_code cpu_download(struct lk_device *dev, void *host, const void *src, size_t bytes) {
    (void)dev;
    if (bytes) memcpy(host, src, bytes);
    return LK_OK;
}

static const struct lk_device_memory memory = {
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_upload,
    .download = cpu_download,
};

#define TABLE_ENTRY(name, last) .name.run = lk_cpu_##name,
static const struct lk_op_table table = {
    LK_OPS(TABLE_ENTRY).linear.scratch = lk_cpu_linear_scratch,
    .attention.scratch = lk_cpu_attention_scratch,
    .conv2d.scratch = lk_cpu_conv2d_scratch,
    .group_norm.scratch = lk_cpu_group_norm_scratch,
    .depthwise.scratch = lk_cpu_depthwise_scratch,
    .response_norm.scratch = lk_cpu_response_norm_scratch,
};

enum lk_code lk_device_cpu_create(int n_threads, struct lk_device **out) {
    *out = NULL;
    LK_TRY(lk_cpu_isa_check());
    if (n_threads < 0 || n_threads > MOST_THREADS)
        return lk_fail(LK_E_USAGE, "threads: expected 0 (all) to %d, got %d", MOST_THREADS, n_threads);
    struct lk_device *dev = lk_calloc(1, sizeof *dev);
    if (!dev) return lk_fail(LK_E_NOMEM, "cpu device: out of memory");
    dev->kind = LK_DEVICE_CPU;
    dev->n_threads = n_threads ? n_threads : omp_get_max_threads();
    if (dev->n_threads > MOST_THREADS) dev->n_threads = MOST_THREADS;
    dev->table = &table;
    dev->memory = &memory;
    snprintf(dev->architecture, sizeof dev->architecture, "%s", lk_cpu_isa_name(lk_cpu_isa()));
    snprintf(dev->name, sizeof dev->name, "cpu (%s, %d thread%s)", lk_cpu_isa_name(lk_cpu_isa()), dev->n_threads,
             dev->n_threads == 1 ? "" : "s");
    *out = dev;
    return LK_OK;
}
