/* Durations as the progress line prints them. */
#include "tests/common/test.h"

#include "engine/base/log.h"

static void durations(void **state) {
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{-1, "0:00"}, {0, "0:00"}, {9.4, "0:09"}, {59.6, "1:00"}, {588, "9:48"}, {3723, "1:02:03"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[32];
        lk_log_duration(cases[i].seconds, out);
        assert_string_equal(out, cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(durations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
