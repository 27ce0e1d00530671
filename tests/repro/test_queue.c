/* A job's picture is the same alone and in a queue, whatever stands beside it, in any order and any number of jobs a
 * visit. Equal prompts and pictures are encoded once, and a job that cannot be done fails alone. */
#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "models/common/kept.h"
#include "models/quantize.h"
#include "tests/common/tiny_queue.h"

static const int orders[][TINY_QUEUE] = {{0, 1, 2, 3}, {3, 1, 0, 2}, {2, 3, 1, 0}};

static void same_picture_in_every_queue(void **state) {
    (void)state;
    for (int i = 0; i < TINY_EDITS + TINY_PICTURES; i++) {
        const struct tiny_edit *edit = i < TINY_EDITS ? &tiny_edits[i] : &tiny_pictures[i - TINY_EDITS];
        struct lk_device *dev;
        struct tiny_queue q;
        assert_ok(lk_device_cpu_create(2, &dev));
        tiny_queue_open(&q, dev, edit, i % 2 ? LK_F32 : LK_BF16);
        for (int k = 0; k < 3; k++) tiny_queue_same(&q, dev, orders[k], TINY_QUEUE, k + 1);
        tiny_queue_same(&q, dev, orders[1], 3, 8);
        tiny_queue_close(&q);
        lk_device_free(dev);
    }
}

/* The three jobs' pictures with these weights, compared under many settings with those of jobs that run alone in one
 * thread: number of threads, jobs a visit, the queue's order, rows in slices. Everyday three settings in which each
 * value is met, in the full run (LIKENESS_TEST_FULL) all of them. */
static void any_order(const struct tiny_edit *edit, enum lk_quantize how, int shift, char alone[3][65]) {
    static const int of_three[][3] = {{2, 0, 1}, {0, 1, 2}, {1, 2, 0}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
    static const int threads[] = {1, 2, 5};
    const struct lk_pipeline_options options = {.compute = LK_BF16, .quantize = how};
    const bool full = getenv("LIKENESS_TEST_FULL") != NULL;
    struct lk_device *dev;
    struct tiny_queue q;
    assert_ok(lk_device_cpu_create(1, &dev));
    tiny_queue_open_with(&q, dev, edit, &options, 3);
    for (int k = 0; k < (full ? 108 : 3); k++) {
        const int order = full ? k / 9 % 6 : (k + shift) % 6, visit = full ? k / 3 : k + shift;
        for (int j = 0; j < 3; j++) q.requests[j].slice_rows = (full ? k / 54 : k + shift) % 2 ? 16 + 8 * j : 0;
        lk_device_free(dev);
        assert_ok(lk_device_cpu_create(threads[k % 3], &dev));
        tiny_queue_same(&q, dev, of_three[order], 3, 1 + visit % 3);
    }
    memcpy(alone, q.alone, 3 * sizeof *alone);
    tiny_queue_close(&q);
    lk_device_free(dev);
}

/* One picture for each precision: bf16, q8, and nf4 packed as it is read or mapped from a file that holds it. */
static void one_picture_of_a_precision(void **state) {
    static const enum lk_quantize forms[] = {LK_QUANTIZE_NONE, LK_QUANTIZE_Q8, LK_QUANTIZE_NF4};
    (void)state;
    for (int i = 0; i < TINY_FAMILIES; i++) {
        char pictures[4][3][65], command[1200];
        struct tiny_edit packed = tiny_edits[i];
        packed.checkpoint = test_path("packed");
        snprintf(command, sizeof command, "rm -rf '%s'", packed.checkpoint);
        assert_int_equal(system(command), 0);
        assert_ok(lk_model_quantize(tiny_edits[i].checkpoint, packed.checkpoint, LK_QUANTIZE_NF4));
        for (int form = 0; form < 3; form++) {
            any_order(&tiny_edits[i], forms[form], i + form, pictures[form]);
            for (int j = 0; j < form; j++) assert_string_not_equal(pictures[form][0], pictures[j][0]);
        }
        any_order(&packed, LK_QUANTIZE_NONE, i + 3, pictures[3]);
        assert_memory_equal(pictures[3], pictures[2], sizeof pictures[2]);
    }
}

static enum lk_code count_traces(void *context, struct lk_device *dev, const char *name,
                                 const struct lk_tensor *value) {
    int *n = context;
    (void)dev, (void)value;
    n[0] += strstr(name, "text_encoder.ids") != NULL;
    n[1] += !strcmp(name, "reference.0.pixels");
    n[2] += !strcmp(name, "vision.0.block.0");
    return LK_OK;
}

/* Jobs of which each step takes the tokens that it edits, beside one that takes all. */
static void edited_tokens_in_a_queue(void **state) {
    struct lk_device *dev;
    struct tiny_queue q;
    (void)state;
    assert_ok(lk_device_cpu_create(2, &dev));
    tiny_queue_open_region(&q, dev);
    tiny_queue_same(&q, dev, orders[1], TINY_QUEUE, 3);
    tiny_queue_close(&q);
    lk_device_free(dev);
}

/* Two prompts and two pictures in four jobs. FLUX.2's prompt does not see the picture; the others' do, and have a
 * negative prompt, which is the same for all. */
static void equal_inputs_are_encoded_once(void **state) {
    static const int expected[TINY_FAMILIES][3] = {{2, 2, 0}, {6, 2, 2}, {6, 2, 2}};
    (void)state;
    for (int i = 0; i < TINY_FAMILIES; i++) {
        struct lk_device *dev;
        struct tiny_queue q;
        int n[3] = {0};
        assert_ok(lk_device_cpu_create(2, &dev));
        tiny_queue_open(&q, dev, &tiny_edits[i], LK_BF16);
        dev->trace = count_traces;
        dev->trace_context = n;
        tiny_queue_same(&q, dev, orders[0], TINY_QUEUE, 2);
        for (int k = 0; k < 3; k++)
            if (n[k] != expected[i][k])
                fail_msg("%s: prompts, references, pictures seen [%d]: expected %d, got %d", tiny_edits[i].name, k,
                         expected[i][k], n[k]);
        tiny_queue_close(&q);
        lk_device_free(dev);
    }
}

/* A second queue finds what the first has left, other jobs in it too; a queue that may leave little leaves little. */
static void the_next_queue_encodes_nothing_again(void **state) {
    (void)state;
    for (int i = 0; i < TINY_FAMILIES; i++) {
        struct lk_device *dev;
        struct tiny_queue q;
        int n[3] = {0}, first[3];
        assert_ok(lk_device_cpu_create(2, &dev));
        tiny_queue_open(&q, dev, &tiny_edits[i], LK_BF16);
        q.cache_bytes = 1 << 30;
        tiny_queue_same(&q, dev, orders[0], 2, 2);
        dev->trace = count_traces;
        dev->trace_context = n;
        tiny_queue_same(&q, dev, orders[0], 2, 1);
        for (int k = 0; k < 3; k++)
            if (n[k]) fail_msg("%s: %d encoded again [%d]", tiny_edits[i].name, n[k], k);
        tiny_queue_same(&q, dev, orders[0], TINY_QUEUE, 3); /* half of it is new */
        memcpy(first, n, sizeof n);
        q.cache_bytes = 1;
        tiny_queue_same(&q, dev, orders[0], TINY_QUEUE, 3);
        assert_null(q.cache);
        q.cache_bytes = 0;
        memset(n, 0, sizeof n);
        tiny_queue_same(&q, dev, orders[0], TINY_QUEUE, 3);
        for (int k = 0; k < 3; k++)
            if (n[k] && first[k] >= n[k] && k != 0) fail_msg("%s: nothing was found again [%d]", tiny_edits[i].name, k);
        tiny_queue_close(&q);
        lk_device_free(dev);
    }
}

/* Of what is kept any part may be gone: one branch's embeddings, the picture's features, a reference. */
static void what_is_gone_is_made_again(void **state) {
    (void)state;
    for (int i = 0; i < TINY_FAMILIES; i++) {
        struct lk_device *dev;
        struct tiny_queue q;
        int n = 0;
        assert_ok(lk_device_cpu_create(2, &dev));
        tiny_queue_open(&q, dev, &tiny_edits[i], LK_BF16);
        q.cache_bytes = 1 << 30;
        tiny_queue_same(&q, dev, orders[0], 1, 1);
        for (const struct lk_kept *at = q.cache; at; at = at->next) n++;
        for (int gone = 0; gone < n; gone++) {
            struct lk_kept *at = q.cache;
            for (int k = 0; k < gone; k++) at = at->next;
            at->key[0] = 0;
            tiny_queue_same(&q, dev, orders[0], 1, 1);
        }
        tiny_queue_close(&q);
        lk_device_free(dev);
    }
}

/* Where every picture has a prompt of its own, as many as there are sources at most: memory does not grow with jobs.
 * What goes is what was used least recently. */
static void the_last_ones_are_left(void **state) {
    struct lk_kept *list = NULL, *made;
    const struct lk_tensor t = LK_TENSOR(NULL, LK_F32, 4);
    int n = 0;
    char key[65];
    (void)state;
    int64_t live = lk_alloc_live();
    for (int i = 0; i < LK_KEPT_MOST + 40; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_ok(lk_kept_add(&list, key, &t, true, &made));
        if (i + 1 == LK_KEPT_MOST) lk_kept_trim(&list, 1 << 30);
    }
    assert_non_null(lk_kept_find(list, "0")); /* the negative prompt of all jobs */
    lk_kept_trim(&list, 1 << 30);
    for (const struct lk_kept *at = list; at; at = at->next) n++;
    assert_int_equal(n, LK_KEPT_MOST);
    assert_non_null(lk_kept_find(list, key));
    assert_non_null(lk_kept_find(list, "0"));
    assert_null(lk_kept_find(list, "40"));
    assert_non_null(lk_kept_find(list, "41"));
    lk_kept_trim(&list, 3 * 16); /* it is what decides about bytes too */
    assert_non_null(lk_kept_find(list, "41"));
    assert_null(lk_kept_find(list, "42"));
    lk_kept_free(&list);
    assert_int_equal(lk_alloc_live(), live);
}

static enum lk_code look(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    (void)context, (void)dev, (void)name, (void)value;
    return LK_OK;
}

/* The last block computes the rows that are read after it; for a trace all. */
static void same_picture_when_looked_at(void **state) {
    (void)state;
    for (int i = 0; i < TINY_FAMILIES; i++) {
        struct lk_device *dev;
        struct tiny_job job;
        struct lk_result seen, unseen;
        tiny_job_open(&job, &tiny_edits[i], LK_BF16, 2);
        assert_ok(lk_device_cpu_create(2, &dev));
        assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &unseen));
        dev->trace = look;
        assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &seen));
        assert_memory_equal(seen.image.pixels, unseen.image.pixels, (size_t)seen.width * (size_t)seen.height * 3);
        lk_result_free(&seen);
        lk_result_free(&unseen);
        lk_device_free(dev);
        tiny_job_close(&job);
    }
}

/* Job 1 has a prompt that is no text, job 2 too many steps, job 3 a NaN in its noise. */
static void a_bad_job_fails_alone(void **state) {
    (void)state;
    for (int i = 0; i < TINY_FAMILIES; i++) {
        struct lk_device *dev;
        struct tiny_queue q;
        struct lk_queued *jobs[TINY_QUEUE];
        float nan[64 * 48];
        assert_ok(lk_device_cpu_create(2, &dev));
        tiny_queue_open(&q, dev, &tiny_edits[i], LK_BF16);
        for (size_t k = 0; k < sizeof nan / sizeof *nan; k++) nan[k] = NAN;
        q.requests[1].prompt = "\xff";
        q.requests[2].num_inference_steps = LK_MAX_STEPS + 1;
        q.requests[3].latents = nan;
        for (int k = 0; k < TINY_QUEUE; k++) jobs[k] = &q.jobs[k];
        struct lk_queue queue = {.jobs = jobs, .n_jobs = TINY_QUEUE, .jobs_per_visit = 4};
        int64_t live = lk_alloc_live();
        assert_fails(lk_pipeline_edit_queue(q.tiny.pipeline, dev, &queue), LK_E_PARTIAL, "3 of 4 jobs failed");
        assert_int_equal(jobs[0]->error.code, LK_OK);
        assert_non_null(jobs[0]->result.image.pixels);
        lk_result_free(&jobs[0]->result);
        assert_int_equal(lk_alloc_live(), live);
        assert_int_equal(jobs[1]->error.code, LK_E_PROMPT);
        assert_int_equal(jobs[2]->error.code, LK_E_USAGE);
        assert_int_equal(jobs[3]->error.code, LK_E_NONFINITE);
        assert_non_null(strstr(jobs[3]->error.text, "transformer, step 1: "));
        for (int k = 1; k < TINY_QUEUE; k++) assert_null(jobs[k]->result.image.pixels);
        tiny_queue_same(&q, dev, orders[0], 1, 1);
        queue.jobs_per_visit = 9;
        assert_fails(lk_pipeline_edit_queue(q.tiny.pipeline, dev, &queue), LK_E_USAGE, "jobs_per_visit: expected 1 to");
        tiny_queue_close(&q);
        lk_device_free(dev);
    }
}

static enum lk_code stop(void *context, const char *stage, int step, int n_steps) {
    (void)n_steps;
    return !strcmp(stage, context) && step ? lk_fail(LK_E_INTERRUPTED, "stopped") : LK_OK;
}

/* An interruption is the queue's: no job is done afterwards, and nothing stays allocated. */
static void an_interruption_ends_the_queue(void **state) {
    struct lk_device *dev;
    struct tiny_queue q;
    struct lk_queued *jobs[TINY_QUEUE];
    (void)state;
    assert_ok(lk_device_cpu_create(2, &dev));
    tiny_queue_open(&q, dev, &tiny_edits[0], LK_BF16);
    q.requests[2].progress = stop;
    q.requests[2].progress_context = "transformer";
    for (int k = 0; k < TINY_QUEUE; k++) jobs[k] = &q.jobs[k];
    struct lk_queue queue = {.jobs = jobs, .n_jobs = TINY_QUEUE, .jobs_per_visit = 2};
    int64_t live = lk_alloc_live();
    assert_fails(lk_pipeline_edit_queue(q.tiny.pipeline, dev, &queue), LK_E_INTERRUPTED, "stopped");
    assert_int_equal(lk_alloc_live(), live);
    for (int k = 0; k < TINY_QUEUE; k++) {
        assert_int_equal(jobs[k]->error.code, LK_E_INTERRUPTED);
        assert_null(jobs[k]->result.image.pixels);
    }
    tiny_queue_close(&q);
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_picture_in_every_queue),    cmocka_unit_test(one_picture_of_a_precision),
        cmocka_unit_test(equal_inputs_are_encoded_once),  cmocka_unit_test(the_next_queue_encodes_nothing_again),
        cmocka_unit_test(same_picture_when_looked_at),    cmocka_unit_test(a_bad_job_fails_alone),
        cmocka_unit_test(an_interruption_ends_the_queue), cmocka_unit_test(the_last_ones_are_left),
        cmocka_unit_test(edited_tokens_in_a_queue),       cmocka_unit_test(what_is_gone_is_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
