/* From the counts of ops to the record of a kernel. */
#include "counters/collect.h"
#include "counters/counts.h"
#include "counters/occupancy.h"
#include "counters/touched.h"

#include <stdlib.h>
#include <string.h>

static struct gpusim_counts *records;

const struct gpusim_counts *gpusim_all_counts(void) { return records; }

const struct gpusim_counts *gpusim_counts_of(const char *kernel) {
    const struct gpusim_counts *c = records;
    while (c && strcmp(c->name, kernel)) c = c->next;
    return c;
}

static void sites_free(struct gpusim_site *site) {
    while (site) {
        struct gpusim_site *next = site->next;
        free(site->file);
        free(site);
        site = next;
    }
}

void gpusim_forget(void) {
    gpusim_regions_forget();
    while (records) {
        struct gpusim_counts *next = records->next;
        sites_free(records->sites);
        free(records->name);
        free(records);
        records = next;
    }
}

static enum gpusim_tensor tensor_type(const struct gpusim_op *op) {
    switch (op->from) {
    case GPUSIM_T_F16:
        return GPUSIM_TENSOR_F16;
    case GPUSIM_T_BF16:
        return GPUSIM_TENSOR_BF16;
    case GPUSIM_T_TF32:
        return GPUSIM_TENSOR_TF32;
    case GPUSIM_T_F64:
        return GPUSIM_TENSOR_F64;
    default:
        return GPUSIM_TENSOR_INT8;
    }
}

static enum gpusim_traffic traffic_of(const struct gpusim_op *op) {
    switch (op->cls) {
    case GPUSIM_CLASS_STORE:
        return GPUSIM_STORES;
    case GPUSIM_CLASS_ATOMIC:
    case GPUSIM_CLASS_BARRIER: /* mbarrier objects */
        return GPUSIM_ATOMICS;
    case GPUSIM_CLASS_ASYNC_COPY:
        return GPUSIM_COPIES;
    case GPUSIM_CLASS_MATRIX_LOAD:
        return GPUSIM_MATRICES;
    default:
        return GPUSIM_LOADS;
    }
}

/* The site of an op: one for each source line, or for each PTX line without -lineinfo. NULL: no memory. */
static struct gpusim_site *site_of(struct gpusim_counts *c, const struct gpusim_module *module,
                                   const struct gpusim_op *op) {
    const struct gpusim_location *at =
        op->source && op->source < module->n_locations ? &module->locations[op->source] : NULL;
    const char *file = at && at->file < module->n_files ? module->files[at->file] : NULL;
    for (struct gpusim_site *s = c->sites; s; s = s->next)
        if (file ? s->file && s->source_line == at->line && !strcmp(s->file, file) : s->ptx_line == op->line) return s;
    struct gpusim_site *site = calloc(1, sizeof *site);
    if (!site) return NULL;
    site->ptx_line = op->line;
    if (file) site->file = strdup(file), site->source_line = at->line;
    site->next = c->sites;
    return c->sites = site;
}

static void add_site(struct gpusim_counts *c, const struct gpusim_module *module, const struct gpusim_op *op,
                     const struct gpusim_op_traffic *t, double scale) {
    double conflicts = (double)(t->wavefronts - t->least) * scale;
    double excess = ((double)t->sectors - (double)t->bytes / 32) * scale;
    if (conflicts <= 0 && excess <= 0) return;
    struct gpusim_site *site = site_of(c, module, op);
    if (!site) return;
    site->conflicts += conflicts;
    site->sectors += (double)t->sectors * scale;
    site->sector_excess += excess;
}

static void add_op(struct gpusim_counts *c, const struct gpusim_op *op, const struct gpusim_tally *tally,
                   const struct gpusim_op_traffic *t, double scale) {
    c->issued[op->cls] += (double)tally->issued * scale;
    c->idle_lanes += (double)tally->idle_lanes * scale;
    if (op->cls == GPUSIM_CLASS_MMA)
        c->tensor_flops[tensor_type(op)] += 2 * (double)op->imm * (double)tally->issued * scale;
    struct gpusim_global_counts *global = &c->global[traffic_of(op)];
    global->requests += (double)t->global_requests * scale;
    global->bytes += (double)t->bytes * scale;
    global->sectors += (double)t->sectors * scale;
    global->l2_sectors += (double)t->l2_sectors * scale;
    struct gpusim_shared_counts *shared = &c->shared[traffic_of(op)];
    shared->requests += (double)t->shared_requests * scale;
    shared->wavefronts += (double)t->wavefronts * scale;
    shared->least += (double)t->least * scale;
    c->local_requests += (double)t->local_requests * scale;
    c->local_bytes += (double)t->local_bytes * scale;
}

static void set_shape(struct gpusim_counts *c, const struct gpusim_launch *launch) {
    const struct gpusim_function *f = launch->function;
    uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
    memcpy(c->grid, launch->grid, sizeof c->grid);
    memcpy(c->block, launch->block, sizeof c->block);
    c->static_shared = f->shared_bytes;
    c->dynamic_shared = launch->dynamic_shared_bytes;
    c->registers = f->registers;
    c->registers_exact = f->registers_exact;
    c->spill_bytes = f->registers_exact && f->frame_bytes > f->local_bytes ? f->frame_bytes - f->local_bytes : 0;
    int blocks = gpusim_occupancy_limit(f, threads, launch->dynamic_shared_bytes, &c->limit);
    c->blocks_per_sm = blocks > 0 ? (uint32_t)blocks : 0;
}

static bool same_shape(const struct gpusim_counts *a, const struct gpusim_counts *b) {
    return !memcmp(a->grid, b->grid, sizeof a->grid) && !memcmp(a->block, b->block, sizeof a->block) &&
           a->dynamic_shared == b->dynamic_shared;
}

static struct gpusim_counts *record_of(const struct gpusim_counts *one) {
    struct gpusim_counts **link = &records;
    for (; *link; link = &(*link)->next)
        if (!strcmp((*link)->name, one->name) && (!gpusim_settings()->report_by_shape || same_shape(*link, one)))
            return *link;
    struct gpusim_counts *c = calloc(1, sizeof *c);
    if (c && !(c->name = strdup(one->name))) {
        free(c);
        c = NULL;
    }
    return *link = c;
}

/* Adds everything additive; the shape becomes that of `one`. */
static void add(struct gpusim_counts *to, struct gpusim_counts *one) {
#define ADD(field) to->field += one->field
    ADD(launches), ADD(blocks), ADD(blocks_run), ADD(idle_lanes), ADD(machine_issued), ADD(local_requests),
        ADD(local_bytes);
    ADD(unique_read), ADD(unique_written), ADD(bound_seconds), ADD(waves), ADD(quantised_blocks);
    for (int k = 0; k < GPUSIM_N_CLASSES; k++) ADD(issued[k]);
    for (int t = 0; t < GPUSIM_N_TENSORS; t++) ADD(tensor_flops[t]);
    for (int b = 0; b < GPUSIM_N_BOUNDS; b++) ADD(seconds[b]);
    for (int t = 0; t < GPUSIM_N_TRAFFIC; t++) {
        ADD(global[t].requests), ADD(global[t].bytes), ADD(global[t].sectors), ADD(global[t].l2_sectors);
        ADD(shared[t].requests), ADD(shared[t].wavefronts), ADD(shared[t].least);
    }
#undef ADD
    struct gpusim_counts total = *to;
    memcpy(total.grid, one->grid, sizeof total.grid);
    memcpy(total.block, one->block, sizeof total.block);
    total.static_shared = one->static_shared;
    total.dynamic_shared = one->dynamic_shared;
    total.registers = one->registers;
    total.registers_exact = one->registers_exact;
    total.spill_bytes = one->spill_bytes;
    total.blocks_per_sm = one->blocks_per_sm;
    total.limit = one->limit;
    *to = total;
}

static void add_machine(struct gpusim_counts *c, const struct gpusim_part *part, double scale) {
    for (; part; part = part->next) {
        double issued = gpusim_machine_issued(part->function, part->tally);
        for (uint32_t k = 0; k < part->function->n_ops && !part->function->n_machine_ops; k++)
            issued += (double)part->tally[k].issued;
        c->machine_issued += issued * scale;
    }
}

void gpusim_record(const struct gpusim_launch *launch, const struct gpusim_part *parts) {
    uint64_t run = launch->next_block < launch->n_run ? launch->next_block : launch->n_run;
    double scale = run ? (double)launch->n_blocks / (double)run : 0;
    struct gpusim_counts one = {
        .name = launch->function->name, .launches = 1, .blocks = (double)launch->n_blocks, .blocks_run = (double)run};
    set_shape(&one, launch);
    struct gpusim_counts *c = record_of(&one);
    if (!c) {
        gpusim_say("kernel %s: no memory for its counts", one.name);
        return;
    }
    for (const struct gpusim_part *part = parts; part; part = part->next)
        for (uint32_t k = 0; k < part->function->n_ops; k++) {
            if (!part->tally[k].issued) continue;
            add_op(&one, &part->function->ops[k], &part->tally[k], &part->traffic[k], scale);
            add_site(c, part->function->module, &part->function->ops[k], &part->traffic[k], scale);
        }
    add_machine(&one, parts, scale);
    gpusim_take_touched(scale, &one.unique_read, &one.unique_written);
    gpusim_find_bound(&one);
    add(c, &one);
}
