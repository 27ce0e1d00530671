/* Between two steps of an edit the driver is asked for no memory, and the host waits once: for the NaN scan, after
 * which the caller is told of the step. A step unpacks each packed weight once. Counted by the simulated GPU. */
#include "engine/ops.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/tiny_edit.h"

#define N_STEPS 4

static const struct simulated_gpu *gpu;

/* What a step may do: 0 times, once, or as often as it likes. */
static const struct {
    const char *call;
    bool once;
} counted[] = {
    {"cuMemAlloc_v2", false},      {"cuMemHostAlloc", false},   {"cuMemFree_v2", false},
    {"cuMemFreeHost", false},      {"cuModuleLoadData", false}, {"cuModuleGetFunction", false},
    {"cuFuncSetAttribute", false}, {"cuCtxSynchronize", false}, {"cuEventSynchronize", false},
    {"cuStreamCreate", false},     {"cuEventCreate", false},    {"cuMemGetInfo_v2", false},
    {"cuStreamSynchronize", true}, {"cuMemcpyDtoH", true},
};
#define N_COUNTED (sizeof counted / sizeof *counted)

struct log {
    uint64_t at[N_STEPS + 1][N_COUNTED], launches[N_STEPS + 1];
    int n; /* steps seen, the beginning among them */
};

static enum lk_code look(void *context, const char *stage, int step, int n_steps) {
    struct log *log = context;
    if (strcmp(stage, "transformer")) return LK_OK;
    assert_int_equal(n_steps, N_STEPS);
    assert_int_equal(step, log->n);
    for (size_t i = 0; i < N_COUNTED; i++) log->at[step][i] = gpu->calls(counted[i].call);
    log->launches[step] = gpu->calls("cuLaunchKernel");
    log->n++;
    return LK_OK;
}

/* The first step sets how much shared memory some kernels may have, and may wait for uploads made before it. */
static bool is_first(int step, const char *call) {
    return step == 1 && (!strcmp(call, "cuFuncSetAttribute") || !strcmp(call, "cuEventSynchronize"));
}

/* An edit of N_STEPS steps, and what was counted at the end of each. */
static void run(const struct tiny_edit *edit, const struct lk_pipeline_options *options, struct log *log) {
    struct tiny_job job;
    struct lk_device *dev;
    struct lk_result result;
    *log = (struct log){.n = 0};
    tiny_job_open_with(&job, edit, edit->checkpoint, options, N_STEPS);
    job.request.progress = look;
    job.request.progress_context = log;
    assert_ok(lk_device_cuda_create(0, &dev));
    assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result));
    assert_int_equal(log->n, N_STEPS + 1);
    lk_result_free(&result);
    lk_device_free(dev);
    tiny_job_close(&job);
}

static uint64_t last_step(const struct log *log) { return log->launches[N_STEPS] - log->launches[N_STEPS - 1]; }

static void a_step_allocates_nothing_and_waits_once(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    for (int family = 0; family < TINY_FAMILIES; family++) {
        struct log log;
        run(&tiny_edits[family], &(struct lk_pipeline_options){.compute = LK_BF16}, &log);
        for (int step = 1; step <= N_STEPS; step++) {
            for (size_t i = 0; i < N_COUNTED; i++) {
                uint64_t n = log.at[step][i] - log.at[step - 1][i];
                if (is_first(step, counted[i].call) || n == counted[i].once) continue;
                fail_msg("%s, step %d: %llu calls of %s, expected %d", tiny_edits[family].name, step,
                         (unsigned long long)n, counted[i].call, counted[i].once);
            }
            assert_true(log.launches[step] > log.launches[step - 1]);
        }
        printf("%-14s %llu launches a step, no allocation, one wait\n", tiny_edits[family].name,
               (unsigned long long)last_step(&log));
    }
}

/* Two double blocks of 12 layers, single blocks of 3, but 4 where the last one's queries are apart from its keys; two
 * blocks of 12 without the last one's text but for keys and values; a double block, a single one of 5, proj_out. A
 * prompt with its negative one, target and reference read each weight twice and more. */
static void a_step_unpacks_a_weight_once(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    static const uint64_t n_weights[TINY_FAMILIES] = {2 * 12 + 3 + 3 + 4, 2 * 12 - 4, 12 + 5 + 1};
    for (int family = 0; family < TINY_FAMILIES; family++) {
        struct log plain, packed;
        run(&tiny_edits[family], &(struct lk_pipeline_options){.compute = LK_BF16}, &plain);
        run(&tiny_edits[family], &(struct lk_pipeline_options){.compute = LK_BF16, .quantize = LK_QUANTIZE_Q8},
            &packed);
        assert_int_equal(last_step(&packed) - last_step(&plain), n_weights[family]);
    }
}

#define SIDE 64

/* Layers that read one x, and how many kernels the last one launched. */
struct layers {
    struct lk_device *dev;
    struct lk_tensor x, y, w[3];
    uint16_t first[3][SIDE * SIDE]; /* what each gave first */
    bool seen[3];
};

static uint64_t launched_by(struct layers *l, int i) {
    uint64_t before = gpu->calls("cuLaunchKernel");
    uint16_t y[SIDE * SIDE];
    assert_ok(lk_linear(l->dev, &(struct lk_linear){.y = &l->y, .x = &l->x, .w = &l->w[i]}));
    before = gpu->calls("cuLaunchKernel") - before;
    assert_ok(lk_download(l->dev, y, &l->y));
    if (!l->seen[i]) memcpy(l->first[i], y, sizeof y);
    l->seen[i] = true;
    assert_memory_equal(y, l->first[i], sizeof y);
    return before;
}

enum { THERE = 1, MADE = 2 };

static void expect_launches(uint64_t n, uint64_t expected) {
    if (gpu->hooks) assert_int_equal(n, expected);
}

/* The matrices of the last two weights are there until something is written over them or the weights are others. */
static void what_is_unpacked_again(void **state) {
    (void)state;
    static int8_t codes[3][SIDE * SIDE];
    static uint16_t scales[SIDE * SIDE / 64], host_x[SIDE * SIDE];
    static struct layers l;
    for (size_t i = 0; i < sizeof codes; i++) codes[i / (SIDE * SIDE)][i % (SIDE * SIDE)] = (int8_t)(i * i % 251 % 127);
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) scales[i] = 0x3c00;
    for (size_t i = 0; i < SIDE * SIDE; i++) host_x[i] = (uint16_t)(0x3f00 + i % 100);
    assert_ok(lk_device_cuda_create(0, &l.dev));
    assert_ok(lk_device_prepare(l.dev, 1 << 20));
    assert_ok(LK_NEW(&l.dev->arena, &l.x, LK_BF16, SIDE, SIDE));
    assert_ok(LK_NEW(&l.dev->arena, &l.y, LK_BF16, SIDE, SIDE));
    assert_ok(lk_upload(l.dev, &l.x, host_x));
    struct lk_tensor picture, gamma;
    assert_ok(LK_NEW(&l.dev->arena, &picture, LK_BF16, 8, 8, 32));
    assert_ok(LK_NEW(&l.dev->arena, &gamma, LK_BF16, 32));
    assert_ok(lk_upload(l.dev, &picture, host_x));
    assert_ok(lk_upload(l.dev, &gamma, host_x));
    for (int i = 0; i < 3; i++) {
        l.w[i] = LK_TENSOR(codes[i], LK_Q8, SIDE, SIDE);
        l.w[i].scales = (struct lk_scales){scales, LK_BF16, 64};
    }
    static const struct {
        int layer, expected;
    } order[] = {{0, MADE}, {0, THERE}, {1, MADE}, {0, THERE}, {1, THERE}, {2, MADE}, {1, THERE}, {0, MADE}, {2, MADE}};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (launched_by(&l, order[i].layer) != (uint64_t)order[i].expected && gpu->hooks)
            fail_msg("layer %d, number %d: expected %d launches", order[i].layer, (int)i, order[i].expected);

    size_t mark = lk_arena_mark(&l.dev->arena);
    struct lk_tensor other;
    assert_ok(LK_NEW(&l.dev->arena, &other, LK_BF16, SIDE, SIDE)); /* where the first matrix lies */
    expect_launches(launched_by(&l, 0), THERE);
    expect_launches(launched_by(&l, 2), THERE);
    assert_ok(lk_upload(l.dev, &other, host_x));
    expect_launches(launched_by(&l, 0) + launched_by(&l, 2), THERE + MADE);
    lk_arena_release(&l.dev->arena, mark);
    expect_launches(launched_by(&l, 0) + launched_by(&l, 2), 2 * THERE);
    assert_ok(LK_NEW(&l.dev->arena, &other, LK_BF16, 3 * SIDE, SIDE));
    struct lk_tensor part = lk_tensor_rows(&other, SIDE, SIDE); /* where one lies by now */
    assert_ok(lk_copy(l.dev, &(struct lk_copy){.y = &part, .x = &l.x}));
    expect_launches(launched_by(&l, 0) + launched_by(&l, 2), THERE + MADE);
    lk_arena_release(&l.dev->arena, mark);

    expect_launches(launched_by(&l, 0) + launched_by(&l, 1), THERE + MADE);
    expect_launches(launched_by(&l, 0) + launched_by(&l, 1), 2 * THERE);
    const struct lk_group_norm norm = {
        .y = &picture, .x = &picture, .w = &gamma, .b = &gamma, .n_groups = 4, .eps = 1e-6f};
    assert_ok(lk_group_norm(l.dev, &norm)); /* its scratch lies where theirs does */
    expect_launches(launched_by(&l, 0) + launched_by(&l, 1), THERE + MADE);

    assert_ok(lk_device_stage(l.dev, "transformer"));
    expect_launches(launched_by(&l, 0), MADE);
    expect_launches(launched_by(&l, 0), THERE);
    lk_weights_released();
    memset(codes[0], 1, sizeof codes[0]);
    l.seen[0] = false;
    uint16_t before[SIDE * SIDE];
    memcpy(before, l.first[0], sizeof before);
    expect_launches(launched_by(&l, 0), MADE);
    assert_memory_not_equal(before, l.first[0], sizeof before);
    lk_device_free(l.dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_allocates_nothing_and_waits_once),
                                       cmocka_unit_test(a_step_unpacks_a_weight_once),
                                       cmocka_unit_test(what_is_unpacked_again)};
    gpu = simulated_gpu();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
