/* Whether what is found of a group is larger on some kind of prompts: F7, the group's difference by kind, inside what
 * is named. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/findings/internal.h"

/* The kinds that some prompt has; *least: the prompts of the smallest. */
static int kinds_used(const struct asked *a, int *least) {
    return lk_levels_used(&a->of_prompts[LK_KINDS], a->n_prompts, least);
}

/* Rates of the group and the others by the weights v of prompts, all of one sign. */
static void rates(struct asked *a, const struct column *column, double *rate, double *other) {
    *rate = lk_claim_rate(a, column->z, true);
    *other = lk_claim_rate(a, column->z, false);
}

/* v: the positive part of the contrast of kinds, or the negative one as a mean. */
static void keep_side(struct asked *a, const double *contrast, double sign) {
    for (int p = 0; p < a->n_prompts; p++) a->v[p] = fmax(sign * contrast[p], 0);
}

/* One kind against the mean of the others: the p of the difference of the group's differences, 1 where there is none.
 */
static enum lk_code ask(struct asked *a, const struct lk_claims_family *family, const struct column *column, int kind,
                        double *contrast, double *p, double *difference) {
    const struct lk_crossed_table table = {a->n_sources, a->n_prompts, column->z, column->share_seen, false};
    double of_levels[LK_CROSSED_LEVELS];
    const char *why = NULL;
    struct lk_crossed r;
    *p = 1;
    lk_level_contrast(a->n_prompts, &a->of_prompts[LK_KINDS], kind, -1, of_levels);
    LK_TRY(lk_contrast_weights(a->n_prompts, &a->of_prompts[LK_KINDS], 1, of_levels, contrast, &why));
    if (why) return LK_OK;
    LK_TRY(lk_crossed_contrast(&table, a->w, contrast, &a->people, lk_claim_prompts(a, family), &r));
    *difference = r.estimate;
    if (!r.undefined && !r.no_test && !lk_claim_too_few(a, &r)) *p = r.p;
    return LK_OK;
}

static enum lk_code look(struct asked *a, const struct lk_claims_family *family, double alpha, double *contrast,
                         struct lk_claim *claim) {
    const struct column *column = lk_claim_column(a, claim->outcome, claim->model);
    const int n_kinds = kinds_used(a, NULL), n_tests = n_kinds == 2 ? 1 : n_kinds;
    const char *why = NULL;
    int best = -1;
    double least = 1;
    LK_TRY(lk_claim_weigh(a, family->attribute, claim, &why));
    for (int k = 0; k < a->of_prompts[LK_KINDS].count && !why; k++) {
        double p, difference = 0;
        LK_TRY(ask(a, family, column, k, contrast, &p, &difference));
        /* Larger there, in the direction that is found. */
        if (p >= least || difference * claim->difference <= 0) continue;
        least = p, best = k;
    }
    if (why || best < 0 || least * n_tests > alpha) return LK_OK;
    double p, difference;
    LK_TRY(ask(a, family, column, best, contrast, &p, &difference));
    claim->by_kind = true, claim->kind = best;
    keep_side(a, contrast, 1);
    rates(a, column, &claim->kind_rate, &claim->kind_other);
    keep_side(a, contrast, -1);
    rates(a, column, &claim->rest_rate, &claim->rest_other);
    return LK_OK;
}

enum lk_code lk_claim_by_kind(struct asked *a, const struct lk_claims_family *family, size_t first) {
    int n = 0, least;
    if (a->options->prompts_are_all || kinds_used(a, &least) < 2 || least < LK_LEAST_PROMPTS) return LK_OK;
    double *contrast = lk_calloc((size_t)a->n_prompts + 1, sizeof *contrast);
    enum lk_code rc = contrast ? LK_OK : lk_fail(LK_E_NOMEM, "findings: out of memory");
    for (size_t i = first; i < a->claims->n; i++) n += a->claims->list[i].found;
    for (size_t i = first; i < a->claims->n && !rc; i++)
        if (a->claims->list[i].found) rc = look(a, family, a->claims->family_alpha / n, contrast, &a->claims->list[i]);
    lk_free(contrast);
    return rc;
}
