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
 * device.
 *
 * Where tensors lie. What an op writes lies in the device's arena. What it reads lies there too, or is a weight in host
 * memory (a mapped file, memory of the binding): host memory that does not change, and whose end lk_weights_released
 * announces. The cpu device reads weights in place. A device with memory of its own keeps a copy of each: the walk over
 * the plan device meets every weight, lk_device_plan_show tells the device of them, lk_device_prepare makes what was
 * shown resident, and ops find the copy by the host address. A weight that was not shown is copied where it is first
 * met. */
#pragma once

#include "engine/arena.h"
#include "engine/placement.h"

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
    /* All NULL where ops read host memory. note_weights: this host memory will be read by ops (LK_E_NOMEM,
     * LK_E_DEVICE). check_fit: LK_E_FIT unless an arena of so many bytes and what was noted fit, before any of it is
     * allocated or read. load_weights: what was noted and is not on the device yet is copied there (LK_E_NOMEM,
     * LK_E_FIT, LK_E_DEVICE). footprint: bytes that a device holds which has nothing but this arena and these weights.
     */
    enum lk_code (*note_weights)(struct lk_device *dev, const struct lk_ranges *weights);
    enum lk_code (*check_fit)(struct lk_device *dev, size_t arena_bytes);
    enum lk_code (*load_weights)(struct lk_device *dev);
    uint64_t (*footprint)(const struct lk_device *dev, size_t arena_bytes, const struct lk_ranges *weights);
    enum lk_code (*stage)(struct lk_device *dev, const char *name); /* NULL: stages are all alike */
    /* NULL where note_weights is. room: see struct lk_device_room. place: allocates the placement's block, in which the
     * arena then lies, and takes *placement over; NULL: gives back what was placed before. */
    enum lk_code (*room)(const struct lk_device *dev, uint64_t bytes, struct lk_device_room *out);
    enum lk_code (*place)(struct lk_device *dev, struct lk_placement *placement);
    void (*rest)(struct lk_device *dev); /* NULL: nothing is read but by ops */
    /* NULL where there are no ranks. leave: this rank has nothing more to do, or has failed with rc; it returns when
     * all ranks are there, with the error of the one that failed first. joined: it has been placed for this run. */
    enum lk_code (*leave)(struct lk_device *dev, enum lk_code rc);
    bool (*joined)(const struct lk_device *dev);
};

/* Called with every named intermediate tensor of a forward pass (see lk_trace). `value` lies on the device and is valid
 * during the call only. A code other than LK_OK stops the pass. */
typedef enum lk_code lk_trace_fn(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value);

struct lk_device {
    enum lk_device_kind kind;
    char name[128];        /* "cpu (avx512, 2 threads)" */
    char architecture[16]; /* what the bits of results depend on: "avx512", "sm_80" */
    int n_threads;         /* host threads that a cpu device uses */
    uint64_t memory_grain; /* of memory of its own: allocations are multiples of it */
    uint64_t memory_own;   /* bytes of it that the device itself takes */
    const struct lk_op_table *table;
    const struct lk_device_memory *memory;
    struct lk_arena arena;
    void *arena_block;
    size_t arena_block_bytes; /* of which the arena's capacity may be a part */
    struct lk_budget budget;  /* set by the owner; all 0: what there is */
    struct lk_cost cost;
    lk_trace_fn *trace;
    void *trace_context;
    bool trace_plans;   /* the trace takes memory of the arena: it is called while planning, too, with no values */
    bool counts_traced; /* of the plan device: what it counts for has a trace */
};

/* n_threads 0: as many as the machine has (OMP_NUM_THREADS is honoured). */
enum lk_code lk_device_cpu_create(int n_threads, struct lk_device **out);

/* CUDA device `index`, used through the driver that is found at run time. LK_E_DEVICE when there is no driver, no such
 * device, one that is not usable (lk_cuda_usable), or no kernels in this build; the message says which. */
enum lk_code lk_device_cuda_create(int index, struct lk_device **out);

/* n CUDA devices that hold one copy of the weights together: ranks, to be run by a thread each (models/ranks.h). As
 * lk_device_cuda_create for each. Where they have no access to each other's memory they are joined by NVIDIA's NCCL,
 * which is found at run time too, LK_E_DEVICE without. */
enum lk_code lk_device_cuda_ranks(const int *indexes, int n, struct lk_device **out);

/* A device that is not here, for plans alone: its kernels' scratch and its memory's rules. architecture: one of these,
 * else LK_E_USAGE. */
#define LK_CUDA_DESCRIBED "sm_80 (A100), sm_86 (RTX 3090), sm_89 (RTX 4090), sm_90 (H100) or sm_120 (RTX 5090)"
enum lk_code lk_device_cuda_describe(const char *architecture, struct lk_device **out);

/* What CUDA devices there are, without using one. */
struct lk_cuda_info {
    char name[128];
    int compute_major, compute_minor;
    int driver_version; /* 12040 is 12.4 */
    int block_bytes;    /* of shared memory that a block may ask for */
    uint64_t memory_bytes;
};
/* Device `index`; *n_devices gets their number, 0 with every code but LK_OK. LK_E_DEVICE as lk_device_cuda_create; with
 * an index of -1 only the number is asked for. */
enum lk_code lk_cuda_info(int index, int *n_devices, struct lk_cuda_info *out);
/* LK_E_DEVICE, with what is missing, where the kernels of this build cannot run on device `index`. */
enum lk_code lk_cuda_usable(int index, const struct lk_cuda_info *info);

/* A device that counts what `target` would do: the FLOPs and bytes of each op, and the peak of live memory with the
 * scratch that target's kernels ask for. `target` must outlive it. */
enum lk_code lk_device_plan_create(const struct lk_device *target, struct lk_device **out);
/* Tells `dev` which weights ops on the plan device have read, for the next lk_device_prepare to load. LK_E_NOMEM. */
enum lk_code lk_device_plan_show(const struct lk_device *plan, struct lk_device *dev);
/* Bytes of the target's memory with an arena of so many bytes and all weights that ops have read: exactly what the
 * target will have allocated, if it held nothing before. Where ops read host memory, the weights' bytes and the arena.
 */
uint64_t lk_device_plan_footprint(const struct lk_device *plan, size_t arena_bytes);
/* Bytes of the weights that ops have read in the stage that the plan device is in, and how many values they are. */
uint64_t lk_device_plan_stage_bytes(const struct lk_device *plan, uint64_t *parameters);
/* Bytes of the weights that ops have read in all stages. */
uint64_t lk_device_plan_weight_bytes(const struct lk_device *plan);
/* What the walk has met so far, in order. LK_E_NOMEM. */
enum lk_code lk_device_plan_itinerary(const struct lk_device *plan, struct lk_itinerary *out);

/* Allocates the arena and loads the weights that a plan has shown. LK_E_NOMEM or LK_E_FIT when they cannot be had;
 * nothing has been read then if it was clear from the start. May be called again after everything was released. */
enum lk_code lk_device_prepare(struct lk_device *dev, size_t arena_bytes);
/* The same with weights where the placement says, which is taken over. LK_E_FIT leaves the placement as it is. */
enum lk_code lk_device_prepare_placed(struct lk_device *dev, struct lk_placement *placement);
/* Whether lk_device_prepare would use the arena that is there; else it is freed before the new one is allocated. */
bool lk_device_keeps_arena(const struct lk_device *dev, size_t arena_bytes);

/* A stage of a run begins, "text_encoder" for one; stages may come again. Until the next call ops read the weights that
 * the plan device has met in stages of this name: those of others need not be on the device meanwhile. */
enum lk_code lk_device_stage(struct lk_device *dev, const char *name);

/* The run is over, in whatever way: until the next lk_device_prepare no weight in host memory is read. */
void lk_device_rest(struct lk_device *dev);

void lk_device_free(struct lk_device *dev);

/* Host memory that held weights is about to be given back: devices drop the copies that they keep before they use one
 * again. lk_weights_epoch counts these calls. */
void lk_weights_released(void);
uint64_t lk_weights_epoch(void);

/* Copies of a whole dense tensor from and to the host, in the tensor's dtype. On the plan device: download leaves
 * zeros. */
enum lk_code lk_upload(struct lk_device *dev, const struct lk_tensor *dst, const void *host);
enum lk_code lk_download(struct lk_device *dev, void *host, const struct lk_tensor *src);

/* Hands `value` to the device's trace function, if one is set. `name_format` as printf. */
enum lk_code lk_trace(struct lk_device *dev, const struct lk_tensor *value, const char *name_format, ...)
    __attribute__((format(printf, 3, 4)));
