#include "models/ranks.h"

#include <pthread.h>

#include "engine/base/alloc.h"
#include "models/common/walk.h"

struct rank {
    pthread_t thread;
    struct lk_pipeline *pipeline;
    struct lk_device *dev;
    const struct lk_queue *all;
    struct lk_queue own;
    struct lk_error error;
    bool started;
};

static void done(void *context, struct lk_queued *job) {
    const struct lk_queue *all = context;
    pthread_mutex_lock(&lk_walk_telling);
    all->done(all->context, job);
    pthread_mutex_unlock(&lk_walk_telling);
}

/* As for a job that is not this rank's: the others want its share of the weights. */
static enum lk_code only_place(const struct rank *r, const struct lk_queued *job) {
    struct lk_request request = *job->request;
    request.progress = NULL;
    struct lk_queued *copy = lk_calloc(1, sizeof *copy);
    if (!copy) return lk_fail(LK_E_NOMEM, "ranks: out of memory");
    copy->request = &request;
    enum lk_code rc = lk_pipeline_edit_queue(
        r->pipeline, r->dev, &(struct lk_queue){.jobs = &copy, .n_jobs = 1, .jobs_per_visit = 1, .only_placed = true});
    lk_result_free(&copy->result);
    lk_free(copy);
    return rc == LK_E_PARTIAL ? LK_OK : rc;
}

static void *run(void *context) {
    struct rank *r = context;
    enum lk_code rc = r->own.n_jobs ? lk_pipeline_edit_queue(r->pipeline, r->dev, &r->own) : LK_OK;
    const bool partial = rc == LK_E_PARTIAL;
    if (partial) rc = LK_OK;
    for (int i = 0; i < r->all->n_jobs && !rc && !r->dev->memory->joined(r->dev); i++)
        rc = only_place(r, r->all->jobs[i]);
    rc = r->dev->memory->leave(r->dev, rc);
    lk_error_get(&r->error, rc ? rc : partial ? lk_fail(LK_E_PARTIAL, "a job failed") : LK_OK);
    return NULL;
}

/* Every n-th job from k on to rank k. */
static void deal(struct rank *ranks, int n, const struct lk_queue *queue, struct lk_queued **jobs) {
    for (int k = 0, at = 0; k < n; k++) {
        ranks[k].own = *queue;
        ranks[k].own.jobs = jobs + at;
        ranks[k].own.n_jobs = 0;
        ranks[k].own.done = queue->done ? done : NULL;
        ranks[k].own.context = (void *)(uintptr_t)queue;
        ranks[k].own.cache = NULL;
        ranks[k].own.jobs_per_visit = 1; /* several visit in an order that depends on how many there are */
        for (int i = k; i < queue->n_jobs; i += n, at++) jobs[at] = queue->jobs[i], ranks[k].own.n_jobs++;
    }
}

static enum lk_code run_all(struct rank *ranks, int n) {
    enum lk_code rc = LK_OK;
    for (int k = 0; k < n; k++) {
        const int failed = pthread_create(&ranks[k].thread, NULL, run, &ranks[k]);
        ranks[k].started = !failed;
        if (!failed) continue;
        rc = lk_fail_errno(failed, "no thread for a rank");
        rc = ranks[k].dev->memory->leave(ranks[k].dev, rc);
        lk_error_get(&ranks[k].error, rc);
    }
    for (int k = 0; k < n; k++)
        if (ranks[k].started) pthread_join(ranks[k].thread, NULL);
    for (int k = 0; k < n; k++) /* when one failed, all have its error */
        if (ranks[k].error.code && (!rc || rc == LK_E_PARTIAL)) rc = lk_error_set(&ranks[k].error);
    return rc;
}

enum lk_code lk_ranks_check(const struct lk_request *request) {
    if (!request->thinking_mode && !request->reflection_mode) return LK_OK;
    return lk_fail(LK_E_USAGE,
                   "thinking and reflection take rounds of their own for each picture, which GPUs that share "
                   "weights cannot go through together; leave --weights out");
}

enum lk_code lk_pipeline_edit_ranks(struct lk_pipeline *pipeline, struct lk_device *const *devs, int n,
                                    const struct lk_queue *queue) {
    if (queue->embeds) return lk_fail(LK_E_INTERNAL, "ranks: embeddings are made by one device");
    for (int i = 0; i < queue->n_jobs; i++) {
        if (queue->jobs[i]->rng) return lk_fail(LK_E_INTERNAL, "ranks: noise is drawn by seeds");
        LK_TRY(lk_ranks_check(queue->jobs[i]->request));
    }
    struct rank *ranks = lk_calloc((size_t)n, sizeof *ranks);
    struct lk_queued **jobs = lk_calloc((size_t)queue->n_jobs + 1, sizeof *jobs);
    enum lk_code rc = ranks && jobs ? LK_OK : lk_fail(LK_E_NOMEM, "ranks: out of memory");
    if (!rc) {
        for (int k = 0; k < n; k++) ranks[k] = (struct rank){.pipeline = pipeline, .dev = devs[k], .all = queue};
        deal(ranks, n, queue, jobs);
        rc = run_all(ranks, n);
    }
    lk_free(ranks);
    lk_free(jobs);
    return rc;
}
