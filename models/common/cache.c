#include "models/common/cache.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/family.h"
#include "models/parameters.h"

static const char method[] = "fbcache", syntax[] = "region, or fbcache,threshold=X[,warmup=N][,row=N][,last=on|off]";

static enum lk_code read_setting(const char *flag, const char *key, const char *value, struct lk_cache_rule *out,
                                 bool *threshold) {
    const char *choice;
    char name[200];
    int64_t whole = 0;
    enum lk_code rc = LK_OK;
    snprintf(name, sizeof name, "%.120s: %.20s", flag, key);
    if (!strcmp(key, "threshold")) {
        *threshold = true;
        rc = lk_read_number(name, value, 0, 1, &out->threshold);
    } else if (!strcmp(key, "warmup")) {
        rc = lk_read_int(name, value, strlen(value), 1, LK_MAX_STEPS, &whole);
        out->warmup = (int)whole;
    } else if (!strcmp(key, "row")) {
        rc = lk_read_int(name, value, strlen(value), 1, LK_MAX_STEPS, &whole);
        out->row = (int)whole;
    } else if (!strcmp(key, "last")) {
        rc = lk_read_choice(name, value, "on|off", &choice);
        out->last = !rc && !strcmp(choice, "on");
    } else {
        rc = lk_fail(LK_E_USAGE, "%s: expected %s, got the setting \"%.20s\"", flag, syntax, key);
    }
    return rc;
}

enum lk_code lk_accel_read(const char *flag, const char *text, struct lk_cache_rule *out) {
    const size_t n = strcspn(text, ",");
    bool threshold = false;
    *out = (struct lk_cache_rule){.warmup = 1, .last = true};
    if (!strcmp(text, "region")) return LK_OK;
    if (n != sizeof method - 1 || memcmp(text, method, n) != 0)
        return lk_fail(LK_E_USAGE, "%s: expected %s, got \"%.60s\"", flag, syntax, text);
    for (const char *at = text + n; *at;) {
        const char *one = at + 1, *equals = strchr(one, '=');
        const size_t length = strcspn(one, ",");
        char key[24], value[40];
        if (!equals || equals > one + length)
            return lk_fail(LK_E_USAGE, "%s: expected KEY=VALUE behind each comma, got \"%.40s\"", flag, one);
        snprintf(key, sizeof key, "%.*s", (int)(equals - one < 23 ? equals - one : 23), one);
        const int n_value = (int)(one + length - equals - 1);
        snprintf(value, sizeof value, "%.*s", n_value < 39 ? n_value : 39, equals + 1);
        LK_TRY(read_setting(flag, key, value, out, &threshold));
        at = one + length;
    }
    if (!threshold) return lk_fail(LK_E_USAGE, "%s: expected %s, got no threshold", flag, syntax);
    out->on = true;
    return LK_OK;
}

enum lk_code lk_accel_check(const char *flag, const char *text, char **own) {
    struct lk_cache_rule rule;
    (void)own;
    return lk_accel_read(flag, text, &rule);
}

enum lk_code lk_cache_begin_walk(struct lk_walk *w, const struct lk_pipeline *pipeline) {
    const char *accel = w->request->accel;
    struct lk_cache_rule rule;
    if (!accel) return LK_OK;
    LK_TRY(lk_accel_read("accel", accel, &rule));
    if (!rule.on && pipeline->family->bit != LK_FOR_STEP1X)
        return lk_fail(LK_E_USAGE, "accel: region is of Step1X-Edit; %s has %s,threshold=X", pipeline->name, method);
    if (!rule.on) return LK_OK;
    if (!(w->caches = lk_calloc(2, sizeof *w->caches))) return lk_fail(LK_E_NOMEM, "accel: out of memory");
    w->caches[0].rule = w->caches[1].rule = rule;
    return LK_OK;
}

static enum lk_code prepare_one(const struct lk_walk *w, struct lk_cache *c, int64_t n_img, int64_t n_noise,
                                int64_t dim) {
    struct lk_arena *arena = &w->dev->arena;
    c->n_steps = lk_walk_calls(w);
    c->any = false;
    c->in_row = 0;
    LK_TRY(LK_NEW(arena, &c->previous, w->dtype, n_img, dim));
    LK_TRY(LK_NEW(arena, &c->residual, w->dtype, n_noise, dim));
    LK_TRY(LK_NEW(arena, &c->apart, LK_F32, n_img, 2));
    lk_free(c->host);
    c->host = lk_malloc(lk_tensor_bytes(&c->apart));
    return c->host ? LK_OK : lk_fail(LK_E_NOMEM, "accel: out of memory");
}

enum lk_code lk_cache_prepare(struct lk_walk *w, int n_branches, int64_t n_img, int64_t n_noise, int64_t dim,
                              int64_t n_blocks) {
    if (!w->caches) return LK_OK;
    if (n_blocks < 2) return lk_fail(LK_E_USAGE, "accel: %s takes a model of two blocks or more", method);
    w->n_caches = n_branches;
    for (int i = 0; i < n_branches; i++) LK_TRY(prepare_one(w, &w->caches[i], n_img, n_noise, dim));
    return LK_OK;
}

struct lk_cache *lk_walk_cache(const struct lk_walk *w, int branch) {
    return w->caches ? &w->caches[branch] : NULL;
}

void lk_cache_record(const struct lk_walk *w) {
    struct lk_result *out = w->result;
    out->n_cached = w->caches ? w->n_caches : 0;
    for (int b = 0; b < out->n_cached; b++)
        for (int i = 0; i < w->caches[b].n_steps; i++) {
            out->computed[b][i] = w->caches[b].computed[i];
            out->distance[b][i] = w->caches[b].distance[i];
        }
}

void lk_cache_end_walk(struct lk_walk *w) {
    for (int i = 0; w->caches && i < 2; i++) lk_free(w->caches[i].host);
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

enum lk_code lk_cache_begin(struct lk_mmdit *p, struct lk_cache *cache) {
    const struct lk_tensor img = lk_mmdit_img(p, &p->z);
    if (!(p->cache = cache)) return LK_OK;
    LK_TRY(LK_NEW(&p->dev->arena, &p->before, p->dtype, p->n_img, p->dim));
    return lk_copy(p->dev, &(struct lk_copy){.y = &p->before, .x = &img});
}

/* How far `added`, what the first block added, lies from what it added in the last computed step, relative to that. */
static enum lk_code measure(const struct lk_mmdit *p, const struct lk_tensor *added, double *out) {
    struct lk_cache *c = p->cache;
    double apart = 0, size = 0;
    LK_TRY(lk_distance(p->dev, &(struct lk_distance){.y = &c->apart, .a = added, .b = &c->previous}));
    LK_TRY(lk_download(p->dev, c->host, &c->apart));
    for (int64_t i = 0; i < p->n_img && !planning(p); i++) {
        apart += (double)c->host[2 * i];
        size += (double)c->host[2 * i + 1];
    }
    *out = apart / size;
    return LK_OK;
}

static bool is_forced(const struct lk_cache *c, int step) {
    const struct lk_cache_rule *rule = &c->rule;
    return !c->any || step < rule->warmup || (rule->last && step + 1 == c->n_steps) ||
           (rule->row && c->in_row >= rule->row);
}

enum lk_code lk_cache_decide(struct lk_mmdit *p, int64_t n_noise, bool *skip) {
    struct lk_cache *c = p->cache;
    const struct lk_tensor img = lk_mmdit_img(p, &p->z), noise = lk_tensor_rows(&img, 0, n_noise);
    *skip = false;
    if (!c) return LK_OK;
    const bool forced = is_forced(c, p->step);
    double distance = NAN;
    LK_TRY(subtract(p->dev, &p->before, &img, &p->before));
    if (!forced || planning(p)) LK_TRY(measure(p, &p->before, &distance));
    *skip = !forced && distance <= c->rule.threshold;
    c->computed[p->step] = !*skip;
    c->distance[p->step] = distance;
    c->in_row = *skip ? c->in_row + 1 : 0;
    if (*skip) {
        LK_TRY(lk_add(p->dev, &(struct lk_add){.y = &noise, .a = &noise, .b = &c->residual}));
        return LK_MMDIT_TRACE(p, &noise, "%s", "cached");
    }
    c->any = true;
    LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &c->previous, .x = &p->before}));
    return lk_copy(p->dev, &(struct lk_copy){.y = &c->residual, .x = &noise}); /* until the last block is done */
}

enum lk_code lk_cache_keep(const struct lk_mmdit *p, int64_t n_noise) {
    const struct lk_tensor img = lk_mmdit_img(p, &p->z), noise = lk_tensor_rows(&img, 0, n_noise);
    if (!p->cache) return LK_OK;
    LK_TRY(subtract(p->dev, &p->cache->residual, &noise, &p->cache->residual));
    return LK_MMDIT_TRACE(p, &p->cache->residual, "%s", "residual");
}
