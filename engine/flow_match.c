#include "engine/flow_match.h"

#include <math.h>

double lk_flow_match_mu(const struct lk_flow_match_config *config, int64_t n_noise_tokens) {
    double slope = (config->max_shift - config->base_shift) / (config->max_image_seq_len - config->base_image_seq_len);
    return (double)n_noise_tokens * slope + (config->base_shift - slope * config->base_image_seq_len);
}

/* numpy.linspace(1, 1/n, n)[i], rounded as astype(float32) does. */
static float linear_sigma(int i, int n) {
    double last = 1.0 / n;
    if (n > 1 && i == n - 1) return (float)last;
    double step = n > 1 ? (last - 1.0) / (n - 1) : 0.0;
    return (float)(i * step + 1.0);
}

/* numpy computes array-with-scalar expressions in float32, with scalars rounded to float32 when they meet the array;
 * scalar-with-scalar expressions (exp(mu), shift - 1) are double. */
static float shifted_sigma(const struct lk_flow_match_config *config, float sigma, double mu) {
    if (!config->use_dynamic_shifting)
        return (float)config->shift * sigma / (1.0f + (float)(config->shift - 1.0) * sigma);
    float numerator = config->exponential ? (float)exp(mu) : (float)mu;
    return numerator / (numerator + (1.0f / sigma - 1.0f));
}

enum lk_code lk_flow_match_sigmas(const struct lk_flow_match_config *config, int n_steps, const float *input, double mu,
                                  float *sigmas, float *timesteps_1000) {
    if (n_steps < 1)
        return lk_fail(LK_E_CONFIG_VALUE, "number of inference steps: expected at least 1, got %d", n_steps);
    for (int i = 0; i < n_steps; i++)
        sigmas[i] = shifted_sigma(config, input ? input[i] : linear_sigma(i, n_steps), mu);
    if (config->shift_terminal != 0) {
        float scale = (1.0f - sigmas[n_steps - 1]) / (float)(1.0 - config->shift_terminal);
        for (int i = 0; i < n_steps; i++) sigmas[i] = 1.0f - (1.0f - sigmas[i]) / scale;
    }
    for (int i = 0; i < n_steps; i++) {
        if (!isfinite(sigmas[i]))
            return lk_fail(
                LK_E_CONFIG_VALUE,
                "scheduler: sigma %d of %d is not finite with mu %g, shift %g, shift_terminal %g; change the "
                "number of steps or the scheduler's config",
                i, n_steps, mu, config->shift, config->shift_terminal);
        timesteps_1000[i] = sigmas[i] * (float)config->num_train_timesteps;
    }
    sigmas[n_steps] = 0.0f;
    return LK_OK;
}

/* exp, sin and cos are evaluated in double and rounded once: the float nearest to the true value. */
void lk_timestep_embedding_scaled(float timestep, float scale, int dim, float *out) {
    int half = dim / 2;
    for (int k = 0; k < half; k++) {
        float exponent = -9.210340371976184f * (float)k / (float)half; /* -ln 10000 */
        float angle = timestep * (float)exp(exponent);
        angle *= scale;
        out[k] = (float)cos(angle);
        out[half + k] = (float)sin(angle);
    }
}

void lk_timestep_embedding(float timestep_1000, int dim, float *out) {
    lk_timestep_embedding_scaled(timestep_1000, 1.0f, dim, out);
}
