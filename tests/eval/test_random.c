/* The study's generator against the values that its definition gives. */
#include "eval/study/random.h"
#include "tests/common/test.h"

static void xoshiro_from_splitmix(void **state) {
    (void)state;
    struct lk_stream s;
    lk_stream_seed(&s, 42);
    assert_true(s.state[0] == 0xbdd732262feb6e95u && s.state[1] == 0x28efe333b266f103u);
    const uint64_t expected[] = {0x15780b2e0c2ec716u, 0x6104d9866d113a7eu, 0xae17533239e499a1u, 0xecb8ad4703b360a1u};
    for (int i = 0; i < 4; i++) assert_true(lk_stream_u64(&s) == expected[i]);
}

static void bounded_and_shuffle(void **state) {
    (void)state;
    struct lk_stream s;
    lk_stream_seed(&s, 42);
    const uint64_t bounded[] = {0, 2, 4, 6, 6, 5, 5, 5, 5, 4};
    for (int i = 0; i < 10; i++) assert_int_equal(lk_stream_bounded(&s, 7), bounded[i]);
    int32_t values[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const int32_t shuffled[] = {9, 1, 4, 2, 8, 7, 6, 5, 3, 0};
    lk_stream_seed(&s, 42);
    lk_stream_shuffle(&s, values, 10);
    assert_memory_equal(values, shuffled, sizeof shuffled);
}

static void named_streams(void **state) {
    (void)state;
    assert_true(lk_fnv1a64("White|Male|Young|flux") == 0x5609ac5e400e575au);
    struct lk_stream s;
    lk_stream_named(&s, 42, "White|Male|Young|flux");
    assert_true(lk_stream_u64(&s) == 0x87110fae1007c703u);
    const struct {
        const char *label;
        int32_t first[4];
    } cases[] = {{"White|Male|Young|flux", {27, 17, 9, 11}}, {"Black|Female|Old|qwen", {28, 34, 12, 5}}};
    for (int c = 0; c < 2; c++) {
        int32_t values[40];
        for (int i = 0; i < 40; i++) values[i] = i;
        lk_stream_named(&s, 42, cases[c].label);
        lk_stream_shuffle(&s, values, 40);
        assert_memory_equal(values, cases[c].first, sizeof cases[c].first);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xoshiro_from_splitmix),
        cmocka_unit_test(bounded_and_shuffle),
        cmocka_unit_test(named_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
