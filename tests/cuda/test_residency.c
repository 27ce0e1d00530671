/* One picture, wherever weights lie and however they travel: queues of jobs at budgets from the least one to
 * everything, with rings of several sizes, readers or pinned copies, one to three jobs a visit, in bf16, q8, nf4, GGUF
 * and a single fp8 file, with no, one and two adapters, under seeds that order the simulated GPU's warps, blocks and
 * streams differently, with the transformer's rows in slices or not. Everyday three runs of each family; in the full
 * run (LIKENESS_TEST_FULL) 960 placements of each family: in every form all budgets with rings of one and of two
 * weights and one to three jobs a visit, and four under each other seed, in which any two values meet. With a fourth
 * argument, the first N of each part: test_cuda_residency FAMILY FORM SEED N. In 32 any three values meet, 288 are all
 * there are, 48 are those of the full run's seed 1. */
#include <sys/wait.h>
#include <unistd.h>

#include "models/placement.h"
#include "tests/common/cuda.h"
#include "tests/common/packed.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/tiny_queue.h"

#define N_BUDGETS 8
#define N_SEEDS   5
#define N_JOBS    3
#define PINNED    ((uint64_t)1 << 30) /* of host memory: all that travels has a copy there */

static const struct simulated_gpu *gpu;
/* Form i has weights i % PACKED_FORMS and i / PACKED_FORMS adapters. */
#define FORM(weights, n_loras) ((weights) + PACKED_FORMS * (n_loras))
enum { N_FORMS = FORM(0, 3), EVERYDAY = 3 };
static const int everyday[TINY_FAMILIES][EVERYDAY] = {{FORM(PACKED_NF4, 0), FORM(PACKED_Q8, 1), FORM(PACKED_GGUF, 2)},
                                                      {FORM(PACKED_Q8, 0), FORM(PACKED_NF4, 2), FORM(PACKED_FP8, 1)},
                                                      {FORM(PACKED_GGUF, 0), FORM(PACKED_Q8, 1), FORM(PACKED_FP8, 2)}};
static const int order[N_JOBS] = {2, 0, 1};

/* The number after `text` in what the refusal of this budget says. */
static uint64_t refused(struct tiny_queue *q, const struct lk_budget *budget, int jobs_per_visit, const char *text) {
    struct lk_queued *jobs[N_JOBS];
    struct lk_device *dev;
    unsigned long long n = 0;
    for (int i = 0; i < N_JOBS; i++) jobs[i] = &q->jobs[order[i]];
    const struct lk_queue queue = {.jobs = jobs, .n_jobs = N_JOBS, .jobs_per_visit = jobs_per_visit};
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget = *budget;
    assert_int_equal(lk_pipeline_edit_queue(q->tiny.pipeline, dev, &queue), LK_E_FIT);
    const char *at = strstr(lk_error_text(), text);
    if (at) assert_int_equal(sscanf(at + strlen(text), "%llu", &n), 1);
    lk_device_free(dev);
    return n;
}

/* Bytes of the largest weight that travels. */
static uint64_t largest_weight(struct tiny_queue *q) {
    uint64_t largest = 1;
    for (uint64_t more = 1; more;) {
        more = refused(q, &(struct lk_budget){.bytes = 1, .ring_bytes = largest}, 1, " takes ");
        if (more) largest = more;
    }
    return largest;
}

/* What the transformer streams of its weights, or has resident, in any memory. */
static void transformer(struct tiny_queue *q, const struct lk_budget *budget, uint64_t *streamed, uint64_t *resident) {
    struct lk_device *dev;
    struct lk_plan plan;
    int i = 0;
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget = *budget;
    dev->budget.bytes = 0;
    assert_ok(lk_pipeline_plan(q->tiny.pipeline, dev, &q->requests[0], &plan));
    while (strcmp(plan.placed[i].name, "transformer")) assert_true(++i < plan.n_placed);
    *streamed = plan.placed[i].streamed_bytes;
    *resident = plan.placed[i].resident_bytes;
    lk_device_free(dev);
}

#define N_RINGS   4
#define N_READERS 3
#define N_VISITS  3
#define PRODUCT   (N_BUDGETS * 2 * N_VISITS) /* of budgets, rings of one and of two weights, jobs a visit */

/* Budget i of N_BUDGETS. */
static void one_placement(struct tiny_queue *q, int i, int ring, int reader, int jobs_per_visit, uint64_t largest) {
    static const uint64_t rings[N_RINGS] = {0, 1, 2, 4};
    static const int readers[N_READERS] = {0, 1, 4};
    const int n_readers = readers[reader];
    struct lk_budget budget = {.bytes = 1, .ring_bytes = rings[ring] * largest, .readers = n_readers ? n_readers : 1};
    for (int j = 0; j < N_JOBS; j++) q->requests[j].slice_rows = (i + ring + jobs_per_visit) % 2 ? 16 + 8 * j : 0;
    struct lk_device *dev;
    uint64_t streamed, resident;
    budget.host_bytes = n_readers ? 1 : PINNED;
    const uint64_t least = refused(q, &budget, jobs_per_visit, " MiB (");
    transformer(q, &(struct lk_budget){0}, &streamed, &resident);
    assert_ok(lk_device_cuda_create(0, &dev));
    budget.bytes = least + dev->memory_own + resident * (uint64_t)i / N_BUDGETS;
    budget.resident_bytes = 1 + resident * (uint64_t)i / N_BUDGETS;
    transformer(q, &budget, &streamed, &resident);
    assert_true(streamed > 0);
    assert_true(i < N_BUDGETS / 2 ? i || !resident : resident > 0);
    dev->budget = budget;
    gpu->memory_peak(0);
    tiny_queue_same(q, dev, order, N_JOBS, jobs_per_visit);
    assert_true(gpu->memory_peak(0) <= budget.bytes);
    lk_device_free(dev);
}

/* What a child does: some of a family's placements under its seed, and the pictures' digests on stdout. */
static int run(int family, int form, int seed, int n) {
    const struct lk_pipeline_options options = packed_options(family, form % PACKED_FORMS, form / PACKED_FORMS, false);
    struct lk_device *dev;
    struct tiny_queue q;
    gpu = simulated_gpu();
    assert_ok(lk_device_cuda_create(0, &dev));
    tiny_queue_open_with(&q, dev, &tiny_edits[family], &options, N_JOBS);
    lk_device_free(dev);
    uint64_t largest = largest_weight(&q), reports = gpu->report_count();
    for (int k = 0; k < n; k++) {
        if (n == PRODUCT) {
            one_placement(&q, k % N_BUDGETS, 1 + k / N_BUDGETS % 2, k % N_READERS, 1 + k / N_BUDGETS / 2, largest);
            continue;
        }
        const int i = n == 1 ? seed : k, budget = (i + seed + 2 * form) % N_BUDGETS,
                  ring = (i / N_BUDGETS + i) % N_RINGS,
                  reader = (budget + ring + 2 * seed + i / (N_BUDGETS * N_RINGS)) % N_READERS,
                  visit = (ring + form + 2 * seed + i / (N_BUDGETS * N_RINGS * N_READERS)) % N_VISITS;
        one_placement(&q, budget, ring, reader, 1 + visit, largest);
    }
    assert_int_equal(gpu->report_count(), reports);
    printf("%d placements\n", n);
    for (int i = 0; i < N_JOBS; i++) printf("image %s\n", q.alone[i]);
    tiny_queue_close(&q);
    return 0;
}

static void start(int family, int form, int seed, char *out, size_t n_out) {
    int ends[2], status;
    char args[3][16];
    const int values[] = {family, form, seed};
    for (int i = 0; i < 3; i++) snprintf(args[i], sizeof args[i], "%d", values[i]);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("GPUSIM_SEED", args[2], 1);
        if (seed > 2) setenv("GPUSIM_CHECKS", "none", 1);
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "test_cuda_residency", args[0], args[1], args[2], (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < n_out && (got = read(ends[0], out + n, n_out - 1 - n)) > 0;) n += (size_t)got;
    out[n] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("seed %d: %s", seed, out);
    print_message("%s, form %d, seed %d: %s", tiny_edits[family].name, form, seed, out);
}

static bool is_everyday(int family, int form) {
    for (int i = 0; i < EVERYDAY; i++)
        if (everyday[family][i] == form) return true;
    return false;
}

static void one_image(int family) {
    char first[4096], again[4096];
    for (int form = 0; form < N_FORMS; form++) {
        if (!test_is_full() && !is_everyday(family, form)) continue;
        start(family, form, test_is_full() ? 1 : 1 + family, first, sizeof first);
        assert_non_null(strstr(first, "image "));
        for (int seed = 2; test_is_full() && seed <= N_SEEDS; seed++) {
            start(family, form, seed, again, sizeof again);
            if (strcmp(strstr(again, "image "), strstr(first, "image ")))
                fail_msg("%s: seed %d has another picture than seed 1", tiny_edits[family].name, seed);
        }
    }
}

static void flux2(void **state) {
    (void)state;
    one_image(0);
}
static void qwen_edit(void **state) {
    (void)state;
    one_image(1);
}
static void step1x(void **state) {
    (void)state;
    one_image(2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(flux2), cmocka_unit_test(qwen_edit), cmocka_unit_test(step1x)};
    if (argc > 3) {
        const int seed = atoi(argv[3]), n = !test_is_full() ? 1 : seed == 1 ? PRODUCT : 4;
        return run(atoi(argv[1]), atoi(argv[2]), seed, argc > 4 ? atoi(argv[4]) : n);
    }
    gpu = simulated_gpu();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
