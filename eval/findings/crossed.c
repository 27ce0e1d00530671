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

const struct lk_levels *lk_claim_factor(const struct asked *a, const struct lk_claims_family *family, int *n) {
    const bool prompts = family->family == LK_CLAIM_KIND;
    *n = prompts ? a->n_prompts : a->n_sources;
    return prompts ? &a->of_prompts[family->attribute] : &a->attributes[family->attribute];
}

/* The kind of a subcategory that some prompt has; -1: none has it. */
static int kind_of(const struct asked *a, int subcategory) {
    for (int p = 0; p < a->n_prompts; p++)
        if (a->of_prompts[LK_SUBCATEGORIES].of[p] == subcategory) return a->of_prompts[LK_KINDS].of[p];
    return -1;
}

bool lk_claim_rivals(const struct asked *a, const struct lk_claims_family *family, int level, int other) {
    const bool all = family->family != LK_CLAIM_KIND || family->attribute == LK_KINDS;
    return level != other && (all || kind_of(a, level) == kind_of(a, other));
}

int lk_claim_n_rivals(const struct asked *a, const struct lk_claims_family *family, int level) {
    int n, rivals = 0;
    const struct lk_levels *levels = lk_claim_factor(a, family, &n);
    for (int l = 0; l < levels->count; l++) {
        bool used = false;
        for (int i = 0; i < n && !used; i++) used = levels->of[i] == l;
        if (!used && l == level) return -1;
        rivals += used && lk_claim_rivals(a, family, level, l);
    }
    return rivals;
}

const struct lk_residual_maker *lk_claim_prompts(const struct asked *a, const struct lk_claims_family *family) {
    return &a->prompts[family->family == LK_CLAIM_KIND ? family->attribute : LK_KINDS];
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

/* How many outcomes of each source, prompt and model are known, of the models that are used (NULL: all). */
static void count_known(const struct asked *a, const bool *used, double *source, double *prompt, double *model) {
    const struct lk_outcomes *o = a->outcomes;
    for (int s = 0; s < o->n_sources; s++) source[s] = 0;
    for (int p = 0; p < o->n_prompts; p++) prompt[p] = 0;
    for (int m = 0; m < o->n_models; m++) model[m] = 0;
    for (int k = 0; k < o->n_outcomes; k++)
        for (int m = 0; m < o->n_models; m++)
            for (int s = 0; s < o->n_sources && (!used || used[m]); s++)
                for (int p = 0; p < o->n_prompts; p++)
                    if (!isnan(at(o, k, m, s, p))) source[s]++, prompt[p]++, model[m]++;
}

/* Outcomes that anybody has scored: a judge may have no word for the others. */
static int n_scored(const struct lk_outcomes *o) {
    int n = 0;
    for (int k = 0; k < o->n_outcomes; k++) {
        bool known = false;
        for (int m = 0; m < o->n_models && !known; m++)
            for (int s = 0; s < o->n_sources && !known; s++)
                for (int p = 0; p < o->n_prompts && !known; p++) known = !isnan(at(o, k, m, s, p));
        n += known;
    }
    return n;
}

static void note(struct asked *a, const char *name, double known, double all) {
    lk_text_add(&a->claims->notes, "%s: %.0f %% of its outcomes are known; it is left out.\n", name, 100 * known / all);
}

/* Of which nothing is known is not asked about; what has less than half of its outcomes is left out by name. */
static enum lk_code leave_out(struct asked *a) {
    const struct lk_outcomes *o = a->outcomes;
    const size_t n_s = (size_t)o->n_sources, n_p = (size_t)o->n_prompts;
    double *source = lk_malloc((n_s + n_p + (size_t)o->n_models + 1) * sizeof *source);
    if (!source) return lk_fail(LK_E_NOMEM, "findings: out of memory");
    double *prompt = source + n_s, *model = prompt + n_p;
    const int n_outcomes = n_scored(o);
    int n_sources = 0, n_prompts = 0;
    count_known(a, NULL, source, prompt, model);
    for (int s = 0; s < o->n_sources; s++)
        if (source[s] > 0) a->source[n_sources++] = s;
    for (int p = 0; p < o->n_prompts; p++)
        if (prompt[p] > 0) a->prompt[n_prompts++] = p;
    for (int m = 0; m < o->n_models; m++) {
        const double all = (double)n_outcomes * n_sources * n_prompts;
        a->model[m] = model[m] >= 0.3 * all && all > 0;
        a->n_models += a->model[m];
        if (model[m] > 0 && !a->model[m]) note(a, o->model_names[m], model[m], all);
    }
    count_known(a, a->model, source, prompt, model);
    const double of_source = (double)n_outcomes * a->n_models * n_prompts,
                 of_prompt = (double)n_outcomes * a->n_models * n_sources;
    for (int i = 0; i < n_sources && a->n_models; i++) {
        const int s = a->source[i];
        if (source[s] >= 0.5 * of_source)
            a->source[a->n_sources++] = s; /* behind i all are as they were */
        else
            note(a, o->source_names[s], source[s], of_source);
    }
    for (int i = 0; i < n_prompts && a->n_models; i++) {
        const int p = a->prompt[i];
        if (prompt[p] >= 0.5 * of_prompt)
            a->prompt[a->n_prompts++] = p;
        else
            note(a, o->prompt_names[p], prompt[p], of_prompt);
    }
    lk_free(source);
    return LK_OK;
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
        if (n < 2 || a->options->apart) continue;
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
    a->source = lk_calloc(n_s * (n_a + 1) + 3 * n_p + 1, sizeof *a->source);
    a->model = lk_calloc((size_t)o->n_models + 1, sizeof *a->model);
    a->n_outputs = lk_calloc(n_s + 1, sizeof *a->n_outputs);
    a->w = lk_calloc(n_s + n_p + 1, sizeof *a->w);
    if (!a->source || !a->model || !a->n_outputs || !a->w) return lk_fail(LK_E_NOMEM, "findings: out of memory");
    a->prompt = a->source + n_s;
    a->levels = a->prompt + n_p;
    a->v = a->w + n_s;
    int32_t *of_prompts = a->levels + n_a * n_s;
    LK_TRY(leave_out(a));
    for (int f = 0; f < o->n_attributes; f++) {
        int32_t *of = a->levels + (size_t)f * n_s;
        for (int s = 0; s < a->n_sources; s++) of[s] = o->attributes[f].of[a->source[s]];
        a->attributes[f] = (struct lk_levels){of, o->attributes[f].count};
    }
    for (int f = 0; f < LK_PROMPT_FACTORS; f++, of_prompts += n_p) {
        const struct lk_levels *given = f == LK_SUBCATEGORIES && o->subcategories.of ? &o->subcategories : &o->kinds;
        for (int p = 0; p < a->n_prompts; p++) of_prompts[p] = given->of[a->prompt[p]];
        a->of_prompts[f] = (struct lk_levels){of_prompts, given->count};
    }
    for (int s = 0; s < a->n_sources; s++) a->n_outputs[s] = a->n_prompts;
    a->claims->n_sources = a->n_sources, a->claims->n_prompts = a->n_prompts;
    if (!a->n_sources || !a->n_prompts) return LK_OK;
    LK_TRY(lk_residual_maker(a->n_sources, a->attributes, o->n_attributes, &a->people));
    for (int f = 0; f < LK_PROMPT_FACTORS; f++)
        LK_TRY(lk_residual_maker(a->n_prompts, &a->of_prompts[f], 1, &a->prompts[f]));
    return make_columns(a);
}

static void add_family(struct lk_claims *c, enum lk_family_of_claims family, int attribute, const char *name) {
    c->families[c->n_families++] = (struct lk_claims_family){.family = family, .attribute = attribute, .name = name};
}

/* Whether a kind has several subcategories, one of them with several prompts: else there is nothing to ask. */
static bool any_subcategories(const struct asked *a) {
    const struct lk_claims_family family = {.family = LK_CLAIM_KIND, .attribute = LK_SUBCATEGORIES};
    const int32_t *of = a->of_prompts[LK_SUBCATEGORIES].of;
    bool several = false, repeated = false;
    if (!a->outcomes->subcategories.of) return false;
    for (int p = 0; p < a->n_prompts; p++) {
        bool rival = false, again = false;
        for (int q = 0; q < a->n_prompts; q++) {
            rival |= lk_claim_rivals(a, &family, of[p], of[q]);
            again |= q != p && of[q] == of[p];
        }
        several |= rival, repeated |= rival && again;
    }
    return several && repeated;
}

static void find_families(const struct asked *a) {
    const struct lk_outcomes *o = a->outcomes;
    for (int f = 0; f < o->n_attributes; f++)
        if (lk_levels_used(&a->attributes[f], a->n_sources, NULL) > 1)
            add_family(a->claims, LK_CLAIM_GROUP, f, o->attribute_names[f]);
    if (!a->options->prompts_are_all && lk_levels_used(&a->of_prompts[LK_KINDS], a->n_prompts, NULL) > 1)
        add_family(a->claims, LK_CLAIM_KIND, LK_KINDS, "kind of prompt");
    if (!a->options->prompts_are_all && any_subcategories(a))
        add_family(a->claims, LK_CLAIM_KIND, LK_SUBCATEGORIES, "subcategory of prompts");
    if (a->n_models > 1) add_family(a->claims, LK_CLAIM_MODEL, 0, "model");
    const int n = a->claims->n_families + a->options->n_families_beside;
    a->claims->family_alpha = a->options->alpha / (n ? n : 1);
}

/* The mean of models, or the only one; NULL: nothing is known of the outcome. */
static const struct column *mean_column(const struct asked *a, int outcome) {
    const struct column *mean = lk_claim_column(a, outcome, -1);
    for (int m = 0; m < a->outcomes->n_models && !mean; m++) mean = lk_claim_column(a, outcome, m);
    return mean;
}

/* Two kinds of prompts: the difference without its sign. */
static enum lk_code range_of_kinds(struct asked *a, const struct lk_crossed_table *table,
                                   struct lk_crossed_range *out) {
    int level[2], n = 0;
    double rate[2];
    struct lk_crossed r;
    const struct lk_levels *kinds = &a->of_prompts[LK_KINDS];
    for (int l = 0; l < kinds->count; l++) {
        bool used = false;
        for (int p = 0; p < a->n_prompts && !used; p++) used = kinds->of[p] == l;
        if (used && n < 2) level[n] = l;
        n += used;
    }
    *out = (struct lk_crossed_range){.number = {.undefined = n == 2 ? NULL : "not two kinds of prompts"}};
    if (n != 2) return LK_OK;
    lk_mean_weights(a->n_sources, a->attributes[0].of, -1, a->w);
    for (int k = 0; k < 3; k++) { /* each kind's rate, then the difference */
        for (int p = 0; p < a->n_prompts; p++) {
            const bool first = kinds->of[p] == level[0];
            int alike = 0;
            for (int q = 0; q < a->n_prompts; q++) alike += kinds->of[q] == kinds->of[p];
            a->v[p] = k == 2 ? (first ? 1.0 : -1.0) / alike : first == (k == 0) ? 1.0 / alike : 0;
        }
        LK_TRY(lk_crossed_contrast(table, a->w, a->v, &a->people, &a->prompts[LK_KINDS], &r));
        if (k < 2) rate[k] = r.estimate;
    }
    const int up = rate[1] > rate[0];
    double low, high;
    const bool exists = lk_crossed_interval(&r, 1 - a->options->alpha, &low, &high);
    const bool alike = fabs(rate[1] - rate[0]) < 1e-12;
    out->highest = alike ? -1 : level[up], out->lowest = alike ? -1 : level[!up];
    out->high = rate[up], out->low = rate[!up];
    out->number = (struct lk_number){
        .value = fabs(r.estimate), .n = (size_t)a->n_sources, .no_interval = r.no_interval, .undefined = r.undefined};
    if (!exists) return LK_OK;
    out->number.low = fmax(0, up ? -high : low);
    out->number.high = fmin(1, up ? -low : high);
    return LK_OK;
}

/* What relabelling says that the range is at least: no level is further from the mean of the others than the largest
 * from the smallest. Of few outcomes, as a model has by itself, draws of errors say too much: their low end is beyond
 * the truth in 8 to 11 % of studies. */
static double least_range(const struct lk_claims *claims, const struct lk_claims_range *range) {
    double least = 0, critical = INFINITY;
    for (int f = 0; f < claims->n_families; f++)
        if (claims->families[f].family == range->family && claims->families[f].attribute == range->attribute)
            critical = claims->families[f].critical;
    for (size_t i = 0; i < claims->n_cells; i++) {
        const struct lk_claim_cell *c = &claims->cells[i];
        if (c->family == range->family && c->attribute == range->attribute && c->outcome == range->outcome &&
            c->model == range->model && c->t > critical)
            least = fmax(least, fabs(c->difference) * (1 - critical / c->t));
    }
    return least;
}

/* Of a model by itself. Where few people have the outcome, rates are skewed: the high end is at least that of the
 * pairs' intervals by Wilson. */
static enum lk_code range_alone(struct asked *a, const struct lk_crossed_table *table, struct lk_claims_range *range) {
    const struct lk_levels *of = &a->attributes[range->attribute];
    struct lk_number *number = &range->range.number;
    struct lk_crossed_rate *rates = lk_calloc((size_t)of->count + 1, sizeof *rates);
    if (!rates) return lk_fail(LK_E_NOMEM, "findings: out of memory");
    number->low = fmin(number->low, least_range(a->claims, range));
    enum lk_code rc =
        lk_crossed_rates(table, of, &a->prompts[LK_KINDS], a->n_outputs, 1 - a->options->alpha, rates, NULL);
    for (int p = 0; p < of->count && !rc; p++)
        for (int q = 0; q < of->count; q++) {
            double low, high;
            if (rates[p].undefined || rates[q].undefined || !(rates[p].few || rates[q].few)) continue;
            if (rates[p].rate < rates[q].rate) continue;
            lk_crossed_mover(&rates[p], &rates[q], &low, &high);
            if (p != q && !number->no_interval) number->high = fmin(1, fmax(number->high, high));
        }
    lk_free(rates);
    return rc;
}

/* Of a family of groups, or of the kinds. */
static enum lk_code find_ranges(struct asked *a, enum lk_family_of_claims family, int attribute) {
    struct lk_claims *claims = a->claims;
    for (int i = 0; i < a->n_columns; i++) {
        const struct column *c = &a->columns[i];
        if (!a->options->apart && c != mean_column(a, c->outcome)) continue;
        const struct lk_crossed_table table = {a->n_sources, a->n_prompts, c->z, c->share_seen,
                                               a->options->prompts_are_all};
        LK_TRY(lk_grow(&claims->ranges, &claims->ranges_capacity, claims->n_ranges + 1, sizeof *claims->ranges));
        struct lk_claims_range *range = &claims->ranges[claims->n_ranges++];
        *range = (struct lk_claims_range){.family = family,
                                          .attribute = attribute,
                                          .outcome = c->outcome,
                                          .model = a->options->apart ? c->model : -1};
        LK_TRY(family == LK_CLAIM_KIND
                   ? range_of_kinds(a, &table, &range->range)
                   : lk_crossed_range(&table, &a->attributes[attribute], &a->people, &a->prompts[LK_KINDS],
                                      1 - a->options->alpha, a->options->seed, &range->range));
        if (a->options->apart && family == LK_CLAIM_GROUP) LK_TRY(range_alone(a, &table, range));
    }
    return LK_OK;
}

const struct lk_crossed_range *lk_claims_range(const struct lk_claims *claims, enum lk_family_of_claims family,
                                               int attribute, int outcome, int model) {
    for (size_t i = 0; i < claims->n_ranges; i++) {
        const struct lk_claims_range *r = &claims->ranges[i];
        if (r->family == family && r->attribute == attribute && r->outcome == outcome && r->model == model)
            return &r->range;
    }
    return NULL;
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
        if (!rc && options->ranges && family->family == LK_CLAIM_GROUP)
            rc = find_ranges(&a, LK_CLAIM_GROUP, family->attribute);
        if (!rc && options->measured && family->family != LK_CLAIM_MODEL) rc = lk_claim_measure_all(&a, family);
    }
    if (!rc && options->ranges && a.n_columns) rc = find_ranges(&a, LK_CLAIM_KIND, 0);
    if (!rc) rc = out->notes.rc;
    if (out->n) qsort(out->list, out->n, sizeof *out->list, by_weight);
    for (size_t i = 0; i < out->n; i++) out->n_found += out->list[i].found;
    for (int c = 0; c < a.n_columns; c++) lk_free(a.columns[c].z);
    lk_residual_maker_free(&a.people);
    for (int f = 0; f < LK_PROMPT_FACTORS; f++) lk_residual_maker_free(&a.prompts[f]);
    lk_free(a.columns);
    lk_free(a.rates);
    lk_free(a.source);
    lk_free(a.model);
    lk_free(a.n_outputs);
    lk_free(a.w);
    return rc;
}

void lk_claims_free(struct lk_claims *c) {
    lk_free(c->list);
    lk_free(c->cells);
    lk_free(c->ranges);
    lk_free(c->measured);
    lk_text_free(&c->notes);
    *c = (struct lk_claims){0};
}
