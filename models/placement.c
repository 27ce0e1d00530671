#include "models/placement.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "models/host_room.h"
#include "models/pipeline.h"

#define SLOT_BYTES     ((uint64_t)32 << 20) /* at most, of a reader's slot */
#define WITHOUT_LAYERS 3                    /* units in the ring of a stage that has no attention */
#define READERS        8
#define N_LEAST_ROWS   2 /* weights that meet less than one N-th of the most rows of a stage are resident first */

static uint64_t align(uint64_t bytes) { return (bytes + LK_PLACE_ALIGN - 1) / LK_PLACE_ALIGN * LK_PLACE_ALIGN; }
static uint64_t up(uint64_t bytes, uint64_t grain) { return (bytes + grain - 1) / grain * grain; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "placement of weights: out of memory"); }

/* With its scales. */
static uint64_t stored_bytes(const struct lk_itinerary *it, size_t unit) {
    uint32_t scales = it->follower[unit];
    return it->units.entries[unit].bytes + (scales == LK_NO_UNIT ? 0 : it->units.entries[scales].bytes);
}

/* What a stage takes, in bytes of the block. */
struct need {
    uint64_t arena, moving, ring;
    uint64_t shares; /* this rank's of what moves, where ranks share it */
    bool once;       /* no weight is met twice: keeping one would be of no use */
};

/* Read in every stage of which it is a part: everything that does not travel. */
static bool is_common(const struct lk_itinerary *it, size_t unit) {
    return !it->travels[unit] && it->leader[unit] == LK_NO_UNIT;
}

static uint64_t common_bytes(const struct lk_itinerary *it) {
    uint64_t sum = 0;
    for (size_t u = 0; u < it->units.n; u++)
        if (is_common(it, u)) sum += lk_unit_room(it, u);
    return sum;
}

static uint64_t largest_unit(const struct lk_itinerary *it, int stage) {
    uint64_t most = 0;
    for (size_t u = 0; u < it->units.n; u++)
        if (it->stages[stage].reads[u] && it->travels[u]) most = larger(most, lk_unit_room(it, u));
    return most;
}

/* Bytes between attentions; a unit counts once in each interval. The interval round the end of the cycle is one. That
 * of most layers but the largest, where there are several: it is larger where one kind of layer follows another. */
uint64_t lk_placement_layer(const struct lk_itinerary *it, int stage) {
    const struct lk_stage_visits *s = &it->stages[stage];
    size_t begin = 0, n = s->n, n_intervals = 0;
    uint64_t most = 0, second = 0, sum = 0;
    while (begin < n && s->visits[begin].attention_flops == 0) begin++;
    if (begin == n) return WITHOUT_LAYERS * largest_unit(it, stage);
    for (size_t k = 0, first = 0; k <= n; k++) {
        const struct lk_visit *v = &s->visits[(begin + k) % (n ? n : 1)];
        if (k == n || (v->attention_flops > 0 && k)) { /* the interval ends */
            second = larger(second, smaller(most, sum));
            most = larger(most, sum);
            n_intervals++;
            sum = 0;
            first = k;
        }
        bool again = k == n || v->unit == LK_NO_UNIT;
        for (size_t j = first; j < k && !again; j++) again = s->visits[(begin + j) % n].unit == v->unit;
        if (!again) sum += lk_unit_room(it, v->unit);
    }
    return n_intervals > 2 ? second : most;
}

static bool met_once(const struct lk_stage_visits *s, size_t n_units, bool *seen) {
    memset(seen, 0, n_units * sizeof *seen);
    for (size_t i = 0; i < s->n; i++) {
        if (s->visits[i].unit == LK_NO_UNIT) continue;
        if (seen[s->visits[i].unit]) return false;
        seen[s->visits[i].unit] = true;
    }
    /* The plan has one of the steps of these. */
    return s->n_cycles == 1 && strcmp(s->name, "transformer") && strcmp(s->name, "decoder");
}

static enum lk_code measure(const struct lk_itinerary *it, const struct lk_budget *budget, struct need *needs) {
    bool *seen = lk_calloc(it->units.n + 1, sizeof *seen);
    if (!seen) return out_of_memory();
    for (int i = 0; i < it->n_stages; i++) {
        const struct lk_stage_visits *s = &it->stages[i];
        needs[i] = (struct need){.arena = align(s->arena_bytes), .once = met_once(s, it->units.n, seen)};
        for (size_t u = 0; u < it->units.n; u++) {
            if (!s->reads[u]) continue;
            if (it->travels[u]) needs[i].moving += lk_unit_room(it, u);
            if (it->travels[u] && budget->n_ranks)
                needs[i].shares += lk_place_room(lk_unit_share(it, u, budget->n_ranks));
        }
        uint64_t layer = budget->ring_bytes ? align(budget->ring_bytes) : lk_placement_layer(it, i);
        needs[i].ring = smaller(needs[i].moving, larger(layer, largest_unit(it, i)));
        if (budget->ring_bytes && layer < largest_unit(it, i)) {
            lk_free(seen);
            return lk_fail(LK_E_FIT, "ring of %llu bytes: the largest weight of %s takes %llu",
                           (unsigned long long)budget->ring_bytes, s->name, (unsigned long long)largest_unit(it, i));
        }
    }
    lk_free(seen);
    return LK_OK;
}

/* --- which units are resident --- */

struct chooser {
    const struct lk_itinerary *it;
    const struct lk_stage_visits *s;
    uint32_t *order; /* units that travel, by their first visit */
    size_t n;
    int64_t *rows; /* per unit */
    bool *keep;    /* per unit */
};

/* Of units order[i] whose rows are in [from, to): all, or as many as fit, evenly by bytes. Returns what is left. */
static uint64_t keep_some(struct chooser *c, int64_t from, int64_t to, uint64_t space) {
    uint64_t all = 0, kept = 0, passed = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[c->order[i]] >= from && c->rows[c->order[i]] < to) all += lk_unit_room(c->it, c->order[i]);
    if (!all) return space;
    for (int fill = 0; fill < 2; fill++) /* the second time what still fits */
        for (size_t i = 0; i < c->n; i++) {
            uint32_t u = c->order[i];
            uint64_t bytes = lk_unit_room(c->it, u);
            if (c->rows[u] < from || c->rows[u] >= to || c->keep[u]) continue;
            passed += bytes;
            bool due = fill || all <= space ||
                       (double)kept + (double)bytes / 2 <= (double)passed * ((double)space / (double)all);
            if (!due || kept + bytes > space) continue;
            kept += bytes;
            c->keep[u] = true;
        }
    return space - kept;
}

static void order_units(struct chooser *c, bool *seen) {
    for (size_t i = 0; i < c->s->n; i++) {
        uint32_t u = c->s->visits[i].unit;
        if (u == LK_NO_UNIT) continue;
        c->rows[u] += c->s->visits[i].rows;
        if (!seen[u]) c->order[c->n++] = u;
        seen[u] = true;
    }
}

/* Marks in keep[] what stays, at most `space` bytes. */
static enum lk_code choose(const struct lk_itinerary *it, int stage, uint64_t space, bool *keep) {
    size_t n = it->units.n;
    struct chooser c = {.it = it, .s = &it->stages[stage], .keep = keep};
    bool *seen = lk_calloc(n + 1, sizeof *seen);
    c.order = lk_calloc(n + 1, sizeof *c.order);
    c.rows = lk_calloc(n + 1, sizeof *c.rows);
    enum lk_code rc = seen && c.order && c.rows ? LK_OK : out_of_memory();
    if (!rc) {
        int64_t most = 0, from = 0;
        order_units(&c, seen);
        for (size_t i = 0; i < c.n; i++)
            if (c.rows[c.order[i]] > most) most = c.rows[c.order[i]];
        while (from * N_LEAST_ROWS < most && space) { /* the next higher number of rows at a time */
            int64_t next = most + 1;
            for (size_t i = 0; i < c.n; i++) {
                int64_t rows = c.rows[c.order[i]];
                if (rows >= from && rows < next) next = rows;
            }
            if (next * N_LEAST_ROWS >= most) break;
            uint64_t left = keep_some(&c, next, next + 1, space);
            from = next + 1;
            space = left;
        }
        keep_some(&c, (most + N_LEAST_ROWS - 1) / N_LEAST_ROWS, most + 1, space);
    }
    lk_free(seen);
    lk_free(c.order);
    lk_free(c.rows);
    return rc;
}

/* --- the ring --- */

static bool overlap(const struct lk_itinerary *it, const struct lk_stay *a, const struct lk_stay *b) {
    return a->offset < b->offset + lk_unit_room(it, b->unit) && b->offset < a->offset + lk_unit_room(it, a->unit);
}

/* The unit's stay of this cycle if nothing has come over it since; n_stays if there is none. */
static size_t still_there(const struct lk_itinerary *it, const struct lk_stage_placement *p, uint32_t unit) {
    size_t k = p->n_stays;
    while (k > 0 && p->stays[k - 1].unit != unit) k--;
    if (!k) return p->n_stays;
    for (size_t j = k; j < p->n_stays; j++)
        if (overlap(it, &p->stays[j], &p->stays[k - 1])) return p->n_stays;
    return k - 1;
}

/* Stays of the visits to what is not resident, one after the other round the ring. */
static enum lk_code fill_ring(const struct lk_itinerary *it, const struct lk_stage_visits *s,
                              struct lk_stage_placement *p) {
    uint64_t head = 0;
    p->visits = lk_calloc(s->n + 1, sizeof *p->visits);
    p->stays = lk_calloc(s->n + 1, sizeof *p->stays);
    if (!p->visits || !p->stays) return out_of_memory();
    for (size_t i = 0; i < s->n; i++) {
        uint32_t unit = s->visits[i].unit;
        if (unit == LK_NO_UNIT || p->offsets[unit] != LK_NOWHERE) continue;
        int64_t visit = (int64_t)p->n_visits;
        size_t stay = still_there(it, p, unit);
        if (stay == p->n_stays) {
            if (head + lk_unit_room(it, unit) > p->ring_bytes) head = 0;
            p->stays[p->n_stays++] = (struct lk_stay){.unit = unit, .offset = p->ring_offset + head, .first = visit};
            head += lk_unit_room(it, unit);
        }
        p->stays[stay].last = visit;
        p->visits[p->n_visits].unit = unit;
        p->visits[p->n_visits++].stay = (uint32_t)stay;
    }
    int64_t n = (int64_t)p->n_visits, after = -n;
    for (size_t i = 0; i < p->n_stays; i++) {
        for (size_t k = 0; k < p->n_stays; k++) {
            int64_t last = p->stays[k].last - (k < i ? 0 : n);
            if (last > after && overlap(it, &p->stays[i], &p->stays[k])) after = last;
        }
        p->stays[i].after = after;
    }
    return LK_OK;
}

/* --- the block --- */

static void put(struct lk_stage_placement *p, const struct lk_itinerary *it, size_t unit, uint64_t *top) {
    *top -= lk_unit_room(it, unit);
    p->offsets[unit] = *top;
    if (it->follower[unit] != LK_NO_UNIT)
        p->offsets[it->follower[unit]] = *top + lk_place_room(it->units.entries[unit].bytes);
}

/* The same of a share. */
static void put_share(struct lk_stage_placement *p, const struct lk_itinerary *it, size_t unit, int n_ranks,
                      uint64_t *top) {
    *top -= lk_place_room(lk_unit_share(it, unit, n_ranks));
    p->shares[unit] = *top;
}

/* Lays one stage out, from the top of the block downwards what is common to all stages, residents and tables; the ring
 * right above the arena. What lies between is left alone: another stage may find its residents there again. */
static enum lk_code lay_out(struct lk_placement *p, int stage, const struct need *need, const bool *keep) {
    const struct lk_itinerary *it = &p->itinerary;
    struct lk_stage_placement *s = &p->stages[stage];
    uint64_t top = p->block_bytes / LK_PLACE_ALIGN * LK_PLACE_ALIGN;
    s->offsets = lk_malloc((it->units.n + 1) * sizeof *s->offsets);
    s->shares = lk_malloc((it->units.n + 1) * sizeof *s->shares);
    if (!s->offsets || !s->shares) return out_of_memory();
    for (size_t u = 0; u < it->units.n; u++) s->offsets[u] = s->shares[u] = LK_NOWHERE;
    for (size_t u = 0; u < it->units.n; u++)
        if (is_common(it, u)) put(s, it, u, &top);
    for (size_t u = 0; u < it->units.n; u++)
        if (it->stages[stage].reads[u] && it->travels[u] && keep[u]) put(s, it, u, &top);
    for (size_t u = 0; u < it->units.n; u++)
        if (p->n_ranks && it->stages[stage].reads[u] && it->travels[u]) put_share(s, it, u, p->n_ranks, &top);
    for (size_t u = 0; u < it->units.n; u++) {
        if (!it->stages[stage].reads[u] || !it->travels[u]) continue;
        *(keep[u] ? &s->resident_bytes : &s->streamed_bytes) += stored_bytes(it, u);
    }
    s->ring_bytes = s->streamed_bytes ? need->ring : 0;
    s->ring_offset = need->arena;
    s->resident_offset = top;
    s->repeats = !need->once;
    return fill_ring(it, &it->stages[stage], s);
}

/* Bytes of the block that a stage needs with residents of so many. */
static uint64_t block_for(const struct need *need, uint64_t common, uint64_t resident) {
    return need->arena + common + need->shares + resident + (resident < need->moving ? need->ring : 0);
}

static enum lk_code decide_stages(struct lk_placement *p, const struct need *needs, uint64_t space, uint64_t most) {
    const struct lk_itinerary *it = &p->itinerary;
    uint64_t common = common_bytes(it), block = 0;
    bool *keep = lk_calloc((size_t)it->n_stages * (it->units.n + 1), sizeof *keep);
    if (!keep) return out_of_memory();
    enum lk_code rc = LK_OK;
    for (int i = 0; !rc && i < it->n_stages; i++) {
        const struct need *need = &needs[i];
        bool *mine = keep + (size_t)i * (it->units.n + 1);
        uint64_t resident = 0, beside = need->arena + common;
        if (p->n_ranks) /* what is shared is resident nowhere */
            ;
        else if (!need->once && beside + need->moving <= space && need->moving <= most)
            rc = choose(it, i, need->moving, mine);
        else if (!need->once)
            rc = choose(it, i, smaller(space - beside - need->ring, most), mine);
        for (size_t u = 0; u < it->units.n; u++)
            if (mine[u]) resident += lk_unit_room(it, u);
        block = larger(block, block_for(need, common, resident));
    }
    p->block_bytes = block;
    for (int i = 0; !rc && i < it->n_stages; i++) rc = lay_out(p, i, &needs[i], keep + (size_t)i * (it->units.n + 1));
    lk_free(keep);
    return rc;
}

/* Host memory for what is streamed: a pinned copy of what is sent again and again, as far as `host` goes, the
 * transformer's first; slots of the readers for the rest. */
static void decide_host(struct lk_placement *p, uint64_t host) {
    const struct lk_itinerary *it = &p->itinerary;
    uint64_t largest = 0;
    for (int i = it->n_stages - 1; i >= 0; i--) {
        struct lk_stage_placement *s = &p->stages[i];
        uint64_t bytes = 0;
        for (uint32_t u = 0; u < it->units.n; u++)
            if (lk_placement_sends(p, i, u)) bytes += lk_unit_room(it, u);
        s->pinned = s->repeats && bytes && p->pinned_bytes + bytes <= host;
        if (s->pinned) p->pinned_bytes += bytes;
        if (!s->pinned && bytes) largest = larger(largest, largest_unit(it, i));
    }
    p->slot_bytes = smaller(align(largest), SLOT_BYTES);
    p->pinned_bytes += p->slot_bytes * (uint64_t)(p->readers + LK_SPARE_SLOTS);
}

enum lk_code lk_placement_decide(struct lk_itinerary *it, const struct lk_budget *budget, uint64_t room, uint64_t grain,
                                 struct lk_placement *out, uint64_t *least) {
    struct need needs[LK_MAX_STAGES];
    uint64_t arena = 0, weights = 0, common = common_bytes(it);
    *out = (struct lk_placement){0};
    *least = 0;
    LK_TRY(measure(it, budget, needs));
    for (int i = 0; i < it->n_stages; i++) {
        arena = larger(arena, it->stages[i].arena_bytes);
        *least = larger(*least, block_for(&needs[i], common, 0));
    }
    for (size_t u = 0; u < it->units.n; u++) weights += lk_place_room(it->units.entries[u].bytes);
    uint64_t whole = up(arena ? arena : 1, grain) + up(weights, grain);
    const uint64_t staged = up(*least, grain), most = budget->resident_bytes ? budget->resident_bytes : UINT64_MAX;
    *least = budget->n_ranks ? staged : smaller(whole, staged);
    if (*least > room) return lk_fail(LK_E_FIT, "%llu bytes are needed", (unsigned long long)*least);
    out->n_ranks = budget->n_ranks;
    out->rank = budget->rank;
    out->whole = !out->n_ranks && whole <= room && (weights <= most || staged > room);
    out->arena_bytes = arena;
    out->readers = budget->readers ? budget->readers : READERS;
    out->itinerary = *it;
    out->block_bytes = whole;
    if (!out->whole) {
        enum lk_code rc = decide_stages(out, needs, room / grain * grain, most);
        if (rc) {
            out->itinerary = (struct lk_itinerary){0};
            lk_placement_free(out);
            return rc;
        }
        out->block_bytes = up(out->block_bytes, grain);
        if (!out->n_ranks) decide_host(out, budget->host_bytes);
    }
    *it = (struct lk_itinerary){0};
    return LK_OK;
}

static double mib(uint64_t bytes) { return (double)bytes / (1 << 20); }

static enum lk_code too_small(const struct lk_device *dev, const struct lk_device_room *room, uint64_t least) {
    return lk_fail(
        LK_E_FIT,
        "%s: %.1f MiB (%llu bytes) are needed at least, for activations and the weights of a layer at a time, "
        "and %.1f MiB are free or allowed; the smallest --vram for this is %lluM; make the picture smaller "
        "or use fewer references, close other programs on the GPU, or use --device cpu",
        dev->name, mib(least), (unsigned long long)least, mib(room->bytes),
        (unsigned long long)((least + room->needed_beside + (1 << 20) - 1) >> 20));
}

/* The transformer's weights as another precision has them: fewer bytes, a matrix or two of scratch. */
static void change_precision(struct lk_itinerary *it, double bytes_per_weight) {
    for (int i = 0; i < it->n_stages; i++) {
        struct lk_stage_visits *s = &it->stages[i];
        if (strcmp(s->name, "transformer")) continue;
        s->arena_bytes += (largest_unit(it, i) <= LK_PLAIN_SMALL + LK_PLACE_ALIGN ? 2 : 1) * largest_unit(it, i);
        for (size_t u = 0; u < it->units.n; u++) {
            if (!s->reads[u] || !it->travels[u]) continue;
            it->units.entries[u].bytes = (size_t)((double)it->units.entries[u].bytes / 2 * bytes_per_weight);
            it->packed[u] = 1 / bytes_per_weight;
        }
    }
}

static enum lk_code describe_stages(const struct lk_placement *p, const struct lk_device_rates *rates,
                                    struct lk_plan *out) {
    out->n_placed = p->itinerary.n_stages;
    for (int i = 0; i < out->n_placed; i++) {
        const struct lk_stage_placement *s = &p->stages[i];
        struct lk_plan_placed *d = &out->placed[i];
        struct lk_prediction seconds;
        LK_TRY(lk_placement_predict(p, i, rates, &seconds));
        memcpy(d->name, p->itinerary.stages[i].name, sizeof d->name);
        d->resident_bytes = s->resident_bytes;
        for (size_t u = 0; u < p->itinerary.units.n; u++) {
            if (!p->itinerary.stages[i].reads[u] || !p->itinerary.travels[u]) continue;
            d->packed |= p->itinerary.packed[u] > 0;
            if (p->whole) d->resident_bytes += stored_bytes(&p->itinerary, u);
        }
        for (size_t u = 0; p->n_ranks && u < p->itinerary.units.n; u++)
            if (s->shares[u] != LK_NOWHERE) d->resident_bytes += lk_unit_share(&p->itinerary, u, p->n_ranks);
        d->streamed_bytes = s->streamed_bytes;
        d->ring_bytes = s->ring_bytes;
        d->pinned = s->pinned;
        d->resident_s = seconds.resident_s, d->placed_s = seconds.placed_s;
        d->flops = p->itinerary.stages[i].flops;
    }
    return LK_OK;
}

enum lk_code lk_placement_describe(const struct lk_device *plan, const struct lk_device *target, struct lk_plan *out) {
    struct lk_itinerary it;
    struct lk_placement p;
    struct lk_device_room room;
    struct lk_budget budget = target->budget;
    const struct lk_device_rates rates = lk_device_rates(target->architecture);
    LK_TRY(target->memory->room(target, budget.bytes, &room));
    LK_TRY(lk_device_plan_itinerary(plan, &it));
    if (budget.bytes_per_weight > 0) change_precision(&it, budget.bytes_per_weight);
    lk_placement_add_unpacking(&it, &rates);
    if (!budget.host_bytes) budget.host_bytes = UINT64_MAX;
    uint64_t least = 0;
    enum lk_code rc = lk_placement_decide(&it, &budget, room.bytes, target->memory_grain, &p, &least);
    out->fits = !rc;
    out->n_ranks = budget.n_ranks;
    out->least_bytes = least + target->memory_own;
    out->beside_bytes = room.needed_beside - target->memory_own;
    if (!rc) {
        out->whole = p.whole;
        out->placed_bytes = p.whole ? out->device_bytes : p.block_bytes + target->memory_own;
        out->pinned_bytes = p.pinned_bytes;
        rc = describe_stages(&p, &rates, out);
        lk_placement_free(&p);
    }
    lk_itinerary_free(&it);
    return rc == LK_E_FIT && least > room.bytes ? LK_OK : rc;
}

/* What a placement is tried with, and what of it was there. */
struct attempt {
    struct lk_budget budget;
    struct lk_device_room room;
    uint64_t tried, least; /* bytes of the device */
    uint64_t copies;       /* bytes of pinned copies */
    bool host_lacks;
};

static enum lk_code try_placement(struct lk_device *dev, const struct lk_device *plan, struct attempt *a) {
    struct lk_itinerary it;
    struct lk_placement p;
    a->host_lacks = false;
    LK_TRY(lk_device_plan_itinerary(plan, &it));
    enum lk_code rc = lk_placement_decide(&it, &a->budget, a->room.bytes, dev->memory_grain, &p, &a->least);
    if (rc == LK_E_FIT && a->least > a->room.bytes) rc = too_small(dev, &a->room, a->least);
    if (!rc) {
        a->tried = p.block_bytes;
        a->copies = p.pinned_bytes - p.slot_bytes * (uint64_t)(p.readers + LK_SPARE_SLOTS);
        if (p.whole) rc = dev->memory->note_weights(dev, &p.itinerary.units);
        if (!rc) rc = lk_device_prepare_placed(dev, &p);
        a->host_lacks = p.host_lacks;
        lk_placement_free(&p);
    }
    lk_itinerary_free(&it);
    return rc;
}

/* Less than was there, it seems. */
static bool ask_device_for_less(struct attempt *a) {
    if (a->tried <= a->least) return false;
    a->room.bytes = larger(a->least, a->tried - a->tried / 4 - 1);
    return true;
}
/* A stage fewer has pinned copies; then fewer readers. The device's memory stays as it is. */
static bool ask_host_for_less(struct attempt *a) {
    if (!a->copies && a->budget.readers == 1) return false;
    if (a->copies)
        a->budget.host_bytes = a->copies - 1;
    else
        a->budget.readers = 1;
    return true;
}

enum lk_code lk_placement_prepare(struct lk_device *dev, const struct lk_device *plan, uint64_t arena_bytes) {
    struct attempt a = {.budget = dev->budget};
    if (!dev->memory->place) return lk_device_prepare(dev, arena_bytes);
    LK_TRY(dev->memory->room(dev, dev->budget.bytes, &a.room));
    const uint64_t host = larger(1, lk_host_room("") + a.room.host_held); /* more would be taken from other processes */
    a.budget.host_bytes = a.budget.host_bytes ? smaller(a.budget.host_bytes, host) : host;
    enum lk_code rc = try_placement(dev, plan, &a);
    while (rc == LK_E_FIT && (a.host_lacks ? ask_host_for_less(&a) : ask_device_for_less(&a)))
        rc = try_placement(dev, plan, &a);
    return rc;
}
