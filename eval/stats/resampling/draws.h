/* Inside of the resampling files: the draws of eight resamples side by side, one stream per lane. The numbers are those
 * of lk_stream_bounded (eval/study/random.h) on the stream of each resample, whatever instructions the machine has. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LK_DRAW_LANES = 8, LK_DRAWS_BLOCK = 512 };

struct lk_lanes {
    _Alignas(64) uint64_t state[4][LK_DRAW_LANES];
};

/* Lane i is the stream PREFIX(first + i) of the seed. */
void lk_lanes_numbered(struct lk_lanes *lanes, uint64_t seed, const char *prefix, uint64_t first);
/* draws [count, LK_DRAW_LANES]: of each lane bounded(n), bounded(n - step), bounded(n - 2 step), ...; all bounds at
 * least 1, count at most LK_DRAWS_BLOCK. step is 0 or 1. */
void lk_lanes_bounded(struct lk_lanes *lanes, uint32_t n, uint32_t step, size_t count, uint32_t *draws);

/* One for each level of instructions: the same as lk_lanes_bounded, but nothing is rejected. false when a draw might
 * have to be (one of 2^32 is looked at again); what was written is of no use then. */
bool lk_lanes_draw_avx2(struct lk_lanes *lanes, uint32_t n, uint32_t step, size_t count, uint32_t *draws);
bool lk_lanes_draw_avx512(struct lk_lanes *lanes, uint32_t n, uint32_t step, size_t count, uint32_t *draws);
