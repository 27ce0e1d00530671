/* Pairs of models, on the same people and prompts, corrected by Holm. */
#include <math.h>
#include <stdio.h>

#include "engine/base/alloc.h"
#include "eval/findings/internal.h"
#include "eval/stats/stats.h"
#include "eval/stats/tests/multiple.h"

struct pairs {
    struct lk_claim *list;
    double *p, *adjusted;
    size_t n;
};

static enum lk_code compare(struct asked *a, const struct lk_claims_family *family, const struct column *x,
                            const struct column *y, double *z, struct pairs *out) {
    const size_t n_s = (size_t)a->n_sources, n_p = (size_t)a->n_prompts;
    struct column difference = {.outcome = x->outcome, .z = z, .share_seen = fmin(x->share_seen, y->share_seen)};
    struct lk_claim claim = {.family = LK_CLAIM_MODEL, .outcome = x->outcome, .model = -1};
    double mean_x = 0, mean_y = 0;
    int n_differ = 0;
    for (size_t s = 0; s < n_s; s++) {
        double largest = 0;
        for (size_t p = 0; p < n_p; p++) {
            const double u = x->z[s * n_p + p], w = y->z[s * n_p + p];
            mean_x += u / ((double)n_s * (double)n_p), mean_y += w / ((double)n_s * (double)n_p);
            z[s * n_p + p] = u - w;
            largest = fmax(largest, fabs(u - w));
        }
        n_differ += largest > 1e-9;
    }
    if (n_differ < LK_RARE) return LK_OK;
    const bool swap = mean_y > mean_x; /* the higher one is the name */
    for (size_t i = 0; swap && i < n_s * n_p; i++) z[i] = -z[i];
    for (size_t s = 0; s < n_s; s++) a->w[s] = 1.0 / a->n_sources;
    for (size_t p = 0; p < n_p; p++) a->v[p] = 1.0 / a->n_prompts;
    claim.level = swap ? y->model : x->model;
    claim.against = swap ? x->model : y->model;
    claim.rate = fmax(mean_x, mean_y), claim.other = fmin(mean_x, mean_y);
    LK_TRY(lk_claim_measure(a, family, &difference, &claim));
    if (claim.effect_p >= 1 && claim.no_interval) return LK_OK; /* no variance to test by */
    claim.t = claim.effect_p > 0 ? -log(claim.effect_p) : INFINITY;
    out->p[out->n] = claim.effect_p;
    out->list[out->n++] = claim;
    return LK_OK;
}

static enum lk_code compare_all(struct asked *a, const struct lk_claims_family *family, struct pairs *out) {
    double *z = lk_malloc(((size_t)a->n_sources * (size_t)a->n_prompts + 1) * sizeof *z);
    enum lk_code rc = z ? LK_OK : lk_fail(LK_E_NOMEM, "findings: out of memory");
    for (int x = 0; x < a->n_columns && !rc; x++)
        for (int y = x + 1; y < a->n_columns && !rc; y++)
            if (a->columns[x].outcome == a->columns[y].outcome && a->columns[x].model >= 0 && a->columns[y].model >= 0)
                rc = compare(a, family, &a->columns[x], &a->columns[y], z, out);
    lk_free(z);
    return rc;
}

static uint64_t bit_of(int model) { return model < 64 ? (uint64_t)1 << model : 0; }

/* What else is found at one of the two ends of the claim. */
static struct lk_claim with_others(const struct pairs *pairs, const struct lk_claim *claim) {
    struct lk_claim out = *claim;
    for (size_t i = 0; i < pairs->n && claim->found; i++) {
        const struct lk_claim *x = &pairs->list[i];
        if (x == claim || !x->found || x->outcome != claim->outcome) continue;
        if (x->level == claim->level) out.lower_too |= bit_of(x->against);
        if (x->against == claim->against) out.higher_too |= bit_of(x->level);
    }
    return out;
}

/* Of each outcome the pair that is furthest apart. */
static enum lk_code keep(struct asked *a, const struct pairs *pairs) {
    for (size_t i = 0; i < pairs->n; i++) {
        pairs->list[i].p = pairs->adjusted[i];
        pairs->list[i].found = pairs->adjusted[i] <= a->claims->family_alpha;
    }
    for (int k = 0; k < a->outcomes->n_outcomes; k++) {
        const struct lk_claim *best = NULL;
        for (size_t i = 0; i < pairs->n; i++) {
            const struct lk_claim *x = &pairs->list[i];
            if (x->outcome != k) continue;
            LK_TRY(lk_claim_judged(a->claims, &(struct lk_claim_cell){LK_CLAIM_MODEL, 0, k, -1, x->level, x->against,
                                                                      x->p, x->difference, 0}));
            if (!best || x->found > best->found || (x->found == best->found && x->difference > best->difference))
                best = x;
        }
        if (!best) continue;
        const struct lk_claim claim = with_others(pairs, best);
        LK_TRY(lk_claim_add(a->claims, &claim));
    }
    return LK_OK;
}

enum lk_code lk_claim_models(struct asked *a, struct lk_claims_family *family) {
    const size_t most = (size_t)a->n_columns * (size_t)a->n_columns + 1;
    struct pairs pairs = {.list = lk_calloc(most, sizeof *pairs.list),
                          .p = lk_calloc(most, sizeof *pairs.p),
                          .adjusted = lk_calloc(most, sizeof *pairs.adjusted)};
    enum lk_code rc = pairs.list && pairs.p && pairs.adjusted ? LK_OK : lk_fail(LK_E_NOMEM, "findings: out of memory");
    if (!rc) rc = compare_all(a, family, &pairs);
    family->n_cells = (int)pairs.n;
    if (!rc && !pairs.n)
        snprintf(family->refused, sizeof family->refused, "no two models differ in %d sources or more", LK_RARE);
    if (!rc && pairs.n) rc = lk_adjust_p(pairs.p, pairs.n, LK_ADJUST_HOLM, pairs.adjusted);
    if (!rc) rc = keep(a, &pairs);
    lk_free(pairs.list);
    lk_free(pairs.p);
    lk_free(pairs.adjusted);
    return rc;
}
