/* Ranks: simulated GPUs that hold one copy of the weights together and gather each layer ahead of use. A picture has
 * the bits of a device that has all weights for itself, a plan is each rank's peak to the byte, and when one rank
 * fails, or a collective does or never ends, all end with an error that names it. */
#include "engine/base/alloc.h"
#include "kernels/cuda/runtime/nccl.h"
#include "kernels/cuda/runtime/ranks.h"
#include "models/ranks.h"
#include "tests/common/cuda.h"
#include "tests/common/packed.h"
#include "tests/common/simulated_gpu.h"

#if defined(__has_include)
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
_Static_assert((int)LK_NCCL_INT8 == (int)ncclInt8, "");
_Static_assert((int)LK_NCCL_IN_PROGRESS == (int)ncclInProgress, "");
_Static_assert(sizeof(lk_nccl_result) == sizeof(ncclResult_t), "");
_Static_assert(sizeof(lk_nccl_comm) == sizeof(ncclComm_t), "");
#endif
#endif

#define MOST_RANKS   8
#define MOST_JOBS    8
#define GPUSIM_NEVER (-1) /* tools/gpusim/gpusim.h */

static const struct simulated_gpu *gpu;
static int n_gpus;

/* Mutants hang, and are found out by that. */
static double patience(void) {
    const char *seconds = getenv("TEST_PATIENCE_S");
    return seconds ? strtod(seconds, NULL) : 30;
}

struct bench {
    struct tiny_job job;
    struct lk_request requests[MOST_JOBS]; /* of another seed each */
    struct lk_image good[MOST_JOBS];
    int n_jobs;
    uint64_t n_launches; /* of the first one */
    bool by_both;        /* by peers and by NCCL */
};

static void bench_open(struct bench *b, int family, enum packed_form form, int n_loras, int n_jobs, int n_steps) {
    const struct lk_pipeline_options options = packed_options(family, form, n_loras, false);
    *b = (struct bench){.n_jobs = n_jobs};
    tiny_job_open_with(&b->job, &tiny_edits[family], tiny_edits[family].checkpoint, &options, n_steps);
    for (int i = 0; i < n_jobs; i++) {
        struct lk_request *r = &b->requests[i];
        *r = b->job.request;
        r->seed += (uint64_t)i;
        r->num_inference_steps += i % 2; /* the others gather for those that have not done yet */
        if (r->n_images && i % 2)        /* and all that those leave out */
            r->accel = !family ? "dbcache,f=1,steps=0" : "fbcache,steps=0";
    }
}

/* What one device makes of them. */
static void make_good(struct bench *b) {
    struct lk_device *dev;
    struct lk_result result;
    assert_ok(lk_device_cuda_create(0, &dev));
    for (int i = 0; i < b->n_jobs; i++) {
        const uint64_t before = gpu->calls("cuLaunchKernel");
        assert_ok(lk_pipeline_edit(b->job.pipeline, dev, &b->requests[i], &result));
        if (!i) b->n_launches = gpu->calls("cuLaunchKernel") - before;
        b->good[i] = result.image;
        result.image = (struct lk_image){0};
        lk_result_free(&result);
    }
    lk_device_free(dev);
}

static void bench_close(struct bench *b) {
    for (int i = 0; i < b->n_jobs; i++) lk_image_free(&b->good[i]);
    tiny_job_close(&b->job);
}

static void expect_good(const struct lk_image *image, const struct lk_image *good) {
    assert_int_equal(image->width, good->width);
    assert_int_equal(image->height, good->height);
    assert_memory_equal(image->pixels, good->pixels, (size_t)image->width * image->height * 3);
}

static void open_ranks(int n, struct lk_device **devs) {
    static const int indexes[MOST_RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    assert_ok(lk_device_cuda_ranks(indexes, n, devs));
}

static void close_ranks(int n, struct lk_device **devs) {
    for (int i = 0; i < n; i++) lk_device_free(devs[i]);
}

/* The bench's first jobs on ranks; results are checked where there is a picture. */
static enum lk_code edit(const struct bench *b, struct lk_device **devs, int n, int n_jobs) {
    struct lk_queued *queued = calloc(MOST_JOBS, sizeof *queued), *jobs[MOST_JOBS];
    for (int i = 0; i < n_jobs; i++) {
        queued[i].request = &b->requests[i];
        jobs[i] = &queued[i];
    }
    struct lk_queue queue = {.jobs = jobs, .n_jobs = n_jobs, .jobs_per_visit = 2};
    enum lk_code rc = lk_pipeline_edit_ranks(b->job.pipeline, devs, n, &queue);
    for (int i = 0; i < n_jobs; i++) {
        if (!rc) expect_good(&queued[i].result.image, &b->good[i]);
        if (rc && rc != LK_E_PARTIAL) assert_int_equal(queued[i].error.code, rc);
        lk_result_free(&queued[i].result);
    }
    free(queued);
    return rc;
}

static void by_nccl(bool is) { setenv("NCCL_P2P_DISABLE", is ? "1" : "0", 1); }

/* Twice in the full run, so that the second run finds shares where the first has left them. */
static void run_by(bool nccl, const struct bench *b, int n, int n_jobs) {
    struct lk_device *devs[MOST_RANKS];
    struct lk_plan plan;
    const char *const call = nccl ? "ncclAllGather" : "cuMemcpyDtoD", *const other =
                                                                          nccl ? "cuMemcpyDtoD" : "ncclAllGather";
    uint64_t reports = gpu->report_count(), gathered = gpu->calls(call), others = gpu->calls(other);
    int64_t live = lk_alloc_live();
    by_nccl(nccl);
    open_ranks(n, devs);
    by_nccl(false);
    for (int r = 0; r < n; r++) gpu->memory_peak(r);
    const int n_times = test_is_full() ? 2 : 1;
    const uint64_t launches = gpu->calls("cuLaunchKernel");
    for (int i = 0; i < n_times; i++) assert_ok(edit(b, devs, n, n_jobs));
    if (n_jobs == 1) /* the others make nothing */
        assert_int_equal(gpu->calls("cuLaunchKernel") - launches, (uint64_t)n_times * b->n_launches);
    assert_true(!gpu->hooks || gpu->calls(call) > gathered + 20 * (uint64_t)n);
    assert_int_equal(gpu->calls(other), others);
    for (int r = 0; r < n; r++) {
        uint64_t most = 0;
        for (int i = r < n_jobs ? r : 0; i < (r < n_jobs ? n_jobs : 1); i += n) {
            assert_ok(lk_pipeline_plan(b->job.pipeline, devs[r], &b->requests[i], &plan));
            assert_true(plan.fits && !plan.whole);
            if (plan.placed_bytes > most) most = plan.placed_bytes;
        }
        assert_true(!gpu->hooks || gpu->memory_peak(r) == most);
    }
    close_ranks(n, devs);
    assert_int_equal(lk_alloc_live(), live);
    assert_int_equal(gpu->report_count(), reports);
    for (int r = 0; r < n; r++) {
        gpu->memory_peak(r);
        assert_int_equal(gpu->memory_peak(r), 0);
    }
}

static void run_on(const struct bench *b, int n, int n_jobs) {
    run_by(false, b, n, n_jobs);
    if (b->by_both) run_by(true, b, n, n_jobs);
}

/* As many jobs as ranks; in the full run more, and fewer. */
static void one_family(int family, enum packed_form form, int n_loras) {
    struct bench b;
    bench_open(&b, family, form, n_loras, test_is_full() ? 3 : family ? 1 : 2, 2);
    b.by_both = test_is_full() || !family;
    make_good(&b);
    run_on(&b, 2, b.n_jobs);
    if (n_gpus >= 4 && (test_is_full() || b.n_jobs == 1)) run_on(&b, 4, b.n_jobs);
    if (test_is_full() && n_gpus >= 8 && !n_loras) run_on(&b, 8, 1);
    bench_close(&b);
}

/* In the full run weights in every form with no, one and two adapters, more jobs than ranks and fewer. */
static void every_form(int family, enum packed_form everyday, int n_everyday) {
    if (!test_is_full()) {
        one_family(family, everyday, n_everyday);
        return;
    }
    for (enum packed_form form = 0; form < PACKED_FORMS; form++)
        for (int n_loras = 0; n_loras <= 2; n_loras++) {
            one_family(family, form, n_loras);
            print_message("%s, %s, %d LoRAs: as one GPU\n", tiny_edits[family].name, packed_names[form], n_loras);
        }
}

static void flux2(void **state) {
    (void)state;
    every_form(0, PACKED_FP8, 2);
}
static void qwen_edit(void **state) {
    (void)state;
    every_form(1, PACKED_NF4, 1);
}
static void step1x(void **state) {
    (void)state;
    every_form(2, PACKED_GGUF, 1);
}

/* Two ranks on which something goes wrong in the middle of a run: the error on all, no hang, nothing left. */
static void expect_error(const struct bench *b, const char *call, uint64_t nth, int result, bool sticky,
                         const char *text) {
    struct lk_device *devs[2];
    int64_t live = lk_alloc_live();
    open_ranks(2, devs);
    gpu->fail_at(call, nth, result, sticky);
    enum lk_code rc = edit(b, devs, 2, 2);
    if (rc != LK_E_DEVICE || !strstr(lk_error_text(), text))
        fail_msg("%s %llu: %d, %s", call, (unsigned long long)nth, (int)rc, lk_error_text());
    gpu->fail_at(NULL, 0, 0, false);
    assert_fails(edit(b, devs, 2, 2), LK_E_DEVICE, text); /* these ranks are of no more use */
    close_ranks(2, devs);
    assert_int_equal(lk_alloc_live(), live);
}

static void failures(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    struct bench b;
    struct lk_device *devs[3];
    bench_open(&b, 0, PACKED_BF16, 0, 2, 1);
    make_good(&b);
    expect_error(&b, "cuMemcpyDtoD", 40, 3, false, "weights of rank ");
    expect_error(&b, "cuLaunchKernel", 60, 719, true, "cuLaunchKernel failed with 719");
    for (uint64_t i = 0; i < (test_is_full() ? 12 : 0); i++)
        expect_error(&b, NULL, 700 + 130 * i, 999, false, "failed with 999");
    by_nccl(true);
    expect_error(&b, "ncclAllGather", 40, 3, false,
                 "weights of the ranks: ncclAllGather failed with 3, internal error");
    expect_error(&b, "ncclCommGetAsyncError", 30, 6, false, "an all-gather failed with 6, remote process error");
    expect_error(&b, "cuLaunchKernel", 50, 719, true, "cuLaunchKernel failed with 719"); /* the device is lost */
    for (uint64_t i = 0; i < (test_is_full() ? 12 : 0); i++)
        expect_error(&b, NULL, 700 + 130 * i, 999, false, "failed with 999");
    lk_cuda_ranks_patience(0.5, 1e5);
    const uint64_t before = gpu->calls("ncclAllGather");
    expect_error(&b, "ncclAllGather", 40, GPUSIM_NEVER, false, "nothing has come of it for 0.5 s");
    assert_true(gpu->calls("ncclAllGather") < before + 40 + 2 * (LK_CUDA_RANKS_AHEAD + 1)); /* none sends on for ever */
    lk_cuda_ranks_patience(patience(), 1e5);
    by_nccl(false);
    open_ranks(2, devs); /* all is well again */
    assert_ok(edit(&b, devs, 2, 2));
    close_ranks(2, devs);
    bench_close(&b);
}

/* A group that does not come to be. */
static void not_opened(void **state) {
    (void)state;
    struct lk_device *devs[3];
    int64_t live = lk_alloc_live();
    assert_fails(lk_device_cuda_ranks((const int[]){0}, 1, devs), LK_E_USAGE, "expected 2 to 16 GPUs, got 1");
    assert_fails(lk_device_cuda_ranks((const int[]){0, 1, 0}, 3, devs), LK_E_USAGE, "cuda:0 is there twice");
    assert_fails(lk_device_cuda_ranks((const int[]){0, 99}, 2, devs), LK_E_DEVICE, "no device 99");
    if (!gpu->hooks) return;
    gpu->fail_at("cuMemcpyDtoD", 3, 5, false);
    assert_fails(lk_device_cuda_ranks((const int[]){0, 1}, 2, devs), LK_E_DEVICE, "probe of the ranks");
    const uint64_t groups = gpu->calls("ncclCommInitAll");
    gpu->fail_at("cuCtxEnablePeerAccess", 2, 217, false); /* no access: by NCCL */
    open_ranks(2, devs);
    close_ranks(2, devs);
    assert_int_equal(gpu->calls("ncclCommInitAll"), groups + 1);
    by_nccl(true);
    gpu->fail_at("ncclCommInitAll", 1, 2, false);
    assert_fails(lk_device_cuda_ranks((const int[]){0, 1}, 2, devs), LK_E_DEVICE, "ncclCommInitAll failed with 2");
    gpu->fail_at("ncclAllGather", 2, 5, false);
    assert_fails(lk_device_cuda_ranks((const int[]){0, 1}, 2, devs), LK_E_DEVICE, "ncclAllGather failed with 5");
    gpu->fail_at(NULL, 0, 0, false);
    by_nccl(false);
    assert_int_equal(lk_alloc_live(), live);
}

/* Jobs of which one does not read the text encoder. */
static void unlike(void **state) {
    (void)state;
    struct bench b;
    struct lk_device *devs[2];
    bench_open(&b, 0, PACKED_BF16, 0, 2, 1);
    struct lk_queued *job = calloc(1, sizeof *job);
    job->request = &b.requests[1];
    assert_ok(lk_device_cuda_create(0, &devs[0]));
    assert_ok(lk_pipeline_embed(b.job.pipeline, devs[0],
                                &(struct lk_queue){.jobs = &job, .n_jobs = 1, .jobs_per_visit = 1},
                                test_path("ranks_embeds")));
    b.requests[1].prompt_embeds = test_path("ranks_embeds");
    lk_device_free(devs[0]);
    free(job);
    open_ranks(2, devs);
    assert_fails(edit(&b, devs, 2, 2), LK_E_USAGE, "jobs that share weights must be alike");
    close_ranks(2, devs);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flux2),    cmocka_unit_test(qwen_edit),  cmocka_unit_test(step1x),
        cmocka_unit_test(failures), cmocka_unit_test(not_opened), cmocka_unit_test(unlike),
    };
    setenv("GPUSIM_DEVICES", "8", 1);
    setenv("GPUSIM_LAZY", "all", 1); /* kernels looked up late would wait for ever */
    gpu = simulated_gpu();
    n_gpus = test_cuda_gpus(2);
    lk_cuda_ranks_patience(patience(), 1e5);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
