/* Queues of tiny jobs on any device, compared with the jobs run alone. */
#pragma once

#include "tests/common/tiny_edit.h"

#define TINY_QUEUE 4

/* Jobs of one family that share prompts and pictures crosswise and differ in seed, steps and size; an edit has a step
 * cache. */
struct tiny_queue {
    struct tiny_job tiny;
    struct lk_image other; /* a second picture */
    struct lk_request requests[TINY_QUEUE];
    struct lk_queued jobs[TINY_QUEUE];
    struct lk_kept *cache; /* from one tiny_queue_same to the next, if cache_bytes is not 0 */
    size_t cache_bytes;
    char alone[TINY_QUEUE][65]; /* digest of each picture when its job runs alone */
};

void tiny_queue_open(struct tiny_queue *q, struct lk_device *dev, const struct tiny_edit *edit, enum lk_dtype dtype);
/* The same with other weights; only jobs 0 to n_alone - 1 are run alone, and only these can be compared. */
void tiny_queue_open_with(struct tiny_queue *q, struct lk_device *dev, const struct tiny_edit *edit,
                          const struct lk_pipeline_options *options, int n_alone);
/* Step1X-Edit's: job 1 as usual, the others one edit with accel region, of some of its tokens, of all and of none. */
void tiny_queue_open_region(struct tiny_queue *q, struct lk_device *dev);
void tiny_queue_close(struct tiny_queue *q);

/* Runs jobs order[0..n) together, so many in a visit, and compares each picture with that of the job alone. */
void tiny_queue_same(struct tiny_queue *q, struct lk_device *dev, const int *order, int n, int jobs_per_visit);
