#include "models/step1x/region.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/step1x/run.h"

#define STEPS LK_STEP1X_STEPS
/* From 0: whole steps before the split, which follows the last of them; the one between; those from here on. */
#define N_WARM     6
#define REFRESH    15
#define LAST_MERGE 26
#define THRESHOLD  0.88  /* cosine to the source up to which a token is edited */
#define LOSS       0.02f /* of a velocity by decay, beyond which it is computed */

/* The authors' fit for v1p2: length of a step's velocity by that of the one before, less what the timestep explains. */
static const float decay[STEPS - 1] = {0.7936f, 0.9807f, 1.0063f, 1.0205f, 0.9946f, 1.0125f, 1.0116f, 1.0125f, 1.0172f,
                                       1.0171f, 1.0183f, 1.0170f, 1.0170f, 1.0236f, 1.0263f, 1.0264f, 1.0277f, 1.0321f,
                                       1.0338f, 1.0361f, 1.0396f, 1.0454f, 1.0492f, 1.0566f, 1.0696f, 1.0879f, 1.1179f};

/* As the reference has it: the fit in f16, the rest in f32. */
static float ratio(const float *timesteps, int i) {
    float half = decay[i - 1] < 1 ? 2048.0f : 1024.0f;
    return rintf(decay[i - 1] * half) / half * (1.0f + (timesteps[i] - timesteps[i - 1]) / 1000.0f);
}

static bool whole(int i) { return i < N_WARM || i == REFRESH || i >= LAST_MERGE; }

enum lk_code lk_step1x_region_check(struct lk_step1x_run *r) {
    const struct lk_request *q = r->walk.request;
    r->region.on = q->accel && !strcmp(q->accel, "region");
    if (!r->region.on) return LK_OK;
    if (q->num_inference_steps != STEPS)
        return lk_fail(LK_E_USAGE,
                       "num_inference_steps: expected %d with accel region, which was fitted to them, got %d", STEPS,
                       q->num_inference_steps);
    if (!r->source)
        return lk_fail(LK_E_USAGE,
                       "accel: region compares an edit with its source, and there is no image; leave it out");
    if (r->n_branches < 2)
        return lk_fail(LK_E_USAGE, "true_cfg_scale: expected more than 1 with accel region, got %g", q->true_cfg_scale);
    if (r->m->v1p1)
        return lk_fail(LK_E_USAGE, "accel: region is fitted to Step1X-Edit-v1p2, this is v1p1; leave it out");
    return LK_OK;
}

/* Which steps are left out depends on the schedule alone. */
static void choose_steps(struct lk_step1x_region *g, const float *timesteps) {
    float left = 1;
    for (int i = 0; i < STEPS; i++) {
        float by = whole(i) || i == N_WARM ? 1 : ratio(timesteps, i);
        left *= by;
        g->kept[i] = by < 1 && 1 - left <= LOSS;
        if (!g->kept[i]) left = 1;
    }
}

enum lk_code lk_step1x_region_prepare(struct lk_step1x_run *r) {
    const struct lk_step1x_transformer_config *c = &r->m->transformer.config;
    struct lk_arena *arena = &r->walk.dev->arena;
    struct lk_step1x_region *g = &r->region;
    int64_t channels = c->out_channels, n_rows = STEPS + 2;
    choose_steps(g, r->walk.timesteps);
    g->x = r->x, g->latents = r->walk.latents, g->velocity = r->walk.velocity, g->uncond_velocity = r->uncond_velocity;
    LK_TRY(LK_NEW(arena, &g->again, r->walk.dtype, r->n_noise, channels));
    LK_TRY(LK_NEW(arena, &g->ratios, r->walk.dtype, n_rows, channels));
    for (int i = 0; i < r->n_branches; i++) {
        struct lk_step1x_conditioning *b = &r->branches[i].conditioning;
        LK_TRY(
            LK_NEW(arena, &b->kv, r->walk.dtype, 2 * (c->num_layers + c->num_single_layers) * b->cos.shape[0], c->dim));
    }
    float *host = lk_calloc((size_t)(n_rows * channels), sizeof *host);
    if (!host) return lk_fail(LK_E_NOMEM, "accel region: out of memory");
    for (int i = 1; i < STEPS; i++)
        for (int64_t j = 0; j < channels; j++) host[i * channels + j] = ratio(r->walk.timesteps, i);
    enum lk_code rc = lk_upload_rounded(r->walk.dev, &g->ratios, host);
    lk_free(host);
    return rc;
}

/* Rows [0, n) of `t` on the host, as f32. */
static enum lk_code fetch(const struct lk_step1x_run *r, const struct lk_tensor *t, float *out) {
    size_t n = (size_t)lk_tensor_numel(t);
    if (t->dtype == LK_F32) return lk_download(r->walk.dev, out, t);
    const unsigned char *last = (unsigned char *)out + 2 * n; /* is overwritten behind what has been read */
    LK_TRY(lk_download(r->walk.dev, (unsigned char *)out + 2 * n, t));
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, last + 2 * i, sizeof half);
        out[i] = lk_bf16_to_f32(half);
    }
    return LK_OK;
}

/* The rows of t from `first` on, which are those of the tokens, to the order of the split (or back), run by run. */
static enum lk_code reorder(const struct lk_step1x_run *r, const struct lk_tensor *t, int64_t first, bool back) {
    const int32_t *order = r->region.order;
    struct lk_device *dev = r->walk.dev;
    struct lk_tensor rows = lk_tensor_rows(t, first, r->n_noise), before;
    size_t mark = lk_arena_mark(&dev->arena);
    LK_TRY(LK_NEW(&dev->arena, &before, t->dtype, r->n_noise, t->shape[1]));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &before, .x = &rows}));
    for (int64_t i = 0, end; i < r->n_noise; i = end) {
        for (end = i + 1; end < r->n_noise && order[end] == order[end - 1] + 1;) end++;
        struct lk_tensor from = lk_tensor_rows(&before, back ? i : order[i], end - i),
                         to = lk_tensor_rows(&rows, back ? order[i] : i, end - i);
        LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &to, .x = &from}));
    }
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code reorder_all(const struct lk_step1x_run *r, bool back) {
    LK_TRY(reorder(r, &r->region.x, 0, back));
    LK_TRY(reorder(r, &r->region.velocity, 0, back));
    for (int i = 0; i < r->n_branches; i++) {
        const struct lk_step1x_conditioning *c = &r->branches[i].conditioning;
        int64_t n_txt = r->branches[i].n_txt, n_rows = c->cos.shape[0];
        LK_TRY(reorder(r, &c->cos, n_txt, back));
        LK_TRY(reorder(r, &c->sin, n_txt, back));
        /* The whole steps that follow the last merge write all keys and values anew. */
        for (int64_t at = 0; !back && at < c->kv.shape[0]; at += n_rows) LK_TRY(reorder(r, &c->kv, at + n_txt, false));
    }
    return LK_OK;
}

/* Cosine of x + dt v, where the velocity would end, and the source, whose normalised row is rounded where latents are
 * bf16. Overwrites x. */
static float similarity(float *x, const float *v, const float *source, int64_t n, float dt, bool bf16) {
    float xx = 0, ss = 0, sum = 0;
    for (int64_t c = 0; c < n; c++) {
        x[c] += bf16 ? lk_round_bf16(lk_round_bf16(dt) * v[c]) : dt * v[c];
        xx += x[c] * x[c];
        ss += source[c] * source[c];
    }
    float x_norm = fmaxf(sqrtf(xx), 1e-12f), s_norm = fmaxf(sqrtf(ss), 1e-12f);
    if (bf16) s_norm = lk_round_bf16(s_norm);
    for (int64_t c = 0; c < n; c++) {
        float s = source[c] / s_norm;
        sum += x[c] / x_norm * (bf16 ? lk_round_bf16(s) : s);
    }
    return sum;
}

/* Erosion by the cross of 3 x 3, outside which nothing is edited, then dilation by the square of 5 x 5. */
static void clean(const bool *edited, bool *out, int width, int height) {
    memset(out, 0, (size_t)width * (size_t)height);
    for (int y = 1; y < height - 1; y++)
        for (int x = 1; x < width - 1; x++) {
            const bool *at = edited + y * width + x;
            if (!(at[0] && at[-1] && at[1] && at[-width] && at[width])) continue;
            for (int v = y < 2 ? 0 : y - 2; v <= y + 2 && v < height; v++)
                for (int u = x < 2 ? 0 : x - 2; u <= x + 2 && u < width; u++) out[v * width + u] = true;
        }
}

/* Edited tokens before the others, each in ascending order. values: x, then the velocity. */
static void find_order(struct lk_step1x_run *r, float *values, bool *edited) {
    struct lk_step1x_region *g = &r->region;
    int width = r->width / (2 * r->factor), height = r->height / (2 * r->factor);
    int64_t n = r->n_noise, c = g->velocity.shape[1];
    double threshold = r->walk.request->region_threshold;
    float most = (float)(threshold != 0 ? threshold : THRESHOLD), dt = -r->walk.sigmas[N_WARM - 1];
    for (int64_t i = 0; i < n; i++)
        edited[n + i] = similarity(values + i * c, values + (r->n_img + i) * c, values + (n + i) * c, c, dt,
                                   r->walk.dtype == LK_BF16) <= most;
    clean(edited + n, edited, width, height);
    g->n_edited = 0;
    for (int64_t i = 0; i < n; i++)
        if (edited[i]) g->order[g->n_edited++] = (int32_t)i;
    int64_t at = g->n_edited;
    for (int64_t i = 0; i < n; i++)
        if (!edited[i]) g->order[at++] = (int32_t)i;
}

static enum lk_code split(struct lk_step1x_run *r) {
    struct lk_step1x_region *g = &r->region;
    int64_t n_x = lk_tensor_numel(&g->x);
    float *values = lk_malloc((size_t)(n_x + lk_tensor_numel(&g->velocity)) * sizeof *values);
    bool *edited = lk_malloc(2 * (size_t)r->n_noise);
    if (!g->order) g->order = lk_malloc((size_t)r->n_noise * sizeof *g->order);
    enum lk_code rc = values && edited && g->order
                          ? LK_OK
                          : lk_fail(LK_E_NOMEM, "accel region: out of memory for %zu values", (size_t)n_x);
    if (!rc) rc = fetch(r, &g->x, values);
    if (!rc) rc = fetch(r, &g->velocity, values + n_x);
    if (!rc) find_order(r, values, edited);
    lk_free(values);
    lk_free(edited);
    return rc ? rc : reorder_all(r, false);
}

/* Tokens that move in this step: the first n. Where there are none two rows of zeros stand for them. */
static void move(struct lk_step1x_run *r, int64_t n, const struct lk_tensor *velocity) {
    struct lk_step1x_region *g = &r->region;
    bool all = n == r->n_noise;
    r->x = all ? g->x : lk_tensor_rows(&g->x, 0, n ? n : 1);
    r->walk.latents = n ? lk_tensor_rows(&g->x, 0, n) : lk_tensor_rows(&g->ratios, STEPS, 1);
    r->walk.velocity = n ? lk_tensor_rows(velocity, 0, n) : lk_tensor_rows(&g->ratios, STEPS + 1, 1);
    r->uncond_velocity = lk_tensor_rows(&g->uncond_velocity, 0, n ? n : 1);
}

enum lk_code lk_step1x_region_begin(struct lk_step1x_run *r, int i) {
    struct lk_step1x_region *g = &r->region;
    if (i == LAST_MERGE) LK_TRY(reorder_all(r, true));
    move(r, whole(i) ? r->n_noise : g->n_edited, &g->velocity);
    /* Without the source's rows also where all tokens are edited. */
    if (!whole(i) && g->n_edited) r->x = lk_tensor_rows(&g->x, 0, g->n_edited);
    g->idle = !whole(i) && (g->kept[i] || !g->n_edited);
    return LK_OK;
}

enum lk_code lk_step1x_region_end(struct lk_step1x_run *r, int i) {
    struct lk_step1x_region *g = &r->region;
    if (g->kept[i] && g->n_edited) {
        struct lk_tensor ratios = lk_tensor_rows(&g->ratios, i, 1), zeros = lk_tensor_rows(&g->ratios, STEPS, 1);
        struct lk_tensor by = LK_VIEW(&ratios, ratios.shape[1]), zero = LK_VIEW(&zeros, zeros.shape[1]),
                         y = lk_tensor_rows(&g->again, 0, g->n_edited);
        LK_TRY(lk_channel_affine(
            r->walk.dev, &(struct lk_channel_affine){.y = &y, .x = &r->walk.velocity, .mean = &zero, .std = &by}));
        r->walk.velocity = y;
    }
    if (i != N_WARM - 1 && i != REFRESH) return LK_OK;
    if (i == N_WARM - 1) LK_TRY(split(r));
    int64_t n_still = r->n_noise - g->n_edited;
    if (n_still) {
        struct lk_tensor x = lk_tensor_rows(&g->x, g->n_edited, n_still),
                         v = lk_tensor_rows(&g->velocity, g->n_edited, n_still);
        float dt = r->walk.sigmas[i == REFRESH ? LAST_MERGE : REFRESH] - r->walk.sigmas[i];
        LK_TRY(lk_euler_step(r->walk.dev, &(struct lk_euler_step){.x = &x, .v = &v, .dt = dt}));
    }
    move(r, g->n_edited, &g->velocity);
    return LK_OK;
}

void lk_step1x_region_count(const struct lk_step1x_run *r, int *n_whole, int *n_part) {
    *n_whole = *n_part = 0;
    for (int i = 0; i < STEPS; i++) {
        *n_whole += whole(i);
        *n_part += !whole(i) && !r->region.kept[i];
    }
}

void lk_step1x_region_all(struct lk_step1x_run *r) {
    move(r, r->n_noise, &r->region.velocity);
    r->x = lk_tensor_rows(&r->region.x, 0, r->n_noise);
}
