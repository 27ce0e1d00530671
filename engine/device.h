/* A device runs ops on tensors. Three exist: cpu and cuda compute; plan computes nothing and counts.
 *
 *     struct lk_device *dev;
 *     if ((rc = lk_device_cpu_create(n_threads, &dev))) return rc;
 *     if ((rc = lk_device_prepare(dev, arena_bytes))) ...        // all memory for activations, once
 *     size_t mark = lk_arena_mark(&dev->arena);
 *     struct lk_tensor y;
 *     if ((rc = LK_NEW(&dev->arena, &y, LK_BF16, rows, n))) ...
 *     if ((rc = lk_linear(dev, &(struct lk_linear){.y = &y, .x = &x, .w = &w}))) ...
 *     lk_arena_release(&dev->arena, mark);
 *     lk_device_free(dev);
 *
 * Nothing is allocated after lk_device_prepare: how much is needed is learnt by running the same code on the plan
 * device. */
#pragma once

#include "engine/arena.h"

struct lk_device;
struct lk_op_table;

enum lk_device_kind { LK_DEVICE_CPU, LK_DEVICE_CUDA, LK_DEVICE_PLAN };

/* What ops were asked to do since the counters were last reset. One multiply-add is 2 FLOPs. Bytes are what an op must
 * read and write once, caches left out. */
struct lk_cost {
    uint64_t flops;
    uint64_t bytes;
    uint64_t calls;
};

/* Memory and transfers of a device. */
struct lk_device_memory {
    enum lk_code (*alloc)(struct lk_device *dev, size_t bytes, void **out);
    void (*free)(struct lk_device *dev, void *block);
    enum lk_code (*upload)(struct lk_device *dev, void *dst, const void *host, size_t bytes);
    enum lk_code (*download)(struct lk_device *dev, void *host, const void *src, size_t bytes);
    void (*destroy)(struct lk_device *dev);
};

/* Called with every named intermediate tensor of a forward pass (see lk_trace). `value` lies on the device and is valid
 * during the call only. A code other than LK_OK stops the pass. */
typedef enum lk_code lk_trace_fn(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value);

struct lk_device {
    enum lk_device_kind kind;
    char name[128]; /* "cpu (avx512, 2 threads)" */
    int n_threads;  /* host threads that a cpu device uses */
    const struct lk_op_table *table;
    const struct lk_device_memory *memory;
    struct lk_arena arena;
    void *arena_block;
    struct lk_cost cost;
    lk_trace_fn *trace;
    void *trace_context;
};

/* n_threads 0: as many as the machine has (OMP_NUM_THREADS is honoured). */
enum lk_code lk_device_cpu_create(int n_threads, struct lk_device **out);

/* A device that counts what `target` would do: the FLOPs and bytes of each op, and the peak of live memory with the
 * scratch that target's kernels ask for. `target` must outlive it. */
enum lk_code lk_device_plan_create(const struct lk_device *target, struct lk_device **out);

/* Allocates the arena. LK_E_NOMEM or LK_E_FIT when it cannot be had. May be called again after everything was released.
 */
enum lk_code lk_device_prepare(struct lk_device *dev, size_t arena_bytes);

void lk_device_free(struct lk_device *dev);

/* Copies of a whole dense tensor from and to the host, in the tensor's dtype. On the plan device: download leaves
 * zeros. */
enum lk_code lk_upload(struct lk_device *dev, const struct lk_tensor *dst, const void *host);
enum lk_code lk_download(struct lk_device *dev, void *host, const struct lk_tensor *src);

/* Hands `value` to the device's trace function, if one is set. `name_format` as printf. */
enum lk_code lk_trace(struct lk_device *dev, const struct lk_tensor *value, const char *name_format, ...)
    __attribute__((format(printf, 3, 4)));
