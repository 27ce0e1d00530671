#include "kernels/cuda/runtime/placed.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/ranks.h"

#define PIECE_BYTES ((uint64_t)1 << 30) /* of memory that is pinned at once */

static const struct lk_stage_placement *stage_of(const struct lk_cuda_placed *p) {
    return &p->placement.stages[p->stage];
}

static lk_cu_address address_of(const struct lk_cuda_device *cuda, uint64_t offset) {
    return (lk_cu_address)(uintptr_t)cuda->device.arena_block + offset;
}

static const struct lk_range *unit_at(const struct lk_cuda_placed *p, uint32_t unit) {
    return &p->placement.itinerary.units.entries[unit];
}

/* --- the ring --- */

static enum lk_code send_unit(struct lk_cuda_device *cuda, const struct lk_stay *stay) {
    struct lk_cuda_placed *p = &cuda->placed;
    const struct lk_range *e = unit_at(p, stay->unit);
    lk_cu_address to = address_of(cuda, stay->offset);
    uint32_t scales = p->placement.itinerary.follower[stay->unit];
    const struct lk_range *f = scales == LK_NO_UNIT ? NULL : unit_at(p, scales);
    size_t bytes = f ? lk_place_room(e->bytes) + f->bytes : e->bytes;
    if (stage_of(p)->shares[stay->unit] != LK_NOWHERE)
        return lk_cuda_ranks_gather(
            cuda, e,
            &(struct lk_cuda_gather){to, bytes,
                                     lk_unit_share(&p->placement.itinerary, stay->unit, p->placement.n_ranks)});
    if (p->pinned[stay->unit])
        return LK_CU(copy_to_device, (to, p->pinned[stay->unit], bytes, p->copies), "weights of %zu bytes", bytes);
    LK_TRY(lk_cuda_readers_send(p->readers, p->copies, to, (const void *)e->start, e->bytes));
    if (!f) return LK_OK;
    return lk_cuda_readers_send(p->readers, p->copies, to + lk_place_room(e->bytes), (const void *)f->start, f->bytes);
}

/* Ranks look whether a unit of a while ago has come before they send another. */
static enum lk_code hold_back(struct lk_cuda_device *cuda) {
    struct lk_cuda_placed *p = &cuda->placed;
    const int64_t n = (int64_t)stage_of(p)->n_stays, ahead = n < LK_CUDA_RANKS_AHEAD ? n : LK_CUDA_RANKS_AHEAD;
    if (!cuda->ranks || p->n_sent < ahead) return LK_OK;
    return lk_cuda_await(cuda, p->events[(p->n_sent - ahead) % n], "weights of the ranks");
}

/* The next stay's copy, after the visit that was the last to what it overwrites. None for a stay that is over: its
 * visits were left out. */
static enum lk_code send_next(struct lk_cuda_device *cuda) {
    struct lk_cuda_placed *p = &cuda->placed;
    const struct lk_stage_placement *s = stage_of(p);
    int64_t i = p->n_sent % (int64_t)s->n_stays, cycle = p->n_sent / (int64_t)s->n_stays;
    const struct lk_stay *stay = &s->stays[i];
    int64_t after = stay->after + cycle * (int64_t)s->n_visits;
    if (stay->last + cycle * (int64_t)s->n_visits < p->n_ended) {
        p->n_sent++;
        return LK_OK;
    }
    LK_TRY(hold_back(cuda));
    if (after >= 0) {
        uint32_t before = s->visits[after % (int64_t)s->n_visits].stay;
        LK_TRY(LK_CU(stream_wait, (p->copies, p->events[p->n_events + before], 0), "the ring of weights"));
    }
    LK_TRY(send_unit(cuda, stay));
    LK_TRY(LK_CU(event_record, (p->events[i], p->copies), "the ring of weights"));
    p->n_sent++;
    return LK_OK;
}

/* Sends what has its place already. */
static enum lk_code send_ahead(struct lk_cuda_device *cuda) {
    struct lk_cuda_placed *p = &cuda->placed;
    const struct lk_stage_placement *s = stage_of(p);
    int64_t n_visits = (int64_t)s->n_visits, n_stays = (int64_t)s->n_stays;
    while (n_stays) {
        int64_t i = p->n_sent % n_stays, cycle = p->n_sent / n_stays;
        if (s->stays[i].after + cycle * n_visits >= p->n_ended) break;
        if (!s->repeats && cycle * n_visits > p->n_ended) break;
        if (cycle > p->n_ended / n_visits + 1) break;
        if (p->fence >= 0 && s->stays[i].first >= p->fence && p->n_ended <= p->fence + cycle * n_visits) break;
        LK_TRY(send_next(cuda));
    }
    return LK_OK;
}

/* Ends the first visit that is not over: after a stay's last one its place may be overwritten. */
static enum lk_code count_visit(struct lk_cuda_device *cuda) {
    struct lk_cuda_placed *p = &cuda->placed;
    const struct lk_stage_placement *s = stage_of(p);
    int64_t visit = p->n_ended++ % (int64_t)s->n_visits;
    uint32_t stay = s->visits[visit].stay;
    if (s->stays[stay].last != visit) return LK_OK;
    return LK_CU(event_record, (p->events[p->n_events + stay], cuda->stream), "the ring of weights");
}

static enum lk_code end_visit(struct lk_cuda_device *cuda) {
    struct lk_cuda_placed *p = &cuda->placed;
    if (p->n_ended == p->n_begun) return LK_OK;
    LK_TRY(count_visit(cuda));
    return send_ahead(cuda);
}

/* Passes over n visits, which are not met this time, as those of blocks that a step cache leaves out. What is not under
 * way for them is not sent. */
static enum lk_code pass_over(struct lk_cuda_device *cuda, int64_t n) {
    struct lk_cuda_placed *p = &cuda->placed;
    if (!n) return LK_OK;
    const int64_t n_visits = (int64_t)stage_of(p)->n_visits, first = p->n_begun % n_visits;
    if (4 * n >= n_visits && (p->fence < 0 || first < p->fence)) p->fence = first; /* fewer are not worth a stop */
    p->n_begun += n;
    p->jumped = p->n_begun / n_visits;
    while (p->n_ended < p->n_begun) LK_TRY(count_visit(cuda));
    return LK_OK;
}

static enum lk_code begin_visit(struct lk_cuda_device *cuda) {
    struct lk_cuda_placed *p = &cuda->placed;
    const struct lk_stage_placement *s = stage_of(p);
    int64_t n = (int64_t)s->n_visits, visit = p->n_begun % n;
    uint32_t stay = s->visits[visit].stay;
    int64_t needed = p->n_begun / n * (int64_t)s->n_stays + stay;
    while (p->n_sent <= needed) LK_TRY(send_next(cuda));
    const bool jumped = p->n_begun++ / n == p->jumped; /* its first visit may have been passed over */
    if (s->stays[stay].first != visit && !jumped) return LK_OK;
    return LK_CU(stream_wait, (cuda->stream, p->events[stay], 0), "the ring of weights");
}

/* Goes on to the next visit of the unit; those in between are not met this time. False if there is none. */
static enum lk_code visit(struct lk_cuda_device *cuda, uint32_t unit, bool *found) {
    struct lk_cuda_placed *p = &cuda->placed;
    const struct lk_stage_placement *s = stage_of(p);
    int64_t n = (int64_t)s->n_visits, ahead = 0;
    *found = true;
    if (p->n_begun > p->n_ended && s->visits[p->n_ended % n].unit == unit) return LK_OK;
    while (ahead < n && s->visits[(p->n_begun + ahead) % n].unit != unit) ahead++;
    *found = ahead < n;
    if (!*found) return LK_OK;
    const bool in_step = lk_cuda_ranks_in_step(cuda); /* then all that there is is gathered, in order */
    if (!in_step) LK_TRY(pass_over(cuda, ahead));
    for (int64_t i = in_step ? 0 : ahead; i <= ahead; i++) {
        LK_TRY(end_visit(cuda));
        LK_TRY(begin_visit(cuda));
    }
    return LK_OK;
}

enum lk_code lk_cuda_placed_find(struct lk_cuda_device *cuda, uintptr_t start, size_t bytes, void **out) {
    struct lk_cuda_placed *p = &cuda->placed;
    *out = NULL;
    if (!p->active || p->epoch != lk_weights_epoch()) return LK_OK;
    const struct lk_range *e = lk_ranges_find(&p->placement.itinerary.units, start, bytes);
    if (!e) return LK_OK;
    uint32_t unit = (uint32_t)(e - p->placement.itinerary.units.entries);
    const struct lk_stage_placement *s = stage_of(p);
    uint64_t offset = s->offsets[unit];
    if (offset == LK_NOWHERE) {
        bool found;
        uint32_t leader = p->placement.itinerary.leader[unit];
        LK_TRY(visit(cuda, leader == LK_NO_UNIT ? unit : leader, &found));
        if (!found) return LK_OK;
        offset = s->stays[s->visits[p->n_ended % (int64_t)s->n_visits].stay].offset;
        if (leader != LK_NO_UNIT) offset += lk_place_room(unit_at(p, leader)->bytes);
    }
    *out = (void *)(uintptr_t)(address_of(cuda, offset) + (start - e->start));
    return LK_OK;
}

/* --- stages --- */

/* Whether a stage leaves alone what lies there. */
static bool survives(const struct lk_stage_placement *s, uint64_t offset, uint64_t bytes) {
    return offset >= s->ring_offset + s->ring_bytes && offset + bytes <= s->resident_offset;
}

/* This rank's share of a unit and its scales: a piece of what lies in a row in the ring. */
static enum lk_code load_share(struct lk_cuda_device *cuda, uint32_t unit, uint64_t offset) {
    const struct lk_placement *p = &cuda->placed.placement;
    const uint32_t scales = p->itinerary.follower[unit];
    const uint64_t share = lk_unit_share(&p->itinerary, unit, p->n_ranks), from = share * (uint64_t)p->rank;
    for (int i = 0; i < (scales == LK_NO_UNIT ? 1 : 2); i++) {
        const struct lk_range *e = unit_at(&cuda->placed, i ? scales : unit);
        const uint64_t start = i ? lk_place_room(unit_at(&cuda->placed, unit)->bytes) : 0, end = start + e->bytes;
        const uint64_t first = start > from ? start : from, last = end < from + share ? end : from + share;
        if (first >= last) continue;
        LK_TRY(lk_staging_upload(&cuda->staging, cuda->stream, address_of(cuda, offset + (first - from)),
                                 (const unsigned char *)e->start + (first - start), last - first));
    }
    return LK_OK;
}

/* Where a stage wants to have a unit, or a share of it, all the time. */
static uint64_t stays_at(const struct lk_stage_placement *s, size_t unit) {
    return s->shares[unit] == LK_NOWHERE ? s->offsets[unit] : s->shares[unit];
}

static enum lk_code load_residents(struct lk_cuda_device *cuda) {
    struct lk_cuda_placed *p = &cuda->placed;
    const struct lk_stage_placement *s = stage_of(p);
    size_t n = p->placement.itinerary.units.n;
    for (size_t u = 0; u < n; u++)
        if (p->loaded[u] != stays_at(s, u) && p->loaded[u] != LK_NOWHERE &&
            !survives(s, p->loaded[u], unit_at(p, (uint32_t)u)->bytes))
            p->loaded[u] = LK_NOWHERE;
    for (size_t u = 0; u < n; u++) {
        const struct lk_range *e = unit_at(p, (uint32_t)u);
        const uint64_t at = stays_at(s, u);
        if (at == LK_NOWHERE || p->loaded[u] == at) continue;
        p->loaded[u] = LK_NOWHERE;
        if (s->shares[u] == LK_NOWHERE)
            LK_TRY(lk_staging_upload(&cuda->staging, cuda->stream, address_of(cuda, at), (const void *)e->start,
                                     e->bytes));
        else
            LK_TRY(load_share(cuda, (uint32_t)u, at));
        p->loaded[u] = at;
    }
    return LK_OK;
}

/* What the last stage had under way ends before this one's begins; then the ring starts afresh. */
static enum lk_code enter_stage(struct lk_cuda_device *cuda, int stage, bool reads) {
    struct lk_cuda_placed *p = &cuda->placed;
    LK_TRY(LK_CU(event_record, (p->boundary, p->copies), "a stage's end"));
    LK_TRY(LK_CU(stream_wait, (cuda->stream, p->boundary, 0), "a stage's end"));
    p->stage = stage;
    p->n_begun = p->n_ended = p->n_sent = 0;
    p->fence = p->jumped = -1;
    cuda->device.arena.capacity = p->placement.itinerary.stages[stage].arena_bytes;
    LK_TRY(load_residents(cuda));
    LK_TRY(LK_CU(event_record, (p->boundary, cuda->stream), "a stage's begin"));
    LK_TRY(LK_CU(stream_wait, (p->copies, p->boundary, 0), "a stage's begin"));
    if (cuda->ranks) LK_TRY(lk_cuda_ranks_loaded(cuda));
    return reads ? send_ahead(cuda) : LK_OK;
}

enum lk_code lk_cuda_stage(struct lk_device *dev, const char *name) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    struct lk_cuda_placed *p = &cuda->placed;
    const struct lk_itinerary *it = &p->placement.itinerary;
    lk_cuda_plain_forget(cuda, 0, SIZE_MAX); /* a run begins with a stage: nothing is known of the one before */
    if (!p->active) return LK_OK;
    LK_TRY(LK_CU(context_set, (cuda->context), "%s", dev->name));
    for (int i = 0; i < it->n_stages; i++) {
        if (strcmp(it->stages[i].name, name)) continue;
        if (cuda->ranks && i != p->stage) return lk_cuda_ranks_gate(cuda, i);
        return i == p->stage ? LK_OK : enter_stage(cuda, i, true);
    }
    return lk_fail(LK_E_INTERNAL, "%s: stage %s is not in the plan", dev->name, name);
}

enum lk_code lk_cuda_placed_stop(struct lk_cuda_device *cuda) {
    struct lk_cuda_placed *p = &cuda->placed;
    if (!p->active || p->stage < 0) return LK_OK;
    if (!lk_cuda_ranks_in_step(cuda)) return lk_cuda_await_stream(cuda, p->copies);
    LK_TRY(LK_CU(event_record, (p->boundary, cuda->stream), "a stage's end"));
    return LK_CU(stream_wait, (p->copies, p->boundary, 0), "a stage's end");
}

enum lk_code lk_cuda_placed_serve(struct lk_cuda_device *cuda) { return send_next(cuda); }

lk_cu_address lk_cuda_placed_share(const struct lk_cuda_device *cuda, const struct lk_range *unit) {
    const struct lk_cuda_placed *p = &cuda->placed;
    const struct lk_range *e = lk_ranges_find(&p->placement.itinerary.units, unit->start, unit->bytes);
    const uint64_t offset = e ? stage_of(p)->shares[e - p->placement.itinerary.units.entries] : LK_NOWHERE;
    return offset == LK_NOWHERE ? 0 : address_of(cuda, offset);
}

enum lk_code lk_cuda_placed_enter(struct lk_cuda_device *cuda, int stage, bool reads) {
    const struct lk_arena *arena = &cuda->device.arena;
    if (arena->used > cuda->placed.placement.itinerary.stages[stage].arena_bytes)
        return lk_fail(LK_E_INTERNAL, "%s: more is in the arena than stage %s leaves room for", cuda->device.name,
                       cuda->placed.placement.itinerary.stages[stage].name);
    return enter_stage(cuda, stage, reads);
}

/* --- placing --- */

static void drop_pinned(struct lk_cuda_placed *p) {
    for (size_t i = 0; i < p->n_pieces; i++) lk_cuda_pages_free(&p->pieces[i]);
    lk_free(p->pieces);
    p->pieces = NULL;
    p->n_pieces = 0;
    lk_free(p->pinned);
    p->pinned = NULL;
}

/* Weights and their copies; streams and events stay. */
static void drop_weights(struct lk_cuda_device *cuda) {
    struct lk_cuda_placed *p = &cuda->placed;
    lk_cuda_readers_close(p->readers);
    p->readers = NULL;
    drop_pinned(p);
    lk_free(p->loaded);
    p->loaded = NULL;
    lk_placement_free(&p->placement);
    p->active = false;
}

void lk_cuda_placed_drop(struct lk_cuda_device *cuda) {
    struct lk_cuda_placed *p = &cuda->placed;
    drop_weights(cuda);
    for (size_t i = 0; i < 2 * p->n_events && !cuda->lost; i++)
        if (p->events[i]) lk_cuda()->event_destroy(p->events[i]);
    if (p->boundary && !cuda->lost) lk_cuda()->event_destroy(p->boundary);
    if (p->copies && !cuda->lost) lk_cuda()->stream_destroy(p->copies);
    lk_free(p->events);
    *p = (struct lk_cuda_placed){0};
}

static void free_block(struct lk_device *dev) {
    if (dev->arena_block) lk_cuda()->memory_free((lk_cu_address)(uintptr_t)dev->arena_block);
    dev->arena_block = NULL;
    dev->arena_block_bytes = 0;
    lk_arena_init(&dev->arena, NULL, 0, false);
}

/* Both streams have nothing under way. */
static enum lk_code settle(struct lk_cuda_device *cuda) {
    if (cuda->placed.copies) LK_TRY(lk_cuda_await_stream(cuda, cuda->placed.copies));
    LK_TRY(lk_cuda_await_stream(cuda, cuda->stream));
    lk_staging_settled(&cuda->staging);
    return LK_OK;
}

static enum lk_code new_events(struct lk_cuda_placed *p, const struct lk_placement *placement) {
    size_t n = 0;
    for (int i = 0; i < placement->itinerary.n_stages; i++)
        if (placement->stages[i].n_stays > n) n = placement->stages[i].n_stays;
    if (!p->copies) LK_TRY(LK_CU(stream_create, (&p->copies, LK_CU_STREAM_NON_BLOCKING), "copies of weights"));
    if (!p->boundary) LK_TRY(LK_CU(event_create, (&p->boundary, LK_CU_EVENT_DISABLE_TIMING), "copies of weights"));
    if (n > p->n_events) {
        for (size_t i = 0; i < 2 * p->n_events; i++)
            if (p->events[i]) lk_cuda()->event_destroy(p->events[i]);
        lk_free(p->events);
        p->n_events = 0;
        p->events = lk_calloc(2 * n, sizeof *p->events);
        if (!p->events) return lk_fail(LK_E_NOMEM, "copies of weights: out of memory");
        p->n_events = n;
    }
    for (size_t i = 0; i < 2 * p->n_events; i++) /* some are missing where the driver refused one */
        if (!p->events[i]) LK_TRY(LK_CU(event_create, (&p->events[i], LK_CU_EVENT_DISABLE_TIMING), "event %zu", i));
    return LK_OK;
}

/* A piece of pinned memory with copies of units[0..n), as many as it takes. Returns how many. */
static enum lk_code pin_piece(struct lk_cuda_device *cuda, const struct lk_itinerary *it, const uint32_t *units,
                              size_t n, size_t *n_pinned) {
    struct lk_cuda_placed *p = &cuda->placed;
    struct lk_cuda_pages *piece = &p->pieces[p->n_pieces];
    uint64_t bytes = 0, used = 0;
    size_t i = 0;
    for (; i < n && (!i || bytes + lk_unit_room(it, units[i]) <= PIECE_BYTES); i++) bytes += lk_unit_room(it, units[i]);
    LK_TRY(lk_cuda_pages_new(bytes, piece));
    *n_pinned = i;
    for (size_t k = 0; k < i; used += lk_unit_room(it, units[k++])) {
        const struct lk_range *e = &it->units.entries[units[k]];
        const uint32_t scales = it->follower[units[k]];
        unsigned char *copy = (unsigned char *)piece->pages + used;
        lk_cuda_host_copy(&cuda->near, copy, (const void *)e->start, e->bytes);
        p->pinned[units[k]] = copy;
        if (scales == LK_NO_UNIT) continue;
        memcpy(copy + lk_place_room(e->bytes), (const void *)it->units.entries[scales].start,
               it->units.entries[scales].bytes);
    }
    LK_TRY(lk_cuda_pages_pin(piece));
    p->n_pieces++;
    return LK_OK;
}

/* Pinned copies of what pinned stages send, and readers if another stage sends something. */
static enum lk_code prepare_host(struct lk_cuda_device *cuda, const struct lk_placement *placement) {
    struct lk_cuda_placed *p = &cuda->placed;
    const struct lk_ranges *all = &placement->itinerary.units;
    size_t n = 0, done = 0;
    bool reads = false;
    uint32_t *units = lk_malloc((all->n + 1) * sizeof *units);
    p->pinned = lk_calloc(all->n + 1, sizeof *p->pinned);
    p->pieces = lk_calloc(all->n + 1, sizeof *p->pieces);
    bool there = units && p->pinned && p->pieces;
    enum lk_code rc = there ? LK_OK : lk_fail(LK_E_NOMEM, "copies of weights: out of memory");
    for (int i = 0; !rc && i < placement->itinerary.n_stages; i++) {
        const struct lk_stage_placement *s = &placement->stages[i];
        for (uint32_t u = 0; s->pinned && u < all->n; u++)
            if (lk_placement_sends(placement, i, u)) units[n++] = u;
    }
    while (!rc && done < n) {
        size_t more = 0;
        rc = pin_piece(cuda, &placement->itinerary, units + done, n - done, &more);
        done += more;
    }
    for (int i = 0; !rc && i < placement->itinerary.n_stages && !placement->n_ranks; i++) {
        const struct lk_stage_placement *s = &placement->stages[i];
        if (!s->n_stays) continue;
        reads |= !s->pinned;
        lk_log(LK_LOG_DETAIL, "%s, %s: %.1f MiB of weights are streamed, %s", cuda->device.name,
               placement->itinerary.stages[i].name, (double)s->streamed_bytes / (1 << 20),
               s->pinned ? "from pinned copies" : "read by threads");
    }
    lk_free(units);
    if (rc || !reads) return rc;
    return lk_cuda_readers_open(&p->readers, &cuda->near, placement->readers, placement->slot_bytes);
}

/* What of the weights lies already where the new placement wants to have it, or might be kept there. */
static void take_loaded(const struct lk_cuda_placed *p, const struct lk_placement *now, uint64_t *loaded) {
    const struct lk_ranges *before = &p->placement.itinerary.units;
    for (size_t u = 0; u < now->itinerary.units.n; u++) {
        const struct lk_range *e = &now->itinerary.units.entries[u];
        const struct lk_range *old = p->active ? lk_ranges_find(before, e->start, e->bytes) : NULL;
        bool same = old && old->start == e->start && old->bytes == e->bytes && p->epoch == lk_weights_epoch();
        loaded[u] = same ? p->loaded[old - before->entries] : LK_NOWHERE;
    }
}

/* The block, and in it nothing yet unless it is the one that was there. */
static enum lk_code prepare_block(struct lk_cuda_device *cuda, uint64_t bytes) {
    struct lk_device *dev = &cuda->device;
    lk_cu_address block;
    if (!cuda->placed.active || dev->arena_block_bytes != bytes) {
        drop_weights(cuda);
        lk_cuda_weights_drop(cuda->weights);
        free_block(dev);
        LK_TRY(lk_cuda_alloc(cuda, bytes, "activations and weights", &block));
        dev->arena_block = (void *)(uintptr_t)block;
        dev->arena_block_bytes = bytes;
    }
    lk_arena_init(&dev->arena, dev->arena_block, bytes, false);
    return LK_OK;
}

/* Whether the same weights are sent by the same way, so that their copies in host memory can stay. */
static bool sends_alike(const struct lk_placement *a, const struct lk_placement *b) {
    const struct lk_ranges *x = &a->itinerary.units, *y = &b->itinerary.units;
    if (x->n != y->n || a->itinerary.n_stages != b->itinerary.n_stages || a->slot_bytes != b->slot_bytes ||
        a->readers != b->readers || a->n_ranks != b->n_ranks)
        return false;
    for (uint32_t u = 0; u < x->n; u++) {
        if (x->entries[u].start != y->entries[u].start || x->entries[u].bytes != y->entries[u].bytes) return false;
        for (int i = 0; i < a->itinerary.n_stages; i++)
            if (lk_placement_sends(a, i, u) != lk_placement_sends(b, i, u) ||
                a->stages[i].pinned != b->stages[i].pinned)
                return false;
    }
    return true;
}

static enum lk_code place(struct lk_cuda_device *cuda, struct lk_placement *placement) {
    struct lk_cuda_placed *p = &cuda->placed;
    LK_TRY(prepare_block(cuda, placement->block_bytes));
    LK_TRY(new_events(p, placement));
    uint64_t *loaded = lk_malloc((placement->itinerary.units.n + 1) * sizeof *loaded);
    if (!loaded) return lk_fail(LK_E_NOMEM, "%s: out of memory", cuda->device.name);
    take_loaded(p, placement, loaded);
    bool keep_host = p->active && p->epoch == lk_weights_epoch() && sends_alike(&p->placement, placement) &&
                     !(p->readers && lk_cuda_readers_failed(p->readers));
    if (!keep_host) {
        lk_cuda_readers_close(p->readers);
        p->readers = NULL;
        drop_pinned(p);
    }
    lk_free(p->loaded);
    p->loaded = loaded;
    p->active = false;
    enum lk_code rc = keep_host ? LK_OK : prepare_host(cuda, placement);
    placement->host_lacks = rc == LK_E_FIT;
    if (rc) return rc;
    lk_placement_free(&p->placement);
    p->placement = *placement;
    *placement = (struct lk_placement){0};
    p->epoch = lk_weights_epoch();
    p->active = true;
    if (!cuda->ranks) return enter_stage(cuda, 0, true);
    p->stage = -1;
    lk_cuda_ranks_join(cuda, &p->placement);
    return lk_cuda_ranks_gate(cuda, 0);
}

enum lk_code lk_cuda_place(struct lk_device *dev, struct lk_placement *placement) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    if (!placement && !cuda->placed.active) return LK_OK;
    LK_TRY(LK_CU(context_set, (cuda->context), "%s", dev->name));
    LK_TRY(settle(cuda));
    lk_cuda_plain_forget(cuda, 0, SIZE_MAX);
    if (placement) return place(cuda, placement);
    drop_weights(cuda);
    free_block(dev);
    return LK_OK;
}
