#include "tests/common/pipeline_checks.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "tests/common/test.h"

static void assert_same_picture(const struct lk_image *a, const struct lk_image *b) {
    assert_true(a->width == b->width && a->height == b->height);
    assert_memory_equal(a->pixels, b->pixels, (size_t)a->width * (size_t)a->height * 3);
}

/* An allocation that only saves time (a compiled pattern's stack) may be done without. */
static void assert_no_memory_or_ok(enum lk_code rc, int64_t n, int64_t total) {
    if (rc && rc != LK_E_NOMEM)
        fail_msg("allocation %lld of %lld: expected code %d, got %d: %s", (long long)n, (long long)total,
                 (int)LK_E_NOMEM, (int)rc, lk_error_text());
}

void test_allocations_of_edit(const char *checkpoint, test_fill_request *fill, int stride) {
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_result good, result;
    assert_ok(lk_pipeline_open(&p, checkpoint, LK_BF16));
    assert_ok(lk_device_cpu_create(1, &dev));
    fill(&request, p);
    assert_ok(lk_pipeline_edit(p, dev, &request, &good));
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    assert_ok(lk_pipeline_edit(p, dev, &request, &result));
    int64_t total = lk_alloc_count() - before;
    lk_result_free(&result);
    assert_true(total > 10);
    int n_failed = 0, n_tried = 0;
    for (int64_t n = 1; n <= total; n += n < 30 || n > total - 60 ? 1 : stride) {
        n_tried++;
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_pipeline_edit(p, dev, &request, &result);
        lk_alloc_fail_at(0);
        assert_no_memory_or_ok(rc, n, total);
        if (rc)
            assert_null(result.image.pixels);
        else
            assert_same_picture(&good.image, &result.image);
        n_failed += rc != LK_OK;
        lk_result_free(&result);
        assert_int_equal(lk_alloc_live(), live);
    }
    print_message("%lld allocations, %d made to fail\n", (long long)total, n_tried);
    assert_true(n_failed > n_tried / 2);
    assert_ok(lk_pipeline_edit(p, dev, &request, &result));
    assert_same_picture(&good.image, &result.image);
    lk_result_free(&result);
    lk_result_free(&good);
    lk_device_free(dev);
    lk_pipeline_close(p);
}

void test_allocations_of_open(const char *checkpoint) {
    struct lk_pipeline *p;
    int64_t live = lk_alloc_live(), before = lk_alloc_count();
    assert_ok(lk_pipeline_open(&p, checkpoint, LK_BF16));
    lk_pipeline_close(p);
    int64_t total = lk_alloc_count() - before;
    int n_failed = 0, n_tried = 0;
    for (int64_t n = 1; n <= total; n += n < 100 ? 1 : total / 150 + 1) {
        n_tried++;
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_pipeline_open(&p, checkpoint, LK_BF16);
        lk_alloc_fail_at(0);
        assert_no_memory_or_ok(rc, n, total);
        if (!rc) lk_pipeline_close(p);
        n_failed += rc != LK_OK;
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(n_failed > n_tried / 2);
}

struct tracing {
    const char *const *names;
    struct test_digests *digests;
};

static enum lk_code digest_traced(void *context, struct lk_device *dev, const char *name,
                                  const struct lk_tensor *value) {
    const struct tracing *t = context;
    for (int i = 0; i < 2; i++) {
        if (!t->names[i] || strcmp(name, t->names[i])) continue;
        if (!lk_tensor_is_dense(value)) return lk_fail(LK_E_INTERNAL, "%s lies in a window", name);
        size_t n = lk_tensor_bytes(value);
        char *bytes = malloc(n);
        enum lk_code rc = lk_download(dev, bytes, value);
        if (!rc) lk_sha256(bytes, n, t->digests->traced[i]);
        free(bytes);
        return rc;
    }
    return LK_OK;
}

void test_edit_digests(struct lk_pipeline *p, struct lk_device *dev, const struct lk_request *request,
                       const char *const names[2], struct test_digests *out) {
    struct tracing tracing = {names, out};
    struct lk_result result;
    *out = (struct test_digests){0};
    dev->trace = digest_traced;
    dev->trace_context = &tracing;
    assert_ok(lk_pipeline_edit(p, dev, request, &result));
    dev->trace = NULL;
    for (int i = 0; i < 2; i++) assert_int_equal(strlen(out->traced[i]), names[i] ? 64 : 0);
    lk_sha256(result.image.pixels, (size_t)result.image.width * (size_t)result.image.height * 3, out->pixels);
    lk_result_free(&result);
}

void test_same_digests(const struct test_digests *a, const struct test_digests *b) {
    for (int i = 0; i < 2; i++) assert_string_equal(a->traced[i], b->traced[i]);
    assert_string_equal(a->pixels, b->pixels);
}

void test_plan_is_the_peak(struct lk_pipeline *p, struct lk_device *dev, const struct lk_request *request,
                           struct lk_plan *plan, struct lk_result *result) {
    assert_ok(lk_pipeline_plan(p, dev, request, plan));
    assert_ok(lk_pipeline_edit(p, dev, request, result));
    assert_int_equal(result->peak_bytes, plan->arena_bytes);
}

void test_same_in_another_process(const void *here, size_t n_bytes) {
    int ends[2];
    char *there = calloc(1, n_bytes);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", program_invocation_name, "digest", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n < n_bytes && (got = read(ends[0], there + n, n_bytes - n)) > 0;) n += (size_t)got;
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_memory_equal(here, there, n_bytes);
    free(there);
}

void test_picture_digest(const struct lk_result *result, char sha256[65]) {
    lk_sha256(result->image.pixels, (size_t)result->image.width * (size_t)result->image.height * 3, sha256);
}

void test_company_changes_nothing(struct lk_pipeline *p, struct lk_request *requests, char (*alone)[65], int n,
                                  int jobs_per_visit) {
    struct lk_queued *queued = lk_calloc((size_t)n, sizeof *queued), **list = lk_calloc((size_t)n, sizeof *list);
    assert_true(queued && list);
    for (int threads = 1; threads < 4; threads += 2) {
        struct lk_device *dev;
        memset(queued, 0, (size_t)n * sizeof *queued);
        for (int i = 0; i < n; i++) {
            requests[i].slice_rows = threads > 1 ? 16 : 0;
            queued[i].request = &requests[i];
            list[(i + threads) % n] = &queued[i];
        }
        assert_ok(lk_device_cpu_create(threads, &dev));
        assert_ok(lk_pipeline_edit_queue(
            p, dev, &(struct lk_queue){.jobs = list, .n_jobs = n, .jobs_per_visit = threads > 1 ? n : jobs_per_visit}));
        for (int i = 0; i < n; i++) {
            char sha256[65];
            test_picture_digest(&queued[i].result, sha256);
            if (strcmp(sha256, alone[i]) != 0)
                fail_msg("%s: another picture in company", requests[i].accel ? requests[i].accel : "no cache");
            lk_result_free(&queued[i].result);
        }
        lk_device_free(dev);
    }
    lk_free(queued);
    lk_free(list);
}
