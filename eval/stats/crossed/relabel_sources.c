/* Labels of sources: which group a person is of. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/relabel_internal.h"

struct context {
    int n_s, n_p, n_columns, n_levels;
    const int32_t *kind;
    int n_kinds;
    bool prompts_are_all;
    int df, df_prompts;
    double *n, *weight;      /* [n_levels]: sources; squared source weights of a level against the others */
    int n_used;              /* levels that some source has */
    double *left;            /* [n_columns, n_s, n_p]: beside the other attributes */
    double *squares, *cells; /* [n_columns]: of source means, of what is left of a cell beside prompts' kinds */
    double *size;            /* [n_kinds]: prompts */
};

/* The kinds' means taken out of a row of prompts: its sum of squares; *sum: of the row. kinds [n_kinds]: scratch */
static double beside_kinds(const struct context *c, double *kinds, const double *row, double *sum) {
    double left = 0;
    *sum = 0;
    memset(kinds, 0, (size_t)c->n_kinds * sizeof *kinds);
    for (int p = 0; p < c->n_p; p++) kinds[c->kind[p]] += row[p], *sum += row[p];
    for (int p = 0; p < c->n_p; p++) {
        const double x = row[p] - kinds[c->kind[p]] / c->size[c->kind[p]];
        left += x * x;
    }
    return left;
}

/* room: [n_levels, n_p] of means, [n_kinds] */
static void statistic(const void *context, double *room, const int32_t *labels, double *t, double *difference) {
    const struct context *c = context;
    const size_t n_p = (size_t)c->n_p, row_bytes = n_p * sizeof *room;
    double *mean = room, *kinds = room + (size_t)c->n_levels * n_p;
    for (int k = 0; k < c->n_columns; k++) {
        const double *left = c->left + (size_t)k * (size_t)c->n_s * n_p;
        double *means = difference + (size_t)k * (size_t)c->n_levels, groups = 0, by_prompt = 0, sum = 0;
        memset(mean, 0, (size_t)c->n_levels * row_bytes);
        for (int s = 0; s < c->n_s; s++) {
            double *to = mean + (size_t)labels[s] * n_p;
            const double *from = left + (size_t)s * n_p;
            for (size_t p = 0; p < n_p; p++) to[p] += from[p];
        }
        for (int g = 0; g < c->n_levels; g++) {
            double *row = mean + (size_t)g * n_p, total;
            if (c->n[g] == 0) continue;
            for (size_t p = 0; p < n_p; p++) row[p] /= c->n[g];
            by_prompt += c->n[g] * beside_kinds(c, kinds, row, &total);
            means[g] = total / c->n_p;
            groups += c->n[g] * means[g] * means[g];
            sum += means[g];
        }
        const double source = fmax(c->squares[k] - groups, 0) / c->df;
        const double prompt = c->prompts_are_all ? 0 : by_prompt / ((c->n_used - 1) * c->df_prompts) / c->n_p;
        const double cell =
            c->prompts_are_all ? 0 : fmax(c->cells[k] - by_prompt, 0) / (c->df * c->df_prompts) / c->n_p;
        for (int g = 0; g < c->n_levels; g++) {
            double *out = t + (size_t)k * (size_t)c->n_levels + (size_t)g;
            *out = 0;
            if (c->n[g] == 0) continue;
            means[g] -= (sum - means[g]) / (c->n_used - 1);
            *out = lk_studentised(means[g], source * c->weight[g], prompt * c->weight[g], cell * c->weight[g]);
        }
    }
}

/* The tables beside the other attributes, and what no relabelling changes. */
static void prepare(struct context *c, const struct lk_crossed_tables *tables, const struct lk_residual_maker *others,
                    double *kinds) {
    const size_t n_s = (size_t)c->n_s, n_p = (size_t)c->n_p;
    for (int k = 0; k < c->n_columns; k++) {
        double *left = c->left + (size_t)k * n_s * n_p, total;
        memcpy(left, tables->z[k], n_s * n_p * sizeof *left);
        lk_residuals(others, left, c->n_p);
        for (size_t s = 0; s < n_s; s++) {
            c->cells[k] += beside_kinds(c, kinds, left + s * n_p, &total);
            c->squares[k] += total / c->n_p * (total / c->n_p);
        }
    }
}

/* Sources that are alike in all other attributes; all in one where more than a third would stand alone. */
static void find_strata(int n, const struct lk_levels *others, int n_others, int32_t *strata) {
    int n_alone = 0;
    for (int s = 0; s < n; s++) {
        int n_alike = 0;
        for (int u = n; u-- > 0;) {
            bool alike = true;
            for (int f = 0; f < n_others && alike; f++) alike = others[f].of[s] == others[f].of[u];
            if (!alike) continue;
            strata[s] = u; /* the first of them */
            n_alike++;
        }
        n_alone += n_alike == 1;
    }
    if (3 * n_alone > n)
        for (int s = 0; s < n; s++) strata[s] = 0;
}

static const char *why_not(const struct context *c) {
    if (c->n_used < 2) return "one level";
    if (!c->prompts_are_all && c->df_prompts < 1) return c->n_p == 1 ? "one prompt" : "each kind has one prompt";
    return c->df > 0 ? NULL : "no more sources than attributes";
}

static void weigh(struct context *c) {
    double all = 0;
    for (int g = 0; g < c->n_levels; g++)
        if (c->n[g] > 0) all += 1 / c->n[g], c->n_used++;
    for (int g = 0; g < c->n_levels; g++)
        if (c->n[g] > 0) c->weight[g] = 1 / c->n[g] + (all - 1 / c->n[g]) / ((c->n_used - 1.0) * (c->n_used - 1.0));
}

enum lk_code lk_relabel_sources(const struct lk_crossed_tables *tables, const struct lk_levels *factor,
                                const struct lk_levels *others, int n_others, const struct lk_levels *kind,
                                const struct lk_relabel *how, struct lk_relabelled *out) {
    const size_t n_s = (size_t)tables->n_sources, n_p = (size_t)tables->n_prompts, n_k = (size_t)tables->n;
    const size_t levels = (size_t)factor->count, kinds = (size_t)kind->count;
    struct context c = {.n_s = tables->n_sources,
                        .n_p = tables->n_prompts,
                        .n_columns = tables->n,
                        .n_levels = factor->count,
                        .kind = kind->of,
                        .prompts_are_all = how->prompts_are_all};
    struct lk_residual_maker maker = {0};
    *out = (struct lk_relabelled){.n_columns = tables->n, .n_levels = factor->count};
    enum lk_code rc = lk_residual_maker(tables->n_sources, others, n_others, &maker);
    double *all = lk_calloc(n_k * n_s * n_p + 2 * n_k + 2 * levels + 2 * kinds, sizeof *all);
    int32_t *strata = lk_calloc(n_s, sizeof *strata);
    if (!rc && (!all || !strata)) rc = lk_fail(LK_E_NOMEM, "crossed: no memory for %zu tables", n_k);
    if (!rc) {
        c.left = all;
        c.squares = c.left + n_k * n_s * n_p;
        c.cells = c.squares + n_k;
        c.n = c.cells + n_k;
        c.weight = c.n + levels;
        c.size = c.weight + levels;
        c.n_kinds = kind->count;
        for (size_t p = 0; p < n_p; p++) c.size[kind->of[p]]++;
        for (size_t s = 0; s < n_s; s++) c.n[factor->of[s]]++;
        c.df_prompts = c.n_p;
        for (size_t k = 0; k < kinds; k++) c.df_prompts -= c.size[k] > 0;
        weigh(&c);
        c.df = c.n_s - (maker.rank + c.n_used - 1);
        prepare(&c, tables, &maker, c.size + kinds);
        find_strata(c.n_s, others, n_others, strata);
        out->refused = why_not(&c);
        if (!out->refused) rc = lk_relabel(c.n_s, factor->of, strata, how, statistic, &c, levels * n_p + kinds, out);
    }
    lk_residual_maker_free(&maker);
    lk_free(all);
    lk_free(strata);
    return rc;
}
