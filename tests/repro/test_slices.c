/* A block of the transformer that works on its rows in slices gives the bits of one that takes all at once, and needs
 * less memory; where the budget is below what all at once takes, slices and the VAE's bands are chosen unasked. */
#include "tests/common/test.h"

#include "tests/common/tiny_queue.h"

static uint64_t stage_peak(const struct lk_plan *plan, const char *name) {
    int i = 0;
    while (strcmp(plan->stages[i].name, name)) assert_true(++i < plan->n_stages);
    return plan->stages[i].peak_bytes;
}

/* Slices of all sizes, beside jobs without: slices that end within text, that take both streams, and shorter ones. */
static void same_bits(void **state) {
    static const int rows[] = {16, 23, 40, 61};
    static const int order[] = {2, 0, 1};
    (void)state;
    for (int i = 0; i < 2 * TINY_FAMILIES; i++) {
        struct lk_device *dev;
        struct tiny_queue q;
        struct lk_plan all, sliced;
        assert_ok(lk_device_cpu_create(2, &dev));
        tiny_queue_open_with(&q, dev, &tiny_edits[i % TINY_FAMILIES],
                             &(struct lk_pipeline_options){.compute = i < TINY_FAMILIES ? LK_BF16 : LK_F32}, 3);
        assert_ok(lk_pipeline_plan(q.tiny.pipeline, dev, &q.requests[0], &all));
        for (int k = 0; k < 4; k++) {
            for (int j = 0; j < 3; j++) q.requests[j].slice_rows = j == k % 3 ? 0 : rows[(k + j) % 4];
            tiny_queue_same(&q, dev, order, 3, 1 + k % 3);
        }
        q.requests[0].slice_rows = 16;
        assert_ok(lk_pipeline_plan(q.tiny.pipeline, dev, &q.requests[0], &sliced));
        printf("%-14s transformer's peak %7llu bytes, in slices %7llu\n", tiny_edits[i % TINY_FAMILIES].name,
               (unsigned long long)stage_peak(&all, "transformer"),
               (unsigned long long)stage_peak(&sliced, "transformer"));
        assert_true(stage_peak(&sliced, "transformer") <= stage_peak(&all, "transformer"));
        tiny_queue_close(&q);
        lk_device_free(dev);
    }
}

/* The released models at 1024x1024 with one reference. */
static void chosen_where_a_budget_needs_them(void **state) {
    static const char *const names[] = {"flux2-dev", "qwen-edit-2511", "step1x-v1p2"};
    struct lk_image image = {.width = 1024, .height = 1024, .channels = 3};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct lk_pipeline *pipeline;
        struct lk_request request;
        struct lk_device *a100;
        struct lk_plan all, least;
        assert_ok(lk_pipeline_open_configs(&pipeline, names[i], LK_BF16));
        lk_request_init(&request, pipeline);
        request.images = &image;
        request.n_images = 1;
        assert_ok(lk_device_cuda_describe("sm_80", &a100));
        assert_ok(lk_pipeline_plan(pipeline, a100, &request, &all));
        a100->budget.bytes = all.least_bytes + all.beside_bytes;
        assert_ok(lk_pipeline_plan(pipeline, a100, &request, &least));
        assert_true(least.fits);
        assert_true(least.sparing && !all.sparing);
        printf(
            "%-14s transformer's activations %4llu MiB, in slices %4llu; the least budget %5llu MiB, %.2f s a step\n",
            names[i], (unsigned long long)stage_peak(&all, "transformer") >> 20,
            (unsigned long long)stage_peak(&least, "transformer") >> 20, (unsigned long long)a100->budget.bytes >> 20,
            least.placed[least.n_placed - 2].placed_s);
        assert_true(stage_peak(&least, "transformer") * 4 < stage_peak(&all, "transformer") * 3);
        a100->budget.bytes--;
        assert_ok(lk_pipeline_plan(pipeline, a100, &request, &least));
        assert_false(least.fits);
        lk_device_free(a100);
        lk_pipeline_close(pipeline);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(chosen_where_a_budget_needs_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
