#include "engine/placement.h"

#include "engine/base/alloc.h"

#define SHARE_ALIGN 16 /* bytes, which collectives move at a time */
_Static_assert(LK_MAX_RANKS *SHARE_ALIGN <= LK_PLACE_ALIGN, "the shares of all ranks fit into the room of a unit");

void lk_itinerary_free(struct lk_itinerary *it) {
    for (int i = 0; i < it->n_stages; i++) {
        lk_free(it->stages[i].visits);
        lk_free(it->stages[i].reads);
    }
    lk_free(it->units.entries);
    lk_free(it->travels);
    lk_free(it->leader);
    lk_free(it->follower);
    lk_free(it->packed);
    *it = (struct lk_itinerary){0};
}

uint64_t lk_unit_room(const struct lk_itinerary *it, size_t unit) {
    uint32_t scales = it->follower[unit];
    return lk_place_room(it->units.entries[unit].bytes) +
           (scales == LK_NO_UNIT ? 0 : lk_place_room(it->units.entries[scales].bytes));
}

uint64_t lk_unit_share(const struct lk_itinerary *it, size_t unit, int n_ranks) {
    const uint32_t scales = it->follower[unit];
    const uint64_t bytes = it->units.entries[unit].bytes, n = (uint64_t)n_ranks;
    const uint64_t all = scales == LK_NO_UNIT ? bytes : lk_place_room(bytes) + it->units.entries[scales].bytes;
    return ((all + n - 1) / n + SHARE_ALIGN - 1) / SHARE_ALIGN * SHARE_ALIGN;
}

bool lk_placement_sends(const struct lk_placement *p, int stage, uint32_t unit) {
    return p->itinerary.stages[stage].reads[unit] && p->itinerary.travels[unit] &&
           p->stages[stage].offsets[unit] == LK_NOWHERE;
}

void lk_placement_free(struct lk_placement *p) {
    for (int i = 0; i < LK_MAX_STAGES; i++) {
        lk_free(p->stages[i].offsets);
        lk_free(p->stages[i].shares);
        lk_free(p->stages[i].visits);
        lk_free(p->stages[i].stays);
    }
    lk_itinerary_free(&p->itinerary);
    *p = (struct lk_placement){0};
}
