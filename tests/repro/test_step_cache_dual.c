/* DBCache and TeaCache: decisions and pictures of cache-dit's own and of a re-implementation in Python
 * (generate_step_cache_dual.py, generate_step_cache_step1x.py), and bits that depend on the job alone, with two gates
 * too. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "eval/study/factors.h"
#include "tests/common/pipeline_checks.h"
#include "tests/common/small_editors.h"
#include "tests/common/test.h"
#include "tests/common/tiny_edit.h"

enum { STEPS = 12, SIZE = SMALL_EDITOR_SIZE };

struct job {
    struct lk_pipeline *pipeline;
    struct lk_image image;
    struct lk_request request;
};

/* What the files call the models. */
static const struct {
    const char *name, *path;
    enum editor_family family;
} originals[] = {{"flux2", "golden/data/flux2/rich/checkpoint", EDITOR_FLUX2},
                 {"qwen_edit", "../tools/editors/qwen_edit", EDITOR_QWEN_EDIT},
                 {"step1x", "golden/data/step1x/rich/checkpoint", EDITOR_STEP1X},
                 {"step1x_editor", "../tools/editors/step1x", EDITOR_STEP1X}};

/* The edit of the scripts. */
static void open_original(struct job *job, const char *model, const char *accel) {
    struct portrait before;
    char id[48];
    int source = 0, m = 0;
    while (strcmp(originals[m].name, model)) assert_true(++m < (int)(sizeof originals / sizeof *originals));
    const bool flux2 = originals[m].family == EDITOR_FLUX2;
    assert_ok(lk_pipeline_open(&job->pipeline, originals[m].path, LK_F32));
    small_editor_request(&job->request, job->pipeline, originals[m].family);
    do lk_source_id(source++, id);
    while (strcmp(id, "Black_Female_30s") != 0);
    portrait_source(&before, source - 1, NULL);
    job->image = (struct lk_image){0};
    assert_ok(portrait_draw(&job->image, &before, SIZE));
    struct lk_request *q = &job->request;
    q->images = &job->image;
    q->n_images = 1;
    q->prompt = "Give the person red hair.";
    q->num_inference_steps = STEPS;
    q->seed = 0;
    q->accel = accel;
    if (originals[m].family == EDITOR_QWEN_EDIT) q->true_cfg_scale = 2;
    if (flux2) q->max_sequence_length = 64;
    for (int i = 0; i < 3 && flux2; i++) q->text_encoder_out_layers[i] = i + 1;
}

static void close_job(struct job *job) {
    lk_image_free(&job->image);
    lk_pipeline_close(job->pipeline);
}

static void compare_picture(const char *accel, const char *model, const struct lk_image *got) {
    struct lk_image original = {0};
    char path[200];
    int n_different = 0;
    snprintf(path, sizeof path, "golden/data/editors/step_cache_dual_%s.png", model);
    assert_ok(lk_image_read(&original, path, 0, 1 << 20));
    assert_int_equal(original.width * original.height, got->width * got->height);
    for (int k = 0; k < SIZE * SIZE * 3; k++) {
        const int d = abs(original.pixels[k] - got->pixels[k]);
        if (d > 1) fail_msg("%s: value %d of the picture: beyond their bounds", accel, k);
        n_different += d;
    }
    assert_true(n_different <= SIZE * SIZE * 3 / 100);
    lk_image_free(&original);
}

/* A distance is a difference of near values: latents that are 2e-6 apart move one of 0.03 by 7e-5. */
static void check_case(const cJSON *one, bool is_last, double *worst) {
    static const double bound = 1e-4;
    const char *model = cJSON_GetObjectItem(one, "model")->valuestring,
               *accel = cJSON_GetObjectItem(one, "accel")->valuestring;
    const cJSON *computed = cJSON_GetObjectItem(one, "computed"), *distance = cJSON_GetObjectItem(one, "distance");
    const bool two = strcmp(model, "qwen_edit") != 0 && !strncmp(accel, "dbcache", 7);
    struct job job;
    struct lk_device *dev;
    struct lk_result result;
    open_original(&job, model, accel);
    assert_ok(lk_device_cpu_create(2, &dev));
    assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result));
    assert_int_equal(result.n_cached, cJSON_GetArraySize(computed));
    for (int g = 0; g < result.n_cached; g++) {
        const cJSON *step, *distances = cJSON_GetArrayItem(distance, g);
        bool expected[STEPS] = {false};
        cJSON_ArrayForEach(step, cJSON_GetArrayItem(computed, g)) expected[step->valueint] = true;
        assert_true(two ? !strcmp(result.cache_gates[g], g ? "single" : "double") : !result.cache_gates[g]);
        for (int i = 0; i < STEPS; i++) {
            const cJSON *d = cJSON_GetArrayItem(distances, i);
            if (result.computed[g][i] != expected[i])
                fail_msg("%s %s: gate %d, step %d: beyond their bounds: expected the other decision", model, accel, g,
                         i);
            if (cJSON_IsNumber(d) != !isnan(result.distance[g][i]))
                fail_msg("%s %s: gate %d, step %d: beyond their bounds: compared by one alone", model, accel, g, i);
            if (!cJSON_IsNumber(d)) continue;
            const double error = fabs(result.distance[g][i] - d->valuedouble) / d->valuedouble;
            if (error > *worst) *worst = error;
            if (!(error <= bound))
                fail_msg("%s %s: gate %d, step %d: beyond their bounds: distance %g, expected %g", model, accel, g, i,
                         result.distance[g][i], d->valuedouble);
        }
    }
    if (is_last) compare_picture(accel, model, &result.image);
    lk_result_free(&result);
    lk_device_free(dev);
    close_job(&job);
}

static void decisions_are_the_originals(void **state) {
    static const struct {
        const char *path;
        int n;
    } files[] = {{"golden/data/editors/step_cache_dual.json", 12},
                 {"golden/data/editors/step_cache_dual_step1x.json", 7}};
    (void)state;
    for (int f = 0; f < 2; f++) {
        char *text;
        size_t n;
        double worst = 0;
        assert_ok(lk_read_file(files[f].path, 1 << 20, &text, &n));
        cJSON *root = cJSON_ParseWithLength(text, n);
        const cJSON *one, *cases = cJSON_GetObjectItem(root, "cases");
        assert_int_equal(cJSON_GetObjectItem(root, "steps")->valueint, STEPS);
        assert_int_equal(cJSON_GetArraySize(cases), files[f].n);
        cJSON_ArrayForEach(one, cases) {
            const cJSON *model = cJSON_GetObjectItem(one, "model"), *next = one->next;
            check_case(one, !next || strcmp(cJSON_GetObjectItem(next, "model")->valuestring, model->valuestring) != 0,
                       &worst);
        }
        printf("distances are %.1e apart at most\n", worst);
        cJSON_Delete(root);
        lk_free(text);
    }
}

/* --- bits --- */

#define POLY ",poly=45:-52:17:0.1:0"
/* Two lists of two blocks and more, or one of them. */
static const struct {
    int edit;
    const char *checkpoint;
} models[] = {{0, "golden/data/flux2/rich/checkpoint"},
              {1, "golden/data/qwen_edit/edit2511/checkpoint"},
              {2, "golden/data/step1x/rich/checkpoint"}};
enum { N_MODELS = sizeof models / sizeof *models };

static void open_tiny(struct tiny_job *job, int m, enum lk_dtype dtype, const char *accel) {
    tiny_job_open_with(job, &tiny_edits[models[m].edit], models[m].checkpoint,
                       &(struct lk_pipeline_options){.compute = dtype}, 10);
    job->request.accel = accel;
    job->request.seed = 5;
}

static void edit(struct tiny_job *job, struct lk_device *dev, const struct lk_request *request, char sha256[65],
                 struct lk_result *out) {
    struct lk_result own, *result = out ? out : &own;
    assert_ok(lk_pipeline_edit(job->pipeline, dev, request, result));
    test_picture_digest(result, sha256);
    lk_result_free(result);
}

/* Jobs that decide differently in one visit have the bits of each alone, on any number of threads and in slices. */
static void bits_depend_on_the_job_alone(void **state) {
    static const char *const accels[] = {"dbcache,f=1,threshold=0.4,warmup=2",
                                         NULL,
                                         "teacache,threshold=0.3" POLY,
                                         "dbcache,f=1,steps=0:2:3:9",
                                         "fbcache,threshold=0.5,row=3",
                                         "teacache,threshold=0" POLY,
                                         "dbcache,f=1,threshold=0"};
    enum { N = sizeof accels / sizeof *accels };
    (void)state;
    for (int m = 0; m < N_MODELS; m++) {
        struct tiny_job job;
        struct lk_request requests[N];
        char alone[N][65];
        struct lk_device *dev;
        open_tiny(&job, m, LK_BF16, NULL);
        assert_ok(lk_device_cpu_create(1, &dev));
        for (int i = 0; i < N; i++) {
            requests[i] = job.request;
            requests[i].accel = accels[i];
            edit(&job, dev, &requests[i], alone[i], NULL);
        }
        assert_string_equal(alone[1], alone[5]); /* a threshold of 0 changes nothing */
        assert_string_equal(alone[1], alone[6]);
        assert_string_not_equal(alone[1], alone[0]);
        assert_string_not_equal(alone[1], alone[2]);
        assert_string_not_equal(alone[1], alone[3]);
        lk_device_free(dev);
        test_company_changes_nothing(job.pipeline, requests, alone, N, 3);
        tiny_job_close(&job);
    }
}

/* Given steps are those that are computed; another run's decisions give its bits, whatever the threshold says. */
static void steps_and_decisions_can_be_given(void **state) {
    (void)state;
    for (int m = 0; m < N_MODELS; m++) {
        struct tiny_job job;
        struct lk_device *dev;
        struct lk_result result;
        struct lk_cache_replay replay = {.n_steps = 10};
        char first[65], sha256[65];
        open_tiny(&job, m, LK_F32, "dbcache,f=1,threshold=0.3,warmup=2");
        assert_ok(lk_device_cpu_create(2, &dev));
        edit(&job, dev, &job.request, first, &result);
        replay.n = result.n_cached;
        memcpy(replay.computed, result.computed, sizeof replay.computed);
        job.request.replay_cache = &replay;
        job.request.accel = "dbcache,f=1,threshold=0.9,warmup=2";
        edit(&job, dev, &job.request, sha256, &result);
        assert_string_equal(sha256, first);
        assert_memory_equal(replay.computed, result.computed, sizeof replay.computed);
        replay.n++;
        assert_fails(lk_pipeline_edit(job.pipeline, dev, &job.request, &result), LK_E_USAGE, "expected decisions of");
        replay.n--;
        replay.computed[0][0] = false;
        assert_fails(lk_pipeline_edit(job.pipeline, dev, &job.request, &result), LK_E_INPUT, "first step is left out");
        job.request.replay_cache = NULL;
        job.request.accel = "fbcache,steps=0:4:5";
        edit(&job, dev, &job.request, sha256, &result);
        for (int g = 0; g < result.n_cached; g++)
            for (int i = 0; i < 10; i++) {
                assert_int_equal(result.computed[g][i], i == 0 || i == 4 || i == 5);
                assert_true(isnan(result.distance[g][i]));
            }
        lk_device_free(dev);
        tiny_job_close(&job);
    }
}

/* FLOPs of an edit that computes these steps. */
static uint64_t flops_of(struct tiny_job *job, const char *accel) {
    struct lk_device *dev;
    struct lk_result result;
    char sha256[65];
    assert_ok(lk_device_cpu_create(2, &dev));
    job->request.accel = accel;
    edit(job, dev, &job->request, sha256, &result);
    const uint64_t flops = dev->cost.flops;
    lk_device_free(dev);
    return flops;
}

/* What is left out is not computed: each step that is left out saves the same, which is nearly all of a forward. */
static void what_is_left_out_costs_nothing(void **state) {
    static const char *const methods[] = {"fbcache", "dbcache,f=1", "teacache"};
    (void)state;
    for (int m = 0; m < N_MODELS; m++)
        for (int k = 0; k < 3; k++) {
            struct tiny_job job;
            char accel[3][100];
            uint64_t flops[3];
            open_tiny(&job, m, LK_F32, NULL);
            snprintf(accel[0], sizeof accel[0], "%s,steps=0:1:2:3:4:5:6:7:8:9", methods[k]);
            snprintf(accel[1], sizeof accel[1], "%s,steps=0:2:4:6:8", methods[k]);
            snprintf(accel[2], sizeof accel[2], "%s,steps=0", methods[k]);
            for (int i = 0; i < 3; i++) flops[i] = flops_of(&job, accel[i]);
            const uint64_t saved = (flops[0] - flops[1]) / 5;
            assert_true(flops[0] - flops[1] == 5 * saved && flops[0] - flops[2] == 9 * saved);
            const uint64_t plain = flops_of(&job, NULL);
            struct lk_plan plan;
            struct lk_device *dev;
            uint64_t forward = 0;
            assert_ok(lk_device_cpu_create(1, &dev));
            assert_ok(lk_pipeline_plan(job.pipeline, dev, &job.request, &plan));
            for (int i = 0; i < plan.n_stages; i++)
                if (!strcmp(plan.stages[i].name, "transformer")) forward = plan.stages[i].flops;
            lk_device_free(dev);
            printf("%s, %s: a step left out saves %.1f %% of a forward; the gate adds %.2f %%\n",
                   models[m].checkpoint + 12, methods[k], 100.0 * (double)saved / (double)forward,
                   10.0 * (double)(flops[0] - plain) / (double)forward);
            assert_true(saved <= 2 * forward && saved * 4 > forward); /* of two branches */
            tiny_job_close(&job);
        }
}

static void published_coefficients_are_those_of_flux2(void **state) {
    struct job job;
    struct lk_device *dev;
    struct lk_result result[2];
    (void)state;
    open_original(&job, "flux2", "teacache,threshold=0.4");
    assert_ok(lk_device_cpu_create(2, &dev));
    assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result[0]));
    job.request.accel = "teacache,threshold=0.4,poly=104.58236:-6.87605554:-0.0861659379:0.0537600252";
    assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result[1]));
    assert_memory_equal(result[0].computed, result[1].computed, sizeof result[0].computed);
    for (int i = 0; i < 2; i++) lk_result_free(&result[i]);
    lk_device_free(dev);
    close_job(&job);
}

/* The arena's peak is what the plan says: every step computed, and what the gates keep. */
static void memory_is_as_planned(void **state) {
    static const char *const accels[] = {"dbcache,f=1,threshold=0.4,warmup=2", "teacache,threshold=0.3" POLY};
    (void)state;
    for (int m = 0; m < 2 * N_MODELS; m++) {
        struct tiny_job job;
        struct lk_device *dev;
        struct lk_plan plan;
        struct lk_result result;
        open_tiny(&job, m / 2, LK_F32, accels[m % 2]);
        assert_ok(lk_device_cpu_create(1, &dev));
        test_plan_is_the_peak(job.pipeline, dev, &job.request, &plan, &result);
        lk_result_free(&result);
        lk_device_free(dev);
        tiny_job_close(&job);
    }
}

static void what_cannot_be_meant_is_refused(void **state) {
    static const struct {
        int model;
        const char *accel, *part;
    } cases[] = {{0, "dbcache,threshold=0.1", "expected f + b below 2, the model's blocks of the double-stream list"},
                 {0, "dbcache,f=1,b=1,threshold=0.1", "got 1 + 1"},
                 {1, "dbcache,f=9,threshold=0.1", "expected f + b below"},
                 {1, "teacache,threshold=0.1", "nobody has published"},
                 {2, "teacache,threshold=0.1", "nobody has published"},
                 {0, "teacache", "got no threshold"},
                 {0, "teacache,threshold=0.1,poly=3", "expected 2 to 8 coefficients"},
                 {0, "teacache,threshold=0.1,poly=3:nan", "poly: expected"},
                 {0, "teacache,threshold=0.1,poly=1:2:3:4:5:6:7:8:9", "expected at most 8"},
                 {0, "teacache,threshold=0.1,f=2", "the setting \"f\""},
                 {0, "fbcache,threshold=0.1,interval=2", "the setting \"interval\""},
                 {0, "dbcache,f=0,threshold=0.1", "f: expected"},
                 {0, "dbcache,f=1,interval=0", "interval: expected"},
                 {0, "dbcache,f=1,max=x", "max: expected"},
                 {0, "dbcache,f=1,steps=1:2", "expected 0 as the first step"},
                 {0, "dbcache,f=1,steps=0:2:2", "steps: expected"},
                 {0, "dbcache,f=1,steps=", "steps: expected"},
                 {0, "dbcachef,f=1", "got \"dbcachef"},
                 {0, "taylorseer,threshold=1", "got \"taylorseer"}};
    struct lk_device *dev;
    struct tiny_job few;
    struct lk_result none;
    (void)state;
    assert_ok(lk_device_cpu_create(1, &dev));
    open_tiny(&few, 0, LK_F32, "fbcache,threshold=0.1");
    few.request.num_inference_steps = 9;
    assert_fails(lk_pipeline_edit(few.pipeline, dev, &few.request, &none), LK_E_USAGE, "expected 10 steps or more");
    tiny_job_close(&few);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tiny_job job;
        struct lk_result result;
        open_tiny(&job, cases[i].model, LK_F32, cases[i].accel);
        assert_fails(lk_pipeline_edit(job.pipeline, dev, &job.request, &result), LK_E_USAGE, cases[i].part);
        tiny_job_close(&job);
    }
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions_are_the_originals),
        cmocka_unit_test(bits_depend_on_the_job_alone),
        cmocka_unit_test(steps_and_decisions_can_be_given),
        cmocka_unit_test(what_is_left_out_costs_nothing),
        cmocka_unit_test(published_coefficients_are_those_of_flux2),
        cmocka_unit_test(memory_is_as_planned),
        cmocka_unit_test(what_cannot_be_meant_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
