/* Groups of people and kinds of prompts, by relabelling them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/findings/internal.h"
#include "eval/stats/special/special.h"

/* One cell of the relabelled table. */
struct cell {
    int column, level; /* of the columns that were asked */
    double t, p, difference;
};

struct judged {
    const struct column **columns;
    const double **z;
    struct cell *cells; /* largest t first */
    struct lk_relabelled r;
    int n, n_cells;
    double critical;
};

static void judged_free(struct judged *j) {
    lk_free(j->columns);
    lk_free(j->z);
    lk_free(j->cells);
    lk_relabelled_free(&j->r);
}

static int by_t(const void *a, const void *b) {
    const struct cell *x = a, *y = b;
    if (x->t != y->t) return x->t < y->t ? 1 : -1;
    const double a_size = fabs(x->difference), b_size = fabs(y->difference); /* of two without variance, the larger */
    if (a_size != b_size) return a_size < b_size ? 1 : -1;
    return x->column != y->column ? x->column - y->column : x->level - y->level;
}

static enum lk_code choose_columns(const struct asked *a, struct lk_claims_family *family, struct judged *j) {
    j->columns = lk_calloc((size_t)a->n_columns + 1, sizeof *j->columns);
    j->z = lk_calloc((size_t)a->n_columns + 1, sizeof *j->z);
    if (!j->columns || !j->z) return lk_fail(LK_E_NOMEM, "findings: out of memory");
    for (int c = 0; c < a->n_columns; c++) {
        const struct column *column = &a->columns[c];
        if (column->n_with < LK_RARE || column->n_without < LK_RARE) {
            family->n_rare++;
            continue;
        }
        j->columns[j->n] = column;
        j->z[j->n++] = column->z;
    }
    if (!j->n)
        snprintf(family->refused, sizeof family->refused, "too rare: fewer than %d sources have an outcome, or lack it",
                 LK_RARE);
    return LK_OK;
}

/* Other attributes than the one. */
static int others_of(const struct asked *a, int attribute, struct lk_levels *out) {
    int n = 0;
    for (int f = 0; f < a->outcomes->n_attributes; f++)
        if (f != attribute) out[n++] = a->attributes[f];
    return n;
}

static enum lk_code relabel(struct asked *a, struct lk_claims_family *family, struct judged *j) {
    const struct lk_crossed_tables tables = {a->n_sources, a->n_prompts, j->n, j->z};
    const struct lk_relabel how = {a->options->n_relabel, a->options->seed, a->options->prompts_are_all};
    struct lk_levels others[LK_MAX_ATTRIBUTES];
    if (family->family == LK_CLAIM_KIND)
        return lk_relabel_prompts(&tables, &a->of_prompts[family->attribute],
                                  family->attribute == LK_SUBCATEGORIES ? &a->of_prompts[LK_KINDS] : NULL,
                                  a->attributes, a->outcomes->n_attributes, &how, &j->r);
    const int n = others_of(a, family->attribute, others);
    return lk_relabel_sources(&tables, &a->attributes[family->attribute], others, n, &a->of_prompts[LK_KINDS], &how,
                              &j->r);
}

/* Cells by t; of two levels the higher one is the name. */
static enum lk_code sort_cells(const struct asked *a, const struct lk_claims_family *family, struct judged *j) {
    j->cells = lk_calloc((size_t)(j->r.n_columns * j->r.n_levels) + 1, sizeof *j->cells);
    if (!j->cells) return lk_fail(LK_E_NOMEM, "findings: out of memory");
    for (int l = 0; l < j->r.n_levels; l++) {
        const int rivals = lk_claim_n_rivals(a, family, l);
        for (int c = 0; c < j->r.n_columns && rivals > 0; c++) {
            const int i = c * j->r.n_levels + l;
            if (rivals == 1 && j->r.difference[i] < 0) continue;
            j->cells[j->n_cells++] = (struct cell){c, l, j->r.t[i], j->r.p[i], j->r.difference[i]};
        }
    }
    qsort(j->cells, (size_t)j->n_cells, sizeof *j->cells, by_t);
    return LK_OK;
}

/* Whether another level of a column stands beside those that are named already: they leave the others it is compared
 * with. */
static enum lk_code stands_alone(struct asked *a, const struct lk_claims_family *family, const struct judged *j,
                                 const struct cell *cell, const bool *named, bool *stands) {
    int n;
    const struct lk_levels *levels = lk_claim_factor(a, family, &n);
    double contrast[LK_CROSSED_LEVELS], rest = 0;
    const char *why = NULL;
    struct lk_crossed r;
    for (int l = 0; l < levels->count; l++) {
        contrast[l] = 0;
        for (int i = 0; i < n && contrast[l] == 0; i++)
            contrast[l] = levels->of[i] == l && !named[l] && lk_claim_rivals(a, family, cell->level, l);
        rest += contrast[l];
    }
    *stands = false;
    if (rest == 0) return LK_OK;
    for (int l = 0; l < levels->count; l++) contrast[l] = l == cell->level ? 1 : -contrast[l] / rest;
    if (family->family == LK_CLAIM_KIND) {
        for (int s = 0; s < a->n_sources; s++) a->w[s] = 1.0 / a->n_sources;
        LK_TRY(lk_contrast_weights(n, levels, 1, contrast, a->v, &why));
    } else {
        struct lk_levels ordered[LK_MAX_ATTRIBUTES] = {*levels};
        const int n_others = others_of(a, family->attribute, ordered + 1);
        for (int p = 0; p < a->n_prompts; p++) a->v[p] = 1.0 / a->n_prompts;
        LK_TRY(lk_contrast_weights(n, ordered, 1 + n_others, contrast, a->w, &why));
    }
    if (why) return LK_OK;
    const struct column *column = j->columns[cell->column];
    const struct lk_crossed_table table = {a->n_sources, a->n_prompts, column->z, 1, a->options->prompts_are_all};
    LK_TRY(lk_crossed_contrast(&table, a->w, a->v, &a->people, lk_claim_prompts(a, family), &r));
    const bool clear = r.variance > 0 ? fabs(r.estimate) / sqrt(r.variance) >= j->critical
                                      : !r.undefined && fabs(r.estimate) > 1e-12; /* nothing varies but the levels */
    *stands = clear && (r.estimate > 0) == (cell->difference > 0);
    return LK_OK;
}

/* Whether no model is seen to differ from the others in what the mean of models shows. */
static enum lk_code models_are_alike(struct asked *a, const struct lk_claims_family *family, int outcome,
                                     struct lk_claim *claim) {
    claim->alike = true;
    if (claim->too_few) return LK_OK;
    const size_t cells = (size_t)a->n_sources * (size_t)a->n_prompts;
    const struct column *mean = lk_claim_column(a, outcome, -1);
    double *z = lk_malloc((cells + 1) * sizeof *z), least = 1;
    enum lk_code rc = z ? LK_OK : lk_fail(LK_E_NOMEM, "findings: out of memory");
    int n = 0;
    for (int c = 0; c < a->n_columns; c++) n += a->columns[c].outcome == outcome && a->columns[c].model >= 0;
    for (int c = 0; c < a->n_columns && !rc && mean; c++) {
        struct column one = a->columns[c];
        struct lk_claim of = *claim;
        if (one.outcome != outcome || one.model < 0 || n < 2) continue;
        for (size_t i = 0; i < cells; i++) z[i] = (one.z[i] - mean->z[i]) * n / (n - 1); /* against the others' mean */
        one.z = z;
        of.difference = 0;
        rc = lk_claim_measure(a, family, &one, &of);
        const bool varies = of.effect_p < 1 || fabs(of.difference) < 1e-9;
        least = fmin(least, varies ? of.effect_p * n : 0); /* nothing varies but the levels: the model is another */
    }
    lk_free(z);
    claim->alike = least > 0.05;
    return rc;
}

static enum lk_code add(struct asked *a, const struct lk_claims_family *family, const struct judged *j,
                        const struct cell *cell, bool found) {
    const struct column *column = j->columns[cell->column];
    struct lk_claim claim = {.family = family->family,
                             .attribute = family->attribute,
                             .outcome = column->outcome,
                             .model = column->model,
                             .level = cell->level,
                             .against = -1,
                             .t = cell->t,
                             .p = cell->p,
                             .found = found};
    LK_TRY(lk_claim_measure(a, family, column, &claim));
    if (column->model < 0 && found) LK_TRY(models_are_alike(a, family, column->outcome, &claim));
    return lk_claim_add(a->claims, &claim);
}

/* The mean of the models is named where they are alike; else each model that shows it. */
static void choose_scope(struct lk_claims *claims, size_t first) {
    for (size_t i = first; i < claims->n; i++) {
        struct lk_claim *x = &claims->list[i];
        bool any = false;
        if (x->model >= 0 || !x->found) continue;
        for (size_t k = first; k < claims->n; k++)
            any |= claims->list[k].found && claims->list[k].model >= 0 && claims->list[k].outcome == x->outcome &&
                   claims->list[k].level == x->level;
        if (!any) continue;
        for (size_t k = claims->n; k-- > first;) {
            const struct lk_claim *y = &claims->list[k];
            if (y->outcome != x->outcome || y->level != x->level || !y->found) continue;
            if (x->alike ? y->model >= 0 : y == x) claims->list[k].found = false, claims->list[k].outcome = -1;
        }
    }
    size_t kept = first;
    for (size_t i = first; i < claims->n; i++)
        if (claims->list[i].outcome >= 0) claims->list[kept++] = claims->list[i];
    claims->n = kept;
}

static enum lk_code name_cells(struct asked *a, struct lk_claims_family *family, struct judged *j) {
    const size_t first = a->claims->n;
    const int n_levels = j->r.n_levels;
    bool *named = lk_calloc((size_t)j->n * (size_t)n_levels + 1, sizeof *named);
    bool *outcomes = lk_calloc((size_t)a->outcomes->n_outcomes + 1, sizeof *outcomes);
    enum lk_code rc = named && outcomes ? LK_OK : lk_fail(LK_E_NOMEM, "findings: out of memory");
    for (int i = 0; i < j->n_cells && !rc; i++) {
        const struct cell *x = &j->cells[i];
        rc = lk_claim_judged(
            a->claims, &(struct lk_claim_cell){family->family, family->attribute, j->columns[x->column]->outcome,
                                               j->columns[x->column]->model, x->level, -1, x->p, x->difference, x->t});
    }
    for (int i = 0; i < j->n_cells && !rc; i++) {
        const struct cell *cell = &j->cells[i];
        bool *of_column = named + cell->column * n_levels, any = false, stands = true;
        if (cell->p > a->claims->family_alpha) break;
        for (int l = 0; l < n_levels; l++) any |= of_column[l] && lk_claim_rivals(a, family, cell->level, l);
        if (any) rc = stands_alone(a, family, j, cell, of_column, &stands);
        if (rc || !stands) continue;
        of_column[cell->level] = true;
        outcomes[j->columns[cell->column]->outcome] = true;
        rc = add(a, family, j, cell, true);
    }
    for (int i = 0; i < j->n_cells && !rc; i++) { /* what comes nearest of the other outcomes */
        const int outcome = j->columns[j->cells[i].column]->outcome;
        if (outcomes[outcome]) continue;
        outcomes[outcome] = true;
        rc = add(a, family, j, &j->cells[i], false);
    }
    if (!rc) choose_scope(a->claims, first);
    if (!rc && family->family == LK_CLAIM_GROUP) rc = lk_claim_by_kind(a, family, first);
    lk_free(named);
    lk_free(outcomes);
    return rc;
}

static enum lk_code judge(struct asked *a, struct lk_claims_family *family) {
    struct judged j = {0};
    int n_of;
    const struct lk_levels *levels = lk_claim_factor(a, family, &n_of);
    enum lk_code rc = choose_columns(a, family, &j);
    if (!rc && !*family->refused) rc = relabel(a, family, &j);
    if (!rc && j.r.refused) snprintf(family->refused, sizeof family->refused, "%s", j.r.refused);
    if (!rc && !*family->refused) rc = sort_cells(a, family, &j);
    if (!rc && !*family->refused) {
        const double least = (lk_levels_used(levels, n_of, NULL) == 2 ? 2.0 : 1.0) / (double)j.r.n;
        family->n_cells = j.n_cells;
        family->critical = j.critical = lk_relabelled_critical(&j.r, a->claims->family_alpha);
        if (j.r.exact && least > a->claims->family_alpha)
            snprintf(family->refused, sizeof family->refused,
                     "%d %s can be relabelled in %zu ways, and %.2g needs %.0f: no difference could be found", n_of,
                     family->family == LK_CLAIM_KIND ? "prompts" : "sources", j.r.n, a->claims->family_alpha,
                     ceil(least * (double)j.r.n / a->claims->family_alpha));
        else
            rc = name_cells(a, family, &j);
    }
    judged_free(&j);
    return rc;
}

enum lk_code lk_claim_groups(struct asked *a, struct lk_claims_family *family) {
    const struct lk_levels *levels = &a->attributes[family->attribute];
    int least;
    lk_levels_used(levels, a->n_sources, &least);
    if (least < LK_LEAST_SOURCES) {
        snprintf(family->refused, sizeof family->refused, "a level has %d source%s, and %d are needed", least,
                 least == 1 ? "" : "s", LK_LEAST_SOURCES);
        return LK_OK;
    }
    return judge(a, family);
}

enum lk_code lk_claim_kinds(struct asked *a, struct lk_claims_family *family) { return judge(a, family); }
