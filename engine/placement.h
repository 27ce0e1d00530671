/* Where the weights of a run lie on a device with memory of its own, and when they travel there.
 *
 * The walk over the plan device leaves an itinerary: which weights ops read, in what order, for how many rows, stage by
 * stage. From it and a budget a placement is decided (models/placement.h): one block of device memory, in which the
 * arena lies lowest and the weights of a stage above it. Those of `linear` may travel: each stage keeps some of them
 * resident and sends the others through a ring, ahead of use and over and over. Where a weight lies changes no bit. */
#pragma once

#include "engine/ranges.h"

#define LK_MAX_STAGES 8
#define LK_NOWHERE    UINT64_MAX /* an offset of what is not there */
#define LK_NO_UNIT    UINT32_MAX

#define LK_MAX_RANKS  16

/* Packed weights are turned into bf16 matrices one after the other; two of up to so many bytes are there at a time. */
#define LK_PLAIN_SMALL ((uint64_t)128 << 20)

#define LK_SPARE_SLOTS 2 /* more than there are readers: one on its way to the device, one full */

/* Bytes that a weight takes in the block: copies are aligned, and as much lies between two. */
#define LK_PLACE_ALIGN 256
static inline uint64_t lk_place_room(uint64_t bytes) {
    return (bytes + LK_PLACE_ALIGN - 1) / LK_PLACE_ALIGN * LK_PLACE_ALIGN + LK_PLACE_ALIGN;
}

/* An op reads a weight that may travel; neighbours that read the same one count as one. Attention reads none. */
struct lk_visit {
    uint32_t unit; /* index into ranges; LK_NO_UNIT */
    int64_t rows;  /* that meet it */
    double gemm_flops, attention_flops;
    double other_bytes; /* read and written by other ops, up to the next visit */
};

struct lk_stage_visits {
    char name[24];
    uint64_t arena_bytes; /* the peak while it runs */
    struct lk_visit *visits;
    size_t n, capacity;
    int n_cycles; /* how often these visits were met */
    bool *reads;  /* per unit: whether an op of this stage reads it at all */
    double flops; /* of a cycle */
};

struct lk_itinerary {
    struct lk_ranges units; /* host memory; what overlaps is one unit */
    bool *travels;          /* per unit: only `linear` reads it, as its weight */
    uint32_t *leader;       /* per unit: the one whose scales it has, with which it lies and travels; LK_NO_UNIT */
    uint32_t *follower;     /* per unit: its scales; LK_NO_UNIT */
    double *packed;         /* per unit: weights that a byte of it holds, if they are packed; 0 */
    struct lk_stage_visits stages[LK_MAX_STAGES];
    int n_stages;
};
void lk_itinerary_free(struct lk_itinerary *itinerary);
/* Bytes of the block that the unit takes with its scales, which begin `lk_place_room(bytes of the unit)` after it. */
uint64_t lk_unit_room(const struct lk_itinerary *itinerary, size_t unit);
/* What each of n ranks holds of the unit and its scales, the last ones less or nothing: n shares in a row are as long
 * as the unit's room at most. */
uint64_t lk_unit_share(const struct lk_itinerary *itinerary, size_t unit, int n_ranks);

/* A unit's time in the ring, from its first visit to its last. What lay there before is no longer needed when visit
 * `after` is over; a negative one is of the cycle before, -1 its last. Units are sent in the order of the stays. */
struct lk_stay {
    uint32_t unit;
    uint64_t offset; /* in the block */
    int64_t first, last, after;
};

struct lk_stage_placement {
    uint64_t *offsets;        /* per unit, of those that stay for the whole stage; LK_NOWHERE */
    uint64_t *shares;         /* per unit: where this rank's share lies, from which all is gathered; LK_NOWHERE */
    uint64_t resident_offset; /* the lowest of both */
    uint64_t ring_offset, ring_bytes;
    struct {
        uint32_t unit, stay;
    } * visits; /* of what travels, in the order in which ops read it */
    size_t n_visits;
    struct lk_stay *stays; /* of one cycle of the visits */
    size_t n_stays;
    bool repeats;                            /* the cycle's first units are sent while its last ones are in use */
    uint64_t resident_bytes, streamed_bytes; /* of what may travel, as stored */
    bool pinned;                             /* what is streamed has a copy in pinned host memory */
};

struct lk_placement {
    struct lk_itinerary itinerary;
    bool whole;           /* all weights at once, beside the arena: only their bytes are below */
    int n_ranks, rank;    /* that share what travels; n_ranks 0: nothing is shared */
    uint64_t arena_bytes; /* the largest of the stages' */
    uint64_t block_bytes;
    struct lk_stage_placement stages[LK_MAX_STAGES];
    int readers;           /* threads that fetch what has no pinned copy */
    uint64_t slot_bytes;   /* pinned memory that a reader fills at a time */
    uint64_t pinned_bytes; /* of host memory: copies and slots */
    bool host_lacks;       /* set by a device that did not get them */
};
/* Whether a stage sends the unit through its ring. */
bool lk_placement_sends(const struct lk_placement *placement, int stage, uint32_t unit);
/* Its itinerary too. */
void lk_placement_free(struct lk_placement *placement);

/* What a run may use of a device that has memory of its own. 0: as much as is there, or as fits best. */
struct lk_budget {
    uint64_t bytes;          /* of the whole process */
    uint64_t ring_bytes;     /* of each ring */
    uint64_t resident_bytes; /* at most, in each stage, of what may travel; 1: none */
    uint64_t host_bytes;     /* pinned host memory for copies of what is streamed; 1: none */
    int readers;
    int n_ranks, rank;       /* devices that hold what travels together, and which of them this is; 0: none */
    double bytes_per_weight; /* in place of two, of what travels in the transformer: for predictions only */
};

/* Memory that arena and weights could have: what is free, and what this device has of it already, as far as `bytes` of
 * the whole process allow (0: all). needed_beside: what the process takes on the device besides. host_held: pinned host
 * memory that the device has, which the next placement may use again. */
struct lk_device_room {
    uint64_t bytes, needed_beside, host_held;
};
