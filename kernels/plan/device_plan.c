/* The plan device: ops that compute nothing. FLOPs and bytes are counted on the way here (engine/ops_check.c), live
 * memory by a counting arena; scratch is what the target device's kernels would ask for. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "kernels/plan/plan.h"

static enum lk_code add_note(struct lk_plan_device *plan, struct lk_plan_note note) {
    LK_TRY(lk_grow(&plan->notes, &plan->notes_capacity, plan->n_notes + 1, sizeof *plan->notes));
    note.stage = plan->stage;
    plan->notes[plan->n_notes++] = note;
    return LK_OK;
}

/* Weights are what has data outside the counting arena. */
static enum lk_code note_weights(const struct lk_device *dev, const struct lk_tensor *const *tensors, int n,
                                 const struct lk_plan_note *of_weight, const struct lk_tensor *weight) {
    struct lk_plan_device *plan = lk_plan_device_of(dev);
    for (int i = 0; i < n; i++) {
        struct lk_tensor_part parts[LK_TENSOR_PARTS];
        const int n_parts = tensors[i] ? lk_tensor_parts(tensors[i], parts) : 0;
        for (int j = 0; j < n_parts; j++) {
            if (lk_arena_holds(&dev->arena, parts[j].data)) continue;
            struct lk_plan_note note = {0};
            if (tensors[i] == weight && weight && j == 0) note = *of_weight;
            if (tensors[i] == weight && weight && j > 0) note.leader = (uintptr_t)parts[0].data;
            note.start = (uintptr_t)parts[j].data;
            note.bytes = parts[j].bytes;
            if (j == 0 && lk_tensor_is_quantized(tensors[i]))
                note.packed = (double)lk_tensor_numel(tensors[i]) / (double)note.bytes;
            struct lk_plan_stage_weights *stage = &plan->stage_weights[plan->stage];
            if (j == 0 && !lk_ranges_find(&stage->ranges, note.start, note.bytes))
                stage->parameters += (uint64_t)lk_tensor_numel(tensors[i]);
            LK_TRY(lk_ranges_add(&stage->ranges, note.start, note.bytes));
            LK_TRY(lk_ranges_add(&plan->weights, note.start, note.bytes));
            LK_TRY(add_note(plan, note));
        }
    }
    return LK_OK;
}

#define PLAN_OP(name, last)                                                                                            \
    static enum lk_code run_##name(struct lk_device *dev, const struct lk_##name *op, void *scratch) {                 \
        (void)scratch;                                                                                                 \
        struct lk_cost cost = {0};                                                                                     \
        LK_TRY(lk_check_##name(op, &cost));                                                                            \
        LK_TRY(add_note(lk_plan_device_of(dev), (struct lk_plan_note){.other_bytes = (double)cost.bytes}));            \
        return note_weights(dev, (const struct lk_tensor *const *)op, LK_TENSORS_##name, NULL, NULL);                  \
    }                                                                                                                  \
    static size_t scratch_##name(const struct lk_device *dev, const struct lk_##name *op) {                            \
        const struct lk_device *target = ((const struct lk_plan_device *)dev)->target;                                 \
        return target->table->name.scratch ? target->table->name.scratch(target, op) : 0;                              \
    }
LK_OPS(PLAN_OP)

/* Three ops of which an itinerary says more than that they read weights. */
static enum lk_code note_linear(struct lk_device *dev, const struct lk_linear *op, void *scratch) {
    (void)scratch;
    struct lk_cost cost = {0};
    LK_TRY(lk_check_linear(op, &cost));
    const struct lk_plan_note note = {.rows = op->x->shape[0], .gemm_flops = (double)cost.flops, .travels = true};
    return note_weights(dev, (const struct lk_tensor *const *)op, LK_TENSORS_linear, &note, op->w);
}

/* A matrix product over patches, at a linear layer's rate; filters stay where they are. */
static enum lk_code note_conv2d(struct lk_device *dev, const struct lk_conv2d *op, void *scratch) {
    (void)scratch;
    struct lk_cost cost = {0};
    LK_TRY(lk_check_conv2d(op, &cost));
    const struct lk_plan_note note = {.gemm_flops = (double)cost.flops};
    return note_weights(dev, (const struct lk_tensor *const *)op, LK_TENSORS_conv2d, &note, op->w);
}

static enum lk_code note_attention(struct lk_device *dev, const struct lk_attention *op, void *scratch) {
    (void)scratch;
    struct lk_cost cost = {0};
    LK_TRY(lk_check_attention(op, &cost));
    return add_note(lk_plan_device_of(dev), (struct lk_plan_note){.attention_flops = (double)cost.flops});
}

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
static void plan_destroy(struct lk_device *dev) {
    struct lk_plan_device *plan = lk_plan_device_of(dev);
    lk_free(plan->weights.entries);
    lk_free(plan->notes);
    for (int i = 0; i < LK_MAX_STAGES; i++) lk_free(plan->stage_weights[i].ranges.entries);
}

static void end_stage(struct lk_plan_device *plan) {
    uint64_t *peak = &plan->stage_peaks[plan->stage];
    if (plan->device.arena.peak > *peak) *peak = plan->device.arena.peak;
}

/* Called while arena.peak is still that of the stage before. */
static enum lk_code plan_stage(struct lk_device *dev, const char *name) {
    struct lk_plan_device *plan = lk_plan_device_of(dev);
    int i = 0;
    end_stage(plan);
    while (i < plan->n_stages && strcmp(plan->stages[i], name)) i++;
    if (i == LK_MAX_STAGES) return lk_fail(LK_E_INTERNAL, "plan device: more than %d stages", LK_MAX_STAGES);
    if (i == plan->n_stages) snprintf(plan->stages[plan->n_stages++], sizeof plan->stages[0], "%s", name);
    plan->stage = i;
    return LK_OK;
}

static const struct lk_device_memory memory = {
    .alloc = plan_alloc,
    .free = plan_free,
    .upload = plan_upload,
    .download = plan_download,
    .destroy = plan_destroy,
    .stage = plan_stage,
};

static uint64_t total_bytes(const struct lk_ranges *ranges) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < ranges->n; i++) bytes += ranges->entries[i].bytes;
    return bytes;
}

uint64_t lk_device_plan_stage_bytes(const struct lk_device *dev, uint64_t *parameters) {
    const struct lk_plan_device *plan = lk_plan_device_of(dev);
    *parameters = plan->stage_weights[plan->stage].parameters;
    return total_bytes(&plan->stage_weights[plan->stage].ranges);
}

uint64_t lk_device_plan_weight_bytes(const struct lk_device *dev) {
    return total_bytes(&lk_plan_device_of(dev)->weights);
}

enum lk_code lk_device_plan_show(const struct lk_device *plan, struct lk_device *dev) {
    return dev->memory->note_weights ? dev->memory->note_weights(dev, &lk_plan_device_of(plan)->weights) : LK_OK;
}

uint64_t lk_device_plan_footprint(const struct lk_device *dev, size_t arena_bytes) {
    const struct lk_plan_device *plan = lk_plan_device_of(dev);
    const struct lk_device_memory *of_target = plan->target->memory;
    if (of_target->footprint) return of_target->footprint(plan->target, arena_bytes, &plan->weights);
    return arena_bytes + total_bytes(&plan->weights);
}

enum lk_code lk_device_plan_create(const struct lk_device *target, struct lk_device **out) {
    struct lk_plan_device *plan = lk_calloc(1, sizeof *plan);
    if (!plan) return lk_fail(LK_E_NOMEM, "plan device: out of memory");
#define SET_OP(name, last)                                                                                             \
    plan->table.name.run = run_##name;                                                                                 \
    plan->table.name.scratch = scratch_##name;
    LK_OPS(SET_OP)
    plan->table.linear.run = note_linear;
    plan->table.conv2d.run = note_conv2d;
    plan->table.attention.run = note_attention;
    plan->target = target;
    plan->device.kind = LK_DEVICE_PLAN;
    plan->device.counts_traced = target->trace != NULL;
    plan->device.trace = target->trace_plans ? target->trace : NULL;
    plan->device.trace_context = target->trace_context;
    plan->device.n_threads = target->n_threads;
    plan->device.table = &plan->table;
    plan->device.memory = &memory;
    snprintf(plan->device.architecture, sizeof plan->device.architecture, "%s", target->architecture);
    snprintf(plan->device.name, sizeof plan->device.name, "plan for %.100s", target->name);
    lk_arena_init_counting(&plan->device.arena);
    *out = &plan->device;
    return LK_OK;
}
