/* A whole analysis of a study by eval/stats: 5,040 items, five axes, two judges, 3,000 ratings, 10,000 resamples of the
 * items and of their 84 sources, and every test that a report has.
 *
 *     bench_stats [-r REPETITIONS] [-t THREADS] [--dump FOLDER] [--results FILE]
 *
 * prints "STEP,ms,ms of CPU time" lines (medians), "total" last. --dump writes the data as CSV, --results the numbers
 * found ("NAME,value"), both for bench/peers/scipy_stats.py, which does the same with Python's libraries. */
#include <omp.h>

#include "bench/bench.h"
#include "bench/stats_data.h"
#include "engine/base/alloc.h"
#include "eval/stats/resampling/bootstrap_rates.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/agreement/fleiss.h"
#include "eval/stats/agreement/icc.h"
#include "eval/stats/agreement/kappa.h"
#include "eval/stats/agreement/krippendorff.h"
#include "eval/stats/models/linear_model.h"
#include "eval/stats/tests/multiple.h"
#include "eval/stats/resampling/permutation.h"
#include "eval/stats/proportion.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/stats/summary.h"

enum { RESAMPLES = 10000, ALPHA_RESAMPLES = 1000, MAX_FAMILY = 1000, N_MEASURES = 2 * N_AXES };

struct bench {
    struct study study;
    double x[N_ITEMS], y[N_ITEMS]; /* pairs that both judges scored */
    double mean[N_AXES][N_ITEMS];  /* of the two, NaN where one is missing */
    double values[N_ITEMS * N_MEASURES];
    int threads;
    FILE *results;
    double family[MAX_FAMILY];
    size_t n_family;
};

static void note(struct bench *b, const char *name, int axis, double value) {
    if (b->results) fprintf(b->results, "%s_%d,%.17g\n", name, axis, value);
}

static void note_test(struct bench *b, const char *name, int axis, const struct lk_test *test) {
    note(b, name, axis, test->p);
    if (!test->undefined && b->n_family < MAX_FAMILY) b->family[b->n_family++] = test->p;
}

static size_t complete(struct bench *b, int axis) {
    size_t n = 0;
    for (int i = 0; i < N_ITEMS; i++) {
        double x = b->study.judge[0][axis][i], y = b->study.judge[1][axis][i];
        if (isnan(x) || isnan(y)) continue;
        b->x[n] = x;
        b->y[n++] = y;
    }
    return n;
}

static enum lk_code prepare(struct bench *b) {
    b->n_family = 0;
    for (int axis = 0; axis < N_AXES; axis++)
        for (int i = 0; i < N_ITEMS; i++) {
            double mean = (b->study.judge[0][axis][i] + b->study.judge[1][axis][i]) / 2;
            b->mean[axis][i] = mean;
            b->values[i * N_MEASURES + axis] = mean;
            b->values[i * N_MEASURES + N_AXES + axis] = isnan(mean) ? NAN : mean <= 2;
        }
    return LK_OK;
}

static enum lk_code kappas(struct bench *b) {
    static int32_t labels[2][N_ITEMS];
    for (int axis = 0; axis < N_AXES; axis++) {
        for (int i = 0; i < N_ITEMS; i++)
            for (int j = 0; j < 2; j++) {
                double score = b->study.judge[j][axis][i];
                labels[j][i] = isnan(score) ? 0 : (int32_t)score;
            }
        for (int w = LK_WEIGHTS_NONE; w <= LK_WEIGHTS_QUADRATIC; w++) {
            struct lk_kappa kappa;
            LK_TRY(lk_cohen_kappa(labels[0], labels[1], N_ITEMS, 1, 5, (enum lk_weights)w, &kappa));
            note(b, w == 0 ? "kappa" : w == 1 ? "kappa_linear" : "kappa_quadratic", axis, kappa.kappa.value);
        }
    }
    return LK_OK;
}

static enum lk_code correlations(struct bench *b) {
    for (int axis = 0; axis < N_AXES; axis++) {
        size_t n = complete(b, axis);
        struct lk_test test;
        struct lk_number interval;
        LK_TRY(lk_pearson(b->x, b->y, n, 0.95, &test, &interval));
        note(b, "pearson", axis, test.statistic);
        LK_TRY(lk_spearman(b->x, b->y, n, &test));
        note(b, "spearman", axis, test.statistic);
        LK_TRY(lk_kendall(b->x, b->y, n, &test));
        note(b, "kendall", axis, test.statistic);
    }
    return LK_OK;
}

static enum lk_code raters(struct bench *b) {
    static int32_t counts[N_RATED][5];
    for (int axis = 0; axis < N_AXES; axis++) {
        const double *ratings = b->study.rating[axis];
        for (int level = 0; level < LK_N_MEASUREMENTS; level++) {
            struct lk_number alpha;
            LK_TRY(lk_krippendorff_alpha(ratings, N_RATED, N_RATERS, (enum lk_measurement)level, &alpha));
            note(b, lk_measurement_name((enum lk_measurement)level), axis, alpha.value);
        }
        struct lk_icc icc[LK_N_ICC];
        LK_TRY(lk_icc(ratings, N_RATED, N_RATERS, icc));
        note(b, "icc2", axis, icc[LK_ICC2].value.value);
        memset(counts, 0, sizeof counts);
        for (int k = 0; k < N_RATED * N_RATERS; k++)
            if (!isnan(ratings[k])) counts[k / N_RATERS][(int)ratings[k] - 1]++;
        struct lk_fleiss fleiss;
        LK_TRY(lk_fleiss_kappa(counts[0], N_RATED, 5, N_RATERS, &fleiss));
        note(b, "fleiss", axis, fleiss.kappa.value);
    }
    return LK_OK;
}

static enum lk_code alpha_intervals(struct bench *b) {
    struct lk_resampling how = LK_RESAMPLING;
    how.n_replicates = ALPHA_RESAMPLES;
    how.n_threads = b->threads;
    for (int axis = 0; axis < N_AXES; axis++) {
        struct lk_number alpha[LK_N_MEASUREMENTS];
        LK_TRY(lk_krippendorff_intervals(b->study.rating[axis], N_RATED, N_RATERS, &how, alpha));
    }
    return LK_OK;
}

/* Values that exist, group after group. */
static size_t by_group(const double *values, const int32_t *group, size_t n_groups, double *out, size_t *n) {
    size_t total = 0;
    for (size_t g = 0; g < n_groups; g++) {
        size_t from = total;
        for (int i = 0; i < N_ITEMS; i++)
            if (group[i] == (int32_t)g && !isnan(values[i])) out[total++] = values[i];
        n[g] = total - from;
    }
    return total;
}

static enum lk_code rank_tests(struct bench *b) {
    static double values[N_ITEMS];
    struct lk_test test, pairs[N_RACES * (N_RACES - 1) / 2];
    size_t n[N_RACES];
    for (int axis = 0; axis < N_AXES; axis++) {
        by_group(b->mean[axis], b->study.race, N_RACES, values, n);
        LK_TRY(lk_kruskal_wallis(values, n, N_RACES, &test));
        note_test(b, "kruskal", axis, &test);
        LK_TRY(lk_dunn(values, n, N_RACES, pairs));
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) note_test(b, "dunn", axis * 100 + (int)k, &pairs[k]);
        by_group(b->mean[axis], b->study.gender, 2, values, n);
        LK_TRY(lk_mann_whitney(values, n[0], values + n[0], n[1], NULL, &test));
        note_test(b, "mann_whitney", axis, &test);
        size_t n_pairs = complete(b, axis), n_blocks = 0;
        for (size_t i = 0; i < n_pairs; i++) values[i] = b->x[i] - b->y[i];
        LK_TRY(lk_wilcoxon(values, n_pairs, NULL, &test));
        note_test(b, "wilcoxon", axis, &test);
        for (int i = 0; i < N_ITEMS; i += N_MODELS) {
            const double *block = b->mean[axis] + i;
            if (isnan(block[0] + block[1] + block[2])) continue;
            memcpy(values + N_MODELS * n_blocks++, block, N_MODELS * sizeof *block);
        }
        LK_TRY(lk_friedman(values, n_blocks, N_MODELS, &test));
        note_test(b, "friedman", axis, &test);
    }
    return LK_OK;
}

static enum lk_code count_tests(struct bench *b) {
    for (int axis = 0; axis < N_AXES; axis++) {
        int64_t race[N_RACES][2] = {{0}}, gender[4] = {0}, judges[2][2] = {{0}};
        for (int i = 0; i < N_ITEMS; i++) {
            if (isnan(b->mean[axis][i])) continue;
            int failed = b->mean[axis][i] <= 2;
            race[b->study.race[i]][failed]++;
            gender[2 * b->study.gender[i] + failed]++;
            judges[b->study.judge[0][axis][i] <= 2][b->study.judge[1][axis][i] <= 2]++;
        }
        struct lk_contingency chi2;
        struct lk_test test;
        LK_TRY(lk_chi2_contingency(race[0], N_RACES, 2, &chi2, NULL, NULL));
        note_test(b, "chi2", axis, &chi2.test);
        LK_TRY(lk_fisher_exact(gender, LK_TWO_SIDED, &test));
        note_test(b, "fisher", axis, &test);
        LK_TRY(lk_mcnemar(judges[0][1], judges[1][0], LK_MCNEMAR_CONTINUITY, &test));
        note_test(b, "mcnemar", axis, &test);
        int64_t n[2] = {gender[0] + gender[1], gender[2] + gender[3]};
        LK_TRY(lk_two_proportions(gender[1], n[0], gender[3], n[1], LK_TWO_SIDED, &test));
        note_test(b, "proportions", axis, &test);
        struct lk_number number;
        for (int g = 0; g < N_RACES; g++) {
            LK_TRY(lk_proportion(race[g][1], race[g][0] + race[g][1], LK_WILSON, 0.95, &number));
            note(b, "wilson", axis * 100 + g, number.low);
            LK_TRY(lk_proportion(race[g][1], race[g][0] + race[g][1], LK_CLOPPER_PEARSON, 0.95, &number));
            note(b, "clopper", axis * 100 + g, number.low);
        }
        LK_TRY(lk_proportion_difference(gender[1], n[0], gender[3], n[1], 0.95, &number));
        note(b, "newcombe", axis, number.low);
    }
    return LK_OK;
}

/* Every measure by race, gender, model, prompt and over all, with disparities. */
static enum lk_code resample_rates(struct bench *b, const int32_t *clusters) {
    const struct lk_grouping groupings[] = {{b->study.race, N_RACES},
                                            {b->study.gender, 2},
                                            {b->study.model, N_MODELS},
                                            {b->study.prompt, N_PROMPTS},
                                            {NULL, 1}};
    const struct lk_rates rates = {N_ITEMS, N_MEASURES, b->values, 5, groupings};
    struct lk_resampling how = LK_RESAMPLING;
    how.n_replicates = RESAMPLES;
    how.clusters = clusters;
    how.n_threads = b->threads;
    struct lk_rate_results *results;
    LK_TRY(lk_bootstrap_rates(&rates, &how, &results));
    for (int m = 0; m < N_MEASURES; m++) {
        note(b, clusters ? "cluster_disparity" : "disparity", m, lk_disparity_of(results, 0, m)->number.value);
        note(b, clusters ? "~cluster_low" : "~low", m, lk_rate_of(results, 4, 0, m)->low);
    }
    lk_rate_results_free(results);
    return LK_OK;
}

static enum lk_code resample_items(struct bench *b) { return resample_rates(b, NULL); }
static enum lk_code resample_sources(struct bench *b) { return resample_rates(b, b->study.source); }

/* The mean of each axis, from one set of resamples. */
static enum lk_code resample_means(struct bench *b) {
    struct lk_resampling how = LK_RESAMPLING;
    how.n_replicates = RESAMPLES;
    how.n_threads = b->threads;
    double *means = lk_malloc(sizeof *means * N_ITEMS * N_AXES);
    if (!means) return lk_fail(LK_E_NOMEM, "bench: out of memory");
    for (int i = 0; i < N_ITEMS; i++) memcpy(means + i * N_AXES, b->values + i * N_MEASURES, sizeof *means * N_AXES);
    const struct lk_grouping all = {NULL, 1};
    const struct lk_rates rates = {N_ITEMS, N_AXES, means, 1, &all};
    struct lk_rate_results *results;
    enum lk_code rc = lk_bootstrap_rates(&rates, &how, &results);
    lk_free(means);
    if (rc) return rc;
    for (int axis = 0; axis < N_AXES; axis++) note(b, "~mean_low", axis, lk_rate_of(results, 0, 0, axis)->low);
    lk_rate_results_free(results);
    return LK_OK;
}

static enum lk_code permute(struct bench *b) {
    struct lk_resampling how = LK_RESAMPLING;
    how.n_replicates = RESAMPLES;
    how.n_threads = b->threads;
    static int32_t labels[N_ITEMS];
    size_t n = 0;
    for (int i = 0; i < N_ITEMS; i++) {
        if (isnan(b->mean[0][i])) continue;
        labels[n] = b->study.gender[i];
        b->x[n++] = b->mean[0][i];
    }
    struct lk_test test;
    LK_TRY(lk_permutation_means(b->x, labels, n, &how, &test));
    note(b, "~permutation", 0, test.p);
    return LK_OK;
}

static enum lk_code models(struct bench *b) {
    const struct lk_model_factor factors[] = {{"race", b->study.race, N_RACES}, {"model", b->study.model, N_MODELS}};
    const struct lk_model_term terms[] = {{0, -1}, {1, -1}, {0, 1}};
    for (int axis = 0; axis < N_AXES; axis++) {
        struct lk_cluster_mean mean;
        LK_TRY(lk_cluster_mean(b->mean[axis], b->study.source, N_ITEMS, 0.95, &mean));
        note(b, "clustered_low", axis, mean.clustered.low);
        struct lk_linear_model *model;
        LK_TRY(lk_linear_model_fit(b->mean[axis], N_ITEMS, factors, 2, terms, 3, b->study.source, &model));
        for (int t = 0; t < 3; t++) note(b, "wald", axis * 100 + t, model->terms[t].clustered.p_f);
        lk_linear_model_free(model);
    }
    return LK_OK;
}

/* The same by bias-reduced linearisation, with HTZ for each term; Python has no such test. */
static enum lk_code models_cr2(struct bench *b) {
    const struct lk_model_factor factors[] = {{"race", b->study.race, N_RACES}, {"model", b->study.model, N_MODELS}};
    const struct lk_model_term terms[] = {{0, -1}, {1, -1}, {0, 1}};
    for (int axis = 0; axis < N_AXES; axis++) {
        struct lk_linear_model *model;
        struct lk_wald wald;
        LK_TRY(lk_linear_model_fit(b->mean[axis], N_ITEMS, factors, 2, terms, 3, b->study.source, &model));
        enum lk_code rc = LK_OK;
        for (int t = 0; t < 3 && !rc; t++) rc = lk_linear_model_term(model, t, &wald);
        lk_linear_model_free(model);
        LK_TRY(rc);
    }
    return LK_OK;
}

static enum lk_code adjustments(struct bench *b) {
    static double adjusted[MAX_FAMILY];
    for (int method = LK_ADJUST_BONFERRONI; method <= LK_ADJUST_BENJAMINI_YEKUTIELI; method++) {
        LK_TRY(lk_adjust_p(b->family, b->n_family, (enum lk_adjustment)method, adjusted));
        double sum = 0;
        for (size_t i = 0; i < b->n_family; i++) sum += adjusted[i];
        note(b, "adjusted", method, sum);
    }
    return LK_OK;
}

static const struct {
    const char *name;
    enum lk_code (*run)(struct bench *);
} steps[] = {{"prepare", prepare},
             {"kappas", kappas},
             {"correlations", correlations},
             {"raters", raters},
             {"alpha_intervals", alpha_intervals},
             {"rank_tests", rank_tests},
             {"count_tests", count_tests},
             {"resample_items", resample_items},
             {"resample_sources", resample_sources},
             {"resample_means", resample_means},
             {"permute", permute},
             {"models", models},
             {"models_cr2", models_cr2},
             {"adjustments", adjustments}};
enum { N_STEPS = sizeof steps / sizeof *steps };

static double ms[N_STEPS + 1][BENCH_MAX_SAMPLES], cpu_ms[N_STEPS + 1][BENCH_MAX_SAMPLES]; /* the last: in all */

static void run_all(struct bench *b, int repetitions) {
    for (int r = 0; r < repetitions; r++) {
        for (int s = 0; s < N_STEPS; s++) {
            double start = bench_now_ns(), cpu = bench_cpu_ns();
            if (steps[s].run(b)) {
                fprintf(stderr, "%s: %s\n", steps[s].name, lk_error_text());
                exit(1);
            }
            ms[N_STEPS][r] += ms[s][r] = (bench_now_ns() - start) * 1e-6;
            cpu_ms[N_STEPS][r] += cpu_ms[s][r] = (bench_cpu_ns() - cpu) * 1e-6;
        }
        if (b->results) fclose(b->results);
        b->results = NULL;
    }
    for (int s = 0; s <= N_STEPS; s++)
        printf("%s,%.3f,%.3f\n", s < N_STEPS ? steps[s].name : "total", bench_statistics(ms[s], repetitions).median,
               bench_statistics(cpu_ms[s], repetitions).median);
}

int main(int argc, char **argv) {
    int repetitions = 3;
    const char *dump = NULL, *results = NULL;
    static struct bench b;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "-r"))
            repetitions = atoi(value);
        else if (!strcmp(argv[i], "-t"))
            b.threads = atoi(value);
        else if (!strcmp(argv[i], "--dump"))
            dump = value;
        else if (!strcmp(argv[i], "--results"))
            results = value;
        else
            value = "";
        if (!*value) {
            fprintf(stderr, "usage: bench_stats [-r N] [-t N] [--dump FOLDER] [--results FILE]\n");
            return 2;
        }
    }
    if (repetitions < 1 || repetitions > BENCH_MAX_SAMPLES) return 2;
    if (b.threads > 0) omp_set_num_threads(b.threads);
    study_make(&b.study);
    if ((dump && !study_dump(&b.study, dump)) || (results && !(b.results = fopen(results, "w")))) {
        perror("bench_stats");
        return 7;
    }
    run_all(&b, repetitions);
    return 0;
}
