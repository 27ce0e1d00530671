#include "models/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "models/common/files.h"
#include "models/family.h"
#include "models/sd/sampler.h"

enum lk_code lk_sigmas_read(const char *flag, const char *text, float *out, int *n) {
    float before = 0;
    *n = 0;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        char one[64];
        double value;
        if (*n == LK_MAX_STEPS)
            return lk_fail(LK_E_USAGE, "%s: expected at most %d sigmas, got more", flag, LK_MAX_STEPS);
        snprintf(one, sizeof one, "%.*s", length < sizeof one ? (int)length : 0, at);
        LK_TRY(lk_read_number(flag, one, 0, 1, &value));
        const float sigma = (float)value;
        if (!(sigma > 0) || (*n && sigma >= before))
            return lk_fail(LK_E_USAGE, "%s: expected sigmas above 0, each smaller than the one before, got %s", flag,
                           one);
        if (out) out[*n] = sigma;
        before = sigma;
        ++*n;
        at += length;
        if (!*at) return LK_OK;
    }
}

enum lk_code lk_sigmas_check(const char *flag, const char *text, char **own) {
    int n;
    (void)own;
    return lk_sigmas_read(flag, text, NULL, &n);
}

#define LEAST_SHIFT 0.01
#define MOST_SHIFT  100

enum lk_code lk_flow_shift_check(const char *flag, const char *text, char **own) {
    double shift;
    (void)own;
    return lk_read_number(flag, text, LEAST_SHIFT, MOST_SHIFT, &shift);
}

static char *config_text(const struct lk_flow_match_config *c) {
    struct lk_text text = {0};
    char terminal[32] = "null";
    if (c->shift_terminal != 0) snprintf(terminal, sizeof terminal, "%.17g", c->shift_terminal);
    lk_text_add(&text,
                "{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"num_train_timesteps\":%d,"
                "\"use_dynamic_shifting\":%s,\"shift\":%.17g,\"shift_terminal\":%s,\"time_shift_type\":\"%s\","
                "\"base_image_seq_len\":%d,\"max_image_seq_len\":%d,\"base_shift\":%.17g,\"max_shift\":%.17g}",
                c->num_train_timesteps, c->use_dynamic_shifting ? "true" : "false", c->shift, terminal,
                c->exponential ? "exponential" : "linear", c->base_image_seq_len, c->max_image_seq_len, c->base_shift,
                c->max_shift);
    if (text.rc) lk_text_free(&text);
    return text.bytes;
}

static enum lk_code read_scheduler(const char *flag, const char *text, struct lk_flow_match_config *out) {
    struct lk_config *json;
    if (text[0] == '{')
        LK_TRY(lk_config_parse(&json, text, strlen(text), flag));
    else
        LK_TRY(lk_config_open(&json, text));
    LK_TRY(lk_scheduler_config_read(out, json));
    if (out->use_dynamic_shifting && out->base_image_seq_len == out->max_image_seq_len)
        return lk_fail(LK_E_CONFIG_VALUE, "%s: expected max_image_seq_len other than base_image_seq_len, both are %d",
                       text[0] == '{' ? flag : text, out->base_image_seq_len);
    return LK_OK;
}

/* A sampler of Stable Diffusion. */
static bool is_sampler(const char *text) {
    const size_t n = strlen(text);
    for (const char *at = LK_SAMPLER_NAMES; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (!strncmp(at, text, n) && (!at[n] || at[n] == '|')) return true;
    return false;
}

enum lk_code lk_scheduler_load(const char *flag, const char *text, char **own) {
    struct lk_flow_match_config config;
    if (!*text) return lk_fail(LK_E_USAGE, "%s: expected a path, got an empty string", flag);
    if (is_sampler(text)) return LK_OK; /* which model takes it is known when one is open */
    if (!strpbrk(text, "./{"))
        return lk_fail(LK_E_USAGE,
                       "%s: expected a scheduler_config.json, or of Stable Diffusion "
                       "one of " LK_SAMPLER_NAMES ", got \"%.60s\"",
                       flag, text);
    LK_TRY(read_scheduler(flag, text, &config));
    char *whole = config_text(&config);
    if (!whole) return lk_fail(LK_E_NOMEM, "%s: out of memory", flag);
    if (strcmp(whole, text) != 0)
        *own = whole;
    else
        lk_free(whole); /* taken as it is */
    return LK_OK;
}

enum lk_code lk_request_scheduler(const struct lk_request *request, const struct lk_flow_match_config *model,
                                  struct lk_flow_match_config *out) {
    *out = *model;
    if (request->scheduler && is_sampler(request->scheduler))
        return lk_fail(LK_E_USAGE,
                       "scheduler: expected a scheduler_config.json, got the sampler \"%s\", which Stable "
                       "Diffusion's models take",
                       request->scheduler);
    if (request->scheduler) return read_scheduler("scheduler", request->scheduler, out);
    if (!request->flow_shift) return LK_OK;
    LK_TRY(lk_read_number("flow_shift", request->flow_shift, LEAST_SHIFT, MOST_SHIFT, &out->shift));
    out->use_dynamic_shifting = false;
    out->shift_terminal = 0;
    return LK_OK;
}

/* The scheduler of Qwen-Image-Lightning: a mu of ln 3 for every size, and the last sigma where it falls. */
#define LIGHTNING                                                                                                      \
    "{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"num_train_timesteps\":1000,"                               \
    "\"use_dynamic_shifting\":true,\"shift\":1,\"shift_terminal\":null,\"time_shift_type\":\"exponential\","           \
    "\"base_image_seq_len\":256,\"max_image_seq_len\":8192,\"base_shift\":1.0986122886681098,"                         \
    "\"max_shift\":1.0986122886681098}"

static const struct {
    const char *name;
    unsigned family;
    const char *steps, *guidance, *value, *schedule, *given; /* parameters and their values, but for steps */
} presets[] = {
    {"qwen-lightning-4", LK_FOR_QWEN, "4", "true-cfg-scale", "1", "scheduler", LIGHTNING},
    {"qwen-lightning-8", LK_FOR_QWEN, "8", "true-cfg-scale", "1", "scheduler", LIGHTNING},
    {"flux2-turbo-8", LK_FOR_FLUX2, "8", "guidance-scale", "2.5", "input-sigmas",
     "1,0.6509,0.4374,0.2932,0.1893,0.1108,0.0495,0.00031"},
};

static bool given(const struct lk_job *job, const char *name) { return lk_job_given(job, lk_parameter_named(name)); }

static enum lk_code give(struct lk_job *job, const char *name, const char *value) {
    if (given(job, name)) return LK_OK;
    return lk_parameter_parse(lk_parameter_named(name), job, "--preset", value);
}

static enum lk_code apply_preset(struct lk_job *job, const struct lk_pipeline *pipeline) {
    const char *preset = job->request.preset;
    size_t i = 0;
    while (i < sizeof presets / sizeof *presets && strcmp(presets[i].name, preset) != 0) i++;
    if (i == sizeof presets / sizeof *presets)
        return lk_fail(LK_E_USAGE, "--preset: expected %s, got \"%.64s\"", lk_parameter_named("preset")->choices,
                       preset);
    if (!(presets[i].family & pipeline->family->bit))
        return lk_fail(LK_E_USAGE, "--preset: %s is not for %s; leave it out", preset, pipeline->name);
    if (job->request.accel)
        return lk_fail(LK_E_USAGE,
                       "--accel: the few steps of preset %s are too far apart to leave blocks out; leave one out",
                       preset);
    const bool schedule = given(job, "scheduler") || given(job, "flow-shift") || given(job, "input-sigmas");
    if (!given(job, "input-sigmas")) LK_TRY(give(job, "num-inference-steps", presets[i].steps));
    LK_TRY(give(job, presets[i].guidance, presets[i].value));
    return schedule ? LK_OK : give(job, presets[i].schedule, presets[i].given);
}

enum lk_code lk_schedule_complete(struct lk_job *job, const struct lk_pipeline *pipeline) {
    int n;
    char steps[16];
    const bool has_presets = lk_parameter_named("preset")->families & pipeline->family->bit;
    if (job->request.preset && has_presets) LK_TRY(apply_preset(job, pipeline));
    if (job->request.scheduler && job->request.flow_shift)
        return lk_fail(LK_E_USAGE, "flow_shift: a scheduler with a shift of its own is given; leave one out");
    if (!job->request.input_sigmas) return LK_OK;
    LK_TRY(lk_sigmas_read("--sigmas", job->request.input_sigmas, NULL, &n));
    if (given(job, "num-inference-steps") && job->request.num_inference_steps != n)
        return lk_fail(LK_E_USAGE, "--num-inference-steps: %d, but there are %d sigmas%s%s; leave one out",
                       job->request.num_inference_steps, n, job->request.preset ? " in preset " : "",
                       job->request.preset ? job->request.preset : "");
    snprintf(steps, sizeof steps, "%d", n);
    return lk_parameter_parse(lk_parameter_named("num-inference-steps"), job, "--sigmas", steps);
}
