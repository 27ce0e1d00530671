/* A job's picture is the same alone and in a queue on the cuda device as well. */
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/tiny_queue.h"

static enum lk_code look(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    (void)context, (void)dev, (void)name, (void)value;
    return LK_OK;
}

/* Memory for one job at a time only: more in a visit are tried, and fewer taken. */
static void fewer_in_a_visit(struct tiny_queue *q, struct lk_device **dev, const int *order) {
    struct lk_plan plan;
    assert_ok(lk_pipeline_plan(q->tiny.pipeline, *dev, &q->requests[0], &plan));
    lk_device_free(*dev);
    assert_ok(lk_device_cuda_create(0, dev));
    (*dev)->budget.bytes = plan.least_bytes;
    q->cache_bytes = 0;
    tiny_queue_same(q, *dev, order, 3, 4);
}

static void same_picture_in_a_queue(void **state) {
    static const int order[] = {3, 0, 1};
    (void)state;
    for (int i = 0; i < TINY_FAMILIES + 2; i++) {
        const struct tiny_edit *edit = i < TINY_FAMILIES ? &tiny_edits[i] : &tiny_pictures[i - TINY_FAMILIES + 1];
        struct lk_device *dev;
        struct tiny_queue q;
        assert_ok(lk_device_cuda_create(0, &dev));
        tiny_queue_open(&q, dev, edit, LK_BF16);
        q.cache_bytes = 1 << 30; /* the second queue finds what the first has left */
        tiny_queue_same(&q, dev, order, 2, 2);
        tiny_queue_same(&q, dev, order, 3, 2);
        if (i != 1) {
            dev->trace = look; /* all rows of the last block */
            tiny_queue_same(&q, dev, order, 1, 1);
            dev->trace = NULL;
        }
        if (!i) fewer_in_a_visit(&q, &dev, order);
        tiny_queue_close(&q);
        lk_device_free(dev);
    }
}

/* Passes of the edited tokens in a queue whose weights travel, against each job with all weights resident.
 * For the full run: 28 steps of four jobs. */
static void edited_tokens(void **state) {
    static const int order[] = {3, 0, 1};
    struct lk_device *dev;
    struct tiny_queue q;
    (void)state;
    if (!test_is_full()) skip();
    assert_ok(lk_device_cuda_create(0, &dev));
    tiny_queue_open_region(&q, dev);
    lk_device_free(dev);
    for (int k = 0; k < 3; k++) {
        assert_ok(lk_device_cuda_create(0, &dev));
        dev->budget = (struct lk_budget){.resident_bytes = 1 + 20000 * (uint64_t)k, .host_bytes = k % 2, .readers = 2};
        tiny_queue_same(&q, dev, order, 3, 1 + k);
        lk_device_free(dev);
    }
    tiny_queue_close(&q);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_picture_in_a_queue), cmocka_unit_test(edited_tokens)};
    lk_device_free(test_cuda_open());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
