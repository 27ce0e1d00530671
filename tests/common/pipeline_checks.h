/* Checks that hold for the pipeline of every family. */
#pragma once

#include "models/pipeline.h"

/* Fills all of a request for a small edit. */
typedef void test_fill_request(struct lk_request *request, const struct lk_pipeline *p);

/* M1: allocations of an edit made to fail in turn (all of them with stride 1, otherwise the first 30, the last 60 and
 * every stride-th between) are LK_E_NOMEM or do not show in the picture; nothing stays live, and the next edit gives
 * the same picture. */
void test_allocations_of_edit(const char *checkpoint, test_fill_request *fill, int stride);

/* The same of opening the checkpoint: the first 100 and a spread over the rest, since parsers have tests of their own.
 */
void test_allocations_of_open(const char *checkpoint);

/* Digests of an edit: of up to two traced tensors (NULL: none), and of the pixels. The final image alone could hide a
 * difference that rounding to 8 bits removed. Fails the running test when a name is not met. */
struct test_digests {
    char traced[2][65], pixels[65];
};
void test_edit_digests(struct lk_pipeline *p, struct lk_device *dev, const struct lk_request *request,
                       const char *const names[2], struct test_digests *out);
void test_same_digests(const struct test_digests *a, const struct test_digests *b);

/* Of the picture alone. */
void test_picture_digest(const struct lk_result *result, char sha256[65]);
/* n jobs in one queue, so many or all at a visit, in two orders, on 1 and 3 threads and in slices: each has the picture
 * that it has alone. */
void test_company_changes_nothing(struct lk_pipeline *p, struct lk_request *requests, char (*alone)[65], int n,
                                  int jobs_per_visit);

/* Plans and runs the request: the arena's peak is to the byte what the plan said. lk_result_free(result). */
void test_plan_is_the_peak(struct lk_pipeline *p, struct lk_device *dev, const struct lk_request *request,
                           struct lk_plan *plan, struct lk_result *result);

/* A copy of `good` with `change` made to it, named `bad`, is refused, without a picture. */
#define TEST_REFUSED(change, code, part)                                                                               \
    do {                                                                                                               \
        struct lk_request bad = good;                                                                                  \
        change;                                                                                                        \
        assert_fails(lk_pipeline_edit(p, dev, &bad, &result), code, part);                                             \
        assert_null(result.image.pixels);                                                                              \
    } while (0)

/* This program, started again with the argument "digest", prints these bytes. */
void test_same_in_another_process(const void *here, size_t n_bytes);
