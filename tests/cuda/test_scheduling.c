/* Whole edits have the same bits whatever order a GPU's warps, blocks and streams run in: three runs of each family in
 * f32 and bf16, each in a process of its own with another GPUSIM_SEED and number of host threads, must agree in every
 * stage. On a real GPU, which takes no seeds, these are three repetitions. With LIKENESS_TEST_FULL more seeds, and in
 * bf16 larger jobs. */
#include <sys/wait.h>
#include <unistd.h>

#include "models/pipeline.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"
#include "engine/base/digest.h"

#define DATA       "golden/data/"
#define MAX_SEEDS  8
#define MAX_STAGES (1 << 17) /* bytes of the list of stages */

static const struct job {
    const char *name, *checkpoint, *picture; /* picture: NULL for none */
    int width, height;                       /* 0: the picture's */
    int size_level;
    bool full; /* only with LIKENESS_TEST_FULL */
} jobs[] = {
    {"flux2", DATA "flux2/rich/checkpoint", NULL, 32, 48, 0, false},
    {"qwen_edit", DATA "qwen_edit/edit2511/checkpoint", DATA "qwen_edit/edit2511/cases/portrait.jpg", 32, 48, 0, false},
    {"step1x", DATA "step1x/rich/checkpoint", DATA "flux2/deep/cases/small.png", 0, 0, 64, false},
    {"flux2 reference", DATA "flux2/deep/checkpoint", DATA "flux2/deep/cases/small.png", 0, 0, 0, true},
    {"qwen_edit wide", DATA "qwen_edit/edit/checkpoint", DATA "qwen_edit/edit2511/cases/wide.jpg", 96, 64, 0, true},
    {"qwen_edit text", DATA "qwen_edit/text/checkpoint", NULL, 96, 80, 0, true},
    {"step1x text", DATA "step1x/plain/checkpoint", NULL, 64, 96, 64, true},
};
#define N_JOBS (sizeof jobs / sizeof *jobs)

static void sha256_of(struct lk_device *dev, const struct lk_tensor *value, enum lk_code *rc, char hash[65]) {
    int64_t row = lk_tensor_row_numel(value), n_rows = lk_tensor_is_dense(value) ? 1 : value->shape[0];
    size_t row_bytes = (size_t)row * lk_dtype_size(value->dtype),
           step = (size_t)value->ld * lk_dtype_size(value->dtype);
    if (n_rows == 1) row_bytes = lk_tensor_bytes(value), row = (int64_t)lk_tensor_numel(value);
    unsigned char *bytes = malloc(row_bytes * (size_t)n_rows);
    assert_non_null(bytes);
    for (int64_t i = 0; i < n_rows && !*rc; i++) {
        struct lk_tensor one = LK_TENSOR((unsigned char *)value->data + (size_t)i * step, value->dtype, row);
        *rc = lk_download(dev, bytes + (size_t)i * row_bytes, &one);
    }
    lk_sha256(bytes, row_bytes * (size_t)n_rows, hash);
    free(bytes);
}

static enum lk_code print_stage(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    enum lk_code rc = LK_OK;
    char hash[65];
    (void)context;
    sha256_of(dev, value, &rc, hash);
    printf("%s %s\n", name, hash);
    return rc;
}

/* What a child does: every stage's hash and the picture's on stdout. */
static int run(const struct job *job, enum lk_dtype dtype) {
    static const int out_layers[] = {1, 2, 3};
    struct lk_pipeline *p;
    struct lk_device *dev = test_cuda_open();
    struct lk_request request;
    struct lk_result result;
    struct lk_image picture = {0};
    char hash[65];
    assert_ok(lk_pipeline_open(&p, job->checkpoint, dtype));
    lk_request_init(&request, p);
    if (job->picture) {
        assert_ok(lk_image_read(&picture, job->picture, 0, 0));
        request.images = &picture;
        request.n_images = 1;
    }
    if (request.n_text_encoder_out_layers) memcpy(request.text_encoder_out_layers, out_layers, sizeof out_layers);
    request.prompt = "make the \"hair\" silver";
    if (request.true_cfg_scale != 0) request.negative_prompt = " ";
    request.width = job->width;
    request.height = job->height;
    request.size_level = job->size_level;
    if (!strncmp(lk_pipeline_family(p), "qwen", 4)) request.condition_area = request.vae_area = 64 * 64;
    request.num_inference_steps = 2;
    request.max_sequence_length = 96;
    dev->trace = print_stage;
    assert_ok(lk_pipeline_edit(p, dev, &request, &result));
    lk_sha256(result.image.pixels, (size_t)result.image.width * (size_t)result.image.height * 3, hash);
    printf("image %s\n", hash);
    lk_result_free(&result);
    lk_image_free(&picture);
    lk_device_free(dev);
    lk_pipeline_close(p);
    return 0;
}

/* The stages of a run under a seed, a line each. */
static char *stages_of(size_t i_job, enum lk_dtype dtype, int seed) {
    char which[16], type[16], seed_text[16], threads[16];
    int ends[2], status;
    snprintf(which, sizeof which, "%zu", i_job);
    snprintf(type, sizeof type, "%d", (int)dtype);
    snprintf(seed_text, sizeof seed_text, "%d", seed);
    snprintf(threads, sizeof threads, "%d", 1 + seed % 3);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("GPUSIM_SEED", seed_text, 1);
        setenv("GPUSIM_THREADS", threads, 1);
        setenv("GPUSIM_CHECKS", "none", 0); /* the goldens run with checks */
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "test_cuda_scheduling", which, type, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    char *text = calloc(1, MAX_STAGES);
    assert_non_null(text);
    size_t n = 0;
    for (ssize_t got; n + 1 < MAX_STAGES && (got = read(ends[0], text + n, MAX_STAGES - 1 - n)) > 0;) n += (size_t)got;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED) {
        printf("%s", text);
        exit(TEST_SKIPPED);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_non_null(strstr(text, "image "));
    return text;
}

/* Fails naming the first line that differs. */
static void assert_same_stages(const char *expected, const char *text, int seed) {
    size_t line = 0;
    for (size_t i = 0; expected[i] || text[i]; i++) {
        if (expected[i] != text[i])
            fail_msg("seed %d: first difference in stage %.*s", seed, (int)strcspn(expected + line, " \n"),
                     expected + line);
        if (expected[i] == '\n') line = i + 1;
    }
}

static void same_bits(void **state) {
    const struct job *job = *state;
    const int n_seeds = test_is_full() && !job->full ? MAX_SEEDS : 3;
    for (enum lk_dtype dtype = job->full ? LK_BF16 : LK_F32; dtype <= LK_BF16; dtype++) {
        char *first = stages_of((size_t)(job - jobs), dtype, 1);
        for (int seed = 2; seed <= n_seeds; seed++) {
            char *again = stages_of((size_t)(job - jobs), dtype, seed);
            assert_same_stages(first, again, seed);
            free(again);
        }
        free(first);
    }
}

int main(int argc, char **argv) {
    if (argc == 3) return run(&jobs[strtoul(argv[1], NULL, 10) % N_JOBS], (enum lk_dtype)atoi(argv[2]));
    struct CMUnitTest tests[N_JOBS];
    size_t n = 0;
    for (size_t i = 0; i < N_JOBS; i++) {
        if (jobs[i].full && !test_is_full()) continue;
        tests[n++] = (struct CMUnitTest){
            .name = jobs[i].name, .test_func = same_bits, .initial_state = (void *)(uintptr_t)&jobs[i]};
    }
    return _cmocka_run_group_tests("scheduling", tests, n, NULL, NULL);
}
