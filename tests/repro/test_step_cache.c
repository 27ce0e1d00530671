/* The first-block cache: decisions by an independent computation from what the trace shows, and bits that depend on the
 * job alone. On the trained editors, whose steps change little at first. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/bf16.h"
#include "models/common/cache.h"
#include "tests/common/pipeline_checks.h"
#include "tests/common/small_editors.h"
#include "tests/common/test.h"
#include "tools/portrait/portrait.h"

enum { STEPS = 12, MOST = 40000 };

/* What the trace shows of one branch. */
struct branch {
    float before[MOST], after[MOST], last[MOST], cached[MOST]; /* the image before and after the first block, ... */
    float previous[MOST], residual[MOST];
    size_t n, n_cached;
    bool any, skipped[STEPS];
    int in_row;
};

struct seen {
    struct branch branches[2];
    const char *name, *first, *last; /* of traces: "x_embedder", "double.0.img", "single.3" */
    bool text_too;                   /* the last one has rows of the text before the image's */
    enum lk_dtype dtype;
    struct lk_cache_rule rule;
    int n_checked, n_skipped;
};

static float rounded(const struct seen *s, float x) {
    return s->dtype == LK_BF16 ? lk_bf16_to_f32(lk_f32_to_bf16(x)) : x;
}

static size_t values(const struct lk_tensor *t, float *out) {
    const size_t n = (size_t)lk_tensor_numel(t);
    assert_true(n <= MOST);
    for (size_t i = 0; i < n; i++)
        out[i] = t->dtype == LK_BF16 ? lk_bf16_to_f32(((const uint16_t *)t->data)[i]) : ((const float *)t->data)[i];
    return n;
}

/* After the first block of step i, as diffusers' hook decides: in plain loops and in double. */
static void decide(struct seen *s, struct branch *b, int i) {
    double apart = 0, size = 0;
    for (size_t k = 0; k < b->n; k++) {
        const float added = rounded(s, b->after[k] - b->before[k]);
        apart += fabs((double)rounded(s, added - b->previous[k]));
        size += fabs((double)b->previous[k]);
    }
    const bool forced =
        !b->any || i < s->rule.warmup || (s->rule.last && i + 1 == STEPS) || (s->rule.row && b->in_row == s->rule.row);
    b->skipped[i] = !forced && apart / size <= s->rule.threshold;
    b->in_row = b->skipped[i] ? b->in_row + 1 : 0;
    s->n_skipped += b->skipped[i];
    if (b->skipped[i]) return;
    b->any = true;
    for (size_t k = 0; k < b->n; k++) b->previous[k] = rounded(s, b->after[k] - b->before[k]);
}

static enum lk_code look(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct seen *s = context;
    char of[2][60];
    (void)dev;
    s->dtype = value->dtype;
    for (int i = 0; i < STEPS; i++)
        for (int k = 0; k < 3; k++) {
            static const char *const branches[] = {"", "cond.", "uncond."};
            struct branch *b = &s->branches[k == 2];
            const char *const parts[] = {s->name, s->first, s->last, "cached"};
            int part = 0;
            for (; part < 4; part++) {
                snprintf(of[0], sizeof of[0], "step.%d.%s%s", i, branches[k], parts[part]);
                if (!strcmp(name, of[0])) break;
            }
            if (part == 4) continue;
            if (part == 0) b->n = values(value, b->before);
            if (part == 1) assert_int_equal(values(value, b->after), b->n), decide(s, b, i);
            if (part == 2) { /* of a step that was computed: what the other blocks added */
                assert_false(b->skipped[i]);
                const size_t n = values(value, b->last), shift = s->text_too ? n - b->n : 0;
                for (size_t j = 0; j + shift < n; j++)
                    b->residual[j] = s->text_too ? rounded(s, b->last[j + shift] - b->after[j]) : b->last[j];
            }
            if (part == 3) {
                assert_true(b->skipped[i]);
                b->n_cached = values(value, b->cached);
                for (size_t j = 0; j < b->n_cached; j++) {
                    const float expected = rounded(s, b->after[j] + b->residual[j]);
                    if (b->cached[j] != expected) fail_msg("%s: value %zu: beyond their bounds", name, j);
                }
                s->n_checked++;
            }
        }
    return LK_OK;
}

/* Names of the trace: the image before and after the first block, and after the last one, there with the text's rows.
 */
static const struct {
    const char *before, *first, *last;
    bool text_too;
    int n_branches;
} families[SMALL_EDITORS] = {{"x_embedder", "double.0.img", "single.3", true, 1},
                             {"img_in", "double.0.img", "single.1", true, 2},
                             {"img_in", "block.0.img", "residual", false, 2}};

struct job {
    struct lk_pipeline *pipeline;
    struct lk_image image;
    struct lk_request request;
};

static void open_job(struct job *job, int f, enum lk_dtype dtype, const char *accel) {
    uint64_t random = 7;
    assert_ok(lk_pipeline_open(&job->pipeline, small_editors[f], dtype));
    small_editor_request(&job->request, job->pipeline, (enum editor_family)f);
    job->image = (struct lk_image){0};
    assert_ok(lk_image_new(&job->image, SMALL_EDITOR_SIZE, SMALL_EDITOR_SIZE, 3));
    for (int i = 0; i < SMALL_EDITOR_SIZE * SMALL_EDITOR_SIZE * 3; i++)
        job->image.pixels[i] = (uint8_t)(100 + i / 192 + (int)(test_random(&random) % 20));
    job->request.images = &job->image;
    job->request.n_images = 1;
    job->request.prompt = "Give the person red hair";
    job->request.num_inference_steps = STEPS;
    if (job->request.true_cfg_scale) job->request.true_cfg_scale = 2;
    job->request.accel = accel;
}

static void close_job(struct job *job) {
    lk_image_free(&job->image);
    lk_pipeline_close(job->pipeline);
}

static void test_decisions(void **state) {
    static const struct {
        const char *accel;
        struct lk_cache_rule rule;
    } cases[] = {
        {"fbcache,threshold=0.06", {LK_CACHE_FIRST_BLOCK, 0.06, .warmup = 1, .last = true}},
        {"fbcache,threshold=0.9", {LK_CACHE_FIRST_BLOCK, 0.9, .warmup = 1, .last = true}},
        {"fbcache,threshold=0.3,last=off", {LK_CACHE_FIRST_BLOCK, 0.3, .warmup = 1}},
        {"fbcache,threshold=0.3,warmup=3,row=2", {LK_CACHE_FIRST_BLOCK, 0.3, .warmup = 3, .row = 2, .last = true}}};
    struct seen *seen = malloc(sizeof *seen);
    (void)state;
    for (int f = 0; f < SMALL_EDITORS; f++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            for (int bf16 = (int)(c % 2); bf16 < 2; bf16 += 2) { /* one of both each */
                struct job editor;
                struct lk_device *dev;
                struct lk_result result, plain;
                char sha256[2][65];
                memset(seen, 0, sizeof *seen);
                open_job(&editor, f, bf16 ? LK_BF16 : LK_F32, cases[c].accel);
                assert_ok(lk_device_cpu_create(2, &dev));
                seen->name = families[f].before;
                seen->first = families[f].first;
                seen->last = families[f].last;
                seen->text_too = families[f].text_too;
                seen->rule = cases[c].rule;
                dev->trace = look;
                dev->trace_context = seen;
                assert_ok(lk_pipeline_edit(editor.pipeline, dev, &editor.request, &result));
                const int n = families[f].n_branches;
                assert_int_equal(result.n_cached, n);
                for (int b = 0; b < n; b++)
                    for (int i = 0; i < STEPS; i++)
                        if (result.computed[b][i] == seen->branches[b].skipped[i])
                            fail_msg("%s %s: branch %d, step %d: beyond their bounds: expected the other decision",
                                     small_editors[f], cases[c].accel, b, i);
                assert_in_range(seen->n_skipped, n, n * (STEPS - 1));
                assert_int_equal(seen->n_checked, seen->n_skipped);
                /* Without a trace other memory is used, and the last block writes fewer rows. */
                dev->trace = NULL;
                assert_ok(lk_pipeline_edit(editor.pipeline, dev, &editor.request, &plain));
                test_picture_digest(&result, sha256[0]);
                test_picture_digest(&plain, sha256[1]);
                assert_string_equal(sha256[0], sha256[1]);
                assert_memory_equal(result.computed, plain.computed, sizeof result.computed);
                lk_result_free(&result);
                lk_result_free(&plain);
                lk_device_free(dev);
                close_job(&editor);
            }
    free(seen);
}

/* Jobs that decide differently in one visit have the bits of each alone, on any number of threads and in slices. */
static void test_company(void **state) {
    static const char *const accels[] = {"fbcache,threshold=0.06", NULL, "fbcache,threshold=0.3,row=3",
                                         "fbcache,threshold=0"};
    enum { N = sizeof accels / sizeof *accels };
    (void)state;
    for (int f = 0; f < SMALL_EDITORS; f++) {
        struct job job;
        struct lk_request requests[N];
        char alone[N][65];
        struct lk_device *dev;
        open_job(&job, f, LK_BF16, NULL);
        assert_ok(lk_device_cpu_create(1, &dev));
        for (int i = 0; i < N; i++) {
            struct lk_result result;
            requests[i] = job.request;
            requests[i].accel = accels[i];
            requests[i].seed = 5;
            assert_ok(lk_pipeline_edit(job.pipeline, dev, &requests[i], &result));
            test_picture_digest(&result, alone[i]);
            if (i == 3)
                for (int k = 0; k < STEPS; k++) assert_true(result.computed[0][k]);
            lk_result_free(&result);
        }
        assert_string_equal(alone[1], alone[3]); /* a threshold of 0 changes nothing */
        assert_string_not_equal(alone[1], alone[0]);
        lk_device_free(dev);
        test_company_changes_nothing(job.pipeline, requests, alone, N, 2);
        close_job(&job);
    }
}

/* The arena's peak is what the plan says: every step computed, and what the cache keeps. */
static void test_plan(void **state) {
    (void)state;
    for (int f = 0; f < SMALL_EDITORS; f++) {
        struct job job;
        struct lk_device *dev;
        struct lk_plan plan;
        struct lk_result result;
        open_job(&job, f, LK_F32, "fbcache,threshold=0.1");
        assert_ok(lk_device_cpu_create(1, &dev));
        test_plan_is_the_peak(job.pipeline, dev, &job.request, &plan, &result);
        lk_result_free(&result);
        lk_device_free(dev);
        close_job(&job);
    }
}

static void test_refused(void **state) {
    static const struct {
        const char *accel, *part;
    } cases[] = {{"magcache,threshold=0.1", "got \"magcache"},
                 {"fbcache", "got no threshold"},
                 {"fbcache,threshold", "expected KEY=VALUE"},
                 {"fbcache,threshold=nan", "threshold: expected"},
                 {"fbcache,threshold=1.5", "threshold: expected"},
                 {"fbcache,threshold=0.1,warmup=0", "warmup: expected"},
                 {"fbcache,threshold=0.1,row=x", "row: expected"},
                 {"fbcache,threshold=0.1,last=yes", "last: expected"},
                 {"fbcache,threshold=0.1,poly=3", "the setting \"poly\""},
                 {"fbcache,threshold=0.1,", "expected KEY=VALUE"},
                 {"region", "region is of Step1X-Edit"}};
    struct job job;
    struct lk_device *dev;
    (void)state;
    open_job(&job, 0, LK_F32, NULL);
    assert_ok(lk_device_cpu_create(1, &dev));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_result result;
        job.request.accel = cases[i].accel;
        assert_fails(lk_pipeline_edit(job.pipeline, dev, &job.request, &result), LK_E_USAGE, cases[i].part);
    }
    lk_device_free(dev);
    close_job(&job);
}

/* Decisions, distances and the picture of diffusers' own FirstBlockCache in f32 (generate_step_cache.py), which has no
 * forced last step. A distance is a difference of near values: latents that are 2e-6 apart move one of 0.03 by 7e-5. */
static void test_originals(void **state) {
    static const double bound = 1e-4;
    char *text;
    size_t n;
    double worst = 0;
    (void)state;
    assert_ok(lk_read_file("golden/data/editors/step_cache.json", 1 << 20, &text, &n));
    cJSON *root = cJSON_ParseWithLength(text, n);
    const cJSON *one, *cases = cJSON_GetObjectItem(root, "cases");
    assert_int_equal(cJSON_GetArraySize(cases), 4);
    cJSON_ArrayForEach(one, cases) {
        struct job job;
        struct lk_device *dev;
        struct lk_result result;
        struct portrait before;
        char accel[80], id[48];
        int source = 0;
        const double threshold = cJSON_GetObjectItem(one, "threshold")->valuedouble;
        snprintf(accel, sizeof accel, "fbcache,threshold=%g,last=off", threshold);
        open_job(&job, 2, LK_F32, accel);
        do lk_source_id(source++, id);
        while (strcmp(id, "Black_Female_30s") != 0);
        portrait_source(&before, source - 1, NULL);
        lk_image_free(&job.image);
        assert_ok(portrait_draw(&job.image, &before, SMALL_EDITOR_SIZE));
        job.request.prompt = "Give the person red hair.";
        job.request.seed = 0;
        assert_int_equal(cJSON_GetObjectItem(root, "steps")->valueint, STEPS);
        assert_true(cJSON_GetObjectItem(root, "true_cfg_scale")->valuedouble == job.request.true_cfg_scale);
        assert_ok(lk_device_cpu_create(2, &dev));
        assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result));
        for (int b = 0; b < 2; b++) {
            const cJSON *steps = cJSON_GetArrayItem(cJSON_GetObjectItem(one, "computed"), b), *step;
            const cJSON *distances = cJSON_GetArrayItem(cJSON_GetObjectItem(one, "distance"), b);
            bool computed[STEPS] = {false};
            cJSON_ArrayForEach(step, steps) computed[step->valueint] = true;
            for (int i = 0; i < STEPS; i++) {
                const cJSON *d = cJSON_GetArrayItem(distances, i);
                if (result.computed[b][i] != computed[i])
                    fail_msg("%s: branch %d, step %d: beyond their bounds: expected the other decision", accel, b, i);
                if (!cJSON_IsNumber(d)) continue;
                const double error = fabs(result.distance[b][i] - d->valuedouble) / d->valuedouble;
                if (error > worst) worst = error;
                if (!(error <= bound))
                    fail_msg("%s: branch %d, step %d: beyond their bounds: distance %g, expected %g", accel, b, i,
                             result.distance[b][i], d->valuedouble);
            }
        }
        if (threshold == 0.08) {
            struct lk_image original = {0};
            int n_different = 0;
            assert_ok(lk_image_read(&original, "golden/data/editors/step_cache.png", 0, 1 << 20));
            for (int k = 0; k < SMALL_EDITOR_SIZE * SMALL_EDITOR_SIZE * 3; k++) {
                const int d = abs(original.pixels[k] - result.image.pixels[k]);
                if (d > 1) fail_msg("%s: value %d of the picture: beyond their bounds", accel, k);
                n_different += d;
            }
            assert_true(n_different <= SMALL_EDITOR_SIZE * SMALL_EDITOR_SIZE * 3 / 100);
            lk_image_free(&original);
        }
        lk_result_free(&result);
        lk_device_free(dev);
        close_job(&job);
    }
    printf("distances are %.1e apart at most, of %.1e\n", worst, bound);
    cJSON_Delete(root);
    lk_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_originals), cmocka_unit_test(test_decisions),
                                       cmocka_unit_test(test_company), cmocka_unit_test(test_plan),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
