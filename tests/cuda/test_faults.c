/* Every driver call of a whole edit made to fail in turn, on the simulated GPU: an error that names the call, nothing
 * leaks, and the next run gives the same bits. Everyday some calls of each family; in the full run (tools/test --full)
 * all of them. On a real GPU only that runs give the same bits. */
#include "engine/base/alloc.h"
#include "kernels/cuda/runtime/driver.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/tiny_edit.h"

#define CUDA_ERROR_OUT_OF_MEMORY   2
#define CUDA_ERROR_ILLEGAL_ADDRESS 700
#define CUDA_ERROR_UNKNOWN         999

static const struct simulated_gpu *gpu;

struct bench {
    const struct tiny_edit *edit;
    struct tiny_job job;
    struct lk_image good;
    uint64_t n_calls; /* of opening, editing and closing */
    uint64_t n_launches;
    int64_t live; /* host blocks when nothing is open but the job */
    int n_tried, n_errors, n_repeated;
};

static enum lk_code edit_with(const struct bench *b, struct lk_device *dev, struct lk_image *image) {
    struct lk_result result;
    enum lk_code rc = lk_pipeline_edit(b->job.pipeline, dev, &b->job.request, &result);
    *image = rc ? (struct lk_image){0} : result.image;
    if (!rc) result.image = (struct lk_image){0};
    lk_result_free(&result);
    return rc;
}

static enum lk_code open_and_edit(const struct bench *b, struct lk_image *image) {
    struct lk_device *dev;
    *image = (struct lk_image){0};
    LK_TRY(lk_device_cuda_create(0, &dev));
    enum lk_code rc = edit_with(b, dev, image);
    lk_device_free(dev);
    return rc;
}

static void expect_good(const struct bench *b, const struct lk_image *image) {
    assert_int_equal(image->width, b->good.width);
    assert_int_equal(image->height, b->good.height);
    assert_memory_equal(image->pixels, b->good.pixels, (size_t)image->width * image->height * 3);
}

static void bench_open(struct bench *b, const struct tiny_edit *edit) {
    *b = (struct bench){.edit = edit};
    tiny_job_open(&b->job, edit, LK_BF16, 0);
    b->job.request.negative_prompt = NULL; /* the second pass of a step makes the same calls */
    uint64_t before = gpu->calls(NULL), launches = gpu->calls("cuLaunchKernel");
    uint64_t waits = gpu->calls("cuStreamWaitEvent");
    assert_ok(open_and_edit(b, &b->good));
    b->n_calls = gpu->calls(NULL) - before;
    b->n_launches = gpu->calls("cuLaunchKernel") - launches;
    assert_int_equal(gpu->calls("cuStreamWaitEvent"), waits);
    b->live = lk_alloc_live();
}

static void bench_close(struct bench *b) {
    printf("%s: %llu driver calls, %d made to fail, of which %d ended the run; %d runs after that with the same bits\n",
           b->edit->name, (unsigned long long)b->n_calls, b->n_tried, b->n_errors, b->n_repeated);
    lk_image_free(&b->good);
    tiny_job_close(&b->job);
}

/* Calls that give something back cannot be repeated, so their failure is passed over: a device goes on, or is closing.
 */
static bool gives_back(const char *call) {
    static const char *const calls[] = {"cuMemFree_v2",       "cuMemFreeHost",     "cuModuleUnload",
                                        "cuStreamDestroy_v2", "cuEventDestroy_v2", "cuDevicePrimaryCtxRelease_v2"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(call, calls[i])) return true;
    return false;
}

/* What is asked of the driver when weights are placed: out of memory there leads to a smaller placement, whose weights
 * travel, and for which streams wait as they never do otherwise. The same calls have no second chance at other times.
 */
static bool placed_again(const char *call, uint64_t waits) {
    static const char *const calls[] = {"cuMemAlloc_v2", "cuMemGetInfo_v2",    "cuCtxSetCurrent",
                                        "cuMemcpyHtoD",  "cuEventSynchronize", "cuEventRecord"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(call, calls[i])) return gpu->calls("cuStreamWaitEvent") > waits;
    return false;
}

/* The n-th call fails, once. again: the same device, if it could be opened, runs the job once more. */
static void fail_nth(struct bench *b, uint64_t n, int result, bool again) {
    struct lk_device *dev = NULL;
    struct lk_image image = {0};
    uint64_t reports = gpu->report_count(), waits = gpu->calls("cuStreamWaitEvent");
    gpu->memory_peak(0);
    gpu->fail_at(NULL, n, result, false);
    enum lk_code rc = lk_device_cuda_create(0, &dev);
    if (!rc) rc = edit_with(b, dev, &image);
    const char *call = gpu->failed_call();
    if (rc) {
        enum lk_code expected = result == CUDA_ERROR_OUT_OF_MEMORY ? LK_E_FIT : LK_E_DEVICE;
        assert_non_null(call);
        if (rc != expected || !strstr(lk_error_text(), call) || image.pixels)
            fail_msg("call %llu, %s: expected code %d and its name, got %d: %s", (unsigned long long)n, call,
                     (int)expected, (int)rc, lk_error_text());
        assert_int_equal(lk_exit_code(rc), result == CUDA_ERROR_OUT_OF_MEMORY ? 4 : 5);
        b->n_errors++;
    } else {
        bool again_placed = call && result == CUDA_ERROR_OUT_OF_MEMORY && placed_again(call, waits);
        if (call && !gives_back(call) && !again_placed)
            fail_msg("call %llu, %s: no error", (unsigned long long)n, call);
        expect_good(b, &image);
    }
    lk_image_free(&image);
    if (dev && again) {
        gpu->fail_at(NULL, call ? 0 : n, result, false);
        assert_ok(edit_with(b, dev, &image));
        expect_good(b, &image);
        lk_image_free(&image);
        b->n_repeated++;
    }
    lk_device_free(dev);
    call = gpu->failed_call() ? gpu->failed_call() : call;
    gpu->fail_at(NULL, 0, 0, false);
    if (call && !strcmp(call, "cuDevicePrimaryCtxRelease_v2")) assert_int_equal(lk_cuda()->context_release(0), 0);
    assert_int_equal(lk_alloc_live(), b->live);
    if (!call || !gives_back(call)) assert_int_equal(gpu->report_count(), reports); /* leaks are reported */
    gpu->memory_peak(0);
    assert_int_equal(gpu->memory_peak(0), 0);
    b->n_tried++;
}

/* `most` calls, spread evenly with the first and the last, each with another error than the one before. */
static void fail_some(const struct tiny_edit *edit, uint64_t most) {
    struct bench b;
    bench_open(&b, edit);
    for (uint64_t i = 0; i < most; i++)
        fail_nth(&b, 1 + i * (b.n_calls - 1) / (most - 1), i % 4 == 3 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN,
                 i % 4 == 1);
    struct lk_image image;
    assert_ok(open_and_edit(&b, &image));
    expect_good(&b, &image);
    lk_image_free(&image);
    bench_close(&b);
}

/* Some of the calls; in the full run every one, and more of them with other errors. */
static void fail_calls(const struct tiny_edit *edit, uint64_t most) {
    if (test_is_full()) {
        struct bench b;
        bench_open(&b, edit);
        for (uint64_t n = 1; n <= b.n_calls; n++) fail_nth(&b, n, CUDA_ERROR_UNKNOWN, n % 16 == 0);
        bench_close(&b);
    }
    fail_some(edit, !gpu->hooks ? 0 : test_is_full() ? 120 : most);
}

static void calls_of_flux2(void **state) {
    (void)state;
    fail_calls(&tiny_edits[0], 6);
}
static void calls_of_qwen_edit(void **state) {
    (void)state;
    fail_calls(&tiny_edits[1], 26);
}
static void calls_of_step1x(void **state) {
    (void)state;
    fail_calls(&tiny_edits[2], 6);
}

/* As after a fault of a kernel: every later call fails too, giving back among them; the driver's context is lost, and
 * a device opened afterwards has a new one. */
static void contexts_that_are_lost(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    struct bench b;
    bench_open(&b, &tiny_edits[1]);
    uint64_t most = test_is_full() ? 100 : 4;
    for (uint64_t i = 1; i <= most; i++) {
        struct lk_image image;
        gpu->fail_at("cuLaunchKernel", 1 + (i - 1) * 37 % b.n_launches, CUDA_ERROR_ILLEGAL_ADDRESS, true);
        enum lk_code rc = open_and_edit(&b, &image);
        if (rc != LK_E_DEVICE || !strstr(lk_error_text(), "cuLaunchKernel failed with 700"))
            fail_msg("case %llu: %d: %s", (unsigned long long)i, (int)rc, lk_error_text());
        gpu->fail_at(NULL, 0, 0, false);
        assert_int_equal(lk_alloc_live(), b.live);
        gpu->memory_peak(0);
        assert_int_equal(gpu->memory_peak(0), 0);
        b.n_tried++, b.n_errors++;
        if (i % 3 && i < most) continue;
        assert_ok(open_and_edit(&b, &image));
        expect_good(&b, &image);
        lk_image_free(&image);
        b.n_repeated++;
    }
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_flux2),
        cmocka_unit_test(calls_of_qwen_edit),
        cmocka_unit_test(calls_of_step1x),
        cmocka_unit_test(contexts_that_are_lost),
    };
    gpu = simulated_gpu();
    printf("%s\n", test_is_full() ? "full run: every call"
                                  : "a sample of the calls; LIKENESS_TEST_FULL=1 (tools/test --full) takes every one");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
