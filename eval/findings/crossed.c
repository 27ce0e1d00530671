/* The outcomes as complete tables, and the families that are asked. */
#include "eval/findings/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"

static double at(const struct lk_outcomes *o, int outcome, int model, int source, int prompt) {
    const size_t row = ((size_t)outcome * (size_t)o->n_models + (size_t)model) * (size_t)o->n_sources + (size_t)source;
    return o->y[row * (size_t)o->n_prompts + (size_t)prompt];
}

int lk_levels_used(const struct lk_levels *levels, int n, int *least) {
    int used = 0;
    if (least) *least = n;
    for (int l = 0; l < levels->count; l++) {
        int n_of = 0;
        for (int i = 0; i < n; i++) n_of += levels->of[i] == l;
        used += n_of > 0;
        if (least && n_of && n_of < *least) *least = n_of;
    }
    return used;
}

const struct column *lk_claim_column(const struct asked *a, int outcome, int model) {
    for (int c = 0; c < a->n_columns; c++)
        if (a->columns[c].outcome == outcome && a->columns[c].model == model) return &a->columns[c];
    return NULL;
}

enum lk_code lk_claim_add(struct lk_claims *claims, const struct lk_claim *claim) {
    LK_TRY(lk_grow(&claims->list, &claims->capacity, claims->n + 1, sizeof *claims->list));
    claims->list[claims->n++] = *claim;
    return LK_OK;
}

enum lk_code lk_claim_judged(struct lk_claims *claims, const struct lk_claim_cell *cell) {
    LK_TRY(lk_grow(&claims->cells, &claims->cells_capacity, claims->n_cells + 1, sizeof *claims->cells));
    claims->cells[claims->n_cells++] = *cell;
    return LK_OK;
}

/* Share of the outcomes of a model that are there, over all of them. */
static double share_of_model(const struct lk_outcomes *o, int model) {
    double seen = 0;
    for (int k = 0; k < o->n_outcomes; k++)
        for (int s = 0; s < o->n_sources; s++)
            for (int p = 0; p < o->n_prompts; p++) seen += !isnan(at(o, k, model, s, p));
    return seen / ((double)o->n_outcomes * o->n_sources * o->n_prompts);
}

/* Outcomes of a source (or a prompt) in the models that are used. */
static double share_of_row(const struct asked *a, int source, int prompt) {
    const struct lk_outcomes *o = a->outcomes;
    double seen = 0, all = 0;
    for (int k = 0; k < o->n_outcomes; k++)
        for (int m = 0; m < o->n_models; m++) {
            if (!a->model[m]) continue;
            for (int i = 0; i < (source >= 0 ? o->n_prompts : o->n_sources); i++) {
                seen += !isnan(at(o, k, m, source >= 0 ? source : i, source >= 0 ? i : prompt));
                all++;
            }
        }
    return all > 0 ? seen / all : 0;
}

/* What has less than half of its outcomes is left out by name. */
static void leave_out(struct asked *a) {
    const struct lk_outcomes *o = a->outcomes;
    struct lk_text *notes = &a->claims->notes;
    for (int m = 0; m < o->n_models; m++) {
        const double share = share_of_model(o, m);
        a->model[m] = share >= 0.3;
        a->n_models += a->model[m];
        if (share > 0 && !a->model[m])
            lk_text_add(notes, "%s: %.0f %% of its outcomes are known; it is left out.\n", o->model_names[m],
                        100 * share);
    }
    for (int s = 0; s < o->n_sources; s++) {
        const double share = share_of_row(a, s, -1);
        if (share >= 0.5)
            a->source[a->n_sources++] = s;
        else if (share > 0)
            lk_text_add(notes, "%s: %.0f %% of its outcomes are known; it is left out.\n", o->source_names[s],
                        100 * share);
    }
    for (int p = 0; p < o->n_prompts; p++) {
        const double share = share_of_row(a, -1, p);
        if (share >= 0.5)
            a->prompt[a->n_prompts++] = p;
        else if (share > 0)
            lk_text_add(notes, "%s: %.0f %% of its outcomes are known; it is left out.\n", o->prompt_names[p],
                        100 * share);
    }
}

static void count_sources(const struct asked *a, struct column *c) {
    for (int s = 0; s < a->n_sources; s++) {
        double mean = 0;
        for (int p = 0; p < a->n_prompts; p++) mean += c->z[s * a->n_prompts + p];
        c->n_with += mean > 1e-9;
        c->n_without += mean < a->n_prompts - 1e-9;
    }
}

/* Of one model, filled; false: nothing of it is known. */
static enum lk_code fill_column(struct asked *a, struct column *c, bool *known) {
    for (int s = 0; s < a->n_sources; s++)
        for (int p = 0; p < a->n_prompts; p++) {
            const double y = at(a->outcomes, c->outcome, c->model, a->source[s], a->prompt[p]);
            if (!(isnan(y) || (y >= 0 && y <= 1)))
                return lk_fail(LK_E_INPUT, "findings: expected outcomes from 0 to 1, got %g", y);
            c->z[s * a->n_prompts + p] = y;
        }
    LK_TRY(lk_crossed_fill(c->z, a->n_sources, a->n_prompts, &c->share_seen));
    *known = c->share_seen >= 0.5;
    return LK_OK;
}

/* A column for each outcome and model that is known, and for the mean of models where several are. */
static enum lk_code make_columns(struct asked *a) {
    const struct lk_outcomes *o = a->outcomes;
    const size_t cells = (size_t)a->n_sources * (size_t)a->n_prompts;
    a->columns = lk_calloc((size_t)o->n_outcomes * ((size_t)o->n_models + 1), sizeof *a->columns);
    if (!a->columns) return lk_fail(LK_E_NOMEM, "findings: out of memory");
    for (int k = 0; k < o->n_outcomes; k++) {
        const int first = a->n_columns;
        for (int m = 0; m < o->n_models; m++) {
            if (!a->model[m]) continue;
            struct column *c = &a->columns[a->n_columns];
            bool known = false;
            *c = (struct column){.outcome = k, .model = m, .z = lk_malloc((cells + 1) * sizeof *c->z)};
            enum lk_code rc = c->z ? fill_column(a, c, &known) : lk_fail(LK_E_NOMEM, "findings: out of memory");
            if (!known || rc) lk_free(c->z);
            if (rc) return rc;
            a->n_columns += known;
        }
        const int n = a->n_columns - first;
        if (n < 2) continue;
        struct column *mean = &a->columns[a->n_columns];
        *mean = (struct column){.outcome = k, .model = -1, .z = lk_calloc(cells + 1, sizeof *mean->z)};
        if (!mean->z) return lk_fail(LK_E_NOMEM, "findings: out of memory");
        for (int c = first; c < first + n; c++) {
            for (size_t i = 0; i < cells; i++) mean->z[i] += a->columns[c].z[i] / n;
            mean->share_seen += a->columns[c].share_seen / n;
        }
        a->n_columns++;
    }
    for (int c = 0; c < a->n_columns; c++) count_sources(a, &a->columns[c]);
    return LK_OK;
}

static enum lk_code begin(struct asked *a) {
    const struct lk_outcomes *o = a->outcomes;
    const size_t n_s = (size_t)o->n_sources, n_p = (size_t)o->n_prompts, n_a = (size_t)o->n_attributes;
    a->source = lk_calloc(n_s * (n_a + 1) + 2 * n_p + 1, sizeof *a->source);
    a->model = lk_calloc((size_t)o->n_models + 1, sizeof *a->model);
    a->n_outputs = lk_calloc(n_s + 1, sizeof *a->n_outputs);
    a->w = lk_calloc(n_s + n_p + 1, sizeof *a->w);
    if (!a->source || !a->model || !a->n_outputs || !a->w) return lk_fail(LK_E_NOMEM, "findings: out of memory");
    a->prompt = a->source + n_s;
    a->levels = a->prompt + n_p;
    a->v = a->w + n_s;
    int32_t *kinds = a->levels + n_a * n_s;
    leave_out(a);
    for (int f = 0; f < o->n_attributes; f++) {
        int32_t *of = a->levels + (size_t)f * n_s;
        for (int s = 0; s < a->n_sources; s++) of[s] = o->attributes[f].of[a->source[s]];
        a->attributes[f] = (struct lk_levels){of, o->attributes[f].count};
    }
    for (int p = 0; p < a->n_prompts; p++) kinds[p] = o->kinds.of[a->prompt[p]];
    a->kinds = (struct lk_levels){kinds, o->kinds.count};
    for (int s = 0; s < a->n_sources; s++) a->n_outputs[s] = a->n_prompts;
    a->claims->n_sources = a->n_sources, a->claims->n_prompts = a->n_prompts;
    if (!a->n_sources || !a->n_prompts) return LK_OK;
    LK_TRY(lk_residual_maker(a->n_sources, a->attributes, o->n_attributes, &a->people));
    LK_TRY(lk_residual_maker(a->n_prompts, &a->kinds, 1, &a->prompts));
    return make_columns(a);
}

static void add_family(struct lk_claims *c, enum lk_family_of_claims family, int attribute, const char *name) {
    c->families[c->n_families++] = (struct lk_claims_family){.family = family, .attribute = attribute, .name = name};
}

static void find_families(const struct asked *a) {
    const struct lk_outcomes *o = a->outcomes;
    for (int f = 0; f < o->n_attributes; f++)
        if (lk_levels_used(&a->attributes[f], a->n_sources, NULL) > 1)
            add_family(a->claims, LK_CLAIM_GROUP, f, o->attribute_names[f]);
    if (!a->options->prompts_are_all && lk_levels_used(&a->kinds, a->n_prompts, NULL) > 1)
        add_family(a->claims, LK_CLAIM_KIND, 0, "kind of prompt");
    if (a->n_models > 1) add_family(a->claims, LK_CLAIM_MODEL, 0, "model");
    a->claims->family_alpha = a->options->alpha / (a->claims->n_families ? a->claims->n_families : 1);
}

/* Found first, groups before kinds before models, then by t. */
static int by_weight(const void *a, const void *b) {
    const struct lk_claim *x = a, *y = b;
    if (x->found != y->found) return y->found - x->found;
    if (x->family != y->family) return (int)x->family - (int)y->family;
    if (x->t != y->t) return x->t < y->t ? 1 : -1;
    if (x->attribute != y->attribute) return x->attribute - y->attribute;
    if (x->outcome != y->outcome) return x->outcome - y->outcome;
    return x->model != y->model ? x->model - y->model : x->level - y->level;
}

enum lk_code lk_claims_of(const struct lk_outcomes *outcomes, const struct lk_claims_options *options,
                          struct lk_claims *out) {
    struct asked a = {.outcomes = outcomes, .options = options, .claims = out};
    *out = (struct lk_claims){0};
    enum lk_code rc = begin(&a);
    if (!rc && a.n_columns) find_families(&a);
    for (int f = 0; f < out->n_families && !rc; f++) {
        struct lk_claims_family *family = &out->families[f];
        rc = family->family == LK_CLAIM_GROUP  ? lk_claim_groups(&a, family)
             : family->family == LK_CLAIM_KIND ? lk_claim_kinds(&a, family)
                                               : lk_claim_models(&a, family);
    }
    if (!rc) rc = out->notes.rc;
    if (out->n) qsort(out->list, out->n, sizeof *out->list, by_weight);
    for (size_t i = 0; i < out->n; i++) out->n_found += out->list[i].found;
    for (int c = 0; c < a.n_columns; c++) lk_free(a.columns[c].z);
    lk_residual_maker_free(&a.people);
    lk_residual_maker_free(&a.prompts);
    lk_free(a.columns);
    lk_free(a.source);
    lk_free(a.model);
    lk_free(a.n_outputs);
    lk_free(a.w);
    return rc;
}

void lk_claims_free(struct lk_claims *c) {
    lk_free(c->list);
    lk_free(c->cells);
    lk_text_free(&c->notes);
    *c = (struct lk_claims){0};
}
