#include "eval/report/agreement.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "eval/human/answers.h"
#include "eval/stats/special/special.h"
#include "eval/stats/tests/count_tests.h"

enum { N_LEVELS = 5, N_CLASSES = 3 };

static enum lk_code no_memory(void) { return lk_fail(LK_E_NOMEM, "report: out of memory for the raters' answers"); }

/* The value of one rating, -1 without one. */
static int value_of(const struct lk_rating *rating, int question, bool classes) {
    if (question == LK_QUESTION_ROLE) return rating->role;
    if (question == LK_QUESTION_PREFERENCE) return rating->preference;
    if (classes) return rating->answer_class[question];
    return rating->score[question] ? rating->score[question] : -1;
}

static bool counts(const struct lk_dataset *data, const struct lk_rating *rating) {
    return rating->item >= 0 && !rating->is_gold && (rating->rater < 0 || !data->raters[rating->rater].excluded);
}

enum lk_code lk_answers_gather(const struct lk_dataset *data, int question, bool classes, struct lk_answers *out) {
    int32_t *rows = lk_calloc(data->n_items, sizeof *rows); /* answers of each item, then its row */
    *out = (struct lk_answers){0};
    if (!rows) return no_memory();
    for (size_t r = 0; r < data->n_ratings; r++) {
        const struct lk_rating *rating = &data->ratings[r];
        if (counts(data, rating) && value_of(rating, question, classes) >= 0) rows[rating->item]++;
    }
    for (size_t i = 0; i < data->n_items; i++) {
        if (rows[i] > out->width) out->width = rows[i];
        out->n_single += rows[i] == 1;
        rows[i] = rows[i] < LK_MIN_RATINGS ? -1 : (int32_t)out->n++;
    }
    if (!out->n) out->width = 0;
    size_t n_values = out->n * (size_t)out->width;
    int32_t *filled = lk_calloc(out->n + 1, sizeof *filled); /* of each row */
    out->values = lk_calloc(n_values, sizeof *out->values);
    if (!out->values || !filled) {
        lk_free(rows);
        lk_free(filled);
        lk_answers_free(out);
        return no_memory();
    }
    for (size_t i = 0; i < n_values; i++) out->values[i] = NAN;
    for (size_t r = 0; r < data->n_ratings; r++) {
        const struct lk_rating *rating = &data->ratings[r];
        int value = counts(data, rating) ? value_of(rating, question, classes) : -1;
        if (value < 0 || rows[rating->item] < 0) continue;
        size_t row = (size_t)rows[rating->item];
        out->values[row * (size_t)out->width + (size_t)filled[row]++] = value;
    }
    lk_free(rows);
    lk_free(filled);
    return LK_OK;
}

void lk_answers_free(struct lk_answers *answers) {
    lk_free(answers->values);
    *answers = (struct lk_answers){0};
}

static int answers_in_row(const struct lk_answers *answers, size_t i) {
    int n = 0;
    while (n < answers->width && !isnan(answers->values[i * (size_t)answers->width + (size_t)n])) n++;
    return n;
}

static enum lk_code kappa_of_raters(const struct lk_answers *answers, bool classes, struct lk_fleiss *out) {
    const int n_categories = classes ? N_CLASSES : N_LEVELS, first = classes ? 0 : 1;
    int32_t *table = lk_calloc(answers->n * (size_t)n_categories, sizeof *table);
    if (!table) return no_memory();
    for (size_t i = 0; i < answers->n; i++)
        for (int k = 0, n = answers_in_row(answers, i); k < n; k++)
            table[i * (size_t)n_categories + (size_t)answers->values[i * (size_t)answers->width + (size_t)k] -
                  (size_t)first]++;
    enum lk_code rc = lk_fleiss_kappa(table, answers->n, n_categories, 0, out);
    lk_free(table);
    if (rc) lk_fail_prefix(rc, "the ratings");
    return rc;
}

/* Raters differ from item to item, so the one-way forms; over items with m answers. */
static enum lk_code icc_of_raters(const struct lk_answers *answers, int m, struct lk_reliability *out) {
    struct lk_icc icc[LK_N_ICC];
    size_t n = 0;
    double *full = lk_calloc(answers->n * (size_t)m, sizeof *full);
    if (!full) return no_memory();
    for (size_t i = 0; i < answers->n; i++) {
        if (answers_in_row(answers, i) != m) continue;
        for (int k = 0; k < m; k++)
            full[n * (size_t)m + (size_t)k] = answers->values[i * (size_t)answers->width + (size_t)k];
        n++;
    }
    enum lk_code rc = lk_icc(full, n, m, icc);
    lk_free(full);
    if (rc) return rc;
    out->icc1 = icc[LK_ICC1].value;
    out->icc1k = icc[LK_ICC1K].value;
    return LK_OK;
}

static enum lk_code alphas_of(const struct lk_answers *answers, const struct lk_resampling *how,
                              struct lk_number alpha[LK_N_MEASUREMENTS]) {
    if (how) return lk_krippendorff_intervals(answers->values, answers->n, answers->width, how, alpha);
    for (int level = 0; level < LK_N_MEASUREMENTS; level++)
        LK_TRY(lk_krippendorff_alpha(answers->values, answers->n, answers->width, level, &alpha[level]));
    return LK_OK;
}

enum lk_code lk_reliability(const struct lk_dataset *data, int question, bool classes, const struct lk_resampling *how,
                            struct lk_reliability *out) {
    static const struct lk_number none = {.undefined = "no item has two answers"};
    struct lk_answers answers;
    *out = (struct lk_reliability){.fleiss.kappa = none, .icc1 = none, .icc1k = none};
    for (int level = 0; level < LK_N_MEASUREMENTS; level++) out->alpha[level] = none;
    LK_TRY(lk_answers_gather(data, question, classes, &answers));
    out->n = answers.n;
    out->n_single = answers.n_single;
    enum lk_code rc = LK_OK;
    if (answers.n) {
        rc = kappa_of_raters(&answers, classes || question >= LK_N_AXES, &out->fleiss);
        if (!rc) rc = alphas_of(&answers, how, out->alpha);
        if (!rc) rc = icc_of_raters(&answers, out->fleiss.n_raters, out);
    }
    lk_answers_free(&answers);
    return rc;
}

/* Columns of one number per item. */
struct columns {
    int32_t *judge, *human, *judge_class, *human_class;
    double *score, *mean;
    int8_t *classes; /* of all items of the dataset */
};

static void columns_free(struct columns *c) {
    lk_free(c->judge);
    lk_free(c->human);
    lk_free(c->judge_class);
    lk_free(c->human_class);
    lk_free(c->score);
    lk_free(c->mean);
    lk_free(c->classes);
}

static enum lk_code columns_new(struct columns *c, size_t n) {
    *c = (struct columns){lk_malloc(n * sizeof(int32_t)),
                          lk_malloc(n * sizeof(int32_t)),
                          lk_malloc(n * sizeof(int32_t)),
                          lk_malloc(n * sizeof(int32_t)),
                          lk_malloc(n * sizeof(double)),
                          lk_malloc(n * sizeof(double)),
                          lk_malloc(n)};
    if (c->judge && c->human && c->judge_class && c->human_class && c->score && c->mean && c->classes) return LK_OK;
    columns_free(c);
    return no_memory();
}

enum lk_code lk_judge_human(const struct lk_dataset *data, const struct lk_group *group, enum lk_axis axis,
                            struct lk_judge_human *out) {
    struct columns c;
    size_t n = 0;
    *out = (struct lk_judge_human){0};
    LK_TRY(columns_new(&c, data->n_items));
    enum lk_code rc = lk_combine_classes(data, axis, true, c.classes);
    for (size_t i = 0; i < data->n_items && !rc; i++) {
        const struct lk_item *item = &data->items[i];
        if (!lk_group_has(group, item) || !item->score[axis]) continue;
        if (isnan(item->human_mean[axis]) && c.classes[i] == LK_CLASS_NONE) continue;
        c.judge[n] = item->score[axis];
        c.human[n] = item->human_majority[axis]; /* 0 is no label and left out */
        c.judge_class[n] = lk_class_of_level(axis, item->score[axis]);
        c.human_class[n] = c.classes[i];
        if (!isnan(item->human_mean[axis])) {
            c.score[out->n] = item->score[axis];
            c.mean[out->n] = item->human_mean[axis];
            out->judge_sum += c.score[out->n];
            out->human_sum += c.mean[out->n];
            out->n++;
        }
        n++;
    }
    if (!rc) rc = lk_cohen_kappa(c.judge, c.human, n, 1, N_LEVELS, LK_WEIGHTS_QUADRATIC, &out->levels);
    if (!rc) rc = lk_cohen_kappa(c.judge_class, c.human_class, n, 0, N_CLASSES - 1, LK_WEIGHTS_NONE, &out->classes);
    if (!rc) rc = lk_spearman(c.score, c.mean, (size_t)out->n, &out->spearman);
    columns_free(&c);
    return rc;
}

enum lk_code lk_judges_lean(const struct lk_dataset *data, const struct lk_group *group, enum lk_axis axis,
                            double confidence, struct lk_lean *out) {
    double *difference = lk_malloc(data->n_items * (sizeof *difference + sizeof(int32_t)));
    struct lk_cluster_mean mean;
    *out = (struct lk_lean){0};
    if (!difference) return no_memory();
    int32_t *source = (int32_t *)(void *)(difference + data->n_items);
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        int g = item->judge[0][axis], o = item->judge[1][axis];
        if (!lk_group_has(group, item) || !g || !o) continue;
        difference[out->n] = o - g;
        source[out->n++] = item->source;
        out->sum[0] += g;
        out->sum[1] += o;
        out->higher += o > g;
        out->lower += o < g;
    }
    enum lk_code rc = lk_cluster_mean(difference, source, (size_t)out->n, confidence, &mean);
    lk_free(difference);
    LK_TRY(rc);
    out->difference = mean.cr2;
    return lk_mcnemar(out->higher, out->lower, LK_MCNEMAR_EXACT, &out->sign);
}

enum lk_code lk_measure_agreement(const struct lk_dataset *data, const struct lk_group *group, enum lk_measure measure,
                                  const struct lk_thresholds *thresholds, struct lk_measure_agreement *out) {
    int64_t table[4] = {0};
    *out = (struct lk_measure_agreement){0};
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!lk_group_has(group, item)) continue;
        int judge = lk_measure_of(measure, item->score, item->prompt, thresholds);
        int human = lk_measure_of(measure, item->human_majority, item->prompt, thresholds);
        if (judge >= 0) out->judge.k += judge, out->judge.n++;
        if (human >= 0) out->human.k += human, out->human.n++;
        if (judge >= 0 && human >= 0) table[2 * judge + human]++;
    }
    return lk_cohen_kappa_table(table, 2, LK_WEIGHTS_NONE, &out->kappa);
}

/* What the judges or the raters say of the measure, of LK_N_MEASURES the score of edit success; NaN: nothing. */
static double said(const struct lk_item *item, enum lk_measure measure, const struct lk_thresholds *thresholds,
                   enum lk_score_source source) {
    bool human = source == LK_SCORES_HUMAN;
    if (measure < LK_N_MEASURES) {
        int value = lk_measure_of(measure, human ? item->human_majority : item->score, item->prompt, thresholds);
        return value < 0 ? NAN : value;
    }
    if (human) return item->human_mean[LK_AXIS_EDIT_SUCCESS];
    return item->score[LK_AXIS_EDIT_SUCCESS] ? item->score[LK_AXIS_EDIT_SUCCESS] : NAN;
}

static double said_of(const struct lk_dataset *data, size_t i, const struct lk_calibration *c,
                      enum lk_score_source source) {
    const struct lk_item *item = &data->items[i];
    double value = said(item, c->measure, c->thresholds, source);
    if (!c->change) return value;
    return item->partner < 0 ? NAN : said(&data->items[item->partner], c->measure, c->thresholds, source) - value;
}

static enum lk_code calibrate(const struct lk_dataset *data, const struct lk_calibration *c, double *judged,
                              double *human, int32_t *stratum, unsigned char *rated, struct lk_prediction_powered *out,
                              int64_t *n_judged) {
    size_t n = 0;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!lk_group_has(&c->group, item)) continue;
        judged[n] = said_of(data, i, c, LK_SCORES_JUDGE);
        if (isnan(judged[n])) continue;
        human[n] = said_of(data, i, c, LK_SCORES_HUMAN);
        rated[n] = !isnan(human[n]);
        stratum[n] =
            ((item->race * LK_N_GENDERS + item->gender) * LK_N_AGE_GROUPS + lk_age_group(item->age)) * LK_N_MODELS +
            item->model;
        n++;
    }
    *n_judged = (int64_t)n;
    return lk_difference_estimate(judged, human, rated, stratum, n,
                                  LK_N_RACES * LK_N_GENDERS * LK_N_AGE_GROUPS * LK_N_MODELS, c->confidence, out);
}

enum lk_code lk_calibrated(const struct lk_dataset *data, const struct lk_calibration *c,
                           struct lk_prediction_powered *out, int64_t *judged) {
    size_t n = data->n_items;
    double *numbers = lk_malloc(n * (2 * sizeof *numbers + sizeof(int32_t) + 1));
    if (!numbers) return no_memory();
    int32_t *stratum = (int32_t *)(void *)(numbers + 2 * n);
    enum lk_code rc = calibrate(data, c, numbers, numbers + n, stratum, (unsigned char *)(stratum + n), out, judged);
    lk_free(numbers);
    return rc;
}

/* How two judges differ, or a judge and the raters; false: one of them says nothing. */
static bool apart(const struct lk_item *item, enum lk_axis axis, enum lk_kin kin, double *out) {
    int g = item->judge[0][axis], o = item->judge[1][axis];
    double human = item->human_mean[axis];
    *out = kin == LK_KIN_JUDGES ? g - o : (kin == LK_KIN_PRIMARY ? g : o) - human;
    return kin == LK_KIN_JUDGES ? g && o : (kin == LK_KIN_PRIMARY ? g : o) && !isnan(human);
}

enum lk_code lk_judges_kinship(const struct lk_dataset *data, enum lk_axis axis, enum lk_kin kin, bool with_step1x,
                               double confidence, struct lk_kinship *out) {
    static const double weights[2][LK_N_MODELS] = {/* FLUX.2, Step1X, Qwen */
                                                   {-0.5, -0.5, 1},
                                                   {-1, 0.5, 0.5}};
    double sum[LK_N_SOURCES][LK_N_MODELS] = {{0}}, count[LK_N_SOURCES][LK_N_MODELS] = {{0}}, of_source[LK_N_SOURCES];
    int32_t source[LK_N_SOURCES];
    size_t n = 0;
    const struct lk_group group = LK_GROUP_ANY;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        double difference;
        if (!lk_group_has(&group, item) || !apart(item, axis, kin, &difference)) continue;
        sum[item->source][item->model] += difference;
        count[item->source][item->model]++;
    }
    for (int s = 0; s < LK_N_SOURCES; s++) {
        bool whole = true;
        of_source[n] = 0;
        for (int m = 0; m < LK_N_MODELS; m++) {
            whole &= count[s][m] > 0;
            if (whole) of_source[n] += weights[with_step1x][m] * sum[s][m] / count[s][m];
        }
        if (whole) source[n] = s, n++;
    }
    struct lk_cluster_mean mean;
    LK_TRY(lk_cluster_mean(of_source, source, n, confidence, &mean));
    out->difference = mean.independent;
    out->p = mean.independent_error > 0 && n > 1
                 ? lk_t_two_sided(mean.independent.value / mean.independent_error, (double)n - 1)
                 : NAN;
    return LK_OK;
}

static void add_preference(struct lk_preference *out, int arm) {
    out->preserved.k += arm == LK_ARM_PRESERVED;
    out->preserved.n += arm < LK_N_ARMS;
    out->n_ties += arm >= LK_N_ARMS;
}

struct lk_preference lk_preference_of(const struct lk_dataset *data, const struct lk_group *group,
                                      enum lk_score_source source) {
    struct lk_preference out = {{0, 0}, 0};
    for (size_t i = 0; i < data->n_items && source == LK_SCORES_JUDGE; i++)
        if (data->items[i].legacy_preference >= 0 && lk_group_has(group, &data->items[i]))
            add_preference(&out, data->items[i].legacy_preference);
    if (source == LK_SCORES_JUDGE) return out;
    for (size_t r = 0; r < data->n_ratings; r++) {
        const struct lk_rating *rating = &data->ratings[r];
        if (!counts(data, rating) || rating->preference < 0 || !lk_group_has(group, &data->items[rating->item]))
            continue;
        add_preference(&out, rating->preference);
    }
    return out;
}
