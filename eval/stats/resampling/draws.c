#include "eval/stats/resampling/draws.h"

#include "eval/study/random.h"
#include "engine/base/isa.h"

void lk_lanes_numbered(struct lk_lanes *lanes, uint64_t seed, const char *prefix, uint64_t first) {
    for (int lane = 0; lane < LK_DRAW_LANES; lane++) {
        struct lk_stream stream;
        lk_stream_numbered(&stream, seed, prefix, first + (uint64_t)lane);
        for (int w = 0; w < 4; w++) lanes->state[w][lane] = stream.state[w];
    }
}

/* Lane after lane, with rejections. */
static void draw_exactly(struct lk_lanes *lanes, uint32_t n, uint32_t step, size_t count, uint32_t *draws) {
    for (int lane = 0; lane < LK_DRAW_LANES; lane++) {
        struct lk_stream stream;
        for (int w = 0; w < 4; w++) stream.state[w] = lanes->state[w][lane];
        for (size_t i = 0; i < count; i++)
            draws[i * LK_DRAW_LANES + (size_t)lane] = (uint32_t)lk_stream_bounded(&stream, n - i * step);
        for (int w = 0; w < 4; w++) lanes->state[w][lane] = stream.state[w];
    }
}

void lk_lanes_bounded(struct lk_lanes *lanes, uint32_t n, uint32_t step, size_t count, uint32_t *draws) {
#if defined(__x86_64__)
    enum lk_isa isa = lk_cpu_isa();
    struct lk_lanes before = *lanes;
    if (isa >= LK_ISA_AVX512 && lk_lanes_draw_avx512(lanes, n, step, count, draws)) return;
    if (isa == LK_ISA_AVX2 && lk_lanes_draw_avx2(lanes, n, step, count, draws)) return;
    *lanes = before;
#endif
    draw_exactly(lanes, n, step, count, draws);
}
