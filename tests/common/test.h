/* What every test program uses. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/status.h"
#include "tests/common/tiles.h"

/* Kernels with AMX tiles can be run everywhere. */
#define _cmocka_run_group_tests(...) (test_tiles_begin(), _cmocka_run_group_tests(__VA_ARGS__))

/* With TEST_ONLY=NAME only the test of this name runs (* and ? as in a shell). */
#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown)                                                                 \
    (cmocka_set_test_filter(getenv("TEST_ONLY")),                                                                      \
     _cmocka_run_group_tests(#tests, tests, sizeof(tests) / sizeof *(tests), setup, teardown))

/* The call gives LK_OK, or the test fails with the library's message. */
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        enum lk_code rc_ = (call);                                                                                     \
        if (rc_) fail_msg("%s: code %d: %s", #call, (int)rc_, lk_error_text());                                        \
    } while (0)

/* The call gives this code and a message that contains `part`. */
#define assert_fails(call, expected, part)                                                                             \
    do {                                                                                                               \
        enum lk_code rc_ = (call);                                                                                     \
        if (rc_ != (expected) || !strstr(lk_error_text(), part))                                                       \
            fail_msg("%s: expected code %d and \"%s\", got %d: %s", #call, (int)(expected), part, (int)rc_,            \
                     lk_error_text());                                                                                 \
    } while (0)

/* "$TEST_TMPDIR/NAME" (or under /tmp without the variable), in a static ring of 8 buffers. */
const char *test_path(const char *name);
/* The same as a folder, empty. */
const char *test_fresh(const char *name);

/* Writes a file whole; fails the test otherwise. */
void test_write(const char *path, const void *bytes, size_t n_bytes);

/* A file's bytes (free()), fails the test if it cannot be read. */
char *test_read(const char *path, size_t *n_bytes);

/* Small deterministic random numbers for tests (splitmix64). */
uint64_t test_random(uint64_t *state);
double test_uniform(uint64_t *state); /* [0, 1) */
double test_normal(uint64_t *state);

/* ||a - b|| / ||b|| in double; 0 when both are zero. NaN anywhere gives infinity. */
double test_relative_error(const float *a, const float *b, size_t n);

/* `call` succeeds; it makes more than at_least allocations; each made to fail in turn gives LK_E_NOMEM and leaves
 * nothing live. */
void test_every_allocation(enum lk_code (*call)(void), int64_t at_least);
