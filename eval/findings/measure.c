/* A claim's numbers: rates, their difference and its interval, what would have been found. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/findings/internal.h"
#include "eval/stats/special/special.h"

enum { LEAST_DF = 3 }; /* of people and of prompts, each by themselves */

/* Why a contrast has no interval: its design leaves too little. Not its width or the variance that was seen: what is
 * narrow by chance would be what is shown, and 15 % of it beyond the truth. */
const char *lk_claim_too_few(const struct asked *a, const struct lk_crossed *r) {
    if (r->source_df < LEAST_DF) return "too few people";
    return !a->options->prompts_are_all && r->prompt_df < LEAST_DF ? "too few prompts" : NULL;
}

/* Whether sources of one level of the first attribute have one level of the second, each. */
static bool determines(const struct asked *a, int first, int second) {
    const struct lk_levels *of = &a->attributes[first], *then = &a->attributes[second];
    int32_t level[LK_CROSSED_LEVELS]; /* of the second, for each of the first; -1: none yet */
    if (of->count > LK_CROSSED_LEVELS) return false;
    for (int l = 0; l < of->count; l++) level[l] = -1;
    for (int s = 0; s < a->n_sources; s++) {
        if (of->of[s] < 0) continue; /* its level is not known */
        int32_t *is = &level[of->of[s]];
        if (*is >= 0 && *is != then->of[s]) return false;
        *is = then->of[s];
    }
    return true;
}

int lk_claim_others(const struct asked *a, int attribute, struct lk_levels *out) {
    int n = 0;
    for (int f = 0; f < a->outcomes->n_attributes; f++) {
        if (f == attribute || determines(a, attribute, f) != determines(a, f, attribute)) continue;
        out[n++] = a->attributes[f];
    }
    return n;
}

/* Weights of the sources, and the attributes in an order that begins with the one that is asked about. */
enum lk_code lk_claim_weigh(struct asked *a, int attribute, const struct lk_claim *claim, const char **why) {
    struct lk_levels ordered[LK_MAX_ATTRIBUTES];
    double contrast[LK_CROSSED_LEVELS];
    ordered[0] = a->attributes[attribute];
    const int n = 1 + lk_claim_others(a, attribute, ordered + 1);
    lk_level_contrast(a->n_sources, &ordered[0], claim->level, claim->against, contrast);
    for (int p = 0; p < a->n_prompts; p++) a->v[p] = 1.0 / a->n_prompts;
    return lk_contrast_weights(a->n_sources, ordered, n, contrast, a->w, why);
}

/* Whether the weights are those of means: attributes that are balanced over one another. */
static bool plain(const struct asked *a, const struct lk_levels *of, int level) {
    double sum = 0, squares = 0;
    int n = 0;
    for (int s = 0; s < a->n_sources; s++) {
        if (of->of[s] != level) continue;
        sum += a->w[s], squares += a->w[s] * a->w[s];
        n++;
    }
    return n && fabs(squares * n - sum * sum) < 1e-9 && fabs(sum - 1) < 1e-9;
}

/* A kind against the others, or a subcategory against the others of its kind. */
static enum lk_code weigh_prompts(struct asked *a, const struct lk_claims_family *family, const struct lk_claim *claim,
                                  const char **why) {
    double contrast[LK_CROSSED_LEVELS], rest = 0;
    int n;
    const struct lk_levels *levels = lk_claim_factor(a, family, &n);
    lk_level_contrast(n, levels, claim->level, claim->against, contrast);
    if (family->attribute == LK_SUBCATEGORIES) {
        for (int l = 0; l < levels->count; l++)
            if (l != claim->level && !lk_claim_rivals(a, family, claim->level, l)) contrast[l] = 0;
        for (int l = 0; l < levels->count; l++) rest -= l != claim->level ? contrast[l] : 0;
        for (int l = 0; l < levels->count && rest > 0; l++)
            if (l != claim->level) contrast[l] /= rest;
    }
    for (int s = 0; s < a->n_sources; s++) a->w[s] = 1.0 / a->n_sources;
    return lk_contrast_weights(n, levels, 1, contrast, a->v, why);
}

double lk_claim_rate(const struct asked *a, const double *z, bool above) {
    double sum = 0, weight = 0;
    for (int s = 0; s < a->n_sources; s++)
        for (int p = 0; p < a->n_prompts; p++) {
            const double u = a->w[s] * a->v[p];
            if (above ? u <= 0 : u >= 0) continue;
            sum += u * z[s * a->n_prompts + p];
            weight += u;
        }
    return weight != 0 ? fmin(fmax(sum / weight, 0), 1) : 0;
}

/* The rates of a column's levels and of the others of each, made once for all levels; *own: the caller frees them. */
static enum lk_code rates_of(struct asked *a, const struct lk_crossed_table *table, const struct column *column,
                             int attribute, double confidence, struct lk_crossed_rate **out, bool *own) {
    const struct lk_levels *of = &a->attributes[attribute];
    const bool kept = column >= a->columns && column < a->columns + a->n_columns;
    *own = !kept;
    *out = a->rates;
    if (kept && a->rates && a->rates_column == column && a->rates_attribute == attribute) return LK_OK;
    struct lk_crossed_rate *rates = *out = lk_calloc(2 * (size_t)of->count, sizeof *rates);
    if (!rates) return lk_fail(LK_E_NOMEM, "findings: out of memory");
    if (kept) {
        lk_free(a->rates);
        a->rates = rates, a->rates_column = column, a->rates_attribute = attribute;
    }
    return lk_crossed_rates(table, of, &a->prompts[LK_KINDS], a->n_outputs, confidence, rates, rates + of->count);
}

/* Wilson and MOVER where one of the two is few. */
static enum lk_code few_groups(struct asked *a, const struct lk_crossed_table *table, const struct column *column,
                               int attribute, double confidence, struct lk_claim *claim) {
    const struct lk_levels *of = &a->attributes[attribute];
    struct lk_crossed_rate *rates;
    bool own;
    enum lk_code rc = rates_of(a, table, column, attribute, confidence, &rates, &own);
    int n_level = 0;
    for (int s = 0; s < a->n_sources; s++) n_level += of->of[s] == claim->level;
    if (!rc && !rates[claim->level].undefined && !rates[of->count + claim->level].undefined) {
        const struct lk_crossed_rate *level = &rates[claim->level], *others = &rates[of->count + claim->level];
        claim->rate = level->rate, claim->other = others->rate;
        if (level->few || others->few || (n_level <= 4 && fmin(level->rate, others->rate) < 0.1)) {
            claim->difference = level->rate - others->rate;
            lk_crossed_mover(level, others, &claim->low, &claim->high);
            claim->no_interval = NULL;
        }
    }
    if (own) lk_free(rates);
    return rc;
}

enum lk_code lk_claim_measure(struct asked *a, const struct lk_claims_family *family, const struct column *column,
                              struct lk_claim *claim) {
    const struct lk_crossed_table table = {a->n_sources, a->n_prompts, column->z, column->share_seen,
                                           a->options->prompts_are_all};
    const double confidence = 1 - a->claims->family_alpha;
    const char *why = NULL;
    struct lk_crossed r;
    claim->share_seen = column->share_seen;
    if (family->family == LK_CLAIM_GROUP)
        LK_TRY(lk_claim_weigh(a, family->attribute, claim, &why));
    else if (family->family == LK_CLAIM_KIND)
        LK_TRY(weigh_prompts(a, family, claim, &why));
    claim->no_interval = why;
    if (why) return LK_OK;
    LK_TRY(lk_crossed_contrast(&table, a->w, a->v, &a->people, lk_claim_prompts(a, family), &r));
    claim->difference = r.estimate;
    if (family->family != LK_CLAIM_MODEL) {
        claim->rate = lk_claim_rate(a, column->z, true);
        claim->other = lk_claim_rate(a, column->z, false);
    }
    claim->effect_p = r.no_test ? 1 : r.p;
    claim->no_interval = lk_crossed_interval(&r, confidence, &claim->low, &claim->high) ? NULL : r.no_interval;
    claim->low = fmax(claim->low, -1), claim->high = fmin(claim->high, 1);
    claim->too_few = lk_claim_too_few(a, &r) != NULL;
    if (!claim->no_interval) claim->no_interval = lk_claim_too_few(a, &r);
    claim->shares = lk_crossed_shares(&r);
    if (family->family == LK_CLAIM_GROUP) {
        const struct lk_levels *of = &a->attributes[family->attribute];
        claim->adjusted = !plain(a, of, claim->level);
        if (!claim->adjusted) LK_TRY(few_groups(a, &table, column, family->attribute, confidence, claim));
    }
    double above = 0, all = 0;
    for (int i = 0; i < (family->family == LK_CLAIM_KIND ? a->n_prompts : a->n_sources); i++) {
        const double u = family->family == LK_CLAIM_KIND ? a->v[i] : a->w[i];
        all += u * u;
        if (u > 0) above += u * u;
    }
    if (family->family == LK_CLAIM_MODEL) above = all / 2; /* of both the same people */
    const double low = fmin(claim->rate, claim->other);
    if (!r.undefined && r.variance > 0 && low > 0 && low < 1)
        claim->detectable = lk_crossed_detectable(&r, all > 0 ? above / all : 0.5, low,
                                                  a->claims->family_alpha / fmax(family->n_cells, 1), 0.8);
    return LK_OK;
}

/* Of two levels only the higher one was judged. */
static double p_of(const struct asked *a, const struct lk_claims_family *family, const struct lk_claim *x) {
    const bool two = lk_claim_n_rivals(a, family, x->level) == 1;
    for (size_t i = 0; i < a->claims->n_cells; i++) {
        const struct lk_claim_cell *c = &a->claims->cells[i];
        if (c->family == x->family && c->attribute == x->attribute && c->outcome == x->outcome &&
            c->model == x->model && (c->level == x->level || (two && lk_claim_rivals(a, family, x->level, c->level))))
            return c->p;
    }
    return 1;
}

enum lk_code lk_claim_measure_all(struct asked *a, const struct lk_claims_family *family) {
    struct lk_claims *claims = a->claims;
    int n;
    const struct lk_levels *of = lk_claim_factor(a, family, &n);
    for (int c = 0; c < a->n_columns; c++)
        for (int l = 0; l < of->count; l++) {
            struct lk_claim claim = {.family = family->family,
                                     .attribute = family->attribute,
                                     .outcome = a->columns[c].outcome,
                                     .model = a->columns[c].model,
                                     .level = l,
                                     .against = -1};
            if (lk_claim_n_rivals(a, family, l) < 1) continue;
            LK_TRY(lk_claim_measure(a, family, &a->columns[c], &claim));
            claim.p = p_of(a, family, &claim);
            LK_TRY(lk_grow(&claims->measured, &claims->measured_capacity, claims->n_measured + 1,
                           sizeof *claims->measured));
            claims->measured[claims->n_measured++] = claim;
        }
    return LK_OK;
}
