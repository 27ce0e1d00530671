#include "eval/t2i/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/tests/multiple.h"
#include "eval/t2i/pairing.h"
#include "eval/t2i/pending.h"

const double lk_t2i_thresholds[LK_N_T2I_THRESHOLDS] = {0, 0.5, 0.7, 0.9};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i: out of memory for metrics"); }

/* One more element of a list that may move; NULL when memory is out. */
#define GROW(m, list)                                                                                                  \
    (lk_grow(&(m)->list, &(m)->list##_capacity, (m)->n_##list + 1, sizeof *(m)->list)                                  \
         ? NULL                                                                                                        \
         : memset((m)->list + (m)->n_##list++, 0, sizeof *(m)->list))

void lk_t2i_scope_name(const struct lk_t2i_images *images, const struct lk_t2i_scope *scope, char out[200]) {
    if (scope->prompt == LK_T2I_POOLED) {
        snprintf(out, 200, "all prompts");
    } else if (scope->prompt < 0) {
        snprintf(out, 200, "%s prompts", lk_t2i_gender_key(scope->prompt - LK_T2I_POOLED - 1));
    } else if (!images->prompts) {
        snprintf(out, 200, "%.190s", images->ids.list[scope->prompt]);
    } else {
        lk_t2i_prompt_name(&images->prompts->list[scope->prompt], out);
    }
}

/* BiasAmp's reference of a model: the distance of the reference's shares, or the SPD of the reference's pictures of the
 * model, or of all models when there are none of it. */
static enum lk_code take_reference(struct lk_t2i_metrics *m, int32_t model) {
    const struct lk_t2i_images *pictures = m->options.reference_images;
    const char *name = m->images->models.list[model];
    int64_t counts[LK_N_T2I_ATTRIBUTES][LK_T2I_MAX_LEVELS] = {{0}};
    int32_t same = pictures ? lk_names_find(&pictures->models, name, strlen(name)) : -1;
    for (size_t i = 0; pictures && i < pictures->n; i++)
        for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++)
            if ((same < 0 || pictures->list[i].model == same) && pictures->list[i].level[a] >= 0)
                counts[a][pictures->list[i].level[a]]++;
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++) {
        struct lk_number *spd = &m->reference_spd[model][a];
        if (!m->analysed[a]) continue;
        if (pictures)
            LK_TRY(lk_spd(counts[a], lk_t2i_levels(a), m->options.target.shares[a], spd));
        else
            spd->value = lk_t2i_distribution_distance(&m->options.reference, &m->options.target, a);
    }
    return LK_OK;
}

/* SPD of the labels [n] that there are, with its interval, to the last row of a list. */
static enum lk_code spd_of(struct lk_t2i_metrics *m, int attribute, const int32_t *groups, size_t n,
                           enum lk_t2i_output output) {
    return lk_t2i_pending_add(m->pending, m, output, attribute, groups, NULL, n);
}

static enum lk_code add_cell(struct lk_t2i_metrics *m, const struct lk_t2i_selection *pictures, int arm,
                             int attribute) {
    struct lk_t2i_cell *cell = GROW(m, cells);
    if (!cell) return out_of_memory();
    *cell = (struct lk_t2i_cell){.scope = pictures->scope, .arm = arm, .attribute = attribute, .adjusted = NAN};
    cell->cfg = m->reference_cfg[cell->scope.model];
    cell->n_images = pictures->n;
    for (size_t i = 0; i < pictures->n; i++) {
        const struct lk_t2i_image *image = pictures->list[i];
        cell->n_faces += image->face;
        if (image->level[attribute] < 0) continue;
        cell->counts[image->level[attribute]]++;
        pictures->groups[cell->n++] = image->level[attribute];
    }
    LK_TRY(spd_of(m, attribute, pictures->groups, cell->n, LK_T2I_CELL));
    for (int g = 0; g < lk_t2i_levels(attribute); g++)
        if (cell->counts[g] && m->options.target.shares[attribute][g] == 0)
            cell->fit.undefined = "a group whose share in the target is 0 occurs";
    if (cell->fit.undefined) return LK_OK;
    return lk_chi2_fit(cell->counts, m->options.target.shares[attribute], (size_t)lk_t2i_levels(attribute), &cell->fit,
                       &cell->n_small);
}

static enum lk_code add_change(struct lk_t2i_metrics *m, const struct lk_t2i_pairs *pairs, int arm, int attribute) {
    struct lk_t2i_change *change = GROW(m, changes);
    if (!change) return out_of_memory();
    *change = (struct lk_t2i_change){.scope = pairs->scope, .arm = arm, .attribute = attribute, .adjusted = NAN};
    change->cfg = m->reference_cfg[change->scope.model];
    change->n_unpaired = pairs->n_unpaired;
    size_t n = lk_t2i_pair_groups(pairs, attribute, 0);
    for (size_t i = 0; i < n; i++)
        for (int side = 0; side < 2; side++) {
            int32_t group = pairs->groups[side][i];
            if (group >= 0) change->counts[side][group]++;
        }
    return lk_t2i_pending_add(m->pending, m, LK_T2I_CHANGE, attribute, pairs->groups[0], pairs->groups[1], n);
}

/* other - base of the pairs with confidence enough; undefined without such pairs on both sides. */
static enum lk_code difference(struct lk_t2i_metrics *m, const struct lk_t2i_pairs *pairs, int attribute,
                               double confidence, enum lk_t2i_output output) {
    size_t n = lk_t2i_pair_groups(pairs, attribute, confidence);
    return lk_t2i_pending_add(m->pending, m, output, attribute, pairs->groups[0], pairs->groups[1], n);
}

static enum lk_code add_sensitivity(struct lk_t2i_metrics *m, const struct lk_t2i_selection *pictures,
                                    const struct lk_t2i_pairs *pairs, int arm, int attribute, int threshold) {
    struct lk_t2i_sensitivity *row = GROW(m, sensitivity);
    if (!row) return out_of_memory();
    *row = (struct lk_t2i_sensitivity){
        .scope = pictures->scope, .arm = arm, .attribute = attribute, .threshold = threshold};
    row->change.undefined = "the base itself";
    for (size_t i = 0; i < pictures->n; i++) {
        const struct lk_t2i_image *image = pictures->list[i];
        row->n_before += image->level[attribute] >= 0;
        if (lk_t2i_group_of(image, attribute, lk_t2i_thresholds[threshold]) >= 0)
            pictures->groups[row->n++] = image->level[attribute];
    }
    LK_TRY(spd_of(m, attribute, pictures->groups, row->n, LK_T2I_SENSITIVITY_SPD));
    return pairs ? difference(m, pairs, attribute, lk_t2i_thresholds[threshold], LK_T2I_SENSITIVITY_CHANGE) : LK_OK;
}

/* One arm of a scope at the reference CFG, and against its base when that has pictures. */
static enum lk_code take_arm(struct lk_t2i_metrics *m, const struct lk_t2i_selection *scope, int arm) {
    struct lk_t2i_selection pictures = {0}, base = {0};
    struct lk_t2i_pairs pairs = {0};
    double cfg = m->reference_cfg[scope->scope.model];
    enum lk_code rc = lk_t2i_select(scope, arm, cfg, &pictures);
    if (!rc) rc = lk_t2i_select(scope, LK_T2I_NONE, cfg, &base);
    bool paired = !rc && arm != LK_T2I_NONE && pictures.n && base.n;
    if (paired) rc = lk_t2i_pair(&base, &pictures, arm == LK_T2I_POST_FILTER, &pairs);
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES && !rc && pictures.n; a++) {
        if (!m->analysed[a]) continue;
        rc = add_cell(m, &pictures, arm, a);
        if (!rc && paired) rc = add_change(m, &pairs, arm, a);
        for (int t = 0; t < LK_N_T2I_THRESHOLDS && !rc && a != LK_T2I_SKIN_TONE && lk_t2i_pooled(&scope->scope); t++)
            rc = add_sensitivity(m, &pictures, paired ? &pairs : NULL, arm, a, t);
    }
    lk_t2i_pairs_free(&pairs);
    lk_t2i_selection_free(&pictures);
    lk_t2i_selection_free(&base);
    return rc;
}

static enum lk_code add_cfg(struct lk_t2i_metrics *m, const struct lk_t2i_selection *scope, int arm, double cfg) {
    struct lk_t2i_selection pictures = {0}, reference = {0}, base = {0};
    struct lk_t2i_pairs from_reference = {0}, from_base = {0};
    double reference_cfg = m->reference_cfg[scope->scope.model];
    enum lk_code rc = lk_t2i_select(scope, arm, cfg, &pictures);
    if (!rc) rc = lk_t2i_select(scope, arm, reference_cfg, &reference);
    if (!rc) rc = lk_t2i_select(scope, LK_T2I_NONE, cfg, &base);
    if (!rc) rc = lk_t2i_pair(&reference, &pictures, arm == LK_T2I_POST_FILTER, &from_reference);
    if (!rc) rc = lk_t2i_pair(&base, &pictures, arm == LK_T2I_POST_FILTER, &from_base);
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES && !rc && pictures.n; a++) {
        if (!m->analysed[a]) continue;
        struct lk_t2i_cfg *row = GROW(m, cfg);
        if (!row) {
            rc = out_of_memory();
            break;
        }
        *row = (struct lk_t2i_cfg){.scope = scope->scope, .arm = arm, .attribute = a, .cfg = cfg};
        row->reference = cfg == reference_cfg;
        for (size_t i = 0; i < pictures.n; i++)
            if (pictures.list[i]->level[a] >= 0) pictures.groups[row->n++] = pictures.list[i]->level[a];
        row->mitigation.undefined = "the base itself";
        rc = spd_of(m, a, pictures.groups, row->n, LK_T2I_CFG_SPD);
        if (!rc && !row->reference) rc = difference(m, &from_reference, a, 0, LK_T2I_CFG_CHANGE);
        if (!rc && arm != LK_T2I_NONE) rc = difference(m, &from_base, a, 0, LK_T2I_CFG_MITIGATION);
    }
    lk_t2i_pairs_free(&from_reference);
    lk_t2i_pairs_free(&from_base);
    lk_t2i_selection_free(&pictures);
    lk_t2i_selection_free(&reference);
    lk_t2i_selection_free(&base);
    return rc;
}

static enum lk_code take_scope(struct lk_t2i_metrics *m, const struct lk_t2i_selection *scope) {
    bool present[LK_N_T2I_ARMS] = {false}, several[LK_N_T2I_ARMS] = {false};
    double first_of[LK_N_T2I_ARMS];
    for (size_t i = 0; i < scope->n; i++) {
        const struct lk_t2i_image *image = scope->list[i];
        if (!present[image->arm]) first_of[image->arm] = image->cfg;
        present[image->arm] = true;
        several[image->arm] |= image->cfg != first_of[image->arm];
    }
    for (int arm = 0; arm < LK_N_T2I_ARMS; arm++)
        if (present[arm]) LK_TRY(take_arm(m, scope, arm));
    if (!lk_t2i_pooled(&scope->scope)) return LK_OK;
    double first = -1, cfg = -INFINITY;
    size_t n_cfg = 0;
    for (; n_cfg <= LK_T2I_MAX_CFG && lk_t2i_next_cfg(scope, &cfg); n_cfg++)
        if (!n_cfg) first = cfg;
    if (n_cfg > LK_T2I_MAX_CFG)
        return lk_fail(LK_E_INPUT, "labels: model %.80s: expected at most %d values of cfg, got more",
                       m->images->models.list[scope->scope.model], LK_T2I_MAX_CFG);
    for (int arm = 0; arm < LK_N_T2I_ARMS && n_cfg > 1; arm++)
        if (several[arm]) {
            LK_TRY(add_cfg(m, scope, arm, first));
            for (cfg = first; lk_t2i_next_cfg(scope, &cfg);) LK_TRY(add_cfg(m, scope, arm, cfg));
        }
    return LK_OK;
}

/* A model's pictures [n]: pooled first, then prompt by prompt. */
static enum lk_code take_model(struct lk_t2i_metrics *m, const struct lk_t2i_image *pictures, size_t n) {
    struct lk_t2i_selection scope = {0};
    enum lk_code rc = lk_t2i_selection_reserve(&scope, n);
    int32_t first = LK_T2I_POOLED + (m->images->prompts ? 1 : 0), last = m->images->prompts ? -1 : LK_T2I_POOLED;
    if (!rc) rc = take_reference(m, pictures->model);
    if (!rc) rc = lk_t2i_reference_cfg(pictures, n, &m->reference_cfg[pictures->model]);
    for (int32_t pool = first; pool <= last && !rc; pool++) {
        scope.n = 0;
        scope.scope = (struct lk_t2i_scope){pictures->model, pool};
        for (size_t i = 0; i < n; i++)
            if (lk_t2i_pool_of(m->images, &pictures[i]) == pool) scope.list[scope.n++] = &pictures[i];
        if (scope.n) rc = take_scope(m, &scope);
    }
    for (size_t i = 0; i < n && !rc; i += scope.n) {
        scope.scope.prompt = pictures[i].prompt;
        for (scope.n = 0; i + scope.n < n && pictures[i + scope.n].prompt == pictures[i].prompt; scope.n++)
            scope.list[scope.n] = &pictures[i + scope.n];
        rc = take_scope(m, &scope);
    }
    lk_t2i_selection_free(&scope);
    return rc;
}

/* What follows from the numbers that were resampled. */
static void conclude(struct lk_t2i_metrics *m) {
    for (size_t i = 0; i < m->n_cells; i++) {
        struct lk_t2i_cell *cell = &m->cells[i];
        const struct lk_number *reference = &m->reference_spd[cell->scope.model][cell->attribute];
        if (reference->undefined)
            cell->amplification = (struct lk_number){.undefined = "no picture of the reference has a label"};
        else
            cell->amplification = lk_bias_amplification(&cell->spd, reference->value);
    }
    for (size_t i = 0; i < m->n_cfg; i++) {
        struct lk_t2i_cfg *row = &m->cfg[i];
        row->safe = row->reference || (!row->change.undefined && row->change.low <= 0);
    }
}

/* Benjamini-Hochberg over model x prompt x attribute of one arm; pooled scopes are a family of their own. */
static enum lk_code adjust(struct lk_t2i_metrics *m, bool changes, int arm, bool pooled, double *p, size_t *where) {
    size_t n = 0, n_all = changes ? m->n_changes : m->n_cells;
    for (size_t i = 0; i < n_all; i++) {
        const struct lk_t2i_scope *scope = changes ? &m->changes[i].scope : &m->cells[i].scope;
        const struct lk_test *test = changes ? &m->changes[i].change.test : &m->cells[i].fit;
        if ((changes ? m->changes[i].arm : m->cells[i].arm) != arm || lk_t2i_pooled(scope) != pooled || test->undefined)
            continue;
        where[n] = i;
        p[n++] = test->p;
    }
    if (n) LK_TRY(lk_adjust_p(p, n, LK_ADJUST_BENJAMINI_HOCHBERG, p));
    for (size_t i = 0; i < n; i++) *(changes ? &m->changes[where[i]].adjusted : &m->cells[where[i]].adjusted) = p[i];
    return LK_OK;
}

static enum lk_code adjust_all(struct lk_t2i_metrics *m) {
    size_t n = m->n_cells > m->n_changes ? m->n_cells : m->n_changes;
    double *p = lk_malloc(n * sizeof *p);
    size_t *where = lk_malloc(n * sizeof *where);
    enum lk_code rc = p && where ? LK_OK : out_of_memory();
    for (int i = 0; i < 4 * LK_N_T2I_ARMS && !rc; i++) rc = adjust(m, i & 1, i / 4, i & 2, p, where);
    lk_free(p);
    lk_free(where);
    return rc;
}

static enum lk_code check(const struct lk_t2i_images *images, const struct lk_t2i_options *o) {
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++)
        if (o->target.has[a] && !o->reference.has[a] && !o->reference_images)
            return lk_fail(LK_E_INPUT, "t2i: the target has shares of %s, but the reference has none",
                           lk_t2i_attribute_key(a));
    for (size_t i = 0; i < images->n; i++)
        for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++) {
            int level = images->list[i].level[a];
            if (!o->target.has[a] || level < 0 || o->target.names[a][level]) continue;
            return lk_fail(LK_E_INPUT, "%s: line %d: %s: \"%s\" has no share in the target; give it one (0 if need be)",
                           images->files.list[images->list[i].file], (int)images->list[i].line, lk_t2i_attribute_key(a),
                           lk_t2i_level_name(a, level));
        }
    return LK_OK;
}

enum lk_code lk_t2i_metrics_compute(struct lk_t2i_metrics *out, const struct lk_t2i_images *images,
                                    const struct lk_t2i_options *options) {
    *out = (struct lk_t2i_metrics){.images = images, .options = *options};
    LK_TRY(check(images, options));
    for (size_t i = 0; i < images->n; i++)
        for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++)
            out->analysed[a] |= options->target.has[a] && images->list[i].level[a] >= 0;
    out->reference_cfg = lk_calloc(images->models.n, sizeof *out->reference_cfg);
    out->reference_spd = lk_calloc(images->models.n, sizeof *out->reference_spd);
    enum lk_code rc = out->reference_cfg && out->reference_spd ? LK_OK : out_of_memory();
    struct lk_t2i_pending pending = {0};
    out->pending = &pending;
    for (size_t from = 0, to; from < images->n && !rc; from = to) {
        for (to = from; to < images->n && images->list[to].model == images->list[from].model;) to++;
        rc = take_model(out, images->list + from, to - from);
    }
    if (!rc) rc = lk_t2i_pending_run(&pending, out);
    lk_t2i_pending_free(&pending);
    out->pending = NULL;
    if (!rc) conclude(out);
    if (!rc) rc = adjust_all(out);
    if (rc) lk_t2i_metrics_free(out);
    return rc;
}

void lk_t2i_metrics_free(struct lk_t2i_metrics *metrics) {
    lk_free(metrics->reference_cfg);
    lk_free(metrics->reference_spd);
    lk_free(metrics->cells);
    lk_free(metrics->changes);
    lk_free(metrics->sensitivity);
    lk_free(metrics->cfg);
    *metrics = (struct lk_t2i_metrics){0};
}
