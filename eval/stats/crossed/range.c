/* The largest difference between groups of people, with people and prompts as samples: what the groups' rates are wrong
 * by is drawn, and the interval is that of range_interval.h. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/crossed.h"
#include "eval/stats/models/symmetric_eigen.h"
#include "eval/stats/resampling/range_interval.h"
#include "eval/stats/special/special.h"
#include "eval/study/random.h"

enum { DRAWS = 600 };
/* Of what an interval may miss, the share above. Where one group stands out from several alike, these lie as estimated
 * and not as alike in what is drawn, and the low end misses more often than it is told to; the high end, above an
 * estimate that is too large, hardly ever. */
#define ABOVE 0.7

void lk_crossed_errors_free(struct lk_crossed_errors *errors) {
    lk_free(errors->rate);
    *errors = (struct lk_crossed_errors){0};
}

static void set_size(struct lk_crossed_errors *e, int count) {
    const size_t n = (size_t)count;
    e->count = count;
    e->rate = lk_calloc(2 * n + n * n + 1, sizeof *e->rate);
    e->source = e->rate ? e->rate + n : NULL;
    e->shared = e->rate ? e->source + n : NULL;
}

/* by_group [count, n_prompts]: the groups' means, then what kinds leave of them; row [n_prompts]. */
static void measure(const struct lk_crossed_table *table, const struct lk_levels *factor,
                    const struct lk_residual_maker *prompts, const int *n_of, double *by_group, double *row,
                    struct lk_crossed_errors *e) {
    const int n_s = table->n_sources, n_p = table->n_prompts, count = factor->count;
    const double seen = table->share_seen > 0 ? table->share_seen : 1;
    double within = 0, cells = 0, between = 0, used = 0;
    for (int s = 0; s < n_s; s++)
        for (int p = 0; p < n_p; p++) by_group[factor->of[s] * n_p + p] += table->z[s * n_p + p] / n_of[factor->of[s]];
    for (int g = 0; g < count; g++) {
        used += n_of[g] > 0;
        for (int p = 0; p < n_p; p++) e->rate[g] += by_group[g * n_p + p] / n_p;
        if (!n_of[g]) e->rate[g] = NAN;
    }
    for (int s = 0; s < n_s; s++) {
        const int g = factor->of[s];
        double off = 0;
        for (int p = 0; p < n_p; p++) {
            row[p] = table->z[s * n_p + p] - by_group[g * n_p + p];
            off += row[p] / n_p;
        }
        e->source[g] += off * off / n_of[g] / (n_of[g] - 1) / seen;
        within += off * off;
        lk_residuals(prompts, row, 1);
        for (int p = 0; p < n_p; p++) cells += row[p] * row[p];
    }
    const double people_df = n_s - used, prompt_df = n_p - prompts->rank;
    e->pooled = (struct lk_crossed){.source = within / people_df, .source_df = people_df};
    if (table->prompts_are_all) {
        lk_crossed_combine(&e->pooled);
        return;
    }
    for (int g = 0; g < count; g++) lk_residuals(prompts, by_group + g * n_p, 1);
    for (int p = 0; p < n_p; p++) {
        double mean = 0, weighted = 0;
        for (int g = 0; g < count; g++) {
            mean += n_of[g] ? by_group[g * n_p + p] / used : 0;
            weighted += n_of[g] * by_group[g * n_p + p] / n_s;
        }
        for (int g = 0; g < count; g++) between += n_of[g] * pow(by_group[g * n_p + p] - weighted, 2);
        for (int g = 0; g < count; g++)
            for (int h = 0; h < count && n_of[g]; h++)
                if (n_of[h])
                    e->shared[g * count + h] += prompts->inflation[p] * (by_group[g * n_p + p] - mean) *
                                                (by_group[h * n_p + p] - mean) / n_p / n_p / seen;
    }
    e->pooled.prompt = between / ((used - 1) * prompt_df) / n_p;
    e->pooled.prompt_df = (used - 1) * prompt_df;
    e->pooled.cell = cells / (people_df * prompt_df) / n_p;
    e->pooled.cell_df = people_df * prompt_df;
    e->kept = e->pooled.prompt > 0 ? fmax(0, 1 - e->pooled.cell / e->pooled.prompt) : 0;
    lk_crossed_combine(&e->pooled);
}

enum lk_code lk_crossed_errors_of(const struct lk_crossed_table *table, const struct lk_levels *factor,
                                  const struct lk_residual_maker *prompts, struct lk_crossed_errors *out) {
    const size_t n_p = (size_t)table->n_prompts, count = (size_t)factor->count;
    int n_of[LK_CROSSED_LEVELS] = {0}, used = 0;
    *out = (struct lk_crossed_errors){0};
    if (factor->count > LK_CROSSED_LEVELS)
        return lk_fail(LK_E_INPUT, "crossed: expected at most %d levels, got %d", LK_CROSSED_LEVELS, factor->count);
    for (int s = 0; s < table->n_sources; s++) n_of[factor->of[s]]++;
    for (int g = 0; g < factor->count; g++) {
        used += n_of[g] > 0;
        if (n_of[g] == 1) out->undefined = "a level has one source";
    }
    if (used < 2) out->undefined = "fewer than two levels";
    if (!table->prompts_are_all && prompts->rank >= prompts->n) out->undefined = "a kind has one prompt";
    if (out->undefined) return LK_OK;
    double *scratch = lk_calloc((count + 1) * n_p, sizeof *scratch);
    set_size(out, factor->count);
    const bool made = scratch && out->rate;
    if (made) measure(table, factor, prompts, n_of, scratch, scratch + count * n_p, out);
    lk_free(scratch);
    return made ? LK_OK : lk_fail(LK_E_NOMEM, "crossed: no memory for %d groups", factor->count);
}

static double normal(struct lk_stream *stream) {
    return lk_normal_quantile(((double)(lk_stream_u64(stream) >> 11) + 0.5) * 0x1p-53);
}

/* The groups' rates with drawn errors: replicates [count, DRAWS]; memory [2 count^2 + 4 count]. */
static bool draw(const struct lk_crossed_errors *e, uint64_t seed, double *memory, double *replicates) {
    const int n = e->count;
    double *vectors = memory, *square = vectors + n * n, *values = square + n * n, *scratch = values + n;
    memcpy(square, e->shared, (size_t)n * (size_t)n * sizeof *square);
    if (!lk_symmetric_eigen(square, n, values, vectors, scratch)) return false;
    for (int b = 0; b < DRAWS; b++) {
        struct lk_stream stream;
        lk_stream_numbered(&stream, seed, "range|", (uint64_t)b);
        for (int g = 0; g < n; g++)
            replicates[(size_t)g * DRAWS + (size_t)b] = e->rate[g] + sqrt(e->source[g]) * normal(&stream);
        for (int k = 0; k < n; k++) {
            const double along = sqrt(fmax(e->kept * values[k], 0)) * normal(&stream);
            for (int g = 0; g < n; g++) replicates[(size_t)g * DRAWS + (size_t)b] += along * vectors[k * n + g];
        }
    }
    return true;
}

/* Each pair's error and degrees of freedom: errors, df [count, count]; w [n_sources], v [n_prompts]. */
static enum lk_code compare_pairs(const struct lk_crossed_table *table, const struct lk_levels *factor,
                                  const struct lk_residual_maker *people, const struct lk_residual_maker *prompts,
                                  const struct lk_crossed_errors *e, double *w, double *v, double *errors, double *df,
                                  const char **undefined) {
    for (int p = 0; p < table->n_prompts; p++) v[p] = 1.0 / table->n_prompts;
    for (int i = 0; i < e->count; i++)
        for (int j = 0; j < i; j++) {
            struct lk_crossed r;
            double n[2] = {0};
            if (isnan(e->rate[i]) || isnan(e->rate[j])) continue;
            for (int s = 0; s < table->n_sources; s++) n[0] += factor->of[s] == i, n[1] += factor->of[s] == j;
            for (int s = 0; s < table->n_sources; s++)
                w[s] = factor->of[s] == i ? 1 / n[0] : factor->of[s] == j ? -1 / n[1] : 0;
            LK_TRY(lk_crossed_contrast(table, w, v, people, prompts, &r));
            if (r.undefined) *undefined = r.undefined;
            errors[i * e->count + j] = errors[j * e->count + i] = sqrt(fmax(r.variance, 0));
            df[i * e->count + j] = df[j * e->count + i] = fmax(r.df, 1);
        }
    return LK_OK;
}

/* block: [count, DRAWS] replicates, two of scratch, 2 count^2 of pairs, 2 count^2 + 4 count, sources and prompts. */
static enum lk_code interval(const struct lk_crossed_table *table, const struct lk_levels *factor,
                             const struct lk_residual_maker *people, const struct lk_residual_maker *prompts,
                             const struct lk_crossed_errors *e, double confidence, uint64_t seed, double *block,
                             struct lk_number *out) {
    const size_t n = (size_t)e->count;
    double *scratch = block + n * DRAWS, *errors = scratch + LK_RANGE_SCRATCH_ROWS * DRAWS, *df = errors + n * n;
    double *memory = df + n * n, *w = memory + 2 * n * n + 4 * n, *v = w + table->n_sources;
    LK_TRY(compare_pairs(table, factor, people, prompts, e, w, v, errors, df, &out->no_interval));
    if (out->no_interval) return LK_OK;
    if (!draw(e, seed, memory, block)) return lk_fail(LK_E_INTERNAL, "crossed: no eigenvalues of %d groups", e->count);
    const struct lk_resampled_groups groups = {.n_groups = e->count,
                                               .values = e->rate,
                                               .stride = 1,
                                               .replicates = block,
                                               .row_stride = DRAWS,
                                               .n_replicates = DRAWS,
                                               .pair_errors = errors,
                                               .pair_df = df};
    const struct lk_range_options how = {
        .confidence = confidence, .n_drawn = 0x1p52, .df_all = fmax(e->pooled.df, 1), .limit = 1, .above = ABOVE};
    lk_range_interval(&groups, &how, scratch, out);
    return LK_OK;
}

enum lk_code lk_crossed_range(const struct lk_crossed_table *table, const struct lk_levels *factor,
                              const struct lk_residual_maker *people, const struct lk_residual_maker *prompts,
                              double confidence, uint64_t seed, struct lk_crossed_range *out) {
    struct lk_crossed_errors e;
    *out = (struct lk_crossed_range){0};
    LK_TRY(lk_crossed_errors_of(table, factor, prompts, &e));
    out->number.undefined = e.undefined;
    if (e.undefined) return LK_OK;
    out->highest = out->lowest = -1;
    for (int g = 0; g < e.count; g++) {
        if (isnan(e.rate[g])) continue;
        if (out->highest < 0 || e.rate[g] > e.rate[out->highest]) out->highest = g;
        if (out->lowest < 0 || e.rate[g] < e.rate[out->lowest]) out->lowest = g;
    }
    out->high = e.rate[out->highest], out->low = e.rate[out->lowest];
    for (int g = e.count - 1, n_high = 0, n_low = 0; g >= 0; g--) {
        n_high += fabs(e.rate[g] - out->high) < 1e-12, n_low += fabs(e.rate[g] - out->low) < 1e-12;
        if (n_high > 1) out->highest = -1;
        if (n_low > 1) out->lowest = -1;
    }
    out->number = (struct lk_number){.value = out->high - out->low, .n = (size_t)table->n_sources};
    const size_t n = (size_t)e.count;
    double *block = lk_calloc((n + LK_RANGE_SCRATCH_ROWS) * DRAWS + 4 * n * n + 4 * n + (size_t)table->n_sources +
                                  (size_t)table->n_prompts,
                              sizeof *block);
    enum lk_code rc = block ? interval(table, factor, people, prompts, &e, confidence, seed, block, &out->number)
                            : lk_fail(LK_E_NOMEM, "crossed: no memory for the range of %d groups", e.count);
    lk_free(block);
    lk_crossed_errors_free(&e);
    return rc;
}
