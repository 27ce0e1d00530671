/* Weights where a placement says (engine/placement.h): some resident in the arena's block, the others sent through a
 * ring by a second stream, ahead of use.
 *
 * Two events for each stay in the ring order the two streams: the op's stream waits for `arrived`, the copy stream for
 * `freed` of what lay there before. Everything is issued in the order of the visits, so that nothing waits on the host:
 * a unit is sent as soon as the visit after which its place is free has been issued. Where ranks share the weights,
 * what is sent is gathered from their shares, which lie where residents would.
 *
 * Weights go through pinned copies; where those do not fit, through the readers' slots. */
#pragma once

#include "engine/device.h"
#include "kernels/cuda/runtime/driver.h"
#include "kernels/cuda/runtime/pages.h"
#include "kernels/cuda/runtime/readers.h"

struct lk_cuda_device;

struct lk_cuda_placed {
    struct lk_placement placement;
    bool active;
    uint64_t epoch;
    uint64_t *loaded; /* per unit: the offset at which it lies, LK_NOWHERE */
    int stage;        /* -1: none yet */
    lk_cu_stream copies;
    lk_cu_event *events; /* arrived of each stay, then freed */
    size_t n_events;
    lk_cu_event boundary;             /* between stages */
    int64_t n_begun, n_ended, n_sent; /* visits and stays of the stage so far, over all cycles */
    int64_t fence;  /* a cycle's first visit that was once left out: nothing from it on is sent before it is met; -1 */
    int64_t jumped; /* the last cycle in which visits were left out; -1 */
    const unsigned char **pinned; /* per unit: its copy; NULL: none, the readers fetch it */
    struct lk_cuda_pages *pieces; /* with copies of what is streamed */
    size_t n_pieces;
    struct lk_cuda_readers *readers;
};

/* As struct lk_device_memory has them. */
enum lk_code lk_cuda_place(struct lk_device *dev, struct lk_placement *placement);
enum lk_code lk_cuda_stage(struct lk_device *dev, const char *name);

/* *out gets the device address of a weight if it is one that was placed and this stage reads, else NULL. */
enum lk_code lk_cuda_placed_find(struct lk_cuda_device *cuda, uintptr_t start, size_t bytes, void **out);
/* For ranks (ranks.h): the next unit is gathered, though this rank has no visit for it; no op of the stage is to come;
 * the stage begins, of which this rank reads weights or only gives its shares; where this stage has the rank's share of
 * a unit, 0: nowhere. */
enum lk_code lk_cuda_placed_serve(struct lk_cuda_device *cuda);
enum lk_code lk_cuda_placed_stop(struct lk_cuda_device *cuda);
enum lk_code lk_cuda_placed_enter(struct lk_cuda_device *cuda, int stage, bool reads);
lk_cu_address lk_cuda_placed_share(const struct lk_cuda_device *cuda, const struct lk_range *unit);
/* Gives everything back. Nothing may be under way. */
void lk_cuda_placed_drop(struct lk_cuda_device *cuda);
