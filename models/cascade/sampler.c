#include "models/cascade/sampler.h"

#include <math.h>

#include "engine/bf16.h"

#define MOST_STEPS      1000
#define MOST_STEPS_BF16 250

enum lk_code lk_cascade_times(const char *key, int n_steps, bool bf16, float *times) {
    const int most = bf16 ? MOST_STEPS_BF16 : MOST_STEPS;
    if (n_steps < 1 || n_steps > most)
        return lk_fail(LK_E_USAGE, "%s: expected 1 to %d%s, got %d", key, most, bf16 ? " in bf16" : "", n_steps);
    /* torch.linspace: both halves count from their end. */
    const float step = -1 / (float)n_steps;
    for (int i = 0; i <= n_steps; i++)
        times[i] = i < (n_steps + 1) / 2 ? fmaf(step, (float)i, 1) : -step * (float)(n_steps - i);
    return LK_OK;
}

float lk_cascade_alpha(float time) {
    const float s = 0.008f, quarter = 1.57079632679489662f;
    const float first = cosf(s / (1 + s) * quarter), now = cosf((time + s) / (1 + s) * quarter);
    const float alpha = now * now / (first * first);
    return alpha < 1e-4f ? 1e-4f : alpha > 0.9999f ? 0.9999f : alpha;
}

void lk_cascade_advance(const struct lk_cascade_step *in) {
    const float now = lk_cascade_alpha(in->bf16 ? lk_round_bf16(in->time) : in->time),
                next = lk_cascade_alpha(in->next);
    const float alpha = now / next, outer = sqrtf(1 / alpha), root = sqrtf(1 - now);
    const float deviation = in->next > 0 ? sqrtf((1 - alpha) * (1 - next) / (1 - now)) : 0;
    for (int64_t i = 0; i < in->n; i++) {
        const float mean = outer * (in->x[i] - (1 - alpha) * in->prediction[i] / root);
        const float x = mean + deviation * in->noise[i];
        in->x[i] = in->bf16 ? lk_round_bf16(x) : x;
    }
}

void lk_cascade_guide(const float *cond, const float *uncond, float scale, bool bf16, int64_t n, float *y) {
    for (int64_t i = 0; i < n; i++) {
        const float d = cond[i] - uncond[i];
        const float x = scale < 0.5f ? fmaf(scale, d, uncond[i]) : fmaf(-d, 1 - scale, cond[i]);
        y[i] = bf16 ? lk_round_bf16(x) : x;
    }
}
