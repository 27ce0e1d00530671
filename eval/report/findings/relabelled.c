#include "eval/report/findings/relabelled.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "eval/report/findings/outcomes.h"

/* The table of sources and prompts, and their levels. */
struct table {
    int n_sources, n_prompts;
    double *z, share_seen;
    int32_t *source, *prompt; /* row of a source, column of a prompt; -1: none */
    int32_t *asked, *gender, *age, *kind;
};

static bool wanted(const struct lk_relabelled_question *q, const struct lk_item *item) {
    if (item->prompt < 0 || item->prompt >= LK_N_EDIT_PROMPTS) return false;
    if (q->category >= 0 && item->prompt / 10 != q->category) return false;
    return !q->without_white || item->race != 0;
}

static double value_of(const struct lk_item *item, const struct lk_report_options *options,
                       const struct lk_relabelled_question *q) {
    const uint8_t *levels = lk_item_levels(item, q->source);
    if (q->mean_score) return levels[q->axis] ? levels[q->axis] : NAN;
    return lk_outcome_of(item, q->measure, options, q->source);
}

/* Means over models; what is missing is filled. */
static enum lk_code fill(const struct lk_dataset *data, const struct lk_report_options *options,
                         const struct lk_relabelled_question *q, struct table *t) {
    const struct lk_group all = LK_GROUP_ANY;
    double *n = lk_calloc(LK_N_SOURCES * LK_N_EDIT_PROMPTS, sizeof *n);
    t->z = lk_calloc(LK_N_SOURCES * LK_N_EDIT_PROMPTS, sizeof *t->z);
    t->source = lk_malloc((5 * LK_N_SOURCES + 2 * LK_N_EDIT_PROMPTS) * sizeof *t->source);
    if (!n || !t->z || !t->source) {
        lk_free(n);
        return lk_fail(LK_E_NOMEM, "report: out of memory");
    }
    t->asked = t->source + LK_N_SOURCES;
    t->gender = t->asked + LK_N_SOURCES;
    t->age = t->gender + LK_N_SOURCES;
    t->prompt = t->age + LK_N_SOURCES;
    t->kind = t->prompt + LK_N_EDIT_PROMPTS;
    for (int s = 0; s < LK_N_SOURCES; s++) t->source[s] = -1;
    for (int p = 0; p < LK_N_EDIT_PROMPTS; p++) t->prompt[p] = -1;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < data->n_items; i++) {
            const struct lk_item *item = &data->items[i];
            if (!lk_group_has(&all, item) || !wanted(q, item)) continue;
            const double value = value_of(item, options, q);
            if (isnan(value)) continue;
            if (pass) {
                const int cell = t->source[item->source] * t->n_prompts + t->prompt[item->prompt];
                t->z[cell] += value, n[cell]++;
            } else {
                t->source[item->source] = t->prompt[item->prompt] = 0;
            }
        }
        for (int s = 0; s < LK_N_SOURCES && !pass; s++) {
            int race, gender, age;
            if (t->source[s] < 0) continue;
            lk_source_factors(s, &race, &gender, &age);
            t->asked[t->n_sources] = q->about == LK_ASK_OTHERS_THAN_WHITE ? race > 0 : race;
            t->gender[t->n_sources] = gender;
            t->age[t->n_sources] = lk_age_group(age);
            t->source[s] = t->n_sources++;
        }
        for (int p = 0; p < LK_N_EDIT_PROMPTS && !pass; p++) {
            if (t->prompt[p] < 0) continue;
            t->kind[t->n_prompts] = p / 10;
            t->prompt[p] = t->n_prompts++;
        }
    }
    for (int i = 0; i < t->n_sources * t->n_prompts; i++) t->z[i] = n[i] > 0 ? t->z[i] / n[i] : NAN;
    lk_free(n);
    return t->n_sources ? lk_crossed_fill(t->z, t->n_sources, t->n_prompts, &t->share_seen) : LK_OK;
}

enum { LEAST_DF = 3 }; /* of an interval */

/* The interval of the difference that is asked about. */
static enum lk_code measure(const struct table *t, const struct lk_report_options *options, enum lk_relabelled_of about,
                            struct lk_relabelled_answer *out) {
    const struct lk_levels asked = {t->asked, LK_N_RACES}, gender = {t->gender, 2}, age = {t->age, 3},
                           kind = {t->kind, 2}, factors[] = {asked, gender, age};
    struct lk_residual_maker people = {0}, prompts = {0};
    const struct lk_crossed_table table = {t->n_sources, t->n_prompts, t->z, t->share_seen, options->prompts_are_all};
    const bool kinds = about == LK_ASK_CATEGORIES;
    double contrast[LK_N_RACES] = {-1, 1};
    struct lk_crossed_range range = {0};
    struct lk_crossed r = {0};
    double *w = lk_malloc(((size_t)t->n_sources + (size_t)t->n_prompts) * sizeof *w);
    if (!w) return lk_fail(LK_E_NOMEM, "report: out of memory");
    double *v = w + t->n_sources;
    enum lk_code rc = lk_residual_maker(t->n_sources, factors, 3, &people);
    if (!rc) rc = lk_residual_maker(t->n_prompts, &kind, 1, &prompts);
    lk_mean_weights(t->n_sources, t->asked, -1, w);
    lk_mean_weights(t->n_prompts, t->kind, -1, v);
    if (!rc && about == LK_ASK_RACES)
        rc = lk_crossed_range(&table, &asked, &people, &prompts, 1 - options->alpha, options->study_seed, &range);
    else if (!rc && kinds)
        rc = lk_contrast_weights(t->n_prompts, &kind, 1, contrast, v, &out->no_interval);
    else if (!rc)
        rc = lk_contrast_weights(t->n_sources, factors, 3, contrast, w, &out->no_interval);
    if (!rc && about == LK_ASK_RACES) {
        const struct lk_number *number = &range.number;
        out->no_interval = number->undefined ? number->undefined : number->no_interval;
        out->low = number->low, out->high = number->high;
    } else if (!rc && !out->no_interval) {
        rc = lk_crossed_contrast(&table, w, v, &people, &prompts, &r);
        if (!lk_crossed_interval(&r, 1 - options->alpha, &out->low, &out->high)) out->no_interval = r.no_interval;
        if (!out->no_interval && r.df < LEAST_DF) out->no_interval = kinds ? "too few prompts" : "too few people";
    }
    lk_residual_maker_free(&people);
    lk_residual_maker_free(&prompts);
    lk_free(w);
    return rc;
}

enum lk_code lk_report_relabel(const struct lk_dataset *data, const struct lk_report_options *options,
                               const struct lk_relabelled_question *q, struct lk_relabelled_answer *out) {
    struct table t = {0};
    struct lk_relabelled r = {0};
    *out = (struct lk_relabelled_answer){.p = 1};
    enum lk_code rc = fill(data, options, q, &t);
    const double *const list[] = {t.z};
    const struct lk_crossed_tables tables = {t.n_sources, t.n_prompts, 1, list};
    const struct lk_levels asked = {t.asked, LK_N_RACES}, others[] = {{t.gender, 2}, {t.age, 3}}, kind = {t.kind, 2},
                           all[] = {asked, others[0], others[1]};
    const struct lk_relabel how = {.seed = options->study_seed, .prompts_are_all = options->prompts_are_all};
    if (!rc && (!t.n_sources || t.share_seen < 0.5))
        out->why = "fewer than half of the outputs have a score";
    else if (!rc && q->about == LK_ASK_CATEGORIES)
        rc = lk_relabel_prompts(&tables, &kind, NULL, all, 3, &how, &r);
    else if (!rc)
        rc = lk_relabel_sources(&tables, &asked, others, 2, &kind, &how, &r);
    if (!rc && !out->why) out->why = r.refused;
    for (int l = 0; l < r.n_levels && !rc && !out->why; l++)
        if (r.t[l] >= out->t) out->t = r.t[l], out->p = r.p[l];
    if (!rc && !out->why) rc = measure(&t, options, q->about, out);
    lk_relabelled_free(&r);
    lk_free(t.z);
    lk_free(t.source);
    return rc;
}
