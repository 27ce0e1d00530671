/* Which times and noise levels a run passes. */
#include <math.h>
#include <string.h>

#include "models/sd/sampler.h"

#define T LK_SAMPLER_TRAIN_STEPS

/* torch.linspace: both halves count from their end, each value rounded once. */
static void linspace(float start, float end, float out[T]) {
    const float step = (end - start) / (float)(T - 1);
    for (int i = 0; i < T; i++) out[i] = i < T / 2 ? fmaf(step, (float)i, start) : fmaf(-step, (float)(T - 1 - i), end);
}

/* alphas_cumprod: torch's cumulative product sums in double and rounds every output. */
static void cumulate(const float alphas[T], float out[T]) {
    double product = 1;
    for (int i = 0; i < T; i++) out[i] = (float)(product *= (double)alphas[i]);
}

static void rescale_zero_snr(float cumprod[T], bool tiny) {
    float roots[T], alphas[T];
    for (int i = 0; i < T; i++) roots[i] = sqrtf(cumprod[i]);
    const float first = roots[0], last = roots[T - 1], scale = first / (first - last);
    for (int i = 0; i < T; i++) {
        roots[i] = (roots[i] - last) * scale;
        cumprod[i] = roots[i] * roots[i];
    }
    for (int i = 0; i < T; i++) {
        const float beta = 1 - (i ? cumprod[i] / cumprod[i - 1] : cumprod[i]);
        alphas[i] = 1 - beta;
    }
    cumulate(alphas, cumprod);
    if (tiny) cumprod[T - 1] = 0x1p-24f;
}

static void make_table(struct lk_sampler *s) {
    const struct lk_sampler_config *c = &s->config;
    float betas[T], alphas[T];
    if (c->scaled_linear)
        linspace((float)sqrt(c->beta_start), (float)sqrt(c->beta_end), betas);
    else
        linspace((float)c->beta_start, (float)c->beta_end, betas);
    for (int i = 0; i < T; i++) alphas[i] = 1 - (c->scaled_linear ? betas[i] * betas[i] : betas[i]);
    cumulate(alphas, s->alphas_cumprod);
    if (c->zero_snr) rescale_zero_snr(s->alphas_cumprod, c->kind != LK_SAMPLER_DDIM && c->kind != LK_SAMPLER_PNDM);
}

static float table_sigma(const struct lk_sampler *s, int t) {
    const float a = s->alphas_cumprod[t] > 0 ? s->alphas_cumprod[t] : 0x1p-24f; /* DDIM's 0 is for itself alone */
    return sqrtf((1 - a) / a);
}

static bool is_multistep(const struct lk_sampler *s) {
    return s->config.kind == LK_SAMPLER_DPM || s->config.kind == LK_SAMPLER_UNIPC;
}
static bool has_sigmas(const struct lk_sampler *s) {
    return s->config.kind != LK_SAMPLER_DDIM && s->config.kind != LK_SAMPLER_PNDM;
}

static enum lk_sampler_spacing spacing_of(const struct lk_sampler_config *c) {
    if (c->spacing) return c->spacing;
    return c->kind == LK_SAMPLER_PNDM || c->kind == LK_SAMPLER_DDIM ? LK_SPACING_LEADING : LK_SPACING_LINSPACE;
}

/* n_steps descending times, before what PNDM and Karras make of them. */
static enum lk_code space(const struct lk_sampler *s, double times[T]) {
    const int n = s->n_steps, more = is_multistep(s);
    switch (spacing_of(&s->config)) {
    case LK_SPACING_LEADING:
        for (int i = 0; i < n; i++) times[i] = (double)(n - 1 - i + more) * (T / (n + more)) + s->config.steps_offset;
        break;
    case LK_SPACING_LINSPACE: {
        const int last = n - 1 + more;
        for (int i = 0; i < n; i++) {
            const int k = last - i;
            times[i] = k == last && last ? T - 1 : (double)k * ((double)(T - 1) / (last ? last : 1));
            times[i] = s->config.kind == LK_SAMPLER_EULER || s->config.kind == LK_SAMPLER_EULER_ANCESTRAL
                           ? (double)(float)times[i]
                           : nearbyint(times[i]);
        }
        break;
    }
    default: {
        /* As numpy's arange counts, which for some numbers of steps finds one more. */
        const double step = (double)T / n;
        if (ceil((0 - (double)T) / -step) != n)
            return lk_fail(
                LK_E_USAGE,
                "num_inference_steps: %d cannot be spaced \"trailing\": the reference's floating-point range "
                "has one time more; take another number",
                n);
        for (int i = 0; i < n; i++) times[i] = nearbyint((double)T + i * -step) - 1;
    }
    }
    if (times[0] > T - 1)
        return lk_fail(LK_E_USAGE, "num_inference_steps: expected fewer than %d with a steps_offset of %d, got %d", T,
                       s->config.steps_offset, n);
    return LK_OK;
}

/* Between the table's neighbours. */
static double sigma_at(const struct lk_sampler *s, double t) {
    const int low = t >= T - 1 ? T - 2 : (int)t;
    const double a = table_sigma(s, low), b = table_sigma(s, low + 1);
    return (b - a) * (t - low) + a;
}

static double time_of(const struct lk_sampler *s, double sigma) {
    const double log_sigma = log(sigma > 1e-10 ? sigma : 1e-10);
    int low = 0;
    while (low < T - 2 && (double)logf(table_sigma(s, low + 1)) <= log_sigma) low++;
    const double a = logf(table_sigma(s, low)), b = logf(table_sigma(s, low + 1));
    double w = (a - log_sigma) / (a - b);
    w = w < 0 ? 0 : w > 1 ? 1 : w;
    return (1 - w) * low + w * (low + 1);
}

/* Noise levels by Karras et al. (2022), rho 7. */
static void karras(const struct lk_sampler *s, double times[T], double sigmas[T]) {
    const int n = s->n_steps;
    const double most = is_multistep(s) ? table_sigma(s, T - 1) : sigmas[0];
    const double least = is_multistep(s) ? table_sigma(s, 0) : sigmas[n - 1];
    const double a = pow(most, 1.0 / 7), b = pow(least, 1.0 / 7);
    for (int i = 0; i < n; i++) {
        sigmas[i] = pow(a + (n > 1 ? (double)i / (n - 1) : 0) * (b - a), 7);
        times[i] = time_of(s, sigmas[i]);
        if (is_multistep(s)) times[i] = nearbyint(times[i]);
    }
}

static enum lk_code check(const struct lk_sampler *s) {
    const struct lk_sampler_config *c = &s->config;
    const char *at = "scheduler/scheduler_config.json";
    if (s->n_steps < 1 || s->n_steps > T)
        return lk_fail(LK_E_USAGE, "num_inference_steps: expected 1 to %d, got %d", T, s->n_steps);
    if (c->kind == LK_SAMPLER_PNDM && !c->skip_prk_steps)
        return lk_fail(LK_E_CONFIG_VALUE, "%s: skip_prk_steps: expected true: no other PNDM is implemented", at);
    if (c->kind == LK_SAMPLER_DDIM && c->clip_sample)
        return lk_fail(LK_E_CONFIG_VALUE, "%s: clip_sample: expected false: no other DDIM is implemented", at);
    if (c->karras && (c->kind == LK_SAMPLER_PNDM || c->kind == LK_SAMPLER_DDIM))
        return lk_fail(LK_E_CONFIG_VALUE, "%s: use_karras_sigmas: PNDM and DDIM have none", at);
    if (c->zero_snr && c->kind == LK_SAMPLER_PNDM)
        return lk_fail(LK_E_CONFIG_VALUE, "%s: rescale_betas_zero_snr: PNDM does not have it", at);
    if (c->zero_snr && c->kind == LK_SAMPLER_DDIM && !c->v_prediction)
        return lk_fail(LK_E_CONFIG_VALUE, "%s: prediction_type: expected \"v_prediction\" with rescale_betas_zero_snr",
                       at);
    return LK_OK;
}

enum lk_code lk_sampler_begin(struct lk_sampler *s, const struct lk_sampler_config *config, int n_steps, double eta) {
    double times[T], sigmas[T];
    *s = (struct lk_sampler){.config = *config, .n_steps = n_steps, .n_calls = n_steps, .eta = eta};
    if (s->config.kind == LK_SAMPLER_EULER_ANCESTRAL) s->config.karras = false;
    LK_TRY(check(s));
    make_table(s);
    LK_TRY(space(s, times));
    for (int i = 0; i < n_steps; i++) sigmas[i] = sigma_at(s, times[i]);
    if (s->config.karras) karras(s, times, sigmas);
    for (int i = 0; i < n_steps; i++) {
        s->timesteps[i] = (float)times[i];
        s->sigmas[i] = (float)sigmas[i];
    }
    s->init_noise_sigma = 1;
    if (has_sigmas(s) && !is_multistep(s)) {
        const double most = s->sigmas[0];
        s->init_noise_sigma = spacing_of(config) == LK_SPACING_LEADING ? sqrt(most * most + 1) : most;
    }
    if (s->config.kind == LK_SAMPLER_PNDM && n_steps > 1) {
        if (n_steps == T || times[1] + T / n_steps > T - 1)
            return lk_fail(LK_E_USAGE, "num_inference_steps: %d is too many for pndm; take fewer", n_steps);
        memmove(s->timesteps + 2, s->timesteps + 1, (size_t)(n_steps - 1) * sizeof *s->timesteps);
        memmove(s->sigmas + 2, s->sigmas + 1, (size_t)(n_steps - 1) * sizeof *s->sigmas);
        s->n_calls++;
    }
    return LK_OK;
}
