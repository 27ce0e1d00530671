/* The samplers of Stable Diffusion against diffusers' (generate_sd_samplers.py): times, noise levels, and every step.
 */
#include <math.h>

#include "models/sd/sampler.h"
#include "tests/common/golden.h"
#include "tests/common/test.h"

#define MOST 16

struct combination {
    char name[32], spacing[16], prediction;
    int steps;
    double eta;
};

static struct golden golden;
static struct lk_device *dev;

static int open_all(void **state) {
    (void)state;
    golden_open(&golden, "golden/data/sd_samplers.safetensors", "sd_samplers");
    return lk_device_cpu_create(1, &dev) != LK_OK;
}

static int close_all(void **state) {
    (void)state;
    lk_device_free(dev);
    golden_close(&golden);
    return 0;
}

static void read_config(const char *json, struct lk_sampler_config *out) {
    struct lk_config *config;
    assert_ok(lk_config_parse(&config, json, strlen(json), "scheduler_config.json"));
    assert_ok(lk_sampler_config_read(out, config));
}

static void begin(struct lk_sampler *s, const struct combination *c) {
    char json[512];
    struct lk_sampler_config config;
    snprintf(json, sizeof json,
             "{\"_class_name\":\"PNDMScheduler\",\"beta_start\":0.00085,\"beta_end\":0.012,\"beta_schedule\":"
             "\"scaled_linear\",\"steps_offset\":1,\"skip_prk_steps\":true,\"set_alpha_to_one\":false,\"clip_sample\":"
             "false,\"timestep_spacing\":\"%s\",\"prediction_type\":\"%s\",\"rescale_betas_zero_snr\":%s}",
             c->spacing, c->prediction == 'e' ? "epsilon" : "v_prediction", c->prediction == 'z' ? "true" : "false");
    read_config(json, &config);
    assert_ok(lk_sampler_choose(&config, c->name));
    assert_string_equal(lk_sampler_name(&config), c->name);
    assert_ok(lk_sampler_begin(s, &config, c->steps, c->eta));
}

static const float *stored(const char *key, const char *what, size_t *n) {
    char name[128];
    snprintf(name, sizeof name, "%s.%s", key, what);
    const struct lk_st_tensor *t = lk_safetensors_find(&golden.st, name);
    if (n) *n = t ? (size_t)lk_tensor_numel(&t->tensor) : 0;
    return t ? t->tensor.data : NULL;
}

static void compare_levels(const char *key, const struct lk_sampler *s) {
    size_t n;
    const float *times = stored(key, "timesteps", &n), *sigmas, *init = stored(key, "init", NULL);
    const bool karras_euler = s->config.kind == LK_SAMPLER_EULER && s->config.karras;
    assert_int_equal(n, s->n_calls);
    for (size_t i = 0; i < n; i++) {
        const float bound = karras_euler ? 4e-7f * times[i] : 0; /* through a logarithm */
        if (!(fabsf(s->timesteps[i] - times[i]) <= bound))
            fail_msg("%s: time %zu: %.9g, expected %.9g", key, i, (double)s->timesteps[i], (double)times[i]);
    }
    assert_true(fabs(s->init_noise_sigma - (double)*init) <= 1.2e-7 * (double)*init);
    if (!(sigmas = stored(key, "sigmas", &n))) return;
    assert_int_equal(n, s->n_calls + 1);
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(s->sigmas[i] - sigmas[i]) <= (s->config.zero_snr ? 1e-6f : 1.2e-7f) * sigmas[i]))
            fail_msg("%s: sigma %zu: %.9g, expected %.9g", key, i, (double)s->sigmas[i], (double)sigmas[i]);
}

/* Relative error of the worst step. */
static double run(const char *key, const struct lk_sampler *s) {
    const float *expected = stored(key, "steps", NULL);
    const struct lk_tensor *all = &lk_safetensors_find(&golden.st, "predictions")->tensor;
    const int64_t n = all->shape[1];
    float x[MOST], prediction[MOST], noise[MOST], kept[LK_SAMPLER_KEPT][MOST];
    struct lk_tensor tx = LK_TENSOR(x, LK_F32, 1, n), tp = LK_TENSOR(prediction, LK_F32, 1, n);
    struct lk_tensor tn = LK_TENSOR(noise, LK_F32, 1, n), tk[LK_SAMPLER_KEPT];
    double worst = 0;
    for (int k = 0; k < LK_SAMPLER_KEPT; k++) tk[k] = LK_TENSOR(kept[k], LK_F32, 1, n);
    assert_true(n <= MOST && lk_sampler_n_kept(s) <= LK_SAMPLER_KEPT);
    const float *start = lk_safetensors_find(&golden.st, "latents")->tensor.data;
    for (int64_t j = 0; j < n; j++) x[j] = start[j] * (float)s->init_noise_sigma;
    for (int i = 0; i < s->n_calls; i++) {
        memcpy(prediction, (const float *)all->data + i * n, (size_t)n * sizeof *x);
        memcpy(noise, (const float *)lk_safetensors_find(&golden.st, "noise")->tensor.data + i * n,
               (size_t)n * sizeof *x);
        const struct lk_sampler_step step = {
            .x = &tx, .prediction = &tp, .noise = lk_sampler_draws(s) ? &tn : NULL, .kept = tk};
        assert_ok(lk_sampler_advance(dev, s, i, &step));
        const double error = test_relative_error(x, expected + i * n, (size_t)n);
        if (!(error <= worst)) worst = error;
    }
    return worst;
}

/* The last step of a schedule with zero SNR begins at sigma 4096, where f32 has four digits less. */
static void every_combination(void **state) {
    (void)state;
    int n = 0;
    double worst = 0;
    for (size_t i = 0; i < golden.st.n_tensors; i++) {
        const char *name = golden.st.tensors[i].name, *end = strstr(name, ".steps");
        struct combination c = {0};
        struct lk_sampler s;
        char key[96];
        if (!end) continue;
        snprintf(key, sizeof key, "%.*s", (int)(end - name), name);
        assert_int_equal(sscanf(key, "%31[^/]/%15[^/]/%d/%c", c.name, c.spacing, &c.steps, &c.prediction), 4);
        if (!strcmp(c.name, "ddim-eta")) c.name[4] = 0, c.eta = 1;
        begin(&s, &c);
        compare_levels(key, &s);
        const double error = run(key, &s), bound = c.prediction == 'z' ? 1e-4 : 5e-6;
        if (!(error <= bound)) fail_msg("%s: relative error %.3g, allowed %.3g", key, error, bound);
        if (c.prediction != 'z' && error > worst) worst = error;
        n++;
    }
    print_message("%d combinations, worst %.2g\n", n, worst);
    assert_true(n > 100);
}

/* The tables of the released models at the steps that are common. */
static void known_schedules(void **state) {
    (void)state;
    const struct {
        struct combination c;
        int n_calls;
        struct {
            int i;
            double time, sigma; /* 0: not looked at */
        } at[4];
    } known[] = {
        {{"pndm", "leading", 'e', 50, 0}, 51, {{0, 981, 0}, {1, 961, 0}, {2, 961, 0}, {50, 1, 0}}},
        {{"euler", "leading", 'e', 30, 0},
         30,
         {{0, 958, 11.47685051}, {1, 925, 9.543585777}, {2, 892, 8.004313469}, {29, 1, 0.04131447896}}},
        {{"dpm++", "leading", 'e', 30, 0},
         30,
         {{0, 961, 11.67605019}, {1, 929, 9.754843712}, {28, 65, 0.2628452778}, {29, 33, 0.1792591661}}},
        {{"dpm++-karras", "leading", 'e', 30, 0},
         30,
         {{0, 999, 14.61464691}, {1, 975, 12.66060829}, {28, 1, 0.04085816443}, {29, 0, 0.02916753292}}},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        struct lk_sampler s;
        begin(&s, &known[k].c);
        assert_int_equal(s.n_calls, known[k].n_calls);
        for (int j = 0; j < 4; j++) {
            const int i = known[k].at[j].i;
            assert_true(s.timesteps[i] == (float)known[k].at[j].time);
            if (known[k].at[j].sigma > 0)
                assert_true(fabs((double)s.sigmas[i] - known[k].at[j].sigma) <= 1.2e-7 * known[k].at[j].sigma);
        }
        assert_true(s.sigmas[s.n_calls] == 0);
    }
    struct lk_sampler s;
    begin(&s, &known[0].c);
    static const struct {
        int t;
        double value;
    } cumprod[] = {{0, 0.99914998},   {1, 0.998296},      {21, 0.98038065},
                   {500, 0.27633247}, {961, 0.007281722}, {999, 0.0046600951}};
    for (size_t i = 0; i < sizeof cumprod / sizeof *cumprod; i++)
        assert_true(fabs((double)s.alphas_cumprod[cumprod[i].t] - cumprod[i].value) <= 6e-8 * cumprod[i].value);
}

static void refusals(void **state) {
    (void)state;
    struct lk_sampler_config c;
    struct lk_sampler s;
    struct lk_config *config;
#define BETAS "\"beta_start\":0.00085,\"beta_end\":0.012,\"beta_schedule\":\"scaled_linear\""
    read_config("{\"_class_name\":\"DDIMScheduler\"," BETAS "}", &c);
    assert_fails(lk_sampler_begin(&s, &c, 10, 0), LK_E_CONFIG_VALUE, "clip_sample: expected false");
    read_config("{\"_class_name\":\"PNDMScheduler\"," BETAS "}", &c);
    assert_fails(lk_sampler_begin(&s, &c, 10, 0), LK_E_CONFIG_VALUE, "skip_prk_steps: expected true");
    read_config("{\"_class_name\":\"EulerDiscreteScheduler\"," BETAS
                ",\"steps_offset\":1,\"timestep_spacing\":\"leading\"}",
                &c);
    assert_fails(lk_sampler_begin(&s, &c, 0, 0), LK_E_USAGE, "num_inference_steps: expected 1 to 1000, got 0");
    assert_fails(lk_sampler_begin(&s, &c, 1001, 0), LK_E_USAGE, "num_inference_steps: expected 1 to 1000, got 1001");
    assert_fails(lk_sampler_begin(&s, &c, 1000, 0), LK_E_USAGE, "fewer than 1000 with a steps_offset of 1");
    assert_ok(lk_sampler_begin(&s, &c, 999, 0));
    assert_fails(lk_sampler_choose(&c, "heun"), LK_E_USAGE, "scheduler: expected one of pndm|ddim|");
    c.spacing = LK_SPACING_TRAILING;
    assert_fails(lk_sampler_begin(&s, &c, 61, 0), LK_E_USAGE, "61 cannot be spaced \"trailing\"");
    assert_ok(lk_sampler_begin(&s, &c, 60, 0));
    c.zero_snr = true;
    c.kind = LK_SAMPLER_DDIM;
    assert_fails(lk_sampler_begin(&s, &c, 10, 0), LK_E_CONFIG_VALUE, "\"v_prediction\" with rescale_betas_zero_snr");
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\"_class_name\":\"HeunDiscreteScheduler\"}", "\"_class_name\""},
        {"{\"_class_name\":\"DDIMScheduler\",\"beta_schedule\":\"squaredcos_cap_v2\"}", "\"beta_schedule\""},
        {"{\"_class_name\":\"DDIMScheduler\",\"trained_betas\":[0.1]}", "\"trained_betas\""},
        {"{\"_class_name\":\"DDIMScheduler\",\"prediction_type\":\"sample\"}", "\"prediction_type\""},
        {"{\"_class_name\":\"EulerDiscreteScheduler\",\"use_beta_sigmas\":true}", "\"use_beta_sigmas\""},
        {"{\"_class_name\":\"DPMSolverMultistepScheduler\",\"algorithm_type\":\"sde-dpmsolver++\"}",
         "\"algorithm_type\""},
        {"{\"_class_name\":\"DPMSolverMultistepScheduler\",\"solver_order\":3}", "\"solver_order\""},
        {"{\"_class_name\":\"UniPCMultistepScheduler\",\"disable_corrector\":[0]}", "\"disable_corrector\""},
        {"{\"_class_name\":\"DDIMScheduler\",\"num_train_timesteps\":500}", "\"num_train_timesteps\""},
        {"{\"_class_name\":\"DDIMScheduler\",\"unheard\":1}", "\"unheard\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_ok(lk_config_parse(&config, bad[i].text, strlen(bad[i].text), "s.json"));
        const enum lk_code rc = lk_sampler_config_read(&c, config);
        if (!rc || !strstr(lk_error_text(), bad[i].says)) fail_msg("%s: %s", bad[i].text, lk_error_text());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination),
        cmocka_unit_test(known_schedules),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
