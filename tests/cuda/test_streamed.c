/* Weights that do not all fit: staged, resident in part, streamed through rings of several sizes by several readers. A
 * picture has the bits of the run with everything resident, whatever the budget; a plan is the peak to the byte; below
 * the least budget nothing is read. On the simulated GPU, which looks for copies and kernels in the wrong order. */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "models/placement.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/tiny_edit.h"

static const struct simulated_gpu *gpu;

struct bench {
    struct tiny_job job;
    struct lk_image good;
    uint64_t whole, least; /* budgets */
};

static enum lk_code edit(const struct bench *b, struct lk_device *dev, struct lk_image *image) {
    struct lk_result result;
    enum lk_code rc = lk_pipeline_edit(b->job.pipeline, dev, &b->job.request, &result);
    *image = rc ? (struct lk_image){0} : result.image;
    if (!rc) result.image = (struct lk_image){0};
    lk_result_free(&result);
    return rc;
}

static void expect_good(const struct bench *b, const struct lk_image *image) {
    assert_int_equal(image->width, b->good.width);
    assert_int_equal(image->height, b->good.height);
    assert_memory_equal(image->pixels, b->good.pixels, (size_t)image->width * image->height * 3);
}

static void bench_open(struct bench *b, const struct tiny_edit *what, int n_steps, const char *accel) {
    struct lk_device *dev;
    struct lk_plan plan;
    *b = (struct bench){0};
    tiny_job_open(&b->job, what, LK_BF16, n_steps);
    b->job.request.accel = accel;
    assert_ok(lk_device_cuda_create(0, &dev));
    assert_ok(edit(b, dev, &b->good));
    assert_ok(lk_pipeline_plan(b->job.pipeline, dev, &b->job.request, &plan));
    b->whole = plan.device_bytes;
    b->least = plan.least_bytes;
    lk_device_free(dev);
}

static void bench_close(struct bench *b) {
    lk_image_free(&b->good);
    tiny_job_close(&b->job);
}

/* Two jobs on a device with this budget: the good picture, and no more memory than allowed. */
static void run_within(const struct bench *b, const struct lk_budget *budget) {
    struct lk_device *dev;
    struct lk_image image;
    uint64_t reports = gpu->report_count();
    int64_t live = lk_alloc_live();
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget = *budget;
    gpu->memory_peak(0);
    uint64_t waits = gpu->calls("cuStreamWaitEvent"), fetched = gpu->calls("cuLaunchHostFunc");
    for (int i = 0; i < 2; i++) {
        assert_ok(edit(b, dev, &image));
        expect_good(b, &image);
        lk_image_free(&image);
    }
    assert_true(gpu->memory_peak(0) <= budget->bytes);
    waits = gpu->calls("cuStreamWaitEvent") - waits;
    assert_true(!gpu->hooks || waits > (budget->bytes == b->least ? 20 : 4));
    assert_true(!gpu->hooks || gpu->calls("cuLaunchHostFunc") > fetched + 4);
    lk_device_free(dev);
    assert_int_equal(lk_alloc_live(), live);
    assert_int_equal(gpu->report_count(), reports);
    gpu->memory_peak(0);
    assert_int_equal(gpu->memory_peak(0), 0);
}

/* Budgets from the least one up, rings of the planner's size and smaller, pinned copies and readers. With a step cache
 * some weights of the itinerary are not met. */
static void one_image_with(const struct tiny_edit *what, int n_steps, const char *accel) {
    struct bench b;
    bench_open(&b, what, n_steps, accel);
    printf("%s: %llu bytes with all weights, %llu at least\n", what->name, (unsigned long long)b.whole,
           (unsigned long long)b.least);
    int n = test_is_full() ? 12 : 3;
    for (int i = 0; i < n; i++) {
        struct lk_budget budget = {.bytes = b.least + (b.whole - b.least) * (uint64_t)(i * i) / (uint64_t)(2 * n * n)};
        budget.readers = 1 + i % 4;
        budget.host_bytes = i % 2 ? (uint64_t)1 << 30 : 1;
        run_within(&b, &budget);
    }
    bench_close(&b);
}

static void one_image(const struct tiny_edit *what) { one_image_with(what, 2, NULL); }

static void flux2(void **state) {
    (void)state;
    one_image(&tiny_edits[0]);
}
static void qwen_edit(void **state) {
    (void)state;
    one_image(&tiny_edits[1]);
}
static void step1x(void **state) {
    (void)state;
    one_image(&tiny_edits[2]);
}

/* Steps whose blocks are left out: behind the first of each list, behind the first of all, all of them. */
static void step_caches(void **state) {
    (void)state;
    one_image_with(&tiny_edits[0], 4, "dbcache,f=1,steps=0:2");
    one_image_with(&tiny_edits[1], 3, "fbcache,steps=0:2");
    one_image_with(&tiny_edits[2], 3, "fbcache,steps=0:1");
}

/* Copies of weights from pinned memory, one for each that travels, in an edit with these steps computed: nothing is
 * resident, and the ring is the smallest of a power of two. */
static uint64_t copies_of(const struct tiny_edit *what, int n_steps, const char *accel) {
    struct bench b;
    struct lk_image image;
    uint64_t n = 0;
    bench_open(&b, what, n_steps, accel);
    for (uint64_t ring = 1024; !n; ring *= 2) {
        struct lk_device *dev;
        assert_ok(lk_device_cuda_create(0, &dev));
        dev->budget = (struct lk_budget){
            .bytes = b.whole, .host_bytes = (uint64_t)1 << 30, .resident_bytes = 1, .ring_bytes = ring};
        const uint64_t before = gpu->calls("cuMemcpyHtoD");
        const enum lk_code rc = edit(&b, dev, &image);
        assert_true(!rc || rc == LK_E_FIT);
        if (!rc) {
            n = gpu->calls("cuMemcpyHtoD") - before;
            expect_good(&b, &image);
        }
        lk_image_free(&image);
        lk_device_free(dev);
    }
    bench_close(&b);
    return n;
}

/* Weights of blocks that are left out do not travel, but for those that were under way when the first ones were. */
static void left_out_weights_stay(void **state) {
    (void)state;
    for (int i = 0; i < TINY_FAMILIES; i++) {
        const struct tiny_edit *what = &tiny_edits[i];
        const uint64_t all = copies_of(what, 6, "teacache,steps=0:1:2:3:4:5"),
                       five = copies_of(what, 5, "teacache,steps=0:1:2:3:4"),
                       tea = copies_of(what, 6, "teacache,steps=0"), first = copies_of(what, 6, "fbcache,steps=0");
        printf("%s: %llu copies of weights a step; a step left out saves %.1f of them, behind the first block %.1f\n",
               what->name, (unsigned long long)(all - five), (double)(all - tea) / 5, (double)(all - first) / 5);
        assert_true(tea < first && first < all + (i == 2)); /* of Step1X one small block is left */
        /* but for embedders and the last layer; Step1X's connector, which sees the timestep, is most of so small a
         * model */
        assert_true(10 * (all - tea) >= (uint64_t)(i < 2 ? 8 : 3) * 5 * (all - five));
    }
}

/* Rings that are given: one that cannot hold the largest weight is refused before anything is read. */
static void rings(void **state) {
    (void)state;
    struct bench b;
    struct lk_device *dev;
    struct lk_image image;
    bench_open(&b, &tiny_edits[0], 1, NULL);
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget = (struct lk_budget){.bytes = b.least, .ring_bytes = 256};
    uint64_t copies = gpu->calls("cuMemcpyHtoD");
    assert_fails(edit(&b, dev, &image), LK_E_FIT, "the largest weight of text_encoder takes");
    assert_int_equal(gpu->calls("cuMemcpyHtoD"), copies);
    lk_device_free(dev);
    for (uint64_t ring = 1; ring <= (test_is_full() ? 4 : 2); ring *= 2) {
        struct lk_budget budget = {.bytes = b.least + 49408 * ring, .ring_bytes = 49408 * ring, .host_bytes = 1};
        run_within(&b, &budget);
    }
    bench_close(&b);
}

static bool gives_back(const char *call) {
    return strstr(call, "Free") || strstr(call, "Unload") || strstr(call, "Destroy") || strstr(call, "Release");
}

/* The n-th call of that name (NULL: any) fails in a streamed run: an error that names the call; the next job on the
 * same device has the good bits; nothing is leaked. */
static void fail_call(const struct bench *b, uint64_t host_bytes, const char *name, uint64_t n, int64_t live) {
    struct lk_device *dev;
    struct lk_image image;
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget = (struct lk_budget){.bytes = b->least, .host_bytes = host_bytes};
    gpu->fail_at(name, n, 999, false);
    enum lk_code rc = edit(b, dev, &image);
    const char *call = gpu->failed_call();
    if (rc && (!call || rc != LK_E_DEVICE || !strstr(lk_error_text(), call)))
        fail_msg("%s: %d, %s", call ? call : "no call", (int)rc, lk_error_text());
    if (!rc && call && !gives_back(call)) fail_msg("%s: no error", call);
    if (!rc) expect_good(b, &image);
    lk_image_free(&image);
    gpu->fail_at(NULL, 0, 0, false);
    assert_ok(edit(b, dev, &image));
    expect_good(b, &image);
    lk_image_free(&image);
    lk_device_free(dev);
    assert_int_equal(lk_alloc_live(), live);
    gpu->memory_peak(0);
    assert_int_equal(gpu->memory_peak(0), 0);
}

/* How often each driver call was met at the start of an edit, of its stages, and at the end. */
static const char *const names[] = {"cuCtxSetCurrent",      "cuMemGetInfo_v2",     "cuMemAlloc_v2",
                                    "cuMemFree_v2",         "cuMemHostAlloc",      "cuMemFreeHost",
                                    "cuMemHostRegister_v2", "cuMemHostUnregister", "cuStreamCreate",
                                    "cuEventCreate",        "cuEventRecord",       "cuStreamWaitEvent",
                                    "cuMemcpyHtoD",         "cuMemcpyDtoH",        "cuLaunchHostFunc",
                                    "cuEventQuery",         "cuLaunchKernel",      "cuMemset",
                                    "cuEventDestroy_v2",    "cuEventSynchronize",  "cuStreamSynchronize",
                                    "cuModuleGetFunction",  "cuFuncSetAttribute"};
#define N_NAMES    ((int)(sizeof names / sizeof *names))
#define MOST_TIMES 16
struct calls {
    uint64_t n[MOST_TIMES][N_NAMES];
    int n_times;
};

static enum lk_code count(void *context, const char *stage, int step, int n_steps) {
    struct calls *c = context;
    (void)stage, (void)n_steps;
    if (step) return LK_OK;
    assert_true(c->n_times < MOST_TIMES);
    for (int i = 0; i < N_NAMES; i++) c->n[c->n_times][i] = gpu->calls(names[i]);
    c->n_times++;
    return LK_OK;
}

/* All calls of a streamed edit, none of them unknown. */
static uint64_t calls_of_an_edit(struct bench *b, uint64_t host_bytes, struct calls *calls) {
    struct lk_device *dev;
    struct lk_image image;
    calls->n_times = 0;
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget = (struct lk_budget){.bytes = b->least, .host_bytes = host_bytes};
    b->job.request.progress = count;
    b->job.request.progress_context = calls;
    uint64_t n = gpu->calls(NULL), known = 0;
    count(calls, "", 0, 0);
    assert_ok(edit(b, dev, &image));
    count(calls, "", 0, 0);
    n = gpu->calls(NULL) - n;
    b->job.request.progress = NULL;
    for (int i = 0; i < N_NAMES; i++) known += calls->n[calls->n_times - 1][i] - calls->n[0][i];
    assert_int_equal(known, n);
    lk_image_free(&image);
    lk_device_free(dev);
    return n;
}

/* Driver calls of a streamed run made to fail in turn, with readers and with pinned copies: some everyday; in full of
 * each call the first, the last and some others of each stage, since those in between are alike. */
static void failing_calls(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    struct bench b;
    struct calls calls;
    bench_open(&b, &tiny_edits[0], 1, NULL);
    const int64_t live = lk_alloc_live();
    for (int form = 0; form < 2; form++) {
        const uint64_t host_bytes = form ? (uint64_t)1 << 30 : 1, n = calls_of_an_edit(&b, host_bytes, &calls);
        const uint64_t some = 4, most = 6;
        uint64_t tried = 0;
        for (uint64_t i = 0; i < some; i++, tried++)
            fail_call(&b, host_bytes, NULL, 1 + i * (n - 1) / (some - 1), live);
        for (int k = 0; k < N_NAMES && test_is_full(); k++)
            for (int t = 0; t + 1 < calls.n_times; t++) {
                const uint64_t first = calls.n[t][k] - calls.n[0][k], alike = calls.n[t + 1][k] - calls.n[t][k];
                const uint64_t now = alike < most ? alike : most;
                for (uint64_t i = 0; i < now; i++, tried++)
                    fail_call(&b, host_bytes, names[k], 1 + first + (now > 1 ? i * (alike - 1) / (now - 1) : 0), live);
            }
        printf("%s: %llu driver calls, %llu made to fail\n", form ? "pinned" : "readers", (unsigned long long)n,
               (unsigned long long)tried);
        fflush(stdout);
    }
    fail_call(&b, 1, "cuEventCreate", 3, live); /* an event of the ring */
    bench_close(&b);
}

/* Cuts the transformer's file when a stage begins. */
struct cutter {
    const char *path, *stage;
};
static enum lk_code cut(void *context, const char *stage, int step, int n_steps) {
    const struct cutter *c = context;
    (void)n_steps;
    return !strcmp(stage, c->stage) && !step && truncate(c->path, 4096) ? LK_E_INTERNAL : LK_OK;
}

/* In a process of its own, since what was read is then doubtful for good: the code of an edit whose file is cut when
 * `stage` begins, its message naming the file. readers: by which its weights come; 0: from copies in pinned memory. */
static enum lk_code edit_of_a_cut_file(const char *stage, int readers) {
    char folder[1024], path[1100], command[4200];
    struct tiny_job job;
    struct lk_device *dev;
    struct lk_result result;
    snprintf(folder, sizeof folder, "%s", test_path("cut-while-mapped"));
    snprintf(path, sizeof path, "%s/transformer/diffusion_pytorch_model.safetensors", folder);
    snprintf(command, sizeof command, "rm -rf '%s' && cp -rL '%s' '%s' && chmod -R u+w '%s'", folder,
             tiny_edits[1].checkpoint, folder, folder);
    if (system(command) || access(path, W_OK)) return LK_E_INTERNAL;
    struct cutter cutter = {path, stage};
    tiny_job_open_with(&job, &tiny_edits[1], folder, &(struct lk_pipeline_options){.compute = LK_BF16}, 2);
    job.request.progress = cut;
    job.request.progress_context = &cutter;
    if (lk_device_cuda_create(0, &dev)) return LK_E_INTERNAL;
    dev->budget.resident_bytes = 1;
    dev->budget.host_bytes = readers ? 1 : (uint64_t)1 << 30;
    dev->budget.readers = readers;
    enum lk_code rc = lk_pipeline_edit(job.pipeline, dev, &job.request, &result);
    if (rc && !strstr(lk_error_text(), path)) fail_msg("%s", lk_error_text());
    lk_result_free(&result);
    lk_device_free(dev);
    tiny_job_close(&job);
    return rc;
}

/* The exit code of this program with two more arguments and the number of readers; -1: it was killed. */
static int in_a_process(const char *what, const char *stage, int readers) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_cuda_streamed", what, stage, (const char *[]){"0", "1", "2", "3", "4"}[readers],
              (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A weights file that is cut while its weights travel is an error that names it, never a signal and never a picture. */
static void cut_while_mapped(void **state) {
    static const struct {
        const char *stage;
        int readers;
        enum lk_code expected;
    } cases[] = {{"transformer", 1, LK_E_IO},
                 {"transformer", 4, LK_E_IO},
                 {"vae_decode", 2, LK_E_CHANGED},
                 {"transformer", 0, LK_E_CHANGED}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int code = in_a_process("cut", cases[i].stage, cases[i].readers);
        if (code != (int)(cases[i].expected % 256))
            fail_msg("%s, %d readers: code %d", cases[i].stage, cases[i].readers, code);
    }
}

static enum lk_code stop_in_the_second_step(void *context, const char *stage, int step, int n_steps) {
    (void)context, (void)n_steps;
    return !strcmp(stage, "transformer") && step == 1 ? lk_fail(LK_E_INTERRUPTED, "stopped") : LK_OK;
}

/* A run that is stopped while weights travel, whose model is closed before the device. */
static enum lk_code stop_and_close(int readers) {
    struct tiny_job job;
    struct lk_device *dev;
    struct lk_result result;
    tiny_job_open(&job, &tiny_edits[1], LK_BF16, 3);
    job.request.progress = stop_in_the_second_step;
    if (lk_device_cuda_create(0, &dev)) return LK_E_INTERNAL;
    dev->budget = (struct lk_budget){.resident_bytes = 1, .host_bytes = 1, .readers = readers};
    enum lk_code rc = lk_pipeline_edit(job.pipeline, dev, &job.request, &result);
    tiny_job_close(&job);
    lk_device_free(dev);
    return rc;
}

/* Nothing reads weights that are gone. */
static void stopped_and_closed(void **state) {
    (void)state;
    for (int readers = 1; readers <= 2; readers++)
        assert_int_equal(in_a_process("stop", "", readers), LK_E_INTERRUPTED % 256);
}

/* A reader's thread that cannot be started, whichever: an error that says so, and the next job has the good bits. */
static int n_startable = -1; /* threads; -1: all */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    if (!n_startable) return EAGAIN;
    if (n_startable > 0) n_startable--;
    return __real_pthread_create(thread, attributes, start, argument);
}

static void readers_that_do_not_start(void **state) {
    (void)state;
    struct bench b;
    struct lk_image image;
    bench_open(&b, &tiny_edits[1], 2, NULL);
    const int64_t live = lk_alloc_live();
    for (int n = 0; n < 3; n++) {
        struct lk_device *dev;
        assert_ok(lk_device_cuda_create(0, &dev));
        dev->budget = (struct lk_budget){.resident_bytes = 1, .host_bytes = 1, .readers = 3};
        n_startable = n;
        assert_fails(edit(&b, dev, &image), LK_E_NOMEM, "that reads weights could not be started");
        n_startable = -1;
        assert_ok(edit(&b, dev, &image));
        expect_good(&b, &image);
        lk_image_free(&image);
        lk_device_free(dev);
        assert_int_equal(lk_alloc_live(), live);
    }
    bench_close(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flux2),
        cmocka_unit_test(qwen_edit),
        cmocka_unit_test(step1x),
        cmocka_unit_test(step_caches),
        cmocka_unit_test(left_out_weights_stay),
        cmocka_unit_test(rings),
        cmocka_unit_test(failing_calls),
        cmocka_unit_test(cut_while_mapped),
        cmocka_unit_test(stopped_and_closed),
        cmocka_unit_test(readers_that_do_not_start),
    };
    gpu = simulated_gpu();
    if (argc == 4 && !strcmp(argv[1], "stop")) return (int)(stop_and_close(atoi(argv[3])) % 256);
    if (argc == 4) return (int)(edit_of_a_cut_file(argv[2], atoi(argv[3])) % 256);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
