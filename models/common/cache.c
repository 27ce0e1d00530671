#include "models/common/cache.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/family.h"
#include "models/parameters.h"

static const char *const lists[LK_CACHE_GATES] = {"double", "single"}; /* names of gates in the recipe */

enum { LEAST_STEPS = 10 };

/* Published for these models, by the names of `likeness models`: TensorRT-LLM's pipeline_flux2.py (after its pull
 * request 11868, before which it had Wan's) and mlx-teacache's fit of ten prompts at 512 x 512. Nobody has published
 * one of Qwen-Image-Edit, Step1X-Edit or FLUX.2-klein. */
static const struct {
    const char *model;
    double poly[LK_CACHE_POLY];
    int n;
} published[] = {
    {"flux2-dev", {104.582360, -6.87605554, -0.0861659379, 0.0537600252}, 4},
    {"qwen-image", {45.1442944188745, -52.91131412057809, 17.078368811436963, 0.10393043235768819, 0}, 5},
};

static enum lk_code find_poly(const char *model, struct lk_cache_rule *rule) {
    if (rule->method != LK_CACHE_TEA || rule->n_poly || rule->listed) return LK_OK;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        if (strcmp(published[i].model, model) != 0) continue;
        memcpy(rule->poly, published[i].poly, sizeof rule->poly);
        rule->n_poly = published[i].n;
        return LK_OK;
    }
    return lk_fail(LK_E_USAGE,
                   "accel: nobody has published teacache's polynomial for %s; give one, as teacache,threshold=0.2,"
                   "poly=45:-52:17:0.1:0, or take fbcache",
                   model);
}

enum lk_code lk_cache_begin_walk(struct lk_walk *w, const struct lk_pipeline *pipeline) {
    const char *accel = w->request->accel;
    struct lk_cache_rule rule;
    if (!accel) return LK_OK;
    LK_TRY(lk_accel_read("accel", accel, &rule));
    if (!rule.method && pipeline->family->bit != LK_FOR_STEP1X)
        return lk_fail(LK_E_USAGE, "accel: region is of Step1X-Edit; %s has fbcache,threshold=X", pipeline->name);
    if (!rule.method) return LK_OK;
    LK_TRY(find_poly(pipeline->name, &rule));
    if (w->request->num_inference_steps < LEAST_STEPS && !rule.listed)
        return lk_fail(LK_E_USAGE,
                       "accel: expected %d steps or more, got %d: fewer are too far apart to leave blocks out; "
                       "steps=0:1:... says which are computed all the same",
                       LEAST_STEPS, w->request->num_inference_steps);
    for (int i = w->request->num_inference_steps; i < LK_MAX_STEPS && rule.listed; i++)
        if (rule.steps[i])
            return lk_fail(LK_E_USAGE, "accel: steps: expected steps from 0 to %d, got %d",
                           w->request->num_inference_steps - 1, i);
    w->caches = lk_calloc(2 * LK_CACHE_GATES, sizeof *w->caches);
    if (!w->caches) return lk_fail(LK_E_NOMEM, "accel: out of memory");
    for (int i = 0; i < 2 * LK_CACHE_GATES; i++) w->caches[i].rule = rule;
    return LK_OK;
}

static bool keeps_all_rows(const struct lk_cache *c, int n_gates) {
    return c->rule.method == LK_CACHE_DUAL_BLOCK && (c->list + 1 < n_gates || c->rule.behind);
}

static enum lk_code prepare_one(const struct lk_walk *w, struct lk_cache *c, int n_gates,
                                const struct lk_cache_sizes *s) {
    struct lk_arena *arena = &w->dev->arena;
    const bool tea = c->rule.method == LK_CACHE_TEA;
    const int64_t n = s->n_txt + s->n_img, compared = tea ? s->n_noise : c->list ? n : s->n_img;
    c->n_steps = lk_walk_calls(w);
    c->alone = n_gates == 1;
    c->any = false;
    c->in_row = c->n_skipped = 0;
    c->sum = 0;
    LK_TRY(LK_NEW(arena, &c->previous, w->dtype, compared, s->dim));
    LK_TRY(LK_NEW(arena, &c->residual, w->dtype, keeps_all_rows(c, n_gates) ? n : s->n_noise, s->dim));
    LK_TRY(LK_NEW(arena, &c->apart, LK_F32, compared, 2));
    lk_free(c->host);
    c->host = lk_malloc(lk_tensor_bytes(&c->apart));
    return c->host ? LK_OK : lk_fail(LK_E_NOMEM, "accel: out of memory");
}

/* Whether the model has blocks to leave out. */
static enum lk_code check_blocks(const struct lk_cache_rule *rule, const struct lk_cache_sizes *s, int n_gates) {
    if (rule->method != LK_CACHE_DUAL_BLOCK) {
        if (s->n_blocks[0] && s->n_blocks[0] + s->n_blocks[1] > rule->first) return LK_OK;
        return lk_fail(LK_E_USAGE, "accel: fbcache takes a model of two blocks or more");
    }
    for (int i = 0; i < n_gates; i++)
        if (rule->first + rule->behind >= s->n_blocks[i])
            return lk_fail(LK_E_USAGE,
                           "accel: expected f + b below %lld, the model's blocks%s%s%s, got %d + %d; there is nothing "
                           "to leave out",
                           (long long)s->n_blocks[i], n_gates > 1 ? " of the " : "", n_gates > 1 ? lists[i] : "",
                           n_gates > 1 ? "-stream list" : "", rule->first, rule->behind);
    return LK_OK;
}

enum lk_code lk_cache_prepare(struct lk_walk *w, int branch, int n_branches, const struct lk_cache_sizes *sizes) {
    if (!w->caches) return LK_OK;
    const struct lk_cache_rule *rule = &w->caches[0].rule;
    const int n_gates = rule->method == LK_CACHE_DUAL_BLOCK && sizes->n_blocks[1] ? 2 : 1;
    const struct lk_cache_replay *replay = w->request->replay_cache;
    LK_TRY(check_blocks(rule, sizes, n_gates));
    w->n_caches = n_branches * n_gates;
    if (replay && (replay->n != w->n_caches || replay->n_steps != lk_walk_calls(w)))
        return lk_fail(LK_E_USAGE, "replay_cache: expected decisions of %d gates in %d steps, got those of %d in %d",
                       w->n_caches, lk_walk_calls(w), replay->n, replay->n_steps);
    for (int i = 0; i < n_gates; i++) {
        struct lk_cache *c = &w->caches[branch * n_gates + i];
        c->list = i;
        c->replayed = replay ? replay->computed[branch * n_gates + i] : NULL;
        LK_TRY(prepare_one(w, c, n_gates, sizes));
    }
    return LK_OK;
}

struct lk_cache *lk_walk_cache(const struct lk_walk *w, int branch) {
    return w->caches ? &w->caches[w->caches[0].alone ? branch : branch * LK_CACHE_GATES] : NULL;
}

void lk_cache_record(const struct lk_walk *w) {
    struct lk_result *out = w->result;
    out->n_cached = w->caches ? w->n_caches : 0;
    for (int b = 0; b < out->n_cached; b++) {
        out->cache_gates[b] = w->caches[b].alone ? NULL : lists[w->caches[b].list];
        for (int i = 0; i < w->caches[b].n_steps; i++) {
            out->computed[b][i] = w->caches[b].computed[i];
            out->distance[b][i] = w->caches[b].distance[i];
        }
    }
}

void lk_cache_end_walk(struct lk_walk *w) {
    for (int i = 0; w->caches && i < 2 * LK_CACHE_GATES; i++) lk_free(w->caches[i].host);
    lk_free(w->caches);
    w->caches = NULL;
}

/* --- of a pass --- */

static bool planning(const struct lk_mmdit *p) { return p->dev->kind == LK_DEVICE_PLAN; }

/* y = r(a - b) */
static enum lk_code subtract(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *a,
                             const struct lk_tensor *b) {
    return lk_weighted_sum(dev, &(struct lk_weighted_sum){.y = y, .x = {a, b}, .scale = {1, -1}});
}

/* The rows of z that the gate compares, and those that it adds to. */
static struct lk_tensor compared_rows(const struct lk_mmdit *p, const struct lk_cache *c) {
    return c->list ? p->z : lk_tensor_rows(&p->z, p->n_txt, c->previous.shape[0]);
}
static struct lk_tensor kept_rows(const struct lk_mmdit *p, const struct lk_cache *c) {
    const int64_t n = c->residual.shape[0];
    return n == p->n ? p->z : lk_tensor_rows(&p->z, p->n_txt, n);
}

enum lk_code lk_cache_begin(struct lk_mmdit *p, struct lk_cache *cache, const struct lk_modulation *first) {
    if (!(p->cache = cache)) return LK_OK;
    p->skips = false;
    p->first_modulation = *first;
    const int64_t rows = cache->rule.method == LK_CACHE_TEA ? cache->previous.shape[0] : cache->alone ? p->n_img : p->n;
    return LK_NEW(&p->dev->arena, &p->before, p->dtype, rows, p->dim);
}

/* How far `now` lies from what it is compared with, relative to that. */
static enum lk_code measure(const struct lk_mmdit *p, struct lk_cache *c, const struct lk_tensor *now, double *out) {
    double apart = 0, size = 0;
    LK_TRY(lk_distance(p->dev, &(struct lk_distance){.y = &c->apart, .a = now, .b = &c->previous}));
    LK_TRY(lk_download(p->dev, c->host, &c->apart));
    for (int64_t i = 0; i < now->shape[0] && !planning(p); i++) {
        apart += (double)c->host[2 * i];
        size += (double)c->host[2 * i + 1];
    }
    *out = apart / size;
    return LK_OK;
}

/* In cache-dit's order. */
static bool is_forced(const struct lk_cache *c, int step) {
    const struct lk_cache_rule *rule = &c->rule;
    return !c->any || (step < rule->warmup && step % rule->interval == 0) || (rule->last && step + 1 == c->n_steps) ||
           (rule->most && c->n_skipped >= rule->most) || (rule->row && c->in_row >= rule->row);
}

/* Horner's scheme, the highest power first. */
static double polynomial(const struct lk_cache_rule *rule, double x) {
    double y = 0;
    for (int i = 0; i < rule->n_poly; i++) y = y * x + rule->poly[i];
    return y;
}

/* fbcache is at its threshold still as it was; dbcache and teacache are not. */
static bool is_near(struct lk_cache *c, double distance) {
    if (c->rule.method == LK_CACHE_FIRST_BLOCK) return distance <= c->rule.threshold;
    if (c->rule.method == LK_CACHE_DUAL_BLOCK) return distance < c->rule.threshold;
    c->sum += polynomial(&c->rule, distance);
    return c->sum < c->rule.threshold;
}

/* now: what is compared, in a buffer of its own. */
static enum lk_code decide(struct lk_mmdit *p, struct lk_cache *c, const struct lk_tensor *now) {
    const bool tea = c->rule.method == LK_CACHE_TEA;
    const bool forced = c->rule.listed || is_forced(c, p->step);
    double distance = NAN;
    if (!forced || planning(p)) LK_TRY(measure(p, c, now, &distance));
    bool skip = !forced && is_near(c, distance);
    if (c->rule.listed) skip = !c->rule.steps[p->step];
    if (c->replayed) skip = !c->replayed[p->step];
    if (planning(p)) skip = false;
    if (skip && !c->any)
        return lk_fail(LK_E_INPUT, "replay_cache: the first step is left out, and nothing is there to be added again");
    c->computed[p->step] = !skip;
    c->distance[p->step] = distance;
    c->in_row = skip ? c->in_row + 1 : 0;
    c->n_skipped += skip;
    p->skips = skip;
    const struct lk_tensor rows = kept_rows(p, c);
    if (tea || !skip) LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &c->previous, .x = now}));
    if (skip) {
        LK_TRY(lk_add(p->dev, &(struct lk_add){.y = &rows, .a = &rows, .b = &c->residual}));
        return LK_MMDIT_TRACE(p, &rows, "%s%s", c->list ? "single." : "", "cached");
    }
    c->any = true;
    c->sum = 0;
    return lk_copy(p->dev, &(struct lk_copy){.y = &c->residual, .x = &rows}); /* until the last block is done */
}

/* What the blocks in front have added; of tea what the first one is going to see. */
static enum lk_code compare(struct lk_mmdit *p, struct lk_cache *c) {
    const struct lk_tensor rows = compared_rows(p, c), now = lk_tensor_rows(&p->before, 0, rows.shape[0]);
    if (c->rule.method == LK_CACHE_TEA)
        LK_TRY(lk_mmdit_modulate(p, &now, &rows, &p->first_modulation));
    else
        LK_TRY(subtract(p->dev, &now, &rows, &now));
    return decide(p, c, &now);
}

enum lk_code lk_cache_between(struct lk_mmdit *p, int list, int64_t done, int64_t n_blocks, bool last_list) {
    if (!p->cache) return LK_OK;
    struct lk_cache *c = p->cache->alone ? p->cache : p->cache + list;
    const bool begins = !c->alone || !list, ends = !c->alone || last_list;
    const bool tea = c->rule.method == LK_CACHE_TEA;
    if (begins && !done && !tea) {
        const struct lk_tensor rows = compared_rows(p, c), before = lk_tensor_rows(&p->before, 0, rows.shape[0]);
        LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &before, .x = &rows}));
    }
    if (begins && done == (tea ? 0 : c->rule.first)) LK_TRY(compare(p, c));
    if (!ends || done != n_blocks - c->rule.behind) return LK_OK;
    if (p->skips) { /* it goes on with the others */
        p->skips = false;
        return LK_OK;
    }
    const struct lk_tensor rows = kept_rows(p, c);
    LK_TRY(subtract(p->dev, &c->residual, &rows, &c->residual));
    return LK_MMDIT_TRACE(p, &c->residual, "%s%s", c->list ? "single." : "", "residual");
}
