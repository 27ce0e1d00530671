/* A launch: its blocks spread over host threads, in order of their number. */
#include "exec/block.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void gpusim_where(char *out, size_t n, const struct gpusim_warp *warp, const struct gpusim_op *op, int lane) {
    const struct gpusim_module *module = warp->launch->function->module;
    char source[256] = "", thread[96] = "";
    if (op->source && op->source < module->n_locations) {
        const struct gpusim_location *at = &module->locations[op->source];
        const char *file = at->file < module->n_files && module->files[at->file] ? module->files[at->file] : "?";
        snprintf(source, sizeof source, " (%s:%u)", file, at->line);
    }
    if (lane >= 0)
        snprintf(thread, sizeof thread, ", thread (%u,%u,%u)", warp->tid[0][lane], warp->tid[1][lane],
                 warp->tid[2][lane]);
    const uint32_t *b = warp->block->ctaid;
    snprintf(out, n, "kernel %s, PTX line %u%s, block (%u,%u,%u)%s", warp->launch->function->name, op->line, source,
             b[0], b[1], b[2], thread);
}

int gpusim_fault(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_fault_kind kind, int lane,
                 const char *format, ...) {
    struct gpusim_launch *launch = warp->launch;
    char what[500], where[500];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    gpusim_where(where, sizeof where, warp, op, lane);
    pthread_mutex_lock(&launch->mutex);
    if (!launch->fault) {
        launch->fault = kind;
        snprintf(launch->fault_text, sizeof launch->fault_text, "%s: %s", where, what);
    }
    __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&launch->mutex);
    return GPUSIM_FAULT;
}

static void no_memory(struct gpusim_launch *launch) {
    pthread_mutex_lock(&launch->mutex);
    if (!launch->fault) {
        launch->fault = GPUSIM_FAULT_MEMORY;
        snprintf(launch->fault_text, sizeof launch->fault_text,
                 "kernel %s: no host memory for a block's registers and shared memory", launch->function->name);
    }
    __atomic_store_n(&launch->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&launch->mutex);
}

/* Frame memory of a thread. Calls may nest: what the kernel needs and room for the rest. */
static uint32_t local_bytes(const struct gpusim_launch *launch) {
    const struct gpusim_function *function = launch->function;
    uint32_t bytes = (function->local_bytes + 15) & ~15u;
    return function->uses_calls ? bytes + (32 << 10) : bytes;
}

static uint64_t take(struct gpusim_launch *launch) {
    return __atomic_fetch_add(&launch->next_block, 1, __ATOMIC_RELAXED);
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
    launch->next_block = 0;
    launch->stop = 0;
    launch->fault = GPUSIM_FAULT_NONE;
    launch->dynamic_base = (launch->function->shared_bytes + 15) & ~15u;
    launch->shared_bytes = launch->dynamic_base + launch->dynamic_shared_bytes;
    pthread_mutex_init(&launch->mutex, NULL);
    if (n > launch->n_blocks) n = (uint32_t)launch->n_blocks;
    uint32_t n_resident = launch->cooperative ? (uint32_t)((launch->n_blocks + n - 1) / n) : 1;
    if (launch->hooks && launch->hooks->launch_begin) launch->hooks->launch_begin(launch->hooks->context, launch);
    struct worker worker = {launch, n_resident};
    while (started + 1 < n && pthread_create(&threads[started], NULL, work, &worker) == 0) started++;
    run_blocks(launch, n_resident);
    for (uint32_t t = 0; t < started; t++) pthread_join(threads[t], NULL);
    if (launch->hooks && launch->hooks->launch_end) launch->hooks->launch_end(launch->hooks->context, launch);
    pthread_mutex_destroy(&launch->mutex);
    return launch->fault == GPUSIM_FAULT_NONE;
}
