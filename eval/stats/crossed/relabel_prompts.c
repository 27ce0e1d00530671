/* Labels of prompts: which kind a prompt is of. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/relabel_internal.h"

struct context {
    int n_p, n_columns, n_levels, n_used, df;
    double *n;           /* [n_levels]: prompts */
    double *mean;        /* [n_columns, n_p]: over people */
    double *covariance;  /* [n_columns, n_p, n_p]: of these means, from people */
    double *sum, *block; /* scratch: [n_levels], [n_levels, n_levels] */
};

/* The variance from people of each level's mean against the mean of the others, and what is left of cells. */
static double from_people(const struct context *c, int level) {
    double own = 0, with = 0, rest = 0;
    for (int a = 0; a < c->n_levels; a++)
        for (int b = 0; b < c->n_levels; b++) {
            if (c->n[a] == 0 || c->n[b] == 0) continue;
            const double x = c->block[a * c->n_levels + b] / (c->n[a] * c->n[b]);
            if (a == level && b == level)
                own = x;
            else if (a == level)
                with += x;
            else if (b != level)
                rest += x;
        }
    const double others = c->n_used - 1;
    return own - 2 * with / others + rest / (others * others);
}

static void statistic(void *context, const int32_t *labels, double *t, double *difference) {
    struct context *c = context;
    const size_t n_p = (size_t)c->n_p, n_levels = (size_t)c->n_levels;
    for (int k = 0; k < c->n_columns; k++) {
        const double *mean = c->mean + (size_t)k * n_p, *covariance = c->covariance + (size_t)k * n_p * n_p;
        double *d = difference + (size_t)k * n_levels, *out = t + (size_t)k * n_levels;
        double all = 0, inverse = 0, prompt = 0, cell = 0;
        memset(c->sum, 0, n_levels * sizeof *c->sum);
        memset(c->block, 0, n_levels * n_levels * sizeof *c->block);
        for (size_t p = 0; p < n_p; p++) {
            c->sum[labels[p]] += mean[p];
            cell += covariance[p * n_p + p];
            for (size_t q = 0; q < n_p; q++)
                c->block[(size_t)labels[p] * n_levels + (size_t)labels[q]] += covariance[p * n_p + q];
        }
        for (int l = 0; l < c->n_levels; l++) {
            if (c->n[l] == 0) continue;
            all += c->sum[l] / c->n[l];
            inverse += 1 / c->n[l];
            cell -= c->block[(size_t)l * (n_levels + 1)] / c->n[l];
        }
        for (size_t p = 0; p < n_p; p++) {
            const double f = mean[p] - c->sum[labels[p]] / c->n[labels[p]];
            prompt += f * f;
        }
        for (int l = 0; l < c->n_levels; l++) {
            d[l] = out[l] = 0;
            if (c->n[l] == 0) continue;
            const double others = c->n_used - 1, own = c->sum[l] / c->n[l];
            const double weight = 1 / c->n[l] + (inverse - 1 / c->n[l]) / (others * others);
            d[l] = own - (all - own) / others;
            out[l] = lk_studentised(d[l], from_people(c, l), prompt / c->df * weight, cell / c->df * weight);
        }
    }
}

/* Means over people, and their covariance by CR2's residuals. */
static void prepare(struct context *c, const struct lk_crossed_tables *tables, const struct lk_residual_maker *people,
                    double *row) {
    const size_t n_s = (size_t)tables->n_sources, n_p = (size_t)tables->n_prompts;
    for (int k = 0; k < tables->n; k++) {
        const double *z = tables->z[k];
        double *mean = c->mean + (size_t)k * n_p, *covariance = c->covariance + (size_t)k * n_p * n_p;
        for (size_t s = 0; s < n_s; s++) {
            const double weight = people->inflation[s] / ((double)n_s * (double)n_s);
            memset(row, 0, n_p * sizeof *row);
            for (size_t u = 0; u < n_s; u++)
                for (size_t p = 0; p < n_p; p++) row[p] += people->m[s * n_s + u] * z[u * n_p + p];
            for (size_t p = 0; p < n_p; p++) {
                mean[p] += z[s * n_p + p] / (double)n_s;
                for (size_t q = 0; q < n_p; q++) covariance[p * n_p + q] += weight * row[p] * row[q];
            }
        }
    }
}

enum lk_code lk_relabel_prompts(const struct lk_crossed_tables *tables, const struct lk_levels *kind,
                                const struct lk_levels *attributes, int n_attributes, const struct lk_relabel *how,
                                struct lk_relabelled *out) {
    const size_t n_p = (size_t)tables->n_prompts, n_k = (size_t)tables->n, levels = (size_t)kind->count;
    struct context c = {.n_p = tables->n_prompts, .n_columns = tables->n, .n_levels = kind->count};
    struct lk_residual_maker people = {0};
    *out = (struct lk_relabelled){.n_columns = tables->n, .n_levels = kind->count};
    enum lk_code rc = lk_residual_maker(tables->n_sources, attributes, n_attributes, &people);
    double *all = lk_calloc(n_k * n_p * (n_p + 1) + levels * (levels + 2) + n_p, sizeof *all);
    int32_t *strata = lk_calloc(n_p, sizeof *strata); /* one */
    if (!rc && (!all || !strata)) rc = lk_fail(LK_E_NOMEM, "crossed: no memory for %zu tables", n_k);
    if (!rc) {
        c.mean = all;
        c.covariance = c.mean + n_k * n_p;
        c.n = c.covariance + n_k * n_p * n_p;
        c.sum = c.n + levels;
        c.block = c.sum + levels;
        for (size_t p = 0; p < n_p; p++) c.n[kind->of[p]]++;
        for (size_t l = 0; l < levels; l++) c.n_used += c.n[l] > 0;
        c.df = c.n_p - c.n_used;
        prepare(&c, tables, &people, c.block + levels * levels);
        out->refused = c.n_used < 2 ? "one kind" : c.df < 1 ? "each kind has one prompt" : NULL;
        if (!out->refused) rc = lk_relabel(c.n_p, kind->of, strata, how, statistic, &c, out);
    }
    lk_residual_maker_free(&people);
    lk_free(all);
    lk_free(strata);
    return rc;
}
