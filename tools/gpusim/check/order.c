/* Which operations are done before which: see check.h. */
#include "check/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_STREAMS = GPUSIM_ORDER_STREAMS, N_RECENT = 16384 };
struct stream {
    const void *group;
    bool legacy, blocking;
    struct gpusim_order order; /* what its next operation comes after */
    uint32_t last;             /* its last operation */
};
static struct stream streams[N_STREAMS];
static uint32_t n_streams;
static struct gpusim_order host;
static struct recent {
    uint32_t number, stream;
    char name[56];
} recent[N_RECENT];

static void join(struct gpusim_order *to, const struct gpusim_order *from) {
    for (int s = 0; s < N_STREAMS; s++) to->known[s] = to->known[s] > from->known[s] ? to->known[s] : from->known[s];
}

uint32_t gpusim_order_stream(const void *group, bool legacy, bool blocking) {
    uint32_t s = n_streams++ % N_STREAMS;
    /* A place that is used again: what its former stream did counts as done. */
    for (int t = 0; t < N_STREAMS; t++) streams[t].order.known[s] = streams[s].last;
    host.known[s] = streams[s].last;
    uint32_t last = streams[s].last;
    streams[s] = (struct stream){.group = group, .legacy = legacy, .blocking = blocking, .last = last};
    return s;
}

struct gpusim_operation *gpusim_order_operation(uint32_t stream, uint64_t number, const char *name) {
    if (gpusim_settings()->checks < GPUSIM_CHECKS_ALL) return NULL;
    struct gpusim_operation *op = calloc(1, sizeof *op);
    if (!op) return NULL;
    struct stream *mine = &streams[stream];
    join(&mine->order, &host);
    for (int s = 0; s < N_STREAMS; s++) {
        struct stream *other = &streams[s];
        if (other == mine || other->group != mine->group) continue;
        if ((mine->legacy && other->blocking) || (other->legacy && mine->blocking)) {
            join(&mine->order, &other->order);
            if (mine->order.known[s] < other->last) mine->order.known[s] = other->last;
        }
    }
    op->number = (uint32_t)(number & 0x3fffffff);
    op->stream = stream;
    mine->order.known[stream] = mine->last = op->number;
    op->order = mine->order;
    op->horizon = op->number - 1;
    for (int s = 0; s < N_STREAMS; s++)
        if (streams[s].last > op->order.known[s] && op->order.known[s] < op->horizon) op->horizon = op->order.known[s];
    struct recent *r = &recent[op->number % N_RECENT];
    r->number = op->number;
    r->stream = stream;
    snprintf(r->name, sizeof r->name, "%s", name);
    return op;
}

void gpusim_order_record(uint32_t stream, struct gpusim_order *event) { *event = streams[stream].order; }
void gpusim_order_wait(uint32_t stream, const struct gpusim_order *event) { join(&streams[stream].order, event); }
void gpusim_order_host_event(const struct gpusim_order *event) { join(&host, event); }
void gpusim_order_host_stream(uint32_t stream) { join(&host, &streams[stream].order); }
void gpusim_order_host_group(const void *group) {
    for (int s = 0; s < N_STREAMS; s++)
        if (streams[s].group == group) join(&host, &streams[s].order);
}

bool check_ordered(const struct gpusim_operation *operation, uint32_t earlier) {
    const struct recent *r = &recent[earlier % N_RECENT];
    return earlier <= operation->horizon || r->number != earlier || earlier <= operation->order.known[r->stream];
}

void check_describe(uint32_t operation, char *out, size_t n) {
    const struct recent *r = &recent[operation % N_RECENT];
    if (r->number == operation)
        snprintf(out, n, "operation %u (%s on stream %u)", operation, r->name, r->stream);
    else
        snprintf(out, n, "operation %u", operation);
}
