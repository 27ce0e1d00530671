/* The steps: each one or two sums of scaled tensors. */
#include "models/sd/sampler.h"

#include <math.h>

#define T LK_SAMPLER_TRAIN_STEPS

/* A sum in the making. */
struct sum {
    struct lk_weighted_sum op;
    int n;
};

static void add(struct sum *sum, double scale, const struct lk_tensor *x) {
    sum->op.x[sum->n] = x;
    sum->op.scale[sum->n++] = (float)scale;
}
static enum lk_code put(struct lk_device *dev, struct sum *sum, const struct lk_tensor *y) {
    sum->op.y = y;
    return lk_weighted_sum(dev, &sum->op);
}

int lk_sampler_n_kept(const struct lk_sampler *s) {
    static const int n_kept[LK_SAMPLER_KINDS] = {[LK_SAMPLER_PNDM] = 5, [LK_SAMPLER_DPM] = 2, [LK_SAMPLER_UNIPC] = 4};
    return n_kept[s->config.kind];
}

bool lk_sampler_draws(const struct lk_sampler *s) {
    return s->config.kind == LK_SAMPLER_EULER_ANCESTRAL || (s->config.kind == LK_SAMPLER_DDIM && s->eta > 0);
}

enum lk_code lk_sampler_scale(struct lk_device *dev, const struct lk_sampler *s, int i, const struct lk_tensor *x,
                              const struct lk_tensor *y) {
    const bool scales = s->config.kind == LK_SAMPLER_EULER || s->config.kind == LK_SAMPLER_EULER_ANCESTRAL;
    const double sigma = s->sigmas[i];
    struct sum sum = {0};
    add(&sum, scales ? 1 / sqrt(sigma * sigma + 1) : 1, x);
    return put(dev, &sum, y);
}

/* The clean picture and the noise that a prediction means, each of x and the prediction p: x0 = a x + b p, e = c x + d
 * p, for x = alpha x0 + sigma e. */
struct meaning {
    double a, b, c, d;
};
static struct meaning meaning_of(const struct lk_sampler *s, double alpha, double sigma) {
    if (s->config.v_prediction) return (struct meaning){alpha, -sigma, sigma, alpha};
    return (struct meaning){1 / alpha, -sigma / alpha, 0, 1};
}

static double cumprod_at(const struct lk_sampler *s, int t) {
    return t >= 0 ? (double)s->alphas_cumprod[t] : s->config.set_alpha_to_one ? 1 : (double)s->alphas_cumprod[0];
}

static enum lk_code ddim(struct lk_device *dev, const struct lk_sampler *s, int i, const struct lk_sampler_step *in) {
    const int t = (int)s->timesteps[i];
    const double now = cumprod_at(s, t), next = cumprod_at(s, t - T / s->n_steps);
    const double deviation = s->eta * sqrt((1 - next) / (1 - now) * (1 - now / next));
    const struct meaning m = meaning_of(s, sqrt(now), sqrt(1 - now));
    const double alpha = sqrt(next), sigma = sqrt(fmax(0, 1 - next - deviation * deviation));
    struct sum sum = {0};
    add(&sum, alpha * m.a + sigma * m.c, in->x);
    add(&sum, alpha * m.b + sigma * m.d, in->prediction);
    if (s->eta > 0) add(&sum, deviation, in->noise);
    return put(dev, &sum, in->x);
}

/* kept: the last four predictions, as a ring, then x as it was at call 0. Call 1 is not among the predictions. */
static enum lk_code pndm(struct lk_device *dev, const struct lk_sampler *s, int i, const struct lk_sampler_step *in) {
    static const double adams[4][4] = {
        {1}, {3.0 / 2, -1.0 / 2}, {23.0 / 12, -16.0 / 12, 5.0 / 12}, {55.0 / 24, -59.0 / 24, 37.0 / 24, -9.0 / 24}};
    const int stride = T / s->n_steps, before = i == 1 ? stride : 0;
    const int t = (int)s->timesteps[i] + before, p = (int)s->timesteps[i] - (i == 1 ? 0 : stride);
    const double now = cumprod_at(s, t), next = cumprod_at(s, p);
    const double scale = (next - now) / (now * sqrt(1 - next) + sqrt(now * (1 - now) * next)); /* of the mean of
                                                                                                  predictions */
    const int newest = i < 2 ? 0 : i - 1, n = i < 2 ? 1 : i < 4 ? i : 4;
    const struct lk_tensor *first = &in->kept[4], *x = i == 1 ? first : in->x;
    struct sum sum = {0}, copy = {0};
    double a = sqrt(next / now), b = 0; /* v-prediction: the prediction means sqrt(now) p + sqrt(1 - now) x */
    if (s->config.v_prediction) a -= scale * sqrt(1 - now), b = scale * sqrt(now);
    if (!s->config.v_prediction) b = scale;
    add(&copy, 1, i ? in->prediction : in->x);
    if (!i) LK_TRY(put(dev, &copy, first));
    if (!i) copy = (struct sum){0}, add(&copy, 1, in->prediction);
    if (i != 1) LK_TRY(put(dev, &copy, &in->kept[newest % 4]));
    add(&sum, a, x);
    if (i == 1) {
        add(&sum, -b / 2, in->prediction);
        add(&sum, -b / 2, &in->kept[0]);
    }
    for (int k = 0; i != 1 && k < n; k++) add(&sum, -b * adams[n - 1][k], &in->kept[(newest - k) % 4]);
    return put(dev, &sum, in->x);
}

static enum lk_code euler(struct lk_device *dev, const struct lk_sampler *s, int i, const struct lk_sampler_step *in) {
    const double sigma = s->sigmas[i], next = s->sigmas[i + 1];
    double down = next, up = 0;
    if (s->config.kind == LK_SAMPLER_EULER_ANCESTRAL) {
        up = sqrt(next * next * (sigma * sigma - next * next) / (sigma * sigma));
        down = sqrt(next * next - up * up);
    }
    /* x' = x + (x - x0) / sigma (down - sigma), where x0 = a x + b p */
    const double q = sigma * sigma + 1, step = (down - sigma) / sigma;
    const double a = s->config.v_prediction ? 1 / q : 1, b = s->config.v_prediction ? -sigma / sqrt(q) : -sigma;
    struct sum sum = {0};
    add(&sum, 1 + step * (1 - a), in->x);
    add(&sum, -step * b, in->prediction);
    if (in->noise) add(&sum, up, in->noise);
    return put(dev, &sum, in->x);
}

/* Of the variance-preserving form: alpha, sigma and the logarithm of their ratio. */
struct level {
    double alpha, sigma, lambda;
};
static struct level level_of(const struct lk_sampler *s, int i) {
    const double sigma = s->sigmas[i], alpha = 1 / sqrt(sigma * sigma + 1);
    return (struct level){alpha, sigma * alpha, sigma > 0 ? -log(sigma) : (double)INFINITY};
}

/* `to` = the clean picture at call i. */
static enum lk_code clean(struct lk_device *dev, const struct lk_sampler *s, int i, const struct lk_sampler_step *in,
                          const struct lk_tensor *to) {
    const struct level l = level_of(s, i);
    const struct meaning m = meaning_of(s, l.alpha, l.sigma);
    struct sum sum = {0};
    add(&sum, m.a, in->x);
    add(&sum, m.b, in->prediction);
    return put(dev, &sum, to);
}

/* kept: clean pictures of even and odd calls. */
static enum lk_code dpm(struct lk_device *dev, const struct lk_sampler *s, int i, const struct lk_sampler_step *in) {
    const struct lk_tensor *m = &in->kept[i % 2], *before = &in->kept[(i + 1) % 2];
    const struct level now = level_of(s, i), next = level_of(s, i + 1);
    const double h = next.lambda - now.lambda, q = next.alpha * expm1(-h);
    struct sum sum = {0};
    LK_TRY(clean(dev, s, i, in, m));
    add(&sum, next.sigma / now.sigma, in->x);
    if (i == 0 || i + 1 == s->n_steps) {
        add(&sum, -q, m);
    } else {
        const double r = (now.lambda - level_of(s, i - 1).lambda) / h;
        add(&sum, -q * (1 + 0.5 / r), m);
        add(&sum, q * 0.5 / r, before);
    }
    return put(dev, &sum, in->x);
}

static int order_at(const struct lk_sampler *s, int i) {
    const int left = s->n_steps - i, most = left < 2 ? left : 2;
    return i + 1 < most ? i + 1 : most;
}

/* x, which came from `from` (x of call i - 1), corrected by the clean picture that it has shown itself to have. */
static enum lk_code correct(struct lk_device *dev, const struct lk_sampler *s, int i,
                            const struct lk_sampler_step *in) {
    const struct lk_tensor *m = &in->kept[i % 3], *m1 = &in->kept[(i + 2) % 3], *m2 = &in->kept[(i + 1) % 3];
    const struct level now = level_of(s, i), from = level_of(s, i - 1);
    const double h = now.lambda - from.lambda, phi = expm1(-h), q = now.alpha * phi;
    struct sum sum = {0};
    add(&sum, now.sigma / from.sigma, &in->kept[3]);
    if (order_at(s, i - 1) == 1) {
        add(&sum, -q / 2, m1);
        add(&sum, -q / 2, m);
    } else {
        const double r = (level_of(s, i - 2).lambda - from.lambda) / h, b1 = (phi / -h - 1) / phi;
        const double b2 = 2 * ((phi / -h - 1) / -h - 0.5) / phi, rho1 = (b1 - b2) / (1 - r), rho2 = b1 - rho1;
        add(&sum, -q * (1 - rho1 / r - rho2), m1);
        add(&sum, -q * rho1 / r, m2);
        add(&sum, -q * rho2, m);
    }
    return put(dev, &sum, in->x);
}

/* kept: clean pictures of the last three calls, as a ring, then the last call's corrected x. */
static enum lk_code unipc(struct lk_device *dev, const struct lk_sampler *s, int i, const struct lk_sampler_step *in) {
    const struct lk_tensor *m = &in->kept[i % 3], *before = &in->kept[(i + 2) % 3];
    const struct level now = level_of(s, i), next = level_of(s, i + 1);
    const double h = next.lambda - now.lambda, q = next.alpha * expm1(-h);
    struct sum sum = {0}, copy = {0};
    LK_TRY(clean(dev, s, i, in, m));
    if (i) LK_TRY(correct(dev, s, i, in));
    add(&copy, 1, in->x);
    LK_TRY(put(dev, &copy, &in->kept[3]));
    add(&sum, next.sigma / now.sigma, in->x);
    if (order_at(s, i) == 1) {
        add(&sum, -q, m);
    } else {
        const double r = (level_of(s, i - 1).lambda - now.lambda) / h;
        add(&sum, -q * (1 - 0.5 / r), m);
        add(&sum, -q * 0.5 / r, before);
    }
    return put(dev, &sum, in->x);
}

enum lk_code lk_sampler_advance(struct lk_device *dev, const struct lk_sampler *s, int i,
                                const struct lk_sampler_step *step) {
    static enum lk_code (*const steps[LK_SAMPLER_KINDS])(struct lk_device *, const struct lk_sampler *, int,
                                                         const struct lk_sampler_step *) = {
        [LK_SAMPLER_PNDM] = pndm,   [LK_SAMPLER_DDIM] = ddim,
        [LK_SAMPLER_EULER] = euler, [LK_SAMPLER_EULER_ANCESTRAL] = euler,
        [LK_SAMPLER_DPM] = dpm,     [LK_SAMPLER_UNIPC] = unipc};
    return steps[s->config.kind](dev, s, i, step);
}
