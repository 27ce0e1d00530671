/* Draws of eight streams side by side against the streams themselves, at every instruction level: all bounds, a falling
 * bound as a shuffle has it, and streams whose next numbers are rejected. */
#include "eval/stats/resampling/draws.h"
#include "eval/study/random.h"
#include "engine/base/isa.h"
#include "tests/common/test.h"

enum { COUNT = 256 };

static void check(const struct lk_lanes *from, uint32_t n, uint32_t step, size_t count) {
    static uint32_t draws[COUNT * LK_DRAW_LANES + 1];
    struct lk_lanes lanes = *from;
    struct lk_stream streams[LK_DRAW_LANES];
    for (int lane = 0; lane < LK_DRAW_LANES; lane++)
        for (int w = 0; w < 4; w++) streams[lane].state[w] = lanes.state[w][lane];
    draws[count * LK_DRAW_LANES] = 12345;
    lk_lanes_bounded(&lanes, n, step, count, draws);
    assert_int_equal(draws[count * LK_DRAW_LANES], 12345);
    for (size_t i = 0; i < count; i++)
        for (size_t lane = 0; lane < LK_DRAW_LANES; lane++)
            assert_int_equal(draws[i * LK_DRAW_LANES + lane], lk_stream_bounded(&streams[lane], n - i * step));
    for (int lane = 0; lane < LK_DRAW_LANES; lane++)
        for (int w = 0; w < 4; w++) assert_true(lanes.state[w][lane] == streams[lane].state[w]);
}

/* State word 1 is the only one that the next number is made of: 0 gives 0, which every bound rejects but powers of 2.
 */
static struct lk_lanes rejecting(const struct lk_lanes *from, int lane) {
    struct lk_lanes lanes = *from;
    lanes.state[1][lane] = 0;
    return lanes;
}

static void check_all(void) {
    static const uint32_t bounds[] = {1, 2, 3, 84, 5040, 65536, 65537, 3000000000, UINT32_MAX};
    struct lk_lanes lanes;
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        lk_lanes_numbered(&lanes, 42, "boot|", 8 * b);
        check(&lanes, bounds[b], 0, COUNT);
        check(&lanes, bounds[b], 0, 3);
        check(&lanes, bounds[b], 0, 0);
        size_t falling = bounds[b] < COUNT ? bounds[b] : COUNT;
        check(&lanes, bounds[b], 1, falling);
        for (int lane = 0; lane < LK_DRAW_LANES; lane++) {
            struct lk_lanes zero = rejecting(&lanes, lane);
            check(&zero, bounds[b], 0, 17);
            check(&zero, bounds[b], 1, falling);
        }
    }
}

static void as_one_stream_each(void **state) {
    (void)state;
    enum lk_isa most = lk_cpu_isa();
    for (int isa = LK_ISA_PORTABLE; isa <= (int)most; isa++) {
        lk_cpu_isa_set((enum lk_isa)isa);
        check_all();
    }
    lk_cpu_isa_set(most);
}

static void lanes_are_numbered(void **state) {
    (void)state;
    struct lk_lanes lanes;
    lk_lanes_numbered(&lanes, 7, "perm|", 96);
    for (uint64_t lane = 0; lane < LK_DRAW_LANES; lane++) {
        struct lk_stream stream;
        lk_stream_numbered(&stream, 7, "perm|", 96 + lane);
        for (int w = 0; w < 4; w++) assert_true(lanes.state[w][lane] == stream.state[w]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_one_stream_each),
        cmocka_unit_test(lanes_are_numbered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
