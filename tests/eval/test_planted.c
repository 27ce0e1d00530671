/* Effects that were planted are found, and data without effects are flagged as seldom as alpha says. The replicates and
 * their seeds are fixed, so that a run cannot fail by chance; with LIKENESS_TEST_FULL there are 2,000. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "eval/report/measures.h"
#include "eval/stats/resampling/bootstrap_rates.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/agreement/kappa.h"
#include "eval/stats/agreement/krippendorff.h"
#include "eval/stats/models/linear_model.h"
#include "eval/stats/resampling/permutation.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/study/prompts.h"
#include "tests/common/planted.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/test.h"

static struct lk_dataset data;
static const struct lk_thresholds thresholds = LK_THRESHOLDS_DEFAULT;
static int n_replicates; /* set by each test */

/* By race and model, with errors of both judges and of the raters. */
static struct planted effects(double shared) {
    static const double by_race[LK_N_RACES] = {0.05, 0.30, 0.20, 0.25, 0.45, 0.35, 0.15};
    struct planted design = {.shared = shared, .judge_error = {0.1, 0.2}, .noise = 0.3};
    for (int r = 0; r < LK_N_RACES; r++) {
        design.soft_erasure[r] = 0.1 + by_race[r] / 2;
        design.repaired[r] = by_race[r] * 1.5;
        for (int m = 0; m < LK_N_MODELS; m++) design.race_drift[r][m] = by_race[r] * (1 + 0.3 * m);
    }
    return design;
}

static struct planted no_effects(double shared) {
    struct planted design = {.shared = shared, .judge_error = {0.1, 0.2}, .noise = 0.3};
    for (int r = 0; r < LK_N_RACES; r++) {
        design.soft_erasure[r] = 0.3;
        for (int m = 0; m < LK_N_MODELS; m++) design.race_drift[r][m] = 0.3;
    }
    return design;
}

static int set_up(void **state) {
    (void)state;
    lk_dataset_init(&data);
    assert_ok(planted_items(&data));
    assert_int_equal(data.n_items, PLANTED_ITEMS);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lk_dataset_free(&data);
    return 0;
}

/* The edited items as columns. */
static double drift[PLANTED_EDITED], level[PLANTED_EDITED];
static int32_t race[PLANTED_EDITED], model[PLANTED_EDITED], prompt[PLANTED_EDITED], source[PLANTED_EDITED];
enum { OF_SOURCE = 60, OF_RACE = LK_N_SOURCES / LK_N_RACES };

/* Of the first sources of each race; returns how many outputs those have. */
static size_t columns(int sources_of_race) {
    size_t n = 0;
    for (size_t i = 0; i < PLANTED_EDITED; i++) {
        const struct lk_item *item = data.items + i;
        if (item->source % OF_RACE >= sources_of_race) continue;
        level[n] = item->score[LK_AXIS_RACE_DRIFT];
        drift[n] = lk_measure_of(LK_MEASURE_RACE_DRIFT, item->score, item->prompt, &thresholds);
        race[n] = item->race;
        model[n] = item->model;
        prompt[n] = item->prompt;
        source[n++] = item->source;
    }
    return n;
}

/* A mean over replicates and its standard error. */
struct tracker {
    double sum, squares;
    int n;
};
static void track(struct tracker *t, double x) {
    t->sum += x;
    t->squares += x * x;
    t->n++;
}
static double mean_of(const struct tracker *t) { return t->sum / t->n; }
static double error_of(const struct tracker *t) {
    double m = mean_of(t);
    return sqrt((t->squares / t->n - m * m) / (t->n - 1));
}

static void assert_recovered(const char *what, const struct tracker *t, double planted, double bias) {
    double far = fabs(mean_of(t) - planted), allowed = 4 * error_of(t) + bias;
    printf("%-34s planted %.5f, mean %.5f, standard error %.5f\n", what, planted, mean_of(t), error_of(t));
    if (!(far <= allowed)) fail_msg("%s: %g from what was planted, allowed %g", what, far, allowed);
}

static void assert_share(const char *what, int k, int n, double least, double most) {
    printf("%-34s %.4f of %d\n", what, (double)k / n, n);
    if (k < least * n || k > most * n) fail_msg("%s: %d of %d, expected %g to %g", what, k, n, least, most);
}

static bool in(const struct lk_number *number, double x) { return number->low <= x && x <= number->high; }

struct found {
    struct tracker of_race[LK_N_RACES], of_model[LK_N_MODELS], disparity, erasure;
    int covered, n_intervals, right_order;
};

static void look_for_rates(struct found *found, const struct planted *design) {
    struct lk_resampling how = {42, test_is_full() ? 1000 : 300, 0.95, NULL, 1};
    const struct lk_grouping groupings[] = {{race, LK_N_RACES}, {model, LK_N_MODELS}};
    const struct lk_rates rates = {PLANTED_EDITED, 1, drift, 2, groupings};
    double truth[LK_N_RACES], total[LK_N_MODELS] = {0};
    struct lk_rate_results *results;
    assert_ok(lk_bootstrap_rates(&rates, &how, &results));
    for (int r = 0; r < LK_N_RACES; r++) {
        truth[r] = 0;
        for (int m = 0; m < LK_N_MODELS; m++) {
            double rate = planted_drift_rate(design, design->race_drift[r][m]);
            truth[r] += rate / LK_N_MODELS;
            total[m] += rate / LK_N_RACES;
        }
        struct lk_rate rate =
            lk_measure_rate(&data, &(struct lk_group){r, -1, -1, -1, -1, -1, LK_ARM_EDITED, -1, -1, false},
                            LK_MEASURE_RACE_DRIFT, &thresholds);
        const struct lk_number *number = lk_rate_of(results, 0, r, 0);
        assert_true(lk_rate_value(rate) == number->value && rate.n == 720);
        track(&found->of_race[r], number->value);
        found->covered += in(number, truth[r]);
    }
    for (int m = 0; m < LK_N_MODELS; m++) {
        track(&found->of_model[m], lk_rate_of(results, 1, m, 0)->value);
        found->covered += in(lk_rate_of(results, 1, m, 0), total[m]);
    }
    const struct lk_disparity *disparity = lk_disparity_of(results, 0, 0);
    track(&found->disparity, disparity->number.value);
    found->covered += in(&disparity->number, truth[4] - truth[0]);
    found->right_order += disparity->highest == 4 && disparity->lowest == 0;
    found->n_intervals += LK_N_RACES + LK_N_MODELS + 1;
    struct lk_group indian = lk_group_with((struct lk_group)LK_GROUP_ANY, LK_FACTOR_RACE, 4);
    track(&found->erasure, lk_rate_value(lk_measure_rate(&data, &indian, LK_MEASURE_SOFT_ERASURE, &thresholds)));
    lk_rate_results_free(results);
}

/* 22,000 intervals of 2,000 replicates hold the planted rate in 0.954, the 440 of an everyday run in 0.943. */
static void rates_and_disparities_are_recovered(void **state) {
    (void)state;
    struct planted design = effects(0);
    struct found found = {.covered = 0};
    n_replicates = test_is_full() ? 2000 : 40;
    for (int b = 0; b < n_replicates; b++) {
        assert_ok(planted_scores(&data, &design, 1, (uint64_t)b));
        columns(OF_RACE);
        look_for_rates(&found, &design);
    }
    for (int r = 0; r < LK_N_RACES; r++) {
        double truth = 0;
        for (int m = 0; m < LK_N_MODELS; m++) truth += planted_drift_rate(&design, design.race_drift[r][m]) / 3;
        assert_recovered(lk_factor_display(LK_FACTOR_RACE, r), &found.of_race[r], truth, 0);
    }
    for (int m = 0; m < LK_N_MODELS; m++) {
        double truth = 0;
        for (int r = 0; r < LK_N_RACES; r++) truth += planted_drift_rate(&design, design.race_drift[r][m]) / 7;
        assert_recovered(lk_factor_display(LK_FACTOR_MODEL, m), &found.of_model[m], truth, 0);
    }
    assert_recovered("soft erasure", &found.erasure, planted_erasure_rate(&design, design.soft_erasure[4]), 0);
    double three = 3 * sqrt(0.05 * 0.95 / found.n_intervals);
    assert_share("intervals with the planted rate", found.covered, found.n_intervals, 0.945 - three, 0.955 + three);
    assert_share("highest and lowest race", found.right_order, n_replicates, 0.99, 1);
}

/* What is expected of a preserved arm: repaired items are at level 1. */
static void mitigation_is_recovered(void **state) {
    (void)state;
    struct planted design = effects(0);
    struct tracker judges[LK_N_RACES] = {{0}}, humans[LK_N_RACES] = {{0}};
    n_replicates = test_is_full() ? 2000 : 40;
    int flagged = 0;
    for (int b = 0; b < n_replicates; b++) {
        double differences[500];
        struct lk_test test;
        assert_ok(planted_scores(&data, &design, 2, (uint64_t)b));
        for (int r = 0; r < LK_N_RACES; r++) {
            struct lk_group group = lk_group_with((struct lk_group)LK_GROUP_ANY, LK_FACTOR_RACE, r);
            struct lk_paired p =
                lk_paired_of(&data, group, LK_AXIS_RACE_DRIFT, LK_SCORES_JUDGE, false, false, &thresholds);
            track(&judges[r], (p.edited - p.preserved) / (double)p.n);
            p = lk_paired_of(&data, group, LK_AXIS_RACE_DRIFT, LK_SCORES_HUMAN, false, false, &thresholds);
            track(&humans[r], (p.edited - p.preserved) / (double)p.n);
        }
        for (size_t i = PLANTED_EDITED, k = 0; i < data.n_items; i++, k++)
            differences[k] = data.items[data.items[i].partner].human_mean[LK_AXIS_RACE_DRIFT] -
                             data.items[i].human_mean[LK_AXIS_RACE_DRIFT];
        assert_ok(lk_wilcoxon(differences, 500, NULL, &test));
        flagged += test.p < 1e-3 && test.effect > 0;
    }
    for (int r = 0; r < LK_N_RACES; r++) {
        double change = 0, human = 0;
        int n = 0;
        for (size_t i = PLANTED_EDITED; i < data.n_items; i++) {
            double share[5];
            if (data.items[i].race != r) continue;
            planted_levels(design.race_drift[r][data.items[i].model], share);
            for (int t = 1; t <= 5; t++) {
                change += share[t - 1] * (planted_ensemble_mean(&design, t) - planted_ensemble_mean(&design, 1));
                human += share[t - 1] * (t - 1);
            }
            n++;
        }
        change *= design.repaired[r] / n;
        human *= design.repaired[r] * (1 - design.noise) / n;
        assert_recovered(lk_factor_display(LK_FACTOR_RACE, r), &judges[r], change, 0);
        assert_recovered("  by the raters", &humans[r], human, 0);
    }
    assert_share("Wilcoxon finds the mitigation", flagged, n_replicates, 0.99, 1);
}

/* Joint shares [5, 5] of two raters, and what agreement they have when there are very many items. */
static void expected_agreement(const struct planted *design, double *nominal, double *interval, double *ordinal) {
    double joint[5][5] = {{0}}, marginal[5] = {0}, rank[5], observed[3] = {0}, expected[3] = {0}, below = 0;
    for (size_t i = PLANTED_EDITED; i < data.n_items; i++) {
        double share[5], repaired = design->repaired[data.items[i].race];
        planted_levels(design->race_drift[data.items[i].race][data.items[i].model], share);
        for (int t = 0; t < 5; t++)
            for (int a = 0; a < 5; a++)
                for (int b = 0; b < 5; b++) {
                    double pa = design->noise / 5 + (a == t) * (1 - design->noise);
                    double pb = design->noise / 5 + (b == t) * (1 - design->noise);
                    double weight = share[t] * (2 - repaired) + (t == 0) * repaired;
                    joint[a][b] += weight * pa * pb / 1000;
                }
    }
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++) marginal[a] += joint[a][b];
    for (int a = 0; a < 5; below += marginal[a++]) rank[a] = below + marginal[a] / 2;
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++) {
            const double distance[3] = {a != b, (a - b) * (a - b), (rank[a] - rank[b]) * (rank[a] - rank[b])};
            for (int k = 0; k < 3; k++) {
                observed[k] += joint[a][b] * distance[k];
                expected[k] += marginal[a] * marginal[b] * distance[k];
            }
        }
    *nominal = 1 - observed[0] / expected[0];
    *interval = 1 - observed[1] / expected[1];
    *ordinal = 1 - observed[2] / expected[2];
}

static void agreement_is_recovered(void **state) {
    (void)state;
    struct planted design = effects(0);
    struct tracker kappa = {0}, weighted = {0}, alpha[3] = {{0}};
    double nominal, interval, ordinal;
    expected_agreement(&design, &nominal, &interval, &ordinal);
    n_replicates = test_is_full() ? 2000 : 60;
    for (int b = 0; b < n_replicates; b++) {
        static double ratings[1000 * PLANTED_RATERS];
        static int32_t labels[PLANTED_RATERS][1000];
        struct lk_kappa out;
        struct lk_number number;
        assert_ok(planted_scores(&data, &design, 3, (uint64_t)b));
        for (int r = 0; r < PLANTED_RATERS; r++)
            for (int i = 0; i < 1000; i++) {
                labels[r][i] = data.ratings[r * 1000 + i].score[LK_AXIS_RACE_DRIFT];
                ratings[i * PLANTED_RATERS + r] = labels[r][i];
            }
        assert_ok(lk_cohen_kappa(labels[0], labels[1], 1000, 1, 5, LK_WEIGHTS_NONE, &out));
        track(&kappa, out.kappa.value);
        assert_ok(lk_cohen_kappa(labels[1], labels[2], 1000, 1, 5, LK_WEIGHTS_QUADRATIC, &out));
        track(&weighted, out.kappa.value);
        static const enum lk_measurement measurements[] = {LK_NOMINAL, LK_INTERVAL, LK_ORDINAL};
        for (int k = 0; k < 3; k++) {
            assert_ok(lk_krippendorff_alpha(ratings, 1000, PLANTED_RATERS, measurements[k], &number));
            track(&alpha[k], number.value);
        }
    }
    /* kappa of a finite sample is biased by about (1 - kappa) / n */
    assert_recovered("kappa", &kappa, nominal, 1e-3);
    assert_recovered("kappa, quadratic", &weighted, interval, 1e-3);
    assert_recovered("alpha, nominal", &alpha[0], nominal, 1e-3);
    assert_recovered("alpha, interval", &alpha[1], interval, 1e-3);
    assert_recovered("alpha, ordinal", &alpha[2], ordinal, 1e-3);
}

enum { KRUSKAL, MANN_WHITNEY, CHI2, TWO_RATES, MODEL_F, WILCOXON, N_INDEPENDENT };
static const char *const independent_names[] = {"Kruskal-Wallis",  "Mann-Whitney",   "chi-square",
                                                "two proportions", "linear model F", "Wilcoxon, mitigation"};
/* What the report reads by source, and two like them; then what stands beside as an alternative by name. */
enum { RACES, HTZ_MODEL, HTZ_PROMPT, CONTRAST, PERMUTATION, KRUSKAL_SOURCES, EXPANDED, N_CLUSTERED };
static const char *const clustered_names[] = {"races, permutation of sources",
                                              "HTZ, model",
                                              "HTZ, prompt",
                                              "CR2 t, two races",
                                              "two races, permutation of sources",
                                              "Kruskal-Wallis of sources",
                                              "expanded percentiles by source"};
enum { HTZ_RACE, CR1_RACE, CR1_PROMPT, PERCENTILES, N_BESIDE };
static const char *const beside_names[] = {"HTZ, race", "CR1, race", "CR1, prompt", "percentiles by source"};

struct flags {
    int independent[N_INDEPENDENT], clustered[N_CLUSTERED], beside[N_BESIDE];
};

static void flag_independent(int *flags) {
    struct lk_test test;
    struct lk_contingency table;
    size_t sizes[LK_N_RACES];
    int64_t counts[2 * LK_N_RACES] = {0};
    double differences[500];
    for (int r = 0; r < LK_N_RACES; r++) sizes[r] = 720;
    for (int i = 0; i < PLANTED_EDITED; i++) counts[2 * race[i] + (int)drift[i]]++;
    assert_ok(lk_kruskal_wallis(level, sizes, LK_N_RACES, &test)); /* items lie race by race */
    flags[KRUSKAL] += test.p < 0.05;
    assert_ok(lk_mann_whitney(level, 720, level + 720, 720, NULL, &test));
    flags[MANN_WHITNEY] += test.p < 0.05;
    assert_ok(lk_chi2_contingency(counts, LK_N_RACES, 2, &table, NULL, NULL));
    flags[CHI2] += table.test.p < 0.05;
    assert_ok(lk_two_proportions(counts[1], 720, counts[3], 720, LK_TWO_SIDED, &test));
    flags[TWO_RATES] += test.p < 0.05;
    for (size_t i = PLANTED_EDITED, k = 0; i < data.n_items; i++, k++)
        differences[k] = data.items[data.items[i].partner].human_mean[LK_AXIS_RACE_DRIFT] -
                         data.items[i].human_mean[LK_AXIS_RACE_DRIFT];
    assert_ok(lk_wilcoxon(differences, 500, NULL, &test));
    flags[WILCOXON] += test.p < 0.05;
}

static bool found(const struct lk_wald *wald) { return !wald->undefined && wald->p_f < 0.05; }

/* Race, model and prompt, by source and (race) as if outputs were independent. */
static void flag_models(struct flags *flags, size_t n) {
    const struct lk_model_factor factors[] = {
        {"race", race, LK_N_RACES}, {"model", model, LK_N_MODELS}, {"prompt", prompt, LK_N_EDIT_PROMPTS}};
    const struct lk_model_term terms[] = {{0, -1}, {1, -1}, {2, -1}};
    struct lk_linear_model *fit;
    struct lk_wald htz[3];
    struct lk_contrast two;
    double contrast[LK_MODEL_COLUMNS_MAX] = {0};
    assert_ok(lk_linear_model_fit(level, n, factors, 3, terms, 3, source, &fit));
    assert_null(fit->undefined);
    for (int t = 0; t < 3; t++) assert_ok(lk_linear_model_term(fit, t, &htz[t]));
    assert_true(fit->columns[1].term == 0 && fit->columns[1].level_a == 1);
    contrast[1] = 1;
    assert_ok(lk_linear_model_contrast(fit, contrast, 0.95, &two));
    flags->beside[HTZ_RACE] += found(&htz[0]);
    flags->clustered[HTZ_MODEL] += found(&htz[1]);
    flags->clustered[HTZ_PROMPT] += found(&htz[2]);
    flags->clustered[CONTRAST] += !two.undefined && two.p < 0.05;
    flags->beside[CR1_RACE] += found(&fit->terms[0].clustered);
    flags->beside[CR1_PROMPT] += found(&fit->terms[2].clustered);
    flags->independent[MODEL_F] += found(&fit->terms[0].independent);
    lk_linear_model_free(fit);
}

static void flag_clustered(struct flags *flags, size_t n) {
    double means[LK_N_SOURCES] = {0};
    int32_t races[LK_N_SOURCES];
    size_t sizes[LK_N_RACES], n_sources = n / OF_SOURCE, of_race = n_sources / LK_N_RACES;
    struct lk_test test;
    struct lk_number number;
    for (size_t i = 0; i < n; i++) means[i / OF_SOURCE] += level[i] / OF_SOURCE;
    for (size_t i = 0; i < n_sources; i++) races[i] = (int32_t)(i / of_race);
    for (int r = 0; r < LK_N_RACES; r++) sizes[r] = of_race;
    struct lk_resampling how = {42, test_is_full() ? 999 : 199, 0.95, NULL, 1};
    assert_ok(lk_permutation_groups(means, races, n_sources, LK_N_RACES, &how, &test));
    flags->clustered[RACES] += test.p <= 0.05;
    assert_ok(lk_permutation_means(means, races, 2 * of_race, &how, &test));
    flags->clustered[PERMUTATION] += test.p <= 0.05;
    assert_ok(lk_kruskal_wallis(means, sizes, LK_N_RACES, &test));
    flags->clustered[KRUSKAL_SOURCES] += test.p < 0.05;
    how.clusters = source;
    assert_ok(lk_bootstrap_difference(drift, race, n, &how, LK_INTERVAL_EXPANDED, &number));
    flags->clustered[EXPANDED] += number.low > 0 || number.high < 0;
    assert_ok(lk_bootstrap_difference(drift, race, n, &how, LK_INTERVAL_PERCENTILE, &number));
    flags->beside[PERCENTILES] += number.low > 0 || number.high < 0;
}

static void flag(const struct planted *design, uint64_t seed, int sources_of_race, struct flags *flags) {
    memset(flags, 0, sizeof *flags);
    for (int b = 0; b < n_replicates; b++) {
        assert_ok(planted_scores(&data, design, seed, (uint64_t)b));
        size_t n = columns(sources_of_race);
        if (sources_of_race == OF_RACE) flag_independent(flags->independent);
        flag_models(flags, n);
        flag_clustered(flags, n);
    }
}

/* A rate of flags and three standard errors more or less. */
static double at_most(double rate) { return rate + 3 * sqrt(rate * (1 - rate) / n_replicates); }
static double at_least(double rate) { return rate - 3 * sqrt(rate * (1 - rate) / n_replicates); }

static void planted_effects_are_flagged(void **state) {
    (void)state;
    struct flags flags;
    struct planted design = effects(0.4);
    n_replicates = test_is_full() ? 200 : 10;
    flag(&design, 4, OF_RACE, &flags);
    for (int k = 0; k < N_INDEPENDENT; k++)
        assert_share(independent_names[k], flags.independent[k], n_replicates, 1, 1);
    for (int k = 0; k < N_CLUSTERED; k++)
        if (k != HTZ_PROMPT) assert_share(clustered_names[k], flags.clustered[k], n_replicates, 0.8, 1);
    assert_share(beside_names[HTZ_RACE], flags.beside[HTZ_RACE], n_replicates, 0.8, 1);
}

/* Every test that is read by source keeps alpha = 0.05. What stands beside under its name does not: the limits are
 * what was observed in 2,000 replicates, and more than a few are the reason why it is not what is read. */
static void assert_nominal(const struct flags *flags, int n_clustered, const double beside[N_BESIDE]) {
    for (int k = 0; k < n_clustered; k++)
        assert_share(clustered_names[k], flags->clustered[k], n_replicates, at_least(0.05), at_most(0.05));
    for (int k = 0; k < N_BESIDE; k++)
        assert_share(beside_names[k], flags->beside[k], n_replicates, at_least(beside[k]), at_most(beside[k]));
}

static void null_data_are_flagged_at_the_nominal_rate(void **state) {
    (void)state;
    struct flags flags;
    struct planted design = no_effects(0);
    n_replicates = test_is_full() ? 2000 : 100;
    flag(&design, 5, OF_RACE, &flags);
    for (int k = 0; k < N_INDEPENDENT; k++)
        assert_share(independent_names[k], flags.independent[k], n_replicates, at_least(0.05), at_most(0.05));
    assert_nominal(&flags, N_CLUSTERED, (const double[]){[HTZ_RACE] = 0.055, 0.12, 0.2, 0.065});
}

/* Items of a source correlate by 0.16, and a source's level is one of five. Tests that take the items as independent
 * flag up to 0.97 of 2,000 replicates (the mitigation is within sources). HTZ of race, which estimates each race's
 * variance from its 12 sources, flags 0.079 of such data. */
static void sources_that_differ_mislead_only_the_independent_tests(void **state) {
    (void)state;
    struct flags flags;
    struct planted design = no_effects(0.4);
    n_replicates = test_is_full() ? 2000 : 100;
    flag(&design, 6, OF_RACE, &flags);
    for (int k = 0; k < WILCOXON; k++) assert_share(independent_names[k], flags.independent[k], n_replicates, 0.4, 1);
    assert_share(independent_names[WILCOXON], flags.independent[WILCOXON], n_replicates, 0, at_most(0.05));
    assert_nominal(&flags, N_CLUSTERED, (const double[]){[HTZ_RACE] = 0.08, 0.15, 0.2, 0.067});
}

/* With 6 and 3 sources a race the tests that are read keep their level too; two races of 3 sources have 20
 * permutations, whose p is never below 0.1, and Kruskal-Wallis is on the safe side. The bootstrap of a difference of
 * two races needs 6: of 3 sources a race even the expanded interval is too short. Observed in 2,000 replicates (sources
 * that do not differ; that do): HTZ of race 0.048 and 0.070 of 6 sources, 0.009 and 0.016 of 3; CR1 of race 0.22 to
 * 0.51, of prompt 0.45 to 0.98; percentiles 0.08 to 0.14, expanded of 3 sources 0.082 and 0.089. */
static void few_sources_keep_the_level(void **state) {
    (void)state;
    static const double beside[2][2][N_BESIDE] = {{{0.05, 0.22, 0.46, 0.085}, {0.07, 0.29, 0.45, 0.085}},
                                                  {{0.01, 0.49, 0.97, 0.14}, {0.015, 0.51, 0.97, 0.14}}};
    n_replicates = test_is_full() ? 2000 : 100;
    for (int few = 0; few < 2; few++)
        for (int shared = 0; shared < 2; shared++) {
            struct flags flags;
            struct planted design = no_effects(shared ? 0.4 : 0);
            flag(&design, shared ? 6 : 5, few ? 3 : 6, &flags);
            printf("%d sources a race, %s\n", few ? 3 : 6, shared ? "which differ" : "which do not differ");
            if (few) {
                assert_share(clustered_names[PERMUTATION], flags.clustered[PERMUTATION], n_replicates, 0, 0);
                assert_share(clustered_names[KRUSKAL_SOURCES], flags.clustered[KRUSKAL_SOURCES], n_replicates, 0,
                             at_most(0.05));
                assert_share(clustered_names[EXPANDED], flags.clustered[EXPANDED], n_replicates, at_least(0.085),
                             at_most(0.085));
            }
            assert_nominal(&flags, few ? PERMUTATION : N_CLUSTERED, beside[few][shared]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_and_disparities_are_recovered),
        cmocka_unit_test(mitigation_is_recovered),
        cmocka_unit_test(agreement_is_recovered),
        cmocka_unit_test(planted_effects_are_flagged),
        cmocka_unit_test(null_data_are_flagged_at_the_nominal_rate),
        cmocka_unit_test(sources_that_differ_mislead_only_the_independent_tests),
        cmocka_unit_test(few_sources_keep_the_level),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
