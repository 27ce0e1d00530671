/* A study that is killed at any call that writes, or whose disk fails there, goes on with the same command and ends as
 * one that nobody has touched. Everyday at some of the points, with LIKENESS_TEST_FULL at 300 and more. */
#include "tests/common/test.h"

#include <errno.h>
#include <signal.h>

#include "tests/common/tiny_study.h"

static char folder[1100];
static long long n_calls; /* of an untouched run */

static int make(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_path("study-run"));
    tiny_study_make(folder, 6, 1); /* 24 jobs */
    tiny_faults_set(0, 0, 0);
    if (tiny_study_run(folder, "whole", NULL)) fail_msg("see %s/whole.log", folder);
    n_calls = atomic_load(&tiny_faults->n_calls);
    assert_in_range(n_calls, 300, 100000);
    return 0;
}

static void go_on(const char *out) {
    tiny_faults_set(0, 0, 0);
    int code = tiny_study_run(folder, out, NULL);
    if (code)
        fail_msg("%s: exit code %d after a fault at call %lld; see %s/%s.log", out, code, tiny_faults->at, folder, out);
    tiny_study_same(folder, out, "whole");
    tiny_study_remove(folder, out);
}

/* Many lives: each is killed some calls after it has begun, wherever that is in the study. */
static void killed_again_and_again(void **state) {
    int n_kills = 0;
    (void)state;
    for (int k = 0; n_kills < 40; k++) {
        tiny_faults_set(1 + k * 13 % 97, TINY_KILL, 0);
        int code = tiny_study_run(folder, "killed", NULL);
        assert_true(code == -SIGKILL || !code);
        n_kills += code != 0;
        if (!code) go_on("killed");
    }
    go_on("killed");
}

static void killed_anywhere(void **state) {
    (void)state;
    if (!getenv("LIKENESS_TEST_FULL")) skip();
    for (int k = 0; k < 320; k++) {
        tiny_faults_set(1 + k * n_calls / 320, TINY_KILL, 0);
        assert_int_equal(tiny_study_run(folder, "killed", NULL), -SIGKILL);
        go_on("killed");
    }
}

/* What passes by itself is tried again unseen, the rest stops the run with the code of a disk. */
static void a_call_fails(void **state) {
    static const int kinds[] = {EIO, TINY_SHORT, ENOSPC, EINTR, EACCES};
    int n = getenv("LIKENESS_TEST_FULL") ? 300 : 12;
    (void)state;
    for (int k = 0; k < n; k++) {
        int what = kinds[k % 5], code;
        bool passes = what == EINTR || what == TINY_SHORT;
        tiny_faults_set(1 + (k * n_calls / n + k % 7) % n_calls, what, 0);
        code = tiny_study_run(folder, "faulty", NULL);
        if (code != 7 && (code || !passes))
            fail_msg("call %lld fails with %d: exit code %d; see %s/faulty.log", tiny_faults->at, what, code, folder);
        go_on("faulty");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_again_and_again),
        cmocka_unit_test(killed_anywhere),
        cmocka_unit_test(a_call_fails),
    };
    return cmocka_run_group_tests(tests, make, NULL);
}
