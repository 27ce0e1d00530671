/* Labels of prompts: which kind a prompt is of, or which subcategory of its kind. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/relabel_internal.h"

struct context {
    int n_p, n_columns, n_levels, n_kinds, df;
    double *n;          /* [n_levels]: prompts */
    double *others;     /* [n_levels]: other levels of the same kind that some prompt has */
    int32_t *kind;      /* [n_levels]: in which levels are compared */
    double *mean;       /* [n_columns, n_p]: over people */
    double *covariance; /* [n_columns, n_p, n_p]: of these means, from people */
};

/* The variance from people of each level's mean against the mean of the others, and what is left of cells. */
static double from_people(const struct context *c, const double *block, int level) {
    double own = 0, with = 0, rest = 0;
    for (int a = 0; a < c->n_levels; a++)
        for (int b = 0; b < c->n_levels; b++) {
            if (c->n[a] == 0 || c->n[b] == 0 || c->kind[a] != c->kind[level] || c->kind[b] != c->kind[level]) continue;
            const double x = block[a * c->n_levels + b] / (c->n[a] * c->n[b]);
            if (a == level && b == level)
                own = x;
            else if (a == level)
                with += x;
            else if (b != level)
                rest += x;
        }
    const double others = c->others[level];
    return own - 2 * with / others + rest / (others * others);
}

/* room: [n_levels] of sums, [n_levels, n_levels] of the covariance, twice [n_kinds] of sums over a kind's levels */
static void statistic(const void *context, double *room, const int32_t *labels, double *t, double *difference) {
    const struct context *c = context;
    const size_t n_p = (size_t)c->n_p, n_levels = (size_t)c->n_levels;
    double *sum = room, *block = sum + n_levels, *all = block + n_levels * n_levels, *inverse = all + c->n_kinds;
    for (int k = 0; k < c->n_columns; k++) {
        const double *mean = c->mean + (size_t)k * n_p, *covariance = c->covariance + (size_t)k * n_p * n_p;
        double *d = difference + (size_t)k * n_levels, *out = t + (size_t)k * n_levels;
        double prompt = 0, cell = 0;
        memset(sum, 0, n_levels * sizeof *sum);
        memset(all, 0, 2 * (size_t)c->n_kinds * sizeof *all);
        memset(block, 0, n_levels * n_levels * sizeof *block);
        for (size_t p = 0; p < n_p; p++) {
            sum[labels[p]] += mean[p];
            if (c->others[labels[p]] > 0) cell += covariance[p * n_p + p];
            for (size_t q = 0; q < n_p; q++)
                block[(size_t)labels[p] * n_levels + (size_t)labels[q]] += covariance[p * n_p + q];
        }
        for (int l = 0; l < c->n_levels; l++) {
            if (!(c->others[l] > 0)) continue;
            all[c->kind[l]] += sum[l] / c->n[l];
            inverse[c->kind[l]] += 1 / c->n[l];
            cell -= block[(size_t)l * (n_levels + 1)] / c->n[l];
        }
        for (size_t p = 0; p < n_p; p++) {
            const double f = mean[p] - sum[labels[p]] / c->n[labels[p]];
            if (c->others[labels[p]] > 0) prompt += f * f;
        }
        for (int l = 0; l < c->n_levels; l++) {
            d[l] = out[l] = 0;
            if (!(c->others[l] > 0)) continue;
            const double others = c->others[l], own = sum[l] / c->n[l];
            const double weight = 1 / c->n[l] + (inverse[c->kind[l]] - 1 / c->n[l]) / (others * others);
            d[l] = own - (all[c->kind[l]] - own) / others;
            out[l] = lk_studentised(d[l], from_people(c, block, l), prompt / c->df * weight, cell / c->df * weight);
        }
    }
}

/* Means over people, and their covariance by CR2's residuals; left [n_sources, n_prompts]. */
static void prepare(struct context *c, const struct lk_crossed_tables *tables, const struct lk_residual_maker *people,
                    double *left) {
    const size_t n_s = (size_t)tables->n_sources, n_p = (size_t)tables->n_prompts;
    for (int k = 0; k < tables->n; k++) {
        const double *z = tables->z[k];
        double *mean = c->mean + (size_t)k * n_p, *covariance = c->covariance + (size_t)k * n_p * n_p;
        memcpy(left, z, n_s * n_p * sizeof *left);
        lk_residuals(people, left, tables->n_prompts);
        for (size_t s = 0; s < n_s; s++) {
            const double weight = people->inflation[s] / ((double)n_s * (double)n_s);
            const double *row = left + s * n_p;
            for (size_t p = 0; p < n_p; p++) {
                mean[p] += z[s * n_p + p] / (double)n_s;
                for (size_t q = 0; q < n_p; q++) covariance[p * n_p + q] += weight * row[p] * row[q];
            }
        }
    }
}

/* How many levels each is compared with, and what is left of prompts beside the levels' means. */
static void count_levels(struct context *c, const int32_t *labels, const int32_t *kinds) {
    for (int p = 0; p < c->n_p; p++) c->n[labels[p]]++, c->kind[labels[p]] = kinds[p];
    for (int a = 0; a < c->n_levels; a++) {
        for (int b = 0; b < c->n_levels && c->n[a] > 0; b++)
            c->others[a] += a != b && c->n[b] > 0 && c->kind[a] == c->kind[b];
        if (c->others[a] > 0) c->df += (int)c->n[a] - 1;
    }
}

enum lk_code lk_relabel_prompts(const struct lk_crossed_tables *tables, const struct lk_levels *factor,
                                const struct lk_levels *within, const struct lk_levels *attributes, int n_attributes,
                                const struct lk_relabel *how, struct lk_relabelled *out) {
    const size_t n_s = (size_t)tables->n_sources, n_p = (size_t)tables->n_prompts, n_k = (size_t)tables->n;
    const size_t levels = (size_t)factor->count;
    const size_t n_kinds = within ? (size_t)within->count : 1;
    struct context c = {
        .n_p = tables->n_prompts, .n_columns = tables->n, .n_levels = factor->count, .n_kinds = (int)n_kinds};
    struct lk_residual_maker people = {0};
    *out = (struct lk_relabelled){.n_columns = tables->n, .n_levels = factor->count};
    enum lk_code rc = lk_residual_maker(tables->n_sources, attributes, n_attributes, &people);
    double *all = lk_calloc(n_k * n_p * (n_p + 1) + 2 * levels + n_s * n_p, sizeof *all);
    int32_t *one = lk_calloc(n_p + levels, sizeof *one);
    if (!rc && (!all || !one)) rc = lk_fail(LK_E_NOMEM, "crossed: no memory for %zu tables", n_k);
    if (!rc) {
        const int32_t *kinds = within ? within->of : one;
        bool any = false;
        c.mean = all;
        c.covariance = c.mean + n_k * n_p;
        c.n = c.covariance + n_k * n_p * n_p;
        c.others = c.n + levels;
        c.kind = one + n_p;
        count_levels(&c, factor->of, kinds);
        prepare(&c, tables, &people, c.others + levels);
        for (size_t l = 0; l < levels; l++) any |= c.others[l] > 0;
        out->refused = !any    ? (within ? "one subcategory a kind" : "one kind")
                       : !c.df ? (within ? "each subcategory has one prompt" : "each kind has one prompt")
                               : NULL;
        if (!out->refused)
            rc = lk_relabel(c.n_p, factor->of, kinds, how, statistic, &c, levels * (levels + 1) + 2 * n_kinds, out);
    }
    lk_residual_maker_free(&people);
    lk_free(all);
    lk_free(one);
    return rc;
}
