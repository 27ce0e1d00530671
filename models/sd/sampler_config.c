#include <stdio.h>
#include <string.h>

#include "models/sd/sampler.h"

static const char *const classes[LK_SAMPLER_KINDS + 1] = {[LK_SAMPLER_PNDM] = "PNDMScheduler",
                                                          [LK_SAMPLER_DDIM] = "DDIMScheduler",
                                                          [LK_SAMPLER_EULER] = "EulerDiscreteScheduler",
                                                          [LK_SAMPLER_EULER_ANCESTRAL] =
                                                              "EulerAncestralDiscreteScheduler",
                                                          [LK_SAMPLER_DPM] = "DPMSolverMultistepScheduler",
                                                          [LK_SAMPLER_UNIPC] = "UniPCMultistepScheduler"};

/* In the order of LK_SAMPLER_NAMES. */
static const struct {
    const char *name;
    enum lk_sampler_kind kind;
    bool karras;
} samplers[] = {{"pndm", LK_SAMPLER_PNDM, false},
                {"ddim", LK_SAMPLER_DDIM, false},
                {"euler", LK_SAMPLER_EULER, false},
                {"euler-karras", LK_SAMPLER_EULER, true},
                {"euler-a", LK_SAMPLER_EULER_ANCESTRAL, false},
                {"dpm++", LK_SAMPLER_DPM, false},
                {"dpm++-karras", LK_SAMPLER_DPM, true},
                {"unipc", LK_SAMPLER_UNIPC, false},
                {"unipc-karras", LK_SAMPLER_UNIPC, true}};
#define N_SAMPLERS (sizeof samplers / sizeof *samplers)

enum lk_code lk_sampler_choose(struct lk_sampler_config *config, const char *name) {
    for (size_t i = 0; i < N_SAMPLERS; i++) {
        if (strcmp(samplers[i].name, name)) continue;
        config->kind = samplers[i].kind;
        config->karras = samplers[i].karras;
        return LK_OK;
    }
    return lk_fail(LK_E_USAGE, "scheduler: expected one of %s, got \"%.60s\"", LK_SAMPLER_NAMES, name);
}

const char *lk_sampler_name(const struct lk_sampler_config *config) {
    for (size_t i = 0; i < N_SAMPLERS; i++)
        if (samplers[i].kind == config->kind && samplers[i].karras == config->karras) return samplers[i].name;
    return samplers[config->kind].name;
}

static bool is(const char *text, const char *value) { return text && !strcmp(text, value); }

/* Keys of the six classes at the one value that is implemented. */
static void expect_defaults(struct lk_config *json) {
    static const char *const off[] = {"thresholding",        "use_exponential_sigmas", "use_beta_sigmas",
                                      "use_lu_lambdas",      "use_flow_sigmas",        "euler_at_final",
                                      "use_dynamic_shifting"};
    static const char *const on[] = {"lower_order_final", "predict_x0"};
    static const char *const nulls[] = {"trained_betas", "variance_type", "sigma_min", "sigma_max", "solver_p"};
    static const char *const inert[] = {"_diffusers_version", "sample_max_value",   "dynamic_thresholding_ratio",
                                        "clip_sample_range",  "lambda_min_clipped", "flow_shift",
                                        "time_shift_type",    "shift_terminal"};
    static const char *const solvers[] = {"midpoint", "bh2", NULL};
    int64_t disabled[1];
    size_t n_disabled = 0;
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) lk_config_expect_bool(json, off[i], false);
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) lk_config_expect_bool(json, on[i], true);
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++) lk_config_expect_null(json, nulls[i]);
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(json, inert[i]);
    lk_config_expect_string(json, "interpolation_type", "linear");
    lk_config_expect_string(json, "timestep_type", "discrete");
    lk_config_expect_string(json, "final_sigmas_type", "zero");
    lk_config_expect_string(json, "algorithm_type", "dpmsolver++");
    lk_config_expect_one_of(json, "solver_type", solvers);
    lk_config_expect_int(json, "solver_order", 2);
    lk_config_expect_int(json, "num_train_timesteps", LK_SAMPLER_TRAIN_STEPS);
    if (lk_config_has(json, "disable_corrector"))
        lk_config_ints(json, "disable_corrector", disabled, 0, &n_disabled);
    else
        lk_config_ignore(json, "disable_corrector");
}

enum lk_code lk_sampler_config_read(struct lk_sampler_config *out, struct lk_config *json) {
    static const char *const spacings[] = {"leading", "linspace", "trailing", NULL};
    static const char *const predictions[] = {"epsilon", "v_prediction", NULL};
    static const char *const schedules[] = {"linear", "scaled_linear", NULL};
    struct lk_sampler_config c = {0};
    const char *class_name = NULL, *spacing = NULL, *prediction = NULL, *schedule = NULL;
    int64_t offset = 0;
    expect_defaults(json);
    lk_config_expect_one_of(json, "_class_name", classes);
    lk_config_string(json, "_class_name", &class_name);
    for (int i = 0; i < LK_SAMPLER_KINDS; i++)
        if (is(class_name, classes[i])) c.kind = (enum lk_sampler_kind)i;
    lk_config_expect_one_of(json, "timestep_spacing", spacings);
    lk_config_string_or(json, "timestep_spacing", &spacing, NULL);
    for (int i = 0; spacings[i]; i++)
        if (is(spacing, spacings[i])) c.spacing = (enum lk_sampler_spacing)(LK_SPACING_LEADING + i);
    lk_config_expect_one_of(json, "prediction_type", predictions);
    lk_config_string_or(json, "prediction_type", &prediction, "epsilon");
    c.v_prediction = is(prediction, "v_prediction");
    lk_config_expect_one_of(json, "beta_schedule", schedules);
    lk_config_string_or(json, "beta_schedule", &schedule, "linear");
    c.scaled_linear = is(schedule, "scaled_linear");
    lk_config_number_or(json, "beta_start", &c.beta_start, 0.0001, 1e-9, 0.999);
    lk_config_number_or(json, "beta_end", &c.beta_end, 0.02, 1e-9, 0.999);
    lk_config_int_or(json, "steps_offset", &offset, 0, 0, LK_SAMPLER_TRAIN_STEPS - 1);
    c.steps_offset = (int)offset;
    lk_config_bool_or(json, "set_alpha_to_one", &c.set_alpha_to_one, c.kind == LK_SAMPLER_DDIM);
    lk_config_bool_or(json, "skip_prk_steps", &c.skip_prk_steps, false);
    lk_config_bool_or(json, "clip_sample", &c.clip_sample, c.kind == LK_SAMPLER_DDIM);
    lk_config_bool_or(json, "use_karras_sigmas", &c.karras, false);
    lk_config_bool_or(json, "rescale_betas_zero_snr", &c.zero_snr, false);
    *out = c;
    return lk_config_close(json);
}
