/* The gate of ranks with less than a model behind it: a chain of products of one stage, whose weights two simulated
 * GPUs hold together, and no download in it for which the host would wait. What a model's walk waits for anyway is seen
 * here: a rank that gathers for the other while its own last op still reads, gathers behind one that never comes, and
 * a failure of which the other rank has to hear. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/ops.h"
#include "kernels/cuda/runtime/ranks.h"
#include "models/placement.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"

#define SIDE         32
#define N_RING       4 /* weights that the ring has room for */
#define N_WEIGHTS    48
#define GPUSIM_NEVER (-1) /* tools/gpusim/gpusim.h */
#define GPUSIM_DEAD  (-2)
#define SILENCE_S    2 /* of many looks, so that a slow machine is not one */

static const struct simulated_gpu *gpu;
static float weights[N_WEIGHTS][SIDE * SIDE + 64]; /* apart, so that each is a unit of its own */

/* y = W[n - 1] ... W[1] W[0] ones, n_times over, in one of the two tensors. */
static enum lk_code chain(struct lk_device *dev, const char *stage, int n_times, struct lk_tensor y[2]) {
    LK_TRY(lk_device_stage(dev, stage));
    for (int i = 0; i < n_times * N_WEIGHTS; i++) {
        const struct lk_tensor w = LK_TENSOR(weights[i % N_WEIGHTS], LK_F32, SIDE, SIDE);
        LK_TRY(lk_linear(dev, &(struct lk_linear){.y = &y[(i + 1) % 2], .x = &y[i % 2], .w = &w}));
    }
    return LK_OK;
}

static enum lk_code new_pair(struct lk_device *dev, struct lk_tensor y[2]) {
    for (int i = 0; i < 2; i++) LK_TRY(LK_NEW(&dev->arena, &y[i], LK_F32, 1, SIDE));
    return LK_OK;
}

static enum lk_code prepare(struct lk_device *dev) {
    struct lk_device *plan;
    struct lk_tensor y[2];
    LK_TRY(lk_device_plan_create(dev, &plan));
    enum lk_code rc = new_pair(plan, y);
    if (!rc) rc = chain(plan, "chain", 2, y);
    if (!rc) rc = chain(plan, "more", 1, y);
    if (!rc) rc = lk_placement_prepare(dev, plan, plan->arena.peak);
    lk_device_free(plan);
    return rc;
}

static atomic_int n_uploaded;

struct rank {
    pthread_t thread;
    struct lk_device *dev;
    int n_times;
    bool more;                     /* a second stage too */
    void (*before)(struct rank *); /* it uploads; NULL: nothing */
    float y[SIDE];
    struct lk_error error;
};

static void *run(void *context) {
    struct rank *r = context;
    struct lk_tensor y[2];
    float ones[SIDE];
    for (int i = 0; i < SIDE; i++) ones[i] = 1;
    enum lk_code rc = prepare(r->dev);
    if (!rc) rc = new_pair(r->dev, y);
    if (!rc && r->before) r->before(r);
    if (!rc) rc = lk_upload(r->dev, &y[0], ones);
    atomic_fetch_add(&n_uploaded, 1);
    if (!rc && r->n_times) rc = chain(r->dev, "chain", r->n_times, y);
    if (!rc && r->more) rc = chain(r->dev, "more", 1, y);
    if (r->dev->memory->leave) rc = r->dev->memory->leave(r->dev, rc);
    if (!rc) rc = lk_download(r->dev, r->y, &y[0]); /* an even number of products */
    lk_error_get(&r->error, rc);
    return NULL;
}

static void run_as_they_are(struct rank ranks[2]) {
    struct lk_device *devs[2];
    assert_ok(lk_device_cuda_ranks((const int[]){0, 1}, 2, devs));
    for (int k = 0; k < 2; k++) {
        ranks[k].dev = devs[k];
        devs[k]->budget.ring_bytes = N_RING * lk_place_room(sizeof(float[SIDE * SIDE]));
    }
    n_uploaded = 0;
    for (int k = 0; k < 2; k++) assert_int_equal(pthread_create(&ranks[k].thread, NULL, run, &ranks[k]), 0);
    for (int k = 0; k < 2; k++) pthread_join(ranks[k].thread, NULL);
    for (int k = 0; k < 2; k++) lk_device_free(devs[k]);
}

/* Two ranks, of which the first has done earlier. */
static void run_both(struct rank ranks[2], void (*before)(struct rank *)) {
    for (int k = 0; k < 2; k++) ranks[k] = (struct rank){.n_times = 1 + k, .before = k ? before : NULL};
    run_as_they_are(ranks);
}

static void expect_good(const struct rank ranks[2]) {
    for (int k = 0; k < 2; k++) {
        struct rank alone = {.n_times = ranks[k].n_times, .more = ranks[k].more};
        assert_ok(lk_device_cuda_create(0, &alone.dev));
        run(&alone);
        lk_device_free(alone.dev);
        assert_int_equal(alone.error.code, LK_OK);
        if (ranks[k].error.code) fail_msg("rank %d: %s", k, ranks[k].error.text);
        assert_memory_equal(ranks[k].y, alone.y, sizeof alone.y);
    }
}

/* Copies from peers. */
static uint64_t n_pulled(void) { return gpu->calls("cuMemcpyDtoD"); }

static void by_nccl(bool is) { setenv("NCCL_P2P_DISABLE", is ? "1" : "0", 1); }

/* The one that has done goes on gathering, but not over what its last product still reads. */
static void one_has_done(void **state) {
    (void)state;
    struct rank ranks[2];
    const uint64_t reports = gpu->report_count(), gathers = gpu->calls("ncclAllGather");
    by_nccl(true);
    run_both(ranks, NULL);
    by_nccl(false);
    assert_true(!gpu->hooks || gpu->calls("ncclAllGather") >= gathers + 4 * N_WEIGHTS);
    assert_int_equal(gpu->report_count(), reports);
    expect_good(ranks);
}

/* Peers pull what they read, a copy from each, and nothing for each other. */
static void peers(void **state) {
    (void)state;
    struct rank ranks[2];
    const uint64_t reports = gpu->report_count(), gathers = gpu->calls("ncclAllGather");
    const uint64_t before = n_pulled(), probe = 2 * 2, read = 2 * 3 * N_WEIGHTS, ahead = 2 * 2 * N_RING;
    run_both(ranks, NULL);
    const uint64_t n = n_pulled() - before;
    if (gpu->hooks && (n < probe + read || n > probe + read + ahead)) fail_msg("%llu copies", (unsigned long long)n);
    assert_int_equal(gpu->calls("ncclAllGather"), gathers);
    assert_int_equal(gpu->report_count(), reports);
    expect_good(ranks);
}

/* A rank without work gives its shares, and pulls no more than the ring of the stage it came to. */
static void one_gives(void **state) {
    (void)state;
    struct rank ranks[2] = {{.n_times = 1, .more = true}, {0}};
    const uint64_t before = n_pulled(), probe = 2 * 2, read = 2 * 2 * N_WEIGHTS, ahead = 2 * 2 * N_RING;
    run_as_they_are(ranks);
    const uint64_t n = n_pulled() - before;
    if (gpu->hooks && (n < probe + read || n > probe + read + ahead)) fail_msg("%llu copies", (unsigned long long)n);
    expect_good(ranks);
}

/* Behind a unit that never comes no more are sent than may be under way. */
static void one_never_comes(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    struct rank ranks[2];
    const int64_t live = lk_alloc_live();
    const uint64_t before = gpu->calls("ncclAllGather");
    lk_cuda_ranks_patience(0.5, 1e5);
    gpu->fail_at("ncclAllGather", 20, GPUSIM_NEVER, false);
    by_nccl(true);
    run_both(ranks, NULL);
    by_nccl(false);
    gpu->fail_at(NULL, 0, 0, false);
    /* One of them may have been ahead of the other by as many at the 20th. */
    assert_true(gpu->calls("ncclAllGather") <= before + 20 + 3 * LK_CUDA_RANKS_AHEAD);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(ranks[k].error.code, LK_E_DEVICE);
        assert_non_null(strstr(ranks[k].error.text, "nothing has come of it for 0.5 s"));
    }
    assert_int_equal(lk_alloc_live(), live);
}

static void waits_for_ever(int signal) {
    static const char text[] = "[  FAILED  ] a rank waits for one that has failed\n";
    (void)signal;
    _exit(write(STDOUT_FILENO, text, sizeof text - 1) > 0 ? 1 : 2);
}

static void wait_at_most(void) {
    const char *seconds = getenv("TEST_PATIENCE_S"); /* mutants wait, and are found out by that */
    signal(SIGALRM, waits_for_ever);
    alarm(seconds ? 2 * (unsigned)atoi(seconds) : 600);
}

/* Both say what failed on one of them, long before they would lose patience. */
static void one_fails(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    struct rank ranks[2];
    const int64_t live = lk_alloc_live();
    lk_cuda_ranks_patience(1e5, 1e5);
    for (int k = 0; k < 4; k++) {
        const char *const calls[] = {"ncclAllGather", "cuLaunchKernel", "cuMemcpyDtoD", "cuLaunchKernel"};
        char text[64];
        snprintf(text, sizeof text, "%s%s failed with 3", calls[k], k == 2 ? "Async_v2" : "");
        wait_at_most();
        by_nccl(k < 2);
        gpu->fail_at(calls[k], 30 + (uint64_t)k, 3, false);
        run_both(ranks, NULL);
        gpu->fail_at(NULL, 0, 0, false);
        assert_int_equal(ranks[0].error.code, LK_E_DEVICE);
        assert_int_equal(strncmp(ranks[0].error.text, "rank ", 5), 0); /* which one */
        assert_non_null(strstr(ranks[0].error.text, text));
        assert_int_equal(ranks[1].error.code, LK_E_DEVICE);
        assert_string_equal(ranks[1].error.text, ranks[0].error.text);
        assert_int_equal(lk_alloc_live(), live);
    }
    alarm(0);
}

/* Ends what the simulated GPU was told to hold, long after a GPU would have been given up. */
static void *release(void *context) {
    (void)context;
    while (!gpu->failed_call()) usleep(1000);
    sleep(2 * SILENCE_S);
    gpu->fail_at(NULL, 0, 0, false);
    return NULL;
}

/* A kernel that takes its time is no dead GPU. */
static void one_takes_long(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    pthread_t thread;
    struct rank ranks[2];
    lk_cuda_ranks_patience(1e5, SILENCE_S);
    wait_at_most();
    gpu->fail_at("cuLaunchKernel", 20, GPUSIM_NEVER, false);
    assert_int_equal(pthread_create(&thread, NULL, release, NULL), 0);
    run_both(ranks, NULL);
    pthread_join(thread, NULL);
    alarm(0);
    expect_good(ranks);
}

/* Says nothing until the other rank has said so. */
static void sleep_on(struct rank *r) {
    char *text = NULL;
    size_t n;
    (void)r;
    do {
        usleep(10000);
        lk_free(text);
        assert_ok(lk_read_file(test_path("ranks_stderr"), 1 << 20, &text, &n));
    } while (!strstr(text, "rank 1 of 2, cuda:1 (") || !strstr(text, "nothing has been heard of its thread for 2 s"));
    lk_free(text);
}

/* A thread that is silent is named, and waited for. */
static void one_sleeps(void **state) {
    (void)state;
    struct rank ranks[2];
    const int before = dup(STDERR_FILENO), file = creat(test_path("ranks_stderr"), 0600);
    assert_true(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    lk_cuda_ranks_patience(1e5, SILENCE_S);
    wait_at_most();
    run_both(ranks, sleep_on);
    alarm(0);
    dup2(before, STDERR_FILENO);
    close(before);
    close(file);
    expect_good(ranks);
}

/* The second rank's GPU, when the first one uploads no more. */
static void die(struct rank *r) {
    (void)r;
    while (!n_uploaded) usleep(1000);
    gpu->fail_at("cuMemcpyHtoD", 1, GPUSIM_DEAD, false);
}

/* A GPU that answers no more is named by both. Nothing waits for it, and what it has stays where it is. The last test.
 */
static void one_dies(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    struct rank ranks[2];
    lk_cuda_ranks_patience(1e5, SILENCE_S);
    wait_at_most();
    run_both(ranks, die);
    alarm(0);
    gpu->fail_at(NULL, 0, 0, false);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(ranks[k].error.code, LK_E_DEVICE);
        if (!strstr(ranks[k].error.text, "rank 1 of 2, cuda:1 (") ||
            !strstr(ranks[k].error.text, "the GPU has not answered for 2 s"))
            fail_msg("%s", ranks[k].error.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_has_done),    cmocka_unit_test(peers),     cmocka_unit_test(one_gives),
        cmocka_unit_test(one_never_comes), cmocka_unit_test(one_fails), cmocka_unit_test(one_takes_long),
        cmocka_unit_test(one_sleeps),      cmocka_unit_test(one_dies),
    };
    uint64_t random = 3;
    setenv("GPUSIM_DEVICES", "2", 1);
    setenv("GPUSIM_LAZY", "all", 1); /* kernels looked up late would wait for ever */
    gpu = simulated_gpu();
    test_cuda_gpus(2);
    for (int i = 0; i < N_WEIGHTS; i++)
        for (int k = 0; k < SIDE * SIDE; k++) weights[i][k] = (float)test_normal(&random) / 6;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
