/* What a run of experiment 1 takes over the sum of its steps on an A100 of 80 GB: the queues of `study run` with the
 * released models' shapes, as the cuda device really issues them, on a driver that keeps clocks (clock_driver.h). A
 * step is whatever kernels do: encoding, denoising, decoding. Over it come weights from the disk and over the bus,
 * launches, waits, and what the host does. Modelled: rates of the GPU, a call of the driver, the disk. Measured on one
 * core, twice as much taken: the host's part. */
#include <string.h>

#include "engine/base/log.h"
#include "eval/study/prompts.h"
#include "models/common/kept.h"
#include "models/family.h"
#include "models/flux2/flux2.h"
#include "models/qwen_edit/qwen_edit.h"
#include "models/step1x/step1x.h"
#include "tests/common/clock_driver.h"
#include "tests/common/test.h"

#define N_JOBS    1680 /* of a model */
#define PIECE     16   /* of a GPU, as `study run` takes them */
#define VISIT     4
#define N_PIECES  5 /* that are run at most; all later ones are as the last */
#define SIDE      1024

#define PIECE_S   0.1 /* taking a piece from the journal */
#define PREPARE_S 0.3 /* of a job: reading and hashing its source (0.02), its plan, resizing, noise, tables (0.1) */
#define WRITE_S   0.4 /* of a job: PNG of noise and its digest (0.16), journal (0.014): another thread */

static const struct {
    const char *model, *tokenizer;
} models[] = {
    {"flux2-dev", "golden/data/flux2/rich/checkpoint/tokenizer/tokenizer.json"},
    {"step1x-v1p2", "golden/data/step1x/plain/checkpoint/processor/tokenizer.json"},
    {"qwen-edit-2511", "golden/data/qwen_edit/edit2511/checkpoint/processor/tokenizer.json"},
};

/* A pipeline without weights is told that it has them. */
static void open_model(int i, const struct lk_device *dev, struct lk_pipeline **out) {
    struct lk_tokenizer *tokenizer;
    struct lk_request request;
    struct lk_plan plan;
    assert_ok(lk_pipeline_open_configs(out, models[i].model, LK_BF16));
    lk_request_init(&request, *out);
    request.images = &(struct lk_image){.width = SIDE, .height = SIDE, .channels = 3};
    request.n_images = 1;
    assert_ok(lk_pipeline_plan(*out, dev, &request, &plan)); /* binds FLUX.2's text encoder */
    assert_ok(lk_tokenizer_open(&tokenizer, models[i].tokenizer));
    const int32_t picture = lk_tokenizer_id(tokenizer, "<|image_pad|>");
    (*out)->has_weights = true;
    if (i == 0) {
        ((struct lk_flux2 *)(*out)->model)->tokenizer = tokenizer;
    } else if (i == 1) {
        struct lk_step1x *m = (*out)->model;
        m->tokenizer = tokenizer;
        m->text_config.image_token_id = m->text.config.image_token_id = picture;
    } else {
        struct lk_qwen_edit *m = (*out)->model;
        m->tokenizer = tokenizer;
        m->text.config.image_token_id = picture;
    }
}

/* The writer's thread. */
static double written_at;

static void done(void *context, struct lk_queued *job) {
    (void)context;
    if (job->error.code) fail_msg("%s", job->error.text);
    if (written_at < clock_driver.host) written_at = clock_driver.host;
    written_at += WRITE_S;
    lk_result_free(&job->result);
}

struct run {
    struct lk_pipeline *pipeline;
    struct lk_device *dev;
    struct lk_image *sources;
    const struct lk_prompts *prompts;
    struct lk_kept *cache;
};

static void run_piece(struct run *run, int first) {
    struct lk_request requests[PIECE];
    struct lk_queued queued[PIECE] = {0}, *jobs[PIECE];
    clock_driver.host += PIECE_S + PIECE * PREPARE_S;
    for (int k = 0; k < PIECE; k++) {
        lk_request_init(&requests[k], run->pipeline);
        requests[k].images = &run->sources[(first + k) / LK_N_EDIT_PROMPTS];
        requests[k].n_images = 1;
        requests[k].prompt = run->prompts->edit[(first + k) % LK_N_EDIT_PROMPTS].text;
        queued[k].request = &requests[k];
        jobs[k] = &queued[k];
    }
    assert_ok(lk_pipeline_edit_queue(run->pipeline, run->dev,
                                     &(struct lk_queue){.jobs = jobs,
                                                        .n_jobs = PIECE,
                                                        .jobs_per_visit = VISIT,
                                                        .done = done,
                                                        .cache = &run->cache,
                                                        .cache_bytes = (size_t)1 << 30}));
}

static void a_study_takes_what_its_steps_take(void **state) {
    const bool full = getenv("LIKENESS_TEST_FULL") != NULL; /* FLUX.2's first pieces encode the prompts */
    const int n_models = full ? 3 : 2, n_pieces = full ? N_PIECES : 2;
    struct lk_prompts prompts;
    struct lk_image sources[N_PIECES * PIECE / LK_N_EDIT_PROMPTS + 1];
    uint64_t random = 1;
    (void)state;
    assert_ok(lk_prompts_load(&prompts));
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        assert_ok(lk_image_new(&sources[i], SIDE, SIDE, 3));
        for (int k = 0; k < SIDE * SIDE * 3; k++) sources[i].pixels[k] = (uint8_t)test_random(&random);
    }
    for (int i = 0; i < n_models; i++) {
        struct run run = {.sources = sources, .prompts = &prompts};
        double wall = 0, steps = 0;
        assert_ok(lk_device_cuda_describe("sm_80", &run.dev));
        clock_driver_open(run.dev);
        open_model(i, run.dev, &run.pipeline);
        clock_driver = (struct clock_driver){0};
        written_at = 0;
        for (int p = 0; p < n_pieces; p++) {
            const double began = clock_driver.host, kernels = clock_driver.kernels_s, here = lk_log_now();
            const int n = p + 1 < n_pieces ? 1 : N_JOBS / PIECE - p;
            run_piece(&run, p * PIECE);
            const double took = clock_driver.host - began, ran = clock_driver.kernels_s - kernels;
            wall += n * took, steps += n * ran;
            printf("%-15s piece %d: %.1f s, its steps %.1f s, over them %.2f %%; the host's part %.2f s here\n",
                   models[i].model, p, took, ran, 100 * (1 - ran / took), lk_log_now() - here);
        }
        if (written_at > clock_driver.host) wall += written_at - clock_driver.host;
        printf("%-15s %d pictures: %.2f h, over the steps %.3f %%\n", models[i].model, N_JOBS, wall / 3600,
               100 * (1 - steps / wall));
        if (steps < 0.98 * wall || steps > wall) fail_msg("expected at most 2 %%");
        lk_kept_free(&run.cache);
        lk_pipeline_close(run.pipeline);
        clock_driver_close(run.dev);
        lk_device_free(run.dev);
    }
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) lk_image_free(&sources[i]);
    lk_prompts_free(&prompts);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_study_takes_what_its_steps_take)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
