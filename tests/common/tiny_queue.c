#include "tests/common/tiny_queue.h"

#include "models/common/kept.h"
#include "tests/common/test.h"
#include "engine/base/digest.h"

static void digest(const struct lk_image *image, char out[65]) {
    lk_sha256(image->pixels, (size_t)image->width * (size_t)image->height * 3, out);
}

/* What jobs [0, n) give by themselves. */
static void run_alone(struct tiny_queue *q, struct lk_device *dev, int n) {
    for (int i = 0; i < n; i++) {
        struct lk_result result;
        assert_ok(lk_pipeline_edit(q->tiny.pipeline, dev, &q->requests[i], &result));
        digest(&result.image, q->alone[i]);
        lk_result_free(&result);
        for (int j = 0; j < i; j++) assert_string_not_equal(q->alone[i], q->alone[j]);
    }
}

void tiny_queue_open(struct tiny_queue *q, struct lk_device *dev, const struct tiny_edit *edit, enum lk_dtype dtype) {
    tiny_queue_open_with(q, dev, edit, &(struct lk_pipeline_options){.compute = dtype}, TINY_QUEUE);
}

void tiny_queue_open_with(struct tiny_queue *q, struct lk_device *dev, const struct tiny_edit *edit,
                          const struct lk_pipeline_options *options, int n_alone) {
    uint64_t random = 5;
    memset(q, 0, sizeof *q);
    tiny_job_open_with(&q->tiny, edit, edit->checkpoint, options, 2);
    const struct lk_image *image = &q->tiny.image;
    assert_ok(lk_image_new(&q->other, image->width, image->height, 3));
    for (int i = 0; i < image->width * image->height * 3; i++) q->other.pixels[i] = (uint8_t)test_random(&random);
    for (int i = 0; i < TINY_QUEUE; i++) {
        struct lk_request *r = &q->requests[i];
        *r = q->tiny.request;
        r->seed += (uint64_t)i;
        if (i & 1) r->prompt = "a wet scarf";
        if (i >= 2 && r->n_images) r->images = &q->other;
    }
    q->requests[1].num_inference_steps = 3;
    if (q->requests[1].n_images) /* its second step leaves blocks out, whoever goes with it */
        q->requests[1].accel = strncmp(edit->name, "flux2", 5) ? "fbcache,steps=0:2" : "dbcache,f=1,steps=0:2";
    int *const height = &q->requests[3].height;
    if (*height) *height = lk_pipeline_takes_images(q->tiny.pipeline) ? 32 : 2 * *height;
    for (int i = 0; i < TINY_QUEUE; i++) q->jobs[i].request = &q->requests[i];
    run_alone(q, dev, n_alone);
}

void tiny_queue_open_region(struct tiny_queue *q, struct lk_device *dev) {
    static const double thresholds[TINY_QUEUE] = {0.2, 0, 1, -1};
    tiny_queue_open_with(q, dev, &tiny_edits[2], &(struct lk_pipeline_options){.compute = LK_BF16}, 0);
    for (int i = 0; i < TINY_QUEUE; i++) {
        struct lk_request *r = &q->requests[i];
        r->size_level = 96;
        if (i == 1) continue;
        *r = q->requests[0];
        r->num_inference_steps = 28;
        r->accel = "region";
        r->region_threshold = thresholds[i];
    }
    run_alone(q, dev, TINY_QUEUE);
}

void tiny_queue_close(struct tiny_queue *q) {
    lk_kept_free(&q->cache);
    lk_image_free(&q->other);
    tiny_job_close(&q->tiny);
}

static void count(void *context, struct lk_queued *job) {
    assert_true(job->ended);
    ++*(int *)context;
}

void tiny_queue_same(struct tiny_queue *q, struct lk_device *dev, const int *order, int n, int jobs_per_visit) {
    struct lk_queued *jobs[TINY_QUEUE];
    int n_done = 0;
    for (int i = 0; i < n; i++) jobs[i] = &q->jobs[order[i]];
    struct lk_queue queue = {
        .jobs = jobs, .n_jobs = n, .jobs_per_visit = jobs_per_visit, .done = count, .context = &n_done};
    if (q->cache_bytes) queue.cache = &q->cache;
    queue.cache_bytes = q->cache_bytes;
    assert_ok(lk_pipeline_edit_queue(q->tiny.pipeline, dev, &queue));
    assert_int_equal(n_done, n);
    for (int i = 0; i < n; i++) {
        char got[65];
        assert_int_equal(jobs[i]->error.code, LK_OK);
        assert_int_equal(jobs[i]->result.n_steps, jobs[i]->request->num_inference_steps);
        digest(&jobs[i]->result.image, got);
        if (strcmp(got, q->alone[order[i]]))
            fail_msg("job %d, place %d of %d, %d in a visit: another picture than alone", order[i], i, n,
                     jobs_per_visit);
        lk_result_free(&jobs[i]->result);
    }
}
