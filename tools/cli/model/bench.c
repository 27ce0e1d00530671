/* likeness bench: what an image takes on this machine, stage by stage, over several repetitions; and two such results
 * compared. */
#include <string.h>
#include <sys/resource.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "engine/ops.h"
#include "kernels/cuda/runtime/energy.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/model/bench.h"

#define PROBE_RUNS 3

struct run {
    struct bench_result result;
    struct lk_device *device;
    struct lk_pipeline *pipeline;
    struct lk_job job;
    struct lk_image images[LK_MAX_REFERENCES];
    int repetition; /* under way; -1: the first image, which is not counted */
    struct bench_stage *stage;
    double since;
};

static struct bench_stage *stage_named(struct bench_result *r, const char *name) {
    int i = 0;
    while (i < r->n_stages && strcmp(r->stages[i].name, name)) i++;
    if (i == BENCH_MAX_STAGES) return NULL;
    if (i == r->n_stages) snprintf(r->stages[r->n_stages++].name, sizeof r->stages->name, "%s", name);
    return &r->stages[i];
}

/* The stage under way has ended; `next` begins, NULL: none. */
static void turn(struct run *b, const char *next) {
    double now = lk_log_now();
    if (b->stage && b->repetition >= 0) b->stage->seconds[b->repetition] += now - b->since;
    b->stage = next ? stage_named(&b->result, next) : NULL;
    b->since = now;
}

static enum lk_code progress(void *context, const char *stage, int step, int n_steps) {
    struct run *b = context;
    LK_TRY(cli_signals_check());
    if (!b->stage || strcmp(b->stage->name, stage)) turn(b, stage);
    lk_log_progress(stage, step, n_steps, lk_log_now());
    return LK_OK;
}

static void fill(void *bytes, enum lk_dtype dtype, int64_t n) {
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        float value = (float)(int32_t)state * 4e-10f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (dtype == LK_BF16)
            ((uint16_t *)bytes)[i] = (uint16_t)(bits >> 16);
        else
            ((float *)bytes)[i] = value;
    }
}

/* The best of some products of square matrices, of numbers that are no zeros: with zeros a GPU keeps a higher clock. */
static enum lk_code time_products(struct lk_device *dev, enum lk_dtype dtype, int64_t side, double *seconds) {
    struct lk_tensor x, w, y, row;
    LK_TRY(LK_NEW(&dev->arena, &x, dtype, side, side));
    LK_TRY(LK_NEW(&dev->arena, &w, dtype, side, side));
    LK_TRY(LK_NEW(&dev->arena, &y, dtype, side, side));
    row = lk_tensor_rows(&y, side - 1, 1);
    void *host = lk_malloc(lk_tensor_bytes(&x));
    if (!host) return lk_fail(LK_E_NOMEM, "bench: no memory to measure the device's peak");
    fill(host, dtype, side * side);
    enum lk_code rc = lk_upload(dev, &x, host);
    if (!rc) rc = lk_upload(dev, &w, host);
    for (int i = -1; i < PROBE_RUNS && !rc; i++) {
        double began = lk_log_now();
        rc = lk_linear(dev, &(struct lk_linear){.y = &y, .x = &x, .w = &w});
        if (!rc) rc = lk_download(dev, host, &row); /* waits */
        double took = lk_log_now() - began;
        if (!i || (i > 0 && took < *seconds)) *seconds = took;
    }
    lk_free(host);
    return rc;
}

static enum lk_code measure_peak(struct run *b) {
    struct lk_device *dev;
    LK_TRY(cli_device_open(&b->job.run, &dev));
    int64_t side = dev->kind == LK_DEVICE_CUDA ? 8192 : 2048;
    double seconds = 0;
    enum lk_code rc = lk_device_prepare(dev, (size_t)(side * side) * 4 * 4 + ((size_t)64 << 20));
    if (!rc) rc = time_products(dev, cli_dtype(&b->job.run), side, &seconds);
    lk_device_free(dev);
    if (!rc) b->result.peak_tflops = 2e-12 * (double)side * (double)side * (double)side / seconds;
    return rc;
}

/* A picture that no encoder finds empty. */
static enum lk_code make_image(struct lk_image *image, int width, int height) {
    LK_TRY(lk_image_new(image, width, height, 3));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                image->pixels[((size_t)y * (size_t)width + (size_t)x) * 3 + (size_t)c] = (uint8_t)(255 *
                                                                                                   (c == 2 ? x + y
                                                                                                    : c    ? y
                                                                                                           : x) /
                                                                                                   (width + height));
    return LK_OK;
}

static enum lk_code prepare(struct run *b, const struct cli_arguments *a) {
    struct lk_request *q = &b->job.request;
    struct lk_pipeline_options options = cli_pipeline_options(&b->job.run);
    double began = lk_log_now();
    LK_TRY(lk_pipeline_open_with(&b->pipeline, a->model, &options));
    b->result.load_seconds = lk_log_now() - began;
    LK_TRY(lk_job_complete(&b->job, b->pipeline, NULL));
    if (!q->width) q->width = 1024;
    if (!q->height) q->height = 1024;
    if (!q->prompt) q->prompt = "Make the jacket red";
    q->images = b->images;
    q->n_images = cli_references(a, b->pipeline);
    for (int i = 0; i < q->n_images; i++) LK_TRY(make_image(&b->images[i], q->width, q->height));
    q->progress = progress;
    q->progress_context = b;
    struct lk_plan *plan = &b->result.plan;
    LK_TRY(cli_job_plan(b->pipeline, b->device, &b->job, plan));
    b->result.arena_bytes = 0;
    for (int i = 0; i < plan->n_stages; i++) {
        struct bench_stage *s = stage_named(&b->result, plan->stages[i].name);
        if (!s) return lk_fail(LK_E_INTERNAL, "bench: more than %d stages", BENCH_MAX_STAGES);
        s->tflop = (double)plan->stages[i].flops * plan->stages[i].calls * 1e-12;
        s->planned_bytes = plan->stages[i].peak_bytes;
    }
    return LK_OK;
}

static enum lk_code one_image(struct run *b) {
    struct lk_result result = {0};
    double began = lk_log_now(), joules[2];
    bool counted = lk_cuda_joules(b->device, &joules[0]);
    b->stage = NULL;
    enum lk_code rc = lk_pipeline_edit(b->pipeline, b->device, &b->job.request, &result);
    turn(b, NULL);
    double took = lk_log_now() - began;
    counted = counted && lk_cuda_joules(b->device, &joules[1]);
    if (b->repetition < 0) {
        b->result.first_seconds = took;
        b->result.has_joules = counted;
    } else {
        b->result.image[b->repetition] = took;
        b->result.has_joules &= counted;
        b->result.joules[b->repetition] = counted ? joules[1] - joules[0] : 0;
    }
    if (!rc) b->result.arena_bytes = result.peak_bytes;
    lk_result_free(&result);
    return rc;
}

static enum lk_code run(struct run *b, const struct cli_arguments *a) {
    struct bench_result *r = &b->result;
    LK_TRY(measure_peak(b));
    LK_TRY(cli_device_open(&b->job.run, &b->device));
    LK_TRY(prepare(b, a));
    cli_signals_install();
    for (b->repetition = -1; b->repetition < r->n_repetitions; b->repetition++) LK_TRY(one_image(b));
    lk_log_progress_end();
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    r->rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    snprintf(r->device, sizeof r->device, "%s", b->device->name);
    snprintf(r->model, sizeof r->model, "%s", lk_pipeline_family(b->pipeline));
    r->on_gpu = b->device->kind == LK_DEVICE_CUDA;
    r->dtype = b->job.run.dtype;
    r->quantize = b->job.run.quantize;
    return bench_print(r, a->bench.output_format);
}

enum lk_code cli_bench_compare(const struct cli_arguments *a) { return bench_compare(a->more[0], a->more[1]); }

enum lk_code cli_bench(const struct cli_arguments *a) {
    struct run *b = lk_calloc(1, sizeof *b);
    if (!b) return lk_fail(LK_E_NOMEM, "bench: out of memory");
    b->job = a->job;
    b->result.n_repetitions = (int)a->bench.repetitions;
    enum lk_code rc = run(b, a);
    lk_log_progress_end();
    for (int i = 0; i < LK_MAX_REFERENCES; i++) lk_image_free(&b->images[i]);
    lk_pipeline_close(b->pipeline);
    lk_device_free(b->device);
    lk_free(b);
    return rc;
}
