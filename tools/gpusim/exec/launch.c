/* A launch: its blocks spread over host threads, in order of their number. */
#include "exec/block.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALLOCA_BYTES = 64 << 10 };

static const char *file_name(const struct gpusim_module *module, uint32_t file) {
    return file < module->n_files && module->files[file] ? module->files[file] : "?";
}
bool gpusim_source(const struct gpusim_function *function, const struct gpusim_op *op, struct gpusim_report *out) {
    const struct gpusim_module *module = function->module;
    if (!op->source || op->source >= module->n_locations) return false;
    const struct gpusim_location *at = &module->locations[op->source];
    snprintf(out->file, sizeof out->file, "%s", file_name(module, at->file));
    out->line = at->line;
    if (at->at_line) snprintf(out->at_file, sizeof out->at_file, "%s", file_name(module, at->at_file));
    out->at_line = at->at_line;
    return true;
}

static const char *const space_names[] = {"generic", "global", "shared", "local", "param", "const"};

static void fill(struct gpusim_report *r, const struct gpusim_warp *warp, const struct gpusim_op *op, int lane,
                 const struct gpusim_place *place) {
    snprintf(r->kernel, sizeof r->kernel, "%s", warp->launch->function->name);
    gpusim_source(warp->launch->function, op, r);
    r->ptx_line = op->line;
    r->has_block = true;
    r->has_thread = lane >= 0;
    for (int i = 0; i < 3; i++) {
        r->block[i] = warp->block->ctaid[i];
        r->thread[i] = lane >= 0 ? warp->tid[i][lane] : 0;
    }
    if (!place) return;
    r->kind = place->report;
    if (place->space == GPUSIM_GENERIC) return;
    snprintf(r->space, sizeof r->space, "%s", space_names[place->space]);
    r->address = place->address;
    if (place->allocation) {
        r->allocation = place->allocation->id;
        r->allocation_base = place->allocation->base;
        r->allocation_bytes = place->allocation->bytes;
    }
}

static enum gpusim_report_kind report_kind(enum gpusim_fault_kind kind) {
    static const uint8_t kinds[] = {
        [GPUSIM_FAULT_ADDRESS] = GPUSIM_REPORT_OUT_OF_BOUNDS,
        [GPUSIM_FAULT_MISALIGNED] = GPUSIM_REPORT_MISALIGNED,
        [GPUSIM_FAULT_TRAP] = GPUSIM_REPORT_TRAP,
        [GPUSIM_FAULT_ASSERT] = GPUSIM_REPORT_ASSERT,
        [GPUSIM_FAULT_INSTRUCTION] = GPUSIM_REPORT_INSTRUCTION,
        [GPUSIM_FAULT_DEADLOCK] = GPUSIM_REPORT_DEADLOCK,
        [GPUSIM_FAULT_STACK] = GPUSIM_REPORT_STACK,
        [GPUSIM_FAULT_MEMORY] = GPUSIM_REPORT_NO_MEMORY,
    };
    return (size_t)kind < sizeof kinds ? kinds[kind] : GPUSIM_REPORT_NONE;
}

static int fault(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_fault_kind kind, int lane,
                 const struct gpusim_place *place, const char *format, va_list args) {
    struct gpusim_launch *launch = warp->launch;
    pthread_mutex_lock(&launch->mutex);
    if (!launch->fault) {
        launch->fault = kind;
        launch->report.kind = report_kind(kind);
        fill(&launch->report, warp, op, lane, place);
        vsnprintf(launch->report.what, sizeof launch->report.what, format, args);
    }
    __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&launch->mutex);
    return GPUSIM_FAULT;
}

int gpusim_fault(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_fault_kind kind, int lane,
                 const char *format, ...) {
    va_list args;
    va_start(args, format);
    fault(warp, op, kind, lane, NULL, format, args);
    va_end(args);
    return GPUSIM_FAULT;
}
int gpusim_fault_at(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_fault_kind kind, int lane,
                    const struct gpusim_place *place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fault(warp, op, kind, lane, place, format, args);
    va_end(args);
    return GPUSIM_FAULT;
}

static void no_memory(struct gpusim_launch *launch) {
    pthread_mutex_lock(&launch->mutex);
    if (!launch->fault) {
        launch->fault = GPUSIM_FAULT_MEMORY;
        launch->report.kind = GPUSIM_REPORT_NO_MEMORY;
        snprintf(launch->report.kernel, sizeof launch->report.kernel, "%s", launch->function->name);
        snprintf(launch->report.what, sizeof launch->report.what,
                 "no host memory for a block's registers and shared memory");
    }
    __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&launch->mutex);
}

/* Frame memory of a thread. Calls may nest: what the kernel needs and room for the rest. */
static uint32_t local_bytes(const struct gpusim_launch *launch) {
    const struct gpusim_function *function = launch->function;
    uint32_t bytes = (function->local_bytes + 15) & ~15u;
    return (function->uses_calls ? bytes + (32 << 10) : bytes) + launch->alloca_bytes;
}

/* The next block to run. A sample takes one block, drawn from the seed, of each of n_run equal parts of the grid.
 * n_blocks: none is left. */
static uint64_t take(struct gpusim_launch *launch) {
    uint64_t at = __atomic_fetch_add(&launch->next_block, 1, __ATOMIC_RELAXED);
    if (at >= launch->n_run) return launch->n_blocks;
    if (launch->n_run == launch->n_blocks) return at;
    __extension__ typedef unsigned __int128 wide;
    uint64_t first = (uint64_t)((wide)at * launch->n_blocks / launch->n_run);
    uint64_t end = (uint64_t)((wide)(at + 1) * launch->n_blocks / launch->n_run);
    uint64_t state = gpusim_settings()->seed ^ at * 0xd1342543de82ef95ull;
    return first + gpusim_random(&state) % (end - first);
}

/* Blocks one after the other, or for a cooperative launch, where they may wait for each other, this thread's share by
 * turns. */
static void run_blocks(struct gpusim_launch *launch, uint32_t n_resident) {
    struct gpusim_resident *r = calloc(n_resident, sizeof *r);
    bool ok = r;
    for (uint32_t i = 0; ok && i < n_resident; i++) ok = gpusim_resident_new(&r[i], launch, local_bytes(launch));
    if (!ok) no_memory(launch);
    uint32_t live = 0;
    for (uint32_t i = 0; ok && i < n_resident; i++) {
        uint64_t number = take(launch);
        if (number < launch->n_blocks) gpusim_block_start(&r[i], number), live++;
    }
    for (uint32_t i = 0; ok && live; i = (i + 1) % n_resident) {
        if (!r[i].live) continue;
        ok = gpusim_block_step(&r[i], n_resident > 1 ? 16 : UINT32_MAX);
        if (!ok || r[i].live) continue;
        uint64_t number = take(launch);
        if (number < launch->n_blocks)
            gpusim_block_start(&r[i], number);
        else
            live--;
    }
    for (uint32_t i = 0; r && i < n_resident; i++) gpusim_resident_free(&r[i]);
    free(r);
}

struct worker {
    struct gpusim_launch *launch;
    uint32_t n_resident;
};
static void *work(void *context) {
    struct worker *w = context;
    run_blocks(w->launch, w->n_resident);
    return NULL;
}

bool gpusim_launch_run(struct gpusim_launch *launch) {
    pthread_t threads[64];
    uint32_t n = (uint32_t)gpusim_settings()->n_threads, started = 0;
    launch->n_blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    launch->n_run = launch->sample && launch->sample < launch->n_blocks ? launch->sample : launch->n_blocks;
    launch->next_block = 0;
    launch->stop = 0;
    launch->fault = GPUSIM_FAULT_NONE;
    launch->dynamic_base = (launch->function->shared_bytes + 15) & ~15u;
    launch->reserved_base = launch->shared_bytes = launch->dynamic_base + launch->dynamic_shared_bytes;
    if (launch->function->uses_reserved_shared) {
        launch->reserved_base = (launch->shared_bytes + 15) & ~15u;
        launch->shared_bytes = launch->reserved_base + GPUSIM_SHARED_RESERVED;
    }
    launch->alloca_bytes = launch->function->module->uses_alloca ? ALLOCA_BYTES : 0;
    pthread_mutex_init(&launch->mutex, NULL);
    if (n > launch->n_run) n = (uint32_t)launch->n_run;
    uint32_t n_resident = launch->cooperative ? (uint32_t)((launch->n_run + n - 1) / n) : 1;
    if (launch->hooks && launch->hooks->launch_begin) launch->hooks->launch_begin(launch->hooks->context, launch);
    struct worker worker = {launch, n_resident};
    while (started + 1 < n && pthread_create(&threads[started], NULL, work, &worker) == 0) started++;
    run_blocks(launch, n_resident);
    for (uint32_t t = 0; t < started; t++) pthread_join(threads[t], NULL);
    if (launch->hooks && launch->hooks->launch_end) launch->hooks->launch_end(launch->hooks->context, launch);
    pthread_mutex_destroy(&launch->mutex);
    return launch->fault == GPUSIM_FAULT_NONE;
}
