/* A queue of edits against the same edits one after the other, each in a pipeline of its own, when nothing of the
 * checkpoint is in memory at the start: before every run the page cache is told to forget the checkpoint's files
 * (posix_fadvise). That is what a checkpoint larger than memory costs every run, in part at least; under a memory limit
 * (a cgroup) steps read it again and again too.
 *
 *     bench_queue FOLDER -n 4 -j 4 -W 256 -s 2
 *
 * -g: the scale of true guidance, 1 for one forward a step, as distilled models are run. -i 0: pictures from text. */
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <unistd.h>

#include "bench/bench.h"
#include "engine/base/alloc.h"
#include "models/pipeline.h"

#define MAX_JOBS 16

struct options {
    const char *folder, *format;
    int n_jobs, jobs_per_visit, side, steps, threads, n_images;
    double true_cfg_scale; /* 0: the model's own */
};

static int forget_file(const char *path, const struct stat *s, int kind, struct FTW *at) {
    (void)s, (void)at;
    int fd = kind == FTW_F ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fdatasync(fd); /* pages that were not written yet cannot be dropped */
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    return 0;
}

struct bench {
    const struct options *o;
    struct lk_device *dev;
    struct lk_image picture;
    char prompts[MAX_JOBS][48];
    struct lk_request requests[MAX_JOBS];
    struct lk_queued jobs[MAX_JOBS];
};

static void fill(struct bench *b, const struct lk_pipeline *pipeline) {
    for (int i = 0; i < b->o->n_jobs; i++) {
        struct lk_request *r = &b->requests[i];
        lk_request_init(r, pipeline);
        snprintf(b->prompts[i], sizeof b->prompts[i], "a scarf of colour number %d", i);
        r->prompt = b->prompts[i];
        r->images = &b->picture;
        r->n_images = b->o->n_images;
        r->seed = (uint64_t)i;
        r->num_inference_steps = b->o->steps;
        if (r->true_cfg_scale && b->o->true_cfg_scale) r->true_cfg_scale = b->o->true_cfg_scale;
        if (r->size_level) r->size_level = b->o->side;
        if (!r->size_level) r->width = r->height = b->o->side;
        if (!strncmp(lk_pipeline_family(pipeline), "qwen", 4)) /* else references have a megapixel */
            r->condition_area = r->vae_area = b->o->side * b->o->side;
        /* A made checkpoint has fewer layers than the released one. */
        for (int k = 0; k < r->n_text_encoder_out_layers; k++) r->text_encoder_out_layers[k] = k + 1;
        b->jobs[i].request = r;
    }
}

/* Jobs [first, first + n) from a cold start, in nanoseconds. */
static enum lk_code run(struct bench *b, int first, int n, double *ns) {
    struct lk_pipeline *pipeline;
    struct lk_queued *jobs[MAX_JOBS];
    nftw(b->o->folder, forget_file, 16, 0);
    double start = bench_now_ns();
    LK_TRY(lk_pipeline_open(&pipeline, b->o->folder, LK_BF16));
    fill(b, pipeline);
    for (int i = 0; i < n; i++) jobs[i] = &b->jobs[first + i];
    struct lk_queue queue = {
        .jobs = jobs, .n_jobs = n, .jobs_per_visit = n < b->o->jobs_per_visit ? n : b->o->jobs_per_visit};
    enum lk_code rc = lk_pipeline_edit_queue(pipeline, b->dev, &queue);
    if (rc == LK_E_PARTIAL) rc = lk_error_set(&jobs[0]->error);
    for (int i = 0; i < n; i++) lk_result_free(&jobs[i]->result);
    lk_pipeline_close(pipeline);
    *ns += bench_now_ns() - start;
    return rc;
}

static enum lk_code compare(struct bench *b) {
    const struct options *o = b->o;
    double single_ns = 0, queue_ns = 0;
    LK_TRY(lk_image_new(&b->picture, o->side, o->side, 3));
    for (int i = 0; i < o->side * o->side * 3; i++) b->picture.pixels[i] = (uint8_t)(i * 7 / 5);
    enum lk_code rc = LK_OK;
    for (int i = 0; !rc && i < o->n_jobs; i++) rc = run(b, i, 1, &single_ns);
    if (!rc) rc = run(b, 0, o->n_jobs, &queue_ns);
    lk_image_free(&b->picture);
    if (rc) return rc;
    struct bench_table table = {.format = o->format};
    bench_text(&table, "device", "%s", b->dev->name);
    bench_text(&table, "jobs", "%d %s, %dx%d, %d steps", o->n_jobs, o->n_images ? "edits" : "from text", o->side,
               o->side, o->steps);
    bench_number(&table, "jobs_per_visit", 0, o->jobs_per_visit);
    bench_number(&table, "singles_s", 2, single_ns * 1e-9);
    bench_number(&table, "queue_s", 2, queue_ns * 1e-9);
    bench_number(&table, "ratio", 2, single_ns / queue_ns);
    bench_end_row(&table);
    bench_end(&table);
    return LK_OK;
}

static bool parse(struct options *o, int argc, char **argv) {
    for (int c; (c = getopt(argc, argv, "o:n:j:W:s:t:g:i:")) != -1;) {
        int *number = c == 'n'   ? &o->n_jobs
                      : c == 'j' ? &o->jobs_per_visit
                      : c == 'W' ? &o->side
                      : c == 's' ? &o->steps
                      : c == 't' ? &o->threads
                      : c == 'i' ? &o->n_images
                                 : NULL;
        if (number)
            *number = atoi(optarg);
        else if (c == 'g')
            o->true_cfg_scale = atof(optarg);
        else if (c == 'o')
            o->format = optarg;
        else
            return false;
    }
    if (optind + 1 != argc) return false;
    o->folder = argv[optind];
    return bench_format_known(o->format) && o->n_jobs >= 1 && o->n_jobs <= MAX_JOBS && o->side >= 64 && o->steps >= 1 &&
           o->threads >= 1 && o->true_cfg_scale >= 0 && o->n_images >= 0 && o->n_images <= 1;
}

int main(int argc, char **argv) {
    struct options o = {
        .format = "md", .n_jobs = 4, .jobs_per_visit = 4, .side = 256, .steps = 2, .threads = 2, .n_images = 1};
    if (!parse(&o, argc, argv)) {
        fputs("usage: bench_queue FOLDER [-o md|csv|json] [-n EDITS] [-j JOBS_PER_VISIT] [-W SIDE] [-s STEPS] [-t "
              "THREADS] [-g TRUE_CFG_SCALE] [-i 0|1]\n",
              stderr);
        return 2;
    }
    struct bench *b = lk_calloc(1, sizeof *b);
    enum lk_code rc = b ? lk_device_cpu_create(o.threads, &b->dev) : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) {
        b->o = &o;
        rc = compare(b);
        lk_device_free(b->dev);
    }
    lk_free(b);
    if (rc) fprintf(stderr, "bench_queue: %s\n", lk_error_text());
    return rc ? lk_exit_code(rc) : 0;
}
