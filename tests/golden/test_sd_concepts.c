/* Semantic guidance against diffusers', call by call from the reference's own predictions (generate_sd_concepts.py). */
#include <math.h>

#include "engine/bf16.h"
#include "models/pipeline.h"
#include "models/sd/sega.h"
#include "models/sd/sampler.h"
#include "tests/common/golden.h"
#include "tests/common/test.h"

static const char *const cases[] = {"pair", "pair_ddim", "uneven", "cool", "negative_weight", "ends", "eta"};
#define N_CASES (sizeof cases / sizeof *cases)

static struct golden golden;
static struct lk_device *dev;

static int open_all(void **state) {
    (void)state;
    golden_open(&golden, "golden/data/sd_concepts.safetensors", "sd_concepts");
    return lk_device_cpu_create(1, &dev) != LK_OK;
}

static int close_all(void **state) {
    (void)state;
    lk_device_free(dev);
    golden_close(&golden);
    return 0;
}

static float *stored(const char *name, const char *what, size_t *n) {
    char key[128];
    size_t own;
    snprintf(key, sizeof key, "%s.%s", name, what);
    return golden_values(&golden, key, n ? n : &own);
}

/* Concepts of a case, as lk_sega_begin takes them; how many. */
static int concepts_of(const char *name, char text[512], const char *out[LK_SEGA_MAX_CONCEPTS]) {
    int n = 0;
    snprintf(text, 512, "%s", golden_text(&golden, name));
    for (char *rest, *one = strtok_r(text, "|", &rest); one; one = strtok_r(NULL, "|", &rest)) out[n++] = one;
    return n;
}

struct replay {
    struct lk_sega sega;
    int n_calls;
    size_t n_values; /* of one prediction */
    float *predictions, *added, *guided;
};

static void replay_begin(struct replay *p, const char *name, bool bf16) {
    char text[512], key[64];
    const char *texts[LK_SEGA_MAX_CONCEPTS];
    const int n = concepts_of(name, text, texts);
    size_t all, each;
    *p = (struct replay){0};
    snprintf(key, sizeof key, "%s.%s", name, bf16 ? "bf16" : "f32");
    p->predictions = stored(key, "predictions", &all);
    p->added = stored(key, "added", &each);
    p->guided = stored(key, "guided", NULL);
    p->n_calls = (int)(all / each) == 2 + n ? (int)(each / (8 * 8 * 4)) : 0;
    p->n_values = each / (size_t)p->n_calls;
    snprintf(key, sizeof key, "%s.settings", name);
    struct lk_sega *s = &p->sega;
    assert_int_equal(
        sscanf(golden_text(&golden, key), "%lf %lf %lf", &s->guidance_scale, &s->momentum_scale, &s->momentum_beta), 3);
    s->bf16 = bf16;
    assert_ok(lk_sega_begin(s, texts, n, &(struct lk_sega_shape){p->n_calls, 64, 4}));
}

static void replay_end(struct replay *p) {
    lk_sega_free(&p->sega);
    free(p->predictions);
    free(p->added);
    free(p->guided);
}

static double distance(const float *a, const float *b, size_t n) {
    double most = 0, scale = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        scale = fmax(scale, fabs((double)b[i]));
    }
    return scale > 0 ? most / scale : most;
}

/* f32: what the concepts add and the guided prediction. */
static void every_call(void **state) {
    (void)state;
    double worst = 0;
    for (size_t k = 0; k < N_CASES; k++) {
        struct replay p;
        replay_begin(&p, cases[k], false);
        assert_true(p.n_calls == (strcmp(cases[k], "pair") ? 12 : 13));
        int n_silent = 0;
        for (int i = 0; i < p.n_calls; i++) {
            float added[256], *call = p.predictions + (size_t)i * (size_t)(2 + p.sega.n) * p.n_values;
            const float *e = p.added + (size_t)i * p.n_values, *guided = p.guided + (size_t)i * p.n_values;
            assert_true(p.n_values == 256);
            lk_sega_step(&p.sega, i, call, added);
            const double error = fmax(distance(added, e, 256), distance(call, guided, 256));
            if (!(error <= 1e-6)) fail_msg("%s, call %d: %.3g, allowed 1e-6", cases[k], i, error);
            worst = fmax(worst, error);
            bool silent = true;
            for (size_t j = 0; j < 256; j++) silent = silent && e[j] == 0; /* exactly, in the reference */
            for (size_t j = 0; j < 256 && silent; j++) assert_true(added[j] == 0);
            n_silent += silent;
        }
        assert_true(n_silent < p.n_calls);
        replay_end(&p);
    }
    print_message("worst %.2g\n", worst);
}

static void bits_in_bf16(void **state) {
    (void)state;
    int n = 0;
    for (size_t k = 0; k < N_CASES; k++) {
        struct replay p;
        replay_begin(&p, cases[k], true);
        for (int i = 0; i < p.n_calls; i++) {
            float added[256], *call = p.predictions + (size_t)i * (size_t)(2 + p.sega.n) * p.n_values;
            lk_sega_step(&p.sega, i, call, added);
            for (size_t j = 0; j < 256; j++, n++)
                if (added[j] != p.added[(size_t)i * 256 + j] || call[j] != p.guided[(size_t)i * 256 + j])
                    fail_msg("%s, call %d, value %zu: added %.9g (%.9g), guided %.9g (%.9g)", cases[k], i, j,
                             (double)added[j], (double)p.added[(size_t)i * 256 + j], (double)call[j],
                             (double)p.guided[(size_t)i * 256 + j]);
        }
        replay_end(&p);
    }
    print_message("%d values equal\n", n);
    assert_int_equal(n, 256 * (6 * 12 + 13));
}

/* The latents after each call, from the reference's predictions and noise alone. */
static void latents(void **state) {
    (void)state;
    double worst = 0;
    for (size_t k = 0; k < N_CASES; k++) {
        struct lk_sampler_config config = {.kind = LK_SAMPLER_PNDM, .spacing = LK_SPACING_LEADING, .steps_offset = 1};
        struct lk_sampler sampler;
        struct replay p;
        float x[256], kept[LK_SAMPLER_KEPT][256];
        struct lk_tensor tx = LK_TENSOR(x, LK_F32, 64, 4), tk[LK_SAMPLER_KEPT];
        char key[64];
        if (!strcmp(cases[k], "eta")) continue; /* draws noise: the whole pipeline's goldens */
        replay_begin(&p, cases[k], false);
        snprintf(key, sizeof key, "%s.scheduler", cases[k]);
        config.beta_start = 0.00085, config.beta_end = 0.012, config.scaled_linear = true;
        config.skip_prk_steps = true;
        assert_ok(lk_sampler_choose(&config, golden_text(&golden, key)));
        assert_ok(lk_sampler_begin(&sampler, &config, 12, 0));
        assert_int_equal(sampler.n_calls, p.n_calls);
        for (int j = 0; j < LK_SAMPLER_KEPT; j++) tk[j] = LK_TENSOR(kept[j], LK_F32, 64, 4);
        snprintf(key, sizeof key, "%s.f32", cases[k]);
        float *expected = stored(key, "latents", NULL), *noise = stored(key, "noise", NULL);
        memcpy(x, noise, sizeof x);
        for (int i = 0; i < p.n_calls; i++) {
            float *call = p.predictions + (size_t)i * (size_t)(2 + p.sega.n) * 256;
            lk_sega_step(&p.sega, i, call, NULL);
            struct lk_tensor prediction = LK_TENSOR(call, LK_F32, 64, 4);
            assert_ok(lk_sampler_advance(dev, &sampler, i,
                                         &(struct lk_sampler_step){.x = &tx, .prediction = &prediction, .kept = tk}));
            const double error = test_relative_error(x, expected + (size_t)i * 256, 256);
            if (!(error <= 2e-6)) fail_msg("%s, call %d: latents off by %.3g, allowed 2e-6", cases[k], i, error);
            worst = fmax(worst, error);
        }
        free(expected);
        free(noise);
        replay_end(&p);
    }
    print_message("worst %.2g\n", worst);
}

/* torch.quantile's rank comes from q as f32: of 4096 values 0.9 has rank 3685.4999, not 3685.5. */
static void quantiles(void **state) {
    (void)state;
    static float v[4096];
    for (int i = 0; i < 4096; i++) v[i] = (float)i;
    assert_true(lk_sega_quantile(v, 4096, 0) == 0);
    assert_true(lk_sega_quantile(v, 4096, 1) == 4095);
    assert_true(lk_sega_quantile(v, 4096, 0.5) == 2047.5f);
    assert_true(lk_sega_quantile(v, 1, 0.95) == 0);
    const struct {
        double q;
        int kept;
    } known[] = {{0.9, 410}, {0.95, 205}, {0.975, 103}, {0.99, 41}, {1, 1}, {0, 4096}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        int kept = 0;
        for (int i = 0; i < 4096; i++) kept += v[i] >= lk_sega_quantile(v, 4096, known[k].q);
        assert_int_equal(kept, known[k].kept);
    }
    for (int i = 0; i < 4096; i++) v[i] -= 3685;
    assert_true(lk_sega_quantile(v, 4096, 0.9) < 0.49995f && lk_sega_quantile(v, 4096, 0.9) > 0.4998f);
}

/* A threshold between neighbours in bf16 becomes the nearer one: here that of rank 6, of 6.3. */
static void rounded_threshold(void **state) {
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct lk_sega s = {.guidance_scale = 2, .bf16 = bf16};
        float predictions[3 * 64] = {0}, added[64];
        int n_kept = 0;
        for (int j = 0; j < 64; j++) predictions[128 + j] = 1 + (float)j / 128;
        const char *const concept = "a;scale=1;threshold=0.1;warmup=0";
        assert_ok(lk_sega_begin(&s, &concept, 1, &(struct lk_sega_shape){1, 64, 1}));
        lk_sega_step(&s, 0, predictions, added);
        for (int j = 0; j < 64; j++) n_kept += added[j] != 0;
        assert_int_equal(n_kept, bf16 ? 58 : 57);
        lk_sega_free(&s);
    }
}

static enum lk_code begin_with(const char *first, const char *second) {
    struct lk_sega s = {.guidance_scale = 7};
    const char *texts[] = {first, second};
    const enum lk_code rc = lk_sega_begin(&s, texts, 2, &(struct lk_sega_shape){12, 4, 4});
    lk_sega_free(&s);
    return rc;
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "expected TEXT"},
        {";reverse", "expected TEXT"},
        {"a;", "got \"\""},
        {"a;backwards", "got \"backwards\""},
        {"a;threshold=1.01", "expected a number from 0 to 1, got \"1.01\""},
        {"a;threshold=-0.1", "expected a number from 0 to 1"},
        {"a;scale=nan", "expected a number from 0 to 1000"},
        {"a;warmup=2.5", "expected a whole number from 0 to 1000"},
        {"a;cooldown=none", "expected a whole number"},
        {"a;reverse;weight=", "expected a number"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(lk_sega_concept_check("--concept", bad[i].text, NULL), LK_E_USAGE, bad[i].says);
    assert_ok(lk_sega_concept_check("--concept", "old person, smiling: yes;reverse;scale=0", NULL));
    /* What gives NaN in the reference. */
    assert_fails(begin_with("a;warmup=2;cooldown=4", "b;warmup=8"), LK_E_USAGE, "\"a\" has no weight left at call 4");
    assert_fails(begin_with("a", "b;warmup=2;weight=-1"), LK_E_USAGE, "\"b\" has no weight left at call 2");
    assert_fails(begin_with("a;weight=0;warmup=0", "b"), LK_E_USAGE, "\"a\" has no weight left at call 0");
    assert_ok(begin_with("a;warmup=2;cooldown=8", "b;warmup=8"));
    assert_ok(begin_with("a;weight=-1", "b"));
    assert_ok(begin_with("a;warmup=20;weight=-1", "b;warmup=30")); /* never begins */
}

static void refused_requests(void **state) {
    (void)state;
    struct lk_pipeline *p;
    struct lk_request request;
    struct lk_plan plan;
    assert_ok(lk_pipeline_open_configs(&p, "sd-1.5", LK_BF16));
    lk_request_init(&request, p);
    assert_true(request.concept_momentum_scale == 0.5 && request.concept_momentum_beta == 0.6);
    request.concepts[0] = "male person;reverse";
    request.concepts[1] = "female person";
    request.n_concepts = 2;
    request.guidance_scale = 1;
    assert_fails(lk_pipeline_plan(p, dev, &request, &plan), LK_E_USAGE, "guidance_scale above 1, got 1");
    request.guidance_scale = 7;
    request.guidance_rescale = 0.5;
    assert_fails(lk_pipeline_plan(p, dev, &request, &plan), LK_E_USAGE, "guidance_rescale");
    request.guidance_rescale = 0;
    request.concept_momentum_scale = 1.5;
    assert_fails(lk_pipeline_plan(p, dev, &request, &plan), LK_E_USAGE, "concept_momentum_scale: expected 0 to 1");
    request.concept_momentum_scale = 0.5;
    assert_ok(lk_pipeline_plan(p, dev, &request, &plan));
    for (int i = 0; i < plan.n_stages; i++) {
        if (!strcmp(plan.stages[i].name, "transformer")) assert_int_equal(plan.stages[i].calls, 51 * 4);
        if (!strcmp(plan.stages[i].name, "text_encoder")) assert_int_equal(plan.stages[i].calls, 4);
    }
    lk_pipeline_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call),       cmocka_unit_test(bits_in_bf16),      cmocka_unit_test(latents),
        cmocka_unit_test(quantiles),        cmocka_unit_test(rounded_threshold), cmocka_unit_test(refusals),
        cmocka_unit_test(refused_requests),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
