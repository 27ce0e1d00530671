#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"

const char *test_path(const char *name) {
    static char ring[8][1024];
    static int next;
    const char *folder = getenv("TEST_TMPDIR");
    char *out = ring[next++ % 8];
    snprintf(out, sizeof ring[0], "%s/%s", folder ? folder : "/tmp", name);
    return out;
}

const char *test_fresh(const char *name) {
    char command[4096];
    const char *folder = test_path(name);
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s'", folder, folder);
    if (system(command)) fail_msg("cannot make %s", folder);
    return folder;
}

void test_write(const char *path, const void *bytes, size_t n_bytes) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n_bytes, f) != n_bytes || fclose(f)) fail_msg("cannot write %s", path);
}

char *test_read(const char *path, size_t *n_bytes) {
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot read %s", path);
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *bytes = malloc((size_t)n + 1);
    if (!bytes || fread(bytes, 1, (size_t)n, f) != (size_t)n) fail_msg("cannot read %s", path);
    fclose(f);
    bytes[n] = 0;
    if (n_bytes) *n_bytes = (size_t)n;
    return bytes;
}

uint64_t test_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double test_uniform(uint64_t *state) { return (double)(test_random(state) >> 11) * 0x1p-53; }

double test_normal(uint64_t *state) {
    double u = 1 - test_uniform(state), v = test_uniform(state);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

double test_relative_error(const float *a, const float *b, size_t n) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(a[i]) || isnan(b[i])) return INFINITY;
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    if (difference == 0) return 0;
    return norm > 0 ? sqrt(difference / norm) : INFINITY;
}

void test_every_allocation(enum lk_code (*call)(void), int64_t at_least) {
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    assert_ok(call());
    int64_t n = lk_alloc_count() - before;
    assert_true(n > at_least);
    for (int64_t i = 1; i <= n; i++) {
        lk_alloc_fail_at(i);
        assert_int_equal(call(), LK_E_NOMEM);
        lk_alloc_fail_at(0);
        assert_int_equal(lk_alloc_live(), live);
    }
}
