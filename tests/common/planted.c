#include "tests/common/planted.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/human/combine.h"
#include "eval/judge/ensemble.h"
#include "eval/study/pairs500.h"
#include "eval/study/prompts.h"
#include "eval/study/random.h"

static enum lk_code add_item(struct lk_dataset *data, int source, int model, int prompt, int arm) {
    int race, gender, age;
    char id[128];
    int32_t item;
    lk_source_factors(source, &race, &gender, &age);
    int n = snprintf(id, sizeof id, "%s_%s_%s_%s_%s%s", lk_factor_key(LK_FACTOR_MODEL, model),
                     lk_factor_key(LK_FACTOR_AGE, age), lk_factor_key(LK_FACTOR_GENDER, gender),
                     lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(prompt),
                     arm == LK_ARM_PRESERVED ? ".preserved" : "");
    return lk_dataset_item(data, id, (size_t)n, &item);
}

static enum lk_code add_ratings(struct lk_dataset *data) {
    for (int r = 0; r < PLANTED_RATERS; r++) {
        int32_t rater;
        LK_TRY(lk_dataset_rater(data, (const char *[]){"ann", "bob", "cem"}[r], 3, &rater));
        for (size_t i = PLANTED_EDITED; i < data->n_items; i++) {
            for (int arm = 0; arm < 2; arm++) {
                struct lk_rating *rating;
                LK_TRY(lk_dataset_rating(data, &rating));
                rating->item = arm ? (int32_t)i : data->items[i].partner;
                rating->rater = rater;
                rating->n_asked = LK_N_AXES;
            }
        }
    }
    return LK_OK;
}

enum lk_code planted_items(struct lk_dataset *data) {
    struct lk_pair pairs[LK_N_PAIRS];
    for (int s = 0; s < LK_N_SOURCES; s++)
        for (int m = 0; m < LK_N_MODELS; m++)
            for (int p = 0; p < LK_N_EDIT_PROMPTS; p++) LK_TRY(add_item(data, s, m, p, LK_ARM_EDITED));
    lk_pairs500(42, pairs);
    for (int i = 0; i < LK_N_PAIRS; i++)
        LK_TRY(add_item(data, pairs[i].source, pairs[i].model, pairs[i].prompt, LK_ARM_PRESERVED));
    lk_dataset_pair(data);
    return add_ratings(data);
}

static double uniform(struct lk_stream *s) { return (double)(lk_stream_u64(s) >> 11) * 0x1p-53; }

static int level_of(double u, const double share[5]) {
    int level = 1;
    for (double below = share[0]; level < 5 && u >= below; level++) below += share[level];
    return level;
}

void planted_levels(double drift, double share[5]) {
    share[0] = 0.7 * (1 - drift);
    share[1] = 0.3 * (1 - drift);
    share[2] = 0.4 * drift;
    share[3] = 0.4 * drift;
    share[4] = 0.2 * drift;
}

static void erasure_levels(double erasure, double share[5]) {
    share[0] = share[1] = 0.5 * erasure;
    share[2] = 0.2 * (1 - erasure);
    share[3] = share[4] = 0.4 * (1 - erasure);
}

static int judged(struct lk_stream *s, int level, double error) {
    double u = uniform(s);
    if (u < error / 2) return level > 1 ? level - 1 : 1;
    if (u < error) return level < 5 ? level + 1 : 5;
    return level;
}

static void judge_item(struct lk_item *item, const struct planted *design, const uint8_t *truth, struct lk_stream *s) {
    for (int j = 0; j < LK_N_JUDGES; j++)
        for (int a = 0; a < LK_N_AXES; a++) item->judge[j][a] = (uint8_t)judged(s, truth[a], design->judge_error[j]);
}

static void draw_truth(const struct lk_item *item, const struct planted *design, const double *of_source,
                       struct lk_stream *s, uint8_t *truth) {
    static const double skin[5] = {0.02, 0.08, 0.6, 0.2, 0.1}, age[5] = {0.05, 0.15, 0.6, 0.15, 0.05};
    double drift[5], erasure[5], gender[5], u[LK_N_AXES];
    planted_levels(design->race_drift[item->race][item->model] + (item->gender ? design->female_drift : 0), drift);
    erasure_levels(design->soft_erasure[item->race], erasure);
    planted_levels(0.1, gender);
    const double *share[LK_N_AXES] = {erasure, design->skin ? design->skin : skin, drift, gender, age};
    for (int a = 0; a < LK_N_AXES; a++) {
        bool own = uniform(s) >= design->shared;
        u[a] = uniform(s);
        if (!own) u[a] = of_source[a];
        truth[a] = (uint8_t)level_of(u[a], share[a]);
    }
}

enum lk_code planted_scores(struct lk_dataset *data, const struct planted *design, uint64_t seed, uint64_t replicate) {
    static uint8_t truth[PLANTED_ITEMS][LK_N_AXES];
    double of_source[LK_N_SOURCES][LK_N_AXES];
    struct lk_stream s;
    lk_stream_numbered(&s, seed, "planted|", replicate);
    for (int i = 0; i < LK_N_SOURCES; i++)
        for (int a = 0; a < LK_N_AXES; a++) of_source[i][a] = uniform(&s);
    for (size_t i = 0; i < data->n_items; i++) {
        struct lk_item *item = data->items + i;
        if (item->arm == LK_ARM_EDITED) {
            draw_truth(item, design, of_source[item->source], &s, truth[i]);
        } else {
            memcpy(truth[i], truth[item->partner], LK_N_AXES);
            if (uniform(&s) < design->repaired[item->race]) truth[i][LK_AXIS_RACE_DRIFT] = 1;
        }
        judge_item(item, design, truth[i], &s);
    }
    for (size_t i = 0; i < data->n_ratings; i++)
        for (int a = 0; a < LK_N_AXES; a++) {
            bool noise = uniform(&s) < design->noise;
            uint8_t any = (uint8_t)(1 + lk_stream_bounded(&s, 5));
            data->ratings[i].score[a] = noise ? any : truth[data->ratings[i].item][a];
        }
    lk_ensemble_apply(data, &(struct lk_ensemble){LK_HALF_EVEN, false}, NULL);
    return lk_combine(data);
}

/* The mean (least 0) or P(>= least) of the ensemble over both judges' errors; its rule is written out once more. */
static double over_answers(const struct planted *design, int level, int least) {
    double sum = 0;
    for (int g = -1; g <= 1; g++)
        for (int o = -1; o <= 1; o++) {
            double pg = g ? design->judge_error[0] / 2 : 1 - design->judge_error[0];
            double po = o ? design->judge_error[1] / 2 : 1 - design->judge_error[1];
            int a = level + g, b = level + o;
            a = a < 1 ? 1 : a > 5 ? 5 : a;
            b = b < 1 ? 1 : b > 5 ? 5 : b;
            int one = abs(a - b) == 1 && a % 2 ? b : a; /* a half goes to the even level; far apart the first counts */
            sum += pg * po * (least ? one >= least : one);
        }
    return sum;
}

double planted_ensemble_mean(const struct planted *design, int level) { return over_answers(design, level, 0); }

double planted_ensemble_at_least(const struct planted *design, int level, int least) {
    return over_answers(design, level, least);
}

double planted_drift_rate(const struct planted *design, double drift) {
    double share[5], rate = 0;
    planted_levels(drift, share);
    for (int t = 1; t <= 5; t++) rate += share[t - 1] * planted_ensemble_at_least(design, t, 3);
    return rate;
}

double planted_erasure_rate(const struct planted *design, double erasure) {
    double share[5], rate = 0;
    erasure_levels(erasure, share);
    for (int t = 1; t <= 5; t++) rate += share[t - 1] * (1 - planted_ensemble_at_least(design, t, 3));
    return rate;
}
