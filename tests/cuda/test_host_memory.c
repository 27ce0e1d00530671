/* Pinned host memory that is not there: fewer copies and then readers, with the same picture from the same memory of
 * the device. */
#include <fcntl.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "kernels/cuda/cuda.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/tiny_queue.h"

static const struct simulated_gpu *gpu;

struct run {
    enum lk_code rc;
    struct lk_result result;
    uint64_t block, pinned; /* bytes of the device, most bytes of the host */
    uint64_t calls[2];      /* for them */
};
static const char *const calls[2] = {"cuMemHostAlloc", "cuMemHostRegister_v2"};

/* Half of the weights are resident, or none; the others have pinned copies if there is memory for them. Call `fail` of
 * calls[which] fails; 0: none. */
static struct run edit(const struct tiny_job *job, bool half, int which, uint64_t fail) {
    struct lk_device *dev;
    struct lk_plan plan;
    struct run r = {0};
    gpu->memory_peak(-1);
    for (int c = 0; c < 2; c++) r.calls[c] = gpu->calls(calls[c]);
    if (fail) gpu->fail_at(calls[which], fail, 2, false);
    assert_ok(lk_device_cuda_create(0, &dev));
    assert_ok(lk_pipeline_plan(job->pipeline, dev, &job->request, &plan));
    dev->budget = (struct lk_budget){.bytes = (plan.least_bytes + plan.device_bytes) / 2 + plan.beside_bytes,
                                     .host_bytes = (uint64_t)1 << 30,
                                     .resident_bytes = half ? 0 : 1};
    r.rc = lk_pipeline_edit(job->pipeline, dev, &job->request, &r.result);
    if (fail) assert_string_equal(gpu->failed_call(), calls[which]);
    gpu->fail_at(NULL, 0, 0, false);
    r.block = dev->arena_block_bytes;
    r.pinned = gpu->memory_peak(-1);
    for (int c = 0; c < 2; c++) r.calls[c] = gpu->calls(calls[c]) - r.calls[c];
    lk_device_free(dev);
    return r;
}

static void expect_same(const struct lk_image *image, const struct lk_image *good) {
    assert_memory_equal(image->pixels, good->pixels, (size_t)good->width * (size_t)good->height * 3);
}

static void fewer_copies_then_readers(void **state) {
    (void)state;
    for (int k = 0; k < 2 * TINY_FAMILIES; k++) {
        const int i = k / 2, half = k % 2;
        struct tiny_job job;
        tiny_job_open(&job, &tiny_edits[i], LK_BF16, 0);
        struct run good = edit(&job, half, 0, 0), other = edit(&job, !half, 0, 0);
        assert_ok(good.rc);
        assert_ok(other.rc);
        const struct lk_image *image = &good.result.image;
        expect_same(&other.result.image, image);
        lk_result_free(&other.result);
        const int64_t live = lk_alloc_live();
        for (int c = 0; c < 2; c++)
            for (uint64_t n = c ? 1 : 2; n <= good.calls[c]; n++) { /* the first allocation is of the device itself */
                struct run r = edit(&job, half, c, n);
                assert_ok(r.rc);
                assert_int_equal(r.block, good.block);
                assert_true(r.pinned <= good.pinned);
                expect_same(&r.result.image, image);
                lk_result_free(&r.result);
            }
        assert_true(!gpu->hooks || half || good.calls[1] > 0);
        printf("%-14s %llu and %llu calls for pinned memory\n", tiny_edits[i].name, (unsigned long long)good.calls[0],
               (unsigned long long)good.calls[1]);
        assert_int_equal(lk_alloc_live(), live);
        lk_result_free(&good.result);
        tiny_job_close(&job);
    }
    gpu->memory_peak(0);
    assert_int_equal(gpu->memory_peak(0), 0);
    assert_int_equal(gpu->report_count(), 0);
}

/* What a device has pinned is not gone for its next job: else copies of half of the memory would be given back and made
 * anew at every other job. */
static void copies_count_as_its_own(void **state) {
    (void)state;
    struct tiny_job job;
    struct lk_device *dev;
    struct lk_result result;
    struct lk_device_room room;
    struct lk_plan plan;
    tiny_job_open(&job, &tiny_edits[0], LK_BF16, 0);
    assert_ok(lk_device_cuda_create(0, &dev));
    assert_ok(dev->memory->room(dev, 0, &room));
    assert_int_equal(room.host_held, 0);
    dev->budget = (struct lk_budget){.host_bytes = (uint64_t)1 << 30, .resident_bytes = 1};
    assert_ok(lk_pipeline_plan(job.pipeline, dev, &job.request, &plan));
    assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result));
    assert_ok(dev->memory->room(dev, 0, &room));
    assert_true(plan.pinned_bytes > 0);
    assert_int_equal(room.host_held, plan.pinned_bytes);
    assert_ok(dev->memory->place(dev, NULL));
    assert_ok(dev->memory->room(dev, 0, &room));
    assert_int_equal(room.host_held, 0);
    lk_result_free(&result);
    lk_device_free(dev);
    tiny_job_close(&job);
}

/* With details on: how the transformer's weights travel. */
static void ways_are_told(void **state) {
    (void)state;
    const char *path = test_path("cuda_host_memory.txt");
    for (int pinned = 0; pinned < 2; pinned++)
        for (int verbose = 0; verbose < 2; verbose++) {
            struct tiny_job job;
            struct lk_device *dev;
            struct lk_result result;
            tiny_job_open(&job, &tiny_edits[0], LK_BF16, 0);
            assert_ok(lk_device_cuda_create(0, &dev));
            dev->budget = (struct lk_budget){.host_bytes = pinned ? (uint64_t)1 << 30 : 1, .resident_bytes = 1};
            const int saved = dup(STDERR_FILENO), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
            assert_true(saved >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
            lk_log_open(false, verbose);
            const enum lk_code rc = lk_pipeline_edit(job.pipeline, dev, &job.request, &result);
            lk_log_open(false, false);
            dup2(saved, STDERR_FILENO);
            close(saved);
            close(file);
            assert_ok(rc);
            char *told = test_read(path, NULL), *at = strstr(told, ", transformer: ");
            if (at) at[strcspn(at, "\n")] = 0;
            if (!at != !verbose ||
                (at && !strstr(at, pinned ? "streamed, from pinned copies" : "streamed, read by threads")))
                fail_msg("%s", told);
            free(told);
            lk_result_free(&result);
            lk_device_free(dev);
            tiny_job_close(&job);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fewer_copies_then_readers),
                                       cmocka_unit_test(copies_count_as_its_own), cmocka_unit_test(ways_are_told)};
    gpu = simulated_gpu();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
