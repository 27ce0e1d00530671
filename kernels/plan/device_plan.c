/* The plan device: ops that compute nothing. FLOPs and bytes are counted on the way here (engine/ops_check.c), live
 * memory by a counting arena; scratch is what the target device's kernels would ask for. */
#include <stdio.h>
#include <string.h>

#include "engine/alloc.h"
#include "engine/ops.h"

struct plan_device {
    struct lk_device device;
    struct lk_op_table table; /* run does nothing, scratch asks the target */
    const struct lk_device *target;
};

/* Weights are what has data outside the counting arena. */
static void note_weights(const struct lk_device *dev, const struct lk_tensor *const *tensors, int n) {
    const struct lk_device *target = ((const struct plan_device *)dev)->target;
    for (int i = 0; target->memory->note_weight && i < n; i++)
        if (tensors[i] && tensors[i]->data && !lk_arena_holds(&dev->arena, tensors[i]->data))
            target->memory->note_weight(target, tensors[i]);
}

#define PLAN_OP(name)                                                                                                  \
    static enum lk_code run_##name(struct lk_device *dev, const struct lk_##name *op, void *scratch) {                 \
        (void)scratch;                                                                                                 \
        note_weights(dev, (const struct lk_tensor *const *)op, LK_TENSORS_##name);                                     \
        return LK_OK;                                                                                                  \
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
static const struct lk_device_memory memory = {plan_alloc, plan_free, plan_upload, plan_download, NULL, NULL, NULL};

enum lk_code lk_device_plan_create(const struct lk_device *target, struct lk_device **out) {
    struct plan_device *plan = lk_calloc(1, sizeof *plan);
    if (!plan) return lk_fail(LK_E_NOMEM, "plan device: out of memory");
#define SET_OP(name)                                                                                                   \
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
