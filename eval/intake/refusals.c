#include "eval/intake/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/models/linear_model.h"
#include "eval/stats/proportion.h"

/* --- differences --- */

/* Requests and refusals of a model by level. */
struct counts {
    const struct lk_outcomes *o;
    const struct lk_attribute *attribute;
    int64_t *k, *n; /* [n_models, levels] */
};

static enum lk_code take_counts(void *context, const struct lk_audit_row *row) {
    struct counts *c = context;
    const char *level = lk_audit_text(row, "level");
    double model, k, n;
    if (!level || !lk_audit_number(row, "model", &model) || !lk_audit_number(row, "k", &k) ||
        !lk_audit_number(row, "n", &n) || model >= c->o->n_models)
        return LK_OK;
    for (int l = 0; l < c->attribute->n; l++)
        if (!strcmp(level, c->attribute->keys[l])) {
            c->k[(int)model * c->attribute->n + l] = (int64_t)k;
            c->n[(int)model * c->attribute->n + l] = (int64_t)n;
        }
    return LK_OK;
}

/* Models by their number among those of the outcomes: labels may repeat. */
static enum lk_code count(struct lk_audit *audit, struct counts *c) {
    char sql[600];
    snprintf(sql, sizeof sql,
             "SELECT (SELECT count(DISTINCT i.model_key) FROM item i WHERE i.arm = 'edited' AND i.source2_id IS NULL "
             "AND i.model_position < g.model_position) AS model, level, k, n FROM (SELECT model_position, \"%s\" AS "
             "level, sum(value) AS k, count(value) AS n FROM measured WHERE who = 'asked' AND arm = 'edited' AND "
             "source2_id IS NULL GROUP BY model_position, level) g",
             c->attribute->name);
    return lk_audit_each(audit, sql, take_counts, c);
}

static void rate(struct lk_table *t, int64_t k, int64_t n, double alpha) {
    struct lk_number number;
    lk_table_percent(t, k, n);
    if (!lk_proportion(k, n, k <= LK_FEW_OUTCOMES ? LK_CLOPPER_PEARSON : LK_WILSON, 1 - alpha, &number) &&
        !number.undefined)
        lk_table_interval(t, number.low, number.high);
}

static void difference_row(struct lk_table *t, const struct counts *c, const struct lk_claims *claims,
                           const struct lk_claim *x, double alpha) {
    const int64_t *ks = c->k + x->model * c->attribute->n, *ns = c->n + x->model * c->attribute->n;
    int64_t k = 0, n = 0;
    struct lk_number alone;
    bool judged = false;
    for (int l = 0; l < c->attribute->n; l++)
        if (l != x->level) k += ks[l], n += ns[l];
    for (size_t i = 0; i < claims->n_cells; i++) {
        const struct lk_claim_cell *cell = &claims->cells[i];
        judged |= cell->family == LK_CLAIM_GROUP && cell->attribute == x->attribute && cell->model == x->model;
    }
    lk_table_row(t);
    lk_table_text(t, "%s", c->attribute->displays[x->level]);
    rate(t, ks[x->level], ns[x->level], alpha);
    rate(t, k, n, alpha);
    lk_table_points(t, x->difference);
    if (x->no_interval)
        lk_table_remark(t, "no interval: %s", x->no_interval);
    else
        lk_table_interval(t, x->low, x->high);
    if (!lk_proportion_difference(ks[x->level], ns[x->level], k, n, 1 - alpha, &alone) && !alone.undefined) {
        lk_table_points(t, alone.value);
        lk_table_interval(t, alone.low, alone.high);
    } else {
        lk_table_none(t, "nobody was answered");
    }
    if (judged)
        lk_table_p(t, x->p);
    else
        lk_table_none(t, "too rare, or too few sources of a level: see the summary");
    if (x->detectable > 0)
        lk_table_points(t, x->detectable);
    else
        lk_table_none(t, "no variance to tell by");
}

static void range_row(struct lk_table *t, const struct counts *c, const struct lk_crossed_range *range) {
    lk_table_row(t);
    lk_table_text(t, "Largest minus smallest");
    for (int i = 0; i < 2; i++) {
        const int level = i ? range->lowest : range->highest;
        lk_table_rate(t, i ? range->low : range->high);
        lk_table_remark(t, "%s", level < 0 ? "several are alike" : c->attribute->displays[level]);
    }
    lk_table_points(t, range->number.value);
    if (range->number.no_interval)
        lk_table_remark(t, "no interval: %s", range->number.no_interval);
    else
        lk_table_interval(t, range->number.low, range->number.high);
    for (int i = 0; i < 3; i++) lk_table_none(t, "of the largest of several");
}

static void difference_rows(struct lk_table *t, const struct counts *c, const struct lk_claims *claims, int attribute,
                            double alpha) {
    for (int m = 0; m < c->o->n_models; m++) {
        bool any = false;
        for (size_t i = 0; i < claims->n_measured; i++) {
            const struct lk_claim *x = &claims->measured[i];
            if (x->family != LK_CLAIM_GROUP || x->attribute != attribute || x->model != m) continue;
            if (!any) lk_table_heading(t, c->o->model_names[m]);
            any = true;
            difference_row(t, c, claims, x, alpha);
        }
        const struct lk_crossed_range *range = lk_claims_range(claims, LK_CLAIM_GROUP, attribute, 0, m);
        if (any && range && !range->number.undefined) range_row(t, c, range);
    }
}

enum lk_code lk_refusal_differences(struct lk_audit *audit, const struct lk_audit_findings *findings,
                                    const struct lk_study *study, int attribute, double alpha, struct lk_table **out) {
    const struct lk_claims *claims;
    const struct lk_outcomes *o;
    int n_attributes;
    struct counts c = {.attribute = &lk_study_attributes(study, &n_attributes)[attribute]};
    char id[100], caption[200], columns[400];
    lk_audit_refusals(findings, &o, &claims);
    c.o = o;
    const size_t n = (size_t)o->n_models * (size_t)c.attribute->n;
    c.k = lk_calloc(2 * n + 1, sizeof *c.k);
    if (!c.k) return lk_fail(LK_E_NOMEM, "report: out of memory");
    c.n = c.k + n;
    snprintf(id, sizeof id, "refusal_differences_%s", c.attribute->name);
    snprintf(caption, sizeof caption, "Differences in what is refused, by %s", c.attribute->display);
    snprintf(columns, sizeof columns,
             "%.60s|>Refused|>Others|>Difference|>By counts alone|>Adjusted p|>Would have been found", "Level");
    enum lk_code rc = count(audit, &c);
    if (!rc) rc = lk_table_new(out, id, caption, columns);
    if (!rc) {
        difference_rows(*out, &c, claims, attribute, alpha);
        lk_table_note(
            *out,
            "Each level against the others, baseline arm, requests that were answered. Difference: for people "
            "and prompts like these, every level counting alike, at %.4g%%; adjusted p over the levels and "
            "models of this attribute, by relabelled sources. Largest minus smallest at %.4g%%. Rates and By "
            "counts alone (Newcombe), at %.4g%%, take each request as independent, which those of one person "
            "or prompt are not.",
            100 * (1 - claims->family_alpha), 100 * (1 - alpha), 100 * (1 - alpha));
        rc = lk_table_finish(*out);
        if (rc) lk_table_free(*out);
    }
    lk_free(c.k);
    return rc;
}

/* --- factors --- */

enum { MOST_PROMPTS = 100 }; /* as columns of a model; beyond, their categories */

struct fit {
    const struct lk_outcomes *o;
    double *y;
    int32_t *model, *prompt, *source, *of[LK_MAX_ATTRIBUTES];
    size_t n;
};

/* Every known cell of a model, or of all (-1). */
static void gather(struct fit *f, int model) {
    const struct lk_outcomes *o = f->o;
    f->n = 0;
    for (int m = 0; m < o->n_models; m++)
        for (int s = 0; s < o->n_sources; s++)
            for (int p = 0; p < o->n_prompts; p++) {
                const double y = o->y[(m * o->n_sources + s) * o->n_prompts + p];
                if (isnan(y) || (model >= 0 && m != model)) continue;
                f->y[f->n] = y;
                f->model[f->n] = m, f->source[f->n] = s;
                f->prompt[f->n] = o->n_prompts > MOST_PROMPTS ? o->kinds.of[p] : p;
                for (int a = 0; a < o->n_attributes; a++) f->of[a][f->n] = o->attributes[a].of[s];
                f->n++;
            }
}

static bool varies(const int32_t *of, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (of[i] != of[0]) return true;
    return false;
}

static void term_row(struct lk_table *t, const char *name, const struct lk_linear_model *model, int term) {
    struct lk_wald wald = {.undefined = model->undefined};
    if (!wald.undefined && lk_linear_model_term(model, term, &wald)) wald.undefined = "no test";
    lk_table_row(t);
    lk_table_text(t, "%s", name);
    if (wald.undefined) {
        for (int i = 0; i < 4; i++) lk_table_none(t, wald.undefined);
        return;
    }
    lk_table_fixed(t, wald.f, 3);
    lk_table_fixed(t, wald.df1, 0);
    lk_table_fixed(t, wald.df2, 1);
    lk_table_p(t, wald.p_f);
}

static enum lk_code fit_rows(struct lk_table *t, const struct fit *f) {
    const struct lk_outcomes *o = f->o;
    struct lk_model_factor factors[LK_MAX_ATTRIBUTES + 2];
    struct lk_model_term terms[LK_MAX_ATTRIBUTES + 2];
    struct lk_linear_model *model;
    int n = 0;
    const bool kinds = o->n_prompts > MOST_PROMPTS;
    for (int a = 0; a < o->n_attributes; a++)
        if (varies(f->of[a], f->n))
            factors[n++] = (struct lk_model_factor){o->attribute_names[a], f->of[a], o->attributes[a].count};
    if (varies(f->prompt, f->n))
        factors[n++] = (struct lk_model_factor){kinds ? "Category of prompt" : "Prompt", f->prompt,
                                                kinds ? o->kinds.count : o->n_prompts};
    if (varies(f->model, f->n)) factors[n++] = (struct lk_model_factor){"Model", f->model, o->n_models};
    for (int i = 0; i < n; i++) terms[i] = (struct lk_model_term){i, -1};
    if (!n || !varies(f->source, f->n)) return LK_OK;
    LK_TRY(lk_linear_model_fit(f->y, f->n, factors, n, terms, n, f->source, &model));
    for (int i = 0; i < n; i++) term_row(t, factors[i].name, model, i);
    lk_linear_model_free(model);
    return LK_OK;
}

static enum lk_code factor_rows(struct lk_table *t, struct fit *f) {
    int n_models = 0;
    for (int m = 0; m < f->o->n_models; m++) {
        gather(f, m);
        if (!f->n) continue;
        n_models++;
        lk_table_heading(t, f->o->model_names[m]);
        LK_TRY(fit_rows(t, f));
    }
    if (n_models < 2) return LK_OK;
    gather(f, -1);
    lk_table_heading(t, "All models");
    return fit_rows(t, f);
}

enum lk_code lk_refusal_factors(const struct lk_audit_findings *findings, struct lk_table **out) {
    const struct lk_claims *claims;
    struct fit f;
    lk_audit_refusals(findings, &f.o, &claims);
    const struct lk_outcomes *o = f.o;
    const size_t n = (size_t)o->n_models * (size_t)o->n_sources * (size_t)o->n_prompts + 1;
    f.y = lk_malloc(n * sizeof *f.y);
    f.model = lk_malloc(n * (3 + LK_MAX_ATTRIBUTES) * sizeof *f.model);
    enum lk_code rc = f.y && f.model ? LK_OK : lk_fail(LK_E_NOMEM, "report: out of memory");
    f.prompt = f.model + (f.model ? n : 0);
    f.source = f.prompt + (f.model ? n : 0);
    for (int a = 0; a < LK_MAX_ATTRIBUTES && f.model; a++) f.of[a] = f.source + n * (size_t)(a + 1);
    if (!rc) rc = lk_table_new(out, "refusal_factors", "What being refused goes with", "Term|>F|>df|>df of errors|>p");
    if (!rc) {
        rc = factor_rows(*out, &f);
        lk_table_note(*out, "A linear model of being refused, of the attributes and prompts as factors, baseline arm: "
                            "tests of each term beside the others that count sources (CR2, approximate Hotelling's T "
                            "squared). For these prompts: how far it holds for others is in the differences above.");
        if (!rc) rc = lk_table_finish(*out);
        if (rc) lk_table_free(*out);
    }
    lk_free(f.y);
    lk_free(f.model);
    return rc;
}
