/* Durations as the progress line prints them; a message is one write. */
#include <fcntl.h>
#include <unistd.h>

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

/* Workers share their stderr: what one says in two writes, another may part. The pipe keeps writes apart. */
static void one_write(void **state) {
    (void)state;
    char got[8192];
    int ends[2];
    const int kept = dup(STDERR_FILENO);
    assert_int_equal(pipe2(ends, O_DIRECT | O_NONBLOCK), 0); /* it takes 16 writes */
    dup2(ends[1], STDERR_FILENO);
    lk_log_open(false, false);
    lk_log(LK_LOG_ERROR, "%s\n%0500d", "a name", 7);
    dup2(kept, STDERR_FILENO);
    const ssize_t n = read(ends[0], got, sizeof got);
    close(kept);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(n, strlen("error: a name\\n") + 500 + 1);
    assert_int_equal(got[n - 1], '\n');
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(durations), cmocka_unit_test(one_write)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
