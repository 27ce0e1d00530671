/* Counting while blocks run: each host thread has arrays of its own, indexed by op, which are added up at the end. */
#include "counters/collect.h"
#include "counters/counts.h"
#include "counters/occupancy.h"
#include "counters/touched.h"

#include <stdlib.h>
#include <string.h>

static struct {
    bool known, on;
    uint64_t sample;
} state;

struct whole {
    pthread_mutex_t mutex;
    struct gpusim_part *parts;
    uint64_t l1_sectors; /* of a block's share of the L1 cache; a power of two */
};

/* A host thread's. The L1 is modelled as direct-mapped by sector and empty at the start of each block. */
struct thread_counts {
    struct gpusim_part *parts;
    uint64_t *tags, l1_sectors, generation;
};

static struct gpusim_part *part_new(struct gpusim_function *function) {
    struct gpusim_part *part = calloc(1, sizeof *part);
    if (!part) return NULL;
    part->function = function;
    part->tally = calloc(function->n_ops + 1, sizeof *part->tally);
    part->traffic = calloc(function->n_ops + 1, sizeof *part->traffic);
    if (part->tally && part->traffic) return part;
    free(part->tally);
    free(part->traffic);
    free(part);
    return NULL;
}

static void parts_free(struct gpusim_part *part) {
    while (part) {
        struct gpusim_part *next = part->next;
        free(part->tally);
        free(part->traffic);
        free(part);
        part = next;
    }
}

static struct gpusim_part *part_of(struct gpusim_part *part, const struct gpusim_function *function) {
    while (part && part->function != function) part = part->next;
    return part;
}

static bool thread_begin(struct gpusim_block *block) {
    const struct whole *whole = block->launch->counters;
    struct thread_counts *t = calloc(1, sizeof *t);
    if (t) t->tags = calloc(whole->l1_sectors, sizeof *t->tags);
    if (!t || !t->tags) {
        free(t);
        return false;
    }
    t->l1_sectors = whole->l1_sectors;
    block->counters = t;
    return true;
}

static void add_part(struct gpusim_part *to, const struct gpusim_part *from) {
    for (uint32_t k = 0; k < to->function->n_ops; k++) {
        to->tally[k].issued += from->tally[k].issued;
        to->tally[k].idle_lanes += from->tally[k].idle_lanes;
        uint64_t *sum = (uint64_t *)&to->traffic[k];
        const uint64_t *add = (const uint64_t *)&from->traffic[k];
        for (size_t i = 0; i < sizeof to->traffic[k] / sizeof *sum; i++) sum[i] += add[i];
    }
}

static void thread_end(struct gpusim_block *block) {
    struct whole *whole = block->launch->counters;
    struct thread_counts *t = block->counters;
    pthread_mutex_lock(&whole->mutex);
    for (struct gpusim_part *part = t->parts, *next; part; part = next) {
        next = part->next;
        struct gpusim_part *sum = part_of(whole->parts, part->function);
        if (sum) {
            add_part(sum, part);
            part->next = NULL;
            parts_free(part);
        } else {
            part->next = whole->parts;
            whole->parts = part;
        }
    }
    pthread_mutex_unlock(&whole->mutex);
    free(t->tags);
    free(t);
    block->counters = NULL;
}

static void block_begin(struct gpusim_block *block) { ((struct thread_counts *)block->counters)->generation++; }

static struct gpusim_tally *tally(struct gpusim_block *block, struct gpusim_function *function) {
    struct thread_counts *t = block->counters;
    struct gpusim_part *part = part_of(t->parts, function);
    if (!part && (part = part_new(function))) {
        part->next = t->parts;
        t->parts = part;
    }
    return part ? part->tally : NULL;
}

static uint32_t misses(struct thread_counts *t, const struct gpusim_sectors *sectors) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < sectors->n; s++) {
        uint64_t tag = sectors->sector[s] | t->generation << 44, slot = sectors->sector[s] & (t->l1_sectors - 1);
        n += t->tags[slot] != tag;
        t->tags[slot] = tag;
    }
    return n;
}

static void count_global(struct thread_counts *t, const struct gpusim_op *op, const struct gpusim_memory_event *event,
                         struct gpusim_op_traffic *traffic) {
    struct gpusim_sectors sectors;
    gpusim_find_sectors(event->address, event->mask, event->bytes, &sectors);
    bool load = event->access == GPUSIM_ACCESS_LOAD || event->access == GPUSIM_ACCESS_ASYNC_SOURCE;
    bool cached = load && !(op->flags & (GPUSIM_CACHE_GLOBAL | GPUSIM_VOLATILE));
    traffic->global_requests++;
    traffic->bytes += sectors.bytes;
    traffic->sectors += sectors.n;
    traffic->l2_sectors += cached ? misses(t, &sectors) : sectors.n;
    if (event->access != GPUSIM_ACCESS_STORE) gpusim_touch(event->record, &sectors, false);
    if (!load) gpusim_touch(event->record, &sectors, true);
}

static void memory(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event) {
    struct thread_counts *t = warp->block->counters;
    struct gpusim_part *part = part_of(t->parts, warp->frame->function);
    if (!part) return;
    struct gpusim_op_traffic *traffic = &part->traffic[warp->pc];
    uint32_t least;
    switch (event->space) {
    case GPUSIM_GLOBAL:
        count_global(t, op, event, traffic);
        break;
    case GPUSIM_SHARED:
        traffic->shared_requests++;
        traffic->wavefronts +=
            gpusim_wavefronts(event->address, event->mask, event->bytes, event->access == GPUSIM_ACCESS_ATOMIC, &least);
        traffic->least += least;
        break;
    case GPUSIM_LOCAL:
        traffic->local_requests++;
        traffic->local_bytes += (uint64_t)event->bytes * (uint32_t)__builtin_popcount(event->mask);
        break;
    default:
        break;
    }
}

static const struct gpusim_counting counting = {thread_begin, thread_end, block_begin, tally, memory};

/* A block's share of the 192 KiB that L1 and shared memory are made of. */
static uint64_t l1_sectors(const struct gpusim_launch *launch) {
    uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
    int blocks = gpusim_occupancy_limit(launch->function, threads, launch->dynamic_shared_bytes, NULL);
    uint64_t n = blocks > 0 ? (uint64_t)blocks : 1;
    uint64_t shared = n * (launch->function->shared_bytes + launch->dynamic_shared_bytes + GPUSIM_SHARED_RESERVED);
    uint64_t most = 192 << 10, bytes = (shared < most - (28 << 10) ? most - shared : 28 << 10) / n, sectors = 1;
    while (sectors * 2 * 32 <= bytes) sectors *= 2;
    return sectors;
}

static bool wanted(const char *kernel) {
    const char *list = gpusim_settings()->report_kernels;
    while (list && *list) {
        size_t n = strcspn(list, ",");
        char word[128];
        if (n && n < sizeof word) {
            memcpy(word, list, n);
            word[n] = 0;
            if (strstr(kernel, word)) return true;
        }
        list += n + (list[n] == ',');
        if (!*list) return false;
    }
    return true;
}

static void read_settings(void) {
    if (state.known) return;
    state.known = true;
    state.on = gpusim_settings()->report;
    state.sample = gpusim_settings()->sample;
}

void gpusim_count(bool on) {
    read_settings();
    state.on = on;
}
void gpusim_sample(uint64_t blocks) {
    read_settings();
    state.sample = blocks;
}

void gpusim_counters_begin(struct gpusim_launch *launch) {
    read_settings();
    if (!launch->cooperative) launch->sample = state.sample; /* blocks of a cooperative launch wait for each other */
    if (!state.on || !wanted(launch->function->name)) return;
    struct whole *whole = calloc(1, sizeof *whole);
    if (!whole) {
        gpusim_say("kernel %s: no memory to count it", launch->function->name);
        return;
    }
    pthread_mutex_init(&whole->mutex, NULL);
    whole->l1_sectors = l1_sectors(launch);
    launch->counters = whole;
    launch->counting = &counting;
}

void gpusim_counters_end(struct gpusim_launch *launch) {
    struct whole *whole = launch->counters;
    if (!whole) return;
    gpusim_record(launch, whole->parts);
    parts_free(whole->parts);
    pthread_mutex_destroy(&whole->mutex);
    free(whole);
    launch->counters = NULL;
    launch->counting = NULL;
}
