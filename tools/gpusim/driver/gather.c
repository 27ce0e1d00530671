/* All-gathers, for the look-alike of NCCL (nccl/nccl.c). One is an item on a stream of each rank; it begins when all
 * ranks' items are at the heads of their streams, and a rank that never comes keeps the others waiting. */
#include "driver/state.h"

#include <stdlib.h>
#include <string.h>

struct gpusim_ranks {
    int n, n_left;
    bool aborted[GPUSIM_MAX_DEVICES];
    uint64_t numbers[GPUSIM_MAX_DEVICES]; /* all-gathers that each rank has asked for */
    struct gpusim_meeting *meetings;
};

struct gpusim_meeting {
    struct gpusim_ranks *group;
    uint64_t number;
    struct gpusim_item *items[GPUSIM_MAX_DEVICES]; /* of each rank; NULL: not asked for yet, or over */
    int n_over;
    bool done, never;
    struct gpusim_meeting *next;
};

int gpusim_ranks_new(int n, struct gpusim_ranks **out) {
    ENTER_AS("ncclCommInitAll");
    *out = calloc(1, sizeof **out);
    if (*out) (*out)->n = (*out)->n_left = n;
    LEAVE(*out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static struct gpusim_meeting *meeting_of(struct gpusim_ranks *group, uint64_t number) {
    struct gpusim_meeting *m = group->meetings;
    while (m && m->number != number) m = m->next;
    if (m || !(m = calloc(1, sizeof *m))) return m;
    *m = (struct gpusim_meeting){.group = group, .number = number, .next = group->meetings};
    group->meetings = m;
    return m;
}

int gpusim_all_gather(struct gpusim_ranks *group, int rank, const void *from, void *to, size_t bytes, void *stream) {
    gpusim_lock();
    CUresult injected = gpusim_call("ncclAllGather");
    if (injected && (int)injected != GPUSIM_NEVER) LEAVE(injected);
    struct gpusim_stream *s = NULL;
    for (struct gpusim_context *c = gpusim_driver.contexts; c && !s; c = c->next) s = gpusim_stream_of(c, stream);
    uint64_t target = (uint64_t)(uintptr_t)to, source = (uint64_t)(uintptr_t)from;
    if (!s || !gpusim_memory_at(source, bytes) || !gpusim_memory_at(target, bytes * (size_t)group->n))
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    struct gpusim_meeting *m = meeting_of(group, group->numbers[rank]++);
    struct gpusim_item *item = m ? gpusim_item_new(s->context, GPUSIM_WORK_GATHER) : NULL;
    if (!item) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    item->meeting = m;
    item->rank = rank;
    item->source = source;
    item->target = target;
    item->width = bytes;
    m->items[rank] = item;
    m->never |= injected != CUDA_SUCCESS;
    gpusim_enqueue(s, item);
    gpusim_some_work(s->context);
    LEAVE(CUDA_SUCCESS);
}

bool gpusim_gather_ready(const struct gpusim_item *item) {
    const struct gpusim_meeting *m = item->meeting;
    if (m->group->aborted[item->rank]) return true;
    for (int r = 0; r < m->group->n && !m->done; r++)
        if (m->never || !m->items[r] || m->items[r]->stream->first != m->items[r]) return false;
    return true;
}

/* What rank r gets of all. */
static CUresult receive(const struct gpusim_meeting *m, int r) {
    const struct gpusim_item *item = m->items[r];
    for (int q = 0; q < m->group->n; q++) {
        const struct gpusim_item *other = m->items[q];
        uint64_t target = item->target + (uint64_t)q * item->width;
        if (other->width != item->width) {
            gpusim_say("all-gather %llu: rank %d sends %llu bytes and rank %d %llu", (unsigned long long)m->number, r,
                       (unsigned long long)item->width, q, (unsigned long long)other->width);
            return CUDA_ERROR_LAUNCH_FAILED;
        }
        uint8_t *to = gpusim_memory_at(target, item->width);
        const uint8_t *from = gpusim_memory_at(other->source, item->width);
        if (!to || !from) return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (!gpusim_check_range(other->operation, other->source, item->width, false) ||
            !gpusim_check_range(item->operation, target, item->width, true))
            return CUDA_ERROR_LAUNCH_FAILED;
        memmove(to, from, item->width);
        gpusim_check_copied(target, other->source, item->width);
    }
    return CUDA_SUCCESS;
}

CUresult gpusim_gather_do(struct gpusim_item *item) {
    struct gpusim_meeting *m = item->meeting;
    CUresult result = CUDA_SUCCESS;
    if (m->done) return result;
    if (m->group->aborted[item->rank]) { /* what has come so far is anything, and the program knows it */
        if (gpusim_memory_at(item->target, item->width * (uint64_t)m->group->n))
            gpusim_check_copied(item->target, 0, item->width * (uint64_t)m->group->n);
        return result;
    }
    m->done = true;
    for (int r = 0; r < m->group->n && !result; r++) result = receive(m, r);
    return result;
}

void gpusim_gather_over(const struct gpusim_item *item) {
    struct gpusim_meeting *m = item->meeting;
    if (!m) return;
    m->items[item->rank] = NULL;
    if (++m->n_over < m->group->n) return;
    struct gpusim_meeting **link = &m->group->meetings;
    while (*link != m) link = &(*link)->next;
    *link = m->next;
    free(m);
}

/* What the rank has queued is passed over; the last one takes the group with it. */
void gpusim_ranks_leave(struct gpusim_ranks *group, int rank) {
    gpusim_lock();
    gpusim_call("ncclCommDestroy");
    group->aborted[rank] = true;
    bool last = !--group->n_left;
    for (struct gpusim_context *c = gpusim_driver.contexts; c; c = c->next)
        for (struct gpusim_stream *s = c->streams; s; s = s->next)
            for (struct gpusim_item *i = s->first; i && last; i = i->next)
                if (i->meeting && i->meeting->group == group) {
                    gpusim_gather_do(i);
                    i->kind = GPUSIM_WORK_HOST;
                    gpusim_gather_over(i);
                    i->meeting = NULL;
                }
    while (last && group->meetings) {
        struct gpusim_meeting *m = group->meetings;
        group->meetings = m->next;
        free(m);
    }
    if (last) free(group);
    gpusim_unlock(CUDA_SUCCESS);
}

int gpusim_ranks_error(void) {
    gpusim_lock();
    LEAVE(gpusim_call("ncclCommGetAsyncError"));
}
