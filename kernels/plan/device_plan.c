/* The plan device: ops that compute nothing. FLOPs and bytes are counted on the way here (engine/ops_check.c), live
 * memory by a counting arena; scratch is what the target device's kernels would ask for. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/ops.h"

struct plan_device {
    struct lk_device device;
    struct lk_op_table table; /* run does nothing, scratch asks the target */
    const struct lk_device *target;
    struct lk_ranges weights; /* that ops have read */
};

static struct plan_device *plan_of(const struct lk_device *dev) { return (struct plan_device *)(uintptr_t)dev; }

/* Weights are what has data outside the counting arena. */
static enum lk_code note_weights(const struct lk_device *dev, const struct lk_tensor *const *tensors, int n) {
    struct plan_device *plan = plan_of(dev);
    for (int i = 0; i < n; i++) {
        struct lk_tensor_part parts[LK_TENSOR_PARTS];
        const int n_parts = tensors[i] ? lk_tensor_parts(tensors[i], parts) : 0;
        for (int j = 0; j < n_parts; j++)
            if (!lk_arena_holds(&dev->arena, parts[j].data))
                LK_TRY(lk_ranges_add(&plan->weights, (uintptr_t)parts[j].data, parts[j].bytes));
    }
    return LK_OK;
}

#define PLAN_OP(name, last)                                                                                            \
    static enum lk_code run_##name(struct lk_device *dev, const struct lk_##name *op, void *scratch) {                 \
        (void)scratch;                                                                                                 \
        return note_weights(dev, (const struct lk_tensor *const *)op, LK_TENSORS_##name);                              \
    }                                                                                                                  \
    static size_t scratch_##name(const struct lk_device *dev, const struct lk_##name *op) {                            \
        const struct lk_device *target = ((const struct plan_device *)dev)->target;                                    \
        return target->table->name.scratch ? target->table->name.scratch(target, op) : 0;                              \
    }
LK_OPS(PLAN_OP)

static enum lk_code plan_alloc(struct lk_device *dev, size_t bytes, void **out) {
    (void)dev, (void)bytes;
    *out = NULL;
    return LK_OK;
}
static void plan_free(struct lk_device *dev, void *block) { (void)dev, (void)block; }
static enum lk_code plan_upload(struct lk_device *dev, void *dst, const void *host, size_t bytes) {
    (void)dev, (void)dst, (void)host, (void)bytes;
    return LK_OK;
}
static enum lk_code plan_download(struct lk_device *dev, void *host, const void *src, size_t bytes) {
    (void)dev, (void)src;
    memset(host, 0, bytes);
    return LK_OK;
}
static void plan_destroy(struct lk_device *dev) { lk_free(plan_of(dev)->weights.entries); }
static const struct lk_device_memory memory = {
    .alloc = plan_alloc, .free = plan_free, .upload = plan_upload, .download = plan_download, .destroy = plan_destroy};

enum lk_code lk_device_plan_show(const struct lk_device *plan, struct lk_device *dev) {
    return dev->memory->note_weights ? dev->memory->note_weights(dev, &plan_of(plan)->weights) : LK_OK;
}

uint64_t lk_device_plan_footprint(const struct lk_device *dev, size_t arena_bytes) {
    const struct plan_device *plan = plan_of(dev);
    const struct lk_device_memory *of_target = plan->target->memory;
    if (of_target->footprint) return of_target->footprint(plan->target, arena_bytes, &plan->weights);
    uint64_t bytes = arena_bytes;
    for (size_t i = 0; i < plan->weights.n; i++) bytes += plan->weights.entries[i].bytes;
    return bytes;
}

enum lk_code lk_device_plan_create(const struct lk_device *target, struct lk_device **out) {
    struct plan_device *plan = lk_calloc(1, sizeof *plan);
    if (!plan) return lk_fail(LK_E_NOMEM, "plan device: out of memory");
#define SET_OP(name, last)                                                                                             \
    plan->table.name.run = run_##name;                                                                                 \
    plan->table.name.scratch = scratch_##name;
    LK_OPS(SET_OP)
    plan->target = target;
    plan->device.kind = LK_DEVICE_PLAN;
    plan->device.n_threads = target->n_threads;
    plan->device.table = &plan->table;
    plan->device.memory = &memory;
    snprintf(plan->device.architecture, sizeof plan->device.architecture, "%s", target->architecture);
    snprintf(plan->device.name, sizeof plan->device.name, "plan for %.100s", target->name);
    lk_arena_init_counting(&plan->device.arena);
    *out = &plan->device;
    return LK_OK;
}
